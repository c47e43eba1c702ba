"""What every global planner offers, and what all check before they search."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from roboyard.config import Config, parameter
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.navigation.costmap import INSCRIBED, LETHAL, UNKNOWN, Costmap
from roboyard.navigation.errors import GoalOccupied, GoalOutsideMap, GoalUnknown, StartOccupied, StartOutsideMap
from roboyard.navigation.path import Path
from roboyard.navigation.planning.ground import Ground


class GlobalPlanner(Protocol):
    """Finds a way through a costmap."""

    def plan(self, costmap: Costmap, start: SE2, goal: SE2) -> Path:
        """A way from ``start`` to ``goal``, poses in the costmap's map; the same input gives the same bits.

        Raises:
            NavigationError: there is none; its class says why.
        """
        ...


class Traversal(Config):
    """What a metre costs, depending on the cell.

    A metre of free ground costs 1, one at the highest cost that is still free ``1 + cost_weight``.
    """

    cost_weight: float = parameter(
        3.0,
        low=0.0,
        high=1000.0,
        doc="Additional cost of a distance on the most costly free cell, per cost on the cheapest.",
    )
    allow_unknown: bool = parameter(True, doc="Plan through unknown space.")
    unknown_cost: int = parameter(50, low=0, high=INSCRIBED - 1, doc="Cost of an unknown cell.")

    def ground(self, cells: NDArray[np.uint8]) -> Ground:
        """What a metre costs on cells (rows, columns), 0 where the robot cannot be; a rim of such cells is added."""
        table = (1.0 + self.cost_weight * np.arange(256) / (INSCRIBED - 1)).astype(np.float32)
        table[INSCRIBED:] = 0.0
        if self.allow_unknown:
            table[UNKNOWN] = table[self.unknown_cost]
        return Ground.framed(cells, table)


def traversal_of(planner: GlobalPlanner) -> Traversal:
    """What a planner pays for a metre; the usual, if it does not say."""
    found = getattr(planner, "traversal", None)
    return found if isinstance(found, Traversal) else Traversal()


def start_and_goal(
    costmap: Costmap, traversal: Traversal, start: SE2, goal: SE2
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Their cells (row, column).

    Raises:
        NavigationError: one of them lies outside of the map, in an obstacle, or in unknown space that must not be
            entered.
    """
    cells = costmap.frame.cells_of_points(np.array([[start.x, start.y], [goal.x, goal.y]]))
    inside = costmap.frame.contains(cells)
    for is_inside, error, name, pose in (
        (inside[0], StartOutsideMap, "start", start),
        (inside[1], GoalOutsideMap, "goal", goal),
    ):
        if not is_inside:
            raise error(f"the {name} ({pose.x:.2f}, {pose.y:.2f}) lies outside of the map", valid=extent(costmap.frame))
    first, last = (int(cells[0, 0]), int(cells[0, 1])), (int(cells[1, 0]), int(cells[1, 1]))
    for name, cell, pose in (("start", first, start), ("goal", last, goal)):
        value = int(costmap.cells[cell])
        if value in (LETHAL, INSCRIBED):
            what = "in an obstacle" if value == LETHAL else "so near to an obstacle that the robot does not fit"
            occupied = StartOccupied if name == "start" else GoalOccupied
            raise occupied(f"the {name} ({pose.x:.2f}, {pose.y:.2f}) lies {what}", valid="a free place")
    if costmap.cells[last] == UNKNOWN and not traversal.allow_unknown:
        raise GoalUnknown(
            f"the goal ({goal.x:.2f}, {goal.y:.2f}) lies where nobody has looked",
            valid="a known place, or allow_unknown",
        )
    if costmap.cells[first] == UNKNOWN and not traversal.allow_unknown:
        raise StartOccupied(
            f"the start ({start.x:.2f}, {start.y:.2f}) lies where nobody has looked",
            valid="a known place, or allow_unknown",
        )
    return first, last


def extent(frame: GridGeometry) -> str:
    """Where a map lies, for people; of one that lies askew, how."""
    width, height = frame.extent
    corners = frame.T_map_grid @ np.array([[0.0, 0.0], [width, 0.0], [width, height], [0.0, height]])
    (x0, y0), (x1, y1) = corners.min(axis=0), corners.max(axis=0)
    askew = abs(math.sin(2.0 * frame.T_map_grid.theta)) > 1e-6
    turned = f", turned by {frame.T_map_grid.theta:.2f} rad in there" if askew else ""
    return f"the map reaches from ({x0:.2f}, {y0:.2f}) to ({x1:.2f}, {y1:.2f}){turned}"
