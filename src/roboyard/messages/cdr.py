"""Messages ↔ bytes (CDR, little endian, with its four-byte header), types ↔ names, schemas and hashes."""

from __future__ import annotations

import struct
from typing import Any

from rosbags.interfaces import Nodetype
from rosbags.serde import SerdeError

from roboyard.errors import MessageError
from roboyard.messages.store import message_type, typestore


def type_name(message_type: type) -> str:
    """ "pkg/msg/Name" of a message class.

    Raises:
        MessageError: not a message class.
    """
    name = getattr(message_type, "__msgtype__", None)
    if not isinstance(name, str):
        raise MessageError(f"{message_type!r} is not a message type", valid="e.g. ry.msg.Twist")
    return name


def serialize(message: Any) -> bytes:
    """The message's bytes.

    Raises:
        MessageError: a field holds what its type cannot.
    """
    name = type_name(type(message))
    try:
        return bytes(typestore().serialize_cdr(message, name))
    except (SerdeError, struct.error, AttributeError, TypeError, ValueError, OverflowError) as error:
        raise MessageError(f"{name} cannot be serialised: {error}") from error


def deserialize(data: bytes | memoryview, name: str) -> Any:
    """The message of type ``name`` in ``data``.

    Raises:
        MessageError: the bytes are not one.
    """
    message_type(name)
    try:
        return typestore().deserialize_cdr(data, name)
    except (SerdeError, struct.error, ValueError, IndexError, MemoryError, OverflowError, AttributeError) as error:
        raise MessageError(f"{len(data)} bytes are no {name}: {error}") from error


def schema(name: str) -> str:
    """The definition with all it refers to, as MCAP's "ros2msg" wants it."""
    parts: dict[str, str] = {}
    _define(name, parts)
    first = parts.pop(name)
    return first + "".join(f"{'=' * 80}\nMSG: {_short(other)}\n{text}" for other, text in parts.items())


def _define(name: str, parts: dict[str, str]) -> None:
    """Put the text of ``name`` and of all it refers to into ``parts``, in order of first mention."""
    if name in parts:
        return
    parts[name] = ""
    message_type(name)
    constants, fields = typestore().fielddefs[name]
    lines = [f"{kind} {key}={value}" for key, kind, value in constants]
    for field, (what, detail) in fields:
        suffix = ""
        if what in (Nodetype.ARRAY, Nodetype.SEQUENCE):
            (inner, inner_detail), count = detail
            bound = count if what == Nodetype.ARRAY else f"<={count}"
            suffix = f"[{bound if count else ''}]"
            what, detail = inner, inner_detail
        if what == Nodetype.NAME:
            _define(detail, parts)
            lines.append(f"{_short(detail)}{suffix} {field}")
        elif field != "structure_needs_at_least_one_member":
            limit = f"<={detail[1]}" if detail[0] == "string" and detail[1] else ""
            lines.append(f"{detail[0]}{limit}{suffix} {field}")
    parts[name] = "".join(line + "\n" for line in lines)


def _short(name: str) -> str:
    """ "pkg/Name" for messages, the whole name for parts of services and actions."""
    return name.replace("/msg/", "/")


def type_hash(name: str) -> str:
    """The RIHS01 hash of REP 2011."""
    message_type(name)
    return typestore().hash_rihs01(name)
