"""Tables of plugin mappers and controller mappers, and the combined mapping of all plugins of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from roboyard.bringup.plugins import controllers, drives, joints, odometry
from roboyard.bringup.plugins.controller_files import find_controllers
from roboyard.bringup.plugins.controller_reader import ControllerReader
from roboyard.bringup.plugins.drives import map_differential_drive, names_wheels_of_two_sides
from roboyard.bringup.plugins.plugin_mapping import JointCommandGroup, PluginMapping
from roboyard.bringup.plugins.reader import PluginReader, canonical_plugin_name
from roboyard.bringup.robot_config import RobotNodeConfig
from roboyard.description.model import Model, Plugin
from roboyard.errors import ConfigError, DescriptionError

PLUGIN_MAPPERS: dict[str, Callable[[PluginReader], PluginMapping]] = {
    "diff-drive": map_differential_drive,
    "mecanum-drive": drives.map_mecanum_drive,
    "ackermann-steering": drives.map_ackermann_steering,
    "velocity-control": drives.map_velocity_control,
    "planar-move": drives.map_planar_move,
    "joint-state-publisher": joints.map_joint_state_publisher,
    "joint-position-controller": joints.map_position_controller,
    "joint-controller": joints.map_velocity_controller,
    "apply-joint-force": joints.map_joint_force,
    "joint-trajectory-controller": joints.map_trajectory_controller,
    "odometry-publisher": odometry.map_odometry_publisher,
    "p3d": odometry.map_p3d,
}
"""Mappers by canonical name of the plugin."""

CONTROLLER_MAPPERS: dict[str, Callable[[ControllerReader], PluginMapping]] = {
    "DiffDriveController": controllers.map_differential_drive_controller,
    "MecanumDriveController": controllers.map_mecanum_drive_controller,
    "AckermannSteeringController": controllers.map_steering_controller,
    "BicycleSteeringController": controllers.map_steering_controller,
    "TricycleSteeringController": controllers.map_steering_controller,
    "TricycleController": controllers.map_steering_controller,
    "SteerDriveController": controllers.map_steering_controller,
    "JointTrajectoryController": controllers.map_trajectory_controller,
    "ForwardCommandController": controllers.map_command_controller,
    "JointGroupPositionController": controllers.map_command_controller,
    "JointGroupVelocityController": controllers.map_command_controller,
    "JointGroupEffortController": controllers.map_command_controller,
    "JointPositionController": controllers.map_command_controller,
    "JointVelocityController": controllers.map_command_controller,
    "JointEffortController": controllers.map_command_controller,
    "UnitreeJointController": controllers.map_unitree_controller,
    "GripperActionController": controllers.map_gripper_controller,
    "JointStateBroadcaster": controllers.map_joint_state_broadcaster,
    "JointStateController": controllers.map_joint_state_broadcaster,
    "IMUSensorBroadcaster": controllers.map_sensor_broadcaster,
    "ImuSensorController": controllers.map_sensor_broadcaster,
    "ForceTorqueSensorBroadcaster": controllers.map_sensor_broadcaster,
    "ForceTorqueSensorController": controllers.map_sensor_broadcaster,
    "RangeSensorBroadcaster": controllers.map_sensor_broadcaster,
    "GPSSensorBroadcaster": controllers.map_sensor_broadcaster,
}
"""Mappers by the controller's class."""

IMPLICIT_PLUGINS = {
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
"""Plugins that need no mapping, because other parts of Roboyard do the same."""

_NODE_OF_MODE = {"position": "joint_position", "velocity": "joint_velocity", "effort": "joint_effort"}


def map_plugins(model: Model) -> PluginMapping:
    """Map all plugins of a model, and combine their mappings.

    Raises:
        DescriptionError: A plugin names unknown joints, or its numbers are invalid.
    """
    combined = PluginMapping()
    for plugin in model.plugins:
        if plugin.element.tag == "ros2_control":  # its interfaces are read
            continue
        reader, name = PluginReader(model, plugin), canonical_plugin_name(plugin)
        mapper = PLUGIN_MAPPERS.get(name)
        if mapper is None and names_wheels_of_two_sides(reader):
            mapper = map_differential_drive
        if mapper is not None:
            try:
                mapping = mapper(reader)
            except ConfigError as error:  # a number beyond what a drive may have
                raise DescriptionError(error.message, location=reader.location, valid=error.valid) from error
            combined = _combine(combined, mapping, reader.location)
        elif name not in IMPLICIT_PLUGINS or _is_unread_sensor(model, plugin):
            plugin_name = plugin.filename or plugin.name or "without a name"
            text = f"{reader.location}: nothing here does what {plugin_name[:80]} does; it is left out"
            combined = replace(combined, findings=(*combined.findings, text))
    combined = replace(combined, nodes={**combined.nodes, **_joint_command_nodes(combined.command_groups)})
    for location, mapping in map_controllers(model):
        combined = _combine(combined, mapping, location)
    return combined


def _is_unread_sensor(model: Model, plugin: Plugin) -> bool:
    """Return whether a plugin is a sensor without a <sensor> element, and the reader of sensors did not read it."""
    was_read = any(sensor.name == plugin.name for sensor in model.sensors)
    names_body = any(plugin.element.find(tag) is not None for tag in ("bodyName", "body_name"))
    return plugin.link is None and names_body and not was_read


def _combine(combined: PluginMapping, added: PluginMapping, location: str) -> PluginMapping:
    """Combine two mappings; of several drives the first is used."""
    findings = (*combined.findings, *added.findings)
    if combined.is_drive and added.is_drive:
        return replace(combined, findings=(*findings, f"{location}: left out, there is a drive already"))
    conflicts = [node for node in added.nodes if node in combined.nodes]
    if conflicts:
        findings = (*findings, f"{location}: left out, there is a {conflicts[0]} already")
        added = replace(added, nodes={})
    rates = [rate for rate in (combined.min_joint_state_rate, added.min_joint_state_rate) if rate]
    return PluginMapping(
        nodes={**combined.nodes, **added.nodes},
        is_drive=combined.is_drive or added.is_drive,
        command_groups=(*combined.command_groups, *added.command_groups),
        topics={**added.topics, **combined.topics},
        limits=combined.limits or added.limits,
        drive=combined.drive or added.drive,
        base_frame=combined.base_frame or added.base_frame,
        min_joint_state_rate=max(rates) if rates else None,
        gains={**added.gains, **combined.gains},
        inactive_nodes=(*combined.inactive_nodes, *added.inactive_nodes),
        findings=findings,
    )


def _joint_command_nodes(groups: tuple[JointCommandGroup, ...]) -> dict[str, RobotNodeConfig]:
    """Return one node for all joints of a command mode, with a topic for each joint and one for all."""
    nodes: dict[str, RobotNodeConfig] = {}
    for mode, name in _NODE_OF_MODE.items():
        joints_and_topics = [(joint, topic) for group in groups if group.mode == mode
                 for joint, topic in zip(group.joints, group.topics, strict=True)]  # fmt: skip
        if not joints_and_topics:
            continue
        initial_values = {joint: value for group in groups if group.mode == mode
                  for joint, value in zip(group.joints, group.initial, strict=False)}  # fmt: skip
        joint_names = [joint for joint, _ in joints_and_topics]
        parameters: dict[str, Any] = {
            "joints": joint_names,
            "topics": [topic for _, topic in joints_and_topics],
            "mode": mode,
        }
        if initial_values:
            parameters["initial"] = [initial_values.get(joint, 0.0) for joint in joint_names]
        nodes[name] = RobotNodeConfig("roboyard.control.nodes:JointCommandNode", parameters)
    return nodes


def map_controllers(model: Model) -> list[tuple[str, PluginMapping]]:
    """Map each controller of a model, drives first; return the mappings with their locations.

    The first mapping has general findings.

    Raises:
        DescriptionError: A file that a plugin names configures unknown joints, or invalid numbers.
    """
    discovered = find_controllers(model)
    mappings = [("", "", PluginMapping(findings=discovered.findings))] if discovered.findings else []
    for controller in discovered.controllers:
        reader = ControllerReader(model, controller)
        mapper = CONTROLLER_MAPPERS.get(controller.class_name)
        if mapper is None:
            text = f"{controller.location}: nothing here does what {controller.type[:80]} does; it is left out"
            mappings.append((controller.name, controller.location, PluginMapping(findings=(text,))))
            continue
        try:
            mappings.append((controller.name, controller.location, mapper(reader)))
        except (ConfigError, DescriptionError) as error:
            location = controller.location if isinstance(error, ConfigError) else error.location or controller.location
            if not discovered.guessed and not controller.ros1:
                raise DescriptionError(error.message, location=location, valid=error.valid) from error
            text = f"{location}: {error.message}: it is left out"
            mappings.append((controller.name, controller.location, PluginMapping(findings=(text,))))
    return _activate_first_of_each_joint(sorted(mappings, key=lambda item: not item[2].is_drive))


def _activate_first_of_each_joint(mappings: list[tuple[str, str, PluginMapping]]) -> list[tuple[str, PluginMapping]]:
    """Activate the first of the controllers that command the same joint; the robot offers the others."""
    controller_of_joint: dict[str, str] = {}
    activated = []
    for name, location, mapping in mappings:
        commanded_joints = {
            joint: name
            for spec in mapping.nodes.values()
            for key, value in spec.parameters.items()
            if key.endswith("joints")
            for joint in value
        }
        if mapping.drive is not None:
            drive_joints = (*mapping.drive.wheel_joints, *mapping.drive.steering_joints)
            commanded_joints |= dict.fromkeys(drive_joints, name)
        other_controller = next(
            (controller_of_joint[joint] for joint in commanded_joints if joint in controller_of_joint), None
        )
        if other_controller is not None:
            text = f"{location}: it stays down: {other_controller} has its joints; name it to bring it up instead"
            mapping = replace(
                mapping, inactive_nodes=(*mapping.inactive_nodes, *mapping.nodes), findings=(*mapping.findings, text)
            )
        else:
            controller_of_joint |= commanded_joints
        activated.append((location, mapping))
    return activated
