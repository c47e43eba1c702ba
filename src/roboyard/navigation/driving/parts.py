"""Planners and controllers by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, get_type_hints

from roboyard.config import convert_value
from roboyard.config.wording import did_you_mean
from roboyard.errors import ConfigError
from roboyard.navigation.controllers import Controller, Tolerance, controller_named
from roboyard.navigation.driving.behaviors import Body
from roboyard.navigation.driving.config import Part, Smoothing
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.planning import GlobalPlanner, SmoothedPlanner, Smoother, traversal_of
from roboyard.navigation.planning.choice import planner_named

Made = TypeVar("Made")


def make_planner(part: Part, footprint: Footprint, smoothing: Smoothing | None = None) -> GlobalPlanner:
    """The planner of that name, for a robot of that outline, its ways bent as the smoothing says.

    Unless its settings say otherwise, it enters no unknown ground.

    Raises:
        UnknownNameError: there is none.
        ConfigError: it cannot be set like that.
    """
    planner: Any = planner_named(part.type, footprint)
    if not is_dataclass(planner):
        if part.settings:
            raise ConfigError("takes no settings", location=f"planner {part.type}")
        return _smoothed(planner, smoothing)
    if "traversal" in {field.name for field in fields(planner)}:
        planner = changed(planner, {"traversal": {"allow_unknown": False}}, part.type)
    return _smoothed(changed(planner, part.settings, f"planner {part.type}"), smoothing)


def _smoothed(planner: GlobalPlanner, smoothing: Smoothing | None) -> GlobalPlanner:
    if smoothing is None or not max(smoothing.turning_radius, smoothing.least_radius):
        return planner
    radius = max(smoothing.turning_radius, smoothing.least_radius)
    return SmoothedPlanner(planner, Smoother(traversal_of(planner), radius, smoothing.least_radius))


def changed(instance: Made, settings: Mapping[str, Any], where: str) -> Made:
    """A frozen dataclass with some fields, and fields of fields, set otherwise.

    Raises:
        ConfigError: there is no such field, or it takes no such value.
    """
    kind: Any = type(instance)
    known = {field.name: field for field in fields(kind) if field.init}
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for key, value in settings.items():
        if key not in known:
            raise ConfigError(f"unknown key {key!r}{did_you_mean(key, known)}", location=where, valid=", ".join(known))
        present = getattr(instance, key)
        if is_dataclass(present) and isinstance(value, Mapping):
            values[key] = changed(present, value, f"{where}, {key}")
        else:
            values[key] = convert_value(value, hints[key], location=f"{where}, {key}")
    found: Made = replace(instance, **values)  # type: ignore[type-var]
    return found


def make_controller(part: Part, body: Body, tolerance: Tolerance, *, reverse: bool) -> Controller:
    """The controller of that name.

    Args:
        part: Its name and settings.
        body: Of the robot, with the period that the controller is asked at.
        tolerance: Of goals; it stops well within what counts as there.
        reverse: Whether it may drive back.

    Raises:
        UnknownNameError: there is none.
        ConfigError: it cannot be set like that.
    """
    limits = body.limits if reverse else replace(body.limits, backward=0.0)
    within = Tolerance(xy=0.7 * tolerance.xy, yaw=0.7 * tolerance.yaw)
    return controller_named(part.type)(body.footprint, limits, body.period, within, part.settings)
