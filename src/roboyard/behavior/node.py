"""Nodes: what all of them do when they are ticked and halted, and the kinds that one derives one's own from.

The order in which conditions, scripts and status changes follow one another is BehaviorTree.CPP 4.10's, event for
event, and held by traces of it (`roboyard bench tree`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from roboyard.behavior.blackboard import Blackboard
from roboyard.behavior.errors import ExecutionError, NodeError
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


class WakeUp:
    """Whether a node asked for another tick at once."""

    def __init__(self) -> None:
        self.asked = False


@dataclass
class Config:
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
        status: Where it stands.
        name, type_name, path, uid, where: See `Config`.
    """

    kind: ClassVar[Kind]
    ports: ClassVar[Mapping[str, Port]] = {}
    fields: ClassVar[tuple[str, ...]] = ()

    def __init__(self, name: str, config: Config) -> None:
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
        self._env = Environment(config.blackboard, config.enums)
        self._before = tuple((name, config.scripts[name]) for name in PRE_CONDITIONS if name in config.scripts) or None
        self._after = config.scripts if any(name in config.scripts for name in POST_CONDITIONS) else None
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
        status = None if self._before is None else self._judged()
        if status is None:
            try:
                status = self.tick()
            except ExecutionError:
                raise
            except Exception as error:  # a leaf is anybody's code
                raise ExecutionError(self, error) from error
        if self._after is not None and (status is SUCCESS or status is FAILURE):
            self._finish(status)
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
                raise NodeError(f"Node [{self.name}]: {status!r:.80} is no status", valid="a roboyard.behavior.Status")
            raise NodeError(
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

    def alarm(self) -> None:
        """A timer that the node has set is due."""

    def save(self) -> dict[str, Any]:
        """The node's state as plain data."""
        return {"status": self.status, **{name: getattr(self, name) for name in self.fields}}

    def load(self, saved: dict[str, Any]) -> None:
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
        """What the pre-conditions answer in the node's place."""
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
        return None

    def _finish(self, status: Status) -> None:
        scripts = self._after or {}
        for name in ("_onSuccess" if status is SUCCESS else "_onFailure", "_post"):
            if name in scripts:
                self._run(name, scripts[name])

    def _run(self, attribute: str, script: Script) -> Any:
        """The value of the script of an attribute; an error says of which."""
        try:
            return script.run(self._env)
        except NodeError as error:
            error.where = f"{self.where}: <{self.type_name}> {self.path!r}, {attribute}"
            raise

    def __repr__(self) -> str:
        return f"<{self.type_name} {self.path!r} {self.status.name}>"


_ANSWERS = {"_failureIf": FAILURE, "_successIf": SUCCESS, "_skipIf": SKIPPED}


class Condition(TreeNode):
    """A question; ``tick`` answers `SUCCESS` or `FAILURE` at once."""

    kind = Kind.CONDITION


class Leaf(TreeNode):
    """A leaf that does something, in whatever way."""

    kind = Kind.ACTION


class Action(Leaf):
    """Something that is done at once: ``tick`` never answers `RUNNING`."""

    def _goes_on(self, status: Status) -> None:
        super()._goes_on(status)
        raise NodeError("SyncActionNode MUST never return RUNNING", valid="a StatefulAction, or a GeneratorAction")


class StatefulAction(Leaf):
    """Something that takes time: begun with ``on_start``, asked with ``on_running``, broken off with ``on_halted``."""

    def on_start(self) -> Status:
        """Begin; the answer is `RUNNING` if that is not all."""
        raise NotImplementedError

    def on_running(self) -> Status:
        """Go on."""
        raise NotImplementedError

    def on_halted(self) -> None:
        """Stop what is under way."""

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        status = self.status
        if status is IDLE:
            answer, caller = self.on_start(), "onStart"
        elif status is RUNNING:
            answer, caller = self.on_running(), "onRunning"
        else:
            return status
        if answer is IDLE:
            raise NodeError(f"StatefulActionNode::{caller}() must not return IDLE")
        return answer

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        if self.status is RUNNING:
            self.on_halted()
        self.reset()


class GeneratorAction(StatefulAction):
    """Something that takes time, written down as one generator: each ``yield`` is `RUNNING`, the status is returned.

    Being halted closes the generator, so that its ``finally`` is run.  A generator cannot be saved: a snapshot of a
    tree in which one is running fails with the node's name.
    """

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._running: Generator[None, None, Status] | None = None

    def run(self) -> Generator[None, None, Status]:
        """The work."""
        raise NotImplementedError

    def on_start(self) -> Status:
        """See `StatefulAction.on_start`."""
        self._running = self.run()
        return self.on_running()

    def on_running(self) -> Status:
        """See `StatefulAction.on_running`."""
        running = self._running
        if running is None:
            raise NodeError(f"Node [{self.name}]: its generator is gone")
        try:
            next(running)
        except StopIteration as end:
            self._running = None
            return end.value  # type: ignore[no-any-return]
        return RUNNING

    def on_halted(self) -> None:
        """See `StatefulAction.on_halted`."""
        running, self._running = self._running, None
        if running is not None:
            running.close()

    def save(self) -> dict[str, Any]:
        """See `TreeNode.save`."""
        if self._running is not None:
            raise NodeError(
                f"{self.path} is a generator that is running and cannot be saved", valid="save while it is not running"
            )
        return super().save()


class Control(TreeNode):
    """A node with children that it ticks in an order of its own."""

    kind = Kind.CONTROL

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self.reset_children()
        self.reset()

    def halt_child(self, index: int) -> None:
        """Halt one child if it is running, and reset it."""
        child = self.children[index]
        if child.status is RUNNING:
            child.halt_node()
        child.reset()

    def reset_children(self) -> None:
        """Halt the children that are running, and reset all."""
        for child in self.children:
            status = child.status
            if status is not IDLE:
                if status is RUNNING:
                    child.halt_node()
                child.reset()


class Decorator(TreeNode):
    """A node with one child."""

    kind = Kind.DECORATOR

    @property
    def child(self) -> TreeNode:
        """The child."""
        return self.children[0]

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self.reset_child()
        self.reset()

    def reset_child(self) -> None:
        """Halt the child if it is running, and reset it."""
        child = self.children[0]
        if child.status is RUNNING:
            child.halt_node()
        child.reset()

    def execute(self) -> Status:
        """See `TreeNode.execute`; a child that is done is reset."""
        status = TreeNode.execute(self)  # super() would cost as much as a quarter of the tick
        child = self.children[0]
        if child.status is SUCCESS or child.status is FAILURE:
            child.reset()
        return status
