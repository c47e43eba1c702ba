"""The compiled physics step: `run_steps` is the loop over steps and lists what happens in each step, in order.

MuJoCo's step ``v' = v + h a`` takes centrifugal, Coriolis and gyroscopic forces ``c(q, v)`` as they are at its
beginning (of a single free body: at its end).  Bodies that rotate freely then gain or lose energy in proportion to the
step: a double pendulum 18 % in 10 s of steps of 2 ms.  With ``c(q, (v + v')/2)`` the error falls to a tenth, since
these forces then give one joint what they take from another.  Where contacts, friction or other constraints act, they
decide what becomes of the energy, and the step remains MuJoCo's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numba import types
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.compute.array_kernels import assign
from roboyard.physics.kernels.compliant_bodies import (
    CompliantArrays,
    advance_bodies,
    apply_contact_stiffness,
    example_bodies,
)
from roboyard.physics.kernels.contact_modifiers import (
    ANISOTROPY_COLUMNS,
    SurfaceArrays,
    align_contacts_to_friction_direction,
    apply_surface_overrides,
    correct_rotating_contacts,
    soften_slipping_contacts,
    stiffen_moving_contacts,
)
from roboyard.physics.kernels.contact_solver import SOLVED, UNSOLVED, has_slip, solve_contacts
from roboyard.physics.kernels.contacts import ContactTables, update_contact_episodes
from roboyard.physics.kernels.grasps import GRASP_COLUMNS, apply_grasp_forces
from roboyard.physics.kernels.servos import SERVO_COLUMNS, ServoTables, update_servos
from roboyard.physics.mujoco_memory import (
    AREF,
    CONTACT_SIZE,
    CONTACTS,
    DIM,
    DIVERGENCE_WARNINGS,
    FIRST_ROW,
    FRICTION,
    JACOBIAN,
    MAX_ARENA_USE,
    N_ROWS,
    NARENA,
    NCON,
    SOLVER,
    SOLVER_ITERATIONS,
    STIFFNESS,
    TIMESTEP,
    EngineAddresses,
    StateViews,
    example_engine,
    example_state,
    mujoco_pipeline_function,
    read_int32,
    read_int64,
    view_float64,
    write_int32,
)

MIN_ROTATION_RATE = 0.5
"""Minimum rate for the correction [rad/s]: below it MuJoCo's error is less than 1e-5 of the energy in a second of
steps of 2 ms."""
ROTATIONAL, SINGLE_BODY = 1, 2
"""Flags of a degree of freedom: it is a rotation; it belongs to a single free body."""
_address = types.intp
_update_velocities = mujoco_pipeline_function("mj_comVel")
_compute_bias = types.ExternalFunction("mj_rne", types.void(_address, _address, types.int32, _address))
_solve_inertia = types.ExternalFunction("mj_solveM", types.void(_address, _address, _address, _address, types.int32))
_integrate_positions = types.ExternalFunction(
    "mj_integratePos", types.void(_address, _address, _address, types.float64)
)


def free_rotation_trees(model: mujoco.MjModel) -> NDArray[np.int32]:
    """Return (nv, 2) tree and flags of each degree of freedom.

    (0, 2) in worlds that are too large for the dense Jacobian, or that have a fluid: they go without the correction.
    """
    if mujoco.mj_isSparse(model) or model.opt.density > 0.0 or model.opt.viscosity > 0.0:
        return np.zeros((0, 2), np.int32)
    joint, tree = model.dof_jntid, model.dof_treeid
    joint_type, first_dof = model.jnt_type[joint], model.jnt_dofadr[joint]
    free = joint_type == mujoco.mjtJoint.mjJNT_FREE
    is_translation = (joint_type == mujoco.mjtJoint.mjJNT_SLIDE) | (free & (np.arange(model.nv) - first_dof < 3))
    is_single_body = free & (model.tree_dofnum[tree] == 6)
    is_damped = is_single_body & (
        np.bincount(tree, model.dof_damping, model.ntree)[tree] > 0.0
    )  # MuJoCo integrates damping implicitly
    return np.stack([tree, ROTATIONAL * ~(is_translation | is_damped) + SINGLE_BODY * is_single_body], axis=1).astype(
        np.int32
    )


def _example_free_rotation() -> Iterable[tuple[Any, ...]]:
    yield (0, np.zeros(1, np.int64), np.zeros((1, 2), np.int32), np.zeros(1), np.zeros(1, np.bool_))


@kernel(examples=_example_free_rotation)
def find_free_rotation(
    data: int,
    layout: NDArray[np.int64],
    rotation_trees: NDArray[np.int32],
    qvel: NDArray[np.float64],
    free: NDArray[np.bool_],
) -> bool:
    """Return whether any tree of joints rotates that no constraint acts on.

    Args:
        data: Address of MuJoCo's data, evaluated.
        layout: The offsets of `MujocoLayout`.
        rotation_trees: See `free_rotation_trees`.
        qvel: (nv,) velocities.
        free: (nv,) written: degrees of freedom of trees that rotate and that no constraint row touches.
    """
    nv = rotation_trees.shape[0]
    any_rotation = False
    for d in range(nv):
        free[d] = rotation_trees[d, 1] & ROTATIONAL != 0 and abs(qvel[d]) > MIN_ROTATION_RATE
        any_rotation |= free[d]
    if not any_rotation:
        return False
    is_tree_free = np.zeros(nv, np.bool_)  # by tree
    n_free_trees = 0
    for d in range(nv):
        if free[d] and not is_tree_free[rotation_trees[d, 0]]:
            is_tree_free[rotation_trees[d, 0]] = True
            n_free_trees += 1
    rows = read_int32(data + layout[N_ROWS])
    jacobian = view_float64(read_int64(data + layout[JACOBIAN]), rows * nv)
    for row in range(rows):
        for d in range(nv):
            if is_tree_free[rotation_trees[d, 0]] and jacobian[row * nv + d] != 0.0:
                is_tree_free[rotation_trees[d, 0]] = False
                n_free_trees -= 1
        if n_free_trees == 0:
            return False
    for d in range(nv):
        free[d] = is_tree_free[rotation_trees[d, 0]]
    return True


def _example_gyroscopic() -> Iterable[tuple[Any, ...]]:
    yield (
        example_engine(),
        example_state(),
        np.zeros((1, 2), np.int32),
        np.zeros(1),
        np.zeros(1, np.bool_),
        0.002,
    )


@kernel(examples=_example_gyroscopic)
def correct_gyroscopic_step(
    engine: EngineAddresses,
    state: StateViews,
    rotation_trees: NDArray[np.int32],
    velocity_before: NDArray[np.float64],
    free: NDArray[np.bool_],
    dt: float,
) -> None:
    """Correct velocities and positions of the step that was just taken, in the degrees of freedom that rotate freely.

    With the velocities ``v`` before and ``v'`` after MuJoCo's step::

        Δv = h M⁻¹ (c(q, v) - c(q, (v + v')/2)),    v' ← v' + Δv,    q' ← q' ⊕ h Δv

    MuJoCo integrates a single free body implicitly; the correction starts from its explicit velocity ``v + h a``.

    Args:
        engine: Addresses of the model and its data: all but positions and velocities still as before the step.
        state: Positions and velocities after the step, which are corrected; bias and accelerations before it.
        rotation_trees: See `free_rotation_trees`.
        velocity_before: (nv,) velocities before the step.
        free: (nv,) see `find_free_rotation`.
        dt: Step [s].
    """
    model, data = engine.model, engine.data
    qpos, qvel, bias, acceleration = state.qpos, state.qvel, state.bias, state.acceleration
    nv = len(qvel)
    velocity_after, explicit_velocity, impulse, velocity_change = qvel.copy(), qvel.copy(), np.zeros(nv), np.zeros(nv)
    for d in range(nv):
        if free[d] and rotation_trees[d, 1] & SINGLE_BODY != 0:
            explicit_velocity[d] = velocity_before[d] + dt * acceleration[d]
        qvel[d] = 0.5 * (velocity_before[d] + explicit_velocity[d]) if free[d] else velocity_before[d]
    _update_velocities(model, data)
    _compute_bias(model, data, 0, impulse.ctypes.data)
    for d in range(nv):
        impulse[d] = dt * (bias[d] - impulse[d]) if free[d] else 0.0
    _solve_inertia(model, data, velocity_change.ctypes.data, impulse.ctypes.data, 1)
    for d in range(nv):
        velocity_change[d] += explicit_velocity[d] - velocity_after[d]
        qvel[d] = velocity_after[d] + velocity_change[d]
    _integrate_positions(model, qpos.ctypes.data, velocity_change.ctypes.data, dt)


_evaluate_positions_and_velocities = mujoco_pipeline_function("mj_step1")
_compute_actuation = mujoco_pipeline_function("mj_fwdActuation")
_compute_smooth_accelerations = mujoco_pipeline_function("mj_fwdAcceleration")
_solve_constraints = mujoco_pipeline_function("mj_fwdConstraint")
_check_accelerations = mujoco_pipeline_function("mj_checkAcc")
_integrate_implicitly = mujoco_pipeline_function("mj_implicit")
_make_constraints, _compute_reference_accelerations = (
    mujoco_pipeline_function("mj_makeConstraint"),
    mujoco_pipeline_function("mj_referenceConstraint"),
)
_compute_contact_forces = mujoco_pipeline_function("mj_rnePostConstraint")

CONJUGATE_GRADIENTS, NEWTON = int(mujoco.mjtSolver.mjSOL_CG), int(mujoco.mjtSolver.mjSOL_NEWTON)


@kernel
def _sliding_lift(references: int, friction: int, dim: int) -> float:
    """Compute the lift of a sliding contact in MuJoCo's convex problem [m/s²]: ``√Σ (e_j a_ref,j)²`` of its friction
    rows.

    Args:
        references: Address of the reference acceleration of the contact's normal row; friction rows follow.
        friction: Address of its friction coefficients.
        dim: Its dimension.
    """
    reference, coefficient = view_float64(references, 6), view_float64(friction, 5)
    squares = 0.0
    for axis in range(dim - 1):
        squares += (coefficient[axis] * reference[axis + 1]) ** 2
    return math.sqrt(squares)


def _example_addresses() -> Iterable[tuple[Any, ...]]:
    yield (0, 0, np.zeros(1, np.int64))


@kernel(examples=_example_addresses)
def solve_accelerations(model: int, data: int, layout: NDArray[np.int64]) -> None:
    """Compute accelerations and contact forces of an evaluated state.

    `solve_contacts` solves small problems; MuJoCo then only evaluates the forces of the solution, by its conjugate
    gradient method with zero iterations.  MuJoCo's own Newton method solves all other problems.

    Args:
        model: Address of MuJoCo's model.
        data: Address of its data, evaluated.
        layout: The offsets of `MujocoLayout`.
    """
    _compute_actuation(model, data)
    _compute_smooth_accelerations(model, data)
    status = solve_contacts(model, data, layout)
    if status == SOLVED:
        max_iterations = read_int32(model + layout[SOLVER_ITERATIONS])
        write_int32(model + layout[SOLVER], CONJUGATE_GRADIENTS)
        write_int32(model + layout[SOLVER_ITERATIONS], 0)
        _solve_constraints(model, data)
        write_int32(model + layout[SOLVER], NEWTON)
        write_int32(model + layout[SOLVER_ITERATIONS], max_iterations)
    elif status == UNSOLVED:
        _solve_constraints(model, data)


@kernel(no_refcount=False)
def solve_and_integrate(
    engine: EngineAddresses, state: StateViews, rotation_trees: NDArray[np.int32], dt: float
) -> None:
    """The second half of a physics step: as MuJoCo's ``mj_step2``, but with the correction of free rotation.

    Args:
        engine: Addresses of the model and its data, evaluated.
        state: Views of the data; positions and velocities are those after the step when it returns.
        rotation_trees: See `free_rotation_trees`.
        dt: Step [s].
    """
    model, data, layout = engine.model, engine.data, engine.layout
    # Efforts of the actuators, accelerations without constraints, contact forces, accelerations.
    solve_accelerations(model, data, layout)
    _check_accelerations(model, data)
    # Before integration, while velocities and constraint rows are still those of the beginning of the step.
    free = np.zeros(rotation_trees.shape[0], np.bool_)
    if find_free_rotation(data, layout, rotation_trees, state.qvel, free):
        velocity_before = state.qvel.copy()
        _integrate_implicitly(model, data)
        # After it: the correction needs the velocities of both ends, and changes new velocities and positions.
        correct_gyroscopic_step(engine, state, rotation_trees, velocity_before, free, dt)
    else:
        _integrate_implicitly(model, data)


def _example_accelerations() -> Iterable[tuple[Any, ...]]:
    yield (0, 0, np.zeros(1, np.int64), np.zeros(1), np.zeros(1))


@kernel(examples=_example_accelerations)
def compute_accelerations(
    model: int,
    data: int,
    layout: NDArray[np.int64],
    warm_start: NDArray[np.float64],
    saved_warm_start: NDArray[np.float64],
) -> None:
    """Compute accelerations and forces of the present state; the next step is the same as without this call.

    Args:
        model: Address of MuJoCo's model.
        data: Address of its data, evaluated.
        layout: The offsets of `MujocoLayout`.
        warm_start: (nv,) starting point of the solver, restored afterwards.
        saved_warm_start: (nv,) room for its copy.
    """
    assign(saved_warm_start, warm_start)
    solve_accelerations(model, data, layout)
    _compute_contact_forces(model, data)
    assign(warm_start, saved_warm_start)


@kernel(no_refcount=False)
def apply_de_saxce_correction(data: int, layout: NDArray[np.int64]) -> None:
    """Remove the lift of sliding contacts: ``a_ref,0 ← a_ref,0 - √Σ (e_j a_ref,j)²``.

    MuJoCo computes normal and friction forces as one convex problem, in which a contact that slides at speed ``v`` is
    pushed apart as if it approached at ``mu v``: a box that slides at 2 m/s hops 22 mm high, and a skid-steered robot
    turns at a quarter of its rate.  De Saxcé's correction adds ``mu |v|`` to the normal velocity; the convex problem
    then has Coulomb's solution (G. De Saxcé, Z.-Q. Feng, The bipotential method, Mathematical and Computer Modelling
    28, 1998).  Contacts with slip have no lift, since their normal row stands alone.

    Args:
        data: Address of MuJoCo's data, velocities evaluated.
        layout: The offsets of `MujocoLayout`.
    """
    contacts = read_int64(data + layout[CONTACTS])
    references = read_int64(data + layout[AREF])
    stiffness = view_float64(read_int64(data + layout[STIFFNESS]), read_int32(data + layout[N_ROWS]))
    for k in range(read_int32(data + layout[NCON])):
        contact = contacts + k * layout[CONTACT_SIZE]
        row, dim = read_int32(contact + layout[FIRST_ROW]), read_int32(contact + layout[DIM])
        if row < 0 or dim < 3 or has_slip(contact, row, stiffness, layout):
            continue
        view_float64(references + 8 * row, 1)[0] -= _sliding_lift(references + 8 * row, contact + layout[FRICTION], dim)


@kernel(no_refcount=False)
def _read_timestep(model: int, layout: NDArray[np.int64]) -> float:
    """Return MuJoCo's physics step [s]."""
    return float(view_float64(model + layout[TIMESTEP], 1)[0])


def _example_surfaces() -> SurfaceArrays:
    table = np.zeros((1, 3))
    return SurfaceArrays(np.zeros((1, 7)), table, table, np.zeros((1, ANISOTROPY_COLUMNS)), np.zeros(1, bool))


def _example_modifiers() -> Iterable[tuple[Any, ...]]:
    yield (example_engine(), _example_surfaces(), example_bodies(), np.zeros((1, GRASP_COLUMNS)))


@kernel(examples=_example_modifiers, no_refcount=True)
def evaluate_with_contact_modifiers(
    engine: EngineAddresses, surfaces: SurfaceArrays, bodies: CompliantArrays, grasps: NDArray[np.float64]
) -> None:
    """Evaluate positions, velocities and contacts, and change the contacts that MuJoCo alone would solve otherwise.

    Those are contacts on friction patches, on moving surfaces and on surfaces with a friction direction, contacts
    between two moving bodies, and contacts with compliant bodies.  The comments say why each change has its place.

    Args:
        engine: Addresses of the model and its data.
        surfaces: Surfaces with friction patches, velocities and friction directions.
        bodies: Compliant bodies.
        grasps: See `apply_grasp_forces`.
    """
    model, data, layout = engine.model, engine.data, engine.layout
    # MuJoCo's own evaluation: poses, contacts, constraint rows, velocities, bias forces, reference accelerations.
    _evaluate_positions_and_velocities(model, data)
    # Friction directions turn the frames of contacts.  MuJoCo makes all rows anew of them, so this comes first.
    is_anisotropic = surfaces.anisotropy.shape[0] > 0
    if is_anisotropic and align_contacts_to_friction_direction(engine, surfaces):
        _make_constraints(model, data)
        _compute_reference_accelerations(model, data)
    # Patches set coefficients of friction, and moving surfaces the sliding velocity: De Saxcé's correction reads both.
    if surfaces.patches.shape[0] > 0 or surfaces.velocities.shape[0] > 0:
        apply_surface_overrides(engine, surfaces)
    # Slip softens friction rows out of proportion to the normal row; by that the correction leaves such contacts out.
    if is_anisotropic:
        soften_slipping_contacts(engine, surfaces.anisotropy)
    # Contacts between moving bodies become stiffer; their cone follows, so that they are not taken for slip.
    stiffen_moving_contacts(model, data, layout)
    # De Saxcé's correction takes the lift back that follows from the coefficients and sliding velocities so far.
    apply_de_saxce_correction(data, layout)
    # Compliant bodies set the normal row outright, and overwrite what was written for stiff bodies before.
    if bodies.parts.shape[0] > 0:
        apply_contact_stiffness(engine, bodies, grasps)
    # Rotation within the step changes reference accelerations of friction rows, which are no sliding velocity: last.
    correct_rotating_contacts(model, data, layout, _read_timestep(model, layout))


@kernel(examples=_example_addresses)
def evaluate(model: int, data: int, layout: NDArray[np.int64]) -> None:
    """Evaluate positions, velocities and contacts of the present state, without contact modifiers.

    Args:
        model: Address of MuJoCo's model.
        data: Address of its data.
        layout: The offsets of `MujocoLayout`.
    """
    _evaluate_positions_and_velocities(model, data)
    apply_de_saxce_correction(data, layout)


# Why a batch of steps ended.
COMPLETED, EPISODE_TABLE_FULL, LOW_MEMORY, DIVERGED = range(4)

WARNING_SIZE = 8
"""Size of one of MuJoCo's warning counters [bytes]."""


@kernel(no_refcount=False)
def _has_diverged(data: int, layout: NDArray[np.int64]) -> bool:
    """Return whether MuJoCo has found a position, a velocity or an acceleration that is not finite or too large."""
    counters = data + layout[DIVERGENCE_WARNINGS]
    return (
        read_int32(counters) != 0
        or read_int32(counters + WARNING_SIZE) != 0
        or read_int32(counters + 2 * WARNING_SIZE) != 0
    )


@kernel(no_refcount=False)
def _is_low_on_memory(data: int, layout: NDArray[np.int64]) -> bool:
    """Return whether half of MuJoCo's memory for contacts and constraints has been in use."""
    return bool(2 * read_int64(data + layout[MAX_ARENA_USE]) > read_int64(data + layout[NARENA]))


class StepTables(NamedTuple):
    """All tables of a world that a physics step reads and writes.

    Attributes:
        servos: Joint servos.
        contacts: Recorded contact episodes.
        surfaces: Surfaces with friction patches, velocities and friction directions.
        bodies: Compliant bodies.
        rotation_trees: See `free_rotation_trees`.
    """

    servos: ServoTables
    contacts: ContactTables
    surfaces: SurfaceArrays
    bodies: CompliantArrays
    rotation_trees: NDArray[np.int32]


def _example_steps() -> Iterable[tuple[Any, ...]]:
    rows, mask, table = np.zeros(1, np.int32), np.zeros(1, bool), np.zeros((1, 6), np.int64)
    tables = StepTables(
        ServoTables(table, np.zeros((1, SERVO_COLUMNS))),
        ContactTables(rows, mask, mask, rows, table, table, table, 1),
        _example_surfaces(),
        example_bodies(),
        np.zeros((1, 2), np.int32),
    )
    yield (example_engine(), example_state(), tables, np.zeros((1, GRASP_COLUMNS)), 0, 0, 1, 0.002)


@kernel(examples=_example_steps, no_refcount=True)
def run_steps(
    engine: EngineAddresses,
    state: StateViews,
    tables: StepTables,
    grasps: NDArray[np.float64],
    episode_count: int,
    first_step: int,
    steps: int,
    dt: float,
) -> tuple[int, int, int]:
    """Take up to ``steps`` physics steps from a state whose positions and velocities are evaluated.

    Unlike MuJoCo's ``mj_step``, a step begins with the second half of the engine's work (`solve_and_integrate`) and
    ends with the first half of the next step (`evaluate_with_contact_modifiers`).  So after each step positions,
    velocities and contacts belong to the same moment, and whatever reads or commands between two steps sees it.

    Args:
        engine: Addresses of the model and its data.
        state: Views of the data.
        tables: All tables of the world.
        grasps: See `apply_grasp_forces`.
        episode_count: Number of rows of the episode table in use.
        first_step: Number of the steps taken so far.
        steps: How many to take at most.
        dt: Step [s].

    Returns:
        Steps taken, rows in use of the episode table, and why it ended: `COMPLETED`, `EPISODE_TABLE_FULL`, `LOW_MEMORY`
        (half of the engine's memory is in use) or `DIVERGED`.
    """
    data, layout = engine.data, engine.layout
    bodies, contacts = tables.bodies, tables.contacts
    max_episode_count = contacts.episodes.shape[0] - contacts.latest.size
    for k in range(steps):
        # 0. A step may begin as many episodes as there are pairs of models: no step is recorded in part.
        if episode_count > max_episode_count:
            return k, episode_count, EPISODE_TABLE_FULL
        # 1. Controls of the servos, from the evaluated state: the solver needs the efforts of this step.
        update_servos(tables.servos, state, dt)
        # 2. Forces of the hands on held objects, likewise external forces of this step.
        if grasps.shape[0] > 0:
            apply_grasp_forces(grasps, bodies.positions, bodies.orientations, state, dt)
        # 3. Accelerations and contact forces, then new velocities and positions.
        solve_and_integrate(engine, state, tables.rotation_trees, dt)
        # 4. Compliant bodies move under the contact forces that were just solved: evaluating replaces the contacts.
        if bodies.parts.shape[0] > 0:
            advance_bodies(engine, bodies, dt)
        # 5. Poses, velocities, contacts and constraints of the new state: all that is read belongs to one moment.
        evaluate_with_contact_modifiers(engine, tables.surfaces, bodies, grasps)
        # 6. Contacts of the new state are recorded in every step, so that a contact of one step counts.
        episode_count = update_contact_episodes(engine, contacts, episode_count, first_step + k + 1)
        # 7. The evaluation has checked positions and velocities: a failure ends the loop at the step that caused it.
        if _has_diverged(data, layout):
            return k + 1, episode_count, DIVERGED
        if _is_low_on_memory(data, layout):
            return k + 1, episode_count, LOW_MEMORY
    return steps, episode_count, COMPLETED
