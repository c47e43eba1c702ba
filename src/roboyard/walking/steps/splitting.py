"""Splitting: partial plans that got somewhere are kept, and gone on with again and again from there.

Where few ways through exist, plans that found one's beginning are not thrown away with the first misstep.  Of each
small square that the body can get to one partial plan is kept; the one that is nearest to the goal and was not gone on
with too often yet is copied, perhaps turned off to another way, and goes on for a few events; what it comes to is kept
in its turn.  After Kahn and Harris 1951, as for rare events; squares as in Ecoffet et al. 2021, First return, then
explore.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.walking.steps.advance import DRAWS, advance, go_through
from roboyard.walking.steps.draws import key_of, uniform
from roboyard.walking.steps.events import ALIVE, ARRIVED, DEAD, turn_off
from roboyard.walking.steps.herd import (
    BENT,
    Herd,
    Log,
    PlanningContext,
    Ways,
    copy_plan,
    copy_way,
    sample_parts,
    sample_world,
)
from roboyard.walking.steps.rig_kernels import Limbs, sample_limbs
from roboyard.walking.steps.search import BLAMED, CANDIDATES, EVENTS_TRIED, Search, make_search, start, take
from roboyard.walking.steps.stretch import left_over

PLANS: Final = 512
"""That are kept, at most; the last one is the one that goes on."""
ROWS: Final = 60_000
"""Of the log."""
_SQUARE: Final = 0.06
"""Edge of the squares, of the Akrobat [m]."""
_SIDE: Final = 64
"""Squares beside each other, and behind each other, before they begin anew."""
_WAYS: Final = 8
_FIRST: Final = 4
"""Plans that a herd begins with."""
_ROUND: Final = 8
"""Events for which one goes on."""
_TIRED: Final = 0.02
"""Having gone on with a plan once counts as so much farther from the goal [m]."""
_ASTRAY: Final = 0.4
"""Share of copies that go on another way."""
_DOUBT: Final = 0.3
"""A plan with a part that was refused counts as so much farther from the goal [m]."""
_TRIES: Final = 60_000
"""Events of a herd."""
_ENOUGH: Final = 8
"""Arrivals that end it: one that was refused counts one, any other three, and the first plan of all ends it."""
_REFUSED: Final = 1
_FURTHER: Final = 3


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(sample_world(), *sample_parts()[1:3], 0)])
def square_of(world: PlanningContext, ways: Ways, herd: Herd, i: int) -> int:
    """Number of the square where the body of a plan can get to."""
    w, sample, edge = herd.way[i], herd.span[i, 1], _SQUARE * world.number.scale
    a = math.floor(ways.places[w, sample, 0] / edge) % _SIDE
    b = math.floor(ways.places[w, sample, 1] / edge) % _SIDE
    return int(a * _SIDE + b)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*sample_parts()[1:3], 0, 0)])
def copy_all(ways: Ways, herd: Herd, source: int, target: int) -> None:
    """Make one plan, with a way of its own, a copy of another."""
    copy_plan(herd, source, target)
    herd.way[target] = target
    copy_way(ways, source, target)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*sample_parts(), 0, 0, np.uint64(1))])
def follow(world: PlanningContext, ways: Ways, herd: Herd, log: Log, source: int, target: int, key: np.uint64) -> None:
    """Make one plan a copy of another, which may go on another way."""
    copy_all(ways, herd, source, target)
    if uniform(key, 0) < _ASTRAY and turn_off(world, ways, herd, log, target, uniform(key, 1), uniform(key, 2)) == DEAD:
        copy_all(ways, herd, source, target)


@kernel(no_refcount=True, examples=lambda: [(*sample_parts()[2:], 0, 0, np.zeros(1), 0)])
def doubt(herd: Herd, log: Log, i: int, events: int, tired: Array, kept: int) -> None:
    """Put off all plans that begin with so many events of one, after which something was wrong with it."""
    row, left = herd.last[i], herd.events[i]
    while row >= 0 and left > events:
        left -= log.kind[row] != BENT
        row = log.before[row]
    while row >= 0 and log.kind[row] == BENT:
        row = log.before[row]
    for k in range(kept):
        at = herd.last[k]
        while at > row:
            at = log.before[at]
        if at == row:
            tired[k] += _DOUBT


@kernel(examples=lambda: [(sample_world(), sample_limbs(), make_search(1, 1, 2), np.uint64(1), 1)])
def split(world: PlanningContext, limbs: Limbs, search: Search, seed: np.uint64, events: int) -> None:
    """Go on with herds of partial plans until so many more events were tried; a herd is never left half done."""
    herd, ways, log, plans = search.herd, search.ways, search.log, search.herd.events.shape[0]
    draws, goal = np.empty(DRAWS), search.tally[EVENTS_TRIED] + events
    slots, left, tired = np.empty(_SIDE * _SIDE, np.int64), np.empty(plans), np.empty(plans)
    one = plans - 1
    while search.tally[EVENTS_TRIED] < goal:
        key = key_of(seed, search.tally[CANDIDATES])
        log.used[0], slots[:], kept, arrivals, rounds = 0, -1, 0, 0, 0
        # the first plan of all ends its herd, so that it is told at once
        counts = _FURTHER if math.isfinite(search.cost[0]) else _ENOUGH
        search.tally[EVENTS_TRIED] += 1
        until = search.tally[EVENTS_TRIED] + _TRIES
        for i in range(_FIRST):
            search.tally[CANDIDATES] += 1
            if start(world, search, kept, key_of(key, i), 1 if i > 0 else _WAYS):
                left[kept], tired[kept] = left_over(world, ways, herd, kept), 0.0
                kept += 1
                # where nothing is in the way a plan gets through by itself, with fewer steps than by pieces
                used = log.used[0]
                copy_all(ways, herd, kept - 1, one)
                before = herd.events[one]
                state = go_through(world, ways, herd, log, one, key_of(key, i), draws)
                search.tally[EVENTS_TRIED] += herd.events[one] - before + 1
                if state == ARRIVED:
                    arrivals += _REFUSED if math.isinf(take(world, limbs, search, one, True)) else counts
                log.used[0] = used
        while kept > 0 and arrivals < _ENOUGH and search.tally[EVENTS_TRIED] < until:
            own = key_of(key, _FIRST + rounds)
            rounds += 1
            best, least = 0, math.inf
            for i in range(kept):
                value = left[i] + tired[i]
                if value < least:
                    best, least = i, value
            tired[best] += _TIRED
            search.tally[CANDIDATES] += 1
            used = log.used[0]
            follow(world, ways, herd, log, best, one, key_of(own, plans))
            state = ALIVE
            for k in range(_ROUND):
                for m in range(DRAWS):
                    draws[m] = uniform(own, plans + 1 + k * DRAWS + m)
                state = advance(world, ways, herd, log, one, draws, True)
                search.tally[EVENTS_TRIED] += 1
                if state != ALIVE:
                    break
            if state == ARRIVED:
                refused = math.isinf(take(world, limbs, search, one, True))
                arrivals += _REFUSED if refused else counts
                if refused:
                    doubt(herd, log, one, search.tally[BLAMED], tired, kept)
            elif state == ALIVE:
                square, far = square_of(world, ways, herd, one), left_over(world, ways, herd, one)
                slot = slots[square]
                if slot < 0 and kept < one:
                    slot = kept
                    slots[square], left[slot], tired[slot] = slot, math.inf, 0.0
                    kept += 1
                if slot >= 0 and (
                    math.isinf(left[slot]) or herd.events[one] < herd.events[slot] or uniform(own, plans + 999) < 0.1
                ):
                    copy_all(ways, herd, one, slot)
                    left[slot] = far
                    used = log.used[0]
            elif log.used[0] >= log.before.shape[0]:
                break
            log.used[0] = used
