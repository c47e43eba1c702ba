"""What a recording's bytes depend on besides scenario and seed: versions, dependencies, CPU class, renderer."""

from __future__ import annotations

import hashlib
import platform
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

_SHOWN = ("roboyard", "mujoco-core", "numba", "numpy", "scipy", "rosbags", "zstandard")
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
        versions = {f"version.{name}": version for name, version in self.versions.items()}
        return {"lock": self.lock, "cpu_class": self.cpu_class, "renderer": self.renderer, **versions}


def provenance(renderer: str = "none") -> Provenance:
    """This process's."""
    versions = {"python": platform.python_version()}
    for name in _SHOWN:
        versions[name] = _version(name)
    return Provenance(versions, lock_hash(), cpu_class(), _cpu_name(), renderer)


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
