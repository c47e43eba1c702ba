"""Conversion of times and durations: integer nanoseconds inside, two fields in messages."""

from __future__ import annotations

from typing import Any

from roboyard.errors import MessageError
from roboyard.messages.classes import message_class

_SECOND = 1_000_000_000
_MAX_CLOCK_DIFFERENCE_NS = 100_000_000


def time_to_msg(time_ns: int) -> Any:
    """Convert nanoseconds since 0 to ``builtin_interfaces/Time``.

    Raises:
        MessageError: The time exceeds the range of 32-bit seconds.
    """
    return _make_message(_time_class or _load()[0], time_ns)


def duration_to_msg(duration_ns: int) -> Any:
    """Convert to ``builtin_interfaces/Duration``; negative durations have negative seconds and non-negative
    ``nanosec``.

    Raises:
        MessageError: The duration exceeds the range of 32-bit seconds.
    """
    return _make_message(_duration_class or _load()[1], duration_ns)


def to_nanoseconds(time: Any) -> int:
    """Return the nanoseconds of a Time or Duration."""
    return int(time.sec) * _SECOND + int(time.nanosec)


def to_seconds(time: Any) -> float:
    """Return the seconds of a Time or Duration, rounded to a float: for durations, not for stamps of long runs."""
    return float(time.sec + time.nanosec * 1e-9)


def is_in_future(stamp_ns: int, now_ns: int) -> bool:
    """Return whether a stamp is farther in the future than any difference between the clocks of two machines explains.

    A node that waits for such a stamp, or treats it as the newest, would ignore all others until then.

    Args:
        stamp_ns: Stamp of a message [ns].
        now_ns: Time of the receiver [ns].
    """
    return stamp_ns > now_ns + _MAX_CLOCK_DIFFERENCE_NS


_time_class: type[Any] | None = None
_duration_class: type[Any] | None = None


def _load() -> tuple[type[Any], type[Any]]:
    global _time_class, _duration_class
    _time_class = message_class("builtin_interfaces/msg/Time")
    _duration_class = message_class("builtin_interfaces/msg/Duration")
    return _time_class, _duration_class


def _make_message(message_type: type[Any], time_ns: int) -> Any:
    seconds, remainder_ns = divmod(time_ns, _SECOND)
    if not -(2**31) <= seconds < 2**31:
        raise MessageError(f"{time_ns} ns is out of range", valid="seconds that fit 32 bits")
    return message_type(seconds, remainder_ns)
