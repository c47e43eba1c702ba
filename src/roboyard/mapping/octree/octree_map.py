"""The octree map: clouds in, what is occupied, free and unknown in space out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import kernel
from roboyard.errors import InputError
from roboyard.grids import voxel_downsample
from roboyard.mapping.octree.blocks import (
    LOCAL,
    MOST_KEYS,
    ORIGIN,
    SIDE,
    VOXELS,
    Blocks,
    keys_of,
    morton,
    unmorton,
    within,
)
from roboyard.mapping.octree.config import OctreeConfig, log_odds
from roboyard.mapping.octree.leaves import DEPTH, Leaves
from roboyard.mapping.octree.levels import WHITE, Nodes, build, leaf_numbers
from roboyard.mapping.octree.rays import HIT_MARK, count_in, mark_beams, within_reach
from roboyard.mapping.octree.stream import encode_binary, encode_full

MOST_VOXELS: Final = 200_000_000
"""That a file may unfold to."""
_BLOCK_DEPTH: Final = 13
"""Level of nodes as large as a block."""


@dataclass(frozen=True, slots=True)
class Inserted:
    """What became of a cloud.

    Attributes:
        points: That were finite and far enough.
        beams: That were left after thinning.
        free: Voxels that it saw free.
        occupied: Voxels that it saw occupied.
    """

    points: int
    beams: int
    free: int
    occupied: int


class OctreeMap:
    """Occupancy of space, learnt from clouds of points (Hornung et al., OctoMap, Autonomous Robots 2013).

    A cloud is thinned to a point in each voxel, and one beam goes to each.  Voxels in which beams end become likelier
    occupied, those they only pass likelier free, within limits, so that the map can still change its mind.  What one
    cloud sees both ways is occupied.  What is written is bit by bit the tree that OctoMap makes of the same beams.

    Args:
        config: Sensor model.
    """

    def __init__(self, config: OctreeConfig | None = None) -> None:
        self.config = config = config or OctreeConfig()
        self._blocks = Blocks()
        model = config.sensor_model
        self._model = np.array(
            [log_odds(value) for value in (model.hit, model.miss, model.min, model.max)], dtype=np.float32
        )
        self._threshold = float(log_odds(config.occupied))

    # -- learning ------------------------------------------------------------------------------------------------------
    def insert(
        self, points: ArrayLike, origin: ArrayLike, colors: ArrayLike | None = None, *, ground: ArrayLike | None = None
    ) -> Inserted:
        """Take in a cloud.

        Args:
            points: (n, 3) in the map [m]; those that are not finite know nothing.
            origin: (3,) of the sensor in the map [m].
            colors: (n, 3) of 0 to 255; a voxel's is the mean of the cloud's, and then of clouds, the newer counting
                as much as all before, as in octomap_server.
            ground: (n,) which points are not to be marked as occupied; what lies before them is free all the same.

        Raises:
            InputError: arrays of other shapes, an origin that is not finite or outside of what a tree can hold, or
                a map that would become too large.
        """
        config, model = self.config, self.config.sensor_model
        cloud, start = np.asarray(points, dtype=np.float64), np.asarray(origin, dtype=np.float64)
        shades = None if colors is None else np.asarray(colors, dtype=np.uint8)
        if cloud.ndim != 2 or cloud.shape[1] != 3 or start.shape != (3,):
            raise InputError(f"points of shape {cloud.shape}, an origin of {start.shape}", valid="(n, 3) and (3,)")
        if shades is not None and shades.shape != cloud.shape:
            raise InputError(f"colours of shape {shades.shape}", valid=f"{cloud.shape}, as the points")
        floor = np.zeros(len(cloud), np.bool_) if ground is None else np.asarray(ground, dtype=np.bool_)
        if floor.shape != (len(cloud),):
            raise InputError(f"ground of shape {floor.shape}", valid=f"({len(cloud)},), as the points")
        self._check(start)
        near, cut = within_reach(np.ascontiguousarray(cloud), start, floor, model.min_range, model.max_range)
        hit = cloud[near]
        self._check(cut)
        self._check(hit)
        hits = voxel_downsample(hit, None if shades is None else shades[near], config.resolution)
        misses = voxel_downsample(cut, None, config.resolution)
        ends, keys = np.concatenate([hits.points, misses.points]), np.concatenate([hits.keys, misses.keys]) + ORIGIN
        seen_free, seen_occupied = self.cast(start, ends, keys, len(hits.keys))
        if hits.colors is not None:
            blocks, voxels = self._blocks.find(hits.keys + ORIGIN)
            paint(self._blocks.colors, blocks, voxels, hits.colors)
        return Inserted(len(hit) + len(cut), len(ends), seen_free, seen_occupied)

    def cast(
        self, origin: NDArray[np.float64], ends: NDArray[np.float64], keys: NDArray[np.int64], hits: int
    ) -> tuple[int, int]:
        """Take in beams as they are.

        Args:
            origin: (3,) of all of them [m].
            ends: (n, 3) [m].
            keys: (n, 3) voxels that hold the ends.
            hits: So many, the first, end at something; the others only free what lies before their ends.

        Returns:
            How many voxels were seen free, and how many occupied.

        Raises:
            InputError: the map would become too large.
        """
        if not len(ends):
            return 0, 0
        blocks, resolution = self._blocks, self.config.resolution
        own = keys_of(origin, resolution)
        low, high = np.minimum(keys.min(axis=0), own) - 1, np.maximum(keys.max(axis=0), own) + 1
        blocks.cover(np.maximum(low, 0), np.minimum(high, MOST_KEYS - 1))
        numbers = blocks.take(keys[:hits] // SIDE)
        blocks.marks[numbers, within(keys[:hits])] = HIT_MARK
        blocks.touched[numbers] = 1
        done = 0
        while done < len(ends):
            done, blocks.count = mark_beams(
                origin, ends, keys, done, resolution, blocks.low, blocks.table, blocks.places, blocks.marks,
                blocks.touched, blocks.count,
            )  # fmt: skip
            if done < len(ends):
                blocks.grow()
        return count_in(blocks.marks, blocks.touched, blocks.values, blocks.count, self._model)

    def _check(self, points: NDArray[np.float64]) -> None:
        """Raises InputError for points that no voxel holds."""
        edge = (MOST_KEYS - ORIGIN - SIDE) * self.config.resolution
        if not (np.abs(points) < edge).all():
            raise InputError("a point beyond the map's reach", valid=f"±{edge:g} m at this resolution, along each axis")

    def clear_box(self, low: ArrayLike, high: ArrayLike) -> int:
        """Make what is known within a box as free as it can be, as octomap_server's ``clear_bbx``; how many voxels.

        Args:
            low: (3,) its lowest corner [m].
            high: (3,) its highest.
        """
        corners = np.array([low, high], dtype=np.float64) / self.config.resolution
        if not np.isfinite(corners).all():
            raise InputError("a box with corners that are not finite", valid="metres")
        first, last = np.clip(np.floor(corners) + ORIGIN, 0, MOST_KEYS - 1).astype(np.int64)
        blocks = self._blocks
        places = blocks.places[: blocks.count]
        chosen = np.flatnonzero(((places >= first // SIDE) & (places <= last // SIDE)).all(axis=1))
        keys = places[chosen][:, None] * SIDE + LOCAL[None]
        inside = ((keys >= first) & (keys <= last)).all(axis=2) & ~np.isnan(blocks.values[chosen])
        number, voxel = np.nonzero(inside)
        blocks.values[chosen[number], voxel] = self._model[2]
        return len(number)

    def reset(self) -> None:
        """Forget everything."""
        self._blocks = Blocks()

    # -- what is known -------------------------------------------------------------------------------------------------
    def log_odds(self, points: ArrayLike) -> NDArray[np.float32]:
        """(n,) log-odds of being occupied at points (n, 3) [m]; NaN: unknown."""
        keys = keys_of(np.asarray(points, dtype=np.float64).reshape(-1, 3), self.config.resolution)
        blocks, voxels = self._blocks.find(keys)
        return np.where(blocks >= 0, self._blocks.values[blocks, voxels], np.float32(np.nan)).astype(np.float32)

    def occupied(self, points: ArrayLike) -> NDArray[np.bool_]:
        """(n,) whether something is at points (n, 3) [m], as far as is known."""
        return np.asarray(self.log_odds(points) >= np.float32(self._threshold))

    def _voxels(self) -> tuple[NDArray[np.uint64], NDArray[np.float32], NDArray[np.uint8]]:
        """Codes, values and colours of all known voxels, in the order of the tree."""
        blocks = self._blocks
        codes = morton(blocks.places[: blocks.count])
        return gather(np.argsort(codes), codes, blocks.values, blocks.colors)

    def nodes(self) -> Nodes:
        """The tree."""
        return build(*self._voxels())

    def full(self, nodes: Nodes | None = None, *, color: bool = True) -> bytes:
        """The tree with all it knows, as OctoMap's ``.ot`` files and octomap_msgs have it; of ``nodes``, if they are
        there already."""
        return encode_full(self.nodes() if nodes is None else nodes, color=color)

    def binary(self) -> bytes:
        """The tree with what is free and what occupied, as OctoMap's ``.bt`` files and octomap_msgs have it."""
        codes, values, colors = self._voxels()
        sure = np.where(values >= np.float32(self._threshold), np.float32(1.0), np.float32(-1.0))
        return encode_binary(build(codes, sure, np.full_like(colors, WHITE)))

    def leaves(self, nodes: Nodes | None = None, *, color: bool = True) -> Leaves:
        """Its leaves; of ``nodes``, if they are there already."""
        tree = self.nodes() if nodes is None else nodes
        chosen = leaf_numbers(tree.masks, tree.first)
        shifts = 3 * (DEPTH - tree.levels[chosen].astype(np.int64))
        codes = tree.codes[chosen] << shifts.astype(np.uint64)
        return Leaves(
            codes, tree.levels[chosen], tree.values[chosen], tree.colors[chosen] if color else None,
            self.config.resolution, self._threshold, tree.count,
        )  # fmt: skip

    # -- state ---------------------------------------------------------------------------------------------------------
    def put(self, leaves: Leaves) -> None:
        """Know what a tree knows, and nothing else.

        Raises:
            InputError: another resolution, or more than a map can hold.
        """
        if abs(leaves.resolution - self.config.resolution) > 1e-9:
            raise InputError(
                f"a tree of {leaves.resolution:g} m", valid=f"{self.config.resolution:g} m, the map's resolution"
            )
        total = int((leaves.voxels.astype(object) ** 3).sum()) if len(leaves) else 0
        if total > MOST_VOXELS:
            raise InputError(f"a tree of {total} voxels", valid=f"at most {MOST_VOXELS}")
        blocks = Blocks()
        if len(leaves):
            keys = leaves.keys
            blocks.cover(keys.min(axis=0), (keys + leaves.voxels[:, None] - 1).max(axis=0))
        colors = np.full((len(leaves), 3), WHITE, np.uint8) if leaves.colors is None else leaves.colors
        large = leaves.depths < _BLOCK_DEPTH
        small = ~large
        numbers = blocks.take(unmorton(leaves.codes[small] >> np.uint64(3 * (DEPTH - _BLOCK_DEPTH))))
        start = (leaves.codes[small] & np.uint64(VOXELS - 1)).astype(np.int64)
        counts = leaves.voxels[small] ** 3
        fill(blocks.values, blocks.colors, numbers, start, counts, leaves.values[small], colors[small])
        for leaf in np.flatnonzero(large):
            edge = int(leaves.voxels[leaf]) // SIDE
            inside = np.indices((edge,) * 3).reshape(3, -1).T
            numbers = blocks.take(unmorton(leaves.codes[[leaf]]) // SIDE + inside)
            blocks.values[numbers], blocks.colors[numbers] = leaves.values[leaf], colors[leaf]
        self._blocks = blocks

    def save_state(self) -> dict[str, Any]:
        """Everything as plain data."""
        return self._blocks.save_state()

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`, on a map of the same configuration."""
        self._blocks.load_state(saved)


@kernel(
    examples=lambda: [
        (np.zeros(1, np.int64), np.zeros(1, np.uint64), np.zeros((1, 512), np.float32),
         np.zeros((1, 512, 3), np.uint8)),
    ]
)  # fmt: skip
def gather(
    order: NDArray[np.int64], codes: NDArray[np.uint64], values: NDArray[np.float32], colors: NDArray[np.uint8]
) -> tuple[NDArray[np.uint64], NDArray[np.float32], NDArray[np.uint8]]:
    """Codes (n,), values (n,) and colours (n, 3) of the known voxels of blocks, taken in an order.

    Args:
        order: (blocks,) in which to go.
        codes: (blocks,) Morton codes.
        values: (blocks, voxels) NaN: unknown.
        colors: (blocks, voxels, 3).
    """
    count = 0
    for block in range(len(order)):
        for voxel in range(values.shape[1]):
            count += not np.isnan(values[block, voxel])
    found, log, shade = np.empty(count, np.uint64), np.empty(count, np.float32), np.empty((count, 3), np.uint8)
    at = 0
    for block in order:
        for voxel in range(values.shape[1]):
            if not np.isnan(values[block, voxel]):
                found[at] = (codes[block] << np.uint64(9)) | np.uint64(voxel)
                log[at] = values[block, voxel]
                for axis in range(3):
                    shade[at, axis] = colors[block, voxel, axis]
                at += 1
    return found, log, shade


@kernel(
    examples=lambda: [
        (np.zeros((1, 512, 3), np.uint8), np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros((1, 3), np.uint8)),
    ]
)
def paint(
    colors: NDArray[np.uint8], blocks: NDArray[np.int64], voxels: NDArray[np.int64], shades: NDArray[np.uint8]
) -> None:
    """Mix new colours (n, 3) half and half with those of voxels, where they have one (``averageNodeColor``).

    Args:
        colors: (blocks, voxels, 3) written; white counts as none.
        blocks: (n,).
        voxels: (n,).
        shades: (n, 3).
    """
    for k in range(len(blocks)):
        old = colors[blocks[k], voxels[k]]
        told = old[0] != 255 or old[1] != 255 or old[2] != 255
        for axis in range(3):
            old[axis] = (np.int64(old[axis]) + shades[k, axis]) // 2 if told else shades[k, axis]


@kernel(
    examples=lambda: [
        (np.zeros((1, 512), np.float32), np.zeros((1, 512, 3), np.uint8), np.zeros(1, np.int64), np.zeros(1, np.int64),
         np.ones(1, np.int64), np.zeros(1, np.float32), np.zeros((1, 3), np.uint8)),
    ]
)  # fmt: skip
def fill(
    values: NDArray[np.float32],
    colors: NDArray[np.uint8],
    blocks: NDArray[np.int64],
    start: NDArray[np.int64],
    count: NDArray[np.int64],
    logs: NDArray[np.float32],
    shades: NDArray[np.uint8],
) -> None:
    """Write leaves (n,) into voxels of blocks, each into ``count`` of them from ``start`` on."""
    for k in range(len(blocks)):
        for voxel in range(start[k], start[k] + count[k]):
            values[blocks[k], voxel] = logs[k]
            for axis in range(3):
                colors[blocks[k], voxel, axis] = shades[k, axis]
