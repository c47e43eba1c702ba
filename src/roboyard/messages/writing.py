"""Generates, for each message type, the function that writes it as CDR."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from roboyard.messages.arrays import fix_array, fix_bool
from roboyard.messages.layout import INLINE_LEAVES, Code, definition_of, leaves, size_of
from roboyard.messages.structure import CODES, DTYPES, SIZES, Definition, Field

Writer = Callable[[Any, Callable[[Any], None], int], int]

_ZEROS = tuple(bytes(count) for count in range(9))
_TERMINATED = tuple(bytes(count + 1) for count in range(8))  # a string's final zero and the padding behind it


class WrongLengthError(ValueError):
    """An array, sequence or string of a length that its definition forbids."""


@cache
def writer(name: str, known: int) -> Writer:
    """``write(message, put, pos) -> pos``: gives chunks of bytes (or arrays) to ``put``.

    Args:
        name: Full type name.
        known: Alignment that the caller guarantees for ``pos``.
    """
    code = _WritingCode(known)
    code.message(definition_of(name), "m")
    code.settle()
    function: Writer = code.compile("def write(m, put, pos):", "return pos")
    return function


class _WritingCode(Code):
    """Collects neighbouring numbers so that one ``struct`` call packs them all."""

    def __init__(self, known: int) -> None:
        super().__init__(known)
        self.format = ""
        self.values: list[str] = []
        self.open_string = False  # its final zero is still to be written, together with the padding behind it

    def message(self, definition: Definition, expression: str) -> None:
        """Write all fields of ``expression``."""
        for field in definition.fields:
            value = f"{expression}.{field.attribute}"
            if field.kind == "one":
                self.one(field, value)
            elif field.primitive:
                self.numbers(field, value)
            else:
                self.items(field, value)

    def one(self, field: Field, value: str) -> None:
        """Write a single value."""
        if field.nested:
            if leaves(field.type) <= INLINE_LEAVES:
                name = self.fresh()
                self.line(f"{name} = {value}")
                self.message(definition_of(field.type), name)
            else:
                self.settle()
                self.line(f"pos = {self.bind(writer(field.type, 1))}({value}, put, pos)")
                self.aligned(1)
        elif field.type == "string":
            self.string(field, value)
        elif field.type == "bool":
            name = self.fresh()
            self.line(f"{name} = {value}")
            self.number("?", f"{name} if {name} is True or {name} is False else {self.bind(fix_bool)}({name})")
        else:
            self.number(CODES[field.type], value)

    def number(self, code: str, value: str) -> None:
        """Write a number."""
        size = SIZES[code]
        self.align(size)
        self.format += code
        self.values.append(value)
        self.advance(size)

    def string(self, field: Field, value: str) -> None:
        """Write a string: length with the final zero, characters, final zero."""
        text, length = self.fresh(), self.fresh()
        self.line(f"{text} = {value}.encode()")
        if field.bound:
            self.check(f"len({text}) > {field.bound}", f"{field.name}: longer than {field.bound}")
        self.line(f"{length} = len({text}) + 1")
        self.number("I", length)
        self.flush()
        self.line(f"put({text})")
        self.line(f"pos += {self.off} + {length}")
        self.off = 0
        self.aligned(1)
        self.open_string = True

    def numbers(self, field: Field, value: str) -> None:
        """Write an array or sequence of numbers in one piece."""
        size, dtype = size_of(field), self.bind(np.dtype(DTYPES[field.type]))
        name = self.fresh()
        self.line(f"{name} = {value}")
        self.line(
            f"if {name}.__class__ is not {self.bind(np.ndarray)} or {name}.dtype is not {dtype} or {name}.ndim != 1:"
        )
        self.line(f"    {name} = {self.bind(fix_array)}({name}, {dtype})")
        if field.kind == "array":
            self.check(f"len({name}) != {field.size}", f"{field.name}: not {field.size} long")
            self.align(size)
            self.flush()
            self.line(f"put({name})")
            self.advance(size * field.size)
            return
        length = self.length(field, name)
        self.flush_position()
        self.line(f"if {length}:")
        if size == 8:  # an empty sequence gets no padding
            self.line(f"    if pos & 7: put({self.bind(_ZEROS)}[4]); pos += 4")
        self.line(f"    put({name})")
        self.line(f"    pos += {length} * {size}" if size > 1 else f"    pos += {length}")
        self.aligned(min(4, size))

    def items(self, field: Field, value: str) -> None:
        """Write an array or sequence of strings or messages."""
        name = self.fresh()
        self.line(f"{name} = {value}")
        if field.kind == "array":
            self.check(f"len({name}) != {field.size}", f"{field.name}: not {field.size} long")
        else:
            self.length(field, name)
        self.settle()
        item = self.fresh()
        single = Field(field.name, field.type, bound=field.bound)
        mark = len(self.lines)
        # The best case: every element ends where the next may start. If not, nothing is known at its start.
        for known in (min(4, self.known) if self.rest % 4 == 0 else 1, 1):
            del self.lines[mark:]
            self.aligned(known)
            self.line(f"for {item} in {name}:")
            self.indent += 1
            self.one(single, item)
            self.settle()
            self.indent -= 1
            if self.known % known == 0 and self.rest % known == 0:
                break
        self.aligned(known)

    def length(self, field: Field, name: str) -> str:
        """Write the element count of a sequence."""
        length = self.fresh()
        self.line(f"{length} = len({name})")
        if field.size:
            self.check(f"{length} > {field.size}", f"{field.name}: more than {field.size} elements")
        self.number("I", length)
        return length

    def check(self, condition: str, what: str) -> None:
        """Refuse what the definition forbids."""
        self.line(f"if {condition}: raise {self.bind(WrongLengthError)}({what!r})")

    # -- position ------------------------------------------------------------------------------------------------------
    def align(self, alignment: int) -> None:
        """Pad to a multiple of ``alignment``."""
        if alignment == 1 and not self.open_string:
            return
        padding = self.padding(alignment)
        if padding is not None and not self.open_string:
            self.format += "x" * padding
            self.advance(padding)
            return
        self.flush_position()
        pad = self.fresh()
        if self.open_string:
            self.open_string = False
            if alignment == 1:
                self.line(f"put({self.bind(_TERMINATED[0])})")
                return
            self.line(f"{pad} = -pos & {alignment - 1}")
            self.line(f"put({self.bind(_TERMINATED)}[{pad}])")
            self.line(f"pos += {pad}")
        else:
            self.line(f"{pad} = -pos & {alignment - 1}")
            self.line(f"if {pad}: put({self.bind(_ZEROS)}[{pad}]); pos += {pad}")
        self.aligned(alignment)

    def flush(self) -> None:
        """Pack what was collected."""
        if self.format:
            pack = self.bind(_packer(self.format))
            self.line(f"put({pack}({', '.join(self.values)}))")
            self.format, self.values = "", []

    def flush_position(self) -> None:
        """Pack what was collected and bring ``pos`` up to date."""
        self.flush()
        if self.off:
            self.line(f"pos += {self.off}")
            self.off = 0

    def settle(self) -> None:
        """Nothing pending, ``pos`` right."""
        if self.open_string:
            self.align(1)
        self.flush_position()


@cache
def _packer(codes: str) -> Callable[..., bytes]:
    return Struct("<" + codes).pack
