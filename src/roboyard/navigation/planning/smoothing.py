"""Smoothing: the same way without its corners, as far as obstacles and costs let it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.navigation.costmap import Costmap
from roboyard.navigation.path import Path
from roboyard.navigation.planning.base import GlobalPlanner, Traversal
from roboyard.navigation.planning.grid_ways import spaced
from roboyard.navigation.planning.ground import Ground, smallest
from roboyard.navigation.planning.lines import line_cost
from roboyard.navigation.planning.path_cost import cost_along

_LESS = 1.0 - 1e-6
_TOO_TIGHT = 20.0
"""What a turn costs by which a bend is too tight, in stiffnesses: more than any detour by which it is avoided."""
_SPARE = 1.02


@dataclass(frozen=True, slots=True)
class Smoother:
    """Bends a way like an elastic rod: what bending costs more than it saves is taken out.

    Every move keeps the lines to both neighbours free for the robot's centre, so the way never gets into an obstacle;
    both ends stay.  It is for planners of the centre's way; what ``HybridAStar`` finds is left as it is, since it has
    no corners.

    Attributes:
        traversal: What a metre costs.
        turning_radius: Bends are made this wide where there is room [m].
        least_radius: A car's: no bend is made tighter, and a way that cannot be bent so stays as it was [m]; 0: any
            bend will do.  It says nothing of how the robot looks at the start and the goal; ``HybridAStar`` does.
        rounds: Over the whole way, at most.

    Raises:
        ConfigError: a number out of range.
    """

    traversal: Traversal = field(default_factory=Traversal)
    turning_radius: float = 0.5
    least_radius: float = 0.0
    rounds: int = 60

    def __post_init__(self) -> None:
        if not 0.0 < self.turning_radius <= 100.0:
            raise ConfigError(f"turning_radius = {self.turning_radius}", location="Smoother", valid="0 to 100 m")
        if not 0.0 <= self.least_radius <= 100.0:
            raise ConfigError(f"least_radius = {self.least_radius}", location="Smoother", valid="0 to 100 m")
        if not 1 <= self.rounds <= 10_000:
            raise ConfigError(f"rounds = {self.rounds}", location="Smoother", valid="1 to 10000")

    def smooth(self, costmap: Costmap, path: Path) -> Path:
        """The way with wider bends; the way as it was where it would not bend more gently, or not gently enough."""
        if len(path) < 3 or path.length == 0.0 or _drives_curves(path):
            return path
        frame = costmap.frame
        inside = frame.T_map_grid.inverse() @ path.poses[:, :2]
        ground = self.traversal.ground(costmap.cells)
        way = spaced(_corners(inside[:, ::-1] / frame.resolution + 0.5), 2.0)
        if len(way) < 3:
            return path
        before = way.copy()
        least = self.least_radius / frame.resolution
        relax(ground, way, max(self.turning_radius / frame.resolution, least), least, self.rounds)
        if sharpest(way) > sharpest(before) or tightest(way) < least:
            return path
        points = frame.T_map_grid @ ((way[:, ::-1] - 0.5) * frame.resolution)
        points[0], points[-1] = path.poses[0, :2], path.poses[-1, :2]
        steps = np.diff(points, axis=0)
        headings = np.append(np.arctan2(steps[:, 1], steps[:, 0]), path.poses[-1, 2])
        found = cost_along(costmap, np.column_stack([points, headings]), self.traversal)
        return found if math.isfinite(found.cost) else path


@dataclass(frozen=True, slots=True)
class SmoothedPlanner:
    """A planner with its ways bent.

    Attributes:
        planner: Finds them.
        smoother: Bends them, at the planner's prices.
    """

    planner: GlobalPlanner
    smoother: Smoother

    @property
    def traversal(self) -> Traversal:
        """What a metre costs."""
        return self.smoother.traversal

    def plan(self, costmap: Costmap, start: SE2, goal: SE2) -> Path:
        """See ``GlobalPlanner``."""
        return self.smoother.smooth(costmap, self.planner.plan(costmap, start, goal))


def _corners(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of a line's points (n, 2) the first, those at which it bends, and the last."""
    points = points[np.append(True, np.linalg.norm(np.diff(points, axis=0), axis=1) > 1e-9)]
    before, after = np.diff(points[:-1], axis=0), np.diff(points[1:], axis=0)
    aside = np.abs(before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0])
    straight = (aside <= 1e-6 * (before * after).sum(axis=1)) if len(points) > 2 else np.zeros(0, dtype=bool)
    return np.asarray(points[np.concatenate([[True], ~straight, [True]])[: len(points)]])


def _drives_curves(path: Path) -> bool:
    """Whether its first pose looks elsewhere than it goes, or it turns on the spot or back: its headings are meant."""
    steps = np.diff(path.poses[:-1], axis=0)
    moving = np.hypot(steps[:, 0], steps[:, 1]) > 1e-9
    aside = np.arctan2(steps[:, 1], steps[:, 0]) - path.poses[:-2, 2]
    return bool((np.abs(np.sin(0.5 * aside[moving])) > 1e-6).any())


@kernel(examples=lambda: [(np.ones((5, 2)),)])
def sharpest(way: NDArray[np.float64]) -> float:
    """The largest turn at a point of a way (n, 2) [rad]."""
    most = 0.0
    for i in range(1, len(way) - 1):
        most = max(most, _turn(way, i))
    return most


@kernel(examples=lambda: [(np.ones((5, 2)),)])
def tightest(way: NDArray[np.float64]) -> float:
    """The least radius of an arc that fits into the bend at a point of a way (n, 2); infinite if it is straight.

    The arc touches both lines no farther from the point than half the shorter one reaches, so that arcs in all bends
    together make a way to drive.
    """
    least = np.inf
    for i in range(1, len(way) - 1):
        turn = _turn(way, i)
        if turn > 0.0:
            least = min(least, 0.5 * _shorter(way, i) / math.tan(0.5 * turn))
    return least


@kernel
def _shorter(way: NDArray[np.float64], i: int) -> float:
    """Length of the shorter one of the lines to both neighbours."""
    before = math.hypot(way[i, 0] - way[i - 1, 0], way[i, 1] - way[i - 1, 1])
    after = math.hypot(way[i + 1, 0] - way[i, 0], way[i + 1, 1] - way[i, 1])
    return min(before, after)


@kernel
def _turn(way: NDArray[np.float64], i: int) -> float:
    """How much the way turns at a point [rad]; 0 at its ends, as much as can be where it stands on a neighbour."""
    if i <= 0 or i >= len(way) - 1:
        return 0.0
    if _shorter(way, i) < 1e-3:
        return math.pi
    ar, ac = way[i, 0] - way[i - 1, 0], way[i, 1] - way[i - 1, 1]
    br, bc = way[i + 1, 0] - way[i, 0], way[i + 1, 1] - way[i, 1]
    return abs(math.atan2(ar * bc - ac * br, ar * br + ac * bc))


@kernel
def _energy(ground: Ground, way: NDArray[np.float64], i: int, stiffness: float, least: float) -> float:
    """What depends on a point: the lines to both neighbours, and the turns there."""
    cost = line_cost(ground, way[i - 1, 0], way[i - 1, 1], way[i, 0], way[i, 1])
    cost += line_cost(ground, way[i, 0], way[i, 1], way[i + 1, 0], way[i + 1, 1])
    for j in range(i - 1, i + 2):
        turn = _turn(way, j)
        cost += stiffness * turn**2
        if turn > 0.0 and least > 0.0:
            # a little more than asked for, since what is too tight only costs
            too_sharp = turn - 2.0 * math.atan(0.5 * _shorter(way, j) / (_SPARE * least))
            if too_sharp > 0.0:
                cost += _TOO_TIGHT * stiffness * too_sharp
    # points keep their distance from each other
    before = math.hypot(way[i, 0] - way[i - 1, 0], way[i, 1] - way[i - 1, 1])
    after = math.hypot(way[i + 1, 0] - way[i, 0], way[i + 1, 1] - way[i, 1])
    return cost + 0.2 * (before - after) ** 2


@kernel(examples=lambda: [(smallest(), np.ones((5, 2)), 2.0, 0.0, 5)])
def relax(ground: Ground, way: NDArray[np.float64], stiffness: float, least: float, rounds: int) -> None:
    """Move the points of a way (n, 2), its ends left out, to where its cost and its turns are least; see ``line_cost``.

    Args:
        ground: See there.
        way: Rows and columns, in the ground's cells; changed.
        stiffness: What a turn's square costs.
        least: Arcs of a smaller radius are avoided [cells], see ``tightest``.
        rounds: Over all points, at most.
    """
    for _ in range(rounds):
        any_moved = False
        for i in range(1, len(way) - 1):
            best = _energy(ground, way, i, stiffness, least)
            size = 0.5
            while size > 0.03:
                moved = False
                for turn in range(8):
                    row, column = way[i, 0], way[i, 1]
                    way[i, 0] = row + size * (1.0, 1.0, 0.0, -1.0, -1.0, -1.0, 0.0, 1.0)[turn]
                    way[i, 1] = column + size * (0.0, 1.0, 1.0, 1.0, 0.0, -1.0, -1.0, -1.0)[turn]
                    energy = _energy(ground, way, i, stiffness, least)
                    if energy < best * _LESS:
                        best, moved, any_moved = energy, True, True
                    else:
                        way[i, 0], way[i, 1] = row, column
                if not moved:
                    size *= 0.5
        if not any_moved:
            break
