"""The terms of constraints in the function that `newton` minimises: forces, slopes, second derivatives; compiled."""

from __future__ import annotations

import math

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.simulation.creep import creeping_force
from roboyard.simulation.native import DIM, FRICTION, MU, float64s, int32

EQUALITY = int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
FRICTION_DOF = int(mujoco.mjtConstraint.mjCNSTR_FRICTION_DOF)
FRICTION_TENDON = int(mujoco.mjtConstraint.mjCNSTR_FRICTION_TENDON)
ELLIPTIC = int(mujoco.mjtConstraint.mjCNSTR_CONTACT_ELLIPTIC)
CREEPING = 100
"""Kind given here to the rows of contacts whose friction rows are softened out of proportion, see `creep`; the limit of
their friction stands where others have dry friction."""


@kernel(error_model="numpy")
def cone(residual: NDArray[np.float64], first: int, dim: int, mu: float, friction: NDArray[np.float64]) -> tuple:  # type: ignore[type-arg]
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
def forces(
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
        if kind == CREEPING:
            contact = owners[row]
            dim, friction = int32(contact + layout[DIM]), float64s(contact + layout[FRICTION], 5)
            here, bend = np.empty(6), np.empty((6, 6))
            creeping_force(residual[row : row + dim], stiffness[row : row + dim], friction, dryness[row], here, bend)
            for k in range(dim):
                force[row + k], weight[row + k] = here[k], 0.0
            row += dim
            continue
        if kind == ELLIPTIC:
            contact = owners[row]
            dim, mu = int32(contact + layout[DIM]), float64s(contact + layout[MU], 1)[0]
            friction = float64s(contact + layout[FRICTION], 5)
            normal, tangential, zone = cone(residual, row, dim, mu, friction)
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
        if kind in (FRICTION_DOF, FRICTION_TENDON):
            if abs(d * x) >= dryness[row]:
                force[row], weight[row] = -math.copysign(dryness[row], x), 0.0
        elif kind != EQUALITY and x >= 0.0:
            force[row] = weight[row] = 0.0
        row += 1


@kernel(error_model="numpy")
def slopes(
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
        if kind == CREEPING:
            contact = owners[row]
            dim, friction = int32(contact + layout[DIM]), float64s(contact + layout[FRICTION], 5)
            here, bends = np.empty(6), np.empty((6, 6))
            along_here = residual[row : row + dim] + step * change[row : row + dim]
            creeping_force(along_here, stiffness[row : row + dim], friction, dryness[row], here, bends)
            for i in range(dim):
                first -= here[i] * change[row + i]
                for j in range(dim):
                    second += change[row + i] * bends[i, j] * change[row + j]
            row += dim
            continue
        if kind == ELLIPTIC:
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
        if kind in (FRICTION_DOF, FRICTION_TENDON):
            if abs(d * x) >= dryness[row]:
                first += math.copysign(dryness[row], x) * v
            else:
                first += d * x * v
                second += d * v * v
        elif kind == EQUALITY or x < 0.0:
            first += d * x * v
            second += d * v * v
        row += 1
    return first, second


@kernel(error_model="numpy")
def add_square(matrix: NDArray[np.float64], factor: float, vector: NDArray[np.float64]) -> None:
    """Add ``factor v vᵀ``."""
    for r in range(len(vector)):
        scaled = factor * vector[r]
        if scaled != 0.0:
            for c in range(len(vector)):
                matrix[r, c] += scaled * vector[c]


@kernel(error_model="numpy")
def _add_creeping(
    hessian: NDArray[np.float64],
    jacobian: NDArray[np.float64],
    residual: NDArray[np.float64],
    stiffness: NDArray[np.float64],
    limit: float,
    contact: int,
    layout: NDArray[np.int64],
    row: int,
) -> int:
    """Add the second derivatives of a creeping contact's term; gives the number of its rows."""
    dim, friction = int32(contact + layout[DIM]), float64s(contact + layout[FRICTION], 5)
    force, bend = np.empty(6), np.empty((6, 6))
    creeping_force(residual[row : row + dim], stiffness[row : row + dim], friction, limit, force, bend)
    for i in range(dim):
        for j in range(dim):
            for r in range(hessian.shape[0]):
                scaled = bend[i, j] * jacobian[row + i, r]
                if scaled != 0.0:
                    for c in range(hessian.shape[0]):
                        hessian[r, c] += scaled * jacobian[row + j, c]
    return int(dim)


@kernel(error_model="numpy")
def add_sliding(
    hessian: NDArray[np.float64],
    jacobian: NDArray[np.float64],
    residual: NDArray[np.float64],
    stiffness: NDArray[np.float64],
    dryness: NDArray[np.float64],
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
        if kinds[row] == CREEPING:
            row += _add_creeping(hessian, jacobian, residual, stiffness, dryness[row], owners[row], layout, row)
            continue
        if kinds[row] != ELLIPTIC:
            row += 1
            continue
        contact = owners[row]
        dim, mu = int32(contact + layout[DIM]), float64s(contact + layout[MU], 1)[0]
        friction = float64s(contact + layout[FRICTION], 5)
        normal, tangential, zone = cone(residual, row, dim, mu, friction)
        if zone == 0:
            scale = stiffness[row] / (mu * mu * (1.0 + mu * mu))
            bend = scale * mu * (mu * tangential - normal) / tangential
            along[:] = 0.0
            for axis in range(1, dim):
                factor = friction[axis - 1]
                share = factor * residual[row + axis] / tangential * factor
                for c in range(len(along)):
                    along[c] += share * jacobian[row + axis, c]
                add_square(hessian, bend * factor * factor, jacobian[row + axis])
            add_square(hessian, -bend, along)
            for c in range(len(along)):
                across[c] = mu * (jacobian[row, c] - along[c])
            add_square(hessian, scale, across)
        row += dim
