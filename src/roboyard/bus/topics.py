"""Topics: typed, named streams of messages from publishers to subscriptions.

Impairments of a topic drop or delay messages between publisher and subscription; observers (recorder, bridges) and
counts include every message that is published.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from roboyard.bus.callback_timer import CallbackTimer
from roboyard.bus.executor import DELIVERY, Executor
from roboyard.errors import MessageError, RunError
from roboyard.messages import deserialize, fingerprint, freeze, serialize, type_name

MessageObserver = Callable[["Topic", Any, str, int], None]
"""Function called with every message when it is published: (topic, message, publisher's node, time in ns)."""


class Topic:
    """Typed, named stream of messages.

    Attributes:
        name: Absolute name.
        type: Message class.
        latched: True once any publisher latches; new subscriptions then get each such publisher's last message.
        publishers: Publishers in order of creation.
        subscriptions: Subscriptions in order of creation, which is the order of delivery.
        count: Number of messages published so far.
        first_ns: Time of the first message [ns]; -1 without messages.
        last_ns: Time of the newest message [ns]; -1 without messages.
        impairments: Impairments that drop or delay its messages at present.
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
        """Serialize the message that is being published to CDR, once for all observers.

        Raises:
            MessageError: A field has a value that its type does not allow.
        """
        count, encoded_message, data = self._encoded
        if encoded_message is not message or count != self.count:
            data = serialize(message)
            self._encoded = (self.count, message, data)
        return data

    def check_type(self, message_type: type, node: str) -> None:
        """Check that `message_type` is the type of this topic.

        Raises:
            MessageError: The topic has another message type.
        """
        if message_type is not self.type:
            raise MessageError(
                f"topic {self.name} has the type {self.type_name}, not {type_name(message_type)}",
                location=f"node {node}",
            )


class Publisher:
    """Publishes messages of one node on a topic."""

    __slots__ = ("_router", "_type", "closed", "count", "last", "latched", "node", "topic")

    def __init__(self, router: MessageRouter, topic: Topic, node: str, latched: bool) -> None:
        self._router = router
        self._type = topic.type
        self.topic = topic
        self.node = node
        self.latched = latched
        self.last: Any = None
        self.count = 0
        self.closed = False

    def publish(self, message: Any) -> None:
        """Send a message to every subscription; it and its arrays must not be changed afterwards.

        Raises:
            MessageError: The message does not have the topic's type.
            RunError: The publisher was closed.
        """
        topic = self.topic
        if message.__class__ is not self._type:
            raise MessageError(
                f"topic {topic.name} has the type {topic.type_name}, not {type(message).__name__}",
                location=f"node {self.node}",
            )
        if self.closed:
            raise RunError(f"publisher on {topic.name} is closed", location=f"node {self.node}")
        freeze(message)
        router = self._router
        now_ns = router.executor.now_ns
        if topic.first_ns < 0:
            topic.first_ns = now_ns
        topic.last_ns = now_ns
        topic.count += 1
        self.count += 1
        if self.latched:
            self.last = message
        for observer in router.observers:
            observer(topic, message, self.node, now_ns)
        if topic.impairments:
            router.delayed_delivery.send(topic, message, self.node)
        elif topic.subscriptions:
            ready, node = router.executor.ready, self.node
            for subscription in topic.subscriptions:
                ready.append((subscription, message, node))

    def close(self) -> None:
        """Leave the topic; its latched message is removed."""
        if not self.closed:
            self.closed = True
            self.topic.publishers.remove(self)


class Subscription:
    """Receives messages of a topic for one node."""

    __slots__ = ("callback_timer", "closed", "node", "topic", "with_source")

    def __init__(self, topic: Topic, node: str, callback_timer: CallbackTimer, with_source: bool) -> None:
        self.topic = topic
        self.node = node
        self.callback_timer = callback_timer
        self.with_source = with_source
        self.closed = False

    def deliver(self, message: Any, source: str) -> None:
        """Call the callback, unless the subscription was closed after the message was sent."""
        if self.closed:
            return
        if self.with_source:
            self.callback_timer(message, source)
        else:
            self.callback_timer(message)

    def close(self) -> None:
        """Stop receiving messages."""
        if not self.closed:
            self.closed = True
            self.topic.subscriptions.remove(self)


class CheckedSubscription(Subscription):
    """Subscription for debugging that detects a callback that changes a message shared with other nodes."""

    __slots__ = ()

    def deliver(self, message: Any, source: str) -> None:
        """Call the callback and compare the message before and after.

        Raises:
            RunError: The callback changed the message.
        """
        before = fingerprint(message)
        super().deliver(message, source)
        if fingerprint(message) != before:
            raise RunError(
                f"the callback changed a received {self.topic.type_name}",
                location=f"node {self.node}, topic {self.topic.name}",
                valid="messages are shared: copy them before changing",
            )


@dataclass(slots=True)
class TopicImpairment:
    """Loss and delay of one topic's messages.

    Attributes:
        loss: Probability that a message is dropped.
        delay_ns: Delay of the other messages [ns].
        rng: Random generator that selects the dropped messages.
        dropped_count: Number of messages dropped so far.
    """

    loss: float
    delay_ns: int
    rng: np.random.Generator
    dropped_count: int = 0

    def should_drop(self) -> bool:
        """Draw whether the next message is dropped."""
        is_dropped = self.loss > 0.0 and float(self.rng.random()) < self.loss
        self.dropped_count += is_dropped
        return is_dropped


class DelayedDelivery:
    """Delivers messages of impaired topics: drops some, delivers the others immediately or later."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._pending: dict[int, tuple[int, Topic, Any, str]] = {}
        self._last_number = 0

    def send(self, topic: Topic, message: Any, node: str) -> None:
        """Drop or deliver a message of an impaired topic when it is published."""
        drops = [item.should_drop() for item in topic.impairments]  # each impairment draws, regardless of the others
        if any(drops):
            return
        delay_ns = sum(item.delay_ns for item in topic.impairments)
        if delay_ns:
            self._schedule(self._executor.now_ns + delay_ns, topic, message, node)
        else:
            self._deliver(topic, message, node)

    def _schedule(self, due_ns: int, topic: Topic, message: Any, node: str) -> None:
        self._last_number += 1
        number = self._last_number
        self._pending[number] = due_ns, topic, message, node

        def deliver_if_pending() -> None:
            if self._pending.pop(number, None) is not None:
                self._deliver(topic, message, node)

        self._executor.schedule(due_ns, deliver_if_pending, DELIVERY)

    def _deliver(self, topic: Topic, message: Any, node: str) -> None:
        ready = self._executor.ready
        for subscription in topic.subscriptions:
            ready.append((subscription, message, node))

    def save_state(self) -> list[tuple[int, str, str, str, bytes]]:
        """Return the messages in transit, in the order in which they were sent, as plain data."""
        return [
            (due_ns, topic.name, topic.type_name, node, serialize(message))
            for due_ns, topic, message, node in self._pending.values()
        ]

    def load_state(self, saved: list[tuple[int, str, str, str, bytes]], topics: dict[str, Topic]) -> None:
        """Restore a state that `save_state` returned; messages on topics that no longer exist are lost."""
        self._pending.clear()
        for due_ns, name, message_type, node, data in saved:
            topic = topics.get(name)
            if topic is not None:
                self._schedule(due_ns, topic, deserialize(data, message_type), node)


class MessageRouter:
    """Delivers messages from publishers to observers and subscriptions.

    Args:
        executor: Executor that runs the deliveries.
        debug: Check after every delivery that the subscriber did not change the message (slow).

    Attributes:
        executor: The executor.
        topics: Topics by name, in order of first use.
        observers: Functions called with every message when it is published (recorder, bridges).
        delayed_delivery: Delivers messages of impaired topics.
    """

    __slots__ = ("_subscription_type", "delayed_delivery", "executor", "observers", "topics")

    def __init__(self, executor: Executor, *, debug: bool = False) -> None:
        self.executor = executor
        self.topics: dict[str, Topic] = {}
        self.observers: list[MessageObserver] = []
        self.delayed_delivery = DelayedDelivery(executor)
        self._subscription_type = CheckedSubscription if debug else Subscription

    def topic(self, name: str, message_type: type, node: str) -> Topic:
        """Return the topic `name`, created on first use.

        Raises:
            MessageError: The topic has another message type.
        """
        topic = self.topics.get(name)
        if topic is None:
            topic = self.topics[name] = Topic(name, message_type)
        topic.check_type(message_type, node)
        return topic

    def publisher(self, name: str, message_type: type, node: str, *, latched: bool = False) -> Publisher:
        """Create a publisher of node `node` on the absolute topic `name`."""
        topic = self.topic(name, message_type, node)
        publisher = Publisher(self, topic, node, latched)
        topic.publishers.append(publisher)
        topic.latched = topic.latched or latched
        return publisher

    def subscribe(
        self, name: str, message_type: type, node: str, callback_timer: CallbackTimer, *, with_source: bool = False
    ) -> Subscription:
        """Create a subscription of node `node` to the absolute topic `name`; latched messages are delivered
        immediately.
        """
        topic = self.topic(name, message_type, node)
        subscription = self._subscription_type(topic, node, callback_timer, with_source)
        topic.subscriptions.append(subscription)
        for publisher in topic.publishers:
            if publisher.last is not None:
                self.executor.ready.append((subscription, publisher.last, publisher.node))
        return subscription
