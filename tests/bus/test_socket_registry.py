"""The registry lists live runs, selects them by name or process id, and removes entries of ended processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.harness.live_bus import LiveBus

import roboyard as ry
from roboyard.bus.socket import SocketServer, connect, live_runs
from roboyard.bus.socket.registry import runtime_directory
from roboyard.errors import InputError, RunError, UnknownNameError


def test_run_is_listed_while_it_is_live() -> None:
    with LiveBus() as live:
        assert [(run.name, run.pid) for run in live_runs()] == [("yard", os.getpid())]
        assert live.server.run.socket.stat().st_mode & 0o777 == 0o600
        assert runtime_directory().stat().st_mode & 0o777 == 0o700
        with pytest.raises(UnknownNameError, match=r"no live run 'other' \(live: yard"):
            connect("other")


def test_entries_of_ended_processes_are_removed() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    entry = runtime_directory() / f"{process.pid}-0.json"
    entry.write_text(json.dumps({"name": "stale", "pid": process.pid}))
    assert live_runs() == []
    assert not entry.exists()


def test_runs_of_one_name_are_chosen_by_process_id() -> None:
    script = (
        "import roboyard as ry\nfrom roboyard.bus.socket import SocketServer\nwith ry.Bus() as bus:\n"
        "    server = SocketServer(bus, 'yard')\n    print('up', flush=True)\n    input()\n    server.close()"
    )
    with (
        LiveBus(),
        subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other,
    ):
        other.stdout.readline()
        with pytest.raises(InputError, match=f"several live runs are named 'yard'.*process id.*pid {other.pid}"):
            connect("yard")
        with pytest.raises(InputError, match="several runs are live"):
            connect()
        with connect(str(os.getpid())) as connection:
            assert connection.graph()["nodes"]
        other.stdin.write(b"\n")
        other.stdin.flush()
        other.wait(30)
        assert connect("yard").close() is None


@pytest.mark.parametrize("kind", ["missing", "a file", "too long"])
def test_unusable_runtime_folder_falls_back_to_temporary(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = {"missing": tmp_path / "none", "a file": tmp_path / "file", "too long": tmp_path / ("x" * 120)}[kind]
    if kind == "a file":
        base.write_text("")
    elif kind == "too long":
        base.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(base))
    with tempfile.TemporaryDirectory() as short:
        monkeypatch.setattr(tempfile, "tempdir", short)
        with ry.Bus() as bus:
            server = SocketServer(bus, "yard")
            assert server.run.socket.is_relative_to(short)
            assert [run.name for run in live_runs()] == ["yard"]
            server.close()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("y" * 120)))
        with ry.Bus() as bus, pytest.raises(RunError, match="cannot create the folder of the run's socket"):
            SocketServer(bus, "yard")


def test_stale_socket_of_the_same_process_id_is_replaced() -> None:
    (runtime_directory() / f"{os.getpid()}-0.sock").write_text("")
    with ry.Bus() as bus:
        SocketServer(bus, "yard").close()
