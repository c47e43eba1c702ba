"""Basic types of BehaviorTree.CPP: the status and the type of a node, and the types of ports with their conversions.

Numbers are converted as BehaviorTree.CPP's ``Any`` converts them: an error is raised rather than a fraction or a
digit lost.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from roboyard.behavior.errors import PortError


class NodeStatus(Enum):
    """Status of a node, with BehaviorTree.CPP's numbers."""

    IDLE = 0
    RUNNING = 1
    SUCCESS = 2
    FAILURE = 3
    SKIPPED = 4


IDLE, RUNNING, SUCCESS, FAILURE, SKIPPED = NodeStatus
"""Short names: an enumeration's attribute costs a look-up at every tick."""


class NodeType(Enum):
    """Type of a node, by the tag that names it in XML."""

    ACTION = "Action"
    CONDITION = "Condition"
    CONTROL = "Control"
    DECORATOR = "Decorator"
    SUBTREE = "SubTree"


_INTEGER_PATTERN = re.compile(r"-?\d+")
_FLOAT_PATTERN = re.compile(r"-?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?|nan)", re.IGNORECASE)
_MAX_EXACT_INTEGER = 2**53 - 1
"""The largest whole number up to which a double holds every one."""
_BOOL_TEXTS = {"0": False, "1": True} | {
    t: t.lower() == "true" for t in ("true", "TRUE", "True", "false", "FALSE", "False")
}


@dataclass(eq=False)
class PortType:
    """The type of a port or blackboard entry.

    Attributes:
        name: Name in messages; for built-in types that of BehaviorTree.CPP.
        python: Class of the values; None if any value is accepted.
        parse: Converts text to a value; raises ValueError or PortError; None where text is not converted.
        cast: Converts a value of another class to one of this type; raises PortError.
    """

    name: str
    python: type | None = None
    parse: Callable[[str], Any] | None = None
    cast: Callable[[Any], Any] | None = None

    @property
    def is_strong(self) -> bool:
        """Whether only one class of values is accepted."""
        return self.python is not None

    def read(self, value: Any) -> Any:
        """Return ``value`` as this type: unchanged, converted, or parsed.

        Raises:
            PortError: there is no safe conversion.
        """
        if self.python is None or value.__class__ is self.python:
            return value
        if value.__class__ is str and self.parse is not None:
            return self.parse(value)
        if self.cast is not None:
            return self.cast(value)
        if isinstance(value, self.python):
            return value
        raise PortError(_no_conversion_message(value, self.name))


def type_name(value: Any) -> str:
    """Return the name of a value's type, as in messages of BehaviorTree.CPP."""
    return _CPP_TYPE_NAMES.get(value.__class__) or str(value.__class__.__name__)


def is_number(value: Any) -> bool:
    """Return whether the value is an integer, a float or a boolean."""
    kind = value.__class__
    return kind is int or kind is float or kind is bool


def to_float(value: Any) -> float:
    """Return a number as a float.

    Raises:
        PortError: it has more digits than a double.
    """
    if value.__class__ is int and abs(value) > _MAX_EXACT_INTEGER:
        raise PortError(f"Loss of precision when converting a large integer number to floating point:{value}")
    return float(value)


def to_integer(value: Any) -> int:
    """Return a number as an integer.

    Raises:
        PortError: it is not whole, or has no bounds.
    """
    if value.__class__ is float and (not math.isfinite(value) or value != round(value) or abs(value) >= 2.0**63):
        raise PortError("Invalid floating point to integer conversion")
    return int(value)


def to_bool(value: Any) -> bool:
    """Return a value as a boolean.

    Raises:
        PortError: it is a whole number other than 0 and 1, or no number.
    """
    if value.__class__ is float:
        return bool(value)
    if not is_number(value):
        raise PortError(_no_conversion_message(value, "bool"))
    if value < 0:
        raise PortError("Value is negative and can't be converted to unsigned")
    if value > 1:
        raise PortError("Implicit casting to bool is not allowed")
    return bool(value)


def to_string(value: Any) -> str:
    """Return a number or text as text, in the notation of C++.

    Raises:
        PortError: it is neither.
    """
    if value.__class__ is str:
        return str(value)
    if value.__class__ is float:
        return f"{value:.6f}"
    if is_number(value):
        return str(int(value))
    raise PortError(_no_conversion_message(value, "std::string"))


def parse_float(text: str, *, full_match: bool = False) -> float | None:
    """Parse the number at the start of ``text``, or the whole text if ``full_match``; None without one."""
    found = _FLOAT_PATTERN.fullmatch(text) if full_match else _FLOAT_PATTERN.match(text)
    return None if found is None else float(found.group())


def parse_integer(text: str, *, full_match: bool = False) -> int | None:
    """Parse the integer of 64 bits at the start of ``text``, or the whole text if ``full_match``; None without one."""
    found = _INTEGER_PATTERN.fullmatch(text) if full_match else _INTEGER_PATTERN.match(text)
    if found is None or not -(2**63) <= (value := int(found.group())) < 2**63:
        return None
    return value


def split_list(text: str) -> list[str]:
    """Split a list in text at its semicolons."""
    return text.removesuffix(";").split(";") if text else []


def _no_conversion_message(value: Any, target: str) -> str:
    return f"[Any::convert]: no known safe conversion between [{type_name(value)}] and [{target}]"


def _parse_integer(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = parse_integer(text)
        if value is None:
            raise PortError(f"Can't convert string [{text}] to integer")
        if not low <= value <= high:
            raise PortError(f"Value out of bound when converting [{text}] to integer")
        return value

    return parse


def _cast_integer(low: int, high: int) -> Callable[[Any], int]:
    def cast(value: Any) -> int:
        if not is_number(value):
            raise PortError(_no_conversion_message(value, "int"))
        if low == 0 and value < 0:
            raise PortError("Value is negative and can't be converted to unsigned")
        number = to_integer(value)
        if number > high:
            raise PortError("Value outside the max numerical limit.")
        if number < low:
            raise PortError("Value outside the lovest numerical limit.")
        return number

    return cast


def _parse_double(text: str) -> float:
    value = parse_float(text)
    if value is None:
        raise PortError(f"Can't convert string [{text}] to double")
    return value


def _cast_double(value: Any) -> float:
    if not is_number(value):
        raise PortError(_no_conversion_message(value, "double"))
    return to_float(value)


def _parse_bool(text: str) -> bool:
    if text not in _BOOL_TEXTS:
        raise PortError("convertFromString(): invalid bool conversion")
    return _BOOL_TEXTS[text]


def _parse_status(text: str) -> NodeStatus:
    if text not in NodeStatus.__members__:
        raise PortError(f"Cannot convert this to NodeStatus: {text}")
    return NodeStatus[text]


def _cast_status(value: Any) -> NodeStatus:
    if is_number(value) and 0 <= value <= 4:
        return NodeStatus(int(value))
    raise PortError("Any::cast failed to cast to enum type")


def _integer_type(name: str, bits: int, *, signed: bool) -> PortType:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return PortType(name, int, _parse_integer(low, high), _cast_integer(low, high))


def list_type(item: PortType) -> PortType:
    """Return the type of a list, whose text is separated by semicolons, or JSON after ``json:``."""

    def parse(text: str) -> list[Any]:
        if text.startswith("json:"):
            found = json.loads(text[5:])
            if not isinstance(found, list):
                raise PortError(f"{text} is no list")
            return [item.read(value) for value in found]
        return [item.read(part) for part in split_list(text)]

    return PortType(f"std::vector<{item.name}>", list, parse)


ANY = PortType("BT::AnyTypeAllowed")
VALUE = PortType("BT::Any")
INT = _integer_type("int", 32, signed=True)
INT64 = _integer_type("long", 64, signed=True)
UINT = _integer_type("unsigned int", 32, signed=False)
UINT8 = _integer_type("unsigned char", 8, signed=False)
UINT16 = _integer_type("unsigned short", 16, signed=False)
FLOAT = PortType("double", float, _parse_double, _cast_double)
BOOL = PortType("bool", bool, _parse_bool, to_bool)
STRING = PortType("std::string", str, None, to_string)
STATUS = PortType("BT::NodeStatus", NodeStatus, _parse_status, _cast_status)

_TYPES_BY_CLASS: dict[Any, PortType] = {
    int: INT,
    float: FLOAT,
    bool: BOOL,
    str: STRING,
    NodeStatus: STATUS,
    object: ANY,
}
_TYPES_BY_CLASS |= {
    list[int]: list_type(INT),
    list[float]: list_type(FLOAT),
    list[bool]: list_type(BOOL),
    list[str]: list_type(STRING),
}
BUILTIN_TYPES: dict[str, PortType] = {
    port_type.name: port_type for port_type in (ANY, VALUE, INT, INT64, UINT, UINT8, UINT16, *_TYPES_BY_CLASS.values())
}
"""The types of BehaviorTree.CPP by name."""
_CPP_TYPE_NAMES: dict[type, str] = {
    int: "long",
    float: "double",
    bool: "bool",
    str: "std::string",
    NodeStatus: "BT::NodeStatus",
}


def port_type_of(value_type: Any) -> PortType:
    """Return the port type of a Python class, or of a list of a class; a port type is returned unchanged.

    A class that was not registered with `converter` takes values of that class only, and no text.
    """
    if isinstance(value_type, PortType):
        return value_type
    if value_type not in _TYPES_BY_CLASS:
        _TYPES_BY_CLASS[value_type] = PortType(getattr(value_type, "__name__", str(value_type)), value_type)
    return _TYPES_BY_CLASS[value_type]


def register_converter(value_type: type, parse: Callable[[str], Any]) -> PortType:
    """Register the conversion of text to values of a class, for all ports of that class; it replaces an earlier one.

    Args:
        value_type: The class.
        parse: Converts text to a value; raises ValueError where it cannot.
    """

    def parse_or_raise(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise PortError(f"Can't convert string [{text}] to {value_type.__name__}: {error}") from error

    port_type = port_type_of(value_type)
    port_type.parse = parse_or_raise
    return port_type


def port_type_of_value(value: Any) -> PortType:
    """Return the port type that an entry takes from the first value that is set."""
    return _TYPES_BY_CLASS.get(value.__class__) or port_type_of(value.__class__)
