"""Repair of start states in collision or outside the joint limits.

MoveIt does the same in its planning request adapters CheckStartStateBounds and CheckStartStateCollision.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.errors import StartInCollisionError, StartOutsideLimitsError

_N_SHELLS = 10
"""Number of shells around the start that are searched, from near to far."""
_SAMPLES_PER_SHELL = 200
"""Number of states that are sampled in each shell."""
_MEASUREMENT_NOISE = 1e-3
"""Measured positions may exceed a joint's limit by this much [rad or m]."""


def find_free_start(
    scene: PlanningScene, start: ArrayLike, max_repair: float, rng: np.random.Generator
) -> tuple[Array, float]:
    """Return a collision-free state within the limits, and the maximum change of a joint from the start.

    Args:
        scene: The scene.
        start: (n,) start state.
        max_repair: Maximum change of a joint [rad or m].
        rng: Generator of the sampled states.

    Raises:
        StartOutsideLimitsError: a joint is farther outside its limits.
        StartInCollisionError: no collision-free state was found so near.
        InputError: the start is not a state of the chain.
    """
    chain = scene.chain
    q = chain.as_positions(start)
    if q.ndim != 1:
        raise InputError(f"a start of shape {q.shape}", valid=f"({chain.dof},)")
    clipped = np.clip(q, chain.lower, chain.upper)
    excess = np.abs(q - clipped)
    if excess.max() > max(max_repair, _MEASUREMENT_NOISE):
        k = int(np.argmax(excess))
        raise StartOutsideLimitsError(
            f"the start has {chain.joints[k]} at {q[k]:g}", valid=f"{chain.lower[k]:g} to {chain.upper[k]:g}"
        )
    pair = scene.find_contact(clipped)
    if pair is None:
        return clipped, float(excess.max())
    for shell in range(1, _N_SHELLS + 1) if max_repair > 0.0 else ():
        samples = clipped + max_repair * shell / _N_SHELLS * rng.uniform(-1.0, 1.0, (_SAMPLES_PER_SHELL, chain.dof))
        samples = np.clip(samples, chain.lower, chain.upper)
        changes = np.abs(samples - q).max(axis=1)
        free = [k for k, found in enumerate(scene.find_contacts(samples)) if found is None and changes[k] <= max_repair]
        if free:
            best = min(free, key=lambda k: float(changes[k]))
            return samples[best], float(changes[best])
    raise StartInCollisionError(
        f"at the start {pair[0]} touches {pair[1]}",
        valid=f"a collision-free start, or a start repair of more than {max_repair:g}",
        pair=pair,
    )
