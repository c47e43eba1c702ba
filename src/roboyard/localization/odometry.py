"""Wheel odometry: where the base is by its wheels' angles, and how unsure that is.

Integration is exact for constant curvature between two readings: the way d and turn θ of a step move the base by
d·(sin θ/θ, (1 - cos θ)/θ), turn θ (Siegwart, Nourbakhsh, Scaramuzza, Introduction to Autonomous Mobile Robots, 5.2.4,
which is the first-order form of the same).  The covariance follows the step's exact Jacobians.

What makes real odometry drift stands in two places: the encoders' errors (resolution, miscounts, low rate) in the
hardware, the drive's (radius, unequal radii, slip) in ``DifferentialDrive``, where calibration corrects them.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.config import Config, parameter
from roboyard.control.kinematics import STANDSTILL, DifferentialDrive, PlanarTwist
from roboyard.geometry import SE2

VELOCITY_FLOOR = 1e-6
"""Added to the variance of each velocity [(m/s)², (rad/s)²], so that filters can invert it at standstill."""


class OdometryNoise(Config):
    """Growth of uncertainty; variances add per metre or radian travelled.

    Defaults are of the order of a small indoor base on hard floor: 2 cm after 1 m, 3° after a full turn on the spot.
    """

    way_per_way: float = parameter(
        4e-4, unit="m²/m", low=0.0, high=1.0, key="way_variance", runtime=True,
        doc="Variance of the distance per distance traveled.",
    )  # fmt: skip
    turn_per_way: float = parameter(
        1e-4, unit="rad²/m", low=0.0, high=1.0, key="turn_variance_per_way", runtime=True,
        doc="Variance of the heading per distance traveled.",
    )  # fmt: skip
    turn_per_turn: float = parameter(
        5e-4, unit="rad²/rad", low=0.0, high=1.0, key="turn_variance", runtime=True,
        doc="Variance of the heading per angle turned.",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class OdometryEstimate:
    """What the wheels tell.

    Attributes:
        time_ns: Moment of the reading [ns].
        T_odom_base: Pose of the base since start.
        twist: Mean velocity since the reading before, in base axes.
        covariance: (3, 3) of x, y [m²] and heading [rad²], in odom axes.
        twist_covariance: (3, 3) of vx, vy, wz, in base axes.
    """

    time_ns: int
    T_odom_base: SE2
    twist: PlanarTwist
    covariance: NDArray[np.float64]
    twist_covariance: NDArray[np.float64]


class WheelOdometry:
    """Integrates wheel angles of a two-sided drive.

    Args:
        drive: Geometry, slip factor and radius scales.
        noise: Growth of uncertainty.
        max_wheel_speed: A pair of readings that would need faster wheels [rad/s] is a miscount or a reset of the
            encoder: its step is left out.
    """

    def __init__(
        self, drive: DifferentialDrive, noise: OdometryNoise | None = None, max_wheel_speed: float = math.inf
    ) -> None:
        self.drive = drive
        self.noise = noise or OdometryNoise()
        self.max_wheel_speed = max_wheel_speed
        self.refused = 0
        self._last: tuple[int, float, float] | None = None
        self._pose = SE2.identity()
        self._covariance = _Covariance()

    def update(self, time_ns: int, left: float, right: float) -> OdometryEstimate | None:
        """Take the angles of the left and right wheels [rad], not wrapped.

        Returns:
            The new estimate; None for the first reading, which only sets the start, and for readings that are refused
            (counted in ``refused``): not finite, not later than the one before, or too far from it.
        """
        if not (math.isfinite(left) and math.isfinite(right)):
            self.refused += 1
            return None
        last, self._last = self._last, (time_ns, left, right)
        if last is None:
            return None
        dt = (time_ns - last[0]) * 1e-9
        step_left, step_right = left - last[1], right - last[2]
        if dt <= 0.0 or max(abs(step_left), abs(step_right)) > self.max_wheel_speed * dt:
            self.refused += 1
            return None
        return self._advance(time_ns, dt, *self.drive.travel(step_left, step_right))

    def reset(self, T_odom_base: SE2 | None = None) -> None:
        """Be at ``T_odom_base`` (the origin by default), surely."""
        self._pose = SE2.identity() if T_odom_base is None else T_odom_base
        self._covariance = _Covariance()

    @property
    def T_odom_base(self) -> SE2:
        """Pose of the base at the last reading."""
        return self._pose

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        pose = self._pose
        return {
            "last": self._last,
            "pose": (pose.x, pose.y, pose.theta),
            "covariance": astuple(self._covariance),
            "refused": self.refused,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._last = None if state["last"] is None else tuple(state["last"])
        self._pose = SE2(*state["pose"])
        self._covariance = _Covariance(*state["covariance"])
        self.refused = state["refused"]

    # -- one step ------------------------------------------------------------------------------------------------------
    def _advance(self, time_ns: int, dt: float, way: float, turn: float) -> OdometryEstimate:
        axle_x, heading = self.drive.axle_x, self._pose.theta
        step = arc(way, turn)
        if axle_x:  # the arc is driven by the axle; the base frame hangs on it rigidly
            step = SE2(axle_x, 0.0, 0.0) @ step @ SE2(-axle_x, 0.0, 0.0)
        var_way, var_turn = self._step_variances(way, turn)
        x_way, y_way, x_turn, y_turn = _arc_slopes(way, turn)
        x_turn += axle_x * math.sin(turn)  # the axle's offset, turned by the step
        y_turn -= axle_x * math.cos(turn)
        c, s = math.cos(heading), math.sin(heading)
        self._covariance = (
            self._covariance.moved(c * step.x - s * step.y, s * step.x + c * step.y)
            .added(var_way, c * x_way - s * y_way, s * x_way + c * y_way, 0.0)
            .added(var_turn, c * x_turn - s * y_turn, s * x_turn + c * y_turn, 1.0)
        )
        self._pose = self._pose @ step
        moving = way != 0.0 or turn != 0.0
        twist = PlanarTwist(way / dt, -turn / dt * axle_x, turn / dt) if moving else STANDSTILL
        rate, floor = 1.0 / (dt * dt), VELOCITY_FLOOR
        across = -axle_x * var_turn * rate
        twist_covariance = np.array(
            [
                [var_way * rate + floor, 0.0, 0.0],
                [0.0, -axle_x * across + floor, across],
                [0.0, across, var_turn * rate + floor],
            ]
        )
        return OdometryEstimate(time_ns, self._pose, twist, self._covariance.matrix(), twist_covariance)

    def _step_variances(self, way: float, turn: float) -> tuple[float, float]:
        noise = self.noise
        return (
            noise.way_per_way * abs(way),
            noise.turn_per_way * abs(way) + noise.turn_per_turn * abs(turn),
        )


def arc(way: float, turn: float) -> SE2:
    """Motion along an arc of length ``way`` [m] over the angle ``turn`` [rad], in the frame at its start."""
    half = 0.5 * turn
    chord = way * _sinc(half)
    return SE2(chord * math.cos(half), chord * math.sin(half), turn)


def arc_jacobian(way: float, turn: float) -> NDArray[np.float64]:
    """(3, 2) derivative of ``arc``'s x, y, heading by way and turn."""
    x_way, y_way, x_turn, y_turn = _arc_slopes(way, turn)
    return np.array([[x_way, x_turn], [y_way, y_turn], [0.0, 1.0]])


def _arc_slopes(way: float, turn: float) -> tuple[float, float, float, float]:
    """Derivatives of ``arc``: x by way, y by way, x by turn, y by turn."""
    half = 0.5 * turn
    sinc, slope = _sinc(half), _sinc_slope(half)
    c, s = math.cos(half), math.sin(half)
    return sinc * c, sinc * s, 0.5 * way * (slope * c - sinc * s), 0.5 * way * (slope * s + sinc * c)


@dataclass(frozen=True, slots=True)
class _Covariance:
    """Symmetric covariance of x, y and heading t.  In numbers, for odometry runs at every reading."""

    xx: float = 0.0
    xy: float = 0.0
    xt: float = 0.0
    yy: float = 0.0
    yt: float = 0.0
    tt: float = 0.0

    def moved(self, dx: float, dy: float) -> _Covariance:
        """F P Fᵀ for a motion by (dx, dy) in the axes of x and y, F = [[1, 0, -dy], [0, 1, dx], [0, 0, 1]]."""
        return _Covariance(
            self.xx - 2.0 * dy * self.xt + dy * dy * self.tt,
            self.xy + dx * self.xt - dy * self.yt - dx * dy * self.tt,
            self.xt - dy * self.tt,
            self.yy + 2.0 * dx * self.yt + dx * dx * self.tt,
            self.yt + dx * self.tt,
            self.tt,
        )

    def added(self, variance: float, gx: float, gy: float, gt: float) -> _Covariance:
        """P + variance · g gᵀ."""
        return _Covariance(
            self.xx + variance * gx * gx,
            self.xy + variance * gx * gy,
            self.xt + variance * gx * gt,
            self.yy + variance * gy * gy,
            self.yt + variance * gy * gt,
            self.tt + variance * gt * gt,
        )

    def matrix(self) -> NDArray[np.float64]:
        """(3, 3)."""
        return np.array([[self.xx, self.xy, self.xt], [self.xy, self.yy, self.yt], [self.xt, self.yt, self.tt]])


def _sinc(x: float) -> float:
    """sin x / x."""
    return math.sin(x) / x if abs(x) > 1e-6 else 1.0 - x * x / 6.0


def _sinc_slope(x: float) -> float:
    """Derivative of sin x / x."""
    return (math.cos(x) - math.sin(x) / x) / x if abs(x) > 1e-3 else -x / 3.0 + x**3 / 30.0
