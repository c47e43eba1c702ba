"""A serial chain of a robot: from a link to a tip, the joints between and what they can do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.chains import rows as kernels
from roboyard.chains.rows import ChainArrays
from roboyard.errors import InputError

if TYPE_CHECKING:
    from roboyard.geometry import SE3

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Chain:
    """A serial chain with n free joints, m moving ones (n and the mimic joints among them); arrays are read-only.

    `build_chain` makes one of a robot's description.  Frame 0 is the base, frame k + 1 what moving joint k carries,
    with the joint's axis along its z.

    Attributes:
        robot: Name of the model it is part of.
        base: Link in whose frame poses are.
        tip: Link or frame whose pose they are.
        joints: (n) names of the free joints, base to tip.
        moving_joints: (m) names of all moving joints on the way.
        link_mounts: Every link that the joints move or that is fixed to the base, with the index of its frame and its
            pose (4, 4) in that frame; includes branches, with their joints at the positions given to `build_chain`.
        arrays: What kernels take.
        is_revolute: (n,) whether a joint turns: radians, or metres.
        max_velocity: (n,) greatest speeds [rad/s or m/s]; infinite where nobody says.
        max_effort: (n,) greatest torques or forces [N m or N].
        max_acceleration: (n,) greatest accelerations [rad/s² or m/s²].
        max_jerk: (n,) greatest changes of acceleration [rad/s³ or m/s³].
    """

    robot: str
    base: str
    tip: str
    joints: tuple[str, ...]
    moving_joints: tuple[str, ...]
    link_mounts: Mapping[str, tuple[int, Array]] = field(repr=False)
    arrays: ChainArrays = field(repr=False)
    is_revolute: NDArray[np.bool_]
    max_velocity: Array
    max_effort: Array
    max_acceleration: Array
    max_jerk: Array

    @property
    def dof(self) -> int:
        """Number of free joints."""
        return len(self.joints)

    @property
    def lower(self) -> Array:
        """(n,) least positions [rad or m]; minus infinity where there is no limit."""
        return self.arrays.lower

    @property
    def upper(self) -> Array:
        """(n,) greatest positions."""
        return self.arrays.upper

    def forward(self, q: ArrayLike) -> Array:
        """Pose of the tip in the base: (4, 4) of joints (n,), (k, 4, 4) of (k, n). Raises InputError."""
        values = self.as_positions(q)
        out = np.empty((math.prod(values.shape[:-1]), 4, 4))
        kernels.compute_tip_poses(self.arrays, values.reshape(-1, self.dof), out)
        return out.reshape(*values.shape[:-1], 4, 4)

    def frames(self, q: ArrayLike) -> Array:
        """Poses of all frames in the base: (m + 1, 4, 4) of joints (n,), one more axis of (k, n). Raises InputError."""
        values = self.as_positions(q)
        count = len(self.moving_joints) + 1
        out = np.empty((math.prod(values.shape[:-1]), count, 4, 4))
        kernels.compute_all_frames(self.arrays, values.reshape(-1, self.dof), out)
        return out.reshape(*values.shape[:-1], count, 4, 4)

    def link_poses(self, q: ArrayLike) -> dict[str, Array]:
        """Poses (4, 4), or (k, 4, 4), of all links in the base. Raises InputError."""
        frames = self.frames(q)
        return {name: frames[..., number, :, :] @ T for name, (number, T) in self.link_mounts.items()}

    def jacobian(self, q: ArrayLike) -> Array:
        """Geometric Jacobian of the tip, in the axes of the base: (6, n) of joints (n,), (k, 6, n) of (k, n).

        Its columns are the linear velocity [m/s] and then the angular [rad/s] for each unit of speed of a joint.

        Raises:
            InputError: as `as_positions`.
        """
        values = self.as_positions(q)
        out = np.empty((math.prod(values.shape[:-1]), 6, self.dof))
        kernels.compute_jacobians(self.arrays, values.reshape(-1, self.dof), out)
        return out.reshape(*values.shape[:-1], 6, self.dof)

    def manipulability(self, q: ArrayLike) -> float | Array:
        """Yoshikawa's measure: the product of the Jacobian's singular values; 0 where a direction is lost.

        A number of joints (n,), (k,) of (k, n). Yoshikawa 1985, Int. J. Robotics Research 4(2). Raises InputError.
        """
        measure = np.prod(np.linalg.svd(self.jacobian(q), compute_uv=False), axis=-1)
        return float(measure) if measure.ndim == 0 else measure

    def is_within_limits(self, q: ArrayLike, tolerance: float = 1e-9) -> bool | NDArray[np.bool_]:
        """Whether joints (n,), or each row of (k, n), keep their limits. Raises InputError."""
        values = self.as_positions(q)
        is_inside = ((values >= self.lower - tolerance) & (values <= self.upper + tolerance)).all(axis=-1)
        return is_inside if isinstance(is_inside, np.ndarray) else bool(is_inside)

    def sample_positions(self, rng: np.random.Generator, count: int) -> Array:
        """Positions (count, n), uniform within the limits; one turn of a joint that has none. Raises InputError."""
        low = np.where(np.isfinite(self.lower), self.lower, -math.pi)
        high = np.where(np.isfinite(self.upper), self.upper, math.pi)
        unbounded = ~self.is_revolute & ~(np.isfinite(self.lower) & np.isfinite(self.upper))
        if unbounded.any():
            names = ", ".join(name for name, is_unbounded in zip(self.joints, unbounded, strict=True) if is_unbounded)
            raise InputError(f"joint {names} slides without limits", location=self.robot, valid="a range to draw from")
        return rng.uniform(low, high, (count, self.dof))

    def as_positions(self, q: ArrayLike) -> Array:
        """Joints as an array (n,) or (k, n).

        Raises:
            InputError: they are not numbers, not finite, or of another number.
        """
        try:
            values = np.ascontiguousarray(q, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                "joint positions are no numbers", location=self.robot, valid=self._expected_shape()
            ) from None
        if values.ndim not in (1, 2) or values.shape[-1] != self.dof:
            raise InputError(
                f"joint positions of shape {values.shape}",
                location=f"{self.robot}, {self.base} to {self.tip}",
                valid=self._expected_shape(),
            )
        if not np.isfinite(values).all():
            name = self.joints[int(np.argwhere(~np.isfinite(values))[0][-1])]
            raise InputError(f"the position of {name} is not finite", location=self.robot, valid=self._expected_shape())
        return values

    def with_tool(self, T_tip_tool: SE3, name: str = "tool") -> Chain:
        """The chain to a tool that is held at the tip."""
        arrays = self.arrays._replace(T_tip=_make_read_only(self.arrays.T_tip @ T_tip_tool.matrix()))
        return replace(self, tip=name, arrays=arrays)

    def with_acceleration_limits(self, acceleration: ArrayLike, jerk: ArrayLike) -> Chain:
        """The chain with limits of acceleration and jerk (n,), which descriptions do not have."""
        return replace(
            self,
            max_acceleration=_make_read_only(np.array(acceleration, dtype=np.float64)),
            max_jerk=_make_read_only(np.array(jerk, dtype=np.float64)),
        )

    def _expected_shape(self) -> str:
        return f"({self.dof},) or (k, {self.dof}): {', '.join(self.joints)}"


def _make_read_only(values: Array) -> Array:
    values.flags.writeable = False
    return values
