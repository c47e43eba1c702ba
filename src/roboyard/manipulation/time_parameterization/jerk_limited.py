"""Jerk-limited point-to-point trajectories, by ruckig."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from roboyard.control.trajectory import JointSample, SampledMotion, check_times
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.manipulation.time_parameterization.time_optimal import JointLimits


@dataclass(frozen=True, eq=False)
class JerkLimitedTrajectory(SampledMotion):
    """A straight motion of all joints from rest to rest in the shortest time within velocity, acceleration and jerk
    limits.

    Attributes:
        joints: Names.
        start: (n,) [rad or m].
        goal: (n,) [rad or m].
        limits: Joint limits.
    """

    joints: tuple[str, ...]
    start: Array
    goal: Array
    limits: JointLimits
    _ruckig: Any = field(repr=False)

    @property
    def duration(self) -> float:
        """[s]."""
        return float(self._ruckig.duration)

    def sample_at(self, times: ArrayLike) -> JointSample:
        """Return the joint states at times (m,); before the start and after the end the joints are at rest. Raises
        InputError.
        """
        t = check_times(times)
        found = np.zeros((3, len(t), len(self.joints)))
        for k, time in enumerate(t.tolist()):
            if time >= self.duration or time <= 0.0:
                found[0, k] = self.goal if time > 0.0 else self.start
            else:
                fraction, speed, acceleration = (value[0] for value in self._ruckig.at_time(time)[:3])
                displacement = self.goal - self.start
                found[:, k] = self.start + fraction * displacement, speed * displacement, acceleration * displacement
        return JointSample(found[0], found[1], found[2])


def make_jerk_limited(
    joints: tuple[str, ...], start: ArrayLike, goal: ArrayLike, limits: JointLimits
) -> JerkLimitedTrajectory:
    """Compute the straight motion between two positions (n,), from rest to rest; all joints arrive together.

    Raises:
        InputError: positions of another size or not finite, or a joint without a limit of jerk.
    """
    import ruckig

    a, b = np.asarray(start, dtype=np.float64), np.asarray(goal, dtype=np.float64)
    n = len(joints)
    if a.shape != (n,) or b.shape != (n,) or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise InputError(f"positions of shapes {a.shape} and {b.shape}", valid=f"({n},), finite: {', '.join(joints)}")
    for name, value in zip(joints, limits.jerk.tolist(), strict=True):
        if not math.isfinite(value):
            raise InputError(f"joint {name} has no limit of jerk", valid="one, in its robot's groups")
    distances = np.abs(b - a)
    if distances.max() < 1e-12:
        raise InputError("a motion that goes nowhere", valid="positions that differ")
    # One axis, the fraction of the motion: several axes of ruckig leave the straight line if their limits differ.
    ruckig_input = ruckig.InputParameter(1)
    ruckig_input.current_position, ruckig_input.target_position = [0.0], [1.0]
    moving = distances > 0.0
    ruckig_input.max_velocity = [float((limits.velocity[moving] / distances[moving]).min())]
    ruckig_input.max_acceleration = [float((limits.acceleration[moving] / distances[moving]).min())]
    ruckig_input.max_jerk = [float((limits.jerk[moving] / distances[moving]).min())]
    ruckig_trajectory = ruckig.Trajectory(1)
    result = ruckig.Ruckig(1).calculate(ruckig_input, ruckig_trajectory)
    if result not in (ruckig.Result.Working, ruckig.Result.Finished):
        raise InputError(f"no motion within these limits: {result}", valid="positive limits")
    return JerkLimitedTrajectory(joints, a, b, limits, ruckig_trajectory)
