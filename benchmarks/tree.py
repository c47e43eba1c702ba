"""Behavior trees: traces of BehaviorTree.CPP that are repeated event for event, and the time of a tick.

Traces are read from ``--traces FILE``, by default from ``bt`` in the folder ROBOYARD_DATA: one JSON object a line with
``xml``, ``ticks`` (each with ``status`` and ``ev``), and ``halt`` or ``error``.

The trees of the timing have 781 nodes; 500 are leaves that read a port, half of which also write one.  The nodes of the
peer do the same with the blackboard clients of py_trees.  Times are the best of many ticks, by the thread's clock.
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

BT_CPP_TIME = 0.63
"""Time of BehaviorTree.CPP 4.10 for a node without ports, on a slower machine [µs]."""
MAX_LISTED = 10
"""Largest number of different traces that are listed."""


class AddOne(SyncActionNode):
    ports: ClassVar = {"a": input_port(int), "b": output_port(int)}

    def tick(self) -> NodeStatus:
        self.set_output("b", self.get_input("a") + 1)
        return NodeStatus.SUCCESS


class IsNotNegative(ConditionNode):
    ports: ClassVar = {"a": input_port(int)}

    def tick(self) -> NodeStatus:
        return NodeStatus.SUCCESS if self.get_input("a") >= 0 else NodeStatus.FAILURE


LEAVES = (
    '<IsNotNegative a="{x}"/><AddOne a="{x}" b="{y}"/><AddOne a="{y}" b="{z}"/>'
    '<ForceSuccess><IsNotNegative a="{x}"/></ForceSuccess>'
)


def read_traces(path: Path) -> list[dict[str, Any]]:
    """Return the traces of a file of JSON lines."""
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


def compare_traces(nightly: bool, traces: Path | None = None) -> dict[str, Any]:
    if traces is None:
        folder = os.environ.get("ROBOYARD_DATA")
        if not folder:
            raise ImportError("no traces; --traces or ROBOYARD_DATA names them")
        traces = Path(folder) / "bt" / "btcpp_4_10_traces.jsonl"
        if not traces.is_file():
            raise ImportError(f"no traces; {traces} does not exist")
    data = read_traces(traces)
    different = []
    max_ticks = max((len(item.get("ticks", ())) for item in data), default=0)  # later errors occurred during halt
    for number, item in enumerate(data, 1):
        expected = parse_trace(item)
        ticks = max(min(len(expected.ticks) + (expected.error is not None), max_ticks), 1)
        difference = first_difference(expected, record_trace(item["xml"], ticks=ticks))
        if difference is not None:
            different.append(f"trace {item.get('id', number)}: {difference}")
    matched = len(data) - len(different)
    details = [f"traces {len(data)}, matched {matched}", *different[:MAX_LISTED]]
    if len(different) > MAX_LISTED:
        details.append(f"and {len(different) - MAX_LISTED} more differ")
    matched_percent = 100.0 * matched / len(data) if data else 0.0
    return {
        "figures": [
            {"name": "traces matched event for event", "value": matched_percent, "unit": "%", "target": ">= 100"}
        ],
        "details": details,
    }


def measure(call: Callable[[], Any], rounds: int) -> float:
    """Return the processor time of the fastest of several calls [s]."""
    fastest = float("inf")
    for _ in range(rounds):
        start_ns = time.thread_time_ns()
        call()
        fastest = min(fastest, (time.thread_time_ns() - start_ns) * 1e-9)
    return fastest


def make_call() -> tuple[Callable[[], Any], int]:
    def level(depth: int) -> str:
        return LEAVES if depth == 0 else "".join(f"<Sequence>{level(depth - 1)}</Sequence>" for _ in range(5))

    factory = NodeFactory()
    factory.register(AddOne)
    factory.register(IsNotNegative)
    blackboard = Blackboard()
    blackboard.set("x", 3)
    xml = f'<root BTCPP_format="4"><BehaviorTree ID="M"><Sequence>{level(3)}</Sequence></BehaviorTree></root>'
    tree = read_tree(xml, factory, blackboard=blackboard)
    assert tree.tick_exactly_once() is NodeStatus.SUCCESS
    return tree.tick_exactly_once, len(tree.nodes)


def make_peer_call() -> tuple[Callable[[], Any], int]:
    import py_trees
    from py_trees.common import Access
    from py_trees.common import Status as PeerStatus

    class Leaf(py_trees.behaviour.Behaviour):  # type: ignore[misc]
        def __init__(self, input_key: str, output_key: str | None) -> None:
            super().__init__(name="leaf")
            self.client = self.attach_blackboard_client()
            self.input_key, self.output_key = input_key, output_key
            self.client.register_key(input_key, access=Access.READ)
            if output_key is not None:
                self.client.register_key(output_key, access=Access.WRITE)

        def update(self) -> Any:
            value = self.client.get(self.input_key)
            if self.output_key is not None:
                self.client.set(self.output_key, value + 1)
            return PeerStatus.SUCCESS if value >= 0 else PeerStatus.FAILURE

    def level(depth: int) -> list[Any]:
        if depth == 0:
            forced = py_trees.decorators.FailureIsSuccess(name="forced", child=Leaf("x", None))
            return [Leaf("x", None), Leaf("x", "y"), Leaf("y", "z"), forced]
        return [py_trees.composites.Sequence(f"s{k}", memory=True, children=level(depth - 1)) for k in range(5)]

    client = py_trees.blackboard.Client(name="client")
    client.register_key("x", access=Access.WRITE)
    client.x = 3
    root = py_trees.composites.Sequence("root", memory=True, children=level(3))
    root.tick_once()
    assert root.status is PeerStatus.SUCCESS
    return root.tick_once, sum(1 for _ in root.iterate())


def measure_ticks(nightly: bool) -> dict[str, Any]:
    n_turns = 40 if nightly else 10
    call, n_nodes = make_call()
    duration = measure(call, 15 * n_turns) / n_nodes * 1e6
    figure: dict[str, Any] = {
        "name": "tick of a node, with ports", "value": duration, "unit": "us",
        "target": f"<= 1, <= {2 * BT_CPP_TIME}, ratio >= 10", "peer": "py_trees",
    }  # fmt: skip
    try:
        peer_call, n_peer_nodes = make_peer_call()
    except ImportError as error:
        figure["missing"] = str(error)
        return {"figures": [figure]}
    peer_duration = float("inf")
    for _ in range(n_turns):  # alternately, so that both run under the same conditions
        duration = min(duration, measure(call, 15) / n_nodes * 1e6)
        peer_duration = min(peer_duration, measure(peer_call, 2) / n_peer_nodes * 1e6)
    figure["value"], figure["peer_value"] = duration, peer_duration
    figure["ratio"] = figure["peer_value"] / duration
    return {
        "figures": [figure],
        "details": [
            f"{n_nodes} nodes, {n_peer_nodes} of py_trees; BehaviorTree.CPP {BT_CPP_TIME} us on a slower machine"
        ],
    }


PARTS = [compare_traces, measure_ticks]
