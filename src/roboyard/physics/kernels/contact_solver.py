"""Contact solver: Newton's method for constraint forces, dense and small; contacts with slip.

MuJoCo finds the accelerations ``a`` of a state as the minimum of a convex function (E. Todorov, "Convex and
analytically-invertible dynamics with contacts and constraints", ICRA 2014)::

    ½ (a - a_free)ᵀ M (a - a_free) + Σ s(J a - a_ref)

with one term ``s`` for each constraint: a parabola, half of one, Huber's function of dry friction, or, for a contact
that slides, the squared distance from its friction cone.  The force of a constraint is ``f = -s'(x)`` at its residual
``x = J a - a_ref``.  MuJoCo's own Newton method updates its factorization once for every row of every sliding contact.
For the ten or twenty degrees of freedom of a robot it is four times faster to build the small dense Hessian anew in
each iteration, and affordable to continue to the minimum.

Contacts with slip (the term of ODE and SDF): friction yields in proportion to its force until Coulomb's limit.  A tire
under a side force ``f`` drifts at ``s f``.  The friction rows of such a contact are softer by ``s b``, where ``b`` is
the damping that MuJoCo gives them: a row at rest relative to its drift has ``b v = -(R + s b) f``.  MuJoCo's formulas
for the cone of a contact require that all rows are soft in one proportion.  Here the normal row stands alone, and
friction is the minimum of ::

    ½ fᵀ R f + fᵀ x   over the ellipse   |(f_j / e_j)| ≤ N

with the regularization ``R`` of the rows, their coefficients ``e``, their residual ``x``, and a normal force ``N`` that
the solver takes from the previous solution until it no longer changes (Tresca's friction, iterated to Coulomb's: P. D.
Panagiotopoulos, Ingenieur-Archiv 44, 1975).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.compute.array_kernels import assign
from roboyard.physics.mujoco_memory import (
    ACCELERATIONS,
    AREF,
    CONSTRAINT_FORCES,
    CONTACT_SIZE,
    CONTACTS,
    DIM,
    EFC_FORCES,
    FRICTION,
    FRICTION_LOSS,
    INERTIA,
    INERTIA_COLUMNS,
    INERTIA_LENGTHS,
    INERTIA_STARTS,
    JACOBIAN,
    MEAN_INERTIA,
    MU,
    N_DOFS,
    N_EFFECTIVE_INERTIA,
    N_ROWS,
    ROW_IDS,
    ROW_TYPES,
    SMOOTH_ACCELERATIONS,
    STIFFNESS,
    WARM_START,
    read_int32,
    read_int64,
    view_float64,
    view_int32,
)

SEPARATED, SLIDING, STICKING = -1, 0, 1
MAX_DENSE_DOFS = 59
"""Degrees of freedom up to which MuJoCo keeps its Jacobian dense, and this solver is faster than MuJoCo's."""
MAX_MULTIPLIER_ITERATIONS = 50
"""Maximum number of iterations for a multiplier; four or five are usual."""


@kernel(error_model="numpy")
def _friction_multiplier(
    residual: NDArray[np.float64], stiffness: NDArray[np.float64], friction: NDArray[np.float64], limit: float
) -> float:
    """Return the multiplier κ at which the length ``|f_j / e_j|`` of the forces ``f_j = -x_j e_j²/(R_j e_j² + κ)``
    equals the limit.

    The inverse of the length is concave and nearly linear in κ, so that Newton's method on it converges from below.
    """
    kappa = 0.0
    for _ in range(MAX_MULTIPLIER_ITERATIONS):
        squares = cubes = 0.0
        for j in range(len(residual)):
            e = friction[j]
            width = e * e / stiffness[j] + kappa
            component = residual[j] * e / width
            squares += component * component
            cubes += component * component / width
        length = math.sqrt(squares)
        step = (length / limit - 1.0) * squares / cubes
        kappa += step
        if step <= 1e-13 * kappa:
            break
    return kappa


@kernel(error_model="numpy")
def slip_friction_force(
    residual: NDArray[np.float64],
    stiffness: NDArray[np.float64],
    friction: NDArray[np.float64],
    limit: float,
    force: NDArray[np.float64],
    hessian: NDArray[np.float64],
) -> int:
    """Compute the force of a contact with slip, and the second derivative of its term.

    The normal force is ``max(-D_0 x_0, 0)``.  Friction sticks with ``f_j = -D_j x_j`` inside the ellipse
    ``|(f_j / e_j)| ≤ limit``, and slides with ``f_j = -x_j / (R_j + κ/e_j²)`` on its edge.

    Args:
        residual: (dim,) ``x`` of its rows, the normal one first.
        stiffness: (dim,) ``D = 1/R`` of its rows, in any proportion.
        friction: (dim - 1,) coefficients ``e`` of the friction rows.
        limit: Normal force that bounds friction [N].
        force: (6,) written.
        hessian: (6, 6) written.

    Returns:
        `SEPARATED`, where the limit is zero, `SLIDING` or `STICKING`.
    """
    dim = len(residual)
    force[:dim] = 0.0
    hessian[:dim, :dim] = 0.0
    if residual[0] < 0.0:
        force[0], hessian[0, 0] = -stiffness[0] * residual[0], stiffness[0]
    if limit <= 0.0:
        return SEPARATED
    squared_force = 0.0
    for j in range(1, dim):
        squared_force += (stiffness[j] * residual[j] / friction[j - 1]) ** 2
    if math.sqrt(squared_force) <= limit:
        for j in range(1, dim):
            force[j] = -stiffness[j] * residual[j]
            hessian[j, j] = stiffness[j]
        return STICKING
    kappa = _friction_multiplier(residual[1:], stiffness[1:], friction, limit)
    # (R + κ/e²)⁻¹ without its part across the ellipse's edge
    gradient, total = np.zeros(6), 0.0
    for j in range(1, dim):
        e = friction[j - 1]
        hessian[j, j] = e * e / (e * e / stiffness[j] + kappa)
        force[j] = -residual[j] * hessian[j, j]
        gradient[j] = hessian[j, j] * force[j] / (e * e)
        total += gradient[j] * force[j] / (e * e)
    for i in range(1, dim):
        for j in range(1, dim):
            hessian[i, j] -= gradient[i] * gradient[j] / total
    return SLIDING


EQUALITY = int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
FRICTION_DOF = int(mujoco.mjtConstraint.mjCNSTR_FRICTION_DOF)
FRICTION_TENDON = int(mujoco.mjtConstraint.mjCNSTR_FRICTION_TENDON)
ELLIPTIC = int(mujoco.mjtConstraint.mjCNSTR_CONTACT_ELLIPTIC)
SLIP_CONTACT = 100
"""Row type that `solve_contacts` gives to contacts with slip; their friction limit is stored as friction loss."""


class ConstraintRows(NamedTuple):
    """The constraint rows of a state; a contact has one row for its normal and one for each axis of friction.

    Attributes:
        residual: (rows,) ``x = J a - a_ref`` [m/s² or rad/s²].
        stiffness: (rows,) ``D``, the inverse of the regularization ``R``.
        friction_loss: (rows,) bound of dry friction [N or N m]; of a contact with slip, the bound of its friction [N].
        types: (rows,) type of each constraint, as in MuJoCo, or `SLIP_CONTACT`.
        contacts: (rows,) address of the row's contact, 0 for rows of other constraints.
    """

    residual: NDArray[np.float64]
    stiffness: NDArray[np.float64]
    friction_loss: NDArray[np.float64]
    types: NDArray[np.int32]
    contacts: NDArray[np.int64]


@kernel(no_refcount=False)
def _contact_dimension(contact: int, layout: NDArray[np.int64]) -> int:
    """Return the number of rows of a contact."""
    return 0 + read_int32(contact + layout[DIM])


@kernel(no_refcount=False)
def _cone_friction(contact: int, layout: NDArray[np.int64]) -> float:
    """Return the coefficient ``μ`` of the regularized cone of a contact."""
    return float(view_float64(contact + layout[MU], 1)[0])


@kernel(no_refcount=False)
def _friction_coefficients(contact: int, layout: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the coefficients (5,) ``e`` of a contact."""
    return view_float64(contact + layout[FRICTION], 5)


@kernel(error_model="numpy", no_refcount=True)
def contact_zone(
    residual: NDArray[np.float64], first: int, dim: int, mu: float, friction: NDArray[np.float64]
) -> tuple:  # type: ignore[type-arg]
    """Return the normal part ``N = μ x_0``, the tangential part ``T = √Σ (e_j x_j)²`` and the zone of a contact.

    The zones are those of MuJoCo's elliptic cones: -1 separated, ``N ≥ μ T``, without force; 1 sticking,
    ``μ N + T ≤ 0``, with the term ``½ Σ D_j x_j²``; 0 sliding, with ``½ D_0 / (μ² (1 + μ²)) (N - μ T)²``.
    """
    normal = mu * residual[first]
    squares = 0.0
    for axis in range(1, dim):
        squares += (friction[axis - 1] * residual[first + axis]) ** 2
    tangential = math.sqrt(squares)
    if normal >= mu * tangential:
        return normal, tangential, -1
    if mu * normal + tangential <= 0.0:
        return normal, tangential, 1
    return normal, tangential, 0


@kernel(error_model="numpy", no_refcount=False)
def _slip_contact_forces(
    rows: ConstraintRows,
    layout: NDArray[np.int64],
    row: int,
    force: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> int:
    """Write the forces of a contact with slip, and zero weights; return the number of its rows."""
    dim, friction = _contact_dimension(rows.contacts[row], layout), _friction_coefficients(rows.contacts[row], layout)
    contact_force, contact_hessian = np.empty(6), np.empty((6, 6))
    slip_friction_force(
        rows.residual[row : row + dim],
        rows.stiffness[row : row + dim],
        friction,
        rows.friction_loss[row],
        contact_force,
        contact_hessian,
    )
    for k in range(dim):
        force[row + k], weight[row + k] = contact_force[k], 0.0
    return dim


@kernel(error_model="numpy", no_refcount=True)
def constraint_forces(
    rows: ConstraintRows,
    layout: NDArray[np.int64],
    force: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> None:
    """Compute the force ``f = -s'(x)`` of each row, and ``s"(x)`` where a term depends on one row alone.

    Args:
        rows: The constraint rows.
        layout: The offsets of `MujocoLayout`.
        force: (rows,) written.
        weight: (rows,) second derivatives, written; 0 for rows of sliding contacts and of contacts with slip.
    """
    residual, stiffness, friction_loss = rows.residual, rows.stiffness, rows.friction_loss
    row_types, row_contacts = rows.types, rows.contacts
    row = 0
    while row < len(residual):
        row_type, x, d = row_types[row], residual[row], stiffness[row]
        if row_type == SLIP_CONTACT:
            row += _slip_contact_forces(rows, layout, row, force, weight)
            continue
        if row_type == ELLIPTIC:
            contact = row_contacts[row]
            dim, mu = _contact_dimension(contact, layout), _cone_friction(contact, layout)
            friction = _friction_coefficients(contact, layout)
            normal, tangential, zone = contact_zone(residual, row, dim, mu, friction)
            for k in range(row, row + dim):
                force[k] = -stiffness[k] * residual[k] if zone == 1 else 0.0
                weight[k] = stiffness[k] if zone == 1 else 0.0
            if zone == 0:
                pull = d / (mu * mu * (1.0 + mu * mu)) * (normal - mu * tangential)
                force[row] = -pull * mu
                for axis in range(1, dim):
                    u = friction[axis - 1] * residual[row + axis]
                    force[row + axis] = pull * mu * u / tangential * friction[axis - 1]
            row += dim
            continue
        force[row], weight[row] = -d * x, d
        if row_type in (FRICTION_DOF, FRICTION_TENDON):
            if abs(d * x) >= friction_loss[row]:
                force[row], weight[row] = -math.copysign(friction_loss[row], x), 0.0
        elif row_type != EQUALITY and x >= 0.0:
            force[row] = weight[row] = 0.0
        row += 1


@kernel(error_model="numpy", no_refcount=False)
def _slip_line_derivatives(
    step: float, rows: ConstraintRows, change: NDArray[np.float64], layout: NDArray[np.int64], row: int
) -> tuple[int, float, float]:
    """Return the number of rows of a contact with slip, and its part of `line_search_derivatives`."""
    dim, friction = _contact_dimension(rows.contacts[row], layout), _friction_coefficients(rows.contacts[row], layout)
    contact_force, contact_hessian = np.empty(6), np.empty((6, 6))
    trial_residual = rows.residual[row : row + dim] + step * change[row : row + dim]
    slip_friction_force(
        trial_residual,
        rows.stiffness[row : row + dim],
        friction,
        rows.friction_loss[row],
        contact_force,
        contact_hessian,
    )
    first = second = 0.0
    for i in range(dim):
        first -= contact_force[i] * change[row + i]
        for j in range(dim):
            second += change[row + i] * contact_hessian[i, j] * change[row + j]
    return dim, first, second


@kernel(error_model="numpy", no_refcount=True)
def line_search_derivatives(
    step: float, rows: ConstraintRows, change: NDArray[np.float64], layout: NDArray[np.int64]
) -> tuple[float, float]:
    """Compute the first and second derivative of the sum of all terms ``s`` along a direction.

    Args:
        step: Length of the step along the direction.
        rows: The constraint rows.
        change: (rows,) change of the residual along the direction.
        layout: The offsets of `MujocoLayout`.
    """
    residual, stiffness, friction_loss = rows.residual, rows.stiffness, rows.friction_loss
    row_types, row_contacts = rows.types, rows.contacts
    first = second = 0.0
    row = 0
    while row < len(residual):
        row_type, v, d = row_types[row], change[row], stiffness[row]
        x = residual[row] + step * v
        if row_type == SLIP_CONTACT:
            dim, slip_first, slip_second = _slip_line_derivatives(step, rows, change, layout, row)
            first += slip_first
            second += slip_second
            row += dim
            continue
        if row_type == ELLIPTIC:
            contact = row_contacts[row]
            dim, mu = _contact_dimension(contact, layout), _cone_friction(contact, layout)
            friction = _friction_coefficients(contact, layout)
            normal, squares, along, across = mu * x, 0.0, 0.0, 0.0
            for axis in range(1, dim):
                u = friction[axis - 1] * (residual[row + axis] + step * change[row + axis])
                w = friction[axis - 1] * change[row + axis]
                squares += u * u
                along += u * w
                across += w * w
            tangential = math.sqrt(squares)
            if mu * normal + tangential <= 0.0 and normal < mu * tangential:
                for k in range(row, row + dim):
                    first += stiffness[k] * (residual[k] + step * change[k]) * change[k]
                    second += stiffness[k] * change[k] * change[k]
            elif normal < mu * tangential:
                scale = d / (mu * mu * (1.0 + mu * mu))
                speed = along / tangential
                curvature = (across - speed * speed) / tangential
                gap, closing = normal - mu * tangential, mu * v - mu * speed
                first += scale * gap * closing
                second += scale * (closing * closing - gap * mu * curvature)
            row += dim
            continue
        if row_type in (FRICTION_DOF, FRICTION_TENDON):
            if abs(d * x) >= friction_loss[row]:
                first += math.copysign(friction_loss[row], x) * v
            else:
                first += d * x * v
                second += d * v * v
        elif row_type == EQUALITY or x < 0.0:
            first += d * x * v
            second += d * v * v
        row += 1
    return first, second


@kernel(error_model="numpy", no_refcount=True)
def add_outer_product(matrix: NDArray[np.float64], factor: float, vector: NDArray[np.float64]) -> None:
    """Add ``factor v vᵀ`` to a matrix."""
    for r in range(len(vector)):
        scaled = factor * vector[r]
        if scaled != 0.0:
            for c in range(len(vector)):
                matrix[r, c] += scaled * vector[c]


@kernel(error_model="numpy", no_refcount=False)
def _add_slip_terms(
    hessian: NDArray[np.float64],
    jacobian: NDArray[np.float64],
    rows: ConstraintRows,
    layout: NDArray[np.int64],
    row: int,
) -> int:
    """Add the second derivatives of the term of a contact with slip; returns the number of its rows."""
    contact, limit = rows.contacts[row], rows.friction_loss[row]
    residual, stiffness = rows.residual, rows.stiffness
    dim, friction = read_int32(contact + layout[DIM]), view_float64(contact + layout[FRICTION], 5)
    force, contact_hessian = np.empty(6), np.empty((6, 6))
    slip_friction_force(residual[row : row + dim], stiffness[row : row + dim], friction, limit, force, contact_hessian)
    for i in range(dim):
        for j in range(dim):
            for r in range(hessian.shape[0]):
                scaled = contact_hessian[i, j] * jacobian[row + i, r]
                if scaled != 0.0:
                    for c in range(hessian.shape[0]):
                        hessian[r, c] += scaled * jacobian[row + j, c]
    return int(dim)


@kernel(error_model="numpy", no_refcount=True)
def add_sliding_terms(
    hessian: NDArray[np.float64],
    jacobian: NDArray[np.float64],
    rows: ConstraintRows,
    layout: NDArray[np.int64],
    along: NDArray[np.float64],
    across: NDArray[np.float64],
) -> None:
    """Add the second derivatives of the terms of all sliding contacts and of all contacts with slip.

    The term of a sliding contact is ``½ k (N - μ T)²`` with ``k = D_0 / (μ² (1 + μ²))``.  Its second derivative is
    ``k`` towards the surface of the cone, and ``k μ (μ T - N) / T`` in the tangential directions except that of
    sliding.

    Args:
        hessian: (nv, nv) written.
        jacobian: (rows, nv) ``J``.
        rows: The constraint rows.
        layout: The offsets of `MujocoLayout`.
        along: (nv,) room for the direction of sliding.
        across: (nv,) room for the direction towards the cone's surface.
    """
    residual, stiffness, row_types, row_contacts = rows.residual, rows.stiffness, rows.types, rows.contacts
    row = 0
    while row < len(residual):
        if row_types[row] == SLIP_CONTACT:
            row += _add_slip_terms(hessian, jacobian, rows, layout, row)
            continue
        if row_types[row] != ELLIPTIC:
            row += 1
            continue
        contact = row_contacts[row]
        dim, mu = _contact_dimension(contact, layout), _cone_friction(contact, layout)
        friction = _friction_coefficients(contact, layout)
        normal, tangential, zone = contact_zone(residual, row, dim, mu, friction)
        if zone == 0:
            scale = stiffness[row] / (mu * mu * (1.0 + mu * mu))
            tangential_curvature = scale * mu * (mu * tangential - normal) / tangential
            along[:] = 0.0
            for axis in range(1, dim):
                factor = friction[axis - 1]
                weight = factor * residual[row + axis] / tangential * factor
                for c in range(len(along)):
                    along[c] += weight * jacobian[row + axis, c]
                add_outer_product(hessian, tangential_curvature * factor * factor, jacobian[row + axis])
            add_outer_product(hessian, -tangential_curvature, along)
            for c in range(len(along)):
                across[c] = mu * (jacobian[row, c] - along[c])
            add_outer_product(hessian, scale, across)
        row += dim


MAX_ITERATIONS = 30
"""Maximum number of Newton iterations; two or three are usual, ten for a hard landing."""
MAX_LINE_SEARCH_STEPS = 15
"""Maximum number of steps of one line search."""
MAX_FRICTION_LIMIT_UPDATES, FRICTION_LIMIT_TOLERANCE, FRICTION_LIMIT_GRADIENT = 6, 1e-3, 1e-4
"""Of the friction limits of contacts with slip, which follow the normal forces: the maximum number of updates, the
relative change that requires another one, and the scaled gradient below which normal forces are known well enough."""
UNSOLVED, SOLVED, WRITTEN_BACK = range(3)
GRADIENT_TOLERANCE = 1e-9
"""Length of the scaled gradient at which the method ends; the last iteration falls far below it."""


@kernel(error_model="numpy")
def _factorize_cholesky(matrix: NDArray[np.float64]) -> bool:
    """Factorize a matrix by Cholesky decomposition, in its lower half; return whether it is positive definite.

    `solve_spd_in_place` computes the diagonal by another formula, whose rounding differs; recordings depend on it.
    """
    n = matrix.shape[0]
    for j in range(n):
        for k in range(j):
            factor = matrix[j, k]
            if factor != 0.0:
                for i in range(j, n):
                    matrix[i, j] -= matrix[i, k] * factor
        pivot = matrix[j, j]
        if not pivot > 0.0:
            return False
        pivot = math.sqrt(pivot)
        for i in range(j, n):
            matrix[i, j] /= pivot
    return True


@kernel(error_model="numpy")
def _solve_cholesky(factor: NDArray[np.float64], vector: NDArray[np.float64]) -> None:
    """Solve ``L Lᵀ x = vector`` in place."""
    n = factor.shape[0]
    for i in range(n):
        total = vector[i]
        for k in range(i):
            total -= factor[i, k] * vector[k]
        vector[i] = total / factor[i, i]
    for i in range(n - 1, -1, -1):
        total = vector[i]
        for k in range(i + 1, n):
            total -= factor[k, i] * vector[k]
        vector[i] = total / factor[i, i]


@kernel(error_model="numpy")
def _read_inertia(model: int, data: int, layout: NDArray[np.int64], dense: NDArray[np.float64]) -> None:
    """Read the joint-space inertia matrix (nv, nv) from MuJoCo's sparse form."""
    nv = dense.shape[0]
    lengths = view_int32(read_int64(model + layout[INERTIA_LENGTHS]), nv)
    starts = view_int32(read_int64(model + layout[INERTIA_STARTS]), nv)
    end = starts[nv - 1] + lengths[nv - 1]
    columns = view_int32(read_int64(model + layout[INERTIA_COLUMNS]), end)
    values = view_float64(read_int64(data + layout[INERTIA]), end)
    dense[:] = 0.0
    for r in range(nv):
        for k in range(starts[r], starts[r] + lengths[r]):
            dense[r, columns[k]] = dense[columns[k], r] = values[k]


@kernel(error_model="numpy")
def has_slip(contact: int, row: int, stiffness: NDArray[np.float64], layout: NDArray[np.int64]) -> bool:
    """Return whether the rows of a contact violate ``D_j = D_0 e_j² / μ²``, the proportion that MuJoCo gives them."""
    mu, coefficients = view_float64(contact + layout[MU], 1)[0], view_float64(contact + layout[FRICTION], 5)
    for axis in range(1, read_int32(contact + layout[DIM])):
        ratio = stiffness[row + axis] * mu * mu / (stiffness[row] * coefficients[axis - 1] * coefficients[axis - 1])
        if abs(ratio - 1.0) > 1e-6:
            return True
    return False


@kernel(error_model="numpy")
def _mark_slip_contacts(
    row_types: NDArray[np.int32],
    row_contacts: NDArray[np.int64],
    stiffness: NDArray[np.float64],
    layout: NDArray[np.int64],
) -> bool:
    """Set the type of the rows of contacts with slip; return whether there are any."""
    any_slip, row = False, 0
    while row < len(row_types):
        if row_types[row] != ELLIPTIC:
            row += 1
            continue
        dim = read_int32(row_contacts[row] + layout[DIM])
        if has_slip(row_contacts[row], row, stiffness, layout):
            row_types[row : row + dim] = SLIP_CONTACT
            any_slip = True
        row += dim
    return any_slip


@kernel(error_model="numpy")
def _update_friction_limits(rows: ConstraintRows, layout: NDArray[np.int64]) -> bool:
    """Set the friction limits of contacts with slip to their present normal forces; return whether any changed much."""
    residual, stiffness, friction_loss = rows.residual, rows.stiffness, rows.friction_loss
    row_types, row_contacts = rows.types, rows.contacts
    changed, row = False, 0
    while row < len(residual):
        if row_types[row] != SLIP_CONTACT:
            row += 1
            continue
        limit = max(-stiffness[row] * residual[row], 0.0)
        changed = changed or abs(limit - friction_loss[row]) > FRICTION_LIMIT_TOLERANCE * limit
        friction_loss[row] = limit
        row += read_int32(row_contacts[row] + layout[DIM])
    return changed


@kernel(error_model="numpy")
def _write_solution(
    data: int,
    layout: NDArray[np.int64],
    solution: NDArray[np.float64],
    force: NDArray[np.float64],
    jacobian: NDArray[np.float64],
) -> None:
    """Write accelerations and forces into MuJoCo's data, as its own solver does."""
    rows, nv = jacobian.shape
    assign(view_float64(read_int64(data + layout[EFC_FORCES]), rows), force)
    assign(view_float64(read_int64(data + layout[ACCELERATIONS]), nv), solution)
    total = view_float64(read_int64(data + layout[CONSTRAINT_FORCES]), nv)
    for i in range(nv):
        total[i] = 0.0
        for row in range(rows):
            total[i] += jacobian[row, i] * force[row]


def _example() -> Iterable[tuple[Any, ...]]:
    yield (0, 0, np.zeros(1, np.int64))


@kernel(examples=_example, error_model="numpy")
def solve_contacts(model: int, data: int, layout: NDArray[np.int64]) -> int:
    """Solve for the accelerations of an evaluated state and leave them as the warm start of MuJoCo's solver.

    MuJoCo cannot evaluate the forces of contacts with slip: the whole solution is then written into its data.

    Args:
        model: Address of MuJoCo's model.
        data: Address of its data: constraints made, ``qacc_smooth`` known, ``qacc_warmstart`` the first guess.
        layout: The offsets of `MujocoLayout`.

    Returns:
        `UNSOLVED` (0) if the problem is not of the supported kind (no constraint, too large, soft bodies), or the
        minimum was not reached: the starting point is then unchanged; `SOLVED`; or `WRITTEN_BACK`.
    """
    nv, n_rows = read_int64(model + layout[N_DOFS]), 0 + read_int32(data + layout[N_ROWS])  # both 64 bits wide
    if n_rows == 0 or nv > MAX_DENSE_DOFS or read_int32(data + layout[N_EFFECTIVE_INERTIA]) != 0:
        return UNSOLVED
    jacobian = view_float64(read_int64(data + layout[JACOBIAN]), n_rows * nv).reshape((n_rows, nv))
    reference = view_float64(read_int64(data + layout[AREF]), n_rows)
    stiffness = view_float64(read_int64(data + layout[STIFFNESS]), n_rows)
    friction_loss = view_float64(read_int64(data + layout[FRICTION_LOSS]), n_rows)
    row_types = view_int32(read_int64(data + layout[ROW_TYPES]), n_rows).copy()
    row_ids = view_int32(read_int64(data + layout[ROW_IDS]), n_rows)
    smooth_acceleration = view_float64(read_int64(data + layout[SMOOTH_ACCELERATIONS]), nv)
    warm_start = view_float64(read_int64(data + layout[WARM_START]), nv)
    scale = 1.0 / (view_float64(model + layout[MEAN_INERTIA], 1)[0] * nv)

    contacts = read_int64(data + layout[CONTACTS])
    row_contacts = np.empty(n_rows, np.int64)
    for row in range(n_rows):
        row_contacts[row] = contacts + row_ids[row] * layout[CONTACT_SIZE] if row_types[row] == ELLIPTIC else 0
    any_slip, n_limit_updates = _mark_slip_contacts(row_types, row_contacts, stiffness, layout), 0
    if any_slip:
        friction_loss = friction_loss.copy()

    inertia, hessian = np.empty((nv, nv)), np.empty((nv, nv))
    _read_inertia(model, data, layout, inertia)
    residual, change, force, weight = np.empty(n_rows), np.empty(n_rows), np.empty(n_rows), np.empty(n_rows)
    acceleration, gradient, direction, inertial_force, inertial_force_change = (
        warm_start.copy(), np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv),
    )  # fmt: skip
    along, across = np.empty(nv), np.empty(nv)
    for i in range(nv):
        inertial_force[i] = 0.0
        for j in range(nv):
            inertial_force[i] += inertia[i, j] * (acceleration[j] - smooth_acceleration[j])
    for row in range(n_rows):
        residual[row] = -reference[row]
        for j in range(nv):
            residual[row] += jacobian[row, j] * acceleration[j]

    rows = ConstraintRows(residual, stiffness, friction_loss, row_types, row_contacts)
    if any_slip:
        _update_friction_limits(rows, layout)
    for _ in range(MAX_ITERATIONS):
        constraint_forces(rows, layout, force, weight)
        assign(gradient, inertial_force)
        for row in range(n_rows):
            if force[row] != 0.0:
                for j in range(nv):
                    gradient[j] -= jacobian[row, j] * force[row]
        squares = 0.0
        for j in range(nv):
            squares += gradient[j] * gradient[j]
        if (
            any_slip
            and n_limit_updates < MAX_FRICTION_LIMIT_UPDATES
            and math.sqrt(squares) * scale < FRICTION_LIMIT_GRADIENT
        ):
            n_limit_updates += 1
            if _update_friction_limits(rows, layout):
                continue
        if math.sqrt(squares) * scale < GRADIENT_TOLERANCE:
            assign(warm_start, acceleration)
            if any_slip:
                _write_solution(data, layout, acceleration, force, jacobian)
                return WRITTEN_BACK
            return SOLVED

        for j in range(nv):
            assign(hessian[j], inertia[j])
        for row in range(n_rows):
            if weight[row] != 0.0:
                add_outer_product(hessian, weight[row], jacobian[row])
        add_sliding_terms(hessian, jacobian, rows, layout, along, across)
        if not _factorize_cholesky(hessian):
            return UNSOLVED
        for j in range(nv):
            direction[j] = -gradient[j]
        _solve_cholesky(hessian, direction)

        inertial_slope = inertial_curvature = 0.0  # of the term of inertia along the direction
        for i in range(nv):
            inertial_force_change[i] = 0.0
            for j in range(nv):
                inertial_force_change[i] += inertia[i, j] * direction[j]
            inertial_slope += direction[i] * inertial_force[i]
            inertial_curvature += direction[i] * inertial_force_change[i]
        for row in range(n_rows):
            change[row] = 0.0
            for j in range(nv):
                change[row] += jacobian[row, j] * direction[j]
        initial_slope = 0.0
        for j in range(nv):
            initial_slope += gradient[j] * direction[j]
        slope_tolerance, low, high, length = -0.01 * initial_slope, 0.0, math.inf, 1.0
        for _ in range(MAX_LINE_SEARCH_STEPS):
            slope, curvature = line_search_derivatives(length, rows, change, layout)
            slope, curvature = slope + inertial_slope + length * inertial_curvature, curvature + inertial_curvature
            if abs(slope) <= slope_tolerance:
                break
            if slope < 0.0:
                low = length
            else:
                high = length
            length -= slope / curvature
            if not low < length < high:
                length = 2.0 * low if high == math.inf else 0.5 * (low + high)
        for j in range(nv):
            acceleration[j] += length * direction[j]
            inertial_force[j] += length * inertial_force_change[j]
        for row in range(n_rows):
            residual[row] += length * change[row]
    return UNSOLVED
