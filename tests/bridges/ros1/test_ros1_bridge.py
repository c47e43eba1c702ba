"""The bridge to ROS 1 with a small master: what is shown, what comes in, and that nobody outside does harm."""

from __future__ import annotations

import io
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from threading import Thread
from typing import Any
from xmlrpc.client import ServerProxy, dumps
from xmlrpc.server import SimpleXMLRPCServer

import pytest
from tests.bridges.ros1.conftest import SmallMaster, frame, header

import roboyard as ry
from roboyard.bridges import Attached, BridgeError, Ros1Bridge
from roboyard.bridges.external import stand_in
from roboyard.bridges.ros1.types import Ros1Type, ros1_action, ros1_type
from roboyard.messages import action_type, register
from roboyard.record import Recorder

TWIST = ros1_type("geometry_msgs/msg/Twist")


class Wheels(ry.Node):
    """in: cmd_vel   out: speed"""

    gain: float = ry.param(1.0, low=0.0, high=10.0)

    def setup(self) -> None:
        self.heard: list[tuple[str, float]] = []
        self.speed = self.publisher("speed", ry.msg.Float64)
        self.plan = self.publisher("plan", ry.msg.String, latched=True)
        self.plan.publish(ry.msg.String(data="straight on"))
        self.subscribe("cmd_vel", ry.msg.Twist, self.on_command, with_source=True)
        self.timer(0.02, lambda: self.speed.publish(ry.msg.Float64(data=self.now)))
        self.service("ring", ry.srv.SetBool, self.on_ring)

    def on_command(self, message: Any, source: str) -> None:
        self.heard.append((source, message.linear.x))

    def on_ring(self, request: Any) -> Any:
        return ry.srv.SetBool.Response(success=request.data, message="ding")


class Scene:
    """A bus with one node, a bridge, and whoever looks at it from outside."""

    def __init__(self, master: SmallMaster) -> None:
        self.master = master
        self.bus = ry.Bus(seed=1)
        self.wheels = self.bus.add(Wheels(), "wheels")
        self.bus.executor.pacer.factor = 1.0
        self.lines: list[str] = []
        self.bus.log_sinks.append(lambda record: self.lines.append(record.text))
        self.bridge = Ros1Bridge(master.uri)
        self.open: list[socket.socket | SimpleXMLRPCServer] = []

    def run(self, until: Callable[[], bool], seconds: float = 8.0) -> bool:
        return self.bus.executor.run_until(self.bus.now_ns + round(seconds * 1e9), until)

    def port(self, node: str = "/wheels") -> int:
        return int(self.master.nodes[node].rstrip("/").rsplit(":", 1)[1])

    def connect(self, node: str = "/wheels") -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", self.port(node)), 5.0)
        self.open.append(sock)
        return sock

    def close(self) -> None:
        for item in self.open:
            if isinstance(item, SimpleXMLRPCServer):
                item.shutdown()
                item.server_close()
            else:
                item.close()
        self.bus.close()


@pytest.fixture
def scene(master: SmallMaster) -> Iterator[Scene]:
    made = Scene(master)
    with Attached(made.bridge, made.bus):
        yield made
    made.close()


def read(sock: socket.socket, scene: Scene) -> bytes:
    """What stands behind a length, while the run goes on."""
    sock.setblocking(False)
    data = bytearray()

    def whole() -> bool:
        for _ in range(2):
            missing = 4 + (struct.unpack_from("<I", data)[0] if len(data) >= 4 else 0) - len(data)
            with suppress(BlockingIOError):
                data.extend(sock.recv(missing))
        return missing == 0

    assert scene.run(whole), bytes(data)
    return bytes(data[4:])


def test_the_graph_is_there(scene: Scene) -> None:
    master = scene.master
    assert set(master.publishers["/speed"]) == {"/wheels"}
    assert set(master.subscribers["/cmd_vel"]) == {"/wheels"}
    assert master.types["/speed"] == "std_msgs/Float64"
    assert "/ring" in master.services
    assert master.parameters["/wheels/gain"] == 1.0
    assert master.parameters["/use_sim_time"] is True
    assert "/wheels/set_parameters" not in master.services
    with ServerProxy(master.nodes["/wheels"]) as info:
        assert ["/speed", "std_msgs/Float64"] in info.getPublications("/me")[2]
        assert info.requestTopic("/me", "/speed", [["UDPROS"]])[0] == -1


def test_nothing_stays_behind(master: SmallMaster) -> None:
    scene = Scene(master)
    with Attached(scene.bridge, scene.bus):
        pass
    assert not any(master.publishers.values())
    assert not any(master.subscribers.values())
    assert not master.services
    assert not master.parameters
    scene.close()


def test_messages_go_out_and_latched_ones_first(scene: Scene) -> None:
    string = ros1_type("std_msgs/msg/String")
    plan, speed = scene.connect(), scene.connect()
    plan.sendall(header(callerid="/me", topic="/plan", type="*", md5sum="*"))
    assert b"latching=1" in read(plan, scene)
    assert string.decode(read(plan, scene))[8:] == b"straight on\0"
    speed.sendall(
        header(callerid="/me", topic="/speed", type="std_msgs/Float64", md5sum="fdb28210bfa9d7c91146260178d9a584")
    )
    assert b"callerid=/wheels" in read(speed, scene)
    first, second = (struct.unpack("<d", read(speed, scene))[0] for _ in range(2))
    assert second - first == pytest.approx(0.02)


def test_who_comes_to_a_paused_run_is_told_the_time(scene: Scene) -> None:
    scene.bus.executor.run_for(0.5)
    scene.bus.executor.paused = True
    clock = scene.connect("/roboyard")
    clock.sendall(header(callerid="/me", topic="/clock", type="*", md5sum="*"))
    assert b"type=rosgraph_msgs/Clock" in read(clock, scene)
    assert struct.unpack("<II", read(clock, scene)) == (0, 500_000_000)


def test_what_publishers_send_comes_in_under_their_names(scene: Scene) -> None:
    publisher = _Publisher(scene, "/teleop").await_connection()
    publisher.send(TWIST.encode(_twist(0.7)))
    assert scene.run(lambda: bool(scene.wheels.heard))
    assert scene.wheels.heard[0] == ("/teleop", 0.7)


def test_a_foreign_node_of_our_name_is_not_taken_for_ours(scene: Scene) -> None:
    publisher = _Publisher(scene, "/wheels").await_connection()
    publisher.send(TWIST.encode(_twist(0.1)))
    assert scene.run(lambda: bool(scene.wheels.heard))
    assert scene.wheels.heard[0] == ("/wheels_ros1", 0.1)


def test_malformed_messages_are_counted_and_told_once(scene: Scene) -> None:
    publisher = _Publisher(scene, "/teleop").await_connection()
    for _ in range(20):
        publisher.send(b"\1\2\3")
    publisher.send(TWIST.encode(_twist(0.2)))
    assert scene.run(lambda: bool(scene.wheels.heard))
    assert scene.bridge.counts["malformed"] == 20
    assert len([line for line in scene.lines if "/cmd_vel" in line]) == 1


def test_a_huge_claimed_length_ends_the_connection_only(scene: Scene) -> None:
    publisher = _Publisher(scene, "/teleop").await_connection()
    publisher.raw(b"\xff\xff\xff\x7f")
    assert scene.run(lambda: scene.bridge.counts["malformed"] == 1)
    publisher.await_connection()  # it tries again
    publisher.send(TWIST.encode(_twist(0.3)))
    assert scene.run(lambda: bool(scene.wheels.heard))


def test_a_publisher_that_floods_does_not_hold_the_run_up(scene: Scene) -> None:
    publisher = _Publisher(scene, "/teleop").await_connection()
    data = frame(TWIST.encode(_twist(0.4))) * 50_000
    publisher.raw_later(data)
    before, start = scene.bus.now_ns, time.monotonic()
    scene.run(lambda: False, 1.0)
    assert scene.bus.now_ns - before == 1_000_000_000
    assert time.monotonic() - start < 5.0
    assert scene.wheels.heard


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nOrigin: https://evil.example\r\nContent-Length: 0\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + b"a: b\r\n" * 500,
        b"\xff\xff\xff\xff" + b"x" * 100,
        frame(b"no header at all"),
        frame(b"\xff\xff\xff\xff"),
        header(topic="/nowhere", md5sum="*"),
        header(topic="/speed", type="std_msgs/String", md5sum="992ce8a1687cec8c8bd883ec73ca41d1"),
        header(service="/ring", md5sum="0" * 32),
        header(service="/ring", md5sum="*") + b"\xff\xff\xff\xff",
        header(service="/ring", md5sum="*") + frame(b"far too long for a bool"),
        b"",
        b"\x10",
    ],
)
def test_nonsense_does_no_harm(scene: Scene, said: bytes) -> None:
    sock = scene.connect()
    sock.sendall(said)
    scene.run(lambda: False, 0.2)  # half-open for that long
    sock.close()
    scene.run(lambda: False, 0.2)
    good = scene.connect()
    good.sendall(header(callerid="/me", topic="/speed", type="*", md5sum="*"))
    assert b"callerid=/wheels" in read(good, scene)


def test_a_web_page_may_not_call_a_node(scene: Scene) -> None:
    body = dumps(("/page",), "getPid").encode()

    def answer(headers: bytes) -> bytes:
        sock = scene.connect()
        sock.sendall(b"POST / HTTP/1.0\r\n%bContent-Length: %d\r\n\r\n%b" % (headers, len(body), body))
        sock.setblocking(False)
        heard = bytearray()
        ended = False

        def whole() -> bool:
            nonlocal ended
            with suppress(BlockingIOError):
                data = sock.recv(4096)
                heard.extend(data)
                ended = not data
            return ended

        assert scene.run(whole)
        return bytes(heard)

    assert answer(b"").startswith(b"HTTP/1.1 200")
    assert answer(b"Origin: https://evil.example\r\n") == b""


def test_services_are_called(scene: Scene) -> None:
    sock = scene.connect()
    sock.sendall(header(callerid="/me", service="/ring", md5sum="09fb03525b03e7ea1fd3992bafd87e16") + frame(b"\x01"))
    assert b"type=std_srvs/SetBool" in read(sock, scene)
    sock.setblocking(True)
    assert scene.run(lambda: False, 0.2) is False
    assert sock.recv(100) == b"\x01" + frame(b"\x01" + frame(b"ding"))


def test_a_goal_waits_until_all_that_the_server_says_of_it_is_heard(master: SmallMaster) -> None:
    register("int32 goal\n---\nint32 result\n---\nint32 feedback\n", "actionlib/action/Test")
    kind = action_type("actionlib/action/Test")
    parts = ros1_action(kind)

    class Servant(ry.Node):
        def setup(self) -> None:
            self.action_server("tally", kind, lambda goal: goal.accept())

    class Caller(ry.Node):
        def setup(self) -> None:
            self.tally = self.action_client("tally", kind)

    scene = Scene(master)
    servant, caller = scene.bus.add(Servant(), "servant"), scene.bus.add(Caller(), "caller")
    stand_in(scene.bus, servant, 40.0)
    with closing(scene), Attached(scene.bridge, scene.bus):
        goal = caller.tally.send(kind.Goal(goal=3))
        states = ros1_type("actionlib_msgs/msg/GoalStatusArray")
        status = _Publisher(scene, "/foreign", "/tally/status", states).await_connection()
        feedback = _Publisher(scene, "/foreign", "/tally/feedback", parts.feedback)
        result = _Publisher(scene, "/foreign", "/tally/result", parts.result)
        ears = {}
        for topic, heard in (("goal", parts.goal), ("cancel", ros1_type("actionlib_msgs/msg/GoalID"))):
            assert scene.run(lambda topic=topic: f"/tally/{topic}" in scene.master.publishers)
            ears[topic] = scene.connect(*scene.master.publishers[f"/tally/{topic}"])
            ears[topic].sendall(header(callerid="/foreign", topic=f"/tally/{topic}", type=heard.name, md5sum=heard.md5))
            assert heard.name.encode() in read(ears[topic], scene)
        alive = struct.pack("<IIIII", 0, 0, 0, 0, 0)

        def asked(seconds: float) -> bool:
            status.send(alive)

            def come() -> bool:
                try:
                    return bool(ears["goal"].recv(1, socket.MSG_PEEK))
                except BlockingIOError:
                    return False

            return scene.run(come, seconds)

        assert not asked(0.7)
        feedback.await_connection()
        assert not asked(0.7)
        result.await_connection()
        assert asked(5.0)
        assert goal.accepted is None


def test_parameters_are_changed_or_set_back(scene: Scene) -> None:
    with ServerProxy(scene.master.nodes["/wheels"]) as node:
        node.paramUpdate("/master", "/wheels/gain/", 3)
        assert scene.run(lambda: scene.wheels.gain == 3.0)
        node.paramUpdate("/master", "/wheels/gain/", 99.0)
    assert scene.run(lambda: scene.master.parameters["/wheels/gain"] == 3.0)
    assert scene.bridge.counts["refused"] == 1


def test_a_master_that_comes_back_is_told_everything_again(scene: Scene) -> None:
    port = scene.master.port
    scene.master.close()
    assert scene.run(lambda: scene.bridge.counts["master lost"] == 1)
    again = SmallMaster(port)
    try:
        assert scene.run(lambda: "/wheels" in again.publishers.get("/speed", {}) and "/ring" in again.services)
        assert scene.run(lambda: again.parameters.get("/wheels/gain") == 1.0)
    finally:
        again.close()


def test_without_a_master_there_is_one_clear_error(master: SmallMaster) -> None:
    with ry.Bus() as bus, pytest.raises(BridgeError, match=r"127.0.0.1:9.*roscore.*ROS_MASTER_URI"):
        Ros1Bridge("http://127.0.0.1:9").open(bus)


def test_who_only_listens_changes_nothing(master: SmallMaster) -> None:
    def recorded(*, bridged: bool) -> bytes:
        scene, output = Scene(master), io.BytesIO()
        scene.bus.executor.pacer.factor = 5.0 if bridged else 0.0
        output.close = lambda: None  # type: ignore[method-assign]
        recorder = Recorder(scene.bus, output)
        if bridged:
            with Attached(scene.bridge, scene.bus):
                sock = scene.connect()
                sock.sendall(header(callerid="/me", topic="/speed", type="*", md5sum="*"))
                scene.connect().sendall(b"nonsense")
                scene.bus.executor.run_until(2_000_000_000)
                assert scene.bridge.counts["sent"] > 50
        else:
            scene.bus.executor.run_until(2_000_000_000)
        recorder.close()
        scene.close()
        return output.getvalue()

    assert recorded(bridged=True) == recorded(bridged=False)


def _twist(speed: float) -> Any:
    return ry.msg.Twist(linear=ry.msg.Vector3(x=speed))


class _Publisher:
    """A foreign node that publishes a topic to the bridge, in the test's own thread."""

    def __init__(self, scene: Scene, name: str, topic: str = "/cmd_vel", kind: Ros1Type = TWIST) -> None:
        self._scene = scene
        self._name = name
        self._topic = topic
        self._kind = kind
        self._data = socket.create_server(("127.0.0.1", 0))
        self._data.setblocking(False)
        scene.open.append(self._data)
        port = self._data.getsockname()[1]
        self._api = SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False, allow_none=True)
        self._api.register_function(
            lambda caller, topic, protocols: (1, "", ["TCPROS", "127.0.0.1", port]), "requestTopic"
        )
        scene.open.append(self._api)
        Thread(target=lambda: self._api.serve_forever(0.02), daemon=True).start()
        uri = f"http://127.0.0.1:{self._api.server_address[1]}/"
        scene.master.registerPublisher(name, topic, kind.name, uri)

    def await_connection(self) -> _Publisher:
        found: list[socket.socket] = []

        def come() -> bool:
            try:
                found.append(self._data.accept()[0])
            except BlockingIOError:
                return False
            return True

        assert self._scene.run(come)
        self._sock = found[0]
        self._scene.open.append(self._sock)
        said = read(self._sock, self._scene)
        assert f"topic={self._topic}".encode() in said
        assert f"md5sum={self._kind.md5}".encode() in said
        self._sock.setblocking(True)
        self._sock.sendall(header(callerid=self._name, type=self._kind.name, md5sum=self._kind.md5, latching="0"))
        return self

    def send(self, data: bytes) -> None:
        self._sock.sendall(frame(data))

    def raw(self, data: bytes) -> None:
        self._sock.sendall(data)

    def raw_later(self, data: bytes) -> None:
        def send() -> None:
            with suppress(OSError):
                self._sock.sendall(data)

        Thread(target=send, daemon=True).start()
