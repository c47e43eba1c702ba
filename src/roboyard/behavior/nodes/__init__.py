"""Behavior trees on the bus: the node that executes a tree, its host for leaves, and leaves for any topic, service and
action."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.behavior.nodes.leaf_host import (
        ActionLeaf,
        BusLeaf,
        LeafHost,
        LeafHostNode,
        create_host_factory,
    )
    from roboyard.behavior.nodes.topic_leaves import TopicLeaf
    from roboyard.behavior.nodes.tree_executor import TreeExecutorNode

__all__ = [
    "ActionLeaf",
    "BusLeaf",
    "LeafHost",
    "LeafHostNode",
    "TopicLeaf",
    "TreeExecutorNode",
    "create_host_factory",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "leaf_host": ("ActionLeaf", "BusLeaf", "LeafHost", "LeafHostNode", "create_host_factory"),
    "topic_leaves": ("TopicLeaf",),
    "tree_executor": ("TreeExecutorNode",),
})  # fmt: skip
