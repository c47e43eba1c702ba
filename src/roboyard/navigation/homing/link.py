"""Whether the operator is heard: which messages are a sign of life, and when silence means that the link is lost.

What counts
    A message without a stamp counts when it comes.  One with a stamp (a heartbeat, a gamepad's state) counts if it is
    newer than everything stamped that its sender sent before and not older than ``max_age``: what was delayed on the
    way, came twice or was overtaken tells that the operator was there, not that he is.  Once a sender stamps, only its
    stamped messages count: the others travel the same way, and cannot show how long they took.

States
    ``NEVER_HEARD`` → ``CONNECTED`` with the first sign; ``CONNECTED`` → ``LOST`` after ``timeout`` of silence;
    ``LOST`` → ``RECOVERING`` with the next sign; ``RECOVERING`` → ``CONNECTED`` once signs have come for ``settle``
    without a gap of ``relapse``, → ``LOST`` at such a gap.  So a link that flaps gives the robot back at once every
    time, and costs it ``relapse``, not the whole ``timeout``, whenever it falls silent again.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from roboyard.config import Config, parameter

_AHEAD_NS = 100_000_000
"""A stamp so much ahead of our clock is no moment at which anybody can have spoken."""


class LinkState(Enum):
    """State of the link."""

    NEVER_HEARD = "never_heard"
    CONNECTED = "connected"
    LOST = "lost"
    RECOVERING = "recovering"

    @property
    def is_heard(self) -> bool:
        """Whether the operator has the robot."""
        return self in (LinkState.CONNECTED, LinkState.RECOVERING)


class LinkConfig(Config):
    """When the link counts as lost."""

    timeout: float = parameter(
        4.0, unit="s", low=0.05, high=3600.0, doc="Silence after which the link is lost; the thesis's t."
    )
    settle: float = parameter(
        2.0, unit="s", low=0.05, high=3600.0, doc="Time with signs of life after which the link is whole again."
    )
    relapse: float = parameter(
        2.0, unit="s", low=0.05, high=3600.0,
        doc="Silence before that after which the link is lost again; never longer than timeout.",
    )  # fmt: skip
    max_age: float = parameter(
        1.0, unit="s", low=0.01, high=3600.0, doc="Age from which a stamped message is no sign of life."
    )

    @property
    def relapse_time(self) -> float:
        """Silence after which a link that is not whole yet is lost again [s]."""
        return min(self.relapse, self.timeout)


class LinkWatch:
    """Listens to signs of life.

    Attributes:
        state: Of the link, as of the last call.
        losses: How often it was lost, relapses included.
        outages: How often it was lost after it had been whole.
    """

    def __init__(self, config: LinkConfig | None = None) -> None:
        self.config = config or LinkConfig()
        self.state = LinkState.NEVER_HEARD
        self.losses = 0
        self.outages = 0
        self._newest: dict[str, int] = {}
        self._last_ns = 0
        self._since_ns = 0

    @property
    def deadline_ns(self) -> int | None:
        """When silence becomes a loss [ns]; None while there is no link to lose."""
        if not self.state.is_heard:
            return None
        limit = self.config.timeout if self.state is LinkState.CONNECTED else self.config.relapse_time
        return self._last_ns + round(limit * 1e9)

    def hear(self, source: str, now_ns: int, stamp_ns: int | None = None) -> bool:
        """Take a message of ``source`` at ``now_ns``, sent at ``stamp_ns`` if it says so; gives whether it counts."""
        self.update(now_ns)
        if not self._is_sign(source, now_ns, stamp_ns):
            return False
        if self.state in (LinkState.NEVER_HEARD, LinkState.LOST):
            self.state = LinkState.CONNECTED if self.state is LinkState.NEVER_HEARD else LinkState.RECOVERING
            self._since_ns = now_ns
        elif self.state is LinkState.RECOVERING and now_ns - self._since_ns >= round(self.config.settle * 1e9):
            self.state = LinkState.CONNECTED
        self._last_ns = now_ns
        return True

    def _is_sign(self, source: str, now_ns: int, stamp_ns: int | None) -> bool:
        if stamp_ns is None:
            return source not in self._newest
        newest = self._newest.get(source)
        if stamp_ns > now_ns + _AHEAD_NS or (newest is not None and stamp_ns <= newest):
            self._newest.setdefault(source, -1)
            return False
        self._newest[source] = stamp_ns
        return now_ns - stamp_ns <= round(self.config.max_age * 1e9)

    def update(self, now_ns: int) -> LinkState:
        """Let time pass (never backwards)."""
        deadline_ns = self.deadline_ns
        if deadline_ns is not None and now_ns >= deadline_ns:
            self.losses += 1
            self.outages += self.state is LinkState.CONNECTED
            self.state = LinkState.LOST
        return self.state

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        times = (self._last_ns, self._since_ns)
        return {
            "state": self.state.value,
            "counts": (self.losses, self.outages),
            "times": times,
            "newest": dict(self._newest),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self.state = LinkState(saved["state"])
        self.losses, self.outages = saved["counts"]
        self._last_ns, self._since_ns = saved["times"]
        self._newest = dict(saved["newest"])
