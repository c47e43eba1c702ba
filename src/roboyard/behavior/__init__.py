"""Behavior trees: files of BehaviorTree.CPP, executed event for event as BehaviorTree.CPP 4.10 executes them.

The names that most users need: `load_tree`, `read_tree`, `Tree`, `Status`, `Blackboard`, `Factory`, `Action`,
`StatefulAction`, `Condition`, `input_port`.

    status = ry.behavior.load_tree("mission.xml").tick_once()
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.behavior.blackboard import Blackboard
    from roboyard.behavior.errors import ExecutionError, PortError, ScriptError, TreeError, TreeNodeError
    from roboyard.behavior.factory import Factory
    from roboyard.behavior.kinds import Action, Condition, Control, Decorator, GeneratorAction, StatefulAction
    from roboyard.behavior.leaves import StandIn
    from roboyard.behavior.node import TreeNode
    from roboyard.behavior.ports import Port, inout_port, input_port, output_port
    from roboyard.behavior.status import Kind, Status
    from roboyard.behavior.tree import Tree, load_tree, load_trees, read_tree
    from roboyard.behavior.types import PortType, converter

# The names that most users need come first.
__all__ = [  # noqa: RUF022
    "load_tree",
    "read_tree",
    "Tree",
    "Status",
    "Blackboard",
    "Factory",
    "Action",
    "StatefulAction",
    "Condition",
    "input_port",
    "Control",
    "Decorator",
    "ExecutionError",
    "GeneratorAction",
    "Kind",
    "Port",
    "PortError",
    "PortType",
    "ScriptError",
    "StandIn",
    "TreeError",
    "TreeNode",
    "TreeNodeError",
    "converter",
    "inout_port",
    "load_trees",
    "output_port",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "blackboard": ("Blackboard",),
    "errors": ("ExecutionError", "PortError", "ScriptError", "TreeError", "TreeNodeError"),
    "factory": ("Factory",),
    "kinds": ("Action", "Condition", "Control", "Decorator", "GeneratorAction", "StatefulAction"),
    "leaves": ("StandIn",),
    "node": ("TreeNode",),
    "ports": ("Port", "inout_port", "input_port", "output_port"),
    "status": ("Kind", "Status"),
    "tree": ("Tree", "load_tree", "load_trees", "read_tree"),
    "types": ("PortType", "converter"),
})  # fmt: skip
