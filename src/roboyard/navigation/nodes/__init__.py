"""Nodes that connect navigation to topics."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.navigation.nodes.docking import DockingNode
    from roboyard.navigation.nodes.explorer import ExplorerNode
    from roboyard.navigation.nodes.goal_controller import GoalControllerNode
    from roboyard.navigation.nodes.mission import MissionNode
    from roboyard.navigation.nodes.navigator import NavigatorNode
    from roboyard.navigation.nodes.teleop_tracker import TeleopTrackerNode

__all__ = ["DockingNode", "ExplorerNode", "GoalControllerNode", "MissionNode", "NavigatorNode", "TeleopTrackerNode"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "docking": ("DockingNode",),
    "explorer": ("ExplorerNode",),
    "goal_controller": ("GoalControllerNode",),
    "mission": ("MissionNode",),
    "navigator": ("NavigatorNode",),
    "teleop_tracker": ("TeleopTrackerNode",),
})  # fmt: skip
