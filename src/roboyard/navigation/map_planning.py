"""Planning of a path on a saved map, without a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.mapping import load_map
from roboyard.navigation import Footprint, InflationLayer, LayeredCostmap, NavigationError, StaticLayer
from roboyard.navigation.errors import NoPathError, SearchBudgetExceededError
from roboyard.navigation.path import PathFailure
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
    path: Any = None
    explanation: PathFailure | None = None
    cause: str = ""
    reason: str = ""


def plan_on_map(map_file: Path, request: MapPlanRequest) -> MapPlanResult:
    """Plan a path on a map.

    Args:
        map_file: YAML file of the map.
        request: The request.

    Raises:
        InputError: The map cannot be read, or the start, the goal or an option of the planner cannot be used.
        UnknownNameError: There is no such planner.
    """
    planner = _make_planner(request)
    grid = load_map(map_file)
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
    except NavigationError as error:
        raise InputError(error.message, location=str(map_file), valid=error.valid) from error


def _make_planner(request: MapPlanRequest) -> Any:
    planner: Any = PLANNERS[request.planner](request.footprint)
    if request.min_turning_radius is not None:
        if not isinstance(planner, HybridAStarPlanner):
            raise InputError("--min-turning-radius requires the planner hybrid_a_star", valid="--planner hybrid_a_star")
        planner = replace(planner, turning_radius=request.min_turning_radius)
    if hasattr(planner, "traversal"):
        planner = replace(planner, traversal=replace(planner.traversal, allow_unknown=request.allow_unknown))
    return planner
