"""A child that is done when an entry of the blackboard was set anew."""

from __future__ import annotations

from typing import Any

from roboyard.behavior.errors import TreeNodeError
from roboyard.behavior.kinds import Action, Decorator
from roboyard.behavior.node import TreeNode
from roboyard.behavior.ports import input_port, pointer
from roboyard.behavior.status import FAILURE, RUNNING, SKIPPED, SUCCESS, Status
from roboyard.behavior.types import VALUE


def _key(node: TreeNode) -> str:
    text = node.inputs.get("entry")
    if not text:
        raise TreeNodeError(f"Missing port 'entry' in {node.name}", valid='entry="{key}"')
    return pointer(text) or text


def _is_new(node: Any) -> bool:
    """Whether the entry was set since it was last asked for."""
    entry = node.blackboard.entry(node._key)
    if entry is None:
        return False
    seen, node._seen = node._seen, entry.sequence
    return bool(seen != entry.sequence)


class WasEntryUpdated(Action):
    """Whether an entry was set since this was asked last."""

    ports = {"entry": input_port(VALUE, doc="Entry to check")}  # noqa: RUF012
    state_fields = ("_seen",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._seen = 0
        self._key = _key(self)

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        return SUCCESS if _is_new(self) else FAILURE


class _Updated(Decorator):
    ports = {"entry": input_port(VALUE, doc="Entry to check")}  # noqa: RUF012
    state_fields = ("_seen", "_busy")
    _otherwise: Status = SKIPPED

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._seen = 0
        self._busy = False
        self._key = _key(self)

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        if not self._busy and not _is_new(self):
            return self._otherwise
        answer = self.children[0].execute()
        self._busy = answer is RUNNING
        return answer

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self._busy = False
        super().halt()


class SkipUnlessUpdated(_Updated):
    """Is skipped unless the entry was set anew."""


class WaitValueUpdate(_Updated):
    """Waits until the entry was set anew."""

    _otherwise = RUNNING
