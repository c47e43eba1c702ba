"""Scenarios from start to verdict: what the folder holds, how a run ends, and that it can be repeated."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import imageio_ffmpeg
import pytest

from roboyard.bus import Input
from roboyard.errors import ConfigError, InputError, UnknownNameError
from roboyard.messages import msg, serialize
from roboyard.record import open_recording
from roboyard.scenarios import Control, Run, check_scenario, load_spec, rewrite_report, run_scenario, runner
from roboyard.scenarios.as_run import scenario_as_run
from roboyard.scenarios.clock import Progress

SCENARIO = """\
world: empty
robots: {rover: {model: rover}}
operator: [{drive: {v: 0.5, for: 10}}]
duration: 1.5
criteria: {drives: path_length > 0.2}
"""

BROKEN = """\
from roboyard import Node


class Broken(Node):
    def setup(self):
        self.timer(0.4, self.tick)

    def tick(self):
        raise ValueError("a wire came off")
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "short.yaml"
    path.write_text(SCENARIO)
    return path


def quiet(path: Path, out: Path, **options: object):  # type: ignore[no-untyped-def]
    return run_scenario(load_spec(path), out=out, report=False, serve=False, **options)  # type: ignore[arg-type]


def test_a_run_leaves_a_complete_folder(scenario: Path, tmp_path: Path) -> None:
    seen: list[Progress] = []
    outcome = run_scenario(load_spec(scenario), runs=tmp_path / "runs", progress=seen.append)
    assert outcome.success
    assert outcome.exit_code == 0
    assert outcome.folder == tmp_path / "runs" / "short-001"
    assert set(outcome.files) == {"recording", "metrics", "report", "scenario"}
    assert seen[-1].time == seen[-1].duration == 1.5
    document = json.loads(outcome.files["metrics"].read_text())
    assert document == outcome.metrics
    page = outcome.files["report"].read_text()
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org", "")  # nothing is fetched from anywhere
    with open_recording(outcome.folder) as recording:
        assert recording.count == document["recorded"] == document["messages"]
        assert "/truth/rover/odom" in recording.topics


def test_criteria_decide_the_exit_code(scenario: Path, tmp_path: Path) -> None:
    spec = load_spec(scenario, overrides=["criteria.drives=path_length > 100"])
    outcome = run_scenario(spec, out=tmp_path / "run", report=False, serve=False)
    assert (outcome.state, outcome.success, outcome.exit_code) == ("done", False, 1)
    assert outcome.reason == "not held: drives (path_length > 100)"


def test_until_ends_a_run_early(scenario: Path) -> None:
    spec = load_spec(scenario, overrides=["until=path_length > 0.1"])
    outcome = run_scenario(spec, keep=False, serve=False)
    assert outcome.success is False  # it drove 0.1 m, not 0.2
    assert outcome.metrics["sim_seconds"] < 1.5
    assert outcome.folder is None


def test_a_node_that_fails_is_named_and_everything_is_kept(scenario: Path, tmp_path: Path) -> None:
    node = tmp_path / "broken.py"
    node.write_text(BROKEN)
    scenario.write_text(SCENARIO + "nodes: {broken: {use: 'broken.py:Broken'}}\n")
    outcome = quiet(scenario, tmp_path / "run")
    assert outcome.state == "failed"
    assert outcome.exit_code == 1
    assert outcome.error is not None
    assert "node /broken, timer" in outcome.error
    assert "at 0.4" in outcome.error
    assert "a wire came off" in outcome.error
    assert outcome.metrics["criteria"]["drives"]["passed"] is None
    assert "broken.py" in outcome.files["error"].read_text()  # the traceback, for whoever wrote it
    with open_recording(tmp_path / "run") as recording:
        assert recording.complete


def test_what_cannot_start_leaves_nothing_behind(scenario: Path, tmp_path: Path) -> None:
    for change, error in (
        ("robots.rover.model=rovre", UnknownNameError),
        ("world=nowhere.sdf", InputError),
        ("criteria.drives=swiftness > 1", ConfigError),
        ("operator=missing.yaml", InputError),
        ("robots.rover.nodes=[wings]", UnknownNameError),
        ("robots.rover.parameters={drive: {track: 1 kg}}", ConfigError),
        ("robots.rover.parameters={drive: {tarck: 1 m}}", ConfigError),
        ("nodes={x: {use: 'missing.py:X'}}", InputError),
    ):
        spec = load_spec(scenario, overrides=[change])
        with pytest.raises(error):
            run_scenario(spec, out=tmp_path / "run", serve=False)
        assert not (tmp_path / "run").exists()


def test_the_scenario_as_run_runs_again_and_gives_the_same(scenario: Path, tmp_path: Path) -> None:
    scenario.write_text(SCENARIO.replace("[{drive: {v: 0.5, for: 10}}]", "hand.yaml"))
    (tmp_path / "hand.yaml").write_text("[{drive: {v: 50 cm/s, w: 10 deg/s, for: 10 s}}, {wait: 1}]")
    first = quiet(scenario, tmp_path / "a")
    again = quiet(first.files["scenario"], tmp_path / "b")
    assert first.files["recording"].read_bytes()[-2000:] != b""
    assert again.metrics["path_length"] == first.metrics["path_length"]
    text = scenario_as_run(load_spec(scenario))
    assert "hand.yaml" not in text
    assert "lock:" in text


def test_inputs_from_outside_are_repeated(scenario: Path, tmp_path: Path) -> None:
    """Somebody drives by hand through the input port; the recording of that drives the second run the same way."""
    scenario.write_text(SCENARIO.replace("operator: [{drive: {v: 0.5, for: 10}}]\n", ""))
    twist = msg.Twist(linear=msg.Vector3(x=0.4), angular=msg.Vector3(z=0.2))

    def drive_by_hand(run: Run) -> None:
        def press() -> None:
            run.bus.inputs.push(Input("publish", "/cmd_vel", "geometry_msgs/msg/Twist", "hand", serialize(twist)))

        for k in range(10):
            run.bus.executor.at(round((0.13 + 0.1 * k) * 1e9), press)

    first = quiet(scenario, tmp_path / "a", started=drive_by_hand)
    second = quiet(scenario, tmp_path / "b", inputs=tmp_path / "a")
    still = quiet(scenario, tmp_path / "c")
    assert first.metrics["path_length"] > 0.2
    assert second.metrics["path_length"] == first.metrics["path_length"]
    assert still.metrics["path_length"] == 0.0
    assert (tmp_path / "a" / "recording.mcap").read_bytes() == (tmp_path / "b" / "recording.mcap").read_bytes()


def test_pause_step_and_stop(scenario: Path) -> None:
    control = Control(paused=True)
    times: list[float] = []

    def steer(run: Run) -> None:
        def hand() -> None:
            control.step(0.25)
            control.step()
            control.step(0.25)
            while len(times) < 3:
                pass
            control.stop()

        threading.Thread(target=hand, daemon=True).start()

    outcome = run_scenario(
        load_spec(scenario), keep=False, serve=False, control=control, started=steer,
        progress=lambda p: times.append(p.time),
    )  # fmt: skip
    assert outcome.state == "interrupted"
    assert outcome.metrics["criteria"]["drives"]["passed"] is None
    assert times[0] == 0.25
    assert 0.25 < times[1] < 0.3
    assert times[2] == pytest.approx(times[1] + 0.25)


def test_checking_lets_no_time_pass() -> None:
    report = check_scenario("rover-drive")
    assert report.robots == {"rover": ("joint_states", "robot_state", "arbiter", "drive", "odometry", "operator")}
    assert report.topics["/scan"] == "sensor_msgs/msg/LaserScan"
    assert "contacts" in report.metrics


_CHILD = """
import sys
from roboyard.scenarios import Control, load_spec, run_scenario
def told(progress):
    if progress.time >= 1.0 and not told.said:
        told.said = True
        print("running", flush=True)
told.said = False
outcome = run_scenario(load_spec(sys.argv[1]), out=sys.argv[2], serve=False, control=Control(pace=1.0), progress=told)
print(outcome.state, flush=True)
sys.exit(outcome.exit_code)
"""


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGKILL]
)
def test_a_run_that_is_stopped_from_outside(scenario: Path, tmp_path: Path, number: signal.Signals) -> None:
    scenario.write_text(SCENARIO.replace("1.5", "600"))
    out = tmp_path / "run"
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD, str(scenario), str(out)], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "running\n"
        child.send_signal(number)
        rest = child.stdout.read()
        code = child.wait(60)
    finally:
        child.kill()
        child.stdout.close()
    if number == signal.SIGKILL:
        assert not (out / "metrics.json").exists()
        rewrite_report(out)  # from the recording, at most the last second is lost
    else:
        assert (code, rest) == (1, "interrupted\n")
    document = json.loads((out / "metrics.json").read_text())
    assert document["state"] == ("killed" if number == signal.SIGKILL else "interrupted")
    assert document["success"] is False
    assert document["path_length"] > 0.1
    assert (out / "report.html").is_file()
    with open_recording(out) as recording:
        assert recording.complete is (number != signal.SIGKILL)
        assert recording.end_ns >= 0.9e9


def test_a_failure_is_filmed_briefly(scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_FAILURE_S", 0.25)
    scenario.write_text(SCENARIO.replace("> 0.2", "> 20") + "video: {width: 64, height: 48, fps: 20}\n")
    outcome = quiet(scenario, tmp_path / "out", video="failed")
    frames, _ = imageio_ffmpeg.count_frames_and_secs(str(outcome.files["video"]))
    assert 5 <= frames <= 6  # 1.5 s of the run within 0.25 s
