"""Control nodes of BehaviorTree.CPP: sequences, fallbacks, parallel nodes, and nodes that select a child."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from roboyard.behavior.basic_types import (
    FAILURE,
    IDLE,
    RUNNING,
    SKIPPED,
    SUCCESS,
    NodeStatus,
    parse_float,
    parse_integer,
)
from roboyard.behavior.errors import PortError, TreeNodeError
from roboyard.behavior.ports import input_port
from roboyard.behavior.tree_node import ControlNode


class _SequentialControl(ControlNode):
    """Ticks its children one after the other, from the present index, as long as they return ``_continue_status``.

    It is skipped if all children were; ticked again while it runs, it continues with the same child.
    """

    state_fields = ("_index", "_skipped")
    _continue_status: NodeStatus = SUCCESS
    _is_interruptible = False
    """Whether it lets others have a turn after each child that was done in one go."""

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._index = self._skipped = 0

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        status = self.status
        if status is not RUNNING:
            if status is IDLE:
                self._skipped = 0
            self.set_status(RUNNING)
        children = self.children
        count = len(children)
        continue_status, is_interruptible = self._continue_status, self._is_interruptible
        index = self._index
        while index < count:
            child = children[index]
            previous_status = child.status
            child_status = child.execute_tick()
            if child_status is continue_status:
                index += 1
                self._index = index
                if is_interruptible and index < count and self._emit_wake_up_signal(previous_status):
                    return RUNNING
            elif child_status is RUNNING:
                return RUNNING
            elif child_status is SKIPPED:
                index += 1
                self._index = index
                self._skipped += 1
            elif child_status is IDLE:
                raise TreeNodeError(f"[{self.name}]: A children should not return IDLE")
            else:
                self._reset_after_decision()
                return child_status
        all_skipped = self._skipped == count
        self.reset_children()
        self._index = self._skipped = 0
        return SKIPPED if all_skipped else continue_status

    def _reset_after_decision(self) -> None:
        """Reset the children after one of them has determined the status."""
        self.reset_children()
        self._index = 0

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self._index = self._skipped = 0
        super().halt()


class SequenceNode(_SequentialControl):
    """Ticks one child after the other until one fails."""


class AsyncSequence(SequenceNode):
    """A Sequence that can be interrupted between children that finish within one tick."""

    _is_interruptible = True


class FallbackNode(_SequentialControl):
    """Ticks one child after the other until one succeeds."""

    _continue_status = FAILURE


class AsyncFallback(FallbackNode):
    """A Fallback that can be interrupted between children that finish within one tick."""

    _is_interruptible = True


class SequenceWithMemory(_SequentialControl):
    """A Sequence that restarts with the child that failed."""

    _is_interruptible = True

    def _reset_after_decision(self) -> None:
        for index in range(self._index, len(self.children)):
            self.halt_child(index)

    def halt(self) -> None:
        """See `TreeNode.halt`; the index of the child is kept."""
        ControlNode.halt(self)


class _ReactiveControl(ControlNode):
    _continue_status: NodeStatus = SUCCESS

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        if self.status is not RUNNING:
            self.set_status(RUNNING)
        all_skipped = True
        for index, child in enumerate(self.children):
            child_status = child.execute_tick()
            if child_status is SKIPPED:
                self.halt_child(index)
                continue
            all_skipped = False
            if child_status is RUNNING:
                for other in range(len(self.children)):
                    if other != index:
                        self.halt_child(other)
                return RUNNING
            if child_status is IDLE:
                raise TreeNodeError(f"[{self.name}]: A children should not return IDLE")
            if child_status is not self._continue_status:
                self.reset_children()
                return child_status
        self.reset_children()
        return SKIPPED if all_skipped else self._continue_status


class ReactiveSequence(_ReactiveControl):
    """Succeeds if all children do; conditions before a running child are checked at every tick."""


class ReactiveFallback(_ReactiveControl):
    """Fails if all children do; an earlier child takes over as soon as it no longer fails."""

    _continue_status = FAILURE


def resolve_threshold(count: int, children: int) -> int:
    """Return the number of children that a threshold means; a negative one counts from the number of all."""
    return max(children + count + 1, 0) if count < 0 else count


class ParallelNode(ControlNode):
    """Ticks all children until enough of them have succeeded or failed."""

    ports = {  # noqa: RUF012
        "success_count": input_port(int, -1, "Number of children whose success is the success of the node; -1: all."),
        "failure_count": input_port(int, 1, "Number of children whose failure is the failure of the node."),
    }
    state_fields = ("_finished_children", "_succeeded", "_failed")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._clear()

    def _clear(self) -> None:
        self._finished_children: set[int] = set()
        self._succeeded = self._failed = 0

    def _read_count(self, port: str) -> int:
        try:
            return int(self.get_input(port))
        except PortError as error:
            raise TreeNodeError(f"Missing parameter [{port}] in ParallelNode", valid=error.message) from error

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        success_count, failure_count = self._read_count("success_count"), self._read_count("failure_count")
        children = self.children
        count = len(children)
        success_threshold, failure_threshold = (
            resolve_threshold(success_count, count),
            resolve_threshold(failure_count, count),
        )
        if count < success_threshold:
            raise TreeNodeError("Number of children is less than threshold. Can never succeed.")
        if count < failure_threshold:
            raise TreeNodeError("Number of children is less than threshold. Can never fail.")
        if self.status is not RUNNING:
            self.set_status(RUNNING)
        skipped = 0
        for index, child in enumerate(children):
            if index not in self._finished_children:
                child_status = child.execute_tick()
                if child_status is SUCCESS:
                    self._finished_children.add(index)
                    self._succeeded += 1
                elif child_status is FAILURE:
                    self._finished_children.add(index)
                    self._failed += 1
                elif child_status is SKIPPED:
                    skipped += 1
                elif child_status is IDLE:
                    raise TreeNodeError(f"[{self.name}]: A children should not return IDLE")
            if self._succeeded >= success_threshold or (
                success_count < 0 and self._succeeded + skipped >= success_threshold
            ):
                self._clear()
                self.reset_children()
                return SUCCESS
            if count - self._failed < success_threshold or self._failed == failure_threshold:
                self._clear()
                self.reset_children()
                return FAILURE
        return SKIPPED if skipped == count else RUNNING

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self._clear()
        super().halt()


class ParallelAllNode(ControlNode):
    """Ticks all children until all are finished; fails if too many of them have failed."""

    ports = {  # noqa: RUF012
        "max_failures": input_port(int, 1, "Largest number of failed children with which the node succeeds.")
    }
    state_fields = ("_finished_children", "_failed")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._finished_children: set[int] = set()
        self._failed = 0

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        try:
            max_failures = self.get_input("max_failures")
        except PortError as error:
            raise TreeNodeError("Missing parameter [max_failures] in ParallelNode", valid=error.message) from error
        children = self.children
        count = len(children)
        failure_threshold = resolve_threshold(max_failures, count)
        if count < failure_threshold:
            raise TreeNodeError("Number of children is less than threshold. Can never fail.")
        if self.status is not RUNNING:
            self.set_status(RUNNING)
        skipped = 0
        for index, child in enumerate(children):
            if index in self._finished_children:
                continue
            child_status = child.execute_tick()
            if child_status is SUCCESS:
                self._finished_children.add(index)
            elif child_status is FAILURE:
                self._finished_children.add(index)
                self._failed += 1
            elif child_status is SKIPPED:
                skipped += 1
            elif child_status is IDLE:
                raise TreeNodeError(f"[{self.name}]: A children should not return IDLE")
        if skipped == count:
            return SKIPPED
        if skipped + len(self._finished_children) >= count:
            self.reset_children()
            failed = self._failed >= failure_threshold
            self._finished_children.clear()
            self._failed = 0
            return FAILURE if failed else SUCCESS
        return RUNNING

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self._finished_children.clear()
        self._failed = 0
        super().halt()


_EQUALITY_TOLERANCE: Final = 1.1920928955078125e-07


class IfThenElseNode(ControlNode):
    """The first child is the condition, ticked until it is decided; then the second or the third child is ticked."""

    arity = (2, 3)
    state_fields = ("_index",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._index = 0

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        count = len(self.children)
        if count not in (2, 3):
            raise TreeNodeError("IfThenElseNode must have either 2 or 3 children")
        self.set_status(RUNNING)
        if self._index == 0:
            child_status = self.children[0].execute_tick()
            if child_status is RUNNING:
                return RUNNING
            if child_status is SUCCESS:
                self._index = 1
            elif child_status is FAILURE:
                if count == 2:
                    return FAILURE
                self._index = 2
        if self._index > 0:
            child_status = self.children[self._index].execute_tick()
            if child_status is RUNNING:
                return RUNNING
            self.reset_children()
            self._index = 0
            return child_status
        raise TreeNodeError(
            "Something unexpected happened in IfThenElseNode", valid="a condition that is never skipped"
        )

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self._index = 0
        super().halt()


class WhileDoElseNode(ControlNode):
    """The first child is the condition, ticked at every tick; the second or third child is halted when it changes."""

    arity = (2, 3)

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        children = self.children
        count = len(children)
        if count not in (2, 3):
            raise TreeNodeError("WhileDoElseNode must have either 2 or 3 children")
        self.set_status(RUNNING)
        condition = children[0].execute_tick()
        if condition is RUNNING:
            return RUNNING
        branch_status = IDLE
        if condition is SUCCESS:
            if count == 3:
                self.halt_child(2)
            branch_status = children[1].execute_tick()
        elif condition is FAILURE:
            if count == 3:
                self.halt_child(1)
                branch_status = children[2].execute_tick()
            else:
                branch_status = FAILURE
        if branch_status is RUNNING:
            return RUNNING
        self.reset_children()
        return branch_status


class SwitchNode(ControlNode):
    """Ticks the child whose case equals the variable, else the last child; values are compared as text, as numbers or
    as names."""

    state_fields = ("_running_index",)
    n_cases = 2

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._running_index = -1

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        if len(self.children) != self.n_cases + 1:
            raise TreeNodeError("Wrong number of children in SwitchNode; must be (num_cases + default)")
        selected = self._select_case()
        if self._running_index not in (-1, selected):
            self.halt_child(self._running_index)
        child_status = self.children[selected].execute_tick()
        if child_status is SKIPPED:
            self._running_index = -1
        elif child_status is RUNNING:
            self._running_index = selected
        else:
            self.reset_children()
            self._running_index = -1
        return child_status

    def _select_case(self) -> int:
        try:
            variable = self.get_input("variable")
        except PortError:
            return self.n_cases
        for index in range(self.n_cases):
            try:
                value = self.get_input(f"case_{index + 1}")
            except PortError:
                continue
            if equal_texts(variable, value, self._env.enums):
                return index
        return self.n_cases

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self._running_index = -1
        super().halt()


def make_switch_class(n_cases: int) -> type[SwitchNode]:
    """Create the class of a Switch with a number of cases."""
    names = ["variable", *(f"case_{index + 1}" for index in range(n_cases))]
    body = {
        "n_cases": n_cases,
        "arity": (n_cases + 1, n_cases + 1),
        "ports": {name: input_port(str, doc=_switch_port_doc(name)) for name in names},
        "__module__": __name__,
    }
    return type(f"Switch{n_cases}", (SwitchNode,), body)


def _switch_port_doc(name: str) -> str:
    return "Text that is compared, usually an entry as `{key}`." if name == "variable" else "Text for this child."


def equal_texts(left: str, right: str, enums: Mapping[str, int]) -> bool:
    """Return whether two texts are equal as texts, as numbers or as names of numbers."""
    if left == right:
        return True
    integers = [enums.get(text, parse_integer(text, full_match=True)) for text in (left, right)]
    if None not in integers and integers[0] == integers[1]:
        return True
    a, b = (enums.get(text, parse_float(text, full_match=True)) for text in (left, right))
    return a is not None and b is not None and abs(a - b) <= _EQUALITY_TOLERANCE


class TryCatchNode(ControlNode):
    """A Sequence of all children but the last, which is ticked when one of them fails; the node fails then."""

    ports = {  # noqa: RUF012
        "catch_on_halt": input_port(bool, False, "Whether the last child is also ticked when the node is halted.")
    }
    state_fields = ("_index", "_skipped", "_is_catching")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._index = self._skipped = 0
        self._is_catching = False

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        count = len(self.children) - 1
        if count < 1:
            raise TreeNodeError(f"[{self.name}]: TryCatch requires at least 2 children")
        if self.status is IDLE:
            self._skipped = 0
            self._is_catching = False
        self.set_status(RUNNING)
        while not self._is_catching and self._index < count:
            child_status = self.children[self._index].execute_tick()
            if child_status is RUNNING:
                return RUNNING
            if child_status is FAILURE:
                self.reset_children()
                self._index = 0
                self._is_catching = True
            elif child_status is IDLE:
                raise TreeNodeError(f"[{self.name}]: A child should not return IDLE")
            else:
                self._index += 1
                self._skipped += child_status is SKIPPED
        if self._is_catching:
            if self.children[-1].execute_tick() is RUNNING:
                return RUNNING
            self.reset_children()
            self._index = 0
            self._is_catching = False
            return FAILURE
        all_skipped = self._skipped == count
        self.reset_children()
        self._index = self._skipped = 0
        return SKIPPED if all_skipped else SUCCESS

    def halt(self) -> None:
        """See `TreeNode.halt`; the last child is ticked once if ``catch_on_halt`` is set."""
        try:
            catches_halt = bool(self.get_input("catch_on_halt"))
        except PortError:
            catches_halt = False
        last = len(self.children) - 1
        if catches_halt and not self._is_catching and self.status is not IDLE and last >= 1:
            for index in range(last):
                self.halt_child(index)
            if self.children[last].execute_tick() is RUNNING:
                self.halt_child(last)
        self._index = self._skipped = 0
        self._is_catching = False
        super().halt()
