"""Shared parts of the CDR code generators: source lines, and the known alignment at the current position.

CDR (OMG DDS-XTypes 1.3, 7.4.1, "plain CDR") aligns every primitive to its own size, counted from the end of the 4-byte
header. Where strings and sequences make the position depend on the message, alignment is known only modulo a number.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from roboyard.messages.message_definition import STRUCT_CODES, STRUCT_SIZES, MessageField
from roboyard.messages.type_registry import type_registry

MAX_INLINE_FIELDS = 100  # nested messages up to this size are inlined into the function of the outer message


class CdrFunctionBuilder:
    """Source of one generated function.

    Attributes:
        alignment: The position is ``remainder`` modulo this power of two.
        pending_bytes: Bytes passed since the variable ``pos`` was updated.
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
        """Return an unused variable name."""
        self._count += 1
        return f"{prefix}{self._count}"

    def add_global(self, value: Any) -> str:
        """Return a global name for `value`."""
        for name, bound in self.names.items():
            if bound is value:
                return name
        name = f"_g{len(self.names)}"
        self.names[name] = value
        return name

    def advance(self, size: int) -> None:
        """Advance by a constant number of bytes."""
        self.pending_bytes += size
        self.remainder = (self.remainder + size) % self.alignment

    def set_alignment(self, alignment: int) -> None:
        """State that the position is a multiple of `alignment` from here on."""
        self.alignment, self.remainder = alignment, 0

    def padding(self, alignment: int) -> int | None:
        """Return the bytes up to the next multiple of `alignment`; None if they depend on the message."""
        if self.alignment % alignment == 0:
            return -self.remainder % alignment
        return None

    def compile(self, head: str, tail: str) -> Any:
        """Compile the function."""
        name = head.split("(")[0].removeprefix("def ")
        source = "\n".join([head, *self.lines, "    " + tail])
        exec(compile(source, f"<roboyard {name}>", "exec"), self.names)  # noqa: S102  names come from checked definitions
        return self.names[name]


def element_size(field: MessageField) -> int:
    """Return the size of one element of a primitive field [bytes]."""
    return STRUCT_SIZES[STRUCT_CODES[field.type]]


@cache
def count_leaf_fields(name: str) -> int:
    """Count the fields of a message with its single nested messages expanded."""
    fields = type_registry().require(name).fields
    return sum(count_leaf_fields(f.type) if f.is_message and f.arity == "one" else 1 for f in fields)


@cache
def min_size_without_padding(name: str) -> int:
    """Return the minimum size of a message of this type, without padding [bytes]."""
    return sum(_min_field_size(field) for field in type_registry().require(name).fields)


def _min_field_size(field: MessageField) -> int:
    if field.arity == "sequence":
        return 4
    element = (
        min_size_without_padding(field.type)
        if field.is_message
        else 4
        if field.type == "string"
        else element_size(field)
    )
    return element * (field.size if field.arity == "array" else 1)
