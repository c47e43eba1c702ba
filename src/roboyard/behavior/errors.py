"""What can be wrong with a tree: when it is read, and when it is ticked.

Each error keeps in ``words`` what BehaviorTree.CPP 4.10 says in its place, word for word, so that the two can be
compared; what the user reads says more: file, line, node, port and what would be right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roboyard.errors import InputError, RoboyardError, describe_exception

if TYPE_CHECKING:
    from roboyard.behavior.node import TreeNode


class TreeError(InputError):
    """A tree's file cannot be used.

    Args:
        what: What is wrong.
        where: File and line, and the node.
        valid: What would be right.
        words: What BehaviorTree.CPP says; the same as ``what`` unless given.
    """

    def __init__(
        self, what: str, *, where: str | None = None, valid: str | None = None, words: str | None = None
    ) -> None:
        super().__init__(what, location=where, valid=valid)
        self.words = what if words is None else words


class TreeNodeError(RoboyardError):
    """What a node says when it cannot do what it is asked; a tick turns it into an `ExecutionError`."""

    @property
    def words(self) -> str:
        """What BehaviorTree.CPP says."""
        return self.message


class PortError(TreeNodeError):
    """A port has no value, or one that is not of its type."""


class ScriptError(TreeNodeError):
    """A script cannot be parsed, or not be carried out."""


class ExecutionError(RoboyardError):
    """A node failed with an error while it was ticked.

    Attributes:
        node: The node in whose ``tick`` the error arose.
        cause: The error.
    """

    def __init__(self, node: TreeNode, cause: BaseException) -> None:
        self.node = node
        self.cause = cause
        said = words_of(cause)
        self.words = f"Exception in node '{node.path}' [{node.type_name}]: {said}"
        hint = getattr(cause, "valid", None)
        inner = getattr(cause, "location", None)
        where = inner if isinstance(cause, TreeNodeError) and inner else f"{node.where}: {type_and_name(node)}"
        super().__init__(said, location=where, valid=hint)


def words_of(error: BaseException) -> str:
    """What an error says, in BehaviorTree.CPP's words where it has any."""
    if isinstance(error, (TreeNodeError, TreeError, ExecutionError)):
        return error.words
    if isinstance(error, SystemExit):
        return describe_exception(error)
    return str(error) or type(error).__name__


def type_and_name(node: TreeNode) -> str:
    """A node for messages: its type, and its path where that says more."""
    return f"<{node.type_name}>" if node.name == node.type_name else f"<{node.type_name}> {node.path!r}"
