"""A plan as the numbers it is drawn with: what planners change that look for better plans near good ones.

The numbers of an event are those that `advance` takes; the same numbers from the same start give the same plan.  Those
behind the last event of a plan wait for one that goes on longer.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.walking.steps.advance import DRAWS, advance
from roboyard.walking.steps.draws import key_of, uniform
from roboyard.walking.steps.events import ALIVE, ARRIVED
from roboyard.walking.steps.herd import EVENTS, PlanningContext, sample_world
from roboyard.walking.steps.rig_kernels import Limbs, sample_limbs
from roboyard.walking.steps.search import EVENTS_TRIED, Search, make_search, start, take
from roboyard.walking.steps.stretch import left_over

_LOST: Final = 1e4
"""A plan that does not arrive is worse than any that does by this, and more the farther it ends [s]."""
_PER_METRE: Final = 1e3
_TRIES: Final = 8


class Genomes(NamedTuple):
    """Plans as numbers.

    Attributes:
        draws: (g, e, DRAWS) from 0 up to 1.
        way: (g,) key of the way.
        events: (g,) so many were used.
        value: (g,) estimated cost [s]; more than 1e4 for one that does not arrive.
    """

    draws: Array
    way: NDArray[np.uint64]
    events: NDArray[np.int64]
    value: Array


@kernel(examples=lambda: [(1,)])
def make_genomes(count: int) -> Genomes:
    """Room for so many."""
    return Genomes(
        np.zeros((count, EVENTS, DRAWS)), np.zeros(count, np.uint64), np.zeros(count, np.int64), np.zeros(count)
    )


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(make_genomes(1), 0, np.uint64(1))])
def draw_genome(genomes: Genomes, g: int, key: np.uint64) -> None:
    """Draw all numbers of one."""
    genomes.way[g] = key_of(key, 0)
    for e in range(EVENTS):
        own = key_of(key, 1 + e)
        for m in range(DRAWS):
            genomes.draws[g, e, m] = uniform(own, m)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(make_genomes(2), 0, 1, 0, 1)])
def copy_genome(genomes: Genomes, source: int, target: int, first: int, last: int) -> None:
    """Copy the numbers of some events, and with the first one the way."""
    for e in range(first, last):
        for m in range(DRAWS):
            genomes.draws[target, e, m] = genomes.draws[source, e, m]
    if first == 0:
        genomes.way[target] = genomes.way[source]
        genomes.events[target], genomes.value[target] = genomes.events[source], genomes.value[source]


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(make_genomes(1), 0, 0, np.uint64(1))])
def change_genome(genomes: Genomes, g: int, event: int, key: np.uint64) -> None:
    """Draw anew: the numbers of one event; sometimes of all from there on, or, seldom, the way."""
    how = uniform(key, 0)
    last = EVENTS if how < 0.3 else event + 1
    for e in range(event, last):
        own = key_of(key, 1 + e)
        for m in range(DRAWS):
            genomes.draws[g, e, m] = uniform(own, m)
    if how > 0.95:
        genomes.way[g] = key_of(key, 0)


@kernel(examples=lambda: [(sample_world(), sample_limbs(), make_search(1, 1, 2), make_genomes(1), 0)])
def grow(world: PlanningContext, limbs: Limbs, search: Search, genomes: Genomes, g: int) -> None:
    """Make the plan of one's numbers, and tell what it is worth."""
    herd, ways, log = search.herd, search.ways, search.log
    log.used[0] = 0
    search.tally[EVENTS_TRIED] += 1
    genomes.events[g], genomes.value[g] = 0, np.inf
    if not start(world, search, 0, genomes.way[g], _TRIES):
        return
    state, first = ALIVE, herd.events[0]
    while state == ALIVE:
        state = advance(world, ways, herd, log, 0, genomes.draws[g, herd.events[0] - first], False)
        search.tally[EVENTS_TRIED] += 1
    genomes.events[g] = herd.events[0] - first
    genomes.value[g] = _LOST + _PER_METRE * left_over(world, ways, herd, 0)
    if state == ARRIVED:
        genomes.value[g] = min(take(world, limbs, search, 0, True), genomes.value[g])
