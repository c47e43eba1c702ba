"""Sampling planners: random sampling, greedy, branch and bound, and Monte Carlo tree search.

Random sampling expands one candidate after the other (Herms 2004).  The greedy planner takes, of a few sampled events,
the one after which the body can advance farthest.  Branch and bound tries a few events, the most promising first, and
drops what cannot improve on the best plan: no plan is faster than its swings, of which at most all but three overlap,
nor than its body (Land and Doig 1960; depth first).  Monte Carlo tree search selects a node by the quality of the plans
from it and by how seldom it was tried (UCT, Kocsis and Szepesvári 2006), and gives it more children the more often it
was tried (progressive widening, Couëtoux et al. 2011).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from roboyard.compute import kernel
from roboyard.walking.free_gait.partial_plans import (
    MAX_EVENTS,
    PATH_SPACING,
    PlanningContext,
    copy_plan,
    derive_key,
    example_context,
    uniform_draw,
)
from roboyard.walking.free_gait.robot_model import LegArrays, example_leg_arrays
from roboyard.walking.free_gait.search import (
    N_CANDIDATES,
    N_EVENTS,
    StepPlanSearch,
    empty_search,
    next_candidate_key,
    start_candidate,
    submit_plan,
)
from roboyard.walking.free_gait.step_constraints import remaining_distance
from roboyard.walking.free_gait.step_events import ALIVE, ARRIVED, DRAWS_PER_EVENT, LOG_FULL, expand_plan, expand_to_end
from roboyard.walking.free_gait.step_plan import RISE_FRACTION
from roboyard.walking.statics import MIN_SUPPORT_FEET

GREEDY_MAX_PLANS: Final = 8
"""The one that goes on, and as many less one drawn from it."""
_MAX_PATH_ATTEMPTS: Final = 32
"""Body paths that are sampled until one is traversable."""


@kernel(examples=lambda: [(example_context(), example_leg_arrays(), empty_search(1, 1, 2), np.uint64(1), 1)])
def search_greedy(
    context: PlanningContext, leg_arrays: LegArrays, search: StepPlanSearch, seed: np.uint64, events: int
) -> None:
    """Run greedy candidates, one after the other, until a number of events has been tried."""
    paths, plans, log = search.paths, search.plans, search.log
    draws, goal = np.empty(DRAWS_PER_EVENT), search.counters[N_EVENTS] + events
    while search.counters[N_EVENTS] < goal:
        key = next_candidate_key(search, seed)
        if not start_candidate(context, search, 0, derive_key(key, 0), _MAX_PATH_ATTEMPTS):
            continue
        n_events, state = 0, ALIVE
        while state == ALIVE:
            event_key, best, max_sample = derive_key(key, 2 + n_events), -1, -1
            n_events += 1
            for i in range(1, plans.n_events.shape[0]):
                copy_plan(plans, 0, i)
                for k in range(DRAWS_PER_EVENT):
                    draws[k] = uniform_draw(event_key, i * DRAWS_PER_EVENT + k)
                trial_state = expand_plan(context, paths, plans, log, i, draws, True)
                search.counters[N_EVENTS] += 1
                if trial_state in (ARRIVED, LOG_FULL):
                    state = trial_state
                    break
                if trial_state == ALIVE and plans.body_interval[i, 1] > max_sample:
                    best, max_sample = i, plans.body_interval[i, 1]
            if state != ALIVE or best < 0:
                break
            copy_plan(plans, best, 0)
        if state == ARRIVED:
            submit_plan(context, leg_arrays, search, 0, True)


N_BRANCHES: Final = 4
"""Stretches of a few events that are tried from each moment."""
_EVENTS_PER_BRANCH: Final = 4
"""Events of one."""
BRANCH_MAX_PLANS: Final = N_BRANCHES * (MAX_EVENTS // _EVENTS_PER_BRANCH) + 3
BRANCH_LOG_ROWS: Final = 20_000
"""Of the log."""
_MAX_LEAVES: Final = 400
"""Ends of branches after which it begins anew, on another way."""


@kernel(examples=lambda: [(example_context(), empty_search(1, 1, 2), 0)])
def lower_bound(context: PlanningContext, search: StepPlanSearch, i: int) -> float:
    """Return a lower bound of the duration of all complete plans with this beginning [s]."""
    plans, params = search.plans, context.parameters
    min_swing_time = 0.5 * math.pi * params.min_swing_clearance / (RISE_FRACTION * params.foot_speed)
    swing_time_bound = 0.5 * plans.n_events[i] / (plans.in_stance.shape[1] - MIN_SUPPORT_FEET) * min_swing_time
    travel_time = (
        plans.body_sample[i] * PATH_SPACING + remaining_distance(context, search.paths, plans, i)
    ) / params.body_speed
    return float(max(swing_time_bound, travel_time))


@kernel(examples=lambda: [(example_context(), example_leg_arrays(), empty_search(2, 1, 2), np.uint64(1), 1)])
def search_branch_and_bound(
    context: PlanningContext, leg_arrays: LegArrays, search: StepPlanSearch, seed: np.uint64, events: int
) -> None:
    """Search trees depth first until a number of events has been tried."""
    plans, paths, log = search.plans, search.paths, search.log
    current, trial = plans.n_events.shape[0] - 2, plans.n_events.shape[0] - 1
    draws, distances, goal = np.empty(DRAWS_PER_EVENT), np.empty(current), search.counters[N_EVENTS] + events
    while search.counters[N_EVENTS] < goal:
        key = next_candidate_key(search, seed)
        if not start_candidate(context, search, 0, derive_key(key, 0), _MAX_PATH_ATTEMPTS):
            continue
        # open plans, the deepest last, and of one depth the nearest to the goal last
        n_open, n_leaves, branch_number = 1, 0, 0
        while (
            n_open > 0
            and n_leaves < _MAX_LEAVES
            and log.n_rows[0] + N_BRANCHES * _EVENTS_PER_BRANCH < log.previous.shape[0]
        ):
            n_open -= 1
            copy_plan(plans, n_open, current)
            first = n_open
            for _ in range(N_BRANCHES):
                branch_number += 1
                copy_plan(plans, current, trial)
                state = ALIVE
                for k in range(_EVENTS_PER_BRANCH):
                    event_key = derive_key(derive_key(key, branch_number), k)
                    for m in range(DRAWS_PER_EVENT):
                        draws[m] = uniform_draw(event_key, m)
                    state = expand_plan(context, paths, plans, log, trial, draws, True)
                    search.counters[N_EVENTS] += 1
                    if state != ALIVE:
                        break
                search.counters[N_CANDIDATES] += 1
                if state == ARRIVED:
                    submit_plan(context, leg_arrays, search, trial, True)
                if state != ALIVE or lower_bound(context, search, trial) >= search.best_cost[0] or n_open >= current:
                    n_leaves += 1
                    continue
                distance, slot = remaining_distance(context, paths, plans, trial), n_open
                while slot > first and distances[slot - 1] < distance:
                    copy_plan(plans, slot - 1, slot)
                    distances[slot] = distances[slot - 1]
                    slot -= 1
                copy_plan(plans, trial, slot)
                distances[slot] = distance
                n_open += 1


MCTS_MAX_NODES: Final = 128
"""Of a tree, at most; the last plan is the one that is drawn on."""
MCTS_LOG_ROWS: Final = 8_000
"""Of the log."""
_EVENTS_PER_NODE: Final = 6
"""Events from a node to its children."""
_EXPLORATION_WEIGHT: Final = 0.3


@kernel(examples=lambda: [(example_context(), example_leg_arrays(), empty_search(2, 1, 2), np.uint64(1), 1)])
def search_mcts(
    context: PlanningContext, leg_arrays: LegArrays, search: StepPlanSearch, seed: np.uint64, events: int
) -> None:
    """Grow trees until a number of events has been tried; a tree ends when it is full."""
    plans, paths, log, rollout = search.plans, search.paths, search.log, search.plans.n_events.shape[0] - 1
    parent, visits, total = np.empty(rollout, np.int64), np.empty(rollout), np.empty(rollout)
    children, draws, goal = np.empty(rollout), np.empty(DRAWS_PER_EVENT), search.counters[N_EVENTS] + events
    while search.counters[N_EVENTS] < goal:
        key = next_candidate_key(search, seed)
        if not start_candidate(context, search, 0, derive_key(key, 0), _MAX_PATH_ATTEMPTS):
            continue
        max_distance, nodes, best_cost, n_runs = remaining_distance(context, paths, plans, 0), 1, math.inf, 0
        max_distance = max(
            max_distance, math.hypot(context.goal[0] - context.start[0], context.goal[1] - context.start[1]), 1e-3
        )
        parent[0], visits[0], total[0], children[0] = -1, 0.0, 0.0, 0.0
        while nodes < rollout and n_runs < 2 * rollout:
            run_key = derive_key(key, 1 + n_runs)
            n_runs += 1
            node = 0
            while children[node] > 0.0 and children[node] >= 1.0 + math.sqrt(visits[node]):
                best, max_value = node, -math.inf
                for k in range(1, nodes):
                    if parent[k] == node:
                        value = total[k] / visits[k] + _EXPLORATION_WEIGHT * math.sqrt(
                            math.log(visits[node] + 1.0) / visits[k]
                        )
                        if value > max_value:
                            best, max_value = k, value
                node = best
            copy_plan(plans, node, rollout)
            search.counters[N_CANDIDATES] += 1
            state, child, n_events = ALIVE, node, 0
            n_log_rows = log.n_rows[0]
            while state == ALIVE:
                event_key = derive_key(run_key, n_events)
                for m in range(DRAWS_PER_EVENT):
                    draws[m] = uniform_draw(event_key, m)
                state = expand_plan(context, paths, plans, log, rollout, draws, n_events < _EVENTS_PER_NODE)
                search.counters[N_EVENTS] += 1
                n_events += 1
                if n_events == _EVENTS_PER_NODE and state == ALIVE:
                    child = nodes
                    nodes += 1
                    copy_plan(plans, rollout, child)
                    parent[child], visits[child], total[child], children[child] = node, 0.0, 0.0, 0.0
                    children[node] += 1.0
                    n_log_rows = log.n_rows[0]
            reward = 0.5 * (1.0 - min(remaining_distance(context, paths, plans, rollout) / max_distance, 1.0))
            if state == ARRIVED:
                cost = submit_plan(context, leg_arrays, search, rollout, True)
                best_cost = min(best_cost, cost)
                if math.isfinite(cost):
                    reward = 0.5 + 0.5 * best_cost / cost
            log.n_rows[0] = n_log_rows
            while child >= 0:
                visits[child] += 1.0
                total[child] += reward
                child = parent[child]


@kernel(examples=lambda: [(example_context(), example_leg_arrays(), empty_search(1, 1, 2), np.uint64(1), 1)])
def search_random(
    context: PlanningContext, leg_arrays: LegArrays, search: StepPlanSearch, seed: np.uint64, events: int
) -> None:
    """Sample candidates until a number of events has been tried."""
    paths, plans, log = search.paths, search.plans, search.log
    draws, goal = np.empty(DRAWS_PER_EVENT), search.counters[N_EVENTS] + events
    while search.counters[N_EVENTS] < goal:
        key = next_candidate_key(search, seed)
        if not start_candidate(context, search, 0, derive_key(key, 0), _MAX_PATH_ATTEMPTS):
            continue
        events_before = plans.n_events[0]
        state = expand_to_end(context, paths, plans, log, 0, key, draws)
        search.counters[N_EVENTS] += plans.n_events[0] - events_before + 1
        if state == ARRIVED:
            submit_plan(context, leg_arrays, search, 0, False)
