"""Makes published messages read-only, and tells whether one was changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from rosbags.interfaces import Nodetype

from roboyard.messages.store import definition

_FREEZERS: dict[type, Callable[[Any], None] | None] = {}


def freeze(message: Any) -> None:
    """Set every array inside to read-only; costs nothing for types that hold none."""
    kind = message.__class__
    try:
        freezer = _FREEZERS[kind]
    except KeyError:
        freezer = _FREEZERS[kind] = _compile(kind)
    if freezer is not None:
        freezer(message)


def _compile(kind: type) -> Callable[[Any], None] | None:
    """A function made for this type: straight code over exactly the fields that hold arrays."""
    lines, scope = [], {"_np": np, "freeze": freeze}
    for name, description in definition(kind.__msgtype__):  # type: ignore[attr-defined]
        path = f"m.{name}"
        what, detail = description
        if what == Nodetype.NAME:
            if _holds_arrays(detail):
                lines.append(f"freeze({path})")
        elif what in (Nodetype.ARRAY, Nodetype.SEQUENCE):
            (inner, inner_detail), _ = detail
            if inner == Nodetype.BASE and inner_detail[0] != "string":
                lines.append(f"if {path}.__class__ is _np.ndarray: {path}.flags.writeable = False")
            elif inner == Nodetype.NAME and _holds_arrays(inner_detail):
                lines.append(f"for x in {path}: freeze(x)")
    if not lines:
        return None
    exec("def freezer(m):\n  " + "\n  ".join(lines), scope)  # noqa: S102 - field names of a parsed definition
    made: Callable[[Any], None] = scope["freezer"]  # type: ignore[assignment]
    return made


def _holds_arrays(name: str) -> bool:
    for _, (what, detail) in definition(name):
        if what == Nodetype.NAME and _holds_arrays(detail):
            return True
        if what in (Nodetype.ARRAY, Nodetype.SEQUENCE):
            (inner, inner_detail), _ = detail
            if (inner == Nodetype.BASE and inner_detail[0] != "string") or (
                inner == Nodetype.NAME and _holds_arrays(inner_detail)
            ):
                return True
    return False


def fingerprint(message: Any) -> bytes:
    """Bytes that differ when the message's content does."""
    from roboyard.messages.cdr import serialize

    return serialize(message)
