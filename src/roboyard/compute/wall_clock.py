"""Wall clock, and pacing of simulated time to it.

It is used for measurements, timeouts of other processes and real-time factors; its readings never enter a message.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

from roboyard.errors import InputError

perf_ns = time.perf_counter_ns
"""Monotonic wall time [ns], for measuring the duration of calls."""

wall_seconds = time.monotonic
"""Monotonic wall time [s], for timeouts of other processes."""

_IDLE_SECONDS = 0.05
_MAX_LAG_SECONDS = 1.0


class Pacer:
    """Limits the speed of a run so that simulated time does not exceed ``real_time_factor`` × wall time.

    Attributes:
        real_time_factor: Simulated seconds per wall second; 0 runs as fast as possible.
        max_lag: Maximum delay of a time behind the wall clock [wall s].
        dropped_time: Wall time that could not be caught up with and was dropped [s].
    """

    def __init__(self, real_time_factor: float = 0.0) -> None:
        self._wall_ns = 0
        self._sim_ns = 0
        self._latest_ns = 0
        self.max_lag = self.dropped_time = 0.0
        self.real_time_factor = real_time_factor

    @property
    def real_time_factor(self) -> float:
        """Simulated seconds per wall second; may be set at any time."""
        return self._real_time_factor

    @real_time_factor.setter
    def real_time_factor(self, real_time_factor: float) -> None:
        if not 0.0 <= real_time_factor <= 1e6:
            raise InputError(
                f"invalid rate {real_time_factor!r}",
                valid="0 (as fast as possible) to 1e6 simulated seconds per second",
            )
        self._real_time_factor = float(real_time_factor)
        self.restart(self._latest_ns)  # otherwise a run that was fast so far would wait for the wall clock

    def restart(self, sim_ns: int) -> None:
        """Restart the pacing: at the start, after a pause, after a change of ``real_time_factor``."""
        self._wall_ns = time.monotonic_ns()
        self._sim_ns = self._latest_ns = sim_ns

    def wait(self, sim_ns: int, wake_event: Event, on_idle: Callable[[], None]) -> bool:
        """Sleep until `sim_ns` is due or `wake_event` is set; `on_idle` is called before, if there is time.

        Returns:
            True if the time is due, False if woken early.
        """
        if not self._real_time_factor:
            self._latest_ns = sim_ns
            return True
        remaining = (self._wall_ns + (sim_ns - self._sim_ns) / self._real_time_factor - time.monotonic_ns()) * 1e-9
        if remaining <= 0.0:
            self.max_lag = max(self.max_lag, -remaining)
            if remaining < -_MAX_LAG_SECONDS:  # too far behind: continue from here instead of catching up
                self.dropped_time -= remaining
                self.restart(sim_ns)
            self._latest_ns = sim_ns
            return True
        start_time = time.monotonic()
        on_idle()
        if wake_event.wait(max(remaining - (time.monotonic() - start_time), 0.0)):
            wake_event.clear()
            return False
        self._latest_ns = sim_ns
        return True


def wait_idle(wake_event: Event) -> None:
    """Sleep for a short wall time, or until `wake_event` is set; clear it."""
    wake_event.wait(_IDLE_SECONDS)
    wake_event.clear()
