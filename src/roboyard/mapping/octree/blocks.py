"""Where an octree map keeps its voxels: blocks of 8 × 8 × 8, found through a table over the region that is mapped.

A tree of pointers costs a walk of sixteen steps for each voxel that a beam passes; here it is a look into a table.
What is written and published is the tree, see `roboyard.mapping.octree.levels`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.errors import InputError

SIDE: Final = 8
"""Voxels along the edge of a block."""
VOXELS: Final = SIDE**3
ORIGIN: Final = 32768
"""Number of the voxel whose lowest corner is the frame's origin, along each axis."""
MOST_KEYS: Final = 65536
SPREAD: Final = np.array([0, 1, 8, 9, 64, 65, 72, 73], dtype=np.int64)
"""Bits of 0 to 7, three apart: voxels of a block are kept in Morton order, x changing fastest, as children of nodes."""
MOST_BLOCKS: Final = 64_000_000
"""Places in the table: as many as a hall of 400 × 400 × 25 m has at 5 cm."""
_SPARE: Final = 4
"""Blocks about what is needed that the table covers at once."""

_MASKS = np.array([0x249249249249, 0x0C30C30C30C3, 0xF00F00F00F, 0xFF0000FF, 0xFFFF], dtype=np.uint64)
"""Every third bit of 48, then two of six, four of twelve, eight of 24, and sixteen."""
_LOCAL = np.arange(VOXELS)
LOCAL: Final = np.column_stack(
    [sum(((_LOCAL >> (3 * bit + axis)) & 1) << bit for bit in range(3)) for axis in range(3)]
).astype(np.int64)
"""(512, 3): place of each voxel in its block."""


class Blocks:
    """Voxels of a map.

    Attributes:
        low: (3,) block at the corner of the table.
        table: (nx, ny, nz) which block lies there; -1: nobody looked.
        places: (capacity, 3) of the blocks.
        values: (capacity, 512) log-odds; NaN: unknown.
        colors: (capacity, 512, 3); white where nobody told, as in OctoMap.
        marks: (capacity, 512) what the cloud at hand says: 1 free, 2 occupied.
        touched: (capacity,) whether a block has marks.
        count: Blocks in use.
    """

    def __init__(self) -> None:
        self.low = np.zeros(3, dtype=np.int64)
        self.table: NDArray[np.int32] = np.full((0, 0, 0), -1, dtype=np.int32)
        self.count = 0
        self._allot(64)

    def _allot(self, capacity: int) -> None:
        self.places = np.zeros((capacity, 3), dtype=np.int64)
        self.values = np.full((capacity, VOXELS), np.nan, dtype=np.float32)
        self.colors = np.full((capacity, VOXELS, 3), 255, dtype=np.uint8)
        self.marks = np.zeros((capacity, VOXELS), dtype=np.uint8)
        self.touched = np.zeros(capacity, dtype=np.uint8)

    def cover(self, low: NDArray[np.int64], high: NDArray[np.int64]) -> None:
        """See to it that the table reaches from one voxel to another (3,).

        Raises:
            InputError: they lie so far apart that it would be too large.
        """
        first, last = np.asarray(low) // SIDE, np.asarray(high) // SIDE + 1
        end = self.low + self.table.shape
        if self.table.size:
            if (first >= self.low).all() and (last <= end).all():
                return
            # only what grows grows, and by a bit more than it must
            first = np.where(first < self.low, np.minimum(self.low, np.maximum(first - _SPARE, 0)), self.low)
            last = np.where(last > end, np.minimum(last + _SPARE, MOST_KEYS // SIDE), end)
        shape = tuple(int(n) for n in last - first)
        if shape[0] * shape[1] * shape[2] > MOST_BLOCKS:
            raise InputError(
                f"an octree map over {shape[0] * SIDE} × {shape[1] * SIDE} × {shape[2] * SIDE} voxels",
                valid=f"at most {MOST_BLOCKS * VOXELS:.2g} in all: a coarser resolution, or a shorter range",
            )
        table = np.full(shape, -1, dtype=np.int32)
        at = self.low - first
        nx, ny, nz = self.table.shape
        table[at[0] : at[0] + nx, at[1] : at[1] + ny, at[2] : at[2] + nz] = self.table
        self.low, self.table = first, table

    def grow(self) -> None:
        """Make room for more blocks."""
        names = ("places", "values", "colors", "marks", "touched")
        kept = [getattr(self, name) for name in names]
        self._allot(2 * len(self.places))
        for name, old in zip(names, kept, strict=True):
            getattr(self, name)[: len(old)] = old

    def take(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers (n,) of blocks at places (n, 3) within the table; they are made where there are none."""
        x, y, z = (places - self.low).T
        missing = np.unique(np.ravel_multi_index((x, y, z), self.table.shape)[self.table[x, y, z] < 0])
        while self.count + len(missing) > len(self.places):
            self.grow()
        new = np.column_stack(np.unravel_index(missing, self.table.shape))
        numbers = np.arange(self.count, self.count + len(missing))
        self.table.reshape(-1)[missing] = numbers
        self.places[numbers] = new + self.low
        self.count += len(missing)
        return np.asarray(self.table[x, y, z], dtype=np.int64)

    def find(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Block (n,), -1 for none, and place in the block (n,) of voxels (n, 3)."""
        places = keys // SIDE - self.low
        inside = ((places >= 0) & (places < self.table.shape)).all(axis=1)
        blocks = np.full(len(keys), -1, dtype=np.int64)
        blocks[inside] = self.table[tuple(places[inside].T)]
        return blocks, within(keys)

    def save_state(self) -> dict[str, Any]:
        """Everything as plain data."""
        used = slice(0, self.count)
        return {
            "low": self.low.copy(), "shape": tuple(self.table.shape), "places": self.places[used].copy(),
            "values": self.values[used].copy(), "colors": self.colors[used].copy(),
        }  # fmt: skip

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self.count = len(saved["places"])
        self._allot(max(64, self.count))
        used = slice(0, self.count)
        self.places[used], self.values[used], self.colors[used] = saved["places"], saved["values"], saved["colors"]
        self.low = np.array(saved["low"])
        self.table = np.full(saved["shape"], -1, dtype=np.int32)
        self.table[tuple((self.places[used] - self.low).T)] = np.arange(self.count)


def keys_of(points: NDArray[np.float64], resolution: float) -> NDArray[np.int64]:
    """Voxels (n, 3) that hold points (n, 3) [m], counted as OctoMap counts them."""
    return np.floor(points * (1.0 / resolution)).astype(np.int64) + ORIGIN


def within(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Place in its block (n,) of each voxel (n, 3)."""
    x, y, z = SPREAD[keys.T & (SIDE - 1)]
    return np.asarray(x | (y << 1) | (z << 2))


@kernel(examples=lambda: [(np.zeros((1, 3), np.int64),)])
def morton(places: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Morton codes (n,) of numbers (n, 3) below 2^16: their bits one by one, z's before y's before x's."""
    codes = np.zeros(len(places), np.uint64)
    for k in range(len(places)):
        for axis in range(3):
            value = np.uint64(places[k, axis])
            for step in range(4):  # bits 8 apart, then 4, 2 and 1, each time three times as far
                shift = np.uint64(16 >> step)
                value = (value | (value << shift)) & _MASKS[3 - step]
            codes[k] |= value << np.uint64(axis)
    return codes


@kernel(examples=lambda: [(np.zeros(1, np.uint64),)])
def unmorton(codes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Numbers (n, 3) of Morton codes (n,)."""
    places = np.empty((len(codes), 3), np.int64)
    for k in range(len(codes)):
        for axis in range(3):
            value = (codes[k] >> np.uint64(axis)) & _MASKS[0]
            for step in range(4):
                value = (value | (value >> np.uint64(2 << step))) & _MASKS[step + 1]
            places[k, axis] = value
    return places
