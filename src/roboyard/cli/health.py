"""Looks at the machine: each finding says what was looked at, whether it is good, what was found, and what to do."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from roboyard.cli import health_extras, health_network
from roboyard.cli.health_finding import Finding
from roboyard.errors import ConfigError, MissingExtraError, RoboyardError

_SHOWN = 4
_RUN_GIB = 0.5
"""What a process that runs the rover takes (docs/rooms/bridges.md)."""
_REPAIR = "`make clean demo` in a clone, or `pip install --force-reinstall roboyard`, restores what belongs to Roboyard"


def examine() -> list[Finding]:
    """Everything, one after the other; nothing of it changes the machine."""
    return [
        _safely(look)
        for look in (
            _python,
            _packages,
            _lock,
            health_extras.extras,
            _cores,
            _kernels,
            _pictures,
            _video,
            health_extras.chromium,
            _sockets,
            health_network.ports,
            health_network.ros1,
            health_network.ros2,
            health_extras.cluster,
            _disk,
            _data,
        )
    ]


def _safely(look: Callable[[], Finding]) -> Finding:
    what = look.__name__.strip("_")
    try:
        return look()
    except RoboyardError as error:
        where = f"{error.location}: " if error.location else ""
        return Finding(what, False, f"{where}{error.message}", error.valid or _REPAIR)
    except (OSError, ImportError, RuntimeError) as error:
        return Finding(what, False, str(error), _REPAIR)


def _python() -> Finding:
    system = f"{platform.python_implementation()} {platform.python_version()}, {platform.system()} {platform.machine()}"
    if sys.platform != "linux":
        return Finding("python", False, f"{system}: needs Linux", "a virtual machine or a container with Linux")
    if not (3, 11) <= sys.version_info < (3, 14):
        advice = "install one of these, then `make clean demo PYTHON=/path/to/it`"
        return Finding("python", False, f"{system}: needs Python 3.11 to 3.13", advice)
    return Finding("python", True, system)


def _packages() -> Finding:
    from roboyard.scenarios.provenance import provenance

    versions = {name: version for name, version in provenance().versions.items() if name != "python"}
    text = ", ".join(f"{name} {version}" for name, version in versions.items())
    missing = [name for name, version in versions.items() if version == "not installed"]
    advice = f"`make` in a clone, or `pip install {' '.join(missing)}`" if missing else ""
    return Finding("packages", not missing, text, advice)


def _lock() -> Finding:
    """Whether what is installed is what was tested together; the same lock gives the same bytes."""
    from roboyard.scenarios.provenance import closure, lock_file, lock_hash, locked_versions

    own = f"hash {lock_hash()[:12]} of what is installed"
    path = lock_file()
    if path is None:
        return Finding("lock", None, f"{own}; runs agree byte for byte where it is the same")
    wanted = locked_versions()
    other = [
        f"{name} {version} (tested: {wanted[name]})"
        for name, version in sorted(closure("roboyard").items())
        if wanted.get(name, version) != version
    ]
    if other:
        shown = ", ".join(other[:_SHOWN]) + (f" and {len(other) - _SHOWN} more" if len(other) > _SHOWN else "")
        package = f"-e {path.parent}" if path.parent.joinpath("pyproject.toml").is_file() else "roboyard"
        advice = f"`pip install -c {path} {package}` for the bytes that others get"
        return Finding("lock", None, f"{own}; not as tested together: {shown}", advice)
    return Finding("lock", True, f"{own}, all as in {path.name}")


def _cores() -> Finding:
    from roboyard.compute import count_usable_cores
    from roboyard.scenarios.provenance import cpu_class

    memory, free, cores = _memory_gib("MemTotal"), _memory_gib("MemAvailable"), count_usable_cores()
    text = f"{cores} usable of {os.cpu_count()}, {cpu_class()}, {free:.1f} of {memory:.1f} GiB memory free"
    fitting = int(free / _RUN_GIB)
    if fitting >= cores:
        return Finding("cores", None, text)
    if fitting:
        advice = f"batches: `--workers {fitting}`, since a run takes about {_RUN_GIB:g} GiB"
        return Finding("cores", None, f"{text}: too little for a run on each", advice)
    return Finding("cores", False, f"{text}: too little for a run", "end what takes it (`ps --sort=-rss -eo rss,args`)")


def _memory_gib(field: str) -> float:
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) / 2**20
    raise RuntimeError(f"/proc/meminfo has no {field}")


def _kernels() -> Finding:
    from roboyard.compute.kernel_folders import cache_root

    base = cache_root()
    place = next(folder for folder in (base, *base.parents) if folder.exists())
    if not os.access(place, os.W_OK):
        text = f"{base} cannot be written: every process compiles anew"
        return Finding("kernels", False, text, "`export NUMBA_CACHE_DIR=` a folder that can be written")
    kept = {folder.parent.name.rpartition("-")[0] for folder in base.glob("roboyard.*/*.nbi")}
    if kept:
        return Finding("kernels", True, f"{len(kept)} compiled, in {base}")
    text = f"none compiled yet, in {base}: the first run takes longer"
    return Finding(
        "kernels",
        None,
        text,
        "`roboyard warm --all` compiles them ahead, `roboyard warm SCENARIO` those of one scenario",
    )


def _pictures() -> Finding:
    from roboyard.simulation.render.gl_probe import gl_platform

    found = gl_platform()
    if found is not None:
        return Finding("pictures", True, f"OpenGL through {found.upper()}")
    chosen = {name: os.environ[name] for name in ("MUJOCO_GL", "PYOPENGL_PLATFORM") if os.environ.get(name)}
    if chosen:
        text = " and ".join(f"{name}={value}" for name, value in chosen.items())
        text = f"{text}: with that no OpenGL works, cameras are drawn by casting rays"
        return Finding("pictures", None, text, f"`unset {' '.join(chosen)}`, and whatever works is taken")
    text = "no OpenGL library (EGL, OSMesa) works: cameras are drawn by casting rays, which is slower"
    return Finding("pictures", None, text, "on Debian: `apt install libegl1 libopengl0 libgl1-mesa-dri`")


def _video() -> Finding:
    from roboyard.scenarios.video.mp4 import find_ffmpeg

    advice = "`pip install --force-reinstall imageio-ffmpeg`, or let IMAGEIO_FFMPEG_EXE name an ffmpeg"
    try:
        path = find_ffmpeg()
    except MissingExtraError as error:
        return Finding("video", None, "no ffmpeg: no videos", f"`pip install 'roboyard[{error.extra}]'`")
    except (OSError, ConfigError) as error:
        return Finding("video", False, f"no ffmpeg works ({error}): no videos", advice)
    if os.access(path, os.X_OK):
        return Finding("video", True, f"ffmpeg, {path}")
    return Finding("video", False, f"{path} cannot be run: no videos", advice)


def _sockets() -> Finding:
    from roboyard.bus.socket import live_runs
    from roboyard.bus.socket.registry import runtime_directory

    names = ", ".join(f"{run.name} (pid {run.pid})" for run in live_runs()) or "none"
    return Finding("live runs", True, f"{names}, announced in {runtime_directory()}")


def _disk() -> Finding:
    status = os.statvfs(".")
    free = status.f_bavail * status.f_frsize / 1e9
    text, temporary = f"{free:.1f} GB free here, in {Path.cwd()}", tempfile.gettempdir()
    if not os.access(temporary, os.W_OK):
        return Finding("disk", False, f"{temporary} cannot be written", "`export TMPDIR=` a folder that can be written")
    if free <= 0.5:
        return Finding("disk", False, f"{text}: a run leaves some 10 MB a minute", "remove old folders of runs/")
    if not os.access(".", os.W_OK):
        return Finding("disk", None, f"{text}, which is not writable", "go elsewhere, or `roboyard run … --out DIR`")
    return Finding("disk", True, text)


def _data() -> Finding:
    folder, advice = os.environ.get("ROBOYARD_DATA", ""), "only who tests Roboyard itself needs it"
    if not folder:
        return Finding("ROBOYARD_DATA", None, "not set: tests that need others' logs and descriptions skip", advice)
    if not Path(folder).is_dir():
        return Finding("ROBOYARD_DATA", False, f"{folder} is no folder", "`unset ROBOYARD_DATA`, or name one that is")
    return Finding("ROBOYARD_DATA", True, folder)
