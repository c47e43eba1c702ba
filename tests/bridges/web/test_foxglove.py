"""Foxglove's protocol, spoken by hand: what is offered, what arrives, what comes in, and that nonsense does no harm."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.bridges.web.conftest import Live, Wheels
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

import roboyard as ry
from roboyard.bridges import Attached, BridgeError, FoxgloveBridge
from roboyard.messages import deserialize, schema, serialize
from roboyard.record import Recorder


class Client:
    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.info = self.next("serverInfo")
        self.channels = {item["topic"]: item for item in self.next("advertise")["channels"]}
        self.services = {item["name"]: item for item in self.next("advertiseServices")["services"]}

    def say(self, **said: Any) -> None:
        self.socket.send(json.dumps(said))

    def next(self, op: str) -> dict[str, Any]:
        return self.until(lambda said: isinstance(said, str) and json.loads(said)["op"] == op, json.loads)

    def bytes(self, opcode: int) -> bytes:
        return self.until(lambda said: isinstance(said, bytes) and said[0] == opcode, lambda said: said)

    def until(self, wanted: Callable[[Any], bool], as_: Callable[[Any], Any]) -> Any:
        while True:
            said = self.socket.recv(timeout=10.0)
            if wanted(said):
                return as_(said)


@contextmanager
def client(bridge: FoxgloveBridge, protocol: str = "foxglove.sdk.v1") -> Iterator[Client]:
    with connect(bridge.where, subprotocols=[Subprotocol(protocol)], compression=None) as socket:
        yield Client(socket)


@pytest.mark.parametrize("protocol", ["foxglove.sdk.v1", "foxglove.websocket.v1"])
def test_what_is_offered(live: Live, protocol: str) -> None:
    with client(live.foxglove, protocol) as me:
        assert {"clientPublish", "parameters", "services", "time", "assets", "connectionGraph"} <= set(
            me.info["capabilities"]
        )
        channel = me.channels["/speed"]
        assert (channel["encoding"], channel["schemaEncoding"]) == ("cdr", "ros2msg")
        assert channel["schemaName"] == "std_msgs/msg/Float64"
        assert channel["schema"] == schema("std_msgs/msg/Float64")
        assert me.services["/ring"]["type"] == "std_srvs/srv/SetBool"
        assert not any("_action" in name for name in me.channels)
        assert "/inputs" not in me.channels


def test_messages_arrive_latched_ones_at_once(live: Live) -> None:
    with client(live.foxglove) as me:
        me.say(op="subscribe", subscriptions=[{"id": 7, "channelId": me.channels["/plan"]["id"]}])
        said = me.bytes(1)
        assert struct.unpack_from("<I", said, 1) == (7,)
        assert deserialize(said[13:], "std_msgs/msg/String").data == "straight on"
        me.say(op="unsubscribe", subscriptionIds=[7])
        me.say(op="subscribe", subscriptions=[{"id": 8, "channelId": me.channels["/speed"]["id"]}])
        first, second = me.bytes(1), me.bytes(1)
        times = [struct.unpack_from("<Q", said, 5)[0] for said in (first, second)]
        values = [deserialize(said[13:], "std_msgs/msg/Float64").data for said in (first, second)]
        assert times[1] - times[0] == 20_000_000
        assert values == [pytest.approx(time * 1e-9) for time in times]
        assert struct.unpack_from("<Q", me.bytes(2), 1)[0] > 0  # the time


@pytest.mark.parametrize("encoding", ["cdr", "json"])
def test_clients_publish(live: Live, encoding: str) -> None:
    twist = ry.msg.Twist(linear=ry.msg.Vector3(x=0.4))
    data = serialize(twist) if encoding == "cdr" else b'{"linear": {"x": 0.4}}'
    with client(live.foxglove) as me:
        offer = {"id": 3, "topic": "/cmd_vel", "encoding": encoding, "schemaName": "geometry_msgs/Twist"}
        me.say(op="advertise", channels=[offer])
        me.socket.send(struct.pack("<BI", 1, 3) + data)
        assert live.wait(lambda: bool(live.wheels.heard))
        assert live.wheels.heard[0] == ("/foxglove_client1", 0.4)


def test_services_answer_or_say_why_not(live: Live) -> None:
    request = serialize(ry.srv.SetBool.Request(data=True))
    with client(live.foxglove) as me:
        number = me.services["/ring"]["id"]
        me.socket.send(struct.pack("<BIII", 2, number, 11, 3) + b"cdr" + request)
        said = me.bytes(3)
        assert struct.unpack_from("<III", said, 1) == (number, 11, 3)
        assert deserialize(said[16:], "std_srvs/srv/SetBool_Response").message == "ding"
        me.socket.send(struct.pack("<BIII", 2, 9999, 12, 3) + b"cdr" + request)
        assert me.next("serviceCallFailure")["callId"] == 12
        me.socket.send(struct.pack("<BIII", 2, number, 13, 3) + b"cdr" + b"\0\1\0\0")
        assert me.next("serviceCallFailure")["callId"] == 13


def test_parameters(live: Live) -> None:
    with client(live.foxglove) as me:
        me.say(op="getParameters", parameterNames=["/wheels.gain"], id="a")
        found = me.next("parameterValues")
        assert found["parameters"] == [{"name": "/wheels.gain", "value": 1.0, "type": "float64"}]
        me.say(op="setParameters", parameters=[{"name": "/wheels.gain", "value": 3}], id="b")
        assert me.next("parameterValues")["parameters"][0]["value"] == 3.0
        assert live.wheels.gain == 3.0
        me.say(op="setParameters", parameters=[{"name": "/wheels.gain", "value": 99}], id="c")
        assert "out of range" in me.next("status")["message"]
        assert me.next("parameterValues")["parameters"][0]["value"] == 3.0


def test_graph_and_files(live: Live) -> None:
    with client(live.foxglove) as me:
        me.say(op="subscribeConnectionGraph")
        found = me.next("connectionGraphUpdate")
        assert {"name": "/cmd_vel", "subscriberIds": ["/wheels"]} in found["subscribedTopics"]
        uri = next(iter(live.foxglove._descriptions.files))
        me.say(op="fetchAsset", uri=uri, requestId=5)
        assert me.bytes(4) == struct.pack("<BIBI", 4, 5, 0, 0) + b"solid wheel"
        me.say(op="fetchAsset", uri="file:///etc/passwd", requestId=6)
        said = me.bytes(4)
        assert struct.unpack_from("<IB", said, 1) == (6, 1)
        assert b"root:" not in said
        me.say(op="subscribe", subscriptions=[{"id": 1, "channelId": me.channels["/robot_description"]["id"]}])
        assert deserialize(me.bytes(1)[13:], "std_msgs/msg/String").data == "<robot name='w'/>"


def test_what_comes_and_goes_is_told(live: Live) -> None:
    with client(live.foxglove) as me:
        other: list[Any] = []
        live.bus.inputs.query(lambda: other.append(live.bus.add(Wheels(), "more", namespace="/two")))
        assert any(item["topic"] == "/two/speed" for item in me.next("advertise")["channels"])
        live.bus.inputs.query(lambda: live.bus.remove(other[0]))
        assert me.next("unadvertise")["channelIds"]


NONSENSE = [
    "", "{", "[]", "null", "5", '{"op": 5}', '{"op": "no such"}', '{"op": "subscribe"}', "[" * 100_000,
    '{"op": "subscribe", "subscriptions": [{"id": 1, "channelId": 99999}]}',
    '{"op": "advertise", "channels": [{"id": 1, "topic": "/x", "encoding": "protobuf", "schemaName": "X"}]}',
    '{"op": "advertise", "channels": [{"id": 1, "topic": "/x", "encoding": "cdr", "schemaName": "no/Such"}]}',
    '{"op": "setParameters", "parameters": [{"name": "/wheels.gain", "value": {"a": 1}}]}',
    '{"op": "setParameters", "parameters": 7}', '{"op": "getParameters"}', '{"op": "fetchAsset", "uri": 1}',
    b"", b"\x01", b"\x01\xff\xff\xff\xff", b"\x02", struct.pack("<BIII", 2, 1, 1, 2**32 - 1), b"\xff" * 100,
]  # fmt: skip


@pytest.mark.parametrize("said", NONSENSE, ids=range(len(NONSENSE)))
def test_nonsense_is_answered_and_does_no_harm(live: Live, said: str | bytes) -> None:
    with client(live.foxglove) as me:
        me.socket.send(said)
        me.next("status")
        me.say(op="getParameters", parameterNames=["/wheels.gain"])
        assert me.next("parameterValues")["parameters"]
    assert live.foxglove.counts["malformed"] == 1


def test_malformed_messages_are_told_once(live: Live) -> None:
    with client(live.foxglove) as me:
        offer = {"id": 3, "topic": "/cmd_vel", "encoding": "cdr", "schemaName": "geometry_msgs/msg/Twist"}
        me.say(op="advertise", channels=[offer])
        for _ in range(10):
            me.socket.send(struct.pack("<BI", 1, 3) + b"\0\1\0\0too short")
        assert live.wait(lambda: live.foxglove.counts["malformed"] == 10)
    assert len([line for line in live.lines if "Twist" in line]) == 1
    assert not live.wheels.heard


def test_pages_of_others_and_other_protocols_are_refused(live: Live) -> None:
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
def test_who_does_not_read_loses_messages_and_holds_nobody_up(live: Live) -> None:
    with client(live.foxglove) as me:
        me.say(op="subscribe", subscriptions=[{"id": 1, "channelId": me.channels["/scan"]["id"]}])
        before = live.bus.now_ns
        assert live.wait(lambda: live.bus.now_ns - before > 1_000_000_000)


def test_a_taken_port_is_one_clear_error(live: Live) -> None:
    port = int(live.foxglove.where.rsplit(":", 1)[1])
    with ry.Bus() as bus, pytest.raises(BridgeError, match=rf"port {port} cannot be served.*--bridge-port"):
        FoxgloveBridge(port=port).open(bus)


@pytest.mark.slow
def test_who_only_listens_changes_nothing() -> None:
    def recorded(*, bridged: bool) -> bytes:
        bus, output = ry.Bus(seed=3), io.BytesIO()
        bus.add(Wheels(), "wheels")
        output.close = lambda: None  # type: ignore[method-assign]
        recorder = Recorder(bus, output)
        if bridged:
            bridge = FoxgloveBridge(port=0)
            bus.executor.pacer.factor = 4.0
            with Attached(bridge, bus), client(bridge) as me:
                channels = [{"id": n, "channelId": item["id"]} for n, item in enumerate(me.channels.values())]
                me.say(op="subscribe", subscriptions=channels)
                me.socket.send("nonsense")
                bus.executor.run_until(2_000_000_000)
                assert bridge.counts["sent"] > 50
        else:
            bus.executor.run_until(2_000_000_000)
        recorder.close()
        bus.close()
        return output.getvalue()

    assert recorded(bridged=True) == recorded(bridged=False)
