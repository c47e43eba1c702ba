"""Recordings compressed by file or by message read as the uncompressed ones; bombs and damaged files are refused."""

from __future__ import annotations

import gzip
import os
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_typestore
from tests.record.samples import make_messages, write_items

from roboyard.errors import RecordingError
from roboyard.messages import serialize, type_name
from roboyard.record import convert, open_recording


def compress_zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def read(path: Path) -> list[tuple[int, str, Any]]:
    with open_recording(path) as recording:
        return [(m.time_ns, m.topic, m.message) for m in recording.messages()]


def write_rosbag2(path: Path, items: list[Any], mode: CompressionMode | None) -> None:
    store = get_typestore(Stores.ROS2_JAZZY)
    writer = Writer2(path, version=9, storage_plugin=StoragePlugin.SQLITE3)
    if mode is not None:
        writer.set_compression(mode, CompressionFormat.ZSTD)
    with writer:
        connections: dict[str, Any] = {}
        for time_ns, topic, _, message in items:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, type_name(type(message)), typestore=store)
            writer.write(connections[topic], time_ns, serialize(message))


@pytest.mark.parametrize("mode", [CompressionMode.FILE, CompressionMode.MESSAGE])
def test_compressed_rosbag2_reads_as_plain(tmp_path: Path, items: list[Any], mode: CompressionMode) -> None:
    write_rosbag2(tmp_path / "plain", items, None)
    write_rosbag2(tmp_path / "packed", items, mode)
    expected = read(tmp_path / "plain")
    assert len(expected) == len(items)
    assert read(tmp_path / "packed") == expected
    (file,) = (path for path in (tmp_path / "packed").iterdir() if path.suffix != ".yaml")
    assert read(file) == expected, "the file without its folder"
    (tmp_path / "packed" / "metadata.yaml").unlink()
    assert read(tmp_path / "packed") == expected, "without metadata, as after a kill of the recorder"
    convert(tmp_path / "packed", tmp_path / "new.mcap")
    assert read(tmp_path / "new.mcap") == expected


@pytest.mark.parametrize(
    ("compress", "suffix"), [(gzip.compress, ".gz"), (compress_zstd, ".zst"), (compress_zstd, ".zstd")]
)
def test_compressed_file_reads_as_the_plain_file(
    tmp_path: Path, recording_file: Path, compress: Any, suffix: str
) -> None:
    compressed = tmp_path / f"packed.mcap{suffix}"
    compressed.write_bytes(compress(recording_file.read_bytes()))
    assert read(compressed) == read(recording_file)
    with open_recording(compressed) as recording:
        assert recording.path == compressed
        folder = recording._temp_dir
        assert folder is not None
        assert Path(folder.name).is_dir()
    assert not Path(folder.name).exists()


@settings(max_examples=20, deadline=None)
@given(fraction=st.floats(0.0, 1.0))
def test_truncated_compressed_file_returns_its_first_messages(
    tmp_path_factory: pytest.TempPathFactory, fraction: float
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    write_items(folder / "r.mcap", make_messages())
    complete = read(folder / "r.mcap")
    compressed = compress_zstd((folder / "r.mcap").read_bytes())
    (folder / "cut.mcap.zst").write_bytes(compressed[: int(fraction * len(compressed))])
    try:
        messages = read(folder / "cut.mcap.zst")
    except RecordingError:
        return
    assert messages == complete[: len(messages)]


def test_folder_of_mixed_files_is_one_recording(tmp_path: Path, items: list[Any]) -> None:
    folder = tmp_path / "bag"
    folder.mkdir()
    for number in range(12):
        write_items(folder / f"bag_{number}.mcap", items[number * 7 : number * 7 + 7])
    before = read(folder)
    third = folder / "bag_3.mcap"
    (folder / "bag_3.mcap.zstd").write_bytes(compress_zstd(third.read_bytes()))
    assert read(folder) == before, "a file that exists compressed and uncompressed counts once"
    third.unlink()
    assert read(folder) == before
    (folder / "bag_12.mcap").write_bytes(b"")
    with open_recording(folder) as recording:
        assert recording.count == len(before)
        assert not recording.is_complete
        assert any("bag_12.mcap was skipped: is empty" in warning for warning in recording.warnings)


def test_databases_without_metadata_are_one_recording(tmp_path: Path, items: list[Any]) -> None:
    bag, special_name = tmp_path / "bag", tmp_path / "a #1?%20 bag"
    for number, part in enumerate((items[:40], items[40:])):
        write_rosbag2(tmp_path / f"part{number}", part, None)
    bag.mkdir()
    for number in (0, 1):
        shutil.copy(tmp_path / f"part{number}" / f"part{number}.db3", bag / f"bag_{number}.db3")
    expected = [(time_ns, topic, message) for time_ns, topic, _, message in items]
    assert sorted(read(bag), key=lambda item: item[0]) == expected
    bag.rename(special_name)
    assert len(read(special_name)) == len(items), "the name has characters that are special in a URI"
    (special_name / "bag_1.db3-wal").write_bytes(b"journal")
    with open_recording(special_name) as recording:
        assert any("not merged" in warning for warning in recording.warnings)


def test_decompression_bombs_are_refused_and_leave_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roboyard.record.compressed_files._ALWAYS_ALLOWED_SIZE", 1 << 24)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    bomb = tmp_path / "bomb.db3.zstd"
    bomb.write_bytes(compress_zstd(b"SQLite format 3\0" + bytes(1 << 26)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(RecordingError, match=r"bomb\.db3\.zstd: the decompressed size exceeds"):
        open_recording(bomb)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 15, "32 MB"
    bomb.write_bytes(compress_zstd(gzip.compress(bytes(100))))
    with pytest.raises(RecordingError, match="twice"):
        open_recording(bomb)
    monkeypatch.setattr("roboyard.record.compressed_files._MIN_FREE_DISK", 1 << 60)
    with pytest.raises(RecordingError, match="not enough free disk space"):
        open_recording(bomb)
    assert [path.name for path in tmp_path.iterdir()] == ["bomb.db3.zstd"]


def test_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RecordingError, match="neither a file nor a folder"):
        open_recording(tmp_path / "pipe")
