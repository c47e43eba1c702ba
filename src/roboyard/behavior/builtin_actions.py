"""Leaves of BehaviorTree.CPP: scripts, blackboard entries, waiting, and mocks for tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from roboyard.behavior.basic_types import (
    ANY,
    FAILURE,
    IDLE,
    RUNNING,
    STRING,
    SUCCESS,
    UINT,
    VALUE,
    NodeStatus,
    PortType,
    port_type_of_value,
    to_bool,
)
from roboyard.behavior.blackboard import EMPTY
from roboyard.behavior.errors import PortError, TreeNodeError, bt_cpp_message
from roboyard.behavior.ports import blackboard_pointer, inout_port, input_port
from roboyard.behavior.script import Script, ScriptEnvironment, parse_script
from roboyard.behavior.tree_node import ConditionNode, StatefulActionNode, SyncActionNode, TreeNode, TreeNodeConfig

_NS_PER_MS = 1_000_000


class AlwaysSuccessNode(SyncActionNode):
    """Succeeds at once."""

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        return SUCCESS


class AlwaysFailureNode(SyncActionNode):
    """Fails at once."""

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        return FAILURE


def _parse_code(node: TreeNode, node_name: str) -> Script:
    try:
        return parse_script(node.get_input("code"))
    except PortError as error:
        raise TreeNodeError(f"Missing port [code] in {node_name}", valid=error.message) from error


class ScriptNode(SyncActionNode):
    """Evaluates a script, and succeeds."""

    ports = {"code": input_port(str, doc="Script, as `a := 1; b := a * 2`.")}  # noqa: RUF012

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        _parse_code(self, "Script")

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        _parse_code(self, "Script").run(self._env)
        return SUCCESS


class ScriptCondition(ConditionNode):
    """Succeeds if the value of a script is true."""

    ports = {"code": input_port(doc="Script whose value is true or false.")}  # noqa: RUF012

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        _parse_code(self, "ScriptCondition")

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        return SUCCESS if to_bool(_parse_code(self, "ScriptCondition").run(self._env)) else FAILURE


class SetBlackboardNode(SyncActionNode):
    """Sets an entry of the blackboard to a text, or to the value of another entry."""

    ports = {  # noqa: RUF012
        "value": input_port(doc="Value, or an entry as `{key}`."),
        "output_key": inout_port(doc="Entry of the blackboard that is set."),
    }

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        try:
            key = str(self.get_input("output_key"))
        except PortError as error:
            raise TreeNodeError("missing port [output_key]", valid=error.message) from error
        text = self.inputs.get("value")
        if text is None:
            raise TreeNodeError("missing port [value]", valid='value="text" or value="{key}"')
        blackboard = self.blackboard
        target = blackboard.entry(key)
        source_key = blackboard_pointer(text)
        value: Any = text
        if source_key is not None:
            source = blackboard.entry(source_key)
            if source is None:
                raise TreeNodeError("Can't find the port referred by [value]")
            target = target or blackboard.create(key, source.type)
            value = source.value
        if value is EMPTY:
            return FAILURE
        port_type = VALUE
        if target is not None and target.type is not STRING and value.__class__ is str:
            if target.type is ANY:  # as BehaviorTree.CPP has it, which finds nothing to convert the text by
                value = EMPTY
            else:
                value, port_type = _convert_text(value, target.type), target.type
        if target is None:
            blackboard.create(key, port_type_of_value(value))
        blackboard.set(key, value, port_type)
        return SUCCESS


def _convert_text(text: str, port_type: PortType) -> Any:
    try:
        if port_type is VALUE:
            message = "You didn't implement the template specialization of convertFromString for this type: BT::Any"
            raise PortError(message, valid="an entry with a type, or one that a script made")
        return port_type.read(text)
    except PortError as error:
        cause_message = bt_cpp_message(error)
        raise TreeNodeError(
            f"Can't convert string [{text}] to type [{port_type.name}]: {cause_message}", valid=error.valid
        ) from error


class UnsetBlackboardNode(SyncActionNode):
    """Removes an entry of the blackboard."""

    ports = {"key": input_port(str, doc="Entry of the blackboard that is removed.")}  # noqa: RUF012

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        try:
            key = self.get_input("key")
        except PortError as error:
            raise TreeNodeError("missing input port [key]", valid=error.message) from error
        self.blackboard.unset(key)
        return SUCCESS


class SleepNode(StatefulActionNode):
    """Runs for a time, and succeeds."""

    ports = {"msec": input_port(UINT, doc="Duration [ms].")}  # noqa: RUF012
    state_fields = ("_is_waiting",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._is_waiting = False

    def on_start(self) -> NodeStatus:
        """See `StatefulActionNode.on_start`."""
        try:
            duration_ms = self.get_input("msec")
        except PortError as error:
            raise TreeNodeError("Missing parameter [msec] in SleepNode", valid=error.message) from error
        if duration_ms <= 0:
            return SUCCESS
        self.set_status(RUNNING)
        self._is_waiting = True
        self._timers.add(self.uid, self.now_ns + duration_ms * _NS_PER_MS)
        return RUNNING

    def on_running(self) -> NodeStatus:
        """See `StatefulActionNode.on_running`."""
        return RUNNING if self._is_waiting else SUCCESS

    def on_halted(self) -> None:
        """See `StatefulActionNode.on_halted`."""
        self._is_waiting = False
        self._timers.cancel(self.uid)

    def on_timer(self) -> None:
        """See `TreeNode.on_timer`."""
        self._is_waiting = False
        if self._wake_up is not None:
            self._wake_up.requested = True


@dataclass(frozen=True)
class MockConfig:
    """Behavior of a node that replaces another one, as BehaviorTree.CPP's TestNodeConfig.

    Attributes:
        status: Status that it returns.
        status_script: Script that gives the status, e.g. ``x > 3 ? SUCCESS : FAILURE``; takes precedence.
        delay_ms: Duration [ms].
        success_script, failure_script, post_script: Run when it is finished.
    """

    status: NodeStatus = SUCCESS
    status_script: str = ""
    delay_ms: int = 0
    success_script: str = ""
    failure_script: str = ""
    post_script: str = ""


class TestNode(StatefulActionNode):
    """A node that replaces another one in tests, without its ports."""

    __test__ = False  # it is no test of pytest's
    state_fields = ("_is_delay_over",)

    def __init__(self, name: str, config: TreeNodeConfig, mock: MockConfig) -> None:
        self._mock = mock
        super().__init__(name, config)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        mock = self._mock
        self._is_delay_over = False
        if not mock.status_script and mock.status is IDLE:
            raise TreeNodeError("TestNode return_status resolved to invalid status (integer value: 0)")
        for text in (mock.status_script, mock.success_script, mock.failure_script, mock.post_script):
            if text:
                parse_script(text)

    def on_start(self) -> NodeStatus:
        """See `StatefulActionNode.on_start`."""
        if self._mock.delay_ms <= 0:
            return self._complete()
        self._is_delay_over = False
        self._timers.add(self.uid, self.now_ns + self._mock.delay_ms * _NS_PER_MS)
        return RUNNING

    def on_running(self) -> NodeStatus:
        """See `StatefulActionNode.on_running`."""
        return self._complete() if self._is_delay_over else RUNNING

    def on_halted(self) -> None:
        """See `StatefulActionNode.on_halted`."""
        self._timers.cancel(self.uid)

    def on_timer(self) -> None:
        """See `TreeNode.on_timer`."""
        self._is_delay_over = True
        if self._wake_up is not None:
            self._wake_up.requested = True

    def _complete(self) -> NodeStatus:
        mock = self._mock
        status = self._evaluate_status(mock.status_script) if mock.status_script else mock.status
        outcome = {SUCCESS: mock.success_script, FAILURE: mock.failure_script}.get(status, "")
        for text in (outcome, mock.post_script):
            if text:
                parse_script(text).run(self._env)
        return status

    def _evaluate_status(self, text: str) -> NodeStatus:
        names = {**self._env.enums, **{status.name: status.value for status in NodeStatus}}
        value = parse_script(text).run(ScriptEnvironment(self.blackboard, names))
        if value is EMPTY:
            raise TreeNodeError("return_status_script returned an empty value")
        status = NodeStatus[value] if value in NodeStatus.__members__ else None
        if status is None and value.__class__ is not str and value in (0, 1, 2, 3, 4):
            status = NodeStatus(int(value))
        if status is None or status is IDLE:
            raise TreeNodeError("return_status_script must evaluate to a NodeStatus-compatible value")
        return status
