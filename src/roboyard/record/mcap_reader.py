"""Reads MCAP recordings through their index, or by scanning the file if its writer was killed.

Files are not trusted: lengths are checked against the file size and fixed limits before use, and decompression never
yields more bytes than the chunk states.
"""

from __future__ import annotations

import heapq
import os
import struct
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path

import zstandard

from roboyard.errors import RecordingError
from roboyard.record import mcap_format as mcap
from roboyard.record.mcap_format import MAX_CHUNK, MalformedRecordError
from roboyard.record.mcap_writer import METADATA_NAME, PUBLISHER_KEY, is_latched
from roboyard.record.message_decoder import make_decoder, normalize_type_name
from roboyard.record.recording import ChannelStatistics, MessageDecoder, RawMessage, RecordedChannel, Recording

_MAX_OFFSET = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class DataBlock:
    """Consecutive records with messages: a chunk, or messages outside chunks.

    Attributes:
        offset: Offset of the block in the file [bytes].
        length: Length in the file [bytes].
        is_chunk: False for a sequence of message records outside chunks.
        start_ns: Time of the earliest message [ns].
        end_ns: Time of the latest message [ns].
        channels: Ids of the channels that have messages in the block; None if unknown.
    """

    offset: int
    length: int
    is_chunk: bool
    start_ns: int
    end_ns: int
    channels: frozenset[int] | None = None


@dataclass(slots=True)
class McapContents:
    """Contents of an MCAP file.

    Attributes:
        profile: Profile of the header, "ros2" for ROS 2.
        schemas: Schemas by id.
        channels: Channels by id.
        channel_statistics: Number of messages and their times, by channel id.
        blocks: Blocks with messages, in file order.
        metadata: Metadata records, in file order.
        data_end: Offset of the first byte after the last complete data record; index or incomplete bytes follow.
        is_complete: True if the file has its footer.
        problems: Problems found, one sentence each.
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
    """Read exactly `size` bytes of the file at `offset`.

    Raises:
        MalformedRecordError: The file ends before.
    """
    if offset + size > _MAX_OFFSET:  # pread takes signed 64-bit integers
        raise MalformedRecordError(f"refers to byte {offset}, which is beyond the largest possible file")
    data = os.pread(fd, size, offset)
    while len(data) < size:
        more = os.pread(fd, size - len(data), offset + len(data))
        if not more:
            raise MalformedRecordError(f"is truncated: the file ends at byte {offset + len(data)}")
        data += more
    return data


def decompress_chunk(chunk: mcap.Chunk) -> bytes:
    """Decompress the records of a chunk.

    Raises:
        MalformedRecordError: The chunk is too large, damaged, or has an unknown compression.
    """
    size = chunk.uncompressed_size
    if size > MAX_CHUNK:
        raise MalformedRecordError(f"states a size of {size} bytes, more than {MAX_CHUNK}")
    try:
        if chunk.compression == "zstd":
            data = zstandard.ZstdDecompressor().stream_reader(chunk.data).read(size + 1)
        elif chunk.compression == "lz4":
            import lz4.frame

            data = lz4.frame.LZ4FrameDecompressor().decompress(chunk.data, max_length=size + 1)
        elif chunk.compression == "":
            data = chunk.data
        else:
            raise MalformedRecordError(f"has the unknown compression '{chunk.compression}' (valid: zstd, lz4)")
    except (zstandard.ZstdError, RuntimeError, EOFError) as error:
        raise MalformedRecordError(f"cannot be decompressed: {error}") from error
    if len(data) != size:
        raise MalformedRecordError(f"does not contain the {size} bytes that it states")
    if chunk.crc and zlib.crc32(data) != chunk.crc:
        raise MalformedRecordError("has a wrong checksum")
    return bytes(data)


def iterate_records(data: bytes, start: int = 0) -> Iterator[tuple[int, int, int]]:
    """Iterate over (opcode, start, end) of the content of every record in `data`, beginning at offset `start`.

    Raises:
        MalformedRecordError: A record extends beyond the end.
    """
    position, size = start, len(data)
    head = mcap.RECORD_HEAD.unpack_from
    while position < size:
        if position + 9 > size:
            raise MalformedRecordError("ends inside a record header")
        opcode, length = head(data, position)
        body_start = position + 9
        position = body_start + length
        if position > size:
            raise MalformedRecordError(f"has a record of {length} bytes that extends beyond its end")
        yield opcode, body_start, position


def iterate_messages(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Iterate over (channel id, log time [ns], start, end) of every message in `data`; other records are skipped.

    Raises:
        MalformedRecordError: A record extends beyond the end, or a message is too short.
    """
    fields = mcap.MESSAGE_FIELDS.unpack_from
    for opcode, body_start, end in iterate_records(data):
        if opcode == mcap.MESSAGE:
            if end - body_start < 22:
                raise MalformedRecordError("has a message shorter than its header")
            channel_id, _, time_ns, _ = fields(data, body_start)
            yield channel_id, time_ns, body_start + 22, end


def read_header(fd: int, size: int) -> tuple[str, int]:
    """Read the header; return its profile and the offset of the first byte after it.

    Raises:
        MalformedRecordError: The file does not start like an MCAP file.
    """
    if read_at(fd, 0, 8) != mcap.MAGIC:
        raise MalformedRecordError("does not start like an MCAP file")
    opcode, length = mcap.RECORD_HEAD.unpack(read_at(fd, 8, 9))
    if opcode != mcap.HEADER or 17 + length > size or length > 1 << 20:
        raise MalformedRecordError("has no header")
    return mcap.RecordReader(read_at(fd, 17, length)).text(), 17 + length


_MAX_INDEX = 256 << 20


def read_index(fd: int, size: int) -> McapContents | None:
    """Read the contents of the file from its index; return None if the index is missing or unusable."""
    try:
        return _read_index(fd, size)
    except (MalformedRecordError, struct.error):
        return None


def _read_index(fd: int, size: int) -> McapContents | None:
    profile, data_start = read_header(fd, size)
    tail = mcap.FOOTER_SIZE + len(mcap.MAGIC)
    footer = read_at(fd, size - tail, tail)
    opcode, length = mcap.RECORD_HEAD.unpack_from(footer)
    if footer[-8:] != mcap.MAGIC or opcode != mcap.FOOTER or length != mcap.FOOTER_FIELDS.size:
        return None
    start, _, crc = mcap.FOOTER_FIELDS.unpack_from(footer, 9)
    end = size - tail
    if not data_start <= start <= end or end - start > _MAX_INDEX:
        return None
    data = read_at(fd, start, end - start)
    if crc and zlib.crc32(footer[:25], zlib.crc32(data)) != crc:
        return None
    contents = McapContents(profile=profile, data_end=start)
    statistics: mcap.Statistics | None = None
    chunks: list[mcap.ChunkIndex] = []
    for opcode, first, last in iterate_records(data):
        body = data[first:last]
        if opcode == mcap.SCHEMA:
            schema = mcap.Schema.decode(body)
            contents.schemas[schema.id] = schema
        elif opcode == mcap.CHANNEL:
            channel = mcap.Channel.decode(body)
            contents.channels[channel.id] = channel
        elif opcode == mcap.STATISTICS:
            statistics = mcap.Statistics.decode(body)
        elif opcode == mcap.CHUNK_INDEX:
            chunks.append(mcap.ChunkIndex.decode(body))
        elif opcode == mcap.METADATA_INDEX:
            fields = mcap.RecordReader(body)
            contents.metadata.append(_metadata_at(fd, fields.u64(), start))
    if statistics is None or len(chunks) != statistics.chunks:
        return None
    counts = {channel: count for channel, count in statistics.counts.items() if count}
    if sum(counts.values()) != statistics.messages or not counts.keys() <= contents.channels.keys():
        return None
    if any(chunk.offset + chunk.length > start or not chunk.index_offsets for chunk in chunks):
        return None
    chunks.sort(key=lambda chunk: chunk.offset)
    contents.blocks = [
        DataBlock(c.offset, c.length, True, c.start_ns, c.end_ns, frozenset(c.index_offsets)) for c in chunks
    ]
    contents.channel_statistics = {
        channel: _read_channel_statistics(fd, channel, count, chunks) for channel, count in counts.items()
    }
    return contents


def _metadata_at(fd: int, offset: int, limit: int) -> mcap.Metadata:
    opcode, length = mcap.RECORD_HEAD.unpack(read_at(fd, offset, 9))
    if opcode != mcap.METADATA or offset + 9 + length > limit:
        raise MalformedRecordError("has an index entry that does not refer to a metadata record")
    return mcap.Metadata.decode(read_at(fd, offset + 9, length))


def _read_channel_statistics(fd: int, channel_id: int, count: int, chunks: list[mcap.ChunkIndex]) -> ChannelStatistics:
    """Return the times of a channel's first and last message, from the message indexes of the candidate chunks."""
    channel_chunks = [chunk for chunk in chunks if channel_id in chunk.index_offsets]
    if not channel_chunks:
        raise MalformedRecordError("counts messages of a channel that no chunk contains")
    earliest, latest = min(channel_chunks, key=lambda c: c.start_ns), max(channel_chunks, key=lambda c: c.end_ns)
    candidates = [c for c in channel_chunks if c.start_ns <= earliest.end_ns or c.end_ns >= latest.start_ns]
    statistics = ChannelStatistics()
    for chunk in candidates:
        offset = chunk.index_offsets[channel_id]
        opcode, length = mcap.RECORD_HEAD.unpack(read_at(fd, offset, 9))
        limit = chunk.offset + chunk.length + chunk.index_length
        if opcode != mcap.MESSAGE_INDEX or offset + 9 + length > limit:
            raise MalformedRecordError("has an index entry that does not refer to a message index")
        fields = mcap.RecordReader(read_at(fd, offset + 9, length))
        if fields.u16() != channel_id:
            raise MalformedRecordError("has a message index of another channel")
        for time_ns, _ in struct.iter_unpack("<QQ", fields.raw(fields.u32())):
            statistics.add(time_ns)
    return replace(statistics, count=count)


_MAX_RUN_SIZE = 1 << 20
_INVALID_OPCODE = 0


def scan_contents(fd: int, size: int) -> McapContents:
    """Determine the contents of the file by scanning it up to the last complete record.

    Raises:
        MalformedRecordError: The file does not start like an MCAP file.
    """
    profile, position = read_header(fd, size)
    contents = McapContents(profile=profile, data_end=position, is_complete=False)
    while position + 9 <= size:
        opcode, length = mcap.RECORD_HEAD.unpack(read_at(fd, position, 9))
        body_start, end = position + 9, position + 9 + length
        if opcode == mcap.DATA_END:
            contents.is_complete = read_at(fd, size - len(mcap.MAGIC), len(mcap.MAGIC)) == mcap.MAGIC
            break
        if opcode == _INVALID_OPCODE or end > size:
            break
        _add_record(fd, contents, opcode, body_start, end)
        contents.data_end = position = end
    return contents


def _add_record(fd: int, contents: McapContents, opcode: int, body_start: int, end: int) -> None:
    """Add one complete top-level record to `contents`."""
    if opcode not in (mcap.SCHEMA, mcap.CHANNEL, mcap.MESSAGE, mcap.CHUNK, mcap.METADATA):
        return
    if end - body_start > MAX_CHUNK:
        contents.problems.append(
            f"a record of {end - body_start} bytes at byte {body_start - 9} is too large and was skipped"
        )
        return
    body = read_at(fd, body_start, end - body_start)
    try:
        if opcode == mcap.CHUNK:
            _add_records(contents, decompress_chunk(mcap.Chunk.decode(body)), body_start - 9, end, is_chunk=True)
        elif opcode == mcap.METADATA:
            contents.metadata.append(mcap.Metadata.decode(body))
        else:
            _add_records(contents, mcap.RECORD_HEAD.pack(opcode, len(body)) + body, body_start - 9, end, is_chunk=False)
    except MalformedRecordError as error:
        contents.problems.append(f"the record at byte {body_start - 9} {error} and was skipped")


def _add_records(contents: McapContents, data: bytes, offset: int, end: int, *, is_chunk: bool) -> None:
    schemas: dict[int, mcap.Schema] = {}
    channels: dict[int, mcap.Channel] = {}
    times: dict[int, list[int]] = {}
    for opcode, first, last in iterate_records(data):
        if opcode == mcap.MESSAGE:
            if last - first < 22:
                raise MalformedRecordError("has a message shorter than its header")
            channel_id, _, time_ns, _ = mcap.MESSAGE_FIELDS.unpack_from(data, first)
            times.setdefault(channel_id, []).append(time_ns)
        elif opcode == mcap.SCHEMA:
            schema = mcap.Schema.decode(data[first:last])
            schemas[schema.id] = schema
        elif opcode == mcap.CHANNEL:
            channel = mcap.Channel.decode(data[first:last])
            channels[channel.id] = channel
    unknown = sorted(times.keys() - channels.keys() - contents.channels.keys())
    if unknown:
        raise MalformedRecordError(f"has messages of an undefined channel ({unknown[0]})")
    contents.schemas.update(schemas)
    contents.channels.update(channels)
    if not times:
        return
    for channel_id, values in times.items():
        statistics = contents.channel_statistics.setdefault(channel_id, ChannelStatistics())
        statistics.count += len(values)
        statistics.start_ns, statistics.end_ns = min(statistics.start_ns, *values), max(statistics.end_ns, *values)
    first_ns, last_ns = min(min(v) for v in times.values()), max(max(v) for v in times.values())
    previous = contents.blocks[-1] if contents.blocks else None
    if (
        not is_chunk
        and previous is not None
        and not previous.is_chunk
        and previous.offset + previous.length == offset
        and previous.length < _MAX_RUN_SIZE
    ):  # consecutive messages outside chunks form one block
        contents.blocks[-1] = DataBlock(
            previous.offset,
            end - previous.offset,
            False,
            min(previous.start_ns, first_ns),
            max(previous.end_ns, last_ns),
        )
    else:
        contents.blocks.append(DataBlock(offset, end - offset, is_chunk, first_ns, last_ns, frozenset(times)))


_MAX_PENDING_BYTES = 1 << 30
_Item = tuple[int, int, int, RecordedChannel, bytes]


class McapRecording(Recording):
    """An MCAP file.

    Args:
        path: The file.

    Raises:
        RecordingError: The file cannot be opened, is empty, or is not an MCAP file.
    """

    format = "mcap"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise RecordingError(f"cannot be opened: {error.strerror}", location=str(path)) from error
        try:
            self._contents = self._read()
        except BaseException:
            self.close()
            raise
        contents = self._contents
        self.is_complete = contents.is_complete
        self.warnings += contents.problems
        if contents.problems:
            self.warnings.append("`roboyard bag recover` creates a complete file for other tools")
        self._by_id = {number: _recorded_channel(contents, number) for number in sorted(contents.channels)}
        self.channels = tuple(self._by_id.values())
        run_metadata = [item for item in contents.metadata if item.name == METADATA_NAME] or [
            item for item in contents.metadata if item.name != "rosbag2"
        ]
        self.metadata = {key: value for item in run_metadata for key, value in item.values.items()}

    def _read(self) -> McapContents:
        size = os.fstat(self._fd).st_size
        if size == 0:
            raise RecordingError("is empty", location=str(self.path))
        try:
            contents = read_index(self._fd, size)
            if contents is not None:
                return contents
            contents = scan_contents(self._fd, size)
        except MalformedRecordError as error:
            raise RecordingError(str(error), location=str(self.path), valid="an MCAP recording") from error
        except OSError as error:
            raise RecordingError(f"cannot be read: {error.strerror}", location=str(self.path)) from error
        if not contents.is_complete:
            lost = size - contents.data_end
            torn = f"; {lost} incomplete bytes at the end are skipped" if lost else ""
            contents.problems.insert(0, f"the end of the file is missing, for example after a kill{torn}")
        return contents

    @property
    def contents(self) -> McapContents:
        """Contents of the file, block by block."""
        return self._contents

    def close(self) -> None:
        """Close the file; closing twice is allowed."""
        super().close()
        fd, self._fd = getattr(self, "_fd", -1), -1
        if fd >= 0:
            os.close(fd)

    def _make_decoder(self, channel: RecordedChannel) -> MessageDecoder:
        return make_decoder(channel, str(self.path), self.warnings)

    def block_data(self, block: DataBlock) -> tuple[bytes, bytes]:
        """Return the bytes of a block as they are in the file, and the decompressed records.

        Raises:
            RecordingError: The block is damaged, or the recording is closed.
        """
        try:
            raw = read_at(self._fd, block.offset, block.length)
            return raw, decompress_chunk(mcap.Chunk.decode(raw[9:])) if block.is_chunk else raw
        except MalformedRecordError as error:
            problem = f"the chunk at byte {block.offset} {error}"
        except OSError as error:
            problem = f"cannot be read: {error.strerror}"
        raise RecordingError(problem, location=str(self.path), valid="`roboyard bag recover` copies the intact part")

    def _raw_messages(self, channels: Collection[RecordedChannel], start_ns: int, end_ns: int) -> Iterator[RawMessage]:
        by_id = {number: c for number, c in self._by_id.items() if any(c is item for item in channels)}
        blocks = [
            (block.start_ns, number, block)
            for number, block in enumerate(self._contents.blocks)
            if block.start_ns <= end_ns
            and block.end_ns >= start_ns
            and (block.channels is None or not block.channels.isdisjoint(by_id))
        ]
        blocks.sort(key=itemgetter(0, 1))
        pending: list[_Item] = []
        pending_bytes = 0
        for index, (first_ns, number, block) in enumerate(blocks):
            while pending and pending[0][0] < first_ns:
                time_ns, _, _, channel, data = heapq.heappop(pending)
                pending_bytes -= len(data)
                yield time_ns, channel, data
            items = self._block_messages(block, number, by_id, start_ns, end_ns)
            next_start_ns = blocks[index + 1][0] if index + 1 < len(blocks) else end_ns + 1
            if not pending and (not items or items[-1][0] < next_start_ns):  # the usual case: blocks do not overlap
                for item in items:
                    yield item[0], item[3], item[4]
                continue
            pending_bytes += sum(len(item[4]) for item in items)
            if pending_bytes > _MAX_PENDING_BYTES:
                raise RecordingError(
                    f"more than {_MAX_PENDING_BYTES} bytes of chunks overlap in time at {first_ns} ns",
                    location=str(self.path),
                )
            for item in items:
                heapq.heappush(pending, item)
        while pending:
            time_ns, _, _, channel, data = heapq.heappop(pending)
            yield time_ns, channel, data

    def _block_messages(
        self, block: DataBlock, number: int, by_id: dict[int, RecordedChannel], start_ns: int, end_ns: int
    ) -> list[_Item]:
        _, data = self.block_data(block)
        try:
            items = [
                (time_ns, number, start, by_id[channel_id], data[start:end])
                for channel_id, time_ns, start, end in iterate_messages(data)
                if channel_id in by_id and start_ns <= time_ns <= end_ns
            ]
        except MalformedRecordError as error:
            raise RecordingError(f"the chunk at byte {block.offset} {error}", location=str(self.path)) from error
        items.sort(key=itemgetter(0))
        return items


def _recorded_channel(contents: McapContents, channel_id: int) -> RecordedChannel:
    channel = contents.channels[channel_id]
    schema = contents.schemas.get(channel.schema_id)
    statistics = contents.channel_statistics.get(channel_id)
    return RecordedChannel(
        topic=channel.topic,
        type=normalize_type_name(schema.name) if schema else "",
        publisher=channel.metadata.get(PUBLISHER_KEY, ""),
        definition=schema.data.decode(errors="replace") if schema else "",
        definition_format=schema.encoding if schema else "",
        encoding=channel.encoding,
        latched=is_latched(channel.metadata.get("offered_qos_profiles", ""))
        or channel.metadata.get("latching", "") in ("1", "true"),
        count=statistics.count if statistics else 0,
        start_ns=statistics.start_ns if statistics else 0,
        end_ns=statistics.end_ns if statistics else 0,
    )
