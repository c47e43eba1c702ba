"""Faults of the network: messages of a topic that get lost or arrive late."""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from roboyard.bus.topics import TopicImpairment
from roboyard.config import parameter
from roboyard.scenarios.faults.schema import (
    FaultContext,
    FaultEffect,
    FaultKeyError,
    LastingFault,
    unknown_value_error,
)

_GROUND_TRUTH_PREFIX = "/truth/"


class TopicImpairmentEffect(FaultEffect):
    """Loss or delay of the messages of one topic on their way to its subscribers.

    Args:
        description: As of `FaultEffect`.
        impairments: Impairments of the topic.
        impairment: The one that this fault adds.
    """

    def __init__(self, description: str, impairments: list[TopicImpairment], impairment: TopicImpairment) -> None:
        super().__init__(description)
        self._impairments, self._impairment = impairments, impairment

    def start(self) -> str | None:
        """Impair the topic."""
        self._impairments.append(self._impairment)
        return None

    def end(self) -> None:
        """Stop impairing the topic."""
        self._impairments[:] = [item for item in self._impairments if item is not self._impairment]

    def save_state(self) -> dict[str, Any]:
        """Return whether the topic is impaired, the state of the random generator, and the number of lost messages."""
        return {
            "active": any(item is self._impairment for item in self._impairments),
            "random_state": copy.deepcopy(self._impairment.rng.bit_generator.state),
            "dropped_count": self._impairment.dropped_count,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self.end()
        if state["active"]:
            self.start()
        self._impairment.rng.bit_generator.state = state["random_state"]
        self._impairment.dropped_count = state["dropped_count"]


@dataclass(frozen=True, kw_only=True)
class _TopicFaultConfig(LastingFault):
    """A fault of one topic."""

    topic: str = parameter(doc="name of the topic, e.g. /scan")

    @abstractmethod
    def impairment(self, topic: str) -> tuple[float, float, str]:
        """Return the probability that a message is lost, the delay of the others [s], and a description."""

    def create_effect(self, context: FaultContext) -> FaultEffect:
        """Return the effect on the topic."""
        topics = context.run.bus.topics
        topic = self.topic if self.topic.startswith("/") else f"/{self.topic}"
        names = sorted(other for other in topics if not other.startswith(_GROUND_TRUTH_PREFIX))
        if topic.startswith(_GROUND_TRUTH_PREFIX):
            raise FaultKeyError(
                f"{topic} is ground truth, which no network transmits", location="topic", valid=", ".join(names)
            )
        if topic not in topics:
            raise unknown_value_error("topic", "topic", topic, names)
        loss, delay, description = self.impairment(topic)
        impairment = TopicImpairment(loss, round(delay * 1e9), context.random())
        return TopicImpairmentEffect(description, topics[topic].impairments, impairment)


@dataclass(frozen=True, kw_only=True)
class MessageLossFault(_TopicFaultConfig):
    """A fraction of the messages of a topic does not reach its subscribers."""

    probability: float = parameter(1.0, low=0.0, high=1.0, doc="probability that a message is lost")

    def impairment(self, topic: str) -> tuple[float, float, str]:
        """Return the loss."""
        return self.probability, 0.0, f"{100.0 * self.probability:g} % of {topic} get lost"


@dataclass(frozen=True, kw_only=True)
class MessageDelayFault(_TopicFaultConfig):
    """The messages of a topic reach its subscribers late."""

    delay: float = parameter(unit="s", low=1e-9, high=3600.0, doc="delay of each message")

    def impairment(self, topic: str) -> tuple[float, float, str]:
        """Return the delay."""
        return 0.0, self.delay, f"{topic} is {self.delay:g} s late"
