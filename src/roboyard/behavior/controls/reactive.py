"""Children asked anew from the first at every tick: what was done before is broken off if the answer changes."""

from __future__ import annotations

from roboyard.behavior.errors import TreeNodeError
from roboyard.behavior.kinds import Control
from roboyard.behavior.status import FAILURE, IDLE, RUNNING, SKIPPED, SUCCESS, Status


class _Reactive(Control):
    _go_on: Status = SUCCESS

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        if self.status is not RUNNING:
            self.set_status(RUNNING)
        all_skipped = True
        for index, child in enumerate(self.children):
            answer = child.execute()
            if answer is SKIPPED:
                self.halt_child(index)
                continue
            all_skipped = False
            if answer is RUNNING:
                for other in range(len(self.children)):
                    if other != index:
                        self.halt_child(other)
                return RUNNING
            if answer is IDLE:
                raise TreeNodeError(f"[{self.name}]: A children should not return IDLE")
            if answer is not self._go_on:
                self.reset_children()
                return answer
        self.reset_children()
        return SKIPPED if all_skipped else self._go_on


class ReactiveSequence(_Reactive):
    """Succeeds if all children do; conditions before one that is running are asked again and again."""


class ReactiveFallback(_Reactive):
    """Fails if all children do; what comes first takes over as soon as it no longer fails."""

    _go_on = FAILURE
