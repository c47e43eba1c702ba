"""Other processes connect to a run through its socket; invalid data from them does not affect the run."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from threading import Thread

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.harness.live_bus import LiveBus

import roboyard as ry
from roboyard.bus.external_inputs import ExternalInput
from roboyard.bus.socket import RemoteBus, RunConnection, connect
from roboyard.bus.socket.protocol import SocketPacketReader
from roboyard.errors import InputError, RunError
from roboyard.messages import serialize


class CommandedRobotConfig(ry.Config):
    """Configuration of `CommandedRobot`."""

    speed: float = ry.parameter(1.0, low=0.0, high=2.0, runtime=True)


class CommandedRobot(ry.Node[CommandedRobotConfig]):
    """in: cmd   out: count"""

    def setup(self) -> None:
        self.commands: list[tuple[str, str, int]] = []
        self.count = self.publisher("count", ry.msg.Int32)
        self.map = self.publisher("map", ry.msg.String, latched=True)
        self.map.publish(ry.msg.String(data="the map"))
        self.subscribe("cmd", ry.msg.String, self.on_command, with_source=True)
        self.service("greet", ry.srv.Trigger, lambda request: ry.srv.Trigger.Response(success=True, message="hello"))
        self.timer(0.1, self.tick)
        self.ticks = 0

    def on_command(self, message: object, source: str) -> None:
        self.commands.append((message.data, source, self.now_ns))

    def tick(self) -> None:
        self.ticks += 1
        self.count.publish(ry.msg.Int32(data=self.ticks))


class LiveRobot(LiveBus):
    """A live run with a robot."""

    def __init__(self) -> None:
        self.robot = CommandedRobot()
        super().__init__((self.robot, "robot"))


@pytest.fixture
def live() -> Iterator[LiveRobot]:
    with LiveRobot() as live:
        yield live


def test_connect_without_live_run_is_an_error() -> None:
    with pytest.raises(InputError, match="no live run found"):
        connect()


def test_subscription_brings_latched_and_new_messages(live: LiveRobot) -> None:
    with connect() as connection:
        connection.subscribe("/map")
        connection.subscribe("/count")
        received = connection.messages(timeout=5.0)
        first = next(received)
        assert (first.topic, first.source, first.message.data) == ("/map", "/robot", "the map")
        numbers = [next(received) for _ in range(5)]
        assert [m.message.data for m in numbers] == list(range(numbers[0].message.data, numbers[0].message.data + 5))
        assert all(m.time_ns == m.message.data * 100_000_000 for m in numbers)


def test_messages_and_calls_pass_the_external_input_queue(live: LiveRobot) -> None:
    with connect("yard") as connection:
        connection.publish("/cmd", ry.msg.String(data="go"), source="operator")
        response = connection.call("/greet", ry.srv.Trigger, ry.srv.Trigger.Request())
        assert response.success
        assert response.message == "hello"
        with pytest.raises(RunError, match="no server for service /nothing"):
            connection.call("/nothing", ry.srv.Trigger, ry.srv.Trigger.Request())
    assert [(text, source) for text, source, _ in live.robot.commands] == [("go", "operator")]
    assert live.bus.topics["/inputs"].count == 3


def test_graph_lists_nodes_and_control_pauses(live: LiveRobot) -> None:
    with connect() as connection:
        bus_graph = connection.graph()
        assert {"/robot", "/roboyard"} == {node["name"] for node in bus_graph["nodes"]}
        paused = connection.control("pause")
        assert paused["paused"]
        assert connection.graph()["time_ns"] == paused["time"]
        assert not connection.control("resume")["paused"]
        connection.control("rate", rate=0)
        with pytest.raises(RunError, match="unknown control 'dance'"):
            connection.control("dance")
        with pytest.raises(RunError, match="rate -1"):
            connection.control("rate", rate=-1)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200), st.sampled_from(["raw", "framed", "json"]))
def test_random_bytes_do_not_affect_the_run(live: LiveRobot, data: bytes, encoding: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.connect(str(live.server.run.socket))
        if encoding == "framed":
            data = struct.pack("!II", len(data), 0) + data
        elif encoding == "json":
            head = json.dumps({"op": data.hex(), "topic": "/cmd"}).encode()
            data = struct.pack("!II", len(head), 0) + head
        sock.sendall(data)
    with connect() as connection:
        assert connection.graph()["nodes"]


def test_malformed_messages_are_refused_and_counted(live: LiveRobot) -> None:
    with connect() as connection:
        connection.publish_raw("/cmd", "std_msgs/msg/String", b"\x00\x01\x00\x00\xff\xff\xff\x7f")
        connection.publish_raw("/cmd", "no_msgs/msg/Such", b"")
        connection.publish_raw("/cmd", "std_msgs/msg/Int32", serialize(ry.msg.Int32()))
        connection.publish_raw("not a name", "std_msgs/msg/Int32", serialize(ry.msg.Int32()))
        assert connection.graph()["inputs"]["rejected"] == 4
    assert live.robot.commands == []


def test_slow_reader_loses_messages_without_slowing_the_run(live: LiveRobot) -> None:
    live.bus.executor.pacer.real_time_factor = 0.0
    with RunConnection(live.server.run) as connection:
        connection.subscribe("/count")
        live.wait_for_time(live.in_run(lambda: live.bus.now_ns) * 1e-9 + 2_000.0)
        numbers = [received.message.data for received, _ in zip(connection.messages(5.0), range(5_000), strict=False)]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] - numbers[0] > len(numbers)


def test_run_replayed_from_recorded_inputs_is_identical() -> None:
    def run(
        live_inputs: bool, recorded: list[tuple[int, ExternalInput]]
    ) -> tuple[list[object], list[tuple[int, ExternalInput]]]:
        inputs: list[tuple[int, ExternalInput]] = []
        with ry.Bus() as bus:
            robot = bus.add(CommandedRobot(), "robot")

            def observe(topic: object, m: object, node: str, time_ns: int) -> None:
                if topic.name == "/inputs":
                    inputs.append((time_ns, ExternalInput(m.operation, m.target, m.type, m.source, bytes(m.data))))

            bus.add_message_observer(observe)
            bus.inputs.schedule(recorded)
            if live_inputs:
                for time_ns, text in ((250_000_000, "a"), (300_000_000, "b"), (300_000_000, "c")):
                    data = serialize(ry.msg.String(data=text))
                    item = ExternalInput("publish", "/cmd", "std_msgs/msg/String", "me", data)
                    bus.executor.schedule(time_ns, lambda item=item: bus.inputs.put(item) and None)
            bus.executor.run_for(1.0)
            return robot.commands, inputs

    commands, inputs = run(True, [])
    assert [c[0] for c in commands] == ["a", "b", "c"]
    assert run(False, inputs) == (commands, inputs)


REMOTE_SCRIPT = """
import roboyard as ry
from roboyard.bus.socket import RemoteBus

class Echo(ry.Node):
    def setup(self):
        self.out = self.publisher("cmd", ry.msg.String)
        self.subscribe("count", ry.msg.Int32, self.on_count)
        self.greet = self.service_client("greet", ry.srv.Trigger)
        self.ticks = self.received = 0
        self.timer(0.5, self.tick)
        future = self.greet.call(ry.srv.Trigger.Request())
        future.add_done_callback(lambda f: self.out.publish(ry.msg.String(data=f.result.message)))
    def tick(self):
        self.ticks += 1
    def on_count(self, message):
        self.out.publish(ry.msg.String(data=f"{message.data} {self.ticks}"))
        self.received += 1
        if self.received >= 20:
            raise SystemExit

bus = RemoteBus("yard")
bus.add(Echo(), "echo")
bus.spin(timeout=10)
"""


def test_node_in_another_process_exchanges_messages_and_calls(live: LiveRobot) -> None:
    subprocess.run([sys.executable, "-c", REMOTE_SCRIPT], check=True, timeout=60)
    texts = [text for text, source, _ in live.robot.commands if source == "/echo"]
    assert "hello" in texts
    pairs = [tuple(int(value) for value in text.split()) for text in texts if text != "hello"]
    assert len(pairs) >= 15
    # The remote timer has a period of 0.5 s of the run's clock, in which the robot counts to five.
    (first_count, first_ticks), (last_count, last_ticks) = pairs[0], pairs[-1]
    assert abs((last_count - first_count) / 5 - (last_ticks - first_ticks)) <= 1


def test_remote_bus_needs_a_run() -> None:
    with pytest.raises(InputError, match="no live run found"):
        RemoteBus()


def frame(header: bytes, payload: bytes = b"") -> bytes:
    return struct.pack("!II", len(header), len(payload)) + header + payload


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (struct.pack("!II", 2**32 - 1, 2**32 - 1), "a packet has 4294967295"),
        (frame(b"[" * 1_000_000), "is not JSON"),
        (frame(b"\xff\xfe"), "is not JSON"),
        (frame(b"[1]"), "has no 'op'"),
        (frame(b'{"op": 3}'), "has no 'op'"),
        (frame(b'{"op": "dance"}'), "unknown operation 'dance'"),
        (frame(b'{"op": "publish", "topic": "/x"}'), "'publish' requires 'type'"),
        (frame(json.dumps({"op": "publish", "topic": "/x", "type": "a", "source": "\ud800"}).encode()), "printable"),
        (frame(json.dumps({"op": "publish", "topic": "/x", "type": "a", "source": "x" * 10**6}).encode()), "printable"),
        (frame(b'{"op": "control", "action": "rate", "rate": NaN}'), "rate nan"),
        (frame(b'{"op": "control", "action": "rate", "rate": "fast"}'), "rate 'fast'"),
        (frame(b'{"op": "control", "action": "step", "count": 0}'), "number of steps 0"),
        (frame(b'{"op": "reserve_node_name", "node": "/robot"}'), "is already in use"),
    ],
)
def test_response_to_an_invalid_frame_states_the_error(
    live: LiveRobot, sent: bytes, expected: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(10.0)
        sock.connect(str(live.server.run.socket))
        sock.sendall(sent)
        reader = SocketPacketReader(sock)
        assert reader.read()[0]["op"] == "hello"
        response, _ = reader.read()
        assert response["op"] == "error"
        assert expected in response["error"]
    with connect() as connection:
        assert connection.graph()["nodes"]
    assert capfd.readouterr().err == ""


def test_response_to_stop_always_arrives() -> None:
    for _ in range(20):
        live = LiveBus()
        with connect() as connection:
            closing = Thread(target=lambda live=live: (live.thread.join(), live.stop()))
            closing.start()
            assert connection.control("stop")["time"] >= 0
            closing.join()
