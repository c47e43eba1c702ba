"""Nodes of arms: what brings them where goals say, who asks for that, and what keeps them out of clouds."""

from roboyard.manipulation.nodes.arm_mission import ArmMissionNode
from roboyard.manipulation.nodes.move_group import MoveGroupNode
from roboyard.manipulation.nodes.self_filter import SelfFilterNode

__all__ = ["ArmMissionNode", "MoveGroupNode", "SelfFilterNode"]
