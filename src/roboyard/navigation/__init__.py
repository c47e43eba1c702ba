"""Getting somewhere: costmaps, global planners, local controllers.

Everything here works on arrays; what there is no way for, or no safe command, is a ``NavigationError`` that names its
cause.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.navigation.controllers import (
        Controller,
        DynamicWindow,
        MotionLimits,
        Mppi,
        MppiConfig,
        PursuitConfig,
        RegulatedPursuit,
        Tolerance,
        WindowConfig,
    )
    from roboyard.navigation.costmap import (
        Costmap,
        DenoiseLayer,
        InflationLayer,
        KeepoutLayer,
        Layer,
        LayeredCostmap,
        Observation,
        ObstacleConfig,
        ObstacleLayer,
        RangeConfig,
        RangeLayer,
        RangeReading,
        Recent,
        SpeedZones,
        StaticLayer,
        VoxelConfig,
        VoxelLayer,
    )
    from roboyard.navigation.errors import NavigationError
    from roboyard.navigation.footprint import Footprint
    from roboyard.navigation.path import Path
    from roboyard.navigation.planning import (
        Explanation,
        GlobalPlanner,
        GridSearch,
        HybridAStar,
        Traversal,
        WavePlanner,
        explain,
    )
    from roboyard.navigation.speed_limit import SpeedLimit
    from roboyard.navigation.waypoints import Missed, Waypoint, WaypointSequence, waypoints_along

__all__ = [
    "Controller",
    "Costmap",
    "DenoiseLayer",
    "DynamicWindow",
    "Explanation",
    "Footprint",
    "GlobalPlanner",
    "GridSearch",
    "HybridAStar",
    "InflationLayer",
    "KeepoutLayer",
    "Layer",
    "LayeredCostmap",
    "Missed",
    "MotionLimits",
    "Mppi",
    "MppiConfig",
    "NavigationError",
    "Observation",
    "ObstacleConfig",
    "ObstacleLayer",
    "Path",
    "PursuitConfig",
    "RangeConfig",
    "RangeLayer",
    "RangeReading",
    "Recent",
    "RegulatedPursuit",
    "SpeedLimit",
    "SpeedZones",
    "StaticLayer",
    "Tolerance",
    "Traversal",
    "VoxelConfig",
    "VoxelLayer",
    "WavePlanner",
    "Waypoint",
    "WaypointSequence",
    "WindowConfig",
    "explain",
    "waypoints_along",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "controllers": ("Controller", "DynamicWindow", "MotionLimits", "Mppi", "MppiConfig", "PursuitConfig",
        "RegulatedPursuit", "Tolerance", "WindowConfig"),
    "costmap": ("Costmap", "DenoiseLayer", "InflationLayer", "KeepoutLayer", "Layer", "LayeredCostmap", "Observation",
        "ObstacleConfig", "ObstacleLayer", "RangeConfig", "RangeLayer", "RangeReading", "Recent", "SpeedZones",
        "StaticLayer", "VoxelConfig", "VoxelLayer"),
    "errors": ("NavigationError",),
    "footprint": ("Footprint",),
    "path": ("Path",),
    "planning": ("Explanation", "GlobalPlanner", "GridSearch", "HybridAStar", "Traversal", "WavePlanner", "explain"),
    "speed_limit": ("SpeedLimit",),
    "waypoints": ("Missed", "Waypoint", "WaypointSequence", "waypoints_along"),
})  # fmt: skip
