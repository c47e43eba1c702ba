"""Code generator: functions that write a message type as CDR."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from roboyard.messages.cdr_layout import MAX_INLINE_FIELDS, CdrFunctionBuilder, count_leaf_fields, element_size
from roboyard.messages.coercion import coerce_array, coerce_bool
from roboyard.messages.message_definition import DTYPES, STRUCT_CODES, STRUCT_SIZES, MessageDefinition, MessageField
from roboyard.messages.type_registry import definition_of

MessageWriter = Callable[[Any, Callable[[Any], None], int], int]

_ZEROS = tuple(bytes(count) for count in range(9))
_TERMINATED = tuple(bytes(count + 1) for count in range(8))  # a string's final zero and the padding after it


class WrongLengthError(ValueError):
    """The length of an array, sequence or string violates its definition."""


@cache
def make_writer(name: str, alignment: int) -> MessageWriter:
    """Generate ``write(message, put, pos) -> pos``, which passes chunks of bytes (or arrays) to ``put``.

    Args:
        name: Full type name.
        alignment: Alignment that the caller guarantees for ``pos``.
    """
    code = _WriterGenerator(alignment)
    code.write_message(definition_of(name), "m")
    code.flush()
    function: MessageWriter = code.compile("def write(m, put, pos):", "return pos")
    return function


class _WriterGenerator(CdrFunctionBuilder):
    """Generator of a writer; it collects adjacent numbers so that one ``struct`` call packs them all."""

    def __init__(self, alignment: int) -> None:
        super().__init__(alignment)
        self.format = ""
        self.values: list[str] = []
        self.has_open_string = False  # its final zero is written later, together with the padding after it

    def write_message(self, definition: MessageDefinition, expression: str) -> None:
        """Write all fields of ``expression``."""
        for field in definition.fields:
            value = f"{expression}.{field.python_name}"
            if field.arity == "one":
                self.write_value(field, value)
            elif field.is_primitive:
                self.write_numbers(field, value)
            else:
                self.write_items(field, value)

    def write_value(self, field: MessageField, value: str) -> None:
        """Write a single value."""
        if field.is_message:
            if count_leaf_fields(field.type) <= MAX_INLINE_FIELDS:
                name = self.new_variable()
                self.add_line(f"{name} = {value}")
                self.write_message(definition_of(field.type), name)
            else:
                self.flush()
                self.add_line(f"pos = {self.add_global(make_writer(field.type, 1))}({value}, put, pos)")
                self.set_alignment(1)
        elif field.type == "string":
            self.write_string(field, value)
        elif field.type == "bool":
            name = self.new_variable()
            self.add_line(f"{name} = {value}")
            self.write_number(
                "?", f"{name} if {name} is True or {name} is False else {self.add_global(coerce_bool)}({name})"
            )
        else:
            self.write_number(STRUCT_CODES[field.type], value)

    def write_number(self, code: str, value: str) -> None:
        """Write a number."""
        size = STRUCT_SIZES[code]
        self.align(size)
        self.format += code
        self.values.append(value)
        self.advance(size)

    def write_string(self, field: MessageField, value: str) -> None:
        """Write a string: length with the final zero, characters, final zero."""
        text, length = self.new_variable(), self.new_variable()
        self.add_line(f"{text} = {value}.encode()")
        if field.string_capacity:
            self.add_check(
                f"len({text}) > {field.string_capacity}", f"{field.name}: longer than {field.string_capacity}"
            )
        self.add_line(f"{length} = len({text}) + 1")
        self.write_number("I", length)
        self.flush_numbers()
        self.add_line(f"put({text})")
        self.add_line(f"pos += {self.pending_bytes} + {length}")
        self.pending_bytes = 0
        self.set_alignment(1)
        self.has_open_string = True

    def write_numbers(self, field: MessageField, value: str) -> None:
        """Write an array or sequence of numbers in one block."""
        size, dtype = element_size(field), self.add_global(np.dtype(DTYPES[field.type]))
        name = self.new_variable()
        self.add_line(f"{name} = {value}")
        self.add_line(
            f"if {name}.__class__ is not {self.add_global(np.ndarray)} "
            f"or {name}.dtype is not {dtype} or {name}.ndim != 1:"
        )
        self.add_line(f"    {name} = {self.add_global(coerce_array)}({name}, {dtype})")
        if field.arity == "array":
            self.add_check(f"len({name}) != {field.size}", f"{field.name}: not {field.size} long")
            self.align(size)
            self.flush_numbers()
            self.add_line(f"put({name})")
            self.advance(size * field.size)
            return
        length = self.write_length(field, name)
        self.flush_position()
        self.add_line(f"if {length}:")
        if size == 8:  # an empty sequence gets no padding
            self.add_line(f"    if pos & 7: put({self.add_global(_ZEROS)}[4]); pos += 4")
        self.add_line(f"    put({name})")
        self.add_line(f"    pos += {length} * {size}" if size > 1 else f"    pos += {length}")
        self.set_alignment(min(4, size))

    def write_items(self, field: MessageField, value: str) -> None:
        """Write an array or sequence of strings or messages."""
        name = self.new_variable()
        self.add_line(f"{name} = {value}")
        if field.arity == "array":
            self.add_check(f"len({name}) != {field.size}", f"{field.name}: not {field.size} long")
        else:
            self.write_length(field, name)
        self.flush()
        item = self.new_variable()
        item_field = MessageField(field.name, field.type, string_capacity=field.string_capacity)
        n_lines = len(self.lines)
        # The best case: every element ends where the next may start. Otherwise the alignment at its start is unknown.
        for alignment in (min(4, self.alignment) if self.remainder % 4 == 0 else 1, 1):
            del self.lines[n_lines:]
            self.set_alignment(alignment)
            self.add_line(f"for {item} in {name}:")
            self.indent += 1
            self.write_value(item_field, item)
            self.flush()
            self.indent -= 1
            if self.alignment % alignment == 0 and self.remainder % alignment == 0:
                break
        self.set_alignment(alignment)

    def write_length(self, field: MessageField, name: str) -> str:
        """Write the element count of a sequence."""
        length = self.new_variable()
        self.add_line(f"{length} = len({name})")
        if field.size:
            self.add_check(f"{length} > {field.size}", f"{field.name}: more than {field.size} elements")
        self.write_number("I", length)
        return length

    def add_check(self, condition: str, message: str) -> None:
        """Add a check that raises an error for values that the definition does not allow."""
        self.add_line(f"if {condition}: raise {self.add_global(WrongLengthError)}({message!r})")

    # -- position ------------------------------------------------------------------------------------------------------
    def align(self, alignment: int) -> None:
        """Pad to a multiple of ``alignment``."""
        if alignment == 1 and not self.has_open_string:
            return
        padding = self.padding(alignment)
        if padding is not None and not self.has_open_string:
            self.format += "x" * padding
            self.advance(padding)
            return
        self.flush_position()
        pad = self.new_variable()
        if self.has_open_string:
            self.has_open_string = False
            if alignment == 1:
                self.add_line(f"put({self.add_global(_TERMINATED[0])})")
                return
            self.add_line(f"{pad} = -pos & {alignment - 1}")
            self.add_line(f"put({self.add_global(_TERMINATED)}[{pad}])")
            self.add_line(f"pos += {pad}")
        else:
            self.add_line(f"{pad} = -pos & {alignment - 1}")
            self.add_line(f"if {pad}: put({self.add_global(_ZEROS)}[{pad}]); pos += {pad}")
        self.set_alignment(alignment)

    def flush_numbers(self) -> None:
        """Pack the collected numbers."""
        if self.format:
            pack = self.add_global(_packer(self.format))
            self.add_line(f"put({pack}({', '.join(self.values)}))")
            self.format, self.values = "", []

    def flush_position(self) -> None:
        """Pack the collected numbers and update ``pos``."""
        self.flush_numbers()
        if self.pending_bytes:
            self.add_line(f"pos += {self.pending_bytes}")
            self.pending_bytes = 0

    def flush(self) -> None:
        """Write everything pending and update ``pos``."""
        if self.has_open_string:
            self.align(1)
        self.flush_position()


@cache
def _packer(codes: str) -> Callable[..., bytes]:
    return Struct("<" + codes).pack
