"""The kernels that every planner shares: begin a plan, and add one event to it.

After each event a plan keeps the stretch of its way where the body can be: within reach of all feet that are down, and
far enough inside their polygon.  Two stretches that follow each other overlap: the body is somewhere in both when the
event happens.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.walking.steps.draws import key_of, uniform
from roboyard.walking.steps.events import ALIVE, ARRIVED, DEAD
from roboyard.walking.steps.herd import EVENTS, Herd, Log, PlanningContext, Ways, sample_parts
from roboyard.walking.steps.placing import lift, set_down

DRAWS: Final = 4
"""Numbers that an event takes: which foot, how far beside its place along and across, where the body is."""
_STALLED: Final = 40
"""Of the plans that arrive 95 of 100 get on within half as many events, always; others would go on to the log's end."""
_HOLDS_BACK: Final = 4.0
"""A patient planner picks a foot so much sooner if the body cannot go on before it has changed."""


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*sample_parts(), 0, np.zeros(DRAWS), False)])
def advance(world: PlanningContext, ways: Ways, herd: Herd, log: Log, i: int, draws: Array, patient: bool) -> int:
    """Add one event to plan ``i``: a wheel picks a foot by the square of its bonus; it rises, or is set down.

    A body that can be at the goal only sets feet down any more, until all are.

    Args:
        world: See there.
        ways: See there.
        herd: See there.
        log: See there.
        i: Which plan.
        draws: (DRAWS,) from 0 up to 1.
        patient: A foot that finds no place stays in the air, and another is picked; the body keeps to the middle of
            where it can be.  Otherwise such a plan is dropped, and the body is where it is drawn (Herms 2004).

    Returns:
        ALIVE, ARRIVED (nothing was left to do), DEAD (no foot can rise, or one finds no place), FULL.
    """
    legs = herd.down.shape[1]
    if herd.events[i] >= EVENTS:
        return DEAD
    ending = herd.span[i, 1] >= ways.size[herd.way[i]] - 1
    weights, total = herd.weights, 0.0
    for k in range(legs):
        weights[k] = 0.0
        if not (ending and herd.down[i, k]):
            weights[k] = herd.bonus[i, k] ** 2
            if patient and (not herd.down[i, k] or herd.reach[i, k, 1] <= herd.span[i, 1]):
                weights[k] *= _HOLDS_BACK
            if ending:
                weights[k] += 1.0
            total += weights[k]
    if ending and total == 0.0:
        return ARRIVED
    share = draws[0]
    while total > 0.0:
        left, leg = share * total, -1
        for k in range(legs):
            if weights[k] > 0.0:
                leg = k
                if left < weights[k]:
                    break
                left -= weights[k]
        share = min(max(left / weights[leg], 0.0), 0.999999)  # what is left of the draw is as good as a new one
        if herd.down[i, leg]:
            state = lift(world, ways, herd, log, i, leg, -1.0 if patient else draws[3])
        else:
            state = set_down(world, ways, herd, log, i, leg, draws[1], draws[2], draws[3], patient)
            if not patient:
                return state
        if state != DEAD:
            return state
        weights[leg], total = 0.0, 0.0
        for k in range(legs):
            total += weights[k]
    return DEAD


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*sample_parts(), 0, np.uint64(1), np.zeros(DRAWS))])
def go_through(world: PlanningContext, ways: Ways, herd: Herd, log: Log, i: int, key: np.uint64, draws: Array) -> int:
    """Go on with plan ``i``, without patience, as far as it gets; one that gets no farther for long is dropped.

    Args:
        world: See there.
        ways: See there.
        herd: See there.
        log: See there.
        i: Which plan.
        key: What its events are drawn with.
        draws: (DRAWS,) to work in.

    Returns:
        ARRIVED, DEAD, FULL; or ALIVE, if it was dropped.
    """
    state, farthest, gained = ALIVE, 0, herd.events[i]
    while state == ALIVE and herd.events[i] - gained < _STALLED:
        own = key_of(key, 2 + herd.events[i])
        for k in range(DRAWS):
            draws[k] = uniform(own, k)
        state = advance(world, ways, herd, log, i, draws, False)
        if herd.span[i, 1] > farthest:
            farthest, gained = herd.span[i, 1], herd.events[i]
    return state
