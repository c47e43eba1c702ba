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
_CHUNK_SIZE = 1 << 18

SocketPacket = tuple[dict[str, Any], bytes]


def write_packet(sock: socket.socket, header: dict[str, Any], payload: bytes = b"") -> None:
    """Write one frame.

    Raises:
        OSError: the other side is gone.
    """
    header_bytes = json.dumps(header, separators=(",", ":")).encode()
    sock.sendall(_LENGTHS.pack(len(header_bytes), len(payload)) + header_bytes + payload)


class SocketPacketReader:
    """Reads frames; what has come of one is kept when the socket's time-out strikes in its middle."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._buffer = bytearray()

    def read(self) -> SocketPacket | None:
        """The next frame; None when the other side closed between frames.

        Raises:
            MessageError: the bytes are not a frame, or claim to be larger than allowed.
            TimeoutError: nothing, or not all of a frame, came in time; ask again.
            OSError: the connection broke.
        """
        if not self._fill(_LENGTHS.size):
            return None
        head_size, payload_size = _LENGTHS.unpack_from(self._buffer)
        if head_size > MAX_HEADER or payload_size > MAX_PAYLOAD:
            raise MessageError(
                f"a frame claims {head_size} + {payload_size} bytes",
                location="local socket",
                valid=f"at most {MAX_HEADER} of header and {MAX_PAYLOAD} of message",
            )
        header_end, end = _LENGTHS.size + head_size, _LENGTHS.size + head_size + payload_size
        if not self._fill(end):
            raise MessageError("the connection ended inside a frame", location="local socket")
        header, payload = (
            _parse_header(bytes(self._buffer[_LENGTHS.size : header_end])),
            bytes(self._buffer[header_end:end]),
        )
        del self._buffer[:end]
        return header, payload

    def _fill(self, count: int) -> bool:
        """Have ``count`` bytes; False if the other side closed before the first of a frame."""
        while len(self._buffer) < count:
            chunk = self._sock.recv(_CHUNK_SIZE)
            if not chunk:
                if self._buffer:
                    raise MessageError("the connection ended inside a frame", location="local socket")
                return False
            self._buffer += chunk
        return True


def _parse_header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or brackets without end
        raise MessageError("a frame's header is not JSON", location="local socket") from error
    if not isinstance(header, dict) or not isinstance(header.get("op"), str):
        raise MessageError("a frame's header has no 'op'", location="local socket")
    return header
