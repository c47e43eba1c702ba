"""What Groot2 asks a running tree: the tree, its status, entries, changes; by word and by wire."""

import struct
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.behavior import Status, Tree, read_tree
from roboyard.behavior.groot import Monitor, as_xml, packed, request, statuses
from roboyard.behavior.nodes import TreeMissionNode
from roboyard.bus import Bus
from roboyard.errors import RoboyardError

XML = """<root BTCPP_format="4" main_tree_to_execute="Main">
  <BehaviorTree ID="Main"><Sequence name="all">
    <Script code="n := 3; word := 'go'" name="set"/>
    <SubTree ID="Inner" name="deep" m="{n}"/>
    <Spin spin_dist="1.0" _skipIf="true"/>
    <Sleep msec="500"/>
  </Sequence></BehaviorTree>
  <BehaviorTree ID="Inner"><ScriptCondition code="m == 3"/></BehaviorTree>
</root>"""
MS = 1_000_000


class Watched:
    """A tree with a monitor, ticked by hand."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.tree: Tree = read_tree(XML)
        self.monitor = Monitor(self.tree, lambda: self.now_ns)
        self.tree.watch(self.monitor.note)

    def tick(self, ms: int) -> None:
        self.now_ns = ms * MS
        with self.monitor.lock:
            self.tree.tick_once(self.now_ns)

    def ask(self, kind: str, *rest: str) -> bytes:
        header, *body = self.monitor.answer(request(kind, 77, *rest))
        assert header[:6] == request(kind, 77)[0]
        assert len(header) == 22
        return body[0] if body else b""


def test_the_tree_is_told_so_that_it_can_be_read_again() -> None:
    told = as_xml(read_tree(XML))
    again = read_tree(told.replace("_fullpath", "_f").replace("_uid", "_u"))
    assert [(node.uid, node.type_name, node.name) for node in again.walk()] == [
        (node.uid, node.type_name, node.name) for node in read_tree(XML).walk()
    ]
    root = ElementTree.fromstring(told)
    assert {one.get("ID"): one.get("_fullpath") for one in root.findall("BehaviorTree")} == {
        "Main": "",
        "Inner": "deep",
    }
    assert sorted(int(one.get("_uid", "")) for one in root.iter() if one.get("_uid")) == list(range(1, 7))
    assert [one.get("ID") for one in root.findall("TreeNodesModel/Action")] == ["Spin"]


def test_status_is_as_the_nodes_have_it() -> None:
    watched = Watched()
    assert set(statuses(watched.ask("S")).values()) == {(Status.IDLE, False)}
    watched.tick(0)
    told = statuses(watched.ask("S"))
    for uid, node in watched.tree.nodes.items():
        status, was = told[uid]
        assert (Status.IDLE if was else status) is node.status
    assert told[1] == (Status.RUNNING, False)
    watched.tick(600)
    told = statuses(watched.ask("S"))
    assert told[1] == (Status.SUCCESS, True)  # idle again, and was successful


def unpacked(data: bytes) -> Any:
    """Enough of MessagePack to read what is sent."""
    return _value(data, 0)[0]


def _value(data: bytes, at: int) -> tuple[Any, int]:
    kind, rest = data[at], at + 1
    if kind in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[kind], rest
    if kind in (0xD3, 0xCB):
        return struct.unpack_from(">q" if kind == 0xD3 else ">d", data, rest)[0], rest + 8
    (count,) = struct.unpack_from(">I", data, rest)
    rest += 4
    if kind == 0xDB:
        return data[rest : rest + count].decode(), rest + count
    items = []
    for _ in range(count if kind == 0xDD else 2 * count):
        item, rest = _value(data, rest)
        items.append(item)
    return (items, rest) if kind == 0xDD else (dict(zip(items[::2], items[1::2], strict=True)), rest)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(PLAIN)
def test_what_is_packed_can_be_unpacked(value: Any) -> None:
    assert unpacked(packed(value)) == value


def test_entries_are_told_by_subtree() -> None:
    watched = Watched()
    watched.tick(0)
    assert unpacked(watched.ask("B", "Main;deep;nobody")) == {"Main": {"n": 3.0, "word": "go"}, "deep": {}}
    assert watched.monitor.answer(request("B", 1)) == [b"error", b"must be 2 parts message"]


def test_changes_are_recorded_from_when_it_is_asked_for() -> None:
    watched = Watched()
    watched.tick(0)
    assert watched.ask("t") == b""
    assert watched.ask("r", "start") == b"0"
    watched.tick(600)
    told = watched.ask("t")
    first = int.from_bytes(told[:6], "little"), *struct.unpack("<HB", told[6:9])
    assert len(told) % 9 == 0
    assert first == (600_000, 6, Status.SUCCESS.value)
    assert watched.ask("t") == b""
    watched.ask("r", "stop")
    watched.tick(700)
    assert watched.ask("t") == b""


@pytest.mark.parametrize("parts", [[], [b"abc"], [b"\x01T\0\0\0\0"], request("I", 1, "{}"), [bytes(6)]])
def test_what_is_no_request_is_answered_with_an_error(parts: list[bytes]) -> None:
    answer = Watched().monitor.answer(parts)
    assert answer[0] == b"error"
    assert len(answer) == 2


def test_it_is_heard_by_wire(tmp_path: Path) -> None:
    zmq = pytest.importorskip("zmq")
    (tmp_path / "tree.xml").write_text(XML)
    context = zmq.Context()
    with context.socket(zmq.REP) as probe:
        port = probe.bind_to_random_port("tcp://127.0.0.1")
    bus = Bus(seed=1)
    mission = TreeMissionNode(file=str(tmp_path / "tree.xml"), start=0.0, groot=port)
    bus.add(mission, "mission")
    with pytest.raises(RoboyardError, match=f"port {port} cannot be had"):
        bus.add(TreeMissionNode(file=str(tmp_path / "tree.xml"), groot=port), "other")
    with context.socket(zmq.REQ) as groot:
        groot.setsockopt(zmq.RCVTIMEO, 5000)
        groot.setsockopt(zmq.LINGER, 0)
        groot.connect(f"tcp://127.0.0.1:{port}")
        bus.executor.run_for(0.2)
        for kind, rest in (("T", ()), ("S", ()), ("B", ("Main",))):
            groot.send_multipart(request(kind, 5, *rest))
            header, body = groot.recv_multipart()
            assert header[:6] == request(kind, 5)[0]
            if kind == "S":
                assert statuses(body)[1] == (Status.RUNNING, False)
    bus.close()
    context.term()
