"""Nanoseconds ↔ builtin_interfaces Time and Duration."""

from __future__ import annotations

from typing import Any

from roboyard.messages.store import message_type

_SECOND = 1_000_000_000


def stamp(time_ns: int) -> Any:
    """A Time of ``time_ns``."""
    sec, nanosec = divmod(time_ns, _SECOND)
    return message_type("builtin_interfaces/msg/Time")(sec, nanosec)


def duration(time_ns: int) -> Any:
    """A Duration of ``time_ns``."""
    sec, nanosec = divmod(time_ns, _SECOND)
    return message_type("builtin_interfaces/msg/Duration")(sec, nanosec)


def nanoseconds(message: Any) -> int:
    """The nanoseconds of a Time or Duration."""
    return int(message.sec) * _SECOND + int(message.nanosec)
