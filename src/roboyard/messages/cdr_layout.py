"""Shared parts of the CDR code generators: source lines, and the known alignment at the current position.

CDR (OMG DDS-XTypes 1.3, 7.4.1, "plain CDR") aligns every primitive to its own size, counted from behind the 4-byte
header. Where strings and sequences make the position depend on the message, alignment is known only modulo a number.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from roboyard.messages.message_definition import STRUCT_CODES, STRUCT_SIZES, MessageField
from roboyard.messages.type_registry import type_registry

MAX_INLINE_FIELDS = 100  # nested messages up to this size are written into their owner's function


class CodeWriter:
    """Source of one function in the making.

    Attributes:
        alignment: The position is ``remainder`` modulo this power of two.
        pending_bytes: Bytes passed since the variable ``pos`` was brought up to date.
    """

    def __init__(self, alignment: int) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self.indent = 1
        self.alignment, self.remainder, self.pending_bytes = alignment, 0, 0
        self._count = 0

    def add_line(self, text: str) -> None:
        """Add a line."""
        self.lines.append("    " * self.indent + text)

    def new_variable(self, prefix: str = "v") -> str:
        """A variable name not used yet."""
        self._count += 1
        return f"{prefix}{self._count}"

    def add_global(self, value: Any) -> str:
        """A global name for ``value``."""
        for name, bound in self.names.items():
            if bound is value:
                return name
        name = f"_g{len(self.names)}"
        self.names[name] = value
        return name

    def advance(self, size: int) -> None:
        """Pass ``size`` bytes whose number is known now."""
        self.pending_bytes += size
        self.remainder = (self.remainder + size) % self.alignment

    def set_alignment(self, alignment: int) -> None:
        """From here the position is a multiple of ``alignment``."""
        self.alignment, self.remainder = alignment, 0

    def padding(self, alignment: int) -> int | None:
        """Bytes up to the next multiple of ``alignment``, None if that depends on the message."""
        if self.alignment % alignment == 0:
            return -self.remainder % alignment
        return None

    def compile(self, head: str, tail: str) -> Any:
        """The finished function."""
        name = head.split("(")[0].removeprefix("def ")
        source = "\n".join([head, *self.lines, "    " + tail])
        exec(compile(source, f"<roboyard {name}>", "exec"), self.names)  # noqa: S102  names come from checked definitions
        return self.names[name]


def element_size(field: MessageField) -> int:
    """Bytes of one element of a primitive field."""
    return STRUCT_SIZES[STRUCT_CODES[field.type]]


@cache
def count_leaf_fields(name: str) -> int:
    """How many fields a message has with its single nested messages written out."""
    fields = type_registry().require(name).fields
    return sum(count_leaf_fields(f.type) if f.is_message and f.arity == "one" else 1 for f in fields)


@cache
def min_size(name: str) -> int:
    """Bytes that a message of this type takes at least, padding not counted."""
    return sum(_min_field_size(field) for field in type_registry().require(name).fields)


def _min_field_size(field: MessageField) -> int:
    if field.arity == "sequence":
        return 4
    element = min_size(field.type) if field.is_message else 4 if field.type == "string" else element_size(field)
    return element * (field.size if field.arity == "array" else 1)
