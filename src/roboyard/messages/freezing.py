"""Makes published messages safe to share: their arrays can no longer be written to."""

from __future__ import annotations

import hashlib
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
    """Set every array inside read-only, nested ones too; what is not yet the right array becomes one.

    Lists of numbers and arrays of another number type are converted if the numbers fit.

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
        except (TypeError, AttributeError) as error:
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
    freezer = _freezers[message.__class__] = _freezer(name) if has_arrays(name) else None
    return freezer


@cache
def has_arrays(name: str) -> bool:
    """Whether messages of this type hold arrays anywhere."""
    return any(
        (f.primitive and f.kind != "one") or (f.nested and has_arrays(f.type)) for f in definition_of(name).fields
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
        elif field.nested and has_arrays(field.type):
            inner = f"_f{len(names)}"
            names[inner] = _freezer(field.type)
            if field.kind == "one":
                lines.append(f"{pad}{inner}({value})")
            else:
                lines += [f"{pad}for i in {value}:", f"{pad}    {inner}(i)"]
    return lines
