"""Behavior trees on the bus: leaves that use actions, services and topics, and the nodes that execute trees and
tasks."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.behavior.nodes.leaf_registry import bind_leaves, register
    from roboyard.behavior.nodes.task_executor import TaskExecutorNode
    from roboyard.behavior.nodes.tree_executor import TreeExecutorNode

__all__ = [
    "TaskExecutorNode",
    "TreeExecutorNode",
    "bind_leaves",
    "register",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "leaf_registry": (
            "bind_leaves",
            "register",
        ),
        "task_executor": ("TaskExecutorNode",),
        "tree_executor": ("TreeExecutorNode",),
    },
)
