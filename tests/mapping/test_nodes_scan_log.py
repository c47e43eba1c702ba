"""Scans out of recordings of every kind: odometry at their moments, places of lasers, and what is wrong in them."""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rosbags.convert.converter import migrate_bytes
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from roboyard.errors import RoboyardError
from roboyard.geometry import SE2, SE3
from roboyard.mapping.evaluation.trajectory_error import read_relations, relation_errors
from roboyard.mapping.nodes.scan_log import ScanLog, ScanLogTopics, read_log, spread_equal_times
from roboyard.messages import message_type, serialize, time_to_msg, type_name
from roboyard.messages.convert import ScanGeometry, odometry_to_msg, scan_to_msg, transforms_to_msg
from roboyard.record import McapWriter

START = 1_700_000_000 * 10**9
TENTH = 100_000_000
Items = list[tuple[int, str, Any]]


def true_odometry(time_ns: int) -> SE2:
    """Where the robot's odometry is: straight on at 1 m/s."""
    return SE2((time_ns - START) * 1e-9, 0.0, 0.5)


def scan(time_ns: int, frame: str = "laser", n: int = 19, **fields: Any) -> Any:
    seed = (time_ns + len(frame)) % 2**32
    ranges = fields.pop("ranges", np.random.default_rng(seed).uniform(1, 5, n).astype(np.float32))
    geometry = replace(ScanGeometry(-1.0, 2.0 / (n - 1) if n > 1 else 0.1, 0.1, 10.0), **fields)
    return scan_to_msg(ranges, geometry, frame=frame, time_ns=time_ns)


def odometry(time_ns: int, pose: SE2 | None = None, child: str = "base_link") -> Any:
    zero = (0.0, 0.0, 0.0)
    return odometry_to_msg(pose or true_odometry(time_ns), zero, zero, frame="odom", child_frame=child, time_ns=time_ns)


MOUNT = (SE3.from_xyz_rpy((0.2, 0.1, 0.3), (0, 0, 0.4)), "base_link", "laser")


def drive(seconds: float = 3.0, *, mounts: Any = (MOUNT,), rate: int = 10) -> Items:
    """Odometry at 20 Hz and scans in between."""
    items: Items = [(START, "/tf_static", transforms_to_msg(mounts, START))] if mounts else []
    for index in range(round(seconds * 20) + 1):
        time_ns = START + index * 50_000_000
        items.append((time_ns, "/odom", odometry(time_ns)))
        if index % (20 // rate) == 0 and index < seconds * 20:
            items.append((time_ns + 20_000_000, "/scan", scan(time_ns + 20_000_000)))
    return items


def write(path: Path, items: Items) -> Path:
    with McapWriter(path, {}, overwrite=True) as writer:
        for time_ns, topic, message in items:
            channel = writer.channel(topic, type_name(type(message)), "robot", latched=topic == "/tf_static")
            writer.write(channel, time_ns, serialize(message))
    return path


def read(tmp_path: Path, items: Items, **options: Any) -> ScanLog:
    return read_log(write(tmp_path / "log.mcap", items), **options)


def times_ascend(log: ScanLog) -> bool:
    return bool((np.diff([scan.time_ns for scan in log]) > 0).all())


def test_scans_get_interpolated_odometry_and_laser_pose(tmp_path: Path) -> None:
    progress_calls: list[tuple[int, int]] = []
    log = read(tmp_path, drive(), progress=lambda n_read, total: progress_calls.append((n_read, total)))
    assert len(log) == 30
    assert log.warnings == ()
    assert (log.lasers, log.odometry_source, len(log.odometry)) == (("/scan",), "/odom", 61)
    for item in log:
        assert item.odometry is not None
        assert item.odometry.almost_equal(true_odometry(item.time_ns), 1e-9)
        assert item.T_base_laser.almost_equal(SE2(0.2, 0.1, 0.4), 1e-9)
        assert np.array_equal(item.ranges, np.asarray(scan(item.time_ns).ranges))
        assert (item.range_min, item.range_max) == (pytest.approx(0.1), 10.0)
    assert progress_calls[-1] == (91, 91)


@pytest.mark.parametrize("form", ["rosbag1", "sqlite3", "mcap", "gz"])
def test_every_log_format_gives_the_same_scans(tmp_path: Path, form: str) -> None:
    items = drive(1.0)
    expected = read(tmp_path, items)
    path = tmp_path / form
    if form == "gz":
        path.write_bytes(gzip.compress((tmp_path / "log.mcap").read_bytes()))
    elif form == "rosbag1":
        store = get_typestore(Stores.ROS1_NOETIC)
        store.register(get_types_from_msg("geometry_msgs/TransformStamped[] transforms", "tf2_msgs/msg/TFMessage"))
        with Writer1(path) as writer:
            write_bag(writer, store, items, lambda data, name: to_ros1(data, name, store))
    else:
        store = get_typestore(Stores.ROS2_JAZZY)
        plugin = StoragePlugin.SQLITE3 if form == "sqlite3" else StoragePlugin.MCAP
        with Writer2(path, version=9, storage_plugin=plugin) as writer:
            write_bag(writer, store, items, lambda data, name: data)
    found = read_log(path)
    assert len(found) == len(expected) == 10
    for one, other in zip(found, expected, strict=True):
        assert (one.time_ns, one.angle_min, one.odometry, one.T_base_laser, one.laser_name) == (
            other.time_ns, other.angle_min, other.odometry, other.T_base_laser, other.laser_name,
        )  # fmt: skip
        assert np.array_equal(one.ranges, other.ranges)


def to_ros1(data: bytes, name: str, store: Any) -> bytes:
    source = get_typestore(Stores.ROS2_JAZZY)
    return bytes(migrate_bytes(source, store, name, name, {}, data, src_is2=True, dst_is2=False))


def write_bag(writer: Any, store: Any, items: Items, convert: Callable[[bytes, str], bytes]) -> None:
    connections: dict[str, Any] = {}
    for time_ns, topic, message in items:
        name = type_name(type(message))
        if topic not in connections:
            connections[topic] = writer.add_connection(topic, name, typestore=store)
        writer.write(connections[topic], time_ns, convert(serialize(message), name))


def test_transforms_replace_an_odometry_topic(tmp_path: Path) -> None:
    with_topic = read(tmp_path, drive())
    items = [
        (t, "/tf", transforms_to_msg([(true_odometry(t).to_se3(), "odom", "base_link")], t))
        if topic == "/odom"
        else (t, topic, message)
        for t, topic, message in drive()
    ]
    by_tf = read(tmp_path, items)
    assert by_tf.odometry_source == "tf"
    assert [s.odometry for s in by_tf] == [s.odometry for s in with_topic]
    without_odometry = read(tmp_path, items, topics=ScanLogTopics(odometry="none"))
    assert without_odometry.odometry_source == "none"
    assert all(s.odometry is None for s in without_odometry)
    assert len(without_odometry.odometry) == 0


def test_inverted_laser_gives_the_same_points(tmp_path: Path) -> None:
    flipped = SE3.from_xyz_rpy((0.2, 0.1, 0.3), (math.pi, 0, 0.4))
    log = read(tmp_path, drive(0.2, mounts=[(flipped, "base_link", "laser")]))
    for item in log:
        message = scan(item.time_ns)
        angles = message.angle_min + message.angle_increment * np.arange(len(message.ranges))
        points = np.column_stack([np.cos(angles), np.sin(angles), np.zeros(len(angles))]) * message.ranges[:, None]
        assert np.allclose(item.points(), (flipped @ points)[:, :2], atol=1e-5)


def test_simultaneous_scans_of_two_lasers_are_ordered(tmp_path: Path) -> None:
    rear = (SE3.from_xyz_rpy((-0.2, 0, 0.3), (0, 0, math.pi)), "base_link", "rear")
    items = drive(1.0, mounts=[MOUNT, rear])
    items += [(t, "/rear_scan", scan(t, "rear")) for t, topic, _ in items if topic == "/scan"]
    items += [(t, "/scan_filtered", message) for t, topic, message in items if topic == "/scan"][:-1]
    log = read(tmp_path, sorted(items, key=lambda item: item[0]))
    assert log.lasers == ("/rear_scan", "/scan")
    assert len(log) == 20
    assert times_ascend(log)
    assert {round(abs(s.T_base_laser.theta), 3) for s in log} == {0.4, 3.142}
    assert "the same laser" in log.warnings[0]
    one = read(tmp_path, sorted(items, key=lambda item: item[0]), topics=ScanLogTopics(scans=("/scan_filtered",)))
    assert (one.lasers, len(one)) == (("/scan_filtered",), 9)


def test_moving_laser_has_its_pose_at_each_scan(tmp_path: Path) -> None:
    items = drive(1.0, mounts=[(SE3.from_xyz_rpy((0.1, 0, 0)), "base_link", "head")])
    for index in range(25):
        t = START + index * 50_000_000
        items.append((t, "/tf", transforms_to_msg([(SE3.from_xyz_rpy(rpy=(0, 0, 0.02 * index)), "head", "laser")], t)))
    log = read(tmp_path, sorted(items, key=lambda item: item[0]))
    for item in log:
        assert item.T_base_laser.theta == pytest.approx((item.time_ns - START) * 1e-9 * 0.4, abs=1e-6)
    assert any("moves on its base" in warning for warning in log.warnings)


def change(items: Items, topic: str, edit: Callable[[int, int, Any], tuple[int, Any] | None]) -> Items:
    """The items with those of a topic changed: edit(number, time, message) gives time and message, or None."""
    number, result = 0, []
    for time_ns, name, message in items:
        if name != topic:
            result.append((time_ns, name, message))
            continue
        changed = edit(number, time_ns, message)
        number += 1
        if changed is not None:
            result.append((changed[0], name, changed[1]))
    return result


def test_repeated_stamps_are_spread_and_keep_odometry(tmp_path: Path) -> None:
    items: Items = []
    for index in range(20):  # as CARMEN logs have it: odometry and scan recorded together, pairs of equal stamps
        true_ns, t = START + index * TENTH, START + index // 2 * 2 * TENTH
        items += [(t, "/odom", odometry(t, true_odometry(true_ns))), (t, "/scan", scan(t, n=19 + index % 2))]
    log = read(tmp_path, items)
    assert times_ascend(log)
    assert [s.time_ns for s in log] == [START + index * TENTH for index in range(20)]
    for item in log:
        assert item.odometry is not None
        assert item.odometry.almost_equal(true_odometry(item.time_ns), 1e-9)
    assert any("10 scans of /scan have the stamp of the scan before" in warning for warning in log.warnings)


def test_duplicate_scans_are_read_once(tmp_path: Path) -> None:
    items = drive(1.0)
    log = read(tmp_path, sorted(items + [item for item in items if item[1] == "/scan"], key=lambda item: item[0]))
    assert len(log) == 10
    assert log.warnings == ("10 scans of /scan dropped: recorded twice",)


def test_backward_stamps_drop_a_scan_or_all_stamps(tmp_path: Path) -> None:
    one_backward = change(drive(3.0), "/scan", lambda i, t, m: (t, scan(t - 10**9)) if i == 15 else (t, m))
    log = read(tmp_path, one_backward)
    assert len(log) == 29
    assert any("1 scans dropped: time stamps not increasing" in warning for warning in log.warnings)
    many_backward = change(drive(3.0), "/scan", lambda i, t, m: (t, scan(t - 10**9)) if i > 15 else (t, m))
    log = read(tmp_path, many_backward)
    assert len(log) == 30
    assert times_ascend(log)
    assert any("recording times are used" in warning for warning in log.warnings)
    assert all(s.odometry is not None and s.odometry.almost_equal(true_odometry(s.time_ns), 1e-9) for s in log)


def test_zero_or_other_clock_stamps_are_replaced(tmp_path: Path) -> None:
    for stamp_of in (lambda t: 0, lambda t: t - 10**6 * 10**9):
        log = read(tmp_path, change(drive(), "/scan", lambda i, t, m, s=stamp_of: (t, scan(s(t)))))
        assert len(log) == 30
        assert any("recording times are used" in warning for warning in log.warnings)
        assert all(s.odometry is not None and s.odometry.almost_equal(true_odometry(s.time_ns), 1e-9) for s in log)


def test_missing_beams_and_invalid_angles_are_handled(tmp_path: Path) -> None:
    def spoil(i: int, t: int, message: Any) -> tuple[int, Any]:
        wrong = {
            3: {"ranges": np.zeros(0, np.float32)},
            5: {"angle_min": math.nan},
            7: {"n": 7},
            9: {"range_max": 0.0},
            11: {"ranges": np.array([math.nan, math.inf, -1.0, 0.0, 2.0] + [1.0] * 14, np.float32)},
        }
        return t, scan(t, **wrong.get(i, {}))

    log = read(tmp_path, change(drive(), "/scan", spoil))
    assert len(log) == 27
    warnings = " ".join(log.warnings)
    for words in ("1 scans dropped: no beam", "dropped: angles", "other numbers of beams", "taken for unlimited"):
        assert words in warnings
    assert math.isinf(log.scans[7 - 1].range_max) or any(math.isinf(s.range_max) for s in log)
    assert all(np.isfinite(s.points()).all() for s in log)


def test_odometry_gaps_leave_scans_of_a_moving_robot_without(tmp_path: Path) -> None:
    def hole(low: float, high: float) -> Callable[[int, int, Any], tuple[int, Any] | None]:
        return lambda i, t, m: None if low < (t - START) * 1e-9 < high else (t, m)

    moving = read(tmp_path, change(drive(6.0), "/odom", hole(2.0, 4.0)))
    unknown = [s for s in moving if s.odometry is None]
    assert 14 <= len(unknown) <= 20
    assert any("have no odometry" in warning for warning in moving.warnings)
    standing = change(drive(6.0), "/odom", lambda i, t, m: hole(2.0, 4.0)(i, t, odometry(t, SE2(1, 2, 3))))
    assert all(s.odometry == SE2(1, 2, 3) for s in read(tmp_path, standing))
    scan_gap_log = read(tmp_path, change(drive(6.0), "/scan", hole(2.0, 4.5)))
    assert any("/scan has 1 gaps, the longest of 2.6 s" in warning for warning in scan_gap_log.warnings)


def test_invalid_odometry_is_dropped(tmp_path: Path) -> None:
    def spoil(i: int, t: int, message: Any) -> tuple[int, Any]:
        if i == 7:
            message.pose.pose.position.x = math.nan
        if i == 9:
            message.pose.pose.orientation.w = message.pose.pose.orientation.z = 0.0
        return t, message

    log = read(tmp_path, change(drive(), "/odom", spoil))
    assert any("2 poses of odometry" in warning for warning in log.warnings)
    assert all(s.odometry is not None and s.odometry.almost_equal(true_odometry(s.time_ns), 1e-9) for s in log)


def test_single_scan_without_odometry_or_frames_is_read(tmp_path: Path) -> None:
    log = read(tmp_path, [(START, "/scan", scan(START))])
    assert len(log) == 1
    assert log.scans[0].odometry is None
    assert log.scans[0].T_base_laser == SE2()
    assert log.duration == 0.0
    assert [w.split(":")[0] for w in log.warnings] == ["there is no odometry", "no transform from the base to laser"]


def test_multi_echo_scans_are_read(tmp_path: Path) -> None:
    echo = message_type("sensor_msgs/msg/LaserEcho")
    message = message_type("sensor_msgs/msg/MultiEchoLaserScan")(angle_min=-1.0, angle_increment=1.0, range_max=9.0)
    message.header.stamp = time_to_msg(START)
    message.ranges = [echo(np.array(e, np.float32)) for e in ([1.0, 2.0], [], [3.0])]
    log = read(tmp_path, [(START, "/scan", message)])
    assert log.scans[0].ranges.tolist() == [1.0, math.inf, 3.0]


@pytest.mark.parametrize(
    ("items", "topics", "words"),
    [
        ([(0, "/odom", odometry(START))], ScanLogTopics(), "holds no scan of a laser .*/odom"),
        ([(0, "/scan", scan(START))], ScanLogTopics(scans=("/scna",)), "unknown topic '/scna'.*/scan"),
        ([(0, "/odom", odometry(START))], ScanLogTopics(scans=("/odom",)), "/odom carries nav_msgs"),
        ([(0, "/scan", scan(START))], ScanLogTopics(odometry="/scan"), "/scan carries sensor_msgs"),
        ([(0, "/scan", scan(START))], ScanLogTopics(odometry="tf"), "no frame called odom"),
        ([(0, "/scan", scan(START, ranges=np.zeros(0, np.float32)))], ScanLogTopics(), "there is no usable scan"),
        (
            [
                (
                    START,
                    "/tf_static",
                    transforms_to_msg([(SE3.from_xyz_rpy(rpy=(0, 1.5, 0)), "base_link", "laser")], START),
                ),
                (START, "/scan", scan(START)),
            ],
            ScanLogTopics(),
            "no laser looks along the floor",
        ),
        (
            [
                (
                    START,
                    "/tf_static",
                    transforms_to_msg([(SE3(), f"{r}/base_link", f"{r}/laser") for r in "ab"], START),
                ),
                (START, "/a/scan", scan(START, "a/laser")),
                (START, "/b/scan", scan(START, "b/laser")),
            ],
            ScanLogTopics(),
            "lasers of several robots: /a/scan, /b/scan",
        ),
    ],
)
def test_recordings_without_scans_are_refused(tmp_path: Path, items: Items, topics: ScanLogTopics, words: str) -> None:
    with pytest.raises(RoboyardError, match=words):
        read(tmp_path, items, topics=topics)


def test_invalid_log_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"")
    with pytest.raises(RoboyardError, match="is empty"):
        read_log(path)
    with pytest.raises(RoboyardError, match="does not exist"):
        read_log(tmp_path / "none")


CARMEN = "FLASER 5 1 2 3 2 1 {x} 0 0 {x} 0 0 {t} host 0\n"


def test_truncated_gzip_log_is_read_up_to_its_end(tmp_path: Path) -> None:
    text = "".join(CARMEN.format(x=index * 0.1, t=1000 + index * 0.5) for index in range(2000))
    content = gzip.compress(text.encode())
    path = tmp_path / "cut.log.gz"
    path.write_bytes(content[: len(content) // 2])
    log = read_log(path)
    assert 100 < len(log) < 2000
    assert any("truncated" in warning for warning in log.warnings)
    assert all(s.odometry is not None and s.odometry.x == pytest.approx(i * 0.1) for i, s in enumerate(log))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60))
def test_spread_times_ascend_and_keep_ascending_ones(steps: list[int]) -> None:
    times = np.cumsum(steps).astype(np.int64) * 10**8
    found = spread_equal_times(times)
    assert (np.diff(found) > 0).all()
    assert found[0] == times[0]
    assert (found >= times).all()
    firsts = np.flatnonzero(np.diff(times, prepend=times[0] - 1) > 0)
    assert np.array_equal(found[firsts], times[firsts])
    assert np.array_equal(spread_equal_times(found), found)


def test_intel_log_is_read(external_data: Path) -> None:
    log = read_log(external_data / "slam" / "intel.clf.gz")
    assert (len(log), log.format, log.odometry_source) == (2725, "carmen", "/odom")
    assert times_ascend(log)
    arrays = np.load(external_data / "slam" / "intel.npz")
    assert np.allclose(np.nan_to_num(log.scans[100].ranges), arrays["ranges_mm"][100] * 1e-3, atol=6e-3)
    relations = read_relations(external_data / "slam" / "relations" / "intel.relations")
    errors = relation_errors(log.odometry, relations)
    assert 6.5 < errors.translational.mean < 7.7  # odometry alone
    assert errors.n_total == 2984
