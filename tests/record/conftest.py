"""Small recordings for the tests of the record room."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import roboyard as ry
from roboyard.messages import serialize, stamp, type_name
from roboyard.record import McapWriter

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


@pytest.fixture(scope="session")
def make_items() -> Callable[..., list[Item]]:
    """Makes messages of so many seconds at such a rate."""
    return some_messages


@pytest.fixture
def items() -> list[Item]:
    """Three seconds of messages."""
    return some_messages()


@pytest.fixture(scope="session")
def write() -> Callable[..., None]:
    """Writes items to a file."""
    return write_items


@pytest.fixture
def recording_file(tmp_path: Path, items: list[Item]) -> Path:
    """A whole recording of ``items``."""
    path = tmp_path / "recording.mcap"
    write_items(path, items)
    return path
