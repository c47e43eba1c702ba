"""Nodes of behavior trees: how they are ticked and halted, their ports, and the base classes of custom nodes.

The order of conditions, scripts and status changes is that of BehaviorTree.CPP 4.10, verified event for event by
traces (`roboyard bench tree`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from roboyard.behavior.basic_types import (
    ANY,
    FAILURE,
    IDLE,
    RUNNING,
    SKIPPED,
    STRING,
    SUCCESS,
    VALUE,
    NodeStatus,
    NodeType,
    PortType,
    to_bool,
)
from roboyard.behavior.blackboard import EMPTY, Blackboard, BlackboardEntry, copy_container
from roboyard.behavior.errors import PortError, TreeNodeError, bt_cpp_message
from roboyard.behavior.ports import Port, remapped_key
from roboyard.behavior.script import Script, ScriptEnvironment
from roboyard.errors import RoboyardError


class TimerQueue:
    """Timers of nodes, by the node's number."""

    def __init__(self) -> None:
        self._queue: list[tuple[int, int, int]] = []
        self._count = 0

    def add(self, uid: int, due_ns: int) -> None:
        """Call `on_timer` of a node at a time [ns]."""
        self._count += 1
        heapq.heappush(self._queue, (due_ns, self._count, uid))

    def cancel(self, uid: int) -> None:
        """Cancel the timers of a node."""
        if any(item[2] == uid for item in self._queue):
            self._queue = [item for item in self._queue if item[2] != uid]
            heapq.heapify(self._queue)

    @property
    def next_ns(self) -> int | None:
        """Return the time of the next timer [ns]."""
        return self._queue[0][0] if self._queue else None

    def pop_due(self, now_ns: int) -> Iterator[int]:
        """Remove and yield the numbers of nodes whose timers are due, in order."""
        while self._queue and self._queue[0][0] <= now_ns:
            yield heapq.heappop(self._queue)[2]

    def save_state(self) -> tuple[int, list[tuple[int, int, int]]]:
        """Return the timers as plain data."""
        return self._count, list(self._queue)

    def load_state(self, saved: tuple[int, list[tuple[int, int, int]]]) -> None:
        """Restore the result of `save_state`."""
        self._count, self._queue = saved[0], [tuple(item) for item in saved[1]]  # type: ignore[misc]


_MISSING_ENTRY = BlackboardEntry(ANY)
"""In the place of an entry that there is not."""

PRECONDITIONS = ("_failureIf", "_successIf", "_skipIf", "_while")
"""Attributes with scripts that may answer in a node's place, in the order in which they are asked."""
POSTCONDITIONS = ("_onHalted", "_onFailure", "_onSuccess", "_post")
"""Attributes with scripts that are run when a node ends."""

StatusChangeCallback = Callable[["TreeNode", NodeStatus, NodeStatus], None]
TickCallback = Callable[["TreeNode"], NodeStatus]
"""Asked before or after a tick; `SUCCESS` and `FAILURE` take the place of the node's own answer."""


class WakeUpSignal:
    """Whether a node has requested another tick at once."""

    def __init__(self) -> None:
        self.requested = False


@dataclass
class TreeNodeConfig:
    """Everything that a node is created from, as BehaviorTree.CPP's NodeConfig.

    Attributes:
        type_name: Name under which its class is registered.
        path: Its name, after those of the enclosing subtrees.
        uid: Number in the tree, from 1.
        location: File and line.
        blackboard: Its scope.
        inputs, outputs: Texts of its ports.
        scripts: Pre- and postconditions, by attribute.
        other_attributes: Further attributes.
        enums: Names of numbers for scripts.
        wake_up: See `WakeUpSignal`; None in a tree whose nodes never request another tick.
        timers: Timers of the tree.
    """

    type_name: str
    path: str
    uid: int = 0
    location: str = ""
    blackboard: Blackboard = field(default_factory=Blackboard)
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    scripts: dict[str, Script] = field(default_factory=dict)
    other_attributes: dict[str, str] = field(default_factory=dict)
    enums: Mapping[str, int] = field(default_factory=dict)
    wake_up: WakeUpSignal | None = field(default_factory=WakeUpSignal)
    timers: TimerQueue = field(default_factory=TimerQueue)


class TreeNode:
    """A node of a tree.

    Derive from `SyncActionNode`, `StatefulActionNode`, `GeneratorActionNode`, `ConditionNode`, `DecoratorNode` or
    `ControlNode`, declare ``ports``, create the state in ``setup``, and implement ``tick``.

    Attributes:
        ports: Ports of the type, by name.
        state_fields: Attributes that make up the node's state, for snapshots; plain data.
        arity: Smallest and largest number of children; None if the node type determines it.
        status: Present status.
        has_status_callback: Whether changes of the status are reported.
        name, type_name, path, uid, location: See `TreeNodeConfig`.
    """

    node_type: ClassVar[NodeType]
    ports: ClassVar[Mapping[str, Port]] = {}
    state_fields: ClassVar[tuple[str, ...]] = ()
    arity: ClassVar[tuple[int, int] | None] = None

    def __init__(self, name: str, config: TreeNodeConfig) -> None:
        self.name = name
        self.type_name = config.type_name
        self.path = config.path
        self.uid = config.uid
        self.location = config.location
        self.blackboard = config.blackboard
        self.inputs = config.inputs
        self.outputs = config.outputs
        self.other_attributes = config.other_attributes
        self.scripts = config.scripts
        self.status = IDLE
        self.children: list[TreeNode] = []
        self._wake_up = config.wake_up
        self._timers = config.timers
        self._status_callback: StatusChangeCallback | None = None
        self.has_status_callback = False
        self._env = ScriptEnvironment(config.blackboard, config.enums)
        self._preconditions = (
            tuple((name, config.scripts[name]) for name in PRECONDITIONS if name in config.scripts) or None
        )
        self._postconditions = config.scripts if any(name in config.scripts for name in POSTCONDITIONS) else None
        self._has_conditions = bool(config.scripts)
        self._pre_tick_callback: TickCallback | None = None
        self._post_tick_callback: TickCallback | None = None
        self._readers: dict[str, Callable[[], Any]] = {}
        self._writers: dict[str, Callable[[Any], None]] = {}
        self.setup()

    # -- for subclasses to fill in ---------------------------------------------------------------------------------
    def setup(self) -> None:
        """Create the node's state; called once, when ports and blackboard are available."""

    def tick(self) -> NodeStatus:
        """Perform one step, and return the status."""
        raise NotImplementedError

    def halt(self) -> None:
        """Stop; called by the parent while the node is running."""
        self.reset_status()

    def close(self) -> None:
        """Release resources outside of the tree, which is not used any more."""

    # -- ports -----------------------------------------------------------------------------------------------------
    def get_input(self, port: str) -> Any:
        """Return the value of an input port.

        Raises:
            PortError: The port has no value, or one that cannot be converted.
        """
        try:
            read = self._readers[port]
        except KeyError:
            read = self._readers[port] = input_reader(self, port)
        return read()

    def set_output(self, port: str, value: Any) -> None:
        """Set the entry of an output port.

        Raises:
            TreeNodeError: The port is not connected, or the value is not of its type.
        """
        try:
            write = self._writers[port]
        except KeyError:
            write = self._writers[port] = output_writer(self, port)
        write(value)

    @property
    def now_ns(self) -> int:
        """Return the time of this tick [ns]."""
        return self.blackboard.shared.now_ns

    # -- called by parents and by the tree -------------------------------------------------------------------------
    def execute_tick(self) -> NodeStatus:
        """Tick the node with its conditions and scripts, and return the status for its parent.

        Raises:
            ExecutionError: ``tick`` raised an error.
        """
        has_conditions = self._has_conditions
        status = self._check_preconditions() if has_conditions else None
        if status is None:
            try:
                status = self.tick()
            except ExecutionError:
                raise
            except (Exception, SystemExit) as error:  # a leaf is anybody's code
                raise ExecutionError(self, error) from error
        if has_conditions:
            status = self._check_postconditions(status)
        if status is SUCCESS or status is FAILURE:
            previous = self.status
            if previous is not status:  # as set_status, which would cost another call
                self.status = status
                if self._status_callback is not None:
                    self._status_callback(self, previous, status)
        elif status is not SKIPPED:
            self._on_unfinished(status)
        return status

    def halt_node(self) -> None:
        """Halt the node, and run its script ``_onHalted``."""
        self.halt()
        if self._postconditions is not None and "_onHalted" in self._postconditions:
            self._run_script("_onHalted", self._postconditions["_onHalted"])

    def set_status(self, status: NodeStatus) -> None:
        """Change the status, and report it to the status callback.

        Raises:
            TreeNodeError: The status is `IDLE`, which a node must not return.
        """
        if status is IDLE or status.__class__ is not NodeStatus:
            if status is not IDLE:
                raise TreeNodeError(
                    f"Node [{self.name}]: {status!r:.80} is no status", valid="a roboyard.behavior.NodeStatus"
                )
            raise TreeNodeError(
                f"Node [{self.name}]: you are not allowed to set manually the status to IDLE. "
                "If you know what you are doing (?) use resetStatus() instead."
            )
        previous = self.status
        if previous is not status:
            self.status = status
            if self._status_callback is not None:
                self._status_callback(self, previous, status)

    def reset_status(self) -> None:
        """Set the status to `IDLE`."""
        previous = self.status
        if previous is not IDLE:
            self.status = IDLE
            if self._status_callback is not None:
                self._status_callback(self, previous, IDLE)

    def set_status_callback(self, callback: StatusChangeCallback | None) -> None:
        """Call ``callback(node, previous, status)`` at each change of the status; None: no more."""
        self._status_callback = callback
        self.has_status_callback = callback is not None

    def set_tick_callbacks(self, pre_tick: TickCallback | None, post_tick: TickCallback | None) -> None:
        """Call functions before and after each tick; the first one only if no precondition has decided."""
        self._pre_tick_callback, self._post_tick_callback = pre_tick, post_tick
        self._has_conditions = bool(self.scripts or pre_tick or post_tick)

    def on_timer(self) -> None:
        """Called when a timer that the node has started is due."""

    def save_state(self) -> dict[str, Any]:
        """Return the node's state as plain data, which later ticks do not change."""
        return {"status": self.status, **{name: copy_container(getattr(self, name)) for name in self.state_fields}}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore the result of `save_state`."""
        for name, value in saved.items():
            setattr(self, name, copy_container(value))

    def _on_unfinished(self, status: NodeStatus) -> None:
        """Handle a status that is neither success nor failure."""
        self.set_status(status)

    def _emit_wake_up_signal(self, previous: NodeStatus) -> bool:
        """Return whether the node should pause here and be ticked again at once, after a child that finished within one
        tick."""
        if self._wake_up is None or previous is not IDLE:
            return False
        self._wake_up.requested = True
        return True

    def _check_preconditions(self) -> NodeStatus | None:
        """Return the status that a precondition or the pre-tick callback gives instead of the node; None if there is
        none."""
        status = self.status
        for name, script in self._preconditions or ():
            if status is IDLE:
                is_true = to_bool(self._run_script(name, script))
                if name == "_while":
                    if not is_true:
                        return SKIPPED
                elif is_true:
                    return _PRECONDITION_STATUSES[name]
            elif status is RUNNING and name == "_while" and not to_bool(self._run_script(name, script)):
                self.halt_node()
                return SKIPPED
        if self._pre_tick_callback is not None and status is not SUCCESS and status is not FAILURE:
            callback_status = self._pre_tick_callback(self)
            return callback_status if callback_status is SUCCESS or callback_status is FAILURE else None
        return None

    def _check_postconditions(self, status: NodeStatus) -> NodeStatus:
        """Run the postconditions of a finished node; return its status, or that of the post-tick callback."""
        scripts = self._postconditions
        if scripts is not None and (status is SUCCESS or status is FAILURE):
            for name in ("_onSuccess" if status is SUCCESS else "_onFailure", "_post"):
                if name in scripts:
                    self._run_script(name, scripts[name])
        if self._post_tick_callback is not None:
            callback_status = self._post_tick_callback(self)
            return callback_status if callback_status is SUCCESS or callback_status is FAILURE else status
        return status

    def _run_script(self, attribute: str, script: Script) -> Any:
        """Evaluate the script of an attribute; an error names the attribute."""
        try:
            return script.run(self._env)
        except TreeNodeError as error:
            error.location = f"{self.location}: <{self.type_name}> {self.path!r}, {attribute}"
            raise

    def __repr__(self) -> str:
        return f"<{self.type_name} {self.path!r} {self.status.name}>"


_PRECONDITION_STATUSES = {"_failureIf": FAILURE, "_successIf": SUCCESS, "_skipIf": SKIPPED}


def input_reader(node: TreeNode, name: str) -> Callable[[], Any]:
    """Return a function that returns an input port's value at each call; it raises `PortError` without one."""
    text = node.inputs.get(name)
    if text is None and name in node.ports:
        text = node.ports[name].default  # an empty one, which stands in no node's inputs
    if text is None:
        is_declared = name in node.ports
        reason = (
            "nor the manifest or the XML contain the key:" if is_declared else "the manifest doesn't contain the key:"
        )
        return _failing_reader(f"getInput() of node '{node.path}' failed because {reason} [{name}]")
    port_type = node.ports[name].type if name in node.ports else ANY
    key = remapped_key(name, text)
    if key is None:
        try:
            constant = text if port_type.parse is None else port_type.parse(text)
        except (PortError, ValueError) as error:
            return _failing_reader(f"getInput(): {error}")
        return lambda: constant
    return _entry_reader(node.blackboard, name, key, port_type)


def _failing_reader(message: str) -> Callable[[], Any]:
    def read() -> Any:
        raise PortError(message)

    return read


def _entry_reader(blackboard: Blackboard, name: str, key: str, port_type: PortType) -> Callable[[], Any]:
    shared = blackboard.shared
    python = port_type.python
    entry, version = _MISSING_ENTRY, -1

    def read() -> Any:
        nonlocal entry, version
        if version != shared.version:  # entries were made or taken away since
            entry, version = blackboard.entry(key) or _MISSING_ENTRY, shared.version
        value = entry.value
        if value.__class__ is python:
            return value
        if value is not EMPTY:
            return port_type.read(value)
        if port_type is VALUE and entry is not _MISSING_ENTRY:
            return None
        raise PortError(f"getInput() failed because it was unable to find the key [{name}] remapped to [{key}]")

    return read


def output_writer(node: TreeNode, name: str) -> Callable[[Any], None]:
    """Return a function that sets an output port's entry; it raises `PortError` without one."""
    text = node.outputs.get(name)
    if text is None:
        missing = f"setOutput() failed: NodeConfig::output_ports does not contain the key: [{name}]"
        return _failing_writer(missing)
    key = remapped_key(name, text)
    if key is None:
        return _failing_writer("setOutput requires a blackboard pointer. Use {}")
    port_type = node.ports[name].type if name in node.ports else ANY
    return _entry_writer(node.blackboard, key, port_type)


def _failing_writer(message: str) -> Callable[[Any], None]:
    def write(_value: Any) -> None:
        raise PortError(message)

    return write


def _entry_writer(blackboard: Blackboard, key: str, port_type: PortType) -> Callable[[Any], None]:
    shared = blackboard.shared
    python = port_type.python
    entry, version = _MISSING_ENTRY, -1

    def write(value: Any) -> None:
        nonlocal entry, version
        if version != shared.version:
            entry, version = blackboard.entry(key) or _MISSING_ENTRY, shared.version
        if entry.type is port_type and value.__class__ is python:
            entry.value = value
            entry.sequence += 1
            entry.stamp_ns = shared.now_ns
            return
        if python is not None and value.__class__ is not python and port_type is not STRING:
            value = port_type.read(value)
        blackboard.set(key, value, port_type if port_type.is_strong else None)

    return write


class ExecutionError(RoboyardError):
    """A node failed with an error while it was ticked.

    Attributes:
        node: The node in whose ``tick`` the error arose.
        cause: The error.
    """

    def __init__(self, node: TreeNode, cause: BaseException) -> None:
        self.node = node
        self.cause = cause
        cause_message = bt_cpp_message(cause)
        self.bt_cpp_message = f"Exception in node '{node.path}' [{node.type_name}]: {cause_message}"
        hint = getattr(cause, "valid", None)
        cause_location = getattr(cause, "location", None)
        location = (
            cause_location
            if isinstance(cause, TreeNodeError) and cause_location
            else f"{node.location}: {describe_node(node)}"
        )
        super().__init__(cause_message, location=location, valid=hint)


def describe_node(node: TreeNode) -> str:
    """Return the type of a node for messages, and its path if the node has a name of its own."""
    return f"<{node.type_name}>" if node.name == node.type_name else f"<{node.type_name}> {node.path!r}"


class ConditionNode(TreeNode):
    """A condition; ``tick`` returns `SUCCESS` or `FAILURE` at once."""

    node_type = NodeType.CONDITION


class ActionNodeBase(TreeNode):
    """Base class of actions."""

    node_type = NodeType.ACTION


class SyncActionNode(ActionNodeBase):
    """An action that finishes within its tick: ``tick`` never returns `RUNNING`."""

    def _on_unfinished(self, status: NodeStatus) -> None:
        super()._on_unfinished(status)
        raise TreeNodeError(
            "SyncActionNode MUST never return RUNNING", valid="a StatefulActionNode, or a GeneratorActionNode"
        )


class StatefulActionNode(ActionNodeBase):
    """An action over several ticks: started by ``on_start``, continued by ``on_running``, interrupted by
    ``on_halted``."""

    def on_start(self) -> NodeStatus:
        """Start; the status is `RUNNING` if the action is not finished."""
        raise NotImplementedError

    def on_running(self) -> NodeStatus:
        """Continue."""
        raise NotImplementedError

    def on_halted(self) -> None:
        """Stop the action."""

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        status = self.status
        if status is IDLE:
            new_status, caller = self.on_start(), "onStart"
        elif status is RUNNING:
            new_status, caller = self.on_running(), "onRunning"
        else:
            return status
        if new_status is IDLE:
            raise TreeNodeError(f"StatefulActionNode::{caller}() must not return IDLE")
        return new_status

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        if self.status is RUNNING:
            self.on_halted()
        self.reset_status()


class GeneratorActionNode(StatefulActionNode):
    """An action over several ticks, written as a generator: each ``yield`` means `RUNNING`, the status is returned.

    When the node is halted, the generator is closed, so its ``finally`` is executed. A generator cannot be saved: a
    snapshot of a tree in which one is running fails with the node's name.
    """

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._generator: Generator[None, None, NodeStatus] | None = None

    def run(self) -> Generator[None, None, NodeStatus]:
        """Return the generator that performs the action."""
        raise NotImplementedError

    def on_start(self) -> NodeStatus:
        """See `StatefulActionNode.on_start`."""
        self._generator = self.run()
        return self.on_running()

    def on_running(self) -> NodeStatus:
        """See `StatefulActionNode.on_running`."""
        generator = self._generator
        if generator is None:
            raise TreeNodeError(f"Node [{self.name}]: its generator is gone")
        try:
            next(generator)
        except StopIteration as end:
            self._generator = None
            return end.value  # type: ignore[no-any-return]
        return RUNNING

    def on_halted(self) -> None:
        """See `StatefulActionNode.on_halted`."""
        generator, self._generator = self._generator, None
        if generator is not None:
            generator.close()

    def save_state(self) -> dict[str, Any]:
        """See `TreeNode.save_state`."""
        if self._generator is not None:
            raise TreeNodeError(
                f"{self.path} is a generator that is running and cannot be saved", valid="save while it is not running"
            )
        return super().save_state()


class ControlNode(TreeNode):
    """A node with children that it ticks in its own order."""

    node_type = NodeType.CONTROL

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self.reset_children()
        self.reset_status()

    def halt_child(self, index: int) -> None:
        """Halt one child if it is running, and reset it."""
        child = self.children[index]
        if child.status is RUNNING:
            child.halt_node()
        child.reset_status()

    def reset_children(self) -> None:
        """Halt the children that are running, and reset all."""
        for child in self.children:
            status = child.status
            if status is not IDLE:
                if status is RUNNING:
                    child.halt_node()
                if child.has_status_callback:
                    child.reset_status()
                else:  # as reset does it, without the call
                    child.status = IDLE


class DecoratorNode(TreeNode):
    """A node with one child."""

    node_type = NodeType.DECORATOR

    @property
    def child(self) -> TreeNode:
        """Return the child."""
        return self.children[0]

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self.reset_child()
        self.reset_status()

    def reset_child(self) -> None:
        """Halt the child if it is running, and reset it."""
        child = self.children[0]
        if child.status is RUNNING:
            child.halt_node()
        child.reset_status()

    def execute_tick(self) -> NodeStatus:
        """See `TreeNode.execute_tick`; a finished child is reset."""
        status = TreeNode.execute_tick(self)  # super() would cost as much as a quarter of the tick
        child = self.children[0]
        if child.status is SUCCESS or child.status is FAILURE:
            child.reset_status()
        return status
