"""From point to point within limits of jerk, by the library ruckig."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from roboyard.control.trajectory import JointSample, TrajectoryPoint
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.manipulation.timing.limits import JointLimits


@dataclass(frozen=True, eq=False)
class JerkLimited:
    """All joints from rest to rest along a straight line, in the shortest time within limits of jerk too.

    Attributes:
        joints: Names.
        start: (n,) [rad or m].
        goal: (n,).
        limits: That are kept.
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

    def at(self, times: ArrayLike) -> JointSample:
        """Joints at moments (m,); before the start and after the end they rest there. Raises InputError."""
        t = np.asarray(times, dtype=np.float64)
        if t.ndim != 1 or not np.isfinite(t).all():
            raise InputError(f"times of shape {t.shape}", valid="(m,), finite [s]")
        found = np.zeros((3, len(t), len(self.joints)))
        for k, moment in enumerate(t.tolist()):
            if moment >= self.duration or moment <= 0.0:
                found[0, k] = self.goal if moment > 0.0 else self.start
            else:
                share, speed, acceleration = (value[0] for value in self._ruckig.at_time(moment)[:3])
                way = self.goal - self.start
                found[:, k] = self.start + share * way, speed * way, acceleration * way
        return JointSample(found[0], found[1], found[2])

    def sample(self, time: float) -> JointSample:
        """Joints at a moment [s]. Raises InputError."""
        found = self.at([time])
        return JointSample(found.position[0], found.velocity[0], found.acceleration[0])

    def way_points(self, step: float = 0.02) -> list[TrajectoryPoint]:
        """Points in time for a controller that joins them by splines, at most ``step`` apart [s]. Raises InputError."""
        if not step > 0.0:
            raise InputError(f"points {step} s apart", valid="more than 0 s")
        times = np.linspace(0.0, self.duration, max(1, math.ceil(self.duration / step)) + 1)
        found = self.at(times)
        return [TrajectoryPoint(float(t), p, v, a) for t, p, v, a in zip(times, *found, strict=True)]


def jerk_limited(joints: tuple[str, ...], start: ArrayLike, goal: ArrayLike, limits: JointLimits) -> JerkLimited:
    """Straight from a position (n,) to another one, from rest to rest; all joints arrive together.

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
    way = np.abs(b - a)
    if way.max() < 1e-12:
        raise InputError("a motion that goes nowhere", valid="positions that differ")
    # One axis, the share of the way: several of ruckig's axes leave the straight line where their limits differ.
    asked = ruckig.InputParameter(1)
    asked.current_position, asked.target_position = [0.0], [1.0]
    moving = way > 0.0
    asked.max_velocity = [float((limits.velocity[moving] / way[moving]).min())]
    asked.max_acceleration = [float((limits.acceleration[moving] / way[moving]).min())]
    asked.max_jerk = [float((limits.jerk[moving] / way[moving]).min())]
    found = ruckig.Trajectory(1)
    result = ruckig.Ruckig(1).calculate(asked, found)
    if result not in (ruckig.Result.Working, ruckig.Result.Finished):
        raise InputError(f"no motion within these limits: {result}", valid="positive limits")
    return JerkLimited(joints, a, b, limits, found)
