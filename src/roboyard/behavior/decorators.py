"""Decorators of BehaviorTree.CPP: they change the status of a child, repeat it, delay or interrupt it, or tick it when
an entry changes."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Any, ClassVar

from roboyard.behavior.basic_types import (
    FAILURE,
    IDLE,
    RUNNING,
    SKIPPED,
    SUCCESS,
    UINT,
    VALUE,
    NodeStatus,
    list_type,
    port_type_of,
    to_bool,
)
from roboyard.behavior.blackboard import EMPTY
from roboyard.behavior.errors import PortError, TreeNodeError
from roboyard.behavior.ports import Port, blackboard_pointer, inout_port, input_port, output_port, remapped_key
from roboyard.behavior.script import Script, parse_script
from roboyard.behavior.tree_node import DecoratorNode, SyncActionNode, TreeNode


class InverterNode(DecoratorNode):
    """Fails if its child succeeds, and succeeds if it fails."""

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        if self.status is not RUNNING:
            self.set_status(RUNNING)
        child_status = self.children[0].execute_tick()
        if child_status is SUCCESS:
            self.reset_child()
            return FAILURE
        if child_status is FAILURE:
            self.reset_child()
            return SUCCESS
        if child_status is IDLE:
            raise TreeNodeError(f"[{self.name}]: A children should not return IDLE")
        return child_status


class _ForcedResult(DecoratorNode):
    _forced_status: NodeStatus = SUCCESS

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        if self.status is not RUNNING:
            self.set_status(RUNNING)
        child_status = self.children[0].execute_tick()
        if child_status is SUCCESS or child_status is FAILURE:
            self.reset_child()
            return self._forced_status
        return child_status


class ForceSuccessNode(_ForcedResult):
    """Succeeds when its child is finished."""


class ForceFailureNode(_ForcedResult):
    """Fails when its child is finished."""

    _forced_status = FAILURE


class KeepRunningUntilFailureNode(DecoratorNode):
    """Repeats its child until it fails."""

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        if self.status is not RUNNING:
            self.set_status(RUNNING)
        child_status = self.children[0].execute_tick()
        if child_status is FAILURE:
            self.reset_child()
            return FAILURE
        if child_status is SUCCESS:
            self.reset_child()
        return RUNNING


class RunOnceNode(DecoratorNode):
    """Ticks its child until it is finished once; later it is skipped, or returns the same status."""

    ports = {  # noqa: RUF012
        "then_skip": input_port(
            bool,
            True,
            "Whether later ticks are skipped; false: they return the first status.",
        )
    }
    state_fields = ("_first_status",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._first_status: NodeStatus | None = None

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        try:
            skips = bool(self.get_input("then_skip"))
        except PortError:
            skips = True
        if self._first_status is not None:
            return SKIPPED if skips else self._first_status
        if self.status is not RUNNING:
            self.set_status(RUNNING)
        child_status = self.children[0].execute_tick()
        if child_status is SUCCESS or child_status is FAILURE:
            self._first_status = child_status
            self.reset_child()
        return child_status


class PreconditionNode(DecoratorNode):
    """Ticks its child if a script is true at the start; otherwise it returns another status."""

    ports = {  # noqa: RUF012
        "if": input_port(str, doc="Script whose value is true or false."),
        "else": input_port(NodeStatus, FAILURE, "Status while the script is false."),
    }
    state_fields = ("_has_started",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._has_started = False
        self._load_script()

    def _load_script(self) -> Script:
        try:
            return parse_script(self.get_input("if"))
        except PortError as error:
            raise TreeNodeError("Missing parameter [if] in Precondition", valid=error.message) from error

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        script = self._load_script()
        try:
            else_status: NodeStatus = self.get_input("else")
        except PortError as error:
            raise TreeNodeError("Missing parameter [else] in Precondition", valid=error.message) from error
        self._has_started = self._has_started or to_bool(script.run(self._env))
        if not self._has_started:
            return else_status
        child_status = self.children[0].execute_tick()
        if child_status is SUCCESS or child_status is FAILURE:
            self.reset_child()
            self._has_started = False
        return child_status


class SubTreeNode(DecoratorNode):
    """Ticks another tree, which has a blackboard of its own."""

    ports = {"_autoremap": input_port(bool, False, "Whether entries of the same names are shared with the outer tree.")}  # noqa: RUF012

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        if self.status is IDLE:
            self.set_status(RUNNING)
        child_status = self.children[0].execute_tick()
        if child_status is SUCCESS or child_status is FAILURE:
            self.reset_child()
        return child_status


class _RepeatingDecorator(DecoratorNode):
    _count_port = ""
    _bt_cpp_class = ""
    _repeat_status: NodeStatus = SUCCESS
    """The answer after which the child is done again."""
    _rereads_count = False
    state_fields = ("_count",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._count = 0

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        try:
            max_count = self.get_input(self._count_port)
        except PortError as error:
            missing = f"Missing parameter [{self._count_port}] in {self._bt_cpp_class}"
            raise TreeNodeError(missing, valid=error.message) from error
        repeats = self._count < max_count or max_count == -1
        if self.status is not RUNNING:
            self.set_status(RUNNING)
        child = self.children[0]
        while repeats:
            previous_status = child.status
            child_status = child.execute_tick()
            if child_status is RUNNING:
                return RUNNING
            if child_status is IDLE:
                raise TreeNodeError(f"[{self.name}]: A children should not return IDLE")
            if child_status is SKIPPED:
                self.reset_child()
                return SKIPPED
            if child_status is not self._repeat_status:
                self._count = 0
                self.reset_child()
                return child_status
            self._count += 1
            if self._rereads_count:  # a child may have changed it
                with suppress(PortError):
                    max_count = self.get_input(self._count_port)
            repeats = self._count < max_count or max_count == -1
            self.reset_child()
            if repeats and self._emit_wake_up_signal(previous_status):
                return RUNNING
        self._count = 0
        return self._repeat_status

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self._count = 0
        super().halt()


class RepeatNode(_RepeatingDecorator):
    """Repeats its child a number of times, as long as it succeeds."""

    ports = {  # noqa: RUF012
        "num_cycles": input_port(int, doc="Number of successes of the child; -1: without end.")
    }
    _count_port = "num_cycles"
    _bt_cpp_class = "RepeatNode"


class RetryNode(_RepeatingDecorator):
    """Repeats its child up to a number of times if it fails."""

    ports = {  # noqa: RUF012
        "num_attempts": input_port(int, doc="Number of attempts of the failing child; -1: without end.")
    }
    _count_port = "num_attempts"
    _bt_cpp_class = "RetryNode"
    _repeat_status = FAILURE
    _rereads_count = True


class LoopNode(DecoratorNode):
    """Ticks its child for each value of a queue, which is emptied, or of a list in text, which is kept."""

    state_fields = ("_child_is_running", "_queue")
    item_type: Any = object

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._child_is_running = False
        self._queue: deque[Any] | None = None
        text = self.inputs.get("queue")
        if text is None:
            raise TreeNodeError("[queue] not found", valid='queue="{key}" or a list as in queue="1;2;3"')
        self._constant: list[Any] | None = None
        self._key = remapped_key("queue", text)
        if self._key is None:
            self._constant = list_type(port_type_of(self.item_type)).read(text)

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        if self.status is IDLE:
            self._child_is_running = False
            self._queue = None if self._constant is None else deque(self._constant)
        has_popped = False
        if not self._child_is_running:
            if self._constant is None:
                self._read_queue()
            if self._queue:
                has_popped = True
                self.set_output("value", self._queue.popleft()) if "value" in self.outputs else self._queue.popleft()
        if not has_popped and not self._child_is_running:
            return self.get_input("if_empty")  # type: ignore[no-any-return]
        if self.status is IDLE:
            self.set_status(RUNNING)
        child_status = self.children[0].execute_tick()
        self._child_is_running = child_status is RUNNING
        if child_status is SUCCESS or child_status is FAILURE:
            self.reset_child()
        return FAILURE if child_status is FAILURE else RUNNING

    def _read_queue(self) -> None:
        """Read the queue of the blackboard, or start with its list."""
        key = self._key or "queue"
        entry = self.blackboard.entry(key)
        if entry is None:
            entry = self.blackboard.create(key, self.ports["queue"].type)
        value = entry.value
        if isinstance(value, deque):
            self._queue = value
        elif self._queue is None:
            if value is EMPTY:
                raise TreeNodeError("Any::cast failed because it is empty")
            if not isinstance(value, (list, tuple, str)):
                raise TreeNodeError(
                    "LoopNode: port 'queue' must contain either SharedQueue<T>, std::vector<T>, or a string"
                )
            self._queue = deque(
                list_type(port_type_of(self.item_type)).read(value) if isinstance(value, str) else value
            )


def make_loop_class(item_type: Any, name: str) -> type[LoopNode]:
    """Create the class of a Loop over values of a Python class."""
    ports = {
        "queue": inout_port(doc="Values, as `1;2;3`, or an entry that holds a list."),
        "if_empty": input_port(NodeStatus, SUCCESS, "Status when no value is left: SUCCESS, FAILURE or SKIPPED."),
        "value": output_port(item_type, doc="The present value."),
    }
    return type(name, (LoopNode,), {"item_type": item_type, "ports": ports, "__module__": __name__})


_NS_PER_MS = 1_000_000


class _TimedDecorator(DecoratorNode):
    """Base class of decorators that start a timer.

    Attributes:
        duration_port: Port of the timer's duration [ms].
    """

    duration_port: ClassVar[str]
    state_fields = ("_has_started", "_is_elapsed")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._has_started = self._is_elapsed = False

    def _read_duration_ms(self) -> int:
        try:
            return int(self.get_input(self.duration_port))
        except PortError as error:
            # BehaviorTree.CPP's words, with the name of its class
            raise TreeNodeError(
                f"Missing parameter [{self.duration_port}] in {type(self).__name__}", valid=error.message
            ) from error

    def _start(self) -> None:
        self._has_started, self._is_elapsed = True, False
        self.set_status(RUNNING)

    def _start_timer(self, duration_ms: int) -> None:
        self._timers.add(self.uid, self.now_ns + duration_ms * _NS_PER_MS)

    def _tick_child(self) -> NodeStatus:
        """Return the child's status; if it is finished, so is the decorator."""
        child_status = self.children[0].execute_tick()
        if child_status is SUCCESS or child_status is FAILURE:
            self._has_started = False
            self._timers.cancel(self.uid)
            self.reset_child()
        return child_status

    def on_timer(self) -> None:
        """See `TreeNode.on_timer`."""
        self._is_elapsed = True
        if self._wake_up is not None:
            self._wake_up.requested = True

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self._has_started = False
        self._timers.cancel(self.uid)
        super().halt()


class TimeoutNode(_TimedDecorator):
    """Halts its child and fails if it is not finished in time; 0: no limit."""

    duration_port = "msec"
    ports: ClassVar[dict[str, Port]] = {
        "msec": input_port(UINT, doc="Time after which the running child is halted [ms].")
    }

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        duration_ms = self._read_duration_ms()
        if not self._has_started:
            self._start()
            if duration_ms > 0:
                self._start_timer(duration_ms)
        if self._is_elapsed:
            self._has_started = False
            return FAILURE
        return self._tick_child()

    def on_timer(self) -> None:
        """See `TreeNode.on_timer`."""
        if self.children[0].status is RUNNING:
            self.reset_child()
            super().on_timer()


class DelayNode(_TimedDecorator):
    """Ticks its child after a delay."""

    duration_port = "delay_msec"
    ports: ClassVar[dict[str, Port]] = {"delay_msec": input_port(UINT, doc="Time before the child is ticked [ms].")}

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        duration_ms = self._read_duration_ms()
        if not self._has_started:
            self._start()
            self._start_timer(duration_ms)
        return self._tick_child() if self._is_elapsed else RUNNING


def _entry_key(node: TreeNode) -> str:
    text = node.inputs.get("entry")
    if not text:
        raise TreeNodeError(f"Missing port 'entry' in {node.name}", valid='entry="{key}"')
    return blackboard_pointer(text) or text


def _was_updated(node: Any) -> bool:
    """Return whether the entry was set since the last call."""
    entry = node.blackboard.entry(node._key)
    if entry is None:
        return False
    previous_sequence, node._last_sequence = node._last_sequence, entry.sequence
    return bool(previous_sequence != entry.sequence)


class EntryUpdatedAction(SyncActionNode):
    """Succeeds if an entry was set since the last tick."""

    ports = {"entry": input_port(VALUE, doc="Entry of the blackboard, as `{key}`.")}  # noqa: RUF012
    state_fields = ("_last_sequence",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._last_sequence = 0
        self._key = _entry_key(self)

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        return SUCCESS if _was_updated(self) else FAILURE


class EntryUpdatedDecorator(DecoratorNode):
    """Runs its child only when an entry of the blackboard has been written since the last tick."""

    ports = {"entry": input_port(VALUE, doc="Entry of the blackboard, as `{key}`.")}  # noqa: RUF012
    state_fields = ("_last_sequence", "_child_is_running")
    _not_updated_status: NodeStatus = SKIPPED

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._last_sequence = 0
        self._child_is_running = False
        self._key = _entry_key(self)

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        if not self._child_is_running and not _was_updated(self):
            return self._not_updated_status
        child_status = self.children[0].execute_tick()
        self._child_is_running = child_status is RUNNING
        return child_status

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self._child_is_running = False
        super().halt()


class SkipUnlessUpdatedNode(EntryUpdatedDecorator):
    """Ticks its child if the entry was set since the last tick; otherwise it is skipped."""


class WaitValueUpdateNode(EntryUpdatedDecorator):
    """Ticks its child if the entry was set since the last tick; otherwise it is RUNNING."""

    _not_updated_status = RUNNING
