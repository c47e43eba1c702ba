"""Odometry of bases that move in any direction of the plane, by the motion that their wheels say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.control.kinematics import PlanarTwist
from roboyard.geometry import SE2
from roboyard.localization.odometry import VELOCITY_FLOOR, OdometryEstimate, OdometryNoise


def screw(way: PlanarTwist) -> SE2:
    """Motion at constant velocity in the body's own axes over a way (vx [m], vy [m], wz [rad]), seen from its start.

    The exponential of SE(2) (e.g. K. Lynch, F. Park, Modern Robotics, 3.2).
    """
    return SE2.exp(way)


class PlanarOdometry:
    """Adds up ways.

    Args:
        noise: Growth of uncertainty; sideways ways are as uncertain as forward ones.

    Attributes:
        T_odom_base: Pose of the base now.
    """

    def __init__(self, noise: OdometryNoise | None = None) -> None:
        self.noise = noise or OdometryNoise()
        self.reset()

    def reset(self) -> None:
        """Be at the origin, surely."""
        self.T_odom_base = SE2.identity()
        self._covariance = np.zeros((3, 3))
        self._time_ns: int | None = None

    def update(self, time_ns: int, way: PlanarTwist) -> OdometryEstimate | None:
        """Take the way of the base frame [m, m, rad], in its own axes, since the last call.

        Returns:
            The new estimate; None for the first call, which only sets the start.
        """
        last, self._time_ns = self._time_ns, time_ns
        if last is None or time_ns <= last:
            return None
        dt, step, noise = (time_ns - last) * 1e-9, screw(way), self.noise
        length = math.hypot(way.vx, way.vy)
        spread = np.diag(
            [
                noise.way_per_way * length,
                noise.way_per_way * length,
                noise.turn_per_way * length + noise.turn_per_turn * abs(way.wz),
            ]
        )
        self._covariance = _moved(self._covariance, self.T_odom_base, step, spread)
        self.T_odom_base = self.T_odom_base @ step
        twist = PlanarTwist(way.vx / dt, way.vy / dt, way.wz / dt)
        twist_covariance = spread / dt**2 + VELOCITY_FLOOR * np.eye(3)
        return OdometryEstimate(time_ns, self.T_odom_base, twist, self._covariance.copy(), twist_covariance)

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        pose = self.T_odom_base
        return {"pose": (pose.x, pose.y, pose.theta), "covariance": self._covariance.copy(), "time_ns": self._time_ns}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self.T_odom_base = SE2(*state["pose"])
        self._covariance = np.array(state["covariance"])
        self._time_ns = state["time_ns"]


def _moved(
    covariance: NDArray[np.float64], T_odom_base: SE2, step: SE2, spread: NDArray[np.float64]
) -> NDArray[np.float64]:
    """F P Fᵀ + G Q Gᵀ: the pose's uncertainty turned on by the step, and the step's own, in the middle of its turn."""
    heading = T_odom_base.theta
    c, s = math.cos(heading), math.sin(heading)
    dx, dy = c * step.x - s * step.y, s * step.x + c * step.y
    F = np.array([[1.0, 0.0, -dy], [0.0, 1.0, dx], [0.0, 0.0, 1.0]])
    middle = heading + 0.5 * step.theta
    c, s = math.cos(middle), math.sin(middle)
    G = np.array([[c, -s, -0.5 * dy], [s, c, 0.5 * dx], [0.0, 0.0, 1.0]])
    moved: NDArray[np.float64] = F @ covariance @ F.T + G @ spread @ G.T
    return moved
