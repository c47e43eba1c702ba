"""Trees on the bus: leaves that send goals and call services, and nodes that run trees and pursue goals."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.behavior.nodes.goal_mission import GoalMissionNode
    from roboyard.behavior.nodes.leaves import bind, register
    from roboyard.behavior.nodes.tree_mission import TreeMissionNode

__all__ = ["GoalMissionNode", "TreeMissionNode", "bind", "register"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "goal_mission": ("GoalMissionNode",),
    "leaves": ("bind", "register"),
    "tree_mission": ("TreeMissionNode",),
})  # fmt: skip
