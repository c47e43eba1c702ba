"""Trees repeat the events of BehaviorTree.CPP 4.10; a tree that was saved and loaded continues identically."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from roboyard.behavior import InvalidTreeError, read_tree
from roboyard.behavior.traces import TreeTrace, first_difference, parse_trace, record_trace, trace_leaves
from roboyard.errors import RoboyardError


@pytest.fixture(scope="module")
def traces(external_data: Path) -> list[dict[str, Any]]:
    lines = (external_data / "bt" / "btcpp_4_10_traces.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_events_equal_behaviortree_cpp_traces(traces: list[dict[str, Any]]) -> None:
    differing = {item["id"]: first_difference(parse_trace(item), record_trace(item["xml"])) for item in traces}
    assert {name: text for name, text in differing.items() if text} == {}
    assert sum("error" in item for item in traces) >= 5


def test_saved_tree_continues_identically(traces: list[dict[str, Any]]) -> None:
    for item in traces[::4]:
        events: list[str] = []
        try:
            tree = read_tree(item["xml"], trace_leaves(events))
            for _ in range(3):
                tree.tick_exactly_once()
            saved = pickle.loads(pickle.dumps(tree.save_state()))
            other_events: list[str] = []
            other = read_tree(item["xml"], trace_leaves(other_events))
            other.load_state(saved)
            events.clear()
            for _ in range(3):
                assert tree.tick_exactly_once() is other.tick_exactly_once()
        except RoboyardError:
            continue
        assert events == other_events
        assert tree.save_state() == other.save_state()


def test_trace_differences_are_described() -> None:
    a = TreeTrace((("RUNNING", ("n1:start:R",)),))
    b = TreeTrace((("RUNNING", ("n1:start:S",)),))
    assert first_difference(a, a) is None
    assert first_difference(a, b) == "tick 1: event 1: n1:start:R expected, n1:start:S found"
    assert first_difference(a, TreeTrace(a.ticks, ("n1:halt",))) == "halt: event 1: nothing expected, n1:halt found"
    with pytest.raises(InvalidTreeError, match="no trace"):
        parse_trace({"xml": "<root/>"})
