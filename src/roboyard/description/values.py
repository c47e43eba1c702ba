"""Text of attributes and elements to numbers, vectors, poses, truth values: checked, and finite unless said."""

from __future__ import annotations

import math
import re

from roboyard.description.model import Rgba, Vec3
from roboyard.description.xml import Node
from roboyard.errors import DescriptionError

_NUMBER = re.compile(r"[+-]?(\d{1,400}\.?\d{0,400}|\.\d{1,400})([eE][+-]?\d{1,6})?f?", re.ASCII)
_INFINITY = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_FAR = 1e9  # [m]
_TRUE = ("true", "1")
_FALSE = ("false", "0")


def fault(what: str, node: Node, valid: str | None = None) -> DescriptionError:
    """The error for something wrong at ``node``; the caller raises it."""
    return DescriptionError(what, where=node.where, valid=valid)


def shown(text: str, length: int = 60) -> str:
    """A user's text quoted for a message, cut to a readable length."""
    text = " ".join(text[: 3 * length].split())
    return repr(text if len(text) <= length else text[: length - 1] + "…")


def number(text: str, node: Node, what: str, *, infinite: bool = False) -> float:
    """One number.

    Args:
        text: As written.
        node: Where it stands.
        what: Its name in messages.
        infinite: Whether ``inf`` is a value here (limits, ranges).

    Raises:
        DescriptionError: no number, or not finite.
    """
    text = text.strip()
    if _NUMBER.fullmatch(text):
        value = float(text.rstrip("f"))
        if math.isfinite(value):
            return value
    elif _INFINITY.fullmatch(text) and infinite:
        return -math.inf if text[0] == "-" else math.inf
    raise fault(f"{what} is {shown(text)}", node, "a finite number")


def numbers(text: str, count: int, node: Node, what: str) -> tuple[float, ...]:
    """Exactly ``count`` numbers separated by blanks. Raises DescriptionError."""
    parts = text.split()
    if len(parts) != count:
        raise fault(f"{what} is {shown(text)}", node, f"{count} numbers")
    return tuple(number(part, node, what) for part in parts)


def vector(text: str, node: Node, what: str) -> Vec3:
    """Three numbers. Raises DescriptionError."""
    x, y, z = numbers(text, 3, node, what)
    return x, y, z


def positive(text: str, node: Node, what: str) -> float:
    """A number above zero. Raises DescriptionError."""
    value = number(text, node, what)
    if value <= 0.0:
        raise fault(f"{what} is {shown(text)}", node, "a number above 0")
    return value


def positives(text: str, count: int, node: Node, what: str) -> tuple[float, ...]:
    """``count`` numbers above zero. Raises DescriptionError."""
    values = numbers(text, count, node, what)
    if min(values) <= 0.0:
        raise fault(f"{what} is {shown(text)}", node, f"{count} numbers above 0")
    return values


def integer(text: str, node: Node, what: str) -> int:
    """A whole number of at most nine digits. Raises DescriptionError."""
    value = number(text, node, what)
    if value != int(value) or abs(value) > 1e9:
        raise fault(f"{what} is {shown(text)}", node, "a whole number")
    return int(value)


def boolean(text: str, node: Node, what: str) -> bool:
    """true, false, 1 or 0. Raises DescriptionError."""
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise fault(f"{what} is {shown(text)}", node, "true, false, 1 or 0")


def colour(text: str, node: Node, what: str) -> Rgba:
    """Red, green, blue and, if given, alpha, clipped to 0 … 1. Raises DescriptionError."""
    parts = text.split()
    if len(parts) not in (3, 4):
        raise fault(f"{what} is {shown(text)}", node, "3 or 4 numbers from 0 to 1")
    r, g, b, *alpha = (min(max(number(part, node, what), 0.0), 1.0) for part in parts)
    return r, g, b, alpha[0] if alpha else 1.0


def position(text: str, node: Node, what: str) -> Vec3:
    """Three coordinates, each below a million kilometres so that poses compose without overflow.

    Raises DescriptionError.
    """
    xyz = vector(text, node, what)
    if max(map(abs, xyz)) > _FAR:
        raise fault(f"{what} is {shown(text)}", node, f"coordinates below {_FAR:g} m")
    return xyz


def unit_vector(text: str, node: Node, what: str) -> Vec3:
    """A direction, normalised. Raises DescriptionError when it has no length."""
    x, y, z = vector(text, node, what)
    scale = max(abs(x), abs(y), abs(z))
    if scale < 1e-12:
        raise fault(f"{what} is {shown(text)}", node, "a vector with a length")
    x, y, z = x / scale, y / scale, z / scale
    length = math.sqrt(x * x + y * y + z * z)
    return x / length, y / length, z / length
