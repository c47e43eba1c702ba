"""Metaheuristics over plan genomes: local search, tabu search, simulated annealing and a genetic algorithm.

A genome holds the random numbers with which a plan is sampled: the same numbers from the same start give the same plan,
and a changed number a similar one.  Local search moves to a neighbor that is not worse; tabu search to the best of a
few, except for recently changed events (Glover 1986); annealing to a worse one with a probability that falls
(Kirkpatrick, Gelatt and Vecchi 1983); the genetic algorithm crosses and mutates the better ones (Holland 1975).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.config import parameter
from roboyard.geometry.arrays import Array
from roboyard.walking.free_gait.partial_plans import (
    MAX_EVENTS,
    derive_key,
    uniform_draw,
)
from roboyard.walking.free_gait.planners.planner import KernelStepPlanner, PlannerTraits, SearchKernel
from roboyard.walking.free_gait.search import (
    N_CANDIDATES,
    N_EVENTS,
    SearchCapacity,
    StepPlanSearch,
    example_search,
    start_candidate,
    submit_plan,
)
from roboyard.walking.free_gait.step_constraints import remaining_distance
from roboyard.walking.free_gait.step_events import DRAWS_PER_EVENT, PlanState, expand_plan

_UNREACHED_COST: Final = 1e4
"""Cost of a plan that does not arrive, to which its distance from the goal is added [s]."""
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


@kernel(examples=lambda: [(example_search(), empty_genomes(1), 0)])
def decode_genome(search: StepPlanSearch, genomes: PlanGenomes, g: int) -> None:
    """Build the plan of a genome, and compute its cost."""
    state = search.state
    context, paths, plans, log = state
    log.n_rows[0] = 0
    search.counters[N_EVENTS] += 1
    genomes.n_events[g], genomes.cost[g] = 0, np.inf
    if not start_candidate(search, 0, genomes.path_key[g], _MAX_PATH_ATTEMPTS):
        return
    plan_state, first = PlanState.ALIVE, plans.n_events[0]
    while plan_state == PlanState.ALIVE:
        plan_state = expand_plan(state, 0, genomes.draws[g, plans.n_events[0] - first], False)
        search.counters[N_EVENTS] += 1
    genomes.n_events[g] = plans.n_events[0] - first
    genomes.cost[g] = _UNREACHED_COST + _COST_PER_METER * remaining_distance(context, paths, plans, 0)
    if plan_state == PlanState.ARRIVED:
        genomes.cost[g] = min(submit_plan(search, 0, True), genomes.cost[g])


class NeighborhoodParameters(NamedTuple):
    """Parameters of `search_neighborhood`, as the planners declare those that they use.

    Attributes:
        n_steps: Number of steps from each initial plan.
        n_neighbors: Number of neighbors of which the best is compared.
        tabu_tenure: Steps for which a changed event stays; 0: a worse neighbor is not taken for that reason.
        initial_temperature: Relative increase of the cost that is taken with probability 1/e at first; 0: none is.
        cooling: Factor on the temperature after each step.
    """

    n_steps: int
    n_neighbors: int
    tabu_tenure: int
    initial_temperature: float
    cooling: float


@kernel(examples=lambda: [(example_search(), NeighborhoodParameters(60, 1, 0, 0.0, 0.93), np.uint64(1), 1)])
def search_neighborhood(
    search: StepPlanSearch, parameters: NeighborhoodParameters, key: np.uint64, max_events: int
) -> None:
    """Move from plan to plan through the neighbors that differ in one event, until a number of events was tried.

    Local search, tabu search and simulated annealing differ in their parameters only.
    """
    goal, genomes = search.counters[N_EVENTS] + max_events, empty_genomes(3)
    current, neighbor, best = 0, 1, 2
    changed_at = np.empty(MAX_EVENTS, np.int64)
    while search.counters[N_EVENTS] < goal:
        start_key = derive_key(key, search.counters[N_CANDIDATES])
        search.counters[N_CANDIDATES] += 1
        randomize_genome(genomes, current, start_key)
        decode_genome(search, genomes, current)
        changed_at[:], temperature = -parameters.tabu_tenure - 1, parameters.initial_temperature
        for step in range(parameters.n_steps):
            if genomes.n_events[current] == 0:
                break
            genomes.cost[best], changed_event = math.inf, -1
            for k in range(parameters.n_neighbors):
                neighbor_key = derive_key(derive_key(start_key, MAX_EVENTS + step), k)
                event = int(uniform_draw(neighbor_key, 1) * genomes.n_events[current])
                if step - changed_at[event] <= parameters.tabu_tenure:
                    continue
                search.counters[N_CANDIDATES] += 1
                copy_genome(genomes, current, neighbor, 0, MAX_EVENTS)
                mutate_genome(genomes, neighbor, event, neighbor_key)
                decode_genome(search, genomes, neighbor)
                if genomes.cost[neighbor] < genomes.cost[best]:
                    copy_genome(genomes, neighbor, best, 0, MAX_EVENTS)
                    changed_event = event
            if changed_event < 0:
                continue
            cost_increase = genomes.cost[best] / genomes.cost[current] - 1.0
            is_accepted_by_chance = temperature > 0.0 and uniform_draw(
                derive_key(start_key, 3 * MAX_EVENTS + step), 0
            ) < math.exp(-max(cost_increase, 0.0) / temperature)
            if cost_increase <= 0.0 or is_accepted_by_chance or parameters.tabu_tenure > 0:
                copy_genome(genomes, best, current, 0, MAX_EVENTS)
                changed_at[changed_event] = step
            temperature *= parameters.cooling


class GeneticParameters(NamedTuple):
    """Parameters of the kernel, as `GeneticPlanner` declares them."""

    population_size: int
    n_generations: int
    tournament_size: int
    crossover_rate: float
    mutation_rate: float


@kernel(examples=lambda: [(example_search(), GeneticParameters(16, 12, 3, 0.6, 0.8), np.uint64(1), 1)])
def search_genetic(search: StepPlanSearch, parameters: GeneticParameters, key: np.uint64, max_events: int) -> None:
    """Evolve populations until a number of events has been tried; each child replaces the worst plan if it is
    better."""
    goal, child = search.counters[N_EVENTS] + max_events, parameters.population_size
    genomes = empty_genomes(child + 1)
    while search.counters[N_EVENTS] < goal:
        population_key = derive_key(key, search.counters[N_CANDIDATES])
        for g in range(parameters.population_size):
            search.counters[N_CANDIDATES] += 1
            randomize_genome(genomes, g, derive_key(population_key, g))
            decode_genome(search, genomes, g)
        for generation_step in range(parameters.population_size * parameters.n_generations):
            child_key = derive_key(population_key, parameters.population_size + generation_step)
            parents = np.empty(2, np.int64)
            for p in range(2):
                best = int(uniform_draw(child_key, p * parameters.tournament_size) * parameters.population_size)
                for k in range(1, parameters.tournament_size):
                    rival = int(
                        uniform_draw(child_key, p * parameters.tournament_size + k) * parameters.population_size
                    )
                    if genomes.cost[rival] < genomes.cost[best]:
                        best = rival
                parents[p] = best
            copy_genome(genomes, parents[0], child, 0, MAX_EVENTS)
            length = max(genomes.n_events[parents[0]], 1)
            if uniform_draw(child_key, 20) < parameters.crossover_rate:
                copy_genome(genomes, parents[1], child, 1 + int(uniform_draw(child_key, 21) * length), MAX_EVENTS)
            if uniform_draw(child_key, 22) < parameters.mutation_rate:
                mutate_genome(genomes, child, int(uniform_draw(child_key, 23) * length), derive_key(child_key, 24))
            search.counters[N_CANDIDATES] += 1
            decode_genome(search, genomes, child)
            worst = 0
            for g in range(1, parameters.population_size):
                if genomes.cost[g] > genomes.cost[worst]:
                    worst = g
            if genomes.cost[child] < genomes.cost[worst]:
                copy_genome(genomes, child, worst, 0, MAX_EVENTS)


_N_STEPS = 60
_N_STEPS_DOC = "Number of steps from each initial plan."


@dataclass(frozen=True)
class _GenomePlanner(KernelStepPlanner):
    """Planner over plan genomes: a search stores one plan at a time."""

    @property
    def capacity(self) -> SearchCapacity:
        """Memory of a search."""
        return SearchCapacity(1, MAX_EVENTS + 2)


@dataclass(frozen=True)
class LocalSearchPlanner(_GenomePlanner):
    """Local search: from a plan to a neighbor that is not worse, with restarts from random plans.

    Take it on easy ground with a few seconds of time, where it ends with better plans than `splitting`.
    """

    traits: ClassVar[PlannerTraits] = PlannerTraits(
        idea="samples the numbers of one event anew, and keeps the plan if it is not worse",
        references=("Aarts, Lenstra: Local search in combinatorial optimization, Wiley 1997",),
        completeness="probabilistic",
    )
    search_kernel: ClassVar[SearchKernel] = staticmethod(search_neighborhood)

    n_steps: int = parameter(_N_STEPS, low=1, high=1_000_000, doc=_N_STEPS_DOC)

    def kernel_parameters(self) -> NeighborhoodParameters:
        """Return the parameters of the kernel."""
        return NeighborhoodParameters(self.n_steps, 1, 0, 0.0, 1.0)


@dataclass(frozen=True)
class AnnealingPlanner(_GenomePlanner):
    """Simulated annealing: from a plan to a neighbor, also to a worse one with a probability that falls.

    Take it on easy ground with a few seconds of time.
    """

    traits: ClassVar[PlannerTraits] = PlannerTraits(
        idea="as local search, but takes a worse plan with a probability that falls",
        references=("Kirkpatrick, Gelatt, Vecchi: Optimization by simulated annealing, Science 220, 1983",),
        completeness="probabilistic",
    )
    search_kernel: ClassVar[SearchKernel] = staticmethod(search_neighborhood)

    n_steps: int = parameter(_N_STEPS, low=1, high=1_000_000, doc=_N_STEPS_DOC)
    initial_temperature: float = parameter(
        0.1, low=1e-6, high=100.0, doc="Relative increase of the cost that is taken with probability 1/e at first."
    )
    cooling: float = parameter(0.93, low=0.0, high=1.0, doc="Factor on the temperature after each step.")

    def kernel_parameters(self) -> NeighborhoodParameters:
        """Return the parameters of the kernel."""
        return NeighborhoodParameters(self.n_steps, 1, 0, self.initial_temperature, self.cooling)


@dataclass(frozen=True)
class TabuSearchPlanner(_GenomePlanner):
    """Tabu search: from a plan to the best of a few neighbors, even if it is worse, but for recently changed events.

    Take it on easy ground with a few seconds of time.
    """

    traits: ClassVar[PlannerTraits] = PlannerTraits(
        idea="takes the best of a few neighbors; an event that was changed stays for some steps",
        references=(
            "Glover: Future paths for integer programming and links to artificial intelligence, Computers and "
            "Operations Research 13, 1986",
        ),
        completeness="probabilistic",
    )
    search_kernel: ClassVar[SearchKernel] = staticmethod(search_neighborhood)

    n_steps: int = parameter(_N_STEPS, low=1, high=1_000_000, doc=_N_STEPS_DOC)
    n_neighbors: int = parameter(5, low=1, high=1000, doc="Number of neighbors of which the best is taken.")
    tabu_tenure: int = parameter(8, low=1, high=1000, doc="Number of steps for which a changed event stays.")

    def kernel_parameters(self) -> NeighborhoodParameters:
        """Return the parameters of the kernel."""
        return NeighborhoodParameters(self.n_steps, self.n_neighbors, self.tabu_tenure, 0.0, 1.0)


@dataclass(frozen=True)
class GeneticPlanner(_GenomePlanner):
    """Genetic algorithm: a population of plans, of which the better ones are crossed and mutated.

    Take it on easy ground with a few seconds of time, where it ends with some of the best plans.
    """

    traits: ClassVar[PlannerTraits] = PlannerTraits(
        idea="crosses and mutates the better plans of a population; a child replaces the worst",
        references=("Holland: Adaptation in natural and artificial systems, University of Michigan Press 1975",),
        completeness="probabilistic",
    )
    search_kernel: ClassVar[SearchKernel] = staticmethod(search_genetic)
    parameters_type: ClassVar[type[NamedTuple]] = GeneticParameters

    population_size: int = parameter(16, low=2, high=1000, doc="Number of plans of a population.")
    n_generations: int = parameter(
        12, low=1, high=100_000, doc="Number of children of a population, as a multiple of its size."
    )
    tournament_size: int = parameter(3, low=1, high=8, doc="Number of sampled plans of which the best is a parent.")
    crossover_rate: float = parameter(0.6, low=0.0, high=1.0, doc="Probability that a child has two parents.")
    mutation_rate: float = parameter(0.8, low=0.0, high=1.0, doc="Probability that an event of a child is mutated.")
