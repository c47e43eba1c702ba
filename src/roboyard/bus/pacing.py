"""Holds a run back to the wall clock, and waits for outsiders."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

from roboyard.compute.wall_clock import perf_ns as perf_ns
from roboyard.compute.wall_clock import wall_seconds as wall_seconds
from roboyard.errors import InputError

_IDLE_SECONDS = 0.05
_MAX_LAG_SECONDS = 1.0


class Pacer:
    """Holds a run back so that simulated time does not outrun ``factor`` × wall time.

    Attributes:
        factor: Simulated seconds per wall second; 0 runs as fast as possible.
        behind: The most that a moment came late [wall s].
        given_up: How much wall time could not be caught up and was let go [s].
    """

    def __init__(self, factor: float = 0.0) -> None:
        self._wall_ns = 0
        self._sim_ns = 0
        self._latest_ns = 0
        self.behind = self.given_up = 0.0
        self.factor = factor

    @property
    def factor(self) -> float:
        """Simulated seconds per wall second; may be set at any time."""
        return self._factor

    @factor.setter
    def factor(self, factor: float) -> None:
        if not 0.0 <= factor <= 1e6:
            raise InputError(f"rate {factor!r}", valid="0 (as fast as possible) to 1e6 simulated seconds per second")
        self._factor = float(factor)
        self.restart(self._latest_ns)  # else a run that was fast until now would wait for the clock on the wall

    def restart(self, sim_ns: int) -> None:
        """Count from here: at the start, after a pause, after a change of ``factor``."""
        self._wall_ns = time.monotonic_ns()
        self._sim_ns = self._latest_ns = sim_ns

    def wait(self, sim_ns: int, wake: Event, rest: Callable[[], None]) -> bool:
        """Sleep until ``sim_ns`` is due or ``wake`` is set; ``rest`` is called before, if there is time to.

        Returns:
            True when the moment is due, False when woken early.
        """
        if not self._factor:
            self._latest_ns = sim_ns
            return True
        remaining = (self._wall_ns + (sim_ns - self._sim_ns) / self._factor - time.monotonic_ns()) * 1e-9
        if remaining <= 0.0:
            self.behind = max(self.behind, -remaining)
            if remaining < -_MAX_LAG_SECONDS:  # too far behind: go on from here instead of sprinting to catch up
                self.given_up -= remaining
                self.restart(sim_ns)
            self._latest_ns = sim_ns
            return True
        begun = time.monotonic()
        rest()
        if wake.wait(max(remaining - (time.monotonic() - begun), 0.0)):
            wake.clear()
            return False
        self._latest_ns = sim_ns
        return True


def idle(wake: Event) -> None:
    """Rest a moment of wall time, or until ``wake`` is set; clears it."""
    wake.wait(_IDLE_SECONDS)
    wake.clear()
