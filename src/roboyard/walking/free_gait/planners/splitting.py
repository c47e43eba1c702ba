"""Splitting: partial plans that advanced are stored and continued from there again and again.

Where few paths through exist, plans that found the beginning of one are not dropped after the first failure.  For each
small square that the body can reach one partial plan is stored; the one nearest to the goal that was not continued too
often is copied, possibly switched to another path, and expanded by a few events; the result is stored in turn.  After
Kahn and Harris 1951, as for rare events; squares as in Ecoffet et al. 2021, First return, then explore.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.walking.free_gait.partial_plans import (
    PATH_CHANGE,
    BodyPaths,
    EventLog,
    PartialPlans,
    PlanningContext,
    copy_path,
    copy_plan,
    derive_key,
    example_context,
    example_planning_arrays,
    uniform_draw,
)
from roboyard.walking.free_gait.robot_model import LegArrays, example_leg_arrays
from roboyard.walking.free_gait.search import (
    FAILED_EVENT,
    N_CANDIDATES,
    N_EVENTS,
    StepPlanSearch,
    empty_search,
    start_candidate,
    submit_plan,
)
from roboyard.walking.free_gait.step_constraints import remaining_distance
from roboyard.walking.free_gait.step_events import (
    ALIVE,
    ARRIVED,
    DEAD,
    DRAWS_PER_EVENT,
    expand_plan,
    expand_to_end,
    switch_path,
)

MAX_PLANS: Final = 512
"""That are kept, at most; the last one is the one that goes on."""
MAX_LOG_ROWS: Final = 60_000
"""Of the log."""
_SQUARE_SIZE: Final = 0.06
"""Edge of the squares, of the Akrobat [m]."""
_SQUARES_PER_SIDE: Final = 64
"""Squares beside each other, and behind each other, before they begin anew."""
_MAX_PATH_ATTEMPTS: Final = 8
_N_INITIAL_PLANS: Final = 4
"""Plans that a herd begins with."""
_EVENTS_PER_ROUND: Final = 8
"""Events for which one goes on."""
_REVISIT_PENALTY: Final = 0.02
"""Having gone on with a plan once counts as so much farther from the goal [m]."""
_DETOUR_PROBABILITY: Final = 0.4
"""Share of copies that go on another way."""
_REJECTION_PENALTY: Final = 0.3
"""A plan with a part that was refused counts as so much farther from the goal [m]."""
_MAX_EVENTS_PER_POPULATION: Final = 60_000
"""Events of a herd."""
_MAX_ARRIVAL_SCORE: Final = 8
"""Arrivals that end it: one that was refused counts one, any other three, and the first plan of all ends it."""
_REJECTED_ARRIVAL_SCORE: Final = 1
_LATER_ARRIVAL_SCORE: Final = 3


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_context(), *example_planning_arrays()[1:3], 0)])
def square_index(context: PlanningContext, paths: BodyPaths, plans: PartialPlans, i: int) -> int:
    """Return the index of the square that the body of a plan can reach."""
    w, sample, square_size = plans.path[i], plans.body_interval[i, 1], _SQUARE_SIZE * context.parameters.robot_scale
    a = math.floor(paths.positions[w, sample, 0] / square_size) % _SQUARES_PER_SIDE
    b = math.floor(paths.positions[w, sample, 1] / square_size) % _SQUARES_PER_SIDE
    return int(a * _SQUARES_PER_SIDE + b)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*example_planning_arrays()[1:3], 0, 0)])
def copy_plan_and_path(paths: BodyPaths, plans: PartialPlans, source: int, target: int) -> None:
    """Copy a plan together with its own path."""
    copy_plan(plans, source, target)
    plans.path[target] = target
    copy_path(paths, source, target)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*example_planning_arrays(), 0, 0, np.uint64(1))])
def branch_from(
    context: PlanningContext,
    paths: BodyPaths,
    plans: PartialPlans,
    log: EventLog,
    source: int,
    target: int,
    key: np.uint64,
) -> None:
    """Copy a plan, and possibly switch the copy to another path."""
    copy_plan_and_path(paths, plans, source, target)
    if (
        uniform_draw(key, 0) < _DETOUR_PROBABILITY
        and switch_path(context, paths, plans, log, target, uniform_draw(key, 1), uniform_draw(key, 2)) == DEAD
    ):
        copy_plan_and_path(paths, plans, source, target)


@kernel(no_refcount=True, examples=lambda: [(*example_planning_arrays()[2:], 0, 0, np.zeros(1), 0)])
def penalize_prefix(plans: PartialPlans, log: EventLog, i: int, events: int, penalties: Array, n_stored: int) -> None:
    """Penalize all stored plans that share the first events of a plan, after which it was rejected."""
    row, remaining_events = plans.last_log_row[i], plans.n_events[i]
    while row >= 0 and remaining_events > events:
        remaining_events -= log.kind[row] != PATH_CHANGE
        row = log.previous[row]
    while row >= 0 and log.kind[row] == PATH_CHANGE:
        row = log.previous[row]
    for k in range(n_stored):
        row_of_plan = plans.last_log_row[k]
        while row_of_plan > row:
            row_of_plan = log.previous[row_of_plan]
        if row_of_plan == row:
            penalties[k] += _REJECTION_PENALTY


@kernel(examples=lambda: [(example_context(), example_leg_arrays(), empty_search(1, 1, 2), np.uint64(1), 1)])
def search_splitting(
    context: PlanningContext, leg_arrays: LegArrays, search: StepPlanSearch, seed: np.uint64, events: int
) -> None:
    """Expand populations of partial plans until a number of events has been tried; a population is never left
    unfinished."""
    plans, paths, log, n_plans = search.plans, search.paths, search.log, search.plans.n_events.shape[0]
    draws, goal = np.empty(DRAWS_PER_EVENT), search.counters[N_EVENTS] + events
    slots, goal_distances, penalties = (
        np.empty(_SQUARES_PER_SIDE * _SQUARES_PER_SIDE, np.int64),
        np.empty(n_plans),
        np.empty(n_plans),
    )
    trial = n_plans - 1
    while search.counters[N_EVENTS] < goal:
        key = derive_key(seed, search.counters[N_CANDIDATES])
        log.n_rows[0], slots[:], n_stored, total_arrival_score, n_rounds = 0, -1, 0, 0, 0
        # the first plan of all ends its herd, so that it is told at once
        arrival_score = _LATER_ARRIVAL_SCORE if math.isfinite(search.best_cost[0]) else _MAX_ARRIVAL_SCORE
        search.counters[N_EVENTS] += 1
        max_total_events = search.counters[N_EVENTS] + _MAX_EVENTS_PER_POPULATION
        for i in range(_N_INITIAL_PLANS):
            search.counters[N_CANDIDATES] += 1
            if start_candidate(context, search, n_stored, derive_key(key, i), 1 if i > 0 else _MAX_PATH_ATTEMPTS):
                goal_distances[n_stored], penalties[n_stored] = remaining_distance(context, paths, plans, n_stored), 0.0
                n_stored += 1
                # where nothing is in the way a plan gets through by itself, with fewer steps than by pieces
                n_log_rows = log.n_rows[0]
                copy_plan_and_path(paths, plans, n_stored - 1, trial)
                events_before = plans.n_events[trial]
                state = expand_to_end(context, paths, plans, log, trial, derive_key(key, i), draws)
                search.counters[N_EVENTS] += plans.n_events[trial] - events_before + 1
                if state == ARRIVED:
                    total_arrival_score += (
                        _REJECTED_ARRIVAL_SCORE
                        if math.isinf(submit_plan(context, leg_arrays, search, trial, True))
                        else arrival_score
                    )
                log.n_rows[0] = n_log_rows
        while (
            n_stored > 0 and total_arrival_score < _MAX_ARRIVAL_SCORE and search.counters[N_EVENTS] < max_total_events
        ):
            round_key = derive_key(key, _N_INITIAL_PLANS + n_rounds)
            n_rounds += 1
            best_index, min_value = 0, math.inf
            for i in range(n_stored):
                value = goal_distances[i] + penalties[i]
                if value < min_value:
                    best_index, min_value = i, value
            penalties[best_index] += _REVISIT_PENALTY
            search.counters[N_CANDIDATES] += 1
            n_log_rows = log.n_rows[0]
            branch_from(context, paths, plans, log, best_index, trial, derive_key(round_key, n_plans))
            state = ALIVE
            for k in range(_EVENTS_PER_ROUND):
                for m in range(DRAWS_PER_EVENT):
                    draws[m] = uniform_draw(round_key, n_plans + 1 + k * DRAWS_PER_EVENT + m)
                state = expand_plan(context, paths, plans, log, trial, draws, True)
                search.counters[N_EVENTS] += 1
                if state != ALIVE:
                    break
            if state == ARRIVED:
                is_rejected = math.isinf(submit_plan(context, leg_arrays, search, trial, True))
                total_arrival_score += _REJECTED_ARRIVAL_SCORE if is_rejected else arrival_score
                if is_rejected:
                    penalize_prefix(plans, log, trial, search.counters[FAILED_EVENT], penalties, n_stored)
            elif state == ALIVE:
                square, goal_distance = (
                    square_index(context, paths, plans, trial),
                    remaining_distance(context, paths, plans, trial),
                )
                slot = slots[square]
                if slot < 0 and n_stored < trial:
                    slot = n_stored
                    slots[square], goal_distances[slot], penalties[slot] = slot, math.inf, 0.0
                    n_stored += 1
                if slot >= 0 and (
                    math.isinf(goal_distances[slot])
                    or plans.n_events[trial] < plans.n_events[slot]
                    or uniform_draw(round_key, n_plans + 999) < 0.1
                ):
                    copy_plan_and_path(paths, plans, trial, slot)
                    goal_distances[slot] = goal_distance
                    n_log_rows = log.n_rows[0]
            elif log.n_rows[0] >= log.previous.shape[0]:
                break
            log.n_rows[0] = n_log_rows
