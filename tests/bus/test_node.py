"""Nodes: adding to and removing from a bus, timers, random generators, offloaded tasks, log, health, transforms."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.bus import BusHarness

import roboyard as ry
from roboyard.bus import NodeError
from roboyard.errors import InputError, RunError
from roboyard.messages import serialize


def words(text: str) -> ry.msg.String:
    return ry.msg.String(data=text)


class Subscriber(ry.Node):
    """in: chatter"""

    def setup(self) -> None:
        self.received: list[str] = []
        self.subscribe("chatter", ry.msg.String, lambda message: self.received.append(message.data))


def test_bus_rejects_objects_that_are_no_node(harness: BusHarness) -> None:
    class WithoutSuperInit(ry.Node):
        def __init__(self) -> None:
            pass

    for invalid in (object(), ry.Node, None, WithoutSuperInit()):
        with pytest.raises(InputError, match="node /x: .*(is not a node|does not call Node.__init__)"):
            harness.add(invalid, "x")
    assert list(harness.bus.nodes) == ["/roboyard"]


def test_node_names_are_unique_and_failed_setup_is_undone(harness: BusHarness) -> None:
    class FailingNode(Subscriber):
        def setup(self) -> None:
            super().setup()
            raise OSError("no such port")

    harness.add(ry.Node(), "t").publisher("chatter", ry.msg.String)
    with pytest.raises(InputError, match="/t is already in use"):
        harness.add(ry.Node(), "t")
    with pytest.raises(NodeError, match="node /f, setup.*no such port"):
        harness.add(FailingNode(), "f")
    assert "/f" not in harness.bus.nodes
    assert harness.bus.topics["/chatter"].subscriptions == []


def test_callback_error_names_node_topic_and_time(harness: BusHarness) -> None:
    class FailingNode(ry.Node):
        def setup(self) -> None:
            self.subscribe("chatter", ry.msg.String, lambda m: 1 / 0)

    harness.add(FailingNode(), "broken", namespace="r", remap={"chatter": "/chatter"})
    harness.at(1.5, lambda: harness.publish("/chatter", words("x")))
    with pytest.raises(NodeError) as caught:
        harness.run_for(2.0)
    assert str(caught.value) == "node /r/broken, topic /chatter, at 1.500000 s: ZeroDivisionError: division by zero"
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_removed_node_neither_receives_nor_publishes(harness: BusHarness) -> None:
    publishing, subscriber = harness.add(ry.Node(), "t"), harness.add(Subscriber(), "l")
    out = publishing.publisher("chatter", ry.msg.String)
    ticks: list[int] = []
    subscriber.timer(0.1, lambda: ticks.append(harness.now_ns))
    out.publish(words("one"))
    harness.bus.remove(subscriber)
    harness.run_for(1.0)
    assert subscriber.received == []
    assert ticks == []
    assert harness.bus.topics["/chatter"].subscriptions == []
    harness.bus.remove(publishing)
    with pytest.raises(RunError, match="closed"):
        out.publish(words("two"))


@given(st.floats(0.001, 0.5), st.booleans())
def test_timers_tick_exactly(period: float, start: bool) -> None:
    class Ticker(ry.Node):
        def setup(self) -> None:
            self.ticks: list[int] = []
            self.timer(period, lambda: self.ticks.append(self.now_ns), immediate=start)

    with BusHarness() as harness:
        ticker = harness.add(Ticker(), "t")
        harness.run_for(1.0)
        step = round(period * 1e9)
        assert ticker.ticks == list(range(0 if start else step, 10**9 + 1, step))


def test_random_numbers_depend_on_seed_and_name_only() -> None:
    def draw(seed: int, names: list[str]) -> dict[str, float]:
        with BusHarness(seed=seed) as harness:
            nodes = [harness.add(ry.Node(), name) for name in names]
            return {node.name: node.random.random() for node in nodes}

    alone, with_others = draw(1, ["a"]), draw(1, ["c", "a", "b"])
    assert alone["a"] == with_others["a"]
    assert len({*with_others.values(), draw(2, ["a"])["a"]}) == 4


def test_log_and_diagnostics_reach_their_topics(harness: BusHarness) -> None:
    node = harness.add(ry.Node(), "t")
    for _ in range(5):
        node.log.warn("slipping", throttle=1.0)
    node.report_health("warn", "wheel slips", ratio=0.3)
    logs = harness.published("/rosout").messages
    assert [(m.level, m.name, m.msg) for m in logs] == [(30, "/t", "slipping")]
    statuses = [m.status[0] for m in harness.published("/diagnostics").messages]
    assert [(s.level, s.name, s.message, s.values[0].key) for s in statuses] == [(1, "/t", "wheel slips", "ratio")]
    assert harness.bus.worst_health_level() == "warn"


def test_offloaded_result_is_delivered_after_its_latency(harness: BusHarness) -> None:
    class Worker(ry.Node):
        def setup(self) -> None:
            self.results: list[tuple[int, int]] = []
            for number, latency in enumerate((0.3, 0.1, 0.2)):
                self.offload(
                    lambda n=number: n, latency=latency, on_done=lambda f: self.results.append((f.result, self.now_ns))
                )

    worker = harness.add(Worker(), "w")
    harness.run_for(1.0)
    assert worker.results == [(1, 100_000_000), (2, 200_000_000), (0, 300_000_000)]
    assert harness.bus.offload.pending == 0


def test_offloaded_work_error_names_its_node(harness: BusHarness) -> None:
    def raise_error() -> None:
        raise ValueError("no plan")

    class Worker(ry.Node):
        def setup(self) -> None:
            self.offload(raise_error, latency=0.1, on_done=lambda f: None)

    harness.add(Worker(), "w")
    with pytest.raises(NodeError, match="node /w, offloaded raise_error, at 0.100000 s: ValueError: no plan"):
        harness.run_for(1.0)


def test_loaded_node_continues_bit_for_bit() -> None:
    class RandomWalk(ry.Node):
        state_fields = ("position",)

        def setup(self) -> None:
            self.position = 0.0
            self.timer(0.1, self.tick)

        def tick(self) -> None:
            self.position += self.random.normal()

    def run(steps: Callable[[BusHarness, RandomWalk], None]) -> float:
        with BusHarness(seed=3) as harness:
            node = harness.add(RandomWalk(), "w")
            steps(harness, node)
            return node.position

    state: dict[str, object] = {}

    def run_uninterrupted(harness: BusHarness, node: RandomWalk) -> None:
        harness.run_for(1.0)
        state.update(node.save_state())
        harness.run_for(1.0)

    def run_loaded(harness: BusHarness, node: RandomWalk) -> None:
        node._timers[0].cancel()
        harness.run_for(1.0)
        node.load_state(state)
        harness.run_for(1.0)

    assert run(run_uninterrupted) == run(run_loaded)


def test_planar_transform_equals_its_spatial_transform() -> None:
    def broadcast(pose: ry.SE2 | ry.SE3) -> bytes:
        with BusHarness() as harness:
            harness.add(ry.Node(), "n").send_transform(pose, "odom", "base_link")
            return serialize(harness.published("/tf").messages[0])

    pose = ry.SE2(1.0, -2.0, 0.7)
    assert broadcast(pose) == broadcast(pose.to_se3())
