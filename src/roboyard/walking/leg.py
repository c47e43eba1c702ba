"""A leg of three joints: forward kinematics and all closed-form solutions of its inverse kinematics.

The first joint rotates the plane in which the leg bends; the second and third axes are parallel to each other and
perpendicular to the first.  Two angles of the first joint bring a foot position into that plane, and for each of them
the knee can point to two sides: there are at most four solutions, and all of them are found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import kernel, read_only
from roboyard.compute.array_kernels import assign
from roboyard.errors import InputError, RoboyardError
from roboyard.geometry.arrays import Array
from roboyard.geometry.planar_kernels import wrap_angle_into_range
from roboyard.kinematics import Chain
from roboyard.kinematics.ik.trigonometric_equations import solve_linear_trig
from roboyard.walking.errors import FootOutOfReachError, LegJointLimitError

MAX_SOLUTIONS: Final = 4
REACHED: Final = 0
OUT_OF_LIMITS: Final = 1
OUT_OF_REACH: Final = 2
_AXIS_RADIUS: Final = 1e-9
"""A foot nearer to the first axis leaves its joint free [m]."""
_LIMIT_TOLERANCE: Final = 1e-9
"""Joints may exceed their limits by this rounding error [rad]."""


class LegKinematicsArrays(NamedTuple):
    """Kinematics of legs as arguments of kernels; frame 1 is that of the first joint at zero, frame 2 that of the
    second joint.

    Attributes:
        T_body_hip: (l, 4, 4) frame 1 in the body frame.
        T_hip_knee: (l, 4, 4) frame 2 in frame 1.
        foot_offset: (l,) distance of the foot from the xy-plane of frame 2 [m].
        thigh: (l, 2) vector from the second axis to the third, in frame 2 [m].
        shank: (l, 2) vector from the third axis to the foot with the third joint at zero, in frame 2 [m].
        knee_axis_sign: (l,) 1, or -1 where the third axis is antiparallel to the second.
        lower: (l, 3) lower joint limits [rad].
        upper: (l, 3) upper joint limits [rad].
    """

    T_body_hip: Array
    T_hip_knee: Array
    foot_offset: Array
    thigh: Array
    shank: Array
    knee_axis_sign: Array
    lower: Array
    upper: Array


def example_legs() -> LegKinematicsArrays:
    """Return the leg with which kernels are compiled."""
    T_hip_knee = np.eye(4)[None].copy()
    T_hip_knee[0, :3, :3] = [[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]
    segment = np.array([[0.1, 0.0]])
    lower = np.full((1, 3), -2.0)
    return LegKinematicsArrays(
        np.eye(4)[None].copy(), T_hip_knee, np.zeros(1), segment, segment.copy(), np.ones(1), lower, -lower
    )


@kernel(examples=lambda: [(example_legs(), 0, np.array([0.15, 0.0, 0.0]), 0.0, np.zeros((MAX_SOLUTIONS, 3)))])
def leg_ik_solutions(legs: LegKinematicsArrays, i: int, foot: Array, free_joint_value: float, out: Array) -> int:
    """Compute all joint positions of leg ``i`` for a foot position, regardless of limits.

    Args:
        legs: Kinematics of all legs.
        i: Index of the leg.
        foot: (3,) foot position in the body frame [m].
        free_joint_value: Value of the first joint where the foot is on its axis [rad].
        out: (4, 3) receives the solutions.

    Returns:
        Number of solutions.
    """
    H, K = legs.T_body_hip[i], legs.T_hip_knee[i]
    x, y, z = foot[0] - H[0, 3], foot[1] - H[1, 3], foot[2] - H[2, 3]
    px = H[0, 0] * x + H[1, 0] * y + H[2, 0] * z
    py = H[0, 1] * x + H[1, 1] * y + H[2, 1] * z
    pz = H[0, 2] * x + H[1, 2] * y + H[2, 2] * z
    # The leg bends in the plane K[:, 2] . p' = plane_distance, where p' is p rotated back by the first joint.
    plane_distance = legs.foot_offset[i] + K[0, 2] * K[0, 3] + K[1, 2] * K[1, 3] + K[2, 2] * K[2, 3]
    first_angles, knee_angles, n_found = np.empty(4), np.empty(4), 0
    nx, ny = K[0, 2], K[1, 2]
    # n . Rz(-q) p = (nx px + ny py) cos q + (nx py - ny px) sin q
    if math.hypot(px, py) < _AXIS_RADIUS:
        first_angles[0], n_first_angles = free_joint_value, 1 if abs(plane_distance) < _AXIS_RADIUS else 0
    else:
        n_first_angles = solve_linear_trig(nx * px + ny * py, nx * py - ny * px, plane_distance, first_angles)
    ux, uy, lx, ly = legs.thigh[i, 0], legs.thigh[i, 1], legs.shank[i, 0], legs.shank[i, 1]
    for k in range(n_first_angles):
        c, s = math.cos(first_angles[k]), math.sin(first_angles[k])
        wx, wy, wz = c * px + s * py - K[0, 3], c * py - s * px - K[1, 3], pz - K[2, 3]
        vx = K[0, 0] * wx + K[1, 0] * wy + K[2, 0] * wz
        vy = K[0, 1] * wx + K[1, 1] * wy + K[2, 1] * wz
        projection = 0.5 * (vx * vx + vy * vy - ux * ux - uy * uy - lx * lx - ly * ly)
        n_knee_angles = solve_linear_trig(ux * lx + uy * ly, uy * lx - ux * ly, projection, knee_angles)
        for m in range(n_knee_angles):
            cb, sb = math.cos(knee_angles[m]), math.sin(knee_angles[m])
            rx, ry = ux + cb * lx - sb * ly, uy + sb * lx + cb * ly
            out[n_found, 0] = wrap_angle_into_range(first_angles[k], legs.lower[i, 0], legs.upper[i, 0])
            second_angle = math.atan2(vy, vx) - math.atan2(ry, rx)
            out[n_found, 1] = wrap_angle_into_range(second_angle, legs.lower[i, 1], legs.upper[i, 1])
            out[n_found, 2] = wrap_angle_into_range(
                legs.knee_axis_sign[i] * knee_angles[m], legs.lower[i, 2], legs.upper[i, 2]
            )
            n_found += 1
    return n_found


@kernel(
    examples=lambda: [
        (
            example_legs(), np.zeros(1, np.int64), read_only(np.array([[0.15, 0.0, 0.0]])), read_only(np.zeros((1, 3))),
            np.zeros((1, 3)), np.zeros(1, np.int64),
        )
    ]
)  # fmt: skip
def nearest_ik_solutions(
    legs: LegKinematicsArrays,
    leg_indices: NDArray[np.int64],
    feet: Array,
    seeds: Array,
    out: Array,
    statuses: NDArray[np.int64],
) -> int:
    """Compute the solutions within the limits that are nearest to the seeds, for many feet.

    Args:
        legs: Kinematics of all legs.
        leg_indices: (k,) index of each foot's leg.
        feet: (k, 3) foot positions in the body frame [m].
        seeds: (k, 3) joint positions [rad].
        out: (k, 3) receives the joint positions; those that exceed the limits least where none is within them; nan out
            of reach.
        statuses: (k,) receives REACHED, OUT_OF_LIMITS or OUT_OF_REACH.

    Returns:
        Index of the first foot that is not reached; k if all are.
    """
    solutions = np.empty((MAX_SOLUTIONS, 3))
    first_failure: int = leg_indices.shape[0]
    for n in range(leg_indices.shape[0]):
        i = leg_indices[n]
        n_solutions = leg_ik_solutions(legs, i, feet[n], seeds[n, 0], solutions)
        statuses[n] = OUT_OF_REACH
        out[n, :] = math.nan
        best = math.inf
        for k in range(n_solutions):
            excess, distance = 0.0, 0.0
            for j in range(3):
                q = solutions[k, j]
                excess = max(excess, legs.lower[i, j] - q, q - legs.upper[i, j])
                distance = max(distance, abs(q - seeds[n, j]))
            status = REACHED if excess <= _LIMIT_TOLERANCE else OUT_OF_LIMITS
            value = distance if status == REACHED else excess
            if status < statuses[n] or (status == statuses[n] and value < best):
                statuses[n], best = status, value
                assign(out[n], solutions[k])
        if statuses[n] != REACHED and first_failure == leg_indices.shape[0]:
            first_failure = n
    return first_failure


@kernel(examples=lambda: [(np.zeros(3),)])
def all_finite(values: Array) -> bool:
    """Return whether all numbers (n) are finite."""
    for value in values:  # noqa: SIM110 - kernels know no generators
        if not math.isfinite(value):
            return False
    return True


@kernel(examples=lambda: [(example_legs(), np.zeros(1, np.int64), np.zeros((1, 3)), np.zeros((1, 3)))])
def foot_forward_kinematics(legs: LegKinematicsArrays, leg_indices: NDArray[np.int64], q: Array, out: Array) -> None:
    """Compute foot positions (k, 3) in the body frame of joints (k, 3) of legs (k,), into ``out``."""
    for n in range(leg_indices.shape[0]):
        i = leg_indices[n]
        H, K = legs.T_body_hip[i], legs.T_hip_knee[i]
        cb, sb = math.cos(legs.knee_axis_sign[i] * q[n, 2]), math.sin(legs.knee_axis_sign[i] * q[n, 2])
        lx, ly = legs.shank[i, 0], legs.shank[i, 1]
        rx, ry = legs.thigh[i, 0] + cb * lx - sb * ly, legs.thigh[i, 1] + sb * lx + cb * ly
        c, s = math.cos(q[n, 1]), math.sin(q[n, 1])
        x, y, z = c * rx - s * ry, s * rx + c * ry, legs.foot_offset[i]
        ax = K[0, 0] * x + K[0, 1] * y + K[0, 2] * z + K[0, 3]
        ay = K[1, 0] * x + K[1, 1] * y + K[1, 2] * z + K[1, 3]
        az = K[2, 0] * x + K[2, 1] * y + K[2, 2] * z + K[2, 3]
        c, s = math.cos(q[n, 0]), math.sin(q[n, 0])
        bx, by = c * ax - s * ay, s * ax + c * ay
        for k in range(3):
            out[n, k] = H[k, 0] * bx + H[k, 1] * by + H[k, 2] * az + H[k, 3]


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_legs(), 0, 0.0)])
def knee_side_of(legs: LegKinematicsArrays, i: int, third_angle: float) -> float:
    """Return the sine of the angle from thigh to shank, times both lengths, at an angle of the third joint."""
    c, s = math.cos(third_angle * legs.knee_axis_sign[i]), math.sin(third_angle * legs.knee_axis_sign[i])
    sx, sy = c * legs.shank[i, 0] - s * legs.shank[i, 1], s * legs.shank[i, 0] + c * legs.shank[i, 1]
    return float(legs.thigh[i, 0] * sy - legs.thigh[i, 1] * sx)


@kernel(
    no_refcount=True, forceinline=True, examples=lambda: [(example_legs(), np.ones(1), 0, 0.15, 0.0, 0.0, np.zeros(7))]
)
def solve_leg_ik(legs: LegKinematicsArrays, knee_side: Array, i: int, x: float, y: float, z: float, out: Array) -> bool:
    """Compute the joints of a leg with its own side of the knee for a foot in the body frame; return whether limits are
    kept.

    Like `leg_ik_solutions`, but for one side of the knee and without arrays of its own: planners call it millions of
    times. ``out`` (7,) receives the joints, and cosine and sine of the first and of the second one.
    """
    H, K = legs.T_body_hip, legs.T_hip_knee
    x, y, z = x - H[i, 0, 3], y - H[i, 1, 3], z - H[i, 2, 3]
    px = H[i, 0, 0] * x + H[i, 1, 0] * y + H[i, 2, 0] * z
    py = H[i, 0, 1] * x + H[i, 1, 1] * y + H[i, 2, 1] * z
    pz = H[i, 0, 2] * x + H[i, 1, 2] * y + H[i, 2, 2] * z
    nx, ny = K[i, 0, 2], K[i, 1, 2]
    plane_distance = legs.foot_offset[i] + nx * K[i, 0, 3] + ny * K[i, 1, 3] + K[i, 2, 2] * K[i, 2, 3] - K[i, 2, 2] * pz
    a, b = nx * px + ny * py, nx * py - ny * px
    radius = math.sqrt(a * a + b * b)
    if radius < abs(plane_distance) or radius < _AXIS_RADIUS:
        return False
    ux, uy, lx, ly = legs.thigh[i, 0], legs.thigh[i, 1], legs.shank[i, 0], legs.shank[i, 1]
    segment_product = math.sqrt((ux * ux + uy * uy) * (lx * lx + ly * ly))
    # angles are kept as cosines and sines: only those of the result are computed
    a, b, c0 = a / radius, b / radius, plane_distance / radius
    s0 = math.sqrt(1.0 - c0 * c0)
    for k in range(2):
        sine_step = s0 if k == 0 else -s0
        c, s = a * c0 - b * sine_step, b * c0 + a * sine_step
        wx, wy, wz = c * px + s * py - K[i, 0, 3], c * py - s * px - K[i, 1, 3], pz - K[i, 2, 3]
        vx = K[i, 0, 0] * wx + K[i, 1, 0] * wy + K[i, 2, 0] * wz
        vy = K[i, 0, 1] * wx + K[i, 1, 1] * wy + K[i, 2, 1] * wz
        projection = 0.5 * (vx * vx + vy * vy - ux * ux - uy * uy - lx * lx - ly * ly)
        if abs(projection) > segment_product:
            continue
        first_angle = wrap_angle_into_range(math.atan2(s, c), legs.lower[i, 0], legs.upper[i, 0])
        if not legs.lower[i, 0] - _LIMIT_TOLERANCE <= first_angle <= legs.upper[i, 0] + _LIMIT_TOLERANCE:
            continue
        ct = projection / segment_product
        st = math.copysign(math.sqrt(1.0 - ct * ct), knee_side[i])
        straight_c, straight_s = (ux * lx + uy * ly) / segment_product, (ux * ly - uy * lx) / segment_product
        cb, sb = ct * straight_c + st * straight_s, st * straight_c - ct * straight_s
        third_angle = wrap_angle_into_range(
            legs.knee_axis_sign[i] * math.atan2(sb, cb), legs.lower[i, 2], legs.upper[i, 2]
        )
        if not legs.lower[i, 2] - _LIMIT_TOLERANCE <= third_angle <= legs.upper[i, 2] + _LIMIT_TOLERANCE:
            continue
        rx, ry = ux + cb * lx - sb * ly, uy + sb * lx + cb * ly
        forward, sideways, squared_length = (
            vx * rx + vy * ry,
            vy * rx - vx * ry,
            vx * vx + vy * vy,
        )  # as long as (rx, ry)
        second_angle = wrap_angle_into_range(math.atan2(sideways, forward), legs.lower[i, 1], legs.upper[i, 1])
        if legs.lower[i, 1] - _LIMIT_TOLERANCE <= second_angle <= legs.upper[i, 1] + _LIMIT_TOLERANCE:
            out[0], out[1], out[2], out[3], out[4] = first_angle, second_angle, third_angle, c, s
            out[5], out[6] = forward / squared_length, sideways / squared_length
            return True
    return False


_AXIS_TOLERANCE = 1e-6
"""Largest cosine of perpendicular axes, and largest deviation of the cosine of parallel axes from 1."""


@dataclass(frozen=True, eq=False)
class LegIkSolution:
    """Joint positions that put the foot at a position.

    Attributes:
        q: (3,) joint positions [rad].
        is_within_limits: Whether all joints are within their limits.
        singularity: Name of the singularity: "stretched" or "folded" for the knee, "on the axis" where the first joint
            does not move the foot; otherwise empty.
    """

    q: Array
    is_within_limits: bool
    singularity: str


@dataclass(frozen=True, eq=False)
class Leg:
    """A leg of a robot.

    Attributes:
        name: Name of the leg.
        chain: Kinematic chain from the body to the foot.
        arrays: Arguments of kernels, of this leg alone.
    """

    name: str
    chain: Chain
    arrays: LegKinematicsArrays = field(repr=False)

    @classmethod
    def from_chain(cls, name: str, chain: Chain) -> Leg:
        """Return the leg of a chain of three revolute joints: the last two parallel, the first perpendicular to them.

        Raises:
            InputError: The chain has other joints or axes.
        """
        location = f"leg {name} of {chain.robot}"
        chain_arrays = chain.arrays
        if chain.dof != 3 or len(chain.moving_joints) != 3 or not chain.is_revolute.all():
            raise InputError(
                f"{chain.dof} joints ({', '.join(chain.joints)})", location=location, valid="three that turn"
            )
        hip, knee, ankle = chain_arrays.origins
        axis_alignment = float(ankle[2, 2])
        if abs(knee[2, 2]) > _AXIS_TOLERANCE or abs(abs(axis_alignment) - 1.0) > _AXIS_TOLERANCE:
            raise InputError(
                f"axes of {', '.join(chain.joints)}",
                location=location,
                valid="the last two parallel, the first square to them",
            )
        shank = ankle[:3, :3] @ chain_arrays.T_tip[:3, 3]
        leg_arrays = LegKinematicsArrays(
            hip[None],
            knee[None],
            np.array([ankle[2, 3] + shank[2]]),
            ankle[None, :2, 3].copy(),
            shank[None, :2].copy(),
            np.array([math.copysign(1.0, axis_alignment)]),
            chain.lower[None].copy(),
            chain.upper[None].copy(),
        )
        return cls(name, chain, leg_arrays)

    @property
    def joints(self) -> tuple[str, ...]:
        """(3) names of the joints, starting at the body."""
        return self.chain.joints

    @property
    def hip_position(self) -> Array:
        """(3,) origin of the first joint's frame in the body frame [m]."""
        return np.array(self.arrays.T_body_hip[0, :3, 3])

    def foot_position(self, q: ArrayLike) -> Array:
        """Return foot positions (3,) in the body frame [m] of joints (3,), or (k, 3) of (k, 3). Raises InputError."""
        positions = self.chain.as_positions(q)
        states = positions.reshape(-1, 3)
        out = np.empty_like(states)
        foot_forward_kinematics(self.arrays, np.zeros(len(states), np.int64), states, out)
        return out.reshape(positions.shape)

    def ik_solutions(self, foot: ArrayLike, seed: ArrayLike | None = None) -> list[LegIkSolution]:
        """Return all joint positions that put the foot at a position: those within the limits first, sorted by distance
        to the seed.

        Args:
            foot: (3,) foot position in the body frame [m].
            seed: (3,) joint positions [rad]; None: the middle of the limits.

        Raises:
            InputError: An argument is not three finite numbers.
        """
        foot_position, seed_joints = (
            _three_finite_numbers(foot, f"foot of leg {self.name}"),
            self._seed_or_mid_range(seed),
        )
        out = np.empty((MAX_SOLUTIONS, 3))
        n_solutions = leg_ik_solutions(self.arrays, 0, foot_position, float(seed_joints[0]), out)
        solutions = [
            LegIkSolution(q.copy(), bool(self.chain.is_within_limits(q)), self._singularity_at(q))
            for q in out[:n_solutions]
        ]
        return sorted(solutions, key=lambda one: (not one.is_within_limits, float(np.abs(one.q - seed_joints).max())))

    def solve_ik(self, foot: ArrayLike, seed: ArrayLike | None = None) -> Array:
        """Return the joint positions (3,) within the limits, nearest to the seed, that put the foot at a position (3,).

        Args:
            foot: (3,) foot position in the body frame [m].
            seed: (3,) joint positions [rad]; None: the middle of the limits.

        Raises:
            FootOutOfReachError: The leg is too short or too long.
            LegJointLimitError: A joint would exceed its limit; the error names leg, joint, value and limit.
            InputError: An argument is not three finite numbers.
        """
        foot_position, seed_joints = (
            _three_finite_numbers(foot, f"foot of leg {self.name}"),
            self._seed_or_mid_range(seed),
        )
        out, states = np.empty((1, 3)), np.zeros(1, np.int64)
        nearest_ik_solutions(self.arrays, np.zeros(1, np.int64), foot_position[None], seed_joints[None], out, states)
        if states[0]:
            raise ik_error(self, foot_position, out[0], int(states[0]))
        joints: Array = out[0]
        return joints

    def _seed_or_mid_range(self, seed: ArrayLike | None) -> Array:
        if seed is not None:
            return _three_finite_numbers(seed, f"joints of leg {self.name}")
        mid_range = 0.5 * (self.chain.lower + self.chain.upper)
        seed_joints: Array = np.where(np.isfinite(mid_range), mid_range, 0.0)
        return seed_joints

    def _singularity_at(self, q: Array) -> str:
        """Return the singularity at joint positions (3,); empty if there is none."""
        arrays, foot = self.arrays, self.foot_position(q)
        H = arrays.T_body_hip[0]
        hip_offset = H[:3, :2].T @ (foot - H[:3, 3])
        if math.hypot(*hip_offset) < 1e-6:
            return "on the axis"
        c, s = math.cos(arrays.knee_axis_sign[0] * q[2]), math.sin(arrays.knee_axis_sign[0] * q[2])
        shank = np.array([[c, -s], [s, c]]) @ arrays.shank[0]
        thigh = arrays.thigh[0]
        sine = (thigh[0] * shank[1] - thigh[1] * shank[0]) / (np.linalg.norm(thigh) * np.linalg.norm(shank))
        if abs(sine) > 1e-6:
            return ""
        return "stretched" if thigh @ shank > 0.0 else "folded"


def stack_legs(legs: Sequence[Leg]) -> LegKinematicsArrays:
    """Return the arrays of several legs as arguments of kernels."""
    return LegKinematicsArrays(*(np.concatenate(parts) for parts in zip(*(leg.arrays for leg in legs), strict=True)))


def ik_error(leg: Leg, foot: Array, q: Array, status: int) -> RoboyardError:
    """Return the error for a foot position (3,) that a leg cannot reach, with the best joint positions (3,) found."""
    location = f"leg {leg.name} of {leg.chain.robot}"
    requested = f"foot at {', '.join(f'{x:.3f}' for x in foot)} m of the body"
    if status == OUT_OF_LIMITS:
        excess = np.maximum(leg.chain.lower - q, q - leg.chain.upper)
        k = int(excess.argmax())
        return LegJointLimitError(
            f"{requested} needs {leg.joints[k]} at {q[k]:.4f} rad",
            location=location,
            valid=f"{leg.chain.lower[k]:.4f} to {leg.chain.upper[k]:.4f} rad",
            joint=leg.joints[k],
            value=float(q[k]),
        )
    thigh, shank = (float(np.linalg.norm(side[0])) for side in (leg.arrays.thigh, leg.arrays.shank))
    return FootOutOfReachError(
        f"{requested} is out of reach",
        location=location,
        valid=f"between {abs(thigh - shank):.3f} and {thigh + shank:.3f} m from its second axis, in the leg's plane",
    )


def _three_finite_numbers(values: ArrayLike, name: str) -> Array:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.shape != (3,) or not np.isfinite(numbers).all():
        raise InputError(f"{numbers.tolist()}", location=name, valid="three finite numbers")
    return numbers
