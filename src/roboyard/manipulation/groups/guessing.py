"""Groups of a robot that nobody has described: its serial chains, their tools, its grippers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from roboyard.description import Joint, Model
from roboyard.errors import InputError
from roboyard.kinematics.chain import ONE_AXIS_TYPES, build_chain
from roboyard.manipulation.groups.model import Gripper, Group, Groups, Reason

_TOOLS = ("tool0", "tcp", "tool", "tip", "gripper", "ee_link", "end_effector", "flange", "hand")
"""What people call the place of a tool, the surest name first."""
_SHORTEST = 2
"""Joints of a chain that is taken for a limb: single ones are wheels, doors or fingers."""


def guess_groups(model: Model) -> Groups:
    """Every longest serial chain of moving joints as a group.

    A chain begins at the first of the links that are fixed to each other, and ends where a link carries several moving
    joints, or none.  Its tip is the place there that is called like a tool, else its last link.  Joints at its end that
    only slide are its gripper.  Where the description says which joints are commanded, others, as those of casters, are
    no group.  Links that a joint holds together may touch.
    """
    below = _below(model)
    groups: dict[str, Group] = {}
    grippers: dict[str, Gripper] = {}
    driven = {one.joint for one in model.interfaces if one.commands} or {joint.name for joint in model.joints}
    limbs = [
        way for way in _limbs(model, below) if len(way) >= _SHORTEST and any(joint.name in driven for joint in way)
    ]
    for way in limbs:
        last = way[-1].child
        tip = _tool(below, last)
        name = "arm" if len(limbs) == 1 else tip
        fingers = _fingers(below, last)
        if fingers is not None:
            grippers[f"{name}_gripper" if len(limbs) > 1 else "gripper"] = fingers
        names = tuple(joint.name for joint in way if joint.mimic is None)
        try:
            base = _first_of_fixed(model, way[0].parent)
            chain = build_chain(model, base, tip, joints=names)
        except InputError:  # a joint beside it follows one of it: no chain
            continue
        zero = tuple(float(min(max(0.0, low), high)) for low, high in zip(chain.lower, chain.upper, strict=True))
        carried = next(reversed(grippers)) if fingers is not None else None
        groups[name] = Group(name, base, tip, names, poses={"zero": zero}, gripper=carried)
    return Groups(model, groups, grippers, allowed=neighbours(model))


def neighbours(model: Model) -> dict[tuple[str, str], Reason]:
    """Pairs of links that a joint holds together, directly or over links without shape."""
    solid = {link.name for link in model.links if link.collisions}
    above = {joint.child: joint for joint in model.joints}
    found: dict[tuple[str, str], Reason] = {}
    for name in solid:
        joint = above.get(name)
        while joint is not None and joint.parent not in solid:
            joint = above.get(joint.parent)
        if joint is not None and joint.parent in solid:
            found[pair(name, joint.parent)] = "adjacent"
    for one, other in model.disabled_collisions:
        found.setdefault(pair(one, other), "stated")
    return dict(sorted(found.items()))


def pair(one: str, other: str) -> tuple[str, str]:
    """Two links in alphabetical order."""
    return (one, other) if one < other else (other, one)


def _below(model: Model) -> dict[str, list[Joint]]:
    below: dict[str, list[Joint]] = {}
    for joint in model.joints:
        below.setdefault(joint.parent, []).append(joint)
    return below


def _next_moving(below: dict[str, list[Joint]], link: str) -> list[Joint]:
    """Moving joints that a link carries, over fixed ones too."""
    found: list[Joint] = []
    for joint in below.get(link, ()):
        found += _next_moving(below, joint.child) if joint.type == "fixed" else [joint]
    return found


def _limbs(model: Model, below: dict[str, list[Joint]]) -> Iterator[list[Joint]]:
    starts = [joint for link in (*(root.name for root in model.roots), "world") for joint in _next_moving(below, link)]
    seen: set[str] = set()
    while starts:
        joint = starts.pop(0)
        if joint.name in seen:
            continue
        way, onward = [joint], _next_moving(below, joint.child)
        while len(onward) == 1 and onward[0].type in ONE_AXIS_TYPES and way[-1].type in ONE_AXIS_TYPES:
            way.append(onward[0])
            onward = _next_moving(below, way[-1].child)
        seen |= {one.name for one in way}
        if all(one.type in ONE_AXIS_TYPES for one in way):
            yield way
        starts = onward + starts


def _first_of_fixed(model: Model, link: str) -> str:
    above = {joint.child: joint for joint in model.joints}
    while link in above and above[link].type == "fixed" and above[link].parent != "world":
        link = above[link].parent
    return link


def _tool(below: dict[str, list[Joint]], last: str) -> str:
    """The link that is called like a tool among those fixed to the last, else the last."""
    fixed, waiting = [last], [last]
    while waiting:
        for joint in below.get(waiting.pop(0), ()):
            if joint.type == "fixed":
                fixed.append(joint.child)
                waiting.append(joint.child)
    for word in _TOOLS:
        for pattern in (rf"(^|_){word}$", rf"(^|_){word}(_|\d)"):
            named = [name for name in fixed if re.search(pattern, name.lower())]
            if named:
                return named[0]
    return last


def _fingers(below: dict[str, list[Joint]], last: str) -> Gripper | None:
    onward = _next_moving(below, last)
    ends = [joint for joint in onward if not _next_moving(below, joint.child)]
    if not onward or len(ends) != len(onward) or not all(joint.type == "prismatic" for joint in onward):
        return None
    own = [joint for joint in onward if joint.mimic is None]
    limits = [joint.axes[0].limits for joint in own]
    if not own or not all(math.isfinite(limit.lower) and limit.lower < limit.upper < math.inf for limit in limits):
        return None
    width = sum(limit.upper - limit.lower for limit in limits) * len(onward) / len(own)
    return Gripper(
        "gripper",
        tuple(joint.name for joint in own),
        tuple(limit.lower for limit in limits),
        tuple(limit.upper for limit in limits),
        (0.0, width),
        tuple(joint.child for joint in onward),
        min(limit.effort for limit in limits) if all(math.isfinite(limit.effort) for limit in limits) else None,
    )
