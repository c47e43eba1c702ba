"""Nodes of robots on legs."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.walking.nodes.gait import GaitNode
    from roboyard.walking.nodes.steps import StepsNode

__all__ = ["GaitNode", "StepsNode"]

__getattr__, __dir__ = lazy_exports(__name__, {"gait": ("GaitNode",), "steps": ("StepsNode",)})
