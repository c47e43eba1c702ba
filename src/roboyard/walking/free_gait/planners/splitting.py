"""Splitting: partial plans that advanced are stored and continued from there again and again.

Where few paths through exist, plans that found the beginning of one are not dropped after the first failure.  For each
small square that the body can reach one partial plan is stored; the one nearest to the goal that was not continued too
often is copied, possibly switched to another path, and expanded by a few events; the result is stored in turn.  After
Kahn and Harris 1951, as for rare events; squares as in Ecoffet et al. 2021, First return, then explore.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

import numpy as np

from roboyard.compute import kernel
from roboyard.config import parameter
from roboyard.errors import ConfigError
from roboyard.geometry.arrays import Array
from roboyard.walking.free_gait.partial_plans import (
    BodyPaths,
    EventLog,
    PartialPlans,
    SearchState,
    StepEvent,
    copy_path,
    copy_plan,
    derive_key,
    example_search_state,
    uniform_draw,
)
from roboyard.walking.free_gait.planners.planner import KernelStepPlanner, PlannerTraits, SearchKernel
from roboyard.walking.free_gait.search import (
    FAILED_EVENT,
    N_CANDIDATES,
    N_EVENTS,
    SearchCapacity,
    StepPlanSearch,
    example_search,
    start_candidate,
    submit_plan,
)
from roboyard.walking.free_gait.step_constraints import remaining_distance
from roboyard.walking.free_gait.step_events import (
    DRAWS_PER_EVENT,
    PlanState,
    expand_plan,
    expand_to_end,
    switch_path,
)

MAX_LOG_ROWS: Final = 60_000
"""Number of rows of the log."""
_SQUARES_PER_SIDE: Final = 64
"""Number of squares along each axis, after which their indices repeat."""
_MAX_PATH_ATTEMPTS: Final = 8
_MAX_ARRIVAL_SCORE: Final = 8
"""Sum of the scores of arrivals that ends a population; the first plan of a search ends its population at once."""
_REJECTED_ARRIVAL_SCORE: Final = 1
_LATER_ARRIVAL_SCORE: Final = 3


class SplittingParameters(NamedTuple):
    """Parameters of the kernels, as `SplittingPlanner` declares them."""

    square_size: float
    n_initial_plans: int
    events_per_round: int
    revisit_penalty: float
    detour_probability: float
    rejection_penalty: float
    max_events_per_population: int


_EXAMPLE: Final = SplittingParameters(0.06, 4, 8, 0.02, 0.4, 0.3, 60_000)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*example_search_state()[1:3], 0, 0.06)])
def square_index(paths: BodyPaths, plans: PartialPlans, i: int, square_size: float) -> int:
    """Return the index of the square, with edges of ``square_size`` [m], that the body of a plan can reach."""
    w, sample = plans.path[i], plans.body_interval[i, 1]
    a = math.floor(paths.positions[w, sample, 0] / square_size) % _SQUARES_PER_SIDE
    b = math.floor(paths.positions[w, sample, 1] / square_size) % _SQUARES_PER_SIDE
    return int(a * _SQUARES_PER_SIDE + b)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*example_search_state()[1:3], 0, 0)])
def copy_plan_and_path(paths: BodyPaths, plans: PartialPlans, source: int, target: int) -> None:
    """Copy a plan together with its own path."""
    copy_plan(plans, source, target)
    plans.path[target] = target
    copy_path(paths, source, target)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_search_state(), _EXAMPLE, 0, 0, np.uint64(1))])
def branch_from(state: SearchState, parameters: SplittingParameters, source: int, target: int, key: np.uint64) -> None:
    """Copy a plan, and possibly switch the copy to another path."""
    paths, plans = state.paths, state.plans
    copy_plan_and_path(paths, plans, source, target)
    if (
        uniform_draw(key, 0) < parameters.detour_probability
        and switch_path(state, target, uniform_draw(key, 1), uniform_draw(key, 2)) == PlanState.DEAD
    ):
        copy_plan_and_path(paths, plans, source, target)


@kernel(no_refcount=True, examples=lambda: [(*example_search_state()[2:], 0, 0, np.zeros(1), 0.3)])
def penalize_prefix(
    plans: PartialPlans, log: EventLog, i: int, n_events: int, penalties: Array, penalty: float
) -> None:
    """Add a penalty [m] to the stored plans that share the first events of a plan after which it was rejected."""
    row, remaining_events = plans.last_log_row[i], plans.n_events[i]
    while row >= 0 and remaining_events > n_events:
        remaining_events -= log.kind[row] != StepEvent.PATH_CHANGE
        row = log.previous[row]
    while row >= 0 and log.kind[row] == StepEvent.PATH_CHANGE:
        row = log.previous[row]
    for k in range(penalties.shape[0]):
        row_of_plan = plans.last_log_row[k]
        while row_of_plan > row:
            row_of_plan = log.previous[row_of_plan]
        if row_of_plan == row:
            penalties[k] += penalty


@kernel(examples=lambda: [(example_search(), _EXAMPLE, np.uint64(1), 1)])
def search_splitting(search: StepPlanSearch, parameters: SplittingParameters, key: np.uint64, max_events: int) -> None:
    """Expand populations of partial plans until a number of events has been tried; a population is never left
    unfinished."""
    state = search.state
    context, paths, plans, log = state
    n_plans = plans.n_events.shape[0]
    draws, goal = np.empty(DRAWS_PER_EVENT), search.counters[N_EVENTS] + max_events
    slots, goal_distances, penalties = (
        np.empty(_SQUARES_PER_SIDE * _SQUARES_PER_SIDE, np.int64),
        np.empty(n_plans),
        np.empty(n_plans),
    )
    trial, square_size = n_plans - 1, parameters.square_size * context.parameters.robot_scale
    while search.counters[N_EVENTS] < goal:
        population_key = derive_key(key, search.counters[N_CANDIDATES])
        log.n_rows[0], slots[:], n_stored, total_arrival_score, n_rounds = 0, -1, 0, 0, 0
        # the first plan of a search ends its population, so that the caller receives it at once
        arrival_score = _LATER_ARRIVAL_SCORE if math.isfinite(search.best_cost[0]) else _MAX_ARRIVAL_SCORE
        search.counters[N_EVENTS] += 1
        max_total_events = search.counters[N_EVENTS] + parameters.max_events_per_population
        for i in range(parameters.n_initial_plans):
            search.counters[N_CANDIDATES] += 1
            if start_candidate(search, n_stored, derive_key(population_key, i), 1 if i > 0 else _MAX_PATH_ATTEMPTS):
                goal_distances[n_stored], penalties[n_stored] = remaining_distance(context, paths, plans, n_stored), 0.0
                n_stored += 1
                # without obstacles, a plan that is sampled as a whole arrives, with fewer steps than one in pieces
                n_log_rows = log.n_rows[0]
                copy_plan_and_path(paths, plans, n_stored - 1, trial)
                events_before = plans.n_events[trial]
                plan_state = expand_to_end(state, trial, derive_key(population_key, i), draws)
                search.counters[N_EVENTS] += plans.n_events[trial] - events_before + 1
                if plan_state == PlanState.ARRIVED:
                    total_arrival_score += (
                        _REJECTED_ARRIVAL_SCORE if math.isinf(submit_plan(search, trial, True)) else arrival_score
                    )
                log.n_rows[0] = n_log_rows
        while (
            n_stored > 0 and total_arrival_score < _MAX_ARRIVAL_SCORE and search.counters[N_EVENTS] < max_total_events
        ):
            round_key = derive_key(population_key, parameters.n_initial_plans + n_rounds)
            n_rounds += 1
            best_index, min_value = 0, math.inf
            for i in range(n_stored):
                value = goal_distances[i] + penalties[i]
                if value < min_value:
                    best_index, min_value = i, value
            penalties[best_index] += parameters.revisit_penalty
            search.counters[N_CANDIDATES] += 1
            n_log_rows = log.n_rows[0]
            branch_from(state, parameters, best_index, trial, derive_key(round_key, n_plans))
            plan_state = PlanState.ALIVE
            for k in range(parameters.events_per_round):
                for m in range(DRAWS_PER_EVENT):
                    draws[m] = uniform_draw(round_key, n_plans + 1 + k * DRAWS_PER_EVENT + m)
                plan_state = expand_plan(state, trial, draws, True)
                search.counters[N_EVENTS] += 1
                if plan_state != PlanState.ALIVE:
                    break
            if plan_state == PlanState.ARRIVED:
                is_rejected = math.isinf(submit_plan(search, trial, True))
                total_arrival_score += _REJECTED_ARRIVAL_SCORE if is_rejected else arrival_score
                if is_rejected:
                    penalize_prefix(
                        plans,
                        log,
                        trial,
                        search.counters[FAILED_EVENT],
                        penalties[:n_stored],
                        parameters.rejection_penalty,
                    )
            elif plan_state == PlanState.ALIVE:
                square, goal_distance = (
                    square_index(paths, plans, trial, square_size),
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


@dataclass(frozen=True)
class SplittingPlanner(KernelStepPlanner):
    """Splitting: plans that advanced are stored, one for each small square, and continued from there again and again.

    Take it where footholds are scarce: it finds plans where the others find none.  It is the default.
    """

    traits: ClassVar[PlannerTraits] = PlannerTraits(
        idea="stores one partial plan for each square that the body reaches, and continues the one nearest to the goal",
        references=(
            "Kahn, Harris: Estimation of particle transmission by random sampling, NBS Appl. Math. Series 12, 1951",
            "Ecoffet, Huizinga, Lehman, Stanley, Clune: First return, then explore, Nature 590, 2021",
        ),
        completeness="probabilistic",
    )
    search_kernel: ClassVar[SearchKernel] = staticmethod(search_splitting)
    parameters_type: ClassVar[type[NamedTuple]] = SplittingParameters

    max_plans: int = parameter(512, low=2, high=10_000, doc="Number of stored plans and the one that is continued.")
    square_size: float = parameter(0.06, unit="m", low=0.005, high=1.0, doc="Edge of the squares, for the Akrobat.")
    n_initial_plans: int = parameter(4, low=1, high=1000, doc="Number of plans that start a population.")
    events_per_round: int = parameter(8, low=1, high=100, doc="Number of events by which a plan is continued.")
    revisit_penalty: float = parameter(
        0.02, unit="m", low=0.0, high=10.0, doc="Distance by which each continuation makes a plan count as farther."
    )
    detour_probability: float = parameter(
        0.4, low=0.0, high=1.0, doc="Probability that a continued plan takes another body path."
    )
    rejection_penalty: float = parameter(
        0.3, unit="m", low=0.0, high=10.0, doc="The same for plans that start with the events of a rejected plan."
    )
    max_events_per_population: int = parameter(
        60_000, low=100, high=10_000_000, doc="Number of events after which a new population starts."
    )

    def __post_init__(self) -> None:
        """Check the parameters. Raises ConfigError: one is out of its bounds, or the initial plans do not fit."""
        super().__post_init__()
        if self.n_initial_plans >= self.max_plans:
            raise ConfigError(
                f"n_initial_plans {self.n_initial_plans}",
                location="step planner SplittingPlanner",
                valid=f"less than max_plans, {self.max_plans}",
            )

    @property
    def capacity(self) -> SearchCapacity:
        """Memory of a search."""
        return SearchCapacity(self.max_plans, MAX_LOG_ROWS)
