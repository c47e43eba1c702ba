"""Whoever floods from outside loses what is too much; the run, its memory and everybody else do not notice."""

from __future__ import annotations

from collections import Counter
from threading import Event, Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bridges.sample_robot import BridgedRobot

import roboyard as ry
from roboyard.bridges.gateway import BACKLOG, BACKLOG_BYTES, Gateway
from roboyard.bus.external_inputs import MAX_INPUT_RATE, MAX_INPUTS_PER_INSTANT
from roboyard.messages import serialize

TWIST = serialize(ry.msg.Twist(linear=ry.msg.Vector3(x=0.5)))
STRING = "std_msgs/msg/String"


class ClockConfig(ry.Config):
    """Configuration of `Clock`."""

    period: float = ry.parameter(0.001, unit="s", runtime=True)


class Clock(ry.Node[ClockConfig]):
    """Makes instants."""

    def setup(self) -> None:
        self.ticks = 0
        self.timer(self.config.period, self.tick)

    def tick(self) -> None:
        self.ticks += 1


def taken_at(bus: ry.Bus) -> Counter[int]:
    """How many inputs are taken at which instant, as the run goes on."""
    counts: Counter[int] = Counter()
    bus.add_message_observer(
        lambda topic, message, node, at_ns: counts.update([at_ns] if topic.name == "/inputs" else [])
    )
    return counts


@settings(max_examples=40)
@given(st.sampled_from([0.0005, 0.002, 0.02, 0.1]), st.lists(st.integers(0, 400), min_size=3, max_size=12))
def test_inputs_taken_in_any_interval_are_bounded(period: float, bursts: list[int]) -> None:
    """A bucket: an instant's worth, and so much a simulated second, however fine the instants are."""
    bus = ry.Bus()
    gateway, counts, sent = Gateway(bus, "bridge"), taken_at(bus), 0
    for burst in bursts:
        for _ in range(burst):
            sent += 1
            gateway.publish("/cmd_vel", "geometry_msgs/msg/Twist", "/flood", TWIST)
            assert bus.inputs.pending_count <= BACKLOG
        bus.executor.run_for(period)
    times = sorted(counts)
    for i, first in enumerate(times):
        for last in times[i:]:
            found = sum(counts[t] for t in times if first <= t <= last)
            assert found <= MAX_INPUTS_PER_INSTANT + (last - first) * 1e-9 * MAX_INPUT_RATE + 1
    bus.executor.run_for(1.0)
    assert bus.inputs.pending_count == 0
    assert bus.inputs.pending_from("/flood") == (0, 0)
    assert bus.inputs.accepted == gateway.counts["received"]
    assert gateway.counts["received"] + gateway.counts["dropped"] == sent
    bus.close()


@settings(max_examples=20)
@given(st.integers(1, 4), st.integers(1, 4))
def test_flood_of_one_source_drops_no_other(floods: int, calm: int) -> None:
    bus = ry.Bus()
    bus.add(Clock(), "clock")
    gateway, received = Gateway(bus, "bridge"), []
    bus.add_message_observer(
        lambda topic, message, node, at_ns: received.append((node, at_ns)) if topic.name == "/said" else None
    )
    data = serialize(ry.msg.String(data="x"))
    for _ in range(calm):
        for source in range(floods):
            for _ in range(2 * BACKLOG):
                gateway.publish("/said", STRING, f"/flood{source}", data)
        assert gateway.publish("/said", STRING, "/calm", data)
        began_ns = bus.now_ns
        bus.executor.run_for(0.2)
        (late_ns,) = [at_ns - began_ns for node, at_ns in received if node == "/calm" and at_ns >= began_ns]
        assert late_ns * 1e-9 <= floods * BACKLOG / MAX_INPUT_RATE + 0.001  # behind what the others may have waiting
    bus.close()


def test_large_inputs_are_bounded_by_their_bytes() -> None:
    bus = ry.Bus()
    gateway = Gateway(bus, "bridge")
    data = serialize(ry.msg.String(data="x" * 4_000_000))
    sent = [gateway.publish("/said", STRING, "/flood", data) for _ in range(30)]
    assert sum(sent) == BACKLOG_BYTES // len(data) + 1
    counts = taken_at(bus)
    bus.executor.run_for(0.005)
    cost = 1 + len(data) // 65_536
    assert sum(counts.values()) * cost <= MAX_INPUTS_PER_INSTANT + 0.005 * MAX_INPUT_RATE + cost
    bus.close()


@pytest.mark.parametrize("period", [0.001, 0.02])
def test_clock_goes_on_under_an_endless_flood(period: float) -> None:
    """The run gets to its end, as far as without it, and takes no more than the bound."""
    bus = ry.Bus()
    robot, gateway, ended = bus.add(BridgedRobot(), "wheels"), Gateway(bus, "bridge"), Event()
    clock = bus.add(Clock(period=period), "clock")
    counts, most = taken_at(bus), [0]

    def flood() -> None:
        while not ended.is_set():
            gateway.publish("/cmd_vel", "geometry_msgs/msg/Twist", "/flood", TWIST)
            most[0] = max(most[0], bus.inputs.pending_count)

    thread = Thread(target=flood)
    thread.start()
    try:
        bus.executor.run_for(1.0)
    finally:
        ended.set()
        thread.join()
    assert clock.ticks == round(1.0 / period)
    assert sum(counts.values()) <= MAX_INPUTS_PER_INSTANT + MAX_INPUT_RATE
    assert most[0] <= BACKLOG
    assert len(robot.commands) == gateway.counts["received"] - bus.inputs.pending_count
    bus.close()
