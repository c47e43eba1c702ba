"""A topic whose messages get lost or come late on their way from publisher to subscribers.

What is published is recorded and counted as ever: the disturbance sits between the wire and the ears.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from roboyard.bus.executor import ARRIVAL
from roboyard.messages import deserialize, serialize

if TYPE_CHECKING:
    from roboyard.bus.bus import Bus
    from roboyard.bus.topics import Topic


@dataclass(slots=True)
class Disturbance:
    """One disturbance of one topic.

    Attributes:
        loss: Share of the messages that are lost, each with the same chance.
        delay_ns: How much later the others arrive [ns].
        rng: Decides which are lost.
        lost: How many were.
    """

    loss: float
    delay_ns: int
    rng: np.random.Generator
    lost: int = 0

    def loses(self) -> bool:
        """Whether the next message is lost."""
        lost = self.loss > 0.0 and float(self.rng.random()) < self.loss
        self.lost += lost
        return lost


class Post:
    """Messages on their way on disturbed topics."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._letters: dict[int, tuple[int, Topic, Any, str]] = {}
        self._number = 0

    def send(self, topic: Topic, message: Any, node: str) -> None:
        """Take a message of a disturbed topic, as it is published."""
        losses = [item.loses() for item in topic.disturbances]  # each draws, whatever the others did
        if any(losses):
            return
        delay_ns = sum(item.delay_ns for item in topic.disturbances)
        if delay_ns:
            self._post(self._bus.now_ns + delay_ns, topic, message, node)
        else:
            self._deliver(topic, message, node)

    def _post(self, due_ns: int, topic: Topic, message: Any, node: str) -> None:
        self._number += 1
        number = self._number
        self._letters[number] = due_ns, topic, message, node

        def arrive() -> None:
            if self._letters.pop(number, None) is not None:
                self._deliver(topic, message, node)

        self._bus.executor.at(due_ns, arrive, ARRIVAL)

    def _deliver(self, topic: Topic, message: Any, node: str) -> None:
        ready = self._bus.executor.ready
        for subscription in topic.subscriptions:
            ready.append((subscription, message, node))

    def save(self) -> list[tuple[int, str, str, str, bytes]]:
        """What is on its way, in the order it was sent, as plain data."""
        return [
            (due_ns, topic.name, topic.type_name, node, serialize(message))
            for due_ns, topic, message, node in self._letters.values()
        ]

    def load(self, saved: list[tuple[int, str, str, str, bytes]]) -> None:
        """Counterpart of `save`; messages on topics that are not there any more are lost."""
        self._letters.clear()
        for due_ns, name, type_name, node, data in saved:
            topic = self._bus.topics.get(name)
            if topic is not None:
                self._post(due_ns, topic, deserialize(data, type_name), node)
