"""Scenarios from start to result: the files of a run, how it ends, and its repetition."""

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import pytest
from tests.harness.scenarios import ScenarioBuilder, recording_digest
from tests.harness.workers import forked_process
from tests.scenarios.stopped_run import run_in_real_time

from roboyard.bus import ExternalInput
from roboyard.errors import ConfigError, InputError, UnknownNameError
from roboyard.messages import msg, serialize
from roboyard.record import open_recording
from roboyard.scenarios import (
    Run,
    RunControl,
    RunResult,
    check_scenario,
    execution,
    load_scenario,
    regenerate_report,
    run_scenario,
)
from roboyard.scenarios.resolve import resolve_scenario
from roboyard.scenarios.run_options import RunObserver, RunOptions, RunProgress

BROKEN = """\
from roboyard import Node


class Broken(Node):
    def setup(self):
        self.timer(0.4, self.tick)

    def tick(self):
        raise ValueError("a wire came off")
"""


def short_drive(*, duration: float = 0.8) -> ScenarioBuilder:
    """A rover that drives straight on, 0.2 m in 0.8 s."""
    return (
        ScenarioBuilder(duration=duration).drive(0.5, duration=10.0).criterion("covers_distance", "path_length > 0.1")
    )


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """The file of the short drive."""
    return short_drive().write(tmp_path)


def run_quietly(
    path: Path, out: Path, *, control: RunControl | None = None, observer: RunObserver | None = None, **options: Any
) -> RunResult:
    """Run a scenario without a report and without a socket."""
    run_options = RunOptions(**{"out": out, "write_report": False, "serve": False, **options})
    return run_scenario(load_scenario(path), run_options, control=control, observer=observer)


def test_run_leaves_a_complete_folder(scenario: Path, tmp_path: Path) -> None:
    observed: list[RunProgress] = []
    outcome = run_scenario(
        load_scenario(scenario),
        RunOptions(runs_folder=tmp_path / "runs"),
        observer=RunObserver(on_progress=observed.append),
    )
    assert outcome.success
    assert outcome.exit_code == 0
    assert outcome.folder == tmp_path / "runs" / "short-001"
    assert set(outcome.files) == {"recording", "metrics", "report", "scenario"}
    assert observed[-1].time == observed[-1].duration == 0.8
    document = json.loads(outcome.files["metrics"].read_text())
    assert document == outcome.metrics
    page = outcome.files["report"].read_text()
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org", "")  # nothing is fetched from anywhere
    with open_recording(outcome.folder) as recording:
        assert recording.count == document["recorded"] == document["messages"]
        assert "/truth/rover/odom" in recording.topics


def test_criteria_decide_the_exit_code(scenario: Path, tmp_path: Path) -> None:
    spec = load_scenario(scenario, overrides=["criteria.drives=path_length > 100"])
    outcome = run_scenario(spec, RunOptions(out=tmp_path / "run", write_report=False, serve=False))
    assert (outcome.state, outcome.success, outcome.exit_code) == ("done", False, 1)
    assert outcome.failure_reason == "not held: drives (path_length > 100)"


def test_until_ends_a_run_early(scenario: Path) -> None:
    spec = load_scenario(scenario, overrides=["stop_when=path_length > 0.05"])
    outcome = run_scenario(spec, RunOptions(write_files=False, serve=False))
    assert outcome.success is False  # it drove 0.05 m, not 0.1
    assert outcome.metrics["sim_time"] < 0.8
    assert outcome.folder is None


def test_failed_node_is_named_and_files_are_kept(scenario: Path, tmp_path: Path) -> None:
    node = tmp_path / "broken.py"
    node.write_text(BROKEN)
    short_drive().set(nodes={"broken": {"type": "broken.py:Broken"}}).write(tmp_path)
    outcome = run_quietly(scenario, tmp_path / "run")
    assert outcome.state == "failed"
    assert outcome.exit_code == 1
    assert outcome.error is not None
    assert "node /broken, timer" in outcome.error
    assert "at 0.4" in outcome.error
    assert "a wire came off" in outcome.error
    assert outcome.metrics["criteria"]["covers_distance"]["passed"] is None
    assert "broken.py" in outcome.files["error"].read_text()  # the traceback, for whoever wrote it
    with open_recording(tmp_path / "run") as recording:
        assert recording.is_complete


def test_run_that_cannot_start_leaves_nothing_behind(scenario: Path, tmp_path: Path) -> None:
    for change, error in (
        ("robots.rover.model=rovre", UnknownNameError),
        ("world=nowhere.sdf", InputError),
        ("criteria.drives=swiftness > 1", ConfigError),
        ("operator=missing.yaml", InputError),
        ("robots.rover.nodes=[wings]", UnknownNameError),
        ("robots.rover.parameters={drive: {track: 1 kg}}", ConfigError),
        ("robots.rover.parameters={drive: {tarck: 1 m}}", ConfigError),
        ("nodes={x: {type: 'missing.py:X'}}", InputError),
    ):
        spec = load_scenario(scenario, overrides=[change])
        with pytest.raises(error):
            run_scenario(spec, RunOptions(out=tmp_path / "run", serve=False))
        assert not (tmp_path / "run").exists()


def test_scenario_as_run_gives_the_same_run(scenario: Path, tmp_path: Path) -> None:
    short_drive().set(operator="hand.yaml").write(tmp_path)
    (tmp_path / "hand.yaml").write_text("[{drive: {linear: 50 cm/s, angular: 10 deg/s, duration: 10 s}}, {wait: 1}]")
    first = run_quietly(scenario, tmp_path / "a")
    repeated = run_quietly(first.files["scenario"], tmp_path / "b")
    assert first.files["recording"].read_bytes()[-2000:] != b""
    assert repeated.metrics["path_length"] == first.metrics["path_length"]
    text = resolve_scenario(load_scenario(scenario)).to_yaml()
    assert "hand.yaml" not in text
    assert "lock:" in text


def test_inputs_from_outside_are_repeated(tmp_path: Path) -> None:
    """Somebody drives by hand through the input port; the recording of that drives the second run the same way."""
    scenario = ScenarioBuilder(duration=1.2).write(tmp_path)
    twist = msg.Twist(linear=msg.Vector3(x=0.4), angular=msg.Vector3(z=0.2))

    def drive_by_hand(run: Run) -> None:
        def press() -> None:
            run.bus.inputs.put(
                ExternalInput("publish", "/cmd_vel", "geometry_msgs/msg/Twist", "hand", serialize(twist))
            )

        for k in range(10):
            run.bus.executor.schedule(round((0.13 + 0.1 * k) * 1e9), press)

    first = run_quietly(scenario, tmp_path / "a", observer=RunObserver(on_started=drive_by_hand))
    second = run_quietly(scenario, tmp_path / "b", replay_inputs=tmp_path / "a")
    idle_result = run_quietly(scenario, tmp_path / "c")
    assert first.metrics["path_length"] > 0.2
    assert second.metrics["path_length"] == first.metrics["path_length"]
    assert idle_result.metrics["path_length"] == 0.0
    assert recording_digest(tmp_path / "a") == recording_digest(tmp_path / "b")


def test_paused_run_steps_and_stops(scenario: Path) -> None:
    control = RunControl(paused=True)
    times: list[float] = []
    all_steps = threading.Event()

    def use_buttons() -> None:
        control.step(0.25)
        control.step()
        control.step(0.25)
        assert all_steps.wait(60.0)
        control.stop()

    def note(progress: RunProgress) -> None:
        times.append(progress.time)
        if len(times) == 3:
            all_steps.set()

    outcome = run_scenario(
        load_scenario(scenario),
        RunOptions(write_files=False, serve=False),
        control=control,
        observer=RunObserver(
            on_progress=note, on_started=lambda run: threading.Thread(target=use_buttons, daemon=True).start()
        ),
    )
    assert outcome.state == "interrupted"
    assert outcome.metrics["criteria"]["covers_distance"]["passed"] is None
    assert times[0] == 0.25
    assert 0.25 < times[1] < 0.3
    assert times[2] == pytest.approx(times[1] + 0.25)


def test_check_reports_robots_topics_and_metrics() -> None:
    report = check_scenario("rover-drive")
    assert report.robots == {"rover": ("joint_states", "robot_state", "arbiter", "drive", "odometry", "operator")}
    assert report.topics["/scan"] == "sensor_msgs/msg/LaserScan"
    assert "contacts" in report.metrics


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, id="interrupt"),
        pytest.param(signal.SIGTERM, id="terminate", marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, id="kill"),
    ],
)
def test_run_stopped_by_a_signal_leaves_its_files(tmp_path: Path, number: signal.Signals) -> None:
    scenario, out = short_drive(duration=600.0).write(tmp_path), tmp_path / "run"
    with forked_process(run_in_real_time, scenario, out) as (process, connection):
        assert connection.recv() == "running"
        os.kill(process.pid, number)
        if number != signal.SIGKILL:
            assert connection.recv() == "interrupted"
        process.join(60.0)
        code = process.exitcode
    if number == signal.SIGKILL:
        assert code == -signal.SIGKILL
        assert not (out / "metrics.json").exists()
        regenerate_report(out)  # from the recording, at most the last second is lost
    else:
        assert code == 1
    document = json.loads((out / "metrics.json").read_text())
    assert document["state"] == ("killed" if number == signal.SIGKILL else "interrupted")
    assert document["success"] is False
    assert document["path_length"] > 0.1
    assert (out / "report.html").is_file()
    with open_recording(out) as recording:
        assert recording.is_complete is (number != signal.SIGKILL)
        assert recording.end_ns >= 0.9e9


def test_video_of_a_failure_is_short(scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "_MAX_FAILURE_VIDEO_DURATION", 0.25)
    builder = short_drive(duration=1.5).criterion("covers_distance", "path_length > 20")
    builder.set(video={"width": 64, "height": 48, "fps": 20}).write(tmp_path)
    outcome = run_quietly(scenario, tmp_path / "out", video="on_failure")
    frames, _ = imageio_ffmpeg.count_frames_and_secs(str(outcome.files["video"]))
    assert 5 <= frames <= 6  # 1.5 s of the run within 0.25 s
