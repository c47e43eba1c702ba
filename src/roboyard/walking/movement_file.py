"""Movement files: steps of feet in XML.

``<movement><foot number="0"><step><x>0.01</x><y>0</y><z>0.02</z></step>…</foot>…</movement>``: metres beside the
stance, in the body's frame, one list of steps for each foot, all of the same length.  ``<movement ticks="1">`` tells
from step to step how many periods of 20 ms it was made for.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from roboyard.description.load import read_file
from roboyard.description.xml import XmlNode, parse_xml
from roboyard.errors import DescriptionError
from roboyard.walking.movement import Movement

_MOST_STEPS = 100_000
_MOST_TICKS = 10_000


def load_movement(path: Path) -> Movement:
    """A movement from its file.

    Raises:
        DescriptionError: it is no such file; with line, what is wrong and what would be right.
    """
    _, data = read_file(path, (".xml",), "a movement: .xml")
    root, _ = parse_xml(data, str(path))
    if root.tag != "movement":
        raise _fault(root, f"the root is <{root.tag}>", "<movement>")
    feet: dict[int, XmlNode] = {}
    for node in root.children:
        if node.tag != "foot":
            raise _fault(node, f"<{node.tag}> in a movement", "<foot number=…>")
        number = node.get("number")
        if not number.isdecimal() or int(number) > 1000:
            raise _fault(node, f"foot number {number!r}", "0, 1, 2, …")
        if int(number) in feet:
            raise _fault(node, f"a second foot {number}", f"each once; the first is at {feet[int(number)].location}")
        feet[int(number)] = node
    if not feet:
        raise _fault(root, "no feet", '<foot number="0"> and so on')
    missing = [count for count in range(max(feet) + 1) if count not in feet]
    if missing:
        raise _fault(root, f"foot {missing[0]} is missing", f"all of 0 to {max(feet)}")
    steps = [_steps(feet[count]) for count in range(len(feet))]
    for foot, some in enumerate(steps):
        if len(some) != len(steps[0]):
            raise _fault(feet[foot], f"foot {foot} has {len(some)} steps", f"{len(steps[0])}, as many as foot 0 has")
    return Movement(np.array(steps), path.stem, _ticks(root))


def movement_text(movement: Movement) -> str:
    """A movement as a file's text; numbers as they are, so that reading gives the same."""
    from xml.sax.saxutils import quoteattr  # brings an HTTP client and TLS, which readers of movements do not need

    made = "" if movement.ticks is None else f" ticks={quoteattr(str(movement.ticks))}"
    lines = ['<?xml version="1.0"?>', f"<movement{made}>"]
    for number, steps in enumerate(movement.steps.tolist()):
        lines.append(f"  <foot number={quoteattr(str(number))}>")
        lines += [f"    <step><x>{x!r}</x><y>{y!r}</y><z>{z!r}</z></step>" for x, y, z in steps]
        lines.append("  </foot>")
    return "\n".join([*lines, "</movement>", ""])


def _ticks(root: XmlNode) -> int | None:
    said = root.get("ticks")
    if not said:
        return None
    if not said.isdecimal() or not 1 <= int(said[:9]) <= _MOST_TICKS:
        raise _fault(root, f"ticks {said!r}", f"1 to {_MOST_TICKS}")
    return int(said)


def _steps(foot: XmlNode) -> list[tuple[float, ...]]:
    found: list[tuple[float, ...]] = []
    for node in foot.children:
        if node.tag != "step":
            raise _fault(node, f"<{node.tag}> in a foot", "<step>")
        values = {}
        for child in node.children:
            if child.tag not in ("x", "y", "z") or child.tag in values:
                raise _fault(child, f"<{child.tag}> in a step", "<x>, <y> and <z>, each once")
            values[child.tag] = _number(child)
        if len(values) < 3:
            lost = next(axis for axis in "xyz" if axis not in values)
            raise _fault(node, f"a step without <{lost}>", "<x>, <y> and <z>, each once")
        found.append((values["x"], values["y"], values["z"]))
    if not found or len(found) > _MOST_STEPS:
        raise _fault(foot, f"{len(found)} steps", f"1 to {_MOST_STEPS}")
    return found


def _number(node: XmlNode) -> float:
    try:
        value = float(node.text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise _fault(node, f"<{node.tag}> is {node.text.strip()!r}", "a finite number of metres")
    return value


def _fault(node: XmlNode, what: str, valid: str) -> DescriptionError:
    return DescriptionError(what, location=node.location, valid=valid)
