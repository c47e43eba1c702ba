"""Poses that measurements tie to each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError


@dataclass(frozen=True, slots=True)
class PoseGraph:
    """A graph of poses in the plane.

    Attributes:
        times_ns: (n,) moment of each node [ns].
        poses: (n, 3) ``T_map_node``: x, y [m], theta [rad].
        pairs: (m, 2) nodes i and j of each edge.
        measurements: (m, 3) ``T_i_j`` as measured.
        information: (m, 3, 3) inverse covariance of the measurement, in the frame of i.
        loops: (m,) whether the edge closes a loop, rather than joins neighbours in time.

    Raises:
        InputError: arrays that do not fit each other, or an edge between nodes that do not exist.
    """

    times_ns: NDArray[np.int64]
    poses: NDArray[np.float64]
    pairs: NDArray[np.int64]
    measurements: NDArray[np.float64]
    information: NDArray[np.float64]
    loops: NDArray[np.bool_]

    def __post_init__(self) -> None:
        n, m = len(self.times_ns), len(self.pairs)
        shapes = {
            "times_ns": (n,), "poses": (n, 3), "pairs": (m, 2), "measurements": (m, 3),
            "information": (m, 3, 3), "loops": (m,),
        }  # fmt: skip
        for name, shape in shapes.items():
            if np.shape(getattr(self, name)) != shape:
                raise InputError(f"{name} of shape {np.shape(getattr(self, name))} in a pose graph", valid=f"{shape}")
        if m and (self.pairs.min() < 0 or self.pairs.max() >= n):
            raise InputError("an edge of a pose graph joins nodes that do not exist", valid=f"0 to {n - 1}")
