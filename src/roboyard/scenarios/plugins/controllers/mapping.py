"""The table: which controller becomes which nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from roboyard.description.model import Model
from roboyard.errors import DescriptionError
from roboyard.scenarios.plugins.controllers import drives, joints
from roboyard.scenarios.plugins.controllers.files import find_controllers
from roboyard.scenarios.plugins.controllers.reading import ControllerReader
from roboyard.scenarios.plugins.part import Part

TABLE: dict[str, Callable[[ControllerReader], Part]] = {
    "DiffDriveController": drives.differential,
    "MecanumDriveController": drives.mecanum,
    "AckermannSteeringController": drives.steering,
    "BicycleSteeringController": drives.steering,
    "TricycleSteeringController": drives.steering,
    "TricycleController": drives.steering,
    "SteerDriveController": drives.steering,
    "JointTrajectoryController": joints.trajectory,
    "ForwardCommandController": joints.commands,
    "JointGroupPositionController": joints.commands,
    "JointGroupVelocityController": joints.commands,
    "JointGroupEffortController": joints.commands,
    "JointPositionController": joints.commands,
    "JointVelocityController": joints.commands,
    "JointEffortController": joints.commands,
    "UnitreeJointController": joints.unitree,
    "GripperActionController": joints.gripper,
    "JointStateBroadcaster": joints.states,
    "JointStateController": joints.states,
    "IMUSensorBroadcaster": joints.sensors,
    "ImuSensorController": joints.sensors,
    "ForceTorqueSensorBroadcaster": joints.sensors,
    "ForceTorqueSensorController": joints.sensors,
    "RangeSensorBroadcaster": joints.sensors,
    "GPSSensorBroadcaster": joints.sensors,
}
"""By the controller's class."""
_GENERAL = {
    "position_controllers", "velocity_controllers", "effort_controllers", "forward_command_controller",
    "joint_trajectory_controller",
}  # fmt: skip


def map_controllers(model: Model) -> list[tuple[str, Part]]:
    """What each controller of the robot's becomes, and where it stands, drives first.

    The first part holds general findings.

    Raises:
        DescriptionError: a file that a plugin names configures joints that are not there, or impossible numbers.
    """
    found = find_controllers(model)
    parts = [("", "", Part(findings=found.findings))] if found.findings else []
    for one in found.controllers:
        reader = ControllerReader(model, one)
        make = TABLE.get(one.kind)
        if make is None:
            text = f"{one.where}: nothing here does what {one.type[:80]} does; it is left out"
            parts.append((one.name, one.where, Part(findings=(text,))))
            continue
        try:
            parts.append((one.name, one.where, make(reader)))
        except DescriptionError as error:
            if not found.guessed and not one.ros1:
                raise
            text = f"{error.location or one.where}: {error.message}: it is left out"
            parts.append((one.name, one.where, Part(findings=(text,))))
    return _once_a_joint(sorted(parts, key=lambda item: not item[2].drives))


def _once_a_joint(parts: list[tuple[str, str, Part]]) -> list[tuple[str, Part]]:
    """Of controllers that want the same joints the first comes up; the others are offered."""
    taken: dict[str, str] = {}
    out = []
    for name, where, part in parts:
        wanted = {
            joint: name
            for spec in part.nodes.values()
            for key, value in spec.parameters.items()
            if key.endswith("joints")
            for joint in value
        }
        rival = next((taken[joint] for joint in wanted if joint in taken), None)
        if rival is not None:
            text = f"{where}: it stays down: {rival} has its joints; name it to bring it up instead"
            part = replace(part, standby=(*part.standby, *part.nodes), findings=(*part.findings, text))
        else:
            taken |= wanted
        out.append((where, part))
    return out
