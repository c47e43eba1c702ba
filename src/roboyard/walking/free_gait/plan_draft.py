"""Plan drafts: complete event sequences that are not timed yet, an estimate of their schedule, and smoothing of the
body motion.

A draft has the body where each event was sampled.  Smoothing keeps it moving forward instead of back and forth, within
the interval of each event; events whose legs would lose reach return toward their samples.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from roboyard.compute import kernel
from roboyard.compute.array_kernels import assign
from roboyard.geometry.arrays import I64, Array
from roboyard.walking.free_gait.foothold_map import max_along_segment
from roboyard.walking.free_gait.partial_plans import (
    MAX_EVENTS,
    PATH_SPACING,
    BodyPaths,
    PartialPlans,
    PlanningContext,
    SearchState,
    StepEvent,
    empty_partial_plans,
    example_search_state,
)
from roboyard.walking.free_gait.step_constraints import is_foot_order_valid, is_swing_order_valid
from roboyard.walking.free_gait.step_events import is_lift_off_reachable, is_swing_reachable
from roboyard.walking.free_gait.step_plan import HOLD_FRACTION, RISE_FRACTION

_VERTICAL_TIME_PER_METER: Final = 0.5 * math.pi / RISE_FRACTION
"""Duration of lift-off and touch-down of long swings, times the foot's speed, for 1 m of height."""


class PlanDraft(NamedTuple):
    """A complete plan.

    Attributes:
        leg: (e,) leg of the event.
        kind: (e,) LIFT_OFF or TOUCH_DOWN.
        position: (e, 3) foot position [m].
        sampled_foothold: (e, 2) sampled position of a foot that touches down [m].
        paired_event: (e,) the touch-down of a lift-off, and vice versa.
        first_sample: (e,) first sample of the path where the body can be at the event.
        last_sample: (e,) last such sample.
        body_sample: (e + 2,) sample of the body at the start, at each event, at the end.
        interval: (e + 1,) time between these [s].
        apex_height: (e,) of a touch-down: apex of its swing [m].
        vertical_time: (e,) of a touch-down: see `Swing` [s].
        counts: (3,) number of events, of committed events (with body and time), and of past events.
    """

    leg: I64
    kind: I64
    position: Array
    sampled_foothold: Array
    paired_event: I64
    first_sample: I64
    last_sample: I64
    body_sample: Array
    interval: Array
    apex_height: Array
    vertical_time: Array
    counts: I64


def empty_draft() -> PlanDraft:
    """Return memory for a draft."""
    integer_arrays = [np.zeros(MAX_EVENTS, np.int64) for _ in range(5)]
    return PlanDraft(
        integer_arrays[0],
        integer_arrays[1],
        np.zeros((MAX_EVENTS, 3)),
        np.zeros((MAX_EVENTS, 2)),
        integer_arrays[2],
        integer_arrays[3],
        integer_arrays[4],
        np.zeros(MAX_EVENTS + 2),
        np.zeros(MAX_EVENTS + 1),
        np.zeros(MAX_EVENTS),
        np.ones(MAX_EVENTS),
        np.zeros(3, np.int64),
    )


@kernel(examples=lambda: [(empty_draft(), empty_draft())])
def copy_draft(source: PlanDraft, target: PlanDraft) -> None:
    """Copy a draft."""
    m = source.counts[0]
    for k in range(m):
        target.leg[k], target.kind[k], target.paired_event[k] = source.leg[k], source.kind[k], source.paired_event[k]
        assign(target.position[k], source.position[k])
        assign(target.sampled_foothold[k], source.sampled_foothold[k])
        target.first_sample[k], target.last_sample[k] = source.first_sample[k], source.last_sample[k]
        target.body_sample[k], target.interval[k], target.apex_height[k] = (
            source.body_sample[k],
            source.interval[k],
            source.apex_height[k],
        )
        target.vertical_time[k] = source.vertical_time[k]
    target.body_sample[m], target.body_sample[m + 1], target.interval[m] = (
        source.body_sample[m],
        source.body_sample[m + 1],
        source.interval[m],
    )
    assign(target.counts, source.counts)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_search_state()[0], empty_draft(), 0)])
def estimate_swing_time(context: PlanningContext, draft: PlanDraft, k: int) -> float:
    """Return the approximate shortest duration of the swing that ends with event ``k`` [s]."""
    a, b, top = draft.position[draft.paired_event[k]], draft.position[k], draft.apex_height[k]
    horizontal = math.hypot(b[0] - a[0], b[1] - a[1]) * 0.5 * math.pi / (1.0 - 2.0 * HOLD_FRACTION)
    vertical = (max(top - a[2], top - b[2])) * 0.5 * math.pi / RISE_FRACTION
    return float(max(horizontal, vertical) / context.parameters.foot_speed)


@kernel(examples=lambda: [(example_search_state(), 0, empty_draft(), empty_draft())])
def draft_from_plan(state: SearchState, i: int, committed: PlanDraft, draft: PlanDraft) -> None:
    """Write the events of plan ``i`` in order, with the body's interval and sample at each; committed events as they
    were."""
    context, paths, plans, log = state
    m = plans.n_events[i]
    draft.counts[0], draft.counts[1], draft.counts[2] = m, committed.counts[1], committed.counts[2]
    row, k, max_common_sample = plans.last_log_row[i], m - 1, paths.n_samples[plans.path[i]] - 1
    while k >= 0:
        previous_row = log.previous[row]
        if log.kind[row] == StepEvent.PATH_CHANGE:  # larger samples of earlier rows belong to the previous path
            max_common_sample, row = min(max_common_sample, log.max_sample[row]), previous_row
            continue
        draft.leg[k], draft.kind[k] = log.leg[row], log.kind[row]
        assign(draft.position[k], log.position[row])
        assign(draft.sampled_foothold[k], log.sampled_foothold[row])
        draft.first_sample[k] = max(log.body_interval[row, 0], log.body_interval[previous_row, 0])
        draft.last_sample[k] = min(log.body_interval[row, 1], log.body_interval[previous_row, 1], max_common_sample)
        draft.body_sample[k + 1] = log.body_sample[row]
        row, k = previous_row, k - 1
    for k in range(committed.counts[1]):
        draft.body_sample[k + 1], draft.interval[k] = committed.body_sample[k + 1], committed.interval[k]
    lift_off_events = np.full(plans.in_stance.shape[1], -1, np.int64)
    for k in range(m):
        leg = draft.leg[k]
        if draft.kind[k] == StepEvent.TOUCH_DOWN:
            a, b = draft.position[lift_off_events[leg]], draft.position[k]
            draft.paired_event[k], draft.paired_event[lift_off_events[leg]] = lift_off_events[leg], k
            params = context.parameters
            draft.apex_height[k] = (
                max_along_segment(context.obstacle_height, params.x, params.y, params.cell_size, a[0], a[1], b[0], b[1])
                + params.min_swing_clearance
            )
            draft.vertical_time[k] = (
                max(draft.apex_height[k] - a[2], draft.apex_height[k] - b[2])
                * _VERTICAL_TIME_PER_METER
                / context.parameters.foot_speed
            )
            if k < committed.counts[1]:
                draft.apex_height[k], draft.vertical_time[k] = committed.apex_height[k], committed.vertical_time[k]
        else:
            lift_off_events[leg] = k
    draft.body_sample[0], draft.body_sample[m + 1] = 0.0, paths.n_samples[plans.path[i]] - 1.0


@kernel(examples=lambda: [(example_search_state()[0], empty_draft())])
def estimate_schedule(context: PlanningContext, draft: PlanDraft) -> float:
    """Estimate the time of each event, as soon as body and feet are there; return the duration [s]."""
    m, speed = draft.counts[0], context.parameters.body_speed / PATH_SPACING
    times = np.zeros(m + 2)
    for k in range(m):
        time = times[k] + abs(draft.body_sample[k + 1] - draft.body_sample[k]) / speed
        if k < draft.counts[1]:
            time = times[k] + draft.interval[k]
        elif draft.kind[k] == StepEvent.TOUCH_DOWN:
            time = max(time, times[draft.paired_event[k] + 1] + estimate_swing_time(context, draft, k))
        draft.interval[k] = time - times[k]
        times[k + 1] = time
    draft.interval[m] = abs(draft.body_sample[m + 1] - draft.body_sample[m]) / speed
    return float(times[m] + draft.interval[m])


@kernel(examples=lambda: [(example_search_state()[0], empty_draft())])
def mean_foothold_cost(context: PlanningContext, draft: PlanDraft) -> float:
    """Return the mean cost of the footholds, 0 (good) to 1 (poor)."""
    total, n_footholds = 0.0, 0
    for k in range(draft.counts[0]):
        if draft.kind[k] == StepEvent.TOUCH_DOWN:
            c = int((draft.position[k, 0] - context.parameters.x) / context.parameters.cell_size)
            r = int((draft.position[k, 1] - context.parameters.y) / context.parameters.cell_size)
            total += 1.0 - context.foothold_quality[r, c]
            n_footholds += 1
    return total / max(n_footholds, 1)


_N_SMOOTHING_PASSES: Final = 3
"""Number of passes that smooth the body motion."""
_N_RESTORE_STEPS: Final = 4
"""Number of steps in which the body returns to its sampled position, and largest number of passes."""


@kernel(examples=lambda: [(example_search_state()[0], empty_draft())])
def smooth_body_motion(context: PlanningContext, draft: PlanDraft) -> float:
    """Move the body as evenly as the intervals allow; return the duration [s]."""
    m = draft.counts[0]
    duration, end = estimate_schedule(context, draft), draft.body_sample[m + 1]
    # not beyond the intervals of later events, so that the body seldom moves backward
    max_samples, next_sample = np.empty(m), end
    for k in range(m - 1, -1, -1):
        next_sample = max(min(float(draft.last_sample[k]), next_sample), float(draft.first_sample[k]))
        max_samples[k] = next_sample
    for _ in range(_N_SMOOTHING_PASSES):
        time, previous_sample = 0.0, 0.0
        for k in range(m):
            time += draft.interval[k]
            if k < draft.counts[1]:
                previous_sample = draft.body_sample[k + 1]
                continue
            even_sample = max(end * time / max(duration, 1e-9), previous_sample)
            previous_sample = min(max(even_sample, float(draft.first_sample[k])), max_samples[k])
            draft.body_sample[k + 1] = previous_sample
        duration = estimate_schedule(context, draft)
    return duration


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(*example_search_state()[:2], empty_draft(), empty_partial_plans(1, 1), 0, 0)],
)
def is_event_feasible(
    context: PlanningContext, paths: BodyPaths, draft: PlanDraft, scratch: PartialPlans, k: int, sample: int
) -> bool:
    """Return whether legs reach an event with the body at a sample; ``scratch`` is the state before the event."""
    leg, p = draft.leg[k], draft.position
    if draft.kind[k] == StepEvent.TOUCH_DOWN:
        return is_foot_order_valid(context, paths, scratch, 0, leg, p[k, 0], p[k, 1], sample) and is_swing_reachable(
            context, paths, scratch, 0, leg, (p[k, 0], p[k, 1], p[k, 2]), sample
        )
    return is_swing_order_valid(context, paths, scratch, 0, sample) and is_lift_off_reachable(
        context, paths, scratch, 0, leg, sample
    )


@kernel(examples=lambda: [(*example_search_state()[:2], 0, empty_draft(), np.zeros(4), empty_partial_plans(1, 1))])
def restore_reachability(
    context: PlanningContext, paths: BodyPaths, w: int, draft: PlanDraft, drawn_samples: Array, scratch: PartialPlans
) -> None:
    """Move the body back toward its sampled positions, (m + 2,), at events that are not feasible otherwise.

    Args:
        context: The planning context.
        paths: The body paths.
        w: Index of the draft's path.
        draft: The smoothed draft.
        drawn_samples: (m + 2,) body samples before smoothing.
        scratch: Memory for one plan.
    """
    m, smoothed_samples = draft.counts[0], draft.body_sample.copy()
    restore_steps = np.zeros(m, np.int64)
    for _ in range(_N_RESTORE_STEPS):
        must_repeat = False
        scratch.path[0] = w
        for leg in range(scratch.in_stance.shape[1]):
            scratch.in_stance[0, leg] = True
            for j in range(3):
                scratch.feet[0, leg, j] = context.start_feet[leg, j]
        for k in range(m):
            leg, sample = draft.leg[k], int(draft.body_sample[k + 1] + 0.5)
            if k >= draft.counts[1]:
                while True:
                    draft.body_sample[k + 1] = smoothed_samples[k + 1] + restore_steps[k] / _N_RESTORE_STEPS * (
                        drawn_samples[k + 1] - smoothed_samples[k + 1]
                    )
                    sample = int(draft.body_sample[k + 1] + 0.5)
                    is_feasible = is_event_feasible(context, paths, draft, scratch, k, sample)
                    if is_feasible or restore_steps[k] == _N_RESTORE_STEPS:
                        break
                    restore_steps[k] += 1
                paired_event = draft.paired_event[k]
                if (
                    not is_feasible
                    and draft.kind[k] == StepEvent.TOUCH_DOWN
                    and paired_event >= draft.counts[1]
                    and restore_steps[paired_event] < _N_RESTORE_STEPS
                ):
                    restore_steps[paired_event], must_repeat = _N_RESTORE_STEPS, True
            if draft.kind[k] == StepEvent.TOUCH_DOWN:
                scratch.in_stance[0, leg] = True
                for j in range(3):
                    scratch.feet[0, leg, j] = draft.position[k, j]
            else:
                scratch.in_stance[0, leg], scratch.lift_off_sample[0, leg] = False, sample
        if not must_repeat:
            break
