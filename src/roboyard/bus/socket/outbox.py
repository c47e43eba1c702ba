"""What waits to be sent to one client of the run.

Answers are never lost; of messages the oldest are, when a client does not read as fast as the run speaks.
"""

from __future__ import annotations

import socket
from collections import deque
from contextlib import suppress
from threading import Condition, Thread
from typing import Any

from roboyard.bus.socket import frames

MAX_MESSAGES, MAX_MESSAGE_BYTES, MAX_RESPONSES = 2000, 64 * 1024 * 1024, 1000


class SendQueue:
    """A queue with a thread of its own that empties it into a socket.

    Args:
        sock: Where to.
        name: Of the thread.

    Attributes:
        dropped: Messages dropped so far.
        closed: Nothing is taken any more.
    """

    def __init__(self, sock: socket.socket, name: str) -> None:
        self.dropped = 0
        self.closed = False
        self._sock = sock
        self._queue: deque[tuple[dict[str, Any], bytes, bool]] = deque()  # and whether it is a message
        self._message_count = 0
        self._message_bytes = 0
        self._ready = Condition()
        self._thread = Thread(target=self._send_queued, name=name, daemon=True)
        self._thread.start()

    def put_response(self, header: dict[str, Any], payload: bytes = b"") -> None:
        """Queue an answer; a client that asks on and on without ever reading is let go."""
        with self._ready:
            self._queue.append((header, payload, False))
            is_overloaded = len(self._queue) - self._message_count > MAX_RESPONSES
            self._ready.notify()
        if is_overloaded:
            self.close()

    def put_message(self, header: dict[str, Any], payload: bytes) -> None:
        """Queue a message, dropping the oldest ones if too many or too much is waiting."""
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
                frames.write_packet(self._sock, header, payload)
            except OSError:
                self.close()
                return

    def close(self) -> None:
        """Hang up at once."""
        with self._ready:
            self.closed = True
            self._queue.clear()
            self._message_count = self._message_bytes = 0
            self._ready.notify()
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close_after_send(self) -> None:
        """Take nothing more; what waits is still sent."""
        with self._ready:
            self.closed = True
            self._ready.notify()

    def wait_sent(self, timeout: float) -> None:
        """Wait up to ``timeout`` seconds of wall time until all is sent, then hang up."""
        self._thread.join(timeout)
        self.close()
