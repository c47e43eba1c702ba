"""SRDF, MoveIt's semantic robot description: groups by chains, joints, links and subgroups, states, end effectors,
disabled collisions.
"""

from __future__ import annotations

from pathlib import Path

from roboyard.config.wording import did_you_mean
from roboyard.description import Joint, Model
from roboyard.description.load import load_srdf_document
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import error_at, parse_number
from roboyard.errors import InputError
from roboyard.kinematics.chain import ONE_AXIS_TYPES, JointTree
from roboyard.manipulation.semantics.planning_groups import (
    AllowedCollisionReason,
    GripperSpec,
    PlanningGroup,
    SemanticDescription,
    adjacent_pairs,
    sorted_pair,
)

_REASON_BY_SRDF_WORD: dict[str, AllowedCollisionReason] = {
    "adjacent": "adjacent",
    "never": "never",
    "default": "always",
    "always": "always",
}
_KNOWN_TAGS = ("group", "group_state", "end_effector", "disable_collisions", "passive_joint", "virtual_joint")
_OPEN_STATE_NAMES, _CLOSED_STATE_NAMES = ("open", "opened"), ("close", "closed")


def load_srdf(path: Path, model: Model) -> SemanticDescription:
    """Load the groups of an SRDF that are serial chains, and the grippers of its end effectors.

    Raises:
        DescriptionError: it cannot be read, or names what the robot has not.
    """
    return _SrdfReader(load_srdf_document(path), model).read()


class _SrdfReader:
    def __init__(self, root: XmlNode, model: Model) -> None:
        self._root = root
        self._model = model
        self._tree = JointTree(model)
        self._parent_joints = self._tree.parent_joints()
        self._links = [link.name for link in model.links]
        self._group_elements = {node.get("name"): node for node in root.children_with_tag("group")}
        self._passive_joints = {self._read_joint(node, "name").name for node in root.children_with_tag("passive_joint")}
        self._warnings = [
            f"{node.location}: <{node.tag}> is not used" for node in root.children if node.tag not in _KNOWN_TAGS
        ]

    def read(self) -> SemanticDescription:
        for node in self._root.children_with_tag("group_state"):
            if node.get("group") not in self._group_elements:
                raise error_at(f"no group {node.get('group')!r}", node, f"groups: {', '.join(self._group_elements)}")
        end_effectors = {node.get("group"): node for node in self._root.children_with_tag("end_effector")}
        groups: dict[str, PlanningGroup] = {}
        grippers: dict[str, GripperSpec] = {}
        for name, node in self._group_elements.items():
            joints = self._group_joints(node, ())
            independent_joints = [joint for joint in joints if joint.mimic is None]
            if name in end_effectors or not independent_joints:
                gripper = self._read_gripper(name, independent_joints, joints)
                if gripper is not None:
                    grippers[name] = gripper
                continue
            try:
                base, tip, free = self._find_chain(node, independent_joints)
            except InputError as error:
                self._warnings.append(f"{node.location}: group {name!r} is no serial chain: {error.message}")
                continue
            end_effector_names = [
                end_effector for end_effector, node in end_effectors.items() if node.get("parent_group") == name
            ]
            groups[name] = PlanningGroup(
                name, base, tip, free, poses=self._read_poses(name, free), gripper=next(iter(end_effector_names), None)
            )
        groups = {
            name: one
            if one.gripper in grippers
            else PlanningGroup(name, one.base, one.tip, one.joints, poses=one.poses)
            for name, one in groups.items()
        }
        return SemanticDescription(
            self._model,
            groups,
            grippers,
            allowed_collisions={**adjacent_pairs(self._model), **self._read_allowed_collisions()},
            warnings=tuple(self._warnings),
        )

    def _group_joints(self, node: XmlNode, parent_groups: tuple[str, ...]) -> list[Joint]:
        """Return the moving joints of a group, from its chains, joints, links and subgroups."""
        name = node.get("name")
        if name in parent_groups:
            raise error_at(f"group {name!r} is part of itself", node)
        found: dict[str, Joint] = {}
        for part in node.children:
            if part.tag == "chain":
                element_joints = self._joints_between(part)
            elif part.tag == "joint":
                element_joints = [self._read_joint(part, "name")]
            elif part.tag == "link":
                joint = self._parent_joints.get(self._read_link(part, "name"))
                element_joints = [] if joint is None else [joint]
            elif part.tag == "group":
                other = self._group_elements.get(part.get("name"))
                if other is None:
                    raise error_at(f"no group {part.get('name')!r}", part, f"groups: {', '.join(self._group_elements)}")
                element_joints = self._group_joints(other, (*parent_groups, name))
            else:
                raise error_at(f"<{part.tag}> in a group", part, "chain, joint, link or group")
            found |= {
                joint.name: joint
                for joint in element_joints
                if joint.type in ONE_AXIS_TYPES and joint.name not in self._passive_joints
            }
        return list(found.values())

    def _joints_between(self, node: XmlNode) -> list[Joint]:
        try:
            return self._tree.path(self._read_link(node, "base_link"), self._read_link(node, "tip_link"))
        except InputError as error:
            raise error_at(error.message, node, error.valid) from None

    def _find_chain(self, node: XmlNode, independent_joints: list[Joint]) -> tuple[str, str, tuple[str, ...]]:
        """Return base, tip and joints, from base to tip. Raises InputError if the joints are not on one chain."""
        chains = node.children_with_tag("chain")
        depth = {
            joint.name: len(self._tree.path(self._find_root_link(joint), joint.child)) for joint in independent_joints
        }
        first, last = (choose(independent_joints, key=lambda joint: depth[joint.name]) for choose in (min, max))
        base = chains[0].get("base_link") if len(chains) == 1 else first.parent
        tip = chains[0].get("tip_link") if len(chains) == 1 else self._last_fixed_link(node, last.child)
        chain_joint_names = {joint.name for joint in self._tree.path(base, tip)}
        off_chain_joints = [joint.name for joint in independent_joints if joint.name not in chain_joint_names]
        if off_chain_joints:
            raise InputError(f"{', '.join(off_chain_joints)} is not between {base} and {tip}")
        return base, tip, tuple(joint.name for joint in sorted(independent_joints, key=lambda joint: depth[joint.name]))

    def _find_root_link(self, joint: Joint) -> str:
        name = joint.parent
        while name in self._parent_joints:
            name = self._parent_joints[name].parent
        return name

    def _last_fixed_link(self, node: XmlNode, link: str) -> str:
        """Return the last link of those that are fixed one after the other and named in the group."""
        named = {part.get("name") for part in node.children_with_tag("link", "joint")}
        for joint in self._model.joints:
            if joint.parent == link and joint.type == "fixed" and {joint.name, joint.child} & named:
                return self._last_fixed_link(node, joint.child)
        return link

    def _read_poses(self, group: str, joints: tuple[str, ...]) -> dict[str, tuple[float, ...]]:
        """Return the named states; joints that a state omits are at zero."""
        found = {}
        for node in self._root.children_with_tag("group_state"):
            if node.get("group") == group:
                values = self._read_state(node)
                found[node.get("name")] = tuple(values.get(name, 0.0) for name in joints)
        return found

    def _read_state(self, node: XmlNode) -> dict[str, float]:
        return {
            self._read_joint(part, "name").name: parse_number(part.get("value"), part, "the value of a joint")
            for part in node.children_with_tag("joint")
        }

    def _read_gripper(self, name: str, independent_joints: list[Joint], joints: list[Joint]) -> GripperSpec | None:
        """Return the gripper of an end effector whose joints have limits; the states "open" and "close" override the
        limits.
        """
        if not independent_joints or not all(
            -1e3 < joint.axes[0].limits.lower < joint.axes[0].limits.upper < 1e3 for joint in independent_joints
        ):
            return None
        names = tuple(joint.name for joint in independent_joints)
        closed = tuple(joint.axes[0].limits.lower for joint in independent_joints)
        opened = tuple(joint.axes[0].limits.upper for joint in independent_joints)
        states = self._read_poses(name, names)
        closed = next((values for state, values in states.items() if state.lower() in _CLOSED_STATE_NAMES), closed)
        opened = next((values for state, values in states.items() if state.lower() in _OPEN_STATE_NAMES), opened)
        if closed[0] == opened[0] or not all(joint.type == "prismatic" for joint in joints):
            return None
        width = sum(abs(b - a) for a, b in zip(closed, opened, strict=True)) * len(joints) / len(independent_joints)
        return GripperSpec(name, names, closed, opened, (0.0, width), tuple(joint.child for joint in joints))

    def _read_allowed_collisions(self) -> dict[tuple[str, str], AllowedCollisionReason]:
        return {
            sorted_pair(self._read_link(node, "link1"), self._read_link(node, "link2")): _REASON_BY_SRDF_WORD.get(
                node.get("reason").lower(), "user"
            )
            for node in self._root.children_with_tag("disable_collisions")
        }

    def _read_link(self, node: XmlNode, key: str) -> str:
        name = node.get(key)
        if name not in self._links:
            raise error_at(
                f"no link {name!r}{did_you_mean(name, self._links)}", node, f"links: {', '.join(self._links)}"
            )
        return name

    def _read_joint(self, node: XmlNode, key: str) -> Joint:
        names = [joint.name for joint in self._model.joints]
        name = node.get(key)
        if name not in names:
            raise error_at(f"no joint {name!r}{did_you_mean(name, names)}", node, f"joints: {', '.join(names)}")
        return self._model.joint(name)
