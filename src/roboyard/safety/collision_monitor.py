"""Collision monitor: slows or stops commands that would bring the robot too close to obstacles.

The zones are those of Nav2's collision monitor. In addition each command is checked together with the path on which the
base brakes after it, and a command that moves away from all obstacles always passes, so that a robot can leave every
place that it has reached.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.config import Config, parameter
from roboyard.control import PlanarTwist
from roboyard.errors import ConfigError
from roboyard.geometry import polygons
from roboyard.geometry.planar_kernels import signed_distance

_TIME_STEP = 0.02
"""Step of the simulated motion [s]."""
_UNLIMITED_ACCELERATIONS = np.full(4, 1e9)
"""Accelerations of a base without ramps."""


class BrakingConfig(Config):
    """What the base does with a command, as far as one may rely on it."""

    acceleration: float = parameter(
        1.5, unit="m/s²", low=1e-3, high=1e3, doc="Largest acceleration of the drive; the larger, the more careful."
    )
    deceleration: float = parameter(
        1.5,
        unit="m/s²",
        low=1e-3,
        high=1e3,
        doc="Deceleration that braking surely reaches; the smaller, the more careful.",
    )
    angular_acceleration: float = parameter(
        4.0, unit="rad/s²", low=1e-3, high=1e3, doc="Largest angular acceleration of the drive."
    )
    angular_deceleration: float = parameter(
        3.0, unit="rad/s²", low=1e-3, high=1e3, doc="Angular deceleration that braking surely reaches."
    )
    latency: float = parameter(
        0.12, unit="s", low=0.0, high=10.0,
        doc="Time from what the sensors see to the base's reaction, the monitor's own period included.",
    )  # fmt: skip

    def stopping_distance(self, speed: float) -> float:
        """Return the largest distance on which the base may still move before it stops [m], from a speed [m/s] that it
        may still raise.
        """
        max_speed = abs(speed) + self.acceleration * self.latency
        return max_speed * self.latency + 0.5 * max_speed * max_speed / self.deceleration

    def clearances(
        self,
        corners: NDArray[np.float64],
        points: NDArray[np.float64],
        twist: PlanarTwist,
        command: PlanarTwist,
        max_distance: float,
    ) -> NDArray[np.float64]:
        """Least distance of each point on the way to a standstill (m,) [m].

        Of points that the base would run into: minus the speed with which it would [m/s].  Of points inside the outline
        from the beginning: minus the largest distance to the border [m].

        For the latency the base goes on from its twist towards the command, then it brakes.

        Args:
            corners: (n, 2) of the base's outline [m].
            points: (m, 2) about it [m], as seen from where it is now.
            twist: The base's present twist.
            command: The commanded twist.
            max_distance: Larger distances do not matter and are this [m].
        """
        limits = np.array(
            [self.acceleration, self.deceleration, self.angular_acceleration, self.angular_deceleration],
            dtype=np.float64,
        )
        distances = np.full(len(points), max_distance)
        compute_clearances(corners, points, np.array([*twist, *command]), limits, self.latency, _TIME_STEP, distances)
        return distances


def constant_twist_clearances(
    corners: NDArray[np.float64], points: NDArray[np.float64], twist: PlanarTwist, duration: float, max_distance: float
) -> NDArray[np.float64]:
    """Return the smallest distance of each point during a motion at a constant twist (m,) [m].

    Args:
        corners: (n, 2) of the base's outline [m].
        points: (m, 2) about it [m], as seen from where it is now.
        twist: Of the base.
        duration: Of the motion [s]; the base stands before and after it.
        max_distance: Larger distances do not matter and are this [m].
    """
    distances = np.full(len(points), max_distance)
    compute_clearances(
        corners, points, np.array([*twist, *twist]), _UNLIMITED_ACCELERATIONS, duration, _TIME_STEP, distances
    )
    return distances


@kernel(
    examples=lambda: [
        (np.eye(3)[:, :2].copy(), np.zeros((2, 2)), np.zeros(6), np.ones(4), 0.1, 0.02, np.ones(2)),
    ]
)
def compute_clearances(
    corners: NDArray[np.float64],
    points: NDArray[np.float64],
    twists: NDArray[np.float64],
    limits: NDArray[np.float64],
    latency: float,
    step: float,
    distances: NDArray[np.float64],
) -> None:
    """See ``BrakingConfig.clearances``.

    Args:
        corners: (n, 2) of the outline, anticlockwise [m].
        points: (m, 2) about it [m].
        twists: (6,) vx, vy, wz of the base, then of the command.
        limits: (4,) acceleration and deceleration along the ground, the same of turning.
        latency: [s].
        step: [s].
        distances: (m,) result [m]; holds at first what larger distances are to be.
    """
    radius = 0.0
    for k in range(len(corners)):
        radius = max(radius, math.hypot(corners[k, 0], corners[k, 1]))
    v = twists[:3].copy()
    has_collided = np.zeros(len(points), dtype=np.bool_)
    starts_outside = np.ones(len(points), dtype=np.bool_)
    x, y, theta, time = 0.0, 0.0, 0.0, 0.0
    for _ in range(100_000):
        c, s = math.cos(theta), math.sin(theta)
        for k in range(len(points)):
            dx, dy = points[k, 0] - x, points[k, 1] - y
            bound = max(radius + distances[k], 0.0)
            if has_collided[k] or dx * dx + dy * dy >= bound * bound:
                continue
            distance = signed_distance(corners, c * dx + s * dy, c * dy - s * dx)
            if time == 0.0:
                starts_outside[k] = distance >= 0.0
            elif distance < 0.0 and starts_outside[k]:
                # how deep it would be says nothing any more: it may come out at the other side
                has_collided[k] = True
                distance = -math.hypot(v[0], v[1]) - radius * abs(v[2])
            distances[k] = min(distances[k], distance)
        is_moving = abs(v[0]) + abs(v[1]) + abs(v[2]) > 1e-9
        is_reacting = time < latency - 1e-9
        if not is_reacting and not is_moving:
            break
        dt = min(step, latency - time) if is_reacting else step
        previous = v.copy()
        for axis in range(3):
            target = twists[3 + axis] if is_reacting else 0.0
            up, down = (limits[2], limits[3]) if axis == 2 else (limits[0], limits[1])
            v[axis] = ramp_speed(v[axis], target, dt, up, down)
        vx, vy, wz = 0.5 * (v[0] + previous[0]), 0.5 * (v[1] + previous[1]), 0.5 * (v[2] + previous[2])
        mid_heading = theta + 0.5 * wz * dt
        x += (vx * math.cos(mid_heading) - vy * math.sin(mid_heading)) * dt
        y += (vx * math.sin(mid_heading) + vy * math.cos(mid_heading)) * dt
        theta += wz * dt
        time += dt


@kernel(examples=lambda: [(0.0, 1.0, 0.1, 1.0, 2.0)])
def ramp_speed(speed: float, target: float, dt: float, acceleration: float, deceleration: float) -> float:
    """A speed ``dt`` later on its way to a goal; it grows by at most ``acceleration`` and shrinks by ``deceleration``
    a second."""
    if speed * target < 0.0:
        time_to_zero = abs(speed) / deceleration
        if time_to_zero >= dt:
            return speed - math.copysign(deceleration * dt, speed)
        speed, dt = 0.0, dt - time_to_zero
    change = (acceleration if abs(target) > abs(speed) else deceleration) * dt
    return target if abs(target - speed) <= change else speed + math.copysign(change, target - speed)


class MonitorAction(Enum):
    """What a zone makes of a command; the values are those of nav2_msgs/CollisionMonitorState."""

    DO_NOTHING = 0
    STOP = 1
    SLOWDOWN = 2
    APPROACH = 3
    LIMIT = 4


def validate_polygon(corners: ArrayLike, location: str) -> NDArray[np.float64]:
    """Corners (n, 2) [m] of a polygon that is one, anticlockwise.

    Raises:
        ConfigError: fewer than three corners, not finite, crossing itself, or without area.
    """
    array = np.asarray(corners, dtype=np.float64)
    if array.ndim != 2 or array.shape[1:] != (2,) or len(array) < 3 or not np.isfinite(array).all():
        raise ConfigError(
            f"a polygon of shape {array.shape}", location=location, valid="(n, 2), finite, at least 3 corners"
        )
    if not polygons.is_simple(array):
        raise ConfigError("its outline crosses itself", location=location, valid="corners in order, each once")
    if abs(polygons.signed_area(array)) < 1e-6:
        raise ConfigError("its outline holds no area", location=location, valid="corners that span an area")
    return np.ascontiguousarray(polygons.make_counter_clockwise(array))


@dataclass(frozen=True)
class SafetyZone:
    """A part of the plane about the robot, as one of Nav2's collision monitor's polygons or circles.

    Attributes:
        name: For messages.
        action: Stop; slow down to a share of the speed; limit the speed; approach: keep a time from touching.
        corners: (n, 2) in the base's frame [m]; for a circle ``polygons.regular_polygon(radius)``.
        min_points: So many points of the sensors make something.
        slowdown_ratio: Of ``SLOWDOWN``: what is left of the speed.
        linear_limit: Of ``LIMIT`` [m/s].
        angular_limit: Of ``LIMIT`` [rad/s].
        time_before_collision: Of ``APPROACH``: from touching, at the present speed [s].
        linear_speeds: The zone holds for forward speeds within these [m/s].
        angular_speeds: And for turning rates within these [rad/s].

    Raises:
        ConfigError: a number out of range, or a polygon that is none.
    """

    name: str
    action: MonitorAction
    corners: NDArray[np.float64]
    min_points: int = 4
    slowdown_ratio: float = 0.5
    linear_limit: float = 0.5
    angular_limit: float = 0.5
    time_before_collision: float = 2.0
    linear_speeds: tuple[float, float] = (-math.inf, math.inf)
    angular_speeds: tuple[float, float] = (-math.inf, math.inf)

    def __post_init__(self) -> None:
        location = f"zone {self.name}"
        object.__setattr__(self, "corners", validate_polygon(self.corners, location))
        if self.action is MonitorAction.DO_NOTHING:
            raise ConfigError("an action of none", location=location, valid="stop, slowdown, limit, approach")
        if self.min_points < 1:
            raise ConfigError(f"min_points = {self.min_points}", location=location, valid="at least 1")
        if not 0.0 <= self.slowdown_ratio <= 1.0:
            raise ConfigError(f"slowdown_ratio = {self.slowdown_ratio}", location=location, valid="0 to 1")
        for key in ("linear_limit", "angular_limit", "time_before_collision"):
            if not 0.0 <= getattr(self, key) < math.inf:
                raise ConfigError(f"{key} = {getattr(self, key)}", location=location, valid="zero or more, finite")
        for key in ("linear_speeds", "angular_speeds"):
            low, high = getattr(self, key)
            if not low < high:
                raise ConfigError(f"{key} from {low} to {high}", location=location, valid="ascending")

    def is_active(self, vx: float, wz: float) -> bool:
        """Whether it is to be looked at, at such a command."""
        return (
            self.linear_speeds[0] <= vx <= self.linear_speeds[1]
            and self.angular_speeds[0] <= wz <= self.angular_speeds[1]
        )

    def points_inside(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Those of the points (n, 2) that are in it; none if they are too few to be something."""
        inside = points[polygons.contains(self.corners, points)]
        return inside if len(inside) >= self.min_points else inside[:0]


_BISECTION_STEPS = 8
"""Of the share of a command that passes: to 0.4 %."""
_DISTANCE_TOLERANCE = 1e-9
"""Distances this near to each other are one [m]."""


@dataclass(frozen=True)
class CollisionMonitorConfig:
    """What the robot is, and how careful to be.

    Attributes:
        footprint: (n, 2) its outline in the base's frame [m].
        margin: What stays between it and everything else [m].
        braking: How it stops.
        zones: Further rules, all of which hold.

    Raises:
        ConfigError: a number out of range, an outline that is none, or two zones of one name.
    """

    footprint: NDArray[np.float64]
    margin: float = 0.05
    braking: BrakingConfig = field(default_factory=BrakingConfig)
    zones: tuple[SafetyZone, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "footprint", validate_polygon(self.footprint, "footprint"))
        if not 0.0 <= self.margin <= 10.0:
            raise ConfigError(f"margin = {self.margin}", location="collision monitor", valid="0 to 10 m")
        names = [zone.name for zone in self.zones]
        if len(set(names)) != len(names):
            raise ConfigError(f"zones named {', '.join(names)}", location="collision monitor", valid="each name once")


@dataclass(frozen=True, slots=True)
class MonitorDecision:
    """What becomes of a command.

    Attributes:
        twist: What the base may do.
        action: What was done to the command.
        zone: Because of which zone; ``footprint``: because the robot itself would come too near.
        speed_scaling: Of the command's speed that is left.
        reason: In words; empty if it passed.
    """

    twist: PlanarTwist
    action: MonitorAction = MonitorAction.DO_NOTHING
    zone: str = ""
    speed_scaling: float = 1.0
    reason: str = ""


class CollisionMonitor:
    """Checks commands against the obstacles that the sensors measure.

    Args:
        config: What the robot is, and how careful to be.
    """

    def __init__(self, config: CollisionMonitorConfig) -> None:
        expect_kernels(compute_clearances)
        self.config = config
        self._radius = float(np.hypot(*config.footprint.T).max())

    def check(self, command: PlanarTwist, twist: PlanarTwist, points: NDArray[np.float64]) -> MonitorDecision:
        """Return what the base may do instead of a command.

        Args:
            command: The command.
            twist: The base's present twist.
            points: (n, 2) obstacles in the present base frame [m].
        """
        decision = MonitorDecision(command)
        if not any(command):
            return decision  # nothing is safer than braking
        for zone in self.config.zones:
            if zone.is_active(command.vx, command.wz):
                decision = _select_slower(decision, self._check_zone(zone, command, twist, points))
        return _select_slower(decision, self._check_footprint(decision.twist, command, twist, points))

    def _check_zone(
        self, zone: SafetyZone, command: PlanarTwist, twist: PlanarTwist, points: NDArray[np.float64]
    ) -> MonitorDecision:
        if zone.action is MonitorAction.APPROACH:
            return self._check_approach_zone(zone, command, points)
        inside = zone.points_inside(points)
        if not len(inside):
            return MonitorDecision(command)
        if self._moves_away(command, twist, inside):
            return MonitorDecision(command)
        if zone.action is MonitorAction.STOP:
            scaling = 0.0
        elif zone.action is MonitorAction.SLOWDOWN:
            scaling = zone.slowdown_ratio
        else:
            scaling = min(
                1.0,
                zone.linear_limit / max(math.hypot(command.vx, command.vy), 1e-9),
                zone.angular_limit / max(abs(command.wz), 1e-9),
            )
        return _scale_command(command, scaling, zone.action, zone.name, f"{len(inside)} points in zone {zone.name}")

    def _moves_away(self, command: PlanarTwist, twist: PlanarTwist, points: NDArray[np.float64]) -> bool:
        """Whether, with the command, the outline comes no nearer to any of the points than braking takes it."""
        braking, footprint = self.config.braking, self.config.footprint
        braking_clearances = braking.clearances(footprint, points, twist, PlanarTwist(), math.inf)
        return bool(
            (
                braking.clearances(footprint, points, twist, command, math.inf)
                >= braking_clearances - _DISTANCE_TOLERANCE
            ).all()
        )

    def _check_approach_zone(
        self, zone: SafetyZone, command: PlanarTwist, points: NDArray[np.float64]
    ) -> MonitorDecision:
        """Slow down so that the zone's outline touches the points no earlier than its time."""
        present_distances = constant_twist_clearances(
            zone.corners, points, PlanarTwist(), zone.time_before_collision, 1e-6
        )

        def is_free(seconds: float) -> bool:
            scaled_command = PlanarTwist(*(speed * seconds / zone.time_before_collision for speed in command))
            return bool(
                (
                    constant_twist_clearances(zone.corners, points, scaled_command, zone.time_before_collision, 1e-6)
                    >= present_distances - _DISTANCE_TOLERANCE
                ).all()
            )

        if len(points) < zone.min_points or zone.time_before_collision == 0.0 or is_free(zone.time_before_collision):
            return MonitorDecision(command)
        low, high = 0.0, zone.time_before_collision
        for _ in range(_BISECTION_STEPS):
            midpoint = 0.5 * (low + high)
            low, high = (midpoint, high) if is_free(midpoint) else (low, midpoint)
        reason = f"zone {zone.name} would reach an obstacle in {low:.2f} s"
        return _scale_command(command, low / zone.time_before_collision, MonitorAction.APPROACH, zone.name, reason)

    def _check_footprint(
        self, slowed_command: PlanarTwist, command: PlanarTwist, twist: PlanarTwist, points: NDArray[np.float64]
    ) -> MonitorDecision:
        """The largest share of a command after which the base can still stop at the margin.

        To what braking at once takes it nearer than the margin, no command may take it nearer than that: so what leads
        away passes, and no point that is too near already hides another one.
        """
        braking, footprint, margin = self.config.braking, self.config.footprint, self.config.margin
        max_speed = max(math.hypot(twist.vx, twist.vy), math.hypot(slowed_command.vx, slowed_command.vy))
        nearby_points = points[np.hypot(*points.T) <= self._radius + margin + braking.stopping_distance(max_speed)]
        if not len(nearby_points):
            return MonitorDecision(command)
        min_clearances = (
            braking.clearances(footprint, nearby_points, twist, PlanarTwist(), margin) - _DISTANCE_TOLERANCE
        )

        def is_safe(scaling: float) -> bool:
            scaled_command = PlanarTwist(*(scaling * speed for speed in slowed_command))
            return bool(
                (braking.clearances(footprint, nearby_points, twist, scaled_command, margin) >= min_clearances).all()
            )

        if is_safe(1.0):
            return MonitorDecision(command)
        low, high = 0.0, 1.0
        for _ in range(_BISECTION_STEPS):
            midpoint = 0.5 * (low + high)
            low, high = (midpoint, high) if is_safe(midpoint) else (low, midpoint)
        action = MonitorAction.APPROACH if low else MonitorAction.STOP
        speed_scaling = low * _speed_ratio(slowed_command, command)
        return _scale_command(
            command, speed_scaling, action, "footprint", f"an obstacle would be closer than {margin:g} m"
        )


def _speed_ratio(scaled: PlanarTwist, command: PlanarTwist) -> float:
    return next((p / w for p, w in zip(scaled, command, strict=True) if w), 1.0)


def _scale_command(
    command: PlanarTwist, scaling: float, action: MonitorAction, zone: str, reason: str
) -> MonitorDecision:
    if scaling >= 1.0:
        return MonitorDecision(command)
    twist = PlanarTwist(*(scaling * speed for speed in command))
    return MonitorDecision(twist, action, zone, scaling, reason)


def _select_slower(first: MonitorDecision, second: MonitorDecision) -> MonitorDecision:
    return second if second.speed_scaling < first.speed_scaling else first
