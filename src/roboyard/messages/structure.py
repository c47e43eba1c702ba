"""What a message type consists of: plain records that everything else here is generated from."""

from __future__ import annotations

import keyword
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["one", "array", "sequence"]
Scalar: TypeAlias = bool | int | float | str

# struct codes and numpy names of ROS 2's primitive types; byte and char are octets there
CODES = {
    "bool": "?", "byte": "B", "char": "B", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H",
    "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q", "float32": "f", "float64": "d",
}  # fmt: skip
SIZES = {"?": 1, "B": 1, "b": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "Q": 8, "f": 4, "d": 8}
DTYPES = {name: {"bool": "bool", "byte": "uint8", "char": "uint8"}.get(name, name) for name in CODES}
EMPTY_MEMBER = "structure_needs_at_least_one_member"  # what ROS 2 puts into messages without fields


@dataclass(frozen=True, slots=True)
class Field:
    """One field.

    Attributes:
        name: As the definition writes it.
        type: A primitive of ``CODES``, ``string``, or the full name of a message type.
        kind: One value, an array of fixed length, or a sequence.
        size: Length of an array; upper bound of a sequence, 0 = none.
        bound: Upper bound of string length in characters, 0 = none.
        default: Value that the definition gives, None = zero or empty.
    """

    name: str
    type: str
    kind: Kind = "one"
    size: int = 0
    bound: int = 0
    default: Scalar | tuple[Scalar, ...] | None = None

    @property
    def attribute(self) -> str:
        """Name in Python: keywords get an underscore behind."""
        return f"{self.name}_" if keyword.iskeyword(self.name) else self.name

    @property
    def primitive(self) -> bool:
        """A number or bool, which numpy holds."""
        return self.type in CODES

    @property
    def nested(self) -> bool:
        """A message."""
        return "/" in self.type

    def text(self) -> str:
        """The type as ``.msg`` files write it, messages by full name."""
        base = f"string<={self.bound}" if self.bound else self.type
        if self.kind == "one":
            return base
        if self.kind == "array":
            return f"{base}[{self.size}]"
        return f"{base}[<={self.size}]" if self.size else f"{base}[]"


@dataclass(frozen=True, slots=True)
class Constant:
    """A named value that comes with the type."""

    name: str
    type: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class Definition:
    """A message type.

    Attributes:
        name: ``package/msg/Name`` (or srv, action).
        fields: In wire order; never empty, see ``EMPTY_MEMBER``.
        constants: As defined.
    """

    name: str
    fields: tuple[Field, ...]
    constants: tuple[Constant, ...] = ()

    def same(self, other: Definition) -> bool:
        """Whether both mean the same type; default values and spelling of constants do not count."""
        return [(f.name, f.text()) for f in self.fields] == [(f.name, f.text()) for f in other.fields] and [
            (c.name, c.type, c.value) for c in self.constants
        ] == [(c.name, c.type, c.value) for c in other.constants]


def to_data(definition: Definition) -> list[Any]:
    """A definition as plain lists, for JSON."""
    fields = [[f.name, f.type, f.kind, f.size, f.bound, f.default] for f in definition.fields]
    return [definition.name, fields, [[c.name, c.type, c.value] for c in definition.constants]]


def from_data(data: list[Any]) -> Definition:
    """The inverse of ``to_data``, also after a way through JSON."""
    name, fields, constants = data
    return Definition(name, tuple(map(_field, fields)), tuple(Constant(*constant) for constant in constants))


def _field(data: list[Any]) -> Field:
    name, type_name, kind, size, bound, default = data
    return Field(name, type_name, kind, size, bound, tuple(default) if isinstance(default, list) else default)
