"""Maps of particles: tiles of cells that particles share until one of them writes, and the scan match against one map.

A cell counts the beams that ended in it and those that visited it, and stores the mean position of the ends within it,
so that a map is finer than its cells (as in G. Grisetti, C. Stachniss, W. Burgard, "Improved techniques for grid
mapping with Rao-Blackwellized particle filters", IEEE Transactions on Robotics 23 (2007)).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

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


class TiledParticleMaps:
    """Maps of several particles.

    Args:
        particles: How many.
        resolution: Side of a cell [m].

    Attributes:
        tiles: (capacity, SIDE, SIDE, 4) float32 cells: hits, beams, mean place of the hits from the middle [cells].
        reference_counts: (capacity,) how many maps show each tile; 0 for a free one.
        tile_index: (particles, rows, columns) number of the tile at each place; -1 where nothing was seen.
        tile_origin: (2,) row and column of the table's first tile in the plane, in tiles.
    """

    def __init__(self, particles: int, resolution: float) -> None:
        self.resolution = resolution
        self.tiles: NDArray[np.float32] = np.zeros((_INITIAL_TILES, TILE_SIZE, TILE_SIZE, 4), dtype=np.float32)
        self.reference_counts: NDArray[np.int32] = np.zeros(_INITIAL_TILES, dtype=np.int32)
        self.tile_index: NDArray[np.int32] = np.full((particles, 1, 1), -1, dtype=np.int32)
        self.tile_origin: NDArray[np.int64] = np.zeros(2, dtype=np.int64)

    @property
    def n_used_tiles(self) -> int:
        """Number of tiles that some map shows."""
        return int(np.count_nonzero(self.reference_counts))

    def allocate(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> None:
        """Make room in all maps for what lies between two corners (2,) [m]."""
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
        """Add beams to one map; ``cover`` has been called for them.

        Args:
            particle: Whose map.
            origins: (n, 2) where beams begin [m].
            ends: (n, 2) where they end [m].
            is_hit: (n,) whether they hit something there.
        """
        beam = 0
        while True:
            free_tiles = np.flatnonzero(self.reference_counts == 0).astype(np.int32)
            beam = write_beams(
                self.tiles, self.reference_counts, free_tiles, self.tile_index[particle], self.tile_origin,
                origins / self.resolution, ends / self.resolution, is_hit, beam,
            )  # fmt: skip
            if beam == len(ends):
                return
            self._grow()

    def resample(self, ancestors: NDArray[np.int64]) -> None:
        """Map k becomes a copy of map ``chosen[k]`` (particles,); nothing is copied until one of them is written."""
        self.tile_index = np.ascontiguousarray(self.tile_index[ancestors])
        referenced = self.tile_index[self.tile_index >= 0]
        self.reference_counts = np.bincount(referenced, minlength=len(self.reference_counts)).astype(np.int32)

    def occupancy(self, particle: int, resolution: float) -> OccupancyGrid:
        """One map as a grid: of cells that fall into one the likeliest occupied counts, and unknown least."""
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
    """A grid with cells of another side: each gets the largest value of the old cells whose middles lie in it.

    Finer cells get the value of the old cell in which their middle lies.
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


def _example_write() -> Iterable[tuple[Any, ...]]:
    yield (
        np.zeros((2, TILE_SIZE, TILE_SIZE, 4), np.float32), np.zeros(2, np.int32), np.arange(2, dtype=np.int32),
        np.full((1, 1), -1, np.int32), np.zeros(2, np.int64), np.zeros((1, 2)), np.ones((1, 2)),
        np.ones(1, np.bool_), 0,
    )  # fmt: skip


@kernel(error_model="numpy", examples=_example_write)
def write_beams(
    tiles: NDArray[np.float32],
    reference_counts: NDArray[np.int32],
    free_tiles: NDArray[np.int32],
    tile_index: NDArray[np.int32],
    tile_origin: NDArray[np.int64],
    origins: NDArray[np.float64],
    ends: NDArray[np.float64],
    is_hit: NDArray[np.bool_],
    first_beam: int,
) -> int:
    """Add beams from number ``first_beam`` on to one map, in cells; gives the number of the first that found no tile.

    Tiles that other maps show too are copied before they are written.  A beam is added whole or not at all.
    """
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
"""What is left of a beam's likelihood where nothing is near its end."""


def _example_fit() -> Iterable[tuple[Any, ...]]:
    tiles, tile_index = np.zeros((1, TILE_SIZE, TILE_SIZE, 4), np.float32), np.zeros((1, 1), np.int32)
    yield tiles, tile_index, np.zeros(2, np.int64), np.zeros((3, 2)), np.zeros(3), 0.05, 0.06, 1


@kernel(error_model="numpy", examples=_example_fit)
def score_pose(
    tiles: NDArray[np.float32],
    tile_index: NDArray[np.int32],
    tile_origin: NDArray[np.int64],
    points: NDArray[np.float64],
    pose: NDArray[np.float64],
    resolution: float,
    sigma: float,
    cell_reach: int,
) -> float:
    """Mean logarithm of the beams' likelihoods, between log(0.001) and 0.

    Args:
        tiles: As in ``TileMaps``.
        tile_index: (rows, columns) of one map.
        tile_origin: (2,) of the table.
        points: (n, 2) where the beams ended, in the base's frame [m].
        pose: (3,) of the base [m, rad].
        resolution: Side of a cell [m].
        sigma: Standard deviation of an end from the wall [m].
        cell_reach: How many cells around an end are looked at.
    """
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


def _example_climb() -> Iterable[tuple[Any, ...]]:
    tiles, tile_index = np.zeros((1, TILE_SIZE, TILE_SIZE, 4), np.float32), np.zeros((1, 1), np.int32)
    yield tiles, tile_index, np.zeros(2, np.int64), np.zeros((3, 2)), np.zeros(3), 0.05, 0.06, 0.1, 0.05, 5


@kernel(error_model="numpy", examples=_example_climb)
def hill_climb(
    tiles: NDArray[np.float32],
    tile_index: NDArray[np.int32],
    tile_origin: NDArray[np.int64],
    points: NDArray[np.float64],
    start: NDArray[np.float64],
    resolution: float,
    sigma: float,
    position_step: float,
    angle_step: float,
    halvings: int,
) -> tuple[float, float, float, float]:
    """Climb from a pose to one where no step along an axis fits better, then with half the steps, and so on.

    Args:
        tiles: As for ``fit``, like table, corner, points, resolution and sigma.
        tile_index: Likewise.
        tile_origin: Likewise.
        points: Likewise.
        start: (3,) where to begin [m, rad].
        resolution: Likewise.
        sigma: Likewise.
        position_step: First steps along x and y [m].
        angle_step: First turns [rad].
        halvings: How often steps are halved.

    Returns:
        x, y, theta, and the fit there.
    """
    best = start.copy()
    score = score_pose(tiles, tile_index, tile_origin, points, best, resolution, sigma, 1)
    trial = best.copy()
    for _ in range(halvings + 1):
        for _ in range(30):
            has_improved = False
            for axis in range(3):
                size = angle_step if axis == 2 else position_step
                for sign in (-1.0, 1.0):
                    trial[:] = best
                    trial[axis] += sign * size
                    trial_score = score_pose(tiles, tile_index, tile_origin, points, trial, resolution, sigma, 1)
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
    tiles, tile_index = np.zeros((1, TILE_SIZE, TILE_SIZE, 4), np.float32), np.zeros((1, 1), np.int32)
    yield tiles, tile_index, np.zeros(2, np.int64), np.zeros((3, 2)), np.zeros(3), 0.05, 0.5, 0.3


@kernel(error_model="numpy", examples=_example_search)
def search_lattice(
    tiles: NDArray[np.float32],
    tile_index: NDArray[np.int32],
    tile_origin: NDArray[np.int64],
    points: NDArray[np.float64],
    center: NDArray[np.float64],
    resolution: float,
    half_width: float,
    half_angle: float,
) -> tuple[float, float, float, float]:
    """The best fit on a coarse lattice about a pose: every two cells, every 2 degrees.

    Args:
        tiles: As for ``fit``, like table, corner, points and resolution.
        tile_index: Likewise.
        tile_origin: Likewise.
        points: Likewise.
        center: (3,) of the lattice [m, rad].
        resolution: Likewise.
        half_width: Of the lattice along x and y [m].
        half_angle: Of the lattice in direction [rad].

    Returns:
        x, y, theta, and the fit there.
    """
    position_step, angle_step = 2.0 * resolution, 0.035
    n, m = math.floor(half_width / position_step), math.floor(half_angle / angle_step)
    best = center.copy()
    trial = center.copy()
    score = score_pose(tiles, tile_index, tile_origin, points, best, resolution, resolution, 1)
    for k in range(-m, m + 1):
        trial[2] = center[2] + k * angle_step
        for i in range(-n, n + 1):
            trial[0] = center[0] + i * position_step
            for j in range(-n, n + 1):
                trial[1] = center[1] + j * position_step
                trial_score = score_pose(tiles, tile_index, tile_origin, points, trial, resolution, resolution, 1)
                if trial_score > score:
                    score = trial_score
                    best[:] = trial
    return best[0], best[1], best[2], score


@kernel(error_model="numpy", examples=_example_fit)
def negative_score_hessian(
    tiles: NDArray[np.float32],
    tile_index: NDArray[np.int32],
    tile_origin: NDArray[np.int64],
    points: NDArray[np.float64],
    pose: NDArray[np.float64],
    resolution: float,
    sigma: float,
    cell_reach: int,
) -> NDArray[np.float64]:
    """Second derivatives (3, 3) of the fit at a pose with the sign turned: how sharp the best pose is.

    Arguments as for ``fit``.
    """
    steps = np.array([0.02, 0.02, 0.008])
    value = score_pose(tiles, tile_index, tile_origin, points, pose, resolution, sigma, cell_reach)
    negative_hessian = np.zeros((3, 3))
    trial = pose.copy()
    forward, backward = np.zeros(3), np.zeros(3)
    for a in range(3):
        trial[:] = pose
        trial[a] += steps[a]
        forward[a] = score_pose(tiles, tile_index, tile_origin, points, trial, resolution, sigma, cell_reach)
        trial[a] -= 2.0 * steps[a]
        backward[a] = score_pose(tiles, tile_index, tile_origin, points, trial, resolution, sigma, cell_reach)
        negative_hessian[a, a] = -(forward[a] - 2.0 * value + backward[a]) / steps[a] ** 2
    for a in range(3):
        for b in range(a):
            trial[:] = pose
            trial[a] += steps[a]
            trial[b] += steps[b]
            both = score_pose(tiles, tile_index, tile_origin, points, trial, resolution, sigma, cell_reach)
            trial[a] -= 2.0 * steps[a]
            trial[b] -= 2.0 * steps[b]
            neither = score_pose(tiles, tile_index, tile_origin, points, trial, resolution, sigma, cell_reach)
            mixed = both + neither + 2.0 * value - forward[a] - forward[b] - backward[a] - backward[b]
            negative_hessian[a, b] = negative_hessian[b, a] = -0.5 * mixed / (steps[a] * steps[b])
    return negative_hessian
