"""Mappers of ros2_control controllers: drives, joint trajectories, joint commands, grippers and broadcasters."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from roboyard.bringup.plugins.controller_reader import ControllerReader
from roboyard.bringup.plugins.drives import differential_drive_mapping
from roboyard.bringup.plugins.drives import map_mecanum_drive as mecanum_plugin
from roboyard.bringup.plugins.joints import trajectory_node_config
from roboyard.bringup.plugins.odometry import OdometryOutput
from roboyard.bringup.plugins.plugin_mapping import PluginMapping
from roboyard.bringup.plugins.reader import PluginReader
from roboyard.bringup.robot_config import RobotNodeConfig
from roboyard.bringup.servo_gains import JointServoGains, pid_gains, with_servo_gains
from roboyard.bringup.wheel_geometry import Wheel, axle_offset, wheels_on
from roboyard.control.drive_config import AckermannDriveConfig, DifferentialDriveConfig, DriveLimits
from roboyard.description.joint_interfaces import command_modes
from roboyard.errors import DescriptionError

GRIPPER_NODE = "roboyard.control.nodes:GripperNode"
_MODES = ("position", "velocity", "effort")
_EFFORT_PACKAGES = ("effort_controllers", "unitree_legged_control")
_PID_KEYS = {"p", "i", "d", "i_clamp", "i_clamp_max", "i_clamp_min", "antiwindup"}
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


def map_trajectory_controller(reader: ControllerReader) -> PluginMapping:
    """Map joint_trajectory_controller: topic and action under its own name, with its tolerances."""
    joints = reader.joints("joints")
    if not joints:
        reader.add_finding("left out: it names no joints")
        return PluginMapping(findings=reader.findings())
    requested_modes = _requested_modes(reader)
    mode = next((one for one in requested_modes if one in ("position", "velocity")), "position")
    gains = _read_gains(reader, joints, "position")
    available_modes = command_modes(with_servo_gains(reader.model, gains), joints[0])
    if mode not in available_modes:
        mode = next((one for one in available_modes if one != "effort"), mode)
    node_config = trajectory_node_config(joints, mode=mode)
    constraints = reader.nested("constraints")
    parameters: dict[str, Any] = dict(node_config.parameters)
    parameters["allow_partial_joints_goal"] = reader.flag("allow_partial_joints_goal", default=False)
    for name, key_suffix in (("path_tolerance", ".trajectory"), ("goal_tolerance", ".goal")):
        values = [
            v for key, v in constraints.items() if key.endswith(key_suffix) and isinstance(v, int | float) and v > 0.0
        ]
        if values:  # the node has one for all its joints
            parameters[name] = min(max(values), 1e3)
            if min(values) != max(values):
                reader.add_finding(f"the widest {key_suffix[1:]} tolerance, {max(values):g}, holds for all its joints")
    goal_time = constraints.get("goal_time")
    if isinstance(goal_time, int | float) and goal_time > 0.0:
        parameters["goal_time"] = min(goal_time, 1e3)
    name = reader.controller.name
    remap = {"~joint_trajectory": f"{name}/command"} if reader.controller.ros1 else {}
    return PluginMapping(
        nodes={name: RobotNodeConfig(node_config.type, parameters, remap)}, gains=gains, findings=reader.findings()
    )


def map_command_controller(reader: ControllerReader, *, hold_position: bool = True) -> PluginMapping:
    """Map forward command controllers, and those of joint groups and single joints of ROS 1 and ROS 2.

    Position controllers with ``hold_position`` hold their joints from the start, as in ROS.
    """
    joints = reader.joints("joints", "joint")
    if not joints:
        reader.add_finding("left out: it names no joints")
        return PluginMapping(findings=reader.findings())
    mode = next((one for one in _requested_modes(reader) if one in _MODES), "position")
    name, is_single_joint = reader.controller.name, reader.get("joints") is None
    parameters: dict[str, Any] = {"joints": list(joints), "mode": mode}
    if mode == "position" and hold_position:
        parameters["hold_position"] = True
    remap = {}
    if is_single_joint:
        parameters["topics"] = [f"{name}/command"]
    elif reader.controller.ros1:
        remap = {"~commands": f"{name}/command"}
    else:
        parameters["topics"] = [f"{name}/{joint}" for joint in joints]
    gains = _read_gains(reader, joints, mode)
    return PluginMapping(
        nodes={name: RobotNodeConfig("roboyard.control.nodes:JointCommandNode", parameters, remap)},
        gains=gains,
        findings=reader.findings(),
    )


def map_unitree_controller(reader: ControllerReader) -> PluginMapping:
    """Map Unitree's joint controller: a topic commands the joint's position, with the controller's gains."""
    reader.add_finding(
        "its topic takes positions (std_msgs/Float64), not Unitree's MotorCmd; joint_states tells the rest"
    )
    return map_command_controller(reader, hold_position=False)


def map_gripper_controller(reader: ControllerReader) -> PluginMapping:
    """Map gripper controllers: their action, with its tolerance and its detection of stalled fingers."""
    joints = reader.joints("joint", "joints")
    if not joints:
        reader.add_finding("left out: it names no joint")
        return PluginMapping(findings=reader.findings())
    gains = _read_gains(reader, joints[:1], "position")
    parameters: dict[str, Any] = {
        "joints": list(joints[:1]),
        "allow_stalling": reader.flag("allow_stalling", default=False),
    }
    for name in ("goal_tolerance", "stall_velocity_threshold", "stall_timeout"):
        value = reader.number(name)
        if value is not None:
            parameters[name] = value
    reader.mark_ignored("action_monitor_rate")
    if reader.number("max_effort"):
        reader.add_finding("max_effort not followed: the joint's own effort limit holds")
    return PluginMapping(
        nodes={reader.controller.name: RobotNodeConfig(GRIPPER_NODE, parameters)},
        gains=gains,
        findings=reader.findings(),
    )


def map_joint_state_broadcaster(reader: ControllerReader) -> PluginMapping:
    """Map joint state broadcasters: node joint_states publishes all joints."""
    rate = reader.number("publish_rate", "state_publish_rate")
    reader.mark_ignored("joints", "interfaces", "extra_joints", "use_local_topics", "use_urdf_to_filter", "frame_id")
    reader.nested("map_interface_to_joint_state")
    return PluginMapping(min_joint_state_rate=rate if rate and rate > 0.0 else None, findings=reader.findings())


def map_sensor_broadcaster(reader: ControllerReader) -> PluginMapping:
    """Map sensor broadcasters: the sensors of the description publish their measurements."""
    name = reader.text("sensor_name", "name")
    sensor_names = {sensor.name for sensor in reader.model.sensors}
    if name is not None and name not in sensor_names:
        listed_names = ", ".join(sorted(sensor_names)) or "none"
        reader.add_finding(f"there is no sensor {name[:60]!r} in the description (sensors: {listed_names})")
    return PluginMapping(findings=tuple(one for one in reader.findings() if "not followed" not in one))


def _requested_modes(reader: ControllerReader) -> list[str]:
    """Return the command modes that the settings or the name of the type state."""
    interfaces = reader.get("command_interfaces")
    interface_names = interfaces.value if interfaces is not None and isinstance(interfaces.value, list) else []
    interface_name = reader.text("interface_name")
    package, _, class_name = reader.controller.type.rpartition("/")
    by_type = re.findall("Position|Velocity|Effort", class_name) or re.findall("position|velocity|effort", package)
    words = [*map(str, interface_names), *([interface_name] if interface_name else []), *by_type]
    return [word.lower() for word in words]


def _read_gains(reader: ControllerReader, joints: tuple[str, ...], mode: str) -> dict[str, JointServoGains]:
    """Read the gains of a controller that moves its joints by efforts; add a finding for unused gains of others."""
    reader.mark_ignored("pid", "gains", "stop_trajectory_duration", "open_loop_control", "type")
    stated_gains = {joint: {**reader.nested(f"gains.{joint}"), **reader.nested(f"{joint}.pid")} for joint in joints}
    if len(joints) == 1:
        stated_gains[joints[0]] |= reader.nested("pid")
    stated_gains = {joint: values for joint, values in stated_gains.items() if values}
    uses_effort = reader.controller.package in _EFFORT_PACKAGES or "effort" in _requested_modes(reader)
    if stated_gains and (not uses_effort or mode not in ("position", "velocity")):
        reader.add_finding("its gains are not followed: the joints' own servos hold")
        return {}
    gains = {}
    for joint, values in stated_gains.items():
        p, i, d = (values.get(key) for key in ("p", "i", "d"))
        clamp = values.get("i_clamp", values.get("i_clamp_max"))
        if not all(isinstance(one, int | float) and 0.0 <= one < math.inf for one in (p, i, d) if one is not None):
            reader.add_finding(f"the gains of joint {joint} are not followed: they must be numbers, zero or larger")
            continue
        gains[joint] = pid_gains(mode, p, i, d, clamp if isinstance(clamp, int | float) else None)
    unused_keys = sorted({key for values in stated_gains.values() for key in values} - _PID_KEYS)
    if unused_keys:
        reader.add_finding(f"{', '.join(unused_keys)} of its gains not followed: nothing here does that")
    return gains
