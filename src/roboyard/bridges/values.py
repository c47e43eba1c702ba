"""Messages as JSON has them, and back."""

from __future__ import annotations

import base64
import binascii
from functools import cache
from typing import Any

import numpy as np

from roboyard.errors import MessageError
from roboyard.messages import message_type
from roboyard.messages.from_data import message_from_data
from roboyard.messages.message_definition import EMPTY_MEMBER
from roboyard.messages.type_registry import definition_of

_OCTETS = ("uint8", "char", "byte")


def to_json(message: Any) -> Any:
    """A message as mappings, lists and values: octets in base64, what is no number as null."""
    return _fields(message, message.__msgtype__)


def from_json(name: str, data: Any) -> Any:
    """The message of type ``name`` in ``data``; fields that are missing keep their defaults. Raises MessageError."""
    return message_from_data(message_type(name), _readable(name, data))


def _fields(message: Any, name: str) -> dict[str, Any]:
    return {
        label: _value(getattr(message, attribute), kind, single) for label, attribute, kind, single in _layout(name)
    }


@cache
def _layout(name: str) -> tuple[tuple[str, str, str, bool], ...]:
    """Label, attribute, type, and whether it is a single one, of each field."""
    return tuple(
        (field.name, field.python_name, field.type, field.arity == "one")
        for field in definition_of(name).fields
        if field.name != EMPTY_MEMBER
    )


def _value(value: Any, kind: str, single: bool) -> Any:
    if "/" in kind:
        return _fields(value, kind) if single else [_fields(item, kind) for item in value]
    if isinstance(value, np.ndarray):
        if kind in _OCTETS:
            return base64.b64encode(value.tobytes()).decode()
        if value.dtype.kind == "f":
            finite = np.isfinite(value)
            listed = value.tolist()
            return listed if finite.all() else [x if good else None for x, good in zip(listed, finite, strict=True)]
        return value.tolist()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def _readable(name: str, data: Any) -> Any:
    """``data`` as `fill` takes it: null is no number, octets come in base64 too, whole numbers where they belong."""
    if not isinstance(data, dict):
        raise MessageError(f"{str(data)[:60]} where a {name} belongs", valid="an object of its fields")
    found: dict[str, Any] = dict(data)
    for label, _, kind, single in _layout(name):
        if label not in found:
            continue
        value = found[label]
        if "/" in kind:
            if single:
                found[label] = _readable(kind, value)
            elif isinstance(value, list):
                found[label] = [_readable(kind, item) for item in value]
        elif isinstance(value, str) and kind in _OCTETS and not single:
            found[label] = _octets(value, f"{name}.{label}")
        elif kind.startswith("float"):
            found[label] = _not_numbers(value)
    if name == "builtin_interfaces/msg/Time" and "secs" in found:  # as ROS 1 calls them
        found = {"sec": found.pop("secs"), "nanosec": found.pop("nsecs", 0)}
    if name == "std_msgs/msg/Header":
        found.pop("seq", None)
    return found


def _not_numbers(value: Any) -> Any:
    if value is None:
        return float("nan")
    if isinstance(value, list):
        return [_not_numbers(item) for item in value]
    return value


def _octets(text: str, where: str) -> list[int]:
    try:
        return list(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError) as error:
        raise MessageError(f"no base64: {error}", location=where) from error
