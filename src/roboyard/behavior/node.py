"""Nodes: what all of them do when they are ticked and halted.

The order in which conditions, scripts and status changes follow one another is BehaviorTree.CPP 4.10's, event for
event, and held by traces of it (`roboyard bench tree`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from roboyard.behavior.blackboard import Blackboard
from roboyard.behavior.errors import ExecutionError, TreeNodeError
from roboyard.behavior.ports import Port, reader, writer
from roboyard.behavior.script import Environment, Script
from roboyard.behavior.status import FAILURE, IDLE, RUNNING, SKIPPED, SUCCESS, Kind, Status
from roboyard.behavior.timers import Timers
from roboyard.behavior.types import to_truth

PRE_CONDITIONS = ("_failureIf", "_successIf", "_skipIf", "_while")
"""Attributes with scripts that may answer in a node's place, in the order in which they are asked."""
POST_CONDITIONS = ("_onHalted", "_onFailure", "_onSuccess", "_post")
"""Attributes with scripts that are run when a node ends."""

Watcher = Callable[["TreeNode", Status, Status], None]
Hook = Callable[["TreeNode"], Status]
"""Asked before or after a tick; `SUCCESS` and `FAILURE` take the place of the node's own answer."""


class WakeUp:
    """Whether a node asked for another tick at once."""

    def __init__(self) -> None:
        self.asked = False


@dataclass
class TreeNodeConfig:
    """What a node is made with.

    Attributes:
        type_name: Under which its class is registered.
        path: Its name, after those of the subtrees around it.
        uid: Its number in the tree, from 1.
        where: File and line.
        blackboard: Its scope.
        inputs, outputs: The text of its ports.
        scripts: Its pre- and post-conditions, by attribute.
        other: Further attributes.
        enums: Names that scripts may use for numbers.
        wake_up: See `WakeUp`; None in a tree whose nodes never ask for another tick.
        timers: The tree's.
    """

    type_name: str
    path: str
    uid: int = 0
    where: str = ""
    blackboard: Blackboard = field(default_factory=Blackboard)
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    scripts: dict[str, Script] = field(default_factory=dict)
    other: dict[str, str] = field(default_factory=dict)
    enums: Mapping[str, int] = field(default_factory=dict)
    wake_up: WakeUp | None = field(default_factory=WakeUp)
    timers: Timers = field(default_factory=Timers)


class TreeNode:
    """A node of a tree.

    Derive from `Action`, `StatefulAction`, `GeneratorAction`, `Condition`, `Decorator` or `Control`, declare ``ports``,
    make state in ``setup``, and give ``tick``.

    Attributes:
        ports: The ports of the type, by name.
        fields: Attributes that make up the node's state, for snapshots; plain data.
        arity: Between how many children it has; None where its kind says all.
        status: Where it stands.
        watched: Whether somebody is told when that changes.
        name, type_name, path, uid, where: See `Config`.
    """

    kind: ClassVar[Kind]
    ports: ClassVar[Mapping[str, Port]] = {}
    state_fields: ClassVar[tuple[str, ...]] = ()
    arity: ClassVar[tuple[int, int] | None] = None

    def __init__(self, name: str, config: TreeNodeConfig) -> None:
        self.name = name
        self.type_name = config.type_name
        self.path = config.path
        self.uid = config.uid
        self.where = config.where
        self.blackboard = config.blackboard
        self.inputs = config.inputs
        self.outputs = config.outputs
        self.other = config.other
        self.scripts = config.scripts
        self.status = IDLE
        self.children: list[TreeNode] = []
        self._wake_up = config.wake_up
        self._timers = config.timers
        self._watch: Watcher | None = None
        self.watched = False
        self._env = Environment(config.blackboard, config.enums)
        self._before = tuple((name, config.scripts[name]) for name in PRE_CONDITIONS if name in config.scripts) or None
        self._after = config.scripts if any(name in config.scripts for name in POST_CONDITIONS) else None
        self._scripted = bool(config.scripts)
        self._hook_before: Hook | None = None
        self._hook_after: Hook | None = None
        self._readers: dict[str, Callable[[], Any]] = {}
        self._writers: dict[str, Callable[[Any], None]] = {}
        self.setup()

    # -- for subclasses to fill in ---------------------------------------------------------------------------------
    def setup(self) -> None:
        """Make the node's state; called once, with ports and blackboard there."""

    def tick(self) -> Status:
        """Do a piece of work, and answer."""
        raise NotImplementedError

    def halt(self) -> None:
        """Stop; called when somebody turns away while the node is running."""
        self.reset()

    def close(self) -> None:
        """Let go of what lies outside of the tree, which is not used any more."""

    # -- ports -----------------------------------------------------------------------------------------------------
    def input(self, port: str) -> Any:
        """The value of an input port.

        Raises:
            PortError: it has none, or one that cannot be converted.
        """
        try:
            read = self._readers[port]
        except KeyError:
            read = self._readers[port] = reader(self, port)
        return read()

    def output(self, port: str, value: Any) -> None:
        """Set an output port.

        Raises:
            NodeError: it is not connected, or the value is not of its type.
        """
        try:
            write = self._writers[port]
        except KeyError:
            write = self._writers[port] = writer(self, port)
        write(value)

    @property
    def now_ns(self) -> int:
        """The time of this tick [ns]."""
        return self.blackboard.shared.now_ns

    # -- called by parents and by the tree -------------------------------------------------------------------------
    def execute(self) -> Status:
        """Tick the node, with its conditions and scripts; the answer that its parent gets.

        Raises:
            ExecutionError: ``tick`` failed with an error.
        """
        scripted = self._scripted
        status = self._judged() if scripted else None
        if status is None:
            try:
                status = self.tick()
            except ExecutionError:
                raise
            except (Exception, SystemExit) as error:  # a leaf is anybody's code
                raise ExecutionError(self, error) from error
        if scripted:
            status = self._finished(status)
        if status is SUCCESS or status is FAILURE:
            previous = self.status
            if previous is not status:  # as set_status, which would cost another call
                self.status = status
                if self._watch is not None:
                    self._watch(self, previous, status)
        elif status is not SKIPPED:
            self._goes_on(status)
        return status

    def halt_node(self) -> None:
        """Halt the node, and run what is to be run then."""
        self.halt()
        if self._after is not None and "_onHalted" in self._after:
            self._run("_onHalted", self._after["_onHalted"])

    def set_status(self, status: Status) -> None:
        """Change the status, and say so to whoever watches.

        Raises:
            NodeError: to `IDLE`, which a node cannot answer.
        """
        if status is IDLE or status.__class__ is not Status:
            if status is not IDLE:
                raise TreeNodeError(
                    f"Node [{self.name}]: {status!r:.80} is no status", valid="a roboyard.behavior.Status"
                )
            raise TreeNodeError(
                f"Node [{self.name}]: you are not allowed to set manually the status to IDLE. "
                "If you know what you are doing (?) use resetStatus() instead."
            )
        previous = self.status
        if previous is not status:
            self.status = status
            if self._watch is not None:
                self._watch(self, previous, status)

    def reset(self) -> None:
        """Back to `IDLE`."""
        previous = self.status
        if previous is not IDLE:
            self.status = IDLE
            if self._watch is not None:
                self._watch(self, previous, IDLE)

    def watch(self, watcher: Watcher | None) -> None:
        """Have ``watcher(node, before, after)`` called at each change of status."""
        self._watch = watcher
        self.watched = watcher is not None

    def hook(self, before: Hook | None, after: Hook | None) -> None:
        """Have functions asked before and after each tick: the first unless a condition has answered in its place."""
        self._hook_before, self._hook_after = before, after
        self._scripted = bool(self.scripts or before or after)

    def alarm(self) -> None:
        """A timer that the node has set is due."""

    def save_state(self) -> dict[str, Any]:
        """The node's state as plain data."""
        return {"status": self.status, **{name: getattr(self, name) for name in self.state_fields}}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        for name, value in saved.items():
            setattr(self, name, value)

    def _goes_on(self, status: Status) -> None:
        """Take an answer that is no end."""
        self.set_status(status)

    def _wake(self, before: Status) -> bool:
        """Whether to break off here and be ticked again at once, after a child that was done in one go."""
        if self._wake_up is None or before is not IDLE:
            return False
        self._wake_up.asked = True
        return True

    def _judged(self) -> Status | None:
        """What the pre-conditions, or a hook, answer in the node's place."""
        status = self.status
        for name, script in self._before or ():
            if status is IDLE:
                holds = to_truth(self._run(name, script))
                if name == "_while":
                    if not holds:
                        return SKIPPED
                elif holds:
                    return _ANSWERS[name]
            elif status is RUNNING and name == "_while" and not to_truth(self._run(name, script)):
                self.halt_node()
                return SKIPPED
        if self._hook_before is not None and status is not SUCCESS and status is not FAILURE:
            answer = self._hook_before(self)
            return answer if answer is SUCCESS or answer is FAILURE else None
        return None

    def _finished(self, status: Status) -> Status:
        """Run the post-conditions of an answer that is an end; the answer, or the hook's in its place."""
        scripts = self._after
        if scripts is not None and (status is SUCCESS or status is FAILURE):
            for name in ("_onSuccess" if status is SUCCESS else "_onFailure", "_post"):
                if name in scripts:
                    self._run(name, scripts[name])
        if self._hook_after is not None:
            answer = self._hook_after(self)
            return answer if answer is SUCCESS or answer is FAILURE else status
        return status

    def _run(self, attribute: str, script: Script) -> Any:
        """The value of the script of an attribute; an error says of which."""
        try:
            return script.run(self._env)
        except TreeNodeError as error:
            error.location = f"{self.where}: <{self.type_name}> {self.path!r}, {attribute}"
            raise

    def __repr__(self) -> str:
        return f"<{self.type_name} {self.path!r} {self.status.name}>"


_ANSWERS = {"_failureIf": FAILURE, "_successIf": SUCCESS, "_skipIf": SKIPPED}
