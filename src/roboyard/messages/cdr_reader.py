"""Code generator: functions that read a message type from CDR."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from roboyard.messages.cdr_layout import (
    MAX_INLINE_FIELDS,
    CdrFunctionBuilder,
    count_leaf_fields,
    element_size,
    min_size_without_padding,
)
from roboyard.messages.classes import message_class
from roboyard.messages.message_definition import (
    DTYPES,
    STRUCT_CODES,
    STRUCT_SIZES,
    MessageDefinition,
    MessageField,
    empty_array,
)
from roboyard.messages.type_registry import definition_of

MessageReader = Callable[[bytes, int, int], tuple[Any, int]]


class InvalidBytesError(ValueError):
    """The bytes do not match the type."""


@cache
def make_reader(name: str, alignment: int, order: str) -> MessageReader:
    """Generate ``read(data, pos, end) -> (message, pos)``; `data` includes the 4 header bytes.

    Args:
        name: Full type name.
        alignment: Alignment that the caller guarantees for ``pos``, counted from the end of the header.
        order: Byte order, ``<`` or ``>``.
    """
    code = _ReaderGenerator(alignment, order)
    expression = code.read_message(definition_of(name))
    code.flush()
    function: MessageReader = code.compile("def read(data, pos, end):", f"return {expression}, pos")
    return function


class _ReaderGenerator(CdrFunctionBuilder):
    """Generator of a reader; it collects adjacent numbers so that one ``struct`` call unpacks them all."""

    def __init__(self, alignment: int, order: str) -> None:
        super().__init__(alignment)
        self.order = order
        self.format = ""
        self.targets: list[str] = []
        self.format_start = 0

    def read_message(self, definition: MessageDefinition) -> str:
        """Read all fields; return the expression that creates the message."""
        values = [self.read_field(field) for field in definition.fields]
        return f"{self.add_global(message_class(definition.name))}({', '.join(values)})"

    def read_field(self, field: MessageField) -> str:
        """Read one field; return its expression."""
        if field.arity == "one":
            return self.read_value(field)
        if field.is_primitive:
            return self.read_numbers(field)
        return self.read_items(field)

    def read_value(self, field: MessageField) -> str:
        """Read a single value."""
        if field.is_message:
            if count_leaf_fields(field.type) <= MAX_INLINE_FIELDS:
                return self.read_message(definition_of(field.type))
            self.flush()
            name = self.new_variable()
            self.add_line(f"{name}, pos = {self.add_global(make_reader(field.type, 1, self.order))}(data, pos, end)")
            self.set_alignment(1)
            return name
        if field.type == "string":
            return self.read_string()
        return self.read_number(STRUCT_CODES[field.type])

    def read_number(self, code: str) -> str:
        """Read a number."""
        name = self.new_variable()
        size = STRUCT_SIZES[code]
        self.align(size)
        if not self.format:
            self.format_start = self.pending_bytes
        self.format += code
        self.targets.append(name)
        self.advance(size)
        return name

    def read_string(self) -> str:
        """Read a string; some writers omit the final zero of empty strings."""
        length = self.read_number("I")
        self.flush()
        text, stop = self.new_variable(), self.new_variable()
        self.add_line(f"{stop} = pos + {length}")
        self.add_line(
            f"if {stop} > end: raise {self.add_global(InvalidBytesError)}(f'string of {{{length}}} bytes at {{pos}}')"
        )
        self.add_line(f"if {length}:")
        self.add_line(
            f"    if data[{stop} - 1]: raise {self.add_global(InvalidBytesError)}(f'string without end at {{pos}}')"
        )
        self.add_line(f"    {text} = data[pos:{stop} - 1].decode()")
        self.add_line(f"else: {text} = ''")
        self.add_line(f"pos = {stop}")
        self.set_alignment(1)
        return text

    def read_numbers(self, field: MessageField) -> str:
        """Read an array or sequence of numbers: a read-only view, or a copy if alignment or byte order requires."""
        size, dtype = element_size(field), np.dtype(DTYPES[field.type])
        name = self.new_variable()
        read_array = self.add_global(_make_array_reader(DTYPES[field.type], self.order))
        if field.arity == "array":
            self.align(size)
            self.flush()
            self.add_line(f"{name} = {read_array}(data, pos, {field.size}, end)")
            self.advance(size * field.size)
            return name
        length = self.read_number("I")
        self.flush()
        self.add_line(f"if {length}:")
        if size == 8:
            self.add_line("    pos += 4 - pos & 7")
        self.add_line(f"    {name} = {read_array}(data, pos, {length}, end)")
        self.add_line(f"    pos += {length} * {size}")
        self.add_line(f"else: {name} = {self.add_global(empty_array(dtype.name))}")
        self.set_alignment(min(4, size))
        return name

    def read_items(self, field: MessageField) -> str:
        """Read an array or sequence of strings or messages."""
        if field.arity == "array":
            self.flush()
            count = str(field.size)
        else:
            count = self.read_number("I")
            self.flush()
        min_item_size = min_size_without_padding(field.type) if field.is_message else 4
        too_many = f"raise {self.add_global(InvalidBytesError)}(f'{{{count}}} elements at {{pos}}')"
        self.add_line(
            f"if {count} * {min_item_size} > end - pos: {too_many}"
        )  # before memory of this size is allocated
        values, add = self.new_variable(), self.new_variable()
        self.add_line(f"{values} = []; {add} = {values}.append")
        item_field = MessageField(field.name, field.type)
        n_lines = len(self.lines)
        for alignment in (min(4, self.alignment) if self.remainder % 4 == 0 else 1, 1):
            del self.lines[n_lines:]
            self.set_alignment(alignment)
            self.add_line(f"for _ in range({count}):")
            self.indent += 1
            expression = self.read_value(item_field)
            self.flush()
            self.add_line(f"{add}({expression})")
            self.indent -= 1
            if self.alignment % alignment == 0 and self.remainder % alignment == 0:
                break
        self.set_alignment(alignment)
        return values

    # -- position ------------------------------------------------------------------------------------------------------
    def align(self, alignment: int) -> None:
        """Skip to a multiple of `alignment`, counted from the end of the header."""
        padding = self.padding(alignment)
        if padding is None:
            self.flush()
            self.add_line(f"pos += {'4 ' if alignment == 8 else ''}-pos & {alignment - 1}")
            self.set_alignment(alignment)
        elif padding:
            if self.format:
                self.format += "x" * padding
            self.advance(padding)

    def flush(self) -> None:
        """Unpack the collected numbers and update ``pos``."""
        if self.format:
            unpack = self.add_global(_unpacker(self.order + self.format))
            position = f"pos + {self.format_start}" if self.format_start else "pos"
            self.add_line(f"{', '.join(self.targets)}, = {unpack}(data, {position})")
            self.format, self.targets = "", []
        if self.pending_bytes:
            self.add_line(f"pos += {self.pending_bytes}")
            self.pending_bytes = 0


@cache
def _unpacker(codes: str) -> Callable[..., tuple[Any, ...]]:
    return Struct(codes).unpack_from


@cache
def _make_array_reader(name: str, order: str) -> Callable[[bytes, int, int, int], np.ndarray[Any, Any]]:
    """Make ``read(data, pos, count, end)``, which returns a read-only, aligned array in native byte order."""
    dtype, size = np.dtype(name), np.dtype(name).itemsize
    frombuffer = np.frombuffer

    if dtype.kind == "b":  # all bytes except 0 are true, but numpy requires 0 and 1

        def read_bools(data: bytes, pos: int, count: int, end: int) -> np.ndarray[Any, Any]:
            array: np.ndarray[Any, Any] = frombuffer(data, np.uint8, count, pos) != 0
            array.flags.writeable = False
            return array

        return read_bools
    if order == ">" and size > 1:

        def read_swapped(data: bytes, pos: int, count: int, end: int) -> np.ndarray[Any, Any]:
            array = frombuffer(data, dtype.newbyteorder(">"), count, pos).astype(dtype)
            array.flags.writeable = False
            return array

        return read_swapped
    if size == 8:  # the header puts 8-byte numbers at odd multiples of 4: a copy is aligned again

        def read_copy(data: bytes, pos: int, count: int, end: int) -> np.ndarray[Any, Any]:
            return frombuffer(data[pos : pos + 8 * count], dtype, count)

        return read_copy

    def read_view(data: bytes, pos: int, count: int, end: int) -> np.ndarray[Any, Any]:
        return frombuffer(data, dtype, count, pos)

    return read_view
