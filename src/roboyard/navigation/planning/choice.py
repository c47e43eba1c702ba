"""Planners by name: Roboyard's own, and those that other packages register as ``roboyard.planners``."""

from __future__ import annotations

from collections.abc import Callable

from roboyard.compute import expect_kernels
from roboyard.config.registry import Registry
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.planning import hybrid_search
from roboyard.navigation.planning.base import GlobalPlanner
from roboyard.navigation.planning.grid_search import GridSearch
from roboyard.navigation.planning.grid_ways import nearest_obstacle
from roboyard.navigation.planning.hybrid import HybridAStar
from roboyard.navigation.planning.lines import pull_taut, way_cost
from roboyard.navigation.planning.marching import descend, march
from roboyard.navigation.planning.route_planner import RoutePlanner
from roboyard.navigation.planning.wave import WavePlanner

Factory = Callable[[Footprint], GlobalPlanner]
"""What an entry point names: a planner for a robot of that outline."""


PLANNERS: Registry[Factory] = Registry("planner", group="roboyard.planners")


def planner_names() -> tuple[str, ...]:
    """What there is to choose from."""
    return PLANNERS.names()


def planner_named(name: str, footprint: Footprint) -> GlobalPlanner:
    """The planner of that name, for a robot of that outline.

    Raises:
        UnknownNameError: there is none.
        ConfigError: its package does not offer what it says.
    """
    return PLANNERS[name](footprint)


def astar(footprint: Footprint) -> GlobalPlanner:
    """Cheapest way over eight neighbours, towards the goal first."""
    GridSearch.expect_kernels()
    return GridSearch()


def dijkstra(footprint: Footprint) -> GlobalPlanner:
    """The same, in all directions."""
    GridSearch.expect_kernels()
    return GridSearch(directed=False)


def navfn(footprint: Footprint) -> GlobalPlanner:
    """Down the potential of a wave from the goal."""
    expect_kernels(march, descend, way_cost, nearest_obstacle)
    return WavePlanner(taut=False)


def wave(footprint: Footprint) -> GlobalPlanner:
    """The same, pulled taut."""
    expect_kernels(march, descend, pull_taut, way_cost, nearest_obstacle)
    return WavePlanner()


def hybrid(footprint: Footprint) -> GlobalPlanner:
    """As a car drives that turns as tightly as it is long."""
    expect_kernels(hybrid_search.search, march)
    return HybridAStar(footprint, turning_radius=max(2.0 * footprint.circumscribed_radius, 0.1))


def route(footprint: Footprint) -> GlobalPlanner:
    """Over the lanes of a route graph; its settings name the file."""
    return RoutePlanner()


def lattice(footprint: Footprint) -> GlobalPlanner:
    """With the whole outline, and turning on the spot."""
    expect_kernels(hybrid_search.search, march)
    return HybridAStar(footprint, turning_radius=0.0)
