"""Results of planning: a path, or the reason why there is none; and resampling of polylines."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.navigation.costmap import CellCostOrigin


@dataclass(frozen=True, slots=True)
class Path:
    """A geometric path: poses from the start to the goal.

    Attributes:
        poses: (n, 3) x, y [m] and heading theta [rad] in the map.
        cost: Traversal cost in meters of free space; larger near obstacles.
        clearance: Distance of its nearest point from an obstacle [m]; infinite if there is none.

    Raises:
        InputError: The poses have another shape, or are not finite.
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
        """Return one of the poses; -1 is the last."""
        return SE2(*self.poses[index])

    @property
    def length(self) -> float:
        """Length of the path [m]."""
        return float(np.linalg.norm(np.diff(self.poses[:, :2], axis=0), axis=1).sum())


def resample_polyline(points: NDArray[np.float64], spacing: float) -> NDArray[np.float64]:
    """Insert points into a polyline so that no segment is longer than ``spacing``; the given points stay as they are.

    Args:
        points: (n, k) points; the first two columns are positions.  Inserted points take their other columns, such as a
            heading, from the given point before them.
        spacing: Largest length of a segment, in the unit of the positions; segments may exceed it by 1e-9 of it.

    Returns:
        (m, k) points, equally spaced on each of the given segments.
    """
    steps = np.diff(points[:, :2], axis=0)
    counts = np.maximum(np.ceil(np.hypot(*steps.T) / spacing - 1e-9).astype(np.int64), 1)
    segments = np.repeat(np.arange(len(counts)), counts)
    fractions = np.concatenate([np.arange(count) / count for count in counts]) if len(counts) else np.zeros(0)
    resampled = points[:-1][segments]
    resampled[:, :2] += fractions[:, None] * steps[segments]
    return np.concatenate([resampled, points[-1:]])


class BarrierKind(Enum):
    """Kind of barrier between the robot and its goal."""

    GAP = "gap"
    """Every path leads through a gap that is too narrow; this is the widest of them."""
    WALL = "wall"
    """Obstacles close every path; this is where they are thinnest."""
    GOAL = "goal"
    """The goal lies too near to an obstacle."""
    START = "start"
    """The start lies too near to an obstacle."""
    NO_BARRIER = "none"
    """There is a path for a robot of this size."""


@dataclass(frozen=True, slots=True)
class PathFailure:
    """Position and reason of a failure of planning.

    Attributes:
        barrier: Kind of barrier.
        position: Center of the barrier in the map (2,) [m].
        gap_width: Distance between the obstacles there [m]; 0 if they are closed.
        required_width: Width that the robot needs [m].
        cells: (n, 2) rows and columns of the lethal cells there.
        marked_by: Layers and sensors that marked them, each once.
    """

    barrier: BarrierKind
    position: tuple[float, float]
    gap_width: float
    required_width: float
    cells: NDArray[np.int64]
    marked_by: tuple[CellCostOrigin, ...]

    def __str__(self) -> str:
        position = f"at ({self.position[0]:.2f}, {self.position[1]:.2f})"
        sources = " and ".join(str(origin) for origin in self.marked_by)
        if self.barrier is BarrierKind.GAP:
            gap = f"the widest gap, {position}, is {self.gap_width:.2f} m wide, left by {sources}"
            return f"{gap}; the robot needs {self.required_width:.2f} m"
        if self.barrier is BarrierKind.WALL:
            barrier = f"every path is closed, at the thinnest place {position}, by {sources}"
            return f"{barrier}; the robot needs a gap of {self.required_width:.2f} m"
        if self.barrier is BarrierKind.NO_BARRIER:
            return f"a path exists, {self.gap_width:.2f} m wide at its narrowest place, {position}"
        distance = f"{self.gap_width:.2f} m from what {sources} marked {position}"
        return f"the {self.barrier.value} is {distance}; the robot needs {self.required_width:.2f} m"
