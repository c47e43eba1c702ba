"""Rosbag2 folders and databases and rosbag1 files that the rosbags package wrote are read."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.highlevel import AnyReader
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag1 import Writer as Rosbag1Writer
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Rosbag2Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from tests.record.samples import write_items

import roboyard as ry
from roboyard.errors import RecordingError
from roboyard.messages import serialize, type_name
from roboyard.record import convert, open_recording

TimedMessages = list[tuple[int, str, Any]]


def strip_publishers(items: list[Any]) -> TimedMessages:
    return [(time_ns, topic, message) for time_ns, topic, _, message in items]


def read(path: Path, **options: Any) -> TimedMessages:
    with open_recording(path) as recording:
        return [(m.time_ns, m.topic, m.message) for m in recording.messages(**options)]


LATCHED = Qos(
    QosHistory.KEEP_LAST,
    1,
    QosReliability.RELIABLE,
    QosDurability.TRANSIENT_LOCAL,
    QosTime(0, 0),
    QosTime(0, 0),
    QosLiveliness.AUTOMATIC,
    QosTime(0, 0),
    avoid_ros_namespace_conventions=False,
)


def write_rosbag2(path: Path, items: list[Any], plugin: StoragePlugin, version: Any = 9) -> None:
    store = get_typestore(Stores.ROS2_JAZZY)
    with Rosbag2Writer(path, version=version, storage_plugin=plugin) as writer:
        connections: dict[str, Any] = {}
        for time_ns, topic, _, message in items:
            if topic not in connections:
                profiles = [LATCHED] if topic == "/tf_static" else []
                connections[topic] = writer.add_connection(
                    topic, type_name(type(message)), typestore=store, offered_qos_profiles=profiles
                )
            writer.write(connections[topic], time_ns + 10**18, serialize(message))


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("plugin", [StoragePlugin.SQLITE3, StoragePlugin.MCAP])
def test_rosbag2_folders_and_their_files_are_read(
    tmp_path: Path, items: list[Any], plugin: StoragePlugin, version: int
) -> None:
    folder = tmp_path / "bag"
    write_rosbag2(folder, items, plugin, version)
    shifted = [(time_ns + 10**18, topic, message) for time_ns, topic, message in strip_publishers(items)]
    file = next(path for path in folder.iterdir() if path.suffix != ".yaml")
    for path in (folder, file):
        with open_recording(path) as recording:
            assert recording.format in ("rosbag2", "mcap")
            assert [(m.time_ns, m.topic, m.message) for m in recording.messages()] == shifted
            assert recording.topics["/tf_static"].latched
            assert recording.topics["/scan"].count == 30
            assert recording.topics["/scan"].frequency == pytest.approx(10.0)
            assert (recording.start_ns, recording.end_ns) == (shifted[0][0], shifted[-1][0])
        assert read(path, topics=["/words"], start_ns=10**18 + 10**9, end_ns=10**18 + 10**9) == [
            item for item in shifted if item[0] == 10**18 + 10**9 and item[1] == "/words"
        ]


def test_rosbag2_of_a_killed_recorder_is_read(tmp_path: Path, items: list[Any]) -> None:
    folder = tmp_path / "bag"
    folder.mkdir()
    for number in range(12):  # split as by ``ros2 bag record``, without metadata.yaml, and the last file truncated
        write_items(folder / f"bag_{number}.mcap", items[number * 7 : number * 7 + 7])
    truncated = folder / "bag_11.mcap"
    truncated.write_bytes(truncated.read_bytes()[:-300])
    with open_recording(folder) as recording:
        assert [(m.time_ns, m.topic, m.message) for m in recording.messages()] == strip_publishers(items[:84])
        assert not recording.is_complete
        assert recording.topics["/scan"].frequency == pytest.approx(10.0)
        assert any("bag_11" in warning for warning in recording.warnings)


def test_damaged_database_is_a_recording_error(tmp_path: Path, items: list[Any]) -> None:
    write_rosbag2(tmp_path / "bag", items, StoragePlugin.SQLITE3)
    file = tmp_path / "bag" / "bag.db3"
    data = bytearray(file.read_bytes())
    data[100:6000] = bytes(5900)
    file.write_bytes(data)
    with pytest.raises(RecordingError):
        read(file)


# -- ROS 1 -------------------------------------------------------------------------------------------------------------


def write_rosbag1(path: Path, compression: Any = None) -> None:
    store = get_typestore(Stores.ROS1_NOETIC)
    definition = "Header header\nstring name\ntime when\nfloat32[] values\ngeometry_msgs/Point[2] ends\n"
    store.register(get_types_from_msg(definition, "own_msgs/msg/Reading"))
    store.register(get_types_from_msg("geometry_msgs/TransformStamped[] transforms", "tf/msg/tfMessage"))
    types: Any = store.types
    stamps = (types["builtin_interfaces/msg/Time"](second, 5) for second in itertools.count(100))
    header = types["std_msgs/msg/Header"]
    vector, rotation = types["geometry_msgs/msg/Vector3"], types["geometry_msgs/msg/Quaternion"]
    writer = Rosbag1Writer(path)
    if compression is not None:
        writer.set_compression(compression)
    with writer:
        scans = writer.add_connection("/scan", "sensor_msgs/msg/LaserScan", typestore=store, callerid="/lidar")
        moves = writer.add_connection("/tf", "tf/msg/tfMessage", typestore=store, callerid="/base", latching=1)
        infos = writer.add_connection("/info", "sensor_msgs/msg/CameraInfo", typestore=store)
        readings = writer.add_connection("/own", "own_msgs/msg/Reading", typestore=store)
        for number in range(20):
            time_ns = 10**18 + number * 10**8
            head = header(number, next(stamps), "base")
            scan = types["sensor_msgs/msg/LaserScan"](
                head, -1.0, 1.0, 0.5, 0.0, 0.1, 0.1, 9.0, np.arange(5, dtype=np.float32), np.zeros(0, np.float32)
            )
            transform = types["geometry_msgs/msg/TransformStamped"](
                head, "laser", types["geometry_msgs/msg/Transform"](vector(1.0, 2.0, 3.0), rotation(0.0, 0.0, 0.0, 1.0))
            )
            region = types["sensor_msgs/msg/RegionOfInterest"](0, 0, 0, 0, False)
            info = types["sensor_msgs/msg/CameraInfo"](
                head,
                480,
                640,
                "plumb_bob",
                np.arange(5.0),
                np.arange(9.0),
                np.eye(3).ravel(),
                np.ones(12),
                1,
                1,
                region,
            )
            point = types["geometry_msgs/msg/Point"]
            reading = types["own_msgs/msg/Reading"](
                head,
                "résumé",
                types["builtin_interfaces/msg/Time"](3, 4),
                np.array([1.5], np.float32),
                [point(0.0, 1.0, 2.0), point(3.0, 4.0, 5.0)],
            )
            for connection, message in (
                (scans, scan),
                (moves, types["tf/msg/tfMessage"]([transform])),
                (infos, info),
                (readings, reading),
            ):
                writer.write(connection, time_ns, store.serialize_ros1(message, connection.msgtype))


@pytest.mark.parametrize("compression", [None, "BZ2", "LZ4"])
def test_rosbag1_messages_are_converted_to_ros2_messages(tmp_path: Path, compression: str | None) -> None:
    path = tmp_path / "old.bag"
    write_rosbag1(path, None if compression is None else Rosbag1Writer.CompressionFormat[compression])
    with open_recording(path) as recording:
        assert recording.format == "rosbag1"
        assert recording.topics["/tf"].latched
        assert recording.topics["/scan"].publishers == ("/lidar",)
        assert recording.topics["/scan"].count == 20
        assert recording.topics["/scan"].frequency == pytest.approx(10.0)
        messages = list(recording.messages())
    assert len(messages) == 80
    scans = [m.message for m in messages if m.topic == "/scan"]
    assert isinstance(scans[3], ry.msg.LaserScan)
    assert (scans[3].header.stamp.sec, scans[3].header.frame_id) == (103, "base")
    assert scans[3].ranges.tolist() == [0, 1, 2, 3, 4]
    moves = [m.message for m in messages if m.topic == "/tf"]
    assert isinstance(moves[0], ry.msg.TFMessage)
    assert moves[0].transforms[0].transform.translation.y == 2.0
    infos = [m.message for m in messages if m.topic == "/info"]
    assert infos[0].k.tolist() == list(range(9))  # K in ROS 1
    reading = next(m.message for m in messages if m.topic == "/own")
    assert (reading.name, reading.when.sec, reading.values.tolist(), reading.ends[1].z) == ("résumé", 3, [1.5], 5.0)
    assert reading.header.stamp.sec == 100
    with open_recording(path) as recording:
        selected = list(recording.messages(["/scan"], start_ns=messages[20].time_ns, end_ns=messages[24].time_ns))
    assert [m.time_ns for m in selected] == [10**18 + 5 * 10**8, 10**18 + 6 * 10**8]


def test_truncated_rosbag1_is_a_recording_error(tmp_path: Path) -> None:
    path = tmp_path / "old.bag"
    write_rosbag1(path)
    data = path.read_bytes()
    for size in (13, 100, 4200, len(data) // 2, len(data) - 10):
        path.write_bytes(data[:size])
        with pytest.raises(RecordingError):
            read(path)


def test_other_recordings_convert_to_mcap(tmp_path: Path, items: list[Any]) -> None:
    write_rosbag1(tmp_path / "old.bag")
    write_rosbag2(tmp_path / "bag", items, StoragePlugin.SQLITE3)
    for name in ("old.bag", "bag"):
        result = convert(tmp_path / name, tmp_path / f"{name}.mcap")
        assert read(tmp_path / f"{name}.mcap") == read(tmp_path / name)
        assert result.message_count == len(read(tmp_path / name))
        with AnyReader([tmp_path / f"{name}.mcap"]) as reader:
            assert reader.message_count == result.message_count


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rosbag1", "lz4", "bz2", "sqlite"])
def test_damaged_rosbag_raises_only_recording_errors(tmp_path: Path, items: list[Any], kind: str) -> None:
    if kind == "sqlite":
        write_rosbag2(tmp_path / "bag", items[:20], StoragePlugin.SQLITE3)
        path = tmp_path / "bag" / "bag.db3"
    else:
        path = tmp_path / "old.bag"
        write_rosbag1(path, None if kind == "rosbag1" else Rosbag1Writer.CompressionFormat[kind.upper()])
    data, random, n_rejected = path.read_bytes(), np.random.default_rng(5), 0
    for _ in range(60):
        damaged = bytearray(data)
        for index in random.integers(0, len(data), 6):
            damaged[index] = random.integers(256)
        path.write_bytes(damaged)
        try:
            read(path)
        except RecordingError:
            n_rejected += 1
    assert n_rejected > 5


def test_conversion_keeps_messages_before_damage(tmp_path: Path, items: list[Any]) -> None:
    import apsw

    write_rosbag2(tmp_path / "bag", items, StoragePlugin.SQLITE3)
    file, out = tmp_path / "bag" / "bag.db3", tmp_path / "out.mcap"
    messages = read(file)
    with apsw.Connection(str(file)) as database:
        row_id = database.execute("SELECT id FROM messages ORDER BY timestamp, id LIMIT 1 OFFSET 40").fetchone()[0]
        database.execute("UPDATE messages SET data = x'0001000007' WHERE id = ?", (row_id,))
    with pytest.raises(RecordingError, match=r"the 40 messages before it are in .*out\.mcap"):
        convert(file, out)
    assert read(out) == messages[:40]
    with apsw.Connection(str(file)) as database:
        database.execute("UPDATE messages SET data = x'0001000007'")
    out.unlink()
    with pytest.raises(RecordingError):
        convert(file, out)
    assert not out.exists(), "a conversion that keeps no message leaves no file, so that it can be repeated"
