"""Topics: typed, named streams from any number of publishers to any number of subscriptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from roboyard.bus.meter import CallbackTimer
from roboyard.errors import MessageError, RunError
from roboyard.messages import fingerprint, freeze, serialize, type_name

if TYPE_CHECKING:
    from roboyard.bus.bus import Bus
    from roboyard.bus.disturbance import TopicImpairment

MessageObserver = Callable[["Topic", Any, str, int], None]
"""Sees every message as it is published: (topic, message, publisher's node, time in ns)."""


class Topic:
    """One stream.

    Attributes:
        name: Absolute name.
        type: Message class.
        latched: True once any publisher latches; new subscriptions then get each such publisher's last message.
        publishers: In order of creation.
        subscriptions: In order of creation; deliveries follow it.
        count: Messages published so far.
        first_ns: Time of the first message [ns]; -1 before it.
        last_ns: Time of the newest message [ns]; -1 before it.
        impairments: What loses or delays its messages at present.
    """

    __slots__ = (
        "_encoded",
        "count",
        "first_ns",
        "impairments",
        "last_ns",
        "latched",
        "name",
        "publishers",
        "subscriptions",
        "type",
        "type_name",
    )  # fmt: skip

    def __init__(self, name: str, message_type: type) -> None:
        self.name = name
        self.type = message_type
        self.type_name = type_name(message_type)
        self.latched = False
        self.publishers: list[Publisher] = []
        self.subscriptions: list[Subscription] = []
        self.impairments: list[TopicImpairment] = []
        self.count = 0
        self.first_ns = -1
        self.last_ns = -1
        self._encoded: tuple[int, Any, bytes] = (-1, None, b"")

    def encode(self, message: Any) -> bytes:
        """The message that is being published, as CDR: serialised once for all taps, who get the same bytes.

        Raises:
            MessageError: a field holds what its type forbids.
        """
        count, encoded_message, data = self._encoded
        if encoded_message is not message or count != self.count:
            data = serialize(message)
            self._encoded = (self.count, message, data)
        return data

    def check_type(self, message_type: type, node: str) -> None:
        """Refuse a second type on the same topic.

        Raises:
            MessageError: ``message_type`` is not this topic's.
        """
        if message_type is not self.type:
            raise MessageError(
                f"topic {self.name} carries {self.type_name}, not {type_name(message_type)}", location=f"node {node}"
            )


class Publisher:
    """A node's end of a topic for sending."""

    __slots__ = ("_bus", "_type", "closed", "count", "last", "latched", "node", "topic")

    def __init__(self, bus: Bus, topic: Topic, node: str, latched: bool) -> None:
        self._bus = bus
        self._type = topic.type
        self.topic = topic
        self.node = node
        self.latched = latched
        self.last: Any = None
        self.count = 0
        self.closed = False

    def publish(self, message: Any) -> None:
        """Send ``message`` to every subscription; it and its arrays must not be changed afterwards.

        Raises:
            MessageError: not a message of the topic's type.
            RunError: the publisher was closed.
        """
        topic = self.topic
        if message.__class__ is not self._type:
            raise MessageError(
                f"topic {topic.name} carries {topic.type_name}, not {type(message).__name__}",
                location=f"node {self.node}",
            )
        if self.closed:
            raise RunError(f"publisher on {topic.name} is closed", location=f"node {self.node}")
        freeze(message)
        bus = self._bus
        now_ns = bus.executor.now_ns
        if topic.first_ns < 0:
            topic.first_ns = now_ns
        topic.last_ns = now_ns
        topic.count += 1
        self.count += 1
        if self.latched:
            self.last = message
        for observer in bus.message_observers:
            observer(topic, message, self.node, now_ns)
        if topic.impairments:
            bus.delayed_delivery.send(topic, message, self.node)
        elif topic.subscriptions:
            ready, node = bus.executor.ready, self.node
            for subscription in topic.subscriptions:
                ready.append((subscription, message, node))

    def close(self) -> None:
        """Leave the topic; a latched message stays behind no longer."""
        if not self.closed:
            self.closed = True
            self.topic.publishers.remove(self)


class Subscription:
    """A node's end of a topic for receiving."""

    __slots__ = ("callback_timer", "closed", "node", "topic", "with_source")

    def __init__(self, topic: Topic, node: str, callback_timer: CallbackTimer, with_source: bool) -> None:
        self.topic = topic
        self.node = node
        self.callback_timer = callback_timer
        self.with_source = with_source
        self.closed = False

    def deliver(self, message: Any, source: str) -> None:
        """Run the callback, unless the subscription was closed since the message was sent."""
        if self.closed:
            return
        if self.with_source:
            self.callback_timer(message, source)
        else:
            self.callback_timer(message)

    def close(self) -> None:
        """Receive nothing any more."""
        if not self.closed:
            self.closed = True
            self.topic.subscriptions.remove(self)


class CheckedSubscription(Subscription):
    """Debug mode: also notices a subscriber that changes a message other nodes hold too."""

    __slots__ = ()

    def deliver(self, message: Any, source: str) -> None:
        """Run the callback and compare the message before and after.

        Raises:
            RunError: the callback changed the message.
        """
        before = fingerprint(message)
        super().deliver(message, source)
        if fingerprint(message) != before:
            raise RunError(
                f"changed a received {self.topic.type_name}",
                location=f"node {self.node}, topic {self.topic.name}",
                valid="messages are shared: copy before changing",
            )
