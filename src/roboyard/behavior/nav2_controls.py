"""Control nodes and decorators of Nav2's trees, with Nav2's names, ports and semantics."""

from __future__ import annotations

from typing import ClassVar

from roboyard.behavior.basic_types import FAILURE, IDLE, RUNNING, SKIPPED, SUCCESS, NodeStatus
from roboyard.behavior.errors import TreeNodeError
from roboyard.behavior.ports import input_port
from roboyard.behavior.tree_node import ControlNode, DecoratorNode


class RecoveryNode(ControlNode):
    """Ticks its first child; if that fails, its second child and then the first one again, up to a number of
    retries.

    Nav2: the same.
    """

    arity = (2, 2)
    ports: ClassVar = {"number_of_retries": input_port(int, 1, "Number of times that the first child is repeated.")}
    state_fields = ("_index", "_n_retries")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._index = self._n_retries = 0

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        if len(self.children) != 2:
            raise TreeNodeError(f"Recovery Node '{self.name}' must only have 2 children.")
        max_retries = self.get_input("number_of_retries")
        self.set_status(RUNNING)
        while self._index < 2 and self._n_retries <= max_retries:
            child_status = self.children[self._index].execute_tick()
            if child_status is RUNNING:
                return RUNNING
            if self._index == 0:
                if child_status is SUCCESS or child_status is SKIPPED:
                    self.halt()
                    return child_status
                if self._n_retries >= max_retries:
                    break
                self.halt_child(0)
                self._index = 1
            elif child_status is SKIPPED:  # there is nothing to recover with: no retry, and none is counted
                self._index = 0
                self.halt_child(1)
                return FAILURE
            elif child_status is SUCCESS:
                self.halt_child(1)
                self._n_retries += 1
                self._index = 0
            else:
                break
        self.halt()
        return FAILURE

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        super().halt()
        self._index = self._n_retries = 0


class PipelineSequence(ControlNode):
    """A Sequence in which all children before the running one are ticked again.

    Nav2: the same.
    """

    state_fields = ("_last_running_index",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._last_running_index = 0

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        skipped = 0
        for index, child in enumerate(self.children):
            child_status = child.execute_tick()
            if child_status is FAILURE:
                self._stop()
                return FAILURE
            if child_status is SKIPPED:
                skipped += 1
            elif child_status is RUNNING and index >= self._last_running_index:
                self._last_running_index = index
                return RUNNING
        self._stop()
        return SKIPPED if skipped == len(self.children) else SUCCESS

    def _stop(self) -> None:
        self.reset_children()
        self._last_running_index = 0

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self._last_running_index = 0
        super().halt()


class RoundRobin(ControlNode):
    """Ticks its children in order until one succeeds, and continues with the next one when it is ticked again.

    Nav2: the same.
    """

    ports: ClassVar = {"wrap_around": input_port(bool, False, "Whether the first child follows the last one.")}
    state_fields = ("_index", "_n_failed")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._index = self._n_failed = 0

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        count = len(self.children)
        skipped = 0
        self.set_status(RUNNING)
        while self._n_failed + skipped < count:
            child_status = self.children[self._index].execute_tick()
            if child_status is RUNNING:
                return RUNNING
            skipped += child_status is SKIPPED
            self._n_failed += child_status is FAILURE
            self._index += 1
            if self._index == count:
                if not self.get_input("wrap_around"):
                    break  # so it fails after the last one, whatever that answered: as Nav2 has it
                self._index = 0
            if child_status is SUCCESS:
                self._n_failed = 0
                self.reset_children()
                return SUCCESS
        self.halt()
        return SKIPPED if skipped == count else FAILURE

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        super().halt()
        self._index = self._n_failed = 0


class RateController(DecoratorNode):
    """Ticks its child at a limited rate; in between it is RUNNING.

    Nav2: the same; the rate refers to simulated time.
    """

    ports: ClassVar = {"hz": input_port(float, 10.0, "Rate of the ticks of the child [Hz].")}
    state_fields = ("_period_start_ns", "_is_first_tick")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._period_start_ns = 0
        self._is_first_tick = True

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        if self.status is IDLE:
            self._period_start_ns = self.now_ns
            self._is_first_tick = True
        self.set_status(RUNNING)
        child = self.children[0]
        is_due = (self.now_ns - self._period_start_ns) * 1e-9 * self.get_input("hz") >= 1.0 - 1e-9
        if not (self._is_first_tick or child.status is RUNNING or is_due):
            return self.status
        self._is_first_tick = False
        child_status = child.execute_tick()
        if child_status is SUCCESS:
            self._period_start_ns = self.now_ns
        return child_status


class SingleTrigger(DecoratorNode):
    """Ticks its child until it has finished once; afterwards it fails.

    Nav2: the same.
    """

    state_fields = ("_has_finished",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._has_finished = False

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        if self.status is IDLE:
            self._has_finished = False
        self.set_status(RUNNING)
        if self._has_finished:
            return FAILURE
        child_status = self.children[0].execute_tick()
        self._has_finished = child_status in (SUCCESS, FAILURE)
        return child_status
