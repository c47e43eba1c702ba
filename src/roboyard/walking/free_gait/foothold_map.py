"""Foothold map: where feet may stand on a terrain and how well, and the height of the body above it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import distance_transform_edt, gaussian_filter, maximum_filter, minimum_filter

from roboyard.compute import kernel
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.grids.height_map import HeightMap
from roboyard.grids.terrain import Terrain
from roboyard.walking.free_gait.robot_model import FreeGaitModel


class FootholdMapArrays(NamedTuple):
    """A foothold map as arguments of kernels: arrays (rows, columns) of cells, rows along y, columns along x.

    Attributes:
        x: Smallest x, at the edge of the first column [m].
        y: Smallest y [m].
        cell_size: Edge of a cell [m].
        heights: Heights [m]; nan for holes.
        obstacle_height: Largest height within a foot's radius [m]; -inf for holes.
        can_stand: Cells on which feet may stand.
        foothold_quality: Quality of the foothold, 0 to 1.
        body_height: Height of the body frame [m]; nan where the body cannot be.
        search_offsets: (k, 2) offsets of rows and columns, the nearest first.
        height_tolerance: Uncertainty of the heights: swing feet may pass this far below them [m].
    """

    x: float
    y: float
    cell_size: float
    heights: Array
    obstacle_height: Array
    can_stand: NDArray[np.bool_]
    foothold_quality: Array
    body_height: Array
    search_offsets: NDArray[np.int64]
    height_tolerance: float


@kernel(no_refcount=True, examples=lambda: [(np.zeros((2, 2)), 0.1)])
def limit_slope(heights: Array, rise: float) -> None:
    """Raise a surface in place to the lowest surface above it that climbs by at most ``rise`` per cell.

    All eight neighbors count, in one forward and one backward pass; diagonal steps count by the square root of two.
    """
    rows, columns, slant = heights.shape[0], heights.shape[1], rise * math.sqrt(2.0)
    for pass_index in range(2):
        for a in range(rows):
            for b in range(columns):
                r, c = (a, b) if pass_index == 0 else (rows - 1 - a, columns - 1 - b)
                step = -1 if pass_index == 0 else 1
                best = heights[r, c]
                if 0 <= c + step < columns:
                    best = max(best, heights[r, c + step] - rise)
                if 0 <= r + step < rows:
                    best = max(best, heights[r + step, c] - rise)
                    if c > 0:
                        best = max(best, heights[r + step, c - 1] - slant)
                    if c + 1 < columns:
                        best = max(best, heights[r + step, c + 1] - slant)
                heights[r, c] = best


@kernel(
    examples=lambda: [
        (np.zeros((2, 2)), np.ones((2, 2), np.bool_), np.int64(0), np.int64(0), 2, 0.2, np.zeros((2, 2), np.bool_))
    ]
)
def flood_reachable(
    heights: Array, can_stand: NDArray[np.bool_], row: np.int64, column: np.int64, max_gap: int, max_step: float,
    out: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Mark cells that are reachable from a cell over cells on which feet stand, within a maximum gap and step height.

    Cells beyond the direct neighbors are checked only at the border of the ground, and there only every other cell.
    """
    rows, columns = can_stand.shape
    queue, n_queued = np.empty(rows * columns, np.int64), 1
    queue[0], out[row, column] = row * columns + column, True
    head = 0
    while head < n_queued:
        r0, c0, is_at_border = queue[head] // columns, queue[head] % columns, False
        head += 1
        for ring in range(2):
            if ring == 1 and not is_at_border:
                break
            radius, step = (1, 1) if ring == 0 else (max_gap, 2)
            for r in range(max(r0 - radius, 0), min(r0 + radius + 1, rows), step):
                for c in range(max(c0 - radius, 0), min(c0 + radius + 1, columns), step):
                    if out[r, c]:
                        continue
                    if can_stand[r, c] and abs(heights[r, c] - heights[r0, c0]) <= max_step:
                        out[r, c] = True
                        queue[n_queued] = r * columns + c
                        n_queued += 1
                    else:
                        is_at_border = True


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.zeros((2, 2)), 0.0, 0.0, 0.02, 0.0, 0.0)])
def interpolate_body_height(
    body_heights: Array, x_min: float, y_min: float, cell_size: float, x: float, y: float
) -> float:
    """Return the height of the body frame at a position [m], interpolated between cell centers; nan where it cannot
    be."""
    fx, fy = (x - x_min) / cell_size - 0.5, (y - y_min) / cell_size - 0.5
    rows, columns = body_heights.shape
    if not (0.0 <= fx <= columns - 1.0 and 0.0 <= fy <= rows - 1.0):
        return math.nan
    c, r = min(int(fx), columns - 2), min(int(fy), rows - 2)
    u, v = fx - c, fy - r
    low = body_heights[r, c] * (1.0 - u) + body_heights[r, c + 1] * u
    high = body_heights[r + 1, c] * (1.0 - u) + body_heights[r + 1, c + 1] * u
    return float(low * (1.0 - v) + high * v)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.zeros((2, 2)), 0.0, 0.0)])
def cell_value(values: Array, column: float, row: float) -> float:
    """Return a map's value at a position in cells; -inf for holes and outside."""
    c, r = math.floor(column), math.floor(row)
    if c < 0 or r < 0 or r >= values.shape[0] or c >= values.shape[1] or math.isnan(values[r, c]):
        return -math.inf
    return float(values[r, c])


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.zeros((2, 2)), 0.0, 0.0, 0.02, 0.0, 0.0)])
def value_at(values: Array, x_min: float, y_min: float, cell_size: float, x: float, y: float) -> float:
    """Return a map's value at a position; -inf for holes and outside."""
    return cell_value(values, (x - x_min) / cell_size, (y - y_min) / cell_size)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.zeros((2, 2)), 0.0, 0.0, 0.02, 0.0, 0.0, 0.1, 0.1)])
def max_along_segment(
    values: Array, x_min: float, y_min: float, cell_size: float, x: float, y: float, x_end: float, y_end: float
) -> float:
    """Return the largest value of a map along a segment."""
    dx, dy = x_end - x, y_end - y
    n_segments, maximum = int(math.sqrt(dx * dx + dy * dy) / cell_size) + 1, -math.inf
    for k in range(n_segments + 1):
        c, r = int((x + dx * k / n_segments - x_min) / cell_size), int((y + dy * k / n_segments - y_min) / cell_size)
        if 0 <= c < values.shape[1] and 0 <= r < values.shape[0]:
            maximum = max(maximum, values[r, c])
    return maximum


CELL_SIZE: Final = 0.02
"""Edge of the cells on whose centers feet stand [m]."""
MAX_CELLS: Final = 4_000_000
"""Largest number of cells of a map."""
_MAX_HEIGHT: Final = 1e4
"""Largest absolute height of a map [m]; beyond it, rounding errors would reach a millimeter."""
MAX_HEIGHT_STD: Final = 0.015
"""Largest standard deviation of the height of a foothold [m]."""
_MIN_STEP_HEIGHT: Final = 0.015
"""Height difference between neighboring cells from which on there is an edge between them [m]."""
_MIN_EDGE_DISTANCE: Final = 0.01
"""Smallest distance of a foothold from an edge [m]."""
_WALL_CLEARANCE: Final = 0.02
"""Smallest distance of a foothold from ground that is a step higher, where round feet would get stuck, for the Akrobat
[m]."""
_MAX_FOOTHOLD_RELIEF: Final = 0.007
"""Largest height difference within the smallest edge distance of a foothold, for terrains with exact heights [m]."""
_SAFE_EDGE_DISTANCE: Final = 0.03
"""Distance from an edge from which on it does not lower the quality of a foothold [m]."""
_BODY_CLEARANCE: Final = 0.03
"""Clearance below the body [m]."""
_MAX_BODY_SLOPE: Final = 0.6
"""Largest slope of the body's height along a path."""
_JOIN_RADIUS: Final = 0.03
"""Distance from a given body position within which the body height is that of the position [m]."""
_MAX_BODY_LIFT: Final = 0.25
"""Largest height of the body above its stance, as a fraction of the length of the legs."""
_HEIGHT_ERROR: Final = 0.008
"""Error of observed heights from cell to cell on level ground [m]."""
_PIT_RADIUS: Final = 0.25
_MAX_PIT_DEPTH: Final = 0.2
"""Depth below nearby ground from which on the body height does not follow the ground [m]."""
_MAX_GAP_WIDTH: Final = 0.5
"""Largest width of a hole that the robot steps over [m]."""
_BODY_HEIGHT_TOLERANCE: Final = 0.03
"""Height difference for which reachable footholds are kept when the body height changes, for the Akrobat [m]."""
_SEARCH_RADIUS: Final = 0.16
"""Radius of the search for a foothold, for the Akrobat [m]."""


class HeightUncertainty(NamedTuple):
    """Uncertainty of heights.

    Attributes:
        variance: (rows, columns) variance of the heights [m²]; None: not known.  No foot stands where the standard
            deviation exceeds `MAX_HEIGHT_STD`, but all keep clear of such ground.
        tolerance: Distance by which swing feet may pass below the heights [m].
    """

    variance: ArrayLike | None = None
    tolerance: float = 1e-3


@dataclass(frozen=True, eq=False)
class FootholdMap:
    """Foothold map of a terrain for a robot at a heading.

    Attributes:
        arrays: Arguments of kernels.
        heading: Heading of the body, which is constant [rad].
    """

    arrays: FootholdMapArrays
    heading: float

    @classmethod
    def from_heights(
        cls,
        heights: ArrayLike,
        corner: tuple[float, float],
        robot_model: FreeGaitModel,
        *,
        cell_size: float = CELL_SIZE,
        heading: float = 0.0,
        friction: float = 0.8,
        uncertainty: HeightUncertainty | None = None,
        start: ArrayLike | None = None,
    ) -> FootholdMap:
        """Return the foothold map of an array of heights.

        Args:
            heights: (rows, columns) heights at cell centers [m]; rows along y.  Not finite: a hole.
            corner: Smallest x and y [m].
            robot_model: The robot.
            cell_size: Edge of a cell [m].
            heading: Heading of the body [rad].
            friction: Assumed coefficient of friction; slopes above 0.6 of it hold no foot.
            uncertainty: Uncertainty of the heights; None: they are exact.
            start: (k, 2) positions of the feet, or (2,) center of the stance [m]: the body follows the ground that is
                reachable from there, not the tops of walls; None: it follows ground that is not far below other ground
                nearby.

        Raises:
            InputError: The array is not a map, has no finite cell or a height above 10 km, or a parameter is not
                positive.
        """
        height_array = np.array(heights, dtype=np.float64)
        if height_array.ndim != 2 or min(height_array.shape) < 4 or height_array.size > MAX_CELLS:
            raise InputError(f"a map of shape {height_array.shape}", valid=f"4 x 4 to {MAX_CELLS} cells")
        if not (
            0.0 < cell_size < 1.0 and 0.0 < friction < 10.0 and math.isfinite(sum(corner)) and math.isfinite(heading)
        ):
            raise InputError(f"cells of {cell_size:g} m, friction {friction:g}", valid="finite, more than 0")
        height_array[~np.isfinite(height_array)] = np.nan
        if np.isnan(height_array).all():
            raise InputError("height map has no finite cell", valid="finite heights [m]")
        if np.nanmax(np.abs(height_array)) > _MAX_HEIGHT:
            row, column = np.unravel_index(np.nanargmax(np.abs(height_array)), height_array.shape)
            raise InputError(
                f"cell ({row}, {column}) is {height_array[row, column]:.3g} m high",
                valid=f"heights up to {_MAX_HEIGHT:g} m",
            )
        slope, edge_distance = _slope(height_array, cell_size), _distance_to_edge(height_array, cell_size)
        max_slope = 0.6 * friction
        can_stand = ~np.isnan(height_array) & (slope <= max_slope) & (edge_distance >= _MIN_EDGE_DISTANCE - 1e-9)
        foothold_quality = np.clip(1.0 - slope / (2.0 * max_slope), 0.0, 1.0) * np.clip(
            edge_distance / _SAFE_EDGE_DISTANCE, 0.2, 1.0
        )
        foot_cells = max(round(0.01 * robot_model.scale / cell_size), 1)
        solid_heights = np.where(np.isnan(height_array), -np.inf, height_array)
        obstacle_height = maximum_filter(solid_heights, footprint=_disk(foot_cells))
        wall_height = maximum_filter(
            solid_heights, footprint=_disk(max(round(_WALL_CLEARANCE * robot_model.scale / cell_size), 1))
        )
        with np.errstate(invalid="ignore"):  # holes, where no foot stands
            can_stand &= wall_height - solid_heights <= _MIN_STEP_HEIGHT + slope * _WALL_CLEARANCE * robot_model.scale
        variance, height_tolerance = uncertainty or HeightUncertainty()
        if variance is not None:
            can_stand &= np.asarray(variance) <= MAX_HEIGHT_STD**2
        if start is None:
            nearby_height = maximum_filter(
                obstacle_height, size=2 * round(_PIT_RADIUS * robot_model.scale / cell_size) + 1
            )
            is_level_ground = can_stand & (
                np.nan_to_num(height_array) >= nearby_height - _MAX_PIT_DEPTH * robot_model.scale
            )
        else:
            foot_positions = np.asarray(start, np.float64)
            if foot_positions.ndim == 1:
                rotation = np.array([[math.cos(heading), math.sin(heading)], [-math.sin(heading), math.cos(heading)]])
                foot_positions = foot_positions + robot_model.arrays.stance_feet[:, :2] @ rotation
            is_level_ground = _reachable_from_feet(
                height_array, can_stand, foot_positions - corner, robot_model, cell_size
            )
        body_height = _compute_body_heights(
            height_array, is_level_ground, obstacle_height, robot_model, cell_size, heading
        )
        can_stand &= _within_leg_reach(height_array, body_height, robot_model, cell_size)
        search_cells = math.ceil(_SEARCH_RADIUS * robot_model.scale / cell_size)
        a, b = np.mgrid[-search_cells : search_cells + 1, -search_cells : search_cells + 1]
        order = np.argsort((a * a + b * b).ravel(), kind="stable")
        offsets = np.stack([a.ravel(), b.ravel()], axis=1)[order]
        offsets = offsets[np.hypot(*offsets.T) <= search_cells]
        arrays = FootholdMapArrays(
            float(corner[0]),
            float(corner[1]),
            cell_size,
            height_array,
            obstacle_height,
            can_stand,
            foothold_quality,
            body_height,
            offsets.astype(np.int64),
            height_tolerance,
        )
        return cls(arrays, heading)

    @classmethod
    def from_height_map(
        cls,
        height_map: HeightMap,
        robot_model: FreeGaitModel,
        *,
        heading: float = 0.0,
        friction: float = 0.8,
        start: ArrayLike | None = None,
    ) -> FootholdMap:
        """Return the foothold map of a height map; arguments and errors as for `from_heights`."""
        return cls.from_heights(
            height_map.heights,
            height_map.corner,
            robot_model,
            cell_size=height_map.resolution,
            heading=heading,
            friction=friction,
            uncertainty=None if height_map.variance is None else HeightUncertainty(height_map.variance, _HEIGHT_ERROR),
            start=start,
        )

    @classmethod
    def from_terrain(
        cls,
        terrain: Terrain,
        robot_model: FreeGaitModel,
        positions: ArrayLike,
        *,
        heading: float = 0.0,
        friction: float = 0.8,
    ) -> FootholdMap:
        """Return the foothold map of a terrain and the flat ground around it, as far as needed about positions (k, 2)
        [m]; the first position is the robot's.
        """
        low, high = planning_extent(terrain, robot_model, positions)
        map_corner = np.floor((low - terrain.corner) / CELL_SIZE) * CELL_SIZE + terrain.corner
        columns, rows = (int(n) for n in np.ceil((high - map_corner) / CELL_SIZE))
        x, y = (
            map_corner[0] + (np.arange(columns) + 0.5) * CELL_SIZE,
            map_corner[1] + (np.arange(rows) + 0.5) * CELL_SIZE,
        )
        start = np.atleast_2d(np.asarray(positions, np.float64))[0]
        positions = np.stack(np.meshgrid(x, y), axis=-1)
        heights = terrain.height_at(positions)
        # squares of a terrain whose edge is no multiple of a cell's have edges within cells, which the heights of their
        # centers do not show
        angles = np.linspace(0.0, 2.0 * np.pi, 8, endpoint=False)
        rim_heights = terrain.height_at(
            positions[..., None, :] + 0.99 * _MIN_EDGE_DISTANCE * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        )
        relief = np.nan_to_num(np.abs(rim_heights - heights[..., None]), nan=np.inf).max(axis=-1)
        corner = float(map_corner[0]), float(map_corner[1])
        relief[relief > _MAX_FOOTHOLD_RELIEF] = np.inf
        return cls.from_heights(
            heights,
            corner,
            robot_model,
            heading=heading,
            friction=friction,
            uncertainty=HeightUncertainty(relief**2),
            start=start,
        )

    def with_body_at(self, position: ArrayLike) -> FootholdMap:
        """Return the same map with the body height continued from a body position (3,) [m].

        The running plan may have been made on another map.
        """
        x, y, z = np.asarray(position, dtype=np.float64).tolist()
        arrays = self.arrays
        height_offset = z - interpolate_body_height(arrays.body_height, arrays.x, arrays.y, arrays.cell_size, x, y)
        if not math.isfinite(height_offset):
            return self
        column_x = arrays.x + (np.arange(arrays.body_height.shape[1]) + 0.5) * arrays.cell_size
        row_y = arrays.y + (np.arange(arrays.body_height.shape[0]) + 0.5) * arrays.cell_size
        distance = np.hypot(column_x - x, row_y[:, None] - y)
        fraction = np.clip(
            1.0 - (distance - _JOIN_RADIUS) / max(abs(height_offset) / _MAX_BODY_SLOPE, arrays.cell_size), 0.0, 1.0
        )
        return FootholdMap(arrays._replace(body_height=arrays.body_height + height_offset * fraction), self.heading)

    def cell_at(self, x: float, y: float) -> tuple[int, int]:
        """Return row and column of a position [m]; row -1 outside."""
        r, c = (
            math.floor((y - self.arrays.y) / self.arrays.cell_size),
            math.floor((x - self.arrays.x) / self.arrays.cell_size),
        )
        rows, columns = self.arrays.heights.shape
        return (r, c) if 0 <= r < rows and 0 <= c < columns else (-1, -1)


def planning_extent(terrain: Terrain, robot_model: FreeGaitModel, positions: ArrayLike) -> tuple[Array, Array]:
    """Return smallest and largest x and y [m] of a terrain and of everything a robot needs about positions (k, 2)."""
    points = np.atleast_2d(np.asarray(positions, np.float64))
    corner, size, margin = np.array(terrain.corner), np.array(terrain.size), 0.8 * robot_model.scale
    return np.minimum(points.min(axis=0) - margin, corner), np.maximum(points.max(axis=0) + margin, corner + size)


def _disk(radius: int) -> NDArray[np.bool_]:
    a, b = np.mgrid[-radius : radius + 1, -radius : radius + 1]
    disk: NDArray[np.bool_] = a * a + b * b <= radius * radius
    return disk


def _height_steps(heights: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return where the ground steps or ends: between rows (rows - 1, columns), and between columns (rows, columns -
    1)."""
    edges = []
    for axis in (0, 1):
        step = np.diff(heights, axis=axis)
        holes = np.diff(np.isnan(heights).astype(np.int8), axis=axis) != 0
        edges.append((np.abs(np.nan_to_num(step)) > _MIN_STEP_HEIGHT) | holes)
    return edges[0], edges[1]


def _distance_to_edge(heights: Array, cell: float) -> Array:
    """Return the distance from each cell's center to the nearest edge [m]."""
    rows, columns = heights.shape
    row_edges, column_edges = _height_steps(heights)
    # a grid of half the cell size: cells at even indices, edges between them at odd ones
    edge_grid = np.ones((2 * rows - 1, 2 * columns - 1), np.bool_)
    edge_grid[1::2, ::2] = ~row_edges
    edge_grid[::2, 1::2] = ~column_edges
    if edge_grid.all():
        return np.full(heights.shape, np.inf)
    distances: Array = distance_transform_edt(edge_grid, sampling=0.5 * cell)[::2, ::2]
    return distances


def _slope(heights: Array, cell: float) -> Array:
    """Return (rows, columns) slopes by the smaller of both differences along each axis that cross no edge; 0 without
    any."""
    squared_slope = np.zeros(heights.shape)
    for axis, is_edge in enumerate(_height_steps(heights)):
        slope = np.where(is_edge, np.nan, np.abs(np.diff(heights, axis=axis)) / cell)
        pad = [(0, 0), (0, 0)]
        pad[axis] = (1, 1)
        padded = np.pad(slope, pad, constant_values=np.nan)
        one, other = (padded[:-1], padded[1:]) if axis == 0 else (padded[:, :-1], padded[:, 1:])
        squared_slope += np.nan_to_num(np.fmax(one, other)) ** 2
    return np.sqrt(squared_slope)


def _reachable_from_feet(
    heights: Array, can_stand: NDArray[np.bool_], feet: Array, robot_model: FreeGaitModel, cell_size: float
) -> NDArray[np.bool_]:
    """Return (rows, columns) ground that is reachable from the feet (k, 2) of the map [m] without a step or hole larger
    than a robot can pass; an upper bound.
    """
    reachable = np.zeros(can_stand.shape, np.bool_)
    standable_cells = np.argwhere(can_stand)
    if len(standable_cells):
        start_cells = np.array(
            [
                standable_cells[np.argmin(((standable_cells - position) ** 2).sum(axis=1))]
                for position in feet[:, ::-1] / cell_size - 0.5
            ]
        )
        start_heights = heights[tuple(start_cells.T)]
        gap_cells = max(round(_MAX_GAP_WIDTH * robot_model.scale / cell_size), 1)
        for row, column in start_cells[
            np.abs(start_heights - np.median(start_heights)) <= _MAX_PIT_DEPTH * robot_model.scale
        ]:  # the center of a stance may be above holes
            if not reachable[row, column]:
                flood_reachable(
                    heights, can_stand, row, column, gap_cells, _MAX_PIT_DEPTH * robot_model.scale, reachable
                )
    return reachable


def _compute_body_heights(
    heights: Array,
    is_level_ground: NDArray[np.bool_],
    obstacle_height: Array,
    robot_model: FreeGaitModel,
    cell_size: float,
    heading: float,
) -> Array:
    """Return (rows, columns) heights of the body frame [m]: above the mean of the level ground, clear of everything
    below."""
    smoothing_width = 0.12 * robot_model.scale / cell_size
    weight = gaussian_filter(is_level_ground.astype(np.float64), smoothing_width, mode="nearest")
    sums = gaussian_filter(np.where(is_level_ground, heights, 0.0), smoothing_width, mode="nearest")
    body_level = np.divide(sums, weight, out=np.full(heights.shape, np.nan), where=weight > 1e-5)
    body_level -= float(robot_model.arrays.stance_feet[:, 2].mean())
    min_height = (
        maximum_filter(obstacle_height, footprint=_body_footprint(robot_model, cell_size, heading))
        - float(robot_model.body_box[0, 2])
        + _BODY_CLEARANCE * robot_model.scale
    )
    leg_length = float((np.hypot(*robot_model.arrays.legs.thigh.T) + np.hypot(*robot_model.arrays.legs.shank.T)).min())
    is_too_steep = (
        np.hypot(*np.gradient(body_level, cell_size)) > _MAX_BODY_SLOPE
    )  # NaN without level ground, where the body cannot be
    is_blocked = np.isnan(body_level) | is_too_steep | (min_height > body_level + _MAX_BODY_LIFT * leg_length)
    out = np.where(is_blocked, -np.inf, np.fmax(body_level, min_height))
    limit_slope(out, _MAX_BODY_SLOPE * cell_size)
    return np.where(is_blocked, np.nan, np.minimum(out, body_level + _MAX_BODY_LIFT * leg_length))


def _within_leg_reach(
    heights: Array, body_height: Array, robot_model: FreeGaitModel, cell_size: float
) -> NDArray[np.bool_]:
    """Return (rows, columns) where the ground is neither too low nor too high for the legs of nearby bodies; an upper
    bound."""
    n_legs, table_cell, reach_table = (
        robot_model.arrays.table_origin.shape[0],
        robot_model.arrays.cell_size,
        robot_model.arrays.stance_reach,
    )
    leg, a, b = np.nonzero(reach_table)
    max_radius = float(
        np.hypot(
            robot_model.arrays.table_origin[leg, 0] + a * table_cell,
            robot_model.arrays.table_origin[leg, 1] + b * table_cell,
        ).max()
    )
    layers = [
        np.flatnonzero([(int(bits) >> k) & 1 for k in range(64)]) for bits in np.bitwise_or.reduce(reach_table, (1, 2))
    ]
    min_reach_height = (
        min(
            float(robot_model.arrays.table_origin[k, 2] + layers[k][0] * robot_model.arrays.layer_height)
            for k in range(n_legs)
        )
        - _BODY_HEIGHT_TOLERANCE * robot_model.scale
    )
    max_reach_height = (
        max(
            float(robot_model.arrays.table_origin[k, 2] + layers[k][-1] * robot_model.arrays.layer_height)
            for k in range(n_legs)
        )
        + _BODY_HEIGHT_TOLERANCE * robot_model.scale
    )
    window, is_missing = 2 * math.ceil(max_radius / cell_size) + 1, np.isnan(body_height)
    min_body_height = minimum_filter(np.where(is_missing, np.inf, body_height), size=window)
    max_body_height = maximum_filter(np.where(is_missing, -np.inf, body_height), size=window)
    with np.errstate(invalid="ignore"):  # holes, where no foot stands
        is_within_reach: NDArray[np.bool_] = (heights >= min_body_height + min_reach_height) & (
            heights <= max_body_height + max_reach_height
        )
    return is_within_reach


def _body_footprint(robot_model: FreeGaitModel, cell_size: float, heading: float) -> NDArray[np.bool_]:
    """Return the cells under the body's box, about its center."""
    radius_cells = math.ceil(float(np.hypot(*np.abs(robot_model.body_box[:, :2]).max(axis=0))) / cell_size) + 1
    b, a = np.mgrid[-radius_cells : radius_cells + 1, -radius_cells : radius_cells + 1] * cell_size
    c, s = math.cos(heading), math.sin(heading)
    x, y = c * a + s * b, c * b - s * a
    low, high = robot_model.body_box[0, :2] - 0.5 * cell_size, robot_model.body_box[1, :2] + 0.5 * cell_size
    is_inside: NDArray[np.bool_] = (x >= low[0]) & (x <= high[0]) & (y >= low[1]) & (y <= high[1])
    return is_inside[::-1, ::-1]  # a filter mirrors its footprint
