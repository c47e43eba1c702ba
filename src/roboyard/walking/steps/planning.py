"""Planning steps: one interface for all planners, on one core or several.

A budget is a number of events to try.  It is spent in parts of a fixed size, each a search of its own with a seed of
its own, and the best of their plans is taken; so the same seed and budget give the same plan on any number of cores.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Event
from typing import Final

import numpy as np

from roboyard.compute.pools import ThreadPool
from roboyard.config.describe import near
from roboyard.errors import InputError, UnknownNameError
from roboyard.walking.errors import NoPlan
from roboyard.walking.steps.draft import copy_draft
from roboyard.walking.steps.draws import key_of
from roboyard.walking.steps.explain import barrier
from roboyard.walking.steps.greedy import PLANS as TRIED
from roboyard.walking.steps.greedy import climb
from roboyard.walking.steps.herd import EVENTS, World
from roboyard.walking.steps.plan import Effort, StepPlan, effort_of, plan_of
from roboyard.walking.steps.problem import Problem
from roboyard.walking.steps.rig_kernels import Limbs
from roboyard.walking.steps.sampling import sample
from roboyard.walking.steps.search import CANDIDATES, EVENTS_TRIED, Search, make_search
from roboyard.walking.steps.splitting import PLANS, split

Spend = Callable[[World, Limbs, Search, np.uint64, int], None]
"""Goes on with a search until so many more events were tried, or a few more."""
Told = Callable[[int, StepPlan | None], None]
"""Told now and then: how many events were tried so far, and a plan that is better than those before, if any."""

PART: Final = 200_000
"""Events of one search."""
_CHUNK: Final = 2_000
"""Events between two questions whether to stop."""


@dataclass(frozen=True)
class StepPlanner:
    """A planner of steps.

    Attributes:
        spend: Its kernel.
        plans: Partial plans that it keeps at once.
        rows: Of the log that they share.
    """

    spend: Spend
    plans: int
    rows: int

    def search(self, legs: int) -> Search:
        """An empty search."""
        return make_search(self.plans, legs, self.rows)


PLANNERS: Final = {
    "splitting": StepPlanner(split, PLANS, PLANS * 500),
    "random-sampling": StepPlanner(sample, 1, EVENTS + 2),
    "greedy": StepPlanner(climb, TRIED, TRIED * (EVENTS + 2)),
}
"""By name."""


def plan_steps(
    problem: Problem,
    planner: str = "splitting",
    *,
    budget: int = PART,
    seed: int = 0,
    workers: int = 1,
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
        stop: Asked every few milliseconds; true ends the search, and the best plan so far is taken.
        told: Progress, from whichever thread.

    Raises:
        UnknownNameError: there is no such planner.
        InputError: a budget, seed or number of workers that is none.
        NoPlan: none was found; with the cells of the map that are in the way, where some are.
    """
    if planner not in PLANNERS:
        raise UnknownNameError(f"no planner {planner!r}{near(planner, PLANNERS)}", valid=", ".join(PLANNERS))
    for what, number, least in (("budget", budget, 1), ("seed", seed, 0)):
        if not least <= number < 2**53:
            raise InputError(f"{what} {number}", valid=f"a whole number, {least} or more")
    chosen, ended = PLANNERS[planner], Event()
    asked = stop or ended.is_set
    parts = [(k, min(PART, budget - k * PART)) for k in range(-(-budget // PART))]
    best: StepPlan | None = None
    effort = Effort(planner, seed)
    with ThreadPool(min(workers, len(parts)) if workers > 0 else workers) as pool:
        found: list[Future[tuple[StepPlan | None, Effort]]] = [
            pool.submit(_part, problem, planner, chosen, seed, k, share, asked, told) for k, share in parts
        ]
        for one in found:
            plan, took = one.result()
            effort += took
            if plan is not None and (best is None or plan.cost < best.cost):
                best = plan
    if best is None:
        raise _nothing(problem, effort)
    return StepPlan(best.heading, best.feet, best.track, best.swings, best.cost, best.tipping, effort)


def _part(
    problem: Problem, name: str, planner: StepPlanner, seed: int, part: int, budget: int, stop: Callable[[], bool],
    told: Told | None,
) -> tuple[StepPlan | None, Effort]:  # fmt: skip
    search, world, limbs = planner.search(len(problem.feet)), problem.world, problem.limbs
    key, cost = np.uint64(key_of(np.uint64(seed), part)), np.inf
    if problem.past is not None:
        draft, way = problem.past
        copy_draft(draft, search.past)
        search.past_way[: len(way)], search.past_size[0] = way, len(way)
    while search.tally[EVENTS_TRIED] < budget and not stop():
        before = int(search.tally[CANDIDATES])
        planner.spend(world, limbs, search, key, int(min(_CHUNK, budget - search.tally[EVENTS_TRIED])))
        if told is not None:
            better = search.cost[0] < cost
            cost = min(cost, float(search.cost[0]))
            plan = plan_of(problem, search, effort_of(name, seed, search)) if better else None
            told(int(search.tally[EVENTS_TRIED]), plan)
        if search.tally[CANDIDATES] == before:
            break
    effort = effort_of(name, seed, search)
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
