"""Friction along two directions: contacts turned to the grain of their surfaces before they are solved; compiled."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.simulation.creep import LARGEST
from roboyard.simulation.native import (
    CONTACT_SIZE,
    CONTACTS,
    DIM,
    DOFS,
    FRAME,
    FRICTION,
    GAINS,
    GEOM1,
    GEOM2,
    NCON,
    POSITION,
    ROTATIONS,
    ROW,
    STIFFNESS,
    float64s,
    int32,
    int64,
)

# Columns of the table of patches.
X, Y, COS, SIN, HALF_LENGTH, HALF_WIDTH, COEFFICIENT = range(7)

# Columns of the table of grains: coefficients and slip along both directions, the body in whose frame the first one is,
# the first one (zero: none), and whether this geom has a grain at all.
FIRST, SECOND, SLIP1, SLIP2, BODY, DX, DY, DZ, GRAINED = range(9)
COLUMNS = 9

DAMPING = 1
"""Of the four numbers the engine keeps for a row: stiffness, damping, impedance and its slope."""
_PARALLEL = 1e-6
"""Sine of the angle to the normal below which a direction is none in the contact's plane."""


@kernel
def coefficient_at(patches: NDArray[np.float64], x: float, y: float) -> float:
    """Friction of the last patch that a point lies in, -1 outside of all."""
    for k in range(patches.shape[0] - 1, -1, -1):
        patch = patches[k]
        dx, dy = x - patch[X], y - patch[Y]
        along, across = patch[COS] * dx + patch[SIN] * dy, patch[COS] * dy - patch[SIN] * dx
        if abs(along) <= patch[HALF_LENGTH] and abs(across) <= patch[HALF_WIDTH]:
            return float(patch[COEFFICIENT])
    return -1.0


@kernel
def _has_direction(grain: NDArray[np.float64], geom: int) -> bool:
    return bool(grain[geom, DX] != 0.0 or grain[geom, DY] != 0.0 or grain[geom, DZ] != 0.0)


@kernel
def _turn(frame: NDArray[np.float64], rotation: NDArray[np.float64], local: NDArray[np.float64]) -> bool:
    """Turn a contact's frame about its normal until its first tangent is along a body's direction, as far as that lies
    in the contact's plane; False where it does not."""
    normal = frame[:3]
    x = rotation[0] * local[0] + rotation[1] * local[1] + rotation[2] * local[2]
    y = rotation[3] * local[0] + rotation[4] * local[1] + rotation[5] * local[2]
    z = rotation[6] * local[0] + rotation[7] * local[1] + rotation[8] * local[2]
    out = x * normal[0] + y * normal[1] + z * normal[2]
    x, y, z = x - out * normal[0], y - out * normal[1], z - out * normal[2]
    length = math.sqrt(x * x + y * y + z * z)
    if length < _PARALLEL:
        return False
    x, y, z = x / length, y / length, z / length
    frame[3], frame[4], frame[5] = x, y, z
    frame[6] = normal[1] * z - normal[2] * y
    frame[7] = normal[2] * x - normal[0] * z
    frame[8] = normal[0] * y - normal[1] * x
    return True


@kernel
def follow_grain(
    data: int,
    layout: NDArray[np.int64],
    grain: NDArray[np.float64],
    patches: NDArray[np.float64],
    ground: NDArray[np.bool_],
) -> bool:
    """Turn contacts of surfaces with a grain, and give them a coefficient for each direction.

    As in Gazebo: along each direction the smaller coefficient of both surfaces holds; the first direction is that of
    the surface that has one, of two the one with less friction along it.  The engine's cone becomes an ellipse:
    friction opposes sliding so that it takes the most energy (the associated law).  Gazebo's own is a rectangle, the
    same along both directions and up to √2 wider between them.

    Args:
        data: Address of the engine's data, positions evaluated.
        layout: The offsets of `Layout`.
        grain: (geoms, 9) see `FIRST` and the columns after it.
        patches: (n, 7) see `change_surfaces`; those that lie on the ground below are put under, too.
        ground: (geoms,) whether it is ground.

    Returns:
        Whether any contact was changed: constraints must then be made anew.
    """
    contacts, rotations, changed = int64(data + layout[CONTACTS]), int64(data + layout[ROTATIONS]), False
    for k in range(int32(data + layout[NCON])):
        contact = contacts + k * layout[CONTACT_SIZE]
        first, second = int32(contact + layout[GEOM1]), int32(contact + layout[GEOM2])
        if first < 0 or second < 0 or int32(contact + layout[ROW]) < 0 or int32(contact + layout[DIM]) < 3:
            continue
        if grain[first, GRAINED] == 0.0 and grain[second, GRAINED] == 0.0:
            continue
        one = min(grain[first, FIRST], grain[second, FIRST])
        two = min(grain[first, SECOND], grain[second, SECOND])
        if patches.shape[0] > 0 and ground[first] != ground[second]:
            position = float64s(contact + layout[POSITION], 3)
            here = coefficient_at(patches, position[0], position[1])
            if here >= 0.0:
                other = second if ground[first] else first
                one, two = min(grain[other, FIRST], here), min(grain[other, SECOND], here)
        leads = second
        if _has_direction(grain, first) and (
            not _has_direction(grain, second) or grain[first, FIRST] <= grain[second, FIRST]
        ):
            leads = first
        frame = float64s(contact + layout[FRAME], 9)
        turned = _has_direction(grain, leads) and _turn(
            frame, float64s(rotations + 72 * int(grain[leads, BODY]), 9), grain[leads, DX : DZ + 1]
        )
        if not turned:
            one = two = math.sqrt(one * two)
        coefficients = float64s(contact + layout[FRICTION], 5)
        coefficients[0], coefficients[1] = one, two
        changed = True
    return changed


@kernel
def let_creep(model: int, data: int, layout: NDArray[np.int64], grain: NDArray[np.float64]) -> None:
    """Soften the friction rows of contacts that creep.

    As in ODE and Gazebo a tyre under a force ``f`` drifts at ``s f`` until Coulomb's limit; the slips of two surfaces
    add up, since they give way one after the other.  A row with damping ``b`` and softness ``R`` is at rest when
    ``b v = -R f``, so ``R`` grows by ``s b``.

    Args:
        model: Address of the engine's model.
        data: Address of its data, constraints made.
        layout: The offsets of `Layout`.
        grain: See `follow_grain`.
    """
    if int64(model + layout[DOFS]) > LARGEST:
        return  # only our own solver knows contacts that creep
    contacts, gains, stiffness = (
        int64(data + layout[CONTACTS]), int64(data + layout[GAINS]), int64(data + layout[STIFFNESS]),
    )  # fmt: skip
    for k in range(int32(data + layout[NCON])):
        contact = contacts + k * layout[CONTACT_SIZE]
        row, dim = int32(contact + layout[ROW]), int32(contact + layout[DIM])
        first, second = int32(contact + layout[GEOM1]), int32(contact + layout[GEOM2])
        if row < 0 or dim < 3 or first < 0 or second < 0:
            continue
        one = grain[first, SLIP1] + grain[second, SLIP1]
        two = grain[first, SLIP2] + grain[second, SLIP2]
        if not (_has_direction(grain, first) or _has_direction(grain, second)):
            one = two = 0.5 * (one + two)
        for axis in range(1, 3):
            slip = one if axis == 1 else two
            if slip > 0.0:
                here = float64s(stiffness + 8 * (row + axis), 1)
                here[0] /= 1.0 + here[0] * slip * float64s(gains + 32 * (row + axis), 4)[DAMPING]
