"""Trajectories and tolerances from ROS messages, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.control.trajectory import TrajectoryPoint
from roboyard.control.trajectory_follower import Tolerances
from roboyard.errors import InputError
from roboyard.messages import msg
from roboyard.messages.time import to_seconds


class TrajectoryError(InputError):
    """A goal that is rejected; ``cause`` is the name of control_msgs' error code."""

    def __init__(self, message: str, cause: str, valid: str | None = None) -> None:
        super().__init__(message, valid=valid)
        self.cause = cause


def read_trajectory(
    message: Any, joints: Sequence[str], current: NDArray[np.float64], allow_partial: bool
) -> list[TrajectoryPoint]:
    """Return the points of a trajectory_msgs/JointTrajectory, in the order of ``joints``.

    Args:
        message: Message with the joints in any order.
        joints: All joints of the group.
        current: (n,) their present positions [rad or m].
        allow_partial: Whether it may name only some of the joints; the others stay.

    Raises:
        TrajectoryError: it names unknown joints, too few, or some twice, or has no points, or wrong sizes.
    """
    names = list(message.joint_names)
    unknown = [name for name in names if name not in joints]
    if unknown or not names or len(set(names)) != len(names):
        text = f"joint {unknown[0]!r} is not in the group" if unknown else "no joints, or some twice"
        raise TrajectoryError(text, "INVALID_JOINTS", f"joints: {', '.join(joints)}")
    missing = [name for name in joints if name not in names]
    if missing and not allow_partial:
        raise TrajectoryError(f"joint {missing[0]!r} is missing", "INVALID_JOINTS", f"joints: {', '.join(joints)}")
    if not message.points:
        raise TrajectoryError("a trajectory without points", "INVALID_GOAL", "at least one point")
    joint_indices = np.array([list(joints).index(name) for name in names])
    zeros = np.zeros(len(joints))
    points = []
    for number, point in enumerate(message.points):
        rows: list[NDArray[np.float64] | None] = []
        for text, values, default_values in (
            ("positions", point.positions, current),
            ("velocities", point.velocities, zeros),
            ("accelerations", point.accelerations, zeros),
        ):
            if len(values) == 0 and text != "positions":
                rows.append(None)
                continue
            if len(values) != len(names):
                raise TrajectoryError(
                    f"{len(values)} {text} at point {number}", "INVALID_GOAL", f"{len(names)}, one for each joint"
                )
            row = default_values.copy()
            row[joint_indices] = values
            rows.append(row)
        position, velocity, acceleration = rows
        time = to_seconds(point.time_from_start)
        points.append(TrajectoryPoint(time, current if position is None else position, velocity, acceleration))
    return points


def read_tolerances(goal: Any, joints: Sequence[str], default: Tolerances) -> Tolerances:
    """Return the tolerances of a FollowJointTrajectory goal: 0 is the default, negative is none (control_msgs).

    Raises:
        TrajectoryError: a tolerance is for an unknown joint, or is not a number.
    """
    rows = []
    for tolerances, row in ((goal.path_tolerance, default.path.copy()), (goal.goal_tolerance, default.goal.copy())):
        for tolerance in tolerances:
            if tolerance.name not in joints:
                raise TrajectoryError(
                    f"tolerance of joint {tolerance.name!r}", "INVALID_JOINTS", f"joints: {', '.join(joints)}"
                )
            if math.isnan(tolerance.position):
                raise TrajectoryError(f"tolerance of joint {tolerance.name} is no number", "INVALID_GOAL")
            if tolerance.position != 0.0:
                value = tolerance.position if tolerance.position > 0.0 else math.inf
                row[list(joints).index(tolerance.name)] = value
        rows.append(row)
    time = to_seconds(goal.goal_time_tolerance)
    return Tolerances(rows[0], rows[1], default.goal_time if time == 0.0 else time if time > 0.0 else math.inf)


def trajectory_point_to_msg(
    time_ns: int,
    positions: NDArray[np.float64],
    velocities: NDArray[np.float64] | None = None,
    accelerations: NDArray[np.float64] | None = None,
) -> Any:
    """Return a trajectory_msgs/JointTrajectoryPoint."""
    sec, nanosec = divmod(max(time_ns, 0), 1_000_000_000)
    empty = np.zeros(0)
    return msg.JointTrajectoryPoint(
        positions=positions.copy(),
        velocities=empty if velocities is None else velocities.copy(),
        accelerations=empty if accelerations is None else accelerations.copy(),
        time_from_start=msg.Duration(sec=sec, nanosec=nanosec),
    )
