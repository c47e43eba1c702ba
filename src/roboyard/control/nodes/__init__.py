"""Nodes that connect control to topics and hardware."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.control.nodes.gripper import GripperNode
    from roboyard.control.nodes.joint_command import JointCommandNode
    from roboyard.control.nodes.joint_motion import IndexedJointMotionNode, JointMotionNode, NamedJointMotionNode
    from roboyard.control.nodes.joint_states import JointStateNode
    from roboyard.control.nodes.joint_trajectory import JointTrajectoryNode
    from roboyard.control.nodes.robot_state import RobotStateNode, StaticTransformNode
    from roboyard.control.nodes.steering import SteeringAngleNode
    from roboyard.control.nodes.velocity_base import VelocityBaseNode
    from roboyard.control.nodes.velocity_controller import AckermannDriveNode, DifferentialDriveNode, MecanumDriveNode

__all__ = [
    "AckermannDriveNode",
    "DifferentialDriveNode",
    "GripperNode",
    "IndexedJointMotionNode",
    "JointCommandNode",
    "JointMotionNode",
    "JointStateNode",
    "JointTrajectoryNode",
    "MecanumDriveNode",
    "NamedJointMotionNode",
    "RobotStateNode",
    "StaticTransformNode",
    "SteeringAngleNode",
    "VelocityBaseNode",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "gripper": ("GripperNode",),
    "joint_command": ("JointCommandNode",),
    "joint_motion": ("IndexedJointMotionNode", "JointMotionNode", "NamedJointMotionNode"),
    "joint_states": ("JointStateNode",),
    "joint_trajectory": ("JointTrajectoryNode",),
    "robot_state": ("RobotStateNode", "StaticTransformNode"),
    "steering": ("SteeringAngleNode",),
    "velocity_base": ("VelocityBaseNode",),
    "velocity_controller": ("AckermannDriveNode", "DifferentialDriveNode", "MecanumDriveNode"),
})  # fmt: skip
