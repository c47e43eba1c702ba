"""Mappers of joint controllers: trajectories, command groups, grippers and broadcasters."""

from __future__ import annotations

import math
import re
from typing import Any

from roboyard.bringup.plugins.controller_reader import ControllerReader
from roboyard.bringup.plugins.joints import trajectory_node_config
from roboyard.bringup.plugins.plugin_mapping import PluginMapping
from roboyard.bringup.robot_config import RobotNodeConfig
from roboyard.bringup.servo_gains import JointServoGains, pid_gains, with_servo_gains
from roboyard.description.joint_interfaces import command_modes

GRIPPER_NODE = "roboyard.control.nodes:GripperNode"
_MODES = ("position", "velocity", "effort")


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


_EFFORT_PACKAGES = ("effort_controllers", "unitree_legged_control")
_PID_KEYS = {"p", "i", "d", "i_clamp", "i_clamp_max", "i_clamp_min", "antiwindup"}
