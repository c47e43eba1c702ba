"""Branch and bound: at each moment a few events, the most promising first; what cannot be better any more is left out.

The bound: no plan is quicker than its feet, of which no more than all but three are in the air at once, nor than its
body.  Land and Doig 1960; depth first.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from roboyard.compute import kernel
from roboyard.walking.steps.advance import DRAWS, advance
from roboyard.walking.steps.draws import key_of, uniform
from roboyard.walking.steps.events import ALIVE, ARRIVED
from roboyard.walking.steps.herd import EVENTS, STEP, PlanningContext, copy_plan, sample_world
from roboyard.walking.steps.rig_kernels import Limbs, sample_limbs
from roboyard.walking.steps.search import CANDIDATES, EVENTS_TRIED, Search, make_search, next_key, start, take
from roboyard.walking.steps.stretch import left_over
from roboyard.walking.steps.support import FEWEST
from roboyard.walking.steps.swing import RISE

BRANCHES: Final = 4
"""Stretches of a few events that are tried from each moment."""
_STRETCH: Final = 4
"""Events of one."""
PLANS: Final = BRANCHES * (EVENTS // _STRETCH) + 3
ROWS: Final = 20_000
"""Of the log."""
_LEAVES: Final = 400
"""Ends of branches after which it begins anew, on another way."""
_WAYS: Final = 32


@kernel(examples=lambda: [(sample_world(), make_search(1, 1, 2), 0)])
def bound(world: PlanningContext, search: Search, i: int) -> float:
    """A time that no whole plan with this beginning is shorter than [s]."""
    herd, n0 = search.herd, world.number
    quickest = 0.5 * math.pi * n0.lift / (RISE * n0.foot_speed)
    swings = 0.5 * herd.events[i] / (herd.down.shape[1] - FEWEST) * quickest
    gone = (herd.at[i] * STEP + left_over(world, search.ways, herd, i)) / n0.body_speed
    return float(max(swings, gone))


@kernel(examples=lambda: [(sample_world(), sample_limbs(), make_search(2, 1, 2), np.uint64(1), 1)])
def branch(world: PlanningContext, limbs: Limbs, search: Search, seed: np.uint64, events: int) -> None:
    """Go on with trees, depth first, until so many more events were tried."""
    herd, ways, log = search.herd, search.ways, search.log
    here, there = herd.events.shape[0] - 2, herd.events.shape[0] - 1
    draws, far, goal = np.empty(DRAWS), np.empty(here), search.tally[EVENTS_TRIED] + events
    while search.tally[EVENTS_TRIED] < goal:
        key = next_key(search, seed)
        if not start(world, search, 0, key_of(key, 0), _WAYS):
            continue
        # plans that are to be gone on with, the deepest last, and of those of one moment the nearest to the goal
        open_, leaves, number = 1, 0, 0
        while open_ > 0 and leaves < _LEAVES and log.used[0] + BRANCHES * _STRETCH < log.before.shape[0]:
            open_ -= 1
            copy_plan(herd, open_, here)
            first = open_
            for _ in range(BRANCHES):
                number += 1
                copy_plan(herd, here, there)
                state = ALIVE
                for k in range(_STRETCH):
                    own = key_of(key_of(key, number), k)
                    for m in range(DRAWS):
                        draws[m] = uniform(own, m)
                    state = advance(world, ways, herd, log, there, draws, True)
                    search.tally[EVENTS_TRIED] += 1
                    if state != ALIVE:
                        break
                search.tally[CANDIDATES] += 1
                if state == ARRIVED:
                    take(world, limbs, search, there, True)
                if state != ALIVE or bound(world, search, there) >= search.cost[0] or open_ >= here:
                    leaves += 1
                    continue
                left, at = left_over(world, ways, herd, there), open_
                while at > first and far[at - 1] < left:
                    copy_plan(herd, at - 1, at)
                    far[at] = far[at - 1]
                    at -= 1
                copy_plan(herd, there, at)
                far[at] = left
                open_ += 1
