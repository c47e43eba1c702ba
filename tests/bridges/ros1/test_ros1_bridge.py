"""The bridge to ROS 1 with a small master: what is shown, what comes in, and that nobody outside does harm."""

from __future__ import annotations

import io
import socket
import struct
from collections.abc import Iterator
from contextlib import closing, suppress
from threading import Thread
from typing import Any
from xmlrpc.client import ServerProxy, dumps
from xmlrpc.server import SimpleXMLRPCServer

import pytest
from tests.bridges.ros1.conftest import SmallMaster, frame, header
from tests.bridges.sample_robot import BridgedRobot
from tests.harness.bus import BusHarness

import roboyard as ry
from roboyard.bridges import Attached, BridgeError, Ros1Bridge
from roboyard.bridges.external import stand_in
from roboyard.bridges.ros1.types import Ros1Type, ros1_action, ros1_type
from roboyard.bus.external_inputs import MAX_INPUT_RATE, MAX_INPUTS_PER_INSTANT
from roboyard.messages import action_type, register
from roboyard.record import Recorder

TWIST = ros1_type("geometry_msgs/msg/Twist")


class Scene(BusHarness):
    """A bus with one node, a bridge, and sockets that programs outside hold."""

    def __init__(self, master: SmallMaster) -> None:
        super().__init__(seed=1)
        self.master = master
        self.robot = self.add(BridgedRobot(), "wheels")
        self.bus.executor.pacer.real_time_factor = 1.0
        self.bridge = Ros1Bridge(master.uri)
        self.open: list[socket.socket | SimpleXMLRPCServer] = []

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
        super().close()


@pytest.fixture
def scene(master: SmallMaster) -> Iterator[Scene]:
    with Scene(master) as scene, Attached(scene.bridge, scene.bus):
        yield scene


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

    scene.spin_until(whole, expected="a whole frame")
    return bytes(data[4:])


def test_graph_is_registered_at_the_master(scene: Scene) -> None:
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


def test_closed_bridge_leaves_no_registration(master: SmallMaster) -> None:
    scene = Scene(master)
    with Attached(scene.bridge, scene.bus):
        pass
    assert not any(master.publishers.values())
    assert not any(master.subscribers.values())
    assert not master.services
    assert not master.parameters
    scene.close()


def test_messages_are_sent_latched_ones_first(scene: Scene) -> None:
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


def test_subscriber_of_a_paused_run_gets_the_time(scene: Scene) -> None:
    scene.bus.executor.run_for(0.5)
    scene.bus.executor.paused = True
    clock = scene.connect("/roboyard")
    clock.sendall(header(callerid="/me", topic="/clock", type="*", md5sum="*"))
    assert b"type=rosgraph_msgs/Clock" in read(clock, scene)
    assert struct.unpack("<II", read(clock, scene)) == (0, 500_000_000)


def test_foreign_messages_keep_their_publisher_name(scene: Scene) -> None:
    publisher = _Publisher(scene, "/teleop").await_connection()
    publisher.send(TWIST.encode(_twist(0.7)))
    scene.spin_until(lambda: bool(scene.robot.commands))
    assert scene.robot.commands[0] == ("/teleop", 0.7)


def test_foreign_node_of_same_name_is_renamed(scene: Scene) -> None:
    publisher = _Publisher(scene, "/wheels").await_connection()
    publisher.send(TWIST.encode(_twist(0.1)))
    scene.spin_until(lambda: bool(scene.robot.commands))
    assert scene.robot.commands[0] == ("/wheels_ros1", 0.1)


def test_malformed_messages_are_counted_and_logged_once(scene: Scene) -> None:
    publisher = _Publisher(scene, "/teleop").await_connection()
    for _ in range(20):
        publisher.send(b"\1\2\3")
    publisher.send(TWIST.encode(_twist(0.2)))
    scene.spin_until(lambda: bool(scene.robot.commands))
    assert scene.bridge.counts["malformed"] == 20
    assert len([line for line in scene.log_lines if "/cmd_vel" in line]) == 1


def test_huge_claimed_length_ends_only_the_connection(scene: Scene) -> None:
    publisher = _Publisher(scene, "/teleop").await_connection()
    publisher.raw(b"\xff\xff\xff\x7f")
    scene.spin_until(lambda: scene.bridge.counts["malformed"] == 1)
    publisher.await_connection()  # it tries again
    publisher.send(TWIST.encode(_twist(0.3)))
    scene.spin_until(lambda: bool(scene.robot.commands))


def test_flooding_publisher_does_not_delay_the_run(scene: Scene) -> None:
    publisher = _Publisher(scene, "/teleop").await_connection()
    data = frame(TWIST.encode(_twist(0.4))) * 50_000
    publisher.raw_later(data)
    before, taken = scene.bus.now_ns, scene.bus.inputs.accepted
    scene.run_for(1.0)
    assert scene.bus.now_ns - before == 1_000_000_000
    assert scene.bus.inputs.accepted - taken <= MAX_INPUTS_PER_INSTANT + MAX_INPUT_RATE
    assert scene.robot.commands


@pytest.mark.parametrize(
    "data",
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
    ids=[
        "get request", "huge request", "request without document", "foreign origin", "many headers", "huge length",
        "no field", "huge field", "unknown topic", "wrong topic type", "wrong service type", "huge call", "long call",
        "nothing", "half a length",
    ],
)  # fmt: skip
def test_malformed_connections_do_no_harm(scene: Scene, data: bytes) -> None:
    sock = scene.connect()
    sock.sendall(data)
    scene.run_for(0.2)  # half-open for that long
    sock.close()
    scene.run_for(0.2)
    good = scene.connect()
    good.sendall(header(callerid="/me", topic="/speed", type="*", md5sum="*"))
    assert b"callerid=/wheels" in read(good, scene)


def test_web_page_is_not_allowed_to_call_a_node(scene: Scene) -> None:
    body = dumps(("/page",), "getPid").encode()

    def answer(headers: bytes) -> bytes:
        sock = scene.connect()
        sock.sendall(b"POST / HTTP/1.0\r\n%bContent-Length: %d\r\n\r\n%b" % (headers, len(body), body))
        sock.setblocking(False)
        received = bytearray()
        ended = False

        def whole() -> bool:
            nonlocal ended
            with suppress(BlockingIOError):
                data = sock.recv(4096)
                received.extend(data)
                ended = not data
            return ended

        scene.spin_until(whole)
        return bytes(received)

    assert answer(b"").startswith(b"HTTP/1.1 200")
    assert answer(b"Origin: https://evil.example\r\n") == b""


def test_services_are_called(scene: Scene) -> None:
    sock = scene.connect()
    sock.sendall(header(callerid="/me", service="/ring", md5sum="09fb03525b03e7ea1fd3992bafd87e16") + frame(b"\x01"))
    assert b"type=std_srvs/SetBool" in read(sock, scene)
    sock.setblocking(True)
    scene.run_for(0.2)
    assert sock.recv(100) == b"\x01" + frame(b"\x01" + frame(b"ding"))


def test_goal_waits_until_all_topics_of_the_server_are_connected(master: SmallMaster) -> None:
    register("int32 goal\n---\nint32 result\n---\nint32 feedback\n", "actionlib/action/Test")
    kind = action_type("actionlib/action/Test")
    parts = ros1_action(kind)

    class AcceptingServer(ry.Node):
        def setup(self) -> None:
            self.action_server("tally", kind, lambda goal: goal.accept())

    class Client(ry.Node):
        def setup(self) -> None:
            self.tally = self.action_client("tally", kind)

    scene = Scene(master)
    server, caller = scene.bus.add(AcceptingServer(), "server"), scene.bus.add(Client(), "caller")
    stand_in(scene.bus, server, 40.0)
    with closing(scene), Attached(scene.bridge, scene.bus):
        goal = caller.tally.send(kind.Goal(goal=3))
        states = ros1_type("actionlib_msgs/msg/GoalStatusArray")
        status = _Publisher(scene, "/foreign", "/tally/status", states).await_connection()
        feedback = _Publisher(scene, "/foreign", "/tally/feedback", parts.feedback)
        result = _Publisher(scene, "/foreign", "/tally/result", parts.result)
        ears = {}
        for topic, received in (("goal", parts.goal), ("cancel", ros1_type("actionlib_msgs/msg/GoalID"))):
            scene.spin_until(lambda topic=topic: f"/tally/{topic}" in scene.master.publishers)
            ears[topic] = scene.connect(*scene.master.publishers[f"/tally/{topic}"])
            ears[topic].sendall(
                header(callerid="/foreign", topic=f"/tally/{topic}", type=received.name, md5sum=received.md5)
            )
            assert received.name.encode() in read(ears[topic], scene)
        alive = struct.pack("<IIIII", 0, 0, 0, 0, 0)

        def is_goal_sent(seconds: float) -> bool:
            status.send(alive)

            def come() -> bool:
                try:
                    return bool(ears["goal"].recv(1, socket.MSG_PEEK))
                except BlockingIOError:
                    return False

            return scene.bus.executor.run_until(scene.now_ns + round(seconds * 1e9), come)

        assert not is_goal_sent(0.7)
        feedback.await_connection()
        assert not is_goal_sent(0.7)
        result.await_connection()
        assert is_goal_sent(5.0)
        assert goal.accepted is None


def test_parameters_are_changed_or_set_back(scene: Scene) -> None:
    with ServerProxy(scene.master.nodes["/wheels"]) as node:
        node.paramUpdate("/master", "/wheels/gain/", 3)
        scene.spin_until(lambda: scene.robot.config.gain == 3.0)
        node.paramUpdate("/master", "/wheels/gain/", 99.0)
    scene.spin_until(lambda: scene.master.parameters["/wheels/gain"] == 3.0)
    assert scene.bridge.counts["refused"] == 1


def test_restarted_master_gets_all_registrations(scene: Scene) -> None:
    port = scene.master.port
    scene.master.close()
    scene.spin_until(lambda: scene.bridge.counts["master lost"] == 1)
    again = SmallMaster(port)
    try:
        scene.spin_until(lambda: "/wheels" in again.publishers.get("/speed", {}) and "/ring" in again.services)
        scene.spin_until(lambda: again.parameters.get("/wheels/gain") == 1.0)
    finally:
        again.close()


def test_missing_master_is_one_error(master: SmallMaster) -> None:
    with ry.Bus() as bus, pytest.raises(BridgeError, match=r"127.0.0.1:9.*roscore.*ROS_MASTER_URI"):
        Ros1Bridge("http://127.0.0.1:9").open(bus)


def test_passive_client_changes_no_byte(master: SmallMaster) -> None:
    def recorded(*, bridged: bool) -> bytes:
        scene, output = Scene(master), io.BytesIO()
        scene.bus.executor.pacer.real_time_factor = 5.0 if bridged else 0.0
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

        self._scene.spin_until(come, expected="the bridge's connection")
        self._sock = found[0]
        self._scene.open.append(self._sock)
        reply = read(self._sock, self._scene)
        assert f"topic={self._topic}".encode() in reply
        assert f"md5sum={self._kind.md5}".encode() in reply
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
