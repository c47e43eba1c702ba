"""Generates the functions that read a message type from CDR and write it as CDR.

CDR (OMG DDS-XTypes 1.3, 7.4.1, "plain CDR") aligns every primitive to its own size, counted from behind the 4-byte
header.  Where strings and sequences make the position depend on the message, alignment is known only modulo a number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from roboyard.messages.classes import message_class
from roboyard.messages.coercion import coerce_array, coerce_bool
from roboyard.messages.message_definition import (
    DTYPES,
    STRUCT_CODES,
    STRUCT_SIZES,
    MessageDefinition,
    MessageField,
    empty_array,
)
from roboyard.messages.type_registry import definition_of, type_registry

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
