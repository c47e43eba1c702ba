"""Plans for a robot that stands or walks already: made beside it, as plain data, and looked at on new ground."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from scipy.ndimage import maximum_filter

from roboyard.errors import RoboyardError
from roboyard.geometry.arrays import Array
from roboyard.grids.height_map import HeightMap
from roboyard.walking.steps.draft import Draft
from roboyard.walking.steps.ground import Ground
from roboyard.walking.steps.herd import SET
from roboyard.walking.steps.plan import StepPlan
from roboyard.walking.steps.planning import plan_steps
from roboyard.walking.steps.problem import Problem
from roboyard.walking.steps.rig import Rig

_SAME: Final = 0.02
"""Ground that is higher or lower than it was by more is another one [m]."""


def planned(problem: Problem, planner: str, asked: dict[str, Any]) -> StepPlan | str:
    """A plan, or why there is none."""
    try:
        return plan_steps(problem, planner, **asked)
    except RoboyardError as error:
        return str(error)


def replanned(
    rig: Rig, given: HeightMap, friction: float, plan: StepPlan, goal: Array, past: tuple[Draft, Array], planner: str,
    asked: dict[str, Any],
) -> StepPlan | str:  # fmt: skip
    """A plan that begins with what is settled of another one, or why there is none."""
    try:
        here, feet = past[1][-1], plan.feet[:, :2].copy()
        for k in np.flatnonzero(past[0].kind[: past[0].events[1]] == SET):
            feet[past[0].leg[k]] = past[0].place[k, :2]
        ground = Ground.of_map(given, rig, heading=plan.heading, friction=friction, start=feet).joined(here)
    except RoboyardError as error:
        return str(error)
    problem = Problem(rig, ground, plan.track[0, 1:3].copy(), goal, plan.feet, past=past)
    return planned(problem, planner, asked)


def footholds_gone(plan: StepPlan, time: float, ground: Ground) -> list[int]:
    """Numbers of a plan's swings that end after a time where there is other ground, or none to stand on beside.

    A foot that is in the air already comes down, if the ground is as high as it was.
    """
    targets = np.array([one.target for one in plan.swings]).reshape(-1, 3)
    to_come = np.array([one.lands > time for one in plan.swings], bool)
    rises = np.array([one.lifts > time for one in plan.swings], bool)
    rows = ground.rows
    corner = (rows.x, rows.y)
    heights = HeightMap(rows.heights, corner, rows.cell).heights_at(targets)
    firm = HeightMap(maximum_filter(rows.stand, size=3).astype(np.float64), corner, rows.cell).heights_at(targets)
    same = (np.abs(heights - targets[:, 2]) < _SAME) & ((firm > 0.0) | ~rises)  # a hole, and what is outside, are not
    return [int(k) for k in np.flatnonzero(~same & to_come)]


def footing_at(plan: StepPlan, time: float) -> Array:
    """(l, 3) where a plan's feet stand at a time, or stood before they rose [m]."""
    out = plan.feet.copy()
    for one in sorted(plan.swings, key=lambda one: one.lands):
        if one.lands <= time:
            out[one.leg] = one.target
    return out
