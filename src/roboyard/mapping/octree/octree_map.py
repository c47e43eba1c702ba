"""Octree maps: clouds are inserted as rays; the map is read as octree, bytes, leaves, or projected to the plane."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import kernel
from roboyard.config import Config, parameter
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2
from roboyard.grids import FREE, OCCUPIED, UNKNOWN, GridGeometry, OccupancyGrid, voxel_downsample
from roboyard.mapping.octree.octree import (
    DEPTH,
    NO_COLOR,
    OctreeLeaves,
    PrunedOctree,
    build_octree,
    encode_binary,
    encode_full,
    leaf_order,
)
from roboyard.mapping.octree.voxel_blocks import (
    BLOCK_SIZE,
    HIT_MARK,
    N_KEYS,
    ORIGIN_KEY,
    VOXEL_OFFSETS,
    VOXELS_PER_BLOCK,
    RayBatch,
    VoxelBlocks,
    apply_marks,
    clip_beams,
    index_in_block,
    mark_rays,
    morton_decode,
    morton_encode,
    voxel_keys,
)


class OccupancySensorModel(Config):
    """Evidence of a beam; names are those of octomap_server, defaults those of OctoMap except for the range."""

    min_range: float = parameter(0.0, unit="m", low=0.0, high=1000.0, doc="Range below which points are ignored.")
    max_range: float = parameter(
        5.0, unit="m", low=0.001, high=1000.0, doc="Range beyond which points only free the space before them."
    )
    hit: float = parameter(0.7, low=0.501, high=0.999, doc="Probability that the end of a beam is occupied.")
    miss: float = parameter(0.4, low=0.001, high=0.499, doc="Probability that a voxel that a beam passes is occupied.")
    min: float = parameter(0.12, low=0.001, high=0.499, doc="Smallest probability of a voxel.")
    max: float = parameter(0.97, low=0.501, high=0.999, doc="Largest probability of a voxel.")

    def validate(self) -> None:
        """Check the order of the ranges."""
        if not self.min_range < self.max_range:
            raise ConfigError(
                f"ranges {self.min_range} to {self.max_range} m", location="sensor_model", valid="ascending"
            )


class OctreeMapConfig(Config):
    """Parameters of an `OctreeMap`."""

    resolution: float = parameter(0.05, unit="m", low=0.001, high=100.0, doc="Edge of the smallest voxel.")
    occupancy_threshold: float = parameter(0.5, low=0.01, high=0.99, doc="Smallest probability of an occupied voxel.")
    sensor_model: OccupancySensorModel = parameter(factory=OccupancySensorModel, doc="Evidence of a beam on voxels.")

    def validate(self) -> None:
        """Check that the threshold can be reached."""
        model = self.sensor_model
        if not model.min < self.occupancy_threshold <= model.max:
            raise ConfigError(
                f"occupancy_threshold = {self.occupancy_threshold}",
                location="octree",
                valid=f"above min, {model.min}, up to max, {model.max}",
            )


def log_odds(probability: float) -> np.float32:
    """Return log-odds, as 32-bit numbers, as OctoMap stores them."""
    return np.float32(math.log(probability / (1.0 - probability)))


MAX_TREE_VOXELS: Final = 200_000_000
"""That a file may unfold to."""
_BLOCK_DEPTH: Final = 13
"""Level of nodes as large as a block."""


@dataclass(frozen=True, slots=True)
class InsertionStatistics:
    """Result of the insertion of a cloud.

    Attributes:
        n_points: Number of points that are finite and far enough.
        n_beams: Number of beams after the reduction to one for each voxel.
        n_free_voxels: Number of voxels that the cloud observed as free.
        n_occupied_voxels: Number of voxels that the cloud observed as occupied.
    """

    n_points: int
    n_beams: int
    n_free_voxels: int
    n_occupied_voxels: int


class OctreeMap:
    """Occupancy map of space from clouds of points (Hornung et al., OctoMap, Autonomous Robots 2013).

    A cloud is reduced to one point for each voxel, with one beam for each. The voxels of the beams' ends become more
    likely occupied, those that beams pass more likely free, within limits, so that the map can change. A voxel that one
    cloud observes both ways is occupied. The encoded tree equals that of OctoMap for the same beams, bit by bit.

    Args:
        config: Parameters.
    """

    def __init__(self, config: OctreeMapConfig | None = None) -> None:
        self.config = config = config or OctreeMapConfig()
        self._blocks = VoxelBlocks()
        model = config.sensor_model
        self._log_odds_model = np.array(
            [log_odds(value) for value in (model.hit, model.miss, model.min, model.max)], dtype=np.float32
        )
        self._threshold = float(log_odds(config.occupancy_threshold))

    # -- insertion -----------------------------------------------------------------------------------------------------
    def insert(
        self, points: ArrayLike, origin: ArrayLike, colors: ArrayLike | None = None, *, ground: ArrayLike | None = None
    ) -> InsertionStatistics:
        """Insert a cloud.

        Args:
            points: (n, 3) in the map [m]; points that are not finite are ignored.
            origin: (3,) position of the sensor in the map [m].
            colors: (n, 3) of 0 to 255; the color of a voxel is the mean of the cloud, averaged with the color before,
                as in octomap_server.
            ground: (n,) which points are not marked as occupied; the space before them is free.

        Raises:
            InputError: Arrays have other shapes, the origin is not finite or outside of the range of a tree, or the map
                would become too large.
        """
        config, model = self.config, self.config.sensor_model
        cloud, sensor_position = np.asarray(points, dtype=np.float64), np.asarray(origin, dtype=np.float64)
        color_array = None if colors is None else np.asarray(colors, dtype=np.uint8)
        if cloud.ndim != 2 or cloud.shape[1] != 3 or sensor_position.shape != (3,):
            raise InputError(
                f"points of shape {cloud.shape}, an origin of {sensor_position.shape}", valid="(n, 3) and (3,)"
            )
        if color_array is not None and color_array.shape != cloud.shape:
            raise InputError(f"colours of shape {color_array.shape}", valid=f"{cloud.shape}, as the points")
        is_ground = np.zeros(len(cloud), np.bool_) if ground is None else np.asarray(ground, dtype=np.bool_)
        if is_ground.shape != (len(cloud),):
            raise InputError(f"ground of shape {is_ground.shape}", valid=f"({len(cloud)},), as the points")
        self._check_in_reach(sensor_position)
        hit_indices, free_ends = clip_beams(
            np.ascontiguousarray(cloud), sensor_position, is_ground, model.min_range, model.max_range
        )
        hit_points = cloud[hit_indices]
        self._check_in_reach(free_ends)
        self._check_in_reach(hit_points)
        hits = voxel_downsample(
            hit_points, None if color_array is None else color_array[hit_indices], config.resolution
        )
        misses = voxel_downsample(free_ends, None, config.resolution)
        ends, keys = np.concatenate([hits.points, misses.points]), np.concatenate([hits.keys, misses.keys]) + ORIGIN_KEY
        n_free, n_occupied = self.insert_rays(sensor_position, ends, keys, len(hits.keys))
        if hits.colors is not None:
            blocks, voxels = self._blocks.find(hits.keys + ORIGIN_KEY)
            blend_colors(self._blocks.colors, blocks, voxels, hits.colors)
        return InsertionStatistics(len(hit_points) + len(free_ends), len(ends), n_free, n_occupied)

    def insert_rays(
        self, origin: NDArray[np.float64], ends: NDArray[np.float64], keys: NDArray[np.int64], n_hits: int
    ) -> tuple[int, int]:
        """Insert beams without reduction.

        Args:
            origin: (3,) start of all beams [m].
            ends: (n, 3) ends of the beams [m].
            keys: (n, 3) keys of the voxels that hold the ends.
            n_hits: Number of beams, the first ones, that hit something; the others only free the space before their
                ends.

        Returns:
            Number of voxels that were observed as free, and as occupied.

        Raises:
            InputError: The map would become too large.
        """
        if not len(ends):
            return 0, 0
        blocks, resolution = self._blocks, self.config.resolution
        origin_key = voxel_keys(origin, resolution)
        min_key, max_key = np.minimum(keys.min(axis=0), origin_key) - 1, np.maximum(keys.max(axis=0), origin_key) + 1
        blocks.extend_table(np.maximum(min_key, 0), np.minimum(max_key, N_KEYS - 1))
        numbers = blocks.get_or_create(keys[:n_hits] // BLOCK_SIZE)
        blocks.marks[numbers, index_in_block(keys[:n_hits])] = HIT_MARK
        blocks.touched[numbers] = 1
        n_done, rays = 0, RayBatch(origin, ends, keys)
        while n_done < len(ends):
            n_done, blocks.n_blocks = mark_rays(rays, n_done, resolution, blocks.arrays(), blocks.n_blocks)
            if n_done < len(ends):
                blocks.grow()
        return apply_marks(blocks.marks, blocks.touched, blocks.values, blocks.n_blocks, self._log_odds_model)

    def _check_in_reach(self, points: NDArray[np.float64]) -> None:
        """Raise an InputError for points outside of the range of a tree."""
        edge = (N_KEYS - ORIGIN_KEY - BLOCK_SIZE) * self.config.resolution
        if not (np.abs(points) < edge).all():
            raise InputError("a point beyond the map's reach", valid=f"±{edge:g} m at this resolution, along each axis")

    def clear_box(self, min_corner: ArrayLike, max_corner: ArrayLike) -> int:
        """Make all known voxels in a box as free as possible, as octomap_server's ``clear_bbx``; return their number.

        Args:
            min_corner: (3,) lowest corner [m].
            max_corner: (3,) highest corner [m].
        """
        corners = np.array([min_corner, max_corner], dtype=np.float64) / self.config.resolution
        if not np.isfinite(corners).all():
            raise InputError("a box with corners that are not finite", valid="metres")
        first, last = np.clip(np.floor(corners) + ORIGIN_KEY, 0, N_KEYS - 1).astype(np.int64)
        blocks = self._blocks
        positions = blocks.positions[: blocks.n_blocks]
        block_indices = np.flatnonzero(
            ((positions >= first // BLOCK_SIZE) & (positions <= last // BLOCK_SIZE)).all(axis=1)
        )
        keys = positions[block_indices][:, None] * BLOCK_SIZE + VOXEL_OFFSETS[None]
        is_inside = ((keys >= first) & (keys <= last)).all(axis=2) & ~np.isnan(blocks.values[block_indices])
        number, voxel = np.nonzero(is_inside)
        blocks.values[block_indices[number], voxel] = self._log_odds_model[2]
        return len(number)

    def clear(self) -> None:
        """Forget everything, as OctoMap's ``clear``."""
        self._blocks = VoxelBlocks()

    # -- queries -------------------------------------------------------------------------------------------------
    def log_odds(self, points: ArrayLike) -> NDArray[np.float32]:
        """Return log-odds, as 32-bit numbers, as OctoMap stores them."""
        keys = voxel_keys(np.asarray(points, dtype=np.float64).reshape(-1, 3), self.config.resolution)
        blocks, voxels = self._blocks.find(keys)
        return np.where(blocks >= 0, self._blocks.values[blocks, voxels], np.float32(np.nan)).astype(np.float32)

    def occupied(self, points: ArrayLike) -> NDArray[np.bool_]:
        """Return whether the voxels at points (n, 3) [m] are occupied; unknown voxels are not."""
        return np.asarray(self.log_odds(points) >= np.float32(self._threshold))

    def _voxels(self) -> tuple[NDArray[np.uint64], NDArray[np.float32], NDArray[np.uint8]]:
        """Return codes, values and colors of all known voxels, in the order of the tree."""
        blocks = self._blocks
        codes = morton_encode(blocks.positions[: blocks.n_blocks])
        return gather_voxels(np.argsort(codes), codes, blocks.values, blocks.colors)

    def to_octree(self) -> PrunedOctree:
        """Return the pruned tree."""
        return build_octree(*self._voxels())

    def encode_full(self, octree: PrunedOctree | None = None, *, color: bool = True) -> bytes:
        """Encode the tree with all values, as in OctoMap's ``.ot`` files and octomap_msgs; of ``octree`` if it exists
        already.
        """
        return encode_full(self.to_octree() if octree is None else octree, color=color)

    def encode_binary(self) -> bytes:
        """Encode the tree with free and occupied leaves, as in OctoMap's ``.bt`` files and octomap_msgs."""
        codes, values, colors = self._voxels()
        certain_values = np.where(values >= np.float32(self._threshold), np.float32(1.0), np.float32(-1.0))
        return encode_binary(build_octree(codes, certain_values, np.full_like(colors, NO_COLOR)))

    def leaves(self, octree: PrunedOctree | None = None, *, color: bool = True) -> OctreeLeaves:
        """Return the leaves of the tree; of ``octree`` if it exists already."""
        tree = self.to_octree() if octree is None else octree
        leaf_indices = leaf_order(tree.masks, tree.first_children)
        shifts = 3 * (DEPTH - tree.levels[leaf_indices].astype(np.int64))
        codes = tree.codes[leaf_indices] << shifts.astype(np.uint64)
        return OctreeLeaves(
            codes, tree.levels[leaf_indices], tree.values[leaf_indices], tree.colors[leaf_indices] if color else None,
            self.config.resolution, self._threshold, tree.n_nodes,
        )  # fmt: skip

    # -- state ---------------------------------------------------------------------------------------------------------
    def set_leaves(self, leaves: OctreeLeaves) -> None:
        """Replace the map by the leaves of a tree.

        Raises:
            InputError: The resolution differs, or the tree is too large.
        """
        if abs(leaves.resolution - self.config.resolution) > 1e-9:
            raise InputError(
                f"a tree of {leaves.resolution:g} m", valid=f"{self.config.resolution:g} m, the map's resolution"
            )
        total = int((leaves.edge_voxels.astype(object) ** 3).sum()) if len(leaves) else 0
        if total > MAX_TREE_VOXELS:
            raise InputError(f"a tree of {total} voxels", valid=f"at most {MAX_TREE_VOXELS}")
        blocks = VoxelBlocks()
        if len(leaves):
            keys = leaves.keys
            blocks.extend_table(keys.min(axis=0), (keys + leaves.edge_voxels[:, None] - 1).max(axis=0))
        colors = np.full((len(leaves), 3), NO_COLOR, np.uint8) if leaves.colors is None else leaves.colors
        is_large = leaves.depths < _BLOCK_DEPTH
        is_small = ~is_large
        numbers = blocks.get_or_create(morton_decode(leaves.codes[is_small] >> np.uint64(3 * (DEPTH - _BLOCK_DEPTH))))
        start = (leaves.codes[is_small] & np.uint64(VOXELS_PER_BLOCK - 1)).astype(np.int64)
        counts = leaves.edge_voxels[is_small] ** 3
        fill_voxels(blocks.values, blocks.colors, numbers, start, counts, leaves.values[is_small], colors[is_small])
        for leaf in np.flatnonzero(is_large):
            edge = int(leaves.edge_voxels[leaf]) // BLOCK_SIZE
            inside = np.indices((edge,) * 3).reshape(3, -1).T
            numbers = blocks.get_or_create(morton_decode(leaves.codes[[leaf]]) // BLOCK_SIZE + inside)
            blocks.values[numbers], blocks.colors[numbers] = leaves.values[leaf], colors[leaf]
        self._blocks = blocks

    def save_state(self) -> dict[str, Any]:
        """Return the whole map as plain data."""
        return self._blocks.save_state()

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what `save_state` returned, in a map of the same configuration."""
        self._blocks.load_state(saved)


@kernel(
    examples=lambda: [
        (np.zeros(1, np.int64), np.zeros(1, np.uint64), np.zeros((1, 512), np.float32),
         np.zeros((1, 512, 3), np.uint8)),
    ]
)  # fmt: skip
def gather_voxels(
    order: NDArray[np.int64], codes: NDArray[np.uint64], values: NDArray[np.float32], colors: NDArray[np.uint8]
) -> tuple[NDArray[np.uint64], NDArray[np.float32], NDArray[np.uint8]]:
    """Return the codes (n,), values (n,) and colors (n, 3) of the known voxels of blocks, in a given order.

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
    voxel_codes, log_odds_values, voxel_colors = (
        np.empty(count, np.uint64),
        np.empty(count, np.float32),
        np.empty((count, 3), np.uint8),
    )
    position = 0
    for block in order:
        for voxel in range(values.shape[1]):
            if not np.isnan(values[block, voxel]):
                voxel_codes[position] = (codes[block] << np.uint64(9)) | np.uint64(voxel)
                log_odds_values[position] = values[block, voxel]
                for axis in range(3):
                    voxel_colors[position, axis] = colors[block, voxel, axis]
                position += 1
    return voxel_codes, log_odds_values, voxel_colors


@kernel(
    examples=lambda: [
        (np.zeros((1, 512, 3), np.uint8), np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros((1, 3), np.uint8)),
    ]
)
def blend_colors(
    colors: NDArray[np.uint8], blocks: NDArray[np.int64], voxels: NDArray[np.int64], new_colors: NDArray[np.uint8]
) -> None:
    """Average new colors (n, 3) with those of voxels that have a color (``averageNodeColor``).

    Args:
        colors: (blocks, voxels, 3) written; white counts as none.
        blocks: (n,).
        voxels: (n,).
        new_colors: (n, 3).
    """
    for k in range(len(blocks)):
        voxel_color = colors[blocks[k], voxels[k]]
        has_color = voxel_color[0] != 255 or voxel_color[1] != 255 or voxel_color[2] != 255
        for axis in range(3):
            voxel_color[axis] = (
                (np.int64(voxel_color[axis]) + new_colors[k, axis]) // 2 if has_color else new_colors[k, axis]
            )


@kernel(
    examples=lambda: [
        (np.zeros((1, 512), np.float32), np.zeros((1, 512, 3), np.uint8), np.zeros(1, np.int64), np.zeros(1, np.int64),
         np.ones(1, np.int64), np.zeros(1, np.float32), np.zeros((1, 3), np.uint8)),
    ]
)  # fmt: skip
def fill_voxels(
    values: NDArray[np.float32],
    colors: NDArray[np.uint8],
    blocks: NDArray[np.int64],
    start: NDArray[np.int64],
    count: NDArray[np.int64],
    leaf_values: NDArray[np.float32],
    leaf_colors: NDArray[np.uint8],
) -> None:
    """Write leaves (n,) into voxels of blocks, each into ``count`` of them from ``start`` on."""
    for k in range(len(blocks)):
        for voxel in range(start[k], start[k] + count[k]):
            values[blocks[k], voxel] = leaf_values[k]
            for axis in range(3):
                colors[blocks[k], voxel, axis] = leaf_colors[k, axis]


MAX_CELLS: Final = 100_000_000


def project_to_plane(leaves: OctreeLeaves, min_z: float, max_z: float) -> OccupancyGrid:
    """Project a band of heights to the plane: a cell is occupied where any voxel is, free where one is free.

    Args:
        leaves: Leaves of the map.
        min_z: Smallest height of a voxel's center [m].
        max_z: Largest height of a voxel's center [m].

    Raises:
        InputError: The grid would be too large.
    """
    keys, edges, resolution = leaves.keys, leaves.edge_voxels, leaves.resolution
    # numbers of the lowest and highest voxels whose middles are in the band
    min_key = math.ceil(max(min_z / resolution - 0.5, -ORIGIN_KEY) - 1e-9) + ORIGIN_KEY
    max_key = math.floor(min(max_z / resolution - 0.5, ORIGIN_KEY) + 1e-9) + ORIGIN_KEY
    is_in_band = (keys[:, 2] <= max_key) & (keys[:, 2] + edges > min_key)
    keys, edges, occupied = keys[is_in_band], edges[is_in_band], leaves.occupied[is_in_band]
    if not len(keys):
        return OccupancyGrid(np.zeros((0, 0), np.int8), GridGeometry(resolution, (0, 0)))
    corner, end = keys[:, :2].min(axis=0), (keys[:, :2] + edges[:, None]).max(axis=0)
    columns, rows = (int(n) for n in end - corner)
    if rows * columns > MAX_CELLS:
        raise InputError(f"a projection of {rows} × {columns} cells", valid=f"at most {MAX_CELLS}")
    cells = np.full((rows, columns), UNKNOWN, dtype=np.int8)
    fill_squares(cells, keys[:, :2] - corner, edges, occupied)
    x, y = (float(value) for value in (corner - ORIGIN_KEY) * resolution)
    return OccupancyGrid(cells, GridGeometry(resolution, cells.shape, SE2(x, y, 0.0)))


@kernel(
    examples=lambda: [
        (np.zeros((1, 1), np.int8), np.zeros((1, 2), np.int64), np.ones(1, np.int64), np.zeros(1, np.bool_)),
    ]
)
def fill_squares(
    cells: NDArray[np.int8], corners: NDArray[np.int64], edges: NDArray[np.int64], occupied: NDArray[np.bool_]
) -> None:
    """Write squares into cells; what is occupied wins.

    Args:
        cells: (rows, columns), written.
        corners: (n, 2) lowest column and row of each.
        edges: (n,) in cells.
        occupied: (n,) else they are free.
    """
    for k in range(len(corners)):
        value = OCCUPIED if occupied[k] else FREE
        for row in range(corners[k, 1], corners[k, 1] + edges[k]):
            for column in range(corners[k, 0], corners[k, 0] + edges[k]):
                cells[row, column] = max(cells[row, column], value)
