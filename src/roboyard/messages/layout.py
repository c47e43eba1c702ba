"""What both byte generators share: lines of code, and what is known about the alignment of the present position.

CDR (OMG DDS-XTypes 1.3, 7.4.1, "plain CDR") aligns every primitive to its own size, counted from behind the 4-byte
header. Where strings and sequences make the position depend on the message, alignment is only known modulo something.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from roboyard.messages.library import library
from roboyard.messages.structure import CODES, SIZES, Definition, Field

INLINE_LEAVES = 100  # nested messages up to this size are written into their owner's function


class Code:
    """Source of one function in the making.

    Attributes:
        known: The position is ``rest`` modulo this power of two.
        off: Bytes passed since the variable ``pos`` was brought up to date.
    """

    def __init__(self, known: int) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self.indent = 1
        self.known, self.rest, self.off = known, 0, 0
        self._count = 0

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append("    " * self.indent + text)

    def fresh(self, prefix: str = "v") -> str:
        """A variable name not used yet."""
        self._count += 1
        return f"{prefix}{self._count}"

    def bind(self, value: Any) -> str:
        """A global name for ``value``."""
        for name, bound in self.names.items():
            if bound is value:
                return name
        name = f"_g{len(self.names)}"
        self.names[name] = value
        return name

    def advance(self, size: int) -> None:
        """Pass ``size`` bytes whose number is known now."""
        self.off += size
        self.rest = (self.rest + size) % self.known

    def aligned(self, known: int) -> None:
        """From here the position is a multiple of ``known``."""
        self.known, self.rest = known, 0

    def padding(self, alignment: int) -> int | None:
        """Bytes up to the next multiple of ``alignment``, None if that depends on the message."""
        if self.known % alignment == 0:
            return -self.rest % alignment
        return None

    def compile(self, head: str, tail: str) -> Any:
        """The finished function."""
        name = head.split("(")[0].removeprefix("def ")
        source = "\n".join([head, *self.lines, "    " + tail])
        exec(compile(source, f"<roboyard {name}>", "exec"), self.names)  # noqa: S102  names come from checked definitions
        return self.names[name]


def size_of(field: Field) -> int:
    """Bytes of one element of a primitive field."""
    return SIZES[CODES[field.type]]


@cache
def leaves(name: str) -> int:
    """How many fields a message has with its single nested messages written out."""
    fields = library().need(name).fields
    return sum(leaves(f.type) if f.nested and f.kind == "one" else 1 for f in fields)


@cache
def least_size(name: str) -> int:
    """Bytes that a message of this type takes at least, padding not counted."""
    return sum(_least(field) for field in library().need(name).fields)


def _least(field: Field) -> int:
    if field.kind == "sequence":
        return 4
    one = least_size(field.type) if field.nested else 4 if field.type == "string" else size_of(field)
    return one * (field.size if field.kind == "array" else 1)


def definition_of(name: str) -> Definition:
    """The definition of a type that is known to exist."""
    return library().need(name)
