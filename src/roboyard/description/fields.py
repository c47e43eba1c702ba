"""Values of child elements, as SDF and Gazebo blocks write them (``<mass>1.5</mass>``); an empty one is the default."""

from __future__ import annotations

import math

from roboyard.description.model import Rgba, Vec3
from roboyard.description.values import boolean, colour, fault, integer, number, numbers, position, shown, vector
from roboyard.description.xml import Node
from roboyard.geometry import SE3


def text_of(node: Node | None, tag: str, default: str = "") -> str:
    """Stripped text of the child, or ``default``."""
    child = node.child(tag) if node is not None else None
    return (child.text.strip() if child is not None else "") or default


def expressed_in(node: Node | None) -> str | None:
    """The link that ``gz:expressed_in`` names, or ``ignition:expressed_in`` of older files."""
    for name, value in node.attributes.items() if node is not None else ():
        if name.rpartition(":")[2] == "expressed_in" and value.strip():
            return value.strip()
    return None


def _filled(node: Node | None, tag: str) -> Node | None:
    child = node.child(tag) if node is not None else None
    return child if child is not None and child.text.strip() else None


def number_of(
    node: Node | None, tag: str, default: float, *, infinite: bool = False, low: float = -math.inf, above: bool = False
) -> float:
    """Number in the child.

    Args:
        node: The parent; None gives the default.
        tag: The child's tag.
        default: For a missing or empty child.
        infinite: Whether ``inf`` is allowed.
        low: Least value allowed; with ``above`` the value must exceed it.
        above: See ``low``.

    Raises:
        DescriptionError: no number, or too small.
    """
    child = _filled(node, tag)
    if child is None:
        return default
    value = number(child.text, child, f"<{tag}>", infinite=infinite)
    if value < low or (above and value == low):
        raise fault(f"<{tag}> is {shown(child.text)}", child, f"a number {'above' if above else 'of at least'} {low:g}")
    return value


def integer_of(node: Node | None, tag: str, default: int) -> int:
    """Whole number in the child. Raises DescriptionError."""
    child = _filled(node, tag)
    return default if child is None else integer(child.text, child, f"<{tag}>")


def boolean_of(node: Node | None, tag: str, default: bool) -> bool:
    """Truth value in the child. Raises DescriptionError."""
    child = _filled(node, tag)
    return default if child is None else boolean(child.text, child, f"<{tag}>")


def vector_of(node: Node | None, tag: str, default: Vec3) -> Vec3:
    """Three numbers in the child. Raises DescriptionError."""
    child = _filled(node, tag)
    return default if child is None else vector(child.text, child, f"<{tag}>")


def colour_of(node: Node | None, tag: str, default: Rgba) -> Rgba:
    """Colour in the child. Raises DescriptionError."""
    child = _filled(node, tag)
    return default if child is None else colour(child.text, child, f"<{tag}>")


def pose(node: Node | None) -> SE3:
    """What a ``<pose>`` says, in the frame it refers to: x y z roll pitch yaw, or a quaternion x y z w at the end.

    Attributes ``degrees`` and ``rotation_format`` as in SDF 1.9; None or empty is the identity.

    Raises:
        DescriptionError: wrong count, no numbers, a quaternion without length, or an unknown format.
    """
    if node is None or not node.text.strip():
        return SE3.identity()
    kind = node.get("rotation_format", "euler_rpy")
    if kind == "quat_xyzw":
        *_, qx, qy, qz, qw = numbers(node.text, 7, node, "<pose>")
        if max(abs(qx), abs(qy), abs(qz), abs(qw)) < 1e-9:
            raise fault(f"<pose> is {shown(node.text)}", node, "a quaternion with a length")
        return SE3((qw, qx, qy, qz), _place(node))
    if kind != "euler_rpy":
        raise fault(f"rotation_format is {shown(kind)}", node, "euler_rpy or quat_xyzw")
    *_, roll, pitch, yaw = numbers(node.text, 6, node, "<pose>")
    rpy = (roll, pitch, yaw)
    if "degrees" in node.attributes and boolean(node.get("degrees"), node, "degrees"):
        rpy = (math.radians(roll), math.radians(pitch), math.radians(yaw))
    return SE3.from_xyz_rpy(_place(node), rpy)


def _place(node: Node) -> Vec3:
    return position(" ".join(node.text.split()[:3]), node, "<pose>")
