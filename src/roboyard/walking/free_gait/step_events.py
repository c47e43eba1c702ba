"""Step events of partial plans: start, lift-off, touch-down with the choice of the foothold, and expansion by one
event.

After each event a plan stores the interval of its path where the body can be: all stance feet in reach, and far enough
inside their polygon.  Two successive intervals overlap: the body is in both when the event happens.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Final

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array, Vec3
from roboyard.walking.free_gait.body_paths import detour_path
from roboyard.walking.free_gait.foothold_map import max_along_segment
from roboyard.walking.free_gait.partial_plans import (
    MAX_EVENTS,
    BodyPaths,
    EventLog,
    PartialPlans,
    PlanningContext,
    SearchState,
    StepEvent,
    append_event,
    derive_key,
    example_search_state,
    triangular_quantile,
    uniform_draw,
)
from roboyard.walking.free_gait.step_constraints import (
    edge_margin,
    foot_order_bounds,
    is_foot_order_valid,
    is_in_reach_table,
    is_swing_order_valid,
    reachable_interval,
    support_edges,
    update_body_interval,
)


class PlanState(IntEnum):
    """State of a partial plan after an event."""

    DEAD = 0
    """No event is possible."""
    ALIVE = 1
    """The plan can be expanded."""
    ARRIVED = 2
    """The body is at the goal with all feet in stance."""
    LOG_FULL = 3
    """The log has no room for the event."""


_INITIAL_EVENTS_SINCE_CHANGE: Final = 3.0


@kernel(no_refcount=True, examples=lambda: [(example_search_state(), 0, 0)])
def start_plan(state: SearchState, i: int, w: int) -> bool:
    """Start a plan on a path with all feet in stance; return whether they support the body and the log has room.

    The first row of a plan's log has leg -1 and the interval at the start.
    """
    context, paths, plans, log = state
    params, positions = context.parameters, paths.positions
    plans.n_events[i], plans.path[i], plans.body_sample[i], plans.max_sample[i], plans.last_log_row[i] = 0, w, 0, 0, -1
    for leg in range(plans.in_stance.shape[1]):
        plans.in_stance[i, leg], plans.events_since_change[i, leg] = True, _INITIAL_EVENTS_SINCE_CHANGE
        for k in range(3):
            plans.feet[i, leg, k] = context.start_feet[leg, k]
        dx, dy = context.start_feet[leg, 0] - positions[w, 0, 0], context.start_feet[leg, 1] - positions[w, 0, 1]
        if not is_in_reach_table(
            context.stance_reach,
            context.table_origin,
            leg,
            params.cos * dx + params.sin * dy,
            params.cos * dy - params.sin * dx,
            context.start_feet[leg, 2] - positions[w, 0, 2],
            params.cells_per_meter,
            params.layers_per_meter,
        ):
            return False
        plans.foot_interval[i, leg, 0], plans.foot_interval[i, leg, 1] = reachable_interval(
            context, paths, plans, i, leg, 0
        )
    n_edges = support_edges(plans.feet, plans.in_stance, i, -1, plans.edge_buffer)
    if (
        n_edges < 3
        or edge_margin(plans.edge_buffer, n_edges, positions[w, 0, 0], positions[w, 0, 1]) < params.min_stability_margin
    ):
        return False
    update_body_interval(
        positions, paths.n_samples, plans, i, 0, plans.edge_buffer, n_edges, params.min_stability_margin
    )
    return append_event(plans, log, i, -1, StepEvent.TOUCH_DOWN)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(0, 0, 10, 0, 10, 0.5)])
def choose_body_sample(sample: int, low: int, high: int, low_after: int, high_after: int, draw: float) -> int:
    """Return the body sample at an event, within the intervals before and after it.

    With a draw from 0 to 1 it is triangular over both, most likely at the previous sample (Herms 2004); without one
    (negative) it is the middle of both, but not backward if possible.
    """
    first, last = max(low, low_after), min(high, high_after)
    if draw < 0.0:
        return min(max(sample, (first + last) // 2), last)
    return int(triangular_quantile(draw, float(first), float(min(max(sample, first), last)), float(last)) + 0.5)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*example_search_state()[2:], 0, 0, StepEvent.LIFT_OFF)])
def log_foot_event(plans: PartialPlans, log: EventLog, i: int, leg: int, kind: int) -> PlanState:
    """Log a lift-off or touch-down: ALIVE or LOG_FULL."""
    for k in range(plans.events_since_change.shape[1]):
        plans.events_since_change[i, k] += 1.0
    plans.events_since_change[i, leg] = 0.0
    plans.n_events[i] += 1
    plans.max_sample[i] = max(plans.max_sample[i], plans.body_sample[i])
    if kind == StepEvent.LIFT_OFF:
        plans.lift_off_sample[i, leg] = plans.body_sample[i]
    return PlanState.ALIVE if append_event(plans, log, i, leg, kind) else PlanState.LOG_FULL


@kernel(no_refcount=True, examples=lambda: [(example_search_state(), 0, 0, StepEvent.LIFT_OFF, np.zeros(3), 0)])
def replay_event(
    state: SearchState,
    i: int,
    leg: int,
    kind: int,
    position: Array,
    sample: int,
) -> bool:
    """Add an event of another plan with the body at a sample of the path; return whether there is room for it."""
    context, paths, plans, log = state
    params = context.parameters
    plans.in_stance[i, leg], plans.sampled_foothold[i, 0], plans.sampled_foothold[i, 1] = (
        kind != StepEvent.LIFT_OFF,
        position[0],
        position[1],
    )
    if kind != StepEvent.LIFT_OFF:
        for k in range(3):
            plans.feet[i, leg, k] = position[k]
        plans.foot_interval[i, leg, 0], plans.foot_interval[i, leg, 1] = reachable_interval(
            context, paths, plans, i, leg, sample
        )
    n_edges = support_edges(plans.feet, plans.in_stance, i, -1, plans.edge_buffer)
    if n_edges < 3:
        return False
    plans.body_sample[i] = sample
    update_body_interval(
        paths.positions, paths.n_samples, plans, i, sample, plans.edge_buffer, n_edges, params.min_stability_margin
    )
    return bool(log_foot_event(plans, log, i, leg, kind) == PlanState.ALIVE)


@kernel(no_refcount=True, examples=lambda: [(example_search_state(), 0, 0.5, 0.5)])
def switch_path(state: SearchState, i: int, u: float, v: float) -> PlanState:
    """Continue on another path from the largest body sample, see `detour_path`: ALIVE, LOG_FULL, or DEAD where that is
    not possible."""
    context, paths, plans, log = state
    params, w = context.parameters, plans.path[i]
    if not detour_path(context, paths, w, plans.max_sample[i] + 1, u, v):
        return PlanState.DEAD
    for leg in range(plans.in_stance.shape[1]):
        if plans.in_stance[i, leg]:
            plans.foot_interval[i, leg, 0], plans.foot_interval[i, leg, 1] = reachable_interval(
                context, paths, plans, i, leg, plans.body_sample[i]
            )
    n_edges = support_edges(plans.feet, plans.in_stance, i, -1, plans.edge_buffer)
    update_body_interval(
        paths.positions,
        paths.n_samples,
        plans,
        i,
        plans.body_sample[i],
        plans.edge_buffer,
        n_edges,
        params.min_stability_margin,
    )
    return PlanState.ALIVE if append_event(plans, log, i, -1, StepEvent.PATH_CHANGE) else PlanState.LOG_FULL


_N_BODY_SAMPLES: Final = 8
"""Number of body samples of an interval at which the stability without a foot is checked."""
_MAX_CELL_ATTEMPTS: Final = 4
"""Largest number of cells that are tried for a touch-down."""
_WIDE_SPREAD_FACTOR: Final = 2.5
"""Factor on the spread of sampled footholds, in two of three attempts with retries."""
_N_SWING_SAMPLES: Final = 4
"""Number of segments of a swing at whose ends the reach of the leg is checked."""
_VERTICAL_PHASE_SAMPLES: Final = 1
"""Number of samples by which the body may move during lift-off, and during touch-down."""


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*example_search_state()[:3], 0, 0, 0)])
def is_lift_off_reachable(
    context: PlanningContext, paths: BodyPaths, plans: PartialPlans, i: int, leg: int, sample: int
) -> bool:
    """Return whether a leg reaches its foot during lift-off, with the body at a sample and about to move on."""
    params, w, p = context.parameters, plans.path[i], paths.positions
    x, y, z = plans.feet[i, leg, 0], plans.feet[i, leg, 1], plans.feet[i, leg, 2]
    for is_raised in range(2):
        body_sample = sample if is_raised == 1 else min(sample + _VERTICAL_PHASE_SAMPLES, paths.n_samples[w] - 1)
        dx, dy = x - p[w, body_sample, 0], y - p[w, body_sample, 1]
        if not is_in_reach_table(
            context.swing_reach,
            context.table_origin,
            leg,
            params.cos * dx + params.sin * dy,
            params.cos * dy - params.sin * dx,
            z + is_raised * params.min_swing_clearance - p[w, body_sample, 2],
            params.cells_per_meter,
            params.layers_per_meter,
        ):
            return False
    return True


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_search_state(), 0, 0, -1.0)])
def lift_foot(state: SearchState, i: int, leg: int, draw: float) -> PlanState:
    """Lift a foot: ALIVE, LOG_FULL, or DEAD where the others would not support the body; then nothing has changed."""
    context, paths, plans, log = state
    side, n_left, n_right, edges = context.leg_side, 0, 0, plans.edge_buffer
    for k in range(plans.in_stance.shape[1]):
        if plans.in_stance[i, k] and k != leg:
            n_left += side[k] > 0
            n_right += side[k] < 0
    if n_left + n_right < 3 or n_left == 0 or n_right == 0:
        return PlanState.DEAD
    n_edges = support_edges(plans.feet, plans.in_stance, i, leg, edges)
    if n_edges < 3:
        return PlanState.DEAD
    low, high = plans.body_interval[i, 0], plans.body_interval[i, 1]
    positions, w, seed, margin = paths.positions, plans.path[i], -1, context.parameters.min_stability_margin
    for k in range(_N_BODY_SAMPLES):
        sample = high - (high - low) * k // (_N_BODY_SAMPLES - 1)
        if edge_margin(edges, n_edges, positions[w, sample, 0], positions[w, sample, 1]) >= margin:
            seed = sample
            break
    if seed < 0:
        return PlanState.DEAD
    plans.in_stance[i, leg] = False
    update_body_interval(positions, paths.n_samples, plans, i, seed, edges, n_edges, margin)
    body_sample = choose_body_sample(
        plans.body_sample[i], low, high, plans.body_interval[i, 0], plans.body_interval[i, 1], draw
    )
    plans.in_stance[i, leg] = True
    is_order_valid = is_swing_order_valid(context, paths, plans, i, body_sample)
    plans.in_stance[i, leg] = False
    if not (is_order_valid and is_lift_off_reachable(context, paths, plans, i, leg, body_sample)):
        plans.in_stance[i, leg], plans.body_interval[i, 0], plans.body_interval[i, 1] = True, low, high
        return PlanState.DEAD
    plans.body_sample[i] = body_sample
    return log_foot_event(plans, log, i, leg, StepEvent.LIFT_OFF)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*example_search_state()[:3], 0, 0, (0.0, 0.0, 0.0), 0)])
def is_swing_reachable(
    context: PlanningContext, paths: BodyPaths, plans: PartialPlans, i: int, leg: int, target: Vec3, sample: int
) -> bool:
    """Return whether a leg reaches its foot during the whole swing to a target [m], with the body at a sample at
    touch-down.

    In the body frame the foot moves up, straight across and down, however the body moves: see `swing_position`.
    """
    x, y, z = target
    params, w, lift_off, touch_down = context.parameters, plans.path[i], plans.lift_off_sample[i, leg], sample
    p, cos, sin = paths.positions, params.cos, params.sin
    fx, fy = plans.feet[i, leg, 0], plans.feet[i, leg, 1]
    apex_height = (
        max_along_segment(context.obstacle_height, params.x, params.y, params.cell_size, fx, fy, x, y)
        + params.min_swing_clearance
    )
    ax, ay, bx, by = fx - p[w, lift_off, 0], fy - p[w, lift_off, 1], x - p[w, touch_down, 0], y - p[w, touch_down, 1]
    for part in range(_N_SWING_SAMPLES + 3):
        horizontal_fraction = min(part / _N_SWING_SAMPLES, 1.0)
        lx, ly = ax + horizontal_fraction * (bx - ax), ay + horizontal_fraction * (by - ay)
        lz = apex_height - p[w, lift_off, 2] - horizontal_fraction * (p[w, touch_down, 2] - p[w, lift_off, 2])
        if part > _N_SWING_SAMPLES and touch_down > lift_off:
            body_sample = (
                min(lift_off + _VERTICAL_PHASE_SAMPLES, touch_down)
                if part == _N_SWING_SAMPLES + 1
                else max(touch_down - _VERTICAL_PHASE_SAMPLES, lift_off)
            )
            lx, ly = (fx, fy) if part == _N_SWING_SAMPLES + 1 else (x, y)
            lx, ly = lx - p[w, body_sample, 0], ly - p[w, body_sample, 1]
            lz = (plans.feet[i, leg, 2] if part == _N_SWING_SAMPLES + 1 else z) - p[w, body_sample, 2]
        if not is_in_reach_table(
            context.swing_reach,
            context.table_origin,
            leg,
            cos * lx + sin * ly,
            cos * ly - sin * lx,
            lz,
            params.cells_per_meter,
            params.layers_per_meter,
        ):
            return False
    return True


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_search_state(), 0, 0, 0, 0, 0, 0.5)])
def touch_down_on_cell(
    state: SearchState,
    i: int,
    leg: int,
    row: int,
    column: int,
    sample: int,
    draw: float,
) -> PlanState:
    """Set a foot down on a cell that it reaches with the body at a sample: ALIVE, LOG_FULL or DEAD.

    DEAD, where its swing is out of reach, changes nothing.
    """
    context, paths, plans, log = state
    params, low, high = context.parameters, plans.body_interval[i, 0], plans.body_interval[i, 1]
    x, y, z = (
        params.x + (column + 0.5) * params.cell_size,
        params.y + (row + 0.5) * params.cell_size,
        context.heights[row, column],
    )
    fx, fy, fz = plans.feet[i, leg, 0], plans.feet[i, leg, 1], plans.feet[i, leg, 2]
    plans.feet[i, leg, 0], plans.feet[i, leg, 1], plans.feet[i, leg, 2] = x, y, z
    plans.in_stance[i, leg] = True
    plans.foot_interval[i, leg, 0], plans.foot_interval[i, leg, 1] = reachable_interval(
        context, paths, plans, i, leg, sample
    )
    n_edges = support_edges(plans.feet, plans.in_stance, i, -1, plans.edge_buffer)
    update_body_interval(
        paths.positions, paths.n_samples, plans, i, sample, plans.edge_buffer, n_edges, params.min_stability_margin
    )
    body_sample = choose_body_sample(
        plans.body_sample[i], low, high, plans.body_interval[i, 0], plans.body_interval[i, 1], draw
    )
    plans.feet[i, leg, 0], plans.feet[i, leg, 1], plans.feet[i, leg, 2] = fx, fy, fz
    if not (
        is_foot_order_valid(context, paths, plans, i, leg, x, y, body_sample)
        and is_swing_reachable(context, paths, plans, i, leg, (x, y, z), body_sample)
    ):
        plans.in_stance[i, leg], plans.body_interval[i, 0], plans.body_interval[i, 1] = False, low, high
        return PlanState.DEAD
    plans.feet[i, leg, 0], plans.feet[i, leg, 1], plans.feet[i, leg, 2] = x, y, z
    plans.body_sample[i] = body_sample
    return log_foot_event(plans, log, i, leg, StepEvent.TOUCH_DOWN)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_search_state(), 0, 0, 0, 0, 0, 0.5)])
def touch_down_near(
    state: SearchState,
    i: int,
    leg: int,
    row: int,
    column: int,
    sample: int,
    draw: float,
) -> PlanState:
    """Set a foot down on the nearest allowed cell around a cell, with the body at a sample: ALIVE, LOG_FULL or DEAD.

    A few of the cells are tried that the leg reaches in the order of its side's feet.
    """
    context, paths, plans, _ = state
    params, w, can_stand, offsets, n_attempts = (
        context.parameters,
        plans.path[i],
        context.can_stand,
        context.search_offsets,
        0,
    )
    low, high = foot_order_bounds(context, paths, plans, i, leg, sample)
    bx, by, bz = paths.positions[w, sample, 0], paths.positions[w, sample, 1], paths.positions[w, sample, 2]
    for k in range(offsets.shape[0]):
        r, c = row + offsets[k, 0], column + offsets[k, 1]
        if r < 0 or c < 0 or r >= can_stand.shape[0] or c >= can_stand.shape[1] or not can_stand[r, c]:
            continue
        x, y = params.x + (c + 0.5) * params.cell_size, params.y + (r + 0.5) * params.cell_size
        if not low <= params.cos * x + params.sin * y <= high:
            continue
        dx, dy = x - bx, y - by
        if not is_in_reach_table(
            context.stance_reach,
            context.table_origin,
            leg,
            params.cos * dx + params.sin * dy,
            params.cos * dy - params.sin * dx,
            context.heights[r, c] - bz,
            params.cells_per_meter,
            params.layers_per_meter,
        ):
            continue
        plan_state = touch_down_on_cell(state, i, leg, r, c, sample, draw)
        n_attempts += 1
        if plan_state != PlanState.DEAD or n_attempts == _MAX_CELL_ATTEMPTS:
            return plan_state
    return PlanState.DEAD


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_search_state(), 0, 0, 0.5, 0.5, 0.5, False)])
def touch_down_sampled(
    state: SearchState,
    i: int,
    leg: int,
    u: float,
    v: float,
    draw: float,
    retry_other_feet: bool,
) -> PlanState:
    """Set a foot down near a sampled position, or on the nearest allowed cell around it: ALIVE, LOG_FULL or DEAD.

    Allowed are cells that the leg reaches, in the order of its side's feet, with a swing in reach.  Where the body at
    the end of its interval finds none, its middle and its beginning are tried; with ``retry_other_feet`` only one of
    them.  DEAD changes nothing.
    """
    context, paths, plans, _ = state
    params, w = context.parameters, plans.path[i]
    low, high, end, positions = (
        plans.body_interval[i, 0],
        plans.body_interval[i, 1],
        paths.n_samples[w] - 1,
        paths.positions,
    )
    offset_x, offset_y = (
        params.cos * context.stance_feet[leg, 0] - params.sin * context.stance_feet[leg, 1],
        params.sin * context.stance_feet[leg, 0] + params.cos * context.stance_feet[leg, 1],
    )
    first_attempt = int(3.0 * draw) if retry_other_feet else 0
    spread = params.step_spread * (_WIDE_SPREAD_FACTOR if first_attempt > 0 else 1.0)
    offset_x, offset_y = (
        offset_x + triangular_quantile(u, -spread, 0.0, spread),
        offset_y + triangular_quantile(v, -spread, 0.0, spread),
    )
    for attempt in range(first_attempt, first_attempt + 1 if retry_other_feet else 3):
        sample = high - (high - low) * attempt // 2
        if attempt > first_attempt and sample == high:
            break
        lookahead_sample = min(sample + 5, end)
        bx, by = positions[w, sample, 0], positions[w, sample, 1]
        tx, ty = positions[w, lookahead_sample, 0] - bx, positions[w, lookahead_sample, 1] - by
        lookahead_distance = math.sqrt(tx * tx + ty * ty)
        step_fraction = params.forward_step / lookahead_distance if lookahead_distance > 1e-9 else 0.0
        plans.sampled_foothold[i, 0], plans.sampled_foothold[i, 1] = (
            bx + offset_x + step_fraction * tx,
            by + offset_y + step_fraction * ty,
        )
        column = math.floor((plans.sampled_foothold[i, 0] - params.x) / params.cell_size)
        row = math.floor((plans.sampled_foothold[i, 1] - params.y) / params.cell_size)
        plan_state = touch_down_near(state, i, leg, row, column, sample, -1.0 if retry_other_feet else draw)
        if plan_state != PlanState.DEAD:
            return plan_state
    return PlanState.DEAD


DRAWS_PER_EVENT: Final = 4
"""Number of random numbers of an event: foot, foothold along and across, position of the body."""
_MAX_STALLED_EVENTS: Final = 40
"""Number of events without progress after which a candidate is dropped; of those that arrive, 95 % never need half."""
_BLOCKING_FOOT_FACTOR: Final = 4.0
"""Factor on the weight of a foot without whose change the body cannot advance, with retries."""


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(example_search_state(), 0, np.zeros(DRAWS_PER_EVENT), False)],
)
def expand_plan(
    state: SearchState,
    i: int,
    draws: Array,
    retry_other_feet: bool,
) -> PlanState:
    """Add one event to plan ``i``: a foot is selected with a probability by the events since its last change, and lifts
    off or touches down.

    A body that can be at the goal only sets feet down, until all are in stance.

    Args:
        state: State of the search.
        i: Index of the plan.
        draws: (DRAWS_PER_EVENT,) numbers from 0 up to 1.
        retry_other_feet: A foot without a foothold stays in the air and another one is selected; the body stays in the
            middle of its interval.  Otherwise such a plan is dropped, and the body's sample is drawn (Herms 2004).

    Returns:
        ALIVE, ARRIVED (nothing is left to do), DEAD (no foot can lift off, or one finds no foothold), LOG_FULL.
    """
    paths, plans = state.paths, state.plans
    n_legs = plans.in_stance.shape[1]
    if plans.n_events[i] >= MAX_EVENTS:
        return PlanState.DEAD
    at_goal = plans.body_interval[i, 1] >= paths.n_samples[plans.path[i]] - 1
    weights, total = plans.weight_buffer, 0.0
    for k in range(n_legs):
        weights[k] = 0.0
        if not (at_goal and plans.in_stance[i, k]):
            weights[k] = plans.events_since_change[i, k] ** 2
            if retry_other_feet and (
                not plans.in_stance[i, k] or plans.foot_interval[i, k, 1] <= plans.body_interval[i, 1]
            ):
                weights[k] *= _BLOCKING_FOOT_FACTOR
            if at_goal:
                weights[k] += 1.0
            total += weights[k]
    if at_goal and total == 0.0:
        return PlanState.ARRIVED
    draw = draws[0]
    while total > 0.0:
        remaining, leg = draw * total, -1
        for k in range(n_legs):
            if weights[k] > 0.0:
                leg = k
                if remaining < weights[k]:
                    break
                remaining -= weights[k]
        draw = min(max(remaining / weights[leg], 0.0), 0.999999)  # the rest of the draw is again uniform
        if plans.in_stance[i, leg]:
            plan_state = lift_foot(state, i, leg, -1.0 if retry_other_feet else draws[3])
        else:
            plan_state = touch_down_sampled(state, i, leg, draws[1], draws[2], draws[3], retry_other_feet)
            if not retry_other_feet:
                return plan_state
        if plan_state != PlanState.DEAD:
            return plan_state
        weights[leg], total = 0.0, 0.0
        for k in range(n_legs):
            total += weights[k]
    return PlanState.DEAD


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(example_search_state(), 0, np.uint64(1), np.zeros(DRAWS_PER_EVENT))],
)
def expand_to_end(state: SearchState, i: int, key: np.uint64, draws: Array) -> PlanState:
    """Expand plan ``i`` as far as possible, without retries; a plan without progress for long is dropped.

    Args:
        state: State of the search.
        i: Index of the plan.
        key: Key of the events' random numbers.
        draws: (DRAWS_PER_EVENT,) scratch memory.

    Returns:
        ARRIVED, DEAD, LOG_FULL; ALIVE if it was dropped.
    """
    plans = state.plans
    plan_state, max_sample, last_progress = PlanState.ALIVE, 0, plans.n_events[i]
    while plan_state == PlanState.ALIVE and plans.n_events[i] - last_progress < _MAX_STALLED_EVENTS:
        event_key = derive_key(key, 2 + plans.n_events[i])
        for k in range(DRAWS_PER_EVENT):
            draws[k] = uniform_draw(event_key, k)
        plan_state = expand_plan(state, i, draws, False)
        if plans.body_interval[i, 1] > max_sample:
            max_sample, last_progress = plans.body_interval[i, 1], plans.n_events[i]
    return plan_state
