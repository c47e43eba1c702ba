"""Why there is no way: the narrowest place on the widest way, who marked it, and how wide the robot is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids.distance_field import squared_distance_transform
from roboyard.navigation.costmap import LETHAL, UNKNOWN, LayeredCostmap, Origin
from roboyard.navigation.errors import NoPath
from roboyard.navigation.planning.bottleneck import widest
from roboyard.navigation.planning.ground import Ground
from roboyard.navigation.planning.marching import march, way_down

_THROUGH = 30.0
"""A cell of an obstacle counts as so many cells of detour, where the thinnest place of a wall is looked for."""


class Barrier(Enum):
    """What keeps the robot from its goal."""

    GAP = "gap"
    """Every way leads through a place that is too narrow; this is the widest of them."""
    WALL = "wall"
    """Obstacles close every way; this is where they are thinnest."""
    GOAL = "goal"
    """The goal lies too near to an obstacle."""
    START = "start"
    """The start lies too near to an obstacle."""
    NONE = "none"
    """Nothing: a robot of this size has a way."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where the way ends, and why.

    Attributes:
        barrier: What is in the way.
        place: Its middle in the map (2,) [m].
        width: How wide the way is there, from obstacle to obstacle [m]; 0 where it is closed.
        needed: How wide the robot needs it [m].
        cells: (n, 2) rows and columns of the obstacles' cells there.
        origins: Which layer and sensor marked them, each once.
    """

    barrier: Barrier
    place: tuple[float, float]
    width: float
    needed: float
    cells: NDArray[np.int64]
    origins: tuple[Origin, ...]

    def __str__(self) -> str:
        where = f"at ({self.place[0]:.2f}, {self.place[1]:.2f})"
        by = " and ".join(str(origin) for origin in self.origins)
        if self.barrier is Barrier.GAP:
            gap = f"the widest gap, {where}, is {self.width:.2f} m wide, left by {by}"
            return f"{gap}; the robot needs {self.needed:.2f} m"
        if self.barrier is Barrier.WALL:
            return f"the way is closed, at its thinnest {where}, by {by}; the robot needs a gap of {self.needed:.2f} m"
        if self.barrier is Barrier.NONE:
            return f"a way leads there, {self.width:.2f} m wide where it is narrowest, {where}"
        what = f"what {by} marked {where}"
        return f"the {self.barrier.value} is {self.width:.2f} m from {what}; the robot needs {self.needed:.2f} m"


def explain(layers: LayeredCostmap, start: SE2, goal: SE2, radius: float, *, allow_unknown: bool = True) -> Explanation:
    """Why a robot cannot come from the start to the goal.

    Args:
        layers: The map, put together.
        start: Where the robot is.
        goal: Where it should go.
        radius: Of the largest circle within its outline about its centre, as costs are inflated with [m].
        allow_unknown: Whether it may go where nobody has looked.

    Raises:
        InputError: start or goal lie outside of the map, or a radius that is no length.
    """
    if not 0.0 <= radius < math.inf:
        raise InputError(f"a robot of radius {radius}", valid="metres, 0 or more")
    costmap, frame = layers.costmap(), layers.frame
    ends = frame.cells_of_points([[start.x, start.y], [goal.x, goal.y]])
    for name, cell, pose in zip(("start", "goal"), ends, (start, goal), strict=True):
        if not frame.contains(cell):
            raise InputError(f"the {name} ({pose.x:.2f}, {pose.y:.2f}) lies outside of the map", valid="a place in it")
    blocked = costmap.cells == LETHAL
    if not allow_unknown:
        blocked |= costmap.cells == UNKNOWN
    squares = squared_distance_transform(blocked)
    for barrier, cell, pose in ((Barrier.START, ends[0], start), (Barrier.GOAL, ends[1], goal)):
        away = math.sqrt(squares[tuple(cell)])
        if away * frame.resolution <= radius or away == 0.0:
            nearest = _nearest(blocked, cell, away)
            room = max(away - 0.5, 0.0) * frame.resolution
            return Explanation(barrier, (pose.x, pose.y), room, radius, nearest[None], layers.origins(nearest[None]))
    square, saddle = widest(squares, *(int(index) for index in ends.ravel()))
    if square == 0:
        return _closed(layers, blocked, ends, radius)
    place = np.array(divmod(saddle, frame.shape[1]))
    away = math.sqrt(squares[tuple(place)])
    barrier = Barrier.NONE if away * frame.resolution > radius else Barrier.GAP
    return _narrow(layers, barrier, blocked, place, away, radius)


def no_path(layers: LayeredCostmap, start: SE2, goal: SE2, radius: float, *, allow_unknown: bool = True) -> NoPath:
    """The error that says so, with its explanation; arguments and errors as of ``explain``."""
    found = explain(layers, start, goal, radius, allow_unknown=allow_unknown)
    return NoPath(f"no way leads from the start to the goal: {found}", explanation=found)


def _narrow(
    layers: LayeredCostmap,
    barrier: Barrier,
    blocked: NDArray[np.bool_],
    saddle: NDArray[np.int64],
    away: float,
    radius: float,
) -> Explanation:
    """A gap between the obstacle nearest to its middle and the nearest one opposite, or the edge of the map."""
    frame = layers.frame
    if not math.isfinite(away):
        middle = frame.cell_centers(saddle)
        return Explanation(barrier, (middle[0], middle[1]), math.inf, 2.0 * radius, saddle[:0].reshape(0, 2), ())
    first = _nearest(blocked, saddle, away)
    reach = math.ceil(3.0 * away) + 3
    low = np.maximum(saddle - reach, 0)
    around = np.argwhere(blocked[low[0] : saddle[0] + reach + 1, low[1] : saddle[1] + reach + 1]) + low
    opposite = around[(around - saddle) @ (first - saddle) < 0.0]
    if not len(opposite):
        # between an obstacle and the edge of the map, where the robot's centre may be as far as there are cells
        cells, width, needed, middle = first[None], away - 0.5, radius, saddle.astype(np.float64)
    else:
        second = opposite[np.argmin(np.linalg.norm(opposite - saddle, axis=1))]
        cells, needed = np.stack([first, second]), 2.0 * radius
        width = _between(first, second)
        middle = 0.5 * (first + second)
    x, y = frame.cell_centers(middle)
    return Explanation(barrier, (float(x), float(y)), width * frame.resolution, needed, cells, layers.origins(cells))


def _closed(layers: LayeredCostmap, blocked: NDArray[np.bool_], ends: NDArray[np.int64], radius: float) -> Explanation:
    """The obstacles that a way crosses which avoids them as well as it can."""
    frame = layers.frame
    weights = np.zeros(256, dtype=np.float32)
    weights[:2] = 1.0, _THROUGH
    ground = Ground.framed(blocked.astype(np.uint8), weights)
    times = np.full(ground.cells.size, np.inf, dtype=np.float32)
    march(ground, times, ground.flat((int(ends[1, 0]), int(ends[1, 1]))), -1)
    way = way_down(ground, times.reshape(ground.cells.shape), float(ends[0, 0] + 1), float(ends[0, 1] + 1))
    under = np.floor(way + 0.5).astype(np.int64) - 1
    crossed = under[blocked[under[:, 0], under[:, 1]]]
    _, order = np.unique(crossed, axis=0, return_index=True)
    cells = crossed[np.sort(order)]
    x, y = frame.cell_centers(cells.mean(axis=0))
    return Explanation(Barrier.WALL, (float(x), float(y)), 0.0, 2.0 * radius, cells, layers.origins(cells))


def _nearest(blocked: NDArray[np.bool_], cell: NDArray[np.int64], away: float) -> NDArray[np.int64]:
    """The blocked cell that lies so far away [cells]."""
    reach = math.ceil(away)
    low = np.maximum(cell - reach, 0)
    around = np.argwhere(blocked[low[0] : cell[0] + reach + 1, low[1] : cell[1] + reach + 1]) + low
    return np.asarray(around[np.argmin(np.linalg.norm(around - cell, axis=1))])


def _between(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Distance of two cells' squares [cells]."""
    return float(np.linalg.norm(np.maximum(np.abs(first - second) - 1, 0)))
