"""State of one search with one seed, common to all planners, and the acceptance of complete plans."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.compute.array_kernels import assign
from roboyard.geometry.arrays import Array
from roboyard.walking.free_gait.body_paths import sample_feasible_path
from roboyard.walking.free_gait.partial_plans import (
    MAX_PATH_SAMPLES,
    BodyPaths,
    EventLog,
    PartialPlans,
    PlanningContext,
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
from roboyard.walking.free_gait.plan_evaluation import VALID, evaluate_plan
from roboyard.walking.free_gait.robot_model import LegArrays, example_leg_arrays
from roboyard.walking.free_gait.stance_graph import StanceGraph, empty_stance_graph
from roboyard.walking.free_gait.step_events import replay_event, start_plan

ESTIMATE_MARGIN: Final = 1.0
"""A plan is looked at exactly when its estimate is no worse than the best one's by more than this factor."""
# indices of `StepPlanSearch.counters`
N_EVENTS: Final = 0
N_CANDIDATES: Final = 1
N_ARRIVALS: Final = 2
N_EVALUATED: Final = 3
N_REJECTED: Final = 4
FAILED_EVENT: Final = 11
"""After how many of its events something was wrong with the plan that was refused last."""


class StepPlanSearch(NamedTuple):
    """State of a search.

    Attributes:
        paths: Body paths of the partial plans.
        plans: Partial plans.
        log: Events of the partial plans.
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

    paths: BodyPaths
    plans: PartialPlans
    log: EventLog
    draft: PlanDraft
    best_draft: PlanDraft
    best_path: Array
    best_path_size: NDArray[np.int64]
    best_cost: Array
    counters: NDArray[np.int64]
    best_evaluation: Array
    committed: PlanDraft
    committed_path: Array
    committed_path_size: NDArray[np.int64]
    graph: StanceGraph
    scratch_plan: PartialPlans


def empty_search(n_plans: int, n_legs: int, n_events: int, n_paths: int = 0, n_nodes: int = 1) -> StepPlanSearch:
    """Return an empty search with memory for partial plans, events, paths (0: one per plan) and nodes of a graph."""
    return StepPlanSearch(
        empty_body_paths(n_paths or n_plans),
        empty_partial_plans(n_plans, n_legs),
        empty_event_log(n_events),
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
        empty_stance_graph(n_nodes, n_legs),
        empty_partial_plans(1, n_legs),
    )


@kernel(examples=lambda: [(example_context(), empty_search(1, 1, 2), 0)])
def replay_committed(context: PlanningContext, search: StepPlanSearch, i: int) -> bool:
    """Add the committed events to plan ``i``, which has just started; return whether there is room."""
    committed = search.committed
    for k in range(committed.counts[0]):
        sample = int(committed.body_sample[k + 1] + 0.5)
        if not replay_event(
            context,
            search.paths,
            search.plans,
            search.log,
            i,
            committed.leg[k],
            committed.kind[k],
            committed.position[k],
            sample,
        ):
            return False
    return True


@kernel(examples=lambda: [(example_context(), empty_search(1, 1, 2), 0, np.uint64(1), 1)])
def start_candidate(
    context: PlanningContext, search: StepPlanSearch, i: int, key: np.uint64, max_attempts: int
) -> bool:
    """Start plan ``i`` on its own sampled path, with the committed events; return whether that is possible.

    Paths are sampled until the body can traverse one, at most ``max_attempts`` times.
    """
    paths, n_committed = search.paths, search.committed_path_size[0]
    for k in range(n_committed):
        assign(paths.positions[i, k], search.committed_path[k])
    if not sample_feasible_path(context, paths, i, key, max_attempts, n_committed) or not start_plan(
        context, paths, search.plans, search.log, i, i
    ):
        return False
    return bool(replay_committed(context, search, i))


@kernel(examples=lambda: [(empty_search(1, 1, 2), np.uint64(1))])
def next_candidate_key(search: StepPlanSearch, seed: np.uint64) -> np.uint64:
    """Count another candidate, which owns the whole log; return the key of its random numbers."""
    key = derive_key(seed, search.counters[N_CANDIDATES])
    search.counters[N_CANDIDATES] += 1
    search.counters[N_EVENTS] += 1
    search.log.n_rows[0] = 0
    return key


@kernel(examples=lambda: [(example_context(), example_leg_arrays(), empty_search(1, 1, 2), 0, np.zeros((2, 3)), True)])
def _evaluate_candidate(
    context: PlanningContext, leg_arrays: LegArrays, search: StepPlanSearch, i: int, path: Array, smooth: bool
) -> tuple[float, int]:
    """Return the estimated cost [s], and VALID or the violation; VALID as well where the estimate is too expensive for
    an evaluation."""
    draft = search.draft
    draft_from_plan(context, search.paths, search.plans, search.log, i, search.committed, draft)
    drawn_samples, params = draft.body_sample[: draft.counts[0] + 2].copy(), context.parameters
    duration = smooth_body_motion(context, draft) if smooth else estimate_schedule(context, draft)
    estimate = duration * (1.0 + params.foothold_weight * mean_foothold_cost(context, draft))
    if estimate >= ESTIMATE_MARGIN * search.best_cost[1]:
        return estimate, VALID
    if smooth:
        restore_reachability(context, search.paths, search.plans.path[i], draft, drawn_samples, search.scratch_plan)
        estimate_schedule(context, draft)
    evaluation = np.zeros(6)
    search.counters[N_EVALUATED] += 1
    violation = evaluate_plan(context, leg_arrays, path, draft, evaluation)
    estimate += duration * (
        params.joint_work_weight * evaluation[4] + params.leg_loss_weight * evaluation[5]
    )  # only the exact look tells these
    if violation != VALID:
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


@kernel(examples=lambda: [(example_context(), example_leg_arrays(), empty_search(1, 1, 2), 0, True)])
def submit_plan(context: PlanningContext, leg_arrays: LegArrays, search: StepPlanSearch, i: int, smooth: bool) -> float:
    """Evaluate a plan that arrived at the goal exactly if it may be the best so far.

    Args:
        context: The planning context.
        leg_arrays: The legs.
        search: The search.
        i: Index of the plan.
        smooth: Smooth the body motion; if that plan is rejected, evaluate the sampled motion.

    Returns:
        Estimated cost [s]; infinite if the plan was evaluated and rejected.
    """
    path, size = search.paths.positions[search.plans.path[i]], search.paths.n_samples[search.plans.path[i]]
    search.counters[N_ARRIVALS] += 1
    estimate, violation = _evaluate_candidate(context, leg_arrays, search, i, path[:size], smooth)
    if violation != VALID and smooth:
        estimate, violation = _evaluate_candidate(context, leg_arrays, search, i, path[:size], False)
    return estimate if violation == VALID else np.inf
