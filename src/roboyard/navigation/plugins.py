"""Planners and controllers by name: Roboyard's own, and those that packages register as ``roboyard.planners`` or
``roboyard.controllers``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, get_type_hints

from roboyard.compute import expect_kernels
from roboyard.config import convert_value, load
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
from roboyard.navigation.navigator.behaviors import MobileBase
from roboyard.navigation.navigator.config import PathSmootherConfig, PluginConfig
from roboyard.navigation.planners import PathSmoother, SmoothedPlanner, hybrid_a_star, traversal_costs_of
from roboyard.navigation.planners.cost_grid import polyline_cost, pull_string
from roboyard.navigation.planners.fast_marching import FastMarchingPlanner, descend_gradient, propagate_wave
from roboyard.navigation.planners.grid_search import GridSearchPlanner
from roboyard.navigation.planners.hybrid_a_star import HybridAStarPlanner
from roboyard.navigation.planners.planner import GlobalPlanner, distance_to_nearest_obstacle
from roboyard.navigation.planners.route_graph import RoutePlanner

PlannerFactory = Callable[[Footprint], GlobalPlanner]
"""What an entry point names: a planner for a robot of that outline."""


PLANNERS: Registry[PlannerFactory] = Registry("planner", group="roboyard.planners")


def make_a_star(footprint: Footprint) -> GlobalPlanner:
    """Cheapest way over eight neighbours, towards the goal first."""
    GridSearchPlanner.expect_kernels()
    return GridSearchPlanner()


def make_dijkstra(footprint: Footprint) -> GlobalPlanner:
    """The same, in all directions."""
    GridSearchPlanner.expect_kernels()
    return GridSearchPlanner(use_heuristic=False)


def make_navfn(footprint: Footprint) -> GlobalPlanner:
    """Down the potential of a wave from the goal."""
    expect_kernels(propagate_wave, descend_gradient, polyline_cost, distance_to_nearest_obstacle)
    return FastMarchingPlanner(pull_string=False)


def make_fast_marching(footprint: Footprint) -> GlobalPlanner:
    """The same, pulled taut."""
    expect_kernels(propagate_wave, descend_gradient, pull_string, polyline_cost, distance_to_nearest_obstacle)
    return FastMarchingPlanner()


def make_hybrid_a_star(footprint: Footprint) -> GlobalPlanner:
    """As a car drives that turns as tightly as it is long."""
    expect_kernels(hybrid_a_star.search_motions, propagate_wave)
    return HybridAStarPlanner(footprint, turning_radius=max(2.0 * footprint.circumscribed_radius, 0.1))


def make_route_planner(footprint: Footprint) -> GlobalPlanner:
    """Over the lanes of a route graph; its settings name the file."""
    return RoutePlanner()


def make_state_lattice(footprint: Footprint) -> GlobalPlanner:
    """With the whole outline, and turning on the spot."""
    expect_kernels(hybrid_a_star.search_motions, propagate_wave)
    return HybridAStarPlanner(footprint, turning_radius=0.0)


ControllerFactory = Callable[[Footprint, MotionLimits, float, GoalTolerance, Mapping[str, Any]], Controller]
"""What an entry point names: it makes a controller from the robot's outline, its base's limits, the period between
commands [s], the tolerance at goals, and what the user set."""
_MPPI_HORIZON = 2.8
"""How far Mppi looks ahead unless told otherwise."""


def make_mppi(
    footprint: Footprint, limits: MotionLimits, period: float, tolerance: GoalTolerance, settings: Mapping[str, Any]
) -> Controller:
    """Model predictive path integral control."""
    values = {"model_dt": period, "time_steps": max(round(_MPPI_HORIZON / period), 4), **settings}
    return MppiController(footprint, limits, load(MppiConfig, values, source_name="controller mppi"), tolerance)


def make_regulated_pure_pursuit(
    footprint: Footprint, limits: MotionLimits, period: float, tolerance: GoalTolerance, settings: Mapping[str, Any]
) -> Controller:
    """Regulated pure pursuit."""
    config = load(
        RegulatedPurePursuitConfig, {"period": period, **settings}, source_name="controller regulated_pure_pursuit"
    )
    return RegulatedPurePursuitController(footprint, limits, config, tolerance)


def make_dwa(
    footprint: Footprint, limits: MotionLimits, period: float, tolerance: GoalTolerance, settings: Mapping[str, Any]
) -> Controller:
    """Dynamic Window Approach."""
    config = load(DwaConfig, {"period": period, **settings}, source_name="controller dwa")
    return DwaController(footprint, limits, config, tolerance)


def make_trajectory_rollout(
    footprint: Footprint, limits: MotionLimits, period: float, tolerance: GoalTolerance, settings: Mapping[str, Any]
) -> Controller:
    """Trajectory Rollout."""
    config = load(
        DwaConfig, {"period": period, "rollout": True, **settings}, source_name="controller trajectory_rollout"
    )
    return DwaController(footprint, limits, config, tolerance)


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
    plugin: PluginConfig, footprint: Footprint, smoother: PathSmootherConfig | None = None
) -> GlobalPlanner:
    """Make the planner of a plug-in's configuration for a footprint, with a smoother if one is configured.

    Unless its settings say otherwise, it enters no unknown ground.

    Raises:
        UnknownNameError: there is none.
        ConfigError: it cannot be set like that.
    """
    planner: Any = PLANNERS[plugin.type](footprint)
    if not is_dataclass(planner):
        if plugin.settings:
            raise ConfigError("takes no settings", location=f"planner {plugin.type}")
        return _with_smoother(planner, smoother)
    if "traversal" in {field.name for field in fields(planner)}:
        planner = replace_fields(planner, {"traversal": {"allow_unknown": False}}, plugin.type)
    return _with_smoother(replace_fields(planner, plugin.settings, f"planner {plugin.type}"), smoother)


def _with_smoother(planner: GlobalPlanner, smoother: PathSmootherConfig | None) -> GlobalPlanner:
    if smoother is None or not max(smoother.turning_radius, smoother.min_radius):
        return planner
    radius = max(smoother.turning_radius, smoother.min_radius)
    return SmoothedPlanner(planner, PathSmoother(traversal_costs_of(planner), radius, smoother.min_radius))


def replace_fields(instance: Replaced, settings: Mapping[str, Any], location: str) -> Replaced:
    """A frozen dataclass with some fields, and fields of fields, set otherwise.

    Raises:
        ConfigError: there is no such field, or it takes no such value.
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
    """The controller of that name.

    Args:
        plugin: Its name and settings.
        mobile_base: Of the robot, with the period that the controller is asked at.
        tolerance: Of goals; it stops well within what counts as there.
        allow_reverse: Whether it may drive back.

    Raises:
        UnknownNameError: there is none.
        ConfigError: it cannot be set like that.
    """
    limits = mobile_base.limits if allow_reverse else replace(mobile_base.limits, max_backward_speed=0.0)
    controller_tolerance = GoalTolerance(xy=0.7 * tolerance.xy, yaw=0.7 * tolerance.yaw)
    return CONTROLLERS[plugin.type](
        mobile_base.footprint, limits, mobile_base.control_period, controller_tolerance, plugin.settings
    )
