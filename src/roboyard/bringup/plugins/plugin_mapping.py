"""What a plugin becomes: nodes, topics, limits and findings (`PluginMapping`); speed limits as drive plugins state
them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from roboyard.bringup.plugins.reader import PluginReader
from roboyard.bringup.robot_config import DriveLimits, RobotNodeConfig
from roboyard.bringup.servo_gains import JointServoGains
from roboyard.hardware.interface import BaseMotion


@dataclass(frozen=True)
class JointCommandGroup:
    """Joints that take set-points from topics, in one mode."""

    mode: str
    joints: tuple[str, ...]
    topics: tuple[str, ...]
    initial: tuple[float, ...] = ()


@dataclass(frozen=True)
class PluginMapping:
    """Nodes, and what goes with them.

    Attributes:
        nodes: By name, in the order in which they come up.
        is_drive: Whether they move the robot (there can be one such part).
        command_groups: Joints for the joint command nodes.
        topics: Where standard topics lie.
        limits: Of the drive.
        base_motion: What of the body's velocity is commanded.
        base_frame: That odometry moves.
        gains: Of joints' servos.
        min_joint_state_rate: At which joints must be read at least [Hz].
        inactive_nodes: Nodes that are offered, but do not come up by themselves.
        findings: What was guessed or left out.
    """

    nodes: dict[str, RobotNodeConfig] = field(default_factory=dict)
    is_drive: bool = False
    command_groups: tuple[JointCommandGroup, ...] = ()
    topics: dict[str, str] = field(default_factory=dict)
    limits: DriveLimits | None = None
    base_motion: BaseMotion | None = None
    base_frame: str | None = None
    min_joint_state_rate: float | None = None
    gains: dict[str, JointServoGains] = field(default_factory=dict)
    inactive_nodes: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()


DEFAULT_SPEED, DEFAULT_ANGULAR_SPEED = 1.0, 2.0
"""For drives whose description states no limits [m/s, rad/s]."""


@dataclass(frozen=True, slots=True)
class SpeedLimits:
    """What a drive may do; None where the plugin says nothing.

    Attributes:
        speed: Forward [m/s].
        reverse_speed: Backwards [m/s].
        angular_speed: About the vertical [rad/s].
        acceleration: [m/s²].
        deceleration: [m/s²].
        angular_acceleration: About the vertical [rad/s²].
    """

    speed: float | None = None
    reverse_speed: float | None = None
    angular_speed: float | None = None
    acceleration: float | None = None
    deceleration: float | None = None
    angular_acceleration: float | None = None

    @property
    def drive_limits(self) -> DriveLimits:
        """For planners and people."""
        return DriveLimits(self.speed, self.angular_speed, self.acceleration, self.angular_acceleration)

    def node_parameters(self) -> dict[str, Any]:
        """Of a drive node."""
        values = {
            "speed": self.speed if self.speed is not None else DEFAULT_SPEED,
            "turn_rate": self.angular_speed if self.angular_speed is not None else DEFAULT_ANGULAR_SPEED,
            "reverse_speed": self.reverse_speed,
            "acceleration": self.acceleration,
            "deceleration": self.deceleration,
            "turn_acceleration": self.angular_acceleration,
        }
        return {name: value for name, value in values.items() if value is not None}


def read_speed_limits(reader: PluginReader) -> SpeedLimits:
    """The limits of Gazebo's drive plugins.

    ``max_velocity`` and its kin hold for both forward and turning, as in Gazebo; the more special ones go before.
    Minima are those of the signed values: the way backwards, and braking.
    """

    def bound(*tags: str) -> float | None:
        value = reader.number(*tags)
        return None if value is None else abs(value)

    def minimum(*tags: str) -> float | None:
        value = reader.number(*tags)
        return None if value is None else max(-value, 0.0)

    speed = bound("max_linear_velocity", "max_velocity", "max_speed")
    reverse = minimum("min_linear_velocity", "min_velocity")
    acceleration = bound("max_linear_acceleration", "max_acceleration", "max_wheel_acceleration")
    deceleration = minimum("min_linear_acceleration", "min_acceleration")
    for tag in ("min_angular_velocity", "min_angular_acceleration"):
        low, high = reader.number(tag), reader.number(tag.replace("min", "max"))
        if low is not None and high is not None and abs(low) != abs(high):
            reader.add_finding(f"<{tag}> {low:g} not followed: turning is limited alike both ways")
    reader.mark_ignored(
        ["min_jerk", "max_jerk", "min_linear_jerk", "max_linear_jerk", "min_angular_jerk", "max_angular_jerk"],
        "the drive ramps without a limit on jerk",
    )
    return SpeedLimits(
        speed,
        None if reverse is None or reverse == speed else reverse,
        bound("max_angular_velocity", "max_velocity"),
        acceleration,
        None if not deceleration or deceleration == acceleration else deceleration,
        bound("max_angular_acceleration", "max_acceleration"),
    )
