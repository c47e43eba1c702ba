"""The controls and decorators that Nav2's trees use, with Nav2's names, ports and meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from roboyard.behavior.errors import TreeNodeError
from roboyard.behavior.kinds import Control, Decorator
from roboyard.behavior.ports import input_port
from roboyard.behavior.status import FAILURE, IDLE, RUNNING, SKIPPED, SUCCESS, Status

if TYPE_CHECKING:
    from roboyard.behavior.factory import Factory


class RecoveryNode(Control):
    """Does its first child; where that fails its second, and then the first anew, up to so often."""

    arity = (2, 2)
    ports: ClassVar = {"number_of_retries": input_port(int, 1, "Number of retries")}
    state_fields = ("_index", "_retries")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._index = self._retries = 0

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        if len(self.children) != 2:
            raise TreeNodeError(f"Recovery Node '{self.name}' must only have 2 children.")
        most = self.input("number_of_retries")
        self.set_status(RUNNING)
        while self._index < 2 and self._retries <= most:
            answer = self.children[self._index].execute()
            if answer is RUNNING:
                return RUNNING
            if self._index == 0:
                if answer is SUCCESS or answer is SKIPPED:
                    self.halt()
                    return answer
                if self._retries >= most:
                    break
                self.halt_child(0)
                self._index = 1
            elif answer is SKIPPED:  # there is nothing to recover with: no retry, and none is counted
                self._index = 0
                self.halt_child(1)
                return FAILURE
            elif answer is SUCCESS:
                self.halt_child(1)
                self._retries += 1
                self._index = 0
            else:
                break
        self.halt()
        return FAILURE

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        super().halt()
        self._index = self._retries = 0


class PipelineSequence(Control):
    """A sequence in which all children before the one that runs are ticked again."""

    state_fields = ("_last",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._last = 0

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        skipped = 0
        for index, child in enumerate(self.children):
            answer = child.execute()
            if answer is FAILURE:
                self._stop()
                return FAILURE
            if answer is SKIPPED:
                skipped += 1
            elif answer is RUNNING and index >= self._last:
                self._last = index
                return RUNNING
        self._stop()
        return SKIPPED if skipped == len(self.children) else SUCCESS

    def _stop(self) -> None:
        self.reset_children()
        self._last = 0

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self._last = 0
        super().halt()


class RoundRobin(Control):
    """Tries its children in turn until one succeeds, and goes on with the next one when it is asked again."""

    ports: ClassVar = {"wrap_around": input_port(bool, False, "Whether to go on with the first after the last")}
    state_fields = ("_index", "_failed")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._index = self._failed = 0

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        count = len(self.children)
        skipped = 0
        self.set_status(RUNNING)
        while self._failed + skipped < count:
            answer = self.children[self._index].execute()
            if answer is RUNNING:
                return RUNNING
            skipped += answer is SKIPPED
            self._failed += answer is FAILURE
            self._index += 1
            if self._index == count:
                if not self.input("wrap_around"):
                    break  # so it fails after the last one, whatever that answered: as Nav2 has it
                self._index = 0
            if answer is SUCCESS:
                self._failed = 0
                self.reset_children()
                return SUCCESS
        self.halt()
        return SKIPPED if skipped == count else FAILURE

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        super().halt()
        self._index = self._failed = 0


class RateController(Decorator):
    """Ticks its child at most so often; between, it runs."""

    ports: ClassVar = {"hz": input_port(float, 10.0, "Rate")}
    state_fields = ("_since_ns", "_first")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._since_ns = 0
        self._first = True

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        if self.status is IDLE:
            self._since_ns = self.now_ns
            self._first = True
        self.set_status(RUNNING)
        child = self.children[0]
        due = (self.now_ns - self._since_ns) * 1e-9 * self.input("hz") >= 1.0 - 1e-9
        if not (self._first or child.status is RUNNING or due):
            return self.status
        self._first = False
        answer = child.execute()
        if answer is SUCCESS:
            self._since_ns = self.now_ns
        return answer


class SingleTrigger(Decorator):
    """Ticks its child until it is done once; after that it fails."""

    state_fields = ("_spent",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._spent = False

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        if self.status is IDLE:
            self._spent = False
        self.set_status(RUNNING)
        if self._spent:
            return FAILURE
        answer = self.children[0].execute()
        self._spent = answer in (SUCCESS, FAILURE)
        return answer


def register(factory: Factory) -> None:
    """Add them to a factory."""
    for node in (RecoveryNode, PipelineSequence, RoundRobin, RateController, SingleTrigger):
        factory.register(node)
