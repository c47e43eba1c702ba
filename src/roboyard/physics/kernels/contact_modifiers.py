"""Kernels that change contact rows before the contact solver: anisotropic friction, slip, friction patches, surface
velocities, and contacts between two moving bodies.

Contacts between two moving bodies (a gripped object, an object on a robot): MuJoCo's constraints know velocities and,
along the normal, positions, but no position along the surface, so whatever slips there stays displaced.  Two errors of
the discrete step make objects slip that should stick.

Softness of constraints: a row at rest under a force ``f`` moves at ``R f / b``.  On the ground that is invisible; 3 kg
between two rubber pads sink 7 mm in 8 s.  Rows of such contacts are stiffened by `NORMAL_STIFFENING` (unless they are
to bounce), friction rows by `FRICTION_STIFFENING` besides.

Rotation: MuJoCo asks that ``J a = a_ref`` and leaves out ``J̇ v`` (not small where a hand sweeps around), and
integrates joints and free bodies with constant joint velocities each: one along an arc, the other straight.  At 2 m/s²
of centripetal acceleration objects would drift at 4 mm/s.  With ``Δ = J̇ v``, which moves the point of contact by
``½ h² Δ`` in a step, friction rows ask that this whole displacement be zero::

    a_ref = -b (J v - ½ h Δ) - Δ
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.physics.kernels.contact_solver import MAX_DENSE_DOFS
from roboyard.physics.mujoco_memory import (
    AREF,
    AXIS_DERIVATIVES,
    BODY_DOFS,
    BODY_FIRST_DOF,
    BODY_OF_GEOM,
    BODY_PARENT,
    BODY_ROOT,
    BODY_ROTATIONS,
    BODY_VELOCITIES,
    BODY_WELD,
    CONTACT_SIZE,
    CONTACTS,
    DIM,
    FIRST_ROW,
    FRAME,
    FRICTION,
    GEOM1,
    GEOM2,
    MU,
    N_DOFS,
    N_ROWS,
    NCON,
    POSITION,
    REGULARIZATION,
    ROW_GAINS,
    SOLREF,
    STIFFNESS,
    SUBTREE_COM,
    VELOCITIES,
    EngineAddresses,
    read_int32,
    read_int64,
    view_float64,
)

# Columns of the table of friction patches.
X, Y, COS, SIN, HALF_LENGTH, HALF_WIDTH, PATCH_FRICTION = range(7)

# Columns of the table of anisotropic friction: coefficients and slip along both directions, the body in whose frame the
# first direction is given, the first direction (zero: none), and whether the geom has anisotropic friction or slip.
FRICTION1, FRICTION2, SLIP1, SLIP2, BODY, DIRECTION_X, DIRECTION_Y, DIRECTION_Z, IS_ANISOTROPIC = range(9)
ANISOTROPY_COLUMNS = 9


class SurfaceArrays(NamedTuple):
    """What distinguishes the surfaces of a world from those that MuJoCo knows.

    Attributes:
        patches: (n, 7) friction patches on the ground: center [m], cosine and sine of the direction of their length,
            half length, half width [m], coefficient.
        velocities: (geoms, 3) velocity of each geom's surface in the world [m/s]; no rows if none moves.
        friction: (geoms, 3) the engine's coefficients.
        anisotropy: (geoms, `ANISOTROPY_COLUMNS`) see `FRICTION1` and the columns after it; no rows if no surface has a
            friction direction.
        ground: (geoms,) whether a geom is ground.
    """

    patches: NDArray[np.float64]
    velocities: NDArray[np.float64]
    friction: NDArray[np.float64]
    anisotropy: NDArray[np.float64]
    ground: NDArray[np.bool_]


DAMPING_GAIN = 1
"""Index of the damping among the four numbers (stiffness, damping, impedance, its slope) that MuJoCo keeps for a
row."""
_MIN_TANGENT = 1e-6
"""Minimum sine of the angle between a direction and the contact normal; below it the plane has no such direction."""


@kernel
def find_patch_friction(patches: NDArray[np.float64], x: float, y: float) -> float:
    """Return the friction coefficient of the last patch that contains a point, -1 outside of all patches."""
    for k in range(patches.shape[0] - 1, -1, -1):
        patch = patches[k]
        dx, dy = x - patch[X], y - patch[Y]
        along, across = patch[COS] * dx + patch[SIN] * dy, patch[COS] * dy - patch[SIN] * dx
        if abs(along) <= patch[HALF_LENGTH] and abs(across) <= patch[HALF_WIDTH]:
            return float(patch[PATCH_FRICTION])
    return -1.0


@kernel
def _has_direction(anisotropy: NDArray[np.float64], geom: int) -> bool:
    return bool(
        anisotropy[geom, DIRECTION_X] != 0.0
        or anisotropy[geom, DIRECTION_Y] != 0.0
        or anisotropy[geom, DIRECTION_Z] != 0.0
    )


@kernel
def _align_frame(frame: NDArray[np.float64], rotation: NDArray[np.float64], direction: NDArray[np.float64]) -> bool:
    """Turn a contact frame about its normal until its first tangent is the projection of a body's direction.

    Args:
        frame: (9,) axes of the contact frame, the normal first; written.
        rotation: (9,) rotation matrix of the body.
        direction: (3,) direction in the body's frame.

    Returns:
        False if the direction is normal to the contact plane: the frame is then unchanged.
    """
    normal = frame[:3]
    x = rotation[0] * direction[0] + rotation[1] * direction[1] + rotation[2] * direction[2]
    y = rotation[3] * direction[0] + rotation[4] * direction[1] + rotation[5] * direction[2]
    z = rotation[6] * direction[0] + rotation[7] * direction[1] + rotation[8] * direction[2]
    normal_component = x * normal[0] + y * normal[1] + z * normal[2]
    x, y, z = x - normal_component * normal[0], y - normal_component * normal[1], z - normal_component * normal[2]
    length = math.sqrt(x * x + y * y + z * z)
    if length < _MIN_TANGENT:
        return False
    x, y, z = x / length, y / length, z / length
    frame[3], frame[4], frame[5] = x, y, z
    frame[6] = normal[1] * z - normal[2] * y
    frame[7] = normal[2] * x - normal[0] * z
    frame[8] = normal[0] * y - normal[1] * x
    return True


@kernel(no_refcount=False)
def align_contacts_to_friction_direction(engine: EngineAddresses, surfaces: SurfaceArrays) -> bool:
    """Align contact frames with the friction directions of surfaces, and set a coefficient for each direction.

    As in Gazebo, the smaller coefficient of both surfaces applies along each direction; the first direction is that of
    the surface that has one, of two surfaces that of the one with less friction along it.  The section of MuJoCo's cone
    becomes an ellipse: friction opposes sliding so that it takes the most energy (the associated law).  Gazebo's
    section is a rectangle, the same along both directions and up to √2 wider between them.

    Args:
        engine: Addresses of the model and its data, positions evaluated.
        surfaces: The surfaces; on a patch of the ground the patch's coefficient replaces the ground's.

    Returns:
        Whether any contact was changed: constraints must then be made anew.
    """
    data, layout = engine.data, engine.layout
    anisotropy, patches, ground = surfaces.anisotropy, surfaces.patches, surfaces.ground
    contacts, rotations, changed = read_int64(data + layout[CONTACTS]), read_int64(data + layout[BODY_ROTATIONS]), False
    for k in range(read_int32(data + layout[NCON])):
        contact = contacts + k * layout[CONTACT_SIZE]
        first, second = read_int32(contact + layout[GEOM1]), read_int32(contact + layout[GEOM2])
        if (
            first < 0
            or second < 0
            or read_int32(contact + layout[FIRST_ROW]) < 0
            or read_int32(contact + layout[DIM]) < 3
        ):
            continue
        if anisotropy[first, IS_ANISOTROPIC] == 0.0 and anisotropy[second, IS_ANISOTROPIC] == 0.0:
            continue
        friction1 = min(anisotropy[first, FRICTION1], anisotropy[second, FRICTION1])
        friction2 = min(anisotropy[first, FRICTION2], anisotropy[second, FRICTION2])
        if patches.shape[0] > 0 and ground[first] != ground[second]:
            position = view_float64(contact + layout[POSITION], 3)
            patch_friction = find_patch_friction(patches, position[0], position[1])
            if patch_friction >= 0.0:
                other = second if ground[first] else first
                friction1, friction2 = (
                    min(anisotropy[other, FRICTION1], patch_friction),
                    min(anisotropy[other, FRICTION2], patch_friction),
                )
        direction_geom = second
        if _has_direction(anisotropy, first) and (
            not _has_direction(anisotropy, second) or anisotropy[first, FRICTION1] <= anisotropy[second, FRICTION1]
        ):
            direction_geom = first
        frame = view_float64(contact + layout[FRAME], 9)
        is_aligned = _has_direction(anisotropy, direction_geom) and _align_frame(
            frame,
            view_float64(rotations + 72 * int(anisotropy[direction_geom, BODY]), 9),
            anisotropy[direction_geom, DIRECTION_X : DIRECTION_Z + 1],
        )
        if not is_aligned:
            friction1 = friction2 = math.sqrt(friction1 * friction2)
        coefficients = view_float64(contact + layout[FRICTION], 5)
        coefficients[0], coefficients[1] = friction1, friction2
        changed = True
    return changed


@kernel(no_refcount=False)
def soften_slipping_contacts(engine: EngineAddresses, anisotropy: NDArray[np.float64]) -> None:
    """Soften the friction rows of contacts with slip: ``1/D ← 1/D + s b``.

    As in ODE and Gazebo a tire under a force ``f`` drifts at ``s f`` until Coulomb's limit; the slips of two surfaces
    add up.  A row with damping ``b`` and regularization ``R = 1/D`` is at rest when ``b v = -R f``, so ``R`` grows by
    ``s b``.

    Args:
        engine: Addresses of the model and its data, constraints made.
        anisotropy: See `SurfaceArrays`.
    """
    model, data, layout = engine.model, engine.data, engine.layout
    if read_int64(model + layout[N_DOFS]) > MAX_DENSE_DOFS:
        return  # MuJoCo's solver does not support slip
    contacts, gains, stiffness = (
        read_int64(data + layout[CONTACTS]), read_int64(data + layout[ROW_GAINS]), read_int64(data + layout[STIFFNESS]),
    )  # fmt: skip
    for k in range(read_int32(data + layout[NCON])):
        contact = contacts + k * layout[CONTACT_SIZE]
        row, dim = read_int32(contact + layout[FIRST_ROW]), read_int32(contact + layout[DIM])
        first, second = read_int32(contact + layout[GEOM1]), read_int32(contact + layout[GEOM2])
        if row < 0 or dim < 3 or first < 0 or second < 0:
            continue
        slip1 = anisotropy[first, SLIP1] + anisotropy[second, SLIP1]
        slip2 = anisotropy[first, SLIP2] + anisotropy[second, SLIP2]
        if not (_has_direction(anisotropy, first) or _has_direction(anisotropy, second)):
            slip1 = slip2 = 0.5 * (slip1 + slip2)
        for axis in range(1, 3):
            slip = slip1 if axis == 1 else slip2
            if slip > 0.0:
                row_stiffness = view_float64(stiffness + 8 * (row + axis), 1)
                row_stiffness[0] /= (
                    1.0 + row_stiffness[0] * slip * view_float64(gains + 32 * (row + axis), 4)[DAMPING_GAIN]
                )


@kernel(no_refcount=False)
def apply_surface_overrides(engine: EngineAddresses, surfaces: SurfaceArrays) -> None:
    """Apply friction patches and surface velocities to contacts.

    A patch replaces the coefficient of the ground: the smaller coefficient of the patch and the other surface applies.
    All coefficients ``e`` of a contact and the coefficient ``μ`` of its regularized cone change by one factor; nothing
    else in MuJoCo's rows depends on them (elliptic cones: MuJoCo's documentation, "Computation").

    Surfaces that move at ``u_1`` and ``u_2`` change the velocity ``v`` at which a contact slides: the reference
    acceleration ``-b v`` becomes ``-b (v + u_2 - u_1)``.

    Args:
        engine: Addresses of the model and its data, velocities evaluated.
        surfaces: The surfaces; `align_contacts_to_friction_direction` has applied the patches to those with a friction
            direction.
    """
    data, layout = engine.data, engine.layout
    patches, surface_velocities, friction = surfaces.patches, surfaces.velocities, surfaces.friction
    anisotropy, ground = surfaces.anisotropy, surfaces.ground
    contacts, references, gains = (
        read_int64(data + layout[CONTACTS]), read_int64(data + layout[AREF]), read_int64(data + layout[ROW_GAINS]),
    )  # fmt: skip
    for k in range(read_int32(data + layout[NCON])):
        contact = contacts + k * layout[CONTACT_SIZE]
        row, dim = read_int32(contact + layout[FIRST_ROW]), read_int32(contact + layout[DIM])
        first, second = read_int32(contact + layout[GEOM1]), read_int32(contact + layout[GEOM2])
        if row < 0 or dim < 3 or first < 0 or second < 0:
            continue
        is_anisotropic = anisotropy.shape[0] > 0 and (
            anisotropy[first, IS_ANISOTROPIC] or anisotropy[second, IS_ANISOTROPIC]
        )
        if patches.shape[0] > 0 and ground[first] != ground[second] and not is_anisotropic:
            position = view_float64(contact + layout[POSITION], 3)
            patch_friction = find_patch_friction(patches, position[0], position[1])
            if patch_friction >= 0.0:
                coefficients, cone_friction = (
                    view_float64(contact + layout[FRICTION], 5),
                    view_float64(contact + layout[MU], 1),
                )
                scale = min(friction[second if ground[first] else first, 0], patch_friction) / coefficients[0]
                for axis in range(5):
                    coefficients[axis] *= scale
                cone_friction[0] *= scale
        if surface_velocities.shape[0] > 0:
            frame = view_float64(contact + layout[FRAME], 9)
            for axis in range(1, 3):
                speed = 0.0  # of the second surface relative to the first, as in MuJoCo
                for c in range(3):
                    speed += (surface_velocities[second, c] - surface_velocities[first, c]) * frame[3 * axis + c]
                if speed != 0.0:
                    damping = view_float64(gains + 32 * (row + axis), 4)[DAMPING_GAIN]
                    view_float64(references + 8 * (row + axis), 1)[0] -= damping * speed


NORMAL_STIFFENING = 5.0
"""Factor of the stiffness of contacts between two moving bodies, as if their impedance were 0.99 instead of 0.95."""
FRICTION_STIFFENING = 200.0
"""Further factor of the stiffness of their friction rows: MuJoCo's ``impratio``, for these contacts alone."""


@kernel
def is_between_moving_bodies(model: int, contact: int, layout: NDArray[np.int64]) -> bool:
    """Return whether both bodies of a contact can move."""
    for field in (GEOM1, GEOM2):
        geom = read_int32(contact + layout[field])
        if geom < 0:
            return False
        body = read_int32(read_int64(model + layout[BODY_OF_GEOM]) + 4 * geom)
        if read_int32(read_int64(model + layout[BODY_WELD]) + 4 * body) == 0:
            return False
    return True


@kernel(no_refcount=False)
def stiffen_moving_contacts(model: int, data: int, layout: NDArray[np.int64]) -> None:
    """Stiffen the contacts between two moving bodies, in worlds of up to `MAX_DENSE_DOFS` degrees of freedom.

    MuJoCo's solver, which solves larger worlds, does not converge on such contacts.

    Args:
        model: Address of MuJoCo's model.
        data: Address of its data, constraints made.
        layout: The offsets of `MujocoLayout`.
    """
    if read_int64(model + layout[N_DOFS]) > MAX_DENSE_DOFS:
        return
    contacts, stiffness = read_int64(data + layout[CONTACTS]), read_int64(data + layout[STIFFNESS])
    regularization = read_int64(data + layout[REGULARIZATION])
    for k in range(read_int32(data + layout[NCON])):
        contact = contacts + k * layout[CONTACT_SIZE]
        row, dim = read_int32(contact + layout[FIRST_ROW]), read_int32(contact + layout[DIM])
        if row < 0 or not is_between_moving_bodies(model, contact, layout):
            continue
        is_bouncing = view_float64(contact + layout[SOLREF], 1)[0] < 0.0
        for axis in range(dim):
            factor = 1.0 if is_bouncing else NORMAL_STIFFENING
            if axis > 0:
                factor *= FRICTION_STIFFENING
            view_float64(stiffness + 8 * (row + axis), 1)[0] *= factor
            view_float64(regularization + 8 * (row + axis), 1)[0] /= factor
        if dim > 1:
            view_float64(contact + layout[MU], 1)[0] /= math.sqrt(FRICTION_STIFFENING)


@kernel(error_model="numpy")
def _add_bias_acceleration(
    model: int,
    data: int,
    layout: NDArray[np.int64],
    body: int,
    point: NDArray[np.float64],
    linear: NDArray[np.float64],
    angular: NDArray[np.float64],
    sign: float,
) -> None:
    """Add ``sign`` times the acceleration ``J̇ v`` of a point of a body: that with all joint accelerations at zero.

    Args:
        model: Address of MuJoCo's model.
        data: Address of its data, velocities evaluated.
        layout: The offsets of `MujocoLayout`.
        body: Number of the body.
        point: (3,) in the world [m].
        linear: (3,) written [m/s²].
        angular: (3,) written [rad/s²].
        sign: Factor.
    """
    angular_bias, linear_bias = np.zeros(3), np.zeros(3)
    ancestor = body
    while ancestor > 0:
        count = read_int32(read_int64(model + layout[BODY_DOFS]) + 4 * ancestor)
        first = read_int32(read_int64(model + layout[BODY_FIRST_DOF]) + 4 * ancestor)
        for dof in range(first, first + count):
            speed = view_float64(read_int64(data + layout[VELOCITIES]) + 8 * dof, 1)[0]
            axis_derivative = view_float64(read_int64(data + layout[AXIS_DERIVATIVES]) + 48 * dof, 6)
            for axis in range(3):
                angular_bias[axis] += axis_derivative[axis] * speed
                linear_bias[axis] += axis_derivative[3 + axis] * speed
        ancestor = read_int32(read_int64(model + layout[BODY_PARENT]) + 4 * ancestor)
    root = read_int32(read_int64(model + layout[BODY_ROOT]) + 4 * body)
    r = point - view_float64(read_int64(data + layout[SUBTREE_COM]) + 24 * root, 3)
    body_velocity = view_float64(read_int64(data + layout[BODY_VELOCITIES]) + 48 * body, 6)
    w, v = body_velocity[:3], body_velocity[3:] + np.cross(body_velocity[:3], r)
    linear += sign * (linear_bias + np.cross(angular_bias, r) + np.cross(w, v))
    angular += sign * angular_bias


@kernel(error_model="numpy", no_refcount=False)
def correct_rotating_contacts(model: int, data: int, layout: NDArray[np.int64], dt: float) -> None:
    """Correct the friction of contacts between two moving bodies for rotation within the step.

    With ``Δ = J̇ v`` of a friction row, ``a_ref ← a_ref + (½ h b - 1) Δ``.

    Args:
        model: Address of MuJoCo's model.
        data: Address of its data, velocities evaluated.
        layout: The offsets of `MujocoLayout`.
        dt: Step [s].
    """
    contacts, gains = read_int64(data + layout[CONTACTS]), read_int64(data + layout[ROW_GAINS])
    references = view_float64(read_int64(data + layout[AREF]), read_int32(data + layout[N_ROWS]))
    linear, angular = np.empty(3), np.empty(3)
    for k in range(read_int32(data + layout[NCON])):
        contact = contacts + k * layout[CONTACT_SIZE]
        row, dim = read_int32(contact + layout[FIRST_ROW]), read_int32(contact + layout[DIM])
        if row < 0 or dim < 3 or not is_between_moving_bodies(model, contact, layout):
            continue
        point, frame = view_float64(contact + layout[POSITION], 3), view_float64(contact + layout[FRAME], 9)
        linear[:], angular[:] = 0.0, 0.0
        for field, sign in ((GEOM1, -1.0), (GEOM2, 1.0)):
            body = read_int32(read_int64(model + layout[BODY_OF_GEOM]) + 4 * read_int32(contact + layout[field]))
            _add_bias_acceleration(model, data, layout, body, point, linear, angular, sign)
        for axis in range(1, dim):
            bias, direction = (linear, axis) if axis < 3 else (angular, axis - 3)
            bias_component = 0.0
            for i in range(3):
                bias_component += frame[3 * direction + i] * bias[i]
            damping = view_float64(gains + 32 * (row + axis), 4)[DAMPING_GAIN]
            references[row + axis] += (0.5 * dt * damping - 1.0) * bias_component
