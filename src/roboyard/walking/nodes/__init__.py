"""Nodes of legged robots."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.walking.nodes.free_gait import FreeGaitNode
    from roboyard.walking.nodes.gait import GaitNode
    from roboyard.walking.nodes.legged_robot import LeggedRobotNodeBase

__all__ = ["FreeGaitNode", "GaitNode", "LeggedRobotNodeBase"]

__getattr__, __dir__ = lazy_exports(
    __name__, {"free_gait": ("FreeGaitNode",), "gait": ("GaitNode",), "legged_robot": ("LeggedRobotNodeBase",)}
)
