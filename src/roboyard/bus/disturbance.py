"""A topic whose messages get lost or come late on their way from publisher to subscribers.

What is published is recorded and counted as ever: the disturbance sits between the wire and the ears.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from roboyard.bus.executor import DELIVERY
from roboyard.messages import deserialize, serialize

if TYPE_CHECKING:
    from roboyard.bus.bus import Bus
    from roboyard.bus.topics import Topic


@dataclass(slots=True)
class TopicImpairment:
    """One disturbance of one topic.

    Attributes:
        loss: Share of the messages that are lost, each with the same chance.
        delay_ns: How much later the others arrive [ns].
        rng: Decides which are lost.
        dropped_count: How many were.
    """

    loss: float
    delay_ns: int
    rng: np.random.Generator
    dropped_count: int = 0

    def should_drop(self) -> bool:
        """Whether the next message is lost."""
        is_dropped = self.loss > 0.0 and float(self.rng.random()) < self.loss
        self.dropped_count += is_dropped
        return is_dropped


class DelayedDelivery:
    """Messages on their way on disturbed topics."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._pending: dict[int, tuple[int, Topic, Any, str]] = {}
        self._last_number = 0

    def send(self, topic: Topic, message: Any, node: str) -> None:
        """Take a message of a disturbed topic, as it is published."""
        drops = [item.should_drop() for item in topic.impairments]  # each draws, whatever the others did
        if any(drops):
            return
        delay_ns = sum(item.delay_ns for item in topic.impairments)
        if delay_ns:
            self._schedule(self._bus.now_ns + delay_ns, topic, message, node)
        else:
            self._deliver(topic, message, node)

    def _schedule(self, due_ns: int, topic: Topic, message: Any, node: str) -> None:
        self._last_number += 1
        number = self._last_number
        self._pending[number] = due_ns, topic, message, node

        def deliver_if_pending() -> None:
            if self._pending.pop(number, None) is not None:
                self._deliver(topic, message, node)

        self._bus.executor.schedule(due_ns, deliver_if_pending, DELIVERY)

    def _deliver(self, topic: Topic, message: Any, node: str) -> None:
        ready = self._bus.executor.ready
        for subscription in topic.subscriptions:
            ready.append((subscription, message, node))

    def save_state(self) -> list[tuple[int, str, str, str, bytes]]:
        """What is on its way, in the order it was sent, as plain data."""
        return [
            (due_ns, topic.name, topic.type_name, node, serialize(message))
            for due_ns, topic, message, node in self._pending.values()
        ]

    def load_state(self, saved: list[tuple[int, str, str, str, bytes]]) -> None:
        """Counterpart of `save`; messages on topics that are not there any more are lost."""
        self._pending.clear()
        for due_ns, name, type_name, node, data in saved:
            topic = self._bus.topics.get(name)
            if topic is not None:
                self._schedule(due_ns, topic, deserialize(data, type_name), node)
