"""Replanning: the committed part of a running plan, plans that may take over, and footholds that a new map
invalidates."""

from __future__ import annotations

import itertools
import math
from typing import Any, Final

import numpy as np
from scipy.ndimage import maximum_filter

from roboyard.errors import InputError, RoboyardError
from roboyard.geometry.arrays import Array
from roboyard.grids.height_map import HeightMap
from roboyard.walking.free_gait.foothold_map import FootholdMap
from roboyard.walking.free_gait.partial_plans import MAX_EVENTS, MAX_PATH_SAMPLES, PATH_SPACING, StepEvent
from roboyard.walking.free_gait.plan_draft import PlanDraft, empty_draft
from roboyard.walking.free_gait.planning import plan_steps
from roboyard.walking.free_gait.problem import StepPlanningProblem
from roboyard.walking.free_gait.robot_model import FreeGaitModel
from roboyard.walking.free_gait.step_plan import StepPlan

_COMMITTED_SPACING: Final = 0.0025
"""Largest distance between samples of the committed path that is still ahead; between them the body stays within
a millimeter of the plan [m]."""


def committed_events(
    plan: StepPlan, takeover_time: float, invalid_swings: frozenset[int] = frozenset()
) -> tuple[PlanDraft, Array]:
    """Return the committed events of a plan shortly after a time, and the body path (n, 3) until then.

    They extend to the touch-down of the current swing feet, so that each lands where it is about to; but to no invalid
    foothold, and to nothing after one.  Samples of the path are equidistant in time between events.

    Args:
        plan: The running plan.
        takeover_time: Time of the plan at which another one takes over [s]; everything before it is past.
        invalid_swings: Indices of swings, in the plan's order, that cannot end at their footholds.

    Raises:
        InputError: There are too many events, or the path is too long.
    """
    swings = list(enumerate(plan.swings))
    event_times = sorted({time for _, swing in swings for time in (swing.lift_off_time, swing.touch_down_time)})
    first_invalid_time = min((swing.touch_down_time for k, swing in swings if k in invalid_swings), default=np.inf)
    min_end_time = max(
        (swing.touch_down_time for _, swing in swings if swing.lift_off_time <= takeover_time < swing.touch_down_time),
        default=takeover_time,
    )
    end_time = next((time for time in event_times if time >= min_end_time), takeover_time)
    if end_time >= first_invalid_time:
        end_time = max(
            (time for time in event_times if takeover_time <= time < first_invalid_time), default=takeover_time
        )
    events = sorted(
        [(swing.lift_off_time, 1, swing.leg, swing.source) for _, swing in swings if swing.lift_off_time <= end_time]
        + [
            (swing.touch_down_time, 0, swing.leg, swing.target)
            for _, swing in swings
            if swing.touch_down_time <= end_time
        ]
    )  # of simultaneous events, touch-downs come first
    knots = np.array([0.0, *(time for time, *_ in events), end_time])
    sample_counts = [
        max(math.ceil(_path_length(plan, a, b) / (PATH_SPACING if b <= takeover_time else _COMMITTED_SPACING)), 1)
        for a, b in itertools.pairwise(knots)
    ]
    sample_indices = np.concatenate([[0], np.cumsum(sample_counts)])
    body_path = plan.body_positions(np.interp(np.arange(sample_indices[-1] + 1), sample_indices, knots))
    if len(events) >= MAX_EVENTS - 2 or len(body_path) >= MAX_PATH_SAMPLES - 2:
        raise InputError(
            f"a plan of {len(events)} events and {len(body_path)} path samples",
            valid=f"up to {MAX_EVENTS} and {MAX_PATH_SAMPLES}",
        )
    draft, previous_time = empty_draft(), 0.0
    for k, (time, is_lift_off, leg, position) in enumerate(events):
        draft.leg[k], draft.kind[k], draft.position[k] = (
            leg,
            StepEvent.LIFT_OFF if is_lift_off else StepEvent.TOUCH_DOWN,
            position,
        )
        draft.interval[k], previous_time = time - previous_time, time
        if not is_lift_off:
            swing = next(swing for _, swing in swings if swing.leg == leg and swing.touch_down_time == time)
            draft.apex_height[k], draft.vertical_time[k] = swing.apex_height, swing.vertical_time
        draft.body_sample[k + 1] = sample_indices[k + 1]
    draft.counts[:] = len(events), len(events), sum(time <= takeover_time for time, *_ in events)
    return draft, body_path


def _path_length(plan: StepPlan, start: float, end: float) -> float:
    """Return the length of the body path between two times [m]."""
    times = plan.body_track[:, 0]
    inner = times[(times > start) & (times < end)]
    positions = plan.body_positions(np.concatenate([[start], inner, [end]]))
    return float(np.linalg.norm(np.diff(positions, axis=0), axis=1).sum())


_HEIGHT_TOLERANCE: Final = 0.02
"""Height difference from which on a foothold counts as changed [m]."""


def try_plan(problem: StepPlanningProblem, planner: str, options: dict[str, Any]) -> StepPlan | str:
    """Return a plan, or the reason why there is none."""
    try:
        return plan_steps(problem, planner, **options)
    except RoboyardError as error:
        return str(error)


def try_replan(
    robot_model: FreeGaitModel,
    height_map: HeightMap,
    friction: float,
    plan: StepPlan,
    goal: Array,
    committed: tuple[PlanDraft, Array],
    planner: str,
    options: dict[str, Any],
) -> StepPlan | str:
    """Return a plan that starts with the committed part of another one, or the reason why there is none."""
    try:
        body_position, feet = committed[1][-1], plan.start_feet[:, :2].copy()
        for k in np.flatnonzero(committed[0].kind[: committed[0].counts[1]] == StepEvent.TOUCH_DOWN):
            feet[committed[0].leg[k]] = committed[0].position[k, :2]
        foothold_map = FootholdMap.from_height_map(
            height_map, robot_model, heading=plan.heading, friction=friction, start=feet
        ).with_body_at(body_position)
    except RoboyardError as error:
        return str(error)
    problem = StepPlanningProblem(
        robot_model, foothold_map, plan.body_track[0, 1:3].copy(), goal, plan.start_feet, committed=committed
    )
    return try_plan(problem, planner, options)


def find_invalid_footholds(plan: StepPlan, time: float, foothold_map: FootholdMap) -> list[int]:
    """Return the indices of a plan's swings that end after a time on changed ground, or without a foothold nearby.

    A foot that is already in the air touches down if the height is unchanged.
    """
    targets = np.array([swing.target for swing in plan.swings]).reshape(-1, 3)
    is_pending = np.array([swing.touch_down_time > time for swing in plan.swings], bool)
    is_not_lifted = np.array([swing.lift_off_time > time for swing in plan.swings], bool)
    arrays = foothold_map.arrays
    corner = (arrays.x, arrays.y)
    heights = HeightMap(arrays.heights, corner, arrays.cell_size).heights_at(targets)
    standable = HeightMap(
        maximum_filter(arrays.can_stand, size=3).astype(np.float64), corner, arrays.cell_size
    ).heights_at(targets)
    is_unchanged = (np.abs(heights - targets[:, 2]) < _HEIGHT_TOLERANCE) & (
        (standable > 0.0) | ~is_not_lifted
    )  # NaN, in holes and outside of the map, compares as changed
    return [int(k) for k in np.flatnonzero(~is_unchanged & is_pending)]


def stance_at(plan: StepPlan, time: float) -> Array:
    """Return (l, 3) stance positions of a plan at a time; for swing feet those before lift-off [m]."""
    out = plan.start_feet.copy()
    for swing in sorted(plan.swings, key=lambda swing: swing.touch_down_time):
        if swing.touch_down_time <= time:
            out[swing.leg] = swing.target
    return out
