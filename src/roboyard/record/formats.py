"""Opens recordings: the content determines the format; folders and compressed files open like single files."""

from __future__ import annotations

import heapq
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory

from roboyard.errors import RecordingError
from roboyard.record import compressed_files
from roboyard.record import mcap_format as mcap
from roboyard.record.recording import MessageDecoder, RawMessage, RecordedChannel, Recording


class FolderRecording(Recording):
    """Several files that are read as one recording.

    A file that cannot be opened is skipped with a warning; this can be the last file of a killed recorder.

    Args:
        path: The folder.
        files: Its files, ordered by time.
        open_part: Function that opens one of them.

    Raises:
        RecordingError: None of the files can be read.
    """

    format = "rosbag2"

    def __init__(self, path: Path, files: Sequence[Path], open_part: Callable[[Path], Recording]) -> None:
        super().__init__(path)
        self._parts: list[Recording] = []
        try:
            for file in files:
                self._open(file, open_part)
            if not self._parts:
                raise RecordingError("; ".join(self.warnings), location=str(path))
        except BaseException:
            self.close()
            raise
        merged: dict[tuple[str, str, str], RecordedChannel] = {}
        for part in self._parts:
            self.is_complete = self.is_complete and part.is_complete
            self.warnings += [f"{part.path.name}: {warning}" for warning in part.warnings]
            self.metadata = {**self.metadata, **part.metadata}
            for channel in part.channels:
                key = _key(channel)
                merged[key] = _join(merged[key], channel) if key in merged else channel
        self.channels = tuple(merged.values())

    def _open(self, file: Path, open_part: Callable[[Path], Recording]) -> None:
        try:
            self._parts.append(open_part(file))
        except RecordingError as error:
            self.is_complete = False
            self.warnings.append(f"{file.name} was skipped: {error.message}")

    def close(self) -> None:
        """Close the files; closing twice is allowed."""
        super().close()
        for part in self._parts:
            part.close()

    def _make_decoder(self, channel: RecordedChannel) -> MessageDecoder:
        for part in self._parts:
            for part_channel in part.channels:
                if _key(part_channel) == _key(channel):
                    return part.decoder(part_channel)
        raise KeyError(channel.topic)

    def _raw_messages(self, channels: Collection[RecordedChannel], start_ns: int, end_ns: int) -> Iterator[RawMessage]:
        channel_by_key = {_key(channel): channel for channel in channels}

        def part_messages(part: Recording) -> Iterator[RawMessage]:
            part_channels = [channel for channel in part.channels if _key(channel) in channel_by_key]
            for time_ns, channel, data in part._raw_messages(part_channels, start_ns, end_ns):
                yield time_ns, channel_by_key[_key(channel)], data

        yield from heapq.merge(*(part_messages(part) for part in self._parts), key=itemgetter(0))


def _key(channel: RecordedChannel) -> tuple[str, str, str]:
    return channel.topic, channel.type, channel.publisher


def _join(first: RecordedChannel, second: RecordedChannel) -> RecordedChannel:
    used = [channel for channel in (first, second) if channel.count]
    return replace(
        first,
        count=first.count + second.count,
        start_ns=min((channel.start_ns for channel in used), default=0),
        end_ns=max((channel.end_ns for channel in used), default=0),
    )


_FORMATS = "an MCAP file, a rosbag2 folder or .db3, a rosbag1 .bag, or a CARMEN .clf or .log (also compressed)"
_FILE_PATTERNS = ("*.mcap", "*.db3")


def open_recording(path: Path | str) -> Recording:
    """Open a recording for reading; use it as a context manager or close it.

    Supported are MCAP (complete, still being written, or truncated by a kill), rosbag2 folders and databases, rosbag1
    files and CARMEN logs, also compressed by zstd or gzip.  All have the same interface.  For a run folder, the
    ``recording.mcap`` in it is opened.

    Args:
        path: File or folder.

    Raises:
        RecordingError: The file does not exist, is empty, or has an unknown format.
    """
    path = Path(path)
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return _open_folder(path)
        if not stat.S_ISREG(mode):  # opening a pipe would block
            raise RecordingError("is neither a file nor a folder", location=str(path), valid=_FORMATS)
        with path.open("rb") as file:
            start = file.read(256)
    except FileNotFoundError as error:
        raise RecordingError("does not exist", location=str(path), valid=_FORMATS) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RecordingError(f"cannot be opened: {reason}", location=str(path), valid=_FORMATS) from error
    return _open_file(path, start)


def _open_file(path: Path, start: bytes) -> Recording:
    if not start:
        raise RecordingError("is empty", location=str(path), valid=_FORMATS)
    if start.startswith(mcap.MAGIC):
        from roboyard.record.mcap_reader import McapRecording

        return McapRecording(path)
    if start.startswith(b"#ROSBAG V"):
        from roboyard.record.rosbag_reader import Rosbag1Recording

        return Rosbag1Recording(path)
    if start.startswith(b"SQLite format 3\0"):
        from roboyard.record.rosbag_reader import Rosbag2Recording

        return Rosbag2Recording(path)
    zipped = start.startswith(compressed_files.GZIP)
    if start.startswith(compressed_files.ZSTD) or (zipped and not _is_text(compressed_files.read_head(path, 256))):
        return _open_compressed(path)
    if zipped or _is_text(start):
        from roboyard.record.carmen_log import CarmenRecording

        return CarmenRecording(path)
    if mcap.MAGIC.startswith(start[:8]):
        raise RecordingError("the file ends before its header", location=str(path), valid=_FORMATS)
    raise RecordingError("is not a recording", location=str(path), valid=_FORMATS)


def _open_compressed(path: Path) -> Recording:
    folder = TemporaryDirectory(prefix="roboyard-")
    try:
        inner, is_complete = compressed_files.decompress_to_folder(path, Path(folder.name))
        with inner.open("rb") as file:
            start = file.read(256)
        if start.startswith((compressed_files.GZIP, compressed_files.ZSTD)):
            raise RecordingError("is compressed twice", location=str(path), valid=_FORMATS)
        recording = _open_file(inner, start)
    except RecordingError as error:
        folder.cleanup()
        raise RecordingError(error.message, location=str(path), valid=error.valid) from error
    except BaseException:
        folder.cleanup()
        raise
    recording.attach_temp_dir(folder, path)
    if not is_complete:
        recording.is_complete = False
        recording.warnings.insert(0, "the compressed file is truncated or damaged; the complete part was read")
    return recording


def _open_folder(path: Path) -> Recording:
    run_recording = path / "recording.mcap"
    if run_recording.is_file():
        return open_recording(run_recording)
    for pattern in _FILE_PATTERNS:
        files = _files_in_order(path, pattern)
        if files:
            return FolderRecording(path, files, open_recording)
    if (path / "metadata.yaml").is_file():
        raise RecordingError("has a metadata.yaml, but its .mcap or .db3 files are missing", location=str(path))
    raise RecordingError("no recording found in the folder", location=str(path), valid=_FORMATS)


def _files_in_order(path: Path, pattern: str) -> list[Path]:
    """Return the files of a folder in the order of their numbers; a decompressed file replaces its compressed twin."""
    plain = [file for file in path.glob(pattern) if file.is_file()]
    names = {file.name for file in plain}
    packed = [file for file in path.glob(f"{pattern}.zst*") if file.stem not in names]
    return sorted(plain + packed, key=_natural_sort_key)


def _natural_sort_key(path: Path) -> tuple[int, str]:
    """Return a sort key that orders name_2 before name_10."""
    number = path.name.partition(".")[0].rpartition("_")[2]
    return (int(number) if number.isdecimal() and len(number) < 18 else 0), path.name


def _is_text(start: bytes) -> bool:
    return all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in start)
