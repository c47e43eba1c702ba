"""Traces of trees: their events in order, comparable with traces of other engines.

The leaves of a trace are of two types: ``Leaf``, an action over several ticks, and ``Cond``, a condition. Their
port ``seq`` lists the status of each call: R running, S success, F failure; after its end the last letter is
repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from roboyard.behavior.basic_types import FAILURE, RUNNING, SUCCESS, NodeStatus
from roboyard.behavior.errors import InvalidTreeError, TreeNodeError
from roboyard.behavior.factory import NodeFactory
from roboyard.behavior.ports import input_port
from roboyard.behavior.tree import read_tree
from roboyard.behavior.tree_node import ConditionNode, ExecutionError, StatefulActionNode, TreeNode

_STATUS_LETTERS: Final = {NodeStatus.IDLE: "I", RUNNING: "R", SUCCESS: "S", FAILURE: "F", NodeStatus.SKIPPED: "K"}
_STATUSES_BY_LETTER: Final = {"R": RUNNING, "S": SUCCESS, "F": FAILURE}


class _ScriptedLeaf:
    """Base class of both leaves: they return the next status, and record it."""

    ports = {"seq": input_port(str)}  # noqa: RUF012
    state_fields = ("_calls",)
    events: list[str]

    def _next_status(self: Any, call: str) -> NodeStatus:
        letters = self.get_input("seq")
        letter = letters[min(self._calls, len(letters) - 1)]
        self._calls += 1
        self.events.append(f"{self.name}:{call}:{letter}")
        return _STATUSES_BY_LETTER[letter]


@dataclass(frozen=True)
class TreeTrace:
    """The events of a tree.

    Attributes:
        ticks: For each tick the root's status and the events.
        halt: Events when the tree is halted in the end.
        error: Error message of BehaviorTree.CPP, or None.
        error_text: The same error as users read it.
    """

    ticks: tuple[tuple[str, tuple[str, ...]], ...]
    halt: tuple[str, ...] = ()
    error: str | None = None
    error_text: str = ""


def record_trace(xml: str, *, ticks: int = 8) -> TreeTrace:
    """Record the events of a tree of ``Leaf`` and ``Cond`` over a number of ticks and when it is halted."""
    events: list[str] = []
    found: list[tuple[str, tuple[str, ...]]] = []
    try:
        tree = read_tree(xml, trace_leaves(events), strict=False)
        tree.set_status_callback(
            lambda node, before, after: events.append(
                f"~{node.name}:{_STATUS_LETTERS[before]}>{_STATUS_LETTERS[after]}"
            )
        )
        for _ in range(ticks):
            status = tree.tick_exactly_once()
            found.append((status.name, tuple(events)))
            events.clear()
        tree.halt()
    except (InvalidTreeError, TreeNodeError, ExecutionError) as error:
        return TreeTrace(tuple(found), (), error.bt_cpp_message, str(error))
    return TreeTrace(tuple(found), tuple(events))


def parse_trace(data: dict[str, Any]) -> TreeTrace:
    """Parse a trace from a line of JSON: ``ticks`` of ``status`` and ``ev``, ``halt``, or ``error``.

    Raises:
        InvalidTreeError: The data is no trace.
    """
    try:
        ticks = tuple((str(tick["status"]), tuple(map(str, tick["ev"]))) for tick in data["ticks"])
        return TreeTrace(ticks, tuple(map(str, data.get("halt", ()))), data.get("error"))
    except (KeyError, TypeError) as error:
        raise InvalidTreeError(
            f"this is no trace: {error!r}", valid="ticks of status and ev, halt, or error"
        ) from error


def first_difference(expected: TreeTrace, actual: TreeTrace) -> str | None:
    """Describe the first difference of two traces; None if they are equal."""
    for number, (expected_tick, actual_tick) in enumerate(zip(expected.ticks, actual.ticks, strict=False), 1):
        if expected_tick != actual_tick:
            difference = _first_event_difference(expected_tick[1], actual_tick[1])
            return f"tick {number}: {difference or f'{expected_tick[0]} expected, {actual_tick[0]} found'}"
    if expected.error != actual.error:
        return f"error {expected.error!r} expected, {actual.error!r} found"
    if len(expected.ticks) != len(actual.ticks):
        return f"{len(expected.ticks)} ticks expected, {len(actual.ticks)} found"
    return None if expected.halt == actual.halt else f"halt: {_first_event_difference(expected.halt, actual.halt)}"


def _first_event_difference(expected: tuple[str, ...], actual: tuple[str, ...]) -> str | None:
    for index in range(max(len(expected), len(actual))):
        a, b = (side[index] if index < len(side) else "nothing" for side in (expected, actual))
        if a != b:
            return f"event {index + 1}: {a} expected, {b} found"
    return None


def trace_leaves(events: list[str]) -> NodeFactory:
    """Return a factory with the leaves of traces, which append their events to ``events``."""

    def setup(node: Any) -> None:
        node._calls = 0
        node.events = events

    def start(node: Any) -> NodeStatus:
        return node._next_status("start")  # type: ignore[no-any-return]

    def run(node: Any) -> NodeStatus:
        return node._next_status("run")  # type: ignore[no-any-return]

    def check(node: Any) -> NodeStatus:
        return node._next_status("cond")  # type: ignore[no-any-return]

    def on_halted(node: TreeNode) -> None:
        events.append(f"{node.name}:halt")

    leaf = {"setup": setup, "on_start": start, "on_running": run, "on_halted": on_halted}
    factory = NodeFactory()
    factory.register(type("Leaf", (_ScriptedLeaf, StatefulActionNode), leaf))
    factory.register(type("Cond", (_ScriptedLeaf, ConditionNode), {"setup": setup, "tick": check}))
    return factory
