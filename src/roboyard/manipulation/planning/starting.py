"""A start from which one can plan: where the arm stands, or the free state nearest to that."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.manipulation.planning.errors import StartInCollision, StartOutsideLimits
from roboyard.manipulation.scene import PlanningScene

_SHELLS = 10
"""The surroundings are looked at in so many steps, from near to far."""
_DRAWN = 200
"""States that are drawn in each."""
_NOISE = 1e-3
"""A joint at its limit may be measured so far beyond it [rad or m]."""


def free_start(scene: PlanningScene, start: ArrayLike, repair: float, rng: np.random.Generator) -> tuple[Array, float]:
    """A free state within the limits, and by how much it differs from the start, the greatest change of a joint.

    Args:
        scene: The arm and what must not be touched.
        start: (n,) where it stands.
        repair: It may differ by so much [rad or m].
        rng: Draws states to try.

    Raises:
        StartOutsideLimits: a joint is farther beyond its limits.
        StartInCollision: nothing free was found so near.
        InputError: the start is no state.
    """
    chain = scene.chain
    q = chain.as_positions(start)
    if q.ndim != 1:
        raise InputError(f"a start of shape {q.shape}", valid=f"({chain.dof},)")
    inside = np.clip(q, chain.lower, chain.upper)
    beyond = np.abs(q - inside)
    if beyond.max() > max(repair, _NOISE):
        k = int(np.argmax(beyond))
        raise StartOutsideLimits(
            f"the start has {chain.joints[k]} at {q[k]:g}", valid=f"{chain.lower[k]:g} to {chain.upper[k]:g}"
        )
    pair = scene.contact(inside)
    if pair is None:
        return inside, float(beyond.max())
    for shell in range(1, _SHELLS + 1) if repair > 0.0 else ():
        drawn = inside + repair * shell / _SHELLS * rng.uniform(-1.0, 1.0, (_DRAWN, chain.dof))
        drawn = np.clip(drawn, chain.lower, chain.upper)
        changes = np.abs(drawn - q).max(axis=1)
        free = [k for k, found in enumerate(scene.contacts(drawn)) if found is None and changes[k] <= repair]
        if free:
            best = min(free, key=lambda k: float(changes[k]))
            return drawn[best], float(changes[best])
    raise StartInCollision(
        f"at the start {pair[0]} touches {pair[1]}",
        valid=f"a start that is free, or a repair of more than {repair:g}",
        pair=pair,
    )
