"""Global planners: a planner computes a path from a costmap, a start and a goal."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.navigation.planners.failure_explanation import explain_no_path, no_path_error
    from roboyard.navigation.planners.fast_marching import FastMarchingPlanner
    from roboyard.navigation.planners.grid_search import GridSearchPlanner
    from roboyard.navigation.planners.hybrid_a_star import HybridAStarPlanner, MotionPenalties
    from roboyard.navigation.planners.planner import (
        GlobalPlanner,
        TraversalCosts,
        describe_extent,
        evaluate_path,
        traversal_costs_of,
    )
    from roboyard.navigation.planners.route_graph import (
        Route,
        RouteEdge,
        RouteGraph,
        RouteNode,
        load_route_graph,
        parse_route_graph,
    )
    from roboyard.navigation.planners.smoother import PathSmoother, SmoothedPlanner

__all__ = [
    "FastMarchingPlanner",
    "GlobalPlanner",
    "GridSearchPlanner",
    "HybridAStarPlanner",
    "MotionPenalties",
    "PathSmoother",
    "Route",
    "RouteEdge",
    "RouteGraph",
    "RouteNode",
    "SmoothedPlanner",
    "TraversalCosts",
    "describe_extent",
    "evaluate_path",
    "explain_no_path",
    "load_route_graph",
    "no_path_error",
    "parse_route_graph",
    "traversal_costs_of",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "failure_explanation": ("explain_no_path", "no_path_error"),
    "fast_marching": ("FastMarchingPlanner",),
    "grid_search": ("GridSearchPlanner",),
    "hybrid_a_star": ("HybridAStarPlanner", "MotionPenalties"),
    "planner": ("GlobalPlanner", "TraversalCosts", "describe_extent", "evaluate_path", "traversal_costs_of"),
    "route_graph": ("Route", "RouteEdge", "RouteGraph", "RouteNode", "load_route_graph", "parse_route_graph"),
    "smoother": ("PathSmoother", "SmoothedPlanner"),
})  # fmt: skip
