"""Children one after the other: Sequence and Fallback, and their kin."""

from __future__ import annotations

from roboyard.behavior.errors import TreeNodeError
from roboyard.behavior.kinds import Control
from roboyard.behavior.status import FAILURE, IDLE, RUNNING, SKIPPED, SUCCESS, Status


class _InTurn(Control):
    """Ticks its children in turn, from where it stands, as long as they answer ``_go_on``.

    It is skipped if all children were; it takes up where it stood when it is ticked again while it runs.
    """

    state_fields = ("_index", "_skipped")
    _go_on: Status = SUCCESS
    _breaks_off = False
    """Whether it lets others have a turn after each child that was done in one go."""

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._index = self._skipped = 0

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        status = self.status
        if status is not RUNNING:
            if status is IDLE:
                self._skipped = 0
            self.set_status(RUNNING)
        children = self.children
        count = len(children)
        go_on, breaks_off = self._go_on, self._breaks_off
        index = self._index
        while index < count:
            child = children[index]
            before = child.status
            answer = child.execute()
            if answer is go_on:
                index += 1
                self._index = index
                if breaks_off and index < count and self._wake(before):
                    return RUNNING
            elif answer is RUNNING:
                return RUNNING
            elif answer is SKIPPED:
                index += 1
                self._index = index
                self._skipped += 1
            elif answer is IDLE:
                raise TreeNodeError(f"[{self.name}]: A children should not return IDLE")
            else:
                self._stop()
                return answer
        all_skipped = self._skipped == count
        self.reset_children()
        self._index = self._skipped = 0
        return SKIPPED if all_skipped else go_on

    def _stop(self) -> None:
        """A child has answered for all."""
        self.reset_children()
        self._index = 0

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self._index = self._skipped = 0
        super().halt()


class Sequence(_InTurn):
    """Does one child after the other until one fails."""


class AsyncSequence(Sequence):
    """A Sequence that can be interrupted between children that are done at once."""

    _breaks_off = True


class Fallback(_InTurn):
    """Tries one child after the other until one succeeds."""

    _go_on = FAILURE


class AsyncFallback(Fallback):
    """A Fallback that can be interrupted between children that are done at once."""

    _breaks_off = True


class SequenceWithMemory(_InTurn):
    """A Sequence that begins anew with the child that failed."""

    _breaks_off = True

    def _stop(self) -> None:
        for index in range(self._index, len(self.children)):
            self.halt_child(index)

    def halt(self) -> None:
        """See `TreeNode.halt`; where it stands is kept."""
        Control.halt(self)
