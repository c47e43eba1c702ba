"""Ground that is slippery in places, and surfaces that move: contacts changed before the solver sees them; compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.simulation.grain_loop import DAMPING, GRAINED, coefficient_at
from roboyard.simulation.native import (
    AREF,
    CONTACT_SIZE,
    CONTACTS,
    DIM,
    FRAME,
    FRICTION,
    GAINS,
    GEOM1,
    GEOM2,
    MU,
    NCON,
    POSITION,
    ROW,
    float64s,
    int32,
    int64,
)


@kernel
def change_surfaces(
    data: int,
    layout: NDArray[np.int64],
    patches: NDArray[np.float64],
    belts: NDArray[np.float64],
    friction: NDArray[np.float64],
    grain: NDArray[np.float64],
    ground: NDArray[np.bool_],
) -> None:
    """Give contacts on patches the patch's friction, and let surfaces move under what lies on them.

    A patch stands for the ground there: as everywhere, the smaller of the two coefficients holds.  All coefficients of
    a contact shrink by one factor, and so does the cone's regularised one; nothing else in the engine's rows depends on
    it (Todorov's elliptic cones, MuJoCo's documentation, "Computation").

    A surface that moves at ``u`` changes the velocity with which a contact slides.  The engine wants the acceleration
    ``-b v`` of a row that slides at ``v``; it becomes ``-b (v - u)``.

    Args:
        data: Address of the engine's data, velocities evaluated.
        layout: The offsets of `Layout`.
        patches: (n, 7) centre [m], cosine and sine of its direction, half length, half width [m], coefficient.
        belts: (geoms, 3) velocity of each geom's surface in the world [m/s]; no rows if none moves.
        friction: (geoms, 3) the engine's coefficients.
        grain: See `follow_grain`, which has put patches under those that have one.
        ground: (geoms,) whether it is ground.
    """
    contacts, references, gains = (
        int64(data + layout[CONTACTS]), int64(data + layout[AREF]), int64(data + layout[GAINS]),
    )  # fmt: skip
    for k in range(int32(data + layout[NCON])):
        contact = contacts + k * layout[CONTACT_SIZE]
        row, dim = int32(contact + layout[ROW]), int32(contact + layout[DIM])
        first, second = int32(contact + layout[GEOM1]), int32(contact + layout[GEOM2])
        if row < 0 or dim < 3 or first < 0 or second < 0:
            continue
        grained = grain.shape[0] > 0 and (grain[first, GRAINED] or grain[second, GRAINED])
        if patches.shape[0] > 0 and ground[first] != ground[second] and not grained:
            position = float64s(contact + layout[POSITION], 3)
            here = coefficient_at(patches, position[0], position[1])
            if here >= 0.0:
                coefficients, cone = float64s(contact + layout[FRICTION], 5), float64s(contact + layout[MU], 1)
                scale = min(friction[second if ground[first] else first, 0], here) / coefficients[0]
                for axis in range(5):
                    coefficients[axis] *= scale
                cone[0] *= scale
        if belts.shape[0] > 0:
            frame = float64s(contact + layout[FRAME], 9)
            for axis in range(1, 3):
                speed = 0.0  # of the second surface, seen from the first, as the engine has it
                for c in range(3):
                    speed += (belts[second, c] - belts[first, c]) * frame[3 * axis + c]
                if speed != 0.0:
                    damping = float64s(gains + 32 * (row + axis), 4)[DAMPING]
                    float64s(references + 8 * (row + axis), 1)[0] -= damping * speed
