"""Ways through several poses, what is left of them to pay, and whether something stands on them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE2
from roboyard.navigation.costmap import INSCRIBED, LETHAL, Costmap
from roboyard.navigation.driving.reach import nearest_free
from roboyard.navigation.errors import StartOccupied
from roboyard.navigation.path import Path
from roboyard.navigation.planning import GlobalPlanner

_DEAR = 3.0
"""What the dearest free cell costs more than the cheapest, when ways are compared."""


def plan_through(planner: GlobalPlanner, costmap: Costmap, start: SE2, goals: Sequence[SE2], escape: float) -> Path:
    """One way from the start through all goals.

    Args:
        planner: Finds each part.
        costmap: To plan in.
        start: Where the robot is; if it is in an obstacle's reach, the way begins at a free place nearby.
        goals: At least one, in order.
        escape: How far that place may be [m].

    Raises:
        NavigationError: one part cannot be found.
    """
    parts = [_first(planner, costmap, start, goals[0], escape)]
    parts += [planner.plan(costmap, here, there) for here, there in itertools.pairwise(goals)]
    if len(parts) == 1:
        return parts[0]
    poses = np.concatenate([parts[0].poses, *(part.poses[1:] for part in parts[1:])])
    return Path(poses, sum(part.cost for part in parts), min(part.clearance for part in parts))


def _first(planner: GlobalPlanner, costmap: Costmap, start: SE2, goal: SE2, escape: float) -> Path:
    try:
        return planner.plan(costmap, start, goal)
    except StartOccupied:
        free = nearest_free(costmap, start, escape)
        if free is None:
            raise
        way = planner.plan(costmap, free, goal)
        return Path(np.concatenate([[(start.x, start.y, start.theta)], way.poses]), way.cost, 0.0)


def cost_of(costmap: Costmap, poses: NDArray[np.float64]) -> float:
    """What driving along poses (n, 3) costs, in metres of free ground; infinite where an obstacle's reach begins."""
    if len(poses) < 2:
        return 0.0
    values, blocked = _under(costmap, poses)
    if blocked.any():
        return float("inf")
    steps = np.hypot(*np.diff(poses[:, :2], axis=0).T)
    return float((steps * (1.0 + _DEAR * values[1:] / (INSCRIBED - 1))).sum())


def is_blocked(costmap: Costmap, poses: NDArray[np.float64]) -> bool:
    """Whether the robot's centre cannot be at one of the poses (n, 3); poses beyond the costmap do not count."""
    return bool(_under(costmap, poses)[1].any())


def _under(costmap: Costmap, poses: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(n,) costs, 0 for what is unknown or beyond the costmap, and (n,) whether an obstacle forbids to be there."""
    cells = costmap.frame.cells_of_points(poses[:, :2])
    inside = costmap.frame.contains(cells)
    found = np.zeros(len(poses), dtype=np.uint8)
    found[inside] = costmap.cells[cells[inside, 0], cells[inside, 1]]
    found[found > LETHAL] = 0
    return found.astype(np.float64), found >= INSCRIBED
