"""SDF joints may form any graph: here they become a forest, and joints that close a loop are set apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from roboyard.description.model import Axis, Joint
from roboyard.description.reading import Reading
from roboyard.description.sdf.scope import WORLD
from roboyard.description.xml import Node

_LAST = {"screw": 1, "gearbox": 2}  # couplings between links that other joints carry


def span(
    reading: Reading, links: Iterable[str], joints: Sequence[tuple[Joint, Node]]
) -> tuple[tuple[Joint, ...], tuple[Joint, ...]]:
    """Joints as a forest in which no link is the child of two, and the joints that close loops.

    A joint that would give a link a second parent without closing a loop is turned round: parent and child change
    places and the axis its sign, so that its position means the same.

    Args:
        reading: Takes findings.
        links: All links, in file order.
        joints: Joints between known, different links, with their places.
    """
    names = [WORLD, *links]
    group = {name: name for name in names}

    def top(name: str) -> str:
        while group[name] != name:
            group[name] = group[group[name]]
            name = group[name]
        return name

    kept: dict[str, Joint] = {}
    closures: list[Joint] = []
    for joint, node in sorted(joints, key=lambda one: _LAST.get(one[0].type, 0)):
        a, b = top(joint.parent), top(joint.child)
        if a == b:
            reading.note(node, f"joint '{joint.name}' closes a loop: a constraint, not part of the tree")
            closures.append(joint)
        else:
            group[b] = a
            kept[joint.name] = joint
    neighbours: dict[str, list[Joint]] = {name: [] for name in names}
    for joint in kept.values():
        neighbours[joint.parent].append(joint)
        neighbours[joint.child].append(joint)
    children = {joint.child for joint in kept.values()}
    starts = [name for name in names if name not in children] + names
    seen: set[str] = set()
    for start in starts:
        if start in seen:
            continue
        seen.add(start)
        waiting = [start]
        while waiting:
            here = waiting.pop()
            for joint in neighbours[here]:
                other = joint.child if joint.parent == here else joint.parent
                if other in seen:
                    continue
                seen.add(other)
                waiting.append(other)
                if joint.child == here:
                    kept[joint.name] = turned(joint)
    for joint, node in joints:
        now = kept.get(joint.name, joint)
        if now.parent != joint.parent:
            reading.note(node, f"joint '{joint.name}' is turned round: its child '{joint.child}' has another parent")
    order = [kept[joint.name] for joint, _ in joints if joint.name in kept]
    return tuple(order), tuple(closures)


def turned(joint: Joint) -> Joint:
    """The same joint seen from its child: positions keep their meaning."""

    def flipped(axis: Axis) -> Axis:
        x, y, z = axis.xyz
        return replace(axis, xyz=(-x, -y, -z))

    return replace(
        joint,
        parent=joint.child,
        child=joint.parent,
        T_parent_child=joint.T_parent_child.inverse(),
        T_child_joint=joint.T_parent_child @ joint.T_child_joint,
        axes=tuple(flipped(axis) for axis in reversed(joint.axes)),
    )
