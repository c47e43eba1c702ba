"""One page that is connected: what it wants to see, what waits to be sent to it, and how much it may say."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from roboyard.view.wire import ViewMessage

_MOST_WAITING = 500
"""Frames that must not replace each other and wait for a slow page; the oldest are lost."""
_RATE, _BURST = 150.0, 300.0
"""Messages a second that a page may say in the long run, and at once."""
_PATIENCE = 20_000
"""Messages too many after which a page is let go."""


@dataclass(slots=True)
class Viewer:
    """A connected page.

    Attributes:
        number: Tells pages apart, from 1 on.
        send: Sends one frame and waits until the socket has taken it.
        wants: Topics that it shows.
        dropped: Messages that were too many.
    """

    number: int
    send: Callable[[str | bytes], Awaitable[None]]
    wants: set[str] = field(default_factory=set)
    dropped: int = 0
    _newest: dict[str, ViewMessage] = field(default_factory=dict)
    _ordered: deque[str | bytes] = field(default_factory=lambda: deque(maxlen=_MOST_WAITING))
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _tokens: float = _BURST
    _seen: float | None = None

    def put(self, frame: ViewMessage) -> None:
        """Have a frame sent as soon as the page takes it, unless it does not want it."""
        if frame.topic and frame.topic not in self.wants:
            return
        if frame.key:
            self._newest[frame.key] = frame
        else:
            self._ordered.append(frame.data)
        self._wake.set()

    async def send_forever(self) -> None:
        """Send what waits; what a slow page did not take in time is replaced by what is newer."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._ordered or self._newest:
                while self._ordered:
                    await self.send(self._ordered.popleft())
                if self._newest:
                    await self.send(self._newest.pop(next(iter(self._newest))).data)

    def may_speak(self, now: float) -> bool:
        """Whether a message that arrives at ``now`` [s] is heard: not if there are too many."""
        passed = 0.0 if self._seen is None else now - self._seen
        self._seen = now
        self._tokens = min(_BURST, self._tokens + passed * _RATE)
        if self._tokens < 1.0:
            self.dropped += 1
            return False
        self._tokens -= 1.0
        return True

    @property
    def is_flood(self) -> bool:
        """Whether it said so much too much that it is let go."""
        return self.dropped > _PATIENCE
