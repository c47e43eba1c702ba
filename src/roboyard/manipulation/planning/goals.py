"""Goals of an arm, and the joint positions that reach them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.kinematics.ik import IkConfig, IkSolution, PointingTarget, solve_ik
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.errors import GoalInCollisionError, GoalOutsideLimitsError, GoalUnreachableError

_ROUNDING_TOLERANCE = 1e-6
"""Positions that exceed a limit by less are at the limit [rad or m]."""
MAX_IK_SOLUTIONS = 8
"""Number of IK solutions that are searched for without a closed form."""
N_ROLLS = 12
"""Number of rotations about the tool's direction that are tried if it is free."""


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
        pose: The pose in the frame.
        frame: ``"base"`` of the chain, ``"world"``, or a link that the group does not move.
        tolerance: Position tolerance if the pose itself cannot be reached, as by arms with five joints [m].
        orientation_tolerance: Orientation tolerance in this case [rad].
    """

    pose: SE3
    frame: str = "base"
    tolerance: float = 0.0
    orientation_tolerance: float = 0.0


@dataclass(frozen=True, eq=False)
class PointingGoal:
    """A position and a pointing direction of the tool.

    Attributes:
        target: Position and direction in the frame.
        frame: As of `PoseGoal`.
    """

    target: PointingTarget
    frame: str = "base"


MotionGoal = JointGoal | NamedGoal | PoseGoal | PointingGoal


def as_motion_goal(goal: MotionGoal | SE3 | ArrayLike) -> MotionGoal:
    """Return a goal: a text is a `NamedGoal`, an SE3 a `PoseGoal` in the base, numbers are a `JointGoal`.

    Raises:
        InputError: It is nothing of these.
    """
    if isinstance(goal, JointGoal | NamedGoal | PoseGoal | PointingGoal):
        return goal
    if isinstance(goal, str):
        return NamedGoal(goal)
    if isinstance(goal, SE3):
        return PoseGoal(goal)
    try:
        q = np.asarray(goal, dtype=np.float64)
    except (TypeError, ValueError):
        q = np.zeros(())
    if q.ndim == 0:
        raise InputError(
            f"an object of type {type(goal).__name__} is no goal",
            location="goal",
            valid="a named pose, an SE3, joint positions, or a PoseGoal, PointingGoal, JointGoal, NamedGoal",
        )
    return JointGoal(q)


def find_goal_states(scene: PlanningScene, goal: MotionGoal, seed: Array) -> Array:
    """Return the collision-free joint positions (k, n) that reach a goal, the nearest to ``seed`` (n,) first.

    Raises:
        GoalUnreachableError: no joint positions reach it.
        GoalOutsideLimitsError: the goal requires joints outside their limits.
        GoalInCollisionError: all of them are in collision.
        InputError: the goal is not finite or has a wrong size.
        UnknownNameError: there is no such named pose or frame.
    """
    states = _solve_goal(scene, goal, seed)
    contact_pairs = scene.find_contacts(states)
    if isinstance(goal, PointingGoal) and None not in contact_pairs:
        states = _with_tool_rolls(scene, states)
        contact_pairs = scene.find_contacts(states)
    free = [k for k, pair in enumerate(contact_pairs) if pair is None]
    if not free:
        one, other = contact_pairs[0] or ("", "")
        solutions_text = f", in all {len(states)} joint configurations" if len(states) > 1 else ""
        raise GoalInCollisionError(
            f"at the goal {one} touches {other}{solutions_text}", valid="a collision-free goal", pair=contact_pairs[0]
        )
    return np.ascontiguousarray(states[free])


def _solve_goal(scene: PlanningScene, goal: MotionGoal, seed: Array) -> Array:
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
            ik_goal: SE3 | PointingTarget = fixed_frame_pose(scene, frame) @ pose
        case PointingGoal(target, frame):
            T = fixed_frame_pose(scene, frame)
            position = np.asarray(target.position, dtype=np.float64)
            axis = np.asarray(target.axis, dtype=np.float64)
            if position.shape != (3,) or axis.shape != (3,):
                raise InputError("a pointing goal without position or axis", valid="three numbers each")
            ik_goal = PointingTarget(T @ position, T.rotation_matrix() @ axis, target.tool_axis)
    ik_solution = solve_ik(chain, ik_goal, seed, IkConfig(max_solutions=MAX_IK_SOLUTIONS))
    nearest = ik_solution.nearest
    if (
        isinstance(goal, PoseGoal) and nearest is not None
        and nearest.distance <= goal.tolerance and nearest.angle <= goal.orientation_tolerance
    ):  # fmt: skip
        ik_solution = solve_ik(chain, nearest.pose, seed, IkConfig(max_solutions=MAX_IK_SOLUTIONS))
    if not ik_solution.is_solved:
        raise GoalUnreachableError(
            f"no joint positions put {chain.tip} there: {_failure_text(ik_solution)}", valid=_nearest_text(ik_solution)
        )
    return ik_solution.solutions


def _with_tool_rolls(scene: PlanningScene, states: Array) -> Array:
    """Append to states (k, n) the same states with the tool rotated about its pointing direction.

    If the last joint rotates about this direction, it is free: a tool that is not round may collide at one angle only.
    """
    chain, last_joint = scene.chain, scene.chain.dof - 1
    if not chain.is_revolute[last_joint]:
        return states
    low, high = max(chain.lower[last_joint], -math.pi), min(chain.upper[last_joint], math.pi)
    found = [states]
    for value in np.linspace(low, high, N_ROLLS):
        rolled_states = states.copy()
        rolled_states[:, last_joint] = value
        found.append(rolled_states)
    all_states = np.concatenate(found)
    tip_poses, target_poses = chain.forward(all_states), np.tile(chain.forward(states), (N_ROLLS + 1, 1, 1))
    axis = np.array(scene.group.tool_axis) / math.hypot(*scene.group.tool_axis)
    is_same_goal = np.abs(tip_poses[:, :3, 3] - target_poses[:, :3, 3]).max(axis=1) < _ROUNDING_TOLERANCE
    is_same_goal &= (
        np.abs(tip_poses[:, :3, :3] @ axis - target_poses[:, :3, :3] @ axis).max(axis=1) < _ROUNDING_TOLERANCE
    )
    is_same_goal[: len(states)] = True
    return np.ascontiguousarray(all_states[is_same_goal])


def _within_limits(scene: PlanningScene, q: Array) -> Array:
    chain = scene.chain
    for name, value, low, high in zip(chain.joints, q, chain.lower, chain.upper, strict=True):
        if not low - _ROUNDING_TOLERANCE <= value <= high + _ROUNDING_TOLERANCE:
            raise GoalOutsideLimitsError(f"the goal has {name} at {value:g}", valid=f"{low:g} to {high:g}")
    return np.asarray(np.clip(q, chain.lower, chain.upper))


def fixed_frame_pose(scene: PlanningScene, frame: str) -> SE3:
    """Return the pose of a frame that does not move, in the chain's base. Raises UnknownNameError, InputError."""
    if frame in ("base", scene.chain.base):
        return SE3.identity()
    if frame == "world":
        return scene.T_world_base.inverse()
    T = scene.link_pose(frame, np.clip(np.zeros(scene.chain.dof), scene.chain.lower, scene.chain.upper))
    if scene.chain.link_mounts[frame][0] != 0:
        raise InputError(f"the group moves {frame!r}", valid="base, world, or a link that it does not move")
    return SE3.from_matrix(T)


def _failure_text(ik_solution: IkSolution) -> str:
    return ik_solution.failure.value if ik_solution.failure is not None else "not found"


def _nearest_text(ik_solution: IkSolution) -> str | None:
    nearest = ik_solution.nearest
    if nearest is None:
        return None
    x, y, z = nearest.pose[:3, 3]
    distance_text = f"{1e3 * nearest.distance:.3g} mm and {math.degrees(nearest.angle):.3g} degrees"
    return f"the nearest reachable pose is {distance_text} away, at {x:.3f} {y:.3f} {z:.3f}"
