"""Regulated pure pursuit (Macenski, Singh, Martin, Ginés 2023): the robot drives along a circle through a look-ahead
point.

Curvature, costs near the robot, the distance to the goal and the limits of the base bound the speed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.config import Config, parameter
from roboyard.control import PlanarTwist
from roboyard.errors import ConfigError
from roboyard.geometry import wrap_angle
from roboyard.navigation.controllers.controller import DEFAULT_CONTROL_PERIOD, GoalTolerance, MotionLimits
from roboyard.navigation.controllers.costmap_window import (
    CostmapWindow,
    CostmapWindowArrays,
    example_window_arrays,
    is_in_collision,
)
from roboyard.navigation.controllers.path_follower import PathFollower, PathSegment
from roboyard.navigation.costmap import INSCRIBED
from roboyard.navigation.errors import NoSafeCommandError
from roboyard.navigation.footprint import Footprint


class RegulatedPurePursuitConfig(Config):
    """Lookahead distance and regulation of the speed; the names follow nav2_regulated_pure_pursuit_controller."""

    lookahead_time: float = parameter(
        0.8,
        unit="s",
        low=0.0,
        high=60.0,
        aliases=("lookahead_time",),
        doc="Time in which the robot would drive to the lookahead point, which gives its distance.",
    )
    min_lookahead_distance: float = parameter(
        0.25,
        unit="m",
        low=1e-3,
        high=1e3,
        aliases=("min_lookahead_dist",),
        doc="Smallest distance of the lookahead point.",
    )
    max_lookahead_distance: float = parameter(
        1.2,
        unit="m",
        low=1e-3,
        high=1e3,
        aliases=("max_lookahead_dist",),
        doc="Largest distance of the lookahead point.",
    )
    rotate_to_heading_min_angle: float = parameter(
        0.785,
        unit="rad",
        low=1e-3,
        high=1e3,
        aliases=("rotate_to_heading_min_angle",),
        doc="Bearing of the lookahead point from which the robot rotates in place towards it first.",
    )
    max_lateral_acceleration: float = parameter(
        1.0, unit="m/s²", low=1e-3, high=1e3, doc="Largest centripetal acceleration."
    )
    min_cost_speed_ratio: float = parameter(
        0.4, low=0.0, high=1.0, doc="Ratio of the speed that remains on the most costly free cells."
    )
    min_speed: float = parameter(
        0.1,
        unit="m/s",
        low=1e-3,
        high=1e3,
        aliases=("regulated_linear_scaling_min_speed",),
        doc="Speed to which curves and costs reduce the speed at most.",
    )
    deceleration_ratio: float = parameter(
        0.5,
        low=1e-3,
        high=1e3,
        doc="Ratio of the base's acceleration with which the robot brakes before the goal and before obstacles.",
    )

    def validate(self) -> None:
        """Check the order of the distances."""
        if self.min_lookahead_distance > self.max_lookahead_distance:
            raise ConfigError(
                f"min_lookahead_distance = {self.min_lookahead_distance}",
                location="RegulatedPurePursuitConfig",
                valid=f"at most {self.max_lookahead_distance}",
            )


class RegulatedPurePursuitController(PathFollower):
    """Regulated pure pursuit.  The robot keeps to the path, and stops before an obstacle that stands on it.

    Args:
        footprint: Footprint of the robot.
        limits: Motion limits of its base.
        config: Lookahead distance and regulation of the speed.
        tolerance: Tolerance of the goal.
        period: Time between two commands [s].
    """

    def __init__(
        self,
        footprint: Footprint,
        limits: MotionLimits,
        config: RegulatedPurePursuitConfig | None = None,
        tolerance: GoalTolerance | None = None,
        *,
        period: float = DEFAULT_CONTROL_PERIOD,
    ) -> None:
        config, tolerance = config or RegulatedPurePursuitConfig(), tolerance or GoalTolerance()
        expect_kernels(free_arc_length)
        braking_distance = limits.max_forward_speed**2 / (2.0 * config.deceleration_ratio * limits.max_acceleration)
        window_radius = config.max_lookahead_distance + braking_distance
        super().__init__(footprint, limits, period, window_radius, tolerance)
        self._config = config
        self._is_rotating = False

    def save_state(self) -> dict[str, Any]:
        """Return the state of the path follower, and whether the robot rotates in place."""
        return super().save_state() | {"is_rotating": self._is_rotating}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        super().load_state(saved)
        self._is_rotating = saved["is_rotating"]

    def _compute_target_velocity(
        self, window: CostmapWindow, segment: PathSegment, twist: PlanarTwist, limits: MotionLimits
    ) -> PlanarTwist:
        config = self._config
        direction = -1.0 if segment.backward and limits.max_backward_speed > 0.0 else 1.0
        max_speed = limits.max_backward_speed if direction < 0.0 else limits.max_forward_speed
        pose = window.pose
        points = pose.inverse() @ segment.poses[:, :2]
        arc_lengths = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
        remaining = math.hypot(*points[0]) + arc_lengths[-1] if len(points) > 1 else math.hypot(*points[-1])
        lookahead = min(
            max(abs(twist.vx) * config.lookahead_time, config.min_lookahead_distance), config.max_lookahead_distance
        )
        while True:
            x, y = _lookahead_point(points, arc_lengths, lookahead)
            bearing = wrap_angle(math.atan2(y * direction, x * direction))
            if self._must_rotate_to_heading(bearing, twist):
                return PlanarTwist(0.0, 0.0, self._rotation_speed(bearing))
            curvature = 2.0 * y / max(x * x + y * y, 1e-9)
            free_distance = self._free_distance(window, direction, curvature, math.hypot(x, y))
            # if the circle collides at a corner, the circle through a nearer point keeps closer to the path
            if free_distance == math.inf or lookahead <= config.min_lookahead_distance:
                break
            lookahead = max(0.7 * lookahead, config.min_lookahead_distance)
        speed = min(max_speed, limits.max_angular_speed / max(abs(curvature), 1e-9))
        regulated_speed = min(
            math.sqrt(config.max_lateral_acceleration / max(abs(curvature), 1e-9)),
            max_speed * self._cost_speed_ratio(window),
        )
        speed = min(speed, max(regulated_speed, min(config.min_speed, max_speed)))
        speed = min(speed, self._stopping_speed(remaining))
        if free_distance < math.inf:
            speed = min(speed, self._stopping_speed(free_distance))
            if free_distance < 0.5 * window.arrays.resolution:
                raise NoSafeCommandError("an obstacle stands on the path", valid="another path")
        return PlanarTwist(direction * speed, 0.0, direction * speed * curvature)

    def _must_rotate_to_heading(self, bearing: float, twist: PlanarTwist) -> bool:
        """Return whether to rotate in place first; once begun, the robot does so until it nearly points to the path."""
        limit = self._config.rotate_to_heading_min_angle * (0.25 if self._is_rotating else 1.0)
        self._is_rotating = abs(bearing) > limit
        return self._is_rotating

    def _stopping_speed(self, distance: float) -> float:
        """Return the speed from which the base can stop within a distance [m]."""
        deceleration, period = self._config.deceleration_ratio * self._base_limits.max_acceleration, self._period
        return max(
            math.sqrt((0.5 * deceleration * period) ** 2 + 2.0 * deceleration * distance) - 0.5 * deceleration * period,
            0.0,
        )

    def _cost_speed_ratio(self, window: CostmapWindow) -> float:
        """Return the ratio to which the cost at the robot reduces its speed."""
        return 1.0 - (1.0 - self._config.min_cost_speed_ratio) * min(window.center_cost(), INSCRIBED) / INSCRIBED

    def _free_distance(self, window: CostmapWindow, direction: float, curvature: float, chord: float) -> float:
        """Return the free distance along a circle up to the lookahead point [m]; infinite if all of it is free."""
        half = min(abs(curvature) * chord / 2.0, 1.0)
        arc = chord if half < 1e-6 else 2.0 * math.asin(half) / abs(curvature)
        return float(free_arc_length(window.arrays, direction, curvature, arc))


def _lookahead_point(
    points: NDArray[np.float64], arc_lengths: NDArray[np.float64], lookahead: float
) -> tuple[float, float]:
    """Return the point where the path leaves the circle of radius ``lookahead`` around the robot, or its end."""
    distances = np.hypot(points[:, 0], points[:, 1])
    outside = np.flatnonzero(distances >= lookahead)
    if not len(outside):
        return float(points[-1, 0]), float(points[-1, 1])
    k = int(outside[0])
    if k == 0:
        return float(points[0, 0]), float(points[0, 1])
    a, b = points[k - 1], points[k]
    step = b - a
    aa, ab = float(step @ step), float(a @ step)
    fraction = (-ab + math.sqrt(max(ab * ab - aa * (float(a @ a) - lookahead * lookahead), 0.0))) / max(aa, 1e-12)
    x, y = a + min(max(fraction, 0.0), 1.0) * step
    return float(x), float(y)


@kernel(examples=lambda: [(example_window_arrays(), 1.0, 0.0, 1.0)])
def free_arc_length(window: CostmapWindowArrays, direction: float, curvature: float, length: float) -> float:
    """Return the distance along a circle that the robot drives without a collision [m]; infinite if none occurs.

    Args:
        window: Costmap around the robot.
        direction: 1 forward, -1 backward.
        curvature: Curvature [1/m].
        length: Length of the arc that is checked [m].
    """
    count = max(math.ceil(length / window.resolution), 1)
    step = length / count
    x, y, theta = window.start_pose
    for k in range(count):
        mean_heading = theta + 0.5 * direction * curvature * step
        x += direction * math.cos(mean_heading) * step
        y += direction * math.sin(mean_heading) * step
        theta += direction * curvature * step
        if is_in_collision(window, x, y, theta, True):
            return k * step
    return np.inf
