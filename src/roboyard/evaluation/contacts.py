"""Metrics of a robot's contacts with its surroundings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from roboyard.evaluation.collector import (
    MessageHandler,
    Metric,
    MetricCollector,
    MetricValue,
    RobotContext,
    TimelineEvent,
)

_EPISODE_GAP_NS = 200_000_000
"""Contacts of the same pair with a shorter gap are one episode: a bouncing body is one accident, not many [ns]."""


class ContactMetrics(MetricCollector):
    """Counts contact episodes in the true contacts, which are published when the set of touching pairs changes.

    Args:
        topic: Of the robot's true contacts (ros_gz_interfaces/Contacts).
    """

    metrics = (
        Metric(
            "contacts", "count", "Contact episodes: a pair of shapes that touches until it is apart for 0.2 s; the "
            "ground does not count.", "lower", "contacts",
        ),
        Metric("contact_time", "s", "Time during which the robot touched anything.", "lower"),
        Metric("first_contact", "s", "Time of the first contact; no value if there was none.", "higher"),
    )  # fmt: skip
    position = 100

    @classmethod
    def create(cls, robot: RobotContext) -> Self:
        """Return the collector of any robot."""
        return cls(robot.topics.contacts)

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._contact_pairs: tuple[tuple[str, str], ...] = ()
        self._since_ns = 0
        self._last_contact_ns: dict[tuple[str, str], int] = {}
        self.episodes: list[tuple[int, str, str]] = []
        self._contact_time = 0.0

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Return the topic of the true contacts."""
        return {self._topic: self._on_contacts}

    def _on_contacts(self, message: Any, time_ns: int) -> None:
        pairs = tuple(sorted({(state.collision1_name, state.collision2_name) for state in message.states}))
        if self._contact_pairs:
            self._contact_time += (time_ns - self._since_ns) * 1e-9
            for pair in self._contact_pairs:
                self._last_contact_ns[pair] = time_ns
        for pair in pairs:
            last = self._last_contact_ns.get(pair)
            if pair not in self._contact_pairs and (last is None or time_ns - last > _EPISODE_GAP_NS):
                self.episodes.append((time_ns, *pair))
        self._contact_pairs, self._since_ns = pairs, time_ns

    def finish(self, time_ns: int) -> None:
        """Count the contacts that last until the end [ns]."""
        if self._contact_pairs:
            self._contact_time += (time_ns - self._since_ns) * 1e-9
            self._since_ns = time_ns

    def values(self) -> dict[str, MetricValue]:
        """Return the counts; without any message nothing has touched."""
        values: dict[str, MetricValue] = {"contacts": len(self.episodes), "contact_time": self._contact_time}
        return values | ({"first_contact": self.episodes[0][0] * 1e-9} if self.episodes else {})

    def events(self) -> Sequence[TimelineEvent]:
        """Return the starts of the contact episodes."""
        return [
            TimelineEvent(time_ns * 1e-9, "contact", f"{shape} and {other}") for time_ns, shape, other in self.episodes
        ]
