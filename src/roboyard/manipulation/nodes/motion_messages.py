"""Trajectories, goals and states of arms in messages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

import numpy as np

from roboyard.control.trajectory import Trajectory, TrajectoryPoint
from roboyard.errors import RoboyardError
from roboyard.geometry.arrays import Array
from roboyard.manipulation import time_parameterization
from roboyard.manipulation.nodes.moveit_errors import ArmMotionError
from roboyard.messages import msg
from roboyard.messages.convert import make_header
from roboyard.messages.time import duration_to_msg, to_seconds


class ArmMotionState(StrEnum):
    """States of a goal of the move_group node, as roboyard_msgs/ArmStatus reports them.

    A goal is queued while the motion of an older goal is stopped.  REJECTED and the members of ``FINAL_STATES`` are
    the ends of a goal.
    """

    QUEUED = "queued"
    PLANNING = "planning"
    EXECUTING = "executing"
    STOPPING = "stopping"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    ABORTED = "aborted"
    CANCELED = "canceled"
    REJECTED = "rejected"


FINAL_STATES: Final = frozenset((ArmMotionState.SUCCEEDED, ArmMotionState.ABORTED, ArmMotionState.CANCELED))
"""States in which an accepted goal ends."""
START_DELAY: Final = 0.1
"""Time between sending a motion and its start, in which the controller moves from its set-point to the start [s]."""
_MAX_SAMPLE_STEP: Final = 0.02
"""Maximum time between sampled states [s]."""
_MAX_POINTS: Final = 100_000


def trajectory_to_msg(
    trajectory: time_parameterization.TimeOptimalTrajectory | time_parameterization.TimedWaypointTrajectory,
    frame: str,
    start_time_ns: int = 0,
) -> Any:
    """Return the trajectory_msgs/JointTrajectory of a planned motion that starts at once, or at a given time.

    The controller comes to the first point from its own set-point.
    """
    trajectory_points, start_delay = trajectory.to_cubic_points(), START_DELAY
    if start_time_ns:
        trajectory_points, start_delay = [point for point in trajectory_points if point.time >= START_DELAY], 0.0
    points = [
        msg.JointTrajectoryPoint(
            positions=point.position.copy(),
            velocities=np.zeros(len(point.position)) if point.velocity is None else point.velocity.copy(),
            time_from_start=duration_to_msg(round((start_delay + point.time) * 1e9)),
        )
        for point in trajectory_points
    ]
    return msg.JointTrajectory(
        header=make_header(frame, start_time_ns), joint_names=list(trajectory.path.joints), points=points
    )


def pose_constraints_to_msg(link: str, pose: Any, frame: str) -> Any:
    """Return the moveit_msgs/Constraints of a link's pose in a frame, within 1 mm and 1 mrad."""
    kinds = msg.moveit_msgs
    position_constraint = kinds.PositionConstraint(header=make_header(frame, 0), link_name=link, weight=1.0)
    position_constraint.constraint_region.primitives = [
        msg.SolidPrimitive(type=msg.SolidPrimitive.SPHERE, dimensions=np.array([1e-3]))
    ]
    position_constraint.constraint_region.primitive_poses = [pose]
    orientation_constraint = kinds.OrientationConstraint(
        header=make_header(frame, 0), orientation=pose.orientation, link_name=link, weight=1.0,
        absolute_x_axis_tolerance=1e-3, absolute_y_axis_tolerance=1e-3, absolute_z_axis_tolerance=1e-3,
    )  # fmt: skip
    return kinds.Constraints(
        position_constraints=[position_constraint], orientation_constraints=[orientation_constraint]
    )


def sample_trajectory_msg(message: Any, joints: Sequence[str]) -> tuple[Array, Array]:
    """Return times (k,) and joint positions (k, n) of a trajectory_msgs/JointTrajectory, dense enough to be straight
    between.

    Raises:
        ArmMotionError: it names other joints than the group's, or is no trajectory.
    """
    names = [str(name) for name in message.joint_names]
    if sorted(names) != sorted(joints):
        unknown_joint = next((name for name in names if name not in joints), None)
        missing_joint = next((name for name in joints if name not in names), None)
        message_text = (
            f"joint {unknown_joint!r} is not in the group"
            if unknown_joint
            else f"joint {missing_joint!r} is missing, or one is duplicated"
        )
        raise ArmMotionError(message_text, "bad_plan", valid=", ".join(joints))
    if not message.points or len(message.points) > _MAX_POINTS:
        raise ArmMotionError(f"a trajectory of {len(message.points)} points", "bad_plan", valid=f"1 to {_MAX_POINTS}")
    order = [names.index(joint) for joint in joints]
    points = [_point_from_msg(point, order, k) for k, point in enumerate(message.points)]
    try:
        spline = Trajectory(points)
    except RoboyardError as error:
        raise ArmMotionError(error.message, "bad_plan", valid=error.valid) from error
    point_times = np.array([point.time for point in points])
    if point_times[-1] > 1e5:
        raise ArmMotionError(f"a trajectory of {point_times[-1]:g} s", "bad_plan", valid="at most 1e5 s")
    n_steps = max(1, math.ceil(point_times[-1] / _MAX_SAMPLE_STEP)) if len(points) > 1 else 1
    times = np.unique(
        np.concatenate([point_times, np.linspace(point_times[0], point_times[-1], min(n_steps, _MAX_POINTS) + 1)])
    )
    positions = spline.samples(times).position
    positions[-1] = spline.goal
    return times, positions


def _point_from_msg(point: Any, order: Sequence[int], index: int) -> TrajectoryPoint:
    rows: list[Array | None] = []
    for field_name, values in (
        ("positions", point.positions), ("velocities", point.velocities), ("accelerations", point.accelerations),
    ):  # fmt: skip
        if len(values) == 0 and field_name != "positions":
            rows.append(None)
            continue
        if len(values) != len(order):
            raise ArmMotionError(f"{len(values)} {field_name} at point {index}", "bad_plan", valid=f"{len(order)}")
        rows.append(np.asarray(values, dtype=np.float64)[list(order)])
    time = to_seconds(point.time_from_start)
    position = rows[0]
    return TrajectoryPoint(time, np.zeros(0) if position is None else position, rows[1], rows[2])


def robot_state_to_msg(joints: Sequence[str], q: Array, frame: str, time_ns: int) -> Any:
    """Return the moveit_msgs/RobotState of a group's joints."""
    state = msg.JointState(
        header=make_header(frame, time_ns), name=list(joints), position=np.array(q, dtype=np.float64)
    )
    return msg.moveit_msgs.RobotState(joint_state=state, is_diff=True)
