"""Timed tool paths: the tool moves through poses at given times and velocities, as next to a moving object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.kinematics.ik import IkConfig, solve_ik_batch
from roboyard.manipulation.collision.collision_model import make_workspace
from roboyard.manipulation.collision.motion_check import is_line_free
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.errors import CartesianPathBlockedError, GoalUnreachableError
from roboyard.manipulation.planning.goals import fixed_frame_pose
from roboyard.manipulation.planning.plan import MotionPlan, PlanConfig
from roboyard.manipulation.planning.start_state_repair import find_free_start
from roboyard.manipulation.time_parameterization import EffortLimits, JointLimits, TimedWaypointTrajectory

TIME_STEP: Final = 0.04
"""Time between computed joint positions [s]."""
MAX_JOINT_JUMP: Final = 0.3
"""Maximum change of a joint between two computed positions [rad or m]."""
_INITIAL_ROTATION_TOLERANCE: Final = 0.02
"""Initial rotation of the tool below which the first rotation is taken over at once [rad]."""
_IK_CONFIG: Final = IkConfig(tolerance=1e-5, orientation_tolerance=1e-4)


@dataclass(frozen=True, eq=False)
class TimedPose:
    """A pose of the tool at a time, passed without acceleration.

    Attributes:
        time: Time from the start [s].
        pose: Pose of the tool.
        velocity: (3,) velocity of its tip [m/s].
    """

    time: float
    pose: SE3
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)


def plan_timed_tool_path(
    scene: PlanningScene,
    start: ArrayLike,
    timed_poses: Sequence[TimedPose],
    config: PlanConfig | None = None,
    *,
    frame: str = "base",
    limits: JointLimits | None = None,
) -> MotionPlan:
    """Plan a motion from rest through timed poses, with quintic polynomials between them.

    In a frame that moves at a constant velocity these are quintics, too: relative to a moving object the tool moves as
    next to an object at rest. An arm with five joints must be able to rotate the tool as each pose states.

    Args:
        scene: The scene.
        start: (n,) start state.
        timed_poses: Poses in the order of their times, the first later than 0.
        config: Scaling of the limits.
        frame: Frame of the poses and velocities: base, world, or a link that the group does not move.
        limits: Joint limits; default: those of the scene's chain.

    Raises:
        GoalUnreachableError: the tool cannot be there at some time, or only after a jump of a joint; names the time.
        CartesianPathBlockedError: a collision.
        VelocityLimitError, EffortLimitError: a joint cannot follow.
        StartInCollisionError, StartOutsideLimitsError: the start state is invalid.
        InputError: there are no poses, or their times do not increase.
    """
    pose_times = [0.0, *(one.time for one in timed_poses)]
    if len(pose_times) < 2 or not np.isfinite(pose_times).all() or (np.diff(pose_times) <= 0.0).any():
        raise InputError(f"poses at {pose_times[1:]} s", valid="at least one, in ascending order")
    plan_config, chain = config or PlanConfig(), scene.chain
    joint_limits = limits or JointLimits.from_chain(
        chain, velocity_scaling=plan_config.velocity_scaling, acceleration_scaling=plan_config.acceleration_scaling
    )
    start_state, _ = find_free_start(scene, start, 0.0, np.random.default_rng(plan_config.seed))
    T_base = fixed_frame_pose(scene, frame)
    times, poses, twists = _make_pose_table(SE3.from_matrix(chain.forward(start_state)), timed_poses, T_base)
    states = _solve_joints(scene, start_state, times, poses)
    collision = scene.collision_arrays
    workspace = make_workspace(collision)
    for time, one, other in zip(times[1:], states[:-1], states[1:], strict=True):
        if not is_line_free(collision, workspace, one, other):
            pair = scene.pair_names(workspace.contact_pair) or ("", "")
            raise CartesianPathBlockedError(
                f"after {time:.2f} s {pair[0]} would touch {pair[1]}", valid="a collision-free path",
                fraction=float(time / times[-1]),
            )  # fmt: skip
    velocities: Array = np.linalg.solve(*_normal_equations(chain.jacobian(states), twists))[:, :, 0].astype(np.float64)
    velocities[0] = 0.0
    trajectory = TimedWaypointTrajectory(chain.joints, times, states, velocities)
    trajectory.check(joint_limits, EffortLimits(scene.dynamics, plan_config.effort_scaling))
    length = float(np.linalg.norm(np.diff(states, axis=0), axis=1).sum())
    return MotionPlan(trajectory, states, 0.0, length, len(states), int(workspace.n_checks[0]), "timed_tool_path")


def _normal_equations(J: Array, twists: Array) -> tuple[Array, Array]:
    """Return the damped normal equations of joint velocities (k, n, n), (k, n, 1) for twists (k, 6)."""
    JT = J.transpose(0, 2, 1)
    return JT @ J + 1e-10 * np.eye(J.shape[2]), JT @ twists[:, :, None]


def _make_pose_table(first: SE3, timed_poses: Sequence[TimedPose], T_base: SE3) -> tuple[Array, Array, Array]:
    """Return times (k,), poses (k, 4, 4) and twists (k, 6) in the chain's base."""
    R = T_base.rotation_matrix()
    last_pose, velocity, last_time = first, np.zeros(3), 0.0
    first_pose = T_base @ timed_poses[0].pose
    if (
        first.angle_to(first_pose) < _INITIAL_ROTATION_TOLERANCE
    ):  # a measured state deviates a little, which an arm with five joints cannot keep
        last_pose = SE3(first_pose.rotation, first.translation)
    times, poses, twists = [0.0], [first.matrix()], [np.zeros(6)]
    for timed_pose in timed_poses:
        T, v = T_base @ timed_pose.pose, R @ np.array(timed_pose.velocity)
        duration = timed_pose.time - last_time
        displacement, rotation_vector = (
            T.translation - last_pose.translation - duration * velocity,
            _rotation_vector(last_pose, T),
        )
        for fraction in np.linspace(0.0, 1.0, max(2, round(duration / TIME_STEP)) + 1)[1:]:
            blend, blend_rate = _quintic_blend(fraction)
            # a quintic with zero acceleration at both ends: a smooth change of velocity plus the remaining displacement
            remaining_displacement = displacement - 0.5 * duration * (v - velocity)
            velocity_displacement, velocity_blend = _velocity_blend(fraction)
            pose = np.eye(4)
            pose[:3, :3] = last_pose.interpolate(T, blend).rotation_matrix()
            pose[:3, 3] = (
                last_pose.translation
                + duration * fraction * velocity
                + duration * velocity_displacement * (v - velocity)
                + blend * remaining_displacement
            )
            twist = velocity + velocity_blend * (v - velocity) + blend_rate / duration * remaining_displacement
            times.append(last_time + fraction * duration)
            poses.append(pose)
            twists.append(np.concatenate([twist, blend_rate / duration * rotation_vector]))
        last_pose, velocity, last_time = T, v, timed_pose.time
    return np.array(times), np.array(poses), np.array(twists)


def _quintic_blend(u: float) -> tuple[float, float]:
    """Return the quintic from rest at 0 to rest at 1, and its slope."""
    return u**3 * (10.0 - 15.0 * u + 6.0 * u**2), 30.0 * u**2 * (1.0 - u) ** 2


def _velocity_blend(u: float) -> tuple[float, float]:
    """Return the displacement of a velocity that changes smoothly from 0 to 1 with zero acceleration at both ends, and
    this velocity.
    """
    return u**3 - 0.5 * u**4, u**2 * (3.0 - 2.0 * u)


def _rotation_vector(one: SE3, other: SE3) -> Array:
    """Return the rotation vector (3,) from one pose to another, in their common frame."""
    return np.asarray(one.rotation_matrix() @ (one.inverse() @ other).log()[3:])


def _solve_joints(scene: PlanningScene, start_state: Array, times: Array, poses: Array) -> Array:
    """Return joint positions (k, n) along poses (k, 4, 4), without jumps. Raises GoalUnreachableError."""
    chain = scene.chain
    ik_batch = solve_ik_batch(chain, poses[1:], start_state, _IK_CONFIG)
    states = [start_state]
    for time, count, branches in zip(times[1:], ik_batch.n_solutions, ik_batch.solutions, strict=True):
        if not count:
            raise GoalUnreachableError(
                f"after {time:.2f} s the tool would be out of reach", valid="a pose within reach"
            )
        joint_changes = np.abs(branches[:count] - states[-1]).max(axis=1)
        best = int(np.argmin(joint_changes))
        if joint_changes[best] > MAX_JOINT_JUMP:
            raise GoalUnreachableError(
                f"after {time:.2f} s a joint reaches its limit and would have to jump", valid="another start"
            )
        states.append(branches[best])
    return np.ascontiguousarray(states)
