"""Local search, tabu search and simulated annealing: from a plan to ones near it, over and over.

They differ in which of the neighbours they go to: a better one; the best of a few that were not just come from, be it
worse; or a worse one with a chance that falls as it cools.  Glover 1986; Kirkpatrick, Gelatt and Vecchi 1983.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from roboyard.compute import kernel
from roboyard.walking.steps.draws import key_of, uniform
from roboyard.walking.steps.genome import change_genome, copy_genome, draw_genome, grow, make_genomes
from roboyard.walking.steps.herd import EVENTS, PlanningContext, sample_world
from roboyard.walking.steps.rig_kernels import Limbs, sample_limbs
from roboyard.walking.steps.search import CANDIDATES, EVENTS_TRIED, Search, make_search

_STEPS: Final = 60
"""From each plan that is begun with."""
_NEIGHBOURS: Final = 5
"""That tabu search looks at before it goes to one."""
_TABU: Final = 8
"""Steps for which an event that was changed stays as it is."""
_WARM: Final = 0.1
"""Share of a plan's cost by which one that is worse is taken with a chance of 1/e, at first."""
_COOL: Final = 0.93
"""And after each step the last share times this."""


@kernel(examples=lambda: [(sample_world(), sample_limbs(), make_search(1, 1, 2), np.uint64(1), 1, _WARM, 1, 0)])
def _climb(
    world: PlanningContext,
    limbs: Limbs,
    search: Search,
    seed: np.uint64,
    events: int,
    warm: float,
    neighbours: int,
    tabu: int,
) -> None:
    goal, genomes = search.tally[EVENTS_TRIED] + events, make_genomes(3)
    here, there, best = 0, 1, 2
    changed = np.empty(EVENTS, np.int64)
    while search.tally[EVENTS_TRIED] < goal:
        key = key_of(seed, search.tally[CANDIDATES])
        search.tally[CANDIDATES] += 1
        draw_genome(genomes, here, key)
        grow(world, limbs, search, genomes, here)
        changed[:], heat = -tabu - 1, warm
        for step in range(_STEPS):
            if genomes.events[here] == 0:
                break
            genomes.value[best], at = math.inf, -1
            for k in range(neighbours):
                own = key_of(key_of(key, EVENTS + step), k)
                event = int(uniform(own, 1) * genomes.events[here])
                if step - changed[event] <= tabu:
                    continue
                search.tally[CANDIDATES] += 1
                copy_genome(genomes, here, there, 0, EVENTS)
                change_genome(genomes, there, event, own)
                grow(world, limbs, search, genomes, there)
                if genomes.value[there] < genomes.value[best]:
                    copy_genome(genomes, there, best, 0, EVENTS)
                    at = event
            if at < 0:
                continue
            worse = genomes.value[best] / genomes.value[here] - 1.0
            luck = heat > 0.0 and uniform(key_of(key, 3 * EVENTS + step), 0) < math.exp(-max(worse, 0.0) / heat)
            if worse <= 0.0 or luck or tabu > 0:
                copy_genome(genomes, best, here, 0, EVENTS)
                changed[at] = step
            heat *= _COOL


@kernel(examples=lambda: [(sample_world(), sample_limbs(), make_search(1, 1, 2), np.uint64(1), 1)])
def search_near(world: PlanningContext, limbs: Limbs, search: Search, seed: np.uint64, events: int) -> None:
    """Local search: a neighbour that is no worse is gone on from."""
    _climb(world, limbs, search, seed, events, 0.0, 1, 0)


@kernel(examples=lambda: [(sample_world(), sample_limbs(), make_search(1, 1, 2), np.uint64(1), 1)])
def anneal(world: PlanningContext, limbs: Limbs, search: Search, seed: np.uint64, events: int) -> None:
    """Simulated annealing: a worse one with a chance that falls."""
    _climb(world, limbs, search, seed, events, _WARM, 1, 0)


@kernel(examples=lambda: [(sample_world(), sample_limbs(), make_search(1, 1, 2), np.uint64(1), 1)])
def search_tabu(world: PlanningContext, limbs: Limbs, search: Search, seed: np.uint64, events: int) -> None:
    """Tabu search: the best of a few, but for events that were just changed."""
    _climb(world, limbs, search, seed, events, 0.0, _NEIGHBOURS, _TABU)
