"""What a robot touched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roboyard.scenarios.metrics.collector import Collector, Handler, Value

_APART_NS = 200_000_000
"""Two touches of the same pair closer in time than this are one episode: a bouncing body is not many accidents."""


class Contacts(Collector):
    """Episodes of contact from the truth's contacts, published whenever the set of touching pairs changes.

    ``contacts``: number of episodes, an episode being one pair of bodies touching until they are apart for 0.2 s.
    ``contact_seconds`` [s]: time during which anything touched.  ``first_contact`` [s]: when, None if never.
    """

    names = ("contacts", "contact_seconds", "first_contact")

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._touching: tuple[tuple[str, str], ...] = ()
        self._since_ns = 0
        self._last_ns: dict[tuple[str, str], int] = {}
        self.episodes: list[tuple[int, str, str]] = []
        self._seconds = 0.0

    def handlers(self) -> Mapping[str, Handler]:
        """The truth's contacts."""
        return {self._topic: self._on_contacts}

    def _on_contacts(self, message: Any, time_ns: int) -> None:
        pairs = tuple(sorted({(state.collision1_name, state.collision2_name) for state in message.states}))
        if self._touching:
            self._seconds += (time_ns - self._since_ns) * 1e-9
            for pair in self._touching:
                self._last_ns[pair] = time_ns
        for pair in pairs:
            last = self._last_ns.get(pair)
            if pair not in self._touching and (last is None or time_ns - last > _APART_NS):
                self.episodes.append((time_ns, *pair))
        self._touching, self._since_ns = pairs, time_ns

    def finish(self, time_ns: int) -> None:
        """Count what still touches at the end [ns]."""
        if self._touching:
            self._seconds += (time_ns - self._since_ns) * 1e-9
            self._since_ns = time_ns

    def result(self) -> dict[str, Value]:
        """Nothing heard means that nothing touched: contacts are published when they change."""
        first = self.episodes[0][0] * 1e-9 if self.episodes else None
        return {"contacts": len(self.episodes), "contact_seconds": self._seconds, "first_contact": first}
