"""Validation of joints and names of a description: limits, axes, joint order, mimic chains, unique names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from roboyard.description.model import AxisLimits, Joint
from roboyard.description.reader_context import ReaderContext
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import error_at, parse_unit_vector, parse_vector, quote
from roboyard.errors import similar_names
from roboyard.geometry.arrays import Vec3


def check_limits(
    context: ReaderContext, node: XmlNode, joint: str, lower: float, upper: float, velocity: float, effort: float
) -> AxisLimits:
    """Check the limits of an axis.

    Raises:
        DescriptionError: The lower limit exceeds the upper one, or a bound is negative; unless repaired.
    """
    if lower > upper or lower == math.inf or upper == -math.inf:
        problem = f"joint '{joint}' has lower limit {lower:g} above upper limit {upper:g}"
        context.repair_or_raise(node, problem, "lower ≤ upper", "the two are swapped")
        lower, upper = min(lower, upper), max(lower, upper)
        if lower == math.inf or upper == -math.inf:
            lower, upper = -math.inf, math.inf
    for quantity, value in (("velocity", velocity), ("effort", effort)):
        if value < 0.0:
            context.repair_or_raise(
                node, f"joint '{joint}' has {quantity} limit {value:g}", "0 or more", f"{-value:g} is used"
            )
    return AxisLimits(lower, upper, abs(velocity), abs(effort))


def check_axis(context: ReaderContext, text: str, node: XmlNode, joint: str, default: Vec3) -> Vec3:
    """Return the normalized direction of a joint's axis. Raises DescriptionError if its length is zero, unless
    repaired.
    """
    if max(map(abs, parse_vector(text, node, f"axis of joint '{joint}'"))) >= 1e-12:
        return parse_unit_vector(text, node, f"axis of joint '{joint}'")
    letter = "xyz"[default.index(max(default))]
    context.repair_or_raise(
        node, f"axis of joint '{joint}' is {quote(text)}", "a vector with a length", f"{letter} is used"
    )
    return default


def require_unique_names(kind: str, named_nodes: Iterable[tuple[str, XmlNode]], owner: str = "") -> dict[str, XmlNode]:
    """Return the nodes by name. Raises DescriptionError for a missing or duplicate name."""
    nodes: dict[str, XmlNode] = {}
    owner_text = f" in {owner}" if owner else ""
    for name, node in named_nodes:
        if not name.strip():
            raise error_at(f"a {kind}{owner_text} has no name", node, 'name="…"')
        if name in nodes:
            first_location = nodes[name].location
            raise error_at(
                f"{kind} '{name}'{owner_text} exists twice", node, f"unique names; the other is at {first_location}"
            )
        nodes[name] = node
    return nodes


def drop_joints_of_unknown_links(
    context: ReaderContext, links: Mapping[str, XmlNode], joints: Sequence[tuple[Joint, XmlNode]]
) -> list[tuple[Joint, XmlNode]]:
    """Return the joints, all between known and different links.

    Raises:
        DescriptionError: A joint names an unknown link, or connects a link to itself; unless repaired.
    """
    valid_joints = []
    for joint, node in joints:
        problem, expected = "", "two different links"
        if joint.parent == joint.child:
            problem = f"joint '{joint.name}' connects link '{joint.child}' to itself"
        for role, link in (("child", joint.child), ("parent", joint.parent)):
            if link not in links and not (link == "world" and role == "parent"):
                problem, expected = (
                    f"joint '{joint.name}' has the unknown {role} link '{link}'",
                    _suggest_links(link, links),
                )
        if problem:
            context.repair_or_raise(node, problem, expected, "the joint is removed")
        else:
            valid_joints.append((joint, node))
    return valid_joints


def order_joints(joints: Sequence[tuple[Joint, XmlNode]], links: Iterable[str]) -> list[Joint]:
    """Return the joints ordered from the roots to the leaves (file order among siblings).

    Raises:
        DescriptionError: A link is the child of two joints, or joints form a cycle.
    """
    parent_of: dict[str, tuple[Joint, XmlNode]] = {}
    joints_below: dict[str, list[Joint]] = {}
    for joint, node in joints:
        if joint.child in parent_of:
            other, other_node = parent_of[joint.child]
            raise error_at(
                f"link '{joint.child}' is the child of joint '{joint.name}' and of joint '{other.name}'",
                node,
                f"one parent per link; the other joint is at {other_node.location}",
            )
        parent_of[joint.child] = (joint, node)
        joints_below.setdefault(joint.parent, []).append(joint)
    order: list[Joint] = []
    pending = ["world", *(name for name in links if name not in parent_of)]
    pending.reverse()
    while pending:
        child_joints = joints_below.get(pending.pop(), [])
        order += child_joints
        pending += [joint.child for joint in reversed(child_joints)]
    if len(order) < len(parent_of):
        reached = {joint.name for joint in order}
        cyclic_joint, node = next((joint, node) for joint, node in parent_of.values() if joint.name not in reached)
        names = [cyclic_joint.child]
        while (parent := parent_of[names[-1]][0].parent) not in names:
            names.append(parent)
        loop = " → ".join([parent, *reversed(names[names.index(parent) :])])
        raise error_at(f"joint '{cyclic_joint.name}' is part of a cycle: {loop}", node, "links connected as a tree")
    return order


def _suggest_links(name: str, links: Iterable[str]) -> str:
    names = list(links)
    suggestions = similar_names(name, names) or names[:8]
    return f"links: {', '.join(suggestions)}" if suggestions else "the description has no links"


def check_mimics(context: ReaderContext, joints: Sequence[tuple[Joint, XmlNode]]) -> list[tuple[Joint, XmlNode]]:
    """Return the joints; all mimic joints among them follow a known joint, without cycles.

    Raises:
        DescriptionError: A mimic joint follows an unknown joint or itself; unless repaired.
    """
    driving_joint_of = {joint.name: joint.mimic.joint for joint, _ in joints if joint.mimic}
    joint_names = {joint.name for joint, _ in joints}
    checked = []
    for joint, node in joints:
        problem = ""
        if joint.mimic is not None and joint.mimic.joint not in joint_names:
            problem = f"joint '{joint.name}' mimics the unknown joint '{joint.mimic.joint}'"
        elif joint.mimic is not None:
            visited, current = {joint.name}, joint.mimic.joint
            while current in driving_joint_of and current not in visited:
                visited.add(current)
                current = driving_joint_of[current]
            problem = f"joint '{joint.name}' mimics itself in a cycle" if current == joint.name else ""
        if problem:
            context.repair_or_raise(node, problem, "an independent joint", "it becomes an independent joint")
            driving_joint_of.pop(joint.name, None)
            joint = replace(joint, mimic=None)
        checked.append((joint, node))
    return checked
