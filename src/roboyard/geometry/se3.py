"""Rigid motions in space (SE(3))."""

from __future__ import annotations

import math
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.geometry import quaternions
from roboyard.geometry.arrays import as_floats, as_points


def _normalize_quaternion(w: float, x: float, y: float, z: float) -> tuple[float, float, float, float]:
    """Normalize to length 1 and ``w >= 0``; within rounding (12 half units) values are kept, so it is idempotent."""
    square = w * w + x * x + y * y + z * z
    if not -1.5e-15 < square - 1.0 < 1.5e-15:
        length = math.sqrt(square)
        w, x, y, z = w / length, x / length, y / length, z / length
    if w < 0.0 or (w == 0.0 and (x < 0.0 or (x == 0.0 and (y < 0.0 or (y == 0.0 and z < 0.0))))):
        return -w + 0.0, -x + 0.0, -y + 0.0, -z + 0.0
    return w + 0.0, x + 0.0, y + 0.0, z + 0.0


def _quaternion_from_rpy(roll: float, pitch: float, yaw: float) -> tuple[float, float, float, float]:
    """Convert rotations about fixed axes [rad] to a quaternion w, x, y, z."""
    cr, sr = math.cos(roll / 2), math.sin(roll / 2)
    cp, sp = math.cos(pitch / 2), math.sin(pitch / 2)
    cy, sy = math.cos(yaw / 2), math.sin(yaw / 2)
    return (
        cr * cp * cy + sr * sp * sy,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
    )


def _rotate_vector(
    w: float, x: float, y: float, z: float, vx: float, vy: float, vz: float
) -> tuple[float, float, float]:
    """Rotate the vector v by the quaternion."""
    tx, ty, tz = 2.0 * (y * vz - z * vy), 2.0 * (z * vx - x * vz), 2.0 * (x * vy - y * vx)
    return (
        vx + w * tx + y * tz - z * ty,
        vy + w * ty + z * tx - x * tz,
        vz + w * tz + x * ty - y * tx,
    )


_SMALL_ANGLE = 1e-3  # below this angle [rad] the closed forms lose digits; the series are exact to rounding there


class SE3:
    """Pose or motion in space, immutable: ``T_a_b`` maps points of frame b to frame a.

    Args:
        rotation: Quaternion (4,) w, x, y, z; it is normalized to ``w >= 0``.
        translation: Position of b in a (3,) [m].

    Raises:
        InputError: The quaternion is zero, or a number is not finite.
    """

    # Plain floats inside: composing two poses takes 2 µs instead of 20 with small arrays.
    __slots__ = ("_arrays", "_q", "_t")

    _q: tuple[float, float, float, float]
    _t: tuple[float, float, float]
    _arrays: tuple[NDArray[np.float64], NDArray[np.float64]] | None

    __array_ufunc__ = None  # array @ SE3 is an error, not an elementwise product

    def __init__(self, rotation: ArrayLike = (1.0, 0.0, 0.0, 0.0), translation: ArrayLike = (0.0, 0.0, 0.0)) -> None:
        w, x, y, z = as_floats(rotation, 4, "rotation")
        tx, ty, tz = as_floats(translation, 3, "translation")
        length = math.sqrt(w * w + x * x + y * y + z * z)
        if not (1e-150 < length < math.inf and math.isfinite(tx) and math.isfinite(ty) and math.isfinite(tz)):
            raise InputError(
                f"invalid pose with rotation {(w, x, y, z)} and translation {(tx, ty, tz)}",
                valid="a quaternion w x y z of length 1, meters",
            )
        if not -1e-9 <= length - 1.0 <= 1e-9:  # also avoids overflow in squares of very large lengths
            w, x, y, z = w / length, x / length, y / length, z / length
        _set_q(self, _normalize_quaternion(w, x, y, z))
        _set_t(self, (tx, ty, tz))
        _set_arrays(self, None)

    # -- constructors
    # ------------------------------------------------------------------------------------------------------
    @classmethod
    def identity(cls) -> SE3:
        """Return the identity."""
        return _IDENTITY

    @classmethod
    def from_xyz_rpy(cls, xyz: ArrayLike = (0.0, 0.0, 0.0), rpy: ArrayLike = (0.0, 0.0, 0.0)) -> SE3:
        """Convert a position [m] and roll, pitch, yaw [rad] about fixed axes, as in URDF and SDF."""
        roll, pitch, yaw = as_floats(rpy, 3, "rpy")
        return cls(_quaternion_from_rpy(roll, pitch, yaw), xyz)

    @classmethod
    def from_matrix(cls, T: ArrayLike) -> SE3:
        """Convert a homogeneous matrix (4, 4).

        Raises:
            InputError: It is not a homogeneous matrix.
        """
        T = np.asarray(T, dtype=np.float64)
        if T.shape != (4, 4) or not np.allclose(T[3], [0.0, 0.0, 0.0, 1.0], atol=1e-9):
            raise InputError(f"invalid homogeneous matrix of shape {T.shape}", valid="(4, 4) with last row 0 0 0 1")
        return cls.from_rotation_matrix(T[:3, :3], T[:3, 3])

    @classmethod
    def from_rotation_matrix(cls, R: ArrayLike, translation: ArrayLike = (0.0, 0.0, 0.0)) -> SE3:
        """Convert a rotation matrix (3, 3) and a position (3,) [m].

        Raises:
            InputError: The matrix is not a rotation.
        """
        return cls(quaternions.from_matrix(R), translation)

    @classmethod
    def from_rows(cls, rows: ArrayLike) -> list[SE3]:
        """Convert rows (n, 7) to poses: quaternion w, x, y, z and position [m]; all rows are checked at once.

        Raises:
            InputError: The shape is wrong, a quaternion does not have length 1, or a number is not finite.
        """
        values = np.asarray(rows, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != 7:
            raise InputError(f"poses have the shape {values.shape}", valid="(n, 7)")
        norm_error = np.abs(np.einsum("ni,ni->n", values[:, :4], values[:, :4]) - 1.0)
        if not (norm_error < 1e-6).all() or not np.isfinite(values).all():
            raise InputError(
                "a pose has an invalid rotation or position", valid="quaternions w x y z of length 1, meters"
            )
        return [_make(_normalize_quaternion(w, x, y, z), (px, py, pz)) for w, x, y, z, px, py, pz in values.tolist()]

    @classmethod
    def exp(cls, twist: ArrayLike) -> SE3:
        """Return the motion of one second at the constant twist (6,): linear [m], then angular [rad], in the moving
        frame.
        """
        xi = np.array(as_floats(twist, 6, "twist"))
        v, omega = xi[:3], xi[3:]
        angle = math.sqrt(float(omega @ omega))
        if angle < _SMALL_ANGLE:
            a, b = 0.5 - angle**2 / 24.0, 1.0 / 6.0 - angle**2 / 120.0
        else:
            a, b = (1.0 - math.cos(angle)) / angle**2, (angle - math.sin(angle)) / angle**3
        omega_cross_v = np.cross(omega, v)
        return cls(quaternions.from_rotation_vector(omega), v + a * omega_cross_v + b * np.cross(omega, omega_cross_v))

    # -- properties
    # -----------------------------------------------------------------------------------------------------
    @property
    def rotation(self) -> NDArray[np.float64]:
        """Unit quaternion (4,) w, x, y, z with ``w >= 0``; read-only."""
        return self._as_arrays()[0]

    @property
    def quaternion(self) -> tuple[float, float, float, float]:
        """Return the rotation as plain numbers w, x, y, z."""
        return self._q

    @property
    def translation(self) -> NDArray[np.float64]:
        """Position (3,) [m]; read-only."""
        return self._as_arrays()[1]

    xyz = translation

    @property
    def x(self) -> float:
        """Position along x [m]."""
        return self._t[0]

    @property
    def y(self) -> float:
        """Position along y [m]."""
        return self._t[1]

    @property
    def z(self) -> float:
        """Position along z [m]."""
        return self._t[2]

    @property
    def rpy(self) -> NDArray[np.float64]:
        """Return roll, pitch, yaw (3,) [rad] about fixed axes; yaw is 0 at a pitch of ±pi/2."""
        return quaternions.to_rpy(self._q)

    @property
    def yaw(self) -> float:
        """Direction of the x axis seen from above [rad]."""
        w, x, y, z = self._q
        return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))

    @property
    def angle(self) -> float:
        """Angle of the rotation [rad], in [0, pi]."""
        w, x, y, z = self._q
        return 2.0 * math.atan2(math.sqrt(x * x + y * y + z * z), w)

    def rotation_matrix(self) -> NDArray[np.float64]:
        """Return the rotation matrix (3, 3)."""
        w, x, y, z = self._q
        return np.array(
            (
                (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
                (2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)),
                (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)),
            )
        )

    def matrix(self) -> NDArray[np.float64]:
        """Return the homogeneous matrix (4, 4)."""
        T = np.eye(4)
        T[:3, :3] = self.rotation_matrix()
        T[:3, 3] = self._t
        return T

    # -- group operations
    # -------------------------------------------------------------------------------------------------------
    def inverse(self) -> SE3:
        """Return ``T_b_a`` of ``T_a_b``."""
        w, x, y, z = self._q
        px, py, pz = _rotate_vector(w, -x, -y, -z, *self._t)
        return _make(_normalize_quaternion(w, -x, -y, -z), (-px, -py, -pz))

    @overload
    def __matmul__(self, other: SE3) -> SE3: ...
    @overload
    def __matmul__(self, other: ArrayLike) -> NDArray[np.float64]: ...
    def __matmul__(self, other: Any) -> SE3 | NDArray[np.float64]:
        """Compute ``T_a_b @ T_b_c = T_a_c``, or ``T_a_b @ points_b = points_a`` with points ``(..., 3)`` [m]."""
        if isinstance(other, SE3):
            aw, ax, ay, az = self._q
            bw, bx, by, bz = other._q
            px, py, pz = _rotate_vector(aw, ax, ay, az, *other._t)
            tx, ty, tz = self._t
            q = _normalize_quaternion(
                aw * bw - ax * bx - ay * by - az * bz,
                aw * bx + ax * bw + ay * bz - az * by,
                aw * by - ax * bz + ay * bw + az * bx,
                aw * bz + ax * by - ay * bx + az * bw,
            )
            return _make(q, (tx + px, ty + py, tz + pz))
        transformed: NDArray[np.float64] = as_points(other, 3) @ self.rotation_matrix().T + self._t
        return transformed

    def log(self) -> NDArray[np.float64]:
        """Return the constant twist (6,), linear then angular, of this motion in one second; ``exp(log(T)) == T``."""
        omega = quaternions.to_rotation_vector(self._q)
        angle = math.sqrt(float(omega @ omega))
        if angle < _SMALL_ANGLE:
            c = 1.0 / 12.0 + angle**2 / 720.0
        else:
            half = 0.5 * angle
            c = (1.0 - half * math.cos(half) / math.sin(half)) / angle**2
        t = np.array(self._t)
        omega_cross_t = np.cross(omega, t)
        return np.concatenate([t - 0.5 * omega_cross_t + c * np.cross(omega, omega_cross_t), omega])

    def adjoint(self) -> NDArray[np.float64]:
        """Return the adjoint (6, 6): ``T exp(xi) T^-1 = exp(adjoint xi)``; transforms twists (linear, angular) from b
        to a.
        """
        R = self.rotation_matrix()
        x, y, z = self._t
        cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        Ad = np.zeros((6, 6))
        Ad[:3, :3] = Ad[3:, 3:] = R
        Ad[:3, 3:] = cross @ R
        return Ad

    def interpolate(self, other: SE3, s: float) -> SE3:
        """Interpolate linearly and by the shortest rotation, from here (s = 0) to `other` (s = 1), as tf2 does."""
        if s == 0.0:
            return self
        if s == 1.0:
            return other
        aw, ax, ay, az = self._q
        bw, bx, by, bz = other._q
        if aw * bw + ax * bx + ay * by + az * bz < 0.0:
            bw, bx, by, bz = -bw, -bx, -by, -bz
        chord = math.sqrt((bw - aw) ** 2 + (bx - ax) ** 2 + (by - ay) ** 2 + (bz - az) ** 2)
        angle = 2.0 * math.asin(min(1.0, 0.5 * chord))
        sine = math.sin(angle)
        u, v = (1.0 - s, s) if sine < 1e-9 else (math.sin((1.0 - s) * angle) / sine, math.sin(s * angle) / sine)
        (ux, uy, uz), (vx, vy, vz) = self._t, other._t
        q = _normalize_quaternion(u * aw + v * bw, u * ax + v * bx, u * ay + v * by, u * az + v * bz)
        return _make(q, (ux + s * (vx - ux), uy + s * (vy - uy), uz + s * (vz - uz)))

    # -- comparison ----------------------------------------------------------------------------------------------------
    def distance(self, other: SE3) -> float:
        """Return the distance between the two positions [m]."""
        return math.dist(self._t, other._t)

    def angle_to(self, other: SE3) -> float:
        """Return the angle between the two rotations [rad], in [0, pi]."""
        return (self.inverse() @ other).angle

    def almost_equal(self, other: SE3, atol: float = 1e-9) -> bool:
        """Return whether positions [m] (each axis) and rotations [rad] are equal within `atol`."""
        is_position_equal = all(abs(a - b) <= atol for a, b in zip(self._t, other._t, strict=True))
        return is_position_equal and self.angle_to(other) <= atol

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SE3):
            return NotImplemented
        return self._q == other._q and self._t == other._t

    def __hash__(self) -> int:
        return hash((self._q, self._t))

    def __repr__(self) -> str:
        return f"SE3(rotation={self._q}, translation={self._t})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (self._q, self._t)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"SE3 is immutable: '{name}' cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"SE3 is immutable: '{name}' cannot be deleted")

    def _as_arrays(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        arrays = self._arrays
        if arrays is None:
            arrays = (np.array(self._q), np.array(self._t))
            for array in arrays:
                array.flags.writeable = False
            _set_arrays(self, arrays)
        return arrays


# The slots' own setters bypass __setattr__, which rejects every assignment.
_set_q = SE3.__dict__["_q"].__set__
_set_t = SE3.__dict__["_t"].__set__
_set_arrays = SE3.__dict__["_arrays"].__set__
_new = object.__new__


def _make(q: tuple[float, float, float, float], t: tuple[float, float, float]) -> SE3:
    """Make a pose from valid values without checks."""
    pose = _new(SE3)
    _set_q(pose, q)
    _set_t(pose, t)
    _set_arrays(pose, None)
    return pose


_IDENTITY = SE3()
