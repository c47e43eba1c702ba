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

MESSAGES, MESSAGE_BYTES, ANSWERS = 2000, 64 * 1024 * 1024, 1000


class Outbox:
    """A queue with a thread of its own that empties it into a socket.

    Args:
        sock: Where to.
        name: Of the thread.

    Attributes:
        lost: Messages dropped so far.
        closed: Nothing is taken any more.
    """

    def __init__(self, sock: socket.socket, name: str) -> None:
        self.lost = 0
        self.closed = False
        self._sock = sock
        self._waiting: deque[tuple[dict[str, Any], bytes, bool]] = deque()  # and whether it is a message
        self._messages = 0
        self._bytes = 0
        self._ready = Condition()
        self._thread = Thread(target=self._write, name=name, daemon=True)
        self._thread.start()

    def answer(self, header: dict[str, Any], payload: bytes = b"") -> None:
        """Queue an answer; a client that asks on and on without ever reading is let go."""
        with self._ready:
            self._waiting.append((header, payload, False))
            hopeless = len(self._waiting) - self._messages > ANSWERS
            self._ready.notify()
        if hopeless:
            self.close()

    def message(self, header: dict[str, Any], payload: bytes) -> None:
        """Queue a message, dropping the oldest ones if too many or too much is waiting."""
        with self._ready:
            if self.closed:
                return
            self._waiting.append((header, payload, True))
            self._messages += 1
            self._bytes += len(payload)
            while self._messages > MESSAGES or (self._bytes > MESSAGE_BYTES and self._messages > 1):
                oldest = next(index for index, (_, _, message) in enumerate(self._waiting) if message)
                self._bytes -= len(self._waiting[oldest][1])
                self._messages -= 1
                self.lost += 1
                del self._waiting[oldest]
            self._ready.notify()

    def _write(self) -> None:
        while True:
            with self._ready:
                while not self._waiting and not self.closed:
                    self._ready.wait()
                if not self._waiting:
                    return
                header, payload, message = self._waiting.popleft()
                if message:
                    self._messages -= 1
                    self._bytes -= len(payload)
            try:
                frames.send(self._sock, header, payload)
            except OSError:
                self.close()
                return

    def close(self) -> None:
        """Hang up at once."""
        with self._ready:
            self.closed = True
            self._waiting.clear()
            self._messages = self._bytes = 0
            self._ready.notify()
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def finish(self) -> None:
        """Take nothing more; what waits is still sent."""
        with self._ready:
            self.closed = True
            self._ready.notify()

    def join(self, seconds: float) -> None:
        """Wait up to ``seconds`` of wall time until all is sent, then hang up."""
        self._thread.join(seconds)
        self.close()
