"""Timers: callbacks at a fixed period of simulated time."""

from __future__ import annotations

from roboyard.bus.executor import TIMER, Executor, ScheduledEvent
from roboyard.bus.meter import CallbackTimer


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
