"""The inner loop: servo integrals, physics steps and contact watch, compiled, without Python between the steps."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import llvmlite.binding
import numpy as np
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.simulation.layout import library

llvmlite.binding.load_library_permanently(library())
_step1 = types.ExternalFunction("mj_step1", types.void(types.intp, types.intp))
_step2 = types.ExternalFunction("mj_step2", types.void(types.intp, types.intp))

# Fields of `Layout`, which the kernels get as an array.
(NCON, CONTACTS, NARENA, MAXUSE, DIVERGENCE, AREF, CONTACT_SIZE, GEOM1, GEOM2, ROW, DIM, FRICTION) = range(12)

# Columns of the servo tables.
QPOS, DOF, CTRL, MODE = range(4)
P, I, D, WINDUP, RAMP, LIMIT, TARGET, SETPOINT, INTEGRAL = range(9)  # noqa: E741
OFF, POSITION, VELOCITY, EFFORT = range(4)

# Columns of the episode table.
START, END, ROBOT, OTHER, OWN_GEOM, OTHER_GEOM = range(6)

# Why a batch of steps ended.
DONE, NO_ROOM, LOW_MEMORY, DIVERGED = range(4)

WARNING_SIZE = 8
"""Bytes of one of the engine's warning counters."""


@intrinsic  # type: ignore[untyped-decorator]
def _at(typing: Any, address: Any) -> Any:
    """An address as a pointer to bytes."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(address), codegen


@kernel(inline="always")
def _int32(address: int) -> int:
    return carray(_at(address), (1,), np.int32)[0]  # type: ignore[no-any-return]


@kernel(inline="always")
def _int64(address: int) -> int:
    return carray(_at(address), (1,), np.int64)[0]  # type: ignore[no-any-return]


def _clip(value: float, bound: float) -> float:
    return min(max(value, -bound), bound)


_clip = kernel(inline="always")(_clip)


@kernel
def run_servos(
    ints: NDArray[np.int64],
    floats: NDArray[np.float64],
    qpos: NDArray[np.float64],
    qvel: NDArray[np.float64],
    ctrl: NDArray[np.float64],
    dt: float,
) -> None:
    """Set the servos' controls for the step from the present state: ramped set-points and integrals.

    The proportional and derivative parts are the engine's own.  The integral stops where the servo's effort is at its
    limit and the error asks for more.

    Args:
        ints: (n, 4) addresses and mode.
        floats: (n, 9) gains, limits and state; set-point and integral are advanced.
        qpos: Positions.
        qvel: Velocities.
        ctrl: Controls, written: (position, velocity, feed-forward) for each servo.
        dt: Step [s].
    """
    for k in range(ints.shape[0]):
        mode = ints[k, MODE]
        c = ints[k, CTRL]
        if mode == OFF:
            continue
        if mode == EFFORT:
            ctrl[c + 2] = floats[k, TARGET]
            continue
        change = floats[k, RAMP] * dt
        floats[k, SETPOINT] += _clip(floats[k, TARGET] - floats[k, SETPOINT], change)
        setpoint = floats[k, SETPOINT]
        velocity = qvel[ints[k, DOF]]
        if mode == POSITION:
            error = setpoint - qpos[ints[k, QPOS]]
            effort = floats[k, P] * error - floats[k, D] * velocity
            ctrl[c] = setpoint
        else:
            error = setpoint - velocity
            effort = floats[k, P] * error
            ctrl[c + 1] = setpoint
        effort += floats[k, INTEGRAL]
        if not (abs(effort) >= floats[k, LIMIT] and effort * error > 0.0):
            grown = floats[k, INTEGRAL] + floats[k, I] * error * dt
            floats[k, INTEGRAL] = _clip(grown, floats[k, WINDUP])
        ctrl[c + 2] = floats[k, INTEGRAL]


@kernel
def keep_sliding_contacts_down(data: int, layout: NDArray[np.int64]) -> None:
    """Take back the lift that the engine gives to sliding contacts.

    The engine finds normal and friction forces as one convex problem.  Its price is that a contact sliding at speed
    ``v`` is pushed apart as if it approached at ``mu v``: a box sliding at 2 m/s hops 22 mm high, and a skid-steered
    robot turns at a quarter of its rate.  De Saxcé's correction adds ``mu |v|`` to the normal velocity, after which
    the convex problem has Coulomb's solution (G. De Saxcé, Z.-Q. Feng, Int. J. Engineering Science 36, 1998).
    In the engine's terms the normal row's reference acceleration loses the length of the friction rows', each times
    its coefficient.

    Args:
        data: Address of the engine's data, velocities evaluated.
        layout: The offsets of `Layout`.
    """
    contacts = _int64(data + layout[CONTACTS])
    references = _int64(data + layout[AREF])
    for k in range(_int32(data + layout[NCON])):
        contact = contacts + k * layout[CONTACT_SIZE]
        row, dim = _int32(contact + layout[ROW]), _int32(contact + layout[DIM])
        if row < 0 or dim < 3:
            continue
        reference = carray(_at(references + 8 * row), (6,), np.float64)
        friction = carray(_at(contact + layout[FRICTION]), (5,), np.float64)
        squares = 0.0
        for axis in range(dim - 1):
            squares += (friction[axis] * reference[axis + 1]) ** 2
        reference[0] -= math.sqrt(squares)


def _example_evaluate() -> Iterable[tuple[Any, ...]]:
    yield (0, 0, np.zeros(12, np.int64))


@kernel(examples=_example_evaluate)
def evaluate(model: int, data: int, layout: NDArray[np.int64]) -> None:
    """Evaluate positions, velocities and contacts of the present state, as `run` leaves them.

    Args:
        model: Address of the engine's model.
        data: Address of its data.
        layout: The offsets of `Layout`.
    """
    _step1(model, data)
    keep_sliding_contacts_down(data, layout)


@kernel
def watch_contacts(
    data: int,
    layout: NDArray[np.int64],
    owner: NDArray[np.int32],
    ground: NDArray[np.bool_],
    robots: NDArray[np.int32],
    latest: NDArray[np.int64],
    episodes: NDArray[np.int64],
    count: int,
    step: int,
    gap: int,
) -> int:
    """Note the contacts of this step in the episode table.

    Args:
        data: Address of the engine's data.
        layout: The offsets of `Layout`.
        owner: (geoms,) model of each geom, -1 none.
        ground: (geoms,) whether it is ground.
        robots: (models,) row of the model in ``latest``, -1: not watched.
        latest: (watched, models) row of the pair's newest episode, -1 none.
        episodes: (room, 6) table.
        count: Rows in use.
        step: Number of this step.
        gap: A pair apart for more steps than this begins a new episode.

    Returns:
        Rows in use afterwards.
    """
    contacts = _int64(data + layout[CONTACTS])
    for k in range(_int32(data + layout[NCON])):
        contact = contacts + k * layout[CONTACT_SIZE]
        first, second = _int32(contact + layout[GEOM1]), _int32(contact + layout[GEOM2])
        if first < 0 or second < 0 or _int32(contact + layout[ROW]) < 0:
            continue  # not between geoms, or without force
        if ground[first] or ground[second] or owner[first] == owner[second]:
            continue
        for swapped in range(2):
            own, other = (second, first) if swapped else (first, second)
            if owner[own] < 0 or owner[other] < 0:
                continue
            row = robots[owner[own]]
            if row < 0:
                continue
            last = latest[row, owner[other]]
            if last >= 0 and step - episodes[last, END] <= gap:
                episodes[last, END] = step
            elif count < episodes.shape[0]:
                episodes[count, START] = step
                episodes[count, END] = step
                episodes[count, ROBOT] = owner[own]
                episodes[count, OTHER] = owner[other]
                episodes[count, OWN_GEOM] = own
                episodes[count, OTHER_GEOM] = other
                latest[row, owner[other]] = count
                count += 1
    return count


def _example() -> Iterable[tuple[Any, ...]]:
    f2, f1 = np.zeros((1, 9)), np.zeros(1)
    i2, i1 = np.zeros((1, 6), np.int64), np.zeros(12, np.int64)
    narrow = np.zeros(1, np.int32)
    yield (0, 0, 1, i2, f2, f1, f1, f1, 0.002, i1, narrow, narrow.astype(bool), narrow, i2, i2, 0, 0, 1)


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
    robots: NDArray[np.int32],
    latest: NDArray[np.int64],
    episodes: NDArray[np.int64],
    count: int,
    first: int,
    gap: int,
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
        robots: …
        latest: …
        episodes: …
        count: …
        first: Number of the steps taken so far.
        gap: See `watch_contacts`.

    Returns:
        Steps taken, rows in use of the episode table, and why it ended: `DONE`, `NO_ROOM` in the episode table,
        `LOW_MEMORY` (half of the engine's memory is in use) or `DIVERGED`.
    """
    room = episodes.shape[0]
    pairs = latest.size
    for k in range(steps):
        if count + pairs > room:
            return k, count, NO_ROOM
        run_servos(ints, floats, qpos, qvel, ctrl, dt)
        _step2(model, data)
        evaluate(model, data, layout)
        count = watch_contacts(data, layout, owner, ground, robots, latest, episodes, count, first + k + 1, gap)
        if (
            _int32(data + layout[DIVERGENCE]) != 0
            or _int32(data + layout[DIVERGENCE] + WARNING_SIZE) != 0
            or _int32(data + layout[DIVERGENCE] + 2 * WARNING_SIZE) != 0
        ):
            return k + 1, count, DIVERGED
        if 2 * _int64(data + layout[MAXUSE]) > _int64(data + layout[NARENA]):
            return k + 1, count, LOW_MEMORY
    return steps, count, DONE
