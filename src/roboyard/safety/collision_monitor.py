"""Collision monitor: slows or stops commands that would bring the robot too close to obstacles.

The zones are those of Nav2's collision monitor. In addition each command is checked together with the path on which the
base brakes after it, and a command that moves away from all obstacles always passes, so that a robot can leave every
place that it has reached.

What a zone does is a `ZoneAction`: stop, slowdown, limit and approach, as in Nav2. Installed packages add actions with
the entry point group ``roboyard.zone_actions``; `SafetyZone` also takes an action of the user's own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.config import Config, parameter
from roboyard.config.registry import Registry
from roboyard.control import PlanarTwist
from roboyard.errors import ConfigError
from roboyard.geometry import polygons
from roboyard.geometry.planar_kernels import signed_distance

_TIME_STEP = 0.02
"""Step of the simulated motion [s]."""
_UNLIMITED_ACCELERATIONS = np.full(4, 1e9)
"""Accelerations of a base without ramps."""


class BrakingConfig(Config):
    """Bounds on how the base follows a command."""

    acceleration: float = parameter(
        1.5, unit="m/s²", low=1e-3, high=1e3, doc="Largest acceleration of the drive; larger values are safer."
    )
    deceleration: float = parameter(
        1.5,
        unit="m/s²",
        low=1e-3,
        high=1e3,
        doc="Deceleration that braking reaches in any case; smaller values are safer.",
    )
    angular_acceleration: float = parameter(
        4.0, unit="rad/s²", low=1e-3, high=1e3, doc="Largest angular acceleration of the drive."
    )
    angular_deceleration: float = parameter(
        3.0, unit="rad/s²", low=1e-3, high=1e3, doc="Angular deceleration that braking reaches in any case."
    )
    latency: float = parameter(
        0.12, unit="s", low=0.0, high=10.0,
        doc="Time from a measurement to the reaction of the base, including the period of the monitor.",
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
        """Return the smallest distance between each point and the base on its path to a standstill (m,) [m].

        For points that the base would hit the result is minus the speed of the impact [m/s]; for points inside the
        footprint from the start, minus the largest distance to its boundary [m].

        During the latency the base continues from its twist towards the command, then it brakes.

        Args:
            corners: (n, 2) corners of the footprint [m].
            points: (m, 2) points around it, in the present base frame [m].
            twist: The base's present twist.
            command: The commanded twist.
            max_distance: Result for points that stay farther away [m].
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
        corners: (n, 2) corners of the footprint [m].
        points: (m, 2) points around it, in the present base frame [m].
        twist: Twist of the base.
        duration: Duration of the motion [s]; the base is at rest before and after it.
        max_distance: Result for points that stay farther away [m].
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
    """Compute the smallest distances during a motion, see `BrakingConfig.clearances`.

    Args:
        corners: (n, 2) corners of the footprint, counter-clockwise [m].
        points: (m, 2) points around it [m].
        twists: (6,) vx, vy, wz of the base, then of the command.
        limits: (4,) acceleration, deceleration, angular acceleration, angular deceleration.
        latency: Time before the base brakes [s].
        step: Time step [s].
        distances: (m,) is lowered to the result; contains the results for distant points before [m].
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
                # a penetration depth means nothing here: the base may leave at the other side
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
    """Return a speed ``dt`` later on its ramp to a target; it grows with at most ``acceleration`` and shrinks with at
    most ``deceleration``."""
    if speed * target < 0.0:
        time_to_zero = abs(speed) / deceleration
        if time_to_zero >= dt:
            return speed - math.copysign(deceleration * dt, speed)
        speed, dt = 0.0, dt - time_to_zero
    change = (acceleration if abs(target) > abs(speed) else deceleration) * dt
    return target if abs(target - speed) <= change else speed + math.copysign(change, target - speed)


class MonitorAction(Enum):
    """How a command was changed; the values are those of nav2_msgs/CollisionMonitorState."""

    DO_NOTHING = 0
    STOP = 1
    SLOWDOWN = 2
    APPROACH = 3
    LIMIT = 4


def validate_polygon(corners: ArrayLike, location: str) -> NDArray[np.float64]:
    """Return the corners (n, 2) of a polygon in counter-clockwise order [m].

    Raises:
        ConfigError: there are fewer than three corners, or the polygon is not finite, crosses itself or has no area.
    """
    array = np.asarray(corners, dtype=np.float64)
    if array.ndim != 2 or array.shape[1:] != (2,) or len(array) < 3 or not np.isfinite(array).all():
        raise ConfigError(
            f"a polygon of shape {array.shape}", location=location, valid="(n, 2), finite, at least 3 corners"
        )
    if not polygons.is_simple(array):
        raise ConfigError("the polygon crosses itself", location=location, valid="corners in order, each once")
    if abs(polygons.signed_area(array)) < 1e-6:
        raise ConfigError("the polygon has no area", location=location, valid="corners that span an area")
    return np.ascontiguousarray(polygons.make_counter_clockwise(array))


@dataclass(frozen=True)
class SafetyZone:
    """An area around the robot, as a polygon or circle of Nav2's collision monitor.

    Attributes:
        name: Name of the zone, for messages.
        action: Action for obstacles in the zone; a `MonitorAction` stands for the action of its name.
        corners: (n, 2) in the base frame [m]; for a circle ``polygons.regular_polygon(radius)``.
        min_points: Number of measured points in the zone that count as an obstacle.
        slowdown_ratio: Factor on the speed, for slowdown.
        linear_limit: Largest speed, for limit [m/s].
        angular_limit: Largest angular speed, for limit [rad/s].
        time_before_collision: Smallest time to collision at a constant speed, for approach [s].
        linear_speeds: Range of forward speeds for which the zone is active [m/s].
        angular_speeds: Range of angular speeds for which the zone is active [rad/s].

    Raises:
        ConfigError: a number out of range, no action, or corners that are no polygon.
    """

    name: str
    action: MonitorAction | ZoneAction
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
            raise ConfigError("no action", location=location, valid=", ".join(ZONE_ACTIONS.names()))
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

    @property
    def zone_action(self) -> ZoneAction:
        """Action of the zone."""
        if isinstance(self.action, MonitorAction):
            return ZONE_ACTIONS[self.action.name.lower()]()
        return self.action

    def is_active(self, vx: float, wz: float) -> bool:
        """Return whether the zone is active for a command with a forward speed [m/s] and an angular speed [rad/s]."""
        return (
            self.linear_speeds[0] <= vx <= self.linear_speeds[1]
            and self.angular_speeds[0] <= wz <= self.angular_speeds[1]
        )

    def points_inside(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the points (n, 2) that are in the zone [m]; none if they are fewer than ``min_points``."""
        inside = points[polygons.contains(self.corners, points)]
        return inside if len(inside) >= self.min_points else inside[:0]


_BISECTION_STEPS = 8
"""Number of bisections of the factor on a command: to 0.4 %."""
_DISTANCE_TOLERANCE = 1e-9
"""Distances that differ by less are equal [m]."""


class ZoneAction(ABC):
    """What a zone does with a command while there are obstacles.

    Subclasses fill in `scale_command`. The monitor takes the smallest scaling of all zones and of the footprint, so an
    action only states what its own zone allows.

    Attributes:
        reported_action: Action that the state of the monitor reports.
        uses_points_inside: Whether the action only gets obstacles inside the zone, and no commands that move the robot
            away from all of them; otherwise it gets all obstacles and commands.
    """

    reported_action: ClassVar[MonitorAction] = MonitorAction.LIMIT
    uses_points_inside: ClassVar[bool] = True

    @abstractmethod
    def scale_command(self, zone: SafetyZone, command: PlanarTwist, points: NDArray[np.float64]) -> tuple[float, str]:
        """Return the allowed scaling of a command, and its reason.

        The scaling must not grow when obstacles are added.

        Args:
            zone: Zone of the action.
            command: The command.
            points: (n, 2) obstacles in the present base frame, at least one [m].

        Returns:
            Scaling from 0 to 1; 1 lets the command pass. A reason is needed for a scaling below 1 only.
        """


class StopAction(ZoneAction):
    """Stops the robot while an obstacle is in the zone."""

    reported_action = MonitorAction.STOP

    def scale_command(self, zone: SafetyZone, command: PlanarTwist, points: NDArray[np.float64]) -> tuple[float, str]:
        """Return 0."""
        return 0.0, _points_text(zone, points)


class SlowdownAction(ZoneAction):
    """Scales the speed by ``slowdown_ratio`` while an obstacle is in the zone."""

    reported_action = MonitorAction.SLOWDOWN

    def scale_command(self, zone: SafetyZone, command: PlanarTwist, points: NDArray[np.float64]) -> tuple[float, str]:
        """Return the ratio of the zone."""
        return zone.slowdown_ratio, _points_text(zone, points)


class LimitAction(ZoneAction):
    """Limits the speed to ``linear_limit`` and ``angular_limit`` while an obstacle is in the zone."""

    reported_action = MonitorAction.LIMIT

    def scale_command(self, zone: SafetyZone, command: PlanarTwist, points: NDArray[np.float64]) -> tuple[float, str]:
        """Return the scaling at which neither limit is exceeded."""
        scaling = min(
            1.0,
            zone.linear_limit / max(math.hypot(command.vx, command.vy), 1e-9),
            zone.angular_limit / max(abs(command.wz), 1e-9),
        )
        return scaling, _points_text(zone, points)


class ApproachAction(ZoneAction):
    """Scales the speed so that the zone reaches no obstacle before ``time_before_collision``."""

    reported_action = MonitorAction.APPROACH
    uses_points_inside = False

    def scale_command(self, zone: SafetyZone, command: PlanarTwist, points: NDArray[np.float64]) -> tuple[float, str]:
        """Return the largest scaling at which the polygon of the zone comes no nearer to a point within its time."""
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
            return 1.0, ""
        low, high = 0.0, zone.time_before_collision
        for _ in range(_BISECTION_STEPS):
            midpoint = 0.5 * (low + high)
            low, high = (midpoint, high) if is_free(midpoint) else (low, midpoint)
        return low / zone.time_before_collision, f"zone {zone.name} would reach an obstacle in {low:.2f} s"


def _points_text(zone: SafetyZone, points: NDArray[np.float64]) -> str:
    return f"{len(points)} points in zone {zone.name}"


ZONE_ACTIONS: Registry[Callable[[], ZoneAction]] = Registry(
    "zone action",
    group="roboyard.zone_actions",
    base=lambda: ZoneAction,
    built_in={"stop": StopAction, "slowdown": SlowdownAction, "limit": LimitAction, "approach": ApproachAction},
)
"""Actions of zones by name."""


@dataclass(frozen=True)
class CollisionMonitorConfig:
    """Configuration of `CollisionMonitor`.

    Attributes:
        footprint: (n, 2) corners of the robot's footprint in the base frame [m].
        margin: Smallest distance between the footprint and all obstacles [m].
        braking: How the base accelerates and brakes.
        zones: Zones, all of which apply.

    Raises:
        ConfigError: a number out of range, a footprint that is no polygon, or two zones of one name.
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
    """Result of the check of a command.

    Attributes:
        twist: Twist that the base may follow.
        action: How the command was changed.
        zone: Name of the zone that changed it; ``footprint``: the robot itself would come too near.
        speed_scaling: Factor on the command's speed, 0 to 1.
        reason: Reason in words; empty if the command passed.
    """

    twist: PlanarTwist
    action: MonitorAction = MonitorAction.DO_NOTHING
    zone: str = ""
    speed_scaling: float = 1.0
    reason: str = ""


class CollisionMonitor:
    """Checks commands against the obstacles that the sensors measure.

    Args:
        config: Footprint, margin, braking and zones.
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
        action = zone.zone_action
        if action.uses_points_inside:
            points = zone.points_inside(points)
        if not len(points) or (action.uses_points_inside and self._moves_away(command, twist, points)):
            return MonitorDecision(command)
        scaling, reason = action.scale_command(zone, command, points)
        return _scale_command(command, max(scaling, 0.0), action.reported_action, zone.name, reason)

    def _moves_away(self, command: PlanarTwist, twist: PlanarTwist, points: NDArray[np.float64]) -> bool:
        """Return whether the footprint comes no nearer to any point with the command than by braking at once."""
        braking, footprint = self.config.braking, self.config.footprint
        braking_clearances = braking.clearances(footprint, points, twist, PlanarTwist(), math.inf)
        return bool(
            (
                braking.clearances(footprint, points, twist, command, math.inf)
                >= braking_clearances - _DISTANCE_TOLERANCE
            ).all()
        )

    def _check_footprint(
        self, slowed_command: PlanarTwist, command: PlanarTwist, twist: PlanarTwist, points: NDArray[np.float64]
    ) -> MonitorDecision:
        """Return the largest scaling of a command after which the base can still stop at the margin.

        No command may bring the base nearer to a point within the margin than braking at once does. So a command that
        moves away passes, and a point that is too near already does not hide another one.
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
