"""Planning of a path on an occupancy map, without a run.

`plan` returns the path or raises the error that explains why there is none.  `plan_on_map`, which the command
``roboyard plan path`` uses, also returns the costmap and the barrier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import OccupancyGrid
from roboyard.mapping import load_map
from roboyard.navigation.costmap import InflationLayer, LayeredCostmap, StaticLayer
from roboyard.navigation.errors import NavigationError, NoPathError, SearchBudgetExceededError
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.path import Path, PathFailure
from roboyard.navigation.planners import HybridAStarPlanner, explain_no_path
from roboyard.navigation.plugins import PLANNERS


@dataclass(frozen=True, slots=True)
class MapPlanRequest:
    """Request for a path on a map.

    Attributes:
        start: Pose of the robot in the frame of the map.
        goal: Pose of the robot at the end.
        planner: Name of the planner.
        footprint: Outline of the robot.
        inflation_radius: Distance within which obstacles add costs [m].
        min_turning_radius: Minimum turning radius of the planner "hybrid_a_star" [m]; None: its default.
        allow_unknown: Whether the path may cross unknown cells.
    """

    start: SE2
    goal: SE2
    planner: str
    footprint: Footprint
    inflation_radius: float
    min_turning_radius: float | None = None
    allow_unknown: bool = False


@dataclass(frozen=True, slots=True)
class MapPlanResult:
    """Path on a map, or the reason why there is none.

    Attributes:
        costmap: Costs on which the planner searched.
        geometry: Geometry of its cells.
        path: The path; None if there is none.
        explanation: The widest gap and the obstacles beside it; None if there is a path.
        cause: Short name of the reason, "" if there is a path.
        reason: The reason as a clause, "" if there is a path.
    """

    costmap: Any
    geometry: Any
    path: Path | None = None
    explanation: PathFailure | None = None
    cause: str = ""
    reason: str = ""


def plan(
    map: FilePath | str | OccupancyGrid,
    start: SE2 | Sequence[float],
    goal: SE2 | Sequence[float],
    planner: str = "fast_marching",
    *,
    footprint: Footprint | float | ArrayLike = 0.2,
    inflation_radius: float = 0.55,
    min_turning_radius: float | None = None,
    allow_unknown: bool = False,
) -> Path:
    """Plan a path on an occupancy map.

    Args:
        map: Map, or the YAML file of one as map_server writes it.
        start: Pose of the robot in the frame of the map: an `SE2`, or (x, y) or (x, y, theta) [m, rad].
        goal: Pose of the robot at the end, likewise.
        planner: Name of a planner in the registry ``PLANNERS``.
        footprint: Outline of the robot: a `Footprint`, the radius of a circle [m], or (n, 2) corners [m].
        inflation_radius: Distance within which obstacles add costs [m].
        min_turning_radius: Minimum turning radius of the planner ``hybrid_a_star`` [m]; None: its default.
        allow_unknown: Whether the path may cross unknown cells.

    Returns:
        The path, with its cost and its clearance.

    Raises:
        NavigationError: There is no path, or the start or the goal lies in an obstacle, in unknown space or outside of
            the map.  A `NoPathError` states the widest gap in its message and in ``explanation``.
        InputError: The map cannot be read, or a pose, the footprint or an option cannot be used.
        UnknownNameError: There is no such planner.
    """
    grid = _as_grid(map)
    request = MapPlanRequest(
        _as_pose(start, "start"), _as_pose(goal, "goal"), planner, _as_footprint(footprint), inflation_radius,
        min_turning_radius, allow_unknown,
    )  # fmt: skip
    result = _search(grid, request)
    if result.path is not None:
        return result.path
    if result.cause == SearchBudgetExceededError.cause:
        raise SearchBudgetExceededError(result.reason)
    raise NoPathError(result.reason, explanation=result.explanation)


def plan_on_map(map_file: FilePath, request: MapPlanRequest) -> MapPlanResult:
    """Plan a path on a map.

    Args:
        map_file: YAML file of the map.
        request: The request.

    Raises:
        InputError: The map cannot be read, or the start, the goal or an option of the planner cannot be used.
        UnknownNameError: There is no such planner.
    """
    try:
        return _search(load_map(map_file), request)
    except NavigationError as error:
        raise InputError(error.message, location=str(map_file), valid=error.valid) from error


def _search(grid: OccupancyGrid, request: MapPlanRequest) -> MapPlanResult:
    """Plan a path; raise the planner's error unless start and goal are free."""
    planner = _make_planner(request)
    static_layer = StaticLayer()
    static_layer.set_map(grid)
    radius = request.footprint.inscribed_radius
    layers = LayeredCostmap(
        grid.geometry, [static_layer, InflationLayer(radius, request.inflation_radius)], track_unknown_space=True
    )
    layers.update()
    costmap = layers.snapshot()
    try:
        return MapPlanResult(costmap, grid.geometry, planner.plan(costmap, request.start, request.goal))
    except (NoPathError, SearchBudgetExceededError) as error:
        explanation = explain_no_path(layers, request.start, request.goal, radius, allow_unknown=request.allow_unknown)
        is_unexplained = isinstance(error, SearchBudgetExceededError) or explanation.barrier.value == "none"
        reason = str(error) if is_unexplained else str(explanation)
        return MapPlanResult(costmap, grid.geometry, None, explanation, error.cause, reason)


def _as_grid(map: FilePath | str | OccupancyGrid) -> OccupancyGrid:
    if isinstance(map, OccupancyGrid):
        return map
    if isinstance(map, (str, FilePath)):
        return load_map(map)
    raise InputError(
        f"an object of type {type(map).__name__} is no map", location="map", valid="an OccupancyGrid or a YAML file"
    )


def _as_pose(pose: SE2 | Sequence[float], name: str) -> SE2:
    if isinstance(pose, SE2):
        return pose
    try:
        numbers = np.asarray(pose, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape not in ((2,), (3,)) or not np.isfinite(numbers).all():
        raise InputError(f"{pose!r} is no pose", location=name, valid="SE2, or finite (x, y) or (x, y, theta) [m, rad]")
    return SE2(*numbers.tolist())


def _as_footprint(footprint: Footprint | float | ArrayLike) -> Footprint:
    if isinstance(footprint, Footprint):
        return footprint
    try:
        numbers = np.asarray(footprint, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.ndim == 0:
        if not 0.0 < numbers < np.inf:
            raise InputError(f"a radius of {footprint!r}", location="footprint", valid="more than 0 m")
        return Footprint.circle(float(numbers))
    return Footprint(numbers)


def _make_planner(request: MapPlanRequest) -> Any:
    planner: Any = PLANNERS[request.planner](request.footprint)
    if request.min_turning_radius is not None:
        if not isinstance(planner, HybridAStarPlanner):
            raise InputError(
                "a minimum turning radius requires the planner hybrid_a_star", valid="--planner hybrid_a_star"
            )
        planner = replace(planner, turning_radius=request.min_turning_radius)
    if hasattr(planner, "traversal"):
        planner = replace(planner, traversal=replace(planner.traversal, allow_unknown=request.allow_unknown))
    return planner
