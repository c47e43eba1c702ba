"""Where an arm shall go, and the positions of its joints that are there."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.kinematics.ik import IkConfig, IkSolution, PointingTarget, solve_ik
from roboyard.manipulation.planning.errors import GoalInCollision, GoalOutsideLimits, GoalUnreachable
from roboyard.manipulation.scene import PlanningScene

_ALIKE = 1e-6
"""Joints beyond a limit by rounding are at it [rad or m]."""
SEARCHED = 8
"""Positions that are looked for where no closed form knows all."""
ROLLS = 12
"""Turns of a tool about its direction that are tried, where that is left open."""


@dataclass(frozen=True, eq=False)
class JointGoal:
    """Positions of the group's joints (n,) [rad or m]."""

    q: ArrayLike


@dataclass(frozen=True)
class NamedGoal:
    """A named pose of the group."""

    name: str


@dataclass(frozen=True)
class PoseGoal:
    """A pose of the tool.

    Attributes:
        pose: In the frame.
        frame: ``"base"`` of the chain, ``"world"``, or a link that the group does not move.
        tolerance: Where the pose itself cannot be had, as with arms of five joints, one so near will do [m].
        turn_tolerance: And turned by so little [rad].
    """

    pose: SE3
    frame: str = "base"
    tolerance: float = 0.0
    turn_tolerance: float = 0.0


@dataclass(frozen=True, eq=False)
class AimGoal:
    """A place of the tool and the direction in which it points.

    Attributes:
        aim: In the frame.
        frame: As of `PoseGoal`.
    """

    aim: PointingTarget
    frame: str = "base"


Goal = JointGoal | NamedGoal | PoseGoal | AimGoal


def goal_states(scene: PlanningScene, goal: Goal, near: Array) -> Array:
    """Positions of the joints (k, n) that are at a goal and touch nothing, the nearest to ``near`` (n,) first.

    Raises:
        GoalUnreachable: no joints are there.
        GoalOutsideLimits: joints are asked to be beyond their limits.
        GoalInCollision: something touches in all of them.
        InputError: the goal is no goal: not finite, of another size.
        UnknownNameError: there is no such named pose or frame.
    """
    states = _states(scene, goal, near)
    touching = scene.contacts(states)
    if isinstance(goal, AimGoal) and None not in touching:
        states = _rolled(scene, states)
        touching = scene.contacts(states)
    free = [k for k, pair in enumerate(touching) if pair is None]
    if not free:
        one, other = touching[0] or ("", "")
        ways = f", in all {len(states)} ways to stand there" if len(states) > 1 else ""
        raise GoalInCollision(f"at the goal {one} touches {other}{ways}", valid="a goal that is free", pair=touching[0])
    return np.ascontiguousarray(states[free])


def _states(scene: PlanningScene, goal: Goal, near: Array) -> Array:
    chain = scene.chain
    match goal:
        case NamedGoal(name):
            return np.atleast_2d(scene.group.pose(name))
        case JointGoal(q):
            values = chain.as_positions(q)
            if values.ndim != 1:
                raise InputError(f"joint positions of shape {values.shape}", valid=f"({chain.dof},)")
            return _within_limits(scene, values)[None]
        case PoseGoal(pose, frame):
            wanted: SE3 | PointingTarget = T_base_frame(scene, frame) @ pose
        case AimGoal(aim, frame):
            T = T_base_frame(scene, frame)
            place = np.asarray(aim.position, dtype=np.float64)
            axis = np.asarray(aim.axis, dtype=np.float64)
            if place.shape != (3,) or axis.shape != (3,):
                raise InputError("an aim without place or axis", valid="three numbers each")
            wanted = PointingTarget(T @ place, T.rotation_matrix() @ axis, aim.tool_axis)
    found = solve_ik(chain, wanted, near, IkConfig(max_solutions=SEARCHED))
    best = found.nearest
    if (
        isinstance(goal, PoseGoal) and best is not None
        and best.distance <= goal.tolerance and best.angle <= goal.turn_tolerance
    ):  # fmt: skip
        found = solve_ik(chain, best.pose, near, IkConfig(max_solutions=SEARCHED))
    if not found.is_solved:
        raise GoalUnreachable(f"no joint positions put {chain.tip} there: {_why(found)}", valid=_nearest(found))
    return found.solutions


def _rolled(scene: PlanningScene, states: Array) -> Array:
    """States (k, n), and after them the same with the tool turned about the direction in which it points.

    Where the last joint does just that, it is free: a tool that is not round may touch in one turn, and not in another.
    """
    chain, last = scene.chain, scene.chain.dof - 1
    if not chain.is_revolute[last]:
        return states
    low, high = max(chain.lower[last], -math.pi), min(chain.upper[last], math.pi)
    found = [states]
    for value in np.linspace(low, high, ROLLS):
        turned = states.copy()
        turned[:, last] = value
        found.append(turned)
    every = np.concatenate(found)
    tips, wanted = chain.forward(every), np.tile(chain.forward(states), (ROLLS + 1, 1, 1))
    axis = np.array(scene.group.axis) / math.hypot(*scene.group.axis)
    same = np.abs(tips[:, :3, 3] - wanted[:, :3, 3]).max(axis=1) < _ALIKE
    same &= np.abs(tips[:, :3, :3] @ axis - wanted[:, :3, :3] @ axis).max(axis=1) < _ALIKE
    same[: len(states)] = True
    return np.ascontiguousarray(every[same])


def _within_limits(scene: PlanningScene, q: Array) -> Array:
    chain = scene.chain
    for name, value, low, high in zip(chain.joints, q, chain.lower, chain.upper, strict=True):
        if not low - _ALIKE <= value <= high + _ALIKE:
            raise GoalOutsideLimits(f"the goal has {name} at {value:g}", valid=f"{low:g} to {high:g}")
    return np.asarray(np.clip(q, chain.lower, chain.upper))


def T_base_frame(scene: PlanningScene, frame: str) -> SE3:
    """The pose in the chain's base of a frame that stands still. Raises UnknownNameError, InputError."""
    if frame in ("base", scene.chain.base):
        return SE3.identity()
    if frame == "world":
        return scene.T_world_base.inverse()
    T = scene.link_pose(frame, np.clip(np.zeros(scene.chain.dof), scene.chain.lower, scene.chain.upper))
    if scene.chain.link_mounts[frame][0] != 0:
        raise InputError(f"the group moves {frame!r}", valid="base, world, or a link that it does not move")
    return SE3.from_matrix(T)


def _why(found: IkSolution) -> str:
    return found.failure.value if found.failure is not None else "not found"


def _nearest(found: IkSolution) -> str | None:
    best = found.nearest
    if best is None:
        return None
    x, y, z = best.pose[:3, 3]
    far = f"{1e3 * best.distance:.3g} mm and {math.degrees(best.angle):.3g} degrees"
    return f"the nearest that can be done is {far} away, at {x:.3f} {y:.3f} {z:.3f}"
