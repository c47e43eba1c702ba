"""Planners and controllers by name: those of Roboyard, and those that installed packages register.

`PLANNERS` and `CONTROLLERS` hold functions that make them.  A package adds its own as entry points of the groups
``roboyard.planners`` and ``roboyard.controllers``.  The reference pages show the docstrings of the functions: what the
plug-in is, when to take it, and its counterpart in Nav2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, get_type_hints

from roboyard.compute import expect_kernels
from roboyard.config import Config, convert_value, load
from roboyard.config.registry import Registry
from roboyard.config.wording import did_you_mean
from roboyard.errors import ConfigError
from roboyard.navigation.controllers.controller import Controller, GoalTolerance, MotionLimits
from roboyard.navigation.controllers.dwa import DwaConfig, DwaController
from roboyard.navigation.controllers.mppi import MppiConfig, MppiController
from roboyard.navigation.controllers.regulated_pure_pursuit import (
    RegulatedPurePursuitConfig,
    RegulatedPurePursuitController,
)
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.navigator.behavior import MobileBase
from roboyard.navigation.navigator.config import PathSmootherConfig, PluginConfig
from roboyard.navigation.planners import PathSmoother, SmoothedPlanner, hybrid_a_star, traversal_costs_of
from roboyard.navigation.planners.cost_grid import polyline_cost, pull_string
from roboyard.navigation.planners.fast_marching import FastMarchingPlanner, descend_gradient, propagate_wave
from roboyard.navigation.planners.grid_search import GridSearchPlanner
from roboyard.navigation.planners.hybrid_a_star import HybridAStarPlanner
from roboyard.navigation.planners.planner import GlobalPlanner, distance_to_nearest_obstacle
from roboyard.navigation.planners.route_graph import RoutePlanner

PlannerFactory = Callable[[Footprint], GlobalPlanner]
"""Function that makes a planner for a robot with the given footprint; an entry point of ``roboyard.planners`` names
one.  The user's settings replace fields of a planner that is a frozen dataclass; other planners take no settings."""

PLANNERS: Registry[PlannerFactory] = Registry("planner", group="roboyard.planners")


def make_a_star(footprint: Footprint) -> GlobalPlanner:
    """A*: the cheapest path over the eight neighbors of each cell, never across the corner of an obstacle.

    Take it for short paths on large maps: it expands cells towards the goal first.

    Nav2: nav2_smac_planner::SmacPlanner2D, nav2_navfn_planner::NavfnPlanner with use_astar
    """
    GridSearchPlanner.expect_kernels()
    return GridSearchPlanner()


def make_dijkstra(footprint: Footprint) -> GlobalPlanner:
    """Dijkstra's algorithm over the eight neighbors of each cell: paths of the same cost as those of `a_star`.

    Take it as an independent reference for other planners, or where the heuristic of A* misleads, as in mazes.

    Nav2: none; move_base's global_planner with use_dijkstra
    """
    GridSearchPlanner.expect_kernels()
    return GridSearchPlanner(use_heuristic=False)


def make_navfn(footprint: Footprint) -> GlobalPlanner:
    """Descent along the gradient of the arrival times of a wave from the goal (fast marching), as navfn does.

    Take it where a path shall keep the smooth distance from obstacles that the inflated costs give.

    Nav2: nav2_navfn_planner::NavfnPlanner
    """
    expect_kernels(propagate_wave, descend_gradient, polyline_cost, distance_to_nearest_obstacle)
    return FastMarchingPlanner(pull_string=False)


def make_fast_marching(footprint: Footprint) -> GlobalPlanner:
    """The path of `navfn`, shortened to straight lines between the corners of obstacles (string pulling).

    Take it for robots that rotate in place; it is the default, and finds the shortest paths in any direction.

    Nav2: nav2_theta_star_planner::ThetaStarPlanner
    """
    expect_kernels(propagate_wave, descend_gradient, pull_string, polyline_cost, distance_to_nearest_obstacle)
    return FastMarchingPlanner()


def make_hybrid_a_star(footprint: Footprint) -> GlobalPlanner:
    """Hybrid A* for cars: every curve has at least the turning radius, and the whole footprint stays free.

    Take it for robots that cannot rotate in place, and where the goal's heading matters.

    Nav2: nav2_smac_planner::SmacPlannerHybrid
    """
    expect_kernels(hybrid_a_star.search_motions, propagate_wave)
    return HybridAStarPlanner(footprint, turning_radius=max(2.0 * footprint.circumscribed_radius, 0.1))


def make_route_planner(footprint: Footprint) -> GlobalPlanner:
    """The cheapest route over the edges of a route graph, with free paths from the start to it and from it to the goal.

    Take it where robots shall keep to lanes; an edge on which an obstacle stands is closed for the plan.

    Nav2: nav2_route (route server)
    """
    return RoutePlanner()


def make_state_lattice(footprint: Footprint) -> GlobalPlanner:
    """State lattice for robots that rotate in place: straight motions and rotations, the whole footprint free.

    Take it for long robots, which rotate only where there is room.

    Nav2: nav2_smac_planner::SmacPlannerLattice
    """
    expect_kernels(hybrid_a_star.search_motions, propagate_wave)
    return HybridAStarPlanner(footprint, turning_radius=0.0)


ControllerFactory = Callable[[Footprint, MotionLimits, float, GoalTolerance, Mapping[str, Any]], Controller]
"""Function that makes a controller from the robot's footprint, the motion limits of its base, the period between two
commands [s], the tolerance of goals, and the user's settings; an entry point of ``roboyard.controllers`` names one."""

CONTROLLER_CONFIGS: Mapping[str, type[Config]] = {
    "dwa": DwaConfig,
    "mppi": MppiConfig,
    "regulated_pure_pursuit": RegulatedPurePursuitConfig,
    "trajectory_rollout": DwaConfig,
}
"""Configurations of the controllers of this package, which declare their settings."""


def _load_config(name: str, settings: Mapping[str, Any]) -> Any:
    return load(CONTROLLER_CONFIGS[name], settings, source_name=f"controller {name}")


def make_mppi(
    footprint: Footprint, limits: MotionLimits, period: float, tolerance: GoalTolerance, settings: Mapping[str, Any]
) -> Controller:
    """Model predictive path integral control: the weighted mean of thousands of simulated velocity sequences.

    Take it among moving obstacles and in narrow places, and for bases that move sideways; it is the default, and needs
    the most computing time.

    Nav2: nav2_mppi_controller::MPPIController
    """
    return MppiController(footprint, limits, _load_config("mppi", settings), tolerance, period=period)


def make_regulated_pure_pursuit(
    footprint: Footprint, limits: MotionLimits, period: float, tolerance: GoalTolerance, settings: Mapping[str, Any]
) -> Controller:
    """Regulated pure pursuit: a circle through a point of the path ahead, slower in curves and near obstacles.

    Take it where the robot shall keep to the planned path and stop before an obstacle on it; it needs the least
    computing time.

    Nav2: nav2_regulated_pure_pursuit_controller::RegulatedPurePursuitController
    """
    config = _load_config("regulated_pure_pursuit", settings)
    return RegulatedPurePursuitController(footprint, limits, config, tolerance, period=period)


def make_dwa(
    footprint: Footprint, limits: MotionLimits, period: float, tolerance: GoalTolerance, settings: Mapping[str, Any]
) -> Controller:
    """Dynamic Window Approach: the best of the constant velocities that the base reaches within one control period.

    Take it to compare with systems that use dwa_local_planner or DWB, or where computing time is short.

    Nav2: dwb_core::DWBLocalPlanner with dwb_plugins::LimitedAccelGenerator; dwa_local_planner of move_base
    """
    return DwaController(footprint, limits, _load_config("dwa", settings), tolerance, period=period)


def make_trajectory_rollout(
    footprint: Footprint, limits: MotionLimits, period: float, tolerance: GoalTolerance, settings: Mapping[str, Any]
) -> Controller:
    """Trajectory Rollout: the best of the velocities that the base reaches by the end of the simulation.

    Take it for bases with low accelerations, which reach few velocities within one control period.

    Nav2: dwb_core::DWBLocalPlanner with dwb_plugins::StandardTrajectoryGenerator; base_local_planner of move_base
    """
    config = _load_config("trajectory_rollout", {"rollout": True, **settings})
    return DwaController(footprint, limits, config, tolerance, period=period)


CONTROLLERS: Registry[ControllerFactory] = Registry(
    "controller",
    group="roboyard.controllers",
    built_in={
        "dwa": make_dwa,
        "mppi": make_mppi,
        "regulated_pure_pursuit": make_regulated_pure_pursuit,
        "trajectory_rollout": make_trajectory_rollout,
    },
)


Replaced = TypeVar("Replaced")


def make_planner(
    plugin: PluginConfig,
    footprint: Footprint,
    smoother: PathSmootherConfig | None = None,
    min_turning_radius: float | None = None,
) -> GlobalPlanner:
    """Make the planner of a plug-in's configuration, with a smoother if one is configured.

    Unless the settings state otherwise, the planner does not plan through unknown space, and a planner for cars keeps
    to the turning radius of the robot's drive.

    Args:
        plugin: Name and settings of the planner.
        footprint: Footprint of the robot.
        smoother: Configuration of the smoother; None, or radii of 0: none.
        min_turning_radius: Minimum turning radius that the robot's file states for its drive [m]; None: the file states
            none.

    Raises:
        UnknownNameError: There is no planner of that name.
        ConfigError: The settings are wrong, or the planner plans rotations in place for a robot that cannot rotate so.
    """
    planner: Any = PLANNERS[plugin.type](footprint)
    location = f"planner {plugin.type}"
    if not is_dataclass(planner):
        if plugin.settings:
            raise ConfigError("takes no settings", location=location)
        return _with_smoother(planner, smoother, min_turning_radius)
    names = {field.name for field in fields(planner)}
    if "traversal" in names:
        planner = replace_fields(planner, {"traversal": {"allow_unknown": False}}, location)
    if min_turning_radius and "turning_radius" in names and "turning_radius" not in plugin.settings:
        if not planner.turning_radius:
            raise ConfigError(
                f"plans rotations in place, but the robot's drive has a minimum turning radius of "
                f"{min_turning_radius:g} m",
                location=location,
                valid="the planner hybrid_a_star",
            )
        planner = replace_fields(planner, {"turning_radius": min_turning_radius}, location)
    return _with_smoother(replace_fields(planner, plugin.settings, location), smoother, min_turning_radius)


def _with_smoother(
    planner: GlobalPlanner, smoother: PathSmootherConfig | None, min_turning_radius: float | None
) -> GlobalPlanner:
    if smoother is None or not max(smoother.turning_radius, smoother.min_radius):
        return planner
    min_radius = smoother.min_radius or min_turning_radius or 0.0
    radius = max(smoother.turning_radius, min_radius)
    return SmoothedPlanner(planner, PathSmoother(traversal_costs_of(planner), radius, min_radius))


def replace_fields(instance: Replaced, settings: Mapping[str, Any], location: str) -> Replaced:
    """Return a copy of a frozen dataclass with other values of some fields, and of fields of nested dataclasses.

    Args:
        instance: The dataclass.
        settings: New values by name; a mapping replaces fields of a nested dataclass.
        location: Owner of the values, for errors.

    Raises:
        ConfigError: There is no field of that name, or a value is of the wrong type or out of its bounds.
    """
    dataclass_type: Any = type(instance)
    known_fields = {field.name: field for field in fields(dataclass_type) if field.init}
    hints = get_type_hints(dataclass_type)
    values: dict[str, Any] = {}
    for key, value in settings.items():
        if key not in known_fields:
            raise ConfigError(
                f"unknown key {key!r}{did_you_mean(key, known_fields)}",
                location=location,
                valid=", ".join(known_fields),
            )
        current = getattr(instance, key)
        if is_dataclass(current) and isinstance(value, Mapping):
            values[key] = replace_fields(current, value, f"{location}, {key}")
        else:
            values[key] = convert_value(value, hints[key], location=f"{location}, {key}")
    replaced: Replaced = replace(instance, **values)  # type: ignore[type-var]
    return replaced


def make_controller(
    plugin: PluginConfig, mobile_base: MobileBase, tolerance: GoalTolerance, *, allow_reverse: bool
) -> Controller:
    """Make the controller of a plug-in's configuration.

    Args:
        plugin: Name and settings of the controller.
        mobile_base: Footprint, motion limits and control period of the robot.
        tolerance: Tolerance of goals; the controller aims at 70 % of it, so that it stops well within.
        allow_reverse: Whether the controller may drive backward.

    Raises:
        UnknownNameError: There is no controller of that name.
        ConfigError: The settings are wrong.
    """
    limits = mobile_base.limits if allow_reverse else replace(mobile_base.limits, max_backward_speed=0.0)
    controller_tolerance = GoalTolerance(xy=0.7 * tolerance.xy, yaw=0.7 * tolerance.yaw)
    return CONTROLLERS[plugin.type](
        mobile_base.footprint, limits, mobile_base.control_period, controller_tolerance, plugin.settings
    )
