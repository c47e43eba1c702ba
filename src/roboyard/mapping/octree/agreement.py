"""How well a map of space agrees with what is truly there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.errors import InputError
from roboyard.mapping.octree.leaves import Leaves

UNKNOWN, FREE, OCCUPIED = 0, 1, 2
MOST_VOXELS: Final = 300_000_000


@dataclass(frozen=True, slots=True)
class Agreement:
    """Voxels by what the map says and what is true.

    Attributes:
        right: Occupied in the map, and a surface touches them.
        wrong: Occupied in the map, and none does.
        missed: Free in the map, though a surface runs through them.
    """

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float | None:
        """Share of what the map has occupied that truly is; None if it has nothing."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else None

    @property
    def recall(self) -> float | None:
        """Share of what was looked at and truly is occupied that the map has; None if there is nothing."""
        return self.right / (self.right + self.missed) if self.right + self.missed else None

    @property
    def iou(self) -> float | None:
        """Intersection over union of what is occupied in the map and in truth, of voxels that the map knows."""
        total = self.right + self.wrong + self.missed
        return self.right / total if total else None


def agreement(state: NDArray[np.uint8], touched: NDArray[np.bool_], crossed: NDArray[np.bool_]) -> Agreement:
    """Compare a map with the truth, voxel by voxel.

    Only what the map knows counts, so that nobody is blamed for what no camera saw: the back of a wall, the inside of
    a box.  A surface along the border of two voxels may be in either of them: both are right, none is missed.

    Args:
        state: (nx, ny, nz) what the map says, see `dense`.
        touched: (nx, ny, nz) voxels that a true surface touches, or nearly.
        crossed: (nx, ny, nz) those that one goes through, and not only along the border.
    """
    occupied = state == OCCUPIED
    right = int(np.count_nonzero(occupied & touched))
    missed = int(np.count_nonzero((state == FREE) & crossed))
    return Agreement(right, int(np.count_nonzero(occupied)) - right, missed)


def dense(leaves: Leaves) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """What a map says, in a box about all it knows: (nx, ny, nz) 0 unknown, 1 free, 2 occupied; and the box's lowest
    voxel (3,).

    Raises:
        InputError: the box would be too large.
    """
    keys, edges = leaves.keys, leaves.voxels
    if not len(keys):
        return np.zeros((0, 0, 0), np.uint8), np.zeros(3, np.int64)
    low, high = keys.min(axis=0), (keys + edges[:, None]).max(axis=0)
    shape = tuple(int(n) for n in high - low)
    if shape[0] * shape[1] * shape[2] > MOST_VOXELS:
        raise InputError(f"a map over {shape[0]} × {shape[1]} × {shape[2]} voxels", valid=f"at most {MOST_VOXELS}")
    state = np.zeros(shape, np.uint8)
    spread(state, keys - low, edges, np.where(leaves.occupied, OCCUPIED, FREE).astype(np.uint8))
    return state, low


@kernel(
    examples=lambda: [
        (np.zeros((1, 1, 1), np.uint8), np.zeros((1, 3), np.int64), np.ones(1, np.int64), np.zeros(1, np.uint8)),
    ]
)
def spread(
    state: NDArray[np.uint8], keys: NDArray[np.int64], edges: NDArray[np.int64], values: NDArray[np.uint8]
) -> None:
    """Write cubes into a dense grid.

    Args:
        state: (nx, ny, nz), written.
        keys: (n, 3) lowest voxel of each.
        edges: (n,) in voxels.
        values: (n,) what to write.
    """
    for k in range(len(keys)):
        for x in range(keys[k, 0], keys[k, 0] + edges[k]):
            for y in range(keys[k, 1], keys[k, 1] + edges[k]):
                for z in range(keys[k, 2], keys[k, 2] + edges[k]):
                    state[x, y, z] = values[k]
