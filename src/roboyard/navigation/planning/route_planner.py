"""A planner that keeps to the lanes of a route graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path as FilePath

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.navigation.costmap import INSCRIBED, LETHAL, Costmap
from roboyard.navigation.errors import NoPath
from roboyard.navigation.path import Path
from roboyard.navigation.planning.base import Traversal
from roboyard.navigation.planning.path_cost import cost_along
from roboyard.navigation.planning.route_file import load_route_graph
from roboyard.navigation.planning.route_graph import Route, RouteGraph
from roboyard.navigation.planning.wave import WavePlanner

_SPACING = 0.05
"""Between poses along a lane [m]."""


@dataclass(frozen=True)
class RoutePlanner:
    """Leads over a route graph; freely only from the start to the nearest lane, and from the last one to the goal.

    Lanes that something stands on are closed for the plan, and others are looked for.

    Attributes:
        graph: GeoJSON file, see ``load_route_graph``.
        two_way: Whether all lanes may be driven both ways.
        traversal: Of the ways to the lanes and from them.

    Raises:
        ConfigError: no file.
    """

    graph: str = ""
    two_way: bool = False
    traversal: Traversal = field(default_factory=Traversal)

    @cached_property
    def lanes(self) -> RouteGraph:
        """Of the file; raises ConfigError without one, InputError if it cannot be read."""
        if not self.graph:
            raise ConfigError("no route graph", location="planner route", valid="graph: a GeoJSON file")
        return load_route_graph(FilePath(self.graph), two_way=self.two_way)

    def plan(self, costmap: Costmap, start: SE2, goal: SE2) -> Path:
        """See ``GlobalPlanner``."""
        free, lanes = WavePlanner(self.traversal), self.lanes
        closed: set[int] = set()
        while True:
            try:
                route = lanes.closing(closed).route(start, goal)
            except NoPath as error:
                standing = f"; something stands on {', '.join(map(str, sorted(closed)))}" if closed else ""
                raise NoPath(f"{error.message}{standing}", valid=error.valid) from None
            blocked = _blocked(costmap, route)
            if not blocked:
                break
            closed |= blocked
        middle = route.path.poses[1:-1]
        if not len(middle):
            return free.plan(costmap, start, goal)
        middle = _spaced(middle)
        there = free.plan(costmap, start, SE2(*middle[0])).poses
        back = free.plan(costmap, SE2(*middle[-1]), goal).poses
        return cost_along(costmap, np.concatenate([there[:-1], middle, back[1:]]), self.traversal)


def _blocked(costmap: Costmap, route: Route) -> set[int]:
    """Numbers of the route's lanes on which the robot's centre cannot be."""
    found = set()
    poses = route.path.poses
    ends = [*route.starts[1:], len(poses) - 1]
    for edge, first, last in zip(route.edges, route.starts, ends, strict=True):
        cells = costmap.frame.cells_of_points(_spaced(poses[first : last + 1])[:, :2])
        inside = costmap.frame.contains(cells)
        values = costmap.cells[cells[inside, 0], cells[inside, 1]]
        if ((values >= INSCRIBED) & (values <= LETHAL)).any():
            found.add(edge)
    return found


def _spaced(poses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Poses (n, 3) along the same lines, near to each other, each looking ahead."""
    if len(poses) < 2:
        return poses
    steps = np.diff(poses[:, :2], axis=0)
    lengths = np.hypot(steps[:, 0], steps[:, 1])
    headings = np.arctan2(steps[:, 1], steps[:, 0])
    pieces = []
    for pose, step, length, heading in zip(poses, steps, lengths, headings, strict=False):
        count = max(int(np.ceil(length / _SPACING)), 1)
        shares = np.arange(count)[:, None] / count
        pieces.append(np.column_stack([pose[:2] + shares * step, np.full(count, heading)]))
    last = np.array([[*poses[-1, :2], headings[-1]]])
    return np.concatenate([*pieces, last])
