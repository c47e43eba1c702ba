"""A node that calls ``sys.exit`` fails the run: files are complete, the node is named, the exit code is not 0."""

import json
import sys
from pathlib import Path

import pytest
from tests.harness.live_bus import run_cli
from tests.harness.scenarios import ScenarioBuilder
from tests.harness.workers import InlinePool

from roboyard.errors import ConfigError, RoboyardError
from roboyard.record import open_recording
from roboyard.scenarios import BatchOptions, load_scenario, run_batch_and_report, run_scenario
from roboyard.scenarios.run_options import RunObserver, RunOptions

NODE = """\
import sys

from roboyard import Node


class Leaver(Node):
    def setup(self):
        self.timer(0.4, self.tick)

    def tick(self):
        sys.exit(0)
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "leaver.py").write_text(NODE)
    """The file of a rover's short drive, with a node that exits at 0.4 s."""
    builder = ScenarioBuilder(duration=0.6).drive(0.5, duration=10.0).criterion("covers_distance", "path_length > 0.01")
    return builder.set(nodes={"leaver": {"type": "leaver.py:Leaver"}}).write(tmp_path)


def test_run_with_an_exiting_node_fails_with_complete_files(scenario: Path, tmp_path: Path) -> None:
    outcome = run_scenario(load_scenario(scenario), RunOptions(out=tmp_path / "run", serve=False))
    assert (outcome.state, outcome.success, outcome.exit_code) == ("failed", False, 1)
    assert outcome.error is not None
    assert "node /leaver, timer" in outcome.error
    assert "called sys.exit(0)" in outcome.error
    assert set(outcome.files) == {"recording", "metrics", "report", "scenario", "error"}
    document = json.loads(outcome.files["metrics"].read_text())
    assert document["state"] == "failed"
    assert document["criteria"]["covers_distance"]["passed"] is None
    assert "leaver.py" in outcome.files["error"].read_text()
    with open_recording(tmp_path / "run") as recording:
        assert recording.is_complete
        assert recording.count == document["messages"]


def test_command_fails_and_names_the_exiting_node(scenario: Path, tmp_path: Path) -> None:
    result = run_cli("run", scenario, "--out", tmp_path / "run", "--quiet")
    assert result.code == 1
    assert "node /leaver" in result.out + result.err
    assert "called sys.exit(0)" in result.out + result.err


def test_batch_counts_runs_with_exiting_nodes_as_failed(scenario: Path, tmp_path: Path) -> None:
    result = run_batch_and_report(str(scenario), BatchOptions(runs=2, runs_folder=tmp_path), pool=InlinePool())
    assert [(item.state, item.success) for item in result.results] == [("failed", False)] * 2
    assert all("node /leaver" in item.reason and "sys.exit(0)" in item.reason for item in result.results)
    assert result.exit_code == 1


@pytest.mark.parametrize("moment", ["module", "constructor", "setup"])
def test_node_that_exits_before_the_start_leaves_no_files(scenario: Path, tmp_path: Path, moment: str) -> None:
    code = {
        "module": NODE + "\nsys.exit(0)\n",
        "constructor": NODE + "\n    def __init__(self):\n        sys.exit(0)\n",
        "setup": NODE.replace("self.timer(0.4, self.tick)", "sys.exit(0)"),
    }[moment]
    (tmp_path / "leaver.py").write_text(code)
    with pytest.raises(RoboyardError, match=r"leaver.*sys\.exit\(0\)") as caught:
        run_scenario(load_scenario(scenario), RunOptions(out=tmp_path / "run", serve=False))
    assert isinstance(caught.value, ConfigError) == (moment != "setup")
    assert not (tmp_path / "run").exists()


def test_files_are_complete_when_the_caller_exits(scenario: Path, tmp_path: Path) -> None:
    (tmp_path / "leaver.py").write_text(NODE.replace("sys.exit(0)", "pass"))
    with pytest.raises(SystemExit) as caught:  # of the caller's own function, not of a node
        run_scenario(
            load_scenario(scenario),
            RunOptions(out=tmp_path / "run", serve=False),
            observer=RunObserver(on_progress=lambda progress: sys.exit(7)),
        )
    assert caught.value.code == 7
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["error"] == "called sys.exit(7)"
    with open_recording(tmp_path / "run") as recording:
        assert recording.is_complete
