"""The deterministic executor: one clock, one queue, one total order of events.

Events run in the order (time, priority, sequence).  Deliveries of messages at the present instant come before any
further event of that instant; they wait in a plain FIFO, which is that same order at a fraction of a heap's cost.
Between two instants continuous processes (physics) are advanced, in one go.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from threading import Event as WakeEvent
from typing import Any, Protocol

from roboyard.compute.wall_clock import Pacer, idle
from roboyard.errors import RunError

Callback = Callable[[], None]

FAULT, SENSOR, ARRIVAL, TIMER, LATE, LAST = 10, 20, 25, 30, 90, 99
"""Priorities at one instant: faults begin and end, measurements, messages that were under way for a while, nodes'
timers, book-keeping, and last what came from outside."""


_CALM_ROUNDS, _MOST_AT_ONCE = 1_000, 200_000
"""Rounds of messages that set each other going at one instant: usual ones, and what must be a loop without end."""


def _name(receiver: Any) -> str:
    topic = getattr(getattr(receiver, "topic", None), "name", "")
    return f"{getattr(receiver, 'node', 'a caller')}" + (f" on {topic}" if topic else "")


class Receiver(Protocol):
    """Where a message goes: a subscription, a service, a future."""

    def deliver(self, message: Any, source: str) -> None:
        """Run the receiver's callback."""


class Scheduled:
    """An event in the queue; ``cancel`` takes it out."""

    __slots__ = ("callback", "cancelled", "time_ns")

    def __init__(self, time_ns: int, callback: Callback) -> None:
        self.time_ns = time_ns
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        """Make the event not happen; harmless when it already did."""
        self.cancelled = True


class Executor:
    """Runs events in order of simulated time.

    Attributes:
        now_ns: Present simulated time [ns].
        paused: While True ``run_until`` stands still and only takes in what comes from outside; ``step`` still works.
        pacer: Its ``factor`` ties simulated time to wall time.
        take_inputs: Called whenever an instant is complete; takes in what came from outside and says whether anything
            did.
        ready: Deliveries of the present instant: (receiver, message, name of the sender).
    """

    def __init__(self) -> None:
        self.now_ns = 0
        self.paused = False
        self.pacer = Pacer()
        self.wake = WakeEvent()
        self.take_inputs: Callable[[], bool] = lambda: False
        self.ready: deque[tuple[Receiver, Any, str]] = deque()
        self._advancers: list[Callable[[int], None]] = []
        self._resters: list[Callable[[], None]] = []
        self._heap: list[tuple[int, int, int, Scheduled]] = []
        self._sequence = 0
        self._stopping = False
        self._running = False

    # -- scheduling ------------------------------------------------------------------------------------------------
    def at(self, time_ns: int, callback: Callback, priority: int = TIMER) -> Scheduled:
        """Schedule ``callback`` at ``time_ns`` (now, if that has passed)."""
        event = Scheduled(max(time_ns, self.now_ns), callback)
        self._sequence += 1
        heapq.heappush(self._heap, (event.time_ns, priority, self._sequence, event))
        return event

    def on_advance(self, advance: Callable[[int], None]) -> Callable[[], None]:
        """Have ``advance(time_ns)`` called when the clock moves, before the events of the new instant.

        Returns:
            A function that takes the registration back.
        """
        self._advancers.append(advance)
        return lambda: self._advancers.remove(advance)

    def on_rest(self, rest: Callable[[], None]) -> Callable[[], None]:
        """Have ``rest()`` called whenever the run is about to wait for wall time, or has come to an end.

        Returns:
            A function that takes the registration back.
        """
        self._resters.append(rest)
        return lambda: self._resters.remove(rest)

    def _rest(self) -> None:
        for rest in self._resters:
            rest()

    def next_time_ns(self) -> int | None:
        """Time of the earliest scheduled event that still stands; None when there is none."""
        heap = self._heap
        while heap and heap[0][3].cancelled:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def sequence_of(self) -> dict[Scheduled | None, int]:
        """All scheduled events that still stand, with the numbers by which they follow each other at one instant."""
        return {event: sequence for _, _, sequence, event in self._heap if not event.cancelled}

    # -- running ---------------------------------------------------------------------------------------------------
    def run_until(self, time_ns: int, until: Callable[[], bool] | None = None) -> bool:
        """Run every event up to and including ``time_ns``; the clock stands there afterwards.

        Args:
            time_ns: Where to stop [ns].
            until: Looked at whenever an instant is complete; True ends the run there.

        Returns:
            True when ``until`` became true.

        Raises:
            RunError: called from inside a callback.
        """
        if self._running:
            raise RunError("the bus is already running", valid="inside callbacks use timers and futures instead")
        self._running, self._stopping = True, False
        self.pacer.restart(self.now_ns)
        try:
            return self._loop(time_ns, until)
        finally:
            self._running = False
            self._rest()

    def _loop(self, end_ns: int, until: Callable[[], bool] | None) -> bool:
        heap, ready, pop = self._heap, self.ready, heapq.heappop
        events = 0  # of the present instant
        while not self._stopping:
            rounds = 0
            while ready:
                for _ in range(len(ready)):  # what these set going is the next round
                    receiver, message, source = ready.popleft()
                    receiver.deliver(message, source)
                rounds += 1
                if rounds > _CALM_ROUNDS:
                    if self._is_stopping():
                        return False
                    if rounds > _MOST_AT_ONCE:
                        raise self._endless(f"messages go round and round, now from {source} to {_name(receiver)}")
            time_ns = self.next_time_ns()
            if time_ns is None or time_ns > self.now_ns:  # the present instant is complete
                if self.take_inputs():
                    continue
                if until is not None and until():
                    return True
                beyond = time_ns is None or time_ns > end_ns
                if beyond and self.now_ns >= end_ns:
                    return False
                if self.paused:
                    self._rest()
                    idle(self.wake)
                    self.pacer.restart(self.now_ns)
                    continue
                due = end_ns if time_ns is None or beyond else time_ns
                if not self.pacer.wait(due, self.wake, self._rest):
                    continue
                self.now_ns, events = due, 0
                for advance in self._advancers:
                    advance(due)
                continue
            event = pop(heap)[3]
            event.callback()
            events += 1
            if events > _MOST_AT_ONCE:
                raise self._endless("timers are set again and again for the moment that is now")
        return False

    def _is_stopping(self) -> bool:
        return self._stopping  # which another thread may have set meanwhile

    def _endless(self, what: str) -> RunError:
        return RunError(what, where=f"at {self.now_ns / 1e9:.6f} s", valid="let simulated time pass between them")

    def run_for(self, seconds: float) -> None:
        """Run ``seconds`` of simulated time."""
        self.run_until(self.now_ns + round(seconds * 1e9))

    def step(self) -> bool:
        """Run all events of the next instant that has any, paused or not; False when nothing is scheduled."""
        time_ns = self.next_time_ns()
        if time_ns is None and not self.ready:
            return False
        paused, self.paused = self.paused, False
        try:
            self.run_until(self.now_ns if time_ns is None else time_ns)
        finally:
            self.paused = paused
        return True

    def stop(self) -> None:
        """End ``run_until`` after the present event; may be called from any thread."""
        self._stopping = True
        self.wake.set()

    def seek(self, time_ns: int) -> None:
        """Set the clock forward without running anything, e.g. to a recording's start.

        Raises:
            RunError: an event is scheduled before ``time_ns``, or time would go backwards.
        """
        first = self.next_time_ns()
        if time_ns < self.now_ns or (first is not None and first < time_ns):
            raise RunError(f"the clock cannot jump from {self.now_ns} ns to {time_ns} ns over scheduled events")
        self.now_ns = time_ns
