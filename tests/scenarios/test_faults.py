"""Faults in scenarios: they happen at their times, end, are reported, and repeat byte for byte."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.scenarios import ScenarioBuilder, recording_digest

from roboyard.errors import ConfigError
from roboyard.record import open_recording
from roboyard.scenarios import Outcome, check_scenario, load_spec, rewrite_report, run_scenario

HEAD = """\
world: empty
robots: {rover: {model: rover}}
operator: [{drive: {v: 0.5, for: 60}}]
duration: 2.4
faults:
"""
MANY = """\
  - {at: 0.4 s, for: 0.5 s, what: sensor_silent, sensor: lidar}
  - {at: 0.4 s, for: 0.4 s, what: sensor_stuck, sensor: imu}
  - {at: 1.2 s, for: 0.5 s, what: sensor_delayed, sensor: lidar, delay: 0.2 s}
  - {at: 0.6 s, for: 0.4 s, what: sensor_noisy, sensor: wheel_encoders, stddev: 0.1}
  - {at: 1.0 s, for: 0.5 s, what: joint_blocked, joint: front_left_wheel_joint}
  - {at: 1.5 s, for: 0.5 s, what: joint_weak, joint: front_left_wheel_joint, effort: 10 %}
  - {at: 1.5 s, for: 0.5 s, what: slip_patch, pose: [0.5, 0, 10 deg], size: [4 m, 4 m], friction: 0.05}
  - {at: 1.0 s, for: 1.0 s, what: message_loss, topic: cmd_vel, share: 0.5}
  - {at: 1.1 s, for: 1.0 s, what: message_delay, topic: /imu, delay: 50 ms}
  - {at: 1.5 s, what: spawn, model: box, pose: [2, 2, 0]}
  - {at: 2.0 s, for: 0.3 s, what: power_loss}
  - {at: 2.1 s, what: remove, name: box_9}
""".replace("10 %", "0.1")


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes a scenario with faults; they begin in line 6."""

    def make(faults: str) -> Path:
        path = tmp_path / "faulty.yaml"
        path.write_text(HEAD + faults)
        return path

    return make


def run_quietly(path: Path, out: Path) -> Outcome:
    """Run a scenario to its end without a report."""
    outcome = run_scenario(load_spec(path), out=out, report=False, serve=False)
    assert outcome.state == "done", outcome.error
    return outcome


def test_each_fault_shows_in_the_recording_and_is_reported(write: Any, tmp_path: Path) -> None:
    outcome = run_quietly(write(MANY), tmp_path / "a")
    events = outcome.metrics["events"]
    assert len(events) == 2 * 10 + 2
    assert [e["time"] for e in events] == sorted(e["time"] for e in events)
    assert sum(e["state"] == "ended" for e in events) == 10
    scans, imu, reports, power = [], {}, [], []
    with open_recording(tmp_path / "a") as recording:
        for item in recording.messages():
            t = item.time_ns * 1e-9
            if item.topic == "/scan":
                scans.append((t, t - item.message.header.stamp.sec - item.message.header.stamp.nanosec * 1e-9))
            elif item.topic == "/imu":
                imu[t] = item.message.angular_velocity.z
            elif item.topic == "/diagnostics":
                reports += [(t, s.level, s.message) for s in item.message.status if s.name == "/faults"]
            elif item.topic == "/joint_states" and 2.05 < t < 2.3:
                power.append(np.abs(item.message.effort).max())
    assert not [t for t, _ in scans if 0.4 <= t < 0.9 or 2.0 <= t < 2.3]
    late = [delay for t, delay in scans if 1.2 + 0.2 <= t < 1.7]
    assert late
    assert all(delay == pytest.approx(0.2) for delay in late)
    assert len({z for t, z in imu.items() if 0.4 <= t < 0.8}) == 1
    assert len({z for t, z in imu.items() if 0.8 <= t < 1.0}) > 10
    assert power
    assert max(power) == 0.0
    assert any(level == 1 and "lidar of rover is silent" in text for _, level, text in reports)
    assert reports[-1][1:] == (0, "no fault is under way")
    assert any(t == pytest.approx(1.1) and "/imu is 0.05 s late" in text for t, _, text in reports)  # at once


def test_faults_repeat_byte_for_byte(write: Any, tmp_path: Path) -> None:
    path = write(MANY)
    for name in "ab":
        run_quietly(path, tmp_path / name)
    assert recording_digest(tmp_path / "a") == recording_digest(tmp_path / "b")


def test_lost_messages_leave_truth_and_recording_alone(write: Any, tmp_path: Path) -> None:
    """Commands are lost: the arbiter falls silent and the rover stands; truth and recording of the topic go on."""
    lost = run_quietly(write("  - {at: 1 s, what: message_loss, topic: /cmd_vel}\n"), tmp_path / "a")
    with open_recording(tmp_path / "a") as recording:
        assert recording.topics["/cmd_vel"].count > 40
        assert recording.topics["/truth/rover/odom"].count > 110
    assert lost.metrics["mean_speed"] < 0.5
    assert lost.metrics["path_length"] < 0.8  # it would have been 1.1


def test_blocked_wheel_turns_the_rover(write: Any, tmp_path: Path) -> None:
    outcome = run_quietly(write("  - {at: 0.5, what: joint_blocked, joint: front_left_wheel_joint}\n"), tmp_path / "a")
    straight = run_quietly(
        write("  - {at: 0, what: joint_weak, joint: front_left_wheel_joint, effort: 1}\n"), tmp_path / "b"
    )
    assert outcome.metrics["final_yaw"] > 0.02
    assert abs(straight.metrics["final_yaw"]) < 0.01


@pytest.mark.parametrize(
    ("fault", "place", "message"),
    [
        ("{at: 1, what: sensor_silent, sensor: lidr}", "faulty.yaml:6, faults[0].sensor", "no sensor 'lidr'"),
        ("{at: 1, what: sensor_silent}", "faulty.yaml:6", "'sensor' is missing"),
        ("{at: 1, what: sensor_noisy, sensor: bumper, stddev: 1}", "faults[0].sensor", "measures no numbers"),
        ("{at: 1, what: sensor_noisy, sensor: imu, stddev: -1}", "faulty.yaml:6", "below 0"),
        ("{at: 1, what: sensor_delayed, sensor: imu, delay: 1 m}", "faulty.yaml:6", "is a length"),
        ("{at: 1, what: joint_blocked, joint: knee}", "faulty.yaml:6, faults[0].joint", "no joint 'knee'"),
        ("{at: 1, what: joint_weak, joint: knee, effort: 2}", "faulty.yaml:6", "above 1"),
        ("{at: 1, what: power_loss, robot: rovre}", "faulty.yaml:6, faults[0].robot", "did you mean 'rover'"),
        ("{at: 1, what: message_loss, topic: /scna}", "faulty.yaml:6, faults[0].topic", "did you mean '/scan'"),
        ("{at: 1, what: message_loss, topic: /truth/rover/odom}", "faults[0].topic", "is the truth"),
        ("{at: 1, what: message_loss, topic: /scan, share: 1.5}", "faulty.yaml:6", "above 1"),
        ("{at: 1, what: slip_patch, pose: [0, 0], size: [1, 1]}", "faulty.yaml:6", "has 2 elements"),
        ("{at: 1, what: slip_patch, pose: [0, 0, 0], size: [0, 1]}", "faulty.yaml:6", "below"),
        ("{at: 1, for: 0, what: power_loss}", "faulty.yaml:6", "below"),
        ("{at: .nan, what: power_loss}", "faulty.yaml:6", "nan"),
        ("{at: 1, what: remove, name: ghost}", "faulty.yaml:6, faults[0].name", "nothing is called 'ghost'"),
        ("{at: 1, what: meteor}", "faulty.yaml:6", "must be one of: spawn"),
    ],
)
def test_invalid_faults_are_refused_with_line_and_choices(write: Any, fault: str, place: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_scenario(write(f"  - {fault}\n"))
    assert place in str(caught.value)
    assert message in str(caught.value)
    assert caught.value.valid


@pytest.mark.parametrize("mu", [0.02, 0.05])
def test_odometry_error_on_ice_is_the_slip_of_the_wheels(mu: float, tmp_path: Path) -> None:
    """Wheels ramp up at a, the rover at mu g: until it is as fast as they are it loses v² / 2 (1 / mu g - 1 / a)."""
    builder = ScenarioBuilder(duration=4.0).set(operator=[{"wait": 0.5}, {"drive": {"v": 0.4, "for": 60}}])
    builder.with_fault("slip_patch", at=0.0, pose=[0, 0, 0], size=[20, 20], friction=mu)
    outcome = run_scenario(builder.load(tmp_path), keep=False, serve=False)
    speed, ramp = 0.4, 1.5
    lost = speed**2 / 2.0 * (1.0 / (mu * 9.81) - 1.0 / ramp)
    assert outcome.metrics["odom_final_error"] == pytest.approx(lost, rel=0.06)


def test_cut_recording_gives_the_events_until_then(write: Any, tmp_path: Path) -> None:
    """The recording is cut anywhere: the report of the rest has the first events of the whole run."""
    folder, cut = tmp_path / "a", tmp_path / "cut"
    complete = run_quietly(write(MANY), folder).metrics
    data = (folder / "recording.mcap").read_bytes()
    counts = []
    for fraction in (0.4, 0.7, 0.95):
        cut.mkdir()
        (cut / "recording.mcap").write_bytes(data[: int(fraction * len(data))])
        (cut / "scenario.yaml").write_bytes((folder / "scenario.yaml").read_bytes())
        rewrite_report(cut)
        found = json.loads((cut / "metrics.json").read_text())
        assert found["state"] == "killed"
        assert found["events"] == [e for e in complete["events"] if e["time"] <= found["sim_seconds"]]
        assert found["robots"]["rover"]["topics"] == complete["robots"]["rover"]["topics"]
        counts.append(len(found["events"]))
        shutil.rmtree(cut)
    assert 0 < counts[0] <= counts[1] <= counts[2] <= len(complete["events"])
