"""`WrittenDescription`, conversion losses, and number formats of the writers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

from roboyard.description.model import Surface, XmlElement
from roboyard.geometry import SE3

FileNamer = Callable[[Path, str], str]
"""Function from a file and its URI in the original to its name in the written text."""
_POSE_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True)
class WrittenDescription:
    """Written description.

    Attributes:
        text: The document.
        losses: Content that the format cannot express, one sentence each.
    """

    text: str
    losses: tuple[str, ...]


@dataclass(slots=True)
class ConversionLosses:
    """Collects conversion losses, without duplicates."""

    _losses: dict[str, None] = field(default_factory=dict)

    def add(self, loss: str) -> None:
        """Record a loss."""
        self._losses.setdefault(loss)

    def finish(self, root: ET.Element) -> WrittenDescription:
        """Return the document under `root` with the losses."""
        ET.indent(root)
        text = ET.tostring(root, encoding="unicode")
        return WrittenDescription(f'<?xml version="1.0"?>\n{text}\n', tuple(self._losses))


def format_number(value: float) -> str:
    """Format a number with the shortest text that reads back as the same number."""
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    value = float(value) + 0.0  # no negative zero
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def format_numbers(values: Iterable[float]) -> str:
    """Format several numbers, separated by blanks."""
    return " ".join(format_number(float(value)) for value in values)


def add_friction_direction(parent: ET.Element, surface: Surface) -> None:
    """Add the first friction direction, and the link in whose frame it is expressed."""
    if surface.friction_direction is None:
        return
    node = add_child(parent, "fdir1", format_numbers(surface.friction_direction))
    if surface.friction_direction_frame is not None:
        node.set("xmlns:gz", "http://gazebosim.org/schema")
        node.set("gz:expressed_in", surface.friction_direction_frame)


def add_child(parent: ET.Element, tag: str, text: str | float | bool | None = None, **attributes: str) -> ET.Element:
    """Add a child element; `text` may be a number or Boolean."""
    child = ET.SubElement(parent, tag, attributes)
    if isinstance(text, bool):
        child.text = "true" if text else "false"
    elif text is not None:
        child.text = text if isinstance(text, str) else format_number(text)
    return child


def add_element(parent: ET.Element, element: XmlElement) -> ET.Element:
    """Add an XML element as it was read."""
    child = ET.SubElement(parent, element.tag, dict(element.attributes))
    child.text = element.text or None
    for one in element.children:
        add_element(child, one)
    return child


def add_pose(parent: ET.Element, T: SE3, **attributes: str) -> None:
    """Add SDF's ``<pose>``: roll, pitch and yaw, or a quaternion if those would lose digits; the identity is not
    written.
    """
    if SE3.identity() == T and not attributes:
        return
    if SE3.from_xyz_rpy(T.translation, T.rpy).almost_equal(T, _POSE_TOLERANCE):
        add_child(parent, "pose", format_numbers((*T.translation, *T.rpy)), **attributes)
    else:
        w, x, y, z = T.quaternion
        attributes["rotation_format"] = "quat_xyzw"
        add_child(parent, "pose", format_numbers((*T.translation, x, y, z, w)), **attributes)
