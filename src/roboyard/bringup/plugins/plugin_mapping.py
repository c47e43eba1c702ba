"""What a plugin becomes (`PluginMapping`): nodes, drive, topics, limits, findings; limits as plugins state them."""

from __future__ import annotations

from dataclasses import dataclass, field

from roboyard.bringup.plugins.reader import PluginReader
from roboyard.bringup.robot_config import RobotNodeConfig
from roboyard.bringup.servo_gains import JointServoGains
from roboyard.control.drive_config import AnyDriveConfig, DriveLimits


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
        drive: Joints and geometry of the drive; None where a plugin states none, as those that only steer.
        limits: Of the drive.
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
    drive: AnyDriveConfig | None = None
    limits: DriveLimits | None = None
    base_frame: str | None = None
    min_joint_state_rate: float | None = None
    gains: dict[str, JointServoGains] = field(default_factory=dict)
    inactive_nodes: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()


def read_drive_limits(reader: PluginReader) -> DriveLimits:
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
    return DriveLimits(
        speed=speed,
        reverse_speed=None if reverse is None or reverse == speed else reverse,
        angular_speed=bound("max_angular_velocity", "max_velocity"),
        acceleration=acceleration,
        deceleration=None if not deceleration or deceleration == acceleration else deceleration,
        angular_acceleration=bound("max_angular_acceleration", "max_acceleration"),
    )
