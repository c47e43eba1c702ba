"""Splitting: many partial plans go on together; those that ended give way to copies of others that got farther.

Where few ways through exist, plans that found one's beginning are not thrown away with the first misstep.  After
Kahn and Harris 1951, as for rare events.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from roboyard.compute import kernel
from roboyard.walking.steps.advance import ALIVE, ARRIVED, DEAD, DRAWS, FULL, advance
from roboyard.walking.steps.draws import key_of, uniform
from roboyard.walking.steps.herd import World, copy_plan, sample_world
from roboyard.walking.steps.rig_kernels import Limbs, sample_limbs
from roboyard.walking.steps.search import CANDIDATES, EVENTS_TRIED, Search, make_search, start, take

PLANS: Final = 64
_ROUND: Final = 3
"""Events between two replacements."""
_RIVALS: Final = 3
"""Plans that are drawn, of which the one that got farthest is copied."""
_WAYS: Final = 8
_STALE: Final = 60
"""Rounds without any plan getting farther end a herd."""


@kernel(examples=lambda: [(sample_world(), make_search(1, 1, 2), 0)])
def left_over(world: World, search: Search, i: int) -> int:
    """Samples of its way that the body of a plan cannot reach yet."""
    return int(search.ways.size[search.herd.way[i]] - 1 - search.herd.span[i, 1])


@kernel(examples=lambda: [(sample_world(), sample_limbs(), make_search(1, 1, 2), np.uint64(1), 1)])
def split(world: World, limbs: Limbs, search: Search, seed: np.uint64, events: int) -> None:
    """Go on with herds of partial plans until so many more events were tried; a herd is never left half done."""
    herd, ways, log, plans = search.herd, search.ways, search.log, search.herd.events.shape[0]
    draws, goal = np.empty(DRAWS), search.tally[EVENTS_TRIED] + events
    states = np.empty(plans, np.int64)
    while search.tally[EVENTS_TRIED] < goal:
        key = key_of(seed, search.tally[CANDIDATES])
        log.used[0] = 0
        search.tally[CANDIDATES] += plans
        search.tally[EVENTS_TRIED] += 1
        alive = 0
        for i in range(plans):
            own = key_of(key, i)
            states[i] = DEAD
            if start(world, search, i, own, 1 if i > 0 else _WAYS):
                states[i] = ALIVE
                alive += 1
        event, nearest, stale, arrivals = 0, 1 << 40, 0, 0
        while alive > 0 and stale < _STALE and arrivals < plans:
            for i in range(plans):
                if states[i] != ALIVE:
                    continue
                own = key_of(key_of(key, i), 100 + event)
                for k in range(_ROUND):
                    for m in range(DRAWS):
                        draws[m] = uniform(own, k * DRAWS + m)
                    state = advance(world, ways, herd, log, i, draws)
                    search.tally[EVENTS_TRIED] += 1
                    if state != ALIVE:
                        states[i] = state
                        break
                if states[i] == ARRIVED:
                    arrivals += 1
                    take(world, limbs, search, i, own, True)
                elif states[i] == FULL:
                    stale = _STALE
                if states[i] != ALIVE:
                    alive -= 1
            stale += 1
            for i in range(plans):
                if states[i] == ALIVE and left_over(world, search, i) < nearest:
                    nearest, stale = left_over(world, search, i), min(stale, 0)
            event += 1
            if alive == 0:
                break
            own = key_of(key, 10_000 + event)
            for i in range(plans):
                if states[i] == ALIVE:
                    continue
                best, place = -1, 0
                for k in range(_RIVALS):
                    other = int(uniform(own, i * _RIVALS + k) * plans)
                    if states[other] == ALIVE and (best < 0 or left_over(world, search, other) < place):
                        best, place = other, left_over(world, search, other)
                if best >= 0:
                    copy_plan(herd, best, i)
                    states[i] = ALIVE
                    alive += 1
