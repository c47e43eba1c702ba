"""Frames of Foxglove's WebSocket protocol (github.com/foxglove/ws-protocol): JSON, and bytes behind an opcode."""

from __future__ import annotations

import struct
from typing import Final

from roboyard.errors import MessageError

PROTOCOLS: Final = ("foxglove.sdk.v1", "foxglove.websocket.v1")
_MESSAGE, _TIME, _RESPONSE, _ASSET = 1, 2, 3, 4
CLIENT_MESSAGE, CLIENT_CALL = 1, 2


def message(subscription: int, time_ns: int, data: bytes) -> bytes:
    """A message of a subscription."""
    return struct.pack("<BIQ", _MESSAGE, subscription, time_ns) + data


def time(time_ns: int) -> bytes:
    """What time it is."""
    return struct.pack("<BQ", _TIME, time_ns)


def response(service: int, call: int, encoding: str, data: bytes) -> bytes:
    """The answer to a call."""
    name = encoding.encode()
    return struct.pack("<BIII", _RESPONSE, service, call, len(name)) + name + data


def asset(request: int, data: bytes | None, error: str = "") -> bytes:
    """A file, or why there is none."""
    why = error.encode()
    return struct.pack("<BIBI", _ASSET, request, 0 if data is not None else 1, len(why)) + why + (data or b"")


def client_message(data: bytes) -> tuple[int, bytes]:
    """Channel and payload of what a client publishes. Raises MessageError."""
    if len(data) < 5:
        raise MessageError(f"{len(data)} bytes are no message of a client")
    return struct.unpack_from("<I", data, 1)[0], data[5:]


def client_call(data: bytes) -> tuple[int, int, str, bytes]:
    """Service, call, encoding and payload of what a client asks. Raises MessageError."""
    try:
        service, call, length = struct.unpack_from("<III", data, 1)
    except struct.error as error:
        raise MessageError(f"{len(data)} bytes are no call") from error
    if 13 + length > len(data):
        raise MessageError("a call's encoding is longer than the call")
    return service, call, data[13 : 13 + length].decode("utf-8", "replace"), data[13 + length :]
