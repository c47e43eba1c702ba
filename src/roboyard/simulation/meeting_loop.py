"""Contacts in which two bodies meet that both move: what a gripper holds, and what lies on a robot; compiled.

The engine's constraints know velocities and, along the normal, positions, but no position along the surface: whatever
slips there has slipped for good.  Two faults of the discrete step let things slip that stick, and both matter where a
hand carries them about.

The softness of constraints: a row at rest under a force ``f`` gives way at ``R f / b``.  On the ground that is
invisible; 3 kg between two rubber pads sink 7 mm in 8 s.  Rows of such contacts are made `HARDER`, unless they are to
bounce, those of friction `STICKIER` besides.

What turns: the engine asks that ``J a = a_ref`` and leaves out ``J̇ v`` (it is not small where a hand sweeps round),
and moves joints and free bodies by a step of constant joint velocities each, the one round a corner and the other
straight on.  At 2 m/s² of centripetal acceleration things would wander 4 mm/s.  With ``Δ = J̇ v``, of which the point of
contact moves ``½ h² Δ`` in a step, friction rows ask that this whole way be nought::

    a_ref = -b (J v - ½ h Δ) - Δ
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.simulation.creep import LARGEST
from roboyard.simulation.native import (
    AREF,
    BODY_DOFS,
    BODY_FIRST_DOF,
    BODY_OF_GEOM,
    BODY_PARENT,
    BODY_ROOT,
    BODY_WELD,
    BOUNCE,
    CENTRES,
    CONTACT_SIZE,
    CONTACTS,
    DIM,
    DOFS,
    FRAME,
    GAINS,
    GEOM1,
    GEOM2,
    MOTIONS,
    MU,
    NCON,
    POSITION,
    ROW,
    ROWS,
    SOFTNESS,
    SPEEDS,
    STIFFNESS,
    TURNING_AXES,
    float64s,
    int32,
    int64,
)

HARDER = 5.0
"""How much stiffer contacts between bodies that move are than others, as if their impedance were 0.99 and not 0.95."""
STICKIER = 200.0
"""How much stiffer their friction is besides (the engine's ``impratio``, for these contacts alone)."""
DAMPING = 1
"""Of the four numbers the engine keeps for a row: stiffness, damping, impedance and its slope."""


@kernel
def meets(model: int, contact: int, layout: NDArray[np.int64]) -> bool:
    """Whether a contact is of two bodies that both can move."""
    for field in (GEOM1, GEOM2):
        geom = int32(contact + layout[field])
        if geom < 0:
            return False
        body = int32(int64(model + layout[BODY_OF_GEOM]) + 4 * geom)
        if int32(int64(model + layout[BODY_WELD]) + 4 * body) == 0:
            return False
    return True


@kernel
def harden(model: int, data: int, layout: NDArray[np.int64]) -> None:
    """Stiffen the contacts of bodies that both move, in worlds that our own solver solves; the engine's cannot then.

    Args:
        model: Address of the engine's model.
        data: Address of its data, constraints made.
        layout: The offsets of `Layout`.
    """
    if int64(model + layout[DOFS]) > LARGEST:
        return
    contacts, stiffness = int64(data + layout[CONTACTS]), int64(data + layout[STIFFNESS])
    softness = int64(data + layout[SOFTNESS])
    for k in range(int32(data + layout[NCON])):
        contact = contacts + k * layout[CONTACT_SIZE]
        row, dim = int32(contact + layout[ROW]), int32(contact + layout[DIM])
        if row < 0 or not meets(model, contact, layout):
            continue
        bounces = float64s(contact + layout[BOUNCE], 1)[0] < 0.0
        for axis in range(dim):
            factor = 1.0 if bounces else HARDER
            if axis > 0:
                factor *= STICKIER
            float64s(stiffness + 8 * (row + axis), 1)[0] *= factor
            float64s(softness + 8 * (row + axis), 1)[0] /= factor
        if dim > 1:
            float64s(contact + layout[MU], 1)[0] /= math.sqrt(STICKIER)


@kernel(error_model="numpy")
def _swing(
    model: int,
    data: int,
    layout: NDArray[np.int64],
    body: int,
    point: NDArray[np.float64],
    linear: NDArray[np.float64],
    angular: NDArray[np.float64],
    sign: float,
) -> None:
    """Add ``sign`` times the acceleration of a body's ``point`` that it has with all joint accelerations at zero."""
    alpha, straight = np.zeros(3), np.zeros(3)
    above = body
    while above > 0:
        count = int32(int64(model + layout[BODY_DOFS]) + 4 * above)
        first = int32(int64(model + layout[BODY_FIRST_DOF]) + 4 * above)
        for dof in range(first, first + count):
            speed = float64s(int64(data + layout[SPEEDS]) + 8 * dof, 1)[0]
            change = float64s(int64(data + layout[TURNING_AXES]) + 48 * dof, 6)
            for axis in range(3):
                alpha[axis] += change[axis] * speed
                straight[axis] += change[3 + axis] * speed
        above = int32(int64(model + layout[BODY_PARENT]) + 4 * above)
    root = int32(int64(model + layout[BODY_ROOT]) + 4 * body)
    r = point - float64s(int64(data + layout[CENTRES]) + 24 * root, 3)
    motion = float64s(int64(data + layout[MOTIONS]) + 48 * body, 6)
    w, v = motion[:3], motion[3:] + np.cross(motion[:3], r)
    linear += sign * (straight + np.cross(alpha, r) + np.cross(w, v))
    angular += sign * alpha


@kernel(error_model="numpy")
def follow_turns(model: int, data: int, layout: NDArray[np.int64], dt: float) -> None:
    """Let friction of bodies that both move reckon with how their motion turns.

    Args:
        model: Address of the engine's model.
        data: Address of its data, velocities evaluated.
        layout: The offsets of `Layout`.
        dt: Step [s].
    """
    contacts, gains = int64(data + layout[CONTACTS]), int64(data + layout[GAINS])
    references = float64s(int64(data + layout[AREF]), int32(data + layout[ROWS]))
    linear, angular = np.empty(3), np.empty(3)
    for k in range(int32(data + layout[NCON])):
        contact = contacts + k * layout[CONTACT_SIZE]
        row, dim = int32(contact + layout[ROW]), int32(contact + layout[DIM])
        if row < 0 or dim < 3 or not meets(model, contact, layout):
            continue
        point, frame = float64s(contact + layout[POSITION], 3), float64s(contact + layout[FRAME], 9)
        linear[:], angular[:] = 0.0, 0.0
        for field, sign in ((GEOM1, -1.0), (GEOM2, 1.0)):
            body = int32(int64(model + layout[BODY_OF_GEOM]) + 4 * int32(contact + layout[field]))
            _swing(model, data, layout, body, point, linear, angular, sign)
        for axis in range(1, dim):
            change, along = (linear, axis) if axis < 3 else (angular, axis - 3)
            turn = 0.0
            for i in range(3):
                turn += frame[3 * along + i] * change[i]
            damping = float64s(gains + 32 * (row + axis), 4)[DAMPING]
            references[row + axis] += (0.5 * dt * damping - 1.0) * turn
