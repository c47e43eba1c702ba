"""Disturbed topics: messages get lost with the chance asked for, or come late; the wire itself shows nothing."""

from __future__ import annotations

import pickle

import roboyard as ry
from roboyard.bus.disturbance import Disturbance


class Talker(ry.Node):
    fields = ("count",)

    def setup(self) -> None:
        self.count = 0
        self.out = self.publisher("words", ry.msg.UInt32)
        self.timer(0.01, self.tick)

    def tick(self) -> None:
        self.count += 1
        self.out.publish(ry.msg.UInt32(data=self.count))


class Listener(ry.Node):
    fields = ("heard",)

    def setup(self) -> None:
        self.heard: list[tuple[int, int]] = []
        self.subscribe("words", ry.msg.UInt32, lambda message: self.heard.append((self.now_ns, message.data)))


def talk(*disturbances: tuple[float, int]) -> tuple[ry.Bus, Listener]:
    bus = ry.Bus(seed=5)
    bus.add(Talker(), "talker")
    listener = bus.add(Listener(), "listener")
    for k, (loss, delay_ns) in enumerate(disturbances):
        bus.topics["/words"].disturbances.append(Disturbance(loss, delay_ns, bus.random(f"d{k}")))
    return bus, listener


def test_the_share_that_is_lost() -> None:
    bus, listener = talk((0.3, 0))
    wire: list[int] = []
    bus.tap(lambda topic, message, node, time_ns: wire.append(time_ns) if topic.name == "/words" else None)
    bus.executor.run_for(20.0)
    assert len(wire) == bus.topics["/words"].count == 2000
    assert abs(len(listener.heard) / 2000 - 0.7) < 0.04
    assert bus.topics["/words"].disturbances[0].lost == 2000 - len(listener.heard)
    assert all(time_ns == 10_000_000 * data for time_ns, data in listener.heard)


def test_everything_lost_and_two_losses_on_top_of_each_other() -> None:
    bus, listener = talk((1.0, 0))
    bus.executor.run_for(1.0)
    assert listener.heard == []
    bus, listener = talk((0.5, 0), (0.5, 0))
    bus.executor.run_for(20.0)
    assert abs(len(listener.heard) / 2000 - 0.25) < 0.04


def test_delays_add_up_and_keep_the_order() -> None:
    bus, listener = talk((0.0, 25_000_000), (0.0, 10_000_000))
    bus.executor.run_for(1.0)
    assert [data for _, data in listener.heard] == list(range(1, 97))
    assert all(time_ns == 10_000_000 * data + 35_000_000 for time_ns, data in listener.heard)


def test_what_is_on_its_way_is_part_of_the_state() -> None:
    whole, listener = talk((0.2, 35_000_000))
    whole.executor.run_for(1.0)
    first, heard = talk((0.2, 35_000_000))
    first.executor.run_for(0.503)
    saved = pickle.loads(pickle.dumps(first.save()))
    random = first.topics["/words"].disturbances[0].rng.bit_generator.state
    second, rest = talk((0.2, 35_000_000))
    second.load(saved)
    second.topics["/words"].disturbances[0].rng.bit_generator.state = random
    second.executor.run_until(10**9)
    assert len(heard.heard) < 45
    assert rest.heard == listener.heard


def test_equal_seeds_lose_the_same() -> None:
    runs = []
    for _ in range(2):
        bus, listener = talk((0.5, 1_000_000))
        bus.executor.run_for(2.0)
        runs.append(listener.heard)
    assert runs[0] == runs[1]
