"""Generates, for each message type, the function that reads it from CDR."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from roboyard.messages.layout import INLINE_LEAVES, Code, definition_of, least_size, leaves, size_of
from roboyard.messages.structure import CODES, DTYPES, SIZES, Definition, Field

Reader = Callable[[bytes, int, int], tuple[Any, int]]


class BadBytesError(ValueError):
    """The bytes are not what the type wants."""


@cache
def reader(name: str, known: int, order: str) -> Reader:
    """``read(data, pos, end) -> (message, pos)``; ``data`` includes the 4 header bytes.

    Args:
        name: Full type name.
        known: Alignment that the caller guarantees for ``pos``, counted from behind the header.
        order: ``<`` or ``>``.
    """
    code = _ReadingCode(known, order)
    expression = code.message(definition_of(name))
    code.settle()
    function: Reader = code.compile("def read(data, pos, end):", f"return {expression}, pos")
    return function


class _ReadingCode(Code):
    """Collects neighbouring numbers so that one ``struct`` call unpacks them all."""

    def __init__(self, known: int, order: str) -> None:
        super().__init__(known)
        self.order = order
        self.format = ""
        self.targets: list[str] = []
        self.start = 0

    def message(self, definition: Definition) -> str:
        """Read all fields; returns the expression that makes the message."""
        from roboyard.messages.classes import message_class

        values = [self.field(field) for field in definition.fields]
        return f"{self.bind(message_class(definition.name))}({', '.join(values)})"

    def field(self, field: Field) -> str:
        """Read one field; returns its expression."""
        if field.kind == "one":
            return self.one(field)
        if field.primitive:
            return self.numbers(field)
        return self.items(field)

    def one(self, field: Field) -> str:
        """Read a single value."""
        if field.nested:
            if leaves(field.type) <= INLINE_LEAVES:
                return self.message(definition_of(field.type))
            self.settle()
            name = self.fresh()
            self.line(f"{name}, pos = {self.bind(reader(field.type, 1, self.order))}(data, pos, end)")
            self.aligned(1)
            return name
        if field.type == "string":
            return self.string()
        return self.number(CODES[field.type])

    def number(self, code: str) -> str:
        """Read a number."""
        name = self.fresh()
        size = SIZES[code]
        self.align(size)
        if not self.format:
            self.start = self.off
        self.format += code
        self.targets.append(name)
        self.advance(size)
        return name

    def string(self) -> str:
        """Read a string; some writers give empty ones no final zero."""
        length = self.number("I")
        self.settle()
        text, stop = self.fresh(), self.fresh()
        self.line(f"{stop} = pos + {length}")
        self.line(f"if {stop} > end: raise {self.bind(BadBytesError)}(f'string of {{{length}}} bytes at {{pos}}')")
        self.line(f"if {length}:")
        self.line(f"    if data[{stop} - 1]: raise {self.bind(BadBytesError)}(f'string without end at {{pos}}')")
        self.line(f"    {text} = data[pos:{stop} - 1].decode()")
        self.line(f"else: {text} = ''")
        self.line(f"pos = {stop}")
        self.aligned(1)
        return text

    def numbers(self, field: Field) -> str:
        """Read an array or sequence of numbers: a read-only view, or a copy where alignment or byte order wants it."""
        size, dtype = size_of(field), np.dtype(DTYPES[field.type])
        name = self.fresh()
        take = self.bind(_taker(DTYPES[field.type], self.order))
        if field.kind == "array":
            self.align(size)
            self.settle()
            self.line(f"{name} = {take}(data, pos, {field.size}, end)")
            self.advance(size * field.size)
            return name
        length = self.number("I")
        self.settle()
        self.line(f"if {length}:")
        if size == 8:
            self.line("    pos += 4 - pos & 7")
        self.line(f"    {name} = {take}(data, pos, {length}, end)")
        self.line(f"    pos += {length} * {size}")
        self.line(f"else: {name} = {self.bind(empty_array(dtype.name))}")
        self.aligned(min(4, size))
        return name

    def items(self, field: Field) -> str:
        """Read an array or sequence of strings or messages."""
        if field.kind == "array":
            self.settle()
            count = str(field.size)
        else:
            count = self.number("I")
            self.settle()
        least = least_size(field.type) if field.nested else 4
        too_many = f"raise {self.bind(BadBytesError)}(f'{{{count}}} elements at {{pos}}')"
        self.line(f"if {count} * {least} > end - pos: {too_many}")  # before anything of that size is made
        values, add = self.fresh(), self.fresh()
        self.line(f"{values} = []; {add} = {values}.append")
        single = Field(field.name, field.type)
        mark = len(self.lines)
        for known in (min(4, self.known) if self.rest % 4 == 0 else 1, 1):
            del self.lines[mark:]
            self.aligned(known)
            self.line(f"for _ in range({count}):")
            self.indent += 1
            expression = self.one(single)
            self.settle()
            self.line(f"{add}({expression})")
            self.indent -= 1
            if self.known % known == 0 and self.rest % known == 0:
                break
        self.aligned(known)
        return values

    # -- position ------------------------------------------------------------------------------------------------------
    def align(self, alignment: int) -> None:
        """Skip to a multiple of ``alignment``, counted from behind the header."""
        padding = self.padding(alignment)
        if padding is None:
            self.settle()
            self.line(f"pos += {'4 ' if alignment == 8 else ''}-pos & {alignment - 1}")
            self.aligned(alignment)
        elif padding:
            if self.format:
                self.format += "x" * padding
            self.advance(padding)

    def settle(self) -> None:
        """Unpack what was collected and bring ``pos`` up to date."""
        if self.format:
            unpack = self.bind(_unpacker(self.order + self.format))
            at = f"pos + {self.start}" if self.start else "pos"
            self.line(f"{', '.join(self.targets)}, = {unpack}(data, {at})")
            self.format, self.targets = "", []
        if self.off:
            self.line(f"pos += {self.off}")
            self.off = 0


@cache
def _unpacker(codes: str) -> Callable[..., tuple[Any, ...]]:
    return Struct(codes).unpack_from


@cache
def empty_array(dtype: str) -> np.ndarray[Any, Any]:
    """The one empty array of a type: nothing in it can change."""
    array = np.zeros(0, dtype)
    array.flags.writeable = False
    return array


@cache
def _taker(name: str, order: str) -> Callable[[bytes, int, int, int], np.ndarray[Any, Any]]:
    """``take(data, pos, count, end)``: read-only, aligned array in the machine's byte order."""
    dtype, size = np.dtype(name), np.dtype(name).itemsize
    frombuffer = np.frombuffer

    if dtype.kind == "b":  # any other byte than 0 is true, but numpy must only see 0 and 1

        def take_bools(data: bytes, pos: int, count: int, end: int) -> np.ndarray[Any, Any]:
            array: np.ndarray[Any, Any] = frombuffer(data, np.uint8, count, pos) != 0
            array.flags.writeable = False
            return array

        return take_bools
    if order == ">" and size > 1:

        def take_swapped(data: bytes, pos: int, count: int, end: int) -> np.ndarray[Any, Any]:
            array = frombuffer(data, dtype.newbyteorder(">"), count, pos).astype(dtype)
            array.flags.writeable = False
            return array

        return take_swapped
    if size == 8:  # the header puts 8-byte numbers at odd multiples of 4: a copy of the piece is aligned again

        def take_copy(data: bytes, pos: int, count: int, end: int) -> np.ndarray[Any, Any]:
            return frombuffer(data[pos : pos + 8 * count], dtype, count)

        return take_copy

    def take_view(data: bytes, pos: int, count: int, end: int) -> np.ndarray[Any, Any]:
        return frombuffer(data, dtype, count, pos)

    return take_view
