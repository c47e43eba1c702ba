"""Nodes of arms: what brings them where goals say, and who asks for that."""

from roboyard.manipulation.nodes.arm_mission import ArmMissionNode
from roboyard.manipulation.nodes.move_group import MoveGroupNode

__all__ = ["ArmMissionNode", "MoveGroupNode"]
