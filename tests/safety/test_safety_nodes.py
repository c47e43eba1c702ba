"""The arbiter node on a bus."""

from __future__ import annotations

import math

import pytest

from roboyard.bus import Bus, NodeError
from roboyard.messages import msg, srv
from roboyard.safety.nodes import ArbiterNode

SOURCES = ("teleop 100 0.5", "navigator 50 0.3", "homing 50 1.0")


class Bench:
    """A bus with an arbiter, some senders, and what came out: (time in s, forward speed)."""

    def __init__(self, bus: Bus, **parameters: object) -> None:
        self.bus = bus
        self.node = bus.add(ArbiterNode(sources=SOURCES, **parameters), "arbiter")
        self.out: list[tuple[float, float]] = []
        self.owners: list[str] = []
        self.lines: list[str] = []
        self.senders = {
            n: bus.publisher("/cmd_vel", msg.Twist, f"/{n}") for n in ("teleop", "navigator", "homing", "x")
        }
        bus.tap(self._see)
        bus.log_sinks.append(lambda record: self.lines.append(record.text))

    def _see(self, topic, message, node, time_ns) -> None:
        if topic.name == "/cmd_vel_out":
            self.out.append((time_ns * 1e-9, message.linear.x))
        if topic.name == "/arbiter/owner":
            self.owners.append(message.data)

    def send(self, who: str, speed: float) -> None:
        self.senders[who].publish(msg.Twist(linear=msg.Vector3(x=speed)))
        self.bus.executor.run_until(self.bus.now_ns)

    def run(self, seconds: float) -> None:
        self.bus.executor.run_for(seconds)


@pytest.fixture
def bench():
    with Bus() as bus:
        yield Bench(bus)


def test_the_owner_passes_and_silence_stops_exactly_at_the_timeout(bench: Bench) -> None:
    bench.send("teleop", 0.3)
    bench.run(0.4)
    bench.send("teleop", 0.4)
    bench.run(3.0)
    assert bench.out == [(0.0, 0.3), (pytest.approx(0.4), 0.4), (pytest.approx(0.9), 0.0)]
    assert bench.owners == ["/teleop", ""]


def test_priority_takes_over_at_once_and_the_waiting_source_inherits(bench: Bench) -> None:
    bench.send("homing", 0.1)
    bench.run(0.1)
    bench.send("teleop", 0.2)
    bench.send("navigator", 0.9)
    bench.send("homing", 0.15)
    bench.run(0.55)
    assert bench.out == [(0.0, 0.1), (pytest.approx(0.1), 0.2), (pytest.approx(0.6), 0.15)]
    assert bench.owners == ["/homing", "/teleop", "/homing"]


def test_a_shorter_deadline_moves_the_check_forward(bench: Bench) -> None:
    bench.send("homing", 0.1)  # would be looked at after 1 s
    bench.send("teleop", 0.2)
    bench.node._arbiter.release("/homing", 0)
    bench.run(0.6)
    assert bench.out[-1] == (pytest.approx(0.5), 0.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused_logged_once_and_never_forwarded(bench: Bench, bad: float) -> None:
    bench.send("navigator", 0.1)
    for _ in range(10):
        bench.send("teleop", bad)
    bench.run(1.0)
    assert [speed for _, speed in bench.out] == [0.1, 0.0]
    assert sum("not finite" in line for line in bench.lines) == 1


def test_refused_commands_do_not_keep_the_owner_alive(bench: Bench) -> None:
    bench.send("teleop", 0.3)
    for _ in range(8):
        bench.run(0.1)
        bench.send("teleop", math.nan)
    assert bench.out == [(0.0, 0.3), (pytest.approx(0.5), 0.0)]


def test_unknown_publishers_come_last_or_are_refused(bench: Bench) -> None:
    bench.send("x", 0.7)
    bench.send("navigator", 0.1)
    assert [speed for _, speed in bench.out] == [0.7, 0.1]
    with Bus() as bus:
        strict = Bench(bus, accept_unknown=False)
        strict.send("x", 0.7)
        assert not strict.out
        assert any("/x may not drive" in line for line in strict.lines)


def test_stop_holds_until_released(bench: Bench) -> None:
    bench.bus.executor.run_for(0.001)
    client = bench.bus.service_client("/arbiter/stop", srv.SetBool, "/test")
    bench.send("teleop", 0.3)
    client.call(srv.SetBool.Request(data=True))
    bench.run(0.1)
    bench.send("teleop", 0.4)
    bench.run(0.1)
    assert [speed for _, speed in bench.out] == [0.3, 0.0]
    client.call(srv.SetBool.Request(data=False))
    bench.run(0.01)
    assert [speed for _, speed in bench.out] == [0.3, 0.0, 0.4]


def test_health_tells_what_is_wrong_and_recovers(bench: Bench) -> None:
    def health() -> tuple[str, str]:
        return bench.node.health.level, bench.node.health.text

    assert health() == ("ok", "nobody drives")
    bench.send("teleop", 0.3)
    assert health() == ("ok", "/teleop drives")
    bench.send("navigator", math.nan)
    assert health()[0] == "warn"
    bench.send("teleop", 0.3)
    assert health() == ("ok", "/teleop drives")
    bench.bus.service_client("/arbiter/stop", srv.SetBool, "/test").call(srv.SetBool.Request(data=True))
    bench.run(2.0)
    assert health() == ("warn", "held by ~stop")


def test_a_late_subscriber_learns_the_owner(bench: Bench) -> None:
    bench.send("teleop", 0.3)
    assert bench.bus.topics["/arbiter/owner"].latched
    assert bench.bus.topics["/arbiter/owner"].publishers[0].last.data == "/teleop"


def test_a_saved_node_still_stops_in_time(bench: Bench) -> None:
    bench.send("teleop", 0.3)
    bench.run(0.2)
    state = bench.node.save()
    with Bus() as bus:
        bus.executor.run_for(0.2)
        other = Bench(bus)
        other.node.load(state)
        other.run(1.0)
        assert other.out == [(pytest.approx(0.5), 0.0)]


@pytest.mark.parametrize("bad", ["teleop", "teleop high 0.5", "teleop 1 0", "teleop 1 nan"])
def test_sources_that_cannot_be_read_are_named(bad: str) -> None:
    with Bus() as bus, pytest.raises(NodeError, match="teleop"):
        bus.add(ArbiterNode(sources=(bad,)), "arbiter")
