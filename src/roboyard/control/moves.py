"""Moves by joint: each to a position of its own or at a velocity, within its limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.control.limits import JointBounds
from roboyard.control.reaching import Reach, ReachLimits
from roboyard.errors import ConfigError


class JointMoves:
    """Joints that move one by one.

    A position is reached with limited speed and acceleration, however far it is.  A velocity moves the position that
    the joint's servo holds, ends when it is over, and slows down before the limits.

    Args:
        bounds: Of the joints.
        joints: Their names.
        position: (n,) where they are.

    Raises:
        ConfigError: a joint has no limit of speed.
    """

    def __init__(self, bounds: JointBounds, joints: Sequence[str], position: NDArray[np.float64]) -> None:
        for joint, speed in zip(joints, bounds.speed, strict=True):
            if not np.isfinite(speed):
                raise ConfigError(f"{joint} has no limit of speed", valid="<limit velocity>")
        rows = (bounds.lower, bounds.upper, bounds.speed, bounds.acceleration)
        self._limits = [ReachLimits(*row) for row in zip(*(row.tolist() for row in rows), strict=True)]
        self.be_at(position)

    @property
    def targets(self) -> NDArray[np.float64]:
        """(n,) where they go to."""
        return np.array(self._targets)

    @property
    def position(self) -> NDArray[np.float64]:
        """(n,) where they shall be now."""
        return np.array([one.position for one in self._reach])

    @property
    def arrived(self) -> bool:
        """Whether all stand where they go to."""
        there = (one == Reach(target) for one, target in zip(self._reach, self._targets, strict=True))
        return all(speed is None for speed in self._speeds) and all(there)

    def be_at(self, position: NDArray[np.float64]) -> None:
        """Go on from (n,) at rest, wherever they went: something else moved them."""
        self._reach = [Reach(float(one)) for one in position]
        self._targets: list[float] = [one.position for one in self._reach]
        self._speeds: list[tuple[float, int] | None] = [None] * len(self._reach)

    def is_at_rest(self, index: int) -> bool:
        """Whether a joint's set-point rests at its target."""
        return self._speeds[index] is None and self._reach[index] == Reach(self._targets[index])

    def start_at(self, index: int, position: float) -> None:
        """Go on with one joint from ``position`` at rest: something else moved it."""
        self._reach[index], self._targets[index], self._speeds[index] = Reach(position), position, None

    def go(self, index: int, position: float) -> float:
        """Move a joint to ``position``, or as near as its range allows: what is returned."""
        limits = self._limits[index]
        self._targets[index], self._speeds[index] = min(max(position, limits.lower), limits.upper), None
        return self._targets[index]

    def run(self, index: int, speed: float, until_ns: int) -> None:
        """Move a joint at ``speed`` until a moment, unless something newer comes."""
        self._speeds[index] = speed, until_ns

    def stop(self) -> None:
        """Slow down all joints at once; they go nowhere any more."""
        self._speeds = [(0.0, -1)] * len(self._reach)

    def step(self, now_ns: int, dt: float, paused: bool) -> bool:
        """Advance the set-points by ``dt`` seconds, or brake them while ``paused``; return whether a velocity ended."""
        ended = False
        for index, limits in enumerate(self._limits):
            now, speed = self._reach[index], self._speeds[index]
            if speed is None and not paused:
                self._reach[index] = limits.toward(now, self._targets[index], dt)
            elif speed is None:
                self._reach[index] = limits.at(now, 0.0, dt)
            else:
                over = now_ns > speed[1]
                then = self._reach[index] = limits.at(now, 0.0 if over or paused else speed[0], dt)
                if over and then.velocity == 0.0:
                    self._speeds[index], self._targets[index], ended = None, then.position, True
        return ended

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return {
            "reach": [tuple(one) for one in self._reach],
            "targets": list(self._targets),
            "speeds": list(self._speeds),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._reach = [Reach(*one) for one in state["reach"]]
        self._targets = list(state["targets"])
        self._speeds = [None if one is None else (one[0], one[1]) for one in state["speeds"]]
