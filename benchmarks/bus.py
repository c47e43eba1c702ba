"""How many messages the bus carries a second on one core.

Beside it, in the same run: the limit, which is the same callbacks called by a program without any bus, and what one
would take from the standard library instead, a queue and a task for each listener.
"""

from __future__ import annotations

import asyncio
from statistics import median
from typing import Any

import numpy as np

import roboyard as ry
from roboyard.bus import TransformBuffer
from roboyard.compute.wall_clock import perf_ns
from roboyard.geometry import SE3
from roboyard.messages.convert import transforms_to_msg


class _Sink(ry.Node):
    """Receives and counts."""

    def setup(self) -> None:
        self.count = 0

    def listen(self, name: str, kind: type) -> None:
        self.subscribe(name, kind, self._on)

    def _on(self, message: Any) -> None:
        self.count += 1


class _Rover(ry.Node):
    """Publishes what a driving rover does, at its real rates."""

    def setup(self) -> None:
        msg = ry.msg
        self.scan = self.publisher("scan", msg.LaserScan)
        self.imu = self.publisher("imu", msg.Imu)
        self.odom = self.publisher("odom", msg.Odometry)
        self.joints = self.publisher("joint_states", msg.JointState)
        self.command = self.publisher("cmd_vel", msg.Twist)
        self.ranges = np.ones(720, dtype=np.float32)
        self.timer(rate=10.0, callback=self._scan)
        self.timer(rate=100.0, callback=self._imu)
        self.timer(rate=50.0, callback=self._odom)

    def _scan(self) -> None:
        self.scan.publish(ry.msg.LaserScan(ranges=self.ranges.copy()))

    def _imu(self) -> None:
        self.imu.publish(ry.msg.Imu())

    def _odom(self) -> None:
        self.odom.publish(ry.msg.Odometry())
        self.joints.publish(ry.msg.JointState(name=["a", "b", "c", "d"], position=np.zeros(4)))
        self.command.publish(ry.msg.Twist())
        pose = SE3.from_xyz_rpy((self.now, 0.0, 0.0), (0.0, 0.0, 0.1))
        self.send_transforms([(pose, "odom", "base_link"), (pose, "base_link", "wheel"), (pose, "base_link", "wheel2")])


def small_message_rate(messages: int = 20_000, listeners: int = 4) -> float:
    """Deliveries a second of a Twist to ``listeners`` nodes."""
    with ry.Bus() as bus:
        source = bus.add(_Sink(), "source")
        publisher = source.publisher("small", ry.msg.Twist)
        sinks = [bus.add(_Sink(), f"sink{i}") for i in range(listeners)]
        for sink in sinks:
            sink.listen("small", ry.msg.Twist)
        twist = ry.msg.Twist()
        bus.executor.run_until(0)
        start = perf_ns()
        for _ in range(messages):
            publisher.publish(twist)
        bus.executor.run_until(0)
        seconds = (perf_ns() - start) * 1e-9
    return sum(sink.count for sink in sinks) / seconds


def plain_call_rate(messages: int = 20_000, listeners: int = 4) -> float:
    """The physical limit: the same callbacks called in a bare loop, with no bus at all."""
    sinks = [_Sink() for _ in range(listeners)]
    for sink in sinks:
        sink.count = 0
    callbacks = [sink._on for sink in sinks]
    twist = ry.msg.Twist()
    start = perf_ns()
    for _ in range(messages):
        for callback in callbacks:
            callback(twist)
    return messages * listeners / ((perf_ns() - start) * 1e-9)


def queue_rate(messages: int = 5_000, listeners: int = 4) -> float:
    """The same over asyncio: each listener has a queue, and a task that takes messages out and calls back."""

    async def listen(queue: asyncio.Queue[Any], sink: _Sink) -> None:
        for _ in range(messages):
            sink._on(await queue.get())

    async def all_of_it() -> float:
        sinks = [_Sink() for _ in range(listeners)]
        queues: list[asyncio.Queue[Any]] = [asyncio.Queue() for _ in sinks]
        for sink in sinks:
            sink.count = 0
        twist = ry.msg.Twist()
        start = perf_ns()
        tasks = [asyncio.create_task(listen(queue, sink)) for queue, sink in zip(queues, sinks, strict=True)]
        for _ in range(messages):
            for queue in queues:
                queue.put_nowait(twist)
            await asyncio.sleep(0)  # as the bus, which delivers before anything else happens
        await asyncio.gather(*tasks)
        return sum(sink.count for sink in sinks) / ((perf_ns() - start) * 1e-9)

    return asyncio.run(all_of_it())


def plain_mix_rate(seconds: float = 20.0, listeners: int = 2) -> float:
    """The limit of the rover's mix: the same messages made and handed on, and transforms kept, by one plain loop."""
    sinks = [_Sink() for _ in range(listeners)]
    for sink in sinks:
        sink.count = 0
    callbacks = [sink._on for sink in sinks]
    buffer, ranges, transforms = TransformBuffer(), np.ones(720, dtype=np.float32), 0

    def hand_on(message: Any) -> None:
        for callback in callbacks:
            callback(message)

    msg = ry.msg
    start = perf_ns()
    for tick in range(round(seconds * 100.0)):
        time_ns = tick * 10_000_000
        hand_on(msg.Imu())
        if tick % 2 == 0:
            hand_on(msg.Odometry())
            hand_on(msg.JointState(name=["a", "b", "c", "d"], position=np.zeros(4)))
            hand_on(msg.Twist())
            pose = SE3.from_xyz_rpy((time_ns * 1e-9, 0.0, 0.0), (0.0, 0.0, 0.1))
            moved = [(pose, "odom", "base_link"), (pose, "base_link", "wheel"), (pose, "base_link", "wheel2")]
            hand_on(transforms_to_msg(moved, time_ns))
            for T_parent_child, parent, child in moved:
                buffer.insert(T_parent_child, parent, child, time_ns)
            transforms += 1
        if tick % 10 == 0:
            hand_on(msg.LaserScan(ranges=ranges.copy()))
    return (sum(sink.count for sink in sinks) + transforms) / ((perf_ns() - start) * 1e-9)


def rover_mix_rate(seconds: float = 20.0, listeners: int = 2) -> float:
    """Deliveries a second of the rover's messages to ``listeners`` of each topic; transforms go into the buffer too."""
    with ry.Bus() as bus:
        bus.add(_Rover(), "rover")
        sinks = [bus.add(_Sink(), f"sink{i}") for i in range(listeners)]
        for sink in sinks:
            for name in ("scan", "imu", "odom", "joint_states", "cmd_vel", "tf"):
                topic = bus.topics[f"/{name}"]
                sink.listen(topic.name, topic.type)
        bus.executor.run_until(0)
        start = perf_ns()
        bus.executor.run_for(seconds)
        wall = (perf_ns() - start) * 1e-9
        transforms = bus.topics["/tf"].count
    return (sum(sink.count for sink in sinks) + transforms) / wall


def run(nightly: bool = False) -> dict[str, Any]:
    """Measure; medians over repeats.  ``nightly`` repeats more."""
    repeats = 15 if nightly else 5
    small = median(small_message_rate() for _ in range(repeats))
    bare = median(plain_call_rate() for _ in range(repeats))
    queues = median(queue_rate() for _ in range(repeats))
    mix = median(rover_mix_rate() for _ in range(repeats))
    plain = median(plain_mix_rate() for _ in range(repeats))
    return {
        "figures": [
            {
                "name": "small message between nodes", "value": small, "unit": "deliveries/s", "target": ">= 300000",
                "peer": "asyncio queues", "peer_value": queues, "ratio": small / queues,
            },
            {
                "name": "the same, against the limit", "value": small, "unit": "deliveries/s",
                "peer": "bare Python calls", "peer_value": bare, "ratio": small / bare,
            },
            {
                "name": "rover's message mix with transforms", "value": mix, "unit": "deliveries/s",
                "target": ">= 60000", "peer": "one plain loop without a bus", "peer_value": plain, "ratio": mix / plain,
            },
        ]
    }  # fmt: skip
