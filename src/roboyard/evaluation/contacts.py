"""Contact episodes of a robot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roboyard.evaluation.plugin import MessageHandler, MetricCollector, MetricValue

_EPISODE_GAP_NS = 200_000_000
"""Two touches of the same pair closer in time than this are one episode: a bouncing body is not many accidents."""


class ContactMetrics(MetricCollector):
    """Episodes of contact from the truth's contacts, published whenever the set of touching pairs changes.

    ``contacts``: number of episodes, an episode being one pair of bodies touching until they are apart for 0.2 s.
    ``contact_time`` [s]: time during which anything touched.  ``first_contact`` [s]: when, None if never.
    """

    metric_names = ("contacts", "contact_time", "first_contact")

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._contact_pairs: tuple[tuple[str, str], ...] = ()
        self._since_ns = 0
        self._last_contact_ns: dict[tuple[str, str], int] = {}
        self.episodes: list[tuple[int, str, str]] = []
        self._contact_time = 0.0

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """The truth's contacts."""
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
        """Count what still touches at the end [ns]."""
        if self._contact_pairs:
            self._contact_time += (time_ns - self._since_ns) * 1e-9
            self._since_ns = time_ns

    def values(self) -> dict[str, MetricValue]:
        """Nothing heard means that nothing touched: contacts are published when they change."""
        first = self.episodes[0][0] * 1e-9 if self.episodes else None
        return {"contacts": len(self.episodes), "contact_time": self._contact_time, "first_contact": first}
