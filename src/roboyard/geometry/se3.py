"""Poses and rigid motions in space."""

from __future__ import annotations

import math
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.geometry import quaternions

Array = NDArray[np.float64]
Quaternion = tuple[float, float, float, float]
Vector = tuple[float, float, float]


class SE3:
    """A rigid motion: unit quaternion (w, x, y, z; w ≥ 0) and translation [m].  Immutable.

    ``T_a_b`` maps coordinates in b to a; ``T_a_b @ T_b_c`` is ``T_a_c``; ``T_a_b @ points`` maps points (..., 3).
    Twists are ordered linear, then angular.  Numbers are kept as Python floats: composing two poses is then several
    times faster than with small arrays.

    Args:
        rotation: Quaternion (w, x, y, z); normalised here.
        translation: (3,) [m].

    Raises:
        ValueError: a number is not finite, or the quaternion is zero.
    """

    __slots__ = ("_q", "_t")
    _q: Quaternion
    _t: Vector

    def __init__(
        self, rotation: ArrayLike = (1.0, 0.0, 0.0, 0.0), translation: ArrayLike = (0.0, 0.0, 0.0)
    ) -> None:
        w, x, y, z = (float(value) for value in np.asarray(rotation, dtype=float))
        tx, ty, tz = (float(value) for value in np.asarray(translation, dtype=float))
        norm = math.sqrt(w * w + x * x + y * y + z * z)
        if not (math.isfinite(norm) and math.isfinite(tx + ty + tz)):
            raise ValueError("a pose of numbers that are not finite")
        if norm < 1e-12:
            raise ValueError("a rotation by the zero quaternion")
        _set(self, _normal(w, x, y, z), (tx, ty, tz))

    # -- making --------------------------------------------------------------------------------------------------------
    @classmethod
    def identity(cls) -> SE3:
        """No motion."""
        return _IDENTITY

    @classmethod
    def from_xyz_rpy(cls, xyz: ArrayLike = (0.0, 0.0, 0.0), rpy: ArrayLike = (0.0, 0.0, 0.0)) -> SE3:
        """From a position [m] and fixed-axis roll, pitch, yaw [rad], as URDF and SDF write poses."""
        return cls(quaternions.from_rpy(rpy), xyz)

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> SE3:
        """From a homogeneous matrix (4, 4)."""
        m = np.asarray(matrix, dtype=float)
        return cls(quaternions.from_matrix(m[:3, :3]), m[:3, 3])

    @classmethod
    def from_rotation_matrix(cls, rotation: ArrayLike, translation: ArrayLike = (0.0, 0.0, 0.0)) -> SE3:
        """From a rotation matrix (3, 3) and a translation."""
        return cls(quaternions.from_matrix(rotation), translation)

    @classmethod
    def exp(cls, twist: ArrayLike) -> SE3:
        """Motion after unit time at the constant body twist (vx, vy, vz, ωx, ωy, ωz)."""
        xi = np.asarray(twist, dtype=float)
        v, w = xi[:3], xi[3:]
        angle = float(np.linalg.norm(w))
        half = 0.5 * angle
        k = 0.5 - angle * angle / 48.0 if angle < 1e-4 else math.sin(half) / angle
        a, b = _left_jacobian(angle)
        across = np.cross(w, v)
        return cls((math.cos(half), *(k * w)), v + a * across + b * np.cross(w, across))

    def log(self) -> Array:
        """The twist whose ``exp`` this is, with a rotation of at most π."""
        qw, *rest = self._q
        u = np.array(rest)
        sine = float(np.linalg.norm(u))
        angle = 2.0 * math.atan2(sine, qw)
        w = u * (2.0 + angle * angle / 12.0 if sine < 1e-5 else angle / sine)
        t = np.array(self._t)
        c = 1.0 / 12.0 + angle * angle / 720.0
        if angle > 1e-3:
            c = (1.0 - 0.5 * angle * math.cos(0.5 * angle) / math.sin(0.5 * angle)) / (angle * angle)
        across = np.cross(w, t)
        return np.concatenate([t - 0.5 * across + c * np.cross(w, across), w])

    # -- reading -------------------------------------------------------------------------------------------------------
    @property
    def rotation(self) -> Array:
        """Unit quaternion (4,), w ≥ 0."""
        return np.array(self._q)

    @property
    def translation(self) -> Array:
        """(3,) [m]."""
        return np.array(self._t)

    @property
    def quaternion(self) -> Quaternion:
        """(w, x, y, z) as plain numbers."""
        return self._q

    @property
    def xyz(self) -> Vector:
        """Position as plain numbers [m]."""
        return self._t

    @property
    def x(self) -> float:
        """[m]."""
        return self._t[0]

    @property
    def y(self) -> float:
        """[m]."""
        return self._t[1]

    @property
    def z(self) -> float:
        """[m]."""
        return self._t[2]

    @property
    def rpy(self) -> Vector:
        """Fixed-axis roll, pitch, yaw [rad]."""
        roll, pitch, yaw = quaternions.to_rpy(self._q)
        return float(roll), float(pitch), float(yaw)

    @property
    def yaw(self) -> float:
        """Heading [rad]."""
        w, x, y, z = self._q
        return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))

    def rotation_matrix(self) -> Array:
        """(3, 3)."""
        return quaternions.to_matrix(self._q)

    def matrix(self) -> Array:
        """Homogeneous (4, 4)."""
        m = np.eye(4)
        m[:3, :3] = self.rotation_matrix()
        m[:3, 3] = self._t
        return m

    def adjoint(self) -> Array:
        """(6, 6): maps twists (linear, angular) in b to a for ``T_a_b``."""
        r = self.rotation_matrix()
        tx, ty, tz = self._t
        skew = np.array([[0.0, -tz, ty], [tz, 0.0, -tx], [-ty, tx, 0.0]])
        return np.block([[r, skew @ r], [np.zeros((3, 3)), r]])

    # -- group ---------------------------------------------------------------------------------------------------------
    def inverse(self) -> SE3:
        """``T_b_a`` of ``T_a_b``."""
        w, x, y, z = self._q
        q = (w, -x, -y, -z)
        tx, ty, tz = _turn(q, self._t)
        return _make(q, (-tx, -ty, -tz))

    @overload
    def __matmul__(self, other: SE3) -> SE3: ...
    @overload
    def __matmul__(self, other: Array) -> Array: ...
    def __matmul__(self, other: SE3 | Array) -> SE3 | Array:
        if not isinstance(other, SE3):
            return quaternions.rotate(self._q, other) + np.array(self._t)
        aw, ax, ay, az = self._q
        bw, bx, by, bz = other._q
        tx, ty, tz = _turn(self._q, other._t)
        sx, sy, sz = self._t
        q = _normal(
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        )
        return _make(q, (sx + tx, sy + ty, sz + tz))

    def interpolate(self, other: SE3, s: float) -> SE3:
        """At fraction ``s``: position on the straight line, rotation by slerp (as tf2 does)."""
        if s <= 0.0:
            return self
        if s >= 1.0:
            return other
        a, b = self._t, other._t
        t = tuple(p + s * (q - p) for p, q in zip(a, b, strict=True))
        return SE3(quaternions.slerp(self._q, other._q, s), t)

    # -- comparing -----------------------------------------------------------------------------------------------------
    def almost_equal(self, other: SE3, atol: float = 1e-9) -> bool:
        """Same translation [m] and rotation angle [rad] within ``atol``."""
        d = self.inverse() @ other
        angle = 2.0 * math.atan2(math.sqrt(sum(v * v for v in d._q[1:])), abs(d._q[0]))
        return math.dist(self._t, other._t) <= atol and angle <= atol

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SE3) and self._q == other._q and self._t == other._t

    def __hash__(self) -> int:
        return hash((self._q, self._t))

    def __repr__(self) -> str:
        return f"SE3(rotation={self._q}, translation={self._t})"

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("poses do not change: make a new one")

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (self._q, self._t)


_set_q = SE3.__dict__["_q"].__set__
_set_t = SE3.__dict__["_t"].__set__


def _set(pose: SE3, q: Quaternion, t: Vector) -> None:
    _set_q(pose, q)
    _set_t(pose, t)


def _make(q: Quaternion, t: Vector) -> SE3:
    """A pose of numbers known to be good."""
    pose = SE3.__new__(SE3)
    _set_q(pose, q)
    _set_t(pose, t)
    return pose


def _normal(w: float, x: float, y: float, z: float) -> Quaternion:
    n = math.sqrt(w * w + x * x + y * y + z * z)
    if abs(n - 1.0) < 1e-15:
        n = 1.0
    if w < 0.0:
        n = -n
    return w / n, x / n, y / n, z / n


def _turn(q: Quaternion, v: Vector) -> Vector:
    w, x, y, z = q
    vx, vy, vz = v
    tx, ty, tz = 2.0 * (y * vz - z * vy), 2.0 * (z * vx - x * vz), 2.0 * (x * vy - y * vx)
    return (
        vx + w * tx + y * tz - z * ty,
        vy + w * ty + z * tx - x * tz,
        vz + w * tz + x * ty - y * tx,
    )


def _left_jacobian(angle: float) -> tuple[float, float]:
    """(1 - cos a)/a² and (a - sin a)/a³, exact near zero."""
    if angle < 1e-3:
        a2 = angle * angle
        return 0.5 - a2 / 24.0, 1.0 / 6.0 - a2 / 120.0
    return (1.0 - math.cos(angle)) / angle**2, (angle - math.sin(angle)) / angle**3


_IDENTITY = _make((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
