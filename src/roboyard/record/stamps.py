"""Moves the stamps in messages, so that a recording that is played again goes on where it ended."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from roboyard.messages import time_to_msg, to_nanoseconds
from roboyard.messages.layout import definition_of

_TIME: Final = "builtin_interfaces/msg/Time"


def shift_time_stamps(message: Any, offset_ns: int) -> None:
    """Add ``by_ns`` to every stamp in ``message``, which must be nobody else's; a stamp of 0 means none and stays.

    Raises:
        MessageError: a stamp leaves the range of its 32-bit seconds.
    """
    _shift_fields(message, message.__msgtype__, offset_ns)


def _shift_fields(message: Any, type_name: str, offset_ns: int) -> None:
    for attribute, field_type, single in _time_fields(type_name):
        value = getattr(message, attribute)
        if field_type != _TIME:
            for item in (value,) if single else value:
                _shift_fields(item, field_type, offset_ns)
        elif single:
            setattr(message, attribute, _shift_time(value, offset_ns))
        else:
            setattr(message, attribute, [_shift_time(item, offset_ns) for item in value])


def _shift_time(time: Any, offset_ns: int) -> Any:
    now_ns = to_nanoseconds(time)
    return time_to_msg(now_ns + offset_ns) if now_ns else time


@cache
def _time_fields(type_name: str) -> tuple[tuple[str, str, bool], ...]:
    """Attribute, type, and whether it is a single one, of each field that is a stamp or holds any."""
    return tuple(
        (field.python_name, field.type, field.arity == "one")
        for field in definition_of(type_name).fields
        if field.is_message and (field.type == _TIME or _time_fields(field.type))
    )
