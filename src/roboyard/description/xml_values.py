"""Converts text of XML attributes and child elements to numbers, vectors and poses, and checks them."""

from __future__ import annotations

import math
import re

from roboyard.description.model import Rgba
from roboyard.description.xml import XmlNode
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Vec3

_NUMBER = re.compile(r"[+-]?(\d{1,400}\.?\d{0,400}|\.\d{1,400})([eE][+-]?\d{1,6})?f?", re.ASCII)
_INFINITY = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_MAX_COORDINATE = 1e9  # [m]
_TRUE = ("true", "1")
_FALSE = ("false", "0")


def error_at(problem: str, node: XmlNode, valid: str | None = None) -> DescriptionError:
    """Make the error for a problem at `node`; the caller raises it."""
    return DescriptionError(problem, location=node.location, valid=valid)


def quote(text: str, length: int = 60) -> str:
    """Quote a user's text for a message, truncated to a readable length."""
    text = " ".join(text[: 3 * length].split())
    return repr(text if len(text) <= length else text[: length - 1] + "…")


def parse_number(text: str, node: XmlNode, name: str, *, allow_infinite: bool = False) -> float:
    """Parse one number.

    Args:
        text: The text.
        node: Element with the text.
        name: Name of the value in messages.
        allow_infinite: Whether ``inf`` is allowed (limits, ranges).

    Raises:
        DescriptionError: The text is not a number, or not finite.
    """
    text = text.strip()
    if _NUMBER.fullmatch(text):
        value = float(text.rstrip("f"))
        if math.isfinite(value):
            return value
    elif _INFINITY.fullmatch(text) and allow_infinite:
        return -math.inf if text[0] == "-" else math.inf
    raise error_at(f"{name} is {quote(text)}", node, "a finite number")


def parse_numbers(text: str, count: int, node: XmlNode, name: str) -> tuple[float, ...]:
    """Parse exactly `count` numbers separated by white space. Raises DescriptionError."""
    parts = text.split()
    if len(parts) != count:
        raise error_at(f"{name} is {quote(text)}", node, f"{count} numbers")
    return tuple(parse_number(part, node, name) for part in parts)


def parse_vector(text: str, node: XmlNode, name: str) -> Vec3:
    """Parse three numbers. Raises DescriptionError."""
    x, y, z = parse_numbers(text, 3, node, name)
    return x, y, z


def parse_positive(text: str, node: XmlNode, name: str) -> float:
    """Parse a positive number. Raises DescriptionError."""
    value = parse_number(text, node, name)
    if value <= 0.0:
        raise error_at(f"{name} is {quote(text)}", node, "a number above 0")
    return value


def parse_positives(text: str, count: int, node: XmlNode, name: str) -> tuple[float, ...]:
    """Parse `count` positive numbers. Raises DescriptionError."""
    values = parse_numbers(text, count, node, name)
    if min(values) <= 0.0:
        raise error_at(f"{name} is {quote(text)}", node, f"{count} numbers above 0")
    return values


def parse_integer(text: str, node: XmlNode, name: str) -> int:
    """Parse an integer of at most nine digits. Raises DescriptionError."""
    value = parse_number(text, node, name)
    if value != int(value) or abs(value) > 1e9:
        raise error_at(f"{name} is {quote(text)}", node, "a whole number")
    return int(value)


def parse_boolean(text: str, node: XmlNode, name: str) -> bool:
    """Parse true, false, 1 or 0. Raises DescriptionError."""
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise error_at(f"{name} is {quote(text)}", node, "true, false, 1 or 0")


def parse_color(text: str, node: XmlNode, name: str) -> Rgba:
    """Parse red, green, blue and, optionally, alpha, clipped to 0 … 1. Raises DescriptionError."""
    parts = text.split()
    if len(parts) not in (3, 4):
        raise error_at(f"{name} is {quote(text)}", node, "3 or 4 numbers from 0 to 1")
    r, g, b, *alpha = (min(max(parse_number(part, node, name), 0.0), 1.0) for part in parts)
    return r, g, b, alpha[0] if alpha else 1.0


def parse_position(text: str, node: XmlNode, name: str) -> Vec3:
    """Parse three coordinates, each below a million kilometers so that poses compose without overflow.

    Raises DescriptionError.
    """
    xyz = parse_vector(text, node, name)
    if max(map(abs, xyz)) > _MAX_COORDINATE:
        raise error_at(f"{name} is {quote(text)}", node, f"coordinates below {_MAX_COORDINATE:g} m")
    return xyz


def parse_unit_vector(text: str, node: XmlNode, name: str) -> Vec3:
    """Parse and normalize a direction. Raises DescriptionError if its length is zero."""
    x, y, z = parse_vector(text, node, name)
    scale = max(abs(x), abs(y), abs(z))
    if scale < 1e-12:
        raise error_at(f"{name} is {quote(text)}", node, "a vector with a length")
    x, y, z = x / scale, y / scale, z / scale
    length = math.sqrt(x * x + y * y + z * z)
    return x / length, y / length, z / length


def child_text(node: XmlNode | None, tag: str, default: str = "") -> str:
    """Return the stripped text of the child, or `default`."""
    child = node.child(tag) if node is not None else None
    return (child.text.strip() if child is not None else "") or default


def read_expressed_in(node: XmlNode | None) -> str | None:
    """Return the link that ``gz:expressed_in`` names, or ``ignition:expressed_in`` of older files."""
    for name, value in node.attributes.items() if node is not None else ():
        if name.rpartition(":")[2] == "expressed_in" and value.strip():
            return value.strip()
    return None


def _child_with_text(node: XmlNode | None, tag: str) -> XmlNode | None:
    child = node.child(tag) if node is not None else None
    return child if child is not None and child.text.strip() else None


def child_number(
    node: XmlNode | None,
    tag: str,
    default: float,
    *,
    allow_infinite: bool = False,
    minimum: float = -math.inf,
    exclusive: bool = False,
) -> float:
    """Read a number from the child.

    Args:
        node: The parent; None gives the default.
        tag: Tag of the child.
        default: Value for a missing or empty child.
        allow_infinite: Whether ``inf`` is allowed.
        minimum: Minimum value; with `exclusive` the value must exceed it.
        exclusive: Whether `minimum` itself is not allowed.

    Raises:
        DescriptionError: The text is not a number, or too small.
    """
    child = _child_with_text(node, tag)
    if child is None:
        return default
    value = parse_number(child.text, child, f"<{tag}>", allow_infinite=allow_infinite)
    if value < minimum or (exclusive and value == minimum):
        raise error_at(
            f"<{tag}> is {quote(child.text)}", child, f"a number {'above' if exclusive else 'of at least'} {minimum:g}"
        )
    return value


def child_integer(node: XmlNode | None, tag: str, default: int) -> int:
    """Read an integer from the child. Raises DescriptionError."""
    child = _child_with_text(node, tag)
    return default if child is None else parse_integer(child.text, child, f"<{tag}>")


def child_boolean(node: XmlNode | None, tag: str, default: bool) -> bool:
    """Read a Boolean from the child. Raises DescriptionError."""
    child = _child_with_text(node, tag)
    return default if child is None else parse_boolean(child.text, child, f"<{tag}>")


def child_vector(node: XmlNode | None, tag: str, default: Vec3) -> Vec3:
    """Read three numbers from the child. Raises DescriptionError."""
    child = _child_with_text(node, tag)
    return default if child is None else parse_vector(child.text, child, f"<{tag}>")


def child_color(node: XmlNode | None, tag: str, default: Rgba) -> Rgba:
    """Read a color from the child. Raises DescriptionError."""
    child = _child_with_text(node, tag)
    return default if child is None else parse_color(child.text, child, f"<{tag}>")


def read_pose(node: XmlNode | None) -> SE3:
    """Read a ``<pose>`` in the frame it refers to: x y z roll pitch yaw, or x y z and a quaternion x y z w.

    Attributes ``degrees`` and ``rotation_format`` as in SDF 1.9; None or empty is the identity.

    Raises:
        DescriptionError: The count is wrong, a value is not a number, the quaternion is zero, or the format is unknown.
    """
    if node is None or not node.text.strip():
        return SE3.identity()
    rotation_format = node.get("rotation_format", "euler_rpy")
    if rotation_format == "quat_xyzw":
        *_, qx, qy, qz, qw = parse_numbers(node.text, 7, node, "<pose>")
        if max(abs(qx), abs(qy), abs(qz), abs(qw)) < 1e-9:
            raise error_at(f"<pose> is {quote(node.text)}", node, "a quaternion with a length")
        return SE3((qw, qx, qy, qz), _parse_pose_position(node))
    if rotation_format != "euler_rpy":
        raise error_at(f"rotation_format is {quote(rotation_format)}", node, "euler_rpy or quat_xyzw")
    *_, roll, pitch, yaw = parse_numbers(node.text, 6, node, "<pose>")
    rpy = (roll, pitch, yaw)
    if "degrees" in node.attributes and parse_boolean(node.get("degrees"), node, "degrees"):
        rpy = (math.radians(roll), math.radians(pitch), math.radians(yaw))
    return SE3.from_xyz_rpy(_parse_pose_position(node), rpy)


def _parse_pose_position(node: XmlNode) -> Vec3:
    return parse_position(" ".join(node.text.split()[:3]), node, "<pose>")
