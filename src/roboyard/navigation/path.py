"""A way through the plane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError
from roboyard.geometry import SE2


@dataclass(frozen=True, slots=True)
class Path:
    """Poses one after another.

    Attributes:
        poses: (n, 3): x, y [m] and heading theta [rad] in the map.
        cost: What the planner paid for it, in metres of free ground; larger where it goes near obstacles.
        clearance: Distance of its nearest point to an obstacle [m]; infinite where there is none.

    Raises:
        InputError: poses of another shape, or not finite.
    """

    poses: NDArray[np.float64]
    cost: float = 0.0
    clearance: float = float("inf")

    def __post_init__(self) -> None:
        poses = np.asarray(self.poses, dtype=np.float64)
        if poses.ndim != 2 or poses.shape[1] != 3 or not np.isfinite(poses).all():
            raise InputError(f"a path with poses of shape {poses.shape}", valid="(n, 3), finite: x, y, theta")
        object.__setattr__(self, "poses", poses)

    def __len__(self) -> int:
        return len(self.poses)

    def pose(self, index: int) -> SE2:
        """One of the poses."""
        return SE2(*self.poses[index])

    @property
    def length(self) -> float:
        """Of the way [m]."""
        return float(np.linalg.norm(np.diff(self.poses[:, :2], axis=0), axis=1).sum())
