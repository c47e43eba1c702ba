"""Global planners: from a costmap, a start and a goal to a path."""

from roboyard.navigation.planning.base import GlobalPlanner, Traversal
from roboyard.navigation.planning.explanation import Barrier, Explanation, explain, no_path
from roboyard.navigation.planning.grid_search import GridSearch
from roboyard.navigation.planning.hybrid import HybridAStar, Prices
from roboyard.navigation.planning.path_cost import cost_along
from roboyard.navigation.planning.wave import WavePlanner

__all__ = [
    "Barrier",
    "Explanation",
    "GlobalPlanner",
    "GridSearch",
    "HybridAStar",
    "Prices",
    "Traversal",
    "WavePlanner",
    "cost_along",
    "explain",
    "no_path",
]
