"""Whether somebody's planner keeps what ``GlobalPlanner`` promises."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.navigation.costmap import INSCRIBED, LETHAL, Costmap
from roboyard.navigation.errors import GoalOccupied, GoalOutsideMap, NavigationError, StartOccupied, StartOutsideMap
from roboyard.navigation.path import Path
from roboyard.navigation.planning.base import GlobalPlanner

_FRAME = GridGeometry(0.1, (120, 160), SE2(-3.0, 2.0, 0.5))


def check_planner(planner: GlobalPlanner) -> None:
    """Try a planner on small maps: ways, causes, and that it keeps its hands off what it was given.

    Raises:
        InputError: it breaks its contract; the message says how.
    """
    wall = np.zeros(_FRAME.shape, dtype=np.uint8)
    wall[:80, 78:82] = LETHAL
    wall[:84, 74:86][wall[:84, 74:86] == 0] = INSCRIBED
    start, goal = _at(30, 30, 0.7), _at(30, 130, -1.0)
    for cells in (np.zeros(_FRAME.shape, dtype=np.uint8), wall, np.where(wall == 0, np.uint8(90), wall)):
        _check_way(planner, Costmap(cells, _FRAME), start, goal)
    closed = wall.copy()
    closed[:, 76:84] = LETHAL
    beyond = _FRAME.T_map_grid @ SE2(-1.0, 1.0, 0.0)
    for cells, first, last, error in (
        (closed, start, goal, NavigationError),
        (wall, start, _at(30, 80, 0.0), GoalOccupied),
        (wall, _at(30, 80, 0.0), goal, StartOccupied),
        (wall, start, beyond, GoalOutsideMap),
        (wall, beyond, goal, StartOutsideMap),
    ):
        try:
            planner.plan(Costmap(cells.copy(), _FRAME), first, last)
        except error as found:
            if found.cause == NavigationError.cause:
                _broken(planner, f"{type(found).__name__} names no cause")
        except NavigationError as found:
            _broken(planner, f"raises {type(found).__name__} instead of {error.__name__}")
        else:
            _broken(planner, f"finds a way where {error.__name__} is to be raised")


def _at(row: int, column: int, theta: float) -> SE2:
    x, y = _FRAME.cell_centers(np.array([row, column]))
    return SE2(x, y, theta)


def _check_way(planner: GlobalPlanner, costmap: Costmap, start: SE2, goal: SE2) -> None:
    before = costmap.cells.copy()
    path: object = planner.plan(costmap, start, goal)
    if not isinstance(path, Path):
        _broken(planner, f"gives {type(path).__name__}, not Path")
    if (costmap.cells != before).any():
        _broken(planner, "changes the costmap it was given")
    if not len(path) or path.pose(0).distance(start) > 1e-6 or path.pose(-1).distance(goal) > 1e-6:
        _broken(planner, "its way does not lead from the start to the goal")
    steps = np.linspace(path.poses[:-1, :2], path.poses[1:, :2], 16).reshape(-1, 2)
    cells = _FRAME.cells_of_points(steps)
    if not _FRAME.contains(cells).all():
        _broken(planner, "its way leaves the map")
    under = costmap.cells[cells[:, 0], cells[:, 1]]
    if (under >= INSCRIBED).any():
        _broken(planner, "its way leads through cells where the robot touches an obstacle")
    if path.cost < path.length * (1.0 - 1e-3):
        _broken(planner, f"a way of {path.length:.2f} m is said to cost {path.cost:.2f} m of free ground")
    lethal = _FRAME.cell_centers(np.argwhere(costmap.cells == LETHAL))
    if len(lethal):
        nearest = float(np.linalg.norm(lethal[:, None] - path.poses[None, :, :2], axis=2).min())
        if not nearest - _FRAME.resolution <= path.clearance <= nearest + _FRAME.resolution:
            _broken(planner, f"its clearance is {nearest:.2f} m, not {path.clearance:.2f} m")
    again = planner.plan(Costmap(before, _FRAME), start, goal)
    if path.poses.shape != again.poses.shape or (path.poses != again.poses).any():
        _broken(planner, "finds another way when asked the same again")


def _broken(planner: GlobalPlanner, how: str) -> NoReturn:
    raise InputError(how, location=type(planner).__name__, valid="what GlobalPlanner promises")
