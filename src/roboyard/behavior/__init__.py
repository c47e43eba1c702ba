"""Behavior trees: files of BehaviorTree.CPP, executed event for event as BehaviorTree.CPP 4.10 executes them.

The names that most users need: `load_tree`, `read_tree`, `Tree`, `NodeStatus`, `Blackboard`, `NodeFactory`,
`SyncActionNode`, `StatefulActionNode`, `ConditionNode`, `input_port`.

    status = ry.behavior.load_tree("mission.xml").tick_once()
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.behavior.basic_types import NodeStatus, NodeType, PortType, register_converter
    from roboyard.behavior.blackboard import Blackboard
    from roboyard.behavior.builtin_actions import MockConfig
    from roboyard.behavior.errors import InvalidTreeError, PortError, ScriptError, TreeNodeError
    from roboyard.behavior.factory import NodeFactory
    from roboyard.behavior.nodes.conformance import check_tree_node
    from roboyard.behavior.ports import Port, inout_port, input_port, output_port
    from roboyard.behavior.tree import Tree, load_tree, load_trees, read_tree
    from roboyard.behavior.tree_node import (
        ConditionNode,
        ControlNode,
        DecoratorNode,
        ExecutionError,
        GeneratorActionNode,
        StatefulActionNode,
        SyncActionNode,
        TreeNode,
    )

# The names that most users need come first.
__all__ = [  # noqa: RUF022
    "load_tree",
    "read_tree",
    "Tree",
    "NodeStatus",
    "Blackboard",
    "NodeFactory",
    "SyncActionNode",
    "StatefulActionNode",
    "ConditionNode",
    "input_port",
    "ControlNode",
    "DecoratorNode",
    "ExecutionError",
    "GeneratorActionNode",
    "MockConfig",
    "NodeType",
    "Port",
    "PortError",
    "PortType",
    "ScriptError",
    "InvalidTreeError",
    "TreeNode",
    "TreeNodeError",
    "check_tree_node",
    "inout_port",
    "load_trees",
    "output_port",
    "register_converter",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "basic_types": ("NodeStatus", "NodeType", "PortType", "register_converter"),
    "blackboard": ("Blackboard",),
    "builtin_actions": ("MockConfig",),
    "errors": ("PortError", "ScriptError", "InvalidTreeError", "TreeNodeError"),
    "factory": ("NodeFactory",),
    "nodes.conformance": ("check_tree_node",),
    "ports": ("Port", "inout_port", "input_port", "output_port"),
    "tree": ("Tree", "load_tree", "load_trees", "read_tree"),
    "tree_node": (
        "ConditionNode", "ControlNode", "DecoratorNode", "ExecutionError", "GeneratorActionNode", "StatefulActionNode",
        "SyncActionNode", "TreeNode",
    ),
})  # fmt: skip
