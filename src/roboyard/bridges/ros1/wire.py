"""TCPROS: fields of a connection's header, and messages behind their lengths."""

from __future__ import annotations

import asyncio
import struct
from typing import Final

from roboyard.errors import MessageError

HEADER_LIMIT: Final = 1 << 20
MESSAGE_LIMIT: Final = 1 << 28
"""Claimed lengths beyond these are no messages [bytes]."""
PATIENCE: Final = 10.0
"""How long a peer may take to say who it is [wall s]."""
_LENGTH: Final = struct.Struct("<I")


def frame(data: bytes) -> bytes:
    """``data`` behind its length."""
    return _LENGTH.pack(len(data)) + data


def encode_header(fields: dict[str, str]) -> bytes:
    """A connection's header, with its length in front."""
    return frame(b"".join(frame(f"{key}={value}".encode()) for key, value in fields.items()))


def decode_header(data: bytes) -> dict[str, str]:
    """Fields of a connection's header, without its length.

    Raises:
        MessageError: it is none.
    """
    fields: dict[str, str] = {}
    position = 0
    while position < len(data):
        end = position + 4
        length = _LENGTH.unpack_from(data, position)[0] if end <= len(data) else len(data)
        key, equals, value = data[end : end + length].decode("utf-8", "replace").partition("=")
        if end + length > len(data) or not equals:
            raise MessageError(f"{len(data)} bytes are no header of a connection", valid="key=value behind lengths")
        fields[key] = value
        position = end + length
    return fields


async def read_frame(reader: asyncio.StreamReader, limit: int, what: str, first: bytes = b"") -> bytes:
    """What stands behind a length.

    Args:
        reader: The connection.
        limit: The most that is believed [bytes].
        what: For the error.
        first: The length, if it was read already.

    Raises:
        MessageError: the claimed length is beyond ``limit``.
        asyncio.IncompleteReadError: the connection ended.
    """
    length = _LENGTH.unpack(first or await reader.readexactly(4))[0]
    if length > limit:
        raise MessageError(f"claims {length} bytes for {what}", valid=f"at most {limit}")
    return await reader.readexactly(length)


async def read_header(reader: asyncio.StreamReader, first: bytes = b"") -> dict[str, str]:
    """A connection's header.

    Raises:
        MessageError: it is none.
        TimeoutError: the peer does not send it.
        asyncio.IncompleteReadError: the connection ended.
    """
    async with asyncio.timeout(PATIENCE):
        return decode_header(await read_frame(reader, HEADER_LIMIT, "a header", first))
