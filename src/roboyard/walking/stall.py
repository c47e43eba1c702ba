"""Joints that do not go where they are told: a leg that is caught, a servo that gives up."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array

_SLOW = 0.02
"""A joint slower than this stands [rad/s]."""


class StallWatch:
    """Notices joints that stand although they are told to be elsewhere; pure, with explicit state.

    A servo that gives way under its load is at most as far from its set-point as takes all its torque; farther away
    and standing it can do no more, or nothing lets it.

    Args:
        legs: How many, of three joints each.
        far: How far from where they are told to be is too far [rad].
        time: For how long joints may stand there [s].
    """

    def __init__(self, legs: int, far: float = 0.15, time: float = 0.5) -> None:
        self.far, self.time = far, time
        self._before, self._since = np.zeros((legs, 3)), np.zeros((legs, 3))

    def look(self, told: Array, actual: Array, dt: float) -> tuple[int, int] | None:
        """The leg and joint that has stalled longest; None: none has.

        Args:
            told: (l, 3) where joints shall be [rad].
            actual: (l, 3) where they are [rad].
            dt: Since the last look [s].
        """
        k = longest_stalled(told, actual, self._before, self._since, self.far, dt)
        return None if self._since.flat[k] < self.time else (k // 3, k % 3)

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return {"before": self._before.copy(), "since": self._since.copy()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._before, self._since = np.array(saved["before"]), np.array(saved["since"])


@kernel(examples=lambda: [(*[np.zeros((6, 3)) for _ in range(4)], 0.1, 0.02)])
def longest_stalled(told: Array, actual: Array, before: Array, since: Array, far: float, dt: float) -> int:
    """Number of the joint that has stalled longest; ``before`` (l, 3) and ``since`` (l, 3) [s] go on."""
    most = 0
    for i in range(len(told)):
        for j in range(3):
            stands = abs(actual[i, j] - before[i, j]) < _SLOW * dt and abs(told[i, j] - actual[i, j]) > far
            since[i, j] = since[i, j] + dt if stands else 0.0
            before[i, j] = actual[i, j]
            if since[i, j] > since[most // 3, most % 3]:
                most = 3 * i + j
    return most
