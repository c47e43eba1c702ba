"""Types of ports: how text becomes a value, and which values of other types are taken.

Numbers are converted as BehaviorTree.CPP's ``Any`` does it: no fraction and no digit is lost without an error.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from roboyard.behavior.errors import PortError
from roboyard.behavior.status import Status

_INTEGER = re.compile(r"-?\d+")
_REAL = re.compile(r"-?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?|nan)", re.IGNORECASE)
_EXACT = 2**53 - 1
"""The largest whole number up to which a double holds every one."""
_TRUTHS = {"0": False, "1": True} | {
    t: t.lower() == "true" for t in ("true", "TRUE", "True", "false", "FALSE", "False")
}


@dataclass(eq=False)
class PortType:
    """The type of a port or blackboard entry.

    Attributes:
        name: As messages say it; for built-in types as BehaviorTree.CPP does.
        python: The class of its values; None if any value will do.
        parse: Text to a value; raises ValueError or PortError; None where text is not converted.
        cast: A value of another class to one of this type; raises PortError.
    """

    name: str
    python: type | None = None
    parse: Callable[[str], Any] | None = None
    cast: Callable[[Any], Any] | None = None

    @property
    def strong(self) -> bool:
        """Whether it admits one class of values only."""
        return self.python is not None

    def read(self, value: Any) -> Any:
        """``value`` as this type: itself, converted, or parsed.

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
        raise PortError(_no_way(value, self.name))


def type_name(value: Any) -> str:
    """The name of a value's type, as messages say it."""
    return _NAMES.get(value.__class__) or str(value.__class__.__name__)


def is_number(value: Any) -> bool:
    """Whether scripts reckon with it."""
    kind = value.__class__
    return kind is int or kind is float or kind is bool


def to_real(value: Any) -> float:
    """A number as a double.

    Raises:
        PortError: it has more digits than a double.
    """
    if value.__class__ is int and abs(value) > _EXACT:
        raise PortError(f"Loss of precision when converting a large integer number to floating point:{value}")
    return float(value)


def to_integer(value: Any) -> int:
    """A number as a whole one.

    Raises:
        PortError: it is not whole, or has no bounds.
    """
    if value.__class__ is float and (not math.isfinite(value) or value != round(value) or abs(value) >= 2.0**63):
        raise PortError("Invalid floating point to integer conversion")
    return int(value)


def to_truth(value: Any) -> bool:
    """A value as true or false.

    Raises:
        PortError: it is a whole number other than 0 and 1, or no number.
    """
    if value.__class__ is float:
        return bool(value)
    if not is_number(value):
        raise PortError(_no_way(value, "bool"))
    if value < 0:
        raise PortError("Value is negative and can't be converted to unsigned")
    if value > 1:
        raise PortError("Implicit casting to bool is not allowed")
    return bool(value)


def to_text(value: Any) -> str:
    """A number or text as text, as C++ writes numbers.

    Raises:
        PortError: it is neither.
    """
    if value.__class__ is str:
        return str(value)
    if value.__class__ is float:
        return f"{value:.6f}"
    if is_number(value):
        return str(int(value))
    raise PortError(_no_way(value, "std::string"))


def parse_real(text: str, *, whole: bool = False) -> float | None:
    """The number that ``text`` begins with, or if ``whole`` is; None without one."""
    found = _REAL.fullmatch(text) if whole else _REAL.match(text)
    return None if found is None else float(found.group())


def parse_integer(text: str, *, whole: bool = False) -> int | None:
    """The whole number of 64 bits that ``text`` begins with, or if ``whole`` is; None without one."""
    found = _INTEGER.fullmatch(text) if whole else _INTEGER.match(text)
    if found is None or not -(2**63) <= (value := int(found.group())) < 2**63:
        return None
    return value


def split(text: str) -> list[str]:
    """The parts of a list in text, between semicolons."""
    return text.removesuffix(";").split(";") if text else []


def _no_way(value: Any, target: str) -> str:
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
            raise PortError(_no_way(value, "int"))
        if low == 0 and value < 0:
            raise PortError("Value is negative and can't be converted to unsigned")
        whole = to_integer(value)
        if whole > high:
            raise PortError("Value outside the max numerical limit.")
        if whole < low:
            raise PortError("Value outside the lovest numerical limit.")
        return whole

    return cast


def _parse_real(text: str) -> float:
    value = parse_real(text)
    if value is None:
        raise PortError(f"Can't convert string [{text}] to double")
    return value


def _cast_real(value: Any) -> float:
    if not is_number(value):
        raise PortError(_no_way(value, "double"))
    return to_real(value)


def _parse_truth(text: str) -> bool:
    if text not in _TRUTHS:
        raise PortError("convertFromString(): invalid bool conversion")
    return _TRUTHS[text]


def _parse_status(text: str) -> Status:
    if text not in Status.__members__:
        raise PortError(f"Cannot convert this to NodeStatus: {text}")
    return Status[text]


def _cast_status(value: Any) -> Status:
    if is_number(value) and 0 <= value <= 4:
        return Status(int(value))
    raise PortError("Any::cast failed to cast to enum type")


def _integer(name: str, bits: int, *, signed: bool) -> PortType:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return PortType(name, int, _parse_integer(low, high), _cast_integer(low, high))


def list_of(item: PortType) -> PortType:
    """A list of values, in text between semicolons or as JSON after ``json:``."""

    def parse(text: str) -> list[Any]:
        if text.startswith("json:"):
            found = json.loads(text[5:])
            if not isinstance(found, list):
                raise PortError(f"{text} is no list")
            return [item.read(value) for value in found]
        return [item.read(part) for part in split(text)]

    return PortType(f"std::vector<{item.name}>", list, parse)


ANY = PortType("BT::AnyTypeAllowed")
VALUE = PortType("BT::Any")
INT = _integer("int", 32, signed=True)
INT64 = _integer("long", 64, signed=True)
UINT = _integer("unsigned int", 32, signed=False)
UINT8 = _integer("unsigned char", 8, signed=False)
UINT16 = _integer("unsigned short", 16, signed=False)
REAL = PortType("double", float, _parse_real, _cast_real)
TRUTH = PortType("bool", bool, _parse_truth, to_truth)
TEXT = PortType("std::string", str, None, to_text)
STATUS = PortType("BT::NodeStatus", Status, _parse_status, _cast_status)

_BY_CLASS: dict[Any, PortType] = {int: INT, float: REAL, bool: TRUTH, str: TEXT, Status: STATUS, object: ANY}
_BY_CLASS |= {
    list[int]: list_of(INT),
    list[float]: list_of(REAL),
    list[bool]: list_of(TRUTH),
    list[str]: list_of(TEXT),
}
_NAMES: dict[type, str] = {int: "long", float: "double", bool: "bool", str: "std::string", Status: "BT::NodeStatus"}


def type_of(kind: Any) -> PortType:
    """The port type of a Python class, or of a list of one; itself if it is one.

    A class that was not registered with `converter` takes values of that class only, and no text.
    """
    if isinstance(kind, PortType):
        return kind
    if kind not in _BY_CLASS:
        _BY_CLASS[kind] = PortType(getattr(kind, "__name__", str(kind)), kind)
    return _BY_CLASS[kind]


def converter(kind: type, parse: Callable[[str], Any]) -> PortType:
    """Say how text becomes a value of a class, for all ports of that class, made or not; the last one said holds.

    Args:
        kind: The class.
        parse: Text to a value; raises ValueError where it cannot.
    """

    def parse_or_say(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise PortError(f"Can't convert string [{text}] to {kind.__name__}: {error}") from error

    found = type_of(kind)
    found.parse = parse_or_say
    return found


def type_of_value(value: Any) -> PortType:
    """The port type that an entry takes from the first value set."""
    return _BY_CLASS.get(value.__class__) or type_of(value.__class__)
