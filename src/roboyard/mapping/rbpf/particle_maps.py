"""Maps of particles: tiles of cells that particles share until one of them writes, and the scan match against one map.

A cell counts the beams that ended in it and those that visited it, and stores the mean position of the ends within it,
so that a map is finer than its cells (as in G. Grisetti, C. Stachniss, W. Burgard, "Improved techniques for grid
mapping with Rao-Blackwellized particle filters", IEEE Transactions on Robotics 23 (2007)).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.errors import RunError
from roboyard.geometry import SE2
from roboyard.grids import UNKNOWN, GridGeometry, OccupancyGrid, OccupancyMapBuilder

TILE_SIZE: Final = 32
"""Cells along a tile's side; a power of two."""
HITS, VISITS, MEAN_X, MEAN_Y = 0, 1, 2, 3
_SHIFT: Final = TILE_SIZE.bit_length() - 1
_MASK: Final = TILE_SIZE - 1
_MARGIN: Final = 4
_INITIAL_TILES: Final = 64
_MAX_TILES: Final = 400_000
"""Of 16 KiB each: 6.5 GB, a room of 50 m for each of 400 particles that share nothing."""


class ParticleMapArrays(NamedTuple):
    """The map of one particle, as kernels need it.

    Attributes:
        tiles: Tiles of all particles, as in `TiledParticleMaps`.
        tile_index: (rows, columns) number of the tile at each position; -1: none.
        tile_origin: (2,) row and column of the first tile of ``tile_index`` in the plane [tiles].
        resolution: Side of a cell [m].
    """

    tiles: NDArray[np.float32]
    tile_index: NDArray[np.int32]
    tile_origin: NDArray[np.int64]
    resolution: float


class TiledParticleMaps:
    """Maps of all particles; maps share tiles until one of them is written.

    Args:
        particles: Number of particles.
        resolution: Side of a cell [m].

    Attributes:
        tiles: (capacity, TILE_SIZE, TILE_SIZE, 4) float32 cells: hits, visits, mean offset of the hits from the center
            of the cell [cells].
        reference_counts: (capacity,) number of maps that use each tile; 0: the tile is free.
        tile_index: (particles, rows, columns) number of the tile at each position; -1: none.
        tile_origin: (2,) row and column of the first tile of the index in the plane [tiles].
    """

    def __init__(self, particles: int, resolution: float) -> None:
        self.resolution = resolution
        self.tiles: NDArray[np.float32] = np.zeros((_INITIAL_TILES, TILE_SIZE, TILE_SIZE, 4), dtype=np.float32)
        self.reference_counts: NDArray[np.int32] = np.zeros(_INITIAL_TILES, dtype=np.int32)
        self.tile_index: NDArray[np.int32] = np.full((particles, 1, 1), -1, dtype=np.int32)
        self.tile_origin: NDArray[np.int64] = np.zeros(2, dtype=np.int64)

    def arrays(self, particle: int) -> ParticleMapArrays:
        """Return the arrays of one particle's map for kernels; they are not copied."""
        return ParticleMapArrays(self.tiles, self.tile_index[particle], self.tile_origin, self.resolution)

    @property
    def n_used_tiles(self) -> int:
        """Return the number of tiles that at least one map uses."""
        return int(np.count_nonzero(self.reference_counts))

    def allocate(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> None:
        """Extend the index of all maps so that it covers the rectangle between two corners (2,) [m].

        Raises:
            RunError: The rectangle is too large.
        """
        tile_length = TILE_SIZE * self.resolution
        first = np.floor(low[::-1] / tile_length).astype(np.int64)
        last = np.floor(high[::-1] / tile_length).astype(np.int64)
        rows_columns = np.array(self.tile_index.shape[1:])
        if (self.tile_index >= 0).any():
            if (first >= self.tile_origin).all() and (last < self.tile_origin + rows_columns).all():
                return
            first, last = np.minimum(first, self.tile_origin), np.maximum(last, self.tile_origin + rows_columns - 1)
        tile_origin, shape = first - _MARGIN, last - first + 1 + 2 * _MARGIN
        if int(shape.prod()) * len(self.tile_index) > 200_000_000:
            raise RunError(
                f"a map over {shape[1] * tile_length:.0f} x {shape[0] * tile_length:.0f} m is too large for particles"
            )
        tile_index = np.full((len(self.tile_index), *shape), -1, dtype=np.int32)
        if (self.tile_index >= 0).any():
            row, column = self.tile_origin - tile_origin
            tile_index[:, row : row + rows_columns[0], column : column + rows_columns[1]] = self.tile_index
        self.tile_index, self.tile_origin = tile_index, tile_origin

    def write(
        self, particle: int, origins: NDArray[np.float64], ends: NDArray[np.float64], is_hit: NDArray[np.bool_]
    ) -> None:
        """Write beams into one map, after ``allocate`` for their rectangle.

        Args:
            particle: Number of the particle.
            origins: (n, 2) starts of the beams [m].
            ends: (n, 2) ends of the beams [m].
            is_hit: (n,) whether a beam hit something at its end.

        Raises:
            RunError: All maps together need too many tiles.
        """
        beam = 0
        while True:
            free_tiles = np.flatnonzero(self.reference_counts == 0).astype(np.int32)
            beam = write_beams(
                self.arrays(particle), self.reference_counts, free_tiles, origins / self.resolution,
                ends / self.resolution, is_hit, beam,
            )  # fmt: skip
            if beam == len(ends):
                return
            self._grow()

    def resample(self, ancestors: NDArray[np.int64]) -> None:
        """Let map k be a copy of map ``ancestors[k]`` (particles,); a tile is copied when a map writes into it."""
        self.tile_index = np.ascontiguousarray(self.tile_index[ancestors])
        referenced = self.tile_index[self.tile_index >= 0]
        self.reference_counts = np.bincount(referenced, minlength=len(self.reference_counts)).astype(np.int32)

    def occupancy(self, particle: int, resolution: float) -> OccupancyGrid:
        """Return one map as an occupancy grid; a coarser cell gets the largest occupancy of its known cells."""
        tile_positions = np.argwhere(self.tile_index[particle] >= 0)
        if not len(tile_positions):
            return OccupancyGrid(np.full((0, 0), UNKNOWN, dtype=np.int8), GridGeometry(resolution, (0, 0)))
        low, high = tile_positions.min(axis=0), tile_positions.max(axis=0) + 1
        rows, columns = (high - low) * TILE_SIZE
        hits, visits = np.zeros((rows, columns), np.float32), np.zeros((rows, columns), np.float32)
        for row, column in tile_positions:
            tile = self.tiles[self.tile_index[particle, row, column]]
            top, left = (row - low[0]) * TILE_SIZE, (column - low[1]) * TILE_SIZE
            block = np.s_[top : top + TILE_SIZE, left : left + TILE_SIZE]
            hits[block], visits[block] = tile[..., HITS], tile[..., VISITS]
        start = (self.tile_origin + low)[::-1] * (TILE_SIZE * self.resolution)
        builder = OccupancyMapBuilder(GridGeometry(self.resolution, hits.shape, SE2(start[0], start[1], 0.0)))
        builder.hits[:], builder.misses[:] = hits, visits - hits
        grid = builder.to_grid()
        return grid if resolution == self.resolution else resample_grid(grid, resolution)

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data, without unused tiles."""
        used = np.flatnonzero(self.reference_counts)
        numbers = np.full(len(self.reference_counts) + 1, -1, dtype=np.int32)  # the last one stands for no tile
        numbers[used] = np.arange(len(used))
        return {
            "tiles": self.tiles[used].copy(),
            "users": self.reference_counts[used].copy(),
            "table": numbers[self.tile_index],
            "corner": self.tile_origin.copy(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        count = max(len(saved["users"]), _INITIAL_TILES)
        self.tiles = np.zeros((count, TILE_SIZE, TILE_SIZE, 4), dtype=np.float32)
        self.reference_counts = np.zeros(count, dtype=np.int32)
        self.tiles[: len(saved["tiles"])], self.reference_counts[: len(saved["users"])] = saved["tiles"], saved["users"]
        self.tile_index, self.tile_origin = saved["table"].copy(), saved["corner"].copy()

    def _grow(self) -> None:
        if len(self.tiles) >= _MAX_TILES:
            raise RunError(f"the particles' maps need more than {_MAX_TILES} tiles", valid="fewer particles")
        self.tiles = np.concatenate([self.tiles, np.zeros_like(self.tiles)])
        self.reference_counts = np.concatenate([self.reference_counts, np.zeros_like(self.reference_counts)])


def resample_grid(grid: OccupancyGrid, resolution: float) -> OccupancyGrid:
    """Resample a grid to another resolution [m].

    A coarser cell gets the largest value of the old cells whose centers lie in it, a finer cell the value of the old
    cell in which its center lies.
    """
    old_geometry = grid.geometry
    low = old_geometry.T_map_grid.xy
    geometry = GridGeometry.covering(low, low + np.array(old_geometry.extent), resolution)
    cells = np.full(geometry.shape, UNKNOWN, dtype=np.int8)
    if resolution < old_geometry.resolution:
        rows_columns = np.stack(np.meshgrid(*map(np.arange, geometry.shape), indexing="ij"), axis=-1)
        source = old_geometry.cells_of_points(geometry.cell_centers(rows_columns))
        inside = old_geometry.contains(source)
        cells[inside] = grid.cells[source[inside][:, 0], source[inside][:, 1]]
    else:
        known_cells = np.argwhere(grid.cells != UNKNOWN)
        target = geometry.cells_of_points(old_geometry.cell_centers(known_cells))
        np.maximum.at(cells, (target[:, 0], target[:, 1]), grid.cells[known_cells[:, 0], known_cells[:, 1]])
    return OccupancyGrid(cells, geometry)


def _example_map() -> ParticleMapArrays:
    tiles, tile_index = np.zeros((1, TILE_SIZE, TILE_SIZE, 4), np.float32), np.zeros((1, 1), np.int32)
    return ParticleMapArrays(tiles, tile_index, np.zeros(2, np.int64), 0.05)


def _example_write() -> Iterable[tuple[Any, ...]]:
    yield (
        _example_map(), np.zeros(2, np.int32), np.arange(2, dtype=np.int32), np.zeros((1, 2)), np.ones((1, 2)),
        np.ones(1, np.bool_), 0,
    )  # fmt: skip


@kernel(error_model="numpy", examples=_example_write)
def write_beams(
    particle_map: ParticleMapArrays,
    reference_counts: NDArray[np.int32],
    free_tiles: NDArray[np.int32],
    origins: NDArray[np.float64],
    ends: NDArray[np.float64],
    is_hit: NDArray[np.bool_],
    first_beam: int,
) -> int:
    """Write beams into one map; tiles that other maps use, too, are copied first.

    Args:
        particle_map: The map; written.
        reference_counts: (capacity,) number of maps that use each tile; written.
        free_tiles: (n,) numbers of free tiles.
        origins: (n, 2) starts of the beams [cells].
        ends: (n, 2) ends of the beams [cells].
        is_hit: (n,) whether a beam hit something at its end.
        first_beam: Number of the first beam that is written.

    Returns:
        Number of the first beam that was not written, since no tile was free; a beam is written whole or not at all.
    """
    tiles, tile_index, tile_origin = particle_map.tiles, particle_map.tile_index, particle_map.tile_origin
    n_allocated = 0
    rows, columns = tile_index.shape
    for k in range(first_beam, len(ends)):
        x0, y0, x1, y1 = origins[k, 0], origins[k, 1], ends[k, 0], ends[k, 1]
        steps = abs(math.floor(x1) - math.floor(x0)) + abs(math.floor(y1) - math.floor(y0))
        for phase in range(2):  # first every tile on the way is made this map's own, then the beam is counted
            dx, dy = x1 - x0, y1 - y0
            column, row = math.floor(x0), math.floor(y0)
            step_column = 1 if dx > 0.0 else -1
            step_row = 1 if dy > 0.0 else -1
            t_column = ((column + (dx > 0.0)) - x0) / dx if dx != 0.0 else math.inf
            t_row = ((row + (dy > 0.0)) - y0) / dy if dy != 0.0 else math.inf
            each_column = abs(1.0 / dx) if dx != 0.0 else math.inf
            each_row = abs(1.0 / dy) if dy != 0.0 else math.inf
            for step in range(steps + 1):
                tile_row, tile_column = (row >> _SHIFT) - tile_origin[0], (column >> _SHIFT) - tile_origin[1]
                if 0 <= tile_row < rows and 0 <= tile_column < columns:
                    tile = tile_index[tile_row, tile_column]
                    if phase == 0:
                        if tile < 0 or reference_counts[tile] > 1:
                            if n_allocated == len(free_tiles):
                                return k
                            new_tile = free_tiles[n_allocated]
                            n_allocated += 1
                            if tile < 0:
                                tiles[new_tile] = 0.0
                            else:
                                tiles[new_tile] = tiles[tile]
                                reference_counts[tile] -= 1
                            reference_counts[new_tile] = 1
                            tile_index[tile_row, tile_column] = new_tile
                    else:
                        cell = tiles[tile, row & _MASK, column & _MASK]
                        cell[VISITS] += 1.0
                        if step == steps and is_hit[k]:
                            cell[HITS] += 1.0
                            weight = 1.0 / min(cell[HITS], 20.0)
                            cell[MEAN_X] += (x1 - column - 0.5 - cell[MEAN_X]) * weight
                            cell[MEAN_Y] += (y1 - row - 0.5 - cell[MEAN_Y]) * weight
                if t_column < t_row:
                    column += step_column
                    t_column += each_column
                else:
                    row += step_row
                    t_row += each_row
    return len(ends)


_MIN_LIKELIHOOD = 1e-3
"""Likelihood of a beam without a surface near its end."""


def _example_score() -> Iterable[tuple[Any, ...]]:
    yield _example_map(), np.zeros((3, 2)), np.zeros(3), 0.06, 1


@kernel(error_model="numpy", examples=_example_score)
def score_pose(
    particle_map: ParticleMapArrays,
    points: NDArray[np.float64],
    pose: NDArray[np.float64],
    sigma: float,
    cell_reach: int,
) -> float:
    """Return the mean logarithm of the beams' likelihoods, between log(0.001) and 0.

    Args:
        particle_map: The map.
        points: (n, 2) ends of the beams, in the base's frame [m].
        pose: (3,) pose of the base [m, rad].
        sigma: Standard deviation of an end from a surface [m].
        cell_reach: Number of cells around an end, to each side, in which a surface is searched.
    """
    tiles, tile_index, tile_origin = particle_map.tiles, particle_map.tile_index, particle_map.tile_origin
    resolution = particle_map.resolution
    rows, columns = tile_index.shape
    c, s = math.cos(pose[2]) / resolution, math.sin(pose[2]) / resolution
    first_row, first_column = tile_origin[0] * TILE_SIZE, tile_origin[1] * TILE_SIZE
    x0, y0 = pose[0] / resolution - first_column, pose[1] / resolution - first_row
    scale = -0.5 * (resolution / sigma) ** 2
    log_min_likelihood = math.log(_MIN_LIKELIHOOD)
    total = 0.0
    for k in range(len(points)):
        x = x0 + c * points[k, 0] - s * points[k, 1]
        y = y0 + s * points[k, 0] + c * points[k, 1]
        column, row = math.floor(x), math.floor(y)
        nearest = 1e9
        for i in range(max(row - cell_reach, 0), min(row + cell_reach + 1, rows * TILE_SIZE)):
            for j in range(max(column - cell_reach, 0), min(column + cell_reach + 1, columns * TILE_SIZE)):
                tile = tile_index[i >> _SHIFT, j >> _SHIFT]
                if tile < 0:
                    continue
                hits = tiles[tile, i & _MASK, j & _MASK, HITS]
                if hits > 0.0 and hits > 0.1 * tiles[tile, i & _MASK, j & _MASK, VISITS]:
                    dx = x - (j + 0.5 + tiles[tile, i & _MASK, j & _MASK, MEAN_X])
                    dy = y - (i + 0.5 + tiles[tile, i & _MASK, j & _MASK, MEAN_Y])
                    nearest = min(nearest, dx * dx + dy * dy)
        if nearest < 1e8:
            total += math.log(_MIN_LIKELIHOOD + (1.0 - _MIN_LIKELIHOOD) * math.exp(scale * nearest))
        else:
            total += log_min_likelihood
    return total / max(len(points), 1)


class ClimbSteps(NamedTuple):
    """First steps of a hill climb along x and y [m] and in heading [rad], and the number of times they are halved."""

    position: float
    angle: float
    n_halvings: int


def _example_climb() -> Iterable[tuple[Any, ...]]:
    yield _example_map(), np.zeros((3, 2)), np.zeros(3), 0.06, ClimbSteps(0.1, 0.05, 5)


@kernel(error_model="numpy", examples=_example_climb)
def hill_climb(
    particle_map: ParticleMapArrays,
    points: NDArray[np.float64],
    start: NDArray[np.float64],
    sigma: float,
    steps: ClimbSteps,
) -> tuple[float, float, float, float]:
    """Maximize the score by steps along single axes, then with half the steps, and so on.

    Args:
        particle_map: The map.
        points: (n, 2) ends of the beams, in the base's frame [m].
        start: (3,) first pose [m, rad].
        sigma: Standard deviation of an end from a surface [m].
        steps: Steps.

    Returns:
        x, y [m], theta [rad], and the score there.
    """
    position_step, angle_step = steps.position, steps.angle
    best = start.copy()
    score = score_pose(particle_map, points, best, sigma, 1)
    trial = best.copy()
    for _ in range(steps.n_halvings + 1):
        for _ in range(30):
            has_improved = False
            for axis in range(3):
                size = angle_step if axis == 2 else position_step
                for sign in (-1.0, 1.0):
                    trial[:] = best
                    trial[axis] += sign * size
                    trial_score = score_pose(particle_map, points, trial, sigma, 1)
                    if trial_score > score:
                        score = trial_score
                        best[:] = trial
                        has_improved = True
                        break
            if not has_improved:
                break
        position_step *= 0.5
        angle_step *= 0.5
    return best[0], best[1], best[2], score


def _example_search() -> Iterable[tuple[Any, ...]]:
    yield _example_map(), np.zeros((3, 2)), np.zeros(3), 0.5, 0.3


@kernel(error_model="numpy", examples=_example_search)
def search_lattice(
    particle_map: ParticleMapArrays,
    points: NDArray[np.float64],
    center: NDArray[np.float64],
    half_width: float,
    half_angle: float,
) -> tuple[float, float, float, float]:
    """Find the best pose on a coarse lattice around a pose, with steps of two cells and two degrees.

    Args:
        particle_map: The map.
        points: (n, 2) ends of the beams, in the base's frame [m].
        center: (3,) center of the lattice [m, rad].
        half_width: Half the width of the lattice along x and y [m].
        half_angle: Half the range of headings [rad].

    Returns:
        x, y [m], theta [rad], and the score there.
    """
    resolution = particle_map.resolution
    position_step, angle_step = 2.0 * resolution, 0.035
    n, m = math.floor(half_width / position_step), math.floor(half_angle / angle_step)
    best = center.copy()
    trial = center.copy()
    score = score_pose(particle_map, points, best, resolution, 1)
    for k in range(-m, m + 1):
        trial[2] = center[2] + k * angle_step
        for i in range(-n, n + 1):
            trial[0] = center[0] + i * position_step
            for j in range(-n, n + 1):
                trial[1] = center[1] + j * position_step
                trial_score = score_pose(particle_map, points, trial, resolution, 1)
                if trial_score > score:
                    score = trial_score
                    best[:] = trial
    return best[0], best[1], best[2], score


@kernel(error_model="numpy", examples=_example_score)
def negative_score_hessian(
    particle_map: ParticleMapArrays,
    points: NDArray[np.float64],
    pose: NDArray[np.float64],
    sigma: float,
    cell_reach: int,
) -> NDArray[np.float64]:
    """Return the negative Hessian (3, 3) of the score at a pose: the information of a beam at the maximum.

    The arguments are those of `score_pose`.
    """
    steps = np.array([0.02, 0.02, 0.008])
    value = score_pose(particle_map, points, pose, sigma, cell_reach)
    negative_hessian = np.zeros((3, 3))
    trial = pose.copy()
    forward, backward = np.zeros(3), np.zeros(3)
    for a in range(3):
        trial[:] = pose
        trial[a] += steps[a]
        forward[a] = score_pose(particle_map, points, trial, sigma, cell_reach)
        trial[a] -= 2.0 * steps[a]
        backward[a] = score_pose(particle_map, points, trial, sigma, cell_reach)
        negative_hessian[a, a] = -(forward[a] - 2.0 * value + backward[a]) / steps[a] ** 2
    for a in range(3):
        for b in range(a):
            trial[:] = pose
            trial[a] += steps[a]
            trial[b] += steps[b]
            both = score_pose(particle_map, points, trial, sigma, cell_reach)
            trial[a] -= 2.0 * steps[a]
            trial[b] -= 2.0 * steps[b]
            neither = score_pose(particle_map, points, trial, sigma, cell_reach)
            mixed = both + neither + 2.0 * value - forward[a] - forward[b] - backward[a] - backward[b]
            negative_hessian[a, b] = negative_hessian[b, a] = -0.5 * mixed / (steps[a] * steps[b])
    return negative_hessian
