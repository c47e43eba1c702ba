"""Mappers of Ackermann steering plugins."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from roboyard.bringup.plugins.drives import read_wheel_radius
from roboyard.bringup.plugins.odometry import read_odometry_output
from roboyard.bringup.plugins.plugin_mapping import PluginMapping, read_drive_limits
from roboyard.bringup.plugins.reader import PluginReader
from roboyard.bringup.robot_config import RobotNodeConfig
from roboyard.bringup.wheel_geometry import Wheel, axle_offset, wheels_on
from roboyard.control.drive_config import AckermannDriveConfig
from roboyard.description.model import Model
from roboyard.errors import DescriptionError

_LEFT_WHEEL_TAGS = ("left_joint", "front_left_joint", "rear_left_joint")
_GAIN_TAGS = (
    "steer_p_gain",
    *(f"{side}_{gain}" for side in ("left_steering", "right_steering", "linear_velocity")
      for gain in ("pid_gain", "i_range")),
)  # fmt: skip
_RIGHT_WHEEL_TAGS = ("right_joint", "front_right_joint", "rear_right_joint")


def map_ackermann_steering(reader: PluginReader) -> PluginMapping:
    """Map Gazebo's AckermannSteering and gazebo_ros's ackermann drive.

    Raises:
        DescriptionError: A plugin names unknown joints, or its numbers are invalid.
    """
    model = reader.model
    left, right = reader.joints(*_LEFT_WHEEL_TAGS), reader.joints(*_RIGHT_WHEEL_TAGS)
    steering_joints = reader.joints("left_steering_joint"), reader.joints("right_steering_joint")
    if not all(steering_joints):
        raise DescriptionError(
            "no joint that steers", location=reader.location, valid="left_steering_joint and right_steering_joint"
        )
    if reader.flag("steering_only", default=False):
        return _map_steering_only(reader, steering_joints)
    steered_links = {model.joint(name).child for side in steering_joints for name in side}
    odometry = read_odometry_output(reader, model.roots[0].name if model.roots else "base_link")
    limits = read_drive_limits(reader)
    wheels = wheels_on(model, (*left, *right))
    unsteered = [wheel for wheel in wheels if model.joint(wheel.joint).parent not in steered_links]
    lengths = _read_lengths(reader, wheels, unsteered, steering_joints, odometry.base_frame)
    drive = AckermannDriveConfig(
        type="ackermann",
        left_joints=tuple(name for name in left if model.joint(name).parent not in steered_links),
        right_joints=tuple(name for name in right if model.joint(name).parent not in steered_links),
        left_steered_joints=tuple(name for name in left if model.joint(name).parent in steered_links),
        right_steered_joints=tuple(name for name in right if model.joint(name).parent in steered_links),
        left_steering_joints=steering_joints[0],
        right_steering_joints=steering_joints[1],
        steering_limit=_read_steering_limit(reader),
        **lengths,
    )
    reader.mark_ignored(["steering_wheel_joint"], "the wheel in the driver's hand does not turn")
    reader.mark_ignored(_GAIN_TAGS, "the joints' own servos hold")
    return PluginMapping(
        nodes={
            "arbiter": RobotNodeConfig("arbiter"),
            "drive": RobotNodeConfig("ackermann_drive"),
            "odometry": RobotNodeConfig("ackermann_odometry", odometry.parameters),
        },
        is_drive=True,
        drive=drive,
        topics=odometry.topics,
        limits=limits,
        base_frame=odometry.base_frame,
        min_joint_state_rate=odometry.rate,
        inactive_nodes=()
        if odometry.is_published and wheels
        else ("odometry",),  # without wheels nothing tells the way
        findings=reader.findings(),
    )


def _map_steering_only(reader: PluginReader, steering_joints: tuple[tuple[str, ...], tuple[str, ...]]) -> PluginMapping:
    """Map a plugin that steers the wheels by a commanded angle, and drives none."""
    left, right = steering_joints
    _, kingpin_width = _measure_kingpins(reader.model, left, right)
    lengths = {
        "wheelbase": _read_length(reader, "wheelbase", ("wheel_base", "wheelbase"), None),
        "kingpin_width": _read_length(reader, "kingpin_width", ("kingpin_width",), kingpin_width),
        "steering_limit": _read_steering_limit(reader),
    }
    reader.mark_ignored(["wheel_separation", "wheel_radius"], "it drives no wheel")
    reader.mark_ignored(_GAIN_TAGS, "the joints' own servos hold")
    topic = reader.topic("sub_topic", "topic")
    joints = {"left_steering_joints": list(left), "right_steering_joints": list(right)}
    spec = RobotNodeConfig("steering", {**joints, **lengths}, {"steering_angle": topic} if topic else {})
    return PluginMapping(nodes={"steering": spec}, is_drive=True, findings=reader.findings())


def _measure_kingpins(model: Model, left: Sequence[str], right: Sequence[str]) -> tuple[float, float]:
    """Return the position of the steering axes ahead of the model's origin, and the distance between the sides [m]."""
    left_poses, right_poses = (
        [model.link(model.joint(name).child).T_model_link @ model.joint(name).T_child_joint for name in side]
        for side in (left, right)
    )
    kingpin_x = float(np.mean([pose.x for pose in (*left_poses, *right_poses)]))
    return kingpin_x, float(np.mean([pose.y for pose in left_poses]) - np.mean([pose.y for pose in right_poses]))


def _read_length(reader: PluginReader, name: str, tags: tuple[str, ...], measured: float | None) -> float:
    value = reader.number(*tags)
    if value is None:
        value = measured
        reader.add_finding(f"{name} {value} m taken from the joints' places: the plugin gives none")
    if value is None or value == 0.0 or (value < 0.0 and name != "wheelbase"):
        raise DescriptionError(f"{name} {value}", location=reader.location, valid="a positive length [m]")
    return value


def _read_lengths(
    reader: PluginReader,
    wheels: list[Wheel],
    unsteered: list[Wheel],
    steering_joints: tuple[Sequence[str], Sequence[str]],
    base_frame: str | None,
) -> dict[str, float]:
    """Return the drive's lengths [m]: what the plugin says, the rest from where wheels and steering joints are."""
    model = reader.model
    kingpin_x, kingpin_width = _measure_kingpins(model, *steering_joints)
    unsteered_x = float(np.mean([wheel.x for wheel in unsteered])) if unsteered else None
    ys = [wheel.y for wheel in wheels]
    wheel_distance = float(np.mean([y for y in ys if y > 0.0] or [0.0]) - np.mean([y for y in ys if y < 0.0] or [0.0]))
    lengths = {
        "wheel_radius": read_wheel_radius(reader, [wheel.radius for wheel in wheels]),
        "wheelbase": _read_length(
            reader, "wheelbase", ("wheel_base", "wheelbase"), None if unsteered_x is None else kingpin_x - unsteered_x
        ),
        "track": _read_length(reader, "track", ("wheel_separation",), wheel_distance),
        "kingpin_width": _read_length(reader, "kingpin_width", ("kingpin_width",), kingpin_width),
    }
    base = next((link for link in model.links if link.name == base_frame), model.roots[0])
    lengths["axle_x"] = (
        axle_offset(model, unsteered, base_frame)
        if unsteered
        else round(kingpin_x - lengths["wheelbase"] - base.T_model_link.x, 9)
    )
    return lengths


def _read_steering_limit(reader: PluginReader) -> float:
    """Read the largest steering angle [rad]."""
    limit = reader.number("steering_limit", "max_steer")
    reader.mark_ignored(["max_steering_angle"], "of the wheel in the driver's hand")
    if limit is None:
        limit = 0.5
        reader.add_finding("steering limit 0.5 rad taken: the plugin gives none")
    if not 0.0 < limit < 0.5 * math.pi:
        raise DescriptionError(f"steering limit {limit:g}", location=reader.location, valid="between 0 and pi/2 rad")
    return limit
