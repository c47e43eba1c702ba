"""Spanning forest of SDF's joint graph; joints that close a loop are kept separately."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from roboyard.description.model import Axis, Joint
from roboyard.description.reader_context import ReaderContext
from roboyard.description.sdf.scope import WORLD
from roboyard.description.xml import XmlNode

_COUPLING_ORDER = {"screw": 1, "gearbox": 2}  # couplings between links that other joints support


def build_spanning_forest(
    context: ReaderContext, links: Iterable[str], joints: Sequence[tuple[Joint, XmlNode]]
) -> tuple[tuple[Joint, ...], tuple[Joint, ...]]:
    """Split joints into a forest, in which every link is the child of at most one joint, and the joints that close
    loops.

    A joint that would give a link a second parent without closing a loop is reversed: parent and child are swapped and
    the axis changes its sign, so that its position has the same meaning.

    Args:
        context: Receives warnings.
        links: All links, in file order.
        joints: Joints between known, different links, with their nodes.
    """
    names = [WORLD, *links]
    group = {name: name for name in names}

    def find_root(name: str) -> str:
        while group[name] != name:
            group[name] = group[group[name]]
            name = group[name]
        return name

    tree_joints: dict[str, Joint] = {}
    loop_joints: list[Joint] = []
    for joint, node in sorted(joints, key=lambda one: _COUPLING_ORDER.get(one[0].type, 0)):
        parent_root, child_root = find_root(joint.parent), find_root(joint.child)
        if parent_root == child_root:
            context.warn(node, f"joint '{joint.name}' closes a loop: a constraint, not part of the tree")
            loop_joints.append(joint)
        else:
            group[child_root] = parent_root
            tree_joints[joint.name] = joint
    joints_at_link: dict[str, list[Joint]] = {name: [] for name in names}
    for joint in tree_joints.values():
        joints_at_link[joint.parent].append(joint)
        joints_at_link[joint.child].append(joint)
    children = {joint.child for joint in tree_joints.values()}
    start_links = [name for name in names if name not in children] + names
    visited: set[str] = set()
    for start in start_links:
        if start in visited:
            continue
        visited.add(start)
        stack = [start]
        while stack:
            link = stack.pop()
            for joint in joints_at_link[link]:
                neighbor = joint.child if joint.parent == link else joint.parent
                if neighbor in visited:
                    continue
                visited.add(neighbor)
                stack.append(neighbor)
                if joint.child == link:
                    tree_joints[joint.name] = reverse_joint(joint)
    for joint, node in joints:
        tree_joint = tree_joints.get(joint.name, joint)
        if tree_joint.parent != joint.parent:
            context.warn(node, f"joint '{joint.name}' is reversed: its child '{joint.child}' has another parent")
    ordered_joints = [tree_joints[joint.name] for joint, _ in joints if joint.name in tree_joints]
    return tuple(ordered_joints), tuple(loop_joints)


def reverse_joint(joint: Joint) -> Joint:
    """Return the reversed joint; positions keep their meaning."""

    def flip_axis(axis: Axis) -> Axis:
        x, y, z = axis.xyz
        return replace(axis, xyz=(-x, -y, -z))

    return replace(
        joint,
        parent=joint.child,
        child=joint.parent,
        T_parent_child=joint.T_parent_child.inverse(),
        T_child_joint=joint.T_parent_child @ joint.T_child_joint,
        axes=tuple(flip_axis(axis) for axis in reversed(joint.axes)),
    )
