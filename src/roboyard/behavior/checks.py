"""What has to be right before a tree is ticked, and what BehaviorTree.CPP finds out only in the tick itself."""

from __future__ import annotations

from collections.abc import Iterable

from roboyard.behavior.errors import TreeError, type_and_name
from roboyard.behavior.node import TreeNode


def check_nodes(nodes: Iterable[TreeNode]) -> None:
    """Whether each node has the ports and the children without which it cannot be ticked.

    Raises:
        TreeError: one has not; says file, line, node, port and what would be right.
    """
    for node in nodes:
        _check_ports(node)
        _check_children(node)


def _check_ports(node: TreeNode) -> None:
    for name, port in node.ports.items():
        if port.required and name not in node.inputs:
            raise TreeError(
                f"the port [{name}] is missing" + (f": {port.doc}" if port.doc else ""),
                where=f"{node.where}: {type_and_name(node)}, port {name}",
                valid=f'{name}="{{entry}}"' + (f" or a constant of type {port.type.name}" if port.type.strong else ""),
            )


def _check_children(node: TreeNode) -> None:
    if node.arity is None:
        return
    low, high = node.arity
    if not low <= len(node.children) <= high:
        wanted = f"{low}" if low == high else f"{low} to {high}"
        raise TreeError(
            f"it has {len(node.children)} children",
            where=f"{node.where}: {type_and_name(node)}",
            valid=f"{wanted} of them",
        )
