"""Messages, nodes and short recordings that the tests of the record room share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tests.harness.bus import BusHarness, Traffic

import roboyard as ry
from roboyard.geometry import SE3
from roboyard.messages import serialize, time_to_msg, type_name
from roboyard.record import McapWriter, Recorder

Item = tuple[int, str, str, Any]
"""Time [ns], topic, publisher, message."""


def make_messages(seconds: float = 3.0, rate: int = 10) -> list[Item]:
    """Return transforms, scans, commands and texts of a robot in order of time."""
    random = np.random.default_rng(7)
    items: list[Item] = [(0, "/tf_static", "/rover/robot_state", ry.msg.TFMessage([ry.msg.TransformStamped()]))]
    for index in range(round(seconds * rate)):
        time_ns = index * 10**9 // rate
        scan = ry.msg.LaserScan(ranges=random.random(20).astype(np.float32))
        scan.header.stamp = time_to_msg(time_ns)
        items.append((time_ns, "/scan", "/rover/lidar", scan))
        items.append((time_ns, "/cmd_vel", "/teleop" if index % 3 else "/navigator", ry.msg.Twist()))
        items.append((time_ns, "/words", "/rover/talker", ry.msg.String(data=f"number {index}")))
    return items


def write_items(output: Any, items: list[Item], **options: Any) -> None:
    """Write the items with `McapWriter`."""
    with McapWriter(output, {"seed": "7", "scenario": "test"}, **options) as writer:
        for time_ns, topic, publisher, message in items:
            channel = writer.channel(topic, type_name(type(message)), publisher, latched=topic == "/tf_static")
            writer.write(channel, time_ns, serialize(message))


class SensorRobot(ry.Node):
    """out: scan image tf"""

    def setup(self) -> None:
        """Start to publish sensor data at 10 Hz and the pose at 50 Hz."""
        self.scan = self.publisher("scan", ry.msg.LaserScan)
        self.image = self.publisher("image", ry.msg.Image)
        self.timer(0.1, self.measure, immediate=True)
        self.timer(rate=50.0, callback=self.publish_pose)
        self.send_transform(SE3.from_xyz_rpy((0.2, 0, 0.1)), "base_link", "laser", static=True)

    def measure(self) -> None:
        """Publish a scan and an image."""
        self.scan.publish(ry.msg.LaserScan(ranges=self.random.random(8).astype(np.float32)))
        self.image.publish(ry.msg.Image(data=np.zeros(3, np.uint8)))

    def publish_pose(self) -> None:
        """Publish the pose of the robot, which drives at 1 m/s."""
        self.send_transform(SE3.from_xyz_rpy((self.now, 0, 0)), "odom", "base_link")


class PositionSampler(ry.Node):
    """Looks up the position of the laser at 20 Hz, never at an instant at which the robot publishes."""

    def setup(self) -> None:
        """Start to sample."""
        self.positions: list[float] = []
        self.timer(0.0501, self.sample)

    def sample(self) -> None:
        """Store the position once the transform is available."""
        if self.transforms.can_lookup("odom", "laser"):
            self.positions.append(self.transforms.lookup("odom", "laser").x)


def make_subscribers(harness: BusHarness) -> tuple[Traffic, PositionSampler]:
    """Return the scans that a subscriber of the robot receives, and a sampler of its position."""
    sampler = harness.add(PositionSampler(), "sampler")
    return harness.record("/rover/scan", ry.msg.LaserScan), sampler


def record_robot(path: Path, seconds: float = 2.0, **options: Any) -> tuple[Traffic, PositionSampler]:
    """Record the robot; return the messages and positions that subscribers received meanwhile."""
    with BusHarness(seed=3) as harness:
        with Recorder(harness.bus, path, metadata={"seed": "3"}, **options):
            harness.add(SensorRobot(), "robot", namespace="rover")
            subscribers = make_subscribers(harness)
            harness.run_for(seconds)
        return subscribers
