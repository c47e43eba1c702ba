"""Throttle: limits the rate of a stream of messages, as `topic_tools throttle` of ROS does."""

from __future__ import annotations


class Throttle:
    """Decides which messages of a stream pass, so that at most `rate` messages pass in a second.

    If the stream has enough messages, exactly `rate` of them pass in a second on average, also where the stream's rate
    is no multiple of it: 20 of 50 messages a second, not every third one.

    Args:
        rate: Highest rate of the messages that pass [Hz]; 0 lets all messages pass.

    Attributes:
        last_ns: Time of the last message that passed [ns]; -1 if none has.
        next_ns: Earliest time of the next message that passes [ns].
    """

    def __init__(self, rate: float) -> None:
        self._period_ns = round(1e9 / rate) if rate > 0.0 else 0
        self.last_ns = -1
        self.next_ns = 0

    def should_pass(self, time_ns: int) -> bool:
        """Return whether a message of this time [ns] passes; a time before the last one (a reset) starts anew."""
        if self.last_ns <= time_ns < self.next_ns:
            return False
        # The next message is due one period after this one was due, which keeps the rate.  After a gap of the stream,
        # the period starts at this message: missed messages are not made up for.
        late_ns = time_ns - self.next_ns
        due_ns = self.next_ns if 0 <= late_ns < self._period_ns and self.last_ns >= 0 else time_ns
        self.last_ns, self.next_ns = time_ns, due_ns + self._period_ns
        return True

    def save_state(self) -> tuple[int, int]:
        """Return the state as plain data."""
        return self.last_ns, self.next_ns

    def load_state(self, state: tuple[int, int]) -> None:
        """Restore a state that `save_state` returned."""
        self.last_ns, self.next_ns = state
