"""Trajectories and states of arms in messages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from roboyard.control.trajectory import Trajectory, TrajectoryPoint
from roboyard.errors import RoboyardError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.manipulation import timing
from roboyard.manipulation.nodes.move_codes import MoveError, cause_of
from roboyard.messages import msg
from roboyard.messages.convert import make_header, pose_to_msg
from roboyard.messages.time import duration_to_msg, to_seconds

if TYPE_CHECKING:
    from roboyard.manipulation.nodes.motion import Motion
    from roboyard.manipulation.nodes.scene_keeper import SceneKeeper

LEAD: Final = 0.1
"""A motion begins so long after it was sent, so that the controller comes to its start from its own set-point [s]."""
_STEP: Final = 0.02
"""Between states that are looked at [s]."""
_MOST_POINTS: Final = 100_000


def trajectory_message(found: timing.Trajectory | timing.GivenTimes, frame: str, begin_ns: int = 0) -> Any:
    """trajectory_msgs/JointTrajectory of a planned motion, to begin at once, or where its times are given, at a moment.

    The controller comes to the first point from its own set-point.
    """
    knots, lead = found.knots(), LEAD
    if begin_ns:
        knots, lead = [point for point in knots if point.time >= LEAD], 0.0
    points = [
        msg.JointTrajectoryPoint(
            positions=point.position.copy(),
            velocities=np.zeros(len(point.position)) if point.velocity is None else point.velocity.copy(),
            time_from_start=duration_to_msg(round((lead + point.time) * 1e9)),
        )
        for point in knots
    ]
    return msg.JointTrajectory(header=make_header(frame, begin_ns), joint_names=list(found.path.joints), points=points)


def pose_constraints(link: str, pose: Any, frame: str) -> Any:
    """moveit_msgs/Constraints that bring a link to a geometry_msgs/Pose in a frame, within 1 mm and 1 mrad."""
    kinds = msg.moveit_msgs
    place = kinds.PositionConstraint(header=make_header(frame, 0), link_name=link, weight=1.0)
    place.constraint_region.primitives = [
        msg.SolidPrimitive(type=msg.SolidPrimitive.SPHERE, dimensions=np.array([1e-3]))
    ]
    place.constraint_region.primitive_poses = [pose]
    turn = kinds.OrientationConstraint(
        header=make_header(frame, 0), orientation=pose.orientation, link_name=link, weight=1.0,
        absolute_x_axis_tolerance=1e-3, absolute_y_axis_tolerance=1e-3, absolute_z_axis_tolerance=1e-3,
    )  # fmt: skip
    return kinds.Constraints(position_constraints=[place], orientation_constraints=[turn])


def sampled(message: Any, joints: Sequence[str]) -> tuple[Array, Array]:
    """Times (k,) and joints (k, n) of a trajectory_msgs/JointTrajectory, so close that it is straight in between.

    Raises:
        MoveError: it names other joints than the group's, or is no trajectory.
    """
    names = [str(name) for name in message.joint_names]
    if sorted(names) != sorted(joints):
        strange = next((name for name in names if name not in joints), None)
        missing = next((name for name in joints if name not in names), None)
        what = f"joint {strange!r} is not of the group" if strange else f"joint {missing!r} is missing, or some twice"
        raise MoveError(what, "bad_plan", valid=", ".join(joints))
    if not message.points or len(message.points) > _MOST_POINTS:
        raise MoveError(f"a trajectory of {len(message.points)} points", "bad_plan", valid=f"1 to {_MOST_POINTS}")
    order = [names.index(joint) for joint in joints]
    points = [_way_point(point, order, k) for k, point in enumerate(message.points)]
    try:
        spline = Trajectory(points)
    except RoboyardError as error:
        raise MoveError(error.message, "bad_plan", valid=error.valid) from error
    ends = np.array([point.time for point in points])
    if ends[-1] > 1e5:
        raise MoveError(f"a trajectory of {ends[-1]:g} s", "bad_plan", valid="at most 1e5 s")
    steps = max(1, math.ceil(ends[-1] / _STEP)) if len(points) > 1 else 1
    times = np.unique(np.concatenate([ends, np.linspace(ends[0], ends[-1], min(steps, _MOST_POINTS) + 1)]))
    found = spline.samples(times).position
    found[-1] = spline.goal
    return times, found


def _way_point(point: Any, order: Sequence[int], number: int) -> TrajectoryPoint:
    rows: list[Array | None] = []
    for what, values in (
        ("positions", point.positions), ("velocities", point.velocities), ("accelerations", point.accelerations),
    ):  # fmt: skip
        if len(values) == 0 and what != "positions":
            rows.append(None)
            continue
        if len(values) != len(order):
            raise MoveError(f"{len(values)} {what} at point {number}", "bad_plan", valid=f"{len(order)}")
        rows.append(np.asarray(values, dtype=np.float64)[list(order)])
    time = to_seconds(point.time_from_start)
    position = rows[0]
    return TrajectoryPoint(time, np.zeros(0) if position is None else position, rows[1], rows[2])


def state_message(joints: Sequence[str], q: Array, frame: str, time_ns: int) -> Any:
    """moveit_msgs/RobotState of a group's joints."""
    state = msg.JointState(
        header=make_header(frame, time_ns), name=list(joints), position=np.array(q, dtype=np.float64)
    )
    return msg.moveit_msgs.RobotState(joint_state=state, is_diff=True)


def status_message(
    keeper: SceneKeeper, now_ns: int, task: str, state: str, error: RoboyardError | None, motion: Motion | None
) -> Any:
    """roboyard_msgs/ArmStatus; where the arm ends is told once it is known."""
    found = msg.ArmStatus(
        header=make_header(keeper.frame, now_ns), task=task, group=keeper.scene.group.name, state=state,
        error_code="" if error is None else cause_of(error), message="" if error is None else str(error),
        joints=list(keeper.joints),
    )  # fmt: skip
    if motion is None:
        return found
    found.elapsed = (now_ns - motion.began_ns) * 1e-9
    found.duration, found.path_length = motion.duration, motion.length
    found.collision_checks, found.plans, found.replans = motion.looks, motion.plans, motion.replans
    if motion.trajectory is not None and len(motion.trajectory.points):
        found.joints = list(motion.trajectory.joint_names)
        found.goal = np.array(motion.trajectory.points[-1].positions, dtype=np.float64)
        order = [found.joints.index(name) for name in keeper.joints if name in found.joints]
        scene = keeper.scene
        if len(order) == scene.chain.dof == len(found.goal) and np.isfinite(found.goal).all():
            T = SE3.from_matrix(scene.chain.forward(found.goal[order]))
            found.pose = pose_to_msg(scene.T_world_base @ T)
    return found
