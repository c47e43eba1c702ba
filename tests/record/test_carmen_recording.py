"""CARMEN logs are read from hand-made lines, and public logs agree with the same data in other formats."""

from __future__ import annotations

import gzip
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.errors import RecordingError
from roboyard.geometry import SE2
from roboyard.messages.convert import pose_to_se2
from roboyard.record import open_recording, tf_echo
from roboyard.record.carmen_log import LaserEntry, OdometryEntry, parse_carmen_log, parse_nanoseconds

TAIL = "0.5 0.25 0.1 0.4 0.2 0.1 1134864629.895182 host 0.1"
FLASER = f"FLASER 4 1.0 2.0 3.0 81.91 {TAIL}\n"


def parse_laser_entry(text: str) -> LaserEntry:
    [entry] = [
        entry for entry in parse_carmen_log(text.splitlines(keepends=True)).entries if isinstance(entry, LaserEntry)
    ]
    return entry


def test_front_laser_line_becomes_scan_and_odometry() -> None:
    scan = parse_laser_entry(FLASER)
    assert scan.time_ns == 1134864629_895182000
    assert scan.ranges.tolist() == pytest.approx([1.0, 2.0, 3.0, 81.91])
    assert scan.angle_min == -math.pi / 2
    assert scan.angle_increment == math.pi / 4
    assert scan.pose == (0.5, 0.25, 0.1)
    assert scan.odometry == (0.4, 0.2, 0.1)
    assert scan.laser == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("beams", "degrees"), [(180, 1.0), (181, 1.0), (360, 0.5), (361, 0.5)])
def test_beam_angles_span_the_field_of_view(beams: int, degrees: float) -> None:
    scan = parse_laser_entry(f"FLASER {beams} {'1 ' * beams} {TAIL}\n")
    assert math.degrees(scan.angle_increment) == pytest.approx(degrees)


def test_carmen_parameters_place_the_lasers() -> None:
    text = (
        "PARAM robot_frontlaser_offset 0.3 nohost 0\nPARAM robot_rearlaser_offset -0.2 nohost 0\n"
        f"PARAM robot_front_laser_max 50 nohost 0\n{FLASER}R{FLASER[1:]}"
    )
    front, rear = (
        entry for entry in parse_carmen_log(text.splitlines(keepends=True)).entries if isinstance(entry, LaserEntry)
    )
    assert (front.name, front.laser, front.range_max) == ("scan", (0.3, 0.0, 0.0), 50.0)
    assert (rear.name, rear.laser, rear.range_max) == ("rear_scan", (-0.2, 0.0, math.pi), 80.0)


def test_robot_laser_line_states_its_angles() -> None:
    scan = parse_laser_entry(
        "ROBOTLASER1 0 -1.5 3.0 0.5 30.0 0.01 0 3 1.0 2.0 3.0 2 7 8"
        " 1.0 2.0 1.5707963267948966 1.0 1.7 1.5707963267948966 0.5 0.1 0 0 0 12.5 host 0.1\n"
    )
    assert (scan.angle_min, scan.angle_increment, scan.range_max) == (-1.5, 0.5, 30.0)
    assert scan.ranges.tolist() == [1.0, 2.0, 3.0]
    assert scan.laser == pytest.approx((0.3, 0.0, 0.0))
    assert scan.odometry == pytest.approx((1.0, 1.7, math.pi / 2))
    assert scan.time_ns == 12_500_000_000


def test_scan_written_twice_counts_once() -> None:
    robot = "ROBOTLASER1 0 -1.5 3.0 0.5 30.0 0.01 0 1 1.0 0 1 2 0 1 2 0 0 0 0 0 0 12.5 host 0.1\n"
    log = parse_carmen_log([robot, "FLASER 1 1.0 1 2 0 1 2 0 12.5 host 0.1\n"] * 3)
    assert [entry.angle_min for entry in log.entries if isinstance(entry, LaserEntry)] == [-1.5] * 3
    assert any("3 scans without angles" in warning for warning in log.warnings)


def test_carmen_stamps_are_parsed_without_rounding() -> None:
    assert parse_nanoseconds("1134864629.895182") == 1134864629895182000
    assert parse_nanoseconds("1.13486e+09") == 1134860000 * 10**9
    assert parse_nanoseconds("0.086295") == 86_295_000
    assert parse_nanoseconds("12") == 12 * 10**9
    for invalid in ("-1e12", "nan", "inf", "x", "1e300", ""):
        with pytest.raises(ValueError):
            parse_nanoseconds(invalid)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("FLASER 4 1.0 2.0 3.0", "announces 4 readings"),
        ("FLASER", "number of readings"),
        ("FLASER x", "invalid literal"),
        ("FLASER -1 " + TAIL, "-1 readings"),
        ("FLASER 999999999 1 2", "999999999 readings"),
        ("FLASER 1 1.0 0 0 0", "requires 9 fields"),
        ("FLASER 1 one " + TAIL, "could not convert"),
        ("FLASER 1 1.0 nan 0 0 0 0 0 1 h 1", "not finite"),
        ("FLASER 1 1.0 0 0 0 0 0 0 -1e12 h 1", "is not a stamp"),
        ("ODOM 1 2 3", "requires 9 fields"),
        ("ODOM 1 2 3 0 0 0 late host 1", "could not convert"),
        ("PARAM name", "name and a value"),
        ("ROBOTLASER1 0 -1.5 3.0 0.5 30.0 0.01 0 1 1.0 0 1 2 3", "requires 14 fields"),
        ("12 34 56", "unknown line keyword"),
        ("flaser 1 2", "unknown line keyword"),
    ],
)
def test_error_of_invalid_carmen_line_states_its_number(line: str, message: str) -> None:
    text = f"# header\n{FLASER}{line}\n{FLASER}"
    with pytest.raises(RecordingError, match=message) as caught:
        parse_carmen_log(text.splitlines(keepends=True), "my.log")
    assert str(caught.value).startswith("my.log:3: ")


def test_negative_stamps_take_the_time_of_the_previous_line() -> None:
    log = parse_carmen_log(
        [f"FLASER 1 {k}.0 0 0 0 0 0 0 {stamp} h 1\n" for k, stamp in enumerate(("-0.04", "3", "-0.12", "4"))]
    )
    assert [entry.time_ns for entry in log.entries] == [0, 3 * 10**9, 3 * 10**9, 4 * 10**9]
    assert any("2 stamps" in warning for warning in log.warnings)


def test_incomplete_last_carmen_line_is_dropped() -> None:
    log = parse_carmen_log([FLASER, FLASER[:20]], "my.log")
    assert len(log.entries) == 1
    assert any("incomplete" in warning for warning in log.warnings)


@given(st.lists(st.tuples(*[st.floats(-5, 5)] * 3), min_size=2, max_size=30), st.integers(1, 4), st.data())
def test_odometry_is_chained_from_a_corrected_log(
    poses: list[tuple[float, float, float]], period: int, data: st.DataObject
) -> None:
    true_poses = [SE2(*pose) for pose in poses]
    lines, logged_pose = [], true_poses[0]
    for number, pose in enumerate(true_poses):
        logged_pose = pose if number == 0 else logged_pose @ (true_poses[number - 1].inverse() @ pose)
        lines.append(f"ODOM {logged_pose.x!r} {logged_pose.y!r} {logged_pose.theta!r} 0 0 0 {number + 1} pippo 0\n")
        if number % period == 0:  # the SLAM program sets the robot's pose to its estimate
            logged_pose = SE2(*data.draw(st.tuples(*[st.floats(-9, 9)] * 3)))
            pose_text = f"{logged_pose.x!r} {logged_pose.y!r} {logged_pose.theta!r}"
            lines.append(f"FLASER 1 1.0 {pose_text} {pose_text} {number + 1} pippo 0\n")
            lines.append(f"ODOM {pose_text} 0 0 0 {data.draw(st.sampled_from(['0', '1e-42', '-3.5']))} pippo 0\n")
    log = parse_carmen_log(lines)
    assert log.is_slam_output
    odometry = [entry.pose for entry in log.entries if isinstance(entry, OdometryEntry)]
    for pose, expected in zip(odometry, true_poses, strict=True):
        difference = SE2(*pose).inverse() @ expected
        assert np.allclose(difference.log(), 0.0, atol=1e-6)
    for entry in log.entries:
        if isinstance(entry, LaserEntry):
            assert entry.odometry == odometry[entry.time_ns // 10**9 - 1]


def test_carmen_log_reads_as_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "robot.clf.gz"
    text = "".join(
        f"ODOM {x} 0 0 0.5 0.1 0 {x} host 0\nFLASER 3 1 2 3 {x} 0 0 {x} 0 0 {x}.5 host 0\n" for x in range(4)
    )
    path.write_bytes(gzip.compress(f"PARAM robot_frontlaser_offset 0.3 nohost 0\n{text}".encode()))
    with open_recording(path) as recording:
        assert recording.format == "carmen"
        assert recording.metadata == {"robot_frontlaser_offset": "0.3"}
        assert {name: topic.count for name, topic in recording.topics.items()} == {
            "/scan": 4,
            "/odom": 8,
            "/tf": 8,
            "/tf_static": 1,
        }
        scan = next(recording.messages(["/scan"])).message
        assert scan.header.frame_id == "laser"
        assert scan.angle_max == pytest.approx(math.pi / 2)
        assert scan.scan_time == pytest.approx(1.0)
        odometry = [m.message for m in recording.messages(["/odom"], start_ns=10**9, end_ns=10**9)]
        assert (odometry[0].pose.pose.position.x, odometry[0].twist.twist.linear.x) == (1.0, 0.5)
        T_odom_laser = tf_echo(recording, "odom", "laser", 2 * 10**9)
        assert T_odom_laser.x == pytest.approx(2.3)
        assert [len(data) > 0 for _, _, data in recording.raw_messages()] == [True] * 21


def test_truncated_gzip_returns_its_complete_lines(tmp_path: Path) -> None:
    path = tmp_path / "robot.clf.gz"
    lines = "".join(f"ODOM {x / 7} {x / 3} 0 0.5 0.1 0 {x} host 0\n" for x in range(20_000))
    data = gzip.compress(lines.encode())
    path.write_bytes(data[: len(data) // 2])
    with open_recording(path) as recording:
        assert not recording.is_complete
        assert recording.topics["/odom"].count > 1000


# -- real logs ---------------------------------------------------------------------------------------------------------


def test_intel_log_agrees_with_its_arrays(external_data: Path) -> None:
    arrays = np.load(external_data / "slam" / "intel.npz")
    with open_recording(external_data / "slam" / "intel.clf.gz") as recording:
        scans = list(recording.messages(["/scan"]))
        odometry = {m.time_ns: m.message for m in recording.messages(["/odom"])}
        assert recording.is_complete
        assert recording.warnings == []
    assert len(scans) == len(arrays["t"])
    assert np.allclose([m.time_ns * 1e-9 for m in scans], arrays["t"], atol=1e-6, rtol=0)
    ranges = np.array([m.message.ranges for m in scans])
    assert ranges.shape == arrays["ranges_mm"].shape
    assert np.abs(ranges * 1000 - arrays["ranges_mm"]).max() <= 5.0  # the log states centimeters
    poses = [odometry[m.time_ns].pose.pose.position for m in scans]
    assert np.allclose([(p.x, p.y) for p in poses], arrays["odom"][:, :2], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scans", "corrected"),
    [
        ("intel.clf.gz", 2725, False),
        ("mit-csail.clf.gz", 1988, False),
        ("intel-corrected.log.gz", 910, True),
        ("seattle-corrected.log.gz", 241, True),
        ("belgioioso-corrected.log.gz", 395, True),
        ("freiburg-101-corrected.log.gz", 292, True),
        ("csail-corrected.log.gz", 406, True),
    ],
)
def test_public_carmen_logs_are_read(external_data: Path, name: str, scans: int, corrected: bool) -> None:
    with open_recording(external_data / "slam" / name) as recording:
        assert recording.topics["/scan"].count == scans
        assert ("/corrected_pose" in recording.topics) is corrected
        times = [m.time_ns for m in recording.messages()]
        assert times == sorted(times)
        assert recording.topics["/odom"].count >= scans


def test_chained_odometry_equals_the_raw_log(external_data: Path) -> None:
    last_positions: list[Any] = []
    for name in ("intel.clf.gz", "intel-corrected.log.gz"):
        with open_recording(external_data / "slam" / name) as recording:
            last_positions.append(list(recording.messages(["/odom"]))[-1].message.pose.pose.position)
    assert (
        math.hypot(last_positions[0].x - last_positions[1].x, last_positions[0].y - last_positions[1].y) < 0.5
    )  # after a path of several hundred meters


def test_other_laser_format_is_refused(external_data: Path) -> None:
    with pytest.raises(RecordingError, match=r"exp1\.dat\.gz:1: unknown line keyword"):
        open_recording(external_data / "slam" / "exp1.dat.gz")


def test_lines_with_equal_stamps_keep_their_order(tmp_path: Path) -> None:
    path = tmp_path / "rounded.log"
    path.write_text("".join(f"ODOM {i / 16} 0 0 0 0 0 1.13486e+09 pippo 1.13486e+09\n" for i in range(50)))
    with open_recording(path) as recording:
        odometry = [(item.time_ns, item.message.pose.pose.position.x) for item in recording.messages(["/odom"])]
        assert [x for _, x in odometry] == [i / 16 for i in range(50)]
        assert [time_ns - odometry[0][0] for time_ns, _ in odometry] == [i * 10**8 for i in range(50)]
        assert odometry[0][0] == 1_134_860_000 * 10**9
        assert any("the stamps were rounded" in warning for warning in recording.warnings)


def _read_odometry(path: Path, text: str) -> tuple[list[SE2], list[int], list[str]]:
    """Return the odometry at the scans of a log, their times, and the warnings of the log."""
    path.write_text(text)
    with open_recording(path) as recording:
        poses = {item.time_ns: pose_to_se2(item.message.pose.pose) for item in recording.messages(["/odom"])}
        scan_times = [item.time_ns for item in recording.messages(["/scan"])]
        assert "/corrected_pose" in recording.topics
        return [poses[time] for time in scan_times], scan_times, list(recording.warnings)


@pytest.mark.parametrize("has_stamps", [True, False])
def test_slam_corrections_are_no_odometry(tmp_path: Path, has_stamps: bool) -> None:
    """Wheel odometry moves 1 m between scans while the estimate turns and moves 0.8 m, with and without stamps."""
    text, estimate = "", SE2()
    for k in range(12):
        time, wheels = (k + 1.0 if has_stamps else 0.0), estimate @ SE2(1.0, 0.0, 0.0)
        text += f"ODOM {wheels.x!r} {wheels.y!r} {wheels.theta!r} 0 0 0 {time} pippo {time}\n"
        estimate = estimate @ SE2(0.8, 0.1, 0.2)
        pose_text = f"{estimate.x!r} {estimate.y!r} {estimate.theta!r}"
        text += (
            f"FLASER 3 1 2 3 {pose_text} {pose_text} {time} pippo {time}\nODOM {pose_text} 0 0 0 0 pippo 0\nNEFF 30\n"
        )
    odometry, _, _ = _read_odometry(tmp_path / "slam.log", text)
    steps = [first.inverse() @ second for first, second in itertools.pairwise(odometry[1:])]
    assert all(step.almost_equal(SE2(1.0, 0.0, 0.0), 1e-9) for step in steps)


def test_slam_estimate_replaces_missing_odometry(tmp_path: Path) -> None:
    text, estimate = "", SE2()
    for k in range(12):
        estimate = estimate @ SE2(2.0, 0.0, 0.3 if k % 2 else -0.5)
        pose_text = f"{estimate.x!r} {estimate.y!r} {estimate.theta!r}"
        text += f"FLASER 3 1 2 3 {pose_text} {pose_text} 0 pippo 0\nODOM {pose_text} 0 0 0 4.6e-86 pippo 0\nNEFF 30\n"
    odometry, times, warnings = _read_odometry(tmp_path / "slam.log", text)
    steps = [first.inverse() @ second for first, second in itertools.pairwise(odometry)]
    expected_steps = [SE2(2.0, 0.0, 0.3 if k % 2 else -0.5) for k in range(1, 12)]
    assert all(step.almost_equal(expected, 1e-9) for step, expected in zip(steps[1:], expected_steps[1:], strict=True))
    assert any("have no odometry of their own" in warning for warning in warnings)
    assert all(after - before >= 2e9 for before, after in itertools.pairwise(times[1:]))  # 2 m at 1 m/s


def test_carmen_values_above_limits_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roboyard.record.carmen_log.MAX_ENTRIES", 10)
    monkeypatch.setattr("roboyard.record.carmen_log._MAX_TEXT", 2000)
    line = "ODOM 1 0 0 0 0 0 1 host 1\n"
    for text, expected in (
        (line * 20, "more than 10 scans"),
        (line + "".join(f"A{i} 1\n" for i in range(1100)), "too many different|more than 2000 characters"),
        (line + "a" * 3000, "more than 2000 characters"),
        ("ROBOTLASER1 4 -1.57\n", "requires 8 fields"),
    ):
        (tmp_path / "x.log").write_text(text)
        with pytest.raises(RecordingError, match=expected):
            open_recording(tmp_path / "x.log")
