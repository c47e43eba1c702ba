"""Walks through an MCAP file that has no index: one whose writer was killed, or a truncated copy."""

from __future__ import annotations

from roboyard.record import mcap_format as mcap
from roboyard.record.mcap_blocks import (
    MAX_CHUNK,
    ChannelStatistics,
    DataBlock,
    McapContents,
    decompress_chunk,
    iterate_records,
    read_at,
    read_header,
)
from roboyard.record.mcap_format import MalformedRecordError

_MAX_RUN_SIZE = 1 << 20
_INVALID_OPCODE = 0


def scan_contents(fd: int, size: int) -> McapContents:
    """What the file holds, found by walking through it up to its last whole record.

    Raises:
        MalformedRecordError: it does not start as an MCAP file does.
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
    """Note one whole top-level record."""
    if opcode not in (mcap.SCHEMA, mcap.CHANNEL, mcap.MESSAGE, mcap.CHUNK, mcap.METADATA):
        return
    if end - body_start > MAX_CHUNK:
        contents.problems.append(
            f"a record of {end - body_start} bytes at byte {body_start - 9} is too large and was left out"
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
        contents.problems.append(f"the record at byte {body_start - 9} {error} and was left out")


def _add_records(contents: McapContents, data: bytes, offset: int, end: int, *, is_chunk: bool) -> None:
    schemas: dict[int, mcap.Schema] = {}
    channels: dict[int, mcap.Channel] = {}
    times: dict[int, list[int]] = {}
    for opcode, first, last in iterate_records(data):
        if opcode == mcap.MESSAGE:
            if last - first < 22:
                raise MalformedRecordError("has a message shorter than its head")
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
        raise MalformedRecordError(f"has messages of a channel ({unknown[0]}) that was never described")
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
    ):  # messages outside chunks are gathered into runs
        contents.blocks[-1] = DataBlock(
            previous.offset,
            end - previous.offset,
            False,
            min(previous.start_ns, first_ns),
            max(previous.end_ns, last_ns),
        )
    else:
        contents.blocks.append(DataBlock(offset, end - offset, is_chunk, first_ns, last_ns, frozenset(times)))
