"""Messages, nodes and small recordings that the tests of the record room share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import roboyard as ry
from roboyard.bus import Bus
from roboyard.geometry import SE3
from roboyard.messages import serialize, stamp, type_name
from roboyard.record import McapWriter, Recorder

Item = tuple[int, str, str, Any]
"""Time [ns], topic, publisher, message."""


def some_messages(seconds: float = 3.0, rate: int = 10) -> list[Item]:
    """A robot's odd mixture, in order of time."""
    random = np.random.default_rng(7)
    items: list[Item] = [(0, "/tf_static", "/rover/robot_state", ry.msg.TFMessage([ry.msg.TransformStamped()]))]
    for index in range(round(seconds * rate)):
        time_ns = index * 10**9 // rate
        scan = ry.msg.LaserScan(ranges=random.random(20).astype(np.float32))
        scan.header.stamp = stamp(time_ns)
        items.append((time_ns, "/scan", "/rover/lidar", scan))
        items.append((time_ns, "/cmd_vel", "/teleop" if index % 3 else "/navigator", ry.msg.Twist()))
        items.append((time_ns, "/words", "/rover/talker", ry.msg.String(data=f"number {index}")))
    return items


def write_items(output: Any, items: list[Item], **options: Any) -> None:
    """Write the items with our writer."""
    with McapWriter(output, {"seed": "7", "scenario": "test"}, **options) as writer:
        for time_ns, topic, publisher, message in items:
            channel = writer.channel(topic, type_name(type(message)), publisher, latched=topic == "/tf_static")
            writer.write(channel, time_ns, serialize(message))


class Robot(ry.Node):
    """out: scan odom tf"""

    def setup(self) -> None:
        """Publish at 10 and 50 Hz."""
        self.scan = self.publisher("scan", ry.msg.LaserScan)
        self.image = self.publisher("image", ry.msg.Image)
        self.timer(0.1, self.measure, start=True)
        self.timer(rate=50.0, callback=self.move)
        self.broadcast(SE3.from_xyz_rpy((0.2, 0, 0.1)), "base_link", "laser", static=True)

    def measure(self) -> None:
        """A scan and a picture."""
        self.scan.publish(ry.msg.LaserScan(ranges=self.random.random(8).astype(np.float32)))
        self.image.publish(ry.msg.Image(data=np.zeros(3, np.uint8)))

    def move(self) -> None:
        """Where it is: 1 m/s."""
        self.broadcast(SE3.from_xyz_rpy((self.now, 0, 0)), "odom", "base_link")


class Listener(ry.Node):
    """in: scan"""

    def setup(self) -> None:
        """Keep what comes."""
        self.heard: list[tuple[int, str, Any]] = []
        self.subscribe("/rover/scan", ry.msg.LaserScan, self.on_scan, with_source=True)
        self.where: list[float] = []
        self.timer(0.0501, self.look)  # never at an instant at which the robot publishes

    def on_scan(self, message: Any, source: str) -> None:
        """Keep it."""
        self.heard.append((self.now_ns, source, message))

    def look(self) -> None:
        """Keep the position."""
        if self.transforms.can_lookup("odom", "laser"):
            self.where.append(self.transforms.lookup("odom", "laser").x)


def run(path: Path, seconds: float = 2.0, **options: Any) -> Listener:
    with Bus(seed=3) as bus:
        with Recorder(bus, path, metadata={"seed": "3"}, **options):
            bus.add(Robot(), "robot", namespace="rover")
            listener = bus.add(Listener(), "listener")
            bus.executor.run_for(seconds)
        return listener
