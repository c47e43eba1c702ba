"""Simple motions, each bounded in time even when blocked: spin, drive on a heading, wait, and the final approach of
omnidirectional bases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from roboyard.control import ZERO_TWIST, PlanarTwist
from roboyard.errors import InputError
from roboyard.geometry import SE2, wrap_angle
from roboyard.navigation.controllers import CostmapWindow, GoalTolerance, MotionLimits
from roboyard.navigation.errors import MotionBlockedError, TimeAllowanceExceededError
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.navigator.config import ApproachConfig
from roboyard.navigation.navigator.task import AttributeState, NavigationState

_ANGLE_TOLERANCE = 0.02
"""A spin is done this near to its angle [rad]."""
_DISTANCE_TOLERANCE = 0.01
"""A straight drive is done this near to its distance [m]."""


@dataclass(frozen=True, slots=True)
class MobileBase:
    """Footprint, motion limits and control period of a robot.

    Attributes:
        footprint: The outline that is planned with.
        unpadded_footprint: That of the robot itself, on which it falls back in a narrow place.
        limits: Of its base.
        control_period: Between steps [s].
    """

    footprint: Footprint
    unpadded_footprint: Footprint
    limits: MotionLimits
    control_period: float

    def approach_speed(self, remaining: float, max_speed: float, acceleration: float) -> float:
        """The speed from which ``remaining`` can still be braked within, one period's way allowed for."""
        braking_speed = (
            math.sqrt(2.0 * acceleration * remaining + (acceleration * self.control_period) ** 2)
            - acceleration * self.control_period
        )
        return min(max_speed, braking_speed, remaining / self.control_period)

    def assert_collision_free(self, state: NavigationState, twist: PlanarTwist) -> None:
        """Reject a velocity with which the robot would collide before it stops.

        Raises:
            Blocked: it would.
        """
        limits, speed = self.limits, math.hypot(twist.vx, twist.vy)
        window_radius = speed * (2.0 * self.control_period + speed / limits.max_acceleration)
        window = CostmapWindow.around(state.pose, state.local_costmap, self.footprint, window_radius)
        # with room to spare, for whatever is to follow: half the deceleration, and two periods until it begins
        deceleration = PlanarTwist(*(0.5 * limits.max_acceleration,) * 2, 0.5 * limits.max_angular_acceleration)
        if not window.can_stop_safely(twist, deceleration, 2.0 * self.control_period):
            raise MotionBlockedError("something stands where the robot would move", valid="room for the motion")


class SpinTask(AttributeState):
    """Turns on the spot by an angle.

    Args:
        mobile_base: Of the robot.
        angle: To the left, negative to the right [rad]; more than a turn is fine.
        time_allowance: Longest time [s].
        max_speed: Fastest turning [rad/s].

    Raises:
        InputError: numbers that are not finite, or a time that is not positive.
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
        """See ``Task``."""
        self._start_time = state.time if self._start_time is None else self._start_time
        if self._last_heading is not None:
            self.rotated_angle += wrap_angle(state.pose.theta - self._last_heading)
        self._last_heading = state.pose.theta
        remaining = self._angle - self.rotated_angle
        if remaining * self._angle <= 0.0 or abs(remaining) < _ANGLE_TOLERANCE:
            return None
        if state.time - self._start_time > self._time_allowance:
            raise TimeAllowanceExceededError(
                f"turned {self.rotated_angle:.2f} of {self._angle:.2f} rad in the time allowed"
            )
        speed = self._mobile_base.approach_speed(
            abs(remaining), self._max_speed, self._mobile_base.limits.max_angular_acceleration
        )
        twist = PlanarTwist(0.0, 0.0, math.copysign(max(speed, 0.05), remaining))
        self._mobile_base.assert_collision_free(state, twist)
        return twist


class DriveOnHeadingTask(AttributeState):
    """Drives ahead, or back, along the heading that the robot has at the start.

    Args:
        mobile_base: Of the robot.
        distance: To drive, negative for back [m].
        max_speed: Fastest [m/s], without a sign.
        time_allowance: Longest time [s].

    Raises:
        InputError: numbers that are not finite, or a speed or time that is not positive.
    """

    state_attributes = ("driven_distance", "_start_pose", "_start_time")

    def __init__(self, mobile_base: MobileBase, distance: float, max_speed: float, time_allowance: float) -> None:
        _check_finite(distance=distance)
        check_positive(speed=max_speed, time_allowance=time_allowance)
        speed_limit = mobile_base.limits.max_forward_speed if distance > 0.0 else mobile_base.limits.max_backward_speed
        if speed_limit == 0.0:
            raise InputError("this base does not drive back", valid="a distance ahead")
        self._mobile_base, self._distance, self._time_allowance = mobile_base, distance, time_allowance
        self._max_speed = min(max_speed, speed_limit)
        self.driven_distance = 0.0
        self._start_pose: tuple[float, float, float] | None = None
        self._start_time: float | None = None

    def compute_command(self, state: NavigationState) -> PlanarTwist | None:
        """See ``Task``."""
        if self._start_pose is None or self._start_time is None:
            self._start_pose, self._start_time = (state.pose.x, state.pose.y, state.pose.theta), state.time
        motion = SE2(*self._start_pose).inverse() @ state.pose
        self.driven_distance = motion.x
        remaining = self._distance - motion.x
        if remaining * self._distance <= 0.0 or abs(remaining) < _DISTANCE_TOLERANCE:
            return None
        if state.time - self._start_time > self._time_allowance:
            raise TimeAllowanceExceededError(
                f"drove {self.driven_distance:.2f} of {self._distance:.2f} m in the time allowed"
            )
        speed = self._mobile_base.approach_speed(
            abs(remaining), self._max_speed, self._mobile_base.limits.max_acceleration
        )
        signed_speed = math.copysign(max(speed, 0.02), self._distance)
        # keeps its heading, as a rail would
        angular_speed = max(-0.5, min(0.5, -2.0 * motion.theta - 2.0 * math.copysign(1.0, signed_speed) * motion.y))
        twist = PlanarTwist(signed_speed, 0.0, angular_speed)
        self._mobile_base.assert_collision_free(state, twist)
        return twist


class WaitTask(AttributeState):
    """Stands still.

    Args:
        duration: How long.

    Raises:
        InputError: not a positive time.
    """

    state_attributes = ("remaining_time", "_end_time")

    def __init__(self, duration: float) -> None:
        check_positive(time=duration)
        self.remaining_time = duration
        self._end_time: float | None = None

    def compute_command(self, state: NavigationState) -> PlanarTwist | None:
        """See ``Task``."""
        if self._end_time is None:
            self._end_time = state.time + self.remaining_time
        self.remaining_time = max(self._end_time - state.time, 0.0)
        return ZERO_TWIST if self.remaining_time > 1e-9 else None


def _check_finite(**values: float) -> None:
    for name, value in values.items():
        if not math.isfinite(value):
            raise InputError(f"{name} = {value}", valid="a finite number")


def check_positive(**values: float) -> None:
    """Refuse arguments that are not positive and finite.

    Raises:
        InputError: it names the first.
    """
    _check_finite(**values)
    for name, value in values.items():
        if value <= 0.0:
            raise InputError(f"{name} = {value}", valid="more than 0")


_STANDSTILL_SPEEDS = (0.01, 0.02)
"""Slower than this the base stands [m/s], [rad/s]."""
_TARGET_TOLERANCE_RATIO = 0.5
"""It drives on until it is so much nearer than tolerated, lest noise in its pose undo the arrival."""


class ApproachPoseTask(AttributeState):
    """Drives straight to a near pose and stops there.

    Each of place and heading is approached as fast as can still be braked within what is left of it.

    Args:
        mobile_base: Of the robot; its base goes sideways.
        goal: In the map.
        tolerance: How near is there.
        config: How fast, and how long it may take.
    """

    state_attributes = ("_start_time",)

    def __init__(self, mobile_base: MobileBase, goal: SE2, tolerance: GoalTolerance, config: ApproachConfig) -> None:
        self._mobile_base, self._goal, self._tolerance, self._config = mobile_base, goal, tolerance, config
        self._start_time: float | None = None

    def compute_command(self, state: NavigationState) -> PlanarTwist | None:
        """See ``Task``; raises Blocked, TimeOut."""
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
                f"still {distance:.3f} m and {angle:.3f} rad from the goal after the time allowed"
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
