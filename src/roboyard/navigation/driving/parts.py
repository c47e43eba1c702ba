"""Planners and controllers by name."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from roboyard.config import load
from roboyard.config.describe import near
from roboyard.errors import UnknownNameError
from roboyard.navigation.controllers import Controller, DynamicWindow, Mppi, MppiConfig, WindowConfig
from roboyard.navigation.driving.behaviors import Body
from roboyard.navigation.driving.checkers import Tolerance
from roboyard.navigation.driving.config import Part
from roboyard.navigation.planning import GlobalPlanner, GridSearch, WavePlanner

PLANNERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "wave": (WavePlanner, {}),
    "navfn": (WavePlanner, {"taut": False}),
    "astar": (GridSearch, {"directed": True}),
    "dijkstra": (GridSearch, {"directed": False}),
}
"""Class, and what differs from its defaults."""

CONTROLLERS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "mppi": (Mppi, MppiConfig, {}),
    "window": (DynamicWindow, WindowConfig, {}),
    "rollout": (DynamicWindow, WindowConfig, {"rollout": True}),
}
"""Class, class of its configuration, and what differs from the defaults."""

_MPPI_SECONDS = 2.8
"""How far Mppi looks ahead unless told otherwise."""


def make_planner(part: Part) -> GlobalPlanner:
    """The planner of that name.  Unless its settings say otherwise, it enters no unknown ground.

    Raises:
        UnknownNameError: there is none.
        ConfigError: it cannot be set like that.
    """
    kind, differs = _find(PLANNERS, part.use, "planner")
    given = {**differs, **part.settings}
    if "traversal" in {field.name for field in fields(kind)}:
        given["traversal"] = {"allow_unknown": False, **given.get("traversal", {})}
    planner: GlobalPlanner = load(kind, given, where=f"planner {part.use}")
    return planner


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
    controller: Controller = kind(body.footprint, limits, load(config, given, where=f"controller {part.use}"))
    return controller


def _find(table: dict[str, Any], name: str, what: str) -> Any:
    if name not in table:
        raise UnknownNameError(f"no {what} {name!r}{near(name, table)}", valid=", ".join(table))
    return table[name]
