"""The decoder reads messages by the definitions in the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

import roboyard as ry
from roboyard.errors import RecordingError
from roboyard.record import convert, open_recording, tf_tree

TimedMessages = list[tuple[int, str, Any]]


def strip_publishers(items: list[Any]) -> TimedMessages:
    return [(time_ns, topic, message) for time_ns, topic, _, message in items]


def read(path: Path, **options: Any) -> TimedMessages:
    with open_recording(path) as recording:
        return [(m.time_ns, m.topic, m.message) for m in recording.messages(**options)]


def write_one_message(
    path: Path, name: str, definition: str, data: bytes, encoding: str = "cdr", topic: str = "/a"
) -> None:
    from mcap.writer import Writer

    writer = Writer(str(path))
    writer.start("ros2", "test")
    channel = writer.register_channel(topic, encoding, writer.register_schema(name, "ros2msg", definition.encode()))
    writer.add_message(channel, 5, data, 5)
    writer.finish()


def test_unknown_type_is_read_by_the_files_definition(tmp_path: Path) -> None:
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
    types_by_name: Any = store.types
    part, stamp = types_by_name["things_msgs/msg/Part"], types_by_name["builtin_interfaces/msg/Time"](1, 2)
    message_in_file = types_by_name["things_msgs/msg/Thing"](
        types_by_name["std_msgs/msg/Header"](stamp, "f"), [part(1, 2.0), part(3, 4.0)]
    )
    path = tmp_path / "r.mcap"
    write_one_message(
        path,
        "things_msgs/msg/Thing",
        definition,
        bytes(store.serialize_cdr(message_in_file, message_in_file.__msgtype__)),
    )
    [(_, _, message)] = read(path)
    assert [(p.kind, p.weight) for p in message.parts] == [(1, 2.0), (3, 4.0)]
    assert message.header.frame_id == "f"
    registered: Any = ry.msg.things_msgs.Thing()  # the type is registered from now on
    assert type(registered) is type(message)


def test_differing_type_is_read_by_the_files_definition(tmp_path: Path) -> None:
    definition = "string data\nuint8 extra\n"
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(definition, "std_msgs/msg/String"))
    types_by_name: Any = store.types
    data = bytes(store.serialize_cdr(types_by_name["std_msgs/msg/String"]("hi", 7), "std_msgs/msg/String"))
    path = tmp_path / "r.mcap"
    write_one_message(path, "std_msgs/msg/String", definition, data)
    with open_recording(path) as recording:
        [item] = recording.messages()
        assert (item.message.data, item.message.extra) == ("hi", 7)
        assert any("differs" in warning for warning in recording.warnings)
    assert not hasattr(ry.msg.String(), "extra")


@pytest.mark.parametrize(
    ("name", "definition", "data", "encoding", "message"),
    [
        ("x_msgs/msg/Y", "what is this ?!", b"", "cdr", "definition of x_msgs/msg/Y"),
        ("x_msgs/msg/Z", "other_msgs/Unknown field", b"", "cdr", "definition of x_msgs/msg/Z"),
        ("../../etc", "int8 a", b"", "cdr", "has the invalid type"),
        ("std_msgs/msg/String", "string data\n", b"\0\1\0\0\xff\xff\xff\xff", "cdr", "not a valid std_msgs/msg/String"),
        ("std_msgs/msg/String", "string data\n", b"", "cdr", "not a valid std_msgs/msg/String"),
    ],
)
def test_bad_types_and_bytes_are_recording_errors(
    tmp_path: Path, name: str, definition: str, data: bytes, encoding: str, message: str
) -> None:
    path = tmp_path / "r.mcap"
    write_one_message(path, name, definition, data, encoding)
    with pytest.raises(RecordingError, match=message):
        read(path)


def test_other_encodings_are_listed_and_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.mcap"
    write_one_message(path, "x", "{}", b"{}", "json")
    with open_recording(path) as recording:
        assert recording.topics["/a"].count == 1
        assert list(recording.messages()) == []
        assert [data for _, _, data in recording.raw_messages()] == [b"{}"]
        with pytest.raises(RecordingError, match="json"):
            recording.messages(["/a"])


def test_type_of_the_file_survives_conversion(tmp_path: Path) -> None:
    """Conversion keeps definition and bytes, also where Roboyard defines another type of that name."""
    definition = "string data\nuint8 extra\n"
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(definition, "std_msgs/msg/String"))
    types_by_name: Any = store.types
    data = bytes(store.serialize_cdr(types_by_name["std_msgs/msg/String"]("hi", 7), "std_msgs/msg/String"))
    source, converted, converted_twice = tmp_path / "r.mcap", tmp_path / "new.mcap", tmp_path / "converted_twice.mcap"
    write_one_message(source, "std_msgs/msg/String", definition, data)
    assert convert(source, converted).message_count == 1
    convert(converted, converted_twice)
    for path in (source, converted, converted_twice):
        with open_recording(path) as recording:
            assert [item[2] for item in recording.raw_messages()] == [data]
            [item] = recording.messages()
            assert (item.message.data, item.message.extra) == ("hi", 7)
    assert converted.read_bytes() == converted_twice.read_bytes()


def test_conversion_names_dropped_topics(tmp_path: Path) -> None:
    path = tmp_path / "r.mcap"
    write_one_message(path, "x", "{}", b"{}", "json")
    result = convert(path, tmp_path / "new.mcap")
    assert (result.message_count, result.start_ns) == (0, 0)
    assert result.warnings == ("/a was skipped: unsupported encoding 'json'",)


@pytest.mark.parametrize("name", ["tf2_msgs/msg/TFMessage", "std_msgs/msg/UInt8"])
def test_invalid_transform_is_a_recording_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / "r.mcap"
    write_one_message(path, name, "uint8 data\n", b"\0\1\0\0\1", topic="/tf")
    with (
        open_recording(path) as recording,
        pytest.raises(RecordingError, match="/tf has no transforms in ROS 2's format"),
    ):
        tf_tree(recording)


def test_errors_are_short_for_any_quoted_definition(tmp_path: Path) -> None:
    path = tmp_path / "r.mcap"
    write_one_message(path, "x_msgs/msg/Y", "int8 a\n" * 500 + "what is\0 this ?!", b"")
    with pytest.raises(RecordingError) as caught:
        read(path)
    assert len(str(caught.value)) < 400 + len(str(path))
    assert str(caught.value).isprintable()
