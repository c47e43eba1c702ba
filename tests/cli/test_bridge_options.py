"""Bridges from the command line: what is said at the end, ports, and nodes that others take the place of."""

import socket
from pathlib import Path

import pytest
from tests.harness.live_bus import CliResult, run_cli

from roboyard.cli.bridge_options import BridgeOptions, replace_with_external
from roboyard.errors import InputError, UnknownNameError
from roboyard.scenarios import Run


def run(*words: str) -> CliResult:
    return run_cli("run", "rover-drive", "--duration", "1", *words)


@pytest.mark.slow
def test_bridged_run_reports_traffic_and_keeps_real_time(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    result = run("--foxglove", "--bridge-port", str(port), "--json", "--out", str(tmp_path / "run"))
    notes = result.json["notes"]
    assert f"foxglove, ws://127.0.0.1:{port}: 0 sent, 0 received" in notes
    assert any(note.startswith("1 × real time: at most ") for note in notes)


@pytest.mark.slow
def test_run_with_taken_port_leaves_no_folder(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as used_port:
        port = used_port.getsockname()[1]
        result = run("--rosbridge", "--bridge-port", str(port), "--out", str(tmp_path / "run"))
    assert result.code == 2
    assert f"port {port} cannot be served" in result.err
    assert "Traceback" not in result.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("arguments", [{}, {"foxglove": True, "rosbridge": True}, {"ros1": True}])
def test_bridge_port_with_two_servers_is_refused(arguments: dict[str, bool]) -> None:
    with pytest.raises(InputError, match=r"--bridge-port 9000"):
        BridgeOptions.from_options(arguments, (), "127.0.0.1", 9000, ())


def test_external_timeout_without_omitted_node_is_refused() -> None:
    with pytest.raises(InputError, match=r"--external-timeout 5 requires an external node \(.*--external NODE"):
        BridgeOptions.from_options({"ros2": True}, (), "127.0.0.1", None, (), 5.0)


def test_external_node_replaces_an_omitted_one() -> None:
    with Run("arena", record=False) as run:
        rover = run.add_robot("rover")
        replace_with_external(run, "arbiter")
        assert "/arbiter" not in run.bus.nodes
        assert "arbiter" not in rover.nodes
        with pytest.raises(UnknownNameError, match=r"--external: the run has no node /arbiter \(.*/drive"):
            replace_with_external(run, "/arbiter")
        rover.remove()
