"""Partial plans as kernels take them: many rows of arrays, the ways that bodies go, and a log of all events."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array

Whole = NDArray[np.int64]

STEP: Final = 0.01
"""Ways are sampled so densely [m]."""
EVENTS: Final = 1000
"""Of one plan, at most."""
LONGEST: Final = 2048
"""Samples of a way: 20 m."""
LIFTED: Final = 0
SET: Final = 1
BENT: Final = 2
"""No event: from here on the body goes another way."""


class Numbers(NamedTuple):
    """Settings of a problem.

    Attributes:
        x: Least x of the map, at the edge of the first column [m].
        y: Least y [m].
        cell: Edge of its cells [m].
        cells: Cells of a table of reach to the metre.
        layers: Its layers to the metre.
        gap: Feet of a side keep in order, and so far apart along the body [m].
        limb: Half of the thickness of a limb [m].
        cos: Of the heading.
        sin: Of it.
        margin: Least distance of the body's middle from the edges of the support polygon [m].
        step: Feet are set so far ahead of their place in the stance [m].
        spread: And so far beside that, at most, along x and y [m].
        lift: Feet rise at least so far above all they pass [m].
        body_speed: About the fastest that the body can go [m/s].
        foot_speed: About the fastest that a foot in the air can [m/s].
        tipping: Weight of how near the body is to tipping.
        footing: Weight of how poor the ground is under the feet.
        energy: Weight of the joints' work.
        leg_loss: Weight of how badly the body would stand without one of its feet.
        slack: Feet in the air may be so far below the ground's height [m].
        bend: Ways that are laid anew go aside for so long, at most [m].
        scale: How large the robot is beside the Akrobat.
    """

    x: float
    y: float
    cell: float
    cells: float
    layers: float
    gap: float
    limb: float
    cos: float
    sin: float
    margin: float
    step: float
    spread: float
    lift: float
    body_speed: float
    foot_speed: float
    tipping: float
    footing: float
    energy: float
    leg_loss: float
    slack: float
    bend: float
    scale: float


class PlanningContext(NamedTuple):
    """All that does not change while a planner looks: robot, ground, and what is asked.

    Flat, and its numbers apart, since kernels count references of each array in every tuple that they hand on.

    Attributes:
        table: (l, n, n) see `RigRows`.
        air: (l, n, n) see there.
        low: (l, 3) see there.
        home: (l, 3) see there.
        side: (l,) see there.
        heights: (rows, columns) see `GroundRows`.
        tops: (rows, columns) see there.
        stand: (rows, columns) see there.
        quality: (rows, columns) see there.
        body: (rows, columns) see there.
        rings: (k, 2) see there.
        guide: (r, c) see `way_lengths`.
        start: (2,) of the body's middle [m].
        goal: (2,) [m].
        feet: (l, 3) where the feet are at the start [m].
        number: Settings.
    """

    table: NDArray[np.uint64]
    air: NDArray[np.uint64]
    low: Array
    home: Array
    side: Whole
    heights: Array
    tops: Array
    stand: NDArray[np.bool_]
    quality: Array
    body: Array
    rings: Whole
    guide: Array
    start: Array
    goal: Array
    feet: Array
    number: Numbers


class Herd(NamedTuple):
    """Partial plans.

    Attributes:
        feet: (p, l, 3) where feet are, or were when they rose [m].
        down: (p, l) whether they are on the ground.
        reach: (p, l, 2) first and last sample of the way from which a foot that is down can be reached.
        bonus: (p, l) events since a foot last changed.
        span: (p, 2) first and last sample where the body can be now.
        at: (p,) the sample where it is at the last event.
        most: (p,) the farthest one where it was so far.
        rose: (p, l) and where it was when a foot that is in the air rose.
        last: (p,) row of the log.
        wish: (p, 2) where the foot that was set down last was drawn for [m].
        events: (p,) so many so far.
        way: (p,) which way.
        edges: (12, 3) room for edges of a polygon.
        weights: (l,) room for the wheel's weights.
    """

    feet: Array
    down: NDArray[np.bool_]
    reach: Whole
    bonus: Array
    span: Whole
    at: Whole
    most: Whole
    rose: Whole
    last: Whole
    wish: Array
    events: Whole
    way: Whole
    edges: Array
    weights: Array


class Ways(NamedTuple):
    """Ways of the body.

    Attributes:
        places: (w, n, 3) of the body's frame [m].
        size: (w,) how many samples.
    """

    places: Array
    size: Whole


class Log(NamedTuple):
    """Events of all plans, each knowing the one before it.

    Attributes:
        before: (n,) row, -1 for none.
        leg: (n,) whose foot; -1 in a plan's first row.
        kind: (n,) LIFTED, SET or BENT.
        place: (n, 3) where [m].
        wish: (n, 2) where a foot that is set down was drawn for [m].
        span: (n, 2) where on the way the body can be after it.
        at: (n,) where it is at it, in samples.
        most: (n,) the farthest one where it was until then.
        used: (1,) rows.
    """

    before: Whole
    leg: Whole
    kind: Whole
    place: Array
    wish: Array
    span: Whole
    at: Whole
    most: Whole
    used: Whole


def make_herd(plans: int, legs: int) -> Herd:
    """Room for partial plans."""
    return Herd(
        np.zeros((plans, legs, 3)), np.zeros((plans, legs), np.bool_), np.zeros((plans, legs, 2), np.int64),
        np.zeros((plans, legs)), np.zeros((plans, 2), np.int64), np.zeros(plans, np.int64), np.zeros(plans, np.int64),
        np.zeros((plans, legs), np.int64), np.zeros(plans, np.int64), np.zeros((plans, 2)), np.zeros(plans, np.int64),
        np.zeros(plans, np.int64), np.zeros((12, 3)), np.zeros(legs),
    )  # fmt: skip


def make_ways(count: int) -> Ways:
    """Room for ways."""
    return Ways(np.zeros((count, LONGEST, 3)), np.zeros(count, np.int64))


def make_log(rows: int) -> Log:
    """Room for events."""
    return Log(
        np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.zeros((rows, 3)),
        np.zeros((rows, 2)), np.zeros((rows, 2), np.int64), np.zeros(rows, np.int64), np.zeros(rows, np.int64),
        np.zeros(1, np.int64),
    )  # fmt: skip


def sample_world() -> PlanningContext:
    """A world that kernels are compiled with."""
    flat, three, two, table = np.zeros((2, 2)), np.zeros((1, 3)), np.zeros(2), np.zeros((1, 2, 2), np.uint64)
    return PlanningContext(
        table, table, three, three, np.ones(1, np.int64), flat, flat, flat > 0.0, flat, flat,
        np.zeros((1, 2), np.int64), flat, two, two, three, Numbers(*(0.1,) * 22),
    )  # fmt: skip


def sample_parts() -> tuple[PlanningContext, Ways, Herd, Log]:
    """What most kernels begin with."""
    return sample_world(), make_ways(1), make_herd(1, 1), make_log(2)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(make_herd(2, 1), 0, 1)])
def copy_plan(herd: Herd, source: int, target: int) -> None:
    """Make one partial plan a copy of another."""
    for leg in range(herd.down.shape[1]):
        herd.down[target, leg] = herd.down[source, leg]
        herd.bonus[target, leg] = herd.bonus[source, leg]
        herd.rose[target, leg] = herd.rose[source, leg]
        herd.reach[target, leg, 0], herd.reach[target, leg, 1] = herd.reach[source, leg, 0], herd.reach[source, leg, 1]
        for k in range(3):
            herd.feet[target, leg, k] = herd.feet[source, leg, k]
    herd.span[target, 0], herd.span[target, 1] = herd.span[source, 0], herd.span[source, 1]
    herd.at[target], herd.last[target] = herd.at[source], herd.last[source]
    herd.most[target] = herd.most[source]
    herd.events[target], herd.way[target] = herd.events[source], herd.way[source]


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(make_ways(2), 0, 1)])
def copy_way(ways: Ways, source: int, target: int) -> None:
    """Make one way a copy of another."""
    ways.size[target] = ways.size[source]
    for k in range(ways.size[source]):
        for j in range(3):
            ways.places[target, k, j] = ways.places[source, k, j]


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(make_herd(1, 1), make_log(2), 0, 0, SET)])
def note(herd: Herd, log: Log, i: int, leg: int, kind: int) -> bool:
    """Write the last event of plan ``i`` down; whether the log has room.  Leg -1: its beginning."""
    row = log.used[0]
    if row >= log.before.shape[0]:
        return False
    log.used[0] += 1
    log.before[row], log.leg[row], log.kind[row], log.at[row] = herd.last[i], leg, kind, herd.at[i]
    for k in range(3):
        log.place[row, k] = herd.feet[i, max(leg, 0), k]
    log.wish[row, 0], log.wish[row, 1] = herd.wish[i, 0], herd.wish[i, 1]
    log.span[row, 0], log.span[row, 1] = herd.span[i, 0], herd.span[i, 1]
    log.most[row], herd.last[i] = herd.most[i], row
    return True
