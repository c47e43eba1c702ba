"""The ways of particles: a tree, of which only what some particle still goes back to is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_TIDY = 64


class Paths:
    """Poses of all particles over time, and who descends from whom.

    Args:
        particles: How many.
    """

    def __init__(self, particles: int) -> None:
        self._particles = particles
        self._trunk: list[NDArray[np.float64]] = []  # poses (3,) that all particles have in common
        self._steps: list[NDArray[np.float64]] = []  # (particles, 3) of each later step
        self._parents: list[NDArray[np.int64]] = []  # (particles,) whose pose of the step before each came from
        self._next = np.arange(particles)

    def __len__(self) -> int:
        return len(self._trunk) + len(self._steps)

    @property
    def branched(self) -> int:
        """Number of steps in which particles differ."""
        return len(self._steps)

    def add(self, poses: NDArray[np.float64]) -> None:
        """Append a step: poses (particles, 3)."""
        self._steps.append(poses.copy())
        self._parents.append(self._next)
        self._next = np.arange(self._particles)
        if len(self._steps) % _TIDY == 0:
            self._tidy()

    def choose(self, chosen: NDArray[np.int64]) -> None:
        """Particle k goes on from where particle ``chosen[k]`` is (particles,)."""
        self._next = self._next[chosen]

    def of(self, particle: int) -> NDArray[np.float64]:
        """The whole way of one particle (n, 3)."""
        poses, place = [], int(self._next[particle])
        for step, parents in zip(reversed(self._steps), reversed(self._parents), strict=True):
            poses.append(step[place])
            place = int(parents[place])
        rows = self._trunk + poses[::-1]
        return np.array(rows, dtype=np.float64).reshape(-1, 3)

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        shape = (-1, self._particles)
        return {
            "trunk": np.array(self._trunk).reshape(-1, 3),
            "steps": np.array(self._steps).reshape(*shape, 3),
            "parents": np.array(self._parents, dtype=np.int64).reshape(shape),
            "next": self._next.copy(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._trunk, self._steps, self._parents = ([*saved[name].copy()] for name in ("trunk", "steps", "parents"))
        self._next = saved["next"].copy()

    def _tidy(self) -> None:
        """Move steps on which all particles agree to the trunk."""
        alive = np.unique(self._next)
        for index in range(len(self._steps) - 1, -1, -1):
            if len(alive) == 1:
                self._settle(index, int(alive[0]))
                return
            alive = np.unique(self._parents[index][alive])

    def _settle(self, last: int, place: int) -> None:
        """Steps up to ``last`` are those of the particle at ``place`` there."""
        poses = []
        for index in range(last, -1, -1):
            poses.append(self._steps[index][place])
            place = int(self._parents[index][place])
        self._trunk += poses[::-1]
        del self._steps[: last + 1], self._parents[: last + 1]
        if self._parents:
            self._parents[0] = np.zeros(self._particles, dtype=np.int64)
        else:
            self._next = np.zeros(self._particles, dtype=np.int64)
