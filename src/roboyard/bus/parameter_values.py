"""Python values of parameters ↔ rcl_interfaces/ParameterValue."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.errors import MessageError
from roboyard.messages import message_type

NOT_SET, BOOL, INTEGER, DOUBLE, STRING = 0, 1, 2, 3, 4
BYTES, BOOLS, INTEGERS, DOUBLES, STRINGS = 5, 6, 7, 8, 9


def to_value(value: Any) -> Any:
    """rcl_interfaces/ParameterValue of a bool, int, float, str or a tuple of one kind.

    Raises:
        MessageError: ROS has no parameter of this kind.
    """
    make = message_type("rcl_interfaces/msg/ParameterValue")
    if isinstance(value, bool):
        return make(type=BOOL, bool_value=value)
    if isinstance(value, int):
        return make(type=INTEGER, integer_value=value)
    if isinstance(value, float):
        return make(type=DOUBLE, double_value=value)
    if isinstance(value, str):
        return make(type=STRING, string_value=value)
    if isinstance(value, tuple):
        if all(isinstance(item, str) for item in value):
            return make(type=STRINGS, string_array_value=list(value))
        if all(isinstance(item, bool) for item in value):
            return make(type=BOOLS, bool_array_value=np.array(value, dtype=np.bool_))
        if all(isinstance(item, int) for item in value):
            return make(type=INTEGERS, integer_array_value=np.array(value, dtype=np.int64))
        if all(isinstance(item, float) for item in value):
            return make(type=DOUBLES, double_array_value=np.array(value, dtype=np.float64))
    raise MessageError(f"{value!r} cannot be a ROS parameter", valid="bool, int, float, str or a tuple of one of them")


def from_value(message: Any) -> Any:
    """The Python value in a ParameterValue; arrays become tuples, "not set" becomes None.

    Raises:
        MessageError: unknown type number.
    """
    fields = {
        BOOL: "bool_value", INTEGER: "integer_value", DOUBLE: "double_value", STRING: "string_value",
        BYTES: "byte_array_value", BOOLS: "bool_array_value", INTEGERS: "integer_array_value",
        DOUBLES: "double_array_value", STRINGS: "string_array_value",
    }  # fmt: skip
    kind = int(message.type)
    if kind == NOT_SET:
        return None
    if kind not in fields:
        raise MessageError(f"parameter value of unknown type {kind}", valid="0 to 9, see rcl_interfaces/ParameterType")
    value = getattr(message, fields[kind])
    if isinstance(value, np.ndarray):
        return tuple(value.tolist())
    return tuple(value) if isinstance(value, list) else value
