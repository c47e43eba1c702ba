"""Contract of controllers, and what they share: motion limits, goal checker and speed limit."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

from roboyard.config import Config, parameter
from roboyard.control import PlanarTwist
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2, wrap_angle
from roboyard.navigation.costmap import Costmap
from roboyard.navigation.path import Path

DEFAULT_CONTROL_PERIOD = 0.05
"""Time between two commands of a controller, unless its user states another [s]."""

_POSITIVE_LIMITS = ("max_forward_speed", "max_angular_speed", "max_acceleration", "max_angular_acceleration")
"""Motion limits that must not be 0."""


@dataclass(frozen=True, slots=True)
class MotionLimits:
    """Motion limits of a mobile base.

    Attributes:
        max_forward_speed: Largest speed forward [m/s].
        max_backward_speed: Largest speed backward, as a positive number [m/s]; 0: the robot never drives backward.
        max_lateral_speed: Largest speed to either side [m/s]; 0: the base does not move sideways.
        max_angular_speed: Largest angular speed to either side [rad/s].
        max_acceleration: Largest acceleration and deceleration [m/s²].
        max_angular_acceleration: Largest angular acceleration and deceleration [rad/s²].
        command_latency: Time from a command to the reaction of the base [s]; controllers start from the predicted pose.
        min_speed: Smallest speed that the base follows [m/s].
        min_angular_speed: Smallest angular speed that the base follows when it rotates in place [rad/s].

    Raises:
        ConfigError: A number is out of its range, or a smallest speed exceeds the largest.
    """

    max_forward_speed: float = 0.5
    max_backward_speed: float = 0.2
    max_lateral_speed: float = 0.0
    max_angular_speed: float = 1.5
    max_acceleration: float = 2.5
    max_angular_acceleration: float = 3.2
    command_latency: float = 0.0
    min_speed: float = 0.0
    min_angular_speed: float = 0.0

    def __post_init__(self) -> None:
        # controllers make limited copies in every period, for which the checks of `parameter` would take too long
        for field in fields(self):
            value = getattr(self, field.name)
            is_positive = field.name in _POSITIVE_LIMITS
            if not (math.isfinite(value) and (value > 0.0 if is_positive else value >= 0.0)):
                valid = "a positive number" if is_positive else "zero or more"
                raise ConfigError(f"{field.name} = {value}", location="MotionLimits", valid=valid)
        if self.min_speed > self.max_forward_speed or self.min_angular_speed > self.max_angular_speed:
            raise ConfigError(
                f"min_speed = {self.min_speed}, min_angular_speed = {self.min_angular_speed}", location="MotionLimits",
                valid=f"at most max_forward_speed and max_angular_speed, {self.max_forward_speed} and "
                f"{self.max_angular_speed}",
            )  # fmt: skip

    def nearest_executable(self, twist: PlanarTwist) -> PlanarTwist:
        """Return the nearest command that the base follows: a command that is too slow becomes faster on the same arc.

        If the arc is too tight for that, or the command only rotates, the base rotates in place, fast enough.
        """
        speed, angular_speed = math.hypot(twist.vx, twist.vy), abs(twist.wz)
        if speed >= self.min_speed and speed > 0.0:
            return twist
        factor = self.min_speed / speed if speed > 0.0 else math.inf
        if math.isfinite(factor) and factor * angular_speed <= self.max_angular_speed:
            return PlanarTwist(twist.vx * factor, twist.vy * factor, twist.wz * factor)
        return PlanarTwist(
            0.0,
            0.0,
            math.copysign(max(angular_speed, self.min_angular_speed), twist.wz) if angular_speed > 0.0 else 0.0,
        )

    def with_max_speed(self, speed: float) -> MotionLimits:
        """Return limits of the same base with at most ``speed`` [m/s], which is more than 0, in any direction."""
        lower = {
            name: min(getattr(self, name), speed)
            for name in ("max_forward_speed", "max_backward_speed", "max_lateral_speed", "min_speed")
        }
        return replace(self, **lower)


class Controller(Protocol):
    """Contract of a controller that follows a path among obstacles, as nav2_core::Controller.

    A factory makes one controller per navigator from the robot's footprint, the motion limits of its base, the period
    between two commands, the tolerance of goals, and the user's settings; limits, footprint and period come from the
    robot's file and the navigator, so a controller has no parameters for them.

    The navigator calls `set_path` (setPlan in Nav2) when it has planned or replanned, and in each period first
    `is_goal_reached` (isGoalReached of Nav2's goal checker) and then `compute_velocity` (computeVelocityCommands).  It
    calls `set_speed_limit` (setSpeedLimit) at any time.

    A controller is deterministic: two controllers that get the same calls return the same commands to the last bit.
    Random numbers come from a seeded generator of its own, and time from the number of calls.  It changes neither the
    path nor the costmap.  `roboyard.navigation.check_controller` tests a controller against this contract.
    """

    def set_path(self, path: Path) -> None:
        """Start to follow a path, instead of any other before.

        Args:
            path: Poses in the frame of the map, as those of the later costmaps; the last one is the goal.  Poses whose
                heading points away from the next pose are driven backward.

        Raises:
            InputError: The path has no poses.
        """
        ...

    def compute_velocity(self, pose: SE2, twist: PlanarTwist, costmap: Costmap) -> PlanarTwist:
        """Compute the velocity that the base drives until the next call.

        Args:
            pose: ``T_map_base``: pose of the base in the frame of the map.
            twist: Velocity of the base in its own frame [m/s, rad/s], measured or last commanded.
            costmap: Costs around the robot, in the frame of the map; cells outside of it are unknown.

        Returns:
            Velocity in the frame of the base [m/s, rad/s], finite and within the motion limits and the speed limit.  It
            differs from ``twist`` by no more than the accelerations allow in one period, and the base can stop from it
            without a collision.

        Raises:
            NoSafeCommandError: Every command leads to a collision, or none continues along the path (cause
                ``no_safe_command``); the navigator stops the robot, and recovers after ``no_command_timeout``.
            NavigationError: There is no path yet.
            InputError: The velocity is not finite.
        """
        ...

    def is_goal_reached(self, pose: SE2) -> bool:
        """Return whether a base at ``T_map_base`` is at the end of the path, within the tolerance.

        The result is False before the first path, and in the middle of a path that passes its own end.
        """
        ...

    def set_speed_limit(self, speed: float | None) -> None:
        """Limit the speed of all later commands [m/s]; 0 holds the robot, None ends the limit.

        Raises:
            ConfigError: The speed is negative or not finite; the limit stays as it was.
        """
        ...

    def save_state(self) -> dict[str, Any]:
        """Return everything but the path that later commands depend on, the speed limit included.

        The state is plain data: dicts with text keys, lists, tuples, numbers, texts, None and NumPy arrays.  Later
        calls do not change it.
        """
        ...

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore a state after `set_path` with the same path; the controller then continues as the saved one would.

        Args:
            saved: What `save_state` of a controller with the same arguments returned.
        """
        ...


class GoalTolerance(Config):
    """Tolerance within which a goal counts as reached."""

    xy: float = parameter(
        0.1, unit="m", low=1e-3, high=100.0, aliases=("xy_goal_tolerance",), doc="Tolerance of the position."
    )
    yaw: float = parameter(
        0.15,
        unit="rad",
        low=1e-3,
        high=math.pi + 1e-9,
        aliases=("yaw_goal_tolerance",),
        doc="Tolerance of the heading; pi: any heading.",
    )


class GoalChecker:
    """Goal checker: once the position is reached, it may drift a little while the robot rotates to the heading.

    Args:
        tolerance: Tolerance of position and heading.
    """

    _DRIFT_RATIO = 1.5  # factor of the tolerance of the position while the robot rotates

    def __init__(self, tolerance: GoalTolerance) -> None:
        self._tolerance = tolerance
        self._goal: SE2 | None = None
        self._is_position_reached = False

    def set_goal(self, goal: SE2) -> None:
        """Set the goal; if it has moved by less than half the tolerance, a reached position stays reached."""
        if self._goal is None or self._goal.distance(goal) > 0.5 * self._tolerance.xy:
            self._is_position_reached = False
        self._goal = goal

    def is_position_reached(self, pose: SE2) -> bool:
        """Return whether the position is reached, so that only the heading remains."""
        if self._goal is None:
            return False
        max_distance = self._tolerance.xy * (self._DRIFT_RATIO if self._is_position_reached else 1.0)
        self._is_position_reached = pose.distance(self._goal) <= max_distance
        return self._is_position_reached

    def remaining_rotation(self, pose: SE2) -> float:
        """Return the rotation to the heading of the goal [rad]; 0 if any heading is within the tolerance."""
        if self._goal is None or self._tolerance.yaw >= math.pi:
            return 0.0
        return wrap_angle(self._goal.theta - pose.theta)

    def save_state(self) -> bool:
        """Return whether the position was reached."""
        return self._is_position_reached

    def load_state(self, saved: bool) -> None:
        """Restore what `save_state` returned, after `set_goal`."""
        self._is_position_reached = saved

    def is_goal_reached(self, pose: SE2) -> bool:
        """Return whether position and heading are reached."""
        return self.is_position_reached(pose) and abs(self.remaining_rotation(pose)) <= self._tolerance.yaw


@dataclass(frozen=True, slots=True)
class SpeedLimit:
    """Speed limit as in nav2_msgs/SpeedLimit.

    Attributes:
        value: Speed [m/s], or percentage of the robot's largest speed; 0: no limit.
        percentage: Whether the value is a percentage.

    Raises:
        InputError: The value is negative or not finite, or more than 100 percent.
    """

    value: float = 0.0
    percentage: bool = False

    def __post_init__(self) -> None:
        max_value = 100.0 if self.percentage else math.inf
        if not (math.isfinite(self.value) and 0.0 <= self.value <= max_value):
            valid = "0 to 100 percent" if self.percentage else "m/s, 0 (no limit) or more"
            raise InputError(f"a speed limit of {self.value}", valid=valid)

    def max_speed(self, robot_max_speed: float) -> float:
        """Return the speed allowed to a robot with the given largest speed, and never more than that [m/s]."""
        if self.value == 0.0:
            return robot_max_speed
        return robot_max_speed * self.value / 100.0 if self.percentage else min(self.value, robot_max_speed)

    def apply_to_limits(self, limits: MotionLimits) -> MotionLimits:
        """Return the motion limits under this limit: all velocities scaled by one ratio, accelerations unchanged."""
        ratio = self.max_speed(limits.max_forward_speed) / limits.max_forward_speed
        return replace(
            limits,
            max_forward_speed=limits.max_forward_speed * ratio,
            max_backward_speed=limits.max_backward_speed * ratio,
            max_lateral_speed=limits.max_lateral_speed * ratio,
            max_angular_speed=limits.max_angular_speed * ratio,
        )

    def apply(self, twist: PlanarTwist, robot_max_speed: float) -> PlanarTwist:
        """Return a command within this limit: one that is too fast becomes slower along the same arc."""
        speed, allowed = math.hypot(twist.vx, twist.vy), self.max_speed(robot_max_speed)
        if speed <= allowed:
            return twist
        ratio = allowed / speed
        return PlanarTwist(twist.vx * ratio, twist.vy * ratio, twist.wz * ratio)


def strictest_limit(limits: tuple[SpeedLimit, ...], robot_max_speed: float) -> SpeedLimit:
    """Return the limit that allows the lowest speed; without any, one that limits nothing."""
    return min(limits, key=lambda limit: limit.max_speed(robot_max_speed), default=SpeedLimit())
