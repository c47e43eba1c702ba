"""Rigid motions in the plane (SE(2)), and angles on the circle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.geometry.arrays import as_points
from roboyard.geometry.se3 import SE3


@overload
def wrap_angle(angle: float) -> float: ...


@overload
def wrap_angle(angle: ArrayLike) -> NDArray[np.float64]: ...


def wrap_angle(angle: Any) -> float | NDArray[np.float64]:
    """Wrap an angle to (-pi, pi].

    Args:
        angle: One angle [rad], or an array of any shape.

    Returns:
        A float for a float, else an array of the same shape; exact, without rounding drift over many turns.
    """
    if isinstance(angle, float | int):
        wrapped = math.remainder(angle, math.tau)
        return math.pi if wrapped == -math.pi else wrapped
    array = np.fmod(np.asarray(angle, dtype=np.float64), math.tau)
    array = np.where(array > math.pi, array - math.tau, array)
    wrapped_array: NDArray[np.float64] = np.where(array <= -math.pi, array + math.tau, array)
    return wrapped_array


def angle_between(start: float, end: float) -> float:
    """Return the shortest rotation from `start` to `end` [rad], in (-pi, pi]."""
    return wrap_angle(end - start)


_SMALL_ANGLE = 1e-4  # below it the closed forms lose digits and a series is exact to rounding


@dataclass(frozen=True, slots=True)
class SE2:
    """Pose or motion in the plane: ``T_a_b`` maps points of frame b to frame a.

    Attributes:
        x: Position of b in a [m].
        y: Position of b in a [m].
        theta: Direction of b's x axis in a [rad], in (-pi, pi].
    """

    x: float = 0.0
    y: float = 0.0
    theta: float = 0.0

    __array_ufunc__ = None  # array @ SE2 is an error, not an elementwise product

    def __post_init__(self) -> None:
        try:
            x, y, theta = float(self.x), float(self.y), float(self.theta)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"SE2 requires numbers, got ({self.x!r}, {self.y!r}, {self.theta!r})", valid="meters and radians"
            ) from error
        if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(theta)):
            raise InputError(f"SE2 requires finite numbers, got ({x}, {y}, {theta})", valid="meters and radians")
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "y", y)
        object.__setattr__(self, "theta", wrap_angle(theta))

    @classmethod
    def identity(cls) -> SE2:
        """Return the identity."""
        return _IDENTITY

    @classmethod
    def from_matrix(cls, T: ArrayLike) -> SE2:
        """Convert a homogeneous matrix (3, 3).

        Raises:
            InputError: It is not a homogeneous matrix.
        """
        T = np.asarray(T, dtype=np.float64)
        if T.shape != (3, 3) or not np.allclose(T[2], [0.0, 0.0, 1.0], atol=1e-9):
            raise InputError(f"invalid homogeneous matrix of shape {T.shape}", valid="(3, 3) with last row 0 0 1")
        R = T[:2, :2]
        if not np.allclose(R @ R.T, np.eye(2), atol=1e-4) or np.linalg.det(R) < 0.0:
            raise InputError("the matrix is not a rotation", valid="orthonormal with determinant +1")
        return cls(T[0, 2], T[1, 2], math.atan2(T[1, 0] - T[0, 1], T[0, 0] + T[1, 1]))

    @classmethod
    def from_se3(cls, pose: SE3) -> SE2:
        """Return the planar part of a pose: x, y and yaw."""
        return cls(pose.x, pose.y, pose.yaw)

    @classmethod
    def from_tuple(cls, values: Sequence[float]) -> SE2:
        """Return the pose of x, y [m] and theta [rad]; the inverse of `to_tuple`.

        Raises:
            InputError: There are not three finite numbers.
        """
        if len(values) != 3:
            raise InputError(f"a pose of {len(values)} numbers", valid="x, y [m], theta [rad]")
        return cls(*values)

    def to_tuple(self) -> tuple[float, float, float]:
        """Return x, y [m] and theta [rad] as plain data, for saved states."""
        return self.x, self.y, self.theta

    @classmethod
    def exp(cls, twist: ArrayLike) -> SE2:
        """Return the motion of one second at constant ``(vx, vy, omega)`` in the moving frame [m, m, rad]: an arc."""
        vx, vy, omega = (float(value) for value in np.asarray(twist, dtype=np.float64))
        if abs(omega) < _SMALL_ANGLE:
            a, b = 1.0 - omega * omega / 6.0, omega * (0.5 - omega * omega / 24.0)
        else:
            a, b = math.sin(omega) / omega, (1.0 - math.cos(omega)) / omega
        return cls(a * vx - b * vy, b * vx + a * vy, omega)

    def log(self) -> NDArray[np.float64]:
        """Return the constant twist ``(vx, vy, omega)`` of this motion in one second; ``exp(log(T)) == T``."""
        half = 0.5 * self.theta
        a = 1.0 - half * half / 3.0 if abs(half) < _SMALL_ANGLE else half / math.tan(half)
        return np.array([a * self.x + half * self.y, a * self.y - half * self.x, self.theta])

    def inverse(self) -> SE2:
        """Return ``T_b_a`` of ``T_a_b``."""
        c, s = math.cos(self.theta), math.sin(self.theta)
        return SE2(-c * self.x - s * self.y, s * self.x - c * self.y, -self.theta)

    @overload
    def __matmul__(self, other: SE2) -> SE2: ...
    @overload
    def __matmul__(self, other: ArrayLike) -> NDArray[np.float64]: ...
    def __matmul__(self, other: Any) -> SE2 | NDArray[np.float64]:
        """Compute ``T_a_b @ T_b_c = T_a_c``, or ``T_a_b @ points_b = points_a`` with points ``(..., 2)`` [m]."""
        c, s = math.cos(self.theta), math.sin(self.theta)
        if isinstance(other, SE2):
            return SE2(self.x + c * other.x - s * other.y, self.y + s * other.x + c * other.y, self.theta + other.theta)
        points = as_points(other, 2)
        px, py = points[..., 0], points[..., 1]
        return np.stack([self.x + c * px - s * py, self.y + s * px + c * py], axis=-1)

    def interpolate(self, other: SE2, s: float) -> SE2:
        """Interpolate along a straight line and the shortest rotation, from here (s = 0) to `other` (s = 1)."""
        delta_theta = wrap_angle(other.theta - self.theta)
        return SE2(
            (1.0 - s) * self.x + s * other.x, (1.0 - s) * self.y + s * other.y,
            other.theta if s == 1.0 else self.theta + s * delta_theta,
        )  # fmt: skip

    def adjoint(self) -> NDArray[np.float64]:
        """Return the adjoint (3, 3): ``T exp(xi) T^-1 = exp(adjoint xi)``; transforms twists (vx, vy, omega) from b to
        a.
        """
        c, s = math.cos(self.theta), math.sin(self.theta)
        return np.array([[c, -s, self.y], [s, c, -self.x], [0.0, 0.0, 1.0]])

    def matrix(self) -> NDArray[np.float64]:
        """Return the homogeneous matrix (3, 3)."""
        c, s = math.cos(self.theta), math.sin(self.theta)
        return np.array([[c, -s, self.x], [s, c, self.y], [0.0, 0.0, 1.0]])

    def to_se3(self, z: float = 0.0) -> SE3:
        """Return the pose in space at height `z` [m]."""
        half = 0.5 * self.theta
        return SE3((math.cos(half), 0.0, 0.0, math.sin(half)), (self.x, self.y, z))

    @property
    def xy(self) -> NDArray[np.float64]:
        """Position (2,) [m]."""
        return np.array([self.x, self.y])

    def distance(self, other: SE2) -> float:
        """Return the distance between the two positions [m]."""
        return math.hypot(other.x - self.x, other.y - self.y)

    def almost_equal(self, other: SE2, atol: float = 1e-9) -> bool:
        """Return whether positions [m] and directions [rad] are equal within `atol`."""
        return (
            abs(self.x - other.x) <= atol
            and abs(self.y - other.y) <= atol
            and abs(wrap_angle(self.theta - other.theta)) <= atol
        )


_IDENTITY = SE2()
