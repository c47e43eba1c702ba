"""Foxglove's protocol, spoken by hand: what is offered, what arrives, what comes in, and that nonsense does no harm."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.bridges.sample_robot import BridgedRobot
from tests.bridges.web.conftest import WebRun
from tests.harness.live_run import poll
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

import roboyard as ry
from roboyard.bridges import Attached, BridgeError, FoxgloveBridge
from roboyard.messages import deserialize, schema, serialize
from roboyard.record import Recorder


class Client:
    """A client that speaks the protocol by hand."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.info = self.wait_for("serverInfo")
        self.channels = {item["topic"]: item for item in self.wait_for("advertise")["channels"]}
        self.services = {item["name"]: item for item in self.wait_for("advertiseServices")["services"]}

    def send(self, **fields: Any) -> None:
        self.socket.send(json.dumps(fields))

    def wait_for(self, op: str) -> dict[str, Any]:
        return self.until(lambda message: isinstance(message, str) and json.loads(message)["op"] == op, json.loads)

    def wait_for_bytes(self, opcode: int) -> bytes:
        return self.until(lambda message: isinstance(message, bytes) and message[0] == opcode, lambda message: message)

    def until(self, wanted: Callable[[Any], bool], as_: Callable[[Any], Any]) -> Any:
        while True:
            message = self.socket.recv(timeout=10.0)
            if wanted(message):
                return as_(message)


@contextmanager
def connect_client(bridge: FoxgloveBridge, protocol: str = "foxglove.sdk.v1") -> Iterator[Client]:
    # A client that does not read sees no answer to its closing handshake, and need not wait for it.
    name = Subprotocol(protocol)
    with connect(bridge.where, subprotocols=[name], compression=None, close_timeout=0.2) as socket:
        yield Client(socket)


@pytest.mark.parametrize("protocol", ["foxglove.sdk.v1", "foxglove.websocket.v1"])
def test_server_advertises_channels_and_services(live: WebRun, protocol: str) -> None:
    with connect_client(live.foxglove, protocol) as client:
        assert {"clientPublish", "parameters", "services", "time", "assets", "connectionGraph"} <= set(
            client.info["capabilities"]
        )
        channel = client.channels["/speed"]
        assert (channel["encoding"], channel["schemaEncoding"]) == ("cdr", "ros2msg")
        assert channel["schemaName"] == "std_msgs/msg/Float64"
        assert channel["schema"] == schema("std_msgs/msg/Float64")
        assert client.services["/ring"]["type"] == "std_srvs/srv/SetBool"
        assert not any("_action" in name for name in client.channels)
        assert "/inputs" not in client.channels


def test_subscriber_gets_messages_and_latched_ones_at_once(live: WebRun) -> None:
    with connect_client(live.foxglove) as client:
        client.send(op="subscribe", subscriptions=[{"id": 7, "channelId": client.channels["/plan"]["id"]}])
        message = client.wait_for_bytes(1)
        assert struct.unpack_from("<I", message, 1) == (7,)
        assert deserialize(message[13:], "std_msgs/msg/String").data == "straight on"
        client.send(op="unsubscribe", subscriptionIds=[7])
        client.send(op="subscribe", subscriptions=[{"id": 8, "channelId": client.channels["/speed"]["id"]}])
        first, second = client.wait_for_bytes(1), client.wait_for_bytes(1)
        times = [struct.unpack_from("<Q", message, 5)[0] for message in (first, second)]
        values = [deserialize(message[13:], "std_msgs/msg/Float64").data for message in (first, second)]
        assert times[1] - times[0] == 20_000_000
        assert values == [pytest.approx(time * 1e-9) for time in times]
        assert struct.unpack_from("<Q", client.wait_for_bytes(2), 1)[0] > 0  # the time


@pytest.mark.parametrize("encoding", ["cdr", "json"])
def test_client_publishes_on_the_bus(live: WebRun, encoding: str) -> None:
    twist = ry.msg.Twist(linear=ry.msg.Vector3(x=0.4))
    data = serialize(twist) if encoding == "cdr" else b'{"linear": {"x": 0.4}}'
    with connect_client(live.foxglove) as client:
        offer = {"id": 3, "topic": "/cmd_vel", "encoding": encoding, "schemaName": "geometry_msgs/Twist"}
        client.send(op="advertise", channels=[offer])
        client.socket.send(struct.pack("<BI", 1, 3) + data)
        poll(lambda: bool(live.robot.commands))
        assert live.robot.commands[0] == ("/foxglove_client1", 0.4)


def test_services_answer_or_fail_with_a_reason(live: WebRun) -> None:
    request = serialize(ry.srv.SetBool.Request(data=True))
    with connect_client(live.foxglove) as client:
        number = client.services["/ring"]["id"]
        client.socket.send(struct.pack("<BIII", 2, number, 11, 3) + b"cdr" + request)
        message = client.wait_for_bytes(3)
        assert struct.unpack_from("<III", message, 1) == (number, 11, 3)
        assert deserialize(message[16:], "std_srvs/srv/SetBool_Response").message == "ding"
        client.socket.send(struct.pack("<BIII", 2, 9999, 12, 3) + b"cdr" + request)
        assert client.wait_for("serviceCallFailure")["callId"] == 12
        client.socket.send(struct.pack("<BIII", 2, number, 13, 3) + b"cdr" + b"\0\1\0\0")
        assert client.wait_for("serviceCallFailure")["callId"] == 13


def test_parameters_are_read_and_set(live: WebRun) -> None:
    with connect_client(live.foxglove) as client:
        client.send(op="getParameters", parameterNames=["/wheels.gain"], id="a")
        found = client.wait_for("parameterValues")
        assert found["parameters"] == [{"name": "/wheels.gain", "value": 1.0, "type": "float64"}]
        client.send(op="setParameters", parameters=[{"name": "/wheels.gain", "value": 3}], id="b")
        assert client.wait_for("parameterValues")["parameters"][0]["value"] == 3.0
        assert live.robot.config.gain == 3.0
        client.send(op="setParameters", parameters=[{"name": "/wheels.gain", "value": 99}], id="c")
        assert "allowed:" in client.wait_for("status")["message"]
        assert client.wait_for("parameterValues")["parameters"][0]["value"] == 3.0


def test_graph_and_assets_are_served(live: WebRun) -> None:
    with connect_client(live.foxglove) as client:
        client.send(op="subscribeConnectionGraph")
        found = client.wait_for("connectionGraphUpdate")
        assert {"name": "/cmd_vel", "subscriberIds": ["/wheels"]} in found["subscribedTopics"]
        uri = next(iter(live.foxglove._descriptions.files))
        client.send(op="fetchAsset", uri=uri, requestId=5)
        assert client.wait_for_bytes(4) == struct.pack("<BIBI", 4, 5, 0, 0) + b"solid wheel"
        client.send(op="fetchAsset", uri="file:///etc/passwd", requestId=6)
        message = client.wait_for_bytes(4)
        assert struct.unpack_from("<IB", message, 1) == (6, 1)
        assert b"root:" not in message
        client.send(op="subscribe", subscriptions=[{"id": 1, "channelId": client.channels["/robot_description"]["id"]}])
        assert deserialize(client.wait_for_bytes(1)[13:], "std_msgs/msg/String").data == "<robot name='w'/>"


def test_new_and_removed_topics_are_announced(live: WebRun) -> None:
    with connect_client(live.foxglove) as client:
        other = live.in_run(lambda: live.bus.add(BridgedRobot(), "more", namespace="/two"))
        assert any(item["topic"] == "/two/speed" for item in client.wait_for("advertise")["channels"])
        live.in_run(lambda: live.bus.remove(other))
        assert client.wait_for("unadvertise")["channelIds"]


NONSENSE = [
    "", "{", "[]", "null", "5", '{"op": 5}', '{"op": "no such"}', '{"op": "subscribe"}', "[" * 100_000,
    '{"op": "subscribe", "subscriptions": [{"id": 1, "channelId": 99999}]}',
    '{"op": "advertise", "channels": [{"id": 1, "topic": "/x", "encoding": "protobuf", "schemaName": "X"}]}',
    '{"op": "advertise", "channels": [{"id": 1, "topic": "/x", "encoding": "cdr", "schemaName": "no/Such"}]}',
    '{"op": "setParameters", "parameters": [{"name": "/wheels.gain", "value": {"a": 1}}]}',
    '{"op": "setParameters", "parameters": 7}', '{"op": "getParameters"}', '{"op": "fetchAsset", "uri": 1}',
    b"", b"\x01", b"\x01\xff\xff\xff\xff", b"\x02", struct.pack("<BIII", 2, 1, 1, 2**32 - 1), b"\xff" * 100,
]  # fmt: skip
NONSENSE_IDS = [
    "nothing",
    "half an object",
    "a list",
    "null",
    "a number",
    "number as op",
    "unknown op",
    "subscribe without list",
    "deep nesting",
    "unknown channel",
    "unknown encoding",
    "unknown type",
    "object as parameter",
    "number as parameters",
    "parameters without names",
    "number as file",
    "no bytes",
    "opcode alone",
    "unknown channel in bytes",
    "call without head",
    "huge length",
    "unknown opcode",
]


@pytest.mark.parametrize("data", NONSENSE, ids=NONSENSE_IDS)
def test_malformed_requests_are_answered_and_do_no_harm(live: WebRun, data: str | bytes) -> None:
    with connect_client(live.foxglove) as client:
        client.socket.send(data)
        client.wait_for("status")
        client.send(op="getParameters", parameterNames=["/wheels.gain"])
        assert client.wait_for("parameterValues")["parameters"]
    assert live.foxglove.counts["malformed"] == 1


def test_malformed_messages_are_logged_once(live: WebRun) -> None:
    with connect_client(live.foxglove) as client:
        offer = {"id": 3, "topic": "/cmd_vel", "encoding": "cdr", "schemaName": "geometry_msgs/msg/Twist"}
        client.send(op="advertise", channels=[offer])
        for _ in range(10):
            client.socket.send(struct.pack("<BI", 1, 3) + b"\0\1\0\0too short")
        poll(lambda: live.foxglove.counts["malformed"] == 10)
    poll(lambda: any("Twist" in line for line in live.log_lines))  # the run writes the line at its next step
    assert len([line for line in live.log_lines if "Twist" in line]) == 1
    assert not live.robot.commands


def test_foreign_origins_and_protocols_are_refused(live: WebRun) -> None:
    with pytest.raises(InvalidStatus) as refused:
        connect(live.foxglove.where, subprotocols=[Subprotocol("other")])
    assert refused.value.response.status_code == 400
    protocols = [Subprotocol("foxglove.sdk.v1")]
    for origin in ("https://evil.example", "null", "file://", "http://localhost:3000", "http://evil.localhost"):
        with pytest.raises(InvalidStatus) as refused:
            connect(live.foxglove.where, subprotocols=protocols, origin=Origin(origin))
        assert refused.value.response.status_code == 403
    with connect(live.foxglove.where, subprotocols=protocols, origin=Origin("https://app.foxglove.dev")) as good:
        assert json.loads(good.recv())["op"] == "serverInfo"


@pytest.mark.slow
def test_client_that_does_not_read_does_not_delay_the_run(live: WebRun) -> None:
    with connect_client(live.foxglove) as client:
        client.send(op="subscribe", subscriptions=[{"id": 1, "channelId": client.channels["/scan"]["id"]}])
        live.wait_for_time(live.bus.now_ns * 1e-9 + 1.0)


def test_taken_port_is_one_error(live: WebRun) -> None:
    port = int(live.foxglove.where.rsplit(":", 1)[1])
    with ry.Bus() as bus, pytest.raises(BridgeError, match=rf"port {port} cannot be served.*--bridge-port"):
        FoxgloveBridge(port=port).open(bus)


@pytest.mark.slow
def test_passive_client_changes_no_byte() -> None:
    def recorded(*, bridged: bool) -> bytes:
        bus, output = ry.Bus(seed=3), io.BytesIO()
        bus.add(BridgedRobot(), "wheels")
        output.close = lambda: None  # type: ignore[method-assign]
        recorder = Recorder(bus, output)
        if bridged:
            bridge = FoxgloveBridge(port=0)
            bus.executor.pacer.real_time_factor = 4.0
            with Attached(bridge, bus), connect_client(bridge) as client:
                channels = [{"id": n, "channelId": item["id"]} for n, item in enumerate(client.channels.values())]
                client.send(op="subscribe", subscriptions=channels)
                client.socket.send("nonsense")
                bus.executor.run_until(2_000_000_000)
                assert bridge.counts["sent"] > 50
        else:
            bus.executor.run_until(2_000_000_000)
        recorder.close()
        bus.close()
        return output.getvalue()

    assert recorded(bridged=True) == recorded(bridged=False)
