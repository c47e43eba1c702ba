"""Reading SRDF, MoveIt's file of groups: chains, joints, links, subgroups, states, end effectors, pairs of links."""

from __future__ import annotations

from pathlib import Path

from roboyard.config.wording import did_you_mean
from roboyard.description import Joint, Model
from roboyard.description.load import load_srdf_document
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import error_at, parse_number
from roboyard.errors import InputError
from roboyard.kinematics.chain import ONE_AXIS_TYPES, JointTree
from roboyard.manipulation.groups.guessing import neighbours, pair
from roboyard.manipulation.groups.model import Gripper, Group, Groups, Reason

_REASONS: dict[str, Reason] = {"adjacent": "adjacent", "never": "never", "default": "always", "always": "always"}
_KNOWN = ("group", "group_state", "end_effector", "disable_collisions", "passive_joint", "virtual_joint")
_OPEN, _CLOSED = ("open", "opened"), ("close", "closed")


def load_srdf(path: Path, model: Model) -> Groups:
    """The groups of an SRDF that are serial chains, and the grippers that its end effectors are.

    Raises:
        DescriptionError: it cannot be read, or names what the robot has not.
    """
    return _Srdf(load_srdf_document(path), model).groups()


class _Srdf:
    def __init__(self, root: XmlNode, model: Model) -> None:
        self._root = root
        self._model = model
        self._tree = JointTree(model)
        self._above = self._tree.parent_joints()
        self._links = [link.name for link in model.links]
        self._nodes = {node.get("name"): node for node in root.children_with_tag("group")}
        self._passive = {self._joint(node, "name").name for node in root.children_with_tag("passive_joint")}
        self._findings = [
            f"{node.location}: <{node.tag}> is not used" for node in root.children if node.tag not in _KNOWN
        ]

    def groups(self) -> Groups:
        for node in self._root.children_with_tag("group_state"):
            if node.get("group") not in self._nodes:
                raise error_at(f"no group {node.get('group')!r}", node, f"groups: {', '.join(self._nodes)}")
        hands = {node.get("group"): node for node in self._root.children_with_tag("end_effector")}
        groups: dict[str, Group] = {}
        grippers: dict[str, Gripper] = {}
        for name, node in self._nodes.items():
            joints = self._joints_of(node, ())
            own = [joint for joint in joints if joint.mimic is None]
            if name in hands or not own:
                gripper = self._gripper(name, own, joints)
                if gripper is not None:
                    grippers[name] = gripper
                continue
            try:
                base, tip, free = self._chain(node, own)
            except InputError as error:
                self._findings.append(f"{node.location}: group {name!r} is no serial chain: {error.message}")
                continue
            carried = [hand for hand, node in hands.items() if node.get("parent_group") == name]
            groups[name] = Group(
                name, base, tip, free, poses=self._poses(name, free), gripper=next(iter(carried), None)
            )
        groups = {
            name: one if one.gripper in grippers else Group(name, one.base, one.tip, one.joints, poses=one.poses)
            for name, one in groups.items()
        }
        return Groups(
            self._model, groups, grippers, allowed={**neighbours(self._model), **self._allowed()},
            findings=tuple(self._findings),
        )  # fmt: skip

    def _joints_of(self, node: XmlNode, inside: tuple[str, ...]) -> list[Joint]:
        """Moving joints of a group, as its chains, joints, links and subgroups give them."""
        name = node.get("name")
        if name in inside:
            raise error_at(f"group {name!r} is part of itself", node)
        found: dict[str, Joint] = {}
        for part in node.children:
            if part.tag == "chain":
                some = self._way(part)
            elif part.tag == "joint":
                some = [self._joint(part, "name")]
            elif part.tag == "link":
                joint = self._above.get(self._link(part, "name"))
                some = [] if joint is None else [joint]
            elif part.tag == "group":
                other = self._nodes.get(part.get("name"))
                if other is None:
                    raise error_at(f"no group {part.get('name')!r}", part, f"groups: {', '.join(self._nodes)}")
                some = self._joints_of(other, (*inside, name))
            else:
                raise error_at(f"<{part.tag}> in a group", part, "chain, joint, link or group")
            found |= {
                joint.name: joint for joint in some if joint.type in ONE_AXIS_TYPES and joint.name not in self._passive
            }
        return list(found.values())

    def _way(self, node: XmlNode) -> list[Joint]:
        try:
            return self._tree.path(self._link(node, "base_link"), self._link(node, "tip_link"))
        except InputError as error:
            raise error_at(error.message, node, error.valid) from None

    def _chain(self, node: XmlNode, own: list[Joint]) -> tuple[str, str, tuple[str, ...]]:
        """Base, tip and joints, base to tip. Raises InputError where they are on no one way."""
        chains = node.children_with_tag("chain")
        depth = {joint.name: len(self._tree.path(self._root_of(joint), joint.child)) for joint in own}
        first, last = (choose(own, key=lambda joint: depth[joint.name]) for choose in (min, max))
        base = chains[0].get("base_link") if len(chains) == 1 else first.parent
        tip = chains[0].get("tip_link") if len(chains) == 1 else self._end(node, last.child)
        way = {joint.name for joint in self._tree.path(base, tip)}
        beside = [joint.name for joint in own if joint.name not in way]
        if beside:
            raise InputError(f"{', '.join(beside)} is not between {base} and {tip}")
        return base, tip, tuple(joint.name for joint in sorted(own, key=lambda joint: depth[joint.name]))

    def _root_of(self, joint: Joint) -> str:
        name = joint.parent
        while name in self._above:
            name = self._above[name].parent
        return name

    def _end(self, node: XmlNode, link: str) -> str:
        """The last link of those that are fixed one after the other and named in the group."""
        named = {part.get("name") for part in node.children_with_tag("link", "joint")}
        for joint in self._model.joints:
            if joint.parent == link and joint.type == "fixed" and {joint.name, joint.child} & named:
                return self._end(node, joint.child)
        return link

    def _poses(self, group: str, joints: tuple[str, ...]) -> dict[str, tuple[float, ...]]:
        """Named states; joints that one leaves out are at zero."""
        found = {}
        for node in self._root.children_with_tag("group_state"):
            if node.get("group") == group:
                values = self._state(node)
                found[node.get("name")] = tuple(values.get(name, 0.0) for name in joints)
        return found

    def _state(self, node: XmlNode) -> dict[str, float]:
        return {
            self._joint(part, "name").name: parse_number(part.get("value"), part, "the value of a joint")
            for part in node.children_with_tag("joint")
        }

    def _gripper(self, name: str, own: list[Joint], joints: list[Joint]) -> Gripper | None:
        """An end effector's fingers, where they have limits: open where a state says so, else at their upper ones."""
        if not own or not all(-1e3 < joint.axes[0].limits.lower < joint.axes[0].limits.upper < 1e3 for joint in own):
            return None
        names = tuple(joint.name for joint in own)
        closed = tuple(joint.axes[0].limits.lower for joint in own)
        opened = tuple(joint.axes[0].limits.upper for joint in own)
        states = self._poses(name, names)
        closed = next((values for state, values in states.items() if state.lower() in _CLOSED), closed)
        opened = next((values for state, values in states.items() if state.lower() in _OPEN), opened)
        if closed[0] == opened[0] or not all(joint.type == "prismatic" for joint in joints):
            return None
        width = sum(abs(b - a) for a, b in zip(closed, opened, strict=True)) * len(joints) / len(own)
        return Gripper(name, names, closed, opened, (0.0, width), tuple(joint.child for joint in joints))

    def _allowed(self) -> dict[tuple[str, str], Reason]:
        return {
            pair(self._link(node, "link1"), self._link(node, "link2")): _REASONS.get(
                node.get("reason").lower(), "stated"
            )
            for node in self._root.children_with_tag("disable_collisions")
        }

    def _link(self, node: XmlNode, key: str) -> str:
        name = node.get(key)
        if name not in self._links:
            raise error_at(
                f"no link {name!r}{did_you_mean(name, self._links)}", node, f"links: {', '.join(self._links)}"
            )
        return name

    def _joint(self, node: XmlNode, key: str) -> Joint:
        names = [joint.name for joint in self._model.joints]
        name = node.get(key)
        if name not in names:
            raise error_at(f"no joint {name!r}{did_you_mean(name, names)}", node, f"joints: {', '.join(names)}")
        return self._model.joint(name)
