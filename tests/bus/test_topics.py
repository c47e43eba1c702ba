"""Topics deliver everything to everybody, in order, and messages are shared read-only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import roboyard as ry
from roboyard.bus import NodeError
from roboyard.bus.names import resolve
from roboyard.errors import InputError, MessageError, RunError
from roboyard.messages import serialize


class Talker(ry.Node):
    """out: chatter"""

    def setup(self) -> None:
        self.out = self.publisher("chatter", ry.msg.String)

    def say(self, text: str) -> None:
        self.out.publish(ry.msg.String(data=text))


class Listener(ry.Node):
    """in: chatter"""

    def setup(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.subscribe(
            "chatter", ry.msg.String, lambda m, source: self.heard.append((source, m.data)), with_source=True
        )


@given(st.lists(st.tuples(st.integers(0, 2), st.text(max_size=3)), max_size=20), st.integers(1, 3))
def test_every_listener_hears_everything_in_the_order_it_was_said(said: list[tuple[int, str]], listeners: int) -> None:
    with ry.Bus() as bus:
        talkers = [bus.add(Talker(), f"t{i}") for i in range(3)]
        ears = [bus.add(Listener(), f"l{i}") for i in range(listeners)]
        for who, text in said:
            talkers[who].say(text)
        bus.executor.run_until(0)
        want = [(f"/t{who}", text) for who, text in said]
        assert all(ear.heard == want for ear in ears)
        assert bus.topics["/chatter"].count == len(said)


def test_namespaces_and_remaps_keep_robots_apart() -> None:
    with ry.Bus() as bus:
        a, b = bus.add(Talker(), "t", namespace="a"), bus.add(Talker(), "t", namespace="/b/")
        ear_a, ear_b = (
            bus.add(Listener(), "l", namespace="/a"),
            bus.add(Listener(), "l2", remap={"chatter": "/b/chatter"}),
        )
        a.say("A")
        b.say("B")
        bus.executor.run_until(0)
        assert ear_a.heard == [("/a/t", "A")]
        assert ear_b.heard == [("/b/t", "B")]


@pytest.mark.parametrize(
    ("name", "want"), [("x", "/r/x"), ("/x", "/x"), ("~x", "/r/n/x"), ("~/x/y", "/r/n/x/y"), ("a/b", "/r/a/b")]
)
def test_names_resolve_as_in_ros(name: str, want: str) -> None:
    assert resolve(name, "/r", "n") == want


@pytest.mark.parametrize("name", ["", "9x", "a b", "/", "a//b", "x/", "ä", "a-b"])
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="not a valid name"):
        resolve(name, "", "n")


def test_latched_messages_wait_for_late_listeners() -> None:
    with ry.Bus() as bus:
        talker = bus.add(Talker(), "t")
        map_pub = talker.publisher("map", ry.msg.String, latched=True)
        for text in ("old", "new"):
            map_pub.publish(ry.msg.String(data=text))
        talker.say("gone")
        late = bus.add(Listener(), "late", remap={"chatter": "map"})
        bus.executor.run_until(0)
        assert late.heard == [("/t", "new")]


def test_one_topic_has_one_type() -> None:
    with ry.Bus() as bus:
        talker = bus.add(Talker(), "t")
        with pytest.raises(MessageError, match=r"/chatter carries std_msgs/msg/String, not geometry_msgs/msg/Twist"):
            talker.publisher("chatter", ry.msg.Twist)
        with pytest.raises(MessageError, match="not Twist"):
            talker.out.publish(ry.msg.Twist())


def test_published_arrays_are_frozen() -> None:
    with ry.Bus() as bus:
        out = bus.add(Talker(), "t").publisher("scan", ry.msg.LaserScan)
        scan = ry.msg.LaserScan(ranges=np.ones(3, dtype=np.float32))
        out.publish(scan)
        with pytest.raises(ValueError, match="read-only"):
            scan.ranges[0] = 2.0


def test_debug_mode_names_the_node_that_changed_a_message() -> None:
    class Vandal(ry.Node):
        def setup(self) -> None:
            self.subscribe("chatter", ry.msg.String, lambda m: setattr(m, "data", "!"))

    with ry.Bus(debug=True) as bus:
        talker = bus.add(Talker(), "t")
        bus.add(Vandal(), "vandal")
        talker.say("x")
        with pytest.raises(RunError, match="node /vandal, topic /chatter: changed a received std_msgs/msg/String"):
            bus.executor.run_until(0)


def test_an_error_in_a_callback_names_node_topic_and_time() -> None:
    class Broken(ry.Node):
        def setup(self) -> None:
            self.subscribe("chatter", ry.msg.String, lambda m: 1 / 0)

    with ry.Bus() as bus:
        talker = bus.add(Talker(), "t")
        bus.add(Broken(), "broken", namespace="r", remap={"chatter": "/chatter"})
        bus.executor.at(1_500_000_000, lambda: talker.say("x"))
        with pytest.raises(NodeError) as caught:
            bus.executor.run_for(2.0)
        assert str(caught.value) == "node /r/broken, topic /chatter, at 1.500000 s: ZeroDivisionError: division by zero"
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_removed_node_hears_and_says_nothing() -> None:
    with ry.Bus() as bus:
        talker, ear = bus.add(Talker(), "t"), bus.add(Listener(), "l")
        ticks: list[int] = []
        ear.timer(0.1, lambda: ticks.append(bus.now_ns))
        talker.say("one")
        bus.remove(ear)
        bus.executor.run_for(1.0)
        assert ear.heard == []
        assert ticks == []
        assert bus.topics["/chatter"].subscriptions == []
        bus.remove(talker)
        with pytest.raises(RunError, match="closed"):
            talker.say("two")


def test_names_are_unique_and_a_failed_setup_leaves_nothing() -> None:
    class Fails(Listener):
        def setup(self) -> None:
            super().setup()
            raise OSError("no such port")

    with ry.Bus() as bus:
        bus.add(Talker(), "t")
        with pytest.raises(InputError, match="/t is on the bus already"):
            bus.add(Talker(), "t")
        with pytest.raises(NodeError, match="node /f, setup.*no such port"):
            bus.add(Fails(), "f")
        assert "/f" not in bus.nodes
        assert bus.topics["/chatter"].subscriptions == []


@given(st.floats(0.001, 0.5), st.booleans())
def test_timers_tick_exactly(period: float, start: bool) -> None:
    class Ticker(ry.Node):
        def setup(self) -> None:
            self.ticks: list[int] = []
            self.timer(period, lambda: self.ticks.append(self.now_ns), start=start)

    with ry.Bus() as bus:
        ticker = bus.add(Ticker(), "t")
        bus.executor.run_for(1.0)
        step = round(period * 1e9)
        assert ticker.ticks == list(range(0 if start else step, 10**9 + 1, step))


def test_random_numbers_depend_on_seed_and_name_only() -> None:
    def draw(seed: int, names: list[str]) -> dict[str, float]:
        with ry.Bus(seed=seed) as bus:
            nodes = [bus.add(Talker(), name) for name in names]
            return {node.name: node.random.random() for node in nodes}

    alone, together = draw(1, ["a"]), draw(1, ["c", "a", "b"])
    assert alone["a"] == together["a"]
    assert len({*together.values(), draw(2, ["a"])["a"]}) == 4


def test_log_and_diagnostics_reach_their_topics() -> None:
    with ry.Bus() as bus:
        seen: list[tuple[str, object]] = []
        bus.tap(lambda topic, message, node, time_ns: seen.append((topic.name, message)))
        talker = bus.add(Talker(), "t")
        for _ in range(5):
            talker.log.warn("slipping", every=1.0)
        talker.report_health("warn", "wheel slips", ratio=0.3)
        logs = [m for name, m in seen if name == "/rosout"]
        assert [(m.level, m.name, m.msg) for m in logs] == [(30, "/t", "slipping")]
        statuses = [m.status[0] for name, m in seen if name == "/diagnostics"]
        assert [(s.level, s.name, s.message, s.values[0].key) for s in statuses] == [(1, "/t", "wheel slips", "ratio")]
        assert bus.worst_health() == "warn"


def test_offloaded_work_arrives_at_its_declared_time_and_in_order() -> None:
    class Worker(ry.Node):
        def setup(self) -> None:
            self.got: list[tuple[int, int]] = []
            for number, latency in enumerate((0.3, 0.1, 0.2)):
                self.offload(
                    lambda n=number: n, latency=latency, then=lambda f: self.got.append((f.result, self.now_ns))
                )

    with ry.Bus() as bus:
        worker = bus.add(Worker(), "w")
        bus.executor.run_for(1.0)
        assert worker.got == [(1, 100_000_000), (2, 200_000_000), (0, 300_000_000)]
        assert bus.offload.pending == 0


def test_an_error_in_offloaded_work_names_its_node() -> None:
    def fails() -> None:
        raise ValueError("no plan")

    class Worker(ry.Node):
        def setup(self) -> None:
            self.offload(fails, latency=0.1, then=lambda f: None)

    with ry.Bus() as bus:
        bus.add(Worker(), "w")
        with pytest.raises(NodeError, match="node /w, offloaded fails, at 0.100000 s: ValueError: no plan"):
            bus.executor.run_for(1.0)


def test_saved_state_continues_bit_for_bit() -> None:
    class Walker(ry.Node):
        fields = ("position",)

        def setup(self) -> None:
            self.position = 0.0
            self.timer(0.1, self.tick)

        def tick(self) -> None:
            self.position += self.random.normal()

    def run(pieces: Callable[[ry.Bus, Walker], None]) -> float:
        with ry.Bus(seed=3) as bus:
            walker = bus.add(Walker(), "w")
            pieces(bus, walker)
            return walker.position

    state: dict[str, object] = {}

    def whole(bus: ry.Bus, walker: Walker) -> None:
        bus.executor.run_for(1.0)
        state.update(walker.save())
        bus.executor.run_for(1.0)

    def continued(bus: ry.Bus, walker: Walker) -> None:
        walker._timers[0].cancel()
        bus.executor.run_for(1.0)
        walker.load(state)
        bus.executor.run_for(1.0)

    assert run(whole) == run(continued)


def test_introspection_counts_what_happened() -> None:
    from roboyard.bus import graph

    with ry.Bus() as bus:
        talker, _ = bus.add(Talker(), "t"), bus.add(Listener(), "l")
        talker.timer(0.1, lambda: talker.say("x"))
        bus.executor.run_for(1.0)
        picture = graph(bus)
        topic = next(t for t in picture.topics if t.name == "/chatter")
        assert (topic.count, topic.publishers, topic.subscribers) == (10, ("/t",), ("/l",))
        assert topic.rate == pytest.approx(10.0)
        node = next(n for n in picture.nodes if n.name == "/l")
        assert node.subscribes == ("/chatter",)
        assert node.callbacks[0].count == 10
        assert node.busy > 0.0


def test_a_planar_pose_is_broadcast_as_the_pose_in_space() -> None:
    def told(pose: ry.SE2 | ry.SE3) -> bytes:
        with ry.Bus() as bus:
            found: list[Any] = []
            node = bus.add(ry.Node(), "n")
            bus.tap(lambda topic, message, source, time_ns: found.append(message) if topic.name == "/tf" else None)
            node.broadcast(pose, "odom", "base_link")
            return serialize(found[0])

    pose = ry.SE2(1.0, -2.0, 0.7)
    assert told(pose) == told(pose.to_se3())
