"""One child or another: by a condition, by a value, or when something failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from roboyard.behavior.errors import PortError, TreeNodeError
from roboyard.behavior.kinds import Control
from roboyard.behavior.ports import input_port
from roboyard.behavior.status import FAILURE, IDLE, RUNNING, SKIPPED, SUCCESS, Status
from roboyard.behavior.types import parse_integer, parse_real

_SAME: Final = 1.1920928955078125e-07


class IfThenElse(Control):
    """The first child is the condition, asked until it has answered; then the second or the third."""

    arity = (2, 3)
    state_fields = ("_index",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._index = 0

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        count = len(self.children)
        if count not in (2, 3):
            raise TreeNodeError("IfThenElseNode must have either 2 or 3 children")
        self.set_status(RUNNING)
        if self._index == 0:
            answer = self.children[0].execute()
            if answer is RUNNING:
                return RUNNING
            if answer is SUCCESS:
                self._index = 1
            elif answer is FAILURE:
                if count == 2:
                    return FAILURE
                self._index = 2
        if self._index > 0:
            answer = self.children[self._index].execute()
            if answer is RUNNING:
                return RUNNING
            self.reset_children()
            self._index = 0
            return answer
        raise TreeNodeError(
            "Something unexpected happened in IfThenElseNode", valid="a condition that is never skipped"
        )

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self._index = 0
        super().halt()


class WhileDoElse(Control):
    """The first child is the condition, asked at every tick; the second or third is broken off when it changes."""

    arity = (2, 3)

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        children = self.children
        count = len(children)
        if count not in (2, 3):
            raise TreeNodeError("WhileDoElseNode must have either 2 or 3 children")
        self.set_status(RUNNING)
        condition = children[0].execute()
        if condition is RUNNING:
            return RUNNING
        answer = IDLE
        if condition is SUCCESS:
            if count == 3:
                self.halt_child(2)
            answer = children[1].execute()
        elif condition is FAILURE:
            if count == 3:
                self.halt_child(1)
                answer = children[2].execute()
            else:
                answer = FAILURE
        if answer is RUNNING:
            return RUNNING
        self.reset_children()
        return answer


class Switch(Control):
    """The child whose case equals the variable, or the last one; as numbers or names, if not as text."""

    state_fields = ("_running",)
    cases = 2

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._running = -1

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        if len(self.children) != self.cases + 1:
            raise TreeNodeError("Wrong number of children in SwitchNode; must be (num_cases + default)")
        chosen = self._chosen()
        if self._running not in (-1, chosen):
            self.halt_child(self._running)
        answer = self.children[chosen].execute()
        if answer is SKIPPED:
            self._running = -1
        elif answer is RUNNING:
            self._running = chosen
        else:
            self.reset_children()
            self._running = -1
        return answer

    def _chosen(self) -> int:
        try:
            variable = self.input("variable")
        except PortError:
            return self.cases
        for index in range(self.cases):
            try:
                value = self.input(f"case_{index + 1}")
            except PortError:
                continue
            if equal_texts(variable, value, self._env.enums):
                return index
        return self.cases

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self._running = -1
        super().halt()


def switch(cases: int) -> type[Switch]:
    """The class of a Switch with so many cases."""
    names = ["variable", *(f"case_{index + 1}" for index in range(cases))]
    body = {
        "cases": cases,
        "arity": (cases + 1, cases + 1),
        "ports": {name: input_port(str) for name in names},
        "__module__": __name__,
    }
    return type(f"Switch{cases}", (Switch,), body)


def equal_texts(left: str, right: str, enums: Mapping[str, int]) -> bool:
    """Whether two texts are the same, or the same number or name of one."""
    if left == right:
        return True
    whole = [enums.get(text, parse_integer(text, whole=True)) for text in (left, right)]
    if None not in whole and whole[0] == whole[1]:
        return True
    a, b = (enums.get(text, parse_real(text, whole=True)) for text in (left, right))
    return a is not None and b is not None and abs(a - b) <= _SAME


class TryCatch(Control):
    """A Sequence of all children but the last, which is done when one of them fails; it fails then all the same."""

    ports = {  # noqa: RUF012
        "catch_on_halt": input_port(
            bool, False, "If true, execute the catch child when the node is halted during the try-block"
        )
    }
    state_fields = ("_index", "_skipped", "_catching")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._index = self._skipped = 0
        self._catching = False

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        count = len(self.children) - 1
        if count < 1:
            raise TreeNodeError(f"[{self.name}]: TryCatch requires at least 2 children")
        if self.status is IDLE:
            self._skipped = 0
            self._catching = False
        self.set_status(RUNNING)
        while not self._catching and self._index < count:
            answer = self.children[self._index].execute()
            if answer is RUNNING:
                return RUNNING
            if answer is FAILURE:
                self.reset_children()
                self._index = 0
                self._catching = True
            elif answer is IDLE:
                raise TreeNodeError(f"[{self.name}]: A child should not return IDLE")
            else:
                self._index += 1
                self._skipped += answer is SKIPPED
        if self._catching:
            if self.children[-1].execute() is RUNNING:
                return RUNNING
            self.reset_children()
            self._index = 0
            self._catching = False
            return FAILURE
        all_skipped = self._skipped == count
        self.reset_children()
        self._index = self._skipped = 0
        return SKIPPED if all_skipped else SUCCESS

    def halt(self) -> None:
        """See `TreeNode.halt`; the last child is ticked once, if it is to be."""
        try:
            wanted = bool(self.input("catch_on_halt"))
        except PortError:
            wanted = False
        last = len(self.children) - 1
        if wanted and not self._catching and self.status is not IDLE and last >= 1:
            for index in range(last):
                self.halt_child(index)
            if self.children[last].execute() is RUNNING:
                self.halt_child(last)
        self._index = self._skipped = 0
        self._catching = False
        super().halt()
