"""Messages of robots on legs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE3
from roboyard.messages import msg
from roboyard.messages.time import time_to_msg
from roboyard.walking.gait_kernels import held_by, tips_at
from roboyard.walking.odometry import LeggedOdometry

_COVARIANCE = np.diag([1e-3, 1e-3, 1e-3, 1e-4, 1e-4, 1e-3]).reshape(36)
_COVARIANCE.setflags(write=False)


def tilt_and_heading(q: Any) -> tuple[float, float, float]:
    """Roll, pitch and heading [rad] of a geometry_msgs/Quaternion."""
    w, x, y, z = q.w, q.x, q.y, q.z
    return (
        math.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y)),
        math.asin(max(-1.0, min(1.0, 2.0 * (w * y - z * x)))),
        math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)),
    )


def foot_force(contacts: Any) -> float:
    """What presses on a foot [N], by its gazebo_msgs/ContactsState: the sum over contacts, wherever each points."""
    forces = [state.total_wrench.force for state in contacts.states]
    return sum(math.hypot(force.x, force.y, force.z) for force in forces)


def pose_of(odometry: LeggedOdometry) -> SE3:
    """T_odom_base."""
    return SE3.from_xyz_rpy((odometry.x, odometry.y, odometry.z), (*odometry.tilt, odometry.yaw))


def legged_odometry(
    T_odom_base: SE3, speed: NDArray[np.float64], time_ns: int, odom_frame: str, base_frame: str
) -> Any:
    """nav_msgs/Odometry of a pose and a speed (3,); its covariances are constants, not measured."""
    w, x, y, z = T_odom_base.quaternion
    vx, vy, turn = speed.tolist()
    place = msg.Point(x=T_odom_base.x, y=T_odom_base.y, z=T_odom_base.z)
    pose = msg.Pose(position=place, orientation=msg.Quaternion(w=w, x=x, y=y, z=z))
    twist = msg.Twist(linear=msg.Vector3(x=vx, y=vy), angular=msg.Vector3(z=turn))
    return msg.Odometry(
        header=msg.Header(stamp=time_to_msg(time_ns), frame_id=odom_frame),
        child_frame_id=base_frame,
        pose=msg.PoseWithCovariance(pose=pose, covariance=_COVARIANCE),
        twist=msg.TwistWithCovariance(twist=twist, covariance=_COVARIANCE),
    )


def gait_state(
    time_ns: int,
    phase: str,
    gait: str,
    legs: Sequence[str],
    down: NDArray[np.bool_],
    touching: NDArray[np.bool_],
    feet: NDArray[np.float64],
    leaning: tuple[float, float, float] | None,
    carried: NDArray[np.float64],
) -> Any:
    """roboyard_msgs/GaitState, of feet (l, 3) in the body, which leans by roll and pitch [rad], or nobody knows."""
    vx, vy, turn = carried.tolist()
    roll, pitch = (0.0, 0.0) if leaning is None else leaning[:2]
    return msg.GaitState(
        header=msg.Header(stamp=time_to_msg(time_ns)),
        phase=phase,
        gait=gait,
        legs=list(legs),
        in_stance=down.copy(),
        in_contact=touching.copy(),
        margin=float(held_by(feet, down, 0.0, 0.0)),
        tilt=float(tips_at(feet, down, roll, pitch)),
        twist=msg.Twist(linear=msg.Vector3(x=vx, y=vy), angular=msg.Vector3(z=turn)),
    )
