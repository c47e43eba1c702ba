"""Contacts that creep: friction that yields in proportion to its force until Coulomb's limit; compiled.

ODE and Gazebo call it slip: a tyre under a side force ``f`` drifts at ``s f``.  In the terms of `newton` the friction
rows of such a contact are softer, by ``s b``, where ``b`` is the damping that the engine gives them: at rest relative
to its drift a row has ``b v = -(R + s b) f``.  The engine's own formulas for a contact's cone hold only where all rows
are soft in one proportion.  Here is the general case: the force of a contact is the minimum of ::

    ½ fᵀ R f + fᵀ x   over the cone   |(f_j / e_j)| ≤ f_n

with the rows' softness ``R``, their coefficients ``e`` and their residual ``x``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel

APART, SLIDING, STICKING = -1, 0, 1
LARGEST = 59
"""Degrees of freedom up to which the engine keeps its Jacobian dense, and `newton` is faster than its own method."""
ROUNDS = 60
"""Bound of the search for a multiplier; Newton's steps need six or seven."""


@kernel(error_model="numpy")
def _multiplier(
    x: NDArray[np.float64], stiffness: NDArray[np.float64], friction: NDArray[np.float64], normal: float, soft: float
) -> tuple[float, float]:
    """The multiplier of the cone over the normal force, and the normal force.

    With the multiplier κ the tangential forces are ``-x e²/(R e² + κ)``; their length over the coefficients is the
    normal force, which is also ``x_n/(κ - R_n)``.  The difference times ``κ - R_n`` grows from below to above zero.
    """
    low, high, kappa, force = 0.0, math.inf, soft, 0.0
    for _ in range(ROUNDS):
        squares = cubes = 0.0
        for j in range(len(x)):
            e = friction[j]
            width = e * e / stiffness[j] + kappa
            share = x[j] * e / width
            squares += share * share
            cubes += share * share / width
        force = math.sqrt(squares)
        value = force * (kappa - soft) - normal
        if value < 0.0:
            low = kappa
        else:
            high = kappa
        slope = force - (kappa - soft) * cubes / force if force > 0.0 else 0.0
        step = -value / slope if slope > 0.0 else math.inf
        following = kappa + step
        if not low < following < high:
            following = 2.0 * kappa if high == math.inf else 0.5 * (low + high)
        if abs(following - kappa) <= 1e-14 * kappa:
            break
        kappa = following
    return kappa, force


@kernel(error_model="numpy")
def creeping_force(
    residual: NDArray[np.float64],
    stiffness: NDArray[np.float64],
    friction: NDArray[np.float64],
    force: NDArray[np.float64],
    bend: NDArray[np.float64],
) -> int:
    """Force of a contact, and the second derivative of its term.

    Args:
        residual: (dim,) of its rows, the normal one first.
        stiffness: (dim,) of its rows; any.
        friction: (dim - 1,) coefficients of the others.
        force: (6,) written.
        bend: (6, 6) written.

    Returns:
        `APART`, `SLIDING` or `STICKING`.
    """
    dim = len(residual)
    force[:dim] = 0.0
    bend[:dim, :dim] = 0.0
    away = inside = 0.0
    for j in range(1, dim):
        away += (friction[j - 1] * residual[j]) ** 2
        inside += (stiffness[j] * residual[j] / friction[j - 1]) ** 2
    if residual[0] >= math.sqrt(away):
        return APART
    if -stiffness[0] * residual[0] >= math.sqrt(inside):
        for j in range(dim):
            force[j] = -stiffness[j] * residual[j]
            bend[j, j] = stiffness[j]
        return STICKING
    soft = 1.0 / stiffness[0]
    kappa, normal = _multiplier(residual[1:], stiffness[1:], friction, residual[0], soft)
    force[0] = normal
    # A = (R + κ ∇²|f/e| f_n)⁻¹ by Sherman and Morrison; the derivative leaves out the direction off the cone's surface.
    outward, pressed = np.zeros(6), 0.0
    for j in range(1, dim):
        e = friction[j - 1]
        width = e * e / stiffness[j] + kappa
        force[j] = -residual[j] * e * e / width
        w = force[j] / (e * e * normal)
        outward[j] = w * e * e / width  # P w
        pressed += w * outward[j]
    left = max(1.0 - kappa * pressed, 1e-12)
    total = stiffness[0] + pressed / left
    for i in range(1, dim):
        bend[i, i] = friction[i - 1] ** 2 / (friction[i - 1] ** 2 / stiffness[i] + kappa)
    for i in range(1, dim):
        for j in range(1, dim):
            bend[i, j] += outward[i] * outward[j] * (kappa / left - 1.0 / (left * left * total))
        bend[0, i] = bend[i, 0] = stiffness[0] * outward[i] / (left * total)
    bend[0, 0] = stiffness[0] - stiffness[0] ** 2 / total
    return SLIDING
