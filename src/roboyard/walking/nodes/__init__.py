"""Nodes of robots on legs."""

from roboyard.walking.nodes.gait import GaitNode

__all__ = ["GaitNode"]
