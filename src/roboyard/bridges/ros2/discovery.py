"""The graph as ROS 2's participants tell it each other: ``rmw_dds_common/ParticipantEntitiesInfo`` as bytes.

GUIDs have 16 octets since Iron, and 24 before; which one is told by the message's length when it is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from roboyard.errors import MessageError

TOPIC: Final = "ros_discovery_info"
TYPE: Final = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_"
NEW, OLD = 16, 24
_HEADER: Final = b"\0\1\0\0"
_MANY: Final = 100_000


@dataclass(slots=True)
class NodeEnds:
    """GUIDs of a node's readers and writers."""

    readers: list[bytes] = field(default_factory=list)
    writers: list[bytes] = field(default_factory=list)


def encode(participant: bytes, nodes: Mapping[str, NodeEnds], size: int = NEW) -> bytes:
    """A participant's nodes by full name, as CDR.

    Args:
        participant: Its GUID.
        nodes: By full name.
        size: Octets of a GUID on the wire: 16, or 24 for Humble and before.
    """
    parts = bytearray(participant.ljust(size, b"\0"))
    _number(parts, len(nodes))
    for name, ends in nodes.items():
        namespace, _, short = name.rpartition("/")
        _text(parts, namespace or "/")
        _text(parts, short)
        for guids in (ends.readers, ends.writers):
            _number(parts, len(guids))
            for guid in guids:
                parts += guid.ljust(size, b"\0")
    return _HEADER + bytes(parts)


def decode(data: bytes) -> tuple[bytes, dict[str, NodeEnds], int]:
    """Participant and nodes of what a peer tells, and how many octets its GUIDs have.

    Raises:
        MessageError: it is none with GUIDs of either size.
    """
    for size in (NEW, OLD):
        try:
            return (*_decode(data, size), size)
        except (struct.error, UnicodeDecodeError, ValueError):
            continue
    raise MessageError(f"{len(data)} bytes are no ParticipantEntitiesInfo")


def _decode(data: bytes, size: int) -> tuple[bytes, dict[str, NodeEnds]]:
    if data[:2] != _HEADER[:2]:
        raise ValueError("another byte order")
    body = data[4:]
    at = size

    def number() -> int:
        nonlocal at
        at += -at % 4
        (value,) = struct.unpack_from("<I", body, at)
        at += 4
        if value > _MANY:
            raise ValueError("too many")
        return int(value)

    def text() -> str:
        nonlocal at
        length = number()
        found = body[at : at + length]
        at += length
        if length == 0 or len(found) != length or found[-1]:
            raise ValueError("no text")
        return found[:-1].decode()

    def guids() -> list[bytes]:
        nonlocal at
        count = number()
        found = [body[at + size * i : at + size * (i + 1)] for i in range(count)]
        at += size * count
        if at > len(body):
            raise ValueError("too short")
        return [guid[:16] for guid in found]

    nodes = {}
    for _ in range(number()):
        namespace, short = text(), text()
        nodes[f"{namespace.rstrip('/')}/{short}"] = NodeEnds(guids(), guids())
    if not 0 <= len(body) - at <= 3:
        raise ValueError("bytes are left over")
    return body[:16], nodes


def names_by_writer(nodes: Iterable[Mapping[str, NodeEnds]]) -> dict[bytes, str]:
    """Which node each writer belongs to."""
    return {guid: name for told in nodes for name, ends in told.items() for guid in ends.writers}


def _number(parts: bytearray, value: int) -> None:
    parts += bytes(-len(parts) % 4) + struct.pack("<I", value)


def _text(parts: bytearray, value: str) -> None:
    data = value.encode() + b"\0"
    _number(parts, len(data))
    parts += data
