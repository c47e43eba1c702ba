"""State of one search with one seed, common to all planners, and the acceptance of complete plans."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from roboyard.compute import kernel
from roboyard.compute.array_kernels import assign
from roboyard.geometry.arrays import I64, Array, Vec3
from roboyard.walking.free_gait.body_paths import sample_feasible_path
from roboyard.walking.free_gait.partial_plans import (
    MAX_PATH_SAMPLES,
    PartialPlans,
    PlanningContext,
    SearchState,
    StepEvent,
    derive_key,
    empty_body_paths,
    empty_event_log,
    empty_partial_plans,
    example_context,
)
from roboyard.walking.free_gait.plan_draft import (
    PlanDraft,
    copy_draft,
    draft_from_plan,
    empty_draft,
    estimate_schedule,
    mean_foothold_cost,
    restore_reachability,
    smooth_body_motion,
)  # fmt: skip
from roboyard.walking.free_gait.plan_evaluation import PlanViolation, evaluate_plan
from roboyard.walking.free_gait.problem import StepPlanningProblem
from roboyard.walking.free_gait.robot_model import LegArrays, example_leg_arrays
from roboyard.walking.free_gait.stance_graph import StanceGraph, empty_stance_graph
from roboyard.walking.free_gait.step_events import replay_event, start_plan
from roboyard.walking.free_gait.step_plan import SearchStatistics, StepPlan, Swing

ESTIMATE_MARGIN: Final = 1.0
"""Factor on the best plan's estimated cost up to which a plan is evaluated exactly."""
# indices of `StepPlanSearch.counters`
N_EVENTS: Final = 0
N_CANDIDATES: Final = 1
N_ARRIVALS: Final = 2
N_EVALUATED: Final = 3
N_REJECTED: Final = 4
FAILED_EVENT: Final = 11
"""Index of the number of events of the last rejected plan after which it violates a condition."""


class StepPlanSearch(NamedTuple):
    """State of a search, and its constant inputs.

    Attributes:
        state: Planning context, body paths, partial plans and their log.
        leg_arrays: The legs.
        draft: Draft of the last arrival.
        best_draft: Draft of the best plan.
        best_path: (n, 3) path of the best plan; its first ``best_path_size[0]`` rows.
        best_path_size: (1,) rows of the best path.
        best_cost: (2,) cost of the best plan: exact, estimated; infinite without a plan.
        counters: (12,) events, candidates, arrivals, exact evaluations, rejections in total and by violation; and
            `FAILED_EVENT`.
        best_evaluation: (6,) results of the best plan, see `evaluate_plan`.
        committed: Events that all plans start with: those of a running plan that no longer change.
        committed_path: (n, 3) path of the body during these; its first ``committed_path_size[0]`` rows.
        committed_path_size: (1,) rows of the committed path.
        graph: Stance graph, for the planner that has one.
        scratch_plan: Memory for one more plan.
    """

    state: SearchState
    leg_arrays: LegArrays
    draft: PlanDraft
    best_draft: PlanDraft
    best_path: Array
    best_path_size: I64
    best_cost: Array
    counters: I64
    best_evaluation: Array
    committed: PlanDraft
    committed_path: Array
    committed_path_size: I64
    graph: StanceGraph
    scratch_plan: PartialPlans


class SearchCapacity(NamedTuple):
    """Memory of a search.

    Attributes:
        n_plans: Partial plans that it stores at once.
        n_log_rows: Rows of the log that they share.
        n_paths: Body paths; 0: each plan has its own.
        n_nodes: Nodes of the stance graph.
    """

    n_plans: int
    n_log_rows: int
    n_paths: int = 0
    n_nodes: int = 1


def empty_search(context: PlanningContext, leg_arrays: LegArrays, capacity: SearchCapacity) -> StepPlanSearch:
    """Return a search that has tried nothing yet."""
    n_legs = context.start_feet.shape[0]
    state = SearchState(
        context,
        empty_body_paths(capacity.n_paths or capacity.n_plans),
        empty_partial_plans(capacity.n_plans, n_legs),
        empty_event_log(capacity.n_log_rows),
    )
    return StepPlanSearch(
        state,
        leg_arrays,
        empty_draft(),
        empty_draft(),
        np.zeros((MAX_PATH_SAMPLES, 3)),
        np.zeros(1, np.int64),
        np.full(2, np.inf),
        np.zeros(12, np.int64),
        np.zeros(6),
        empty_draft(),
        np.zeros((MAX_PATH_SAMPLES, 3)),
        np.zeros(1, np.int64),
        empty_stance_graph(capacity.n_nodes, n_legs),
        empty_partial_plans(1, n_legs),
    )


def example_search(n_plans: int = 1, n_paths: int = 0, n_nodes: int = 1) -> StepPlanSearch:
    """Return a search with which kernels are compiled."""
    return empty_search(example_context(), example_leg_arrays(), SearchCapacity(n_plans, 2, n_paths, n_nodes))


@kernel(examples=lambda: [(example_search(), 0)])
def replay_committed(search: StepPlanSearch, i: int) -> bool:
    """Add the committed events to plan ``i``, which has just started; return whether there is room."""
    committed, state = search.committed, search.state
    for k in range(committed.counts[0]):
        sample = int(committed.body_sample[k + 1] + 0.5)
        if not replay_event(state, i, committed.leg[k], committed.kind[k], committed.position[k], sample):
            return False
    return True


@kernel(examples=lambda: [(example_search(), 0, np.uint64(1), 1)])
def start_candidate(search: StepPlanSearch, i: int, key: np.uint64, max_attempts: int) -> bool:
    """Start plan ``i`` on its own sampled path, with the committed events; return whether that is possible.

    Paths are sampled until the body can traverse one, at most ``max_attempts`` times.
    """
    state, n_committed = search.state, search.committed_path_size[0]
    context, paths = state.context, state.paths
    for k in range(n_committed):
        assign(paths.positions[i, k], search.committed_path[k])
    if not sample_feasible_path(context, paths, i, key, max_attempts, n_committed) or not start_plan(state, i, i):
        return False
    return bool(replay_committed(search, i))


@kernel(examples=lambda: [(example_search(), np.uint64(1))])
def next_candidate_key(search: StepPlanSearch, seed: np.uint64) -> np.uint64:
    """Count another candidate, which owns the whole log; return the key of its random numbers."""
    key = derive_key(seed, search.counters[N_CANDIDATES])
    search.counters[N_CANDIDATES] += 1
    search.counters[N_EVENTS] += 1
    search.state.log.n_rows[0] = 0
    return key


@kernel(examples=lambda: [(example_search(), 0, np.zeros((2, 3)), True)])
def _evaluate_candidate(search: StepPlanSearch, i: int, path: Array, smooth: bool) -> tuple[float, PlanViolation]:
    """Return the estimated cost [s], and the violation; none as well where the estimate is too expensive for
    an evaluation."""
    draft, state = search.draft, search.state
    context = state.context
    draft_from_plan(state, i, search.committed, draft)
    drawn_samples, params = draft.body_sample[: draft.counts[0] + 2].copy(), context.parameters
    duration = smooth_body_motion(context, draft) if smooth else estimate_schedule(context, draft)
    estimate = duration * (1.0 + params.foothold_weight * mean_foothold_cost(context, draft))
    if estimate >= ESTIMATE_MARGIN * search.best_cost[1]:
        return estimate, PlanViolation.VALID
    if smooth:
        restore_reachability(context, state.paths, state.plans.path[i], draft, drawn_samples, search.scratch_plan)
        estimate_schedule(context, draft)
    evaluation = np.zeros(6)
    search.counters[N_EVALUATED] += 1
    violation = evaluate_plan(context, search.leg_arrays, path, draft, evaluation)
    estimate += duration * (
        params.joint_work_weight * evaluation[4] + params.leg_loss_weight * evaluation[5]
    )  # only the exact evaluation computes these
    if violation != PlanViolation.VALID:
        search.counters[N_REJECTED + violation] += 1
        search.counters[N_REJECTED] += 1
        search.counters[FAILED_EVENT] = int(evaluation[0])
    elif evaluation[0] < search.best_cost[0]:
        copy_draft(draft, search.best_draft)
        for k in range(path.shape[0]):
            assign(search.best_path[k], path[k])
        search.best_path_size[0] = path.shape[0]
        search.best_cost[0], search.best_cost[1] = evaluation[0], estimate
        assign(search.best_evaluation, evaluation)
    return estimate, violation


@kernel(examples=lambda: [(example_search(), 0, True)])
def submit_plan(search: StepPlanSearch, i: int, smooth: bool) -> float:
    """Evaluate a plan that arrived at the goal exactly if it may be the best so far.

    Args:
        search: The search.
        i: Index of the plan.
        smooth: Smooth the body motion; if that plan is rejected, evaluate the sampled motion.

    Returns:
        Estimated cost [s]; infinite if the plan was evaluated and rejected.
    """
    paths, w = search.state.paths, search.state.plans.path[i]
    path, size = paths.positions[w], paths.n_samples[w]
    search.counters[N_ARRIVALS] += 1
    estimate, violation = _evaluate_candidate(search, i, path[:size], smooth)
    if violation != PlanViolation.VALID and smooth:
        estimate, violation = _evaluate_candidate(search, i, path[:size], False)
    return estimate if violation == PlanViolation.VALID else np.inf


def search_statistics(search: StepPlanSearch) -> SearchStatistics:
    """Return the numbers of what a search has tried; `plan_steps` adds planner and seed."""
    counts = (int(search.counters[k]) for k in (N_EVENTS, N_CANDIDATES, N_ARRIVALS, N_EVALUATED, N_REJECTED))
    return SearchStatistics("", 0, *counts)


def best_plan(problem: StepPlanningProblem, search: StepPlanSearch) -> StepPlan | None:
    """Return the best plan of a search; None without one."""
    if not np.isfinite(search.best_cost[0]):
        return None
    draft, m = search.best_draft, int(search.best_draft.counts[0])
    path = search.best_path[: int(search.best_path_size[0])]
    times = np.concatenate([[0.0], np.cumsum(draft.interval[: m + 1])])
    time_samples: list[tuple[float, float]] = []
    for k in range(m + 1):
        first, last, start, interval = draft.body_sample[k], draft.body_sample[k + 1], times[k], draft.interval[k]
        time_samples.append((float(start), float(first)))
        lower, upper = sorted((first, last))
        inner_samples = np.arange(math.floor(lower) + 1, math.ceil(upper))
        inner = inner_samples if last >= first else inner_samples[::-1]
        time_samples += [
            (float(start + interval * (sample - first) / (last - first)), float(sample)) for sample in inner
        ]
    time_samples.append((float(times[-1]), float(draft.body_sample[m + 1])))
    table = np.array(time_samples)
    table = table[np.concatenate([[True], np.diff(table[:, 0]) > 1e-12])]
    samples = np.arange(len(path))
    track = np.column_stack([table[:, 0], *(np.interp(table[:, 1], samples, path[:, k]) for k in range(3))])
    swings = [
        Swing(
            int(draft.leg[k]), float(times[draft.paired_event[k] + 1]), float(times[k + 1]),
            _triple(draft.position[draft.paired_event[k]]), _triple(draft.position[k]), float(draft.apex_height[k]),
            float(draft.vertical_time[k]), (float(draft.sampled_foothold[k, 0]), float(draft.sampled_foothold[k, 1])),
        )
        for k in range(m) if draft.kind[k] == StepEvent.TOUCH_DOWN
    ]  # fmt: skip
    swings.sort(key=lambda swing: (swing.lift_off_time, swing.leg))
    return StepPlan(
        problem.foothold_map.heading, problem.feet.copy(), track, tuple(swings), float(search.best_cost[0]),
        float(search.best_evaluation[2]), search_statistics(search),
    )  # fmt: skip


def _triple(values: Array) -> Vec3:
    x, y, z = (float(value) for value in values)
    return x, y, z
