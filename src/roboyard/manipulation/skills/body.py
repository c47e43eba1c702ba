"""What skills know of the arm: its named poses, and how its first joint turns things into its plane."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.geometry.constants import GRAVITY
from roboyard.kinematics.chain import Chain
from roboyard.kinematics.ik import solve_ik, solve_ik_batch
from roboyard.manipulation.groups import Groups
from roboyard.manipulation.scene import PlanningScene
from roboyard.manipulation.skills.asking import Point, Tip

_STEP, _JUMP = 0.01, 0.3
"""A line's joints are looked for so far from each other [m], and change by no more between them [rad]."""
_TURN: Final = 0.7
"""A joint that changes by more between two places of a ride turned about [rad]."""


@dataclass(frozen=True, eq=False)
class Body:
    """An arm whose first joint turns the plane in which the others move.

    Attributes:
        chain: From its base to the tool.
        T_root_base: The chain's base in the frame of the robot's root link.
        poses: Named joints.
        bays: Floors of bays that the robot carries.
    """

    chain: Chain
    T_root_base: SE3
    poses: Mapping[str, tuple[float, ...]]
    bays: tuple[Point, ...] = ()

    @classmethod
    def of(cls, groups: Groups, group: str | None = None, bays: Sequence[str] = ()) -> Body:
        """Of a robot's group, or its first, and links in its bays.

        Raises:
            UnknownNameError: there is no such group or link.
        """
        scene = PlanningScene.of(groups, group)
        T_model_root = groups.model.link(groups.root).T_model_link
        T_root_base, chain = T_model_root.inverse() @ scene.T_world_base, scene.chain
        rest = np.clip(np.zeros(chain.dof), chain.lower, chain.upper)
        floors = [(T_root_base @ scene.link_pose(name, rest)[:3, 3]).tolist() for name in bays]
        return cls(chain, T_root_base, scene.group.poses, tuple((x, y, z) for x, y, z in floors))

    def bay(self, number: int) -> Point:
        """Floor of a bay, from 1 on."""
        return self.bays[number - 1]

    def turn_to(self, q: ArrayLike, point: Point) -> float:
        """How far the first joint has to turn from ``q`` (n,) so that a point lies in the arm's plane [rad].

        The plane holds the first joint's axis, and the second one's is its normal; the nearer half of it counts, so
        that the turn is at most a quarter.
        """
        first, second = self.chain.frames(q)[1:3]
        offset = (self.T_root_base.inverse() @ np.array(point)) - first[:3, 3]
        normal = second[:3, 2]
        along = np.cross(first[:3, 2], normal)
        across, ahead = float(normal @ offset), float(along @ offset)
        return math.atan(-across / ahead) if abs(ahead) > 1e-9 else math.copysign(math.pi / 2.0, -across)

    def along(self, tips: Sequence[Tip], near: ArrayLike | None = None) -> tuple[float, ...] | None:
        """Joints (n,) at the first of some places from which the tool gets to the others, in turn, without a jump.

        Args:
            tips: Places so close to each other that no joint changes by more than `_TURN` between them.
            near: Joints to which they shall be near.

        Returns:
            None: there are none.
        """
        poses = [self.T_root_base.inverse() @ SE3.from_xyz_rpy(one.position, (math.pi, 0.0, one.yaw)) for one in tips]
        for first in solve_ik(self.chain, poses[0], near).solutions:
            at = first
            for pose in poses[1:]:
                found = solve_ik(self.chain, pose, at)
                if not found.is_solved or float(np.abs(found.best - at).max()) > _TURN:
                    break
                at = found.best
            else:
                return tuple(first.tolist())
        return None

    def tip(self, q: ArrayLike) -> Point:
        """Where the tool's tip is with joints (n,)."""
        x, y, z = (self.T_root_base @ self.chain.forward(q)[:3, 3]).tolist()
        return x, y, z

    def yaw(self, q: ArrayLike) -> float:
        """Direction of the tool's x axis about the vertical [rad]."""
        x, y, _ = (self.T_root_base.rotation_matrix() @ self.chain.forward(q)[:3, 0]).tolist()
        return math.atan2(y, x)

    def over(self, low: Point, height: float, yaws: Sequence[float], near: ArrayLike = ()) -> list[tuple[float, ...]]:
        """Joints (n,) with which the tool points down over a place and from which it goes straight down to it.

        Of the ways in which an arm reaches a place, some end on the way down, where its elbow comes to a limit.

        Args:
            low: Where the line ends.
            height: Of its beginning over that [m].
            yaws: Of the tool's x axis about the vertical; what they give comes in their order.
            near: (n,) joints that whole turns shall be near to; none: the middles of their ranges.
        """
        count = max(2, math.ceil(height / _STEP) + 1)
        turned = np.array([SE3.from_xyz_rpy(low, (math.pi, 0.0, yaw)).matrix() for yaw in yaws])
        lines = np.repeat(turned[:, None], count, axis=1)
        lines[..., 2, 3] += np.linspace(0.0, height, count)
        goals = self.T_root_base.inverse().matrix() @ lines
        around = near if np.size(near) else None
        found = solve_ik_batch(self.chain, goals.reshape(-1, 4, 4), around).solutions
        branches = found.reshape(len(turned), count, *found.shape[1:])
        ways = []
        for line in branches:
            for q in line[0][np.isfinite(line[0, :, 0])]:
                for station in line[1:]:
                    away = np.abs(station - q).max(axis=1)
                    best = int(np.argmin(np.where(np.isnan(away), np.inf, away)))
                    if not away[best] <= _JUMP:
                        break
                    q = station[best]
                else:
                    ways.append(tuple(q.tolist()))
        return ways

    def weigh(self, q: ArrayLike, before: ArrayLike, after: ArrayLike) -> float:
        """Mass [kg] at the tool's tip, from the joints' efforts (n,) without and with it [N m].

        Least squares of what its weight asks of each joint.  Dry friction in the joints is in the efforts too, and
        holds this way or that: with a twentieth of the efforts, on the youBot, that makes 0.2 kg.
        """
        up = (self.T_root_base.rotation_matrix() @ self.chain.jacobian(q)[:3])[2]
        change = np.asarray(after, dtype=np.float64) - np.asarray(before, dtype=np.float64)
        return float(change @ up) / (GRAVITY * max(float(up @ up), 1e-6))

    def distance(self, point: Point) -> float:
        """Of a point from the first joint's axis, level [m]."""
        return float(np.hypot(*self._level(point)))

    def azimuth(self, point: Point) -> float:
        """Direction in which a point lies from the first joint's axis, in the frame of the root [rad]."""
        x, y = self._level(point)
        return math.atan2(y, x)

    def _level(self, point: Point) -> Array:
        foot = self.T_root_base @ self.foot
        level: Array = np.array(point)[:2] - foot[:2]
        return level

    @cached_property
    def foot(self) -> Array:
        """(3,) on the first joint's axis, in the chain's base."""
        low = np.where(np.isfinite(self.chain.lower), self.chain.lower, 0.0)
        place: Array = self.chain.frames(low)[1][:3, 3]
        return place
