"""Planning groups, grippers and allowed collisions of a robot, and how to guess them from its description."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from roboyard.config.wording import did_you_mean
from roboyard.description import Joint, Model
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE3
from roboyard.kinematics.chain import ONE_AXIS_TYPES, Chain, build_chain

AllowedCollisionReason = Literal["adjacent", "never", "always", "user"]
"""Why a pair of links is not checked for collisions: adjacent, never in contact, always in contact, or permitted by the
user.
"""


@dataclass(frozen=True, slots=True)
class ToolFrame:
    """A named frame on a link of a planning group."""

    link: str
    T_link_tool: SE3 = field(default_factory=SE3.identity)


@dataclass(frozen=True, slots=True)
class PlanningGroup:
    """Joints that move a tool together (MoveIt's planning group).

    Attributes:
        base: Link in whose frame poses are given.
        tip: Link or frame that is the tool, unless another one is named.
        joints: Free joints, from base to tip.
        tool_axis: Direction in which tools approach an object, in their own frames.
        tools: Further tool frames by name.
        poses: Named positions of ``joints`` [rad or m].
        gripper: Name of the gripper that the group carries.
        default_pose: Name of the pose in which joints start if the description states no position; None: as the
            description states.
    """

    name: str
    base: str
    tip: str
    joints: tuple[str, ...]
    tool_axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    tools: Mapping[str, ToolFrame] = field(default_factory=dict)
    poses: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    gripper: str | None = None
    default_pose: str | None = None

    def pose(self, name: str) -> NDArray[np.float64]:
        """Return the joint positions (n,) of a named pose. Raises UnknownNameError."""
        if name not in self.poses:
            raise unknown_name_error("pose", name, self.poses, f"group {self.name}")
        return np.array(self.poses[name])


@dataclass(frozen=True, slots=True)
class GripperSpec:
    """A gripper: its joints and its opening range.

    Attributes:
        joints: Commanded joints; mimic joints follow them.
        closed: Positions of the joints with the fingers together [rad or m].
        open: Positions of the joints with the gripper open.
        opening_range: Distance between the fingers, closed and open [m].
        links: Links that may touch the grasped object.
        force: Maximum force between the fingers [N]; None if it is unknown.
    """

    name: str
    joints: tuple[str, ...]
    closed: tuple[float, ...]
    open: tuple[float, ...]
    opening_range: tuple[float, float]
    links: tuple[str, ...] = ()
    force: float | None = None

    def joint_positions(self, opening: float) -> NDArray[np.float64]:
        """Return the joint positions for a distance between the fingers [m], by linear interpolation. Raises
        InputError.
        """
        low, high = self.opening_range
        if not low - 1e-9 <= opening <= high + 1e-9:
            raise InputError(
                f"an opening of {opening:g} m", location=f"gripper {self.name}", valid=f"{low:g} to {high:g} m"
            )
        fraction = (opening - low) / (high - low)
        closed: NDArray[np.float64] = np.array(self.closed)
        return closed + fraction * (np.array(self.open) - closed)

    def opening(self, positions: Mapping[str, float]) -> float:
        """Return the distance between the fingers [m], from the position of the first joint."""
        fraction = (positions[self.joints[0]] - self.closed[0]) / (self.open[0] - self.closed[0])
        return self.opening_range[0] + fraction * (self.opening_range[1] - self.opening_range[0])


@dataclass(frozen=True)
class SemanticDescription:
    """Semantic description of a robot: what its URDF or SDF does not state (as an SRDF).

    Attributes:
        model: The robot.
        groups: Planning groups by name.
        grippers: Grippers by name.
        max_acceleration: Maximum accelerations of joints [rad/s² or m/s²], where stated.
        max_jerk: Maximum jerks of joints [rad/s³ or m/s³], where stated.
        gains: Servo gains of joints with the names of ros2_control, where stated.
        allowed_collisions: Pairs of links, in alphabetical order, that are not checked for collisions, and the reason.
        warnings: Elements of the file that were not understood.
    """

    model: Model = field(repr=False)
    groups: Mapping[str, PlanningGroup]
    grippers: Mapping[str, GripperSpec] = field(default_factory=dict)
    max_acceleration: Mapping[str, float] = field(default_factory=dict)
    max_jerk: Mapping[str, float] = field(default_factory=dict)
    gains: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    allowed_collisions: Mapping[tuple[str, str], AllowedCollisionReason] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def root_link(self) -> str:
        """The root link; if a joint fixes the robot to the world, the link below it."""
        parent_links = {joint.child: joint.parent for joint in self.model.joints}
        links = (link.name for link in self.model.links)
        return next(name for name in links if parent_links.get(name, "world") == "world" and name != "world")

    def group(self, name: str | None = None) -> PlanningGroup:
        """Return a group by name, or the first. Raises UnknownNameError; InputError if there are no groups."""
        if name is None and self.groups:
            return next(iter(self.groups.values()))
        if name is None:
            raise InputError("no group of joints", location=self.model.name, valid="a robot with an arm")
        if name not in self.groups:
            raise unknown_name_error("group", name, self.groups, self.model.name)
        return self.groups[name]

    def gripper(self, name: str | None = None) -> GripperSpec:
        """Return a gripper by name, or the first. Raises UnknownNameError; InputError if there are no grippers."""
        if name is None and self.grippers:
            return next(iter(self.grippers.values()))
        if name is None:
            raise InputError("no gripper", location=self.model.name, valid="a robot with fingers")
        if name not in self.grippers:
            raise unknown_name_error("gripper", name, self.grippers, self.model.name)
        return self.grippers[name]

    def chain(
        self, group: str | None = None, tool: str | None = None, fixed_positions: Mapping[str, float] | None = None
    ) -> Chain:
        """Return the kinematic chain of a group to its tip or another tool, with the stated acceleration and jerk
        limits.

        Args:
            group: Name of the group; None: the first.
            tool: Name of a tool of the group, or of any link or frame below its base.
            fixed_positions: Positions of joints outside the group, see `build_chain`.

        Raises:
            UnknownNameError: there is no such group, tool or link.
            InputError: as `build_chain`.
        """
        planning_group = self.group(group)
        tool_frame = planning_group.tools.get(tool) if tool is not None else None
        tip = tool_frame.link if tool_frame is not None else tool if tool is not None else planning_group.tip
        try:
            chain = build_chain(
                self.model, planning_group.base, tip, joints=planning_group.joints, fixed_positions=fixed_positions
            )
        except UnknownNameError as error:
            if tool is None or tool_frame is not None:
                raise
            raise UnknownNameError(
                f"no tool {tool!r}{did_you_mean(tool, planning_group.tools)}",
                location=f"group {planning_group.name} of {self.model.name}",
                valid=f"tools: {', '.join(planning_group.tools) or 'none'}; or {error.valid}",
            ) from None
        if chain.joints != planning_group.joints:
            raise InputError(
                f"{tip!r} is not carried by all joints of the group",
                location=f"group {planning_group.name}",
                valid=", ".join(planning_group.joints),
            )
        if tool_frame is not None and tool is not None:
            chain = chain.with_tool(tool_frame.T_link_tool, tool)
        return chain.with_acceleration_limits(
            [self.max_acceleration.get(name, math.inf) for name in planning_group.joints],
            [self.max_jerk.get(name, math.inf) for name in planning_group.joints],
        )


def unknown_name_error(kind: str, name: str, known_names: Iterable[str], location: str) -> UnknownNameError:
    """Return the error for an unknown name; it lists the known ones."""
    names = list(known_names)
    return UnknownNameError(
        f"no {kind} {name!r}{did_you_mean(name, names)}",
        location=location,
        valid=f"{kind}s: {', '.join(names) or 'none'}",
    )


_TOOL_LINK_WORDS = ("tool0", "tcp", "tool", "tip", "gripper", "ee_link", "end_effector", "flange", "hand")
"""Words in the names of tool links, most reliable first."""
_MIN_JOINTS = 2
"""Minimum number of joints of a group: single joints are wheels, doors or fingers."""


def guess_groups(model: Model) -> SemanticDescription:
    """Derive a planning group from every longest serial chain of moving joints.

    A chain starts at the first of the links that are fixed to each other, and ends where a link has several moving
    child joints, or none. Its tip is the fixed link there whose name means a tool, else its last link. Sliding joints
    at its end are its gripper. If the description states which joints are commanded, chains without such joints (as
    those of casters) are no groups. Links that a joint connects may touch.
    """
    child_joints = _find_child_joints(model)
    groups: dict[str, PlanningGroup] = {}
    grippers: dict[str, GripperSpec] = {}
    commanded_joints = {one.joint for one in model.interfaces if one.commands} or {joint.name for joint in model.joints}
    chains = [
        chain_joints
        for chain_joints in _find_serial_chains(model, child_joints)
        if len(chain_joints) >= _MIN_JOINTS and any(joint.name in commanded_joints for joint in chain_joints)
    ]
    for chain_joints in chains:
        last_link = chain_joints[-1].child
        tip = _find_tool_link(child_joints, last_link)
        name = "arm" if len(chains) == 1 else tip
        gripper = _guess_gripper(child_joints, last_link)
        if gripper is not None:
            grippers[f"{name}_gripper" if len(chains) > 1 else "gripper"] = gripper
        names = tuple(joint.name for joint in chain_joints if joint.mimic is None)
        try:
            base = _first_rigid_link(model, chain_joints[0].parent)
            chain = build_chain(model, base, tip, joints=names)
        except InputError:  # a joint outside it mimics one of it: no chain
            continue
        zero = tuple(float(min(max(0.0, low), high)) for low, high in zip(chain.lower, chain.upper, strict=True))
        gripper_name = next(reversed(grippers)) if gripper is not None else None
        groups[name] = PlanningGroup(name, base, tip, names, poses={"zero": zero}, gripper=gripper_name)
    return SemanticDescription(model, groups, grippers, allowed_collisions=adjacent_pairs(model))


def adjacent_pairs(model: Model) -> dict[tuple[str, str], AllowedCollisionReason]:
    """Return the pairs of links that a joint connects, directly or over links without collision shapes."""
    shaped_links = {link.name for link in model.links if link.collisions}
    parent_joints = {joint.child: joint for joint in model.joints}
    found: dict[tuple[str, str], AllowedCollisionReason] = {}
    for name in shaped_links:
        joint = parent_joints.get(name)
        while joint is not None and joint.parent not in shaped_links:
            joint = parent_joints.get(joint.parent)
        if joint is not None and joint.parent in shaped_links:
            found[sorted_pair(name, joint.parent)] = "adjacent"
    for one, other in model.disabled_collisions:
        found.setdefault(sorted_pair(one, other), "user")
    return dict(sorted(found.items()))


def sorted_pair(one: str, other: str) -> tuple[str, str]:
    """Return two link names in alphabetical order."""
    return (one, other) if one < other else (other, one)


def _find_child_joints(model: Model) -> dict[str, list[Joint]]:
    child_joints: dict[str, list[Joint]] = {}
    for joint in model.joints:
        child_joints.setdefault(joint.parent, []).append(joint)
    return child_joints


def _next_moving_joints(child_joints: dict[str, list[Joint]], link: str) -> list[Joint]:
    """Return the moving joints below a link, also across fixed joints."""
    found: list[Joint] = []
    for joint in child_joints.get(link, ()):
        found += _next_moving_joints(child_joints, joint.child) if joint.type == "fixed" else [joint]
    return found


def _find_serial_chains(model: Model, child_joints: dict[str, list[Joint]]) -> Iterator[list[Joint]]:
    starts = [
        joint
        for link in (*(root.name for root in model.roots), "world")
        for joint in _next_moving_joints(child_joints, link)
    ]
    visited: set[str] = set()
    while starts:
        joint = starts.pop(0)
        if joint.name in visited:
            continue
        chain_joints, next_joints = [joint], _next_moving_joints(child_joints, joint.child)
        while (
            len(next_joints) == 1 and next_joints[0].type in ONE_AXIS_TYPES and chain_joints[-1].type in ONE_AXIS_TYPES
        ):
            chain_joints.append(next_joints[0])
            next_joints = _next_moving_joints(child_joints, chain_joints[-1].child)
        visited |= {one.name for one in chain_joints}
        if all(one.type in ONE_AXIS_TYPES for one in chain_joints):
            yield chain_joints
        starts = next_joints + starts


def _first_rigid_link(model: Model, link: str) -> str:
    parent_joints = {joint.child: joint for joint in model.joints}
    while link in parent_joints and parent_joints[link].type == "fixed" and parent_joints[link].parent != "world":
        link = parent_joints[link].parent
    return link


def _find_tool_link(child_joints: dict[str, list[Joint]], last_link: str) -> str:
    """Return the link with the name of a tool among those fixed to the last link, else the last link."""
    fixed, open_links = [last_link], [last_link]
    while open_links:
        for joint in child_joints.get(open_links.pop(0), ()):
            if joint.type == "fixed":
                fixed.append(joint.child)
                open_links.append(joint.child)
    for word in _TOOL_LINK_WORDS:
        for pattern in (rf"(^|_){word}$", rf"(^|_){word}(_|\d)"):
            named = [name for name in fixed if re.search(pattern, name.lower())]
            if named:
                return named[0]
    return last_link


def _guess_gripper(child_joints: dict[str, list[Joint]], last_link: str) -> GripperSpec | None:
    next_joints = _next_moving_joints(child_joints, last_link)
    ends = [joint for joint in next_joints if not _next_moving_joints(child_joints, joint.child)]
    if not next_joints or len(ends) != len(next_joints) or not all(joint.type == "prismatic" for joint in next_joints):
        return None
    commanded_joints = [joint for joint in next_joints if joint.mimic is None]
    limits = [joint.axes[0].limits for joint in commanded_joints]
    if not commanded_joints or not all(
        math.isfinite(limit.lower) and limit.lower < limit.upper < math.inf for limit in limits
    ):
        return None
    width = sum(limit.upper - limit.lower for limit in limits) * len(next_joints) / len(commanded_joints)
    return GripperSpec(
        "gripper",
        tuple(joint.name for joint in commanded_joints),
        tuple(limit.lower for limit in limits),
        tuple(limit.upper for limit in limits),
        (0.0, width),
        tuple(joint.child for joint in next_joints),
        min(limit.effort for limit in limits) if all(math.isfinite(limit.effort) for limit in limits) else None,
    )
