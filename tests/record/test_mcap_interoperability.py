"""The mcap, rosbags and foxglove packages read MCAP files of Roboyard, and Roboyard reads their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.highlevel import AnyReader
from rosbags.interfaces import QosDurability

from roboyard.messages import schema, serialize, type_name
from roboyard.record import open_recording

TimedMessages = list[tuple[int, str, Any]]


def strip_publishers(items: list[Any]) -> TimedMessages:
    return [(time_ns, topic, message) for time_ns, topic, _, message in items]


def read(path: Path, **options: Any) -> TimedMessages:
    with open_recording(path) as recording:
        return [(m.time_ns, m.topic, m.message) for m in recording.messages(**options)]


# -- files of Roboyard -------------------------------------------------------------------------------------------------


def test_mcap_package_reads_roboyard_files(recording_file: Path, items: list[Any]) -> None:
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
        messages = [(m.log_time, c.topic, s.name if s else "", m.data) for s, c, m in reader.iter_messages()]
        metadata = {record.name: record.metadata for record in reader.iter_metadata()}
    assert messages == [(t, topic, type_name(type(m)), serialize(m)) for t, topic, _, m in items]
    assert metadata == {"rosbag2": {"ROS_DISTRO": "jazzy"}, "roboyard": {"seed": "7", "scenario": "test"}}


def test_message_indexes_find_each_message(recording_file: Path) -> None:
    from mcap.reader import make_reader

    with recording_file.open("rb") as file:
        reader = make_reader(file)
        times_ns = [m.log_time for _, _, m in reader.iter_messages(topics="/scan", starting_at=10**9, reverse=True)]
    assert times_ns == [t * 10**8 for t in reversed(range(10, 30))]


def test_rosbags_reads_roboyard_files(recording_file: Path, items: list[Any]) -> None:
    with AnyReader([recording_file]) as reader:
        messages = [(time_ns, connection.topic, bytes(data)) for connection, time_ns, data in reader.messages()]
        for connection, _, data in reader.messages():
            reader.deserialize(data, connection.msgtype)
        durability = {
            connection.topic: [profile.durability for profile in connection.ext.offered_qos_profiles]
            for connection in reader.connections
        }
    assert messages == [(t, topic, serialize(m)) for t, topic, _, m in items]
    assert durability["/tf_static"] == [QosDurability.TRANSIENT_LOCAL]
    assert durability["/scan"] == [QosDurability.VOLATILE]


# -- files of other packages -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", ["NONE", "LZ4", "ZSTD"])
@pytest.mark.parametrize("use_chunking", [True, False])
@pytest.mark.parametrize("indexed", [True, False])
def test_files_of_the_mcap_package_are_read(
    tmp_path: Path, items: list[Any], compression: str, use_chunking: bool, indexed: bool
) -> None:
    from mcap.writer import CompressionType, IndexType, Writer

    path = tmp_path / "other.mcap"
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
    messages = read(path)
    assert [time_ns for time_ns, _, _ in messages] == sorted(time_ns for time_ns, *_ in items)
    assert sorted(map(repr, messages)) == sorted(map(repr, strip_publishers(items)))
    selected = read(path, topics=["/scan"], start_ns=10**9, end_ns=2 * 10**9)
    assert selected == [i for i in messages if i[1] == "/scan" and 10**9 <= i[0] <= 2 * 10**9]
    with open_recording(path) as recording:
        assert recording.topics["/scan"].frequency == pytest.approx(10.0)


def test_files_of_foxglove_are_read(tmp_path: Path, items: list[Any]) -> None:
    foxglove = pytest.importorskip("foxglove")
    from foxglove.mcap import MCAPWriteOptions

    path = tmp_path / "other.mcap"
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
    assert read(path) == strip_publishers(items)
