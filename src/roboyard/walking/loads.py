"""What feet carry, and how far servos without an integral have to be told beyond it."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.walking.walker import Walker

Array = NDArray[np.float64]

GRAVITY: Final = 9.81
_STEP: Final = 1e-5


def foot_loads(feet: ArrayLike, weight: float, shares: ArrayLike) -> Array:
    """Forces (l) on feet [N] that hold a weight above the body's middle: the least, weighted squares.

    Args:
        feet: (l, 3) in the body [m].
        weight: Of the robot [N].
        shares: (l) 0 for feet in the air, 1 for those that stand; in between they count less.

    Returns:
        All zero where no feet stand; forces that would pull are left out.
    """
    places, w = np.asarray(feet, dtype=np.float64), np.asarray(shares, dtype=np.float64)
    wanted = np.array([weight, 0.0, 0.0])
    rows = np.stack([np.ones(len(places)), places[:, 0], places[:, 1]])
    held = (rows * w) @ rows.T
    if np.linalg.det(held) < 1e-12:
        return np.zeros(len(places))
    loads: Array = w * (rows.T @ np.linalg.inv(held) @ wanted)
    return np.maximum(loads, 0.0)


def load_torques(walker: Walker, q: ArrayLike, loads: ArrayLike) -> Array:
    """Torques (l, 3) [N m] with which joints hold upright forces (l) [N] on their feet, at rest: -Jᵀ f."""
    joints = np.asarray(q, dtype=np.float64)
    heights = walker.feet(joints + _STEP * np.eye(3)[:, None, :])[:, :, 2]
    lever = (heights - walker.feet(joints)[:, 2]) / _STEP
    out: Array = -lever.T * np.asarray(loads, dtype=np.float64)[:, None]
    return out
