"""Trees on the bus: leaves that send goals, call services and talk on topics, and the node that runs a tree."""

from roboyard.behavior.nodes.leaves import bind, register
from roboyard.behavior.nodes.tree_mission import TreeMissionNode

__all__ = ["TreeMissionNode", "bind", "register"]
