"""rosbridge, spoken by hand: topics, services, actions, rosapi, and that nonsense does no harm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bridges.web.conftest import Live
from websockets.sync.client import ClientConnection, connect

import roboyard as ry
from roboyard.bridges.values import from_json, to_json
from roboyard.messages import message_type, names, stamp


class Client:
    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    def say(self, **said: Any) -> None:
        self.socket.send(json.dumps(said))

    def next(self, op: str) -> dict[str, Any]:
        while True:
            said: dict[str, Any] = json.loads(self.socket.recv(timeout=10.0))
            if said["op"] == op:
                return said

    def call(self, service: str, **arguments: Any) -> Any:
        self.say(op="call_service", id="c", service=service, args=arguments)
        return self.next("service_response")


@contextmanager
def client(live: Live) -> Iterator[Client]:
    with connect(live.rosbridge.where, compression=None) as socket:
        yield Client(socket)


def test_messages_arrive(live: Live) -> None:
    with client(live) as me:
        me.say(op="subscribe", topic="/plan", type="std_msgs/String")
        assert me.next("publish") == {"op": "publish", "topic": "/plan", "msg": {"data": "straight on"}}
        me.say(op="unsubscribe", topic="/plan")
        me.say(op="subscribe", topic="/scan", type="sensor_msgs/LaserScan")
        assert me.next("publish")["msg"]["ranges"] == [1.0, None, 2.5]


def test_throttled_messages_keep_their_distance(live: Live) -> None:
    with client(live) as me:
        me.say(op="subscribe", topic="/speed", throttle_rate=200)
        first, second = (me.next("publish")["msg"]["data"] for _ in range(2))
        assert second - first >= 0.2 - 1e-9


def test_clients_publish(live: Live) -> None:
    with client(live) as me:
        me.say(op="advertise", topic="/cmd_vel", type="geometry_msgs/Twist")
        me.say(op="publish", topic="/cmd_vel", msg={"linear": {"x": 0.6, "y": 0, "z": 0}})
        assert live.wait(lambda: bool(live.wheels.heard))
        assert live.wheels.heard[0] == ("/rosbridge_client1", 0.6)


def test_services(live: Live) -> None:
    with client(live) as me:
        assert me.call("/ring", data=True)["values"] == {"success": True, "message": "ding"}
        missing = me.call("/no_such")
        assert missing["result"] is False
        assert "/no_such" in missing["values"]
        me.say(op="call_service", id="d", service="/ring", args=[False])
        assert me.next("service_response")["values"]["success"] is False


def test_actions(live: Live) -> None:
    with client(live) as me:
        me.say(op="send_action_goal", id="g", action="/count", action_type="x", args={"order": 3}, feedback=True)
        assert me.next("action_feedback")["values"] == {"sequence": [1]}
        done = me.next("action_result")
        assert (done["result"], done["status"], done["values"]) == (True, 4, {"sequence": [0, 1, 2]})
        me.say(op="send_action_goal", id="h", action="/count", action_type="x", args={"order": 10_000}, feedback=True)
        me.next("action_feedback")
        me.say(op="cancel_action_goal", id="h", action="/count")
        assert me.next("action_result")["status"] == 5
        me.say(op="send_action_goal", id="i", action="/count", action_type="x", args={"order": -1})
        assert "rejected" in me.next("action_result")["values"]


def test_rosapi(live: Live) -> None:
    with client(live) as me:
        topics = me.call("/rosapi/topics")["values"]
        assert dict(zip(topics["topics"], topics["types"], strict=True))["/scan"] == "sensor_msgs/msg/LaserScan"
        assert "/ring" in me.call("/rosapi/services")["values"]["services"]
        assert "/wheels" in me.call("/rosapi/nodes")["values"]["nodes"]
        assert me.call("/rosapi/action_servers")["values"] == {"action_servers": ["/count"]}
        assert me.call("/rosapi/get_param", name="/wheels:gain")["values"]["value"] == "1.0"
        assert me.call("/rosapi/set_param", name="/wheels:gain", value="2")["result"] is True
        assert live.wheels.gain == 2.0
        refused = me.call("/rosapi/set_param", name="/wheels:gain", value="99")
        assert refused["result"] is False
        assert "out of range" in refused["values"]
        details = me.call("/rosapi/message_details", type="geometry_msgs/Twist")["values"]["typedefs"]
        assert details[0]["fieldnames"] == ["linear", "angular"]
        assert "<robot" in me.call("/rosapi/get_param", name="/robot_description")["values"]["value"]


NONSENSE = [
    "", "{", "[]", "null", "7", '{"op": 5}', '{"op": "publish"}', '{"op": "publish", "topic": "/nowhere", "msg": {}}',
    '{"op": "publish", "topic": "/cmd_vel", "msg": {"linear": 7}}', '{"op": "subscribe", "topic": "/inputs"}',
    '{"op": "publish", "topic": "/cmd_vel", "msg": {"no": 1}}', '{"op": "advertise", "topic": "/x", "type": "no/Such"}',
    '{"op": "cancel_action_goal", "id": "x"}', '{"op": "advertise_service", "service": "/x"}',
    b"\xff\xfe", "[" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("said", NONSENSE, ids=range(len(NONSENSE)))
def test_nonsense_is_answered_and_does_no_harm(live: Live, said: str | bytes) -> None:
    with client(live) as me:
        me.socket.send(said)
        assert me.next("status")["level"] == "error"
        assert me.call("/ring", data=True)["result"] is True
    assert live.rosbridge.counts["malformed"] == 1


def test_every_message_goes_to_json_and_back() -> None:
    for name in names():
        message = message_type(name)()
        assert from_json(name, json.loads(json.dumps(to_json(message)))) == message, name


@given(st.binary(max_size=40), st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=9))
def test_values_survive_json(octets: bytes, ranges: list[float]) -> None:
    import numpy as np

    image = ry.msg.Image(data=np.frombuffer(octets, dtype=np.uint8))
    assert from_json("sensor_msgs/msg/Image", json.loads(json.dumps(to_json(image)))) == image
    scan = ry.msg.LaserScan(ranges=np.array(ranges, dtype=np.float32))
    scan.header.stamp = stamp(5)
    assert from_json("sensor_msgs/msg/LaserScan", json.loads(json.dumps(to_json(scan)))) == scan
