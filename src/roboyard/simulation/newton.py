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

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.compute.array_kernels import assign
from roboyard.simulation.constraint_terms import (
    CREEPING,
    ELLIPTIC,
    add_sliding,
    add_square,
    forces,
    slopes,
)
from roboyard.simulation.creep import LARGEST
from roboyard.simulation.native import (
    ACCELERATIONS,
    AREF,
    CONSTRAINT_FORCES,
    CONTACT_SIZE,
    CONTACTS,
    DIM,
    DOFS,
    DRYNESS,
    EFC_FORCES,
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

ITERATIONS = 30
"""Bound; two or three are usual, ten for a hard landing."""
SEARCHES = 15
"""Bound of the steps of one line search."""
LIMITS, LIMIT_SHARE, ROUGHLY = 6, 1e-3, 1e-4
"""Bound of the rounds in which the friction of creeping contacts follows their normal force, the change that asks for
another one, and the gradient at which normal forces are known well enough for it."""
UNSOLVED, FOUND, TAKEN_OVER = range(3)
TOLERANCE = 1e-9
"""Length of the scaled gradient at which it ends; the last iteration overshoots this by orders of magnitude."""


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


@kernel(error_model="numpy")
def creeps_at(contact: int, row: int, stiffness: NDArray[np.float64], layout: NDArray[np.int64]) -> bool:
    """Whether a contact's rows are softened out of the proportion that the engine gives them."""
    mu, first = float64s(contact + layout[MU], 1)[0], float64s(contact + layout[FRICTION], 5)
    for axis in range(1, int32(contact + layout[DIM])):
        share = stiffness[row + axis] * mu * mu / (stiffness[row] * first[axis - 1] * first[axis - 1])
        if abs(share - 1.0) > 1e-6:
            return True
    return False


@kernel(error_model="numpy")
def _mark_creeping(
    kinds: NDArray[np.int32], owners: NDArray[np.int64], stiffness: NDArray[np.float64], layout: NDArray[np.int64]
) -> bool:
    """Give rows of creeping contacts their kind; whether there are any."""
    any_creeps, row = False, 0
    while row < len(kinds):
        if kinds[row] != ELLIPTIC:
            row += 1
            continue
        dim = int32(owners[row] + layout[DIM])
        if creeps_at(owners[row], row, stiffness, layout):
            kinds[row : row + dim] = CREEPING
            any_creeps = True
        row += dim
    return any_creeps


@kernel(error_model="numpy")
def _limit_creeping(
    residual: NDArray[np.float64],
    stiffness: NDArray[np.float64],
    dryness: NDArray[np.float64],
    kinds: NDArray[np.int32],
    owners: NDArray[np.int64],
    layout: NDArray[np.int64],
) -> bool:
    """Bound the friction of creeping contacts by their present normal forces; whether those have changed much."""
    changed, row = False, 0
    while row < len(residual):
        if kinds[row] != CREEPING:
            row += 1
            continue
        limit = max(-stiffness[row] * residual[row], 0.0)
        changed = changed or abs(limit - dryness[row]) > LIMIT_SHARE * limit
        dryness[row] = limit
        row += int32(owners[row] + layout[DIM])
    return changed


@kernel(error_model="numpy")
def _take_over(
    data: int,
    layout: NDArray[np.int64],
    solution: NDArray[np.float64],
    force: NDArray[np.float64],
    jacobian: NDArray[np.float64],
) -> None:
    """Write a solution where the engine's solver would."""
    rows, nv = jacobian.shape
    assign(float64s(int64(data + layout[EFC_FORCES]), rows), force)
    assign(float64s(int64(data + layout[ACCELERATIONS]), nv), solution)
    total = float64s(int64(data + layout[CONSTRAINT_FORCES]), nv)
    for i in range(nv):
        total[i] = 0.0
        for row in range(rows):
            total[i] += jacobian[row, i] * force[row]


def _example() -> Iterable[tuple[Any, ...]]:
    yield (0, 0, np.zeros(1, np.int64))


@kernel(examples=_example, error_model="numpy")
def start_at_solution(model: int, data: int, layout: NDArray[np.int64]) -> int:
    """Find the accelerations of an evaluated state and leave them where the engine's solver starts.

    Where contacts creep the engine's formulas for forces do not hold: the whole solution is then written in its place.

    Args:
        model: Address of the engine's model.
        data: Address of its data: constraints made, ``qacc_smooth`` known, ``qacc_warmstart`` the first guess.
        layout: The offsets of `Layout`.

    Returns:
        `UNSOLVED` (0) if this is none of the problems it is made for (no constraint, too large, soft bodies), or it did
        not reach the minimum, the starting point is then as it was; `FOUND`; or `TAKEN_OVER`.
    """
    nv, rows = int64(model + layout[DOFS]), 0 + int32(data + layout[ROWS])  # both 64 bits wide
    if rows == 0 or nv > LARGEST or int32(data + layout[EFFECTIVE]) != 0:
        return UNSOLVED
    jacobian = float64s(int64(data + layout[JACOBIAN]), rows * nv).reshape((rows, nv))
    reference = float64s(int64(data + layout[AREF]), rows)
    stiffness = float64s(int64(data + layout[STIFFNESS]), rows)
    dryness = float64s(int64(data + layout[DRYNESS]), rows)
    kinds = int32s(int64(data + layout[KINDS]), rows).copy()
    ids = int32s(int64(data + layout[IDS]), rows)
    free = float64s(int64(data + layout[FREE]), nv)
    start = float64s(int64(data + layout[START]), nv)
    scale = 1.0 / (float64s(model + layout[MEAN_INERTIA], 1)[0] * nv)

    contacts = int64(data + layout[CONTACTS])
    owners = np.empty(rows, np.int64)
    for row in range(rows):
        owners[row] = contacts + ids[row] * layout[CONTACT_SIZE] if kinds[row] == ELLIPTIC else 0
    creeps, rounds = _mark_creeping(kinds, owners, stiffness, layout), 0
    if creeps:
        dryness = dryness.copy()

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

    if creeps:
        _limit_creeping(residual, stiffness, dryness, kinds, owners, layout)
    for _ in range(ITERATIONS):
        forces(residual, stiffness, dryness, kinds, owners, layout, force, weight)
        assign(gradient, inertial)
        for row in range(rows):
            if force[row] != 0.0:
                for j in range(nv):
                    gradient[j] -= jacobian[row, j] * force[row]
        squares = 0.0
        for j in range(nv):
            squares += gradient[j] * gradient[j]
        if creeps and rounds < LIMITS and math.sqrt(squares) * scale < ROUGHLY:
            rounds += 1
            if _limit_creeping(residual, stiffness, dryness, kinds, owners, layout):
                continue
        if math.sqrt(squares) * scale < TOLERANCE:
            assign(start, guess)
            if creeps:
                _take_over(data, layout, guess, force, jacobian)
                return TAKEN_OVER
            return FOUND

        for j in range(nv):
            assign(hessian[j], inertia[j])
        for row in range(rows):
            if weight[row] != 0.0:
                add_square(hessian, weight[row], jacobian[row])
        add_sliding(hessian, jacobian, residual, stiffness, dryness, kinds, owners, layout, along, across)
        if not _factorise(hessian):
            return UNSOLVED
        for j in range(nv):
            direction[j] = -gradient[j]
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
            slope, curve = slopes(length, residual, change, stiffness, dryness, kinds, owners, layout)
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
    return UNSOLVED
