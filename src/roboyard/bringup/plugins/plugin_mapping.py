"""What a plugin becomes (`PluginMapping`): nodes, drive, topics, limits, findings; limits as plugins state them."""

from __future__ import annotations

from dataclasses import dataclass, field

from roboyard.bringup.plugins.reader import PluginReader
from roboyard.bringup.robot_config import RobotNodeConfig
from roboyard.bringup.servo_gains import JointServoGains
from roboyard.control.drive_config import AnyDriveConfig, DriveLimits


@dataclass(frozen=True)
class JointCommandGroup:
    """Joints that take set-points of one command mode from topics."""

    mode: str
    joints: tuple[str, ...]
    topics: tuple[str, ...]
    initial: tuple[float, ...] = ()


@dataclass(frozen=True)
class PluginMapping:
    """Nodes that a plugin or controller becomes, and what belongs to them.

    Attributes:
        nodes: Nodes by name, in the order in which they are started.
        is_drive: Whether they move the robot; a robot has at most one such mapping.
        command_groups: Joints for the joint command nodes.
        topics: Other names of standard topics.
        drive: Joints and geometry of the drive; None where a plugin states none, as those that only steer.
        limits: Limits of the drive.
        base_frame: Frame that odometry moves.
        gains: Gains of joint servos.
        min_joint_state_rate: Smallest rate of joint states [Hz].
        inactive_nodes: Nodes that the robot offers, but does not start by itself.
        findings: Assumptions, and settings that are ignored.
    """

    nodes: dict[str, RobotNodeConfig] = field(default_factory=dict)
    is_drive: bool = False
    command_groups: tuple[JointCommandGroup, ...] = ()
    topics: dict[str, str] = field(default_factory=dict)
    drive: AnyDriveConfig | None = None
    limits: DriveLimits | None = None
    base_frame: str | None = None
    min_joint_state_rate: float | None = None
    gains: dict[str, JointServoGains] = field(default_factory=dict)
    inactive_nodes: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()


def read_drive_limits(reader: PluginReader) -> DriveLimits:
    """Read the limits of a drive plugin of Gazebo.

    As in Gazebo, ``max_velocity`` and similar parameters limit both driving and turning, and more specific ones
    override them. Minima limit signed values: the speed backward, and braking.
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
    return DriveLimits(
        speed=speed,
        reverse_speed=None if reverse is None or reverse == speed else reverse,
        angular_speed=bound("max_angular_velocity", "max_velocity"),
        acceleration=acceleration,
        deceleration=None if not deceleration or deceleration == acceleration else deceleration,
        angular_acceleration=bound("max_angular_acceleration", "max_acceleration"),
    )
