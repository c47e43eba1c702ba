"""The leaves that come with the engine: scripts, entries of the blackboard, waiting, and stand-ins for tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from roboyard.behavior.blackboard import EMPTY
from roboyard.behavior.errors import PortError, TreeNodeError, words_of
from roboyard.behavior.kinds import Action, Condition, StatefulAction
from roboyard.behavior.node import TreeNode, TreeNodeConfig
from roboyard.behavior.ports import inout_port, input_port, pointer
from roboyard.behavior.script import Environment, Script, parse
from roboyard.behavior.status import FAILURE, IDLE, RUNNING, SUCCESS, Status
from roboyard.behavior.types import ANY, TEXT, UINT, VALUE, PortType, to_truth, type_of_value

_MS = 1_000_000


class AlwaysSuccess(Action):
    """Succeeds."""

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        return SUCCESS


class AlwaysFailure(Action):
    """Fails."""

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        return FAILURE


def _code(node: TreeNode, kind: str) -> Script:
    try:
        return parse(node.input("code"))
    except PortError as error:
        raise TreeNodeError(f"Missing port [code] in {kind}", valid=error.message) from error


class ScriptAction(Action):
    """Runs a script, and succeeds."""

    ports = {"code": input_port(str, doc="Piece of code that can be parsed")}  # noqa: RUF012

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        _code(self, "Script")

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        _code(self, "Script").run(self._env)
        return SUCCESS


class ScriptCondition(Condition):
    """Whether a script's last value is true."""

    ports = {"code": input_port(doc="Piece of code that can be parsed. Must return false or true")}  # noqa: RUF012

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        _code(self, "ScriptCondition")

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        return SUCCESS if to_truth(_code(self, "ScriptCondition").run(self._env)) else FAILURE


class SetBlackboard(Action):
    """Sets an entry to a text, or to what another one holds."""

    ports = {  # noqa: RUF012
        "value": input_port(doc="Value to be written into the output_key"),
        "output_key": inout_port(doc="Name of the blackboard entry where the value should be written"),
    }

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        try:
            key = str(self.input("output_key"))
        except PortError as error:
            raise TreeNodeError("missing port [output_key]", valid=error.message) from error
        text = self.inputs.get("value")
        if text is None:
            raise TreeNodeError("missing port [value]", valid='value="text" or value="{key}"')
        board = self.blackboard
        target = board.entry(key)
        source_key = pointer(text)
        value: Any = text
        if source_key is not None:
            source = board.entry(source_key)
            if source is None:
                raise TreeNodeError("Can't find the port referred by [value]")
            target = target or board.create(key, source.type)
            value = source.value
        if value is EMPTY:
            return FAILURE
        kind = VALUE
        if target is not None and target.type is not TEXT and value.__class__ is str:
            if target.type is ANY:  # as BehaviorTree.CPP has it, which finds nothing to convert the text by
                value = EMPTY
            else:
                value, kind = _converted(value, target.type), target.type
        if target is None:
            board.create(key, type_of_value(value))
        board.set(key, value, kind)
        return SUCCESS


def _converted(text: str, kind: PortType) -> Any:
    try:
        if kind is VALUE:
            what = "You didn't implement the template specialization of convertFromString for this type: BT::Any"
            raise PortError(what, valid="an entry with a type, or one that a script made")
        return kind.read(text)
    except PortError as error:
        said = words_of(error)
        raise TreeNodeError(
            f"Can't convert string [{text}] to type [{kind.name}]: {said}", valid=error.valid
        ) from error


class UnsetBlackboard(Action):
    """Takes away an entry."""

    ports = {"key": input_port(str, doc="Key of the entry to remove")}  # noqa: RUF012

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        try:
            key = self.input("key")
        except PortError as error:
            raise TreeNodeError("missing input port [key]", valid=error.message) from error
        self.blackboard.unset(key)
        return SUCCESS


class Sleep(StatefulAction):
    """Waits."""

    ports = {"msec": input_port(UINT)}  # noqa: RUF012
    state_fields = ("_waiting",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._waiting = False

    def on_start(self) -> Status:
        """See `StatefulAction.on_start`."""
        try:
            wait = self.input("msec")
        except PortError as error:
            raise TreeNodeError("Missing parameter [msec] in SleepNode", valid=error.message) from error
        if wait <= 0:
            return SUCCESS
        self.set_status(RUNNING)
        self._waiting = True
        self._timers.add(self.uid, self.now_ns + wait * _MS)
        return RUNNING

    def on_running(self) -> Status:
        """See `StatefulAction.on_running`."""
        return RUNNING if self._waiting else SUCCESS

    def on_halted(self) -> None:
        """See `StatefulAction.on_halted`."""
        self._waiting = False
        self._timers.cancel(self.uid)

    def alarm(self) -> None:
        """See `TreeNode.alarm`."""
        self._waiting = False
        if self._wake_up is not None:
            self._wake_up.asked = True


@dataclass(frozen=True)
class StandIn:
    """What a node does that is put in another one's place.

    Attributes:
        status: What it answers.
        status_script: A script that says what it answers, e.g. ``x > 3 ? SUCCESS : FAILURE``; goes first.
        delay_ms: How long it takes [ms].
        success_script, failure_script, post_script: Run when it is done.
    """

    status: Status = SUCCESS
    status_script: str = ""
    delay_ms: int = 0
    success_script: str = ""
    failure_script: str = ""
    post_script: str = ""


class TestNode(StatefulAction):
    """A stand-in for another node, without its ports."""

    __test__ = False  # it is no test of pytest's
    state_fields = ("_done",)

    def __init__(self, name: str, config: TreeNodeConfig, stand_in: StandIn) -> None:
        self._stand_in = stand_in
        super().__init__(name, config)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        said = self._stand_in
        self._done = False
        if not said.status_script and said.status is IDLE:
            raise TreeNodeError("TestNode return_status resolved to invalid status (integer value: 0)")
        for text in (said.status_script, said.success_script, said.failure_script, said.post_script):
            if text:
                parse(text)

    def on_start(self) -> Status:
        """See `StatefulAction.on_start`."""
        if self._stand_in.delay_ms <= 0:
            return self._complete()
        self._done = False
        self._timers.add(self.uid, self.now_ns + self._stand_in.delay_ms * _MS)
        return RUNNING

    def on_running(self) -> Status:
        """See `StatefulAction.on_running`."""
        return self._complete() if self._done else RUNNING

    def on_halted(self) -> None:
        """See `StatefulAction.on_halted`."""
        self._timers.cancel(self.uid)

    def alarm(self) -> None:
        """See `TreeNode.alarm`."""
        self._done = True
        if self._wake_up is not None:
            self._wake_up.asked = True

    def _complete(self) -> Status:
        said = self._stand_in
        status = self._answered(said.status_script) if said.status_script else said.status
        outcome = {SUCCESS: said.success_script, FAILURE: said.failure_script}.get(status, "")
        for text in (outcome, said.post_script):
            if text:
                parse(text).run(self._env)
        return status

    def _answered(self, text: str) -> Status:
        names = {**self._env.enums, **{status.name: status.value for status in Status}}
        answer = parse(text).run(Environment(self.blackboard, names))
        if answer is EMPTY:
            raise TreeNodeError("return_status_script returned an empty value")
        status = Status[answer] if answer in Status.__members__ else None
        if status is None and answer.__class__ is not str and answer in (0, 1, 2, 3, 4):
            status = Status(int(answer))
        if status is None or status is IDLE:
            raise TreeNodeError("return_status_script must evaluate to a NodeStatus-compatible value")
        return status
