"""Planning steps: one interface for all planners, on one core or several.

A budget is a number of events to try.  It is spent in parts of a fixed size, each a search of its own with a seed of
its own, and the best of their plans is taken; so the same seed and budget give the same plan on any number of cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import wait
from dataclasses import dataclass
from threading import Event
from typing import Final, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from roboyard.compute import CompiledFunction, expect_kernels
from roboyard.compute.pools import ThreadPool
from roboyard.compute.ray_cluster import RayPool
from roboyard.config.wording import did_you_mean
from roboyard.errors import InputError, UnknownNameError
from roboyard.grids.height_map import HeightMap
from roboyard.grids.terrain import Terrain
from roboyard.walking.errors import NoPlan
from roboyard.walking.steps import branching, repairing, tree_search
from roboyard.walking.steps.branching import branch
from roboyard.walking.steps.climbing import anneal, search_near, search_tabu
from roboyard.walking.steps.draft import copy_draft
from roboyard.walking.steps.draws import key_of
from roboyard.walking.steps.explain import barrier
from roboyard.walking.steps.genetic import breed
from roboyard.walking.steps.greedy import PLANS as TRIED
from roboyard.walking.steps.greedy import climb
from roboyard.walking.steps.ground import Ground
from roboyard.walking.steps.herd import EVENTS, PlanningContext
from roboyard.walking.steps.plan import Effort, StepPlan, effort_of, plan_of
from roboyard.walking.steps.problem import Problem, as_position
from roboyard.walking.steps.repairing import STANCES, repair
from roboyard.walking.steps.rig import Rig
from roboyard.walking.steps.rig_kernels import Limbs
from roboyard.walking.steps.sampling import sample
from roboyard.walking.steps.search import EVENTS_TRIED, Search, make_search
from roboyard.walking.steps.splitting import PLANS, ROWS, split
from roboyard.walking.steps.tree_search import explore_tree

Spend = Callable[[PlanningContext, Limbs, Search, np.uint64, int], None]
"""Goes on with a search until so many more events were tried, or a few more."""
Told = Callable[[int, StepPlan | None], None]
"""Told now and then: how many events were tried so far, and a plan that is better than those before, if any."""

PART: Final = 200_000
"""Events of one search."""
_CHUNK: Final = 2_000
"""Events between two questions whether to stop."""
_ASK: Final = 0.1
"""Time between them while a cluster works [s]."""


@dataclass(frozen=True)
class StepPlanner:
    """A planner of steps.

    Attributes:
        spend: Its kernel.
        plans: Partial plans that it keeps at once.
        rows: Of the log that they share.
        ways: Of the body, where not each plan has its own.
        nodes: Of a graph of stances.
    """

    spend: Spend
    plans: int
    rows: int
    ways: int = 0
    nodes: int = 1

    def search(self, legs: int) -> Search:
        """An empty search."""
        return make_search(self.plans, legs, self.rows, self.ways, self.nodes)


PLANNERS: Final = {
    "splitting": StepPlanner(split, PLANS, ROWS),
    "random-sampling": StepPlanner(sample, 1, EVENTS + 2),
    "greedy": StepPlanner(climb, TRIED, TRIED * (EVENTS + 2)),
    "branch-and-bound": StepPlanner(branch, branching.PLANS, branching.ROWS),
    "local-search": StepPlanner(search_near, 1, EVENTS + 2),
    "tabu": StepPlanner(search_tabu, 1, EVENTS + 2),
    "annealing": StepPlanner(anneal, 1, EVENTS + 2),
    "genetic": StepPlanner(breed, 1, EVENTS + 2),
    "mcts": StepPlanner(explore_tree, tree_search.NODES, tree_search.ROWS),
    "ara-star": StepPlanner(repair, STANCES + 2, repairing.ROWS, repairing.WAYS, STANCES + 2),
}
"""By name."""


def expect_planner(name: str) -> None:
    """Have the kernels of a planner compiled ahead."""
    expect_kernels(cast("CompiledFunction[..., None]", PLANNERS[name].spend), copy_draft, key_of)


def plan_steps(
    problem: Problem,
    planner: str = "splitting",
    *,
    budget: int = PART,
    seed: int = 0,
    workers: int = 1,
    cluster: str | None = None,
    stop: Callable[[], bool] | None = None,
    told: Told | None = None,
) -> StepPlan:
    """The best plan that a budget buys.

    Args:
        problem: What is asked.
        planner: One of `PLANNERS`.
        budget: Events to try.
        seed: Of all that is drawn.
        workers: Threads; kernels run beside each other.
        cluster: Spread the parts over a Ray cluster instead, see `RayPool`; the plan is the same.
        stop: Asked every few milliseconds; true ends the search, and the best plan so far is taken.
        told: Progress, from whichever thread.

    Raises:
        UnknownNameError: there is no such planner.
        InputError: a budget, seed or number of workers that is none.
        NoPlan: none was found; with the cells of the map that are in the way, where some are.
    """
    if planner not in PLANNERS:
        raise UnknownNameError(f"no planner {planner!r}{did_you_mean(planner, PLANNERS)}", valid=", ".join(PLANNERS))
    for what, number, least in (("budget", budget, 1), ("seed", seed, 0)):
        if not least <= number < 2**53:
            raise InputError(f"{what} {number}", valid=f"a whole number, {least} or more")
    parts = [_Part(planner, seed, k, min(PART, budget - k * PART)) for k in range(-(-budget // PART))]
    best: StepPlan | None = None
    effort = Effort(planner, seed)
    if cluster is None:
        found = _on_threads(problem, parts, workers, stop or Event().is_set, told)
    else:
        found = _on_cluster(problem, parts, cluster, stop or Event().is_set, told)
    for plan, took in found:
        effort += took
        if plan is not None and (best is None or plan.cost < best.cost):
            best = plan
    if best is None:
        raise _nothing(problem, effort)
    return StepPlan(best.heading, best.feet, best.track, best.swings, best.cost, best.tipping, effort)


def plan_steps_on_terrain(
    rig: Rig,
    terrain: Terrain | HeightMap,
    start: ArrayLike,
    goal: ArrayLike,
    planner: str = "splitting",
    *,
    heading: float = 0.0,
    max_events: int = PART,
    seed: int = 0,
    workers: int = 1,
) -> StepPlan:
    """Plan the steps of a legged robot over uneven ground (free gait).

    Args:
        rig: Model of the robot for the planner, as `load_free_gait_model` returns it.
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
        NoPlan: The search found no plan; the error names the cells that block the goal, if there are some.
    """
    first, last = as_position(start, "start"), as_position(goal, "goal")
    if not np.isfinite(heading):
        raise InputError(f"heading {heading}", valid="a finite angle in rad")
    if isinstance(terrain, HeightMap):
        ground = Ground.of_map(terrain, rig, heading=heading, start=first)
    elif isinstance(terrain, Terrain):
        ground = Ground.of_terrain(terrain, rig, [first, last], heading=heading)
    else:
        raise InputError(f"an object of type {type(terrain).__name__} is no terrain", valid="Terrain or HeightMap")
    problem = Problem.of(rig, ground, first, last)
    return plan_steps(problem, planner, budget=max_events, seed=seed, workers=workers)


class _Part(NamedTuple):
    """Part of a search: whose, with which seed, its number, and events to try."""

    planner: str
    seed: int
    number: int
    budget: int


_Found = tuple[StepPlan | None, Effort]


def _on_threads(
    problem: Problem, parts: list[_Part], workers: int, stop: Callable[[], bool], told: Told | None
) -> Iterator[_Found]:
    """What the parts find, in their order."""
    with ThreadPool(min(workers, len(parts)) if workers > 0 else workers) as pool:
        for one in [pool.submit(_search, problem, part, stop, told) for part in parts]:
            yield one.result()


def _on_cluster(
    problem: Problem, parts: list[_Part], address: str, stop: Callable[[], bool], told: Told | None
) -> Iterator[_Found]:
    """What the parts find, in their order; those that are not done when it shall stop are left."""
    with RayPool(address) as pool:
        shared = pool.put_shared(problem)
        for one in [pool.submit(_search, shared, part) for part in parts]:
            while not wait([one], timeout=_ASK).done:
                if stop():
                    pool.close(now=True)
                    return
            plan, effort = one.result()
            if told is not None:
                told(0, None)
                told(effort.events, plan)
            yield plan, effort


def _search(problem: Problem, part: _Part, stop: Callable[[], bool] | None = None, told: Told | None = None) -> _Found:
    planner = PLANNERS[part.planner]
    search, world, limbs = planner.search(len(problem.feet)), problem.world, problem.limbs
    key, cost = np.uint64(key_of(np.uint64(part.seed), part.number)), np.inf
    if problem.past is not None:
        draft, way = problem.past
        copy_draft(draft, search.past)
        search.past_way[: len(way)], search.past_size[0] = way, len(way)
    while search.tally[EVENTS_TRIED] < part.budget and not (stop and stop()):
        before = int(search.tally[EVENTS_TRIED])
        planner.spend(world, limbs, search, key, int(min(_CHUNK, part.budget - search.tally[EVENTS_TRIED])))
        if told is not None:
            better = search.cost[0] < cost
            cost = min(cost, float(search.cost[0]))
            plan = plan_of(problem, search, effort_of(part.planner, part.seed, search)) if better else None
            told(int(search.tally[EVENTS_TRIED]), plan)
        if search.tally[EVENTS_TRIED] == before:
            break
    effort = effort_of(part.planner, part.seed, search)
    return plan_of(problem, search, effort), effort


def _nothing(problem: Problem, effort: Effort) -> NoPlan:
    wall = barrier(problem)
    if wall is None:
        return NoPlan(
            f"{effort.planner} found no plan among {effort.events} events; {effort.arrivals} arrived, "
            f"{effort.refused} of {effort.judged} were refused by the exact look",
            valid="a larger budget, or another planner",
        )
    ground = problem.ground.rows
    said = ", ".join(
        f"({r}, {c}) at ({ground.x + (c + 0.5) * ground.cell:.2f}, {ground.y + (r + 0.5) * ground.cell:.2f})"
        for r, c in wall[:3]
    )
    return NoPlan(
        f"the goal is cut off: the body cannot go on beyond cells {said}{' and others' if len(wall) > 3 else ''}",
        valid="ground that feet may stand on, and room for the body, all the way",
        cells=tuple(wall),
    )
