"""Freezes published messages: arrays become read-only, and values are rounded as serialization would round them.

A subscriber gets the same numbers from a live publisher, from a recording and from another process.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from roboyard.errors import MessageError
from roboyard.messages.coercion import coerce_array
from roboyard.messages.message_definition import DTYPES, MessageDefinition
from roboyard.messages.type_registry import definition_of

_freezers: dict[type[Any], Callable[[Any], None] | None] = {}


def freeze(message: Any) -> None:
    """Freeze a message: make all arrays read-only, including nested ones, and round 32-bit numbers to 32 bits.

    Lists of numbers and arrays of another number type become arrays of the declared type, if the numbers fit.

    Raises:
        MessageError: It is not a message, or the value of a field cannot be converted (the error names the field).
    """
    try:
        freezer = _freezers[message.__class__]
    except KeyError:
        freezer = _prepare(message)
    if freezer is not None:
        try:
            freezer(message)
        except (TypeError, AttributeError, ValueError, OverflowError, struct.error) as error:
            from roboyard.messages.cdr import explain_error

            raise explain_error(message, error) from error


def fingerprint(message: Any) -> bytes:
    """Return 16 bytes that change with any value in the message.

    Raises:
        MessageError: The message cannot be serialized.
    """
    from roboyard.messages.cdr import serialize

    return hashlib.blake2b(serialize(message), digest_size=16).digest()


def _prepare(message: Any) -> Callable[[Any], None] | None:
    from roboyard.messages.classes import message_class, type_name

    name = type_name(message)
    if message.__class__ is not message_class(name):
        raise MessageError(f"{message!r}"[:200] + " is not a message", valid="e.g. ry.msg.Twist()")
    freezer = _freezers[message.__class__] = _freezer(name) if _needs_freezing(name) else None
    return freezer


@cache
def _needs_freezing(name: str) -> bool:
    """Return whether messages of this type contain arrays or 32-bit numbers."""
    return any(
        (f.is_primitive and f.arity != "one") or f.type == "float32" or (f.is_message and _needs_freezing(f.type))
        for f in definition_of(name).fields
    )


@cache
def _freezer(name: str) -> Callable[[Any], None]:
    names: dict[str, Any] = {"_array": np.ndarray, "_fix": coerce_array}
    lines = ["def freeze(m):", *_freezing_lines(definition_of(name), "m", 1, names)]
    exec(compile("\n".join(lines), f"<roboyard freeze {name}>", "exec"), names)  # noqa: S102  names come from checked definitions
    function: Callable[[Any], None] = names["freeze"]
    return function


def _freezing_lines(definition: MessageDefinition, owner: str, depth: int, names: dict[str, Any]) -> list[str]:
    pad = "    " * depth
    lines: list[str] = []
    float32_values = [f"{owner}.{f.python_name}" for f in definition.fields if f.arity == "one" and f.type == "float32"]
    if float32_values:
        packer = struct.Struct(f"<{len(float32_values)}f")
        names["_pack"], names["_unpack"] = packer.pack, packer.unpack
        values = ", ".join(float32_values)
        lines.append(f"{pad}{values}, = _unpack(_pack({values}))")
    for field in definition.fields:
        value = f"{owner}.{field.python_name}"
        if field.is_primitive and field.arity != "one":
            dtype = f"_{DTYPES[field.type]}"
            names[dtype] = np.dtype(DTYPES[field.type])
            lines += [
                f"{pad}a = {value}",
                f"{pad}if a.__class__ is not _array or a.dtype is not {dtype} or a.ndim != 1:",
                f"{pad}    {value} = a = _fix(a, {dtype})",
                f"{pad}a.setflags(False)",
            ]
        elif field.is_message and _needs_freezing(field.type):
            nested_freezer = f"_f{len(names)}"
            names[nested_freezer] = _freezer(field.type)
            if field.arity == "one":
                lines.append(f"{pad}{nested_freezer}({value})")
            else:
                lines += [f"{pad}for i in {value}:", f"{pad}    {nested_freezer}(i)"]
    return lines
