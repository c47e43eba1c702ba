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

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

from roboyard.errors import ConfigError

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


@dataclass(frozen=True, slots=True)
class LinkConfig:
    """When the link counts as lost.

    Attributes:
        timeout: Silence after which it is lost [s]; the thesis's t.
        settle: Signs of life for so long make it whole again [s].
        relapse: Silence before that after which it is lost again [s].
        max_age: A stamped message older than this is no sign of life [s].

    Raises:
        ConfigError: a time that is not positive and finite, or ``relapse`` longer than ``timeout``.
    """

    timeout: float = 4.0
    settle: float = 2.0
    relapse: float = 2.0
    max_age: float = 1.0

    def __post_init__(self) -> None:
        for name in ("timeout", "settle", "relapse", "max_age"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise ConfigError(f"{name} = {value}", location="LinkConfig", valid="a positive number of seconds")
        if self.relapse > self.timeout:
            raise ConfigError(
                f"relapse = {self.relapse:g}", location="LinkConfig", valid=f"at most timeout, {self.timeout:g}"
            )


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
        limit = self.config.timeout if self.state is LinkState.CONNECTED else self.config.relapse
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
