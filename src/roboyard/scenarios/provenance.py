"""What a recording's bytes depend on besides scenario and seed: versions, dependencies, CPU class, renderer."""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

_DISTRIBUTIONS = (
    "roboyard", "mujoco-core", "numba", "llvmlite", "numpy", "scipy", "rosbags", "zstandard", "lz4", "pillow",
    "opencv-python-headless", "embreex", "gtsam", "coal", "ompl", "ruckig", "trimesh", "fast-simplification",
)  # fmt: skip
"""Distributions on which the bytes of a recording may depend: physics, kernels, planners, pictures, messages, files."""
_VERSION_PREFIX = "version."
_LOCK_LINE = re.compile(r"^([A-Za-z0-9._-]+)==([^\s#]+)", re.MULTILINE)
_VECTOR_UNITS = ("avx512f", "avx2", "avx", "sse4_2", "asimd")


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a run was made.

    Attributes:
        versions: Of the packages that matter most.
        lock: SHA-256 over "name==version" of the package's whole installed dependency closure.
        cpu_class: Architecture and widest vector unit, e.g. "x86_64 avx512f": the same class gives the same bytes.
        cpu: The processor's own name.
        renderer: What draws camera pictures; "none" where no camera is.
    """

    versions: dict[str, str]
    lock: str
    cpu_class: str
    cpu: str
    renderer: str

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "versions": dict(self.versions),
            "lock": self.lock,
            "cpu_class": self.cpu_class,
            "cpu": self.cpu,
            "renderer": self.renderer,
        }

    def metadata(self) -> dict[str, str]:
        """As texts, for a recording: only what its bytes may depend on."""
        versions = {f"{_VERSION_PREFIX}{name}": version for name, version in self.versions.items()}
        return {"lock": self.lock, "cpu_class": self.cpu_class, "renderer": self.renderer, **versions}


def collect_provenance(renderer: str = "none") -> Provenance:
    """This process's."""
    versions = {"python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        versions[name] = _version(name)
    return Provenance(versions, installed_versions_hash(), cpu_class(), _cpu_name(), renderer)


def describe_differences(previous: Mapping[str, str], current: Mapping[str, str]) -> tuple[str, ...]:
    """In what two runs were made differently, each as "numpy 2.2.6 (here 2.4.6)".

    Args:
        previous: `Provenance.metadata` of one, also from a recording; what it does not say is not compared.
        current: Of the other, that of this process for example.
    """
    changed = [key for key in previous if key in current and previous[key] != current[key]]
    relevant = [key for key in changed if key.startswith(_VERSION_PREFIX) or key in ("cpu_class", "renderer")]
    if not relevant and "lock" in changed:
        return ("other versions of further packages",)
    return tuple(f"{_key_text(key)} {previous[key]} (here {current[key]})" for key in relevant)


def describe_changes_since(previous: Mapping[str, str]) -> str:
    """One line that says in what a recording was made differently from what would be made here; "" if in nothing.

    Args:
        previous: `Provenance.metadata` of the run, or a recording's metadata.
    """
    current = collect_provenance().metadata()
    if "none" in (previous.get("renderer"), current["renderer"]):  # one of the two has drawn nothing
        del current["renderer"]
    differences = describe_differences(previous, current)
    return f"made with {', '.join(differences)}: bytes may differ" if differences else ""


def provenance_metadata(data: Mapping[str, Any]) -> dict[str, str]:
    """`Provenance.metadata` from what `Provenance.to_dict` has written into a run's document."""
    versions = {f"{_VERSION_PREFIX}{name}": str(version) for name, version in (data.get("versions") or {}).items()}
    return {key: str(data[key]) for key in ("lock", "cpu_class", "renderer") if key in data} | versions


def lock_file() -> Path | None:
    """The file of versions that were tested together: in an installed package, or beside the sources of a clone."""
    package = Path(__file__).resolve().parents[1]
    candidates = (package / "requirements.lock", package.parents[1] / "requirements.lock")
    return next((path for path in candidates if path.is_file()), None)


def locked_versions() -> dict[str, str]:
    """Versions that were tested together, by normalized name; none where there is no lock file."""
    path = lock_file()
    found = _LOCK_LINE.findall(path.read_text("utf-8")) if path is not None else ()
    return {_normalize_name(name): version for name, version in found}


def describe_untested_versions(versions: Mapping[str, str]) -> str:
    """One line that says which versions a run was made with that were not tested together; "" if none.

    Args:
        versions: By distribution, as `Provenance.versions`.
    """
    locked = locked_versions()
    untested = [
        f"{name} {version} (tested: {tested})"
        for name, version in versions.items()
        if (tested := locked.get(_normalize_name(name), version)) != version
    ]
    return f"made with {', '.join(untested)}: bytes may differ" if untested else ""


def _key_text(key: str) -> str:
    return {"cpu_class": "the processor", "renderer": "the renderer"}.get(key, key.removeprefix(_VERSION_PREFIX))


def _normalize_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _version(name: str) -> str:
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return "not installed"


@lru_cache(maxsize=1)
def installed_versions_hash() -> str:
    """Hash of the installed closure of roboyard's requirements, extras left out."""
    lines = "\n".join(f"{name}=={version}" for name, version in sorted(dependency_closure("roboyard").items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def dependency_closure(root: str) -> dict[str, str]:
    """Versions of ``root`` and of all that it needs on this machine, by normalised name.

    Of its extras none is followed, of its requirements' those that are asked for (``package[extra]``). What is
    installed besides plays no part, and what is not installed is left out.
    """
    from packaging.requirements import InvalidRequirement, Requirement  # heavy, and only this function needs it
    from packaging.utils import canonicalize_name

    versions: dict[str, str] = {}
    pending = [(canonicalize_name(root), "")]
    visited = set(pending)
    while pending:
        name, extra = pending.pop()
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue
        versions[name] = package.version
        for text in package.requires or ():
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                continue  # old metadata may hold what no installer could have followed
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                new = {
                    (canonicalize_name(requirement.name), requested_extra)
                    for requested_extra in ("", *requirement.extras)
                } - visited
                visited |= new
                pending += sorted(new)
    return versions


@lru_cache(maxsize=1)
def cpu_class() -> str:
    """Architecture and widest vector unit."""
    flags = _cpu_field("flags").split() or _cpu_field("Features").split()
    vector = next((flag for flag in _VECTOR_UNITS if flag in flags), "unknown vector unit")
    return f"{platform.machine()} {vector}"


def _cpu_name() -> str:
    return _cpu_field("model name") or platform.processor() or platform.machine()


def _cpu_field(name: str) -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""
    match = re.search(rf"^{name}\s*:\s*(.*)$", text, re.MULTILINE)
    return match[1].strip() if match else ""
