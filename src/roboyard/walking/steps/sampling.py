"""Random sampling, after Herms 2004: candidates one after the other, each drawn from the start to its end."""

from __future__ import annotations

import numpy as np

from roboyard.compute import kernel
from roboyard.walking.steps.advance import DRAWS, go_through
from roboyard.walking.steps.draws import key_of
from roboyard.walking.steps.events import ARRIVED
from roboyard.walking.steps.herd import PlanningContext, sample_world
from roboyard.walking.steps.rig_kernels import Limbs, sample_limbs
from roboyard.walking.steps.search import EVENTS_TRIED, Search, make_search, next_key, start, take

_WAYS = 32
"""Ways that are drawn until one is free."""


@kernel(examples=lambda: [(sample_world(), sample_limbs(), make_search(1, 1, 2), np.uint64(1), 1)])
def sample(world: PlanningContext, limbs: Limbs, search: Search, seed: np.uint64, events: int) -> None:
    """Go on drawing candidates until so many more events were tried."""
    ways, herd, log = search.ways, search.herd, search.log
    draws, goal = np.empty(DRAWS), search.tally[EVENTS_TRIED] + events
    while search.tally[EVENTS_TRIED] < goal:
        key = next_key(search, seed)
        if not start(world, search, 0, key_of(key, 0), _WAYS):
            continue
        before = herd.events[0]
        state = go_through(world, ways, herd, log, 0, key, draws)
        search.tally[EVENTS_TRIED] += herd.events[0] - before + 1
        if state == ARRIVED:
            take(world, limbs, search, 0, False)
