"""Joints whose times are given: where they must be at moments that somebody else sets."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from roboyard.control.trajectory import JointSample, TrajectoryPoint
from roboyard.control.trajectory import Trajectory as Spline
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.manipulation.timing.efforts import EffortError, EffortLimits
from roboyard.manipulation.timing.limits import JointLimits
from roboyard.manipulation.timing.trajectory import Path


class TooFastError(EffortError):
    """A joint would have to move faster than it can, or change its speed faster."""

    cause = "too_fast"


@dataclass(frozen=True, eq=False)
class GivenTimes:
    """Joints at moments, joined by cubics.

    Attributes:
        joints: (n) names.
        times: (k,) from 0 on [s].
        positions: (k, n) [rad or m].
        velocities: (k, n) [rad/s or m/s].
    """

    joints: tuple[str, ...]
    times: Array = field(repr=False)
    positions: Array = field(repr=False)
    velocities: Array = field(repr=False)

    def __post_init__(self) -> None:
        shape = (len(self.times), len(self.joints))
        if self.positions.shape != shape or self.velocities.shape != shape or len(self.times) < 2:
            raise InputError(
                f"positions of shape {self.positions.shape}, velocities of {self.velocities.shape}",
                valid=f"(2 or more, {len(self.joints)}), one for each of the {len(self.times)} times",
            )

    @property
    def duration(self) -> float:
        """[s]."""
        return float(self.times[-1])

    @property
    def start(self) -> Array:
        """(n,) where the joints are at first."""
        return np.array(self.positions[0])

    @cached_property
    def path(self) -> Path:
        """Where it goes, without time: straight lines."""
        return Path.straight(self.joints, self.positions)

    @cached_property
    def _spline(self) -> Spline:
        return Spline(self.knots())

    def knots(self) -> list[TrajectoryPoint]:
        """Points with positions and velocities for a controller that joins them by cubics."""
        return [
            TrajectoryPoint(float(t), p.copy(), v.copy())
            for t, p, v in zip(self.times, self.positions, self.velocities, strict=True)
        ]

    def at(self, times: ArrayLike) -> JointSample:
        """Joints (k, n) at moments (k,) [s]."""
        rows = [self._spline.sample(float(time)) for time in np.atleast_1d(np.asarray(times, dtype=np.float64))]
        return JointSample(*(np.array(column) for column in zip(*rows, strict=True)))

    def check(self, limits: JointLimits, efforts: EffortLimits | None = None) -> None:
        """Raises TooFastError, EffortError: a joint cannot follow; says which, and when."""
        acceleration = np.diff(self.velocities, axis=0) / np.diff(self.times)[:, None]
        for what, unit, values, bound in (
            ("speed", "/s", self.velocities, limits.velocity),
            ("acceleration", "/s²", acceleration, limits.acceleration),
        ):
            share = np.abs(values) / bound
            i, j = (int(k) for k in np.unravel_index(np.argmax(share), share.shape))
            if share[i, j] > 1.0:
                needed = f"{abs(values[i, j]):.3g}{unit}"
                raise TooFastError(
                    f"{self.joints[j]} would need a {what} of {needed} after {self.times[i]:.2f} s",
                    valid=f"at most {bound[j]:.3g}{unit}: a slower target, or more time",
                )
        if efforts is None or not efforts.bind:
            return
        middle = 0.5 * (self.positions[1:] + self.positions[:-1]), 0.5 * (self.velocities[1:] + self.velocities[:-1])
        dynamics = efforts.dynamics
        most = np.abs(dynamics.inverse_dynamics(*middle, acceleration) + dynamics.friction * np.sign(middle[1]))
        share = most / efforts.greatest
        i, j = (int(k) for k in np.unravel_index(np.argmax(share), share.shape))
        if share[i, j] > 1.0:
            raise EffortError(
                f"{self.joints[j]} needs an effort of {most[i, j]:.3g} after {self.times[i]:.2f} s",
                valid=f"at most {efforts.greatest[j]:.3g}",
            )
