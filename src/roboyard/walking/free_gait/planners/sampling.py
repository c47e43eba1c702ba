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
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from roboyard.compute import kernel
from roboyard.config import parameter
from roboyard.walking.free_gait.partial_plans import (
    MAX_EVENTS,
    PATH_SPACING,
    copy_plan,
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
    next_candidate_key,
    start_candidate,
    submit_plan,
)
from roboyard.walking.free_gait.step_constraints import remaining_distance
from roboyard.walking.free_gait.step_events import DRAWS_PER_EVENT, PlanState, expand_plan, expand_to_end
from roboyard.walking.free_gait.step_plan import RISE_FRACTION
from roboyard.walking.statics import MIN_SUPPORT_FEET


class RandomSamplingParameters(NamedTuple):
    """Parameters of the kernel, as `RandomSamplingPlanner` declares them."""

    max_path_attempts: int


class GreedyParameters(NamedTuple):
    """Parameters of the kernel, as `GreedyPlanner` declares them."""

    max_path_attempts: int


class BranchAndBoundParameters(NamedTuple):
    """Parameters of the kernel, as `BranchAndBoundPlanner` declares them."""

    n_branches: int
    events_per_branch: int
    max_leaves: int
    max_path_attempts: int


class MctsParameters(NamedTuple):
    """Parameters of the kernel, as `MctsPlanner` declares them."""

    events_per_node: int
    exploration_weight: float
    max_path_attempts: int


@kernel(examples=lambda: [(example_search(), GreedyParameters(32), np.uint64(1), 1)])
def search_greedy(search: StepPlanSearch, parameters: GreedyParameters, key: np.uint64, max_events: int) -> None:
    """Run greedy candidates, one after the other, until a number of events has been tried."""
    state = search.state
    plans = state.plans
    draws, goal = np.empty(DRAWS_PER_EVENT), search.counters[N_EVENTS] + max_events
    while search.counters[N_EVENTS] < goal:
        candidate_key = next_candidate_key(search, key)
        if not start_candidate(search, 0, derive_key(candidate_key, 0), parameters.max_path_attempts):
            continue
        n_events, plan_state = 0, PlanState.ALIVE
        while plan_state == PlanState.ALIVE:
            event_key, best, max_sample = derive_key(candidate_key, 2 + n_events), -1, -1
            n_events += 1
            for i in range(1, plans.n_events.shape[0]):
                copy_plan(plans, 0, i)
                for k in range(DRAWS_PER_EVENT):
                    draws[k] = uniform_draw(event_key, i * DRAWS_PER_EVENT + k)
                trial_state = expand_plan(state, i, draws, True)
                search.counters[N_EVENTS] += 1
                if trial_state in (PlanState.ARRIVED, PlanState.LOG_FULL):
                    plan_state = trial_state
                    break
                if trial_state == PlanState.ALIVE and plans.body_interval[i, 1] > max_sample:
                    best, max_sample = i, plans.body_interval[i, 1]
            if plan_state != PlanState.ALIVE or best < 0:
                break
            copy_plan(plans, best, 0)
        if plan_state == PlanState.ARRIVED:
            submit_plan(search, 0, True)


@kernel(examples=lambda: [(example_search(), 0)])
def lower_bound(search: StepPlanSearch, i: int) -> float:
    """Return a lower bound of the duration of all complete plans with this beginning [s]."""
    context, paths, plans, _ = search.state
    params = context.parameters
    min_swing_time = 0.5 * math.pi * params.min_swing_clearance / (RISE_FRACTION * params.foot_speed)
    swing_time_bound = 0.5 * plans.n_events[i] / (plans.in_stance.shape[1] - MIN_SUPPORT_FEET) * min_swing_time
    travel_time = (
        plans.body_sample[i] * PATH_SPACING + remaining_distance(context, paths, plans, i)
    ) / params.body_speed
    return float(max(swing_time_bound, travel_time))


@kernel(examples=lambda: [(example_search(2), BranchAndBoundParameters(4, 4, 400, 32), np.uint64(1), 1)])
def search_branch_and_bound(
    search: StepPlanSearch, parameters: BranchAndBoundParameters, key: np.uint64, max_events: int
) -> None:
    """Search trees depth first until a number of events has been tried."""
    state = search.state
    context, paths, plans, log = state
    current, trial = plans.n_events.shape[0] - 2, plans.n_events.shape[0] - 1
    draws, distances, goal = np.empty(DRAWS_PER_EVENT), np.empty(current), search.counters[N_EVENTS] + max_events
    while search.counters[N_EVENTS] < goal:
        candidate_key = next_candidate_key(search, key)
        if not start_candidate(search, 0, derive_key(candidate_key, 0), parameters.max_path_attempts):
            continue
        # open plans are sorted by depth, and those of one depth by falling distance to the goal
        n_open, n_leaves, branch_number = 1, 0, 0
        while (
            n_open > 0
            and n_leaves < parameters.max_leaves
            and log.n_rows[0] + parameters.n_branches * parameters.events_per_branch < log.previous.shape[0]
        ):
            n_open -= 1
            copy_plan(plans, n_open, current)
            first = n_open
            for _ in range(parameters.n_branches):
                branch_number += 1
                copy_plan(plans, current, trial)
                plan_state = PlanState.ALIVE
                for k in range(parameters.events_per_branch):
                    event_key = derive_key(derive_key(candidate_key, branch_number), k)
                    for m in range(DRAWS_PER_EVENT):
                        draws[m] = uniform_draw(event_key, m)
                    plan_state = expand_plan(state, trial, draws, True)
                    search.counters[N_EVENTS] += 1
                    if plan_state != PlanState.ALIVE:
                        break
                search.counters[N_CANDIDATES] += 1
                if plan_state == PlanState.ARRIVED:
                    submit_plan(search, trial, True)
                if (
                    plan_state != PlanState.ALIVE
                    or lower_bound(search, trial) >= search.best_cost[0]
                    or n_open >= current
                ):
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


@kernel(examples=lambda: [(example_search(2), MctsParameters(6, 0.3, 32), np.uint64(1), 1)])
def search_mcts(search: StepPlanSearch, parameters: MctsParameters, key: np.uint64, max_events: int) -> None:
    """Grow trees until a number of events has been tried; a tree ends when it is full."""
    state = search.state
    context, paths, plans, log = state
    rollout = plans.n_events.shape[0] - 1
    parent, visits, total = np.empty(rollout, np.int64), np.empty(rollout), np.empty(rollout)
    children, draws, goal = np.empty(rollout), np.empty(DRAWS_PER_EVENT), search.counters[N_EVENTS] + max_events
    while search.counters[N_EVENTS] < goal:
        candidate_key = next_candidate_key(search, key)
        if not start_candidate(search, 0, derive_key(candidate_key, 0), parameters.max_path_attempts):
            continue
        max_distance, nodes, best_cost, n_runs = remaining_distance(context, paths, plans, 0), 1, math.inf, 0
        max_distance = max(
            max_distance, math.hypot(context.goal[0] - context.start[0], context.goal[1] - context.start[1]), 1e-3
        )
        parent[0], visits[0], total[0], children[0] = -1, 0.0, 0.0, 0.0
        while nodes < rollout and n_runs < 2 * rollout:
            run_key = derive_key(candidate_key, 1 + n_runs)
            n_runs += 1
            node = 0
            while children[node] > 0.0 and children[node] >= 1.0 + math.sqrt(visits[node]):
                best, max_value = node, -math.inf
                for k in range(1, nodes):
                    if parent[k] == node:
                        value = total[k] / visits[k] + parameters.exploration_weight * math.sqrt(
                            math.log(visits[node] + 1.0) / visits[k]
                        )
                        if value > max_value:
                            best, max_value = k, value
                node = best
            copy_plan(plans, node, rollout)
            search.counters[N_CANDIDATES] += 1
            plan_state, child, n_events = PlanState.ALIVE, node, 0
            n_log_rows = log.n_rows[0]
            while plan_state == PlanState.ALIVE:
                event_key = derive_key(run_key, n_events)
                for m in range(DRAWS_PER_EVENT):
                    draws[m] = uniform_draw(event_key, m)
                plan_state = expand_plan(state, rollout, draws, n_events < parameters.events_per_node)
                search.counters[N_EVENTS] += 1
                n_events += 1
                if n_events == parameters.events_per_node and plan_state == PlanState.ALIVE:
                    child = nodes
                    nodes += 1
                    copy_plan(plans, rollout, child)
                    parent[child], visits[child], total[child], children[child] = node, 0.0, 0.0, 0.0
                    children[node] += 1.0
                    n_log_rows = log.n_rows[0]
            reward = 0.5 * (1.0 - min(remaining_distance(context, paths, plans, rollout) / max_distance, 1.0))
            if plan_state == PlanState.ARRIVED:
                cost = submit_plan(search, rollout, True)
                best_cost = min(best_cost, cost)
                if math.isfinite(cost):
                    reward = 0.5 + 0.5 * best_cost / cost
            log.n_rows[0] = n_log_rows
            while child >= 0:
                visits[child] += 1.0
                total[child] += reward
                child = parent[child]


@kernel(examples=lambda: [(example_search(), RandomSamplingParameters(32), np.uint64(1), 1)])
def search_random(
    search: StepPlanSearch, parameters: RandomSamplingParameters, key: np.uint64, max_events: int
) -> None:
    """Sample candidates until a number of events has been tried."""
    state = search.state
    plans = state.plans
    draws, goal = np.empty(DRAWS_PER_EVENT), search.counters[N_EVENTS] + max_events
    while search.counters[N_EVENTS] < goal:
        candidate_key = next_candidate_key(search, key)
        if not start_candidate(search, 0, derive_key(candidate_key, 0), parameters.max_path_attempts):
            continue
        events_before = plans.n_events[0]
        plan_state = expand_to_end(state, 0, candidate_key, draws)
        search.counters[N_EVENTS] += plans.n_events[0] - events_before + 1
        if plan_state == PlanState.ARRIVED:
            submit_plan(search, 0, False)


_MAX_PATH_ATTEMPTS = 32
_HERMS = (
    "Herms: Entwicklung eines verteilten Laufplaners basierend auf heuristischen Optimierungsverfahren, diploma "
    "thesis, Otto-von-Guericke-Universität Magdeburg 2004"
)
_PATH_ATTEMPTS_DOC = "Number of body paths that are sampled until the body can follow one."


@dataclass(frozen=True)
class RandomSamplingPlanner(KernelStepPlanner):
    """Random sampling: one candidate after the other, each sampled from the start to the end.

    Take it as the baseline of the literature, and on level ground, where it has the first plan soonest.
    """

    traits: ClassVar[PlannerTraits] = PlannerTraits(
        idea="samples body path, foot order, footholds and body positions of a candidate; a failed one is dropped",
        references=(_HERMS,),
        completeness="probabilistic",
        optimality="asymptotic, over the sampled plans",
    )
    search_kernel: ClassVar[SearchKernel] = staticmethod(search_random)
    parameters_type: ClassVar[type[NamedTuple]] = RandomSamplingParameters

    max_path_attempts: int = parameter(_MAX_PATH_ATTEMPTS, low=1, high=10_000, doc=_PATH_ATTEMPTS_DOC)

    @property
    def capacity(self) -> SearchCapacity:
        """Memory of a search."""
        return SearchCapacity(1, MAX_EVENTS + 2)


@dataclass(frozen=True)
class GreedyPlanner(KernelStepPlanner):
    """Greedy search: of a few sampled events the one after which the body can advance farthest.

    Take it for quick plans over moderate ground; its plans are longer than those of the others.
    """

    traits: ClassVar[PlannerTraits] = PlannerTraits(
        idea="takes, of several sampled events, the one that lets the body advance farthest",
        references=(_HERMS,),
    )
    search_kernel: ClassVar[SearchKernel] = staticmethod(search_greedy)
    parameters_type: ClassVar[type[NamedTuple]] = GreedyParameters

    n_samples: int = parameter(7, low=1, high=1000, doc="Number of events that are sampled, of which one is taken.")
    max_path_attempts: int = parameter(_MAX_PATH_ATTEMPTS, low=1, high=10_000, doc=_PATH_ATTEMPTS_DOC)

    @property
    def capacity(self) -> SearchCapacity:
        """Memory of a search: the plan, and one for each sampled event."""
        n_plans = self.n_samples + 1
        return SearchCapacity(n_plans, n_plans * (MAX_EVENTS + 2))


@dataclass(frozen=True)
class BranchAndBoundPlanner(KernelStepPlanner):
    """Branch and bound, depth first: a few sampled sequences of events from each partial plan.

    Take it on open ground with time for better plans: what cannot improve on the best plan is not continued.
    """

    traits: ClassVar[PlannerTraits] = PlannerTraits(
        idea="continues the most promising of a few sampled branches; prunes by swings and travel that are still due",
        references=("Land, Doig: An automatic method of solving discrete programming problems, Econometrica 28, 1960",),
    )
    search_kernel: ClassVar[SearchKernel] = staticmethod(search_branch_and_bound)
    parameters_type: ClassVar[type[NamedTuple]] = BranchAndBoundParameters

    n_branches: int = parameter(4, low=1, high=16, doc="Number of branches from each partial plan.")
    events_per_branch: int = parameter(4, low=1, high=100, doc="Number of events of a branch.")
    max_leaves: int = parameter(
        400, low=1, high=1_000_000, doc="Number of ends of branches after which a new tree starts on another body path."
    )
    max_path_attempts: int = parameter(_MAX_PATH_ATTEMPTS, low=1, high=10_000, doc=_PATH_ATTEMPTS_DOC)

    @property
    def capacity(self) -> SearchCapacity:
        """Memory of a search: the branches of the deepest tree."""
        return SearchCapacity(self.n_branches * (MAX_EVENTS // self.events_per_branch + 1) + 3, 20_000)


@dataclass(frozen=True)
class MctsPlanner(KernelStepPlanner):
    """Monte Carlo tree search: a tree of partial plans, each rated by plans that are sampled from it to the end.

    Take it on moderate ground with a few seconds of time.
    """

    traits: ClassVar[PlannerTraits] = PlannerTraits(
        idea="tree of partial plans, chosen by the quality of their rollouts (UCT), widened progressively",
        references=(
            "Kocsis, Szepesvári: Bandit based Monte-Carlo planning, ECML 2006",
            "Couëtoux, Hoock, Sokolovska, Teytaud, Bonnard: Continuous upper confidence trees, LION 2011",
        ),
    )
    search_kernel: ClassVar[SearchKernel] = staticmethod(search_mcts)
    parameters_type: ClassVar[type[NamedTuple]] = MctsParameters

    max_nodes: int = parameter(128, low=3, high=10_000, doc="Number of partial plans of a tree and of its rollout.")
    events_per_node: int = parameter(6, low=1, high=100, doc="Number of events from a node to its children.")
    exploration_weight: float = parameter(0.3, low=0.0, high=100.0, doc="Weight of nodes that were seldom chosen.")
    max_path_attempts: int = parameter(_MAX_PATH_ATTEMPTS, low=1, high=10_000, doc=_PATH_ATTEMPTS_DOC)

    @property
    def capacity(self) -> SearchCapacity:
        """Memory of a search."""
        return SearchCapacity(self.max_nodes, 8_000)
