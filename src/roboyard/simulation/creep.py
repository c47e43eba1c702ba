"""Contacts that creep: friction that yields in proportion to its force until Coulomb's limit; compiled.

ODE and Gazebo call it slip: a tyre under a side force ``f`` drifts at ``s f``.  In the terms of `newton` the friction
rows of such a contact are softer, by ``s b``, where ``b`` is the damping that the engine gives them: at rest relative
to its drift a row has ``b v = -(R + s b) f``.  The engine's own formulas for a contact's cone hold only where all rows
are soft in one proportion.  Here the normal row stands for itself, and friction is the minimum of ::

    ½ fᵀ R f + fᵀ x   over the ellipse   |(f_j / e_j)| ≤ N

with the rows' softness ``R``, their coefficients ``e``, their residual ``x``, and a normal force ``N`` that `newton`
takes from the solution before, until it changes no more (Tresca's friction, iterated to Coulomb's: P. D.
Panagiotopoulos, Ingenieur-Archiv 44, 1975).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel

APART, SLIDING, STICKING = -1, 0, 1
LARGEST = 59
"""Degrees of freedom up to which the engine keeps its Jacobian dense, and `newton` is faster than its own method."""
ROUNDS = 50
"""Bound of the search for a multiplier; four or five are usual."""


@kernel(error_model="numpy")
def _multiplier(
    x: NDArray[np.float64], stiffness: NDArray[np.float64], friction: NDArray[np.float64], limit: float
) -> float:
    """The multiplier κ at which the forces ``-x e²/(R e² + κ)`` reach the limit.

    The inverse of their length is concave and nearly straight in κ: Newton's method on it comes from below.
    """
    kappa = 0.0
    for _ in range(ROUNDS):
        squares = cubes = 0.0
        for j in range(len(x)):
            e = friction[j]
            width = e * e / stiffness[j] + kappa
            share = x[j] * e / width
            squares += share * share
            cubes += share * share / width
        length = math.sqrt(squares)
        step = (length / limit - 1.0) * squares / cubes
        kappa += step
        if step <= 1e-13 * kappa:
            break
    return kappa


@kernel(error_model="numpy")
def creeping_force(
    residual: NDArray[np.float64],
    stiffness: NDArray[np.float64],
    friction: NDArray[np.float64],
    limit: float,
    force: NDArray[np.float64],
    bend: NDArray[np.float64],
) -> int:
    """Force of a contact, and the second derivative of its term.

    Args:
        residual: (dim,) of its rows, the normal one first.
        stiffness: (dim,) of its rows; any.
        friction: (dim - 1,) coefficients of the others.
        limit: The normal force that bounds friction [N].
        force: (6,) written.
        bend: (6, 6) written.

    Returns:
        `APART`, where the limit is zero, `SLIDING` or `STICKING`.
    """
    dim = len(residual)
    force[:dim] = 0.0
    bend[:dim, :dim] = 0.0
    if residual[0] < 0.0:
        force[0], bend[0, 0] = -stiffness[0] * residual[0], stiffness[0]
    if limit <= 0.0:
        return APART
    inside = 0.0
    for j in range(1, dim):
        inside += (stiffness[j] * residual[j] / friction[j - 1]) ** 2
    if math.sqrt(inside) <= limit:
        for j in range(1, dim):
            force[j] = -stiffness[j] * residual[j]
            bend[j, j] = stiffness[j]
        return STICKING
    kappa = _multiplier(residual[1:], stiffness[1:], friction, limit)
    # (R + κ/e²)⁻¹ without its part across the ellipse's edge
    outward, total = np.zeros(6), 0.0
    for j in range(1, dim):
        e = friction[j - 1]
        bend[j, j] = e * e / (e * e / stiffness[j] + kappa)
        force[j] = -residual[j] * bend[j, j]
        outward[j] = bend[j, j] * force[j] / (e * e)
        total += outward[j] * force[j] / (e * e)
    for i in range(1, dim):
        for j in range(1, dim):
            bend[i, j] -= outward[i] * outward[j] / total
    return SLIDING
