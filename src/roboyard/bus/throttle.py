"""Thinning of a stream to a rate."""

from __future__ import annotations


class Throttle:
    """Says which moments of a stream pass, so that at most ``rate`` a second do, and that many where there are enough.

    Args:
        rate: [Hz]; 0 lets everything pass.

    Attributes:
        last_ns: The last moment that passed [ns]; -1 before.
        next_ns: From when on the next may pass [ns].
    """

    def __init__(self, rate: float) -> None:
        self._period_ns = round(1e9 / rate) if rate > 0.0 else 0
        self.last_ns = -1
        self.next_ns = 0

    def should_pass(self, time_ns: int) -> bool:
        """Whether the moment ``time_ns`` passes.  A moment before the last one (a reset) begins anew."""
        if self.last_ns <= time_ns < self.next_ns:
            return False
        # the next is due a period after this one was, so that 20 of 50 Hz are 20 and not 16.7; but nothing is caught up
        late_ns = time_ns - self.next_ns
        due_ns = self.next_ns if 0 <= late_ns < self._period_ns and self.last_ns >= 0 else time_ns
        self.last_ns, self.next_ns = time_ns, due_ns + self._period_ns
        return True

    def save_state(self) -> tuple[int, int]:
        """Return the state as plain data."""
        return self.last_ns, self.next_ns

    def load_state(self, state: tuple[int, int]) -> None:
        """Restore what `save_state` returned."""
        self.last_ns, self.next_ns = state
