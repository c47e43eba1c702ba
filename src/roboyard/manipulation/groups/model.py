"""Groups of joints and what is known about them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from roboyard.config.wording import did_you_mean
from roboyard.description import Model
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE3
from roboyard.kinematics.chain import Chain, build_chain

Reason = Literal["adjacent", "never", "always", "stated"]
"""Why two links need not be looked at: joined by a joint, never near each other, always touching, somebody says so."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A named frame on a link that a group carries."""

    link: str
    T_link_tool: SE3 = field(default_factory=SE3.identity)


@dataclass(frozen=True, slots=True)
class Group:
    """Joints that move a tool.

    Attributes:
        base: Link in whose frame poses are.
        tip: Link or frame that is its tool unless another is named.
        joints: Free joints, base to tip.
        axis: The direction in which its tools approach, in their own frames.
        tools: Further tools by name.
        poses: Named positions of ``joints`` [rad or m].
        gripper: Name of the one it carries.
        start: The pose that joints begin in whose description says nothing; None: as the description has it.
    """

    name: str
    base: str
    tip: str
    joints: tuple[str, ...]
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    tools: Mapping[str, Tool] = field(default_factory=dict)
    poses: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    gripper: str | None = None
    start: str | None = None

    def pose(self, name: str) -> NDArray[np.float64]:
        """Named positions (n,). Raises UnknownNameError."""
        if name not in self.poses:
            raise unknown("pose", name, self.poses, f"group {self.name}")
        return np.array(self.poses[name])


@dataclass(frozen=True, slots=True)
class Gripper:
    """Fingers and how far they open.

    Attributes:
        joints: That are commanded; mimic joints follow.
        closed: Their positions with the fingers together [rad or m].
        open: Their positions when it is open.
        width: Between the fingers, closed and open [m].
        links: Links that may touch what is held.
        force: Greatest, between the fingers [N]; None where nobody knows.
    """

    name: str
    joints: tuple[str, ...]
    closed: tuple[float, ...]
    open: tuple[float, ...]
    width: tuple[float, float]
    links: tuple[str, ...] = ()
    force: float | None = None

    def positions(self, width: float) -> NDArray[np.float64]:
        """Joints for a width between the fingers [m], in proportion. Raises InputError."""
        low, high = self.width
        if not low - 1e-9 <= width <= high + 1e-9:
            raise InputError(
                f"an opening of {width:g} m", location=f"gripper {self.name}", valid=f"{low:g} to {high:g} m"
            )
        share = (width - low) / (high - low)
        closed: NDArray[np.float64] = np.array(self.closed)
        return closed + share * (np.array(self.open) - closed)

    def opening(self, positions: Mapping[str, float]) -> float:
        """Width between the fingers [m] with its joints at these positions; its first joint tells."""
        share = (positions[self.joints[0]] - self.closed[0]) / (self.open[0] - self.closed[0])
        return self.width[0] + share * (self.width[1] - self.width[0])


@dataclass(frozen=True)
class Groups:
    """All groups of a robot.

    Attributes:
        model: The robot.
        groups: By name.
        grippers: By name.
        acceleration: Greatest of joints [rad/s² or m/s²], where stated.
        jerk: Greatest of joints [rad/s³ or m/s³], where stated.
        gains: Of joints' servos, as ros2_control names them, where stated.
        allowed: Pairs of links, in alphabetical order, that need not be looked at, and why.
        findings: What was not understood.
    """

    model: Model = field(repr=False)
    groups: Mapping[str, Group]
    grippers: Mapping[str, Gripper] = field(default_factory=dict)
    acceleration: Mapping[str, float] = field(default_factory=dict)
    jerk: Mapping[str, float] = field(default_factory=dict)
    gains: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    allowed: Mapping[tuple[str, str], Reason] = field(default_factory=dict)
    findings: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """The link that everything hangs on; where a joint fixes the robot to the world, the one below it."""
        above = {joint.child: joint.parent for joint in self.model.joints}
        links = (link.name for link in self.model.links)
        return next(name for name in links if above.get(name, "world") == "world" and name != "world")

    def group(self, name: str | None = None) -> Group:
        """A group by name, or the first. Raises UnknownNameError; InputError where there is none at all."""
        if name is None and self.groups:
            return next(iter(self.groups.values()))
        if name is None:
            raise InputError("no group of joints", location=self.model.name, valid="a robot with an arm")
        if name not in self.groups:
            raise unknown("group", name, self.groups, self.model.name)
        return self.groups[name]

    def gripper(self, name: str | None = None) -> Gripper:
        """A gripper by name, or the first. Raises UnknownNameError; InputError where there is none at all."""
        if name is None and self.grippers:
            return next(iter(self.grippers.values()))
        if name is None:
            raise InputError("no gripper", location=self.model.name, valid="a robot with fingers")
        if name not in self.grippers:
            raise unknown("gripper", name, self.grippers, self.model.name)
        return self.grippers[name]

    def chain(
        self, group: str | None = None, tool: str | None = None, held: Mapping[str, float] | None = None
    ) -> Chain:
        """The chain of a group, to its tip or another tool, with the limits of acceleration and jerk that are stated.

        Args:
            group: Its name, or the first.
            tool: Name of a tool of the group, or of any link or frame below its base.
            held: Positions of joints that are not its own, see `build_chain`.

        Raises:
            UnknownNameError: there is no such group, tool or link.
            InputError: as `build_chain`.
        """
        asked = self.group(group)
        known = asked.tools.get(tool) if tool is not None else None
        tip = known.link if known is not None else tool if tool is not None else asked.tip
        try:
            chain = build_chain(self.model, asked.base, tip, joints=asked.joints, fixed_positions=held)
        except UnknownNameError as error:
            if tool is None or known is not None:
                raise
            raise UnknownNameError(
                f"no tool {tool!r}{did_you_mean(tool, asked.tools)}",
                location=f"group {asked.name} of {self.model.name}",
                valid=f"tools: {', '.join(asked.tools) or 'none'}; or {error.valid}",
            ) from None
        if chain.joints != asked.joints:
            raise InputError(
                f"{tip!r} is not carried by all joints of the group",
                location=f"group {asked.name}",
                valid=", ".join(asked.joints),
            )
        if known is not None and tool is not None:
            chain = chain.with_tool(known.T_link_tool, tool)
        return chain.with_acceleration_limits(
            [self.acceleration.get(name, math.inf) for name in asked.joints],
            [self.jerk.get(name, math.inf) for name in asked.joints],
        )


def unknown(kind: str, name: str, known: Iterable[str], where: str) -> UnknownNameError:
    """The error for a name that does not exist, with those that do."""
    names = list(known)
    return UnknownNameError(
        f"no {kind} {name!r}{did_you_mean(name, names)}", location=where, valid=f"{kind}s: {', '.join(names) or 'none'}"
    )
