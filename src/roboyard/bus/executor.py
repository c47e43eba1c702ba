"""Deterministic executor: one clock, one event queue, one total order of events, and timers.

Events run in the order (time, priority, sequence).  Messages published at the present time are delivered before any
further event of that time; they wait in a FIFO queue, which preserves this order at a fraction of a heap's cost.
Between two times, continuous processes (physics) advance in one step.
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
"""Priorities of events at one time: start and end of faults, measurements, delayed messages, timers of nodes,
bookkeeping, and external inputs.
"""


_ROUNDS_BEFORE_STOP_CHECK, _MAX_EVENTS_PER_INSTANT = 1_000, 200_000
"""Rounds of message delivery at one time before a stop request is checked, and number of events that indicates an
endless loop.
"""


def _receiver_label(receiver: Any) -> str:
    topic = getattr(getattr(receiver, "topic", None), "name", "")
    return f"{getattr(receiver, 'node', 'a caller')}" + (f" on {topic}" if topic else "")


class MessageReceiver(Protocol):
    """Receiver of a message: a subscription, a service or a future."""

    def deliver(self, message: Any, source: str) -> None:
        """Run the receiver's callback."""


class ScheduledEvent:
    """Event in the queue; `cancel` removes it."""

    __slots__ = ("callback", "cancelled", "time_ns")

    def __init__(self, time_ns: int, callback: Callback) -> None:
        self.time_ns = time_ns
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        """Cancel the event; ignored if it has already run."""
        self.cancelled = True


class Executor:
    """Runs events in the order of simulated time.

    Attributes:
        now_ns: Present simulated time [ns].
        paused: While True, `run_until` waits and only processes external inputs; `step` still works.
        pacer: Limits the run to `real_time_factor` times wall time.
        process_inputs: Function called when all events of a time are complete; processes external inputs and returns
            whether there were any.
        ready: Deliveries at the present time: (receiver, message, name of the sender).
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

    # -- scheduling ----------------------------------------------------------------------------------------------------
    def schedule(self, time_ns: int, callback: Callback, priority: int = TIMER) -> ScheduledEvent:
        """Schedule `callback` at `time_ns` (now, if that time has passed)."""
        event = ScheduledEvent(max(time_ns, self.now_ns), callback)
        self._sequence += 1
        heapq.heappush(self._heap, (event.time_ns, priority, self._sequence, event))
        return event

    def on_advance(self, callback: Callable[[int], None]) -> Callable[[], None]:
        """Register ``callback(time_ns)``, which is called when the clock advances, before the events of the new time.

        Returns:
            A function that removes the callback.
        """
        self._advance_callbacks.append(callback)
        return lambda: self._advance_callbacks.remove(callback)

    def on_idle(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Register ``callback()``, which is called before the run waits for wall time and at its end.

        Returns:
            A function that removes the callback.
        """
        self._idle_callbacks.append(callback)
        return lambda: self._idle_callbacks.remove(callback)

    def _call_idle_callbacks(self) -> None:
        for callback in self._idle_callbacks:
            callback()

    def next_event_time_ns(self) -> int | None:
        """Return the time of the earliest scheduled event; None without events."""
        heap = self._heap
        while heap and heap[0][3].cancelled:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def event_sequence(self) -> dict[ScheduledEvent | None, int]:
        """Return all scheduled events with their sequence numbers, which order events at one time."""
        return {event: sequence for _, _, sequence, event in self._heap if not event.cancelled}

    # -- running -------------------------------------------------------------------------------------------------------
    def run_until(self, time_ns: int, stop_condition: Callable[[], bool] | None = None) -> bool:
        """Run all events up to and including `time_ns`, and set the clock to it.

        Args:
            time_ns: End time [ns].
            stop_condition: Checked when all events of a time are complete; True ends the run.

        Returns:
            True if `stop_condition` ended the run.

        Raises:
            RunError: The call comes from inside a callback.
        """
        if self._is_running:
            raise RunError("the bus is already running", valid="use timers and futures inside callbacks")
        self._is_running, self._stop_requested = True, False
        self.pacer.restart(self.now_ns)
        try:
            return self._loop(time_ns, stop_condition)
        finally:
            self._is_running = False
            self._call_idle_callbacks()

    def _loop(self, end_ns: int, stop_condition: Callable[[], bool] | None) -> bool:
        heap, ready, pop = self._heap, self.ready, heapq.heappop
        events = 0  # at the present time
        while not self._stop_requested:
            rounds = 0
            while ready:
                for _ in range(len(ready)):  # messages published by these deliveries form the next round
                    receiver, message, source = ready.popleft()
                    receiver.deliver(message, source)
                rounds += 1
                if rounds > _ROUNDS_BEFORE_STOP_CHECK:
                    if self._is_stop_requested():
                        return False
                    if rounds > _MAX_EVENTS_PER_INSTANT:
                        raise self._endless_loop_error(
                            f"endless loop of messages, last from {source} to {_receiver_label(receiver)}"
                        )
            time_ns = self.next_event_time_ns()
            if time_ns is None or time_ns > self.now_ns:  # all events of the present time are complete
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
                raise self._endless_loop_error("endless loop of timers that are scheduled for the present time")
        return False

    def _is_stop_requested(self) -> bool:
        return self._stop_requested  # another thread may have set it meanwhile

    def _endless_loop_error(self, description: str) -> RunError:
        return RunError(
            description, location=f"at {self.now_ns / 1e9:.6f} s", valid="simulated time must advance between them"
        )

    def run_for(self, seconds: float) -> None:
        """Run for `seconds` of simulated time."""
        self.run_until(self.now_ns + round(seconds * 1e9))

    def step(self) -> bool:
        """Run all events of the next scheduled time, also while paused; return False if no event is scheduled."""
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
        """End `run_until` after the present event; may be called from any thread."""
        self._stop_requested = True
        self.wake.set()

    def set_time(self, time_ns: int) -> None:
        """Set the clock forward without running events, e.g. to a recording's start.

        Raises:
            RunError: An event is scheduled before `time_ns`, or time would decrease.
        """
        first_event_ns = self.next_event_time_ns()
        if time_ns < self.now_ns or (first_event_ns is not None and first_event_ns < time_ns):
            raise RunError(
                f"cannot set the clock from {self.now_ns} ns to {time_ns} ns: this skips events or goes back"
            )
        self.now_ns = time_ns


class Timer:
    """Calls a function at ``start + k·period`` exactly; created by `Node.timer`.

    Attributes:
        period_ns: Time between calls [ns].
        next_ns: Time of the next call [ns]; -1 after cancellation.
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
        # the next call is scheduled first, so that the callback can cancel it
        self.next_ns += self.period_ns
        self._event = self._executor.schedule(self.next_ns, self._fire, self._priority)
        self._callback_timer()

    @property
    def event(self) -> ScheduledEvent | None:
        """Scheduled event of the next call; None after cancellation."""
        return self._event

    def cancel(self) -> None:
        """Cancel all further calls."""
        if self._event is not None:
            self._event.cancel()
        self._event, self.next_ns = None, -1

    def reschedule(self, next_ns: int) -> None:
        """Set the time of the next call to `next_ns`; -1 cancels the timer."""
        self.cancel()
        if next_ns >= 0:
            self.next_ns = next_ns
            self._event = self._executor.schedule(next_ns, self._fire, self._priority)

    close = cancel
