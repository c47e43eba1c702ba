"""What of a document is handed to MuJoCo's compiler: geometry, mass and motion; nothing that reaches out or swells.

Plugins, files, textures and everything that only steers MuJoCo itself stay behind.  What is left cannot make
the compiler open a file, load a library, or take memory beyond what the document's own size justifies.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from roboyard.description.reading import Reading
from roboyard.description.values import fault, integer, shown
from roboyard.description.xml import Node

MAX_COPYING = 30_000_000
"""What ``<replicate>`` may cost: MuJoCo's time grows with the square of the count, and 25-fold where a sensor or motor
refers to what is copied; so much takes it about eight seconds (a lidar of 720 range finders)."""
_REFERRED = 25

_KEPT = {
    "compiler", "option", "default", "asset", "worldbody", "contact", "equality", "tendon", "actuator", "sensor",
    "keyframe",
}  # fmt: skip
_UNUSED = {"size", "visual", "statistic", "custom"}
_BODY = {"inertial", "joint", "freejoint", "geom", "site", "camera", "light", "body", "frame", "replicate"}
_PARTS: dict[str, set[str]] = {
    "worldbody": _BODY,
    "body": _BODY,
    "frame": _BODY,
    "replicate": _BODY,
    "asset": {"mesh", "hfield", "material"},
    "contact": {"pair", "exclude"},
    "equality": {"connect", "weld", "joint", "tendon"},
    "tendon": {"spatial", "fixed"},
    "spatial": {"site", "geom", "pulley"},
    "fixed": {"joint"},
    "actuator": {
        "motor", "position", "velocity", "intvelocity", "damper", "general", "cylinder", "muscle", "adhesion",
    },
    "default": {
        "default", "mesh", "material", "joint", "geom", "site", "camera", "light", "pair", "equality", "tendon",
        "general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder", "muscle", "adhesion",
    },
    "sensor": {
        "touch", "accelerometer", "velocimeter", "gyro", "force", "torque", "magnetometer", "rangefinder", "jointpos",
        "jointvel", "tendonpos", "tendonvel", "actuatorpos", "actuatorvel", "actuatorfrc", "jointactuatorfrc",
        "ballquat", "ballangvel", "framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "framelinvel",
        "frameangvel", "framelinacc", "frameangacc", "subtreecom", "subtreelinvel", "subtreeangmom", "clock",
    },
    "keyframe": {"key"},
}  # fmt: skip
_COMPILER = {
    "angle", "eulerseq", "autolimits", "inertiafromgeom", "inertiagrouprange", "settotalmass", "boundmass",
    "boundinertia", "balanceinertia", "coordinate", "alignfree", "fitaabb",
}  # fmt: skip
_OPTION = {"gravity", "timestep"}
_FLAGS = {"constraint", "equality", "frictionloss", "limit", "contact", "spring", "damper", "clampctrl", "actuation"}
_DROPPED = {"user", "nsample", "delay", "interp", "plugin", "octree_maxdepth", "texture", "resolution", "springyield"}
_NO_EFFECT: dict[str, set[str]] = {
    "option": {"density", "viscosity", "wind", "magnetic", "o_solref", "o_friction", "collision"},
    "geom": {"solref", "solimp", "solmix", "margin", "gap", "priority", "fluidshape", "surfacevel"},
    "joint": {"solreflimit", "solimplimit", "solreffriction", "solimpfriction", "margin", "springyield"},
}
_WILD = re.compile(r"(?<![\w.])[+-]?(nan|inf|infinity)(?![\w.])", re.IGNORECASE)
_MAKERS = {"flexcomp", "composite", "attach"}
"""Elements that are left out, and would make bodies whose names do not stand in the document."""
_BOX = {"type": "box", "size": "0.05 0.05 0.05"}
_TEXTS = {"name", "class", "childclass", "file", "model"}
HOME = "home"


def cleaned(reading: Reading, root: Node) -> Node:
    """A copy of the document, includes expanded, that may be compiled; what stays behind is noted.

    Raises:
        DescriptionError: numbers that are not finite, too many copies.
    """
    reading.unknown(root, _KEPT, _UNUSED)
    noted: set[tuple[str, str]] = set()
    _count_copies(root)
    children = [_section(reading, child, noted) for child in root.children if child.tag in _KEPT]
    if any(node.tag in _MAKERS for node in root.walk()):
        children = [_without_missing(reading, child, _bodies(children)) for child in children]
    return Node("mujoco", {}, root.file, root.line, "", children)


def _bodies(sections: list[Node]) -> set[str]:
    return {node.get("name") for one in sections for node in one.walk() if node.tag == "body"}


def _without_missing(reading: Reading, section: Node, bodies: set[str]) -> Node:
    """The section without constraints and exclusions of bodies that what was left out would have made."""
    if section.tag not in ("equality", "contact"):
        return section
    kept = []
    for child in section.children:
        gone = [name for key in ("body1", "body2") if (name := child.get(key)) and name not in {*bodies, "world"}]
        if gone:
            reading.note(child, f"a <{child.tag}> is left out: its body {shown(gone[0])} is not made here")
        else:
            kept.append(child)
    return replace(section, children=kept)


def _section(reading: Reading, node: Node, noted: set[tuple[str, str]]) -> Node:
    if node.tag == "compiler":
        return replace(_plain(reading, node, noted, _COMPILER), children=[])
    if node.tag == "option":
        for flag in node.all("flag"):
            off = [key for key, value in flag.attributes.items() if key in _FLAGS and value == "disable"]
            if off:
                reading.note(flag, f"{', '.join(off)} cannot be switched off here")
        return replace(_plain(reading, node, noted, _OPTION), children=[])
    if node.tag == "keyframe":
        kept = [key for key in node.children if key.get("name") == HOME]
        for key in node.children:
            if key not in kept:
                reading.note(
                    key, f"the keyframe '{key.get('name')[:60]}' has no effect here: only '{HOME}' is where it starts"
                )
        for key in kept:
            lost = [name for name in ("qvel", "act", "ctrl", "mpos", "mquat", "time") if name in key.attributes]
            if lost:
                reading.note(key, f"{', '.join(lost)} of the keyframe '{HOME}' have no effect here: it starts at rest")
        return replace(node, children=[_part(reading, key, noted) for key in kept])
    return _part(reading, node, noted)


def _part(reading: Reading, node: Node, noted: set[tuple[str, str]]) -> Node:
    known = _PARTS.get(node.tag, set())
    children = []
    for child in node.children:
        if child.tag == "geom" and child.get("type") == "sdf":
            reading.note(child, "a <geom> whose shape a plugin makes: a box of 0.1 m stands for it")
            stand_in = {key: value for key, value in child.attributes.items() if key not in ("mesh", "type", "size")}
            children.append(_plain(reading, replace(child, attributes=stand_in | _BOX, children=[]), noted))
        elif child.tag == "rangefinder" and child.get("camera"):
            reading.note(child, "a <rangefinder> that sees with a camera is left out")
        elif child.tag in known:
            children.append(_part(reading, child, noted))
        elif node.tag != "asset" or child.tag != "texture":
            reading.note(child, f"<{child.tag[:60]}> in <{node.tag}> is not understood")
    return replace(_plain(reading, node, noted), children=children)


def _plain(reading: Reading, node: Node, noted: set[tuple[str, str]], only: set[str] | None = None) -> Node:
    attributes = {}
    silent = _NO_EFFECT.get(node.tag, set())
    for key, value in node.attributes.items():
        if key in silent and (node.tag, key) not in noted:
            noted.add((node.tag, key))
            reading.note(node, f"'{key}' of <{node.tag}> has no effect here")
        if key in _DROPPED and (node.tag, key) != ("camera", "resolution"):
            continue
        if only is not None and key not in only:
            continue
        if key in _TEXTS or reading.attempt(partial(_finite, node, key, value), False):
            attributes[key] = value
    return replace(node, attributes=attributes)


def _finite(node: Node, key: str, value: str) -> bool:
    if _WILD.search(value):
        raise fault(f"{key} of <{node.tag}> is {shown(value)}", node, "finite numbers")
    return True


def _count_copies(root: Node) -> None:
    """Refuse a document whose ``<replicate>`` elements would make too much. Raises DescriptionError."""
    refers = any(root.child(tag) is not None for tag in ("sensor", "actuator", "equality", "contact", "tendon"))
    cost = 0
    waiting = [(root, 1)]
    while waiting:
        node, copies = waiting.pop()
        if node.tag == "replicate":
            copies *= max(integer(node.get("count", "1"), node, "count of <replicate>"), 0)
        cost += copies * copies * (_REFERRED if refers else 1) if copies > 1 else 0
        if cost > MAX_COPYING:
            raise fault("<replicate> makes too much", node, "a few hundred copies in all")
        waiting += [(child, copies) for child in node.children]
