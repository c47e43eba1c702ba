"""Frames on the local socket: two lengths, a JSON header, and bytes (a message as CDR)."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

from roboyard.errors import MessageError

_LENGTHS = struct.Struct("!II")
MAX_HEADER = 16 * 1024 * 1024
MAX_PAYLOAD = 256 * 1024 * 1024


def send(sock: socket.socket, header: dict[str, Any], payload: bytes = b"") -> None:
    """Write one frame.

    Raises:
        OSError: the other side is gone.
    """
    head = json.dumps(header, separators=(",", ":")).encode()
    sock.sendall(_LENGTHS.pack(len(head), len(payload)) + head + payload)


def receive(sock: socket.socket) -> tuple[dict[str, Any], bytes] | None:
    """Read one frame; None when the other side closed between frames.

    Raises:
        MessageError: the bytes are not a frame, or claim to be larger than allowed.
        OSError: the connection broke or timed out.
    """
    lengths = _exactly(sock, _LENGTHS.size, at_start=True)
    if lengths is None:
        return None
    head_size, payload_size = _LENGTHS.unpack(lengths)
    if head_size > MAX_HEADER or payload_size > MAX_PAYLOAD:
        raise MessageError(f"a frame claims {head_size} + {payload_size} bytes", where="local socket")
    head = _exactly(sock, head_size)
    payload = _exactly(sock, payload_size)
    try:
        header = json.loads(head or b"")
    except ValueError as error:
        raise MessageError("a frame's header is not JSON", where="local socket") from error
    if not isinstance(header, dict) or not isinstance(header.get("op"), str):
        raise MessageError("a frame's header has no 'op'", where="local socket")
    return header, payload or b""


def _exactly(sock: socket.socket, count: int, *, at_start: bool = False) -> bytes | None:
    parts: list[bytes] = []
    missing = count
    while missing:
        part = sock.recv(min(missing, 1 << 20))
        if not part:
            if at_start and missing == count:
                return None
            raise MessageError("the connection ended inside a frame", where="local socket")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
