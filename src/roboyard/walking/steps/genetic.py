"""A genetic algorithm: plans in numbers, of which the better ones are crossed and changed.  Holland 1975."""

from __future__ import annotations

from typing import Final

import numpy as np

from roboyard.compute import kernel
from roboyard.walking.steps.draws import key_of, uniform
from roboyard.walking.steps.genome import change_genome, copy_genome, draw_genome, grow, make_genomes
from roboyard.walking.steps.herd import EVENTS, PlanningContext, sample_world
from roboyard.walking.steps.rig_kernels import Limbs, sample_limbs
from roboyard.walking.steps.search import CANDIDATES, EVENTS_TRIED, Search, make_search

_CROWD: Final = 16
_GENERATIONS: Final = 12
_RIVALS: Final = 3
"""Drawn, of which the best becomes a parent."""
_CROSSED: Final = 0.6
_CHANGED: Final = 0.8


@kernel(examples=lambda: [(sample_world(), sample_limbs(), make_search(1, 1, 2), np.uint64(1), 1)])
def breed(world: PlanningContext, limbs: Limbs, search: Search, seed: np.uint64, events: int) -> None:
    """Go on with crowds until so many more events were tried; the worst of a crowd gives way to each child."""
    goal, genomes, child = search.tally[EVENTS_TRIED] + events, make_genomes(_CROWD + 1), _CROWD
    while search.tally[EVENTS_TRIED] < goal:
        key = key_of(seed, search.tally[CANDIDATES])
        for g in range(_CROWD):
            search.tally[CANDIDATES] += 1
            draw_genome(genomes, g, key_of(key, g))
            grow(world, limbs, search, genomes, g)
        for number in range(_CROWD * _GENERATIONS):
            own = key_of(key, _CROWD + number)
            parents = np.empty(2, np.int64)
            for p in range(2):
                best = int(uniform(own, p * _RIVALS) * _CROWD)
                for k in range(1, _RIVALS):
                    other = int(uniform(own, p * _RIVALS + k) * _CROWD)
                    if genomes.value[other] < genomes.value[best]:
                        best = other
                parents[p] = best
            copy_genome(genomes, parents[0], child, 0, EVENTS)
            length = max(genomes.events[parents[0]], 1)
            if uniform(own, 20) < _CROSSED:
                copy_genome(genomes, parents[1], child, 1 + int(uniform(own, 21) * length), EVENTS)
            if uniform(own, 22) < _CHANGED:
                change_genome(genomes, child, int(uniform(own, 23) * length), key_of(own, 24))
            search.tally[CANDIDATES] += 1
            grow(world, limbs, search, genomes, child)
            worst = 0
            for g in range(1, _CROWD):
                if genomes.value[g] > genomes.value[worst]:
                    worst = g
            if genomes.value[child] < genomes.value[worst]:
                copy_genome(genomes, child, worst, 0, EVENTS)
