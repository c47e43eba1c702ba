"""What tools are asked for, and what comes back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.config import field as setting
from roboyard.errors import InputError
from roboyard.geometry import SE3

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PointingTarget:
    """A tool's place and the direction in which it points; how it is turned about that is free.

    Attributes:
        position: (3,) in the chain's base [m].
        axis: (3,) direction in the chain's base, of any length.
        tool_axis: (3,) what shall point there, in the tool's frame.
    """

    position: ArrayLike
    axis: ArrayLike
    tool_axis: ArrayLike = (0.0, 0.0, 1.0)

    def matrix(self) -> Array:
        """(4, 4) pose whose third column is the axis. Raises InputError."""
        position, z = _as_vector3(self.position, "position"), normalize(self.axis, "axis")
        x = np.cross((0.0, 1.0, 0.0) if abs(z[1]) < 0.9 else (1.0, 0.0, 0.0), z)
        x /= np.linalg.norm(x)
        T = np.eye(4)
        T[:3, 0], T[:3, 1], T[:3, 2], T[:3, 3] = x, np.cross(z, x), z, position
        return T


@dataclass(frozen=True)
class IkConfig:
    """How joints are looked for.

    Attributes:
        tolerance: How far a tool may be from its goal [m].
        orientation_tolerance: How far it may be turned from it [rad].
        meters_per_radian: What a wrong turn of a radian weighs beside a wrong place where a wish cannot be met [m].
        restarts: Searches from as many positions before giving up, where no closed form is known.
        max_solutions: Different positions that a search looks for.
        max_iterations: Of each search.
        roll_samples: Number of rotations about its direction tried for a `PointingTarget`, unless the last joint does
            that rotation.
        max_samples: Positions that are looked at for the nearest feasible one.
        n_starts: How many of them are refined.
        random_seed: Of those positions.
    """

    tolerance: float = setting(1e-6, unit="m", low=1e-12, high=0.1)
    orientation_tolerance: float = setting(1e-6, unit="rad", low=1e-12, high=1.0)
    meters_per_radian: float = setting(0.1, unit="m", low=1e-4, high=100.0)
    restarts: int = setting(100, low=1, high=100_000)
    max_solutions: int = setting(1, low=1, high=1000)
    max_iterations: int = setting(60, low=1, high=10_000)
    roll_samples: int = setting(24, low=1, high=3600)
    max_samples: int = setting(4096, low=1, high=1_000_000)
    n_starts: int = setting(24, low=1, high=10_000)
    random_seed: int = setting(0, low=0)


class IkFailure(Enum):
    """Why no joints meet a goal."""

    OUT_OF_REACH = "out of reach"
    """The place itself is not reached, limits or not."""
    JOINT_LIMITS = "joint limits"
    """It would be met if joints went farther."""
    ORIENTATION = "orientation"
    """The place can be reached, but not with the tool turned so."""
    NOT_FOUND = "not found"
    """Place and turn are possible by themselves; no search from all restarts met both."""


@dataclass(frozen=True)
class NearestSolution:
    """The feasible position nearest to a wish.

    Attributes:
        joints: (n,) joints.
        pose: (4, 4) where they put the tool.
        distance: From the wanted place [m].
        angle: From the wanted rotation, or between the directions of an `PointingTarget` [rad].
        cost: ``sqrt(distance² + (meters_per_radian · angle)²)`` [m]: what is least.
    """

    joints: Array
    pose: Array
    distance: float
    angle: float
    cost: float


@dataclass(frozen=True)
class IkSolution:
    """What was found for a goal; a sequence of joint positions, the nearest first.

    Attributes:
        solutions: (k, n) joints; none where the goal cannot be met.
        errors: (k, 2) how far each is from the goal [m, rad].
        method: Closed form or search.
        failure: Why there is none.
        nearest: Where there is none: the best that can be done.
    """

    solutions: Array
    errors: Array
    method: str
    failure: IkFailure | None = None
    nearest: NearestSolution | None = field(default=None, repr=False)

    @property
    def is_solved(self) -> bool:
        """Whether there is one."""
        return len(self.solutions) > 0

    @property
    def best(self) -> Array:
        """The nearest (n,). Raises InputError with the cause where there is none."""
        if not self.is_solved:
            nearest = self.nearest
            nearest_text = (
                f"the nearest pose is {nearest.distance:.3g} m and {nearest.angle:.3g} rad away" if nearest else None
            )
            raise InputError(
                f"no joint positions for this goal: {self.failure.value if self.failure else ''}", valid=nearest_text
            )
        return np.array(self.solutions[0])

    def __len__(self) -> int:
        return len(self.solutions)

    def __getitem__(self, index: int) -> Array:
        return np.array(self.solutions[index])

    def __iter__(self) -> Iterator[Array]:
        return iter(self.solutions)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Array:
        return np.array(self.solutions, dtype=np.float64)


@dataclass(frozen=True)
class IkBatch:
    """What was found for many poses.

    Attributes:
        solutions: (k, b, n) joints, for each pose the nearest first; NaN where there are fewer.
        n_solutions: (k,) how many.
        is_out_of_limits: (k,) whether a pose without any would have some if joints went farther.
        method: Closed form or search.
    """

    solutions: Array
    n_solutions: NDArray[np.int64]
    is_out_of_limits: NDArray[np.bool_]
    method: str

    @property
    def best(self) -> Array:
        """(k, n) the nearest of each; NaN where there is none."""
        return self.solutions[:, 0]

    @property
    def is_solved(self) -> NDArray[np.bool_]:
        """(k,) which have one."""
        return self.n_solutions > 0


def goal_to_matrix(goal: SE3 | PointingTarget | ArrayLike) -> Array:
    """A goal's pose (4, 4). Raises InputError."""
    if isinstance(goal, SE3 | PointingTarget):
        return goal.matrix()
    return as_pose_matrices(goal, 2)


def as_pose_matrices(matrices: ArrayLike, n_dims: int) -> Array:
    """Homogeneous matrices (4, 4) or (k, 4, 4), checked. Raises InputError."""
    valid = "homogeneous (4, 4)" if n_dims == 2 else "homogeneous (k, 4, 4)"
    try:
        T = np.ascontiguousarray(matrices, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("the goal is no array of numbers", valid=valid) from None
    if T.ndim != n_dims or T.shape[-2:] != (4, 4):
        raise InputError(f"goal of shape {T.shape}", valid=valid)
    if not np.isfinite(T).all():
        raise InputError("the goal holds a number that is not finite", valid=valid)
    R = T[..., :3, :3]
    is_rotation = (
        np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(initial=0.0) < 1e-6 and (np.linalg.det(R) > 0.0).all()
    )
    if not is_rotation or not (np.abs(T[..., 3, :] - (0.0, 0.0, 0.0, 1.0)) < 1e-9).all():
        raise InputError("the goal is no pose", valid="a rotation matrix, a position, and the last row 0 0 0 1")
    return T


def normalize(vector: ArrayLike, name: str) -> Array:
    """A direction (3,) of length one. Raises InputError."""
    values = _as_vector3(vector, name)
    length = float(np.linalg.norm(values))
    if length < 1e-9:
        raise InputError(f"the {name} {values.tolist()} is no direction", valid="three numbers, not all zero")
    return values / length


def _as_vector3(vector: ArrayLike, name: str) -> Array:
    try:
        values = np.array(vector, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (3,) or not np.isfinite(values).all():
        raise InputError(f"the {name} {vector!r:.80} is none", valid="three finite numbers")
    return values
