"""Records of message definitions; everything else in this room is generated from them."""

from __future__ import annotations

import keyword
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np

FieldArity: TypeAlias = Literal["one", "array", "sequence"]
Scalar: TypeAlias = bool | int | float | str

# struct codes and numpy names of ROS 2's primitive types; byte and char are octets there
STRUCT_CODES = {
    "bool": "?", "byte": "B", "char": "B", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H",
    "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q", "float32": "f", "float64": "d",
}  # fmt: skip
STRUCT_SIZES = {"?": 1, "B": 1, "b": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "Q": 8, "f": 4, "d": 8}
DTYPES = {name: {"bool": "bool", "byte": "uint8", "char": "uint8"}.get(name, name) for name in STRUCT_CODES}
INTEGER_RANGES = {
    name: (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    for name, dtype in DTYPES.items()
    if np.dtype(dtype).kind in "iu"
}
EMPTY_MEMBER = "structure_needs_at_least_one_member"  # member that ROS 2 adds to messages without fields


@dataclass(frozen=True, slots=True)
class MessageField:
    """Field of a message.

    Attributes:
        name: Name as in the definition.
        type: A primitive of ``STRUCT_CODES``, ``string``, or the full name of a message type.
        arity: One value, an array of fixed length, or a sequence.
        size: Length of an array; upper bound of a sequence, 0 = none.
        string_capacity: Upper bound of string length in characters, 0 = none.
        default: Default value in the definition, None = zero or empty.
    """

    name: str
    type: str
    arity: FieldArity = "one"
    size: int = 0
    string_capacity: int = 0
    default: Scalar | tuple[Scalar, ...] | None = None

    @property
    def python_name(self) -> str:
        """Name in Python: keywords get a trailing underscore."""
        return f"{self.name}_" if keyword.iskeyword(self.name) else self.name

    @property
    def is_primitive(self) -> bool:
        """Whether it is a number or bool, stored in numpy arrays."""
        return self.type in STRUCT_CODES

    @property
    def is_message(self) -> bool:
        """Whether it is a message."""
        return "/" in self.type

    def type_text(self) -> str:
        """Return the type as ``.msg`` files write it, messages by full name."""
        base = f"string<={self.string_capacity}" if self.string_capacity else self.type
        if self.arity == "one":
            return base
        if self.arity == "array":
            return f"{base}[{self.size}]"
        return f"{base}[<={self.size}]" if self.size else f"{base}[]"


@dataclass(frozen=True, slots=True)
class Constant:
    """Named constant of a type."""

    name: str
    type: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class MessageDefinition:
    """Definition of a message type.

    Attributes:
        name: ``package/msg/Name`` (or srv, action).
        fields: Fields in wire order; never empty, see ``EMPTY_MEMBER``.
        constants: Constants in the order of the definition.
    """

    name: str
    fields: tuple[MessageField, ...]
    constants: tuple[Constant, ...] = ()

    def is_equivalent(self, other: MessageDefinition) -> bool:
        """Return whether both define the same type, regardless of default values and notation of constants."""
        return [(f.name, f.type_text()) for f in self.fields] == [(f.name, f.type_text()) for f in other.fields] and [
            (c.name, c.type, c.value) for c in self.constants
        ] == [(c.name, c.type, c.value) for c in other.constants]


def to_data(definition: MessageDefinition) -> list[Any]:
    """Convert a definition to plain lists, for JSON."""
    fields = [[f.name, f.type, f.arity, f.size, f.string_capacity, f.default] for f in definition.fields]
    return [definition.name, fields, [[c.name, c.type, c.value] for c in definition.constants]]


def from_data(data: list[Any]) -> MessageDefinition:
    """Convert plain lists of `to_data` back to a definition, also after a round trip through JSON."""
    name, fields, constants = data
    return MessageDefinition(name, tuple(map(_field, fields)), tuple(Constant(*constant) for constant in constants))


def _field(data: list[Any]) -> MessageField:
    name, type_name, arity, size, string_capacity, default = data
    return MessageField(
        name, type_name, arity, size, string_capacity, tuple(default) if isinstance(default, list) else default
    )


@cache
def empty_array(dtype: str) -> np.ndarray[Any, Any]:
    """Return the shared empty array of a type, which cannot be changed."""
    array = np.zeros(0, dtype)
    array.flags.writeable = False
    return array
