"""Encoding and decoding of the records of the MCAP container, shared by writer and readers.

Source: the MCAP specification, https://mcap.dev/spec (version 0). All integers are little endian; a record is an opcode
byte, a 64-bit length and that many bytes of content; unknown opcodes are skipped.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

MAX_CHUNK = 256 << 20
"""Maximum uncompressed size of a chunk that is read [bytes]; writers close theirs at about 1 MiB."""

MAGIC: Final = b"\x89MCAP0\r\n"
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX, CHUNK_INDEX = 1, 2, 3, 4, 5, 6, 7, 8
STATISTICS, METADATA, METADATA_INDEX, SUMMARY_OFFSET, DATA_END = 0x0B, 0x0C, 0x0D, 0x0E, 0x0F

RECORD_HEAD: Final = struct.Struct("<BQ")
MESSAGE_HEAD: Final = struct.Struct("<BQHIQQ")
"""A message record without its data: opcode, length (22 + data), channel, sequence, log time, publish time."""
MESSAGE_FIELDS: Final = struct.Struct("<HIQQ")
CHUNK_FIELDS: Final = struct.Struct("<QQQI")
FOOTER_FIELDS: Final = struct.Struct("<QQI")
FOOTER_SIZE: Final = RECORD_HEAD.size + FOOTER_FIELDS.size
_U16, _U32, _U64 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<Q")


class MalformedRecordError(ValueError):
    """A record's content does not fit its own lengths; readers convert it to a RecordingError with a location."""


class RecordReader:
    """Reads the fields of one record in order, never beyond its end.

    Raises:
        MalformedRecordError: (every method) The content ends too early, or a text is not UTF-8.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def raw(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        end = self.position + size
        if end > len(self.data):
            raise MalformedRecordError(f"needs {end} bytes and has {len(self.data)}")
        piece = self.data[self.position : end]
        self.position = end
        return piece

    def u16(self) -> int:
        """Read an unsigned 16-bit integer."""
        return int(_U16.unpack(self.raw(2))[0])

    def u32(self) -> int:
        """Read an unsigned 32-bit integer."""
        return int(_U32.unpack(self.raw(4))[0])

    def u64(self) -> int:
        """Read an unsigned 64-bit integer."""
        return int(_U64.unpack(self.raw(8))[0])

    def text(self) -> str:
        """Read a length-prefixed UTF-8 text."""
        try:
            return self.raw(self.u32()).decode()
        except UnicodeDecodeError as error:
            raise MalformedRecordError("holds a text that is not UTF-8") from error

    def text_map(self) -> dict[str, str]:
        """Read a map of text to text."""
        map_reader = RecordReader(self.raw(self.u32()))
        result: dict[str, str] = {}
        while map_reader.position < len(map_reader.data):
            key = map_reader.text()
            result[key] = map_reader.text()
        return result

    def pairs(self) -> dict[int, int]:
        """Read a map of 16-bit to 64-bit integers."""
        body = self.raw(self.u32())
        if len(body) % 10:
            raise MalformedRecordError(f"has a map of {len(body)} bytes, not a multiple of 10")
        return dict(struct.iter_unpack("<HQ", body))


def encode_record(opcode: int, *parts: bytes) -> bytes:
    """Encode a complete record."""
    body = b"".join(parts)
    return RECORD_HEAD.pack(opcode, len(body)) + body


def encode_text(value: str) -> bytes:
    """Encode a length-prefixed UTF-8 text."""
    data = value.encode()
    return _U32.pack(len(data)) + data


def encode_text_map(values: Mapping[str, str]) -> bytes:
    """Encode a map of text to text, in the mapping's order."""
    body = b"".join(encode_text(key) + encode_text(value) for key, value in values.items())
    return _U32.pack(len(body)) + body


def encode_pairs(values: Iterable[tuple[int, int]]) -> bytes:
    """Encode a map of 16-bit to 64-bit integers, in the given order."""
    body = b"".join(struct.pack("<HQ", key, value) for key, value in values)
    return _U32.pack(len(body)) + body


@dataclass(frozen=True, slots=True)
class Schema:
    """Message schema: type name, format of the definition ("ros2msg"), and the definition."""

    id: int
    name: str
    encoding: str
    data: bytes

    def encode(self) -> bytes:
        """Encode the record."""
        return encode_record(
            SCHEMA,
            _U16.pack(self.id),
            encode_text(self.name),
            encode_text(self.encoding),
            _U32.pack(len(self.data)),
            self.data,
        )

    @classmethod
    def decode(cls, body: bytes) -> Schema:
        """Decode the content of a record."""
        fields = RecordReader(body)
        return cls(fields.u16(), fields.text(), fields.text(), fields.raw(fields.u32()))


@dataclass(frozen=True, slots=True)
class Channel:
    """Stream of messages of one schema on one topic."""

    id: int
    schema_id: int
    topic: str
    encoding: str
    metadata: Mapping[str, str]

    def encode(self) -> bytes:
        """Encode the record."""
        ids = _U16.pack(self.id) + _U16.pack(self.schema_id)
        return encode_record(
            CHANNEL, ids, encode_text(self.topic), encode_text(self.encoding), encode_text_map(self.metadata)
        )

    @classmethod
    def decode(cls, body: bytes) -> Channel:
        """Decode the content of a record."""
        fields = RecordReader(body)
        return cls(fields.u16(), fields.u16(), fields.text(), fields.text(), fields.text_map())


@dataclass(frozen=True, slots=True)
class Chunk:
    """Block of schema, channel and message records; `data` is compressed by `compression` ("", "zstd", "lz4")."""

    start_ns: int
    end_ns: int
    uncompressed_size: int
    crc: int
    compression: str
    data: bytes

    def encode(self) -> bytes:
        """Encode the record."""
        fields = CHUNK_FIELDS.pack(self.start_ns, self.end_ns, self.uncompressed_size, self.crc)
        return encode_record(CHUNK, fields, encode_text(self.compression), _U64.pack(len(self.data)), self.data)

    @classmethod
    def decode(cls, body: bytes) -> Chunk:
        """Decode the content of a record."""
        fields = RecordReader(body)
        start, end, size, crc = CHUNK_FIELDS.unpack(fields.raw(28))
        return cls(start, end, size, crc, fields.text(), fields.raw(fields.u64()))


@dataclass(frozen=True, slots=True)
class ChunkIndex:
    """Index of a chunk: its offset, its time range, and the offsets of the message indexes of its channels."""

    start_ns: int
    end_ns: int
    offset: int
    length: int
    index_offsets: Mapping[int, int]
    index_length: int
    compression: str
    compressed_size: int
    uncompressed_size: int

    def encode(self) -> bytes:
        """Encode the record."""
        return encode_record(
            CHUNK_INDEX,
            struct.pack("<QQQQ", self.start_ns, self.end_ns, self.offset, self.length),
            encode_pairs(self.index_offsets.items()),
            _U64.pack(self.index_length),
            encode_text(self.compression),
            struct.pack("<QQ", self.compressed_size, self.uncompressed_size),
        )

    @classmethod
    def decode(cls, body: bytes) -> ChunkIndex:
        """Decode the content of a record."""
        fields = RecordReader(body)
        start, end, offset, length = (fields.u64() for _ in range(4))
        return cls(start, end, offset, length, fields.pairs(), fields.u64(), fields.text(), fields.u64(), fields.u64())


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts and times of the complete file; `counts` has the number of messages by channel id."""

    messages: int
    schemas: int
    channels: int
    attachments: int
    metadata: int
    chunks: int
    start_ns: int
    end_ns: int
    counts: Mapping[int, int]

    def encode(self) -> bytes:
        """Encode the record."""
        numbers = (self.messages, self.schemas, self.channels, self.attachments, self.metadata, self.chunks)
        return encode_record(
            STATISTICS,
            struct.pack("<QHIIIIQQ", *numbers, self.start_ns, self.end_ns),
            encode_pairs(self.counts.items()),
        )

    @classmethod
    def decode(cls, body: bytes) -> Statistics:
        """Decode the content of a record."""
        fields = RecordReader(body)
        messages, schemas, channels, attachments, metadata, chunks, start, end = struct.unpack(
            "<QHIIIIQQ", fields.raw(42)
        )
        return cls(messages, schemas, channels, attachments, metadata, chunks, start, end, fields.pairs())


@dataclass(frozen=True, slots=True)
class Metadata:
    """A named set of text values."""

    name: str
    values: Mapping[str, str]

    def encode(self) -> bytes:
        """Encode the record."""
        return encode_record(METADATA, encode_text(self.name), encode_text_map(self.values))

    @classmethod
    def decode(cls, body: bytes) -> Metadata:
        """Decode the content of a record."""
        fields = RecordReader(body)
        return cls(fields.text(), fields.text_map())


def encode_message_index(channel_id: int, times_and_offsets: list[int]) -> bytes:
    """Encode the message index of one channel in one chunk, from a flat list time, offset, time, offset, …"""
    count = len(times_and_offsets)
    return encode_record(MESSAGE_INDEX, struct.pack(f"<HI{count}Q", channel_id, 8 * count, *times_and_offsets))


def encode_metadata_index(offset: int, length: int, name: str) -> bytes:
    """Encode the offset and length of the metadata record `name`."""
    return encode_record(METADATA_INDEX, struct.pack("<QQ", offset, length), encode_text(name))


def encode_summary(start: int, groups: Mapping[int, list[bytes]]) -> bytes:
    """Encode the summary section, its offsets, the footer and the closing magic bytes.

    Args:
        start: Offset in the file at which the summary section starts.
        groups: Encoded records by opcode; empty groups are omitted.
    """
    body, offsets = b"", b""
    for opcode, records in groups.items():
        if records:
            group = b"".join(records)
            offsets += encode_record(SUMMARY_OFFSET, struct.pack("<BQQ", opcode, start + len(body), len(group)))
            body += group
    head = RECORD_HEAD.pack(FOOTER, FOOTER_FIELDS.size) + struct.pack("<QQ", start, start + len(body))
    crc = zlib.crc32(body + offsets + head)
    return body + offsets + head + _U32.pack(crc) + MAGIC
