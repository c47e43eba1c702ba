"""Makes published messages safe to share: arrays become read-only, and values become those that bytes can hold.

So a subscriber gets the same numbers from a live publisher, from a recording and from another process.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from roboyard.errors import MessageError
from roboyard.messages.arrays import fix_array
from roboyard.messages.layout import definition_of
from roboyard.messages.structure import DTYPES, Definition

_freezers: dict[type[Any], Callable[[Any], None] | None] = {}


def freeze(message: Any) -> None:
    """Set every array inside read-only, nested ones too, and round 32-bit numbers to their 32 bits.

    Lists of numbers and arrays of another number type become arrays of the right one, if the numbers fit.

    Raises:
        MessageError: not a message, or a field cannot be what its type wants; names it.
    """
    try:
        freezer = _freezers[message.__class__]
    except KeyError:
        freezer = _prepare(message)
    if freezer is not None:
        try:
            freezer(message)
        except (TypeError, AttributeError, ValueError, OverflowError, struct.error) as error:
            from roboyard.messages.diagnosis import fault

            raise fault(message, error) from error


def fingerprint(message: Any) -> bytes:
    """16 bytes that change with any value in the message.

    Raises:
        MessageError: it cannot be serialised.
    """
    from roboyard.messages.cdr import serialize

    return hashlib.blake2b(serialize(message), digest_size=16).digest()


def _prepare(message: Any) -> Callable[[Any], None] | None:
    from roboyard.messages.classes import message_class, type_name

    name = type_name(message)
    if message.__class__ is not message_class(name):
        raise MessageError(f"{message!r}"[:200] + " is no message", valid="e.g. ry.msg.Twist()")
    freezer = _freezers[message.__class__] = _freezer(name) if _concerns(name) else None
    return freezer


@cache
def _concerns(name: str) -> bool:
    """Whether messages of this type hold arrays or 32-bit numbers anywhere."""
    return any(
        (f.primitive and f.kind != "one") or f.type == "float32" or (f.nested and _concerns(f.type))
        for f in definition_of(name).fields
    )


@cache
def _freezer(name: str) -> Callable[[Any], None]:
    names: dict[str, Any] = {"_array": np.ndarray, "_fix": fix_array}
    lines = ["def freeze(m):", *_lines(definition_of(name), "m", 1, names)]
    exec(compile("\n".join(lines), f"<roboyard freeze {name}>", "exec"), names)  # noqa: S102  names come from checked definitions
    function: Callable[[Any], None] = names["freeze"]
    return function


def _lines(definition: Definition, owner: str, depth: int, names: dict[str, Any]) -> list[str]:
    pad = "    " * depth
    lines: list[str] = []
    rounded = [f"{owner}.{f.attribute}" for f in definition.fields if f.kind == "one" and f.type == "float32"]
    if rounded:
        both = struct.Struct(f"<{len(rounded)}f")
        names["_pack"], names["_unpack"] = both.pack, both.unpack
        values = ", ".join(rounded)
        lines.append(f"{pad}{values}, = _unpack(_pack({values}))")
    for field in definition.fields:
        value = f"{owner}.{field.attribute}"
        if field.primitive and field.kind != "one":
            dtype = f"_{DTYPES[field.type]}"
            names[dtype] = np.dtype(DTYPES[field.type])
            lines += [
                f"{pad}a = {value}",
                f"{pad}if a.__class__ is not _array or a.dtype is not {dtype} or a.ndim != 1:",
                f"{pad}    {value} = a = _fix(a, {dtype})",
                f"{pad}a.setflags(False)",
            ]
        elif field.nested and _concerns(field.type):
            inner = f"_f{len(names)}"
            names[inner] = _freezer(field.type)
            if field.kind == "one":
                lines.append(f"{pad}{inner}({value})")
            else:
                lines += [f"{pad}for i in {value}:", f"{pad}    {inner}(i)"]
    return lines
