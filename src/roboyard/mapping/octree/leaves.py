"""What a tree knows: its leaves, each a cube that is free or occupied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.mapping.octree.blocks import ORIGIN, unmorton

DEPTH: Final = 16
"""Levels of a tree below its root, as in OctoMap: 65536 voxels along an edge."""


@dataclass(frozen=True, slots=True)
class Leaves:
    """Leaves in the order of the tree, which is that of their codes.

    Attributes:
        codes: (n,) Morton code of the lowest voxel of each.
        depths: (n,) level of each; 16 for the smallest voxel, 15 for eight of them in one, ….
        values: (n,) log-odds of being occupied.
        colors: (n, 3), white where nobody told; None for trees without colours.
        resolution: Edge of the smallest voxel [m].
        threshold: Log-odds from which on a leaf counts as occupied.
        nodes: Of the tree, those within included.
    """

    codes: NDArray[np.uint64]
    depths: NDArray[np.uint8]
    values: NDArray[np.float32]
    colors: NDArray[np.uint8] | None
    resolution: float
    threshold: float
    nodes: int

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def occupied(self) -> NDArray[np.bool_]:
        """(n,) which count as occupied."""
        return np.asarray(self.values >= np.float32(self.threshold))

    @property
    def voxels(self) -> NDArray[np.int64]:
        """(n,) smallest voxels along the edge of each."""
        return np.left_shift(1, DEPTH - self.depths.astype(np.int64))

    @property
    def sizes(self) -> NDArray[np.float64]:
        """(n,) edges [m]."""
        return np.asarray(self.voxels * self.resolution, dtype=np.float64)

    @property
    def keys(self) -> NDArray[np.int64]:
        """(n, 3) lowest voxel of each."""
        return unmorton(self.codes)

    @property
    def corners(self) -> NDArray[np.float64]:
        """(n, 3) lowest corners [m]."""
        return np.asarray((self.keys - ORIGIN) * self.resolution, dtype=np.float64)

    @property
    def centers(self) -> NDArray[np.float64]:
        """(n, 3) middles [m]."""
        return np.asarray(self.corners + 0.5 * self.sizes[:, None], dtype=np.float64)

    def extent(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lowest and highest corner (3,) of all that is known [m]; zeros when nothing is."""
        if not len(self):
            return np.zeros(3), np.zeros(3)
        corners = self.corners
        return corners.min(axis=0), (corners + self.sizes[:, None]).max(axis=0)

    def volume(self, *, occupied: bool) -> float:
        """Volume that is occupied, or that is free [m³]."""
        chosen = self.occupied == occupied
        return float((self.sizes[chosen] ** 3).sum())

    def occupied_keys(self) -> NDArray[np.int64]:
        """Occupied voxels (n, 3), each of the smallest size."""
        chosen = self.occupied
        keys, voxels = self.keys[chosen], self.voxels[chosen]
        parts = []
        for edge in np.unique(voxels):
            inside = np.indices((int(edge),) * 3).reshape(3, -1).T
            parts.append((keys[voxels == edge][:, None, :] + inside[None]).reshape(-1, 3))
        return np.concatenate(parts) if parts else np.zeros((0, 3), dtype=np.int64)
