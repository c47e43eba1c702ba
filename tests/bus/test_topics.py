"""Topics deliver every message to every subscriber in order, and messages are shared read-only."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.bus import BusHarness

import roboyard as ry
from roboyard.errors import InputError, MessageError, RunError


def words(text: str) -> ry.msg.String:
    return ry.msg.String(data=text)


@given(st.lists(st.tuples(st.integers(0, 2), st.text(max_size=3)), max_size=20), st.integers(1, 3))
def test_messages_reach_every_subscriber_in_order(sent: list[tuple[int, str]], subscribers: int) -> None:
    with BusHarness() as harness:
        received = [harness.record("/chatter", ry.msg.String) for _ in range(subscribers)]
        for publisher, text in sent:
            harness.publish("/chatter", words(text), source=f"/t{publisher}")
        harness.deliver()
        expected = [(f"/t{publisher}", text) for publisher, text in sent]
        assert all([(item.source, item.message.data) for item in traffic] == expected for traffic in received)
        assert harness.bus.topics["/chatter"].count == len(sent)


def test_namespaces_and_remaps_separate_topics_of_robots(harness: BusHarness) -> None:
    received: dict[str, list[tuple[str, str]]] = {"one": [], "two": []}
    nodes = {
        "a": harness.add(ry.Node(), "t", namespace="a"),
        "b": harness.add(ry.Node(), "t", namespace="/b/"),
        "one": harness.add(ry.Node(), "l", namespace="/a"),
        "two": harness.add(ry.Node(), "l2", remap={"chatter": "/b/chatter"}),
    }
    for name, messages in received.items():
        nodes[name].subscribe(
            "chatter",
            ry.msg.String,
            lambda m, source, messages=messages: messages.append((source, m.data)),
            with_source=True,
        )
    nodes["a"].publisher("chatter", ry.msg.String).publish(words("A"))
    nodes["b"].publisher("chatter", ry.msg.String).publish(words("B"))
    harness.deliver()
    assert received["one"] == [("/a/t", "A")]
    assert received["two"] == [("/b/t", "B")]


def test_latched_message_reaches_later_subscribers(harness: BusHarness) -> None:
    for text in ("old", "new"):
        harness.publish("/map", words(text), latched=True)
    harness.publish("/chatter", words("gone"))
    latched = harness.record("/map", ry.msg.String)
    unlatched = harness.record("/chatter", ry.msg.String)
    harness.deliver()
    assert [(item.source, item.message.data) for item in latched] == [("/test", "new")]
    assert unlatched == []


def test_topic_refuses_a_second_type(harness: BusHarness) -> None:
    node = harness.add(ry.Node(), "t")
    publisher = node.publisher("chatter", ry.msg.String)
    with pytest.raises(MessageError, match=r"/chatter has the type std_msgs/msg/String, not geometry_msgs/msg/Twist"):
        node.publisher("chatter", ry.msg.Twist)
    with pytest.raises(MessageError, match="not Twist"):
        publisher.publish(ry.msg.Twist())


def test_published_arrays_are_read_only(harness: BusHarness) -> None:
    scan = ry.msg.LaserScan(ranges=np.ones(3, dtype=np.float32))
    harness.publish("/scan", scan)
    with pytest.raises(ValueError, match="read-only"):
        scan.ranges[0] = 2.0


def test_debug_bus_names_the_node_that_changes_a_message() -> None:
    class Modifier(ry.Node):
        def setup(self) -> None:
            self.subscribe("chatter", ry.msg.String, lambda m: setattr(m, "data", "!"))

    with BusHarness((Modifier(), "modifier"), debug=True) as harness:
        harness.publish("/chatter", words("x"))
        with pytest.raises(RunError, match="node /modifier, topic /chatter: the callback changed a received"):
            harness.deliver()


def test_subscription_refuses_a_callback_that_is_not_callable(harness: BusHarness) -> None:
    node = harness.add(ry.Node(), "node")
    with pytest.raises(InputError, match="callback 3 is not callable"):
        node.subscribe("x", ry.msg.String, 3)
