"""Mappers of drive controllers: differential, mecanum and steering."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from roboyard.bringup.plugins.controller_reader import ControllerReader
from roboyard.bringup.plugins.drives import differential_drive_mapping
from roboyard.bringup.plugins.drives import map_mecanum_drive as mecanum_plugin
from roboyard.bringup.plugins.odometry import OdometryOutput
from roboyard.bringup.plugins.plugin_mapping import PluginMapping
from roboyard.bringup.plugins.reader import PluginReader
from roboyard.bringup.robot_config import RobotNodeConfig
from roboyard.bringup.wheel_geometry import Wheel, axle_offset, wheels_on
from roboyard.control.drive_config import AckermannDriveConfig, DifferentialDriveConfig, DriveLimits
from roboyard.errors import DescriptionError

_SINGLE_TRACK_WIDTH = 1e-3
"""Between the wheels of a single-track vehicle [m]: as good as none."""
_MAX_STEERING_ANGLE = 1.55  # of a steered wheel [rad]; at a right angle there is no way forward


def map_differential_drive_controller(reader: ControllerReader) -> PluginMapping:
    """Map diff_drive_controller of ROS 1 and ROS 2.

    Raises:
        DescriptionError: It names unknown joints, or its numbers are invalid.
    """
    left = reader.joints("left_wheel_names", "left_wheel")
    right = reader.joints("right_wheel_names", "right_wheel")
    if not left or not right:
        raise DescriptionError(
            "no wheels on both sides", location=reader.location, valid="left_wheel_names, right_wheel_names"
        )
    wheels = wheels_on(reader.model, (*left, *right))
    wheel_distance = float(np.mean([w.y for w in wheels[: len(left)]]) - np.mean([w.y for w in wheels[len(left) :]]))
    radius_multiplier = _read_positive(reader, 1.0, "wheel_radius_multiplier")
    radius = _read_wheel_radius(reader, wheels, "wheel_radius") * radius_multiplier
    track = _read_length(reader, "track", wheel_distance, "wheel_separation")
    scales: dict[str, float] = {}
    for name, key, low, high in (
        ("slip_factor", "wheel_separation_multiplier", 0.1, 10.0),
        ("left_radius_scale", "left_wheel_radius_multiplier", 0.5, 2.0),
        ("right_radius_scale", "right_wheel_radius_multiplier", 0.5, 2.0),
    ):
        value = _read_positive(reader, 1.0, key)
        if not low <= value <= high:
            raise DescriptionError(f"{key} {value:g}", location=reader.location, valid=f"{low:g} to {high:g}")
        scales[name] = value
    odometry = _read_odometry_output(reader)
    drive = DifferentialDriveConfig(
        type="differential", left_joints=left, right_joints=right, wheel_radius=radius, track=track,
        axle_x=axle_offset(reader.model, wheels, odometry.base_frame), **scales,
    )  # fmt: skip
    mapping = differential_drive_mapping(drive, _read_drive_limits(reader), odometry, ())
    return _with_command_timeout(reader, mapping)


def map_mecanum_drive_controller(reader: ControllerReader) -> PluginMapping:
    """Map mecanum_drive_controller, and similar controllers of robot manufacturers.

    Raises:
        DescriptionError: As `map_differential_drive_controller`.
    """
    corners = [
        reader.joints(
            f"{end}_{side}_wheel_command_joint_name", f"{end}_{side}_wheel_name", f"{other}_{side}_wheel_name",
            f"{end}_{side}_wheel_joint", f"wheel_{end}_{side}", f"{other}_{side}_wheel_joint",
        )
        for end, other in (("front", "front"), ("rear", "back"))
        for side in ("left", "right")
    ]  # fmt: skip
    wheels = wheels_on(reader.model, [corner[0] for corner in corners if corner])
    if len(wheels) != 4:
        raise DescriptionError(
            f"a mecanum drive on {len(wheels)} wheels", location=reader.location, valid="four wheels"
        )
    reader.mark_ignored(
        *(f"{end}_{side}_wheel_state_joint_name" for end in ("front", "rear") for side in ("left", "right"))
    )
    reader.mark_ignored("kinematics.base_frame_offset.x", "kinematics.base_frame_offset.y", "interface_name")
    reader.mark_ignored("kinematics.base_frame_offset.theta")
    radius = _read_wheel_radius(reader, wheels, "kinematics.wheels_radius", "wheel_radius", "wheels_radius")
    radius *= _read_positive(reader, 1.0, "wheel_radius_multiplier")
    wheelbase, track = reader.number("wheel_separation_x", "wheelbase"), reader.number("wheel_separation_y", "track")
    half_sum = reader.number("kinematics.sum_of_robot_center_projection_on_X_Y_axis")
    if wheelbase is not None:
        wheelbase *= _read_positive(reader, 1.0, "wheel_separation_x_multiplier")
    if track is not None:
        track *= _read_positive(reader, 1.0, "wheel_separation_y_multiplier")
    if half_sum is not None and wheelbase is None and track is None:  # only the sum of the two counts in the kinematics
        measured_wheelbase = float(np.mean([w.x for w in wheels[:2]]) - np.mean([w.x for w in wheels[2:]]))
        wheelbase = measured_wheelbase if 0.0 < measured_wheelbase < 2.0 * half_sum else half_sum
        track = 2.0 * half_sum - wheelbase
    odometry, limits = _read_odometry_output(reader), _read_drive_limits(reader)
    tags = ("front_left_joint", "front_right_joint", "back_left_joint", "back_right_joint")
    plugin = reader.to_plugin(
        *zip(tags, (wheel.joint for wheel in wheels), strict=True),
        ("wheel_radius", radius), ("wheelbase", wheelbase), ("wheel_separation", track),
        ("frame_id", odometry.parameters.get("odom_frame")), ("child_frame_id", odometry.base_frame),
        ("odom_publish_frequency", odometry.rate),
        ("publish_odom_tf", str(odometry.parameters.get("publish_tf", True)).lower()),
        ("max_linear_velocity", limits.speed), ("max_angular_velocity", limits.angular_speed),
        ("max_linear_acceleration", limits.acceleration), ("max_angular_acceleration", limits.angular_acceleration),
    )  # fmt: skip
    plugin_reader = PluginReader(reader.model, plugin, location=reader.location)
    mapping = mecanum_plugin(plugin_reader)
    for text in mapping.findings:
        reader.add_finding(text.partition(": ")[2])
    return _with_command_timeout(reader, mapping)


def map_steering_controller(reader: ControllerReader) -> PluginMapping:
    """Map Ackermann, bicycle, tricycle and steer-drive controllers: as a car with one or two wheels on each axle.

    Raises:
        DescriptionError: As `map_differential_drive_controller`.
    """
    front_steering = reader.flag("front_steering", default=True)
    front, rear = reader.joints("front_wheels_names"), reader.joints("rear_wheels_names")
    steering_joints = reader.joints("steering_joints_names", "steering_joint_name", "front_steer") or (
        front if front_steering else rear
    )
    traction_joints = reader.joints("traction_joints_names", "traction_joint_name", "rear_wheel") or (
        rear if front_steering else front
    )
    if not steering_joints or not traction_joints:
        raise DescriptionError(
            "no joint that steers, or none that drives", location=reader.location,
            valid="traction_joints_names and steering_joints_names",
        )  # fmt: skip
    model = reader.model
    steered_links = {model.joint(name).child for name in steering_joints}
    kingpins, wheels = wheels_on(model, steering_joints), wheels_on(model, traction_joints)
    steered_wheels = [wheel for wheel in wheels if model.joint(wheel.joint).parent in steered_links]
    unsteered_wheels = [wheel for wheel in wheels if wheel not in steered_wheels]
    odometry, steering_limit = _read_odometry_output(reader), _read_steering_limit(reader, steering_joints)
    unsteered_x = float(np.mean([w.x for w in unsteered_wheels])) if unsteered_wheels else None
    kingpin_x = float(np.mean([pin.x for pin in kingpins]))
    steered_end, driven_end = ("front", "rear") if front_steering else ("rear", "front")
    reader.mark_ignored(f"{steered_end}_wheels_radius", "steering_wheels_radius", "wheel_separation_h_multiplier")
    wheelbase = _read_length(
        reader, "wheelbase", None if unsteered_x is None else kingpin_x - unsteered_x, "wheelbase", "wheel_separation_h"
    )
    if not front_steering or (unsteered_x is not None and kingpin_x < unsteered_x):
        wheelbase = -abs(wheelbase)
    track = _read_length(
        reader, "track", _lateral_distance(wheels), "traction_track_width", f"{driven_end}_wheel_track", "wheel_track",
        "wheel_separation_w", allow_zero=True,
    )  # fmt: skip
    kingpin_width = _read_length(
        reader,
        "kingpin_width",
        _lateral_distance(kingpins),
        "steering_track_width",
        f"{steered_end}_wheel_track",
        allow_zero=True,
    )
    radius = _read_wheel_radius(
        reader, wheels, "traction_wheels_radius", "traction_wheel_radius", f"{driven_end}_wheels_radius",
        f"{driven_end}_wheel_radius", "wheel_radius",
    )  # fmt: skip
    root = next((link for link in model.links if link.name == odometry.base_frame), model.roots[0])
    axle_x = round((unsteered_x if unsteered_x is not None else kingpin_x - wheelbase) - root.T_model_link.x, 9)
    steering_rate = reader.number("steering.max_velocity")
    limits = _read_drive_limits(reader)
    drive = AckermannDriveConfig(
        type="ackermann",
        **_split_sides("joints", unsteered_wheels),
        **_split_sides("steered_joints", steered_wheels),
        **_split_sides("steering_joints", kingpins),
        wheel_radius=radius,
        wheelbase=wheelbase,
        track=max(track, _SINGLE_TRACK_WIDTH),
        kingpin_width=max(kingpin_width, _SINGLE_TRACK_WIDTH),
        steering_limit=steering_limit,
        axle_x=axle_x,
    )
    if steering_rate:
        drive = drive.replace({"steering_rate": steering_rate})
    mapping = PluginMapping(
        nodes={
            "arbiter": RobotNodeConfig("arbiter"),
            "drive": RobotNodeConfig("ackermann_drive"),
            "odometry": RobotNodeConfig("ackermann_odometry", odometry.parameters),
        },
        is_drive=True,
        drive=drive,
        limits=limits,
        base_frame=odometry.base_frame,
        min_joint_state_rate=odometry.rate,
    )
    return _with_command_timeout(reader, mapping)


def _split_sides(name: str, wheels: list[Wheel]) -> dict[str, Any]:
    """Return left and right joints by the drive's keys; a single one in the middle counts as left."""
    if len(wheels) == 1:
        return {f"left_{name}": (wheels[0].joint,), f"right_{name}": ()}
    center_y = float(np.mean([wheel.y for wheel in wheels])) if wheels else 0.0
    return {
        f"left_{name}": tuple(wheel.joint for wheel in wheels if wheel.y > center_y),
        f"right_{name}": tuple(wheel.joint for wheel in wheels if wheel.y <= center_y),
    }


def _lateral_distance(wheels: list[Wheel]) -> float:
    ys = [wheel.y for wheel in wheels]
    return max(ys) - min(ys) if len(ys) > 1 else 0.0


def _read_steering_limit(reader: ControllerReader, steering_joints: tuple[str, ...]) -> float:
    """Return the largest steering angle [rad] that the file and the joints allow."""
    bounds = [_MAX_STEERING_ANGLE]
    for name in steering_joints:
        limits = reader.model.joint(name).axes[0].limits if reader.model.joint(name).axes else None
        bounds += [abs(one) for one in (limits.lower, limits.upper) if math.isfinite(one)] if limits else []
    for key in ("steering.max_position", "steering.min_position"):
        value = reader.number(key)
        bounds += [abs(value)] if value else []
    return max(min(bounds), 1e-3)


def _read_odometry_output(reader: ControllerReader) -> OdometryOutput:
    base, frame = reader.text("base_frame_id", "base_frame"), reader.text("odom_frame_id", "odom_frame")
    rate = reader.number("publish_rate")
    root = reader.model.roots[0].name if reader.model.roots else "base_link"
    if base is not None and base not in {link.name for link in reader.model.links}:
        reader.add_finding(f"base_frame_id {base[:60]!r} is no link: {root} taken")
        base = None
    parameters: dict[str, Any] = {"base_frame": base or root}
    if frame:
        parameters["odom_frame"] = frame
    if rate and rate > 0.0:
        parameters["rate"] = min(max(rate, 0.1), 1000.0)
    if not reader.flag("enable_odom_tf", default=True):
        parameters["publish_tf"] = False
    return OdometryOutput(parameters, {}, base, rate, True)


def _read_drive_limits(reader: ControllerReader) -> DriveLimits:
    """Read the limits; those that ``has_…_limits`` switches off are ignored."""

    def bound(axis: str, quantity: str, sign: int = 1) -> float | None:
        is_limited = reader.flag(f"{axis}.has_{quantity}_limits", default=True)
        value = reader.number(f"{axis}.{'max' if sign > 0 else 'min'}_{quantity}")
        return max(sign * value, 0.0) if value is not None and is_limited else None

    for axis in ("linear.x", "linear.y", "angular.z"):
        reader.mark_ignored(
            f"{axis}.has_jerk_limits", f"{axis}.max_jerk", f"{axis}.min_jerk", f"{axis}.min_acceleration"
        )
        reader.mark_ignored(
            f"{axis}.max_deceleration", f"{axis}.max_acceleration_reverse", f"{axis}.max_deceleration_reverse"
        )
        reader.mark_ignored(
            f"{axis}.min_velocity", *(f"{axis}.has_{quantity}_limits" for quantity in ("velocity", "acceleration"))
        )
    speed, reverse = bound("linear.x", "velocity"), bound("linear.x", "velocity", -1)
    reader.mark_ignored("linear.y.max_velocity", "linear.y.max_acceleration")
    return DriveLimits(
        speed=speed,
        reverse_speed=None if reverse is None or reverse == speed else reverse,
        angular_speed=bound("angular.z", "velocity"),
        acceleration=bound("linear.x", "acceleration"),
        angular_acceleration=bound("angular.z", "acceleration"),
    )


def _with_command_timeout(reader: ControllerReader, mapping: PluginMapping) -> PluginMapping:
    """Return the mapping with the controller's command timeout and its findings."""
    timeout = reader.number("cmd_vel_timeout", "reference_timeout")
    if timeout is not None and reader.controller.class_name == "TricycleController":
        timeout /= 1000.0  # the one controller that counts it in milliseconds
    nodes = dict(mapping.nodes)
    if timeout:
        drive = nodes["drive"]
        drive_timeout = min(max(timeout, 0.01), 60.0)
        nodes["drive"] = RobotNodeConfig(drive.type, {**drive.parameters, "timeout": drive_timeout}, drive.remap)
    name = reader.controller.name
    reader.add_finding(f"it drives by cmd_vel and tells odom, not {name}/cmd_vel and {name}/odom")
    return PluginMapping(
        nodes=nodes,
        is_drive=True,
        drive=mapping.drive,
        limits=mapping.limits,
        base_frame=mapping.base_frame,
        min_joint_state_rate=mapping.min_joint_state_rate,
        inactive_nodes=mapping.inactive_nodes,
        findings=reader.findings(),
    )


def _read_positive(reader: ControllerReader, default: float, *names: str) -> float:
    value = reader.number(*names)
    if value is not None and value <= 0.0:
        raise DescriptionError(f"{names[0]} {value:g}", location=reader.location, valid="a number above 0")
    return default if value is None else value


def _read_length(
    reader: ControllerReader, quantity: str, measured: float | None, *names: str, allow_zero: bool = False
) -> float:
    value = reader.number(*names)
    if value is None:
        value = measured
        if not (allow_zero and not measured):
            reader.add_finding(f"{quantity} {value} m taken from the wheels' places: the file gives none")
    if value is None or (value < 0.0 and quantity != "wheelbase") or (value == 0.0 and not allow_zero):
        raise DescriptionError(f"{quantity} {value}", location=reader.location, valid="a positive length [m]")
    return value


def _read_wheel_radius(reader: ControllerReader, wheels: list[Wheel], *names: str) -> float:
    value = reader.number(*names)
    if value is None:
        value = next((wheel.radius for wheel in wheels if wheel.radius), None)
        reader.add_finding(f"wheel radius {value} m taken from the wheels' shape: the file gives none")
    if value is None or value <= 0.0:
        raise DescriptionError(f"wheel radius {value}", location=reader.location, valid="a positive length [m]")
    return value
