"""Nodes that connect control to topics and hardware."""

from roboyard.control.nodes.drive import DriveNode
from roboyard.control.nodes.joint_states import JointStateNode
from roboyard.control.nodes.robot_state import RobotStateNode

__all__ = ["DriveNode", "JointStateNode", "RobotStateNode"]
