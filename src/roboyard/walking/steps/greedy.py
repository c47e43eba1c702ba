"""Greedy: of a few events drawn at each moment the one is taken from which the body can go farthest."""

from __future__ import annotations

from typing import Final

import numpy as np

from roboyard.compute import kernel
from roboyard.walking.steps.advance import DRAWS, advance
from roboyard.walking.steps.draws import key_of, uniform
from roboyard.walking.steps.events import ALIVE, ARRIVED, FULL
from roboyard.walking.steps.herd import PlanningContext, copy_plan, sample_world
from roboyard.walking.steps.rig_kernels import Limbs, sample_limbs
from roboyard.walking.steps.search import EVENTS_TRIED, Search, make_search, next_key, start, take

PLANS: Final = 8
"""The one that goes on, and as many less one drawn from it."""
_WAYS: Final = 32


@kernel(examples=lambda: [(sample_world(), sample_limbs(), make_search(1, 1, 2), np.uint64(1), 1)])
def climb(world: PlanningContext, limbs: Limbs, search: Search, seed: np.uint64, events: int) -> None:
    """Go on with plans, one after the other, until so many more events were tried."""
    ways, herd, log = search.ways, search.herd, search.log
    draws, goal = np.empty(DRAWS), search.tally[EVENTS_TRIED] + events
    while search.tally[EVENTS_TRIED] < goal:
        key = next_key(search, seed)
        if not start(world, search, 0, key_of(key, 0), _WAYS):
            continue
        event, state = 0, ALIVE
        while state == ALIVE:
            own, best, farthest = key_of(key, 2 + event), -1, -1
            event += 1
            for i in range(1, herd.events.shape[0]):
                copy_plan(herd, 0, i)
                for k in range(DRAWS):
                    draws[k] = uniform(own, i * DRAWS + k)
                found = advance(world, ways, herd, log, i, draws, True)
                search.tally[EVENTS_TRIED] += 1
                if found in (ARRIVED, FULL):
                    state = found
                    break
                if found == ALIVE and herd.span[i, 1] > farthest:
                    best, farthest = i, herd.span[i, 1]
            if state != ALIVE or best < 0:
                break
            copy_plan(herd, best, 0)
        if state == ARRIVED:
            take(world, limbs, search, 0, True)
