"""The inner loop: servo integrals, physics steps and contact watch, compiled, without Python between the steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.simulation.contact_loop import watch_contacts
from roboyard.simulation.flesh_loop import WIDTH, give_way
from roboyard.simulation.friction import evaluate_on, solve_and_integrate
from roboyard.simulation.holds_loop import WIDTH as HOLD_WIDTH
from roboyard.simulation.holds_loop import hold_on
from roboyard.simulation.native import DIVERGENCE, MAXUSE, NARENA, int32, int64
from roboyard.simulation.servo_loop import run_servos

# Why a batch of steps ended.
DONE, NO_ROOM, LOW_MEMORY, DIVERGED = range(4)

WARNING_SIZE = 8
"""Bytes of one of the engine's warning counters."""


def _example() -> Iterable[tuple[Any, ...]]:
    f2, f1 = np.zeros((1, 9)), np.zeros(1)
    i2, i1 = np.zeros((1, 6), np.int64), np.zeros(1, np.int64)
    narrow = np.zeros(1, np.int32)
    mask = narrow.astype(bool)
    tables = (narrow, mask, mask, narrow, i2, i2, i2, 0, 0, 1, f2, f2, f2, f2, f1, f1, np.zeros((1, 2), np.int32))
    flesh = (narrow, np.zeros((1, WIDTH)), np.zeros((1, 3)), np.zeros((1, 4)), narrow)
    holds = np.zeros((1, HOLD_WIDTH)), np.zeros((1, 6))
    yield (0, 0, 1, i2, f2, f1, f1, f1, 0.002, i1, *tables, *flesh, *holds)


@kernel(examples=_example)
def run(
    model: int,
    data: int,
    steps: int,
    ints: NDArray[np.int64],
    floats: NDArray[np.float64],
    qpos: NDArray[np.float64],
    qvel: NDArray[np.float64],
    ctrl: NDArray[np.float64],
    dt: float,
    layout: NDArray[np.int64],
    owner: NDArray[np.int32],
    ground: NDArray[np.bool_],
    aloft: NDArray[np.bool_],
    robots: NDArray[np.int32],
    latest: NDArray[np.int64],
    episodes: NDArray[np.int64],
    pairs: NDArray[np.int64],
    count: int,
    first: int,
    gap: int,
    patches: NDArray[np.float64],
    belts: NDArray[np.float64],
    friction: NDArray[np.float64],
    grain: NDArray[np.float64],
    bias: NDArray[np.float64],
    acceleration: NDArray[np.float64],
    trees: NDArray[np.int32],
    part_of: NDArray[np.int32],
    parts: NDArray[np.float64],
    places: NDArray[np.float64],
    turns: NDArray[np.float64],
    body_of: NDArray[np.int32],
    holds: NDArray[np.float64],
    applied: NDArray[np.float64],
) -> tuple[int, int, int]:
    """Take up to ``steps`` physics steps from a state whose positions and velocities are evaluated.

    After each step positions, velocities and contacts are evaluated again, so that everything read from the engine
    belongs to the same moment.

    Args:
        model: Address of the engine's model.
        data: Address of its data.
        steps: How many.
        ints: See `run_servos`.
        floats: See `run_servos`.
        qpos: See `run_servos`.
        qvel: See `run_servos`.
        ctrl: See `run_servos`.
        dt: Step [s].
        layout: See `watch_contacts`; so are the arguments up to ``count``.
        owner: …
        ground: …
        aloft: …
        robots: …
        latest: …
        episodes: …
        pairs: …
        count: …
        first: Number of the steps taken so far.
        gap: See `watch_contacts`.
        patches: See `change_surfaces`; so are the others.
        belts: …
        friction: …
        grain: See `follow_grain`.
        bias: See `solve_and_integrate`.
        acceleration: …
        trees: See `turning_trees`.
        part_of: See `give_way`; so are the others.
        parts: …
        places: …
        turns: …
        body_of: See `press`.
        holds: See `hold_on`; so is the next.
        applied: …

    Returns:
        Steps taken, rows in use of the episode table, and why it ended: `DONE`, `NO_ROOM` in the episode table,
        `LOW_MEMORY` (half of the engine's memory is in use) or `DIVERGED`.
    """
    room = episodes.shape[0] - latest.size
    for k in range(steps):
        if count > room:
            return k, count, NO_ROOM
        run_servos(ints, floats, qpos, qvel, ctrl, bias, dt)
        if holds.shape[0] > 0:
            hold_on(holds, places, turns, qpos, qvel, applied, dt)
        solve_and_integrate(model, data, layout, dt, qpos, qvel, bias, acceleration, trees)
        if parts.shape[0] > 0:
            give_way(data, layout, part_of, parts, places, turns, dt)
        evaluate_on(model, data, layout, patches, belts, friction, grain, ground, part_of, parts, turns, body_of, holds)
        count = watch_contacts(
            data, layout, owner, ground, aloft, robots, latest, episodes, pairs, count, first + k + 1, gap
        )
        if (
            int32(data + layout[DIVERGENCE]) != 0
            or int32(data + layout[DIVERGENCE] + WARNING_SIZE) != 0
            or int32(data + layout[DIVERGENCE] + 2 * WARNING_SIZE) != 0
        ):
            return k + 1, count, DIVERGED
        if 2 * int64(data + layout[MAXUSE]) > int64(data + layout[NARENA]):
            return k + 1, count, LOW_MEMORY
    return steps, count, DONE
