"""Axis constraint: the tool keeps an axis within a tolerance of a direction, as a glass that stays upright.

MoveIt states the same as a path constraint of the type moveit_msgs/OrientationConstraint whose rotation about the axis
is free.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from roboyard.compute import kernel
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain import Chain
from roboyard.kinematics.chain_kernels import compute_frames, compute_jacobian, multiply_transforms
from roboyard.manipulation.collision.collision_model import (
    CollisionArrays,
    CollisionWorkspace,
    example_collision_arrays,
    make_workspace,
)
from roboyard.manipulation.collision.motion_check import is_line_free

CHECK_SPACING: Final = 0.02
"""Length between states at which a path is checked against the constraint, in joint space [rad or m]."""
_MAX_PROJECTION_STEPS: Final = 25
"""Maximum number of steps of a projection."""
_PROJECTION_TOLERANCE_FRACTION: Final = 0.5
"""A projection ends at this fraction of the tolerance, which leaves a margin for the motion between states."""


@dataclass(frozen=True)
class AxisConstraint:
    """Condition that an axis of the tool keeps a direction within a tolerance, at every state of a path.

    Attributes:
        axis: Axis in the tool's frame.
        direction: Direction in the chain's base.
        tolerance: Maximum tilt [rad].
    """

    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    direction: tuple[float, float, float] = (0.0, 0.0, 1.0)
    tolerance: float = 0.1

    def __post_init__(self) -> None:
        for name, value in (("axis", self.axis), ("direction", self.direction)):
            length = math.hypot(*value) if len(value) == 3 else 0.0
            if not (length > 1e-9 and math.isfinite(length)):
                raise InputError(
                    f"{name} {value}", location="AxisConstraint", valid="three finite numbers, not all zero"
                )
        if not 0.001 <= self.tolerance <= math.pi:
            raise InputError(f"a tolerance of {self.tolerance} rad", location="AxisConstraint", valid="0.001 to pi")

    def tilt_angle(self, chain: Chain, q: Array) -> Array:
        """Return the tilt of the axis in states (k, n) [rad]. Raises InputError."""
        axes = chain.forward(np.atleast_2d(q))[:, :3, :3] @ np.array(self.axis) / math.hypot(*self.axis)
        target_direction = np.array(self.direction) / math.hypot(*self.direction)
        sines = np.linalg.norm(np.cross(axes, target_direction), axis=1)
        return np.asarray(np.arctan2(sines, axes @ target_direction))

    def to_arrays(self) -> AxisConstraintArrays:
        """Return the arrays for the kernels."""
        return AxisConstraintArrays(
            np.array(self.axis) / math.hypot(*self.axis),
            np.array(self.direction) / math.hypot(*self.direction),
            self.tolerance,
        )


class AxisConstraintArrays(NamedTuple):
    """An `AxisConstraint` for kernels, with unit vectors."""

    axis: Array
    direction: Array
    tolerance: float


def example_constraint() -> AxisConstraintArrays:
    """Return a constraint for the examples of kernels."""
    return AxisConstraintArrays(np.ones(3), np.ones(3), 0.1)


def _examples() -> Iterable[tuple[Any, ...]]:
    collision = example_collision_arrays()
    yield collision, make_workspace(collision), example_constraint(), np.zeros(1), np.zeros(1), 0.1


@kernel
def _compute_tilt(
    collision: CollisionArrays,
    constraint: AxisConstraintArrays,
    q: Array,
    workspace: CollisionWorkspace,
    T: Array,
    e: Array,
) -> float:
    """Return the tilt of the axis; ``e`` (3,) becomes the rotation vector of the tilt [rad], ``T`` (4, 4) the tool's
    pose.
    """
    compute_frames(collision.chain, q, workspace.frames)
    multiply_transforms(workspace.frames[-1], collision.chain.T_tip, T)
    a = np.zeros(3)
    for i in range(3):
        for j in range(3):
            a[i] += T[i, j] * constraint.axis[j]
    d = constraint.direction
    e[0] = a[1] * d[2] - a[2] * d[1]
    e[1] = a[2] * d[0] - a[0] * d[2]
    e[2] = a[0] * d[1] - a[1] * d[0]
    sine = math.sqrt(e[0] ** 2 + e[1] ** 2 + e[2] ** 2)
    angle = math.atan2(sine, a[0] * d[0] + a[1] * d[1] + a[2] * d[2])
    scale = angle / sine if sine > 1e-12 else 1.0
    for i in range(3):
        e[i] *= scale
    return angle


@kernel
def project_onto_constraint(
    collision: CollisionArrays, constraint: AxisConstraintArrays, q: Array, workspace: CollisionWorkspace
) -> bool:
    """Move a state (dof,) until the tilt is below half of the tolerance; return whether that is possible.

    Damped least squares, clipped to the limits (D. Berenson et al., "Manipulation planning on constraint manifolds",
    ICRA 2009).
    """
    dof = q.shape[0]
    T, e, J = np.empty((4, 4)), np.empty(3), np.empty((6, dof))
    A = np.empty((3, 3))
    for _ in range(_MAX_PROJECTION_STEPS):
        if (
            _compute_tilt(collision, constraint, q, workspace, T, e)
            <= _PROJECTION_TOLERANCE_FRACTION * constraint.tolerance
        ):
            return True
        compute_jacobian(collision.chain, workspace.frames, T[:3, 3], J)
        for i in range(3):
            for j in range(3):
                A[i, j] = 1e-4 if i == j else 0.0
                for k in range(dof):
                    A[i, j] += J[3 + i, k] * J[3 + j, k]
        c00, c01 = A[1, 1] * A[2, 2] - A[1, 2] * A[2, 1], A[1, 2] * A[2, 0] - A[1, 0] * A[2, 2]
        c02 = A[1, 0] * A[2, 1] - A[1, 1] * A[2, 0]
        determinant = A[0, 0] * c00 + A[0, 1] * c01 + A[0, 2] * c02
        x = (
            c00 * e[0] + (A[0, 2] * A[2, 1] - A[0, 1] * A[2, 2]) * e[1] + (A[0, 1] * A[1, 2] - A[0, 2] * A[1, 1]) * e[2]
        ) / determinant
        y = (
            c01 * e[0] + (A[0, 0] * A[2, 2] - A[0, 2] * A[2, 0]) * e[1] + (A[0, 2] * A[1, 0] - A[0, 0] * A[1, 2]) * e[2]
        ) / determinant
        z = (
            c02 * e[0] + (A[0, 1] * A[2, 0] - A[0, 0] * A[2, 1]) * e[1] + (A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]) * e[2]
        ) / determinant
        for k in range(dof):
            q[k] += J[3, k] * x + J[4, k] * y + J[5, k] * z
            q[k] = min(max(q[k], collision.chain.lower[k]), collision.chain.upper[k])
    return False


@kernel(examples=_examples)
def is_line_feasible(
    collision: CollisionArrays,
    workspace: CollisionWorkspace,
    constraint: AxisConstraintArrays,
    a: Array,
    b: Array,
    spacing: float,
) -> bool:
    """Return whether a straight motion between states (dof,), sampled every ``spacing``, keeps the axis and is
    collision-free.
    """
    square = 0.0
    for k in range(a.shape[0]):
        square += (b[k] - a[k]) ** 2
    count = math.ceil(math.sqrt(square) / spacing)
    q, T, e = np.empty_like(a), np.empty((4, 4)), np.empty(3)
    for i in range(count + 1):
        fraction = i / count if count > 0 else 0.0
        for k in range(a.shape[0]):
            q[k] = a[k] + fraction * (b[k] - a[k])
        if _compute_tilt(collision, constraint, q, workspace, T, e) > constraint.tolerance:
            return False
    return is_line_free(collision, workspace, a, b)
