"""Messages to bytes and back: CDR as every ROS 2 distribution has it on the wire and in recordings."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from roboyard.errors import MessageError
from roboyard.messages.classes import message_class, type_name
from roboyard.messages.reading import MessageReader, make_reader
from roboyard.messages.writing import MessageWriter, make_writer

_HEADER = b"\x00\x01\x00\x00"  # plain CDR, little endian, no options
_ORDERS = {b"\x00\x01": "<", b"\x00\x00": ">"}
_WRITE_ERRORS = (struct.error, OverflowError, TypeError, AttributeError, ValueError)
_READ_ERRORS = (struct.error, ValueError, IndexError, OverflowError)  # UnicodeDecodeError is a ValueError

_writers: dict[type[Any], MessageWriter] = {}
_readers: dict[tuple[str, bytes], MessageReader] = {}


def serialize(message: Any) -> bytes:
    """The message as CDR, little endian, with the 4-byte header of ROS 2.

    Raises:
        MessageError: no message, or a field holds what its type forbids; names the field.
    """
    try:
        write = _writers[message.__class__]
    except KeyError:
        write = _prepare(message)
    chunks: list[Any] = [_HEADER]
    try:
        write(message, chunks.append, 0)
    except _WRITE_ERRORS as error:
        from roboyard.messages.diagnosis import explain_error

        raise explain_error(message, error) from error
    try:
        return b"".join(chunks)
    except (TypeError, ValueError, BufferError):  # arrays with gaps, e.g. one column of a matrix
        return b"".join([c.tobytes() if isinstance(c, np.ndarray) else c for c in chunks])


def deserialize(data: bytes | bytearray | memoryview, name: str) -> Any:
    """The message in ``data``; arrays inside are read-only.

    Args:
        data: CDR of either byte order, with its header.
        name: Type as ``message_type`` takes it.

    Raises:
        MessageError: unknown type, or the bytes are not a message of it.
    """
    if not isinstance(data, bytes):
        data = _as_bytes(data)
    try:
        read = _readers[name, data[:2]]
    except KeyError:
        read = _prepare_reader(name, bytes(data[:4]))
    end = len(data)
    try:
        message, pos = read(data, 4, end)
    except _READ_ERRORS as error:
        if end < 4:
            raise _bad_header(data, name) from None
        raise MessageError(f"bytes are no {name}: {error}", valid="CDR of that type") from error
    if not 0 <= end - pos <= 3:  # writers may pad to 4
        raise MessageError(f"bytes are no {name}: {end - pos} bytes left over", valid="CDR of that type")
    return message


def _as_bytes(data: Any) -> bytes:
    try:
        return memoryview(data).tobytes()
    except TypeError as error:
        raise MessageError(f"{type(data).__name__} where bytes belong") from error


def _prepare(message: Any) -> MessageWriter:
    name = type_name(message)
    if message.__class__ is not message_class(name):
        raise MessageError(f"{message!r}"[:200] + " is no message", valid="e.g. ry.msg.Twist()")
    write = _writers[message.__class__] = make_writer(name, 8)
    return write


def _prepare_reader(name: str, header: bytes) -> MessageReader:
    from roboyard.messages.types import full_name

    if len(header) < 4 or header[:2] not in _ORDERS:
        raise _bad_header(header, name)
    read = _readers[name, header[:2]] = make_reader(full_name(name), 8, _ORDERS[header[:2]])
    return read


def _bad_header(header: bytes, name: str) -> MessageError:
    return MessageError(
        f"bytes are no {name}: header {header[:4].hex(' ') or 'missing'}",
        valid="00 01 00 00 or 00 00 00 00: plain CDR",
    )
