"""The particles' maps: tiles of cells that particles share until one of them writes.

A cell holds how many beams ended in it, how many touched it, and the mean place of the ends within it, so that a map
is finer than its cells (as in G. Grisetti, C. Stachniss, W. Burgard, "Improved techniques for grid mapping with
Rao-Blackwellized particle filters", IEEE Transactions on Robotics 23 (2007)).
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

SIDE: Final = 32
"""Cells along a tile's side; a power of two."""
HITS, SEEN, MEAN_X, MEAN_Y = 0, 1, 2, 3
_SHIFT: Final = SIDE.bit_length() - 1
_MASK: Final = SIDE - 1
_MARGIN: Final = 4
_FIRST: Final = 64
_MAX_TILES: Final = 400_000
"""Of 16 KiB each: 6.5 GB, a room of 50 m for each of 400 particles that share nothing."""


class TileMaps:
    """Maps of several particles.

    Args:
        particles: How many.
        resolution: Side of a cell [m].

    Attributes:
        tiles: (capacity, SIDE, SIDE, 4) float32 cells: hits, beams, mean place of the hits from the middle [cells].
        users: (capacity,) how many maps show each tile; 0 for a free one.
        table: (particles, rows, columns) number of the tile at each place; -1 where nothing was seen.
        corner: (2,) row and column of the table's first tile in the plane, in tiles.
    """

    def __init__(self, particles: int, resolution: float) -> None:
        self.resolution = resolution
        self.tiles: NDArray[np.float32] = np.zeros((_FIRST, SIDE, SIDE, 4), dtype=np.float32)
        self.users: NDArray[np.int32] = np.zeros(_FIRST, dtype=np.int32)
        self.table: NDArray[np.int32] = np.full((particles, 1, 1), -1, dtype=np.int32)
        self.corner: NDArray[np.int64] = np.zeros(2, dtype=np.int64)

    @property
    def used(self) -> int:
        """Number of tiles that some map shows."""
        return int(np.count_nonzero(self.users))

    def cover(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> None:
        """Make room in all maps for what lies between two corners (2,) [m]."""
        span = SIDE * self.resolution
        first = np.floor(low[::-1] / span).astype(np.int64)
        last = np.floor(high[::-1] / span).astype(np.int64)
        rows_columns = np.array(self.table.shape[1:])
        if (self.table >= 0).any():
            if (first >= self.corner).all() and (last < self.corner + rows_columns).all():
                return
            first, last = np.minimum(first, self.corner), np.maximum(last, self.corner + rows_columns - 1)
        corner, shape = first - _MARGIN, last - first + 1 + 2 * _MARGIN
        if int(shape.prod()) * len(self.table) > 200_000_000:
            raise RunError(f"a map over {shape[1] * span:.0f} x {shape[0] * span:.0f} m is too large for particles")
        table = np.full((len(self.table), *shape), -1, dtype=np.int32)
        if (self.table >= 0).any():
            row, column = self.corner - corner
            table[:, row : row + rows_columns[0], column : column + rows_columns[1]] = self.table
        self.table, self.corner = table, corner

    def write(
        self, particle: int, origins: NDArray[np.float64], ends: NDArray[np.float64], hit: NDArray[np.bool_]
    ) -> None:
        """Add beams to one map; ``cover`` has been called for them.

        Args:
            particle: Whose map.
            origins: (n, 2) where beams begin [m].
            ends: (n, 2) where they end [m].
            hit: (n,) whether they hit something there.
        """
        beam = 0
        while True:
            free = np.flatnonzero(self.users == 0).astype(np.int32)
            beam = write_beams(
                self.tiles, self.users, free, self.table[particle], self.corner,
                origins / self.resolution, ends / self.resolution, hit, beam,
            )  # fmt: skip
            if beam == len(ends):
                return
            self._grow()

    def choose(self, chosen: NDArray[np.int64]) -> None:
        """Map k becomes a copy of map ``chosen[k]`` (particles,); nothing is copied until one of them is written."""
        self.table = np.ascontiguousarray(self.table[chosen])
        shown = self.table[self.table >= 0]
        self.users = np.bincount(shown, minlength=len(self.users)).astype(np.int32)

    def occupancy(self, particle: int, resolution: float) -> OccupancyGrid:
        """One map as a grid: of cells that fall into one the likeliest occupied counts, and unknown least."""
        where = np.argwhere(self.table[particle] >= 0)
        if not len(where):
            return OccupancyGrid(np.full((0, 0), UNKNOWN, dtype=np.int8), GridGeometry(resolution, (0, 0)))
        low, high = where.min(axis=0), where.max(axis=0) + 1
        rows, columns = (high - low) * SIDE
        hits, seen = np.zeros((rows, columns), np.float32), np.zeros((rows, columns), np.float32)
        for row, column in where:
            tile = self.tiles[self.table[particle, row, column]]
            top, left = (row - low[0]) * SIDE, (column - low[1]) * SIDE
            at = np.s_[top : top + SIDE, left : left + SIDE]
            hits[at], seen[at] = tile[..., HITS], tile[..., SEEN]
        start = (self.corner + low)[::-1] * (SIDE * self.resolution)
        evidence = OccupancyMapBuilder(GridGeometry(self.resolution, hits.shape, SE2(start[0], start[1], 0.0)))
        evidence.hits[:], evidence.misses[:] = hits, seen - hits
        grid = evidence.to_grid()
        return grid if resolution == self.resolution else resampled(grid, resolution)

    def save_state(self) -> dict[str, Any]:
        """State as plain data; tiles that nobody shows are left out."""
        used = np.flatnonzero(self.users)
        numbers = np.full(len(self.users) + 1, -1, dtype=np.int32)  # the last one stands for no tile
        numbers[used] = np.arange(len(used))
        return {
            "tiles": self.tiles[used].copy(),
            "users": self.users[used].copy(),
            "table": numbers[self.table],
            "corner": self.corner.copy(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        count = max(len(saved["users"]), _FIRST)
        self.tiles = np.zeros((count, SIDE, SIDE, 4), dtype=np.float32)
        self.users = np.zeros(count, dtype=np.int32)
        self.tiles[: len(saved["tiles"])], self.users[: len(saved["users"])] = saved["tiles"], saved["users"]
        self.table, self.corner = saved["table"].copy(), saved["corner"].copy()

    def _grow(self) -> None:
        if len(self.tiles) >= _MAX_TILES:
            raise RunError(f"the particles' maps need more than {_MAX_TILES} tiles", valid="fewer particles")
        self.tiles = np.concatenate([self.tiles, np.zeros_like(self.tiles)])
        self.users = np.concatenate([self.users, np.zeros_like(self.users)])


def resampled(grid: OccupancyGrid, resolution: float) -> OccupancyGrid:
    """A grid with cells of another side: each gets the largest value of the old cells whose middles lie in it.

    Finer cells get the value of the old cell in which their middle lies.
    """
    old = grid.geometry
    low = old.T_map_grid.xy
    frame = GridGeometry.covering(low, low + np.array(old.extent), resolution)
    cells = np.full(frame.shape, UNKNOWN, dtype=np.int8)
    if resolution < old.resolution:
        rows_columns = np.stack(np.meshgrid(*map(np.arange, frame.shape), indexing="ij"), axis=-1)
        source = old.cells_of_points(frame.cell_centers(rows_columns))
        inside = old.contains(source)
        cells[inside] = grid.cells[source[inside][:, 0], source[inside][:, 1]]
    else:
        known = np.argwhere(grid.cells != UNKNOWN)
        target = frame.cells_of_points(old.cell_centers(known))
        np.maximum.at(cells, (target[:, 0], target[:, 1]), grid.cells[known[:, 0], known[:, 1]])
    return OccupancyGrid(cells, frame)


def _example_write() -> Iterable[tuple[Any, ...]]:
    yield (
        np.zeros((2, SIDE, SIDE, 4), np.float32), np.zeros(2, np.int32), np.arange(2, dtype=np.int32),
        np.full((1, 1), -1, np.int32), np.zeros(2, np.int64), np.zeros((1, 2)), np.ones((1, 2)),
        np.ones(1, np.bool_), 0,
    )  # fmt: skip


@kernel(error_model="numpy", examples=_example_write)
def write_beams(
    tiles: NDArray[np.float32],
    users: NDArray[np.int32],
    free: NDArray[np.int32],
    table: NDArray[np.int32],
    corner: NDArray[np.int64],
    origins: NDArray[np.float64],
    ends: NDArray[np.float64],
    hit: NDArray[np.bool_],
    first: int,
) -> int:
    """Add beams from number ``first`` on to one map, in cells; gives the number of the first that found no tile.

    Tiles that other maps show too are copied before they are written.  A beam is added whole or not at all.
    """
    taken = 0
    rows, columns = table.shape
    for k in range(first, len(ends)):
        x0, y0, x1, y1 = origins[k, 0], origins[k, 1], ends[k, 0], ends[k, 1]
        steps = abs(math.floor(x1) - math.floor(x0)) + abs(math.floor(y1) - math.floor(y0))
        for writing in range(2):  # first every tile on the way is made this map's own, then the beam is counted
            dx, dy = x1 - x0, y1 - y0
            column, row = math.floor(x0), math.floor(y0)
            step_column = 1 if dx > 0.0 else -1
            step_row = 1 if dy > 0.0 else -1
            t_column = ((column + (dx > 0.0)) - x0) / dx if dx != 0.0 else math.inf
            t_row = ((row + (dy > 0.0)) - y0) / dy if dy != 0.0 else math.inf
            each_column = abs(1.0 / dx) if dx != 0.0 else math.inf
            each_row = abs(1.0 / dy) if dy != 0.0 else math.inf
            for step in range(steps + 1):
                tile_row, tile_column = (row >> _SHIFT) - corner[0], (column >> _SHIFT) - corner[1]
                if 0 <= tile_row < rows and 0 <= tile_column < columns:
                    number = table[tile_row, tile_column]
                    if writing == 0:
                        if number < 0 or users[number] > 1:
                            if taken == len(free):
                                return k
                            own = free[taken]
                            taken += 1
                            if number < 0:
                                tiles[own] = 0.0
                            else:
                                tiles[own] = tiles[number]
                                users[number] -= 1
                            users[own] = 1
                            table[tile_row, tile_column] = own
                    else:
                        cell = tiles[number, row & _MASK, column & _MASK]
                        cell[SEEN] += 1.0
                        if step == steps and hit[k]:
                            cell[HITS] += 1.0
                            share = 1.0 / min(cell[HITS], 20.0)
                            cell[MEAN_X] += (x1 - column - 0.5 - cell[MEAN_X]) * share
                            cell[MEAN_Y] += (y1 - row - 0.5 - cell[MEAN_Y]) * share
                if t_column < t_row:
                    column += step_column
                    t_column += each_column
                else:
                    row += step_row
                    t_row += each_row
    return len(ends)
