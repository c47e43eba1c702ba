"""What a tree's nodes wait for, in the order in which it is due."""

from __future__ import annotations

import heapq
from collections.abc import Iterator


class Timers:
    """Alarms of nodes, by the node's number."""

    def __init__(self) -> None:
        self._queue: list[tuple[int, int, int]] = []
        self._made = 0

    def add(self, uid: int, due_ns: int) -> None:
        """Have the node called at a time [ns]."""
        self._made += 1
        heapq.heappush(self._queue, (due_ns, self._made, uid))

    def cancel(self, uid: int) -> None:
        """Forget what a node waits for."""
        if any(item[2] == uid for item in self._queue):
            self._queue = [item for item in self._queue if item[2] != uid]
            heapq.heapify(self._queue)

    @property
    def next_ns(self) -> int | None:
        """When the next one is due [ns]."""
        return self._queue[0][0] if self._queue else None

    def due(self, now_ns: int) -> Iterator[int]:
        """Numbers of the nodes whose time has come, one after the other."""
        while self._queue and self._queue[0][0] <= now_ns:
            yield heapq.heappop(self._queue)[2]

    def save_state(self) -> tuple[int, list[tuple[int, int, int]]]:
        """As plain data."""
        return self._made, list(self._queue)

    def load_state(self, saved: tuple[int, list[tuple[int, int, int]]]) -> None:
        """Counterpart of `save`."""
        self._made, self._queue = saved[0], [tuple(item) for item in saved[1]]  # type: ignore[misc]
