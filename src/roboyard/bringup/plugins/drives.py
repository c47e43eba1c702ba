"""Mappers of drive plugins: differential, skid-steer, mecanum, planar, velocity-controlled and Ackermann drives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from roboyard.bringup.plugins.odometry import GROUND_TRUTH_ODOMETRY_NODE, OdometryOutput, read_odometry_output
from roboyard.bringup.plugins.plugin_mapping import PluginMapping, read_drive_limits
from roboyard.bringup.plugins.reader import PluginReader
from roboyard.bringup.robot_config import RobotNodeConfig
from roboyard.bringup.wheel_geometry import Wheel, axle_offset, has_rollers, wheels_on
from roboyard.control.drive_config import (
    AckermannDriveConfig,
    DifferentialDriveConfig,
    DriveLimits,
    FreeBaseConfig,
    MecanumDriveConfig,
    PlanarBaseConfig,
)
from roboyard.description.model import Model
from roboyard.errors import DescriptionError

LEFT_WHEEL_TAGS = ("left_joint", "leftJoint", "left_front_joint", "leftFrontJoint", "left_rear_joint", "leftRearJoint",
        "front_left_joint", "back_left_joint", "rear_left_joint")  # fmt: skip
RIGHT_WHEEL_TAGS = tuple(tag.replace("left", "right") for tag in LEFT_WHEEL_TAGS)

_ACKERMANN_LEFT_WHEEL_TAGS = ("left_joint", "front_left_joint", "rear_left_joint")
_ACKERMANN_RIGHT_WHEEL_TAGS = ("right_joint", "front_right_joint", "rear_right_joint")
_ACKERMANN_GAIN_TAGS = (
    "steer_p_gain",
    *(f"{side}_{gain}" for side in ("left_steering", "right_steering", "linear_velocity")
      for gain in ("pid_gain", "i_range")),
)  # fmt: skip

_DEFAULT_WHEEL_RADIUS = 0.2
"""Wheel radius that Gazebo's drives use where the description states none [m]."""


def names_wheels_of_two_sides(reader: PluginReader) -> bool:
    """Return whether an unknown plugin names joints on the left and on the right."""
    return reader.has(*LEFT_WHEEL_TAGS) and reader.has(*RIGHT_WHEEL_TAGS)


def map_differential_drive(reader: PluginReader) -> PluginMapping:
    """Map differential and skid-steer drive plugins.

    Raises:
        DescriptionError: A plugin names unknown joints, or its numbers are invalid.
    """
    odometry, limits = read_odometry_output(reader, _root_link_name(reader)), read_drive_limits(reader)
    drive = read_drive_geometry(reader, odometry)
    reader.mark_ignored(
        ["max_wheel_torque", "torque", "wheel_torque", "wheelTorque"], "the joints' own effort limits hold"
    )
    reader.flag("legacyMode", "legacy_mode", default=False)  # of Gazebo's own mix-up of left and right
    reader.mark_ignored(["num_wheel_pairs"], "all wheels named count")
    return differential_drive_mapping(drive, limits, odometry, reader.findings())


def differential_drive_mapping(
    drive: DifferentialDriveConfig, limits: DriveLimits, odometry: OdometryOutput, findings: tuple[str, ...]
) -> PluginMapping:
    """Return arbiter, drive and odometry of the wheels of two sides."""
    parameters: dict[str, Any] = {}
    if limits.angular_acceleration is None and limits.acceleration is not None:
        # a limit on the rims' acceleration, as gazebo_ros states it, limits turning about the middle too
        parameters["angular_acceleration"] = 2.0 * limits.acceleration / drive.track
    return PluginMapping(
        nodes={
            "arbiter": RobotNodeConfig("arbiter"),
            "drive": RobotNodeConfig("differential_drive", parameters),
            "odometry": RobotNodeConfig("odometry", odometry.parameters),
        },
        is_drive=True,
        drive=drive,
        topics=odometry.topics,
        limits=limits,
        base_frame=odometry.base_frame,
        min_joint_state_rate=odometry.rate,
        inactive_nodes=() if odometry.is_published else ("odometry",),
        findings=findings,
    )


def read_drive_geometry(reader: PluginReader, odometry: OdometryOutput) -> DifferentialDriveConfig:
    """Read the drive: what the plugin states, and the rest from the positions and shapes of the wheels.

    Raises:
        DescriptionError: The plugin names unknown joints, or its numbers are invalid.
    """
    left, right = reader.joints(*LEFT_WHEEL_TAGS), reader.joints(*RIGHT_WHEEL_TAGS)
    if not left or not right:
        raise DescriptionError(
            "a drive without wheels on both sides", location=reader.location, valid="left and right joints"
        )
    wheels = wheels_on(reader.model, (*left, *right))
    radius = read_wheel_radius(reader, [wheel.radius for wheel in wheels])
    track = reader.number("wheel_separation", "wheelSeparation")
    if track is None:
        left_wheels, right_wheels = wheels[: len(left)], wheels[len(left) :]
        track = float(np.mean([wheel.y for wheel in left_wheels]) - np.mean([wheel.y for wheel in right_wheels]))
        reader.add_finding(f"track {track:g} m taken from the wheels' places: the plugin gives none")
    if track <= 0.0:
        raise DescriptionError(
            f"wheel radius {radius}, track {track}", location=reader.location, valid="positive lengths"
        )
    return DifferentialDriveConfig(
        type="differential", left_joints=left, right_joints=right, wheel_radius=radius, track=track,
        axle_x=axle_offset(reader.model, wheels, odometry.base_frame),
    )  # fmt: skip


def read_wheel_radius(reader: PluginReader, shape_radii: list[float | None]) -> float:
    """Read the radius of the wheels [m]: stated, or of their shape, or Gazebo's default.

    Raises:
        DescriptionError: It is not positive.
    """
    radius = reader.number("wheel_radius", "wheelRadius")
    diameter = reader.number("wheel_diameter", "wheelDiameter")
    if radius is None and diameter is not None:
        radius = diameter / 2.0
    if radius is None:
        radius = next((shape for shape in shape_radii if shape), None)
        source = "the wheels' shape" if radius is not None else "Gazebo's default"
        radius = _DEFAULT_WHEEL_RADIUS if radius is None else radius
        reader.add_finding(f"wheel radius {radius} m taken from {source}: the plugin gives none")
    if radius <= 0.0:
        raise DescriptionError(f"wheel radius {radius}", location=reader.location, valid="a positive length [m]")
    return radius


def _root_link_name(reader: PluginReader) -> str:
    return reader.model.roots[0].name if reader.model.roots else "base_link"


_COMMAND_TIMEOUT = 60.0
"""Time for which a command is valid [s]: the longest of the arbiter; Gazebo keeps a command for ever."""


def map_mecanum_drive(reader: PluginReader) -> PluginMapping:
    """Map Gazebo's MecanumDrive: four wheels that turn, and push the body along their rollers.

    Where the description models no rollers, as links or as friction, the simulation moves the body in the plane.

    Raises:
        DescriptionError: The plugin names unknown joints, or its numbers are invalid.
    """
    joints = tuple(
        joint
        for tag in ("front_left_joint", "front_right_joint", "back_left_joint", "back_right_joint")
        for joint in reader.joints(tag)[:1]
    )
    if len(joints) != 4:
        raise DescriptionError(
            f"a mecanum drive on {len(joints)} wheels", location=reader.location,
            valid="front_left_joint, front_right_joint, back_left_joint and back_right_joint",
        )  # fmt: skip
    wheels = wheels_on(reader.model, joints)
    odometry, limits = read_odometry_output(reader, _root_link_name(reader)), read_drive_limits(reader)
    radius = read_wheel_radius(reader, [w.radius for w in wheels])
    lengths: dict[str, float] = {}
    for name, tags, coordinates in (
        ("wheelbase", ("wheelbase", "wheel_base"), [wheel.x for wheel in wheels]),
        ("track", ("wheel_separation",), [wheels[k].y for k in (0, 2, 1, 3)]),
    ):
        value = reader.number(*tags)
        if value is None:
            value = float(np.mean(coordinates[:2]) - np.mean(coordinates[2:]))
            reader.add_finding(f"{name} {value:g} m taken from the wheels' places: the plugin gives none")
        if value <= 0.0:
            raise DescriptionError(f"{name} {value:g}", location=reader.location, valid="a positive length [m]")
        lengths[name] = value
    have_rollers = all(has_rollers(reader.model, joint) for joint in joints)
    if not have_rollers:
        reader.add_finding(
            "the wheels have no rollers (links that turn, or <fdir1> with a small <mu2>): the body is driven in the "
            "plane, the wheels turn with it"
        )
    return PluginMapping(
        nodes={
            "arbiter": RobotNodeConfig("arbiter"),
            "drive": RobotNodeConfig("mecanum_drive"),
            "odometry": RobotNodeConfig("mecanum_odometry", odometry.parameters),
        },
        is_drive=True,
        drive=MecanumDriveConfig(
            type="mecanum",
            joints=joints,
            wheel_radius=radius,
            wheelbase=lengths["wheelbase"],
            track=lengths["track"],
            axle_x=axle_offset(reader.model, wheels, odometry.base_frame),
            has_rollers=have_rollers,
        ),
        topics=odometry.topics,
        limits=limits.replace({"lateral_speed": limits.speed}),
        base_frame=odometry.base_frame,
        min_joint_state_rate=odometry.rate,
        inactive_nodes=() if odometry.is_published else ("odometry",),
        findings=reader.findings(),
    )


def map_velocity_control(reader: PluginReader) -> PluginMapping:
    """Map Gazebo's VelocityControl: the body accepts all six velocities, and keeps them."""
    parameters: dict[str, Any] = {}
    for name in ("initial_linear", "initial_angular"):
        values = reader.numbers(name)
        if values:
            if len(values) != 3:
                raise DescriptionError(
                    f"{name} of {len(values)} numbers", location=reader.location, valid="three numbers"
                )
            parameters[name] = list(values)
    command = reader.topic("topic")
    reader.mark_ignored(["link_name"], "commands are for the whole model, not for single links")
    reader.add_finding(f"a command holds for {_COMMAND_TIMEOUT:g} s, not for ever")
    arbiter = RobotNodeConfig("arbiter", {"unknown_timeout": _COMMAND_TIMEOUT})
    return PluginMapping(
        nodes={"arbiter": arbiter, "drive": RobotNodeConfig("velocity_base", parameters)},
        is_drive=True,
        topics={"cmd_vel": command} if command and command != "cmd_vel" else {},
        drive=FreeBaseConfig(type="free"),
        findings=reader.findings(),
    )


def map_planar_move(reader: PluginReader) -> PluginMapping:
    """Map gazebo_ros's planar move: the body accepts velocities in the plane; its odometry is the ground truth."""
    odometry = read_odometry_output(reader, _root_link_name(reader))
    reader.add_finding("it has no wheels to count: its odometry is the simulation's ground truth, not an estimate")
    nodes = {
        "arbiter": RobotNodeConfig("arbiter"),
        "drive": RobotNodeConfig("velocity_base", {"timeout": 0.5}),
    }
    parameters = {name: value for name, value in odometry.parameters.items() if name != "rate" or value > 0.0}
    nodes["odometry_truth"] = RobotNodeConfig(GROUND_TRUTH_ODOMETRY_NODE, parameters)
    return PluginMapping(
        nodes=nodes,
        is_drive=True,
        topics=odometry.topics,
        drive=PlanarBaseConfig(type="planar"),
        base_frame=odometry.base_frame,
        inactive_nodes=() if odometry.is_published else ("odometry_truth",),
        findings=reader.findings(),
    )


def map_ackermann_steering(reader: PluginReader) -> PluginMapping:
    """Map Gazebo's AckermannSteering and gazebo_ros's ackermann drive.

    Raises:
        DescriptionError: A plugin names unknown joints, or its numbers are invalid.
    """
    model = reader.model
    left, right = reader.joints(*_ACKERMANN_LEFT_WHEEL_TAGS), reader.joints(*_ACKERMANN_RIGHT_WHEEL_TAGS)
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
    lengths = _read_ackermann_lengths(reader, wheels, unsteered, steering_joints, odometry.base_frame)
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
    reader.mark_ignored(_ACKERMANN_GAIN_TAGS, "the joints' own servos hold")
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
        "wheelbase": _read_ackermann_length(reader, "wheelbase", ("wheel_base", "wheelbase"), None),
        "kingpin_width": _read_ackermann_length(reader, "kingpin_width", ("kingpin_width",), kingpin_width),
        "steering_limit": _read_steering_limit(reader),
    }
    reader.mark_ignored(["wheel_separation", "wheel_radius"], "it drives no wheel")
    reader.mark_ignored(_ACKERMANN_GAIN_TAGS, "the joints' own servos hold")
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


def _read_ackermann_length(reader: PluginReader, name: str, tags: tuple[str, ...], measured: float | None) -> float:
    value = reader.number(*tags)
    if value is None:
        value = measured
        reader.add_finding(f"{name} {value} m taken from the joints' places: the plugin gives none")
    if value is None or value == 0.0 or (value < 0.0 and name != "wheelbase"):
        raise DescriptionError(f"{name} {value}", location=reader.location, valid="a positive length [m]")
    return value


def _read_ackermann_lengths(
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
        "wheelbase": _read_ackermann_length(
            reader, "wheelbase", ("wheel_base", "wheelbase"), None if unsteered_x is None else kingpin_x - unsteered_x
        ),
        "track": _read_ackermann_length(reader, "track", ("wheel_separation",), wheel_distance),
        "kingpin_width": _read_ackermann_length(reader, "kingpin_width", ("kingpin_width",), kingpin_width),
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
