"""What Groot2 asks a running tree: the tree, its status, entries, changes; by word and by wire."""

import json
import struct
from pathlib import Path
from threading import Thread
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.behavior import Status, Tree, read_tree
from roboyard.behavior.groot import Monitor, as_xml, packed, reached, request, statuses
from roboyard.behavior.hooks import Hooks
from roboyard.behavior.nodes import TreeMissionNode
from roboyard.bus import Bus
from roboyard.bus.inputs import Input
from roboyard.errors import RoboyardError
from roboyard.messages import message_type, msg, serialize

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


def hooked(uid: int, **more: Any) -> str:
    """A hook in Groot2's words."""
    hook = {"enabled": True, "uid": uid, "mode": 0, "once": False, "desired_status": "SKIPPED", "position": 0}
    return json.dumps(hook | more)


def unlocked(uid: int, status: str = "SKIPPED", position: int = 0, *, remove: bool = False) -> str:
    """A breakpoint's end in Groot2's words."""
    return json.dumps({"uid": uid, "desired_status": status, "position": position, "remove_when_done": remove})


class Watched:
    """A tree with a monitor, ticked by hand."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.tree: Tree = read_tree(XML)
        self.told: list[int] = []
        self.waited = 0
        self.hooks = Hooks(self.tree, self._wait, self.told.append)
        self.monitor = Monitor(self.tree, lambda: self.now_ns, self.hooks, self.hooks.change)
        self.meanwhile: list[tuple[str, str]] = []
        self.tree.watch(self.monitor.note)

    def tick(self, ms: int) -> Status:
        self.now_ns = ms * MS
        with self.monitor.lock:
            return self.tree.tick_once(self.now_ns)

    def _wait(self) -> None:
        """At a breakpoint: what Groot2 asks for meanwhile."""
        self.waited += 1
        self.hooks.change(*self.meanwhile.pop(0))

    def ask(self, kind: str, *rest: str) -> bytes:
        header, *body = self.monitor.answer(request(kind, 77, *rest))
        assert header[:6] == request(kind, 77)[0]
        assert len(header) == 22
        return body[0] if body else b""


def test_tree_written_as_xml_is_read_back() -> None:
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


def test_status_reply_equals_the_nodes_status() -> None:
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
def test_messagepack_values_are_read_back(value: Any) -> None:
    assert unpacked(packed(value)) == value


def test_blackboard_reply_groups_entries_by_subtree() -> None:
    watched = Watched()
    watched.tick(0)
    assert unpacked(watched.ask("B", "Main;deep;nobody")) == {"Main": {"n": 3.0, "word": "go"}, "deep": {}}
    assert watched.monitor.answer(request("B", 1)) == [b"error", b"must be 2 parts message"]


def test_transitions_are_recorded_between_start_and_stop() -> None:
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


@pytest.mark.parametrize(
    "parts",
    [
        [], [b"abc"], [b"\x01T\0\0\0\0"], request("I", 1, "{}"), [bytes(6)], request("I", 1), request("I", 1, "["),
        request("I", 1, "7"), request("U", 1, '{"uid": 1, "position": 0}'), request("N", 1), request("r", 1),
        request("R", 1, '{"uid": 1, "position": 0}'), request("I", 1, hooked(1, desired_status="WELL")),
        request("I", 1, hooked(1, mode=7)),
    ],
)  # fmt: skip
def test_invalid_requests_are_answered_with_an_error(parts: list[bytes]) -> None:
    answer = Watched().monitor.answer(parts)
    assert answer[0] == b"error"
    assert len(answer) == 2


# Main: 1 Sequence, 2 Script, 3 SubTree, 4 ScriptCondition of Inner, 5 Spin, 6 Sleep


def test_request_and_reply_layout_follows_the_protocol_header() -> None:
    watched = Watched()
    # groot2_protocol.h: uint8 protocol, uint8 type, uint32 number, little endian; then char[16]
    header, body = watched.monitor.answer([b"\x02S\x01\x02\x03\x04"])
    assert header[:6] == b"\x02S\x01\x02\x03\x04"
    assert len(header) == 22
    assert body == b"".join(bytes((uid, 0, 0)) for uid in (1, 2, 3, 5, 6, 4))  # uint16 number, uint8 status; by subtree
    assert reached(300, 5) == [b"\x02N\x05\0\0\0", b"300"]
    assert watched.monitor.answer([b"\x02I\0\0\0\0", hooked(4, mode=1).encode()])[0][:6] == b"\x02I\0\0\0\0"
    assert watched.ask("D") == (
        b'[{"desired_status":"SKIPPED","enabled":true,"mode":1,"once":false,"position":0,"uid":4}]'
    )


def test_hook_status_replaces_the_nodes_status() -> None:
    watched = Watched()
    watched.ask("I", f"[{hooked(6, mode=1, desired_status='SUCCESS')}]")
    assert watched.tick(0) is Status.SUCCESS  # it does not sleep
    watched.ask("I", hooked(4, mode=1, desired_status="FAILURE", position=1, once=True))
    assert watched.tick(10) is Status.FAILURE
    assert watched.told == [6, 4]
    assert watched.tick(20) is Status.SUCCESS  # once
    watched.ask("R", hooked(6))
    assert watched.tick(30) is Status.RUNNING
    assert watched.ask("D") == b"[]"


def test_hook_after_a_running_tick_ends_the_node() -> None:
    watched = Watched()
    watched.ask("I", hooked(6, mode=1, desired_status="SUCCESS", position=1))
    assert watched.tick(0) is Status.SUCCESS
    watched.ask("X")
    assert watched.tick(10) is Status.RUNNING
    assert watched.told == [6]


@pytest.mark.parametrize(
    ("kind", "body", "ends"),
    [
        ("U", unlocked(4), Status.RUNNING),
        ("U", unlocked(4, "SUCCESS"), Status.RUNNING),
        ("U", unlocked(4, "FAILURE"), Status.FAILURE),
        ("R", unlocked(4), Status.RUNNING),
        ("A", "", Status.RUNNING),
        ("X", "", Status.RUNNING),
        ("I", hooked(4, mode=1, desired_status="FAILURE"), Status.FAILURE),
    ],
)
def test_breakpoint_is_released_by_every_command(kind: str, body: str, ends: Status) -> None:
    watched = Watched()
    watched.ask("I", hooked(4))
    other = ("I", hooked(6, enabled=False))
    watched.meanwhile = [other, (kind, body)]
    assert watched.tick(0) is ends
    assert watched.waited == 2  # another hook's news end nothing
    assert watched.told == [4]


def test_breakpoint_unlocked_in_advance_does_not_wait() -> None:
    watched = Watched()
    watched.ask("I", hooked(4))
    watched.ask("U", unlocked(4, "FAILURE", remove=True))
    assert watched.tick(0) is Status.FAILURE
    assert watched.waited == 0
    assert watched.ask("D") == b"[]"


def test_hook_is_ignored_where_a_precondition_decides() -> None:
    watched = Watched()
    watched.ask("I", hooked(5, mode=1, desired_status="FAILURE"))  # its _skipIf holds
    assert watched.tick(0) is Status.RUNNING
    assert watched.told == []


class Groot:
    """What Groot2 does by wire, byte by byte."""

    def __init__(self, zmq: Any, port: int) -> None:
        self.context = zmq.Context()
        self.asks, self.hears = self.context.socket(zmq.REQ), self.context.socket(zmq.SUB)
        self.hears.subscribe(b"")
        for number, socket in ((port, self.asks), (port + 1, self.hears)):
            socket.setsockopt(zmq.RCVTIMEO, 10_000)
            socket.setsockopt(zmq.LINGER, 0)
            socket.connect(f"tcp://127.0.0.1:{number}")

    def ask(self, kind: bytes, *rest: bytes) -> list[bytes]:
        self.asks.send_multipart([b"\x02" + kind + b"\x05\0\0\0", *rest])
        header, *body = self.asks.recv_multipart()
        assert header == b"error" or header[:6] == b"\x02" + kind + b"\x05\0\0\0"
        return list(body)

    def close(self) -> None:
        self.asks.close()
        self.hears.close()
        self.context.term()


def free_port(zmq: Any) -> int:
    """The first of two ports that nobody has."""
    context = zmq.Context()
    with context.socket(zmq.REP) as probe, context.socket(zmq.REP) as second:
        port = int(probe.bind_to_random_port("tcp://127.0.0.1"))
        second.bind(f"tcp://127.0.0.1:{port + 1}")
    context.term()
    return port


def watched_mission(folder: Path, port: int) -> tuple[Bus, TreeMissionNode, list[str]]:
    """A mission that Groot2 can watch, and what is put on its topic of inputs."""
    (folder / "tree.xml").write_text(XML)
    bus = Bus(seed=1)
    mission = TreeMissionNode(file=str(folder / "tree.xml"), start=0.0, groot=port)
    bus.add(mission, "mission")
    told: list[str] = []
    bus.subscribe("/mission/events", msg.String, "test", lambda message: told.append(message.data))
    return bus, mission, told


def test_groot_server_answers_over_zmq(tmp_path: Path) -> None:
    zmq = pytest.importorskip("zmq")
    port = free_port(zmq)
    bus, _, _ = watched_mission(tmp_path, port)
    with pytest.raises(RoboyardError, match=f"port {port} cannot be had"):
        bus.add(TreeMissionNode(file=str(tmp_path / "tree.xml"), groot=port), "other")
    groot = Groot(zmq, port)
    bus.executor.run_for(0.2)
    assert groot.ask(b"T")[0].startswith(b"<root")
    assert statuses(groot.ask(b"S")[0])[1] == (Status.RUNNING, False)
    assert unpacked(groot.ask(b"B", b"Main")[0]) == {"Main": {"n": 3.0, "word": "go"}}
    assert groot.ask(b"Q") == [b"Request not recognized"]
    groot.close()
    bus.close()


def test_breakpoints_hold_a_run_and_are_replayed_from_inputs(tmp_path: Path) -> None:
    zmq = pytest.importorskip("zmq")
    port = free_port(zmq)
    bus, _, told = watched_mission(tmp_path, port)
    groot = Groot(zmq, port)
    seen: list[Any] = []
    inputs: list[tuple[int, Input]] = []

    def keep(message: Any) -> None:
        item = Input(message.kind, message.target, message.type, message.source, bytes(message.data))
        inputs.append((bus.now_ns, item))

    bus.subscribe("/inputs", message_type("roboyard_msgs/msg/Input"), "test", keep)

    def watch() -> None:
        seen.append(groot.ask(b"I", hooked(4).encode()))
        seen.append(groot.ask(b"I", hooked(6, mode=1, desired_status="FAILURE", once=True).encode()))
        seen.append(groot.ask(b"R", unlocked(3).encode()))
        bus.executor.paused = False
        kind, uid = groot.hears.recv_multipart()
        seen.append([kind[:2], uid])
        seen.append(sorted(statuses(groot.ask(b"S")[0]).items()))
        seen.append(groot.ask(b"U", unlocked(4, "SUCCESS", remove=True).encode()))
        seen.append(groot.ask(b"D"))

    bus.executor.paused = True
    thread = Thread(target=watch)
    thread.start()
    bus.executor.run_for(0.55)
    thread.join()
    assert seen[:4] == [[], [], [b"Node ID not found"], [b"\x02N", b"4"]]
    assert dict(seen[4])[1] == (Status.RUNNING, False)  # held in the middle of the first tick
    assert dict(seen[4])[2] == (Status.SUCCESS, False)
    assert seen[5:] == [[], [b"[]"]]
    assert "FAILURE" in told[-1]
    groot.close()
    bus.close()

    again, _, repeated = watched_mission(tmp_path, port)
    again.inputs.schedule(inputs)
    again.executor.run_for(0.55)
    again.close()
    assert [item.source for _, item in inputs] == ["groot"] * 4
    assert repeated == told


def test_run_that_ends_at_a_breakpoint_does_not_hang(tmp_path: Path) -> None:
    zmq = pytest.importorskip("zmq")
    bus, mission, _ = watched_mission(tmp_path, free_port(zmq))
    said = {"kind": "I", "body": hooked(4)}
    item = Input(
        "publish", "/mission/hooks", "std_msgs/msg/String", "test", serialize(msg.String(data=json.dumps(said)))
    )
    bus.inputs.schedule([(0, item)])
    bus.executor.run_for(0.3)  # nobody is there for whom time would stand still
    with pytest.raises(RoboyardError, match="held at a breakpoint"):
        mission.save()
    bus.close()
