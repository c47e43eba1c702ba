"""Coulomb friction from a convex solver; compiled."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.compute.array_kernels import assign
from roboyard.simulation.flesh_loop import WIDTH, press
from roboyard.simulation.grain_loop import follow_grain, let_creep
from roboyard.simulation.holds_loop import WIDTH as HOLD_WIDTH
from roboyard.simulation.meeting_loop import follow_turns, harden
from roboyard.simulation.native import (
    AREF,
    CONTACT_SIZE,
    CONTACTS,
    DIM,
    FRICTION,
    ITERATIONS,
    NCON,
    ROW,
    ROWS,
    SOLVER,
    STIFFNESS,
    TIMESTEP,
    float64s,
    int32,
    int64,
    set_int32,
    stage,
)
from roboyard.simulation.newton import FOUND, UNSOLVED, creeps_at, start_at_solution
from roboyard.simulation.surface_loop import change_surfaces
from roboyard.simulation.turning import free_to_turn, turn_on

_step1 = stage("mj_step1")
_actuation = stage("mj_fwdActuation")
_acceleration = stage("mj_fwdAcceleration")
_constraint = stage("mj_fwdConstraint")
_check = stage("mj_checkAcc")
_integrate = stage("mj_implicit")
_constrain, _refer = stage("mj_makeConstraint"), stage("mj_referenceConstraint")
_forces = stage("mj_rnePostConstraint")

CONJUGATE_GRADIENTS, NEWTON = int(mujoco.mjtSolver.mjSOL_CG), int(mujoco.mjtSolver.mjSOL_NEWTON)


@kernel
def _lift(references: int, friction: int, dim: int) -> float:
    """How much the engine lifts a contact for sliding [m/s²]: the length of its friction rows' reference accelerations,
    each times its coefficient.

    Args:
        references: Address of the reference acceleration of the contact's normal row; friction rows follow.
        friction: Address of its friction coefficients.
        dim: Its dimension.
    """
    reference, coefficient = float64s(references, 6), float64s(friction, 5)
    squares = 0.0
    for axis in range(dim - 1):
        squares += (coefficient[axis] * reference[axis + 1]) ** 2
    return math.sqrt(squares)


def _example() -> Iterable[tuple[Any, ...]]:
    yield (0, 0, np.zeros(1, np.int64))


@kernel(examples=_example)
def solve(model: int, data: int, layout: NDArray[np.int64]) -> None:
    """Find accelerations and contact forces of an evaluated state.

    Small problems are solved by our own Newton method; the engine then only takes the solution over (its conjugate
    gradients, allowed no iteration, evaluate forces and no more).  All others are left to its own Newton method.

    Args:
        model: Address of the engine's model.
        data: Address of its data, evaluated.
        layout: The offsets of `Layout`.
    """
    _actuation(model, data)
    _acceleration(model, data)
    found = start_at_solution(model, data, layout)
    if found == FOUND:
        bound = int32(model + layout[ITERATIONS])
        set_int32(model + layout[SOLVER], CONJUGATE_GRADIENTS)
        set_int32(model + layout[ITERATIONS], 0)
        _constraint(model, data)
        set_int32(model + layout[SOLVER], NEWTON)
        set_int32(model + layout[ITERATIONS], bound)
    elif found == UNSOLVED:
        _constraint(model, data)


@kernel
def solve_and_integrate(
    model: int,
    data: int,
    layout: NDArray[np.int64],
    dt: float,
    qpos: NDArray[np.float64],
    qvel: NDArray[np.float64],
    bias: NDArray[np.float64],
    acceleration: NDArray[np.float64],
    trees: NDArray[np.int32],
) -> None:
    """The second half of a physics step, as the engine's ``mj_step2``, but for what turns freely: see `turning`.

    Args:
        model: Address of the engine's model.
        data: Address of its data, evaluated.
        layout: The offsets of `Layout`.
        dt: Step [s].
        qpos: Positions, of which the data's are a view; so are the others.
        qvel: Velocities.
        bias: Centrifugal, Coriolis and gyroscopic forces, and weight.
        acceleration: Accelerations.
        trees: See `turning_trees`.
    """
    solve(model, data, layout)
    _check(model, data)
    free = np.zeros(trees.shape[0], np.bool_)
    if free_to_turn(data, layout, trees, qvel, free):
        before = qvel.copy()
        _integrate(model, data)
        turn_on(model, data, dt, qpos, qvel, bias, acceleration, before, trees, free)
    else:
        _integrate(model, data)


def _example_look() -> Iterable[tuple[Any, ...]]:
    yield (0, 0, np.zeros(1, np.int64), np.zeros(1), np.zeros(1))


@kernel(examples=_example_look)
def look_ahead(
    model: int, data: int, layout: NDArray[np.int64], warm: NDArray[np.float64], kept: NDArray[np.float64]
) -> None:
    """Accelerations and forces of the present state, without a trace in what comes after.

    Args:
        model: Address of the engine's model.
        data: Address of its data, evaluated.
        layout: The offsets of `Layout`.
        warm: The solver's starting point, put back afterwards.
        kept: Room of the same size.
    """
    assign(kept, warm)
    solve(model, data, layout)
    _forces(model, data)
    assign(warm, kept)


@kernel
def keep_sliding_contacts_down(data: int, layout: NDArray[np.int64]) -> None:
    """Take back the lift that the engine gives to sliding contacts.

    The engine finds normal and friction forces as one convex problem.  Its price is that a contact sliding at speed
    ``v`` is pushed apart as if it approached at ``mu v``: a box sliding at 2 m/s hops 22 mm high, and a skid-steered
    robot turns at a quarter of its rate.  De Saxcé's correction adds ``mu |v|`` to the normal velocity, after which
    the convex problem has Coulomb's solution (G. De Saxcé, Z.-Q. Feng, Int. J. Engineering Science 36, 1998).
    In the engine's terms the normal row's reference acceleration loses the lift.  Contacts that creep have none: the
    normal row of `creep` stands for itself.

    Args:
        data: Address of the engine's data, velocities evaluated.
        layout: The offsets of `Layout`.
    """
    contacts = int64(data + layout[CONTACTS])
    references = int64(data + layout[AREF])
    stiffness = float64s(int64(data + layout[STIFFNESS]), int32(data + layout[ROWS]))
    for k in range(int32(data + layout[NCON])):
        contact = contacts + k * layout[CONTACT_SIZE]
        row, dim = int32(contact + layout[ROW]), int32(contact + layout[DIM])
        if row < 0 or dim < 3 or creeps_at(contact, row, stiffness, layout):
            continue
        float64s(references + 8 * row, 1)[0] -= _lift(references + 8 * row, contact + layout[FRICTION], dim)


def _example_surfaces() -> Iterable[tuple[Any, ...]]:
    table = np.zeros((1, 3))
    narrow, flesh = np.zeros(1, np.int32), (np.zeros((1, WIDTH)), np.zeros((1, 4)))
    grounds = (table, np.zeros((1, 9)), np.zeros(1, bool))
    yield (
        0,
        0,
        np.zeros(1, np.int64),
        np.zeros((1, 7)),
        table,
        *grounds,
        narrow,
        *flesh,
        narrow,
        np.zeros((1, HOLD_WIDTH)),
    )


@kernel(examples=_example_surfaces)
def evaluate_on(
    model: int,
    data: int,
    layout: NDArray[np.int64],
    patches: NDArray[np.float64],
    belts: NDArray[np.float64],
    friction: NDArray[np.float64],
    grain: NDArray[np.float64],
    ground: NDArray[np.bool_],
    part_of: NDArray[np.int32],
    parts: NDArray[np.float64],
    turns: NDArray[np.float64],
    body_of: NDArray[np.int32],
    holds: NDArray[np.float64],
) -> None:
    """`evaluate` where some of the ground is slippery, some surfaces move and some have a grain, where bodies meet, and
    where some give way.

    Args:
        model: Address of the engine's model.
        data: Address of its data.
        layout: The offsets of `Layout`.
        patches: See `change_surfaces`; so are the others.
        belts: …
        friction: …
        grain: See `follow_grain`.
        ground: …
        part_of: See `press`; so are the others.
        parts: …
        turns: …
        body_of: …
        holds: …
    """
    _step1(model, data)
    if grain.shape[0] > 0 and follow_grain(data, layout, grain, patches, ground):
        _constrain(model, data)
        _refer(model, data)
    if patches.shape[0] > 0 or belts.shape[0] > 0:
        change_surfaces(data, layout, patches, belts, friction, grain, ground)
    if grain.shape[0] > 0:
        let_creep(model, data, layout, grain)
    harden(model, data, layout)
    keep_sliding_contacts_down(data, layout)
    if parts.shape[0] > 0:
        press(data, layout, part_of, parts, turns, body_of, holds)
    follow_turns(model, data, layout, float64s(model + layout[TIMESTEP], 1)[0])


@kernel(examples=_example)
def evaluate(model: int, data: int, layout: NDArray[np.int64]) -> None:
    """Evaluate positions, velocities and contacts of the present state, where all contacts are with what stands fast.

    Args:
        model: Address of the engine's model.
        data: Address of its data.
        layout: The offsets of `Layout`.
    """
    _step1(model, data)
    keep_sliding_contacts_down(data, layout)
