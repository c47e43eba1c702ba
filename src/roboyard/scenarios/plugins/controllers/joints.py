"""Controllers of joints: trajectories, groups that follow commands, grippers, and those that only tell."""

from __future__ import annotations

import math
import re
from typing import Any

from roboyard.description.joint_interfaces import command_modes
from roboyard.scenarios.gains import Gains, pid, with_gains
from roboyard.scenarios.plugins.controllers.reading import ControllerReader
from roboyard.scenarios.plugins.joints import trajectories
from roboyard.scenarios.plugins.part import Part
from roboyard.scenarios.robot_package import NodeSpec

GRIPPER = "roboyard.control.nodes:GripperNode"
_MODES = ("position", "velocity", "effort")


def trajectory(reader: ControllerReader) -> Part:
    """joint_trajectory_controller: topic and action under its own name, with its tolerances."""
    joints = reader.joints("joints")
    if not joints:
        reader.note("left out: it names no joints")
        return Part(findings=reader.findings())
    wanted = _wanted(reader)
    mode = next((one for one in wanted if one in ("position", "velocity")), "position")
    gains = _gains(reader, joints, "position")
    takes = command_modes(with_gains(reader.model, gains), joints[0])
    if mode not in takes:
        mode = next((one for one in takes if one != "effort"), mode)
    spec = trajectories(joints, mode=mode)
    limits = reader.below("constraints")
    parameters: dict[str, Any] = dict(spec.parameters)
    parameters["allow_partial_joints_goal"] = reader.flag("allow_partial_joints_goal", default=False)
    for name, ending in (("path_tolerance", ".trajectory"), ("goal_tolerance", ".goal")):
        values = [v for key, v in limits.items() if key.endswith(ending) and isinstance(v, int | float) and v > 0.0]
        if values:  # the node has one for all its joints
            parameters[name] = min(max(values), 1e3)
            if min(values) != max(values):
                reader.note(f"the widest {ending[1:]} tolerance, {max(values):g}, holds for all its joints")
    goal_time = limits.get("goal_time")
    if isinstance(goal_time, int | float) and goal_time > 0.0:
        parameters["goal_time"] = min(goal_time, 1e3)
    name = reader.controller.name
    remap = {"~joint_trajectory": f"{name}/command"} if reader.controller.ros1 else {}
    return Part(nodes={name: NodeSpec(spec.use, parameters, remap)}, gains=gains, findings=reader.findings())


def commands(reader: ControllerReader, *, hold: bool = True) -> Part:
    """Forward command controllers and the groups and single joints of both ROS generations.

    With ``hold`` those of positions hold their joints from the start on, as ROS's do.
    """
    joints = reader.joints("joints", "joint")
    if not joints:
        reader.note("left out: it names no joints")
        return Part(findings=reader.findings())
    mode = next((one for one in _wanted(reader) if one in _MODES), "position")
    name, alone = reader.controller.name, reader.get("joints") is None
    parameters: dict[str, Any] = {"joints": list(joints), "mode": mode}
    if mode == "position" and hold:
        parameters["hold"] = True
    remap = {}
    if alone:
        parameters["topics"] = [f"{name}/command"]
    elif reader.controller.ros1:
        remap = {"~commands": f"{name}/command"}
    else:
        parameters["topics"] = [f"{name}/{joint}" for joint in joints]
    gains = _gains(reader, joints, mode)
    return Part(
        nodes={name: NodeSpec("roboyard.control.nodes:JointCommandNode", parameters, remap)},
        gains=gains,
        findings=reader.findings(),
    )


def unitree(reader: ControllerReader) -> Part:
    """Unitree's joint controller: the joint's position by a topic, held with its gains; limp until it is told one."""
    reader.note("its topic takes positions (std_msgs/Float64), not Unitree's MotorCmd; joint_states tells the rest")
    return commands(reader, hold=False)


def gripper(reader: ControllerReader) -> Part:
    """Gripper controllers: their action, with its tolerance and its judgement of fingers that stand still."""
    joints = reader.joints("joint", "joints")
    if not joints:
        reader.note("left out: it names no joint")
        return Part(findings=reader.findings())
    gains = _gains(reader, joints[:1], "position")
    parameters: dict[str, Any] = {
        "joints": list(joints[:1]),
        "allow_stalling": reader.flag("allow_stalling", default=False),
    }
    for name in ("goal_tolerance", "stall_velocity_threshold", "stall_timeout"):
        value = reader.number(name)
        if value is not None:
            parameters[name] = value
    reader.ignore("action_monitor_rate")
    if reader.number("max_effort"):
        reader.note("max_effort not followed: the joint's own effort limit holds")
    return Part(
        nodes={reader.controller.name: NodeSpec(GRIPPER, parameters)},
        gains=gains,
        findings=reader.findings(),
    )


def states(reader: ControllerReader) -> Part:
    """Joint state broadcasters: ours tells all joints, always."""
    rate = reader.number("publish_rate", "state_publish_rate")
    reader.ignore("joints", "interfaces", "extra_joints", "use_local_topics", "use_urdf_to_filter", "frame_id")
    reader.below("map_interface_to_joint_state")
    return Part(joint_rate=rate if rate and rate > 0.0 else None, findings=reader.findings())


def sensors(reader: ControllerReader) -> Part:
    """Broadcasters of sensors: the description's own sensors tell."""
    name = reader.text("sensor_name", "name")
    known = {sensor.name for sensor in reader.model.sensors}
    if name is not None and name not in known:
        said = ", ".join(sorted(known)) or "none"
        reader.note(f"there is no sensor {name[:60]!r} in the description (sensors: {said})")
    return Part(findings=tuple(one for one in reader.findings() if "not followed" not in one))


def _wanted(reader: ControllerReader) -> list[str]:
    """Command modes, by the settings and by the type's name."""
    found = reader.get("command_interfaces")
    given = found.value if found is not None and isinstance(found.value, list) else []
    named = reader.text("interface_name")
    package, _, kind = reader.controller.type.rpartition("/")
    by_type = re.findall("Position|Velocity|Effort", kind) or re.findall("position|velocity|effort", package)
    words = [*map(str, given), *([named] if named else []), *by_type]
    return [word.lower() for word in words]


def _gains(reader: ControllerReader, joints: tuple[str, ...], mode: str) -> dict[str, Gains]:
    """Gains of a controller that moves its joints by efforts; those of others are said not to count."""
    reader.ignore("pid", "gains", "stop_trajectory_duration", "open_loop_control", "type")
    stated = {joint: {**reader.below(f"gains.{joint}"), **reader.below(f"{joint}.pid")} for joint in joints}
    if len(joints) == 1:
        stated[joints[0]] |= reader.below("pid")
    stated = {joint: own for joint, own in stated.items() if own}
    efforts = reader.controller.package in _BY_EFFORT or "effort" in _wanted(reader)
    if stated and (not efforts or mode not in ("position", "velocity")):
        reader.note("its gains are not followed: the joints' own servos hold")
        return {}
    found = {}
    for joint, own in stated.items():
        p, i, d = (own.get(key) for key in ("p", "i", "d"))
        clamp = own.get("i_clamp", own.get("i_clamp_max"))
        if not all(isinstance(one, int | float) and 0.0 <= one < math.inf for one in (p, i, d) if one is not None):
            reader.note(f"the gains of joint {joint} are not followed: they must be numbers, zero or larger")
            continue
        found[joint] = pid(mode, p, i, d, clamp if isinstance(clamp, int | float) else None)
    rest = sorted({key for own in stated.values() for key in own} - _PID)
    if rest:
        reader.note(f"{', '.join(rest)} of its gains not followed: nothing here does that")
    return found


_BY_EFFORT = ("effort_controllers", "unitree_legged_control")
_PID = {"p", "i", "d", "i_clamp", "i_clamp_max", "i_clamp_min", "antiwindup"}
