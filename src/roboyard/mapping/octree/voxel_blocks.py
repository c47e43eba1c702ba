"""Storage of an octree map: blocks of 8 × 8 × 8 voxels in a table over the mapped region, and the kernels that insert
rays.

A tree of pointers costs sixteen steps for each voxel that a ray passes; the table costs one look-up. Trees are made
only for files and messages, see `roboyard.mapping.octree.octree`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel, read_only
from roboyard.errors import InputError

BLOCK_SIZE: Final = 8
"""Voxels along the edge of a block."""
VOXELS_PER_BLOCK: Final = BLOCK_SIZE**3
ORIGIN_KEY: Final = 32768
"""Number of the voxel whose lowest corner is the frame's origin, along each axis."""
N_KEYS: Final = 65536
MORTON_SPREAD: Final = np.array([0, 1, 8, 9, 64, 65, 72, 73], dtype=np.int64)
"""Bits of 0 to 7, three apart: voxels of a block are kept in Morton order, x changing fastest, as children of nodes."""
MAX_TABLE_BLOCKS: Final = 64_000_000
"""Places in the table: as many as a hall of 400 × 400 × 25 m has at 5 cm."""
_TABLE_MARGIN: Final = 4
"""Blocks about what is needed that the table covers at once."""

_MORTON_MASKS = np.array([0x249249249249, 0x0C30C30C30C3, 0xF00F00F00F, 0xFF0000FF, 0xFFFF], dtype=np.uint64)
"""Every third bit of 48, then two of six, four of twelve, eight of 24, and sixteen."""
_VOXEL_INDICES = np.arange(VOXELS_PER_BLOCK)
VOXEL_OFFSETS: Final = np.column_stack(
    [sum(((_VOXEL_INDICES >> (3 * bit + axis)) & 1) << bit for bit in range(3)) for axis in range(3)]
).astype(np.int64)
"""(512, 3): place of each voxel in its block."""


class RayBatch(NamedTuple):
    """Beams from one sensor position.

    Attributes:
        origin: (3,) position of the sensor [m].
        ends: (n, 3) ends of the beams [m].
        end_keys: (n, 3) keys of the voxels that hold the ends.
    """

    origin: NDArray[np.float64]
    ends: NDArray[np.float64]
    end_keys: NDArray[np.int64]


class BlockArrays(NamedTuple):
    """Arrays of `VoxelBlocks` that the insertion of rays reads and writes; attributes as there."""

    table_origin: NDArray[np.int64]
    table: NDArray[np.int32]
    positions: NDArray[np.int64]
    marks: NDArray[np.uint8]
    touched: NDArray[np.uint8]


class VoxelBlocks:
    """Voxels of a map in blocks of 8 × 8 × 8.

    Attributes:
        table_origin: (3,) block at the corner of the table.
        table: (nx, ny, nz) index of the block there; -1: unknown.
        positions: (capacity, 3) of the blocks.
        values: (capacity, 512) log-odds; NaN: unknown.
        colors: (capacity, 512, 3); white: no color, as in OctoMap.
        marks: (capacity, 512) evidence of the cloud that is inserted: 1 free, 2 occupied.
        touched: (capacity,) whether a block has marks.
        n_blocks: Number of blocks in use.
    """

    def __init__(self) -> None:
        self.table_origin = np.zeros(3, dtype=np.int64)
        self.table: NDArray[np.int32] = np.full((0, 0, 0), -1, dtype=np.int32)
        self.n_blocks = 0
        self._allocate(64)

    def _allocate(self, capacity: int) -> None:
        self.positions = np.zeros((capacity, 3), dtype=np.int64)
        self.values = np.full((capacity, VOXELS_PER_BLOCK), np.nan, dtype=np.float32)
        self.colors = np.full((capacity, VOXELS_PER_BLOCK, 3), 255, dtype=np.uint8)
        self.marks = np.zeros((capacity, VOXELS_PER_BLOCK), dtype=np.uint8)
        self.touched = np.zeros(capacity, dtype=np.uint8)

    def arrays(self) -> BlockArrays:
        """Return the arrays for the insertion of rays; they are not copied."""
        return BlockArrays(self.table_origin, self.table, self.positions, self.marks, self.touched)

    def extend_table(self, min_key: NDArray[np.int64], max_key: NDArray[np.int64]) -> None:
        """Extend the table so that it covers the voxels between two keys (3,).

        Raises:
            InputError: The table would be too large.
        """
        first, last = np.asarray(min_key) // BLOCK_SIZE, np.asarray(max_key) // BLOCK_SIZE + 1
        end = self.table_origin + self.table.shape
        if self.table.size:
            if (first >= self.table_origin).all() and (last <= end).all():
                return
            # only what grows grows, and by a bit more than it must
            first = np.where(
                first < self.table_origin,
                np.minimum(self.table_origin, np.maximum(first - _TABLE_MARGIN, 0)),
                self.table_origin,
            )
            last = np.where(last > end, np.minimum(last + _TABLE_MARGIN, N_KEYS // BLOCK_SIZE), end)
        shape = tuple(int(n) for n in last - first)
        if shape[0] * shape[1] * shape[2] > MAX_TABLE_BLOCKS:
            raise InputError(
                f"an octree map over {shape[0] * BLOCK_SIZE} × {shape[1] * BLOCK_SIZE} × "
                f"{shape[2] * BLOCK_SIZE} voxels",
                valid=f"at most {MAX_TABLE_BLOCKS * VOXELS_PER_BLOCK:.2g} in all: a coarser resolution, or a "
                "shorter range",
            )
        table = np.full(shape, -1, dtype=np.int32)
        offset = self.table_origin - first
        nx, ny, nz = self.table.shape
        table[offset[0] : offset[0] + nx, offset[1] : offset[1] + ny, offset[2] : offset[2] + nz] = self.table
        self.table_origin, self.table = first, table

    def grow(self) -> None:
        """Double the number of blocks that can be stored."""
        names = ("positions", "values", "colors", "marks", "touched")
        old_arrays = [getattr(self, name) for name in names]
        self._allocate(2 * len(self.positions))
        for name, old in zip(names, old_arrays, strict=True):
            getattr(self, name)[: len(old)] = old

    def get_or_create(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers (n,) of blocks at positions (n, 3) within the table; missing blocks are created."""
        x, y, z = (positions - self.table_origin).T
        missing = np.unique(np.ravel_multi_index((x, y, z), self.table.shape)[self.table[x, y, z] < 0])
        while self.n_blocks + len(missing) > len(self.positions):
            self.grow()
        new = np.column_stack(np.unravel_index(missing, self.table.shape))
        numbers = np.arange(self.n_blocks, self.n_blocks + len(missing))
        self.table.reshape(-1)[missing] = numbers
        self.positions[numbers] = new + self.table_origin
        self.n_blocks += len(missing)
        return np.asarray(self.table[x, y, z], dtype=np.int64)

    def find(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the block (n,), -1 for none, and the index in the block (n,) of voxels (n, 3)."""
        block_positions = keys // BLOCK_SIZE - self.table_origin
        is_inside = ((block_positions >= 0) & (block_positions < self.table.shape)).all(axis=1)
        blocks = np.full(len(keys), -1, dtype=np.int64)
        blocks[is_inside] = self.table[tuple(block_positions[is_inside].T)]
        return blocks, index_in_block(keys)

    def save_state(self) -> dict[str, Any]:
        """Return all blocks as plain data."""
        used = slice(0, self.n_blocks)
        return {
            "low": self.table_origin.copy(), "shape": tuple(self.table.shape), "places": self.positions[used].copy(),
            "values": self.values[used].copy(), "colors": self.colors[used].copy(),
        }  # fmt: skip

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self.n_blocks = len(saved["places"])
        self._allocate(max(64, self.n_blocks))
        used = slice(0, self.n_blocks)
        self.positions[used], self.values[used], self.colors[used] = saved["places"], saved["values"], saved["colors"]
        self.table_origin = np.array(saved["low"])
        self.table = np.full(saved["shape"], -1, dtype=np.int32)
        self.table[tuple((self.positions[used] - self.table_origin).T)] = np.arange(self.n_blocks)


def voxel_keys(points: NDArray[np.float64], resolution: float) -> NDArray[np.int64]:
    """Return the keys (n, 3) of the voxels that hold points (n, 3) [m], as OctoMap numbers them."""
    return np.floor(points * (1.0 / resolution)).astype(np.int64) + ORIGIN_KEY


def index_in_block(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the index (n,) of each voxel (n, 3) in its block."""
    x, y, z = MORTON_SPREAD[keys.T & (BLOCK_SIZE - 1)]
    return np.asarray(x | (y << 1) | (z << 2))


@kernel(examples=lambda: [(np.zeros((1, 3), np.int64),)])
def morton_encode(coordinates: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the Morton codes (n,) of coordinates (n, 3) below 2^16: interleaved bits, z before y before x."""
    codes = np.zeros(len(coordinates), np.uint64)
    for k in range(len(coordinates)):
        for axis in range(3):
            value = np.uint64(coordinates[k, axis])
            for step in range(4):  # bits 8 apart, then 4, 2 and 1, each time three times as far
                shift = np.uint64(16 >> step)
                value = (value | (value << shift)) & _MORTON_MASKS[3 - step]
            codes[k] |= value << np.uint64(axis)
    return codes


@kernel(examples=lambda: [(np.zeros(1, np.uint64),)])
def morton_decode(codes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the coordinates (n, 3) of Morton codes (n,)."""
    coordinates = np.empty((len(codes), 3), np.int64)
    for k in range(len(codes)):
        for axis in range(3):
            value = (codes[k] >> np.uint64(axis)) & _MORTON_MASKS[0]
            for step in range(4):
                value = (value | (value >> np.uint64(2 << step))) & _MORTON_MASKS[step + 1]
            coordinates[k, axis] = value
    return coordinates


FREE_MARK, HIT_MARK = 1, 2


@kernel(examples=lambda: [(np.zeros((1, 3)), read_only(np.zeros(3)), np.zeros(1, np.bool_), 0.0, 1.0)])
def clip_beams(
    points: NDArray[np.float64],
    origin: NDArray[np.float64],
    ground: NDArray[np.bool_],
    min_range: float,
    max_range: float,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Select the points that are marked as occupied, and compute the ends of beams that only free space.

    Args:
        points: (n, 3) [m]; not finite: they know nothing.
        origin: (3,) of the sensor [m].
        ground: (n,) which are not to be marked.
        min_range: Nearer points are left out [m].
        max_range: Beams to farther points are cut there [m].

    Returns:
        Numbers (m,) of the points that are to be marked, and ends (k, 3) of the other beams [m].
    """
    hit_indices, ends = np.empty(len(points), np.int64), np.empty((len(points), 3))
    count, n_free = 0, 0
    for i in range(len(points)):
        x, y, z = points[i, 0] - origin[0], points[i, 1] - origin[1], points[i, 2] - origin[2]
        distance = math.sqrt(x * x + y * y + z * z)
        if not (min_range <= distance < math.inf):
            continue
        if distance <= max_range and not ground[i]:
            hit_indices[count] = i
            count += 1
            continue
        scale = max_range / distance if distance > max_range else 1.0
        ends[n_free, 0], ends[n_free, 1], ends[n_free, 2] = (
            origin[0] + scale * x,
            origin[1] + scale * y,
            origin[2] + scale * z,
        )
        n_free += 1
    return hit_indices[:count].copy(), ends[:n_free].copy()


def _example_rays() -> Iterable[tuple[Any, ...]]:
    rays = RayBatch(read_only(np.zeros(3)), np.zeros((1, 3)), np.zeros((1, 3), np.int64))
    table, positions = np.zeros((1, 1, 1), np.int32), np.zeros((1, 3), np.int64)
    blocks = BlockArrays(np.zeros(3, np.int64), table, positions, np.zeros((1, 512), np.uint8), np.zeros(1, np.uint8))
    yield rays, 0, 0.1, blocks, 0


@kernel(examples=_example_rays)
def mark_rays(rays: RayBatch, first_ray: int, resolution: float, blocks: BlockArrays, n_blocks: int) -> tuple[int, int]:
    """Mark as free the voxels that beams pass, from the sensor's voxel up to the one before their end.

    The voxels are those of OctoMap's ``OcTreeBaseImpl::computeRayKeys``, after Amanatides and Woo 1987.

    Args:
        rays: The beams.
        first_ray: Number of the first beam that is marked.
        resolution: Edge of a voxel [m].
        blocks: Arrays of the map; the table covers all beams; table, positions, marks and touched are written.
        n_blocks: Number of blocks in use.

    Returns:
        Number of the first beam that was not marked, since there was no space for another block, and the new number of
        blocks.
    """
    origin, ends, end_keys = rays.origin, rays.ends, rays.end_keys
    table_origin, table, positions = blocks.table_origin, blocks.table, blocks.positions
    marks, touched = blocks.marks, blocks.touched
    start_key, step = np.empty(3, np.int64), np.empty(3, np.int64)
    next_crossing, crossing_interval, direction = np.empty(3), np.empty(3), np.empty(3, np.float32)
    for k in range(first_ray, len(ends)):
        # with 32 bits where OctoMap has them, or other voxels are passed where beams run along borders
        for axis in range(3):
            direction[axis] = np.float32(ends[k, axis]) - np.float32(origin[axis])
        length = np.float32(
            math.sqrt(direction[0] * direction[0] + direction[1] * direction[1] + direction[2] * direction[2])
        )
        if length == 0.0:
            continue
        for axis in range(3):
            direction[axis] /= length
            start_key[axis] = math.floor(origin[axis] * (1.0 / resolution)) + ORIGIN_KEY
            step[axis] = 1 if direction[axis] > 0.0 else -1
            border = (start_key[axis] - ORIGIN_KEY + 0.5) * resolution + np.float32(step[axis] * resolution * 0.5)
            next_crossing[axis] = (
                (border - np.float32(origin[axis])) / direction[axis] if direction[axis] != 0.0 else math.inf
            )
            crossing_interval[axis] = resolution / abs(direction[axis]) if direction[axis] != 0.0 else math.inf
        # numbers instead of arrays from here on: half the time
        x, y, z = start_key[0], start_key[1], start_key[2]
        last_x, last_y, last_z = end_keys[k, 0], end_keys[k, 1], end_keys[k, 2]
        next_crossing_x, next_crossing_y, next_crossing_z = next_crossing[0], next_crossing[1], next_crossing[2]
        bx, by, bz, block = -1, -1, -1, -1
        is_unfinished = x != last_x or y != last_y or z != last_z
        while is_unfinished:
            if x >> 3 != bx or y >> 3 != by or z >> 3 != bz:
                bx, by, bz = x >> 3, y >> 3, z >> 3
                block = table[bx - table_origin[0], by - table_origin[1], bz - table_origin[2]]
                if block < 0:
                    if n_blocks == len(positions):
                        return k, n_blocks
                    block = n_blocks
                    table[bx - table_origin[0], by - table_origin[1], bz - table_origin[2]] = block
                    positions[block, 0], positions[block, 1], positions[block, 2] = bx, by, bz
                    n_blocks += 1
                touched[block] = 1
            voxel = MORTON_SPREAD[x & 7] | (MORTON_SPREAD[y & 7] << 1) | (MORTON_SPREAD[z & 7] << 2)
            if marks[block, voxel] == 0:
                marks[block, voxel] = FREE_MARK
            if next_crossing_x < next_crossing_y:
                if next_crossing_x < next_crossing_z:
                    x += step[0]
                    next_crossing_x += crossing_interval[0]
                else:
                    z += step[2]
                    next_crossing_z += crossing_interval[2]
            elif next_crossing_y < next_crossing_z:
                y += step[1]
                next_crossing_y += crossing_interval[1]
            else:
                z += step[2]
                next_crossing_z += crossing_interval[2]
            # where rounding leads past the end, it is the length that tells
            is_at_end = x == last_x and y == last_y and z == last_z
            is_unfinished = not is_at_end and min(next_crossing_x, next_crossing_y, next_crossing_z) <= length
    return len(ends), n_blocks


@kernel(
    examples=lambda: [
        (np.zeros((1, 512), np.uint8), np.zeros(1, np.uint8), np.zeros((1, 512), np.float32), 1,
         np.zeros(4, np.float32)),
    ]
)  # fmt: skip
def apply_marks(
    marks: NDArray[np.uint8],
    touched: NDArray[np.uint8],
    values: NDArray[np.float32],
    n_blocks: int,
    model: NDArray[np.float32],
) -> tuple[int, int]:
    """Add the marks of a cloud to the log-odds, and remove the marks.

    Args:
        marks: (blocks, voxels) 1 free, 2 occupied; written.
        touched: (blocks,) which have marks; written.
        values: (blocks, voxels) log-odds, NaN unknown; written.
        n_blocks: Blocks in use.
        model: (4,) log-odds of a hit, of a miss, the lowest, the highest.

    Returns:
        Numbers of voxels that became free and occupied.
    """
    hit, miss, low, high = model[0], model[1], model[2], model[3]
    free, occupied = 0, 0
    for block in range(n_blocks):
        if touched[block] == 0:
            continue
        touched[block] = 0
        for voxel in range(marks.shape[1]):
            mark = marks[block, voxel]
            if mark == 0:
                continue
            marks[block, voxel] = 0
            value = values[block, voxel]
            if math.isnan(value):
                value = np.float32(0.0)
            if mark == HIT_MARK:
                occupied += 1
                value = min(np.float32(value + hit), high)
            else:
                free += 1
                value = max(np.float32(value + miss), low)
            values[block, voxel] = value
    return free, occupied
