"""The graph of a bus lists connections, message counts and rates, and the time spent in callbacks."""

from __future__ import annotations

import pytest
from tests.harness.bus import BusHarness

import roboyard as ry
from roboyard.bus import graph


def test_graph_counts_messages_and_callbacks() -> None:
    with BusHarness() as harness:
        publishing, subscribing = harness.add(ry.Node(), "t"), harness.add(ry.Node(), "l")
        out = publishing.publisher("chatter", ry.msg.String)
        subscribing.subscribe("chatter", ry.msg.String, lambda message: None)
        publishing.timer(0.1, lambda: out.publish(ry.msg.String(data="x")))
        harness.run_for(1.0)
        bus_graph = graph(harness.bus)
        topic = next(t for t in bus_graph.topics if t.name == "/chatter")
        assert (topic.count, topic.publishers, topic.subscribers) == (10, ("/t",), ("/l",))
        assert topic.rate == pytest.approx(10.0)
        node = next(n for n in bus_graph.nodes if n.name == "/l")
        assert node.subscribes == ("/chatter",)
        assert node.callbacks[0].count == 10
        assert node.callback_time > 0.0
