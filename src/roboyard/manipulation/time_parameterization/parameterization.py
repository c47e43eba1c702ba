"""Time parameterizations by name: `time_parameterize` gives a joint path its times.

`TIME_PARAMETERIZATIONS` holds functions that fulfill the contract `TimeParameterization`.  A package adds its own as
entry points of the group ``roboyard.time_parameterizations``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from roboyard.config.registry import Registry
from roboyard.control.trajectory import JointSample, SampledMotion, check_times
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.manipulation.errors import EffortLimitError
from roboyard.manipulation.time_parameterization.jerk_limited import JerkLimitedTrajectory, make_jerk_limited
from roboyard.manipulation.time_parameterization.time_optimal import (
    EffortLimits,
    JointLimits,
    JointPath,
    TimeOptimalTrajectory,
    check_joint_names,
)

_EFFORT_CHECK_STEP = 0.002
"""Time between two states whose efforts are checked [s]."""


class TimeParameterization(Protocol):
    """Contract of a function that gives a joint path its times, as MoveIt's time parameterization adapters.

    The motion follows the path from its start to its end, never backwards, from rest to rest, within all limits at
    every moment.  It stops at each corner of the path.  The same arguments give the same motion to the last bit; the
    function changes none of them.  A function with an attribute ``limits_jerk`` that is true also keeps the jerk
    limits.  `roboyard.manipulation.check_time_parameterization` tests a function against this contract.
    """

    def __call__(self, path: JointPath, limits: JointLimits, efforts: EffortLimits | None = None) -> SampledMotion:
        """Return the motion along a path.

        Args:
            path: The path; every function accepts paths of straight lines.
            limits: Limits of the joints of the path.
            efforts: Effort limits; None: efforts are not limited.

        Raises:
            InputError: The limits are those of other joints, or the path has a shape that the function does not accept.
            EffortLimitError: A joint cannot be moved on the path with the efforts that it has.
        """
        ...


TIME_PARAMETERIZATIONS: Registry[TimeParameterization] = Registry(
    "time parameterization", group="roboyard.time_parameterizations"
)


def time_parameterize(
    path: JointPath, limits: JointLimits, efforts: EffortLimits | None = None, *, method: str = "time_optimal"
) -> SampledMotion:
    """Return the motion from rest to rest along a path.

    Args:
        path: The path.
        limits: Joint limits.
        efforts: Effort limits; None: efforts are not limited.
        method: Name in `TIME_PARAMETERIZATIONS`.

    Raises:
        UnknownNameError: There is no time parameterization of that name.
        InputError: The limits are those of other joints, or the path has a shape that the method does not accept.
        EffortLimitError: A joint cannot be moved on the path with the efforts that it has.
    """
    return TIME_PARAMETERIZATIONS[method](path, limits, efforts)


def parameterize_time_optimal(
    path: JointPath, limits: JointLimits, efforts: EffortLimits | None = None
) -> TimeOptimalTrajectory:
    """The shortest time within velocity, acceleration and effort limits (TOPP-RA); the acceleration may jump.

    Take it for planned motions; it is the default, follows blended corners without a stop, and can stop on the path
    from any moment.

    MoveIt: AddTimeOptimalParameterization (TOTG)
    """
    return path.parameterize(limits, efforts)


@dataclass(frozen=True, eq=False)
class JerkLimitedPathTrajectory(SampledMotion):
    """A motion along straight lines, one after the other, each from rest to rest within the jerk limits.

    Attributes:
        joints: Names of the joints.
        motions: Motions along the lines.
    """

    joints: tuple[str, ...]
    motions: tuple[JerkLimitedTrajectory, ...] = field(repr=False)

    @property
    def end_times(self) -> Array:
        """End time of each line (k,) [s]."""
        return np.cumsum([motion.duration for motion in self.motions])

    @property
    def duration(self) -> float:
        """Time from the start of the motion to its end [s]."""
        return float(self.end_times[-1])

    def sample_at(self, times: ArrayLike) -> JointSample:
        """Return the joint states (m, n) at times (m,), see `SampledMotion`. Raises InputError."""
        t, end_times = check_times(times), self.end_times
        index = np.minimum(np.searchsorted(end_times, t, side="right"), len(self.motions) - 1)
        found = np.zeros((3, len(t), len(self.joints)))
        for k, motion in enumerate(self.motions):
            rows = np.flatnonzero(index == k)
            found[:, rows] = motion.sample_at(t[rows] - (end_times[k] - motion.duration))
        return JointSample(found[0], found[1], found[2])


def parameterize_jerk_limited(
    path: JointPath, limits: JointLimits, efforts: EffortLimits | None = None
) -> JerkLimitedPathTrajectory:
    """The shortest time within velocity, acceleration and jerk limits on each straight line, by ruckig.

    Take it for motions that must not excite vibrations; it stops at every corner, and needs jerk limits.

    MoveIt: AddRuckigTrajectorySmoothing
    """
    check_joint_names(path.joints, limits)
    if np.abs(path.segments[:, 2]).max(initial=0.0) > 0.0:
        raise InputError("a path with blended corners", valid="straight lines: JointPath.from_points")
    ends = path.segments[:, 0] + path.lengths[:, None] * path.segments[:, 1]
    corners = [path.segments[0, 0], *ends[path.is_stop[1:]]]
    motions = tuple(make_jerk_limited(path.joints, a, b, limits) for a, b in pairwise(corners))
    trajectory = JerkLimitedPathTrajectory(path.joints, motions)
    if efforts is not None and efforts.is_limited:
        _check_efforts(trajectory, efforts)
    return trajectory


parameterize_jerk_limited.limits_jerk = True  # type: ignore[attr-defined]


def _check_efforts(motion: JerkLimitedPathTrajectory, efforts: EffortLimits) -> None:
    times = np.linspace(0.0, motion.duration, max(2, math.ceil(motion.duration / _EFFORT_CHECK_STEP) + 1))
    samples = motion.sample_at(times)
    dynamics = efforts.dynamics
    required = np.abs(dynamics.inverse_dynamics(*samples) + dynamics.friction * np.sign(samples.velocity))
    utilization = required / efforts.max_effort
    i, j = (int(k) for k in np.unravel_index(np.argmax(utilization), utilization.shape))
    if utilization[i, j] > 1.0:
        raise EffortLimitError(
            f"{motion.joints[j]} needs an effort of {required[i, j]:.3g} after {times[i]:.2f} s",
            location=dynamics.chain.robot,
            valid=f"at most {efforts.max_effort[j]:.3g}, or lower acceleration limits",
        )
