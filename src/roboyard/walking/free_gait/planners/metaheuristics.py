"""Metaheuristics over plan genomes: local search, tabu search, simulated annealing and a genetic algorithm.

A genome holds the random numbers with which a plan is sampled: the same numbers from the same start give the same plan,
and a changed number a similar one.  Local search moves to a neighbor that is not worse; tabu search to the best of a
few, except for recently changed events (Glover 1986); annealing to a worse one with a probability that falls
(Kirkpatrick, Gelatt and Vecchi 1983); the genetic algorithm crosses and mutates the better ones (Holland 1975).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.walking.free_gait.partial_plans import (
    MAX_EVENTS,
    PlanningContext,
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
    start_candidate,
    submit_plan,
)
from roboyard.walking.free_gait.step_constraints import remaining_distance
from roboyard.walking.free_gait.step_events import ALIVE, ARRIVED, DRAWS_PER_EVENT, expand_plan

_UNREACHED_COST: Final = 1e4
"""A plan that does not arrive is worse than any that does by this, and more the farther it ends [s]."""
_COST_PER_METER: Final = 1e3
_MAX_PATH_ATTEMPTS: Final = 8


class PlanGenomes(NamedTuple):
    """Plans as random numbers.

    Attributes:
        draws: (g, e, DRAWS_PER_EVENT) numbers from 0 up to 1.
        path_key: (g,) key of the body path.
        n_events: (g,) number of events that were used.
        cost: (g,) estimated cost [s]; more than 1e4 for a plan that does not arrive.
    """

    draws: Array
    path_key: NDArray[np.uint64]
    n_events: NDArray[np.int64]
    cost: Array


@kernel(examples=lambda: [(1,)])
def empty_genomes(count: int) -> PlanGenomes:
    """Return memory for genomes."""
    return PlanGenomes(
        np.zeros((count, MAX_EVENTS, DRAWS_PER_EVENT)),
        np.zeros(count, np.uint64),
        np.zeros(count, np.int64),
        np.zeros(count),
    )


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(empty_genomes(1), 0, np.uint64(1))])
def randomize_genome(genomes: PlanGenomes, g: int, key: np.uint64) -> None:
    """Sample all numbers of a genome."""
    genomes.path_key[g] = derive_key(key, 0)
    for e in range(MAX_EVENTS):
        event_key = derive_key(key, 1 + e)
        for m in range(DRAWS_PER_EVENT):
            genomes.draws[g, e, m] = uniform_draw(event_key, m)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(empty_genomes(2), 0, 1, 0, 1)])
def copy_genome(genomes: PlanGenomes, source: int, target: int, first: int, last: int) -> None:
    """Copy the numbers of some events; from the first event on, also the path."""
    for e in range(first, last):
        for m in range(DRAWS_PER_EVENT):
            genomes.draws[target, e, m] = genomes.draws[source, e, m]
    if first == 0:
        genomes.path_key[target] = genomes.path_key[source]
        genomes.n_events[target], genomes.cost[target] = genomes.n_events[source], genomes.cost[source]


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(empty_genomes(1), 0, 0, np.uint64(1))])
def mutate_genome(genomes: PlanGenomes, g: int, event: int, key: np.uint64) -> None:
    """Sample the numbers of one event anew; sometimes of all events after it, or, seldom, the path."""
    draw = uniform_draw(key, 0)
    last = MAX_EVENTS if draw < 0.3 else event + 1
    for e in range(event, last):
        event_key = derive_key(key, 1 + e)
        for m in range(DRAWS_PER_EVENT):
            genomes.draws[g, e, m] = uniform_draw(event_key, m)
    if draw > 0.95:
        genomes.path_key[g] = derive_key(key, 0)


@kernel(examples=lambda: [(example_context(), example_leg_arrays(), empty_search(1, 1, 2), empty_genomes(1), 0)])
def decode_genome(
    context: PlanningContext, leg_arrays: LegArrays, search: StepPlanSearch, genomes: PlanGenomes, g: int
) -> None:
    """Build the plan of a genome, and compute its cost."""
    plans, paths, log = search.plans, search.paths, search.log
    log.n_rows[0] = 0
    search.counters[N_EVENTS] += 1
    genomes.n_events[g], genomes.cost[g] = 0, np.inf
    if not start_candidate(context, search, 0, genomes.path_key[g], _MAX_PATH_ATTEMPTS):
        return
    state, first = ALIVE, plans.n_events[0]
    while state == ALIVE:
        state = expand_plan(context, paths, plans, log, 0, genomes.draws[g, plans.n_events[0] - first], False)
        search.counters[N_EVENTS] += 1
    genomes.n_events[g] = plans.n_events[0] - first
    genomes.cost[g] = _UNREACHED_COST + _COST_PER_METER * remaining_distance(context, paths, plans, 0)
    if state == ARRIVED:
        genomes.cost[g] = min(submit_plan(context, leg_arrays, search, 0, True), genomes.cost[g])


_N_STEPS: Final = 60
"""From each plan that is begun with."""
_N_NEIGHBORS: Final = 5
"""That tabu search looks at before it goes to one."""
_TABU_TENURE: Final = 8
"""Steps for which an event that was changed stays as it is."""
_INITIAL_TEMPERATURE: Final = 0.1
"""Share of a plan's cost by which one that is worse is taken with a chance of 1/e, at first."""
_COOLING: Final = 0.93
"""And after each step the last share times this."""


@kernel(
    examples=lambda: [
        (example_context(), example_leg_arrays(), empty_search(1, 1, 2), np.uint64(1), 1, _INITIAL_TEMPERATURE, 1, 0)
    ]
)
def _search_neighbors(
    context: PlanningContext,
    leg_arrays: LegArrays,
    search: StepPlanSearch,
    seed: np.uint64,
    events: int,
    initial_temperature: float,
    n_neighbors: int,
    tabu_tenure: int,
) -> None:
    goal, genomes = search.counters[N_EVENTS] + events, empty_genomes(3)
    current, neighbor, best = 0, 1, 2
    changed_at = np.empty(MAX_EVENTS, np.int64)
    while search.counters[N_EVENTS] < goal:
        key = derive_key(seed, search.counters[N_CANDIDATES])
        search.counters[N_CANDIDATES] += 1
        randomize_genome(genomes, current, key)
        decode_genome(context, leg_arrays, search, genomes, current)
        changed_at[:], temperature = -tabu_tenure - 1, initial_temperature
        for step in range(_N_STEPS):
            if genomes.n_events[current] == 0:
                break
            genomes.cost[best], changed_event = math.inf, -1
            for k in range(n_neighbors):
                neighbor_key = derive_key(derive_key(key, MAX_EVENTS + step), k)
                event = int(uniform_draw(neighbor_key, 1) * genomes.n_events[current])
                if step - changed_at[event] <= tabu_tenure:
                    continue
                search.counters[N_CANDIDATES] += 1
                copy_genome(genomes, current, neighbor, 0, MAX_EVENTS)
                mutate_genome(genomes, neighbor, event, neighbor_key)
                decode_genome(context, leg_arrays, search, genomes, neighbor)
                if genomes.cost[neighbor] < genomes.cost[best]:
                    copy_genome(genomes, neighbor, best, 0, MAX_EVENTS)
                    changed_event = event
            if changed_event < 0:
                continue
            cost_increase = genomes.cost[best] / genomes.cost[current] - 1.0
            is_accepted_by_chance = temperature > 0.0 and uniform_draw(
                derive_key(key, 3 * MAX_EVENTS + step), 0
            ) < math.exp(-max(cost_increase, 0.0) / temperature)
            if cost_increase <= 0.0 or is_accepted_by_chance or tabu_tenure > 0:
                copy_genome(genomes, best, current, 0, MAX_EVENTS)
                changed_at[changed_event] = step
            temperature *= _COOLING


@kernel(examples=lambda: [(example_context(), example_leg_arrays(), empty_search(1, 1, 2), np.uint64(1), 1)])
def search_local(
    context: PlanningContext, leg_arrays: LegArrays, search: StepPlanSearch, seed: np.uint64, events: int
) -> None:
    """Local search: continue from a neighbor that is not worse."""
    _search_neighbors(context, leg_arrays, search, seed, events, 0.0, 1, 0)


@kernel(examples=lambda: [(example_context(), example_leg_arrays(), empty_search(1, 1, 2), np.uint64(1), 1)])
def search_annealing(
    context: PlanningContext, leg_arrays: LegArrays, search: StepPlanSearch, seed: np.uint64, events: int
) -> None:
    """Simulated annealing: continue from a worse neighbor with a falling probability."""
    _search_neighbors(context, leg_arrays, search, seed, events, _INITIAL_TEMPERATURE, 1, 0)


@kernel(examples=lambda: [(example_context(), example_leg_arrays(), empty_search(1, 1, 2), np.uint64(1), 1)])
def search_tabu(
    context: PlanningContext, leg_arrays: LegArrays, search: StepPlanSearch, seed: np.uint64, events: int
) -> None:
    """Tabu search: continue from the best of a few neighbors, except for recently changed events."""
    _search_neighbors(context, leg_arrays, search, seed, events, 0.0, _N_NEIGHBORS, _TABU_TENURE)


_POPULATION_SIZE: Final = 16
_N_GENERATIONS: Final = 12
_TOURNAMENT_SIZE: Final = 3
"""Drawn, of which the best becomes a parent."""
_CROSSOVER_RATE: Final = 0.6
_MUTATION_RATE: Final = 0.8


@kernel(examples=lambda: [(example_context(), example_leg_arrays(), empty_search(1, 1, 2), np.uint64(1), 1)])
def search_genetic(
    context: PlanningContext, leg_arrays: LegArrays, search: StepPlanSearch, seed: np.uint64, events: int
) -> None:
    """Evolve populations until a number of events has been tried; each child replaces the worst plan if it is
    better."""
    goal, genomes, child = search.counters[N_EVENTS] + events, empty_genomes(_POPULATION_SIZE + 1), _POPULATION_SIZE
    while search.counters[N_EVENTS] < goal:
        key = derive_key(seed, search.counters[N_CANDIDATES])
        for g in range(_POPULATION_SIZE):
            search.counters[N_CANDIDATES] += 1
            randomize_genome(genomes, g, derive_key(key, g))
            decode_genome(context, leg_arrays, search, genomes, g)
        for generation_step in range(_POPULATION_SIZE * _N_GENERATIONS):
            child_key = derive_key(key, _POPULATION_SIZE + generation_step)
            parents = np.empty(2, np.int64)
            for p in range(2):
                best = int(uniform_draw(child_key, p * _TOURNAMENT_SIZE) * _POPULATION_SIZE)
                for k in range(1, _TOURNAMENT_SIZE):
                    rival = int(uniform_draw(child_key, p * _TOURNAMENT_SIZE + k) * _POPULATION_SIZE)
                    if genomes.cost[rival] < genomes.cost[best]:
                        best = rival
                parents[p] = best
            copy_genome(genomes, parents[0], child, 0, MAX_EVENTS)
            length = max(genomes.n_events[parents[0]], 1)
            if uniform_draw(child_key, 20) < _CROSSOVER_RATE:
                copy_genome(genomes, parents[1], child, 1 + int(uniform_draw(child_key, 21) * length), MAX_EVENTS)
            if uniform_draw(child_key, 22) < _MUTATION_RATE:
                mutate_genome(genomes, child, int(uniform_draw(child_key, 23) * length), derive_key(child_key, 24))
            search.counters[N_CANDIDATES] += 1
            decode_genome(context, leg_arrays, search, genomes, child)
            worst = 0
            for g in range(1, _POPULATION_SIZE):
                if genomes.cost[g] > genomes.cost[worst]:
                    worst = g
            if genomes.cost[child] < genomes.cost[worst]:
                copy_genome(genomes, child, worst, 0, MAX_EVENTS)
