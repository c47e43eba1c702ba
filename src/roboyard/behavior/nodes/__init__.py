"""Trees on the bus: leaves that send goals and call services, and nodes that run trees and pursue goals."""

from roboyard.behavior.nodes.goal_mission import GoalMissionNode
from roboyard.behavior.nodes.leaves import bind, register
from roboyard.behavior.nodes.tree_mission import TreeMissionNode

__all__ = ["GoalMissionNode", "TreeMissionNode", "bind", "register"]
