"""Where a robot was over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.geometry import SE2, wrap_angle


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Poses in the plane at ascending times.

    Attributes:
        times_ns: (n,) int64, strictly ascending [ns].
        poses: (n, 3): x, y [m] and theta [rad], in the map.

    Raises:
        InputError: unequal lengths, times that do not ascend, or numbers that are not finite.
    """

    times_ns: NDArray[np.int64]
    poses: NDArray[np.float64]

    def __post_init__(self) -> None:
        times = np.asarray(self.times_ns, dtype=np.int64)
        poses = np.asarray(self.poses, dtype=np.float64).reshape(-1, 3)
        if times.ndim != 1 or len(times) != len(poses):
            raise InputError(f"{times.shape} times for poses of shape {np.shape(self.poses)}", valid="(n,) and (n, 3)")
        if (np.diff(times) <= 0).any():
            raise InputError("the times of a trajectory do not ascend", valid="each later than the one before")
        if not np.isfinite(poses).all():
            raise InputError("a pose of a trajectory is not finite", valid="metres and radians")
        object.__setattr__(self, "times_ns", times)
        object.__setattr__(self, "poses", poses)

    def __len__(self) -> int:
        return len(self.times_ns)

    def pose(self, index: int) -> SE2:
        """One of the poses."""
        return SE2(*self.poses[index])

    def at(self, times_ns: ArrayLike, *, beyond_ns: int = 0) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Poses at other times, between neighbours on a straight line and by the shorter turn.

        Args:
            times_ns: (m,) [ns].
            beyond_ns: So much before the first and after the last pose, that pose still counts [ns].

        Returns:
            (m, 3) poses, and (m,) which of them the trajectory knows.
        """
        wanted = np.atleast_1d(np.asarray(times_ns, dtype=np.int64))
        if not len(self):
            return np.zeros((len(wanted), 3)), np.zeros(len(wanted), dtype=np.bool_)
        known = (wanted >= self.times_ns[0] - beyond_ns) & (wanted <= self.times_ns[-1] + beyond_ns)
        clipped = np.clip(wanted, self.times_ns[0], self.times_ns[-1])
        after = np.clip(np.searchsorted(self.times_ns, clipped, side="left"), min(1, len(self) - 1), None)
        before = np.maximum(after - 1, 0)
        span = np.maximum(self.times_ns[after] - self.times_ns[before], 1)
        share = ((clipped - self.times_ns[before]) / span)[:, None]
        start, end = self.poses[before], self.poses[after]
        step = end - start
        step[:, 2] = wrap_angle(step[:, 2])
        poses = start + share * step
        poses[:, 2] = wrap_angle(poses[:, 2])
        return poses, known

    @property
    def length(self) -> float:
        """Of the way [m]."""
        return float(np.linalg.norm(np.diff(self.poses[:, :2], axis=0), axis=1).sum())
