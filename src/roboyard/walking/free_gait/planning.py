"""Planning of steps: one interface for all planners, in parallel, and the explanation why there is no plan.

A budget is a number of events to try.  It is spent in parts of a fixed size, each a search with its own seed, and the
best of their plans is the result; the same seed and budget give the same plan on any number of cores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from threading import Event
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import binary_dilation, label

from roboyard.compute.pools import ThreadPool
from roboyard.compute.ray_cluster import RayPool
from roboyard.errors import InputError
from roboyard.grids.height_map import HeightMap
from roboyard.grids.terrain import Terrain
from roboyard.walking.errors import NoStepPlanError
from roboyard.walking.free_gait.body_paths import find_traversable_cells
from roboyard.walking.free_gait.foothold_map import FootholdMap
from roboyard.walking.free_gait.partial_plans import derive_key
from roboyard.walking.free_gait.planners.planner import StepPlanner, make_step_planner
from roboyard.walking.free_gait.problem import StepPlanningProblem, as_pose, as_position
from roboyard.walking.free_gait.robot_model import FreeGaitModel
from roboyard.walking.free_gait.step_plan import SearchStatistics, StepPlan

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


ProgressCallback = Callable[[int, StepPlan | None], None]
"""Receives the number of events that a part of the search has tried, and a plan that is better than its plans before,
if there is one."""

EVENTS_PER_PART: Final = 200_000
"""Number of events of one part of a search."""
_EVENTS_PER_CALL: Final = 2_000
"""Number of events between two checks whether to stop."""
_POLL_PERIOD: Final = 0.1
"""Time between two checks whether to stop while a cluster works [s]."""


def expect_planner_kernels(name: str) -> None:
    """Have the kernels of a planner compiled in advance."""
    make_step_planner(name).expect_kernels()


def plan_steps(
    problem: StepPlanningProblem,
    planner: str | StepPlanner = "splitting",
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
        planner: Name of a planner in the registry `STEP_PLANNERS`, or a planner.
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
    name = planner if isinstance(planner, str) else type(planner).__name__
    searcher = make_step_planner(planner) if isinstance(planner, str) else planner
    for argument, value, minimum in (("budget", budget, 1), ("seed", seed, 0)):
        if not minimum <= value < 2**53:
            raise InputError(f"{argument} {value}", valid=f"a whole number, {minimum} or more")
    parts = [
        _SearchPart(searcher, int(derive_key(np.uint64(seed), k)), min(EVENTS_PER_PART, budget - k * EVENTS_PER_PART))
        for k in range(-(-budget // EVENTS_PER_PART))
    ]
    best: StepPlan | None = None
    statistics = SearchStatistics(name, seed)
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
    planner: str | StepPlanner = "splitting",
    *,
    max_events: int = EVENTS_PER_PART,
    seed: int = 0,
    workers: int = 1,
) -> StepPlan:
    """Plan the steps of a legged robot over uneven ground (free gait).

    Args:
        robot_model: Model of the robot for the planner, as `load_free_gait_model` returns it.
        terrain: Generated terrain, or a height map.
        start: (2,) position of the body [m], or (3,) position and heading [m, m, rad]; the body keeps its heading.
        goal: (2,) position of the body at the end [m].
        planner: Name of a planner in the registry `STEP_PLANNERS`, or a planner.
        max_events: Maximum number of events that the search tries.
        seed: Seed of all random numbers.
        workers: Number of threads; they do not change the plan.

    Raises:
        InputError: The start or the goal is outside of the ground, in an obstacle, or not reachable by the feet; or an
            argument cannot be used.
        UnknownNameError: There is no such planner.
        NoStepPlanError: The search found no plan; the error names the cells that block the goal, if there are some.
    """
    first, heading = as_pose(start, "start")
    last = as_position(goal, "goal")
    if isinstance(terrain, HeightMap):
        ground = FootholdMap.from_height_map(terrain, robot_model, heading=heading, start=first)
    elif isinstance(terrain, Terrain):
        ground = FootholdMap.from_terrain(terrain, robot_model, [first, last], heading=heading)
    else:
        raise InputError(f"an object of type {type(terrain).__name__} is no terrain", valid="Terrain or HeightMap")
    problem = StepPlanningProblem.create(robot_model, ground, first, last)
    return plan_steps(problem, planner, budget=max_events, seed=seed, workers=workers)


class _SearchPart(NamedTuple):
    """Part of a search: planner, source of its random numbers, and number of events to try."""

    planner: StepPlanner
    key: int
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
    search, best_cost, n_events = part.planner.start_search(problem, part.key), math.inf, 0
    while n_events < part.budget and not (should_stop and should_stop()):
        search.advance(min(_EVENTS_PER_CALL, part.budget - n_events))
        n_events_before, n_events = n_events, search.statistics.events
        if on_progress is not None:
            is_better = search.best_cost < best_cost
            best_cost = min(best_cost, search.best_cost)
            on_progress(n_events, search.best_plan() if is_better else None)
        if n_events <= n_events_before:  # nothing is left to try
            break
    return search.best_plan(), search.statistics


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
