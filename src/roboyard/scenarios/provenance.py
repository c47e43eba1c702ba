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

_SHOWN = (
    "roboyard", "mujoco-core", "numba", "llvmlite", "numpy", "scipy", "rosbags", "zstandard", "lz4", "pillow",
    "opencv-python-headless", "embreex", "gtsam", "coal", "ompl", "ruckig", "trimesh", "fast-simplification",
)  # fmt: skip
"""Distributions on which the bytes of a recording may depend: physics, kernels, planners, pictures, messages, files."""
_VERSION = "version."
_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s#]+)", re.MULTILINE)
_VECTOR = ("avx512f", "avx2", "avx", "sse4_2", "asimd")


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
        versions = {f"{_VERSION}{name}": version for name, version in self.versions.items()}
        return {"lock": self.lock, "cpu_class": self.cpu_class, "renderer": self.renderer, **versions}


def provenance(renderer: str = "none") -> Provenance:
    """This process's."""
    versions = {"python": platform.python_version()}
    for name in _SHOWN:
        versions[name] = _version(name)
    return Provenance(versions, lock_hash(), cpu_class(), _cpu_name(), renderer)


def differences(then: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """In what two runs were made differently, each as "numpy 2.2.6 (here 2.4.6)".

    Args:
        then: `Provenance.metadata` of one, also from a recording; what it does not say is not compared.
        now: Of the other, that of this process for example.
    """
    both = [key for key in then if key in now and then[key] != now[key]]
    named = [key for key in both if key.startswith(_VERSION) or key in ("cpu_class", "renderer")]
    if not named and "lock" in both:
        return ("other versions of further packages",)
    return tuple(f"{_key_text(key)} {then[key]} (here {now[key]})" for key in named)


def compare_with_here(then: Mapping[str, str]) -> str:
    """One line that says in what a recording was made differently from what would be made here; "" if in nothing.

    Args:
        then: `Provenance.metadata` of the run, or a recording's metadata.
    """
    here = provenance().metadata()
    if "none" in (then.get("renderer"), here["renderer"]):  # one of the two has drawn nothing
        del here["renderer"]
    found = differences(then, here)
    return f"made with {', '.join(found)}: bytes may differ" if found else ""


def document_metadata(found: Mapping[str, Any]) -> dict[str, str]:
    """`Provenance.metadata` from what `Provenance.to_dict` has written into a run's document."""
    versions = {f"{_VERSION}{name}": str(version) for name, version in (found.get("versions") or {}).items()}
    return {key: str(found[key]) for key in ("lock", "cpu_class", "renderer") if key in found} | versions


def lock_file() -> Path | None:
    """The file of versions that were tested together: in an installed package, or beside the sources of a clone."""
    import roboyard

    package = Path(roboyard.__file__).resolve().parent
    places = (package / "requirements.lock", package.parents[1] / "requirements.lock")
    return next((path for path in places if path.is_file()), None)


def locked_versions() -> dict[str, str]:
    """Versions that were tested together, by normalized name; none where there is no lock file."""
    path = lock_file()
    found = _LOCKED.findall(path.read_text("utf-8")) if path is not None else ()
    return {_normal(name): version for name, version in found}


def compare_with_lock(versions: Mapping[str, str]) -> str:
    """One line that says which versions a run was made with that were not tested together; "" if none.

    Args:
        versions: By distribution, as `Provenance.versions`.
    """
    locked = locked_versions()
    other = [
        f"{name} {version} (tested: {tested})"
        for name, version in versions.items()
        if (tested := locked.get(_normal(name), version)) != version
    ]
    return f"made with {', '.join(other)}: bytes may differ" if other else ""


def _key_text(key: str) -> str:
    return {"cpu_class": "the processor", "renderer": "the renderer"}.get(key, key.removeprefix(_VERSION))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _version(name: str) -> str:
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return "not installed"


@lru_cache(maxsize=1)
def lock_hash() -> str:
    """Hash of the installed closure of roboyard's requirements, extras left out."""
    lines = "\n".join(f"{name}=={version}" for name, version in sorted(closure("roboyard").items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def closure(root: str) -> dict[str, str]:
    """Versions of ``root`` and of all that it needs on this machine, by normalised name.

    Of its extras none is followed, of its requirements' those that are asked for (``package[extra]``). What is
    installed besides plays no part, and what is not installed is left out.
    """
    from packaging.requirements import InvalidRequirement, Requirement  # heavy, and only this function needs it
    from packaging.utils import canonicalize_name

    found: dict[str, str] = {}
    waiting = [(canonicalize_name(root), "")]
    seen = set(waiting)
    while waiting:
        name, extra = waiting.pop()
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue
        found[name] = package.version
        for text in package.requires or ():
            try:
                needed = Requirement(text)
            except InvalidRequirement:
                continue  # old metadata may hold what no installer could have followed
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                new = {(canonicalize_name(needed.name), one) for one in ("", *needed.extras)} - seen
                seen |= new
                waiting += sorted(new)
    return found


@lru_cache(maxsize=1)
def cpu_class() -> str:
    """Architecture and widest vector unit."""
    flags = _cpu_field("flags").split() or _cpu_field("Features").split()
    vector = next((flag for flag in _VECTOR if flag in flags), "unknown vector unit")
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
