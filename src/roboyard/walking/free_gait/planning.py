"""Planning of steps: one interface for all planners, in parallel, and the explanation why there is no plan.

A budget is a number of events to try.  It is spent in parts of a fixed size, each a search with its own seed, and the
best of their plans is the result; the same seed and budget give the same plan on any number of cores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from dataclasses import dataclass
from threading import Event
from typing import Final, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import binary_dilation, label

from roboyard.compute import CompiledFunction, expect_kernels
from roboyard.compute.pools import ThreadPool
from roboyard.compute.ray_cluster import RayPool
from roboyard.config.wording import did_you_mean
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry.arrays import Array
from roboyard.grids.height_map import HeightMap
from roboyard.grids.terrain import Terrain
from roboyard.walking.errors import NoStepPlanError
from roboyard.walking.free_gait.body_paths import find_traversable_cells
from roboyard.walking.free_gait.foothold_map import FootholdMap
from roboyard.walking.free_gait.partial_plans import MAX_EVENTS, TOUCH_DOWN, PlanningContext, derive_key
from roboyard.walking.free_gait.plan_draft import copy_draft
from roboyard.walking.free_gait.planners import ara_star, sampling
from roboyard.walking.free_gait.planners.ara_star import MAX_NODES, search_ara_star
from roboyard.walking.free_gait.planners.metaheuristics import (
    search_annealing,
    search_genetic,
    search_local,
    search_tabu,
)
from roboyard.walking.free_gait.planners.sampling import (
    GREEDY_MAX_PLANS,
    search_branch_and_bound,
    search_greedy,
    search_mcts,
    search_random,
)
from roboyard.walking.free_gait.planners.splitting import MAX_LOG_ROWS, MAX_PLANS, search_splitting
from roboyard.walking.free_gait.problem import StepPlanningProblem, as_position
from roboyard.walking.free_gait.robot_model import FreeGaitModel, LegArrays
from roboyard.walking.free_gait.search import (
    N_ARRIVALS,
    N_CANDIDATES,
    N_EVALUATED,
    N_EVENTS,
    N_REJECTED,
    StepPlanSearch,
    empty_search,
)
from roboyard.walking.free_gait.step_plan import SearchStatistics, StepPlan, Swing

_MAX_CELLS: Final = 8


def find_barrier_cells(problem: StepPlanningProblem) -> list[tuple[int, int]] | None:
    """Return cells, nearest to the goal first, that bound everything reachable from the start; None if the goal is
    reachable."""
    traversable = find_traversable_cells(problem.robot_model, problem.foothold_map)
    foothold_map = problem.foothold_map
    start, goal = (foothold_map.cell_at(float(x), float(y)) for x, y in (problem.start, problem.goal))
    labels, _ = label(traversable, structure=np.ones((3, 3)))
    if labels[start] == labels[goal] != 0:
        return None
    reachable = labels == labels[start] if labels[start] else np.zeros(traversable.shape, np.bool_)
    reachable[start] = True
    border = np.argwhere(binary_dilation(reachable, structure=np.ones((3, 3), np.bool_)) & ~reachable)
    order = np.argsort(np.hypot(*(border - goal).T), kind="stable")
    return [(int(r), int(c)) for r, c in border[order[:_MAX_CELLS]]]


SearchFunction = Callable[[PlanningContext, LegArrays, StepPlanSearch, np.uint64, int], None]
"""Goes on with a search until so many more events were tried, or a few more."""
ProgressCallback = Callable[[int, StepPlan | None], None]
"""Told now and then: how many events were tried so far, and a plan that is better than those before, if any."""

EVENTS_PER_PART: Final = 200_000
"""Events of one search."""
_EVENTS_PER_CALL: Final = 2_000
"""Events between two questions whether to stop."""
_POLL_PERIOD: Final = 0.1
"""Time between them while a cluster works [s]."""


@dataclass(frozen=True)
class StepPlanner:
    """A planner of step plans.

    Attributes:
        run_search: Its kernel.
        max_plans: Partial plans that it stores at once.
        max_log_rows: Rows of the log that they share.
        max_paths: Body paths, where not each plan has its own.
        max_nodes: Nodes of a stance graph.
    """

    run_search: SearchFunction
    max_plans: int
    max_log_rows: int
    max_paths: int = 0
    max_nodes: int = 1

    def create_search(self, legs: int) -> StepPlanSearch:
        """Return an empty search."""
        return empty_search(self.max_plans, legs, self.max_log_rows, self.max_paths, self.max_nodes)


PLANNERS: Final = {
    "splitting": StepPlanner(search_splitting, MAX_PLANS, MAX_LOG_ROWS),
    "random-sampling": StepPlanner(search_random, 1, MAX_EVENTS + 2),
    "greedy": StepPlanner(search_greedy, GREEDY_MAX_PLANS, GREEDY_MAX_PLANS * (MAX_EVENTS + 2)),
    "branch-and-bound": StepPlanner(search_branch_and_bound, sampling.BRANCH_MAX_PLANS, sampling.BRANCH_LOG_ROWS),
    "local-search": StepPlanner(search_local, 1, MAX_EVENTS + 2),
    "tabu": StepPlanner(search_tabu, 1, MAX_EVENTS + 2),
    "annealing": StepPlanner(search_annealing, 1, MAX_EVENTS + 2),
    "genetic": StepPlanner(search_genetic, 1, MAX_EVENTS + 2),
    "mcts": StepPlanner(search_mcts, sampling.MCTS_MAX_NODES, sampling.MCTS_LOG_ROWS),
    "ara-star": StepPlanner(search_ara_star, MAX_NODES + 2, ara_star.LOG_ROWS, ara_star.N_PATHS, MAX_NODES + 2),
}
"""By name."""


def expect_planner_kernels(name: str) -> None:
    """Have the kernels of a planner compiled in advance."""
    expect_kernels(cast("CompiledFunction[..., None]", PLANNERS[name].run_search), copy_draft, derive_key)


def plan_steps(
    problem: StepPlanningProblem,
    planner: str = "splitting",
    *,
    budget: int = EVENTS_PER_PART,
    seed: int = 0,
    workers: int = 1,
    cluster: str | None = None,
    should_stop: Callable[[], bool] | None = None,
    on_progress: ProgressCallback | None = None,
) -> StepPlan:
    """Return the best plan that a budget yields.

    Args:
        problem: The planning problem.
        planner: One of `PLANNERS`.
        budget: Number of events to try.
        seed: Seed of all random numbers.
        workers: Number of threads.
        cluster: Address of a Ray cluster that runs the parts instead, see `RayPool`; the plan is the same.
        should_stop: Called every few milliseconds; True ends the search with the best plan so far.
        on_progress: Receives the progress, from any thread.

    Raises:
        UnknownNameError: There is no such planner.
        InputError: Budget, seed or number of workers is not valid.
        NoStepPlanError: There is no plan; the error names the cells of the map that are obstacles, if any.
    """
    if planner not in PLANNERS:
        raise UnknownNameError(f"no planner {planner!r}{did_you_mean(planner, PLANNERS)}", valid=", ".join(PLANNERS))
    for name, value, minimum in (("budget", budget, 1), ("seed", seed, 0)):
        if not minimum <= value < 2**53:
            raise InputError(f"{name} {value}", valid=f"a whole number, {minimum} or more")
    parts = [
        _SearchPart(planner, seed, k, min(EVENTS_PER_PART, budget - k * EVENTS_PER_PART))
        for k in range(-(-budget // EVENTS_PER_PART))
    ]
    best: StepPlan | None = None
    statistics = SearchStatistics(planner, seed)
    if cluster is None:
        results = _search_on_threads(problem, parts, workers, should_stop or Event().is_set, on_progress)
    else:
        results = _search_on_cluster(problem, parts, cluster, should_stop or Event().is_set, on_progress)
    for plan, part_statistics in results:
        statistics += part_statistics
        if plan is not None and (best is None or plan.cost < best.cost):
            best = plan
    if best is None:
        raise _no_plan_error(problem, statistics)
    return StepPlan(
        best.heading, best.start_feet, best.body_track, best.swings, best.cost, best.tipping_cost, statistics
    )


def plan_steps_on_terrain(
    robot_model: FreeGaitModel,
    terrain: Terrain | HeightMap,
    start: ArrayLike,
    goal: ArrayLike,
    planner: str = "splitting",
    *,
    heading: float = 0.0,
    max_events: int = EVENTS_PER_PART,
    seed: int = 0,
    workers: int = 1,
) -> StepPlan:
    """Plan the steps of a legged robot over uneven ground (free gait).

    Args:
        robot_model: Model of the robot for the planner, as `load_free_gait_model` returns it.
        terrain: Generated terrain, or a height map.
        start: (2,) position of the body [m].
        goal: (2,) position of the body at the end [m].
        planner: Name of the search, one of `PLANNERS`.
        heading: Heading of the body, which it keeps [rad].
        max_events: Maximum number of events that the search tries.
        seed: Seed of all random numbers.
        workers: Number of threads; they do not change the plan.

    Raises:
        InputError: The start or the goal is outside of the ground, in an obstacle, or not reachable by the feet; or an
            argument cannot be used.
        UnknownNameError: There is no such planner.
        NoStepPlanError: The search found no plan; the error names the cells that block the goal, if there are some.
    """
    first, last = as_position(start, "start"), as_position(goal, "goal")
    if not np.isfinite(heading):
        raise InputError(f"heading {heading}", valid="a finite angle in rad")
    if isinstance(terrain, HeightMap):
        ground = FootholdMap.from_height_map(terrain, robot_model, heading=heading, start=first)
    elif isinstance(terrain, Terrain):
        ground = FootholdMap.from_terrain(terrain, robot_model, [first, last], heading=heading)
    else:
        raise InputError(f"an object of type {type(terrain).__name__} is no terrain", valid="Terrain or HeightMap")
    problem = StepPlanningProblem.create(robot_model, ground, first, last)
    return plan_steps(problem, planner, budget=max_events, seed=seed, workers=workers)


class _SearchPart(NamedTuple):
    """Part of a search: planner, seed, number, and events to try."""

    planner: str
    seed: int
    number: int
    budget: int


_PartResult = tuple[StepPlan | None, SearchStatistics]


def _search_on_threads(
    problem: StepPlanningProblem,
    parts: list[_SearchPart],
    workers: int,
    should_stop: Callable[[], bool],
    on_progress: ProgressCallback | None,
) -> Iterator[_PartResult]:
    """Yield the results of the parts, in their order."""
    with ThreadPool(min(workers, len(parts)) if workers > 0 else workers) as pool:
        for future in [pool.submit(_search_part, problem, part, should_stop, on_progress) for part in parts]:
            yield future.result()


def _search_on_cluster(
    problem: StepPlanningProblem,
    parts: list[_SearchPart],
    address: str,
    should_stop: Callable[[], bool],
    on_progress: ProgressCallback | None,
) -> Iterator[_PartResult]:
    """Yield the results of the parts, in their order; unfinished parts are abandoned when the search is stopped."""
    with RayPool(address) as pool:
        shared_problem = pool.put_shared(problem)
        for future in [pool.submit(_search_part, shared_problem, part) for part in parts]:
            while not wait([future], timeout=_POLL_PERIOD).done:
                if should_stop():
                    pool.close(now=True)
                    return
            plan, statistics = future.result()
            if on_progress is not None:
                on_progress(0, None)
                on_progress(statistics.events, plan)
            yield plan, statistics


def _search_part(
    problem: StepPlanningProblem,
    part: _SearchPart,
    should_stop: Callable[[], bool] | None = None,
    on_progress: ProgressCallback | None = None,
) -> _PartResult:
    planner = PLANNERS[part.planner]
    search, context, leg_arrays = planner.create_search(len(problem.feet)), problem.context, problem.leg_arrays
    key, cost = np.uint64(derive_key(np.uint64(part.seed), part.number)), np.inf
    if problem.committed is not None:
        draft, path = problem.committed
        copy_draft(draft, search.committed)
        search.committed_path[: len(path)], search.committed_path_size[0] = path, len(path)
    while search.counters[N_EVENTS] < part.budget and not (should_stop and should_stop()):
        events_before = int(search.counters[N_EVENTS])
        planner.run_search(
            context, leg_arrays, search, key, int(min(_EVENTS_PER_CALL, part.budget - search.counters[N_EVENTS]))
        )
        if on_progress is not None:
            is_better = search.best_cost[0] < cost
            cost = min(cost, float(search.best_cost[0]))
            plan = best_plan(problem, search, search_statistics(part.planner, part.seed, search)) if is_better else None
            on_progress(int(search.counters[N_EVENTS]), plan)
        if search.counters[N_EVENTS] == events_before:
            break
    statistics = search_statistics(part.planner, part.seed, search)
    return best_plan(problem, search, statistics), statistics


def _no_plan_error(problem: StepPlanningProblem, statistics: SearchStatistics) -> NoStepPlanError:
    barrier_cells = find_barrier_cells(problem)
    if barrier_cells is None:
        return NoStepPlanError(
            f"{statistics.planner} found no plan among {statistics.events} events; {statistics.arrivals} arrived, "
            f"{statistics.rejected} of {statistics.evaluated} were rejected by the exact evaluation",
            valid="a larger budget, or another planner",
        )
    map_arrays = problem.foothold_map.arrays
    cell_texts = ", ".join(
        f"({r}, {c}) at ({map_arrays.x + (c + 0.5) * map_arrays.cell_size:.2f}, "
        f"{map_arrays.y + (r + 0.5) * map_arrays.cell_size:.2f})"
        for r, c in barrier_cells[:3]
    )
    return NoStepPlanError(
        "the goal is cut off: the body cannot go on beyond cells "
        f"{cell_texts}{' and others' if len(barrier_cells) > 3 else ''}",
        valid="ground that feet may stand on, and room for the body, all the way",
        barrier_cells=tuple(barrier_cells),
    )


def best_plan(problem: StepPlanningProblem, search: StepPlanSearch, statistics: SearchStatistics) -> StepPlan | None:
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
        for k in range(m) if draft.kind[k] == TOUCH_DOWN
    ]  # fmt: skip
    swings.sort(key=lambda swing: (swing.lift_off_time, swing.leg))
    return StepPlan(
        problem.foothold_map.heading, problem.feet.copy(), track, tuple(swings), float(search.best_cost[0]),
        float(search.best_evaluation[2]), statistics,
    )  # fmt: skip


def search_statistics(planner: str, seed: int, search: StepPlanSearch) -> SearchStatistics:
    """Return the statistics of a search."""
    counts = (int(search.counters[k]) for k in (N_EVENTS, N_CANDIDATES, N_ARRIVALS, N_EVALUATED, N_REJECTED))
    return SearchStatistics(planner, seed, *counts)


def _triple(values: Array) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in values)
    return x, y, z
