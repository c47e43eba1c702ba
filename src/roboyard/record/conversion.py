"""Converts recordings to MCAP, and recovers MCAP files whose writer was killed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from roboyard.config import atomic_path
from roboyard.errors import RecordingError
from roboyard.messages import serialize
from roboyard.record import mcap_format as mcap
from roboyard.record.formats import open_recording
from roboyard.record.mcap_reader import McapRecording, iterate_messages
from roboyard.record.mcap_writer import ChannelState, McapFile, McapWriter
from roboyard.record.message_decoder import decompress_message, recorded_definition_override_text
from roboyard.record.recording import RecordedChannel, Recording


@dataclass(frozen=True, slots=True)
class ConversionResult:
    """Result of `recover` or `convert`.

    Attributes:
        message_count: Number of messages in the new file.
        start_ns: Time of the first message [ns].
        end_ns: Time of the last message [ns].
        warnings: Data that was skipped, one sentence each.
    """

    message_count: int
    start_ns: int
    end_ns: int
    warnings: tuple[str, ...]


def recover(path: Path | str, out: Path | str, *, overwrite: bool = False) -> ConversionResult:
    """Copy every complete chunk of an MCAP file into a new, fully indexed file that other tools open.

    Chunks are copied unchanged; incomplete or damaged ones are skipped with a warning.

    Args:
        path: The incomplete recording.
        out: The new file; must differ from `path`.
        overwrite: Replace an existing file `out`.

    Raises:
        RecordingError: `path` is not an MCAP file, or `out` exists or cannot be written.
    """
    source = Path(path)
    _check_distinct_files(source, Path(out))
    opened = open_recording(source)
    with opened:
        if not isinstance(opened, McapRecording):
            raise RecordingError(
                f"is a {opened.format} recording, which cannot be recovered", location=str(path), valid="an MCAP file"
            )
        warnings = list(opened.contents.problems)
        contents = opened.contents
        with _replacement(Path(out), overwrite=overwrite) as written:
            target = McapFile(written, contents.metadata, profile=contents.profile, overwrite=overwrite)
            _copy_blocks(opened, target, warnings)
            target.close()
        return ConversionResult(target.message_count, *target.time_range, tuple(warnings))


@contextmanager
def _replacement(out: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield the path to write to: `out` itself if it is new, else a temporary file that replaces it when complete.

    Raises:
        RecordingError: `out` cannot be written.
    """
    if not (overwrite and out.is_file()):
        yield out
        return
    written = out
    try:
        with atomic_path(out, has_target_suffix=True) as written:
            yield written
    except RecordingError as error:
        if error.location == str(written):
            error.location = str(out)
        raise
    except OSError as error:
        raise RecordingError(f"cannot be written: {error.strerror}", location=str(out)) from error


def _copy_blocks(source: McapRecording, target: McapFile, warnings: list[str]) -> None:
    contents = source.contents
    head = b"".join(target.add_schema(schema) for schema in contents.schemas.values())
    head += b"".join(target.add_channel(channel) for channel in contents.channels.values())
    for block in contents.blocks:
        try:
            raw, data = source.block_data(block)
        except RecordingError as error:  # the index listed this chunk, so the scan has not checked it
            warnings.append(error.message)
            continue
        if block.is_chunk:
            chunk = mcap.Chunk.decode(raw[9:])
        else:  # messages outside chunks need their channel records in front of them
            data = head + data
            chunk = mcap.Chunk(block.start_ns, block.end_ns, len(data), zlib.crc32(data), "", data)
        index: dict[int, list[int]] = {}
        for channel_id, time_ns, body_start, _ in iterate_messages(data):
            index.setdefault(channel_id, []).extend((time_ns, body_start - mcap.MESSAGE_HEAD.size))
        target.append_chunk(chunk, dict(sorted(index.items())))


def convert(source: Path | str, out: Path | str, *, overwrite: bool = False) -> ConversionResult:
    """Convert any recording (rosbag1, rosbag2, CARMEN, MCAP) to an MCAP file with ROS 2 messages.

    Args:
        source: The recording, a file or folder.
        out: The new file.
        overwrite: Replace an existing file `out`.

    Raises:
        RecordingError: `source` cannot be read, or `out` exists or cannot be written.
    """
    _check_distinct_files(Path(source), Path(out))
    with open_recording(source) as recording:
        return write_mcap(recording, out, overwrite=overwrite)


def write_mcap(recording: Recording, out: Path | str, *, overwrite: bool = False) -> ConversionResult:
    """Write an open recording as an MCAP file with ROS 2 messages.

    Messages whose type differs from ROS 2 Jazzy's or is unknown there keep the recording's definition.

    Args:
        recording: The open recording.
        out: The new file.
        overwrite: Replace an existing file `out`.

    Raises:
        RecordingError: A message cannot be read (the messages before it are kept, except when `out` existed before), or
            `out` exists or cannot be written.
    """
    with _replacement(Path(out), overwrite=overwrite) as written:
        return _write_messages(recording, written, Path(out), overwrite=overwrite)


def _write_messages(recording: Recording, written: Path, out: Path, *, overwrite: bool) -> ConversionResult:
    copiers: dict[RecordedChannel, _ChannelCopier] = {}
    count = 0
    start_ns, end_ns = recording.start_ns, recording.end_ns
    with McapWriter(written, recording.metadata, overwrite=overwrite) as writer:
        channels = [channel for channel in recording.channels if channel.encoding in ("cdr", "ros1")]
        for channel in recording.channels:
            if channel.encoding not in ("cdr", "ros1") and channel.count:
                sentence = f"{channel.topic} was skipped: unsupported encoding '{channel.encoding}'"
                recording.warnings.append(sentence)
        try:
            for time_ns, channel, data in recording.raw_messages_of_channels(channels):
                copier = copiers.get(channel)
                if copier is None:
                    copier = copiers[channel] = _ChannelCopier(recording, channel)
                copier.write(writer, time_ns, data)
                count += 1
        except RecordingError as error:
            if error.location == str(written):
                raise
            if not count:
                writer.discard()
                raise
            file_state = f"the {count} messages before it are in {out}" if written == out else f"{out} is unchanged"
            raise RecordingError(error.message, location=error.location, valid=file_state) from error
    if not count:
        start_ns = end_ns = 0
    return ConversionResult(count, start_ns, end_ns, tuple(recording.warnings))


class _ChannelCopier:
    """Writes the messages of one channel: as ROS 2 messages, or unchanged if their type is defined by the recording."""

    def __init__(self, recording: Recording, channel: RecordedChannel) -> None:
        self._source_channel = channel
        self._decode = recording.decoder(channel)
        self._definition = recorded_definition_override_text(channel)
        self._target_channel: ChannelState | None = None

    def write(self, writer: McapWriter, time_ns: int, data: bytes) -> None:
        """Copy one message."""
        message = self._decode(
            data
        )  # messages that are copied unchanged are decoded too, so that a damaged one is found here
        if self._target_channel is None:
            source_channel = self._source_channel
            self._target_channel = writer.channel(
                source_channel.topic,
                message.__msgtype__,
                source_channel.publisher,
                latched=source_channel.latched,
                definition=self._definition,
            )
        writer.write(
            self._target_channel, time_ns, serialize(message) if self._definition is None else decompress_message(data)
        )


def _check_distinct_files(source: Path, out: Path) -> None:
    """Raise RecordingError if the new file is one of the files that are read."""
    if not out.exists() or not source.exists():
        return
    files = [source, *source.glob("*")] if source.is_dir() else [source]
    if any(out.samefile(file) for file in files if file.exists()):
        raise RecordingError("is the recording itself", location=str(out), valid="another file")
