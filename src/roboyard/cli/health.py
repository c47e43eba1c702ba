"""Looks at the machine: each finding says what was looked at, whether it is good, and what was found."""

from __future__ import annotations

import os
import platform
import re
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import roboyard
from roboyard.errors import RoboyardError

_EXTRA = re.compile(r"""([A-Za-z0-9._-]+)[^;]*;.*\bextra\s*==\s*["']([^"']+)["']""")
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at; ``good`` is None for what is merely said."""

    what: str
    good: bool | None
    text: str


def examine() -> list[Finding]:
    """Everything, one after the other; nothing of it changes the machine."""
    return [
        _safely(look)
        for look in (
            _python,
            _packages,
            _lock,
            _extras,
            _cores,
            _kernels,
            _pictures,
            _video,
            _sockets,
            _ports,
            _disk,
            _data,
        )
    ]


def _safely(look: Callable[[], Finding]) -> Finding:
    try:
        return look()
    except (RoboyardError, OSError, ImportError, RuntimeError) as error:
        return Finding(look.__name__.strip("_"), False, str(error))


def _python() -> Finding:
    good = (3, 11) <= sys.version_info < (3, 14) and sys.platform == "linux"
    system = f"{platform.python_implementation()} {platform.python_version()}, {platform.system()} {platform.machine()}"
    return Finding("python", good, system if good else f"{system}: needs Python 3.11 to 3.13 on Linux")


def _packages() -> Finding:
    from roboyard.scenarios.provenance import provenance

    versions = {name: version for name, version in provenance().versions.items() if name != "python"}
    good = "not installed" not in versions.values()
    return Finding("packages", good, ", ".join(f"{name} {version}" for name, version in versions.items()))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _cores() -> Finding:
    from roboyard.compute import usable_cores
    from roboyard.scenarios.provenance import cpu_class

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return Finding(
        "cores", None, f"{usable_cores()} usable of {os.cpu_count()}, {cpu_class()}, {memory:.1f} GiB memory"
    )


def _lock() -> Finding:
    """Whether what is installed is what was tested together; the same lock gives the same bytes."""
    from roboyard.scenarios.provenance import closure, lock_hash

    own = f"hash {lock_hash()[:12]} of what is installed"
    path = Path(roboyard.__file__).resolve().parents[2] / "requirements.lock"
    if not path.is_file():
        return Finding("lock", None, f"{own}; runs agree byte for byte where it is the same")
    wanted = dict(re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", path.read_text(), re.MULTILINE))
    wanted = {_normal(name): version for name, version in wanted.items()}
    other = [
        f"{name} {version} (tested: {wanted[name]})"
        for name, version in sorted(closure("roboyard").items())
        if wanted.get(name, version) != version
    ]
    if other:
        shown = ", ".join(other[:_SHOWN]) + (f" and {len(other) - _SHOWN} more" if len(other) > _SHOWN else "")
        return Finding("lock", None, f"{own}; not as tested together: {shown}; `make` installs those of {path.name}")
    return Finding("lock", True, f"{own}, all as in {path.name}")


def _extras() -> Finding:
    """Which optional parts are there."""
    package = distribution("roboyard")
    missing: dict[str, list[str]] = {name: [] for name in package.metadata.get_all("Provides-Extra") or ()}
    for requirement in package.requires or ():
        match = _EXTRA.match(requirement)
        if match and match[2] in missing:
            try:
                distribution(match[1])
            except PackageNotFoundError:
                missing[match[2]].append(match[1])
    there = ", ".join(name for name, lacks in missing.items() if not lacks) or "none"
    absent = ", ".join(name for name, lacks in missing.items() if lacks)
    hint = f"; not installed: {absent} (pip install 'roboyard[NAME]')" if absent else ""
    return Finding("extras", None, f"{there}{hint}")


def _kernels() -> Finding:
    from roboyard.compute.kernel_folders import cache_base

    base = cache_base()
    place = next(folder for folder in (base, *base.parents) if folder.exists())
    if not os.access(place, os.W_OK):
        text = f"{base} cannot be written: every process compiles anew; NUMBA_CACHE_DIR may name another folder"
        return Finding("kernels", False, text)
    kept = {folder.parent.name.rpartition("-")[0] for folder in base.glob("roboyard.*/*.nbi")}
    if kept:
        return Finding("kernels", True, f"{len(kept)} compiled, in {base}")
    text = f"none compiled yet, in {base}: the first run takes longer"
    return Finding("kernels", None, f"{text} (`python -m roboyard.compute.warm` does it ahead)")


def _pictures() -> Finding:
    from roboyard.simulation.render.gl_probe import gl_platform

    found = gl_platform()
    if found is None:
        text = "no OpenGL library (EGL, OSMesa) works: cameras are drawn by casting rays, which is slower"
        return Finding("pictures", None, f"{text}; on Debian: apt install libegl1 libopengl0 libgl1-mesa-dri")
    return Finding("pictures", True, f"OpenGL through {found.upper()}")


def _video() -> Finding:
    import imageio_ffmpeg

    path = imageio_ffmpeg.get_ffmpeg_exe()
    return Finding("video", os.access(path, os.X_OK), f"ffmpeg {imageio_ffmpeg.get_ffmpeg_version()}")


def _sockets() -> Finding:
    from roboyard.bus.socket import live_runs
    from roboyard.bus.socket.registry import directory

    names = ", ".join(f"{run.name} (pid {run.pid})" for run in live_runs()) or "none"
    return Finding("live runs", True, f"{names}, announced in {directory()}")


def _ports() -> Finding:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return Finding("ports", True, "local ports can be opened")


def _disk() -> Finding:
    status = os.statvfs(".")
    free = status.f_bavail * status.f_frsize / 1e9
    writable = os.access(".", os.W_OK)
    temporary = os.access(tempfile.gettempdir(), os.W_OK)
    text = f"{free:.1f} GB free here, {Path.cwd()} is {'writable' if writable else 'not writable: give --out'}"
    return Finding("disk", free > 0.5 and temporary, text)


def _data() -> Finding:
    folder = os.environ.get("ROBOYARD_DATA", "")
    if not folder:
        return Finding("ROBOYARD_DATA", None, "not set: tests that need others' logs and descriptions skip")
    good = Path(folder).is_dir()
    return Finding("ROBOYARD_DATA", good, folder if good else f"{folder} is no folder")
