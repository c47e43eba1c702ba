"""The deterministic executor: one clock, one event queue, one total order of events; and timers.

Events run in the order (time, priority, sequence).  Deliveries of messages at the present instant come before any
further event of that instant; they wait in a plain FIFO, which is that same order at a fraction of a heap's cost.
Between two instants continuous processes (physics) are advanced, in one step.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from threading import Event as WakeEvent
from typing import Any, Protocol

from roboyard.bus.callback_timer import CallbackTimer
from roboyard.compute.wall_clock import Pacer, wait_idle
from roboyard.errors import RunError

Callback = Callable[[], None]

FAULT, SENSOR, DELIVERY, TIMER, LATE, LAST = 10, 20, 25, 30, 90, 99
"""Priorities at one instant: faults begin and end, measurements, messages that were under way for a while, nodes'
timers, book-keeping, and last what came from outside."""


_ROUNDS_BEFORE_STOP_CHECK, _MAX_EVENTS_PER_INSTANT = 1_000, 200_000
"""Rounds of messages that set each other going at one instant: usual ones, and what must be a loop without end."""


def _receiver_label(receiver: Any) -> str:
    topic = getattr(getattr(receiver, "topic", None), "name", "")
    return f"{getattr(receiver, 'node', 'a caller')}" + (f" on {topic}" if topic else "")


class MessageReceiver(Protocol):
    """Where a message goes: a subscription, a service, a future."""

    def deliver(self, message: Any, source: str) -> None:
        """Run the receiver's callback."""


class ScheduledEvent:
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
        pacer: Its ``real_time_factor`` ties simulated time to wall time.
        process_inputs: Called whenever an instant is complete; takes external inputs and returns whether any came.
        ready: Deliveries of the present instant: (receiver, message, name of the sender).
    """

    def __init__(self) -> None:
        self.now_ns = 0
        self.paused = False
        self.pacer = Pacer()
        self.wake = WakeEvent()
        self.process_inputs: Callable[[], bool] = lambda: False
        self.ready: deque[tuple[MessageReceiver, Any, str]] = deque()
        self._advance_callbacks: list[Callable[[int], None]] = []
        self._idle_callbacks: list[Callable[[], None]] = []
        self._heap: list[tuple[int, int, int, ScheduledEvent]] = []
        self._sequence = 0
        self._stop_requested = False
        self._is_running = False

    # -- scheduling ------------------------------------------------------------------------------------------------
    def schedule(self, time_ns: int, callback: Callback, priority: int = TIMER) -> ScheduledEvent:
        """Schedule ``callback`` at ``time_ns`` (now, if that has passed)."""
        event = ScheduledEvent(max(time_ns, self.now_ns), callback)
        self._sequence += 1
        heapq.heappush(self._heap, (event.time_ns, priority, self._sequence, event))
        return event

    def on_advance(self, callback: Callable[[int], None]) -> Callable[[], None]:
        """Have ``callback(time_ns)`` called when the clock moves, before the events of the new instant.

        Returns:
            A function that takes the registration back.
        """
        self._advance_callbacks.append(callback)
        return lambda: self._advance_callbacks.remove(callback)

    def on_idle(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have ``callback()`` called whenever the run is about to wait for wall time, or has come to an end.

        Returns:
            A function that takes the registration back.
        """
        self._idle_callbacks.append(callback)
        return lambda: self._idle_callbacks.remove(callback)

    def _call_idle_callbacks(self) -> None:
        for callback in self._idle_callbacks:
            callback()

    def next_event_time_ns(self) -> int | None:
        """Time of the earliest scheduled event that still stands; None when there is none."""
        heap = self._heap
        while heap and heap[0][3].cancelled:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def event_sequence(self) -> dict[ScheduledEvent | None, int]:
        """All scheduled events that still stand, with the numbers by which they follow each other at one instant."""
        return {event: sequence for _, _, sequence, event in self._heap if not event.cancelled}

    # -- running ---------------------------------------------------------------------------------------------------
    def run_until(self, time_ns: int, stop_condition: Callable[[], bool] | None = None) -> bool:
        """Run every event up to and including ``time_ns``; the clock stands there afterwards.

        Args:
            time_ns: Where to stop [ns].
            stop_condition: Looked at whenever an instant is complete; True ends the run there.

        Returns:
            True when ``stop_condition`` became true.

        Raises:
            RunError: called from inside a callback.
        """
        if self._is_running:
            raise RunError("the bus is already running", valid="inside callbacks use timers and futures instead")
        self._is_running, self._stop_requested = True, False
        self.pacer.restart(self.now_ns)
        try:
            return self._loop(time_ns, stop_condition)
        finally:
            self._is_running = False
            self._call_idle_callbacks()

    def _loop(self, end_ns: int, stop_condition: Callable[[], bool] | None) -> bool:
        heap, ready, pop = self._heap, self.ready, heapq.heappop
        events = 0  # of the present instant
        while not self._stop_requested:
            rounds = 0
            while ready:
                for _ in range(len(ready)):  # what these set going is the next round
                    receiver, message, source = ready.popleft()
                    receiver.deliver(message, source)
                rounds += 1
                if rounds > _ROUNDS_BEFORE_STOP_CHECK:
                    if self._is_stop_requested():
                        return False
                    if rounds > _MAX_EVENTS_PER_INSTANT:
                        raise self._endless_loop_error(
                            f"messages go round and round, now from {source} to {_receiver_label(receiver)}"
                        )
            time_ns = self.next_event_time_ns()
            if time_ns is None or time_ns > self.now_ns:  # the present instant is complete
                if self.process_inputs():
                    continue
                if stop_condition is not None and stop_condition():
                    return True
                is_end_reached = time_ns is None or time_ns > end_ns
                if is_end_reached and self.now_ns >= end_ns:
                    return False
                if self.paused:
                    self._call_idle_callbacks()
                    wait_idle(self.wake)
                    self.pacer.restart(self.now_ns)
                    continue
                due_ns = end_ns if time_ns is None or is_end_reached else time_ns
                if not self.pacer.wait(due_ns, self.wake, self._call_idle_callbacks):
                    continue
                self.now_ns, events = due_ns, 0
                for callback in self._advance_callbacks:
                    callback(due_ns)
                continue
            event = pop(heap)[3]
            event.callback()
            events += 1
            if events > _MAX_EVENTS_PER_INSTANT:
                raise self._endless_loop_error("timers are set again and again for the moment that is now")
        return False

    def _is_stop_requested(self) -> bool:
        return self._stop_requested  # which another thread may have set meanwhile

    def _endless_loop_error(self, description: str) -> RunError:
        return RunError(
            description, location=f"at {self.now_ns / 1e9:.6f} s", valid="let simulated time pass between them"
        )

    def run_for(self, seconds: float) -> None:
        """Run ``seconds`` of simulated time."""
        self.run_until(self.now_ns + round(seconds * 1e9))

    def step(self) -> bool:
        """Run all events of the next instant that has any, paused or not; False when nothing is scheduled."""
        time_ns = self.next_event_time_ns()
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
        self._stop_requested = True
        self.wake.set()

    def set_time(self, time_ns: int) -> None:
        """Set the clock forward without running anything, e.g. to a recording's start.

        Raises:
            RunError: an event is scheduled before ``time_ns``, or time would go backwards.
        """
        first_event_ns = self.next_event_time_ns()
        if time_ns < self.now_ns or (first_event_ns is not None and first_event_ns < time_ns):
            raise RunError(f"the clock cannot jump from {self.now_ns} ns to {time_ns} ns over scheduled events")
        self.now_ns = time_ns


class Timer:
    """Calls back at ``start + k·period`` exactly; created by ``Node.timer``.

    Attributes:
        period_ns: Time between calls [ns].
        next_ns: Time of the next call [ns]; -1 once cancelled.
    """

    __slots__ = ("_callback_timer", "_event", "_executor", "_priority", "next_ns", "period_ns")

    def __init__(
        self,
        executor: Executor,
        period_ns: int,
        callback_timer: CallbackTimer,
        *,
        immediate: bool = False,
        priority: int = TIMER,
    ) -> None:
        self._executor = executor
        self._callback_timer = callback_timer
        self._priority = priority
        self.period_ns = period_ns
        self.next_ns = executor.now_ns + (0 if immediate else period_ns)
        self._event: ScheduledEvent | None = executor.schedule(self.next_ns, self._fire, priority)

    def _fire(self) -> None:
        # the next call is scheduled first, so that the callback may cancel it
        self.next_ns += self.period_ns
        self._event = self._executor.schedule(self.next_ns, self._fire, self._priority)
        self._callback_timer()

    @property
    def event(self) -> ScheduledEvent | None:
        """The next call as the executor knows it; None once cancelled."""
        return self._event

    def cancel(self) -> None:
        """Never call again."""
        if self._event is not None:
            self._event.cancel()
        self._event, self.next_ns = None, -1

    def reschedule(self, next_ns: int) -> None:
        """Make the next call at ``next_ns``; -1 cancels."""
        self.cancel()
        if next_ns >= 0:
            self.next_ns = next_ns
            self._event = self._executor.schedule(next_ns, self._fire, self._priority)

    close = cancel
