"""Navigation: costmaps, global planners and local controllers, which work on arrays without a bus.

A planner that finds no path and a controller that finds no safe command raise a `NavigationError`, whose ``cause``
names
the reason.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.navigation.conformance import check_controller, check_planner
    from roboyard.navigation.controllers import (
        Controller,
        DwaConfig,
        DwaController,
        GoalTolerance,
        MotionLimits,
        MppiConfig,
        MppiController,
        RegulatedPurePursuitConfig,
        RegulatedPurePursuitController,
        SpeedLimit,
    )
    from roboyard.navigation.costmap import (
        Costmap,
        DenoiseLayer,
        InflationLayer,
        KeepoutLayer,
        Layer,
        LayeredCostmap,
        Observation,
        ObservationFilterConfig,
        ObstacleLayer,
        RangeLayer,
        RangeModelConfig,
        RangeReading,
        SpeedFilter,
        StaticLayer,
        VoxelConfig,
        VoxelLayer,
    )
    from roboyard.navigation.errors import NavigationError
    from roboyard.navigation.footprint import Footprint
    from roboyard.navigation.navigator.waypoints import (
        MissedWaypoint,
        Waypoint,
        WaypointSequence,
        waypoints_from_polyline,
    )
    from roboyard.navigation.path import BarrierKind, Path, PathFailure
    from roboyard.navigation.planners import (
        FastMarchingPlanner,
        GlobalPlanner,
        GridSearchPlanner,
        HybridAStarPlanner,
        TraversalCosts,
        explain_no_path,
    )
    from roboyard.navigation.plugins import CONTROLLERS, PLANNERS

__all__ = [
    "CONTROLLERS",
    "PLANNERS",
    "BarrierKind",
    "Controller",
    "Costmap",
    "DenoiseLayer",
    "DwaConfig",
    "DwaController",
    "FastMarchingPlanner",
    "Footprint",
    "GlobalPlanner",
    "GoalTolerance",
    "GridSearchPlanner",
    "HybridAStarPlanner",
    "InflationLayer",
    "KeepoutLayer",
    "Layer",
    "LayeredCostmap",
    "MissedWaypoint",
    "MotionLimits",
    "MppiConfig",
    "MppiController",
    "NavigationError",
    "Observation",
    "ObservationFilterConfig",
    "ObstacleLayer",
    "Path",
    "PathFailure",
    "RangeLayer",
    "RangeModelConfig",
    "RangeReading",
    "RegulatedPurePursuitConfig",
    "RegulatedPurePursuitController",
    "SpeedFilter",
    "SpeedLimit",
    "StaticLayer",
    "TraversalCosts",
    "VoxelConfig",
    "VoxelLayer",
    "Waypoint",
    "WaypointSequence",
    "check_controller",
    "check_planner",
    "explain_no_path",
    "waypoints_from_polyline",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "conformance": ("check_controller", "check_planner"),
    "controllers": ("Controller", "DwaConfig", "DwaController", "GoalTolerance", "MotionLimits", "MppiConfig",
        "MppiController", "RegulatedPurePursuitConfig", "RegulatedPurePursuitController", "SpeedLimit"),
    "costmap": ("Costmap", "DenoiseLayer", "InflationLayer", "KeepoutLayer", "Layer", "LayeredCostmap",
        "Observation", "ObservationFilterConfig", "ObstacleLayer", "RangeLayer", "RangeModelConfig",
        "RangeReading", "SpeedFilter", "StaticLayer", "VoxelConfig", "VoxelLayer"),
    "errors": ("NavigationError",),
    "footprint": ("Footprint",),
    "navigator.waypoints": ("MissedWaypoint", "Waypoint", "WaypointSequence", "waypoints_from_polyline"),
    "path": ("BarrierKind", "Path", "PathFailure"),
    "planners": ("FastMarchingPlanner", "GlobalPlanner", "GridSearchPlanner", "HybridAStarPlanner",
        "TraversalCosts", "explain_no_path"),
    "plugins": ("CONTROLLERS", "PLANNERS"),
})  # fmt: skip
