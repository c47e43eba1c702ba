"""Navigation: path planning on maps, costmaps, global planners and local controllers.

The names that most users need: `plan`, `PLANNERS`, `CONTROLLERS`, `Footprint`, `Path`, `LayeredCostmap`, `Costmap`,
`explain_no_path`, `check_planner`, `check_controller`.

    path = ry.navigation.plan("map.yaml", start=(1.0, 1.0, 0.0), goal=(5.0, 1.0, 0.0))

The modules work on arrays without a bus.  A planner that finds no path and a controller that finds no safe command
raise a `NavigationError`, whose ``cause`` names the reason.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.navigation.conformance import check_controller, check_planner
    from roboyard.navigation.costmap import Costmap, LayeredCostmap
    from roboyard.navigation.costmap.conformance import check_layer
    from roboyard.navigation.errors import NavigationError
    from roboyard.navigation.footprint import Footprint
    from roboyard.navigation.map_planning import plan
    from roboyard.navigation.navigator.conformance import check_behavior
    from roboyard.navigation.navigator.waypoints import (
        MissedWaypoint,
        Waypoint,
        WaypointSequence,
        waypoints_from_polyline,
    )
    from roboyard.navigation.path import BarrierKind, Path, PathFailure
    from roboyard.navigation.planners import explain_no_path
    from roboyard.navigation.plugins import CONTROLLERS, PLANNERS

# The names that most users need come first.
__all__ = [  # noqa: RUF022
    "plan",
    "PLANNERS",
    "CONTROLLERS",
    "Footprint",
    "Path",
    "LayeredCostmap",
    "Costmap",
    "explain_no_path",
    "check_planner",
    "check_controller",
    "check_layer",
    "BarrierKind",
    "MissedWaypoint",
    "NavigationError",
    "PathFailure",
    "Waypoint",
    "WaypointSequence",
    "check_behavior",
    "waypoints_from_polyline",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "conformance": ("check_controller", "check_planner"),
    "costmap": ("Costmap", "LayeredCostmap"),
    "costmap.conformance": ("check_layer",),
    "errors": ("NavigationError",),
    "footprint": ("Footprint",),
    "map_planning": ("plan",),
    "navigator.conformance": ("check_behavior",),
    "navigator.waypoints": ("MissedWaypoint", "Waypoint", "WaypointSequence", "waypoints_from_polyline"),
    "path": ("BarrierKind", "Path", "PathFailure"),
    "planners": ("explain_no_path",),
    "plugins": ("CONTROLLERS", "PLANNERS"),
})  # fmt: skip
