"""Requests of Groot2 to a running tree: its XML, status, entries, transitions and hooks; by call and over ZeroMQ."""

import json
import struct
from pathlib import Path
from threading import Thread
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.missions import MissionHarness

from roboyard.behavior import NodeStatus, Tree, read_tree
from roboyard.behavior.groot import (
    GrootHooks,
    GrootRequestHandler,
    decode_statuses,
    encode_breakpoint_reached,
    encode_message,
    encode_request,
    tree_to_xml,
)
from roboyard.behavior.nodes import TreeExecutorNode
from roboyard.bus.external_inputs import ExternalInput
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


def hook_text(uid: int, **fields: Any) -> str:
    """A hook as Groot2 sends it."""
    hook = {"enabled": True, "uid": uid, "mode": 0, "once": False, "desired_status": "SKIPPED", "position": 0}
    return json.dumps(hook | fields)


def unlock_text(uid: int, status: str = "SKIPPED", position: int = 0, *, remove: bool = False) -> str:
    """The release of a breakpoint as Groot2 sends it."""
    return json.dumps({"uid": uid, "desired_status": status, "position": position, "remove_when_done": remove})


class MonitoredTree:
    """A tree with a monitor, ticked by the test."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.tree: Tree = read_tree(XML)
        self.reached: list[int] = []
        self.waited = 0
        self.hooks = GrootHooks(self.tree, self._wait, self.reached.append)
        self.monitor = GrootRequestHandler(self.tree, lambda: self.now_ns, self.hooks, self.hooks.change)
        self.changes: list[tuple[str, str]] = []
        self.tree.set_status_callback(self.monitor.record)

    def tick(self, ms: int) -> NodeStatus:
        self.now_ns = ms * MS
        with self.monitor.lock:
            return self.tree.tick_once(self.now_ns)

    def _wait(self) -> None:
        """At a breakpoint: apply the next change that Groot2 sends."""
        self.waited += 1
        self.hooks.change(*self.changes.pop(0))

    def request(self, kind: str, *parts: str) -> bytes:
        header, *body = self.monitor.handle_request(encode_request(kind, 77, *parts))
        assert header[:6] == encode_request(kind, 77)[0]
        assert len(header) == 22
        return body[0] if body else b""


def test_tree_written_as_xml_is_read_back() -> None:
    text = tree_to_xml(read_tree(XML))
    restored = read_tree(text.replace("_fullpath", "_f").replace("_uid", "_u"))
    assert [(node.uid, node.type_name, node.name) for node in restored.walk()] == [
        (node.uid, node.type_name, node.name) for node in read_tree(XML).walk()
    ]
    root = ElementTree.fromstring(text)
    assert {one.get("ID"): one.get("_fullpath") for one in root.findall("BehaviorTree")} == {
        "Main": "",
        "Inner": "deep",
    }
    assert sorted(int(one.get("_uid", "")) for one in root.iter() if one.get("_uid")) == list(range(1, 7))
    assert [one.get("ID") for one in root.findall("TreeNodesModel/Action")] == ["Spin"]


def test_status_reply_equals_the_nodes_status() -> None:
    monitored = MonitoredTree()
    assert set(decode_statuses(monitored.request("S")).values()) == {(NodeStatus.IDLE, False)}
    monitored.tick(0)
    reported = decode_statuses(monitored.request("S"))
    for uid, node in monitored.tree.nodes.items():
        status, was_reset = reported[uid]
        assert (NodeStatus.IDLE if was_reset else status) is node.status
    assert reported[1] == (NodeStatus.RUNNING, False)
    monitored.tick(600)
    reported = decode_statuses(monitored.request("S"))
    assert reported[1] == (NodeStatus.SUCCESS, True)  # idle again after its success


def unpack(data: bytes) -> Any:
    """A MessagePack value, of the types that the monitor sends."""
    return _unpack_at(data, 0)[0]


def _unpack_at(data: bytes, start: int) -> tuple[Any, int]:
    kind, offset = data[start], start + 1
    if kind in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[kind], offset
    if kind in (0xD3, 0xCB):
        return struct.unpack_from(">q" if kind == 0xD3 else ">d", data, offset)[0], offset + 8
    (count,) = struct.unpack_from(">I", data, offset)
    offset += 4
    if kind == 0xDB:
        return data[offset : offset + count].decode(), offset + count
    items = []
    for _ in range(count if kind == 0xDD else 2 * count):
        item, offset = _unpack_at(data, offset)
        items.append(item)
    return (items, offset) if kind == 0xDD else (dict(zip(items[::2], items[1::2], strict=True)), offset)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(PLAIN)
def test_messagepack_values_are_read_back(value: Any) -> None:
    assert unpack(encode_message(value)) == value


def test_blackboard_reply_groups_entries_by_subtree() -> None:
    monitored = MonitoredTree()
    monitored.tick(0)
    assert unpack(monitored.request("B", "Main;deep;nobody")) == {"Main": {"n": 3.0, "word": "go"}, "deep": {}}
    assert monitored.monitor.handle_request(encode_request("B", 1)) == [b"error", b"must be 2 parts message"]


def test_transitions_are_recorded_between_start_and_stop() -> None:
    monitored = MonitoredTree()
    monitored.tick(0)
    assert monitored.request("t") == b""
    assert monitored.request("r", "start") == b"0"
    monitored.tick(600)
    changes = monitored.request("t")
    first = int.from_bytes(changes[:6], "little"), *struct.unpack("<HB", changes[6:9])
    assert len(changes) % 9 == 0
    assert first == (600_000, 6, NodeStatus.SUCCESS.value)
    assert monitored.request("t") == b""
    monitored.request("r", "stop")
    monitored.tick(700)
    assert monitored.request("t") == b""


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [b"abc"],
        [b"\x01T\0\0\0\0"],
        encode_request("I", 1, "{}"),
        [bytes(6)],
        encode_request("I", 1),
        encode_request("I", 1, "["),
        encode_request("I", 1, "7"),
        encode_request("U", 1, '{"uid": 1, "position": 0}'),
        encode_request("N", 1),
        encode_request("r", 1),
        encode_request("R", 1, '{"uid": 1, "position": 0}'),
        encode_request("I", 1, hook_text(1, desired_status="WELL")),
        encode_request("I", 1, hook_text(1, mode=7)),
    ],
)
def test_invalid_requests_are_answered_with_an_error(parts: list[bytes]) -> None:
    reply = MonitoredTree().monitor.handle_request(parts)
    assert reply[0] == b"error"
    assert len(reply) == 2


# Main: 1 Sequence, 2 Script, 3 SubTree, 4 ScriptCondition of Inner, 5 Spin, 6 Sleep


def test_request_and_reply_layout_follows_the_protocol_header() -> None:
    monitored = MonitoredTree()
    # groot2_protocol.h: uint8 protocol, uint8 type, uint32 number, little endian; then char[16]
    header, body = monitored.monitor.handle_request([b"\x02S\x01\x02\x03\x04"])
    assert header[:6] == b"\x02S\x01\x02\x03\x04"
    assert len(header) == 22
    assert body == b"".join(bytes((uid, 0, 0)) for uid in (1, 2, 3, 5, 6, 4))  # uint16 number, uint8 status; by subtree
    assert encode_breakpoint_reached(300, 5) == [b"\x02N\x05\0\0\0", b"300"]
    assert (
        monitored.monitor.handle_request([b"\x02I\0\0\0\0", hook_text(4, mode=1).encode()])[0][:6] == b"\x02I\0\0\0\0"
    )
    assert monitored.request("D") == (
        b'[{"desired_status":"SKIPPED","enabled":true,"mode":1,"once":false,"position":0,"uid":4}]'
    )


def test_hook_status_replaces_the_nodes_status() -> None:
    monitored = MonitoredTree()
    monitored.request("I", f"[{hook_text(6, mode=1, desired_status='SUCCESS')}]")
    assert monitored.tick(0) is NodeStatus.SUCCESS  # the Sleep node is skipped
    monitored.request("I", hook_text(4, mode=1, desired_status="FAILURE", position=1, once=True))
    assert monitored.tick(10) is NodeStatus.FAILURE
    assert monitored.reached == [6, 4]
    assert monitored.tick(20) is NodeStatus.SUCCESS  # once
    monitored.request("R", hook_text(6))
    assert monitored.tick(30) is NodeStatus.RUNNING
    assert monitored.request("D") == b"[]"


def test_hook_after_a_running_tick_ends_the_node() -> None:
    monitored = MonitoredTree()
    monitored.request("I", hook_text(6, mode=1, desired_status="SUCCESS", position=1))
    assert monitored.tick(0) is NodeStatus.SUCCESS
    monitored.request("X")
    assert monitored.tick(10) is NodeStatus.RUNNING
    assert monitored.reached == [6]


@pytest.mark.parametrize(
    ("kind", "body", "ends"),
    [
        ("U", unlock_text(4), NodeStatus.RUNNING),
        ("U", unlock_text(4, "SUCCESS"), NodeStatus.RUNNING),
        ("U", unlock_text(4, "FAILURE"), NodeStatus.FAILURE),
        ("R", unlock_text(4), NodeStatus.RUNNING),
        ("A", "", NodeStatus.RUNNING),
        ("X", "", NodeStatus.RUNNING),
        ("I", hook_text(4, mode=1, desired_status="FAILURE"), NodeStatus.FAILURE),
    ],
)
def test_breakpoint_is_released_by_every_command(kind: str, body: str, ends: NodeStatus) -> None:
    monitored = MonitoredTree()
    monitored.request("I", hook_text(4))
    other = ("I", hook_text(6, enabled=False))
    monitored.changes = [other, (kind, body)]
    assert monitored.tick(0) is ends
    assert monitored.waited == 2  # a change of another hook does not end the wait
    assert monitored.reached == [4]


def test_breakpoint_unlocked_in_advance_does_not_wait() -> None:
    monitored = MonitoredTree()
    monitored.request("I", hook_text(4))
    monitored.request("U", unlock_text(4, "FAILURE", remove=True))
    assert monitored.tick(0) is NodeStatus.FAILURE
    assert monitored.waited == 0
    assert monitored.request("D") == b"[]"


def test_hook_is_ignored_where_a_precondition_decides() -> None:
    monitored = MonitoredTree()
    monitored.request("I", hook_text(5, mode=1, desired_status="FAILURE"))  # its _skipIf holds
    assert monitored.tick(0) is NodeStatus.RUNNING
    assert monitored.reached == []


class GrootClient:
    """Requests and subscriptions of Groot2 over ZeroMQ, byte by byte."""

    def __init__(self, zmq: Any, port: int) -> None:
        self.context = zmq.Context()
        self.requests, self.updates = self.context.socket(zmq.REQ), self.context.socket(zmq.SUB)
        self.updates.subscribe(b"")
        for number, socket in ((port, self.requests), (port + 1, self.updates)):
            socket.setsockopt(zmq.RCVTIMEO, 10_000)
            socket.setsockopt(zmq.LINGER, 0)
            socket.connect(f"tcp://127.0.0.1:{number}")

    def request(self, kind: bytes, *parts: bytes) -> list[bytes]:
        self.requests.send_multipart([b"\x02" + kind + b"\x05\0\0\0", *parts])
        header, *body = self.requests.recv_multipart()
        assert header == b"error" or header[:6] == b"\x02" + kind + b"\x05\0\0\0"
        return list(body)

    def close(self) -> None:
        self.requests.close()
        self.updates.close()
        self.context.term()


def free_port(zmq: Any) -> int:
    """The first of two neighboring ports that are free."""
    context = zmq.Context()
    with context.socket(zmq.REP) as probe, context.socket(zmq.REP) as second:
        port = int(probe.bind_to_random_port("tcp://127.0.0.1"))
        second.bind(f"tcp://127.0.0.1:{port + 1}")
    context.term()
    return port


def monitored_mission(folder: Path, port: int) -> MissionHarness:
    """A mission that Groot2 can monitor at a port."""
    return MissionHarness(folder, XML, groot_port=port)


def test_groot_server_answers_over_zmq(tmp_path: Path) -> None:
    zmq = pytest.importorskip("zmq")
    port = free_port(zmq)
    mission = monitored_mission(tmp_path, port)
    with pytest.raises(RoboyardError, match=f"port {port} cannot be had"):
        mission.add(TreeExecutorNode(file=str(tmp_path / "tree.xml"), groot_port=port), "other")
    groot = GrootClient(zmq, port)
    mission.run_for(0.2)
    assert groot.request(b"T")[0].startswith(b"<root")
    assert decode_statuses(groot.request(b"S")[0])[1] == (NodeStatus.RUNNING, False)
    assert unpack(groot.request(b"B", b"Main")[0]) == {"Main": {"n": 3.0, "word": "go"}}
    assert groot.request(b"Q") == [b"Request not recognized"]
    groot.close()
    mission.close()


def test_breakpoints_hold_a_run_and_are_replayed_from_inputs(tmp_path: Path) -> None:
    zmq = pytest.importorskip("zmq")
    port = free_port(zmq)
    mission = monitored_mission(tmp_path, port)
    executor = mission.bus.executor
    groot = GrootClient(zmq, port)
    replies: list[Any] = []
    recorded = mission.record("/inputs", message_type("roboyard_msgs/msg/ExternalInput"))

    def send_requests() -> None:
        replies.append(groot.request(b"I", hook_text(4).encode()))
        replies.append(groot.request(b"I", hook_text(6, mode=1, desired_status="FAILURE", once=True).encode()))
        replies.append(groot.request(b"R", unlock_text(3).encode()))
        executor.paused = False
        kind, uid = groot.updates.recv_multipart()
        replies.append([kind[:2], uid])
        replies.append(sorted(decode_statuses(groot.request(b"S")[0]).items()))
        replies.append(groot.request(b"U", unlock_text(4, "SUCCESS", remove=True).encode()))
        replies.append(groot.request(b"D"))

    executor.paused = True
    thread = Thread(target=send_requests)
    thread.start()
    mission.run_for(0.55)
    thread.join()
    assert replies[:4] == [[], [], [b"Node ID not found"], [b"\x02N", b"4"]]
    assert dict(replies[4])[1] == (NodeStatus.RUNNING, False)  # held within the first tick
    assert dict(replies[4])[2] == (NodeStatus.SUCCESS, False)
    assert replies[5:] == [[], [b"[]"]]
    events = mission.published("/mission/events").data
    assert "FAILURE" in events[-1]
    groot.close()
    mission.close()

    inputs = [
        (
            one.time_ns,
            ExternalInput(message.operation, message.target, message.type, message.source, bytes(message.data)),
        )
        for one in recorded
        for message in [one.message]
    ]
    replayed = monitored_mission(tmp_path, port)
    replayed.bus.inputs.schedule(inputs)
    replayed.run_for(0.55)
    replayed.close()
    assert [item.source for _, item in inputs] == ["groot"] * 4
    assert replayed.published("/mission/events").data == events


def test_run_that_ends_at_a_breakpoint_does_not_hang(tmp_path: Path) -> None:
    zmq = pytest.importorskip("zmq")
    mission = monitored_mission(tmp_path, free_port(zmq))
    hook = json.dumps({"kind": "I", "body": hook_text(4)})
    item = ExternalInput("publish", "/mission/hooks", "std_msgs/msg/String", "test", serialize(msg.String(data=hook)))
    mission.bus.inputs.schedule([(0, item)])
    mission.run_for(0.3)  # no client is connected, so the clock does not wait
    with pytest.raises(RoboyardError, match="waits at a breakpoint"):
        mission.mission.save_state()
    mission.close()
