"""Controller interface, motion limits, goal checker and speed limit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol

from roboyard.config import Config, parameter
from roboyard.control import PlanarTwist
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2, wrap_angle
from roboyard.navigation.costmap import Costmap
from roboyard.navigation.path import Path

DEFAULT_CONTROL_PERIOD = 0.05
"""Time between two commands of a controller, unless its user states another [s]."""


@dataclass(frozen=True, slots=True)
class MotionLimits:
    """Motion limits of a mobile base.

    Attributes:
        max_forward_speed: Fastest ahead [m/s].
        max_backward_speed: Fastest back, as a positive number [m/s]; 0: never back.
        max_lateral_speed: Fastest to either side [m/s]; 0 for a base that cannot.
        max_angular_speed: Fastest turning to either side [rad/s].
        max_acceleration: Of driving, either way [m/s²].
        max_angular_acceleration: Of turning, either way [rad/s²].
        command_latency: How long a command takes until the base answers it [s]: commands are chosen for where it is
            by then.
        min_speed: Slowest command to drive that the base follows [m/s].
        min_angular_speed: Slowest command to turn on the spot that it follows [rad/s].

    Raises:
        ConfigError: a number out of range.
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
        for name in ("max_forward_speed", "max_angular_speed", "max_acceleration", "max_angular_acceleration"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise ConfigError(f"{name} = {value}", location="MotionLimits", valid="a positive number")
        for name in ("max_backward_speed", "max_lateral_speed", "command_latency", "min_speed", "min_angular_speed"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0):
                raise ConfigError(f"{name} = {value}", location="MotionLimits", valid="zero or more")
        if self.min_speed > self.max_forward_speed or self.min_angular_speed > self.max_angular_speed:
            raise ConfigError(
                f"min_speed = {self.min_speed}, min_angular_speed = {self.min_angular_speed}", location="MotionLimits",
                valid=f"at most max_forward_speed and max_angular_speed, {self.max_forward_speed} and "
                f"{self.max_angular_speed}",
            )  # fmt: skip

    def nearest_executable(self, twist: PlanarTwist) -> PlanarTwist:
        """The nearest command that the base follows: too slow a drive becomes faster on the same arc.

        Where the arc is too tight for that, and where it only turns, it turns on the spot, fast enough.
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
        """The same base, driving no faster than ``speed`` (more than 0) in any direction [m/s]."""
        lower = {
            name: min(getattr(self, name), speed)
            for name in ("max_forward_speed", "max_backward_speed", "max_lateral_speed", "min_speed")
        }
        return replace(self, **lower)


class Controller(Protocol):
    """Follows a path among obstacles, one command at a time.

    Deterministic: the same calls give the same bits.
    """

    def set_path(self, path: Path) -> None:
        """Set the path to follow; its poses are in the map frame of the costmaps that follow."""
        ...

    def compute_velocity(self, pose: SE2, twist: PlanarTwist, costmap: Costmap) -> PlanarTwist:
        """The velocity to drive until the next call.

        Args:
            pose: ``T_map_base`` now.
            twist: Velocity now: measured, or of the last command where the base follows those well.
            costmap: What is known about the surroundings now.

        Raises:
            NavigationError: there is no safe command; its class says why.
        """
        ...

    def is_goal_reached(self, pose: SE2) -> bool:
        """Whether the robot, at ``T_map_base``, is at the end of the path, within the tolerance."""
        ...

    def set_speed_limit(self, speed: float | None) -> None:
        """Drive no faster than this from now on [m/s]; 0 holds the robot, None ends the limit.

        Raises:
            ConfigError: a negative speed, or one that is not finite.
        """
        ...

    def save_state(self) -> dict[str, Any]:
        """State between calls, without the path, as plain data."""
        ...

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`, after ``follow``."""
        ...


class GoalTolerance(Config):
    """Tolerance within which a goal counts as reached."""

    xy: float = parameter(0.1, unit="m", low=1e-3, high=100.0, doc="Tolerance of the position.")
    yaw: float = parameter(
        0.15, unit="rad", low=1e-3, high=math.pi + 1e-9, doc="Tolerance of the heading; pi: any heading."
    )


class GoalChecker:
    """Goal checker: once the position is reached, it may drift a little while the robot rotates to the heading.

    Args:
        tolerance: How near is near enough.
    """

    _DRIFT_RATIO = 1.5  # of the tolerated distance: how far the robot may slip while it turns

    def __init__(self, tolerance: GoalTolerance) -> None:
        self._tolerance = tolerance
        self._goal: SE2 | None = None
        self._is_position_reached = False

    def set_goal(self, goal: SE2) -> None:
        """Go by another goal; one that has hardly moved keeps what is known."""
        if self._goal is None or self._goal.distance(goal) > 0.5 * self._tolerance.xy:
            self._is_position_reached = False
        self._goal = goal

    def is_position_reached(self, pose: SE2) -> bool:
        """Whether only the heading is left to reach."""
        if self._goal is None:
            return False
        max_distance = self._tolerance.xy * (self._DRIFT_RATIO if self._is_position_reached else 1.0)
        self._is_position_reached = pose.distance(self._goal) <= max_distance
        return self._is_position_reached

    def remaining_rotation(self, pose: SE2) -> float:
        """How far to turn to the goal's heading [rad], 0 where any will do."""
        if self._goal is None or self._tolerance.yaw >= math.pi:
            return 0.0
        return wrap_angle(self._goal.theta - pose.theta)

    def save_state(self) -> bool:
        """What it remembers."""
        return self._is_position_reached

    def load_state(self, saved: bool) -> None:
        """Counterpart of `save`, after ``expect``."""
        self._is_position_reached = saved

    def is_goal_reached(self, pose: SE2) -> bool:
        """Whether place and heading are reached."""
        return self.is_position_reached(pose) and abs(self.remaining_rotation(pose)) <= self._tolerance.yaw


@dataclass(frozen=True, slots=True)
class SpeedLimit:
    """Speed limit as in nav2_msgs/SpeedLimit.

    Attributes:
        value: Speed [m/s], or percents of the robot's own fastest; 0: no limit.
        percentage: Which of the two.

    Raises:
        InputError: a value that is negative or not finite, or more than 100 percent.
    """

    value: float = 0.0
    percentage: bool = False

    def __post_init__(self) -> None:
        max_value = 100.0 if self.percentage else math.inf
        if not (math.isfinite(self.value) and 0.0 <= self.value <= max_value):
            valid = "0 to 100 percent" if self.percentage else "m/s, 0 (no limit) or more"
            raise InputError(f"a speed limit of {self.value}", valid=valid)

    def max_speed(self, robot_max_speed: float) -> float:
        """What it allows a robot whose own fastest is ``robot_max_speed``; never more than that [m/s]."""
        if self.value == 0.0:
            return robot_max_speed
        return robot_max_speed * self.value / 100.0 if self.percentage else min(self.value, robot_max_speed)

    def apply_to_limits(self, limits: MotionLimits) -> MotionLimits:
        """The robot's limits under it: all velocities in the same ratio, accelerations as they are."""
        ratio = self.max_speed(limits.max_forward_speed) / limits.max_forward_speed
        return replace(
            limits,
            max_forward_speed=limits.max_forward_speed * ratio,
            max_backward_speed=limits.max_backward_speed * ratio,
            max_lateral_speed=limits.max_lateral_speed * ratio,
            max_angular_speed=limits.max_angular_speed * ratio,
        )

    def apply(self, twist: PlanarTwist, robot_max_speed: float) -> PlanarTwist:
        """A command under it: slower where it is too fast, along the same arc."""
        speed, allowed = math.hypot(twist.vx, twist.vy), self.max_speed(robot_max_speed)
        if speed <= allowed:
            return twist
        ratio = allowed / speed
        return PlanarTwist(twist.vx * ratio, twist.vy * ratio, twist.wz * ratio)


def strictest_limit(limits: tuple[SpeedLimit, ...], robot_max_speed: float) -> SpeedLimit:
    """The one of several limits that allows least, or none at all where there are none."""
    return min(limits, key=lambda limit: limit.max_speed(robot_max_speed), default=SpeedLimit())
