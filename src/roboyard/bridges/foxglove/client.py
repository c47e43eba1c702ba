"""One client of Foxglove's protocol: what it subscribes to, publishes and asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from roboyard.bridges.gateway import Gateway
from roboyard.bridges.web import Peer
from roboyard.errors import InputError, MessageError
from roboyard.messages import deserialize, full_name


@dataclass(slots=True)
class Client:
    """A client.

    Attributes:
        peer: Its connection.
        subscriptions: Its own numbers of subscriptions, by channel.
        channels: What it publishes: topic, type and encoding by its own number.
        parameters: Names of the parameters that it is told of.
        graph: Whether it is told who publishes and hears what.
    """

    peer: Peer
    subscriptions: dict[int, int] = field(default_factory=dict)
    channels: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    parameters: set[str] = field(default_factory=set)
    graph: bool = False

    @property
    def name(self) -> str:
        """As a node of the run."""
        return f"/foxglove_client{self.peer.number}"

    def advertise(self, channels: list[Any]) -> None:
        """Note what it will publish. Raises MessageError, InputError."""
        for item in channels:
            number, topic, encoding = int(item["id"]), str(item["topic"]), str(item["encoding"])
            if encoding not in ("cdr", "json"):
                raise InputError(f"encoding '{encoding[:40]}'", location=topic[:80], valid="cdr or json")
            if len(self.channels) >= 1000:
                raise InputError("1,000 channels are advertised already", location=self.name)
            self.channels[number] = (topic, full_name(str(item["schemaName"])), encoding)

    def publish(self, number: int, data: bytes, gateway: Gateway, parse: Callable[[str, bytes], bytes]) -> None:
        """Hand in a message. Raises MessageError, InputError."""
        found = self.channels.get(number)
        if found is None:
            raise MessageError(f"a message on channel {number}, which was not advertised", location=self.name)
        topic, kind, encoding = found
        if encoding == "json":
            data = parse(kind, data)
        else:
            deserialize(data, kind)
        gateway.publish(topic, kind, self.name, data)
