"""Newton's method for contact forces, dense and small; compiled.

The engine finds the accelerations ``a`` of an instant as the minimum of a convex function (E. Todorov, "Convex and
analytically-invertible dynamics with contacts and constraints", ICRA 2014)::

    ½ (a - a_free)ᵀ M (a - a_free) + Σ s(J a - a_ref)

with one term ``s`` for each constraint: a parabola, half of one, Huber's function of dry friction, or, for a contact
that slides, the squared distance from its friction cone.  The engine's own Newton method updates its factorisation
once for every row of every sliding contact.  For a robot's ten or twenty degrees of freedom it is four times faster to
build the small dense Hessian anew at each iteration, and affordable to go on to the very minimum.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.simulation.native import (
    AREF,
    CONTACT_SIZE,
    CONTACTS,
    DIM,
    DOFS,
    DRYNESS,
    EFFECTIVE,
    FREE,
    FRICTION,
    IDS,
    INERTIA,
    INERTIA_COLUMNS,
    INERTIA_LENGTHS,
    INERTIA_STARTS,
    JACOBIAN,
    KINDS,
    MEAN_INERTIA,
    MU,
    ROWS,
    START,
    STIFFNESS,
    float64s,
    int32,
    int32s,
    int64,
)

LARGEST = 59
"""Degrees of freedom up to which the engine keeps its Jacobian dense, and this method is the faster one."""
ITERATIONS = 30
"""Bound; two or three are usual, ten for a hard landing."""
SEARCHES = 15
"""Bound of the steps of one line search."""
TOLERANCE = 1e-9
"""Length of the scaled gradient at which it ends; the last iteration overshoots this by orders of magnitude."""

_EQUALITY = int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
_FRICTION_DOF = int(mujoco.mjtConstraint.mjCNSTR_FRICTION_DOF)
_FRICTION_TENDON = int(mujoco.mjtConstraint.mjCNSTR_FRICTION_TENDON)
_ELLIPTIC = int(mujoco.mjtConstraint.mjCNSTR_CONTACT_ELLIPTIC)


@kernel(error_model="numpy")
def _cone(residual: NDArray[np.float64], first: int, dim: int, mu: float, friction: NDArray[np.float64]) -> tuple:  # type: ignore[type-arg]
    """Where a contact stands towards its cone: normal and tangential part in the cone's coordinates, and the zone:
    -1 apart (no force), 0 sliding, 1 sticking (a parabola in every row)."""
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


@kernel(error_model="numpy")
def _forces(
    residual: NDArray[np.float64],
    stiffness: NDArray[np.float64],
    dryness: NDArray[np.float64],
    kinds: NDArray[np.int32],
    owners: NDArray[np.int64],
    layout: NDArray[np.int64],
    force: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> None:
    """Force of every row, and its second derivative where that belongs to the row alone (0 for sliding contacts)."""
    row = 0
    while row < len(residual):
        kind, x, d = kinds[row], residual[row], stiffness[row]
        if kind == _ELLIPTIC:
            contact = owners[row]
            dim, mu = int32(contact + layout[DIM]), float64s(contact + layout[MU], 1)[0]
            friction = float64s(contact + layout[FRICTION], 5)
            normal, tangential, zone = _cone(residual, row, dim, mu, friction)
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
        if kind in (_FRICTION_DOF, _FRICTION_TENDON):
            if abs(d * x) >= dryness[row]:
                force[row], weight[row] = -math.copysign(dryness[row], x), 0.0
        elif kind != _EQUALITY and x >= 0.0:
            force[row] = weight[row] = 0.0
        row += 1


@kernel(error_model="numpy")
def _slopes(
    step: float,
    residual: NDArray[np.float64],
    change: NDArray[np.float64],
    stiffness: NDArray[np.float64],
    dryness: NDArray[np.float64],
    kinds: NDArray[np.int32],
    owners: NDArray[np.int64],
    layout: NDArray[np.int64],
) -> tuple[float, float]:
    """First and second derivative of all constraints' terms along a direction, ``step`` of it away."""
    first = second = 0.0
    row = 0
    while row < len(residual):
        kind, v, d = kinds[row], change[row], stiffness[row]
        x = residual[row] + step * v
        if kind == _ELLIPTIC:
            contact = owners[row]
            dim, mu = int32(contact + layout[DIM]), float64s(contact + layout[MU], 1)[0]
            friction = float64s(contact + layout[FRICTION], 5)
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
                bend = (across - speed * speed) / tangential
                gap, closing = normal - mu * tangential, mu * v - mu * speed
                first += scale * gap * closing
                second += scale * (closing * closing - gap * mu * bend)
            row += dim
            continue
        if kind in (_FRICTION_DOF, _FRICTION_TENDON):
            if abs(d * x) >= dryness[row]:
                first += math.copysign(dryness[row], x) * v
            else:
                first += d * x * v
                second += d * v * v
        elif kind == _EQUALITY or x < 0.0:
            first += d * x * v
            second += d * v * v
        row += 1
    return first, second


@kernel(error_model="numpy")
def _add_square(matrix: NDArray[np.float64], factor: float, vector: NDArray[np.float64]) -> None:
    """Add ``factor v vᵀ``."""
    for r in range(len(vector)):
        scaled = factor * vector[r]
        if scaled != 0.0:
            for c in range(len(vector)):
                matrix[r, c] += scaled * vector[c]


@kernel(error_model="numpy")
def _add_sliding(
    hessian: NDArray[np.float64],
    jacobian: NDArray[np.float64],
    residual: NDArray[np.float64],
    stiffness: NDArray[np.float64],
    kinds: NDArray[np.int32],
    owners: NDArray[np.int64],
    layout: NDArray[np.int64],
    along: NDArray[np.float64],
    across: NDArray[np.float64],
) -> None:
    """Add the second derivatives of every sliding contact's term.

    With the normal part n and the tangential length t the term is ½ k (n - mu t)².  It bends with k towards the cone's
    surface, and with k mu (mu t - n) / t in every tangential direction but the one it slides in.
    """
    row = 0
    while row < len(residual):
        if kinds[row] != _ELLIPTIC:
            row += 1
            continue
        contact = owners[row]
        dim, mu = int32(contact + layout[DIM]), float64s(contact + layout[MU], 1)[0]
        friction = float64s(contact + layout[FRICTION], 5)
        normal, tangential, zone = _cone(residual, row, dim, mu, friction)
        if zone == 0:
            scale = stiffness[row] / (mu * mu * (1.0 + mu * mu))
            bend = scale * mu * (mu * tangential - normal) / tangential
            along[:] = 0.0
            for axis in range(1, dim):
                factor = friction[axis - 1]
                share = factor * residual[row + axis] / tangential * factor
                for c in range(len(along)):
                    along[c] += share * jacobian[row + axis, c]
                _add_square(hessian, bend * factor * factor, jacobian[row + axis])
            _add_square(hessian, -bend, along)
            for c in range(len(along)):
                across[c] = mu * (jacobian[row, c] - along[c])
            _add_square(hessian, scale, across)
        row += dim


@kernel(error_model="numpy")
def _factorise(matrix: NDArray[np.float64]) -> bool:
    """Cholesky's factor in the lower half, in place; False if the matrix is not positive definite."""
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
def _solve(factor: NDArray[np.float64], vector: NDArray[np.float64]) -> None:
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
def _inertia(model: int, data: int, layout: NDArray[np.int64], dense: NDArray[np.float64]) -> None:
    """The joint-space inertia, both halves."""
    nv = dense.shape[0]
    lengths = int32s(int64(model + layout[INERTIA_LENGTHS]), nv)
    starts = int32s(int64(model + layout[INERTIA_STARTS]), nv)
    end = starts[nv - 1] + lengths[nv - 1]
    columns = int32s(int64(model + layout[INERTIA_COLUMNS]), end)
    values = float64s(int64(data + layout[INERTIA]), end)
    dense[:] = 0.0
    for r in range(nv):
        for k in range(starts[r], starts[r] + lengths[r]):
            dense[r, columns[k]] = dense[columns[k], r] = values[k]


def _example() -> Iterable[tuple[Any, ...]]:
    yield (0, 0, np.zeros(1, np.int64))


@kernel(examples=_example, error_model="numpy")
def start_at_solution(model: int, data: int, layout: NDArray[np.int64]) -> bool:
    """Find the accelerations of an evaluated state and leave them where the engine's solver starts.

    Args:
        model: Address of the engine's model.
        data: Address of its data: constraints made, ``qacc_smooth`` known, ``qacc_warmstart`` the first guess.
        layout: The offsets of `Layout`.

    Returns:
        False if this is none of the problems it is made for (no constraint, too large, soft bodies), or it did not
        reach the minimum; the starting point is then as it was.
    """
    nv, rows = int64(model + layout[DOFS]), 0 + int32(data + layout[ROWS])  # both 64 bits wide
    if rows == 0 or nv > LARGEST or int32(data + layout[EFFECTIVE]) != 0:
        return False
    jacobian = float64s(int64(data + layout[JACOBIAN]), rows * nv).reshape((rows, nv))
    reference = float64s(int64(data + layout[AREF]), rows)
    stiffness = float64s(int64(data + layout[STIFFNESS]), rows)
    dryness = float64s(int64(data + layout[DRYNESS]), rows)
    kinds = int32s(int64(data + layout[KINDS]), rows)
    ids = int32s(int64(data + layout[IDS]), rows)
    free = float64s(int64(data + layout[FREE]), nv)
    start = float64s(int64(data + layout[START]), nv)
    scale = 1.0 / (float64s(model + layout[MEAN_INERTIA], 1)[0] * nv)

    contacts = int64(data + layout[CONTACTS])
    owners = np.empty(rows, np.int64)
    for row in range(rows):
        owners[row] = contacts + ids[row] * layout[CONTACT_SIZE] if kinds[row] == _ELLIPTIC else 0

    inertia, hessian = np.empty((nv, nv)), np.empty((nv, nv))
    _inertia(model, data, layout, inertia)
    residual, change, force, weight = np.empty(rows), np.empty(rows), np.empty(rows), np.empty(rows)
    guess, gradient, direction, inertial, push = (
        start.copy(), np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv),
    )  # fmt: skip
    along, across = np.empty(nv), np.empty(nv)
    for i in range(nv):
        inertial[i] = 0.0
        for j in range(nv):
            inertial[i] += inertia[i, j] * (guess[j] - free[j])
    for row in range(rows):
        residual[row] = -reference[row]
        for j in range(nv):
            residual[row] += jacobian[row, j] * guess[j]

    for _ in range(ITERATIONS):
        _forces(residual, stiffness, dryness, kinds, owners, layout, force, weight)
        gradient[:] = inertial
        for row in range(rows):
            if force[row] != 0.0:
                for j in range(nv):
                    gradient[j] -= jacobian[row, j] * force[row]
        squares = 0.0
        for j in range(nv):
            squares += gradient[j] * gradient[j]
        if math.sqrt(squares) * scale < TOLERANCE:
            start[:] = guess
            return True

        hessian[:] = inertia
        for row in range(rows):
            if weight[row] != 0.0:
                _add_square(hessian, weight[row], jacobian[row])
        _add_sliding(hessian, jacobian, residual, stiffness, kinds, owners, layout, along, across)
        if not _factorise(hessian):
            return False
        direction[:] = -gradient
        _solve(hessian, direction)

        straight = bend = 0.0  # of the parabola of inertia along the direction
        for i in range(nv):
            push[i] = 0.0
            for j in range(nv):
                push[i] += inertia[i, j] * direction[j]
            straight += direction[i] * inertial[i]
            bend += direction[i] * push[i]
        for row in range(rows):
            change[row] = 0.0
            for j in range(nv):
                change[row] += jacobian[row, j] * direction[j]
        first = 0.0
        for j in range(nv):
            first += gradient[j] * direction[j]
        enough, low, high, length = -0.01 * first, 0.0, math.inf, 1.0
        for _ in range(SEARCHES):
            slope, curve = _slopes(length, residual, change, stiffness, dryness, kinds, owners, layout)
            slope, curve = slope + straight + length * bend, curve + bend
            if abs(slope) <= enough:
                break
            if slope < 0.0:
                low = length
            else:
                high = length
            length -= slope / curve
            if not low < length < high:
                length = 2.0 * low if high == math.inf else 0.5 * (low + high)
        for j in range(nv):
            guess[j] += length * direction[j]
            inertial[j] += length * push[j]
        for row in range(rows):
            residual[row] += length * change[row]
    return False
