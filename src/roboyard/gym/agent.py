"""The node through which an agent hears and acts."""

from __future__ import annotations

from functools import partial
from typing import Any

from roboyard.bus import Node, Publisher
from roboyard.gym.senses import Topics

NAME = "agent"
"""On the bus: arbiters know sources of commands by the names of their nodes."""


class AgentNode(Node):
    """Keeps the newest message of each topic, and sends commands when it is told to.

    in: ``topics``   out: ``topic``, of the type ``kind``

    Attributes:
        heard: The newest message by topic.
        silent: Topics that have told nothing yet.
    """

    def __init__(self, topics: Topics, topic: str, kind: type) -> None:
        super().__init__()
        self._topics, self._topic, self._kind = dict(topics), topic, kind
        self.heard: dict[str, Any] = {}
        self.silent = set(topics)

    def setup(self) -> None:
        """Listen."""
        self._commands: Publisher = self.publisher(self._topic, self._kind)
        for topic, kind in self._topics.items():
            self.subscribe(topic, kind, partial(self._hear, topic))

    def send(self, message: Any) -> None:
        """Give a command."""
        self._commands.publish(message)

    def _hear(self, topic: str, message: Any) -> None:
        self.heard[topic] = message
        self.silent.discard(topic)
