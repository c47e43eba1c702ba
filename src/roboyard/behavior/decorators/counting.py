"""A child that is done several times."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Any

from roboyard.behavior.blackboard import EMPTY
from roboyard.behavior.errors import PortError, TreeNodeError
from roboyard.behavior.kinds import Decorator
from roboyard.behavior.ports import inout_port, input_port, output_port, remapped
from roboyard.behavior.status import FAILURE, IDLE, RUNNING, SKIPPED, SUCCESS, Status
from roboyard.behavior.types import list_of, type_of


class _Counted(Decorator):
    _port = ""
    _class_name = ""
    _again: Status = SUCCESS
    """The answer after which the child is done again."""
    _refreshed = False
    state_fields = ("_count",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._count = 0

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        try:
            most = self.input(self._port)
        except PortError as error:
            missing = f"Missing parameter [{self._port}] in {self._class_name}"
            raise TreeNodeError(missing, valid=error.message) from error
        again = self._count < most or most == -1
        if self.status is not RUNNING:
            self.set_status(RUNNING)
        child = self.children[0]
        while again:
            before = child.status
            answer = child.execute()
            if answer is RUNNING:
                return RUNNING
            if answer is IDLE:
                raise TreeNodeError(f"[{self.name}]: A children should not return IDLE")
            if answer is SKIPPED:
                self.reset_child()
                return SKIPPED
            if answer is not self._again:
                self._count = 0
                self.reset_child()
                return answer
            self._count += 1
            if self._refreshed:  # a child may have changed it
                with suppress(PortError):
                    most = self.input(self._port)
            again = self._count < most or most == -1
            self.reset_child()
            if again and self._wake(before):
                return RUNNING
        self._count = 0
        return self._again

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self._count = 0
        super().halt()


class Repeat(_Counted):
    """Has its child done so often, as long as it succeeds."""

    ports = {  # noqa: RUF012
        "num_cycles": input_port(int, doc="Repeat a successful child up to N times. Use -1 to create an infinite loop.")
    }
    _port = "num_cycles"
    _class_name = "RepeatNode"


class RetryUntilSuccessful(_Counted):
    """Has its child done again, up to so often, when it fails."""

    ports = {  # noqa: RUF012
        "num_attempts": input_port(
            int, doc="Execute again a failing child up to N times. Use -1 to create an infinite loop."
        )
    }
    _port = "num_attempts"
    _class_name = "RetryNode"
    _again = FAILURE
    _refreshed = True


class Loop(Decorator):
    """Has its child done for each value of a queue, which is emptied; or for each of a list in text, which stays."""

    state_fields = ("_busy", "_current")
    item: Any = object

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._busy = False
        self._current: deque[Any] | None = None
        text = self.inputs.get("queue")
        if text is None:
            raise TreeNodeError("[queue] not found", valid='queue="{key}" or a list as in queue="1;2;3"')
        self._constant: list[Any] | None = None
        self._key = remapped("queue", text)
        if self._key is None:
            self._constant = list_of(type_of(self.item)).read(text)

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        if self.status is IDLE:
            self._busy = False
            self._current = None if self._constant is None else deque(self._constant)
        popped = False
        if not self._busy:
            if self._constant is None:
                self._look()
            if self._current:
                popped = True
                self.output("value", self._current.popleft()) if "value" in self.outputs else self._current.popleft()
        if not popped and not self._busy:
            return self.input("if_empty")  # type: ignore[no-any-return]
        if self.status is IDLE:
            self.set_status(RUNNING)
        answer = self.children[0].execute()
        self._busy = answer is RUNNING
        if answer is SUCCESS or answer is FAILURE:
            self.reset_child()
        return FAILURE if answer is FAILURE else RUNNING

    def _look(self) -> None:
        """Take the queue of the blackboard, or begin with its list."""
        key = self._key or "queue"
        entry = self.blackboard.entry(key)
        if entry is None:
            entry = self.blackboard.create(key, self.ports["queue"].type)
        value = entry.value
        if isinstance(value, deque):
            self._current = value
        elif self._current is None:
            if value is EMPTY:
                raise TreeNodeError("Any::cast failed because it is empty")
            if not isinstance(value, (list, tuple, str)):
                raise TreeNodeError(
                    "LoopNode: port 'queue' must contain either SharedQueue<T>, std::vector<T>, or a string"
                )
            self._current = deque(list_of(type_of(self.item)).read(value) if isinstance(value, str) else value)


def loop(item: Any, name: str) -> type[Loop]:
    """The class of a Loop over values of a Python class."""
    ports = {
        "queue": inout_port(),
        "if_empty": input_port(Status, SUCCESS, "Status to return if queue is empty: SUCCESS, FAILURE, SKIPPED"),
        "value": output_port(item),
    }
    return type(name, (Loop,), {"item": item, "ports": ports, "__module__": __name__})
