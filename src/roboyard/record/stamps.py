"""Moves the stamps in messages, so that a recording that is played again goes on where it ended."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from roboyard.messages import nanoseconds, stamp
from roboyard.messages.layout import definition_of

_TIME: Final = "builtin_interfaces/msg/Time"


def move_stamps(message: Any, by_ns: int) -> None:
    """Add ``by_ns`` to every stamp in ``message``, which must be nobody else's; a stamp of 0 means none and stays.

    Raises:
        MessageError: a stamp leaves the range of its 32-bit seconds.
    """
    _move(message, message.__msgtype__, by_ns)


def _move(message: Any, type_name: str, by_ns: int) -> None:
    for attribute, kind, single in _stamped(type_name):
        value = getattr(message, attribute)
        if kind != _TIME:
            for item in (value,) if single else value:
                _move(item, kind, by_ns)
        elif single:
            setattr(message, attribute, _moved(value, by_ns))
        else:
            setattr(message, attribute, [_moved(item, by_ns) for item in value])


def _moved(time: Any, by_ns: int) -> Any:
    now_ns = nanoseconds(time)
    return stamp(now_ns + by_ns) if now_ns else time


@cache
def _stamped(type_name: str) -> tuple[tuple[str, str, bool], ...]:
    """Attribute, type, and whether it is a single one, of each field that is a stamp or holds any."""
    return tuple(
        (field.attribute, field.type, field.kind == "one")
        for field in definition_of(type_name).fields
        if field.nested and (field.type == _TIME or _stamped(field.type))
    )
