"""One search with one seed: what all planners keep, and how a plan that arrived is taken."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.walking.steps.advance import begin, repeat
from roboyard.walking.steps.draft import (
    Draft,
    copy_draft,
    draw_positions,
    even_out,
    make_draft,
    poorness,
    schedule,
    unroll,
)  # fmt: skip
from roboyard.walking.steps.draws import key_of
from roboyard.walking.steps.herd import LONGEST, Herd, Log, Ways, World, make_herd, make_log, make_ways, sample_world
from roboyard.walking.steps.judge import GOOD, judge
from roboyard.walking.steps.rig_kernels import Limbs, sample_limbs
from roboyard.walking.steps.ways import draw_way

Array = NDArray[np.float64]

ROOM: Final = 1.02
"""A plan is looked at exactly when its estimate is no worse than the best one's by more than this factor."""
# columns of `Search.tally`
EVENTS_TRIED: Final = 0
CANDIDATES: Final = 1
ARRIVALS: Final = 2
JUDGED: Final = 3
REFUSED: Final = 4


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
        tally: (5,) events tried, candidates, arrivals, those looked at exactly, and those of them that were refused.
        about: (4,) of the best one, see `judge`.
        past: Events that all plans begin with: settled ones of a plan that is under way.
        past_way: (n, 3) the way of the body in them; the first ``past_size[0]`` rows.
        past_size: (1,) rows.
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


def make_search(plans: int, legs: int, events: int) -> Search:
    """An empty search with room for some partial plans and events."""
    return Search(
        make_ways(plans), make_herd(plans, legs), make_log(events), make_draft(), make_draft(),
        np.zeros((LONGEST, 3)), np.zeros(1, np.int64), np.full(2, np.inf), np.zeros(12, np.int64), np.zeros(4),
        make_draft(), np.zeros((LONGEST, 3)), np.zeros(1, np.int64),
    )  # fmt: skip


@kernel(examples=lambda: [(sample_world(), make_search(1, 1, 2), 0, np.uint64(1), 1)])
def start(world: World, search: Search, i: int, key: np.uint64, tries: int) -> bool:
    """Begin plan ``i`` of the herd on a way of its own, with the events that are settled; whether that can be.

    Ways are drawn until the body can go along one, so often at most.
    """
    ways, past, first = search.ways, search.past, search.past_size[0]
    ways.places[i, :first] = search.past_way[:first]
    if not draw_way(world, ways, i, key, tries, first) or not begin(world, ways, search.herd, search.log, i, i):
        return False
    for k in range(past.events[0]):
        sample = int(past.at[k + 1] + 0.5)
        if not repeat(
            world, ways, search.herd, search.log, i, past.leg[k], past.kind[k], past.place[k], sample
        ):  # fmt: skip
            return False
    return True


@kernel(examples=lambda: [(sample_world(), sample_limbs(), make_search(1, 1, 2), 0, np.uint64(1), True)])
def take(world: World, limbs: Limbs, search: Search, i: int, key: np.uint64, even: bool) -> float:
    """A plan that arrived: where its body is at each event, and, if it may be the best so far, an exact look at it.

    Args:
        world: See there.
        limbs: The legs.
        search: See there.
        i: Which plan of the herd.
        key: Draws of the body's places.
        even: Let the body go evenly, rather than as drawn.

    Returns:
        Its estimated cost [s]; infinite if it was looked at and refused.
    """
    draft = search.draft
    search.tally[ARRIVALS] += 1
    unroll(world, search.ways, search.herd, search.log, i, search.past, draft)
    draw_positions(draft, key_of(key, 7))
    duration = even_out(world, draft) if even else schedule(world, draft)
    estimate = duration * (1.0 + world.number.footing * poorness(world, draft))
    if estimate < ROOM * search.cost[1]:
        about = np.empty(4)
        way, size = search.ways.places[search.herd.way[i]], search.ways.size[search.herd.way[i]]
        search.tally[JUDGED] += 1
        why = judge(world, limbs, way[:size], draft, about)
        if why != GOOD:
            search.tally[REFUSED + why] += 1
            search.tally[REFUSED] += 1
            return np.inf
        if about[0] < search.cost[0]:
            copy_draft(draft, search.best)
            search.best_way[:size] = way[:size]
            search.best_size[0] = size
            search.cost[0], search.cost[1] = about[0], estimate
            search.about[:] = about
    return estimate
