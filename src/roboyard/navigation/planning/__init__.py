"""Global planners: from a costmap, a start and a goal to a path."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.navigation.planning.base import GlobalPlanner, Traversal, extent, traversal_of
    from roboyard.navigation.planning.conformance import check_planner
    from roboyard.navigation.planning.explanation import Barrier, Explanation, explain, no_path
    from roboyard.navigation.planning.grid_search import GridSearch
    from roboyard.navigation.planning.hybrid import HybridAStar, Prices
    from roboyard.navigation.planning.path_cost import cost_along
    from roboyard.navigation.planning.route_file import load_route_graph, parse_route_graph
    from roboyard.navigation.planning.route_graph import Route, RouteEdge, RouteGraph, RouteNode
    from roboyard.navigation.planning.smoothing import SmoothedPlanner, Smoother
    from roboyard.navigation.planning.wave import WavePlanner

__all__ = [
    "Barrier",
    "Explanation",
    "GlobalPlanner",
    "GridSearch",
    "HybridAStar",
    "Prices",
    "Route",
    "RouteEdge",
    "RouteGraph",
    "RouteNode",
    "SmoothedPlanner",
    "Smoother",
    "Traversal",
    "WavePlanner",
    "check_planner",
    "cost_along",
    "explain",
    "extent",
    "load_route_graph",
    "no_path",
    "parse_route_graph",
    "traversal_of",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "base": ("GlobalPlanner", "Traversal", "extent", "traversal_of"),
    "conformance": ("check_planner",),
    "explanation": ("Barrier", "Explanation", "explain", "no_path"),
    "grid_search": ("GridSearch",),
    "hybrid": ("HybridAStar", "Prices"),
    "path_cost": ("cost_along",),
    "route_file": ("load_route_graph", "parse_route_graph"),
    "route_graph": ("Route", "RouteEdge", "RouteGraph", "RouteNode"),
    "smoothing": ("SmoothedPlanner", "Smoother"),
    "wave": ("WavePlanner",),
})  # fmt: skip
