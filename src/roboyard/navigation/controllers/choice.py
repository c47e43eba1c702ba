"""Controllers by name: Roboyard's own, and those that other packages register as ``roboyard.controllers``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from roboyard.config import load
from roboyard.config.registry import Registry
from roboyard.navigation.controllers.arrival import Tolerance
from roboyard.navigation.controllers.base import Controller, MotionLimits
from roboyard.navigation.controllers.dynamic_window import DynamicWindow, WindowConfig
from roboyard.navigation.controllers.mppi import Mppi, MppiConfig
from roboyard.navigation.controllers.pursuit import PursuitConfig, RegulatedPursuit
from roboyard.navigation.footprint import Footprint

Factory = Callable[[Footprint, MotionLimits, float, Tolerance, Mapping[str, Any]], Controller]
"""What an entry point names: it makes a controller from the robot's outline, its base's limits, the period between
commands [s], the tolerance at goals, and what the user set."""
_MPPI_SECONDS = 2.8
"""How far Mppi looks ahead unless told otherwise."""


def mppi(
    footprint: Footprint, limits: MotionLimits, period: float, tolerance: Tolerance, settings: Mapping[str, Any]
) -> Controller:
    """Model predictive path integral control."""
    given = {"dt": period, "steps": max(round(_MPPI_SECONDS / period), 4), **settings}
    return Mppi(footprint, limits, load(MppiConfig, given, source_name="controller mppi"), tolerance)


def pursuit(
    footprint: Footprint, limits: MotionLimits, period: float, tolerance: Tolerance, settings: Mapping[str, Any]
) -> Controller:
    """Regulated pure pursuit."""
    config = load(PursuitConfig, {"period": period, **settings}, source_name="controller pursuit")
    return RegulatedPursuit(footprint, limits, config, tolerance)


def window(
    footprint: Footprint, limits: MotionLimits, period: float, tolerance: Tolerance, settings: Mapping[str, Any]
) -> Controller:
    """Dynamic Window Approach."""
    config = load(WindowConfig, {"period": period, **settings}, source_name="controller window")
    return DynamicWindow(footprint, limits, config, tolerance)


def rollout(
    footprint: Footprint, limits: MotionLimits, period: float, tolerance: Tolerance, settings: Mapping[str, Any]
) -> Controller:
    """Trajectory Rollout."""
    config = load(WindowConfig, {"period": period, "rollout": True, **settings}, source_name="controller rollout")
    return DynamicWindow(footprint, limits, config, tolerance)


CONTROLLERS: Registry[Factory] = Registry(
    "controller",
    group="roboyard.controllers",
    built_in={"mppi": mppi, "pursuit": pursuit, "rollout": rollout, "window": window},
)


def controller_names() -> tuple[str, ...]:
    """Return the names of all controllers."""
    return CONTROLLERS.names()


def controller_named(name: str) -> Factory:
    """Return the factory of a controller; a package cannot take the name of one of Roboyard's own.

    Raises:
        UnknownNameError: there is none of this name.
        ConfigError: its package does not offer what it says.
    """
    return CONTROLLERS[name]
