"""Other programs' readers agree with our files, and ours with their files, in MCAP, rosbag2 and rosbag1."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.highlevel import AnyReader
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

import roboyard as ry
from roboyard.errors import RecordingError
from roboyard.messages import schema, serialize, type_name
from roboyard.record import convert, open_recording

Expected = list[tuple[int, str, Any]]


def expected(items: list[Any]) -> Expected:
    return [(time_ns, topic, message) for time_ns, topic, _, message in items]


def read(path: Path, **options: Any) -> Expected:
    with open_recording(path) as recording:
        return [(m.time_ns, m.topic, m.message) for m in recording.messages(**options)]


# -- our file, their readers -------------------------------------------------------------------------------------------


def test_the_mcap_package_reads_our_file(recording_file: Path, items: list[Any]) -> None:
    from mcap.reader import make_reader
    from mcap.stream_reader import StreamReader

    with recording_file.open("rb") as file:
        assert len(list(StreamReader(file, validate_crcs=True).records)) > len(items)
    with recording_file.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        assert reader.get_header().profile == "ros2"
        summary = reader.get_summary()
        assert summary is not None
        assert summary.statistics is not None
        assert summary.statistics.message_count == len(items)
        assert summary.statistics.chunk_count == len(summary.chunk_indexes) == 3
        assert [channel.id for channel in summary.channels.values()] == [1, 2, 3, 4, 5]  # by first use
        channel = summary.channels[1]
        assert channel.metadata["callerid"] == "/rover/robot_state"
        assert channel.metadata["topic_type_hash"].startswith("RIHS01_")
        found = [(m.log_time, c.topic, s.name if s else "", m.data) for s, c, m in reader.iter_messages()]
        metadata = {record.name: record.metadata for record in reader.iter_metadata()}
    assert found == [(t, topic, type_name(type(m)), serialize(m)) for t, topic, _, m in items]
    assert metadata == {"rosbag2": {"ROS_DISTRO": "jazzy"}, "roboyard": {"seed": "7", "scenario": "test"}}


def test_the_message_indexes_find_each_message(recording_file: Path) -> None:
    from mcap.reader import make_reader

    with recording_file.open("rb") as file:
        reader = make_reader(file)
        picked = [m.log_time for _, _, m in reader.iter_messages(topics="/scan", starting_at=10**9, reverse=True)]
    assert picked == [t * 10**8 for t in reversed(range(10, 30))]


def test_rosbags_reads_our_file(recording_file: Path, items: list[Any]) -> None:
    with AnyReader([recording_file]) as reader:
        found = [(time_ns, connection.topic, bytes(data)) for connection, time_ns, data in reader.messages()]
        for connection, _, data in reader.messages():
            reader.deserialize(data, connection.msgtype)
        durability = {
            connection.topic: [profile.durability for profile in connection.ext.offered_qos_profiles]
            for connection in reader.connections
        }
    assert found == [(t, topic, serialize(m)) for t, topic, _, m in items]
    assert durability["/tf_static"] == [QosDurability.TRANSIENT_LOCAL]
    assert durability["/scan"] == [QosDurability.VOLATILE]


# -- their files, our reader -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", ["NONE", "LZ4", "ZSTD"])
@pytest.mark.parametrize("use_chunking", [True, False])
@pytest.mark.parametrize("indexed", [True, False])
def test_files_of_the_mcap_package(
    tmp_path: Path, items: list[Any], compression: str, use_chunking: bool, indexed: bool
) -> None:
    from mcap.writer import CompressionType, IndexType, Writer

    path = tmp_path / "theirs.mcap"
    writer = Writer(
        str(path),
        chunk_size=2000,
        compression=CompressionType[compression],
        use_chunking=use_chunking,
        index_types=IndexType.ALL if indexed else IndexType.NONE,
        use_statistics=indexed,
    )
    writer.start("ros2", "test")
    channels: dict[str, int] = {}
    shuffled = [items[i] for i in np.random.default_rng(1).permutation(len(items))]
    for number, (time_ns, topic, _, message) in enumerate(shuffled):
        if topic not in channels:
            name = type_name(type(message))
            channels[topic] = writer.register_channel(
                topic, "cdr", writer.register_schema(name, "ros2msg", schema(name).encode())
            )
        writer.add_message(channels[topic], time_ns, serialize(message), time_ns, number)
    writer.finish()
    found = read(path)
    assert [time_ns for time_ns, _, _ in found] == sorted(time_ns for time_ns, *_ in items)
    assert sorted(map(repr, found)) == sorted(map(repr, expected(items)))
    some = read(path, topics=["/scan"], start_ns=10**9, end_ns=2 * 10**9)
    assert some == [i for i in found if i[1] == "/scan" and 10**9 <= i[0] <= 2 * 10**9]
    with open_recording(path) as recording:
        assert recording.topics["/scan"].frequency == pytest.approx(10.0)


def test_files_of_foxglove(tmp_path: Path, items: list[Any]) -> None:
    foxglove = pytest.importorskip("foxglove")
    from foxglove.mcap import MCAPWriteOptions

    path = tmp_path / "theirs.mcap"
    context = foxglove.Context()
    options = MCAPWriteOptions(profile="ros2", compression_threads=0)
    with foxglove.open_mcap(str(path), context=context, writer_options=options) as _:
        channels: dict[str, Any] = {}
        for time_ns, topic, _, message in items:
            if topic not in channels:
                name = type_name(type(message))
                definition = foxglove.Schema(name=name, encoding="ros2msg", data=schema(name).encode())
                channels[topic] = foxglove.Channel(topic, schema=definition, message_encoding="cdr", context=context)
            channels[topic].log(serialize(message), log_time=time_ns)
    assert read(path) == expected(items)


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
    with Writer2(path, version=version, storage_plugin=plugin) as writer:
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
def test_rosbag2_folders_and_their_files(tmp_path: Path, items: list[Any], plugin: StoragePlugin, version: int) -> None:
    folder = tmp_path / "bag"
    write_rosbag2(folder, items, plugin, version)
    shifted = [(time_ns + 10**18, topic, message) for time_ns, topic, message in expected(items)]
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


def test_a_folder_of_mcap_files_whose_recorder_was_killed(tmp_path: Path, items: list[Any], write: Any) -> None:
    folder = tmp_path / "bag"
    folder.mkdir()
    for number in range(12):  # split as ros2 bag record does; no metadata.yaml, the last file torn
        write(folder / f"bag_{number}.mcap", items[number * 7 : number * 7 + 7])
    torn = folder / "bag_11.mcap"
    torn.write_bytes(torn.read_bytes()[:-300])
    with open_recording(folder) as recording:
        assert [(m.time_ns, m.topic, m.message) for m in recording.messages()] == expected(items[:84])
        assert not recording.complete
        assert recording.topics["/scan"].frequency == pytest.approx(10.0)
        assert any("bag_11" in warning for warning in recording.warnings)


def test_a_damaged_database_is_one_clear_error(tmp_path: Path, items: list[Any]) -> None:
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
    own = "Header header\nstring name\ntime when\nfloat32[] values\ngeometry_msgs/Point[2] ends\n"
    store.register(get_types_from_msg(own, "own_msgs/msg/Reading"))
    store.register(get_types_from_msg("geometry_msgs/TransformStamped[] transforms", "tf/msg/tfMessage"))
    types: Any = store.types
    stamps = (types["builtin_interfaces/msg/Time"](second, 5) for second in itertools.count(100))
    header = types["std_msgs/msg/Header"]
    vector, rotation = types["geometry_msgs/msg/Vector3"], types["geometry_msgs/msg/Quaternion"]
    writer = Writer1(path)
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
def test_rosbag1_becomes_ros2_messages(tmp_path: Path, compression: str | None) -> None:
    path = tmp_path / "old.bag"
    write_rosbag1(path, None if compression is None else Writer1.CompressionFormat[compression])
    with open_recording(path) as recording:
        assert recording.format == "rosbag1"
        assert recording.topics["/tf"].latched
        assert recording.topics["/scan"].publishers == ("/lidar",)
        assert recording.topics["/scan"].count == 20
        assert recording.topics["/scan"].frequency == pytest.approx(10.0)
        found = list(recording.messages())
    assert len(found) == 80
    scans = [m.message for m in found if m.topic == "/scan"]
    assert isinstance(scans[3], ry.msg.LaserScan)
    assert (scans[3].header.stamp.sec, scans[3].header.frame_id) == (103, "base")
    assert scans[3].ranges.tolist() == [0, 1, 2, 3, 4]
    moves = [m.message for m in found if m.topic == "/tf"]
    assert isinstance(moves[0], ry.msg.TFMessage)
    assert moves[0].transforms[0].transform.translation.y == 2.0
    infos = [m.message for m in found if m.topic == "/info"]
    assert infos[0].k.tolist() == list(range(9))  # K in ROS 1
    own = next(m.message for m in found if m.topic == "/own")
    assert (own.name, own.when.sec, own.values.tolist(), own.ends[1].z) == ("résumé", 3, [1.5], 5.0)
    assert own.header.stamp.sec == 100
    with open_recording(path) as recording:
        part = list(recording.messages(["/scan"], start_ns=found[20].time_ns, end_ns=found[24].time_ns))
    assert [m.time_ns for m in part] == [10**18 + 5 * 10**8, 10**18 + 6 * 10**8]


def test_an_unindexed_rosbag1_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "old.bag"
    write_rosbag1(path)
    data = path.read_bytes()
    for size in (13, 100, 4200, len(data) // 2, len(data) - 10):
        path.write_bytes(data[:size])
        with pytest.raises(RecordingError):
            read(path)


def test_any_recording_converts_to_ours(tmp_path: Path, items: list[Any]) -> None:
    write_rosbag1(tmp_path / "old.bag")
    write_rosbag2(tmp_path / "bag", items, StoragePlugin.SQLITE3)
    for name in ("old.bag", "bag"):
        result = convert(tmp_path / name, tmp_path / f"{name}.mcap")
        assert read(tmp_path / f"{name}.mcap") == read(tmp_path / name)
        assert result.messages == len(read(tmp_path / name))
        with AnyReader([tmp_path / f"{name}.mcap"]) as reader:
            assert reader.message_count == result.messages


# -- types -------------------------------------------------------------------------------------------------------------


def one_message_file(path: Path, name: str, definition: str, data: bytes, encoding: str = "cdr") -> None:
    from mcap.writer import Writer

    writer = Writer(str(path))
    writer.start("ros2", "test")
    channel = writer.register_channel("/a", encoding, writer.register_schema(name, "ros2msg", definition.encode()))
    writer.add_message(channel, 5, data, 5)
    writer.finish()


def test_an_unknown_type_is_read_by_the_definition_in_the_file(tmp_path: Path) -> None:
    definition = (
        "std_msgs/Header header\nthings_msgs/Part[] parts\n"
        + "=" * 80
        + "\nMSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n"
        + "=" * 80
        + "\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"
        + "=" * 80
        + "\nMSG: things_msgs/Part\nuint8 kind\nfloat64 weight\n"
    )
    types = get_types_from_msg(definition, "things_msgs/msg/Thing")
    store = get_typestore(Stores.EMPTY)
    store.register(types)
    known: Any = store.types
    part, stamp = known["things_msgs/msg/Part"], known["builtin_interfaces/msg/Time"](1, 2)
    thing = known["things_msgs/msg/Thing"](known["std_msgs/msg/Header"](stamp, "f"), [part(1, 2.0), part(3, 4.0)])
    path = tmp_path / "r.mcap"
    one_message_file(path, "things_msgs/msg/Thing", definition, bytes(store.serialize_cdr(thing, thing.__msgtype__)))
    [(_, _, message)] = read(path)
    assert [(p.kind, p.weight) for p in message.parts] == [(1, 2.0), (3, 4.0)]
    assert message.header.frame_id == "f"
    again: Any = ry.msg.things_msgs.Thing()  # known from now on
    assert type(again) is type(message)


def test_a_type_that_differs_from_ours_is_read_by_the_files_own_definition(tmp_path: Path) -> None:
    definition = "string data\nuint8 extra\n"
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(definition, "std_msgs/msg/String"))
    known: Any = store.types
    data = bytes(store.serialize_cdr(known["std_msgs/msg/String"]("hi", 7), "std_msgs/msg/String"))
    path = tmp_path / "r.mcap"
    one_message_file(path, "std_msgs/msg/String", definition, data)
    with open_recording(path) as recording:
        [item] = recording.messages()
        assert (item.message.data, item.message.extra) == ("hi", 7)
        assert any("differs" in warning for warning in recording.warnings)
    assert not hasattr(ry.msg.String(), "extra")


@pytest.mark.parametrize(
    ("name", "definition", "data", "encoding", "says"),
    [
        ("x_msgs/msg/Y", "what is this ?!", b"", "cdr", "definition of x_msgs/msg/Y"),
        ("x_msgs/msg/Z", "other_msgs/Unknown field", b"", "cdr", "definition of x_msgs/msg/Z"),
        ("../../etc", "int8 a", b"", "cdr", "has the type"),
        ("std_msgs/msg/String", "string data\n", b"\0\1\0\0\xff\xff\xff\xff", "cdr", "no std_msgs/msg/String"),
        ("std_msgs/msg/String", "string data\n", b"", "cdr", "no std_msgs/msg/String"),
    ],
)
def test_bad_types_and_bytes_are_clear_errors(
    tmp_path: Path, name: str, definition: str, data: bytes, encoding: str, says: str
) -> None:
    path = tmp_path / "r.mcap"
    one_message_file(path, name, definition, data, encoding)
    with pytest.raises(RecordingError, match=says):
        read(path)


def test_other_encodings_are_listed_and_refused_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "r.mcap"
    one_message_file(path, "x", "{}", b"{}", "json")
    with open_recording(path) as recording:
        assert recording.topics["/a"].count == 1
        assert list(recording.messages()) == []
        assert [data for _, _, data in recording.raw()] == [b"{}"]
        with pytest.raises(RecordingError, match="json"):
            recording.messages(["/a"])
