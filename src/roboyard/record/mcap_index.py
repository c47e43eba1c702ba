"""Reads the index at the end of an MCAP file, so that a large recording opens at once."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace

from roboyard.record import mcap_format as mcap
from roboyard.record.mcap_blocks import (
    ChannelStatistics,
    DataBlock,
    McapContents,
    iterate_records,
    read_at,
    read_header,
)
from roboyard.record.mcap_format import MalformedRecordError

_MAX_INDEX = 256 << 20


def read_index(fd: int, size: int) -> McapContents | None:
    """What the file holds according to its index; None when it has no usable one."""
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
        raise MalformedRecordError("has an index entry that points to no metadata")
    return mcap.Metadata.decode(read_at(fd, offset + 9, length))


def _read_channel_statistics(fd: int, channel_id: int, count: int, chunks: list[mcap.ChunkIndex]) -> ChannelStatistics:
    """Times of a channel's first and last message, from the message indexes of the chunks that may hold them."""
    channel_chunks = [chunk for chunk in chunks if channel_id in chunk.index_offsets]
    if not channel_chunks:
        raise MalformedRecordError("counts messages of a channel that no chunk holds")
    earliest, latest = min(channel_chunks, key=lambda c: c.start_ns), max(channel_chunks, key=lambda c: c.end_ns)
    candidates = [c for c in channel_chunks if c.start_ns <= earliest.end_ns or c.end_ns >= latest.start_ns]
    statistics = ChannelStatistics()
    for chunk in candidates:
        offset = chunk.index_offsets[channel_id]
        opcode, length = mcap.RECORD_HEAD.unpack(read_at(fd, offset, 9))
        limit = chunk.offset + chunk.length + chunk.index_length
        if opcode != mcap.MESSAGE_INDEX or offset + 9 + length > limit:
            raise MalformedRecordError("has an index entry that points to no message index")
        fields = mcap.RecordReader(read_at(fd, offset + 9, length))
        if fields.u16() != channel_id:
            raise MalformedRecordError("has a message index of another channel")
        for time_ns, _ in struct.iter_unpack("<QQ", fields.raw(fields.u32())):
            statistics.add(time_ns)
    return replace(statistics, count=count)
