"""One search with one seed: what all planners keep, and how a plan that arrived is taken."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.compute.array_kernels import assign
from roboyard.geometry.arrays import Array
from roboyard.walking.steps.draft import (
    Draft,
    copy_draft,
    make_draft,
    poorness,
    schedule,
    unroll,
)  # fmt: skip
from roboyard.walking.steps.draws import key_of
from roboyard.walking.steps.evening import even_out, keep_in_reach
from roboyard.walking.steps.events import begin, repeat
from roboyard.walking.steps.herd import (
    LONGEST,
    Herd,
    Log,
    PlanningContext,
    Ways,
    make_herd,
    make_log,
    make_ways,
    sample_world,
)
from roboyard.walking.steps.judge import GOOD, judge
from roboyard.walking.steps.rig_kernels import Limbs, sample_limbs
from roboyard.walking.steps.stances import StanceGraph, make_graph
from roboyard.walking.steps.ways import draw_way

ROOM: Final = 1.0
"""A plan is looked at exactly when its estimate is no worse than the best one's by more than this factor."""
# columns of `Search.tally`
EVENTS_TRIED: Final = 0
CANDIDATES: Final = 1
ARRIVALS: Final = 2
JUDGED: Final = 3
REFUSED: Final = 4
BLAMED: Final = 11
"""After how many of its events something was wrong with the plan that was refused last."""


class Search(NamedTuple):
    """State of a search.

    Attributes:
        ways: Of the partial plans.
        herd: Them.
        log: Their events.
        draft: Of the plan that arrived last.
        best: The best one.
        best_way: (n, 3) its way; the first ``best_size[0]`` rows.
        best_size: (1,) rows.
        cost: (2,) of the best one: exact, estimated; infinite without one.
        tally: (12,) events tried, candidates, arrivals, those looked at exactly, and those of them that were refused:
            all, then by what was wrong; and `BLAMED`.
        about: (6,) of the best one, see `judge`.
        past: Events that all plans begin with: settled ones of a plan that is under way.
        past_way: (n, 3) the way of the body in them; the first ``past_size[0]`` rows.
        past_size: (1,) rows.
        graph: Of stances, for the planner that has one.
        trial: Room for one plan more.
    """

    ways: Ways
    herd: Herd
    log: Log
    draft: Draft
    best: Draft
    best_way: Array
    best_size: NDArray[np.int64]
    cost: Array
    tally: NDArray[np.int64]
    about: Array
    past: Draft
    past_way: Array
    past_size: NDArray[np.int64]
    graph: StanceGraph
    trial: Herd


def make_search(plans: int, legs: int, events: int, ways: int = 0, nodes: int = 1) -> Search:
    """An empty search with room for some partial plans, events, ways (0: as many as plans), and nodes of a graph."""
    return Search(
        make_ways(ways or plans), make_herd(plans, legs), make_log(events), make_draft(), make_draft(),
        np.zeros((LONGEST, 3)), np.zeros(1, np.int64), np.full(2, np.inf), np.zeros(12, np.int64), np.zeros(6),
        make_draft(), np.zeros((LONGEST, 3)), np.zeros(1, np.int64), make_graph(nodes, legs),
        make_herd(1, legs),
    )  # fmt: skip


@kernel(examples=lambda: [(sample_world(), make_search(1, 1, 2), 0)])
def repeat_past(world: PlanningContext, search: Search, i: int) -> bool:
    """Add the events that are settled to plan ``i`` of the herd, which has just begun; whether there is room."""
    past = search.past
    for k in range(past.events[0]):
        sample = int(past.at[k + 1] + 0.5)
        if not repeat(
            world, search.ways, search.herd, search.log, i, past.leg[k], past.kind[k], past.place[k], sample
        ):  # fmt: skip
            return False
    return True


@kernel(examples=lambda: [(sample_world(), make_search(1, 1, 2), 0, np.uint64(1), 1)])
def start(world: PlanningContext, search: Search, i: int, key: np.uint64, tries: int) -> bool:
    """Begin plan ``i`` of the herd on a way of its own, with the events that are settled; whether that can be.

    Ways are drawn until the body can go along one, so often at most.
    """
    ways, first = search.ways, search.past_size[0]
    for k in range(first):
        assign(ways.places[i, k], search.past_way[k])
    if not draw_way(world, ways, i, key, tries, first) or not begin(world, ways, search.herd, search.log, i, i):
        return False
    return bool(repeat_past(world, search, i))


@kernel(examples=lambda: [(make_search(1, 1, 2), np.uint64(1))])
def next_key(search: Search, seed: np.uint64) -> np.uint64:
    """Count another candidate, to whom the whole log belongs: what its numbers are drawn with."""
    key = key_of(seed, search.tally[CANDIDATES])
    search.tally[CANDIDATES] += 1
    search.tally[EVENTS_TRIED] += 1
    search.log.used[0] = 0
    return key


@kernel(examples=lambda: [(sample_world(), sample_limbs(), make_search(1, 1, 2), 0, np.zeros((2, 3)), True)])
def _look(world: PlanningContext, limbs: Limbs, search: Search, i: int, way: Array, even: bool) -> tuple[float, int]:
    """The estimated cost [s], and GOOD or what is wrong; GOOD too where it is too dear to be looked at."""
    draft = search.draft
    unroll(world, search.ways, search.herd, search.log, i, search.past, draft)
    drawn, task = draft.at[: draft.events[0] + 2].copy(), world.number
    duration = even_out(world, draft) if even else schedule(world, draft)
    estimate = duration * (1.0 + task.footing * poorness(world, draft))
    if estimate >= ROOM * search.cost[1]:
        return estimate, GOOD
    if even:
        keep_in_reach(world, search.ways, search.herd.way[i], draft, drawn, search.trial)
        schedule(world, draft)
    about = np.zeros(6)
    search.tally[JUDGED] += 1
    why = judge(world, limbs, way, draft, about)
    estimate += duration * (task.energy * about[4] + task.leg_loss * about[5])  # only the exact look tells these
    if why != GOOD:
        search.tally[REFUSED + why] += 1
        search.tally[REFUSED] += 1
        search.tally[BLAMED] = int(about[0])
    elif about[0] < search.cost[0]:
        copy_draft(draft, search.best)
        for k in range(way.shape[0]):
            assign(search.best_way[k], way[k])
        search.best_size[0] = way.shape[0]
        search.cost[0], search.cost[1] = about[0], estimate
        assign(search.about, about)
    return estimate, why


@kernel(examples=lambda: [(sample_world(), sample_limbs(), make_search(1, 1, 2), 0, True)])
def take(world: PlanningContext, limbs: Limbs, search: Search, i: int, even: bool) -> float:
    """A plan that arrived: if it may be the best so far, an exact look at it.

    Args:
        world: See there.
        limbs: The legs.
        search: See there.
        i: Which plan of the herd.
        even: Let the body go evenly; and if that is refused, as the plan says after all.

    Returns:
        Its estimated cost [s]; infinite if it was looked at and refused.
    """
    way, size = search.ways.places[search.herd.way[i]], search.ways.size[search.herd.way[i]]
    search.tally[ARRIVALS] += 1
    estimate, why = _look(world, limbs, search, i, way[:size], even)
    if why != GOOD and even:
        estimate, why = _look(world, limbs, search, i, way[:size], False)
    return estimate if why == GOOD else np.inf
