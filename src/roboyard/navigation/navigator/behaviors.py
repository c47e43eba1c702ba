"""Behaviors of the navigator, as those of nav2_behaviors: spin, drive on a heading, back up, wait and clearing of
costmaps; and the final approach of omnidirectional bases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from roboyard.config import check, parameter
from roboyard.control import ZERO_TWIST, PlanarTwist
from roboyard.errors import InputError
from roboyard.geometry import SE2, wrap_angle
from roboyard.navigation.controllers import GoalTolerance
from roboyard.navigation.errors import TimeAllowanceExceededError
from roboyard.navigation.navigator.behavior import (
    Behavior,
    BehaviorConfig,
    BehaviorContext,
    MobileBase,
    MotionBehaviorConfig,
)
from roboyard.navigation.navigator.costmaps import NavigationCostmaps
from roboyard.navigation.navigator.task import AttributeState, NavigationState

_ANGLE_TOLERANCE = 0.02
"""Remaining angle at which a rotation is finished [rad]."""
_DISTANCE_TOLERANCE = 0.01
"""Remaining distance at which a straight drive is finished [m]."""


class SpinTask(Behavior):
    """Rotation in place by an angle (nav2_behaviors::Spin).

    Args:
        mobile_base: Footprint and limits of the robot.
        angle: Angle to the left, negative to the right [rad]; may be more than a full turn.
        time_allowance: Longest duration [s].
        max_speed: Largest angular speed [rad/s].

    Raises:
        InputError: A number is not finite, or a time or speed is not positive.
    """

    state_attributes = ("rotated_angle", "_last_heading", "_start_time")

    def __init__(self, mobile_base: MobileBase, angle: float, time_allowance: float, max_speed: float = 1.0) -> None:
        _check_finite(angle=angle)
        check_positive(time_allowance=time_allowance, speed=max_speed)
        self._mobile_base, self._angle, self._time_allowance = mobile_base, angle, time_allowance
        self._max_speed = min(max_speed, mobile_base.limits.max_angular_speed)
        self.rotated_angle = 0.0
        self._last_heading: float | None = None
        self._start_time: float | None = None

    def compute_command(self, state: NavigationState) -> PlanarTwist | None:
        """Return the next velocity; None if the behavior is finished."""
        self._start_time = state.time if self._start_time is None else self._start_time
        if self._last_heading is not None:
            self.rotated_angle += wrap_angle(state.pose.theta - self._last_heading)
        self._last_heading = state.pose.theta
        remaining = self._angle - self.rotated_angle
        if remaining * self._angle <= 0.0 or abs(remaining) < _ANGLE_TOLERANCE:
            return None
        if state.time - self._start_time > self._time_allowance:
            raise TimeAllowanceExceededError(
                f"rotated {self.rotated_angle:.2f} of {self._angle:.2f} rad within the time allowance"
            )
        speed = self._mobile_base.approach_speed(
            abs(remaining), self._max_speed, self._mobile_base.limits.max_angular_acceleration
        )
        twist = PlanarTwist(0.0, 0.0, math.copysign(max(speed, 0.05), remaining))
        self._mobile_base.assert_collision_free(state, twist)
        return twist


class DriveOnHeadingTask(Behavior):
    """Straight drive along the heading that the robot has at the start (nav2_behaviors::DriveOnHeading and BackUp).

    Args:
        mobile_base: Footprint and limits of the robot.
        distance: Distance, negative backward [m].
        max_speed: Largest speed, without a sign [m/s].
        time_allowance: Longest duration [s].

    Raises:
        InputError: A number is not finite, a speed or time is not positive, or the base cannot drive backward.
    """

    state_attributes = ("driven_distance", "_start_pose", "_start_time")

    def __init__(self, mobile_base: MobileBase, distance: float, max_speed: float, time_allowance: float) -> None:
        _check_finite(distance=distance)
        check_positive(speed=max_speed, time_allowance=time_allowance)
        speed_limit = mobile_base.limits.max_forward_speed if distance > 0.0 else mobile_base.limits.max_backward_speed
        if speed_limit == 0.0:
            raise InputError("this base does not drive backward", valid="a distance above 0")
        self._mobile_base, self._distance, self._time_allowance = mobile_base, distance, time_allowance
        self._max_speed = min(max_speed, speed_limit)
        self.driven_distance = 0.0
        self._start_pose: tuple[float, float, float] | None = None
        self._start_time: float | None = None

    def compute_command(self, state: NavigationState) -> PlanarTwist | None:
        """Return the next velocity; None if the behavior is finished."""
        if self._start_pose is None or self._start_time is None:
            self._start_pose, self._start_time = (state.pose.x, state.pose.y, state.pose.theta), state.time
        motion = SE2(*self._start_pose).inverse() @ state.pose
        self.driven_distance = motion.x
        remaining = self._distance - motion.x
        if remaining * self._distance <= 0.0 or abs(remaining) < _DISTANCE_TOLERANCE:
            return None
        if state.time - self._start_time > self._time_allowance:
            raise TimeAllowanceExceededError(
                f"drove {self.driven_distance:.2f} of {self._distance:.2f} m within the time allowance"
            )
        speed = self._mobile_base.approach_speed(
            abs(remaining), self._max_speed, self._mobile_base.limits.max_acceleration
        )
        signed_speed = math.copysign(max(speed, 0.02), self._distance)
        # steers back to the line along the heading at the start
        angular_speed = max(-0.5, min(0.5, -2.0 * motion.theta - 2.0 * math.copysign(1.0, signed_speed) * motion.y))
        twist = PlanarTwist(signed_speed, 0.0, angular_speed)
        self._mobile_base.assert_collision_free(state, twist)
        return twist


class WaitTask(Behavior):
    """Standstill for a time (nav2_behaviors::Wait).

    Args:
        duration: Duration [s].

    Raises:
        InputError: The duration is not positive.
    """

    state_attributes = ("remaining_time", "_end_time")

    def __init__(self, duration: float) -> None:
        check_positive(time=duration)
        self.remaining_time = duration
        self._end_time: float | None = None

    def compute_command(self, state: NavigationState) -> PlanarTwist | None:
        """Return the next velocity; None if the behavior is finished."""
        if self._end_time is None:
            self._end_time = state.time + self.remaining_time
        self.remaining_time = max(self._end_time - state.time, 0.0)
        return ZERO_TWIST if self.remaining_time > 1e-9 else None


class ClearCostmapTask(Behavior):
    """Clearing of observed obstacles inside or outside of a square around the robot, in no time (Nav2's clear
    services).

    Args:
        costmaps: Costmaps to clear.
        half_side: Half the side of the square [m]; infinite for everything.
        inside: Whether to clear inside of the square; else outside.
    """

    def __init__(self, costmaps: NavigationCostmaps, half_side: float, *, inside: bool) -> None:
        self._costmaps, self._half_side, self._inside = costmaps, half_side, inside

    def start(self, state: NavigationState) -> bool:
        """Clear, and be finished."""
        self._costmaps.clear_area(state.T_odom_base, state.T_map_odom, self._half_side, inside=self._inside)
        return False

    def compute_command(self, state: NavigationState) -> PlanarTwist | None:
        """Return None: clearing takes no time."""
        return None


def _check_finite(**values: float) -> None:
    for name, value in values.items():
        if not math.isfinite(value):
            raise InputError(f"{name} = {value}", valid="a finite number")


def check_positive(**values: float) -> None:
    """Reject arguments that are not positive and finite.

    Raises:
        InputError: An argument is not; the message names the first.
    """
    _check_finite(**values)
    for name, value in values.items():
        if value <= 0.0:
            raise InputError(f"{name} = {value}", valid="more than 0")


@dataclass(frozen=True, kw_only=True)
class SpinConfig(MotionBehaviorConfig):
    """Rotate in place, so that the sensors observe the surroundings anew."""

    angle: float = parameter(2.0 * math.pi, unit="rad", low=-100.0, high=100.0, doc="Angle to the left.")
    speed_ratio: float = parameter(0.5, low=0.01, high=1.0, doc="Fraction of the largest angular speed.")

    def make_behavior(self, context: BehaviorContext) -> SpinTask:
        """Return a rotation in place."""
        max_speed = self.speed_ratio * context.mobile_base.limits.max_angular_speed
        return SpinTask(context.mobile_base, self.angle, self.time_allowance, max_speed)


@dataclass(frozen=True, kw_only=True)
class BackUpConfig(MotionBehaviorConfig):
    """Drive straight backward; a base that cannot drives forward."""

    distance: float = parameter(0.3, unit="m", low=0.02, high=10.0, doc="Distance.")
    max_speed: float = parameter(0.15, unit="m/s", low=0.01, high=10.0, doc="Largest speed.")

    def make_behavior(self, context: BehaviorContext) -> DriveOnHeadingTask:
        """Return a straight drive."""
        can_reverse = context.mobile_base.limits.max_backward_speed > 0.0
        distance = -self.distance if can_reverse else self.distance
        return DriveOnHeadingTask(context.mobile_base, distance, self.max_speed, self.time_allowance)


@dataclass(frozen=True, kw_only=True)
class DriveOnHeadingConfig(MotionBehaviorConfig):
    """Drive straight forward."""

    distance: float = parameter(0.3, unit="m", low=0.02, high=10.0, doc="Distance.")
    max_speed: float = parameter(0.15, unit="m/s", low=0.01, high=10.0, doc="Largest speed.")

    def make_behavior(self, context: BehaviorContext) -> DriveOnHeadingTask:
        """Return a straight drive."""
        return DriveOnHeadingTask(context.mobile_base, self.distance, self.max_speed, self.time_allowance)


@dataclass(frozen=True, kw_only=True)
class WaitConfig(BehaviorConfig):
    """Stand still, so that people and vehicles can leave."""

    duration: float = parameter(5.0, unit="s", low=0.01, high=1000.0, doc="Duration.")

    @property
    def max_duration(self) -> float:
        """The duration [s]."""
        return self.duration

    def make_behavior(self, context: BehaviorContext) -> WaitTask:
        """Return a standstill."""
        return WaitTask(self.duration)


@dataclass(frozen=True, kw_only=True)
class ClearCostmapConfig(BehaviorConfig):
    """Configuration that all behaviors that clear the costmaps share."""

    @property
    def max_duration(self) -> float:
        """0: clearing takes no time [s]."""
        return 0.0


@dataclass(frozen=True, kw_only=True)
class ConservativeResetConfig(ClearCostmapConfig):
    """Clear observed obstacles far from the robot: outside of a square around it."""

    reset_distance: float = parameter(3.0, unit="m", low=0.0, high=1000.0, doc="Half the side of the square.")

    def make_behavior(self, context: BehaviorContext) -> ClearCostmapTask:
        """Return a clearing outside of the square."""
        return ClearCostmapTask(context.costmaps, self.reset_distance, inside=False)


@dataclass(frozen=True, kw_only=True)
class ClearAroundRobotConfig(ClearCostmapConfig):
    """Clear observed obstacles in the square in which the robot can rotate."""

    def make_behavior(self, context: BehaviorContext) -> ClearCostmapTask:
        """Return a clearing inside of the square."""
        return ClearCostmapTask(context.costmaps, context.mobile_base.footprint.circumscribed_radius, inside=True)


@dataclass(frozen=True, kw_only=True)
class AggressiveResetConfig(ClearCostmapConfig):
    """Clear observed obstacles outside of the square in which the robot can rotate."""

    def make_behavior(self, context: BehaviorContext) -> ClearCostmapTask:
        """Return a clearing outside of the square."""
        return ClearCostmapTask(context.costmaps, context.mobile_base.footprint.circumscribed_radius, inside=False)


@dataclass(frozen=True, kw_only=True)
class ClearAllConfig(ClearCostmapConfig):
    """Clear all observed obstacles."""

    def make_behavior(self, context: BehaviorContext) -> ClearCostmapTask:
        """Return a clearing of everything."""
        return ClearCostmapTask(context.costmaps, math.inf, inside=True)


@dataclass(frozen=True)
class ApproachConfig:
    """Final approach of an omnidirectional base: straight to the pose, while it rotates."""

    distance: float = parameter(
        0.3,
        unit="m",
        low=0.0,
        high=10.0,
        doc="Distance from the goal at which it begins; 0: the controller drives all the way.",
    )
    max_speed: float = parameter(0.2, unit="m/s", low=0.01, high=10.0, doc="Largest speed.")
    max_angular_speed: float = parameter(0.6, unit="rad/s", low=0.01, high=10.0, doc="Largest turning rate.")
    time_allowance: float = parameter(20.0, unit="s", low=0.1, high=1000.0, doc="Longest duration.")

    def __post_init__(self) -> None:
        check(self, "approach")


_STANDSTILL_SPEEDS = (0.01, 0.02)
"""Speeds below which the base stands still [m/s], [rad/s]."""
_TARGET_TOLERANCE_RATIO = 0.5
"""Fraction of the tolerance within which the approach stops, so that noise of the pose does not undo the arrival."""


class ApproachPoseTask(AttributeState):
    """Final approach of an omnidirectional base: straight to a near pose, while it rotates, with a stop there.

    Position and heading are approached each at the speed at which the base can stop within what remains.

    Args:
        mobile_base: Footprint and limits of an omnidirectional base.
        goal: Goal in the map.
        tolerance: Tolerance of the goal.
        config: Largest speeds and time allowance.
    """

    state_attributes = ("_start_time",)

    def __init__(self, mobile_base: MobileBase, goal: SE2, tolerance: GoalTolerance, config: ApproachConfig) -> None:
        self._mobile_base, self._goal, self._tolerance, self._config = mobile_base, goal, tolerance, config
        self._start_time: float | None = None

    def compute_command(self, state: NavigationState) -> PlanarTwist | None:
        """Return the velocity towards the goal; None if the base stands there."""
        self._start_time = state.time if self._start_time is None else self._start_time
        remaining = state.pose.inverse() @ self._goal
        distance, angle = math.hypot(remaining.x, remaining.y), abs(remaining.theta)
        is_standing = (
            math.hypot(state.twist.vx, state.twist.vy) < _STANDSTILL_SPEEDS[0]
            and abs(state.twist.wz) < _STANDSTILL_SPEEDS[1]
        )
        if is_standing and distance <= self._tolerance.xy and angle <= self._tolerance.yaw:
            return None
        if state.time - self._start_time > self._config.time_allowance:
            raise TimeAllowanceExceededError(
                f"still {distance:.3f} m and {angle:.3f} rad from the goal after the time allowance"
            )
        limits = self._mobile_base.limits
        speed = angular_speed = 0.0
        if distance > _TARGET_TOLERANCE_RATIO * self._tolerance.xy:
            speed = self._mobile_base.approach_speed(
                distance, min(self._config.max_speed, limits.max_lateral_speed), 0.5 * limits.max_acceleration
            )
        if angle > _TARGET_TOLERANCE_RATIO * self._tolerance.yaw:
            max_angular_speed = min(self._config.max_angular_speed, limits.max_angular_speed)
            angular_speed = self._mobile_base.approach_speed(
                angle, max_angular_speed, 0.5 * limits.max_angular_acceleration
            )
        speed_per_distance = speed / max(distance, 1e-9)
        twist = PlanarTwist(
            speed_per_distance * remaining.x,
            speed_per_distance * remaining.y,
            math.copysign(angular_speed, remaining.theta),
        )
        self._mobile_base.assert_collision_free(state, twist)
        return twist
