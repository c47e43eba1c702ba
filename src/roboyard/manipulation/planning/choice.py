"""Planners by name."""

from __future__ import annotations

from roboyard.config.wording import did_you_mean
from roboyard.errors import UnknownNameError
from roboyard.manipulation.planning.ompl_planners import NAMES, OmplPlanner
from roboyard.manipulation.planning.problem import Connect, Planner

OURS = ("connect",)


def planner_names() -> tuple[str, ...]:
    """All that there are."""
    return (*OURS, *(f"ompl:{name}" for name in NAMES))


def planner_named(name: str) -> Planner:
    """A planner. Raises UnknownNameError."""
    if name == "connect":
        return Connect()
    kind, _, which = name.partition(":")
    if kind == "ompl" and which in NAMES:
        return OmplPlanner(which)
    known = planner_names()
    raise UnknownNameError(f"no planner {name!r}{did_you_mean(name, known)}", valid=", ".join(known))
