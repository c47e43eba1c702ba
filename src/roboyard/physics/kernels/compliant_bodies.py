"""Kernels for compliant kinematic bodies: their pose is prescribed, contact forces displace them against a spring.

Such a body has no degrees of freedom in MuJoCo: its pose is the prescribed one plus a displacement, and the
displacement is that of a mass on a spring of its own, moved by the contact forces of each step.  So people cost the
solver nothing, and a robot beside them is solved exactly as one alone.

A contact with such a body is the spring of ISO/TS 15066's model of impacts, ``f = k d``, whatever touches it; MuJoCo's
contacts are springs per unit of the other body's mass.  Its row becomes that of a nearly massless plate::

    f = D (a_ref - J a)    with    D = `CONTACT_PLATE_MASS`,   a_ref = k d / D

so that ``f = k d`` but for the plate's own inertia.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.compute.array_kernels import assign
from roboyard.geometry.quaternion_kernels import dot, rotated_x_axis
from roboyard.physics.kernels.grasps import is_gripped_by
from roboyard.physics.mujoco_memory import (
    AREF,
    CONTACT_SIZE,
    CONTACTS,
    DISTANCE,
    EFC_FORCES,
    FIRST_ROW,
    FRAME,
    GEOM1,
    GEOM2,
    NCON,
    REGULARIZATION,
    STIFFNESS,
    EngineAddresses,
    example_engine,
    read_int32,
    read_int64,
    view_float64,
)

CONTACT_PLATE_MASS = 1e-3
"""Mass that a contact with a compliant body adds to the body that touches it [kg]."""
SOFT_DISPLACEMENT = 0.10
"""Displacement up to which the soft spring acts alone [m]; beyond it the neighboring parts of the body resist."""
STOP_FREQUENCY = 30.0
"""Natural frequency of the spring that acts beyond [rad/s]."""

# Columns of the table of parts, one row for each: start and target of the prescribed motion, the fraction of it that is
# done, and its change per second; displacement [m] and its velocity [m/s]; mass [kg], contact stiffness [N/m] of the
# front and of the rear, natural frequency of the spring [rad/s]; contact force in the last step, and the largest since
# it was last read [N].
START_POSITION, TARGET_POSITION, START_ORIENTATION, TARGET_ORIENTATION, PROGRESS, PROGRESS_RATE = 0, 3, 6, 10, 14, 15
DISPLACEMENT, DISPLACEMENT_RATE, MASS, STIFFNESS_FRONT, STIFFNESS_REAR, RETURN_FREQUENCY, FORCE, PEAK_FORCE = (
    16,
    19,
    22,
    23,
    24,
    25,
    26,
    29,
)
PART_COLUMNS = 32


class CompliantArrays(NamedTuple):
    """All compliant bodies of a world, which the step reads and writes.

    Attributes:
        part_of: (geoms,) row of the part that each geom belongs to, -1 for none.
        parts: (n, `PART_COLUMNS`) motion, spring and forces of each part; n is zero in a world without people.
        positions: (n, 3) of the parts in the world [m], views of the engine's data.
        orientations: (n, 4) unit quaternions (w, x, y, z) of the parts in the world, likewise.
        body_of: (geoms,) the engine's body of each geom.
    """

    part_of: NDArray[np.int32]
    parts: NDArray[np.float64]
    positions: NDArray[np.float64]
    orientations: NDArray[np.float64]
    body_of: NDArray[np.int32]


def example_bodies() -> CompliantArrays:
    """Return arrays of the right types, for the examples of kernels."""
    rows = np.zeros(1, np.int32)
    return CompliantArrays(rows, np.zeros((1, PART_COLUMNS)), np.zeros((1, 3)), np.zeros((1, 4)), rows)


@kernel(inline="always")
def _find_part(contact: int, layout: NDArray[np.int64], part_of: NDArray[np.int32]) -> tuple[int, int, float]:
    """Return the compliant part of a contact (-1: none), the other geom, and the sign with which the contact normal
    points out of the part."""
    first, second = read_int32(contact + layout[GEOM1]), read_int32(contact + layout[GEOM2])
    if first < 0 or second < 0 or read_int32(contact + layout[FIRST_ROW]) < 0:
        return -1, -1, 0.0
    if part_of[first] >= 0:
        return part_of[first], second, 1.0
    return part_of[second], first, -1.0


@kernel(no_refcount=False)
def apply_contact_stiffness(engine: EngineAddresses, bodies: CompliantArrays, grasps: NDArray[np.float64]) -> None:
    """Set the stiffness of contacts with compliant bodies; the contacts of one body with a part share it.

    Args:
        engine: Addresses of the model and its data, constraints made.
        bodies: The compliant bodies.
        grasps: See `apply_grasp_forces`.
    """
    data, layout = engine.data, engine.layout
    part_of, parts, orientations, body_of = bodies.part_of, bodies.parts, bodies.orientations, bodies.body_of
    contacts, references = read_int64(data + layout[CONTACTS]), read_int64(data + layout[AREF])
    stiffness, regularization = read_int64(data + layout[STIFFNESS]), read_int64(data + layout[REGULARIZATION])
    count = read_int32(data + layout[NCON])
    for k in range(count):
        contact = contacts + k * layout[CONTACT_SIZE]
        part, other, sign = _find_part(contact, layout, part_of)
        if part < 0:
            continue
        n_contacts = 0
        for j in range(count):
            contact_part, contact_geom, _ = _find_part(contacts + j * layout[CONTACT_SIZE], layout, part_of)
            if contact_part == part and body_of[contact_geom] == body_of[other]:
                n_contacts += 1
        normal, orientation = view_float64(contact + layout[FRAME], 3), orientations[part]
        forward = rotated_x_axis((orientation[0], orientation[1], orientation[2], orientation[3]))
        forward_component = sign * dot((normal[0], normal[1], normal[2]), forward)
        spring = parts[part, STIFFNESS_FRONT if forward_component > 0.0 else STIFFNESS_REAR] / n_contacts
        if is_gripped_by(grasps, part, body_of[other]):
            spring = 0.0
        row = 8 * read_int32(contact + layout[FIRST_ROW])
        view_float64(stiffness + row, 1)[0] = CONTACT_PLATE_MASS
        view_float64(regularization + row, 1)[0] = 1.0 / CONTACT_PLATE_MASS
        view_float64(references + row, 1)[0] = (
            -spring / CONTACT_PLATE_MASS * view_float64(contact + layout[DISTANCE], 1)[0]
        )


def _example_advance() -> Iterable[tuple[Any, ...]]:
    yield (example_engine(), example_bodies(), 0.002)


@kernel(examples=_example_advance, error_model="numpy", no_refcount=False)
def advance_bodies(engine: EngineAddresses, bodies: CompliantArrays, dt: float) -> None:
    """Advance the parts by one step: towards their target poses, displaced by contact forces.

    With the displacement ``p``, the force ``f``, the mass ``m`` and the natural frequency ``ω`` of a part::

        ṗ ← (ṗ + h (f / m - ω² p)) / (1 + 2 ω h),    p ← p + h ṗ

    Beyond `SOFT_DISPLACEMENT` a spring of `STOP_FREQUENCY` acts on the excess.

    Args:
        engine: Addresses of the model and its data, forces of the step just solved.
        bodies: The compliant bodies; their motion, positions and orientations are written.
        dt: Step [s].
    """
    data, layout = engine.data, engine.layout
    part_of, parts, positions, orientations = bodies.part_of, bodies.parts, bodies.positions, bodies.orientations
    parts[:, FORCE : FORCE + 3] = 0.0
    contacts, forces = read_int64(data + layout[CONTACTS]), read_int64(data + layout[EFC_FORCES])
    for k in range(read_int32(data + layout[NCON])):
        contact = contacts + k * layout[CONTACT_SIZE]
        part, _, sign = _find_part(contact, layout, part_of)
        if part >= 0:
            force = view_float64(forces + 8 * read_int32(contact + layout[FIRST_ROW]), 1)[0]
            normal = view_float64(contact + layout[FRAME], 3)
            for i in range(3):
                parts[part, FORCE + i] -= sign * force * normal[i]
    for p in range(parts.shape[0]):
        part = parts[p]
        displacement = math.sqrt(part[DISPLACEMENT] ** 2 + part[DISPLACEMENT + 1] ** 2 + part[DISPLACEMENT + 2] ** 2)
        squared_force = part[FORCE] ** 2 + part[FORCE + 1] ** 2 + part[FORCE + 2] ** 2
        if squared_force > part[PEAK_FORCE] ** 2 + part[PEAK_FORCE + 1] ** 2 + part[PEAK_FORCE + 2] ** 2:
            assign(part[PEAK_FORCE : PEAK_FORCE + 3], part[FORCE : FORCE + 3])
        return_frequency = part[RETURN_FREQUENCY]
        spring = return_frequency * return_frequency
        if displacement > SOFT_DISPLACEMENT:
            spring += STOP_FREQUENCY * STOP_FREQUENCY * (1.0 - SOFT_DISPLACEMENT / displacement)
        progress = part[PROGRESS] = min(part[PROGRESS] + part[PROGRESS_RATE] * dt, 1.0)
        for i in range(3):
            acceleration = part[FORCE + i] / part[MASS] - spring * part[DISPLACEMENT + i]
            part[DISPLACEMENT_RATE + i] = (part[DISPLACEMENT_RATE + i] + dt * acceleration) / (
                1.0 + 2.0 * return_frequency * dt
            )
            part[DISPLACEMENT + i] += dt * part[DISPLACEMENT_RATE + i]
            positions[p, i] = (
                part[START_POSITION + i]
                + progress * (part[TARGET_POSITION + i] - part[START_POSITION + i])
                + part[DISPLACEMENT + i]
            )
        length = 0.0
        for i in range(4):
            orientations[p, i] = part[START_ORIENTATION + i] + progress * (
                part[TARGET_ORIENTATION + i] - part[START_ORIENTATION + i]
            )
            length += orientations[p, i] * orientations[p, i]
        length = math.sqrt(length)
        for i in range(4):
            orientations[p, i] /= length


def _example_motion() -> Iterable[tuple[Any, ...]]:
    table, orientations = np.zeros((1, PART_COLUMNS)), np.zeros((1, 4))
    orientations[0, 0] = 1.0
    yield (table, orientations, np.zeros(1, np.int64), np.zeros((1, 3)), orientations, 0.02)


@kernel(examples=_example_motion)
def start_motion(
    parts: NDArray[np.float64],
    present_orientations: NDArray[np.float64],
    rows: NDArray[np.int64],
    positions: NDArray[np.float64],
    orientations: NDArray[np.float64],
    duration: float,
) -> None:
    """Start the motion of parts from their present poses to target poses.

    Args:
        parts: (n, `PART_COLUMNS`).
        present_orientations: (n, 4) their present orientations.
        rows: (k,) rows of the parts to move.
        positions: (k, 3) target positions in the world [m].
        orientations: (k, 4) target orientations.
        duration: Time until the parts are at their targets [s].
    """
    for k in range(len(rows)):
        part, orientation = parts[rows[k]], present_orientations[rows[k]]
        progress, sign = part[PROGRESS], 0.0
        for i in range(3):
            part[START_POSITION + i] += progress * (part[TARGET_POSITION + i] - part[START_POSITION + i])
            part[TARGET_POSITION + i] = positions[k, i]
        for i in range(4):
            sign += orientation[i] * orientations[k, i]
        for i in range(4):
            part[START_ORIENTATION + i] = orientation[i]
            part[TARGET_ORIENTATION + i] = orientations[k, i] if sign >= 0.0 else -orientations[k, i]
        part[PROGRESS], part[PROGRESS_RATE] = 0.0, 1.0 / duration
