"""Packets of the local socket, and the send queue of one client.

A packet is two lengths, a JSON header, and bytes (a message as CDR).  Responses are never dropped; the oldest messages
are dropped when a client reads more slowly than the run publishes.
"""

from __future__ import annotations

import json
import socket
import struct
from collections import deque
from contextlib import suppress
from threading import Condition, Thread
from typing import Any

from roboyard.errors import MessageError

_LENGTHS = struct.Struct("!II")
MAX_HEADER = 16 * 1024 * 1024
MAX_PAYLOAD = 256 * 1024 * 1024
_CHUNK_SIZE = 1 << 18

SocketPacket = tuple[dict[str, Any], bytes]


def write_packet(sock: socket.socket, header: dict[str, Any], payload: bytes = b"") -> None:
    """Write one packet.

    Raises:
        OSError: The connection is closed.
    """
    header_bytes = json.dumps(header, separators=(",", ":")).encode()
    sock.sendall(_LENGTHS.pack(len(header_bytes), len(payload)) + header_bytes + payload)


class SocketPacketReader:
    """Reads packets; a partly received packet is kept when the socket times out."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._buffer = bytearray()

    def read(self) -> SocketPacket | None:
        """Read the next packet; return None if the other side closed the connection between packets.

        Raises:
            MessageError: The bytes are not a packet, or it exceeds the size limits.
            TimeoutError: No complete packet arrived in time; call again.
            OSError: The connection broke.
        """
        if not self._fill(_LENGTHS.size):
            return None
        head_size, payload_size = _LENGTHS.unpack_from(self._buffer)
        if head_size > MAX_HEADER or payload_size > MAX_PAYLOAD:
            raise MessageError(
                f"a packet has {head_size} + {payload_size} bytes, which exceeds the limits",
                location="local socket",
                valid=f"at most {MAX_HEADER} of header and {MAX_PAYLOAD} of message",
            )
        header_end, end = _LENGTHS.size + head_size, _LENGTHS.size + head_size + payload_size
        if not self._fill(end):
            raise MessageError("the connection ended inside a packet", location="local socket")
        header, payload = (
            _parse_header(bytes(self._buffer[_LENGTHS.size : header_end])),
            bytes(self._buffer[header_end:end]),
        )
        del self._buffer[:end]
        return header, payload

    def _fill(self, count: int) -> bool:
        """Receive `count` bytes; return False if the other side closed the connection before the first byte of a
        packet.
        """
        while len(self._buffer) < count:
            chunk = self._sock.recv(_CHUNK_SIZE)
            if not chunk:
                if self._buffer:
                    raise MessageError("the connection ended inside a packet", location="local socket")
                return False
            self._buffer += chunk
        return True


def _parse_header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or nested too deeply
        raise MessageError("the header of a packet is not JSON", location="local socket") from error
    if not isinstance(header, dict) or not isinstance(header.get("op"), str):
        raise MessageError("the header of a packet has no 'op'", location="local socket")
    return header


MAX_MESSAGES, MAX_MESSAGE_BYTES, MAX_RESPONSES = 2000, 64 * 1024 * 1024, 1000


class SendQueue:
    """Bounded send queue of one client; a thread writes it into a socket.

    Args:
        sock: Socket of the client.
        name: Name of the thread.

    Attributes:
        dropped: Number of messages dropped so far.
        closed: Whether the queue is closed.
    """

    def __init__(self, sock: socket.socket, name: str) -> None:
        self.dropped = 0
        self.closed = False
        self._sock = sock
        self._queue: deque[tuple[dict[str, Any], bytes, bool]] = deque()  # header, payload, whether it is a message
        self._message_count = 0
        self._message_bytes = 0
        self._ready = Condition()
        self._thread = Thread(target=self._send_queued, name=name, daemon=True)
        self._thread.start()

    def put_response(self, header: dict[str, Any], payload: bytes = b"") -> None:
        """Queue a response; a client that sends requests without reading responses is disconnected."""
        with self._ready:
            self._queue.append((header, payload, False))
            is_overloaded = len(self._queue) - self._message_count > MAX_RESPONSES
            self._ready.notify()
        if is_overloaded:
            self.close()

    def put_message(self, header: dict[str, Any], payload: bytes) -> None:
        """Queue a message; drop the oldest messages if too many messages or bytes are queued."""
        with self._ready:
            if self.closed:
                return
            self._queue.append((header, payload, True))
            self._message_count += 1
            self._message_bytes += len(payload)
            while self._message_count > MAX_MESSAGES or (
                self._message_bytes > MAX_MESSAGE_BYTES and self._message_count > 1
            ):
                oldest = next(index for index, (_, _, is_message) in enumerate(self._queue) if is_message)
                self._message_bytes -= len(self._queue[oldest][1])
                self._message_count -= 1
                self.dropped += 1
                del self._queue[oldest]
            self._ready.notify()

    def _send_queued(self) -> None:
        while True:
            with self._ready:
                while not self._queue and not self.closed:
                    self._ready.wait()
                if not self._queue:
                    return
                header, payload, is_message = self._queue.popleft()
                if is_message:
                    self._message_count -= 1
                    self._message_bytes -= len(payload)
            try:
                write_packet(self._sock, header, payload)
            except OSError:
                self.close()
                return

    def close(self) -> None:
        """Close the connection immediately."""
        with self._ready:
            self.closed = True
            self._queue.clear()
            self._message_count = self._message_bytes = 0
            self._ready.notify()
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close_after_send(self) -> None:
        """Accept no more packets; the queued ones are still sent."""
        with self._ready:
            self.closed = True
            self._ready.notify()

    def wait_sent(self, timeout: float) -> None:
        """Wait up to `timeout` seconds of wall time until all packets are sent, then close the connection."""
        self._thread.join(timeout)
        self.close()
