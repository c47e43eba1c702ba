"""Errors of behavior trees: when a tree is read, and when it is ticked.

``bt_cpp_message`` of each error is the message of BehaviorTree.CPP 4.10, word for word, so that the two can be
compared; the message for users contains more: file, line, node, port and what is valid.
"""

from __future__ import annotations

from collections.abc import Iterable

from roboyard.errors import InputError, RoboyardError, describe_exception, similar_names


class InvalidTreeError(InputError):
    """The file of a tree is not valid.

    Args:
        message: What is wrong.
        location: File and line, and the node.
        valid: What would be right.
        bt_cpp_message: What BehaviorTree.CPP says; the same as ``message`` unless given.
    """

    def __init__(
        self, message: str, *, location: str | None = None, valid: str | None = None, bt_cpp_message: str | None = None
    ) -> None:
        super().__init__(message, location=location, valid=valid)
        self.bt_cpp_message = message if bt_cpp_message is None else bt_cpp_message


class TreeNodeError(RoboyardError):
    """A node cannot be created or ticked; a tick converts the error to an `ExecutionError`."""

    @property
    def bt_cpp_message(self) -> str:
        """Return the message of BehaviorTree.CPP."""
        return self.message


class PortError(TreeNodeError):
    """A port has no value, or a value of another type."""


class ScriptError(TreeNodeError):
    """A script cannot be parsed or evaluated."""


def bt_cpp_message(error: BaseException) -> str:
    """Return the message of an error, in BehaviorTree.CPP's words if it has any."""
    message = getattr(error, "bt_cpp_message", None)
    if isinstance(message, str):
        return message
    if isinstance(error, SystemExit):
        return describe_exception(error)
    return str(error) or type(error).__name__


def alternatives(name: str, names: Iterable[str], max_names: int = 60) -> str:
    """Return the valid names for an error message, the most similar ones first."""
    sorted_names = sorted(names)
    similar = similar_names(name, sorted_names)
    hint = f"perhaps {', '.join(similar)}; " if similar else ""
    listed = ", ".join(sorted_names[:max_names]) + (
        f", and {len(sorted_names) - max_names} more" if len(sorted_names) > max_names else ""
    )
    return f"{hint}there are {listed}" if sorted_names else f"{hint}there are none"
