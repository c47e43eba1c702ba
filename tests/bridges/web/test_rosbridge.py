"""rosbridge, spoken by hand: topics, services, actions, rosapi, and that nonsense does no harm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bridges.web.conftest import WebRun
from tests.harness.live_run import poll
from websockets.sync.client import ClientConnection, connect

import roboyard as ry
from roboyard.bridges.values import from_json, to_json
from roboyard.messages import message_type, time_to_msg, type_names


class Client:
    """A client that speaks the protocol by hand."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    def send(self, **fields: Any) -> None:
        self.socket.send(json.dumps(fields))

    def wait_for(self, op: str) -> dict[str, Any]:
        while True:
            reply: dict[str, Any] = json.loads(self.socket.recv(timeout=10.0))
            if reply["op"] == op:
                return reply

    def call(self, service: str, **arguments: Any) -> Any:
        self.send(op="call_service", id="c", service=service, args=arguments)
        return self.wait_for("service_response")


@contextmanager
def connect_client(live: WebRun) -> Iterator[Client]:
    with connect(live.rosbridge.where, compression=None) as socket:
        yield Client(socket)


def test_subscriber_gets_messages(live: WebRun) -> None:
    with connect_client(live) as client:
        client.send(op="subscribe", topic="/plan", type="std_msgs/String")
        assert client.wait_for("publish") == {"op": "publish", "topic": "/plan", "msg": {"data": "straight on"}}
        client.send(op="unsubscribe", topic="/plan")
        client.send(op="subscribe", topic="/scan", type="sensor_msgs/LaserScan")
        assert client.wait_for("publish")["msg"]["ranges"] == [1.0, None, 2.5]


def test_throttled_messages_keep_their_interval(live: WebRun) -> None:
    with connect_client(live) as client:
        client.send(op="subscribe", topic="/speed", throttle_rate=200)
        first, second = (client.wait_for("publish")["msg"]["data"] for _ in range(2))
        assert second - first >= 0.2 - 1e-9


def test_client_publishes_on_the_bus(live: WebRun) -> None:
    with connect_client(live) as client:
        client.send(op="advertise", topic="/cmd_vel", type="geometry_msgs/Twist")
        client.send(op="publish", topic="/cmd_vel", msg={"linear": {"x": 0.6, "y": 0, "z": 0}})
        poll(lambda: bool(live.robot.commands))
        assert live.robot.commands[0] == ("/rosbridge_client1", 0.6)


def test_services_answer_or_fail_with_a_reason(live: WebRun) -> None:
    with connect_client(live) as client:
        assert client.call("/ring", data=True)["values"] == {"success": True, "message": "ding"}
        missing = client.call("/no_such")
        assert missing["result"] is False
        assert "/no_such" in missing["values"]
        client.send(op="call_service", id="d", service="/ring", args=[False])
        assert client.wait_for("service_response")["values"]["success"] is False


def test_actions_have_feedback_results_and_cancel(live: WebRun) -> None:
    with connect_client(live) as client:
        client.send(op="send_action_goal", id="g", action="/count", action_type="x", args={"order": 3}, feedback=True)
        assert client.wait_for("action_feedback")["values"] == {"sequence": [1]}
        done = client.wait_for("action_result")
        assert (done["result"], done["status"], done["values"]) == (True, 4, {"sequence": [0, 1, 2]})
        client.send(
            op="send_action_goal", id="h", action="/count", action_type="x", args={"order": 10_000}, feedback=True
        )
        client.wait_for("action_feedback")
        client.send(op="cancel_action_goal", id="h", action="/count")
        assert client.wait_for("action_result")["status"] == 5
        client.send(op="send_action_goal", id="i", action="/count", action_type="x", args={"order": -1})
        assert "rejected" in client.wait_for("action_result")["values"]


def test_rosapi_describes_and_sets(live: WebRun) -> None:
    with connect_client(live) as client:
        topics = client.call("/rosapi/topics")["values"]
        assert dict(zip(topics["topics"], topics["types"], strict=True))["/scan"] == "sensor_msgs/msg/LaserScan"
        assert "/ring" in client.call("/rosapi/services")["values"]["services"]
        assert "/wheels" in client.call("/rosapi/nodes")["values"]["nodes"]
        assert client.call("/rosapi/action_servers")["values"] == {"action_servers": ["/count"]}
        assert client.call("/rosapi/get_param", name="/wheels:gain")["values"]["value"] == "1.0"
        assert client.call("/rosapi/set_param", name="/wheels:gain", value="2")["result"] is True
        assert live.robot.config.gain == 2.0
        refused = client.call("/rosapi/set_param", name="/wheels:gain", value="99")
        assert refused["result"] is False
        assert "allowed:" in refused["values"]
        details = client.call("/rosapi/message_details", type="geometry_msgs/Twist")["values"]["typedefs"]
        assert details[0]["fieldnames"] == ["linear", "angular"]
        assert "<robot" in client.call("/rosapi/get_param", name="/robot_description")["values"]["value"]


NONSENSE = [
    "", "{", "[]", "null", "7", '{"op": 5}', '{"op": "publish"}', '{"op": "publish", "topic": "/nowhere", "msg": {}}',
    '{"op": "publish", "topic": "/cmd_vel", "msg": {"linear": 7}}', '{"op": "subscribe", "topic": "/inputs"}',
    '{"op": "publish", "topic": "/cmd_vel", "msg": {"no": 1}}', '{"op": "advertise", "topic": "/x", "type": "no/Such"}',
    '{"op": "cancel_action_goal", "id": "x"}', '{"op": "advertise_service", "service": "/x"}',
    b"\xff\xfe", "[" * 100_000,
]  # fmt: skip
NONSENSE_IDS = [
    "nothing",
    "half an object",
    "a list",
    "null",
    "a number",
    "number as op",
    "publish without topic",
    "unknown topic",
    "number as vector",
    "topic of the bus itself",
    "unknown field",
    "unknown type",
    "unknown goal",
    "offered service",
    "bytes",
    "deep nesting",
]


@pytest.mark.parametrize("data", NONSENSE, ids=NONSENSE_IDS)
def test_malformed_requests_are_answered_and_do_no_harm(live: WebRun, data: str | bytes) -> None:
    with connect_client(live) as client:
        client.socket.send(data)
        assert client.wait_for("status")["level"] == "error"
        assert client.call("/ring", data=True)["result"] is True
    assert live.rosbridge.counts["malformed"] == 1


def test_every_message_roundtrips_through_json() -> None:
    for name in type_names():
        message = message_type(name)()
        assert from_json(name, json.loads(json.dumps(to_json(message)))) == message, name


@given(st.binary(max_size=40), st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=9))
def test_values_roundtrip_through_json(octets: bytes, ranges: list[float]) -> None:
    import numpy as np

    image = ry.msg.Image(data=np.frombuffer(octets, dtype=np.uint8))
    assert from_json("sensor_msgs/msg/Image", json.loads(json.dumps(to_json(image)))) == image
    scan = ry.msg.LaserScan(ranges=np.array(ranges, dtype=np.float32))
    scan.header.stamp = time_to_msg(5)
    assert from_json("sensor_msgs/msg/LaserScan", json.loads(json.dumps(to_json(scan)))) == scan
