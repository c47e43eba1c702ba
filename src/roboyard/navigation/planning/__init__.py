"""Global planners: from a costmap, a start and a goal to a path."""

from roboyard.navigation.planning.base import GlobalPlanner, Traversal
from roboyard.navigation.planning.grid_search import GridSearch
from roboyard.navigation.planning.wave import WavePlanner

__all__ = ["GlobalPlanner", "GridSearch", "Traversal", "WavePlanner"]
