"""Times and durations: integer nanoseconds inside, two fields in messages."""

from __future__ import annotations

from typing import Any

from roboyard.errors import MessageError
from roboyard.messages.classes import message_class

_SECOND = 1_000_000_000
_MAX_CLOCK_DIFFERENCE_NS = 100_000_000


def time_to_msg(time_ns: int) -> Any:
    """A ``builtin_interfaces/Time`` of nanoseconds from 0.

    Raises:
        MessageError: out of range of its 32-bit seconds.
    """
    return _make_message(_time_class or _load()[0], time_ns)


def duration_to_msg(duration_ns: int) -> Any:
    """A ``builtin_interfaces/Duration``; negative ones have negative seconds and ``nanosec`` counting up from there.

    Raises:
        MessageError: out of range of its 32-bit seconds.
    """
    return _make_message(_duration_class or _load()[1], duration_ns)


def to_nanoseconds(time: Any) -> int:
    """Nanoseconds of a Time or Duration."""
    return int(time.sec) * _SECOND + int(time.nanosec)


def to_seconds(time: Any) -> float:
    """Seconds of a Time or Duration, rounded to a float: for durations, not for stamps of long runs."""
    return float(time.sec + time.nanosec * 1e-9)


def is_in_future(stamp_ns: int, now_ns: int) -> bool:
    """Whether a stamp is so far in the future of a clock that no difference between two machines' clocks explains it.

    A node that waits for such a stamp, or takes it for the newest, uses nothing else until then.

    Args:
        stamp_ns: Of a message [ns].
        now_ns: Of the clock of whoever takes it [ns].
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
