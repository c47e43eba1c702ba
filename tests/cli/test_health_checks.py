"""What the doctor says about a machine is what is there, and whatever is amiss comes with what to do about it."""

import os
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xmlrpc.server import SimpleXMLRPCServer

import imageio_ffmpeg
import pytest
from tests.cli.conftest import Command

from roboyard.cli import health_checks as checks
from roboyard.cli.health_checks import HealthCheck
from roboyard.compute import RayPool
from roboyard.errors import InputError, RunError
from roboyard.scenarios import provenance


def findings(command: Command) -> dict[str, dict[str, object]]:
    return {item["subject"]: item for item in command("doctor", "--json").json["checks"]}


def test_doctor_checks_everything_a_user_needs(command: Command) -> None:
    found = findings(command)
    assert {"python", "packages", "lock", "extras", "cores", "kernels", "pictures", "video", "disk"} <= set(found)
    assert found["python"]["is_ok"] is True
    assert {"ports", "ros 1", "ros 2", "cluster", "chromium"} <= set(found)
    out = command("doctor").out
    assert all(subjects in out for subjects in found)
    assert out.count("→") == sum(bool(item["advice"]) for item in found.values())
    assert all(item["advice"] for item in found.values() if item["is_ok"] is False)


def test_versions_that_differ_from_the_lock_are_named(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Agrees exactly when every package that is installed and in the lock has the version there."""
    from roboyard.scenarios import provenance

    installed = provenance.dependency_closure("roboyard")
    package = tmp_path / "src" / "roboyard"
    package.mkdir(parents=True)
    monkeypatch.setattr(provenance, "__file__", str(package / "scenarios" / "provenance.py"))
    lock = tmp_path / "requirements.lock"
    assert checks._check_lock().is_ok is None
    lock.write_text("".join(f"{name.replace('-', '_')}=={version}\n" for name, version in installed.items()))
    assert checks._check_lock().is_ok is True
    lock.write_text("".join(f"{name}=={version}\n" for name, version in {**installed, "numpy": "0.1"}.items()))
    finding = checks._check_lock()
    assert finding.is_ok is None
    assert f"numpy {installed['numpy']} (tested: 0.1)" in finding.text
    assert f"pip install -c {lock}" in finding.advice


def test_kernels_are_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    assert "none compiled yet" in checks._check_kernels().text
    assert "roboyard precompile" in checks._check_kernels().advice
    for name in ("roboyard.a.one-0", "roboyard.a.one-1", "roboyard.a.two-0", "other.a.one-0"):
        (tmp_path / "kernels" / name).mkdir(parents=True)
        (tmp_path / "kernels" / name / "code.nbi").touch()
    finding = checks._check_kernels()
    assert (finding.is_ok, finding.text.split()[0]) == (True, "2")


def test_failed_check_does_not_end_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> HealthCheck:
        raise OSError("broken")

    def failing() -> HealthCheck:
        raise RunError("not a folder", location="there", valid="another one")

    monkeypatch.setattr(checks, "_check_video", broken)
    monkeypatch.setattr(checks, "_check_disk", failing)
    found = {item.subject: item for item in checks.run_checks()}
    assert (found["broken"].is_ok, found["broken"].text) == (False, "broken")
    assert "force-reinstall" in found["broken"].advice
    assert (found["failing"].text, found["failing"].advice) == ("there: not a folder", "another one")
    assert len(found) > 8


# -- problems, simulated one by one ------------------------------------------------------------------------------------
Patch = pytest.MonkeyPatch


def meminfo(free_gib: float) -> Callable[[Patch, Path], None]:
    return lambda patch, _: patch.setattr(
        checks, "_memory_gib", lambda field: free_gib if field == "MemAvailable" else 16.0
    )


def without(module: Any, missing: str) -> Callable[[Patch, Path], None]:
    """A package that is not installed."""
    real = module.distribution

    def distribution(name: str) -> Any:
        if name.lower() == missing:
            raise PackageNotFoundError(name)
        return real(name)

    return lambda patch, _: patch.setattr(module, "distribution", distribution)


def environment(**values: str) -> Callable[[Patch, Path], None]:
    def set_all(patch: Patch, _: Path) -> None:
        for name, value in values.items():
            patch.setenv(name, value)

    return set_all


def no_ffmpeg(patch: Patch, _: Path) -> None:
    def get() -> str:
        raise RuntimeError("No ffmpeg exe could be found")

    patch.setattr(imageio_ffmpeg, "get_ffmpeg_exe", get)


def no_sockets(patch: Patch, _: Path) -> None:
    def reject(*_: object) -> None:
        raise OSError(99, "Cannot assign requested address")

    patch.setattr(checks, "_open_port", reject)


def no_gl(patch: Patch, _: Path) -> None:
    for name in ("MUJOCO_GL", "PYOPENGL_PLATFORM"):  # a test before may have chosen a platform
        patch.delenv(name, raising=False)
    patch.setattr("roboyard.rendering.gl_platform.find_gl_platform", lambda: None)


def gl_off(patch: Patch, folder: Path) -> None:
    no_gl(patch, folder)
    patch.setenv("MUJOCO_GL", "off")


def read_only(patch: Patch, folder: Path) -> None:
    patch.setenv("NUMBA_CACHE_DIR", str(folder / "kernels"))
    patch.setattr(os, "access", lambda *_: False)


@pytest.mark.parametrize(
    ("check", "problem", "good", "text", "advice"),
    [
        (checks._check_python, lambda p, _: p.setattr(sys, "version_info", (3, 10, 4)), False, "3.11 to 3.13",
         "PYTHON="),
        (checks._check_python, lambda p, _: p.setattr(sys, "platform", "darwin"), False, "needs Linux", "container"),
        (checks._check_packages, without(provenance, "rosbags"), False, "not installed", "pip install rosbags"),
        (checks.check_extras, without(checks, "pyzmq"), None, r"groot \(Groot2\)", r"roboyard\["),
        (checks._check_cores, meminfo(0.7), None, "not enough for a run on each", "--workers 1"),
        (checks._check_cores, meminfo(0.2), False, "not enough for a run", "ps --sort"),
        (checks._check_kernels, read_only, False, "cannot be written", "NUMBA_CACHE_DIR"),
        (checks._check_rendering, no_gl, None, "no OpenGL library", "apt install libegl1"),
        (checks._check_rendering, gl_off, None, "MUJOCO_GL=off", "unset MUJOCO_GL"),
        (checks._check_video, no_ffmpeg, False, "No ffmpeg exe", "IMAGEIO_FFMPEG_EXE"),
        (checks._check_disk, lambda p, _: p.setattr(os, "access", lambda path, _: path != "."), None, "writable",
         "--out"),
        (checks._check_disk, lambda p, _: p.setattr(os, "access", lambda *_: False), False, "cannot be written",
         "TMPDIR"),
        (
            checks._check_disk,
            lambda p, _: p.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=10, f_frsize=4096)),
            False, "0.0 GB free", "runs/",
        ),
        (checks._check_data_folder, environment(ROBOYARD_DATA="/nowhere"), False, "not a folder",
         "unset ROBOYARD_DATA"),
        (checks.check_browser, lambda p, f: p.setattr(checks, "CHROMIUM", f / "x"), None, "gallery", "apt"),
        (checks.check_cluster, without(checks, "ray"), None, "no Ray", r"roboyard\[batch\]"),
        (checks.check_ports, no_sockets, False, "Cannot assign", "ip link set lo up"),
        (checks.check_ros1, environment(ROS_MASTER_URI="robot:11311"), False, "no address", "export ROS_MASTER_URI"),
        (checks.check_ros2, environment(ROS_DOMAIN_ID="233"), False, "'233'", "0 to 232"),
        (checks.check_ros2, environment(ROS_DOMAIN_ID="-1"), False, "'-1'", "0 to 232"),
        (checks.check_ros2, lambda p, _: p.setattr(checks, "find_spec", lambda _: None), None, "no DDS",
         r"roboyard\[ros2\]"),
        (checks.check_ros2, lambda p, _: p.setattr(checks, "_has_loopback_multicast", lambda: False), None,
         "no multicast", "lo multicast on"),
        (checks.check_ros2, environment(RMW_IMPLEMENTATION="rmw_fastrtps_cpp"), None, "services, actions",
         "rmw_cyclonedds_cpp"),
    ],
)  # fmt: skip
def test_problems_come_with_advice(
    check: Callable[[], HealthCheck], problem: Callable[[Patch, Path], None], good: bool | None, text: str, advice: str,
    monkeypatch: Patch, tmp_path: Path,
) -> None:  # fmt: skip
    before = check()
    assert before.is_ok is not False
    problem(monkeypatch, tmp_path)
    found = check()
    monkeypatch.undo()
    assert (found.subject, found.is_ok) == (before.subject, good)
    assert re.search(text, found.text)
    assert re.search(advice, found.advice)


def test_every_extra_has_a_purpose() -> None:
    names = checks.distribution("roboyard").metadata.get_all("Provides-Extra")
    assert set(names) <= set(checks.PURPOSES)


def test_taken_bridge_ports_are_reported(monkeypatch: Patch) -> None:
    from roboyard.bridges.foxglove import bridge as foxglove
    from roboyard.bridges.rosbridge import bridge as rosbridge

    with socket.socket() as one, socket.socket() as other:
        for listener, module in ((one, foxglove), (other, rosbridge)):
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            monkeypatch.setattr(module, "PORT", listener.getsockname()[1])
        found = checks.check_ports()
        assert found.is_ok is None
        assert f"in use: {foxglove.PORT} (--foxglove), {rosbridge.PORT} (--rosbridge)" in found.text
        assert "--foxglove --bridge-port" in found.advice
        assert f"sport = :{foxglove.PORT}" in found.advice
    found = checks.check_ports()
    assert (found.is_ok, found.advice) == (True, "")


@pytest.fixture
def master() -> Iterator[str]:
    """A server that answers as a master of ROS 1 does."""
    with SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False) as server:
        server.register_function(lambda caller: (1, "", 42), "getPid")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_running_ros1_master_is_found(master: str, monkeypatch: Patch) -> None:
    monkeypatch.setenv("ROS_MASTER_URI", master)
    assert checks.check_ros1().is_ok is True
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("ROS_MASTER_URI", f"http://127.0.0.1:{free.getsockname()[1]}")
        found = checks.check_ros1()
    assert (found.is_ok, "roscore" in found.advice) == (None, True)


# -- a cluster ---------------------------------------------------------------------------------------------------------
def test_machines_of_a_cluster_are_compared() -> None:
    local = checks.installed_versions()
    versions = local["versions"]
    opposite: dict[str, Any] = {
        "same": local,
        "older": {**local, "versions": {**versions, "numpy": "0.1", "python": "3.12.1"}},
        "else": {**local, "lock": "0" * 64},
        "weak": {**local, "cpu_class": "x86_64 sse4_2"},
        "bare": RunError("ModuleNotFoundError: No module named 'roboyard'"),
    }
    found = {item.subject: item for item in checks.compare_versions(local, opposite)}
    assert {name: item.is_ok for name, item in found.items()} == {
        "same": True, "older": False, "else": False, "weak": None, "bare": False,
    }  # fmt: skip
    assert f"numpy 0.1, local {versions['numpy']}" in found["older"].text
    assert f"python 3.12.1, local {versions['python']}" in found["older"].text
    assert "No module named 'roboyard'" in found["bare"].text
    assert all(f"Python {versions['python']}" in found[name].advice for name in ("older", "else", "bare"))
    assert "last digits" in found["weak"].text
    assert found["weak"].advice


def test_ray_of_another_version_is_named(monkeypatch: Patch) -> None:
    def init(**_: object) -> None:
        raise RuntimeError("Version mismatch: The cluster was started with:\n    Ray: 2.40.0\n    Python: 3.10.1")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))  # type: ignore[arg-type]
    with socket.socket() as head:
        head.bind(("127.0.0.1", 0))
        head.listen()
        with pytest.raises(InputError, match=r"Ray: 2\.40\.0 Python: 3\.10\.1"):
            RayPool(f"127.0.0.1:{head.getsockname()[1]}")


def test_missing_cluster_is_one_error(command: Command) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        result = command("doctor", "--cluster", f"127.0.0.1:{free.getsockname()[1]}")
    assert result.code == 2
    assert "no response" in result.error


@pytest.mark.slow
def test_local_ray_equals_this_machine(command: Command) -> None:
    pytest.importorskip("ray")
    found = command("doctor", "--cluster", "local", "--json").json["checks"]
    assert "as here" in found[-1]["text"]
