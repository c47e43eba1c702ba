"""The log: ROS 2's lines as ROS 1 has them."""

from __future__ import annotations

import struct
from typing import Any

_LEVELS = {10: 1, 20: 2, 30: 4, 40: 8, 50: 16}
"""rcl_interfaces/Log to rosgraph_msgs/Log."""


def text(value: str) -> bytes:
    """A string as ROS 1 writes it."""
    data = value.encode("utf-8", "replace")
    return struct.pack("<I", len(data)) + data


def header(stamp: Any, frame: str = "", sequence: int = 0) -> bytes:
    """A ``std_msgs/Header`` as ROS 1 writes it."""
    return struct.pack("<III", sequence, stamp.sec & 0xFFFFFFFF, stamp.nanosec) + text(frame)


def encode_log(message: Any) -> bytes:
    """A ``rcl_interfaces/Log`` as a ``rosgraph_msgs/Log``."""
    level = bytes([_LEVELS.get(int(message.level), 2)])
    texts = b"".join(text(part) for part in (message.name, message.msg, message.file, message.function))
    return header(message.stamp) + level + texts + struct.pack("<II", int(message.line), 0)
