"""Nodes that connect control to topics and hardware."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.control.nodes.ackermann import AckermannNode
    from roboyard.control.nodes.drive import DriveNode
    from roboyard.control.nodes.gripper import GripperNode
    from roboyard.control.nodes.joint_command import JointCommandNode
    from roboyard.control.nodes.joint_moves import JointMovesNode
    from roboyard.control.nodes.joint_states import JointStateNode
    from roboyard.control.nodes.joint_trajectory import JointTrajectoryNode
    from roboyard.control.nodes.joint_values import JointValuesNode
    from roboyard.control.nodes.mecanum import MecanumNode
    from roboyard.control.nodes.robot_state import RobotStateNode
    from roboyard.control.nodes.steering import SteeringNode
    from roboyard.control.nodes.velocity import VelocityNode

__all__ = [
    "AckermannNode",
    "DriveNode",
    "GripperNode",
    "JointCommandNode",
    "JointMovesNode",
    "JointStateNode",
    "JointTrajectoryNode",
    "JointValuesNode",
    "MecanumNode",
    "RobotStateNode",
    "SteeringNode",
    "VelocityNode",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "ackermann": ("AckermannNode",),
    "drive": ("DriveNode",),
    "gripper": ("GripperNode",),
    "joint_command": ("JointCommandNode",),
    "joint_moves": ("JointMovesNode",),
    "joint_states": ("JointStateNode",),
    "joint_trajectory": ("JointTrajectoryNode",),
    "joint_values": ("JointValuesNode",),
    "mecanum": ("MecanumNode",),
    "robot_state": ("RobotStateNode",),
    "steering": ("SteeringNode",),
    "velocity": ("VelocityNode",),
})  # fmt: skip
