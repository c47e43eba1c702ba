"""Partial plans as kernels take them: many rows of arrays, the ways that bodies go, and a log of all events."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

STEP: Final = 0.01
"""Ways are sampled so densely [m]."""
EVENTS: Final = 600
"""Of one plan, at most."""
LONGEST: Final = 2048
"""Samples of a way: 20 m."""
LIFTED: Final = 0
SET: Final = 1


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


class World(NamedTuple):
    """All that does not change while a planner looks: robot, ground, and what is asked.

    Flat, and its numbers apart, since kernels count references of each array in every tuple that they hand on.

    Attributes:
        table: (l, n, n) see `RigRows`.
        low: (l, 3) see there.
        home: (l, 3) see there.
        side: (l,) see there.
        heights: (rows, columns) see `GroundRows`.
        tops: (rows, columns) see there.
        stand: (rows, columns) see there.
        quality: (rows, columns) see there.
        body: (rows, columns) see there.
        rings: (k, 2) see there.
        start: (2,) of the body's middle [m].
        goal: (2,) [m].
        feet: (l, 3) where the feet are at the start [m].
        number: Settings.
    """

    table: NDArray[np.uint64]
    low: Array
    home: Array
    side: Whole
    heights: Array
    tops: Array
    stand: NDArray[np.bool_]
    quality: Array
    body: Array
    rings: Whole
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
        last: (p,) row of the log.
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
    last: Whole
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
        kind: (n,) LIFTED or SET.
        place: (n, 3) where [m].
        span: (n, 2) where on the way the body can be after it.
        used: (1,) rows.
    """

    before: Whole
    leg: Whole
    kind: Whole
    place: Array
    span: Whole
    used: Whole


def make_herd(plans: int, legs: int) -> Herd:
    """Room for partial plans."""
    return Herd(
        np.zeros((plans, legs, 3)), np.zeros((plans, legs), np.bool_), np.zeros((plans, legs, 2), np.int64),
        np.zeros((plans, legs)), np.zeros((plans, 2), np.int64), np.zeros(plans, np.int64),
        np.zeros(plans, np.int64), np.zeros(plans, np.int64), np.zeros((12, 3)), np.zeros(legs),
    )  # fmt: skip


def make_ways(count: int) -> Ways:
    """Room for ways."""
    return Ways(np.zeros((count, LONGEST, 3)), np.zeros(count, np.int64))


def make_log(rows: int) -> Log:
    """Room for events."""
    return Log(
        np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.zeros((rows, 3)),
        np.zeros((rows, 2), np.int64), np.zeros(1, np.int64),
    )  # fmt: skip


def sample_world() -> World:
    """A world that kernels are compiled with."""
    flat, three, two = np.zeros((2, 2)), np.zeros((1, 3)), np.zeros(2)
    return World(
        np.zeros((1, 2, 2), np.uint64), three, three, np.ones(1, np.int64), flat, flat, flat > 0.0, flat, flat,
        np.zeros((1, 2), np.int64), two, two, three, Numbers(*(0.1,) * 17),
    )  # fmt: skip


def sample_parts() -> tuple[World, Ways, Herd, Log]:
    """What most kernels begin with."""
    return sample_world(), make_ways(1), make_herd(1, 1), make_log(2)


@kernel(examples=lambda: [(make_herd(2, 1), 0, 1)])
def copy_plan(herd: Herd, source: int, target: int) -> None:
    """Make one partial plan a copy of another."""
    herd.feet[target] = herd.feet[source]
    herd.down[target] = herd.down[source]
    herd.reach[target] = herd.reach[source]
    herd.bonus[target] = herd.bonus[source]
    herd.span[target] = herd.span[source]
    herd.last[target] = herd.last[source]
    herd.events[target] = herd.events[source]
    herd.way[target] = herd.way[source]


@kernel(examples=lambda: [(make_log(2), -1, 0, 0, np.zeros((1, 1, 3)), 0, 0, 0, 0)])
def note(log: Log, before: int, leg: int, kind: int, feet: Array, i: int, foot: int, low: int, high: int) -> int:
    """Write an event down, and where the foot of plan ``i`` is; its row, or -1 when the log is full."""
    row = log.used[0]
    if row >= log.before.shape[0]:
        return -1
    log.used[0] += 1
    log.before[row], log.leg[row], log.kind[row] = before, leg, kind
    for k in range(3):
        log.place[row, k] = feet[i, foot, k]
    log.span[row, 0], log.span[row, 1] = low, high
    return int(row)
