"""What is asked of a planner in one go: goals in turn, several attempts, straight lines; errors are results here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from roboyard.errors import RoboyardError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.manipulation.planning import (
    Cancelled,
    Goal,
    KeepAxis,
    Plan,
    PlanSettings,
    Station,
    plan,
    plan_line,
    plan_pursuit,
)
from roboyard.manipulation.scene import PlanningScene


@dataclass(frozen=True)
class Request:
    """A motion that is asked for.

    Attributes:
        goals: One of them shall be reached; the first for which there is a way is taken.
        line: Poses of the tool in the scene's world, that it goes straight to, one after the other; instead of goals.
        stations: A time-table of the tool in the scene's world; instead of goals.
        begin_ns: When its time is 0.
        keep: What shall hold all along the way.
        settings: How to look.
        attempts: So many plans are made, with other seeds; the quickest counts.
        tool: Of the group, that goals are for; None: the group's tip.
    """

    goals: tuple[Goal, ...] = ()
    line: tuple[SE3, ...] = ()
    stations: tuple[Station, ...] = ()
    begin_ns: int = 0
    keep: KeepAxis | None = None
    settings: PlanSettings = field(default_factory=PlanSettings)
    attempts: int = 1
    tool: str | None = None


def search(scene: PlanningScene, start: Array, request: Request, stop: Callable[[], bool]) -> Plan | RoboyardError:
    """The quickest motion found, or why there is none: for the last goal, if there are several.

    Args:
        scene: The arm, its tool the request's, and what must not be touched.
        start: (n,) where it stands.
        request: What is asked for.
        stop: Asked now and then; true ends the search.
    """
    found: list[Plan] = []
    failed: RoboyardError | None = None
    for attempt in range(max(request.attempts, 1)):
        settings = replace(request.settings, seed=request.settings.seed + attempt)
        try:
            if request.line:
                found.append(plan_line(scene, start, request.line, settings, frame="world"))
                break
            if request.stations:
                found.append(plan_pursuit(scene, start, request.stations, settings, frame="world"))
                break
            found.append(_first(scene, start, request, settings, stop))
        except Cancelled as error:
            return error
        except RoboyardError as error:
            failed = error
    if found:
        return min(found, key=lambda one: one.trajectory.duration)
    return failed or Cancelled("nothing was asked for")


def _first(
    scene: PlanningScene, start: Array, request: Request, settings: PlanSettings, stop: Callable[[], bool]
) -> Plan:
    for goal in request.goals[:-1]:
        try:
            return plan(scene, start, goal, settings, keep=request.keep, cancelled=stop)
        except Cancelled:
            raise
        except RoboyardError:
            continue
    return plan(scene, start, request.goals[-1], settings, keep=request.keep, cancelled=stop)
