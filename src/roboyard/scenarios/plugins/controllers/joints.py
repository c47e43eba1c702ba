"""Controllers of joints: trajectories, groups that follow commands, grippers, and those that only tell."""

from __future__ import annotations

import re
from typing import Any

from roboyard.scenarios.plugins.controllers.reading import ControllerReader
from roboyard.scenarios.plugins.joints import trajectories
from roboyard.scenarios.plugins.part import Part
from roboyard.scenarios.robot_package import NodeSpec
from roboyard.simulation.modes import modes_of

_MODES = ("position", "velocity", "effort")


def trajectory(reader: ControllerReader) -> Part:
    """joint_trajectory_controller: topic and action under its own name, with its tolerances."""
    joints = reader.joints("joints")
    if not joints:
        reader.note("left out: it names no joints")
        return Part(findings=reader.findings())
    wanted = _wanted(reader)
    mode = next((one for one in wanted if one in ("position", "velocity")), "position")
    if mode not in modes_of(reader.model, joints[0]):
        mode = next((one for one in modes_of(reader.model, joints[0]) if one != "effort"), mode)
    spec = trajectories(joints, mode=mode)
    limits = reader.below("constraints")
    parameters: dict[str, Any] = dict(spec.parameters)
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
    _gains(reader)
    return Part(nodes={name: NodeSpec(spec.use, parameters, remap)}, findings=reader.findings())


def commands(reader: ControllerReader) -> Part:
    """Forward command controllers and the groups and single joints of both ROS generations."""
    joints = reader.joints("joints", "joint")
    if not joints:
        reader.note("left out: it names no joints")
        return Part(findings=reader.findings())
    mode = next((one for one in _wanted(reader) if one in _MODES), "position")
    name, alone = reader.controller.name, reader.get("joints") is None
    parameters: dict[str, Any] = {"joints": list(joints), "mode": mode}
    remap = {}
    if alone:
        parameters["topics"] = [f"{name}/command"]
    elif reader.controller.ros1:
        remap = {"~commands": f"{name}/command"}
    else:
        parameters["topics"] = [f"{name}/{joint}" for joint in joints]
    _gains(reader)
    return Part(
        nodes={name: NodeSpec("roboyard.control.nodes:JointCommandNode", parameters, remap)},
        findings=reader.findings(),
    )


def gripper(reader: ControllerReader) -> Part:
    """Gripper controllers: the joint's position by a topic."""
    reader.ignore("goal_tolerance", "max_effort", "allow_stalling", "stall_velocity_threshold", "stall_timeout")
    reader.note(f"its action is not offered: {reader.controller.name}/command takes positions (std_msgs/Float64)")
    return commands(reader)


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


def _gains(reader: ControllerReader) -> None:
    gains = [*reader.below("gains"), *reader.below("pid"), *reader.below("velocity_ff")]
    reader.ignore("pid", "gains", "stop_trajectory_duration", "open_loop_control", "type")
    if gains:
        reader.note("its gains are not followed: the joints' own servos hold")
