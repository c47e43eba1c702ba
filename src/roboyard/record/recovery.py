"""Mends MCAP recordings whose writer was killed, and turns other recordings into MCAP."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

from roboyard.errors import RecordingError
from roboyard.record import mcap_format as mcap
from roboyard.record.mcap_blocks import messages
from roboyard.record.mcap_file import McapFile
from roboyard.record.mcap_recording import McapRecording
from roboyard.record.reader import open_recording
from roboyard.record.recording import Recording
from roboyard.record.writer import ChannelWriter, McapWriter


@dataclass(frozen=True, slots=True)
class Recovered:
    """What ``recover`` or ``convert`` wrote.

    Attributes:
        messages: Number of messages in the new file.
        start_ns: Time of the first [ns].
        end_ns: Time of the last [ns].
        warnings: What had to be left out, one sentence each.
    """

    messages: int
    start_ns: int
    end_ns: int
    warnings: tuple[str, ...]


def recover(path: Path | str, out: Path | str, *, overwrite: bool = False) -> Recovered:
    """Write every whole chunk of an MCAP file into a new, fully indexed one that other tools open.

    Chunks are copied as they are; what is torn or damaged is left out and named.

    Args:
        path: The torn recording.
        out: The new file; another one.
        overwrite: Replace an existing ``out``.

    Raises:
        RecordingError: ``path`` is no MCAP file, or ``out`` exists or cannot be written.
    """
    source = Path(path)
    _check_other(source, Path(out))
    opened = open_recording(source)
    with opened:
        if not isinstance(opened, McapRecording):
            raise RecordingError(f"is a {opened.format} recording", where=str(path), valid="an MCAP file")
        warnings = list(opened.contents.problems)
        contents = opened.contents
        target = McapFile(Path(out), contents.metadata, profile=contents.profile, overwrite=overwrite)
        _copy(opened, target, warnings)
        target.close()
        return Recovered(target.messages, *target.span, tuple(warnings))


def _copy(source: McapRecording, target: McapFile, warnings: list[str]) -> None:
    contents = source.contents
    head = b"".join(target.add_schema(schema) for schema in contents.schemas.values())
    head += b"".join(target.add_channel(channel) for channel in contents.channels.values())
    for block in contents.blocks:
        try:
            raw, data = source.block_data(block)
        except RecordingError as error:  # an index promised it, so the walk through the file has not looked yet
            warnings.append(error.what)
            continue
        if block.is_chunk:
            chunk = mcap.Chunk.decode(raw[9:])
        else:  # bare messages need their channels before them in the chunk
            data = head + data
            chunk = mcap.Chunk(block.start_ns, block.end_ns, len(data), zlib.crc32(data), "", data)
        index: dict[int, list[int]] = {}
        for channel_id, time_ns, begin, _ in messages(data):
            index.setdefault(channel_id, []).extend((time_ns, begin - mcap.MESSAGE_HEAD.size))
        target.append_chunk(chunk, dict(sorted(index.items())))


def convert(source: Path | str, out: Path | str, *, overwrite: bool = False) -> Recovered:
    """Write any recording (rosbag1, rosbag2, CARMEN, MCAP) as an MCAP file with ROS 2 messages.

    Raises:
        RecordingError: ``source`` cannot be read, or ``out`` exists or cannot be written.
    """
    _check_other(Path(source), Path(out))
    with open_recording(source) as recording:
        return save(recording, out, overwrite=overwrite)


def save(recording: Recording, out: Path | str, *, overwrite: bool = False) -> Recovered:
    """Write an open recording as an MCAP file with ROS 2 messages.

    Raises:
        RecordingError: a message cannot be read, or ``out`` exists or cannot be written.
    """
    from roboyard.messages import serialize, type_name

    latched = {(c.topic, c.publisher): c.latched for c in recording.connections}
    channels: dict[tuple[str, str], ChannelWriter] = {}
    count = 0
    with McapWriter(Path(out), recording.metadata, overwrite=overwrite) as writer:
        for time_ns, topic, message, publisher in recording.messages():
            key = (topic, publisher)
            if key not in channels:
                channels[key] = writer.channel(topic, type_name(type(message)), publisher, latched=latched[key])
            writer.write(channels[key], time_ns, serialize(message))
            count += 1
    return Recovered(count, recording.start_ns, recording.end_ns, tuple(recording.warnings))


def _check_other(source: Path, out: Path) -> None:
    if out.exists() and source.exists() and out.samefile(source):
        raise RecordingError("is the recording itself", where=str(out), valid="another file")
