"""Values of child elements, as SDF and Gazebo blocks write them (``<mass>1.5</mass>``); an empty one is the default."""

from __future__ import annotations

import math

from roboyard.description.model import Rgba, Vec3
from roboyard.description.values import (
    error_at,
    parse_boolean,
    parse_color,
    parse_integer,
    parse_number,
    parse_numbers,
    parse_position,
    parse_vector,
    quote,
)
from roboyard.description.xml import XmlNode
from roboyard.geometry import SE3


def child_text(node: XmlNode | None, tag: str, default: str = "") -> str:
    """Stripped text of the child, or ``default``."""
    child = node.child(tag) if node is not None else None
    return (child.text.strip() if child is not None else "") or default


def read_expressed_in(node: XmlNode | None) -> str | None:
    """The link that ``gz:expressed_in`` names, or ``ignition:expressed_in`` of older files."""
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
    """Number in the child.

    Args:
        node: The parent; None gives the default.
        tag: The child's tag.
        default: For a missing or empty child.
        allow_infinite: Whether ``inf`` is allowed.
        minimum: Least value allowed; with ``exclusive`` the value must exceed it.
        exclusive: See ``minimum``.

    Raises:
        DescriptionError: no number, or too small.
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
    """Whole number in the child. Raises DescriptionError."""
    child = _child_with_text(node, tag)
    return default if child is None else parse_integer(child.text, child, f"<{tag}>")


def child_boolean(node: XmlNode | None, tag: str, default: bool) -> bool:
    """Truth value in the child. Raises DescriptionError."""
    child = _child_with_text(node, tag)
    return default if child is None else parse_boolean(child.text, child, f"<{tag}>")


def child_vector(node: XmlNode | None, tag: str, default: Vec3) -> Vec3:
    """Three numbers in the child. Raises DescriptionError."""
    child = _child_with_text(node, tag)
    return default if child is None else parse_vector(child.text, child, f"<{tag}>")


def child_color(node: XmlNode | None, tag: str, default: Rgba) -> Rgba:
    """Colour in the child. Raises DescriptionError."""
    child = _child_with_text(node, tag)
    return default if child is None else parse_color(child.text, child, f"<{tag}>")


def read_pose(node: XmlNode | None) -> SE3:
    """What a ``<pose>`` says, in the frame it refers to: x y z roll pitch yaw, or a quaternion x y z w at the end.

    Attributes ``degrees`` and ``rotation_format`` as in SDF 1.9; None or empty is the identity.

    Raises:
        DescriptionError: wrong count, no numbers, a quaternion without length, or an unknown format.
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
