"""ROS messages: one class a type with defaults, their bytes, and conversion from and to arrays."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "action": "factories",
    "action_type": "interfaces",
    "deserialize": "cdr",
    "duration": "time",
    "fingerprint": "frozen",
    "freeze": "frozen",
    "message_type": "store",
    "msg": "factories",
    "nanoseconds": "time",
    "register": "store",
    "schema": "cdr",
    "serialize": "cdr",
    "service_type": "interfaces",
    "srv": "factories",
    "stamp": "time",
    "type_hash": "cdr",
    "type_name": "cdr",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - the names live in lazily imported modules


def __getattr__(name: str) -> Any:
    # rosbags is imported with the first use of a type, not with this package
    if name not in _HOMES:
        raise AttributeError(f"module 'roboyard.messages' has no attribute '{name}'")
    value = getattr(import_module(f"roboyard.messages.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
