"""Sanitizes MJCF for MuJoCo's compiler, and expands `<include>`.

Plugins, files, textures and settings of MuJoCo itself are removed. The remaining document cannot make the compiler open
a file, load a library, or use more memory than the document's size justifies.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

from roboyard.description.reader_context import ReaderContext
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import error_at, parse_integer, quote


def expand_includes(context: ReaderContext, root: XmlNode) -> XmlNode:
    """Return the document with every include replaced by its content.

    Args:
        context: Receives warnings, finds files, enforces limits.
        root: The ``<mujoco>``.

    Raises:
        DescriptionError: A file is missing or unreadable, or files include each other in a cycle.
    """
    return _expand_node(context, root, root.file)


def _expand_node(context: ReaderContext, node: XmlNode, main_file: str) -> XmlNode:
    children: list[XmlNode] = []
    for child in node.children:
        if child.tag == "include":
            children += _read_include(context, child, main_file)
        else:
            children.append(_expand_node(context, child, main_file) if child.children else child)
    return replace(node, children=children)


def _read_include(context: ReaderContext, node: XmlNode, main_file: str) -> list[XmlNode]:
    name = node.get("file").strip()
    if not name:
        raise error_at("an <include> has no file", node, '<include file="…"/>')
    path = find_included_file(context, name, node, main_file)
    if isinstance(path, str):
        raise error_at(f"the included {quote(name, 200)}: {path}", node)
    if str(path) in context.stack or path == Path(main_file).absolute():
        raise error_at(f"files include each other in a cycle: {path}", node, "includes that end")
    with context.nested(str(path), node):
        root = context.parse_included_file(path, node, f"the included {path.name}")
        return _expand_node(context, root, main_file).children


def find_included_file(context: ReaderContext, name: str, node: XmlNode, main_file: str) -> Path | str:
    """Find the file `name` next to the file that names it, then next to the main one; or return the problem."""
    problem = ""
    for base in dict.fromkeys((node.file, main_file)):
        resolved = context.resources.resolve(name, base)
        if resolved.path is not None:
            return resolved.path
        problem = problem or resolved.problem
    return problem


MAX_REPLICATION_COST = 30_000_000
"""Maximum cost of ``<replicate>``: MuJoCo's time grows with the square of the count, and 25-fold if a sensor or motor
refers to a copy; this cost takes about eight seconds (a lidar of 720 range finders).
"""
_REFERENCE_FACTOR = 25

_COMPILED_SECTIONS = {
    "compiler", "option", "default", "asset", "worldbody", "contact", "equality", "tendon", "actuator", "sensor",
    "keyframe",
}  # fmt: skip
_UNUSED_SECTIONS = {"size", "visual", "statistic", "custom"}
_BODY_TAGS = {"inertial", "joint", "freejoint", "geom", "site", "camera", "light", "body", "frame", "replicate"}
_CHILD_TAGS: dict[str, set[str]] = {
    "worldbody": _BODY_TAGS,
    "body": _BODY_TAGS,
    "frame": _BODY_TAGS,
    "replicate": _BODY_TAGS,
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
_COMPILER_ATTRIBUTES = {
    "angle", "eulerseq", "autolimits", "inertiafromgeom", "inertiagrouprange", "settotalmass", "boundmass",
    "boundinertia", "balanceinertia", "coordinate", "alignfree", "fitaabb",
}  # fmt: skip
_OPTION_ATTRIBUTES = {"gravity", "timestep"}
_PHYSICS_FLAGS = {
    "constraint",
    "equality",
    "frictionloss",
    "limit",
    "contact",
    "spring",
    "damper",
    "clampctrl",
    "actuation",
}
_DROPPED_ATTRIBUTES = {
    "user",
    "nsample",
    "delay",
    "interp",
    "plugin",
    "octree_maxdepth",
    "texture",
    "resolution",
    "springyield",
}
_INEFFECTIVE_ATTRIBUTES: dict[str, set[str]] = {
    "option": {"density", "viscosity", "wind", "magnetic", "o_solref", "o_friction", "collision"},
    "geom": {"solref", "solimp", "solmix", "margin", "gap", "priority", "fluidshape", "surfacevel"},
    "joint": {"solreflimit", "solimplimit", "solreffriction", "solimpfriction", "margin", "springyield"},
}
_NON_FINITE = re.compile(r"(?<![\w.])[+-]?(nan|inf|infinity)(?![\w.])", re.IGNORECASE)
_GENERATOR_TAGS = {"flexcomp", "composite", "attach"}
"""Removed elements that would create bodies whose names are not in the document."""
_PLACEHOLDER_BOX = {"type": "box", "size": "0.05 0.05 0.05"}
_TEXT_ATTRIBUTES = {"name", "class", "childclass", "file", "model"}
HOME_KEYFRAME = "home"


def sanitize(context: ReaderContext, root: XmlNode) -> XmlNode:
    """Return a copy of the document, includes expanded, that is safe to compile, with warnings about removed content.

    Raises:
        DescriptionError: A number is not finite, or there are too many copies.
    """
    context.warn_unknown_children(root, _COMPILED_SECTIONS, _UNUSED_SECTIONS)
    warned: set[tuple[str, str]] = set()
    _check_replication_cost(root)
    children = [_sanitize_section(context, child, warned) for child in root.children if child.tag in _COMPILED_SECTIONS]
    if any(node.tag in _GENERATOR_TAGS for node in root.walk()):
        children = [_remove_references_to_missing_bodies(context, child, _body_names(children)) for child in children]
    return XmlNode("mujoco", {}, root.file, root.line, "", children)


def _body_names(sections: list[XmlNode]) -> set[str]:
    return {node.get("name") for one in sections for node in one.walk() if node.tag == "body"}


def _remove_references_to_missing_bodies(context: ReaderContext, section: XmlNode, bodies: set[str]) -> XmlNode:
    """Return the section without constraints and exclusions of bodies that removed elements would have created."""
    if section.tag not in ("equality", "contact"):
        return section
    remaining = []
    for child in section.children:
        missing = [name for key in ("body1", "body2") if (name := child.get(key)) and name not in {*bodies, "world"}]
        if missing:
            context.warn(child, f"a <{child.tag}> is ignored: its body {quote(missing[0])} is not created here")
        else:
            remaining.append(child)
    return replace(section, children=remaining)


def _sanitize_section(context: ReaderContext, node: XmlNode, warned: set[tuple[str, str]]) -> XmlNode:
    if node.tag == "compiler":
        return replace(_sanitize_attributes(context, node, warned, _COMPILER_ATTRIBUTES), children=[])
    if node.tag == "option":
        for flag in node.children_with_tag("flag"):
            disabled = [key for key, value in flag.attributes.items() if key in _PHYSICS_FLAGS and value == "disable"]
            if disabled:
                context.warn(flag, f"{', '.join(disabled)} cannot be switched off here")
        return replace(_sanitize_attributes(context, node, warned, _OPTION_ATTRIBUTES), children=[])
    if node.tag == "keyframe":
        home_keys = [key for key in node.children if key.get("name") == HOME_KEYFRAME]
        for key in node.children:
            if key not in home_keys:
                context.warn(
                    key,
                    f"the keyframe '{key.get('name')[:60]}' has no effect here: "
                    f"only '{HOME_KEYFRAME}' defines the initial state",
                )
        for key in home_keys:
            ignored = [name for name in ("qvel", "act", "ctrl", "mpos", "mquat", "time") if name in key.attributes]
            if ignored:
                context.warn(
                    key,
                    f"{', '.join(ignored)} of the keyframe '{HOME_KEYFRAME}' have no effect here: it starts at rest",
                )
        return replace(node, children=[_sanitize_element(context, key, warned) for key in home_keys])
    return _sanitize_element(context, node, warned)


def _sanitize_element(context: ReaderContext, node: XmlNode, warned: set[tuple[str, str]]) -> XmlNode:
    known_tags = _CHILD_TAGS.get(node.tag, set())
    children = []
    for child in node.children:
        if child.tag == "geom" and child.get("type") == "sdf":
            context.warn(child, "a <geom> with a plugin shape: a box of 0.1 m is used")
            box_attributes = {
                key: value for key, value in child.attributes.items() if key not in ("mesh", "type", "size")
            }
            children.append(
                _sanitize_attributes(
                    context, replace(child, attributes=box_attributes | _PLACEHOLDER_BOX, children=[]), warned
                )
            )
        elif child.tag == "rangefinder" and child.get("camera"):
            context.warn(child, "a <rangefinder> with a camera is ignored")
        elif child.tag in known_tags:
            children.append(_sanitize_element(context, child, warned))
        elif node.tag != "asset" or child.tag != "texture":
            context.warn(child, f"unknown element <{child.tag[:60]}> in <{node.tag}>")
    return replace(_sanitize_attributes(context, node, warned), children=children)


def _sanitize_attributes(
    context: ReaderContext, node: XmlNode, warned: set[tuple[str, str]], allowed: set[str] | None = None
) -> XmlNode:
    attributes = {}
    ineffective = _INEFFECTIVE_ATTRIBUTES.get(node.tag, set())
    for key, value in node.attributes.items():
        if key in ineffective and (node.tag, key) not in warned:
            warned.add((node.tag, key))
            context.warn(node, f"'{key}' of <{node.tag}> has no effect here")
        if key in _DROPPED_ATTRIBUTES and (node.tag, key) != ("camera", "resolution"):
            continue
        if allowed is not None and key not in allowed:
            continue
        if key in _TEXT_ATTRIBUTES or context.try_read(partial(_require_finite, node, key, value), False):
            attributes[key] = value
    return replace(node, attributes=attributes)


def _require_finite(node: XmlNode, key: str, value: str) -> bool:
    if _NON_FINITE.search(value):
        raise error_at(f"{key} of <{node.tag}> is {quote(value)}", node, "finite numbers")
    return True


def _check_replication_cost(root: XmlNode) -> None:
    """Check the total cost of ``<replicate>`` elements. Raises DescriptionError."""
    has_references = any(root.child(tag) is not None for tag in ("sensor", "actuator", "equality", "contact", "tendon"))
    cost = 0
    stack = [(root, 1)]
    while stack:
        node, copies = stack.pop()
        if node.tag == "replicate":
            copies *= max(parse_integer(node.get("count", "1"), node, "count of <replicate>"), 0)
        cost += copies * copies * (_REFERENCE_FACTOR if has_references else 1) if copies > 1 else 0
        if cost > MAX_REPLICATION_COST:
            raise error_at("<replicate> creates too many elements", node, "a few hundred copies in total")
        stack += [(child, copies) for child in node.children]
