"""Whole plans before they are timed: their events in order, where on its way the body is at each, and about when."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.compute.array_kernels import assign
from roboyard.geometry.arrays import Array
from roboyard.walking.steps.ground_kernels import top_between
from roboyard.walking.steps.herd import (
    BENT,
    EVENTS,
    SET,
    STEP,
    Herd,
    Log,
    PlanningContext,
    Ways,
    make_log,
    sample_parts,
)
from roboyard.walking.steps.swing import HOLD, RISE

Whole = NDArray[np.int64]

_QUICK: Final = 0.5 * math.pi / RISE
"""A foot that is carried for long rises and comes down as fast as about it can: so much longer than evenly up."""


class Draft(NamedTuple):
    """A whole plan.

    Attributes:
        leg: (e,) whose foot.
        kind: (e,) LIFTED or SET.
        place: (e, 3) where [m].
        wish: (e, 2) where a foot that is set down was drawn for [m].
        mate: (e,) of a lift the event that sets the foot down, and the other way round.
        low: (e,) first sample of the way where the body can be at the event.
        high: (e,) last one.
        at: (e + 2,) where it is, in samples: at the start, at each event, at the end.
        gap: (e + 1,) time from each of these to the next [s].
        top: (e,) of an event that sets a foot down: the height of the swing before it [m].
        quick: (e,) of one: rising and coming down take as long as in a swing of this time, if it is longer [s].
        events: (3,) how many; how many of the first ones are settled, with body and time; how many are over.
    """

    leg: Whole
    kind: Whole
    place: Array
    wish: Array
    mate: Whole
    low: Whole
    high: Whole
    at: Array
    gap: Array
    top: Array
    quick: Array
    events: Whole


def make_draft() -> Draft:
    """Room for a plan."""
    whole = [np.zeros(EVENTS, np.int64) for _ in range(5)]
    return Draft(
        whole[0], whole[1], np.zeros((EVENTS, 3)), np.zeros((EVENTS, 2)), whole[2], whole[3], whole[4],
        np.zeros(EVENTS + 2), np.zeros(EVENTS + 1), np.zeros(EVENTS), np.ones(EVENTS), np.zeros(3, np.int64),
    )  # fmt: skip


@kernel(examples=lambda: [(make_draft(), make_draft())])
def copy_draft(source: Draft, target: Draft) -> None:
    """Make one plan a copy of another."""
    m = source.events[0]
    for k in range(m):
        target.leg[k], target.kind[k], target.mate[k] = source.leg[k], source.kind[k], source.mate[k]
        assign(target.place[k], source.place[k])
        assign(target.wish[k], source.wish[k])
        target.low[k], target.high[k] = source.low[k], source.high[k]
        target.at[k], target.gap[k], target.top[k] = source.at[k], source.gap[k], source.top[k]
        target.quick[k] = source.quick[k]
    target.at[m], target.at[m + 1], target.gap[m] = source.at[m], source.at[m + 1], source.gap[m]
    assign(target.events, source.events)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(sample_parts()[0], make_draft(), 0)])
def swing_time(world: PlanningContext, draft: Draft, k: int) -> float:
    """About the shortest time of the swing that ends with event ``k`` [s]."""
    a, b, top = draft.place[draft.mate[k]], draft.place[k], draft.top[k]
    across = math.hypot(b[0] - a[0], b[1] - a[1]) * 0.5 * math.pi / (1.0 - 2.0 * HOLD)
    up = (max(top - a[2], top - b[2])) * 0.5 * math.pi / RISE
    return float(max(across, up) / world.number.foot_speed)


@kernel(examples=lambda: [(*sample_parts()[:3], make_log(2), 0, make_draft(), make_draft())])
def unroll(world: PlanningContext, ways: Ways, herd: Herd, log: Log, i: int, past: Draft, draft: Draft) -> None:
    """The events of plan ``i`` in order, with where the body can be and is at each; as it was where that is settled."""
    m = herd.events[i]
    draft.events[0], draft.events[1], draft.events[2] = m, past.events[1], past.events[2]
    row, k, common = herd.last[i], m - 1, ways.size[herd.way[i]] - 1
    while k >= 0:
        before = log.before[row]
        if log.kind[row] == BENT:  # what was ahead of the body before lay on another way
            common, row = min(common, log.most[row]), before
            continue
        draft.leg[k], draft.kind[k] = log.leg[row], log.kind[row]
        assign(draft.place[k], log.place[row])
        assign(draft.wish[k], log.wish[row])
        draft.low[k] = max(log.span[row, 0], log.span[before, 0])
        draft.high[k] = min(log.span[row, 1], log.span[before, 1], common)
        draft.at[k + 1] = log.at[row]
        row, k = before, k - 1
    for k in range(past.events[1]):
        draft.at[k + 1], draft.gap[k] = past.at[k + 1], past.gap[k]
    rose = np.full(herd.down.shape[1], -1, np.int64)
    for k in range(m):
        leg = draft.leg[k]
        if draft.kind[k] == SET:
            a, b = draft.place[rose[leg]], draft.place[k]
            draft.mate[k], draft.mate[rose[leg]] = rose[leg], k
            n0 = world.number
            draft.top[k] = top_between(world.tops, n0.x, n0.y, n0.cell, a[0], a[1], b[0], b[1]) + n0.lift
            draft.quick[k] = max(draft.top[k] - a[2], draft.top[k] - b[2]) * _QUICK / world.number.foot_speed
            if k < past.events[1]:
                draft.top[k], draft.quick[k] = past.top[k], past.quick[k]
        else:
            rose[leg] = k
    draft.at[0], draft.at[m + 1] = 0.0, ways.size[herd.way[i]] - 1.0


@kernel(examples=lambda: [(sample_parts()[0], make_draft())])
def schedule(world: PlanningContext, draft: Draft) -> float:
    """About when each event happens, as soon as body and feet are there; the duration [s]."""
    m, speed = draft.events[0], world.number.body_speed / STEP
    times = np.zeros(m + 2)
    for k in range(m):
        time = times[k] + abs(draft.at[k + 1] - draft.at[k]) / speed
        if k < draft.events[1]:
            time = times[k] + draft.gap[k]
        elif draft.kind[k] == SET:
            time = max(time, times[draft.mate[k] + 1] + swing_time(world, draft, k))
        draft.gap[k] = time - times[k]
        times[k + 1] = time
    draft.gap[m] = abs(draft.at[m + 1] - draft.at[m]) / speed
    return float(times[m] + draft.gap[m])


@kernel(examples=lambda: [(sample_parts()[0], make_draft())])
def poorness(world: PlanningContext, draft: Draft) -> float:
    """How poor the ground is where feet are set, 0 to 1, in the mean."""
    total, number = 0.0, 0
    for k in range(draft.events[0]):
        if draft.kind[k] == SET:
            c = int((draft.place[k, 0] - world.number.x) / world.number.cell)
            r = int((draft.place[k, 1] - world.number.y) / world.number.cell)
            total += 1.0 - world.quality[r, c]
            number += 1
    return total / max(number, 1)
