"""Traces of trees: what happened in which order, as other engines' traces say it.

A trace's leaves are of two types: ``Leaf``, an action that takes time, and ``Cond``, a condition.  Their port ``seq``
says what they answer at each call: R running, S success, F failure; past its end the last letter repeats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from roboyard.behavior.errors import ExecutionError, TreeError, TreeNodeError
from roboyard.behavior.factory import Factory
from roboyard.behavior.kinds import Condition, StatefulAction
from roboyard.behavior.node import TreeNode
from roboyard.behavior.ports import input_port
from roboyard.behavior.status import FAILURE, RUNNING, SUCCESS, Status
from roboyard.behavior.tree import read_tree

_LETTER: Final = {Status.IDLE: "I", RUNNING: "R", SUCCESS: "S", FAILURE: "F", Status.SKIPPED: "K"}
_ANSWER: Final = {"R": RUNNING, "S": SUCCESS, "F": FAILURE}


class _Scripted:
    """What both leaves do: answer the next letter, and say so."""

    ports = {"seq": input_port(str)}  # noqa: RUF012
    state_fields = ("_calls",)
    events: list[str]

    def _answer(self: Any, what: str) -> Status:
        letters = self.input("seq")
        letter = letters[min(self._calls, len(letters) - 1)]
        self._calls += 1
        self.events.append(f"{self.name}:{what}:{letter}")
        return _ANSWER[letter]


@dataclass(frozen=True)
class Trace:
    """What a tree did.

    Attributes:
        ticks: For each tick the root's answer and the events.
        halt: Events of halting the tree in the end.
        error: What went wrong, in BehaviorTree.CPP's words; or None.
        said: The same as a user reads it.
    """

    ticks: tuple[tuple[str, tuple[str, ...]], ...]
    halt: tuple[str, ...] = ()
    error: str | None = None
    said: str = ""


def trace(xml: str, *, ticks: int = 8) -> Trace:
    """What a tree of ``Leaf`` and ``Cond`` does in so many ticks and in being halted."""
    events: list[str] = []
    found: list[tuple[str, tuple[str, ...]]] = []
    try:
        tree = read_tree(xml, leaves(events), strict=False)
        tree.watch(lambda node, before, after: events.append(f"~{node.name}:{_LETTER[before]}>{_LETTER[after]}"))
        for _ in range(ticks):
            status = tree.tick_exactly_once()
            found.append((status.name, tuple(events)))
            events.clear()
        tree.halt()
    except (TreeError, TreeNodeError, ExecutionError) as error:
        return Trace(tuple(found), (), error.words, str(error))
    return Trace(tuple(found), tuple(events))


def recorded(data: dict[str, Any]) -> Trace:
    """A trace from a line of JSON: ``ticks`` of ``status`` and ``ev``, ``halt``, or ``error``.

    Raises:
        TreeError: the data is none.
    """
    try:
        ticks = tuple((str(tick["status"]), tuple(map(str, tick["ev"]))) for tick in data["ticks"])
        return Trace(ticks, tuple(map(str, data.get("halt", ()))), data.get("error"))
    except (KeyError, TypeError) as error:
        raise TreeError(f"this is no trace: {error!r}", valid="ticks of status and ev, halt, or error") from error


def difference(expected: Trace, got: Trace) -> str | None:
    """The first thing in which two traces differ, in words; None if they are the same."""
    for number, (want, have) in enumerate(zip(expected.ticks, got.ticks, strict=False), 1):
        if want != have:
            return f"tick {number}: {_differing(want[1], have[1]) or f'{want[0]} expected, {have[0]} found'}"
    if expected.error != got.error:
        return f"error {expected.error!r} expected, {got.error!r} found"
    if len(expected.ticks) != len(got.ticks):
        return f"{len(expected.ticks)} ticks expected, {len(got.ticks)} found"
    return None if expected.halt == got.halt else f"halt: {_differing(expected.halt, got.halt)}"


def _differing(want: tuple[str, ...], have: tuple[str, ...]) -> str | None:
    for index in range(max(len(want), len(have))):
        a, b = (side[index] if index < len(side) else "nothing" for side in (want, have))
        if a != b:
            return f"event {index + 1}: {a} expected, {b} found"
    return None


def leaves(events: list[str]) -> Factory:
    """A factory with the traces' leaves, which say in ``events`` what they do."""

    def setup(node: Any) -> None:
        node._calls = 0
        node.events = events

    def start(node: Any) -> Status:
        return node._answer("start")  # type: ignore[no-any-return]

    def run(node: Any) -> Status:
        return node._answer("run")  # type: ignore[no-any-return]

    def ask(node: Any) -> Status:
        return node._answer("cond")  # type: ignore[no-any-return]

    def halted(node: TreeNode) -> None:
        events.append(f"{node.name}:halt")

    leaf = {"setup": setup, "on_start": start, "on_running": run, "on_halted": halted}
    factory = Factory()
    factory.register(type("Leaf", (_Scripted, StatefulAction), leaf))
    factory.register(type("Cond", (_Scripted, Condition), {"setup": setup, "tick": ask}))
    return factory
