"""Nodes of navigation."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.navigation.nodes.docking import DockingNode
    from roboyard.navigation.nodes.explorer import ExplorerNode
    from roboyard.navigation.nodes.goal_sequence import GoalSequenceNode
    from roboyard.navigation.nodes.homing import GoalControllerNode, HomingTrackerNode
    from roboyard.navigation.nodes.navigator import NavigatorNode

__all__ = [
    "DockingNode",
    "ExplorerNode",
    "GoalControllerNode",
    "GoalSequenceNode",
    "HomingTrackerNode",
    "NavigatorNode",
]

__getattr__, __dir__ = lazy_exports(__name__, {
        "docking": ("DockingNode",),
        "explorer": ("ExplorerNode",),
        "goal_sequence": ("GoalSequenceNode",),
        "homing": ("GoalControllerNode", "HomingTrackerNode"),
        "navigator": ("NavigatorNode",),
})  # fmt: skip
