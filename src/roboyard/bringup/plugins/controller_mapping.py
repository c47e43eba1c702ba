"""Table of controller mappers, and the mappings of all controllers of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from roboyard.bringup.plugins import controller_drives, controller_joints
from roboyard.bringup.plugins.controller_files import find_controllers
from roboyard.bringup.plugins.controller_reader import ControllerReader
from roboyard.bringup.plugins.plugin_mapping import PluginMapping
from roboyard.description.model import Model
from roboyard.errors import ConfigError, DescriptionError

CONTROLLER_MAPPERS: dict[str, Callable[[ControllerReader], PluginMapping]] = {
    "DiffDriveController": controller_drives.map_differential_drive_controller,
    "MecanumDriveController": controller_drives.map_mecanum_drive_controller,
    "AckermannSteeringController": controller_drives.map_steering_controller,
    "BicycleSteeringController": controller_drives.map_steering_controller,
    "TricycleSteeringController": controller_drives.map_steering_controller,
    "TricycleController": controller_drives.map_steering_controller,
    "SteerDriveController": controller_drives.map_steering_controller,
    "JointTrajectoryController": controller_joints.map_trajectory_controller,
    "ForwardCommandController": controller_joints.map_command_controller,
    "JointGroupPositionController": controller_joints.map_command_controller,
    "JointGroupVelocityController": controller_joints.map_command_controller,
    "JointGroupEffortController": controller_joints.map_command_controller,
    "JointPositionController": controller_joints.map_command_controller,
    "JointVelocityController": controller_joints.map_command_controller,
    "JointEffortController": controller_joints.map_command_controller,
    "UnitreeJointController": controller_joints.map_unitree_controller,
    "GripperActionController": controller_joints.map_gripper_controller,
    "JointStateBroadcaster": controller_joints.map_joint_state_broadcaster,
    "JointStateController": controller_joints.map_joint_state_broadcaster,
    "IMUSensorBroadcaster": controller_joints.map_sensor_broadcaster,
    "ImuSensorController": controller_joints.map_sensor_broadcaster,
    "ForceTorqueSensorBroadcaster": controller_joints.map_sensor_broadcaster,
    "ForceTorqueSensorController": controller_joints.map_sensor_broadcaster,
    "RangeSensorBroadcaster": controller_joints.map_sensor_broadcaster,
    "GPSSensorBroadcaster": controller_joints.map_sensor_broadcaster,
}
"""By the controller's class."""


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
