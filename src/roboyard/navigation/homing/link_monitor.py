"""Monitor of the operator's link: which messages count as heartbeats, and after how long an outage the link is lost.

Heartbeats
    A message without a stamp counts when it is received.  A message with a stamp (a heartbeat, the state of a gamepad)
    counts if it is newer than every stamped message that its sender sent before and not older than ``max_age``: a
    delayed, repeated or reordered message shows that the operator was connected, not that he is.  Once a sender has
    sent a stamp, only its stamped messages count, since the delay of the others is unknown.

States
    ``NEVER_CONNECTED`` → ``CONNECTED`` with the first heartbeat; ``CONNECTED`` → ``LOST`` after ``link_timeout``
    without a heartbeat; ``LOST`` → ``RECOVERING`` with the next heartbeat; ``RECOVERING`` → ``CONNECTED`` once
    heartbeats were received for ``settle_time`` without a gap of ``relapse_timeout``, → ``LOST`` at such a gap.  A link
    that flaps returns control to the operator at once every time; the next outage is detected after
    ``relapse_timeout``, not ``link_timeout``.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from roboyard.config import Config, parameter

_MAX_CLOCK_SKEW_NS = 100_000_000
"""Maximum difference by which a stamp may be ahead of the clock [ns]; later stamps do not count."""


class LinkState(Enum):
    """State of the link."""

    NEVER_CONNECTED = "never_heard"
    CONNECTED = "connected"
    LOST = "lost"
    RECOVERING = "recovering"

    @property
    def is_operator_in_control(self) -> bool:
        """Whether the operator is in control of the robot."""
        return self in (LinkState.CONNECTED, LinkState.RECOVERING)


class LinkConfig(Config):
    """Configuration of the link monitor."""

    link_timeout: float = parameter(
        4.0,
        unit="s",
        low=0.05,
        high=3600.0,
        doc="Time without a heartbeat after which the link is lost; t in the thesis.",
    )
    settle_time: float = parameter(
        2.0, unit="s", low=0.05, high=3600.0, doc="Time with heartbeats after which a lost link is connected again."
    )
    relapse_timeout: float = parameter(
        2.0, unit="s", low=0.05, high=3600.0,
        doc="Time without a heartbeat after which a recovering link is lost again; at most link_timeout.",
    )  # fmt: skip
    max_age: float = parameter(
        1.0, unit="s", low=0.01, high=3600.0, doc="Maximum age of a stamped message that counts as a heartbeat."
    )

    @property
    def effective_relapse_timeout(self) -> float:
        """Time without a heartbeat after which a recovering link is lost again [s]."""
        return min(self.relapse_timeout, self.link_timeout)


class LinkMonitor:
    """Monitors the heartbeats of the operator.

    Args:
        config: Configuration.

    Attributes:
        state: State of the link at the last call.
        losses: Number of losses, including those of a recovering link.
        outages: Number of losses of a connected link.
    """

    def __init__(self, config: LinkConfig | None = None) -> None:
        self.config = config or LinkConfig()
        self.state = LinkState.NEVER_CONNECTED
        self.losses = 0
        self.outages = 0
        self._newest_stamps: dict[str, int] = {}
        self._last_heartbeat_ns = 0
        self._connected_since_ns = 0

    @property
    def deadline_ns(self) -> int | None:
        """Time at which the link is lost without a further heartbeat [ns]; None while it is not connected."""
        if not self.state.is_operator_in_control:
            return None
        timeout = (
            self.config.link_timeout if self.state is LinkState.CONNECTED else self.config.effective_relapse_timeout
        )
        return self._last_heartbeat_ns + round(timeout * 1e9)

    def on_message(self, source: str, now_ns: int, stamp_ns: int | None = None) -> bool:
        """Process a message.

        Args:
            source: Name of the sender.
            now_ns: Time of reception [ns].
            stamp_ns: Time at which the message was sent [ns]; None without a stamp.

        Returns:
            Whether the message counts as a heartbeat.
        """
        self.update(now_ns)
        if not self._counts_as_heartbeat(source, now_ns, stamp_ns):
            return False
        if self.state in (LinkState.NEVER_CONNECTED, LinkState.LOST):
            self.state = LinkState.CONNECTED if self.state is LinkState.NEVER_CONNECTED else LinkState.RECOVERING
            self._connected_since_ns = now_ns
        elif self.state is LinkState.RECOVERING and now_ns - self._connected_since_ns >= round(
            self.config.settle_time * 1e9
        ):
            self.state = LinkState.CONNECTED
        self._last_heartbeat_ns = now_ns
        return True

    def _counts_as_heartbeat(self, source: str, now_ns: int, stamp_ns: int | None) -> bool:
        if stamp_ns is None:
            return source not in self._newest_stamps
        newest_stamp_ns = self._newest_stamps.get(source)
        if stamp_ns > now_ns + _MAX_CLOCK_SKEW_NS or (newest_stamp_ns is not None and stamp_ns <= newest_stamp_ns):
            self._newest_stamps.setdefault(source, -1)
            return False
        self._newest_stamps[source] = stamp_ns
        return now_ns - stamp_ns <= round(self.config.max_age * 1e9)

    def update(self, now_ns: int) -> LinkState:
        """Process the time, which must not decrease."""
        deadline_ns = self.deadline_ns
        if deadline_ns is not None and now_ns >= deadline_ns:
            self.losses += 1
            self.outages += self.state is LinkState.CONNECTED
            self.state = LinkState.LOST
        return self.state

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        times = (self._last_heartbeat_ns, self._connected_since_ns)
        return {
            "state": self.state.value,
            "counts": (self.losses, self.outages),
            "times": times,
            "newest": dict(self._newest_stamps),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore a state that `save_state` returned."""
        self.state = LinkState(saved["state"])
        self.losses, self.outages = saved["counts"]
        self._last_heartbeat_ns, self._connected_since_ns = saved["times"]
        self._newest_stamps = dict(saved["newest"])
