"""The table: which plugin becomes which nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from roboyard.description.model import Model, Plugin
from roboyard.scenarios.plugins import bodies, joints, odometry, steering
from roboyard.scenarios.plugins.controllers import map_controllers
from roboyard.scenarios.plugins.differential import differential, names_two_sides
from roboyard.scenarios.plugins.names import canonical
from roboyard.scenarios.plugins.part import JointGroup, Part
from roboyard.scenarios.plugins.reading import PluginReader
from roboyard.scenarios.robot_package import NodeSpec

TABLE: dict[str, Callable[[PluginReader], Part]] = {
    "diff-drive": differential,
    "mecanum-drive": bodies.mecanum,
    "ackermann-steering": steering.ackermann,
    "velocity-control": bodies.velocity_control,
    "planar-move": bodies.planar_move,
    "joint-state-publisher": joints.joint_states,
    "joint-position-controller": joints.position_controller,
    "joint-controller": joints.velocity_controller,
    "apply-joint-force": joints.force_controller,
    "joint-trajectory-controller": joints.trajectory_controller,
    "odometry-publisher": odometry.odometry_publisher,
    "p3d": odometry.p3d,
}
"""By the plugin's canonical name."""

DONE_ALREADY = {
    # the simulation itself
    "physics", "user-commands", "scene-broadcaster", "pose-publisher",
    # sensors are read with their <sensor> elements
    "sensors", "imu", "contact", "touch", "altimeter", "magnetometer", "navsat", "air-pressure", "air-speed",
    "forcetorque", "force-torque", "logical-camera", "laser", "gpu-laser", "block-laser", "ray-sensor", "ray",
    "gpu-ray", "imu-sensor", "bumper", "unitree-foot-contact", "gps-sensor", "sonar", "range",
    "camera", "multicamera", "depth-camera", "openni-kinect", "triggered-camera", "prosilica",
    # those that stand alone are made into sensors by the reader
    "gps", "magnetic", "baro", "ft-sensor", "f3d",
    # joints that follow others are read
    "roboticsgroup-gazebo-mimic-joint-plugin", "gazebo-mimic-joint-plugin",
    "roboticsgroup-upatras-gazebo-mimic-joint-plugin",
    # joints' interfaces are read from <transmission> and <ros2_control>
    "control", "gz-ros2-control-system", "ign-ros2-control-system", "gazebo-ros2-control", "gz-ros2-control",
    "ign-ros2-control", "init", "factory", "state", "api-plugin",
}  # fmt: skip
"""What has nothing left to map, because another part of the house does it anyway."""

_NODE_OF_MODE = {"position": "joint_position", "velocity": "joint_velocity", "effort": "joint_effort"}


def map_plugins(model: Model) -> Part:
    """Everything that the model's plugins ask of us, as one part.

    Raises:
        DescriptionError: a plugin names joints that are not there, or its numbers make no sense.
    """
    whole = Part()
    for plugin in model.plugins:
        if plugin.element.tag == "ros2_control":  # its interfaces are read
            continue
        reader, name = PluginReader(model, plugin), canonical(plugin)
        make = TABLE.get(name)
        if make is None and names_two_sides(reader):
            make = differential
        if make is not None:
            whole = _joined(whole, make(reader), reader.where)
        elif name not in DONE_ALREADY or _stands_alone(model, plugin):
            shown = plugin.filename or plugin.name or "without a name"
            text = f"{reader.where}: nothing here does what {shown[:80]} does; it is left out"
            whole = replace(whole, findings=(*whole.findings, text))
    whole = replace(whole, nodes={**whole.nodes, **_command_nodes(whole.groups)})
    for where, part in map_controllers(model):
        whole = _joined(whole, part, where)
    return whole


def _stands_alone(model: Model, plugin: Plugin) -> bool:
    """Whether it would be a sensor of its own, with no <sensor> around it, and the reader made none of it."""
    made = any(sensor.name == plugin.name for sensor in model.sensors)
    told = any(plugin.element.find(tag) is not None for tag in ("bodyName", "body_name"))
    return plugin.link is None and told and not made


def _joined(whole: Part, more: Part, where: str) -> Part:
    """Two parts as one; of several drives the first drives."""
    findings = (*whole.findings, *more.findings)
    if whole.drives and more.drives:
        return replace(whole, findings=(*findings, f"{where}: left out, there is a drive already"))
    clash = [node for node in more.nodes if node in whole.nodes]
    if clash:
        findings = (*findings, f"{where}: left out, there is a {clash[0]} already")
        more = replace(more, nodes={})
    rates = [rate for rate in (whole.joint_rate, more.joint_rate) if rate]
    return Part(
        nodes={**whole.nodes, **more.nodes},
        drives=whole.drives or more.drives,
        groups=(*whole.groups, *more.groups),
        topics={**more.topics, **whole.topics},
        limits=whole.limits or more.limits,
        base=whole.base or more.base,
        base_frame=whole.base_frame or more.base_frame,
        joint_rate=max(rates) if rates else None,
        gains={**more.gains, **whole.gains},
        standby=(*whole.standby, *more.standby),
        findings=findings,
    )


def _command_nodes(groups: tuple[JointGroup, ...]) -> dict[str, NodeSpec]:
    """One node for all joints of a mode: each by its own topic, and all by one."""
    nodes: dict[str, NodeSpec] = {}
    for mode, name in _NODE_OF_MODE.items():
        found = [(joint, topic) for group in groups if group.mode == mode
                 for joint, topic in zip(group.joints, group.topics, strict=True)]  # fmt: skip
        if not found:
            continue
        starts = {joint: value for group in groups if group.mode == mode
                  for joint, value in zip(group.joints, group.initial, strict=False)}  # fmt: skip
        names = [joint for joint, _ in found]
        parameters: dict[str, Any] = {"joints": names, "topics": [topic for _, topic in found], "mode": mode}
        if starts:
            parameters["initial"] = [starts.get(joint, 0.0) for joint in names]
        nodes[name] = NodeSpec("roboyard.control.nodes:JointCommandNode", parameters)
    return nodes
