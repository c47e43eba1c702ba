"""Behaviour trees: traces of BehaviorTree.CPP that are repeated event for event, and what a tick costs.

Traces are looked for in ``--traces FILE``, else in ``bt`` of the folder that ROBOYARD_DATA names: one JSON object a
line with ``xml``, ``ticks`` (each with ``status`` and ``ev``), and ``halt`` or ``error``.

The trees of the timing have 781 nodes; 500 are leaves that read a port, half of which write one too.  The peer's nodes
do the same through py_trees' blackboard clients.  Times are the best of many ticks, by the thread's own clock.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from roboyard.behavior import (
    Blackboard,
    ConditionNode,
    NodeFactory,
    NodeStatus,
    SyncActionNode,
    input_port,
    output_port,
    read_tree,
)
from roboyard.behavior.traces import first_difference, parse_trace, record_trace
from roboyard.errors import InputError

CPP = 0.63
"""BehaviorTree.CPP 4.10's own time for a node, without ports, on a slower machine [us]."""
SHOWN = 10
"""Traces that differ, of which it is said in what."""


class Work(SyncActionNode):
    ports: ClassVar = {"a": input_port(int), "b": output_port(int)}

    def tick(self) -> NodeStatus:
        self.set_output("b", self.get_input("a") + 1)
        return NodeStatus.SUCCESS


class Ask(ConditionNode):
    ports: ClassVar = {"a": input_port(int)}

    def tick(self) -> NodeStatus:
        return NodeStatus.SUCCESS if self.get_input("a") >= 0 else NodeStatus.FAILURE


LEAVES = '<Ask a="{x}"/><Work a="{x}" b="{y}"/><Work a="{y}" b="{z}"/><ForceSuccess><Ask a="{x}"/></ForceSuccess>'


def read_traces(path: Path) -> list[dict[str, Any]]:
    """The traces of a file of JSON lines."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", location=str(path), valid="a file of traces") from None
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except ValueError as error:
            raise InputError(f"is no JSON: {error}", location=f"{path}:{number}", valid="one trace a line") from None
        if not isinstance(data, dict) or not isinstance(data.get("xml"), str):
            raise InputError("a trace without xml", location=f"{path}:{number}", valid="an object with xml and ticks")
        found.append(data)
    return found


def conformance(nightly: bool, traces: Path | None = None) -> dict[str, Any]:
    if traces is None:
        folder = os.environ.get("ROBOYARD_DATA")
        if not folder:
            raise ImportError("no traces: --traces or ROBOYARD_DATA has to name them")
        traces = Path(folder) / "bt" / "btcpp_4_10_traces.jsonl"
        if not traces.is_file():
            raise ImportError(f"no traces: there is no {traces}")
    data = read_traces(traces)
    differing = []
    most = max((len(item.get("ticks", ())) for item in data), default=0)  # an error after these came in halting
    for number, item in enumerate(data, 1):
        expected = parse_trace(item)
        ticks = max(min(len(expected.ticks) + (expected.error is not None), most), 1)
        found = first_difference(expected, record_trace(item["xml"], ticks=ticks))
        if found is not None:
            differing.append(f"trace {item.get('id', number)}: {found}")
    matched = len(data) - len(differing)
    details = [f"traces {len(data)}, matched {matched}", *differing[:SHOWN]]
    if len(differing) > SHOWN:
        details.append(f"and {len(differing) - SHOWN} more differ")
    share = 100.0 * matched / len(data) if data else 0.0
    return {
        "figures": [{"name": "traces matched event for event", "value": share, "unit": "%", "target": ">= 100"}],
        "details": details,
    }


def best(call: Callable[[], Any], rounds: int) -> float:
    """Of the fastest round [s]."""
    fastest = float("inf")
    for _ in range(rounds):
        begin = time.thread_time_ns()
        call()
        fastest = min(fastest, (time.thread_time_ns() - begin) * 1e-9)
    return fastest


def ours() -> tuple[Callable[[], Any], int]:
    def level(depth: int) -> str:
        return LEAVES if depth == 0 else "".join(f"<Sequence>{level(depth - 1)}</Sequence>" for _ in range(5))

    factory = NodeFactory()
    factory.register(Work)
    factory.register(Ask)
    board = Blackboard()
    board.set("x", 3)
    xml = f'<root BTCPP_format="4"><BehaviorTree ID="M"><Sequence>{level(3)}</Sequence></BehaviorTree></root>'
    tree = read_tree(xml, factory, blackboard=board)
    assert tree.tick_exactly_once() is NodeStatus.SUCCESS
    return tree.tick_exactly_once, len(tree.nodes)


def theirs() -> tuple[Callable[[], Any], int]:
    import py_trees
    from py_trees.common import Access
    from py_trees.common import Status as Answer

    class Leaf(py_trees.behaviour.Behaviour):  # type: ignore[misc]
        def __init__(self, reads: str, writes: str | None) -> None:
            super().__init__(name="leaf")
            self.board = self.attach_blackboard_client()
            self.reads, self.writes = reads, writes
            self.board.register_key(reads, access=Access.READ)
            if writes is not None:
                self.board.register_key(writes, access=Access.WRITE)

        def update(self) -> Any:
            value = self.board.get(self.reads)
            if self.writes is not None:
                self.board.set(self.writes, value + 1)
            return Answer.SUCCESS if value >= 0 else Answer.FAILURE

    def level(depth: int) -> list[Any]:
        if depth == 0:
            forced = py_trees.decorators.FailureIsSuccess(name="forced", child=Leaf("x", None))
            return [Leaf("x", None), Leaf("x", "y"), Leaf("y", "z"), forced]
        return [py_trees.composites.Sequence(f"s{k}", memory=True, children=level(depth - 1)) for k in range(5)]

    first = py_trees.blackboard.Client(name="first")
    first.register_key("x", access=Access.WRITE)
    first.x = 3
    root = py_trees.composites.Sequence("root", memory=True, children=level(3))
    root.tick_once()
    assert root.status is Answer.SUCCESS
    return root.tick_once, sum(1 for _ in root.iterate())


def ticks(nightly: bool) -> dict[str, Any]:
    turns = 40 if nightly else 10
    call, count = ours()
    cost = best(call, 15 * turns) / count * 1e6
    figure: dict[str, Any] = {
        "name": "tick of a node, with ports", "value": cost, "unit": "us", "target": f"<= 1, <= {2 * CPP}, ratio >= 10",
        "peer": "py_trees",
    }  # fmt: skip
    try:
        other, others = theirs()
    except ImportError as error:
        figure["missing"] = str(error)
        return {"figures": [figure]}
    theirs_best = float("inf")
    for _ in range(turns):  # in turn, so that both meet the same machine
        cost = min(cost, best(call, 15) / count * 1e6)
        theirs_best = min(theirs_best, best(other, 2) / others * 1e6)
    figure["value"], figure["peer_value"] = cost, theirs_best
    figure["ratio"] = figure["peer_value"] / cost
    return {
        "figures": [figure],
        "details": [f"{count} nodes here, {others} there; BehaviorTree.CPP itself {CPP} us, on a slower machine"],
    }


PARTS = [conformance, ticks]
