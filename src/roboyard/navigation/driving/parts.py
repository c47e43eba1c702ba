"""Planners and controllers by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast, get_type_hints

from roboyard.config import convert_value, load
from roboyard.config.describe import near
from roboyard.errors import ConfigError, UnknownNameError
from roboyard.navigation.controllers import (
    Controller,
    DynamicWindow,
    Mppi,
    MppiConfig,
    PathFollower,
    PursuitConfig,
    RegulatedPursuit,
    Tolerance,
    WindowConfig,
)
from roboyard.navigation.driving.behaviors import Body
from roboyard.navigation.driving.config import Part
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.planning import GlobalPlanner
from roboyard.navigation.planning.choice import planner_named

Made = TypeVar("Made")

CONTROLLERS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "mppi": (Mppi, MppiConfig, {}),
    "pursuit": (RegulatedPursuit, PursuitConfig, {}),
    "window": (DynamicWindow, WindowConfig, {}),
    "rollout": (DynamicWindow, WindowConfig, {"rollout": True}),
}
"""Class, class of its configuration, and what differs from the defaults."""

_MPPI_SECONDS = 2.8
"""How far Mppi looks ahead unless told otherwise."""


def make_planner(part: Part, footprint: Footprint) -> GlobalPlanner:
    """The planner of that name, for a robot of that outline.

    Unless its settings say otherwise, it enters no unknown ground.

    Raises:
        UnknownNameError: there is none.
        ConfigError: it cannot be set like that.
    """
    planner: Any = planner_named(part.use, footprint)
    if not is_dataclass(planner):
        if part.settings:
            raise ConfigError("takes no settings", where=f"planner {part.use}")
        return cast("GlobalPlanner", planner)
    if "traversal" in {field.name for field in fields(planner)}:
        planner = changed(planner, {"traversal": {"allow_unknown": False}}, part.use)
    made: GlobalPlanner = changed(planner, part.settings, f"planner {part.use}")
    return made


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
            raise ConfigError(f"unknown key {key!r}{near(key, known)}", where=where, valid=", ".join(known))
        present = getattr(instance, key)
        if is_dataclass(present) and isinstance(value, Mapping):
            values[key] = changed(present, value, f"{where}, {key}")
        else:
            values[key] = convert_value(value, hints[key], where=f"{where}, {key}")
    found: Made = replace(instance, **values)  # type: ignore[type-var]
    return found


def make_controller(part: Part, body: Body, tolerance: Tolerance, *, reverse: bool) -> Controller:
    """The controller of that name.

    Args:
        part: Its name and settings.
        body: Of the robot, with the period that the controller is asked at.
        tolerance: Of goals.
        reverse: Whether it may drive back.

    Raises:
        UnknownNameError: there is none.
        ConfigError: it cannot be set like that.
    """
    kind, config, differs = _find(CONTROLLERS, part.use, "controller")
    given = {**differs, **part.settings}
    known = {field.name for field in fields(config)}
    if "near_goal" in known:  # where it turns to the goal's heading: well within what counts as there
        given.setdefault("near_goal", 0.7 * tolerance.xy)
    if "period" in known:
        given.setdefault("period", body.period)
    if {"dt", "steps"} <= known:
        given.setdefault("dt", body.period)
        given.setdefault("steps", max(round(_MPPI_SECONDS / body.period), 4))
    limits = body.limits if reverse else replace(body.limits, backward=0.0)
    chosen = load(config, given, where=f"controller {part.use}")
    controller: Controller
    if issubclass(kind, PathFollower):  # it stops well within what counts as there
        controller = kind(body.footprint, limits, chosen, Tolerance(0.7 * tolerance.xy, 0.7 * tolerance.yaw))
    else:
        controller = kind(body.footprint, limits, chosen)
    return controller


def _find(table: dict[str, Any], name: str, what: str) -> Any:
    if name not in table:
        raise UnknownNameError(f"no {what} {name!r}{near(name, table)}", valid=", ".join(table))
    return table[name]
