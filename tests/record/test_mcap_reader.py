"""Every complete chunk of a truncated, damaged or hostile file is read; the only exception is `RecordingError`."""

from __future__ import annotations

import random
import signal
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from tests.full_disk import full_disk
from tests.record.samples import make_messages, write_items

from roboyard.errors import RecordingError
from roboyard.record import convert, open_recording, recover
from roboyard.record import mcap_format as mcap
from roboyard.record.mcap_format import MAX_CHUNK
from roboyard.record.mcap_reader import McapRecording, iterate_records

ROOT = Path(__file__).parents[2]


def read(path: Path) -> list[Any]:
    with open_recording(path) as recording:
        return [(m.time_ns, m.topic, m.publisher, m.message) for m in recording.messages()]


def read_chunk_ends(path: Path) -> list[tuple[int, int]]:
    """Return (offset of the end of a chunk, number of messages up to it) for each chunk of a complete file."""
    with McapRecording(path) as recording:
        ends, count = [], 0
        for block in recording.contents.blocks:
            _, data = recording.block_data(block)
            count += sum(opcode == mcap.MESSAGE for opcode, _, _ in iterate_records(data))
            ends.append((block.offset + block.length, count))
    return ends


def test_truncated_file_returns_every_complete_chunk(tmp_path: Path, items: list[Any]) -> None:
    complete = tmp_path / "whole.mcap"
    write_items(complete, [item for item in items if item[1] == "/words"][::4])
    data, all_messages, ends = complete.read_bytes(), read(complete), read_chunk_ends(complete)
    assert len(ends) == 3
    path = tmp_path / "cut.mcap"
    for size in range(len(data)):
        path.write_bytes(data[:size])
        expected = max((count for end, count in ends if end <= size), default=0)
        try:
            messages = read(path)
        except RecordingError:
            assert size < 60  # the header is incomplete
            continue
        assert messages == all_messages[:expected], size


def test_repaired_file_contains_every_complete_chunk(tmp_path: Path, recording_file: Path) -> None:
    data, all_messages = recording_file.read_bytes(), read(recording_file)
    (_, _), (end, count), _ = read_chunk_ends(recording_file)
    truncated, repaired = tmp_path / "torn.mcap", tmp_path / "mended.mcap"
    truncated.write_bytes(data[: end + 100])
    result = recover(truncated, repaired)
    assert result.message_count == count
    assert result.end_ns == all_messages[count - 1][0]
    assert any("incomplete bytes" in warning for warning in result.warnings)
    assert read(repaired) == all_messages[:count]
    with open_recording(repaired) as recording:
        assert recording.is_complete
        assert recording.warnings == []
        assert recording.metadata["seed"] == "7"


def test_repair_of_a_complete_file_keeps_its_bytes(tmp_path: Path, recording_file: Path) -> None:
    repaired = tmp_path / "mended.mcap"
    assert recover(recording_file, repaired).warnings == ()
    assert repaired.read_bytes() == recording_file.read_bytes()


def test_repair_never_overwrites_its_source(recording_file: Path) -> None:
    before = recording_file.read_bytes()
    with pytest.raises(RecordingError, match="itself"):
        recover(recording_file, recording_file, overwrite=True)
    link = recording_file.with_name("link.mcap")
    link.hardlink_to(recording_file)
    for source, out in (
        (recording_file.parent, recording_file),  # a run folder stands for the recording in it
        (recording_file, link),
        (recording_file.parent, link),
    ):
        for write in (recover, convert):
            with pytest.raises(RecordingError, match="itself"):
                write(source, out, overwrite=True)
    assert recording_file.read_bytes() == before


@pytest.mark.parametrize("write", [recover, convert])
def test_replaced_file_stays_until_the_new_one_is_complete(
    tmp_path: Path, recording_file: Path, write: Callable[..., object]
) -> None:
    out = tmp_path / "out.mcap"
    write(recording_file, out)
    complete = out.read_bytes()
    out.write_bytes(b"the old content")
    with full_disk(500), pytest.raises((OSError, RecordingError), match=str(out)):
        write(recording_file, out, overwrite=True)
    assert out.read_bytes() == b"the old content"
    assert {path.name for path in tmp_path.iterdir()} <= {"out.mcap", recording_file.name}
    write(recording_file, out, overwrite=True)
    assert out.read_bytes() == complete


def test_repair_drops_only_the_damaged_chunk(tmp_path: Path, recording_file: Path) -> None:
    data, all_messages = bytearray(recording_file.read_bytes()), read(recording_file)
    (_, first), (end, second), _ = read_chunk_ends(recording_file)
    data[end - 20] ^= 0xFF
    path = tmp_path / "damaged.mcap"
    path.write_bytes(data)
    with pytest.raises(RecordingError, match="chunk at byte"):
        read(path)
    result = recover(path, tmp_path / "mended.mcap")
    assert len(result.warnings) == 1
    assert read(tmp_path / "mended.mcap") == all_messages[:first] + all_messages[second:]


@given(st.data())
def test_flipped_bytes_raise_only_recording_errors(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("flip")
    path = folder / "r.mcap"
    write_items(path, make_messages(1.5, 4))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(0, len(content))) or len(content) :]
    path.write_bytes(content)
    with suppress(RecordingError):
        read(path)
    try:
        recover(path, folder / "out.mcap")
    except RecordingError:
        return
    read(folder / "out.mcap")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\x00" * 100, "is not a recording"),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "is not a recording"),
        (mcap.MAGIC, "ends|header"),
        (mcap.MAGIC[:5], "ends before"),
        (mcap.MAGIC + bytes(100), "header"),
        (b"hello world\n", "unknown line keyword"),
        (b"\x1f\x8b\x08\x00rest", "cannot be read|cut off|contains no scan"),
        (b"#ROSBAG V1.2\n", "not supported"),
        (b"SQLite format 3\0" + bytes(100), "damaged|Cannot open|rosbag2"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "file.mcap"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=message) as caught:
        open_recording(path)
    assert str(path) in str(caught.value)


def test_missing_file_and_empty_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="does not exist"):
        open_recording(tmp_path / "none.mcap")
    with pytest.raises(RecordingError, match="no recording found in the folder"):
        open_recording(tmp_path)


def write_file_with_chunk(path: Path, size: int, compression: str, data: bytes, crc: int = 0) -> None:
    header = mcap.MAGIC + mcap.encode_record(mcap.HEADER, mcap.encode_text("ros2"), mcap.encode_text(""))
    path.write_bytes(header + mcap.Chunk(0, 0, size, crc, compression, data).encode())


@pytest.mark.parametrize("compression", ["zstd", "lz4", "", "brotli"])
def test_chunks_with_false_sizes_are_dropped(tmp_path: Path, compression: str) -> None:
    import lz4.frame

    bomb = bytes(10 << 20)
    compressed = {"zstd": zstandard.compress(bomb), "lz4": lz4.frame.compress(bomb)}.get(compression, b"xx")
    path = tmp_path / "bomb.mcap"
    for size in (0, 100, MAX_CHUNK + 1, 1 << 62):
        write_file_with_chunk(path, size, compression, compressed)
        with open_recording(path) as recording:
            assert recording.count == 0
            assert any("was skipped" in warning for warning in recording.warnings)


def test_chunk_with_wrong_checksum_is_dropped(tmp_path: Path) -> None:
    schema = mcap.Schema(1, "std_msgs/msg/String", "ros2msg", b"string data\n").encode()
    channel = mcap.Channel(1, 1, "/a", "cdr", {}).encode()
    text = b"\0\1\0\0" + struct.pack("<I", 3) + b"hi\0"
    message = mcap.encode_record(mcap.MESSAGE, mcap.MESSAGE_FIELDS.pack(1, 0, 5, 5), text)
    data = schema + channel + message
    path = tmp_path / "r.mcap"
    write_file_with_chunk(path, len(data), "", data, zlib.crc32(data))
    assert [m[3].data for m in read(path)] == ["hi"]
    write_file_with_chunk(path, len(data), "", data, zlib.crc32(data) ^ 1)
    assert read(path) == []


WRITER_SCRIPT = """
import itertools, sys, time
sys.path.insert(0, sys.argv[2])
import roboyard as ry
from roboyard.messages import serialize
from roboyard.record import McapWriter
writer = McapWriter(sys.argv[1])
channel = writer.channel("/words", "std_msgs/msg/String", "/talker")
for number in itertools.count():
    writer.write(channel, number * 10**7, serialize(ry.msg.String(data=f"number {number} " * 20)))
    print(number, flush=True)
"""


@pytest.mark.parametrize("seed", range(5))
def test_killed_recording_loses_at_most_one_second(tmp_path: Path, seed: int) -> None:
    path, repaired = tmp_path / "killed.mcap", tmp_path / "mended.mcap"
    command = [sys.executable, "-c", WRITER_SCRIPT, str(path), str(ROOT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        numbers = [process.stdout.readline() for _ in range(random.Random(seed).randrange(2, 3000))]
        process.send_signal(signal.SIGKILL)
        numbers += process.stdout.read().split()
    last = int(numbers[-2])  # the last line may be incomplete
    messages = read(path)
    assert [time_ns for time_ns, *_ in messages] == [number * 10**7 for number in range(len(messages))]
    assert last - len(messages) < 100 + 1
    with open_recording(path) as recording:
        assert not recording.is_complete
    assert recover(path, repaired).message_count == len(messages)
    assert read(repaired) == messages
    assert count_with_rosbags(repaired) == count_with_mcap(repaired) == len(messages)


def count_with_rosbags(path: Path) -> int:
    from rosbags.highlevel import AnyReader

    with AnyReader([path]) as reader:
        return sum(1 for _ in reader.messages())


def count_with_mcap(path: Path) -> int:
    from mcap.reader import make_reader

    with path.open("rb") as file:
        return sum(1 for _ in make_reader(file).iter_messages())
