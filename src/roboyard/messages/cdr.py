"""Serialization of messages to CDR and back, the encoding of all ROS 2 distributions on the wire and in recordings.

After serialization failed, `explain_error` finds the invalid field for the error message.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from roboyard.errors import MessageError
from roboyard.messages.cdr_code import MessageReader, MessageWriter, make_reader, make_writer
from roboyard.messages.classes import full_name, message_class, type_name
from roboyard.messages.coercion import coerce_array, coerce_bool
from roboyard.messages.message_definition import DTYPES, STRUCT_CODES, MessageDefinition, MessageField
from roboyard.messages.type_registry import definition_of


def explain_error(message: Any, error: Exception) -> MessageError:
    """Return the MessageError for `error`, which was raised while `message` was handled."""
    name = type_name(message)
    found = _find_invalid_field(definition_of(name), message, name.rsplit("/", 1)[1])
    if found is not None:
        location, field, problem = found
        return MessageError(problem, location=location, valid=f"{field.type_text()}")
    return MessageError(f"cannot be serialized: {error}", location=name)


def _find_invalid_field(
    definition: MessageDefinition, message: Any, location: str
) -> tuple[str, MessageField, str] | None:
    for field in definition.fields:
        field_location = f"{location}.{field.name}"
        try:
            value = getattr(message, field.python_name)
        except AttributeError:
            return field_location, field, "is missing"
        found = _check_value(field, value, field_location)
        if found is not None:
            return found
    return None


def _check_value(field: MessageField, value: Any, location: str) -> tuple[str, MessageField, str] | None:
    if field.arity != "one" and field.is_primitive:
        try:
            array = coerce_array(value, np.dtype(DTYPES[field.type]))
        except (TypeError, ValueError) as error:
            return location, field, str(error)
        return _check_length(field, len(array), location)
    if field.arity != "one":
        if not isinstance(value, list | tuple):
            return location, field, f"a list is required, got {_describe(value)}"
        item_field = MessageField(field.name, field.type, string_capacity=field.string_capacity)
        for index, item in enumerate(value):
            found = _check_value(item_field, item, f"{location}[{index}]")
            if found is not None:
                return found
        return _check_length(field, len(value), location)
    if field.is_message:
        found = _find_invalid_field(definition_of(field.type), value, location)
        if found is not None and not isinstance(value, message_class(field.type)):
            return location, field, f"a {field.type} is required, got {_describe(value)}"
        return found
    problem = _scalar_problem(field, value)
    return None if problem is None else (location, field, problem)


def _scalar_problem(field: MessageField, value: Any) -> str | None:
    if field.type == "string":
        if not isinstance(value, str):
            return f"a string is required, got {_describe(value)}"
        try:
            length = len(value.encode())
        except UnicodeEncodeError:
            return f"{_describe(value)} cannot be encoded as UTF-8"
        return f"has {length} bytes" if field.string_capacity and length > field.string_capacity else None
    try:
        if field.type == "bool":
            coerce_bool(value)
        else:
            struct.pack("<" + STRUCT_CODES[field.type], value)
    except (struct.error, OverflowError, TypeError, ValueError):
        return f"a {field.type} is required, got {_describe(value)}"
    return None


def _check_length(field: MessageField, length: int, location: str) -> tuple[str, MessageField, str] | None:
    wrong = length != field.size if field.arity == "array" else 0 < field.size < length
    return (location, field, f"has {length} elements") if wrong else None


def _describe(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"[:100]


_HEADER = b"\x00\x01\x00\x00"  # plain CDR, little endian, no options
_ORDERS = {b"\x00\x01": "<", b"\x00\x00": ">"}
_WRITE_ERRORS = (struct.error, OverflowError, TypeError, AttributeError, ValueError)
_READ_ERRORS = (struct.error, ValueError, IndexError, OverflowError)  # UnicodeDecodeError is a ValueError

_writers: dict[type[Any], MessageWriter] = {}
_readers: dict[tuple[str, bytes], MessageReader] = {}


def serialize(message: Any) -> bytes:
    """Serialize a message to CDR, little endian, with the 4-byte header of ROS 2.

    Raises:
        MessageError: It is not a message, or the value of a field is invalid (the error names the field).
    """
    try:
        write = _writers[message.__class__]
    except KeyError:
        write = _prepare(message)
    chunks: list[Any] = [_HEADER]
    try:
        write(message, chunks.append, 0)
    except _WRITE_ERRORS as error:
        raise explain_error(message, error) from error
    try:
        return b"".join(chunks)
    except (TypeError, ValueError, BufferError):  # non-contiguous arrays, e.g. one column of a matrix
        return b"".join([c.tobytes() if isinstance(c, np.ndarray) else c for c in chunks])


def deserialize(data: bytes | bytearray | memoryview, name: str) -> Any:
    """Deserialize a message; its arrays are read-only.

    Args:
        data: CDR of either byte order, with its header.
        name: Type as `message_type` accepts it.

    Raises:
        MessageError: The type is unknown, or the bytes are not a message of it.
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
        raise MessageError(f"the bytes are not a valid {name}: {error}", valid="CDR of that type") from error
    if not 0 <= end - pos <= 3:  # writers may pad to 4
        raise MessageError(f"the bytes are not a valid {name}: {end - pos} bytes left over", valid="CDR of that type")
    return message


def _as_bytes(data: Any) -> bytes:
    try:
        return memoryview(data).tobytes()
    except TypeError as error:
        raise MessageError(f"bytes are required, got {type(data).__name__}") from error


def _prepare(message: Any) -> MessageWriter:
    name = type_name(message)
    if message.__class__ is not message_class(name):
        raise MessageError(f"{message!r}"[:200] + " is not a message", valid="e.g. ry.msg.Twist()")
    write = _writers[message.__class__] = make_writer(name, 8)
    return write


def _prepare_reader(name: str, header: bytes) -> MessageReader:
    if len(header) < 4 or header[:2] not in _ORDERS:
        raise _bad_header(header, name)
    read = _readers[name, header[:2]] = make_reader(full_name(name), 8, _ORDERS[header[:2]])
    return read


def _bad_header(header: bytes, name: str) -> MessageError:
    return MessageError(
        f"the bytes are not a valid {name}: header {header[:4].hex(' ') or 'missing'}",
        valid="00 01 00 00 or 00 00 00 00: plain CDR",
    )
