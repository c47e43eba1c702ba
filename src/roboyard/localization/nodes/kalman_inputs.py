"""Messages of the fusion node's sources, turned into measurements in the world's and the base's frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from roboyard.bus.transforms import TransformBuffer
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.localization.kalman import Measurement, RestBias, Source, twist_at_base
from roboyard.messages import msg
from roboyard.messages.convert import pose_to_se3, quaternion_to_array, twist_to_arrays, vector_to_array
from roboyard.messages.time import to_nanoseconds

_STILL = 0.005
"""Slower is standing [m/s], [rad/s]."""


class Inputs:
    """Turns one node's messages into measurements.

    Args:
        transforms: All frames.
        world: Frame in which the state's pose is.
        base: Frame whose pose it is.
        rest: Learns the gyroscope's bias.
        attitude: Gives roll and pitch as believed now [rad].

    Methods raise ``RoboyardError``: frames that are not known, numbers that make no pose.
    """

    def __init__(
        self, transforms: TransformBuffer, world: str, base: str, rest: RestBias,
        attitude: Callable[[], tuple[float, float]],
    ) -> None:  # fmt: skip
        self._transforms, self._world, self._base = transforms, world, base
        self._rest, self._attitude = rest, attitude

    def odometry(self, source: Source, message: Any) -> list[Measurement | None]:
        """Of a nav_msgs/Odometry."""
        time_ns, found = to_nanoseconds(message.header.stamp), []
        child = message.child_frame_id or self._base
        if source.wants_pose:
            found.append(self._pose(source, time_ns, message.header.frame_id, child, message.pose))
        linear, angular = twist_to_arrays(message.twist.twist)
        self._rest.moves(time_ns, bool(np.abs([*linear, *angular]).max() < _STILL))
        if source.wants_twist:
            found.append(self._twist(source, time_ns, child, message.twist))
        return found

    def pose(self, source: Source, message: Any) -> list[Measurement | None]:
        """Of a geometry_msgs/PoseWithCovarianceStamped, a pose of the base."""
        time_ns = to_nanoseconds(message.header.stamp)
        return [self._pose(source, time_ns, message.header.frame_id, self._base, message.pose)]

    def twist(self, source: Source, message: Any) -> list[Measurement | None]:
        """Of a geometry_msgs/TwistWithCovarianceStamped."""
        time_ns = to_nanoseconds(message.header.stamp)
        linear, angular = twist_to_arrays(message.twist.twist)
        self._rest.moves(time_ns, bool(np.abs([*linear, *angular]).max() < _STILL))
        return [self._twist(source, time_ns, message.header.frame_id or self._base, message.twist)]

    def imu(self, source: Source, message: Any) -> list[Measurement | None]:
        """Of a sensor_msgs/Imu: orientation, turn rates, accelerations, as far as it measures them."""
        time_ns = to_nanoseconds(message.header.stamp)
        T = self._fixed(message.header.frame_id or self._base)
        R = T.rotation_matrix()
        found, attitude = [], self._attitude()
        spread = _square(message.orientation_covariance)
        if spread[0, 0] >= 0.0 and source.wants_pose:
            T_world_imu = SE3(quaternion_to_array(message.orientation))
            T_world_base = T_world_imu @ SE3(T.rotation).inverse()
            attitude = float(T_world_base.rpy[0]), float(T_world_base.rpy[1])
            found.append(source.pose(time_ns, T_world_base, _lower(spread)))
        spread = _square(message.angular_velocity_covariance)
        rates = R @ vector_to_array(message.angular_velocity)
        if source.config.bias_at_rest:
            rates = self._rest.reading(time_ns, rates)
        if spread[0, 0] >= 0.0 and source.wants_twist:
            found.append(source.twist(time_ns, np.concatenate([np.zeros(3), rates]), _lower(R @ spread @ R.T)))
        spread = _square(message.linear_acceleration_covariance)
        if spread[0, 0] >= 0.0:
            felt = R @ vector_to_array(message.linear_acceleration)
            found.append(source.acceleration(time_ns, felt, R @ spread @ R.T, attitude))
        return found

    # -- frames --------------------------------------------------------------------------------------------------------
    def _pose(self, source: Source, time_ns: int, frame: str, child: str, said: Any) -> Measurement | None:
        T_frame_child = pose_to_se3(said.pose)
        spread = np.asarray(said.covariance, dtype=np.float64).reshape(6, 6)
        T_frame_base = T_frame_child if child == self._base else T_frame_child @ self._fixed(child).inverse()
        # Of changes and of poses from the first one on, the frame does not matter.
        if frame == self._world or source.config.differential or source.config.relative:
            return source.pose(time_ns, T_frame_base, spread)
        T_world_frame = self._transforms.lookup(self._world, frame)
        R = np.kron(np.eye(2), T_world_frame.rotation_matrix())
        return source.pose(time_ns, T_world_frame @ T_frame_base, R @ spread @ R.T)

    def _twist(self, source: Source, time_ns: int, frame: str, said: Any) -> Measurement | None:
        linear, angular = twist_to_arrays(said.twist)
        values, spread = np.concatenate([linear, angular]), np.asarray(said.covariance, dtype=np.float64).reshape(6, 6)
        if frame != self._base:
            values, spread = twist_at_base(self._fixed(frame), values, spread)
        return source.twist(time_ns, values, spread)

    def _fixed(self, frame: str) -> SE3:
        """``T_base_frame`` of something mounted on the base."""
        return SE3.identity() if frame == self._base else self._transforms.lookup(self._base, frame)


TYPES = {
    "odom": (msg.Odometry, Inputs.odometry),
    "pose": (msg.PoseWithCovarianceStamped, Inputs.pose),
    "twist": (msg.TwistWithCovarianceStamped, Inputs.twist),
    "imu": (msg.Imu, Inputs.imu),
}
"""Message of each kind of source, and what turns it into measurements."""


def _square(nine: Any) -> Array:
    return np.asarray(nine, dtype=np.float64).reshape(3, 3)


def _lower(block: Array) -> Array:
    """(6, 6) with a (3, 3) block for what turns."""
    full = np.zeros((6, 6))
    full[3:, 3:] = block
    return full
