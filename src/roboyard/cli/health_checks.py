"""Health checks of the installation: each has a subject, a state, a description, and advice."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from roboyard.errors import ConfigError, InputError, MissingExtraError, RoboyardError

if TYPE_CHECKING:
    from roboyard.compute import RayPool


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """Result of one check.

    Attributes:
        subject: Part of the installation.
        is_ok: Whether it works; None for information and for optional parts.
        text: Description of its state.
        advice: Suggested fix, or "". A check that failed always has one.
    """

    subject: str
    is_ok: bool | None
    text: str
    advice: str = ""


_MAX_LISTED = 4
_RUN_MEMORY_GIB = 0.5
"""Memory of a process that runs the rover."""
_REPAIR_ADVICE = (
    "`make clean demo` in a clone, or `pip install --force-reinstall roboyard`, restores the files of Roboyard"
)


def run_checks(cluster: str | None = None) -> list[HealthCheck]:
    """Run all checks; none of them changes the machine.

    Args:
        cluster: Ray cluster whose machines are checked, too: HOST:PORT of its head, or "local"; None: no cluster.

    Raises:
        InputError: The cluster cannot be reached.
    """
    return [*_check_this_machine(), *(() if cluster is None else _check_cluster_machines(cluster))]


def _check_cluster_machines(cluster: str) -> list[HealthCheck]:
    from roboyard.compute import RayPool

    with RayPool(cluster) as pool:
        return check_machines(pool)


def _check_this_machine() -> list[HealthCheck]:
    return [
        _run_check(check)
        for check in (
            _check_python,
            _check_packages,
            _check_lock,
            check_extras,
            _check_cores,
            _check_kernels,
            _check_rendering,
            _check_video,
            check_browser,
            _check_live_runs,
            check_ports,
            check_ros1,
            check_ros2,
            check_cluster,
            _check_disk,
            _check_data_folder,
        )
    ]


def _run_check(check: Callable[[], HealthCheck]) -> HealthCheck:
    subject = check.__name__.strip("_").removeprefix("check_")
    try:
        return check()
    except RoboyardError as error:
        location = f"{error.location}: " if error.location else ""
        return HealthCheck(subject, False, f"{location}{error.message}", error.valid or _REPAIR_ADVICE)
    except (OSError, ImportError, RuntimeError) as error:
        return HealthCheck(subject, False, str(error), _REPAIR_ADVICE)


def _check_python() -> HealthCheck:
    system = f"{platform.python_implementation()} {platform.python_version()}, {platform.system()} {platform.machine()}"
    if sys.platform != "linux":
        return HealthCheck("python", False, f"{system}: needs Linux", "a virtual machine or a container with Linux")
    if not (3, 11) <= sys.version_info < (3, 14):
        advice = "install one of these, then `make clean demo PYTHON=/path/to/it`"
        return HealthCheck("python", False, f"{system}: needs Python 3.11 to 3.13", advice)
    return HealthCheck("python", True, system)


def _check_packages() -> HealthCheck:
    from roboyard.scenarios.provenance import collect_provenance

    versions = {name: version for name, version in collect_provenance().versions.items() if name != "python"}
    text = ", ".join(f"{name} {version}" for name, version in versions.items())
    missing = [name for name, version in versions.items() if version == "not installed"]
    advice = f"`make` in a clone, or `pip install {' '.join(missing)}`" if missing else ""
    return HealthCheck("packages", not missing, text, advice)


def _check_lock() -> HealthCheck:
    """Check whether the installed versions are those of the lock file; equal versions give equal bytes."""
    from roboyard.scenarios.provenance import dependency_closure, installed_versions_hash, lock_file, locked_versions

    lock_text = f"hash {installed_versions_hash()[:12]} of the installed versions"
    path = lock_file()
    if path is None:
        return HealthCheck("lock", None, f"{lock_text}; runs are byte-identical where it is equal")
    locked = locked_versions()
    differences = [
        f"{name} {version} (tested: {locked[name]})"
        for name, version in sorted(dependency_closure("roboyard").items())
        if locked.get(name, version) != version
    ]
    if differences:
        listed = ", ".join(differences[:_MAX_LISTED]) + (
            f" and {len(differences) - _MAX_LISTED} more" if len(differences) > _MAX_LISTED else ""
        )
        package = f"-e {path.parent}" if path.parent.joinpath("pyproject.toml").is_file() else "roboyard"
        advice = f"`pip install -c {path} {package}` for byte-identical runs"
        return HealthCheck("lock", None, f"{lock_text}; versions differ from the lock file: {listed}", advice)
    return HealthCheck("lock", True, f"{lock_text}, all versions as in {path.name}")


def _check_cores() -> HealthCheck:
    from roboyard.compute import count_usable_cores
    from roboyard.scenarios.provenance import cpu_class

    memory, free, cores = _memory_gib("MemTotal"), _memory_gib("MemAvailable"), count_usable_cores()
    text = f"{cores} usable of {os.cpu_count()}, {cpu_class()}, {free:.1f} of {memory:.1f} GiB memory free"
    fitting = int(free / _RUN_MEMORY_GIB)
    if fitting >= cores:
        return HealthCheck("cores", None, text)
    if fitting:
        advice = f"batches: `--workers {fitting}`, since a run needs about {_RUN_MEMORY_GIB:g} GiB"
        return HealthCheck("cores", None, f"{text}: not enough for a run on each core", advice)
    return HealthCheck(
        "cores", False, f"{text}: not enough for a run", "end large processes (`ps --sort=-rss -eo rss,args`)"
    )


def _memory_gib(field: str) -> float:
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) / 2**20
    raise RuntimeError(f"/proc/meminfo has no {field}")


def _check_kernels() -> HealthCheck:
    from roboyard.compute.kernel_folders import cache_root

    base = cache_root()
    existing_folder = next(folder for folder in (base, *base.parents) if folder.exists())
    if not os.access(existing_folder, os.W_OK):
        text = f"{base} cannot be written: every process compiles the kernels again"
        return HealthCheck("kernels", False, text, "`export NUMBA_CACHE_DIR=` a folder that can be written")
    compiled = {folder.parent.name.rpartition("-")[0] for folder in base.glob("roboyard.*/*.nbi")}
    if compiled:
        return HealthCheck("kernels", True, f"{len(compiled)} compiled, in {base}")
    text = f"none compiled yet, in {base}: the first run takes longer"
    return HealthCheck(
        "kernels",
        None,
        text,
        "`roboyard precompile --all` compiles them before, `roboyard precompile SCENARIO` those of a scenario",
    )


def _check_rendering() -> HealthCheck:
    from roboyard.rendering.gl_platform import find_gl_platform

    found = find_gl_platform()
    if found is not None:
        return HealthCheck("pictures", True, f"OpenGL through {found.upper()}")
    settings = {name: os.environ[name] for name in ("MUJOCO_GL", "PYOPENGL_PLATFORM") if os.environ.get(name)}
    if settings:
        text = " and ".join(f"{name}={value}" for name, value in settings.items())
        text = f"{text}: OpenGL does not work with it, cameras use ray casting"
        return HealthCheck(
            "pictures", None, text, f"`unset {' '.join(settings)}`, so that Roboyard selects a platform that works"
        )
    text = "no OpenGL library (EGL, OSMesa) works: cameras use ray casting, which is slower"
    return HealthCheck("pictures", None, text, "on Debian: `apt install libegl1 libopengl0 libgl1-mesa-dri`")


def _check_video() -> HealthCheck:
    from roboyard.simulation.video.mp4_writer import find_ffmpeg

    advice = "`pip install --force-reinstall imageio-ffmpeg`, or set IMAGEIO_FFMPEG_EXE to an ffmpeg"
    try:
        path = find_ffmpeg()
    except MissingExtraError as error:
        return HealthCheck("video", None, "no ffmpeg: no videos", f"`pip install 'roboyard[{error.extra}]'`")
    except (OSError, ConfigError) as error:
        return HealthCheck("video", False, f"no ffmpeg works ({error}): no videos", advice)
    if os.access(path, os.X_OK):
        return HealthCheck("video", True, f"ffmpeg, {path}")
    return HealthCheck("video", False, f"{path} cannot be run: no videos", advice)


def _check_live_runs() -> HealthCheck:
    from roboyard.bus.socket import live_runs
    from roboyard.bus.socket.registry import runtime_directory

    names = ", ".join(f"{run.name} (pid {run.pid})" for run in live_runs()) or "none"
    return HealthCheck("live runs", True, f"{names}, announced in {runtime_directory()}")


def _check_disk() -> HealthCheck:
    status = os.statvfs(".")
    free = status.f_bavail * status.f_frsize / 1e9
    text, temporary = f"{free:.1f} GB free here, in {Path.cwd()}", tempfile.gettempdir()
    if not os.access(temporary, os.W_OK):
        return HealthCheck(
            "disk", False, f"{temporary} cannot be written", "`export TMPDIR=` a folder that can be written"
        )
    if free <= 0.5:
        return HealthCheck("disk", False, f"{text}: a run writes about 10 MB per minute", "remove old folders of runs/")
    if not os.access(".", os.W_OK):
        return HealthCheck(
            "disk", None, f"{text}, which is not writable", "use another folder, or `roboyard run … --out DIR`"
        )
    return HealthCheck("disk", True, text)


def _check_data_folder() -> HealthCheck:
    folder, advice = os.environ.get("ROBOYARD_DATA", ""), "only the tests of Roboyard need it"
    if not folder:
        return HealthCheck(
            "ROBOYARD_DATA", None, "not set: tests with external logs and descriptions are skipped", advice
        )
    if not Path(folder).is_dir():
        return HealthCheck(
            "ROBOYARD_DATA", False, f"{folder} is not a folder", "`unset ROBOYARD_DATA`, or set it to a folder"
        )
    return HealthCheck("ROBOYARD_DATA", True, folder)


CHROMIUM: Final = Path("/usr/bin/chromium")
_EXTRA = re.compile(r"""([A-Za-z0-9._-]+)[^;]*;.*\bextra\s*==\s*["']([^"']+)["']""")
PURPOSES: Final[Mapping[str, str]] = {
    "batch": "clusters, Parquet",
    "bench": "reference implementations of benchmarks",
    "dev": "style and types",
    "docs": "the documentation",
    "e2e": "tests in a browser",
    "groot": "Groot2",
    "gym": "reinforcement learning",
    "hardware": "real servos",
    "mesh": "convex pieces and cuts of meshes",
    "planning": "external task planners",
    "ros2": "--ros2",
    "test": "the tests",
    "video": "videos of runs",
}
"""Purpose of each extra."""


def check_extras() -> HealthCheck:
    """Check which extras are installed."""
    from packaging.requirements import Requirement

    package = distribution("roboyard")
    missing: dict[str, list[str]] = {name: [] for name in package.metadata.get_all("Provides-Extra") or ()}
    included: dict[str, set[str]] = {}
    for text in package.requires or ():
        match = _EXTRA.match(text)
        if match is None or match[2] not in missing:
            continue
        if match[1] == "roboyard":  # an extra that includes others
            included[match[2]] = Requirement(text).extras
            continue
        try:
            distribution(match[1])
        except PackageNotFoundError:
            missing[match[2]].append(match[1])
    for name, others in included.items():
        missing[name] += [lack for other in others for lack in missing[other]]
    installed = ", ".join(name for name, lacks in missing.items() if not lacks) or "none"
    absent = {name: PURPOSES.get(name, "") for name, lacks in missing.items() if lacks}
    if not absent:
        return HealthCheck("extras", True, installed)
    listed = ", ".join(f"{name} ({purpose})" if purpose else name for name, purpose in absent.items())
    advice = f"to install one: `pip install 'roboyard[{next(iter(absent))}]'`"
    return HealthCheck("extras", None, f"{installed}; not installed: {listed}", advice)


def check_browser() -> HealthCheck:
    """Check the browser that the tests of the view and the gallery use."""
    if CHROMIUM.is_file():
        return HealthCheck("chromium", True, str(CHROMIUM))
    text = f"no {CHROMIUM}: `make gallery` and tests of the view need it; --view opens in any browser"
    return HealthCheck("chromium", None, text, "on Debian: `apt install chromium`")


def check_cluster() -> HealthCheck:
    """Check whether Ray is installed."""
    try:
        version = distribution("ray").version
    except PackageNotFoundError:
        return HealthCheck("cluster", None, "no Ray: batches run on this machine", "`pip install 'roboyard[batch]'`")
    advice = "`roboyard doctor --cluster HOST:PORT` compares the machines of a cluster"
    return HealthCheck("cluster", None, f"Ray {version}; all machines of a cluster need this version", advice)


def compare_versions(
    local: Mapping[str, Any], others: Mapping[str, Mapping[str, Any] | Exception]
) -> list[HealthCheck]:
    """Check whether machines of a cluster give the same results as this one.

    Args:
        local: Result of `installed_versions` on this machine.
        others: Its results on the other machines by name, or the error of the request.
    """
    return [_compare_machine(name, local, remote) for name, remote in others.items()]


def _compare_machine(name: str, local: Mapping[str, Any], remote: Mapping[str, Any] | Exception) -> HealthCheck:
    versions = local["versions"]
    advice = f"install Python {versions['python']} and `pip install -c requirements.lock 'roboyard[batch]'` there"
    if isinstance(remote, Exception):
        return HealthCheck(name, False, f"Roboyard does not run there: {remote}", advice)
    differences = [
        f"{package} {found}, local {versions.get(package)}"
        for package, found in remote["versions"].items()
        if found != versions.get(package)
    ]
    if differences:
        return HealthCheck(name, False, f"other versions: {', '.join(differences)}", advice)
    if remote["lock"] != local["lock"]:
        text = f"lock {remote['lock'][:12]}, local {local['lock'][:12]}: results may differ"
        return HealthCheck(name, False, text, advice)
    if remote["cpu_class"] != local["cpu_class"]:
        text = f"{remote['cpu_class']}, local {local['cpu_class']}: results differ in their last digits"
        return HealthCheck(name, None, text, "exclude it where results must be byte-identical")
    return HealthCheck(name, True, f"equal versions, {remote['cpu_class']}")


def installed_versions() -> dict[str, Any]:
    """Return the versions and the CPU class on which results depend, of the machine that executes this."""
    from roboyard.scenarios.provenance import collect_provenance

    return collect_provenance().to_dict()


def check_machines(pool: RayPool) -> list[HealthCheck]:
    """Compare each machine of a cluster with this one."""
    return compare_versions(installed_versions(), pool.run_on_each_machine(installed_versions))


_LOCALHOST: Final = "127.0.0.1"
_DDS_MULTICAST_GROUP: Final = "239.255.0.1"
"""Multicast group of the DDS discovery (RTPS 2.5, 9.6.2.4.1)."""
_MAX_DOMAIN_ID: Final = 232


def check_ports() -> HealthCheck:
    """Check whether the default ports of the bridges are free."""
    from roboyard.bridges.foxglove.bridge import PORT as FOXGLOVE
    from roboyard.bridges.rosbridge.bridge import PORT as ROSBRIDGE

    try:
        _open_port(0)
    except OSError as error:
        text = f"no port of {_LOCALHOST} can be opened: {error.strerror or error}"
        return HealthCheck("ports", False, text, "`ip link set lo up` as root; in a container, allow sockets")
    options = {FOXGLOVE: "--foxglove", ROSBRIDGE: "--rosbridge"}
    used_ports = {port: option for port, option in options.items() if not _is_free(port)}
    if used_ports:
        port, option = next(iter(used_ports.items()))
        text = "in use: " + ", ".join(f"{port} ({option})" for port, option in used_ports.items())
        advice = f"`roboyard run … {option} --bridge-port N`; `ss -ltnp 'sport = :{port}'` shows the process"
        return HealthCheck("ports", None, text, advice)
    return HealthCheck("ports", True, "free: " + ", ".join(f"{port} ({option})" for port, option in options.items()))


def _is_free(port: int) -> bool:
    try:
        _open_port(port)
    except OSError:
        return False
    return True


def _open_port(port: int) -> None:
    """Open a listening socket and close it.

    Raises:
        OSError: The port is in use.
    """
    with socket.socket() as probe:
        probe.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # as servers do, so that closed connections do not block the port
        probe.bind((_LOCALHOST, port))
        probe.listen()


def check_ros1() -> HealthCheck:
    """Check whether a ROS 1 master answers at ROS_MASTER_URI."""
    from roboyard.bridges.ros1.bridge import MASTER
    from roboyard.bridges.ros1.xmlrpc import call

    uri = os.environ.get("ROS_MASTER_URI") or MASTER
    try:
        asyncio.run(call(uri, "getPid", "/roboyard_doctor"))
    except InputError as error:
        return HealthCheck("ros 1", False, f"ROS_MASTER_URI: {error.message}", f"`export ROS_MASTER_URI={MASTER}`")
    except RoboyardError:
        text = f"no master answers at {uri}: --ros1 needs one"
        return HealthCheck("ros 1", None, text, "`roscore` starts one; ROS_MASTER_URI is the address of another")
    return HealthCheck("ros 1", True, f"a master answers at {uri}")


def check_ros2() -> HealthCheck:
    """Check whether ``--ros2`` can find other participants on this machine."""
    domain, middleware = os.environ.get("ROS_DOMAIN_ID", ""), os.environ.get("RMW_IMPLEMENTATION", "")
    if domain and (not domain.isdecimal() or int(domain) > _MAX_DOMAIN_ID):
        advice = f"a number from 0 to {_MAX_DOMAIN_ID}, equal for all participants"
        return HealthCheck("ros 2", False, f"ROS_DOMAIN_ID is '{domain[:40]}'", advice)
    if find_spec("cyclonedds") is None:
        return HealthCheck("ros 2", None, "no DDS: --ros2 needs it", "`pip install 'roboyard[ros2]'`")
    text = f"Cyclone DDS, domain {domain or 0}"
    if not _has_loopback_multicast():
        text = f"{text}; no multicast on the loopback interface: participants on this machine may not find each other"
        advice = "`ip link set lo multicast on` and `ip route add 239.255.0.0/16 dev lo` as root"
        return HealthCheck("ros 2", None, text, advice)
    if middleware not in ("", "rmw_cyclonedds_cpp"):
        text = f"{text}; RMW_IMPLEMENTATION={middleware}: only topics work, not services, actions and parameters"
        return HealthCheck("ros 2", None, text, "`export RMW_IMPLEMENTATION=rmw_cyclonedds_cpp` where your nodes start")
    return HealthCheck("ros 2", True, f"{text}, multicast on the loopback interface")


def _has_loopback_multicast() -> bool:
    """Return whether multicast packets on the loopback interface arrive."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as one:
        try:
            one.bind(("", 0))
            interface = socket.inet_aton(_LOCALHOST)
            one.setsockopt(
                socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(_DDS_MULTICAST_GROUP) + interface
            )
            one.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
            one.settimeout(0.5)
            one.sendto(b"roboyard", (_DDS_MULTICAST_GROUP, one.getsockname()[1]))
            return one.recv(16) == b"roboyard"
        except OSError:
            return False
