"""Nodes of arms: what brings them where goals say."""

from roboyard.manipulation.nodes.move_group import MoveGroupNode

__all__ = ["MoveGroupNode"]
