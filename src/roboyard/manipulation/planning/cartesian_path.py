"""Cartesian paths: the tool moves along straight lines."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from roboyard.config import Config, parameter
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.kinematics.ik.numeric_ik import IkTarget, search_from_seeds
from roboyard.manipulation.collision.collision_model import make_workspace
from roboyard.manipulation.collision.motion_check import is_line_free
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.errors import CartesianPathBlockedError
from roboyard.manipulation.planning.goals import fixed_frame_pose
from roboyard.manipulation.planning.plan import MotionPlan, PlanConfig, blend_path, joint_weights
from roboyard.manipulation.planning.planner import MotionPlanningProblem
from roboyard.manipulation.planning.start_state_repair import find_free_start
from roboyard.manipulation.time_parameterization import EffortLimits, JointLimits

_TOLERANCE = np.array([1e-6, 1e-5])
_MAX_IK_STEPS = 60


class CartesianPathConfig(Config):
    """Interpolation of straight tool paths."""

    spacing: float = parameter(
        0.005, unit="m", low=1e-5, high=1.0, aliases=("max_step",), doc="Maximum distance between two checked poses."
    )
    angle_step: float = parameter(
        0.02, unit="rad", low=1e-5, high=math.pi, doc="Maximum rotation of the tool between two checked poses."
    )
    jump_threshold: float = parameter(
        0.2,
        low=1e-5,
        high=10.0,
        aliases=("revolute_jump_threshold", "prismatic_jump_threshold"),
        doc="Maximum change of a joint between two checked poses [rad or m].",
    )


def plan_cartesian_path(
    scene: PlanningScene,
    start: ArrayLike,
    poses: Sequence[SE3],
    config: PlanConfig | None = None,
    *,
    interpolation: CartesianPathConfig | None = None,
    frame: str = "base",
    limits: JointLimits | None = None,
) -> MotionPlan:
    """Plan a motion of the tool along straight lines through poses, with even rotation (MoveIt's computeCartesianPath).

    An arm with fewer than six joints keeps the position and the direction of its group's tool axis; its roll follows.

    Args:
        scene: The scene.
        start: (n,) start state.
        poses: Poses of the tool.
        config: Scaling of the limits, and the seed.
        interpolation: Spacing of the poses between them, and the largest change of a joint.
        frame: Frame of the poses: base, world, or a link that the group does not move.
        limits: Joint limits; default: those of the scene's chain.

    Raises:
        CartesianPathBlockedError: a collision, a jump of a joint or its limit, with the fraction that can be followed.
        StartInCollisionError, StartOutsideLimitsError: the start state is invalid.
        EffortLimitError: a joint cannot be moved somewhere on the path.
        InputError: there are no poses.
        UnknownNameError: there is no such frame.
    """
    if not poses:
        raise InputError("a path without poses", valid="at least one")
    path_config = interpolation or CartesianPathConfig()
    plan_config, chain = config or PlanConfig(), scene.chain
    joint_limits = limits or JointLimits.from_chain(
        chain, velocity_scaling=plan_config.velocity_scaling, acceleration_scaling=plan_config.acceleration_scaling
    )
    start_state, _ = find_free_start(scene, start, 0.0, np.random.default_rng(plan_config.seed))
    T_base = fixed_frame_pose(scene, frame)
    tool_poses = _interpolate_poses(
        SE3.from_matrix(chain.forward(start_state)), [T_base @ pose for pose in poses], path_config
    )
    collision = scene.collision_arrays
    workspace = make_workspace(collision)
    direction = np.zeros(3)
    if chain.dof < 6:
        direction = np.array(scene.group.tool_axis) / math.hypot(*scene.group.tool_axis)
    states = [start_state]
    out = np.empty((1, chain.dof))
    for k, pose in enumerate(tool_poses, 1):
        before, fraction = states[-1], (k - 1) / len(tool_poses)
        T = pose.matrix()
        if chain.dof < 6:
            T[:3, :3] = _rotation_with_z_axis(T[:3, :3] @ direction)
        ik_target = IkTarget(T, direction, np.array([1.0, 0.1]))
        count, _ = search_from_seeds(chain.arrays, ik_target, _TOLERANCE, before[None], 1, _MAX_IK_STEPS, out)
        if not count:
            raise CartesianPathBlockedError(
                f"the tool can follow {100 * fraction:.0f} % of the path, up to a joint limit or a singularity",
                valid="a path within reach", fraction=fraction,
            )  # fmt: skip
        q = out[0].copy()
        if float(np.abs(q - before).max()) > path_config.jump_threshold:
            name = chain.joints[int(np.argmax(np.abs(q - before)))]
            raise CartesianPathBlockedError(
                f"after {100 * fraction:.0f} % of the path {name} would jump", valid="another start, or a shorter path",
                fraction=fraction,
            )  # fmt: skip
        if not is_line_free(collision, workspace, before, q):
            pair = scene.pair_names(workspace.contact_pair) or ("", "")
            raise CartesianPathBlockedError(
                f"after {100 * fraction:.0f} % of the path {pair[0]} touches {pair[1]}", valid="a collision-free path",
                fraction=fraction,
            )  # fmt: skip
        if float(np.abs(q - before).max()) > 1e-9:
            states.append(q)
    points = np.array(states)
    path = blend_path(
        MotionPlanningProblem(scene, workspace, start_state, points[-1:], joint_weights(joint_limits)), points
    )
    length = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
    return MotionPlan(
        path.parameterize(joint_limits, EffortLimits(scene.dynamics, plan_config.effort_scaling)),
        points,
        0.0,
        length,
        len(points),
        int(workspace.n_checks[0]),
        "cartesian_path",
    )


def _interpolate_poses(first: SE3, poses: Sequence[SE3], config: CartesianPathConfig) -> list[SE3]:
    found, last_pose = [], first
    for pose in poses:
        count = max(
            1, math.ceil(max(last_pose.distance(pose) / config.spacing, last_pose.angle_to(pose) / config.angle_step))
        )
        found += [last_pose.interpolate(pose, k / count) for k in range(1, count + 1)]
        last_pose = pose
    return found


def _rotation_with_z_axis(axis: Array) -> Array:
    """Return a rotation whose third column is a direction, as `IkTarget` needs it for a position and a direction."""
    x = np.cross((0.0, 1.0, 0.0) if abs(axis[1]) < 0.9 else (1.0, 0.0, 0.0), axis)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(axis, x), axis], axis=1)
