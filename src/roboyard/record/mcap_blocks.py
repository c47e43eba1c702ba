"""What an MCAP file holds, and the careful reading of its parts.

Everything read is taken for hostile: lengths are checked against the file and against fixed limits before they are
believed, and decompression never yields more than the chunk announced.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import zstandard

from roboyard.record import mcap_format as mcap
from roboyard.record.mcap_format import MalformedRecordError

MAX_CHUNK = 256 << 20
"""Largest chunk that is read, uncompressed [bytes]; writers close theirs at about 1 MiB."""
_MAX_OFFSET = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class DataBlock:
    """A run of records in the file that holds messages: a chunk, or messages outside chunks.

    Attributes:
        offset: Where it starts in the file.
        length: Its length in the file [bytes].
        is_chunk: False for a run of bare message records.
        start_ns: Earliest message [ns].
        end_ns: Latest message [ns].
        channels: Ids of the channels that have messages in it; None when not known.
    """

    offset: int
    length: int
    is_chunk: bool
    start_ns: int
    end_ns: int
    channels: frozenset[int] | None = None


@dataclass(slots=True)
class ChannelStatistics:
    """Number of messages of a channel and the times of its first and last."""

    count: int = 0
    start_ns: int = (1 << 64) - 1
    end_ns: int = 0

    def add(self, time_ns: int) -> None:
        """Count one message."""
        self.count += 1
        self.start_ns = min(self.start_ns, time_ns)
        self.end_ns = max(self.end_ns, time_ns)


@dataclass(slots=True)
class McapContents:
    """What an MCAP file holds.

    Attributes:
        profile: Of the header, "ros2" for ROS 2.
        schemas: By id.
        channels: By id.
        spans: By channel id.
        blocks: In the order of the file.
        metadata: Metadata records in the order of the file.
        end: Offset of the first byte that belongs to no whole record of the data; what follows is index or torn.
        complete: Whether the file ends as it should.
        problems: What was found amiss.
    """

    profile: str = ""
    schemas: dict[int, mcap.Schema] = field(default_factory=dict)
    channels: dict[int, mcap.Channel] = field(default_factory=dict)
    channel_statistics: dict[int, ChannelStatistics] = field(default_factory=dict)
    blocks: list[DataBlock] = field(default_factory=list)
    metadata: list[mcap.Metadata] = field(default_factory=list)
    data_end: int = 0
    is_complete: bool = True
    problems: list[str] = field(default_factory=list)


def read_at(fd: int, offset: int, size: int) -> bytes:
    """Exactly ``size`` bytes of the file at ``offset``.

    Raises:
        MalformedRecordError: the file ends before.
    """
    if offset + size > _MAX_OFFSET:  # pread takes signed 64-bit integers
        raise MalformedRecordError(f"points to byte {offset}, which no file has")
    data = os.pread(fd, size, offset)
    while len(data) < size:
        more = os.pread(fd, size - len(data), offset + len(data))
        if not more:
            raise MalformedRecordError(f"is cut off: the file ends at byte {offset + len(data)}")
        data += more
    return data


def decompress_chunk(chunk: mcap.Chunk) -> bytes:
    """The records in ``chunk``.

    Raises:
        MalformedRecordError: it is too large, damaged, or compressed in a way that is not known.
    """
    size = chunk.uncompressed_size
    if size > MAX_CHUNK:
        raise MalformedRecordError(f"announces {size} bytes, more than {MAX_CHUNK}")
    try:
        if chunk.compression == "zstd":
            data = zstandard.ZstdDecompressor().stream_reader(chunk.data).read(size + 1)
        elif chunk.compression == "lz4":
            import lz4.frame

            data = lz4.frame.LZ4FrameDecompressor().decompress(chunk.data, max_length=size + 1)
        elif chunk.compression == "":
            data = chunk.data
        else:
            raise MalformedRecordError(f"is compressed by '{chunk.compression}'; known are zstd and lz4")
    except (zstandard.ZstdError, RuntimeError, EOFError) as error:
        raise MalformedRecordError(f"does not decompress: {error}") from error
    if len(data) != size:
        raise MalformedRecordError(f"does not hold the {size} bytes it announces")
    if chunk.crc and zlib.crc32(data) != chunk.crc:
        raise MalformedRecordError("has a wrong checksum")
    return bytes(data)


def iterate_records(data: bytes, start: int = 0) -> Iterator[tuple[int, int, int]]:
    """(opcode, begin, end) of the content of every record in ``data``.

    Raises:
        MalformedRecordError: a record reaches beyond the end.
    """
    position, size = start, len(data)
    head = mcap.RECORD_HEAD.unpack_from
    while position < size:
        if position + 9 > size:
            raise MalformedRecordError("ends inside a record's head")
        opcode, length = head(data, position)
        body_start = position + 9
        position = body_start + length
        if position > size:
            raise MalformedRecordError(f"has a record of {length} bytes that reaches beyond its end")
        yield opcode, body_start, position


def iterate_messages(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """(channel id, log time [ns], begin, end) of every message in ``data``; other records are passed over.

    Raises:
        MalformedRecordError: a record reaches beyond the end or a message is too short.
    """
    fields = mcap.MESSAGE_FIELDS.unpack_from
    for opcode, body_start, end in iterate_records(data):
        if opcode == mcap.MESSAGE:
            if end - body_start < 22:
                raise MalformedRecordError("has a message shorter than its head")
            channel_id, _, time_ns, _ = fields(data, body_start)
            yield channel_id, time_ns, body_start + 22, end


def read_header(fd: int, size: int) -> tuple[str, int]:
    """The header's profile and the offset behind it.

    Raises:
        MalformedRecordError: the file does not start as an MCAP file does.
    """
    if read_at(fd, 0, 8) != mcap.MAGIC:
        raise MalformedRecordError("does not start as an MCAP file")
    opcode, length = mcap.RECORD_HEAD.unpack(read_at(fd, 8, 9))
    if opcode != mcap.HEADER or 17 + length > size or length > 1 << 20:
        raise MalformedRecordError("has no header")
    return mcap.RecordReader(read_at(fd, 17, length)).text(), 17 + length
