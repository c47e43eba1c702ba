"""Following of joint trajectories: what to command now, and whether the joints keep up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from roboyard.control.trajectories import JointSample, Trajectory, WayPoint
from roboyard.errors import InputError

Array = NDArray[np.float64]
Verdict = Literal["moving", "done", "path violated", "goal violated"]
_LOOKS = 32
"""Places between two way points at which limits are looked after."""
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Tolerances:
    """How far joints may be off, (n,) each [rad or m]; infinite: as far as they like.

    Attributes:
        path: On the way.
        goal: At the end.
        goal_time: How long after the end they may still be on their way there [s].
    """

    path: Array
    goal: Array
    goal_time: float = 0.0


@dataclass(frozen=True, slots=True)
class JointBounds:
    """What joints can do, (n,) each [rad, rad/s or m, m/s]; infinite where nobody knows."""

    lower: Array
    upper: Array
    speed: Array

    def check(self, trajectory: Trajectory, joints: Sequence[str], points: Sequence[WayPoint]) -> None:
        """Whether a trajectory stays within them, also between its points.

        Raises:
            InputError: it does not; says where.
        """
        for a, b in pairwise(points):
            for share in range(_LOOKS + 1):
                time = a.time + (b.time - a.time) * share / _LOOKS
                sample = trajectory.sample(min(time, b.time - 1e-9 * (b.time - a.time)))
                self._check_sample(sample, time, joints)
        self._check_sample(trajectory.sample(trajectory.end), trajectory.end, joints)

    def _check_sample(self, sample: JointSample, time: float, joints: Sequence[str]) -> None:
        low, high = self.lower - _ROUNDING, self.upper + _ROUNDING
        outside = (sample.position < low) | (sample.position > high)
        if outside.any():
            k = int(np.argmax(outside))
            raise InputError(
                f"joint {joints[k]} would be at {sample.position[k]:.4g} after {time:.3g} s",
                valid=f"from {self.lower[k]:.4g} to {self.upper[k]:.4g}",
            )
        fast = np.abs(sample.velocity) > self.speed * (1.0 + _ROUNDING)
        if fast.any():
            k = int(np.argmax(fast))
            raise InputError(
                f"joint {joints[k]} would move at {sample.velocity[k]:.4g} a second after {time:.3g} s",
                valid=f"at most {self.speed[k]:.4g}; give it more time",
            )

    def check_start(self, first: Array, present: Array, dt: float, joints: Sequence[str]) -> None:
        """Whether the joints can come from where they are to a trajectory's first set-point within ``dt`` [s].

        Raises:
            InputError: they would have to jump.
        """
        far = np.abs(first - present) > self.speed * dt + _ROUNDING
        if far.any():
            k = int(np.argmax(far))
            raise InputError(
                f"joint {joints[k]} would jump from {present[k]:.4g} to {first[k]:.4g}",
                valid="a first point later than now",
            )

    def hold(self, position: Array) -> Array:
        """The nearest positions within them."""
        held: Array = np.clip(position, self.lower, self.upper)
        return held


@dataclass(slots=True)
class Tracking:
    """One trajectory being followed.

    Attributes:
        trajectory: The spline.
        start: When its time zero is [s].
        tolerances: See there.
        error: (n,) wanted less actual positions at the last look.
        wanted: Of the last look.
    """

    trajectory: Trajectory
    start: float
    tolerances: Tolerances
    error: Array = field(init=False)
    wanted: JointSample = field(init=False)

    def __post_init__(self) -> None:
        self.wanted = self.trajectory.sample(0.0)
        self.error = np.zeros_like(self.wanted.position)

    def look(self, time: float, actual: Array) -> Verdict:
        """Take the joints' actual positions (n,) at ``time`` [s]; updates ``wanted`` and ``error``."""
        since = time - self.start
        self.wanted = self.trajectory.sample(since)
        self.error = self.wanted.position - actual
        off = np.abs(self.error)
        if since < self.trajectory.end:
            return "path violated" if (off > self.tolerances.path).any() else "moving"
        if not (off > self.tolerances.goal).any():
            return "done"
        late = since - self.trajectory.end > self.tolerances.goal_time
        return "goal violated" if late else "moving"

    def worst(self, tolerance: Array) -> int:
        """The joint that is farthest beyond ``tolerance`` (n,)."""
        excess = np.abs(self.error) - np.where(np.isfinite(tolerance), tolerance, math.inf)
        return int(np.argmax(excess))


def from_present(present: JointSample, points: Sequence[WayPoint]) -> list[WayPoint]:
    """``points`` led up to from where the joints are now, so that nothing jumps.

    A first point at time zero is where they shall be at once; it is left as it is.
    """
    first = points[0]
    if first.time <= 0.0:
        return list(points)
    lead = WayPoint(
        0.0,
        present.position,
        None if first.velocity is None else present.velocity,
        None if first.velocity is None or first.acceleration is None else present.acceleration,
    )
    return [lead, *points]
