"""Plans for a robot that stands or walks already: made beside it, as plain data, and looked at on new ground."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import RoboyardError
from roboyard.walking.steps.draft import Draft
from roboyard.walking.steps.ground import Ground
from roboyard.walking.steps.plan import Effort, StepPlan, Swing
from roboyard.walking.steps.planning import plan_steps
from roboyard.walking.steps.problem import Problem
from roboyard.walking.steps.rig import Rig

Array = NDArray[np.float64]

_SAME: Final = 0.02
"""Ground that is higher or lower than it was by more is another one [m]."""


def planned(problem: Problem, planner: str, asked: dict[str, Any]) -> StepPlan | str:
    """A plan, or why there is none."""
    try:
        return plan_steps(problem, planner, **asked)
    except RoboyardError as error:
        return str(error)


def replanned(
    rig: Rig, given: tuple[Array, tuple[float, float], float], friction: float, plan: StepPlan, goal: Array,
    past: tuple[Draft, Array], planner: str, asked: dict[str, Any],
) -> StepPlan | str:  # fmt: skip
    """A plan that begins with what is settled of another one, or why there is none."""
    try:
        heights, corner, cell = given
        ground = Ground.of(heights, corner, rig, cell=cell, heading=plan.heading, friction=friction)
    except RoboyardError as error:
        return str(error)
    problem = Problem(rig, ground, plan.track[0, 1:3].copy(), goal, plan.feet, past=past)
    return planned(problem, planner, asked)


def plan_as_data(plan: StepPlan) -> dict[str, Any]:
    """A plan as plain data."""
    said = {"heading": plan.heading, "feet": plan.feet.copy(), "track": plan.track.copy(), "cost": plan.cost}
    swings, effort = [asdict(one) for one in plan.swings], asdict(plan.effort)
    return said | {"tipping": plan.tipping, "swings": swings, "effort": effort}


def plan_of_data(said: dict[str, Any]) -> StepPlan:
    """The plan of what `plan_as_data` gave."""
    swings = tuple(
        Swing(**(one | {"source": tuple(one["source"]), "target": tuple(one["target"])})) for one in said["swings"]
    )
    return StepPlan(
        said["heading"], np.array(said["feet"]), np.array(said["track"]), swings, said["cost"], said["tipping"],
        Effort(**said["effort"]),
    )  # fmt: skip


def footholds_gone(plan: StepPlan, time: float, given: tuple[Array, tuple[float, float], float]) -> list[int]:
    """Numbers of a plan's swings that end after a time where a map (heights, corner, cell) has other ground."""
    heights, corner, cell = given
    targets = np.array([one.target for one in plan.swings]).reshape(-1, 3)
    c, r = (np.floor((targets[:, k] - corner[k]) / cell).astype(int) for k in (0, 1))
    r, c = np.clip(r, 0, heights.shape[0] - 1), np.clip(c, 0, heights.shape[1] - 1)
    to_come = np.array([one.lands > time for one in plan.swings], bool)
    off = ~(np.abs(heights[r, c] - targets[:, 2]) < _SAME) & to_come  # nan is another ground, too
    return [int(k) for k in np.flatnonzero(off)]


def mean_height(given: tuple[Array, tuple[float, float], float], places: Array) -> float:
    """Of a map (heights, corner, cell) at places (n, 2 or more) [m]; 0 where it has none."""
    heights, (left, near), cell = given
    c, r = (np.floor((places[:, k] - low) / cell).astype(int) for k, low in ((0, left), (1, near)))
    inside = (r >= 0) & (c >= 0) & (r < heights.shape[0]) & (c < heights.shape[1])
    found = heights[r[inside], c[inside]]
    found = found[np.isfinite(found)]
    return float(found.mean()) if len(found) else 0.0
