"""Nodes of robots on legs."""

from roboyard.walking.nodes.gait import GaitNode
from roboyard.walking.nodes.steps import StepsNode

__all__ = ["GaitNode", "StepsNode"]
