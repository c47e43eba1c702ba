"""Poses and motions in the plane."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from roboyard.geometry.se3 import SE3


@overload
def wrap_angle(angle: float) -> float: ...
@overload
def wrap_angle(angle: NDArray[np.float64]) -> NDArray[np.float64]: ...
def wrap_angle(angle: float | NDArray[np.float64]) -> float | NDArray[np.float64]:
    """The same angle in (-π, π] [rad]; numbers or arrays."""
    if isinstance(angle, np.ndarray):
        wrapped: NDArray[np.float64] = math.pi - np.mod(math.pi - angle, math.tau)
        return wrapped
    return math.pi - (math.pi - angle) % math.tau


@dataclass(frozen=True, slots=True)
class SE2:
    """A planar rigid motion: position [m] and heading [rad, wrapped to (-π, π]].

    ``T_a_b`` maps coordinates in b to a; ``T_a_b @ T_b_c`` is ``T_a_c``; ``T_a_b @ points`` maps points (..., 2).
    """

    x: float = 0.0
    y: float = 0.0
    theta: float = 0.0

    def __post_init__(self) -> None:
        if not -math.pi < self.theta <= math.pi:
            object.__setattr__(self, "theta", wrap_angle(self.theta))

    @classmethod
    def identity(cls) -> SE2:
        """No motion."""
        return cls()

    @classmethod
    def exp(cls, twist: ArrayLike) -> SE2:
        """Motion after unit time at the constant body twist (vx, vy, ω)."""
        vx, vy, w = (float(value) for value in np.asarray(twist, dtype=float))
        a, b = _left(w)
        return cls(a * vx - b * vy, b * vx + a * vy, w)

    def log(self) -> NDArray[np.float64]:
        """The twist (vx, vy, ω) whose ``exp`` this is."""
        a, b = _left(self.theta)
        scale = 1.0 / (a * a + b * b)
        return np.array([scale * (a * self.x + b * self.y), scale * (-b * self.x + a * self.y), self.theta])

    def inverse(self) -> SE2:
        """``T_b_a`` of ``T_a_b``."""
        c, s = math.cos(self.theta), math.sin(self.theta)
        return SE2(-c * self.x - s * self.y, s * self.x - c * self.y, -self.theta)

    @overload
    def __matmul__(self, other: SE2) -> SE2: ...
    @overload
    def __matmul__(self, other: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def __matmul__(self, other: SE2 | NDArray[np.float64]) -> SE2 | NDArray[np.float64]:
        c, s = math.cos(self.theta), math.sin(self.theta)
        if isinstance(other, SE2):
            return SE2(
                self.x + c * other.x - s * other.y, self.y + s * other.x + c * other.y, self.theta + other.theta
            )
        points = np.asarray(other, dtype=float)
        x, y = points[..., 0], points[..., 1]
        return np.stack([self.x + c * x - s * y, self.y + s * x + c * y], axis=-1)

    def interpolate(self, other: SE2, s: float) -> SE2:
        """The pose at fraction ``s`` of the constant-twist motion from here to ``other``."""
        return self @ SE2.exp(s * (self.inverse() @ other).log())

    def matrix(self) -> NDArray[np.float64]:
        """Homogeneous (3, 3)."""
        c, s = math.cos(self.theta), math.sin(self.theta)
        return np.array([[c, -s, self.x], [s, c, self.y], [0.0, 0.0, 1.0]])

    def distance(self, other: SE2) -> float:
        """Distance between the positions [m]."""
        return math.hypot(other.x - self.x, other.y - self.y)

    def almost_equal(self, other: SE2, atol: float = 1e-9) -> bool:
        """Same position and heading within ``atol`` [m, rad]."""
        return self.distance(other) <= atol and abs(wrap_angle(self.theta - other.theta)) <= atol

    def to_se3(self, z: float = 0.0) -> SE3:
        """The same pose in space at height ``z``."""
        from roboyard.geometry.se3 import SE3

        return SE3.from_xyz_rpy((self.x, self.y, z), (0.0, 0.0, self.theta))

    @classmethod
    def from_se3(cls, pose: SE3) -> SE2:
        """Position and yaw of a pose in space."""
        return cls(pose.x, pose.y, pose.yaw)


def _left(w: float) -> tuple[float, float]:
    """sin(w)/w and (1 - cos(w))/w, exact near zero."""
    if abs(w) < 1e-4:
        return 1.0 - w * w / 6.0, w / 2.0 - w**3 / 24.0
    return math.sin(w) / w, (1.0 - math.cos(w)) / w
