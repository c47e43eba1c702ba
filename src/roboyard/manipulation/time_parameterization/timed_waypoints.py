"""Trajectories through waypoints with given times, and the check of their limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from roboyard.control.trajectory import JointSample, SampledMotion, Trajectory, TrajectoryPoint
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.manipulation.errors import EffortLimitError, VelocityLimitError
from roboyard.manipulation.time_parameterization.time_optimal import EffortLimits, JointLimits, JointPath


@dataclass(frozen=True, eq=False)
class TimedWaypointTrajectory(SampledMotion):
    """Joint waypoints with given times, joined by cubics.

    Attributes:
        joints: (n) names.
        times: (k,) times, from 0 on [s].
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
        """(n,) start state."""
        return np.array(self.positions[0])

    @cached_property
    def path(self) -> JointPath:
        """Path of straight lines through the waypoints."""
        return JointPath.from_points(self.joints, self.positions)

    @cached_property
    def _spline(self) -> Trajectory:
        return Trajectory(self.to_cubic_points())

    def to_cubic_points(self) -> list[TrajectoryPoint]:
        """Return points with positions and velocities, for a controller that joins them by cubics."""
        return [
            TrajectoryPoint(float(t), p.copy(), v.copy())
            for t, p, v in zip(self.times, self.positions, self.velocities, strict=True)
        ]

    def sample_at(self, times: ArrayLike) -> JointSample:
        """Return the joint states (m, n) at times (m,), see `SampledMotion`. Raises InputError."""
        return self._spline.sample_at(times)

    def check(self, limits: JointLimits, efforts: EffortLimits | None = None) -> None:
        """Raise VelocityLimitError or EffortLimitError if a joint cannot follow; the error names the joint and the
        time.
        """
        acceleration = np.diff(self.velocities, axis=0) / np.diff(self.times)[:, None]
        for quantity, unit, values, bound in (
            ("speed", "/s", self.velocities, limits.velocity),
            ("acceleration", "/s²", acceleration, limits.acceleration),
        ):
            utilization = np.abs(values) / bound
            i, j = (int(k) for k in np.unravel_index(np.argmax(utilization), utilization.shape))
            if utilization[i, j] > 1.0:
                required_value = f"{abs(values[i, j]):.3g}{unit}"
                raise VelocityLimitError(
                    f"{self.joints[j]} would need a {quantity} of {required_value} after {self.times[i]:.2f} s",
                    valid=f"at most {bound[j]:.3g}{unit}: a slower target, or more time",
                )
        if efforts is None or not efforts.is_limited:
            return
        midpoints = 0.5 * (self.positions[1:] + self.positions[:-1]), 0.5 * (self.velocities[1:] + self.velocities[:-1])
        dynamics = efforts.dynamics
        max_effort = np.abs(
            dynamics.inverse_dynamics(*midpoints, acceleration) + dynamics.friction * np.sign(midpoints[1])
        )
        utilization = max_effort / efforts.max_effort
        i, j = (int(k) for k in np.unravel_index(np.argmax(utilization), utilization.shape))
        if utilization[i, j] > 1.0:
            raise EffortLimitError(
                f"{self.joints[j]} needs an effort of {max_effort[i, j]:.3g} after {self.times[i]:.2f} s",
                valid=f"at most {efforts.max_effort[j]:.3g}",
            )
