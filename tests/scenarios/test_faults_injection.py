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
from roboyard.scenarios import RunResult, check_scenario, load_scenario, regenerate_report, run_scenario
from roboyard.scenarios.run_options import RunOptions

HEAD = """\
world: empty
robots: {rover: {model: rover}}
operator: [{drive: {linear: 0.5, duration: 60}}]
duration: 2.4
faults:
"""
ALL_TYPES = """\
  - {time: 0.4 s, duration: 0.5 s, type: sensor_dropout, sensor: lidar}
  - {time: 0.4 s, duration: 0.4 s, type: sensor_frozen, sensor: imu}
  - {time: 1.2 s, duration: 0.5 s, type: sensor_delay, sensor: lidar, delay: 0.2 s}
  - {time: 0.6 s, duration: 0.4 s, type: sensor_noise, sensor: wheel_encoders, stddev: 0.1}
  - {time: 1.0 s, duration: 0.5 s, type: joint_locked, joint: front_left_wheel_joint}
  - {time: 1.5 s, duration: 0.5 s, type: joint_degraded, joint: front_left_wheel_joint, effort_scale: 10 %}
  - {time: 1.5 s, duration: 0.5 s, type: low_friction_area, pose: [0.5, 0, 10 deg], size: [4 m, 4 m], friction: 0.05}
  - {time: 1.0 s, duration: 1.0 s, type: message_loss, topic: cmd_vel, probability: 0.5}
  - {time: 1.1 s, duration: 1.0 s, type: message_delay, topic: /imu, delay: 50 ms}
  - {time: 1.5 s, type: spawn, model: box, pose: [2, 2, 0]}
  - {time: 2.0 s, duration: 0.3 s, type: power_loss}
  - {time: 2.1 s, type: remove, name: box_9}
""".replace("10 %", "0.1")


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes a scenario with faults; they begin in line 6."""

    def make(faults: str) -> Path:
        path = tmp_path / "faulty.yaml"
        path.write_text(HEAD + faults)
        return path

    return make


def run_quietly(path: Path, out: Path) -> RunResult:
    """Run a scenario to its end without a report."""
    outcome = run_scenario(load_scenario(path), RunOptions(out=out, write_report=False, serve=False))
    assert outcome.state == "done", outcome.error
    return outcome


def test_each_fault_shows_in_the_recording_and_is_reported(write: Any, tmp_path: Path) -> None:
    outcome = run_quietly(write(ALL_TYPES), tmp_path / "a")
    events = outcome.metrics["events"]
    assert len(events) == 2 * 10 + 2
    assert [e["time"] for e in events] == sorted(e["time"] for e in events)
    assert sum(e["state"] == "finished" for e in events) == 10
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
    path = write(ALL_TYPES)
    for name in "ab":
        run_quietly(path, tmp_path / name)
    assert recording_digest(tmp_path / "a") == recording_digest(tmp_path / "b")


def test_lost_messages_leave_truth_and_recording_alone(write: Any, tmp_path: Path) -> None:
    """Commands are lost: the arbiter falls silent and the rover stands; truth and recording of the topic go on."""
    lost = run_quietly(write("  - {time: 1 s, type: message_loss, topic: /cmd_vel}\n"), tmp_path / "a")
    with open_recording(tmp_path / "a") as recording:
        assert recording.topics["/cmd_vel"].count > 40
        assert recording.topics["/truth/rover/odom"].count > 110
    assert lost.metrics["mean_speed"] < 0.5
    assert lost.metrics["path_length"] < 0.8  # it would have been 1.1


def test_blocked_wheel_turns_the_rover(write: Any, tmp_path: Path) -> None:
    outcome = run_quietly(write("  - {time: 0.5, type: joint_locked, joint: front_left_wheel_joint}\n"), tmp_path / "a")
    straight = run_quietly(
        write("  - {time: 0, type: joint_degraded, joint: front_left_wheel_joint, effort_scale: 1}\n"), tmp_path / "b"
    )
    assert outcome.metrics["final_yaw"] > 0.02
    assert abs(straight.metrics["final_yaw"]) < 0.01


@pytest.mark.parametrize(
    ("fault", "location", "message"),
    [
        ("{time: 1, type: sensor_dropout, sensor: lidr}", "faulty.yaml:6, faults[0].sensor", "no sensor 'lidr'"),
        ("{time: 1, type: sensor_dropout}", "faulty.yaml:6", "'sensor' is missing"),
        ("{time: 1, type: sensor_noise, sensor: bumper, stddev: 1}", "faults[0].sensor", "measures no numbers"),
        ("{time: 1, type: sensor_noise, sensor: imu, stddev: -1}", "faulty.yaml:6", "below 0"),
        ("{time: 1, type: sensor_delay, sensor: imu, delay: 1 m}", "faulty.yaml:6", "is a length"),
        ("{time: 1, type: joint_locked, joint: knee}", "faulty.yaml:6, faults[0].joint", "no joint 'knee'"),
        ("{time: 1, type: joint_degraded, joint: knee, effort_scale: 2}", "faulty.yaml:6", "above 1"),
        ("{time: 1, type: power_loss, robot: rovre}", "faulty.yaml:6, faults[0].robot", "did you mean 'rover'"),
        ("{time: 1, type: message_loss, topic: /scna}", "faulty.yaml:6, faults[0].topic", "did you mean '/scan'"),
        ("{time: 1, type: message_loss, topic: /truth/rover/odom}", "faults[0].topic", "is ground truth"),
        ("{time: 1, type: message_loss, topic: /scan, probability: 1.5}", "faulty.yaml:6", "above 1"),
        ("{time: 1, type: low_friction_area, pose: [0, 0], size: [1, 1]}", "faulty.yaml:6", "has 2 elements"),
        ("{time: 1, type: low_friction_area, pose: [0, 0, 0], size: [0, 1]}", "faulty.yaml:6", "below"),
        ("{time: 1, duration: 0, type: power_loss}", "faulty.yaml:6", "below"),
        ("{time: .nan, type: power_loss}", "faulty.yaml:6", "nan"),
        ("{time: 1, type: remove, name: ghost}", "faulty.yaml:6, faults[0].name", "no model 'ghost'"),
        ("{time: 1, type: meteor}", "faulty.yaml:6", "must be one of: call_service"),
    ],
)
def test_invalid_faults_are_refused_with_line_and_choices(write: Any, fault: str, location: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_scenario(write(f"  - {fault}\n"))
    assert location in str(caught.value)
    assert message in str(caught.value)
    assert caught.value.valid


@pytest.mark.parametrize("mu", [0.02, 0.05])
def test_odometry_error_on_ice_is_the_slip_of_the_wheels(mu: float, tmp_path: Path) -> None:
    """Wheels ramp up at a, the rover at mu g: until it is as fast as they are it loses v² / 2 (1 / mu g - 1 / a)."""
    builder = ScenarioBuilder(duration=4.0).set(operator=[{"wait": 0.5}, {"drive": {"linear": 0.4, "duration": 60}}])
    builder.with_fault("low_friction_area", time=0.0, pose=[0, 0, 0], size=[20, 20], friction=mu)
    outcome = run_scenario(builder.load(tmp_path), RunOptions(write_files=False, serve=False))
    speed, ramp = 0.4, 1.5
    lost = speed**2 / 2.0 * (1.0 / (mu * 9.81) - 1.0 / ramp)
    assert outcome.metrics["odom_final_error"] == pytest.approx(lost, rel=0.06)


def test_cut_recording_gives_the_events_until_then(write: Any, tmp_path: Path) -> None:
    """The recording is cut anywhere: the report of the rest has the first events of the whole run."""
    folder, cut = tmp_path / "a", tmp_path / "cut"
    complete = run_quietly(write(ALL_TYPES), folder).metrics
    data = (folder / "recording.mcap").read_bytes()
    counts = []
    for fraction in (0.4, 0.7, 0.95):
        cut.mkdir()
        (cut / "recording.mcap").write_bytes(data[: int(fraction * len(data))])
        (cut / "scenario.yaml").write_bytes((folder / "scenario.yaml").read_bytes())
        regenerate_report(cut)
        found = json.loads((cut / "metrics.json").read_text())
        assert found["state"] == "killed"
        assert found["events"] == [e for e in complete["events"] if e["time"] <= found["sim_time"]]
        assert found["robots"]["rover"]["topics"] == complete["robots"]["rover"]["topics"]
        counts.append(len(found["events"]))
        shutil.rmtree(cut)
    assert 0 < counts[0] <= counts[1] <= counts[2] <= len(complete["events"])
