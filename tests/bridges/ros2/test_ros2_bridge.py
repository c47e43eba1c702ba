"""The bridge to ROS 2 with a participant in another process: topics, quality, services, actions, and nonsense."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from tests.bridges.ros2.conftest import Peer
from tests.bridges.web.conftest import Wheels

import roboyard as ry
from roboyard.bridges import Attached
from roboyard.bridges.gateway import BACKLOG
from roboyard.bridges.ros2 import Ros2Bridge, discovery, names
from roboyard.bus.inputs import INSTANT_LIMIT, RATE_LIMIT
from roboyard.messages import deserialize, message_type, serialize
from roboyard.record import Recorder

COUNT = "example_interfaces/action/Fibonacci"


class Live:
    def __init__(self, domain: int) -> None:
        self.domain = domain
        self.bus = ry.Bus(seed=1)
        self.wheels = self.bus.add(Wheels(), "wheels")
        self.bus.executor.pacer.factor = 1.0
        self.lines: list[str] = []
        self.bus.log_sinks.append(lambda record: self.lines.append(record.text))
        self.bridge = Ros2Bridge(domain)
        self._attached = Attached(self.bridge, self.bus)
        self._thread = Thread(target=lambda: self.bus.executor.run_until(10**12))
        self._thread.start()
        self.peer = Peer(domain)

    def wait(self, until: Callable[[], bool], seconds: float = 15.0) -> bool:
        end = time.monotonic() + seconds
        while not until() and time.monotonic() < end:
            time.sleep(0.02)
        return until()

    def close(self) -> None:
        self.peer.close()
        self.bus.executor.stop()
        self._thread.join()
        self._attached.__exit__(None, None, None)
        self.bus.close()


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    made = Live(100 + os.getpid() % 100)
    yield made
    made.close()


def test_messages_and_quality(live: Live) -> None:
    live.peer.say(op="read", topic="rt/speed", type="std_msgs::msg::dds_::Float64_")
    live.peer.say(op="read", topic="rt/plan", type="std_msgs::msg::dds_::String_", latched=True)
    assert live.wait(lambda: len(live.peer.heard.get("rt/speed", [])) > 5)
    values = [deserialize(data, "std_msgs/msg/Float64").data for data in live.peer.heard["rt/speed"]]
    assert np.diff(values) == pytest.approx(0.02)
    assert live.wait(lambda: "rt/plan" in live.peer.heard)
    assert deserialize(live.peer.heard["rt/plan"][0], "std_msgs/msg/String").data == "straight on"


def test_time_is_told(live: Live) -> None:
    live.peer.say(op="read", topic="rt/clock", type="rosgraph_msgs::msg::dds_::Clock_")
    assert live.wait(lambda: len(live.peer.heard.get("rt/clock", [])) > 20)
    first, second = (deserialize(d, "rosgraph_msgs/msg/Clock").clock for d in live.peer.heard["rt/clock"][:2])
    assert (second.sec - first.sec) * 10**9 + second.nanosec - first.nanosec == 20_000_000  # instants are 20 ms apart


def test_the_graph_is_told(live: Live) -> None:
    assert live.wait(lambda: "ros_discovery_info" in live.peer.heard)
    participant, nodes, size = discovery.decode(live.peer.heard["ros_discovery_info"][-1])
    assert size == discovery.NEW
    assert {"/wheels", "/roboyard"} <= nodes.keys()
    assert nodes["/wheels"].readers
    assert len(nodes["/wheels"].writers) > 5
    assert all(guid[:12] == participant[:12] for guid in nodes["/wheels"].writers)
    listed = {topic: latched for topic, _, latched in live.peer.writers()}
    assert {"rt/speed", "rt/scan", "rt/tf_static", "rr/ringReply", "rt/count/_action/feedback"} & listed.keys() >= {
        "rt/speed", "rt/scan", "rr/ringReply", "rt/count/_action/feedback",
    }  # fmt: skip
    assert listed["rt/plan"] is True
    assert listed["rt/speed"] is False


@pytest.mark.slow
@pytest.mark.parametrize("reliable", [True, False])
def test_foreign_publishers_come_in_under_their_names(live: Live, reliable: bool) -> None:
    live.wheels.heard.clear()
    peer = Peer(live.domain)
    twist = ry.msg.Twist(linear=ry.msg.Vector3(x=0.4))
    peer.publish("rt/cmd_vel", twist, node="/teleop", reliable=reliable, pause=1.5)
    assert live.wait(lambda: bool(live.wheels.heard))
    assert live.wheels.heard[0] == ("/teleop", 0.4)
    peer.close()


def test_humble_is_understood(live: Live) -> None:
    live.wheels.heard.clear()
    peer = Peer(live.domain, 24)
    peer.publish("rt/cmd_vel", ry.msg.Twist(linear=ry.msg.Vector3(x=0.2)), node="/old", pause=1.5)
    assert live.wait(lambda: bool(live.wheels.heard))
    assert live.wheels.heard[0] == ("/old", 0.2)
    peer.close()


def call(live: Live, service: str, kind: str, request: Any, number: int) -> Any:
    head = (77).to_bytes(8, "little") + number.to_bytes(8, "little")
    topic = names.reply(service)
    if topic not in live.peer.heard:
        live.peer.heard[topic] = []
        live.peer.say(op="read", topic=topic, type=names.dds_type(f"{kind}_Response"))
        time.sleep(1.0)
    data = serialize(request)
    live.peer.say(
        op="write", topic=names.request(service), type=names.dds_type(f"{kind}_Request"),
        data=(data[:4] + head + data[4:]).hex(),
    )  # fmt: skip
    found: list[bytes] = []

    def answered() -> bool:
        found[:] = [data for data in live.peer.heard[topic] if data[4:20] == head]
        return bool(found)

    assert live.wait(answered)
    return deserialize(found[0][:4] + found[0][20:], f"{kind}_Response")


def test_services(live: Live) -> None:
    answer = call(live, "/ring", "std_srvs/srv/SetBool", ry.srv.SetBool.Request(data=True), 1)
    assert (answer.success, answer.message) == (True, "ding")
    assert call(live, "/ring", "std_srvs/srv/SetBool", ry.srv.SetBool.Request(data=False), 2).success is False


def test_parameters(live: Live) -> None:
    kind = "rcl_interfaces/srv/GetParameters"
    request = message_type(f"{kind}_Request")(names=["gain"])
    assert call(live, "/wheels/get_parameters", kind, request, 3).values[0].double_value == 1.0


def test_actions(live: Live) -> None:
    goal_id = message_type("unique_identifier_msgs/msg/UUID")(uuid=np.arange(16, dtype=np.uint8))
    action = ry.action.Fibonacci
    live.peer.say(
        op="read", topic="rt/count/_action/feedback", type=names.dds_type(f"{COUNT}_FeedbackMessage"),
    )  # fmt: skip
    time.sleep(1.0)
    goal = action.SendGoal.Request(goal_id=goal_id, goal=action.Goal(order=3))
    assert call(live, "/count/_action/send_goal", f"{COUNT}_SendGoal", goal, 1).accepted
    request = action.GetResult.Request(goal_id=goal_id)
    answer = call(live, "/count/_action/get_result", f"{COUNT}_GetResult", request, 1)
    assert (answer.status, list(answer.result.sequence)) == (4, [0, 1, 2])
    assert live.peer.heard["rt/count/_action/feedback"]


@pytest.mark.slow
def test_nonsense_is_counted_and_told_once(live: Live) -> None:
    live.wheels.heard.clear()
    before = live.bridge.counts["malformed"]
    peer = Peer(live.domain)
    kind = "geometry_msgs::msg::dds_::Twist_"
    peer.say(op="write", topic="rt/cmd_vel", type=kind, data="0001000001020304", times=10, pause=1.5)
    peer.say(
        op="write", topic="rq/ringRequest", type="std_srvs::srv::dds_::SetBool_Request_", data="00010000", pause=1.0
    )
    peer.say(
        op="write", topic="ros_discovery_info", type=discovery.TYPE, data="0001000001020304", pause=1.0, latched=True
    )
    assert live.wait(lambda: live.bridge.counts["malformed"] >= before + 12)
    assert not live.wheels.heard
    assert len([line for line in live.lines if "/cmd_vel" in line]) == 1
    peer.close()


def test_another_type_is_told_once(live: Live) -> None:
    peer = Peer(live.domain)
    peer.publish("rt/cmd_vel", ry.msg.String(data="no twist"), pause=1.5)
    assert live.wait(lambda: live.bridge.counts["another type"] > 1)
    assert live.wait(lambda: any("std_msgs::msg::dds_::String_" in line for line in live.lines))
    assert len([line for line in live.lines if "std_msgs::msg::dds_::String_" in line]) == 1
    peer.close()


@pytest.mark.slow
def test_a_writer_at_full_speed_loses_what_is_too_much_and_nobody_else_does(live: Live) -> None:
    inputs, waiting, memory = live.bus.inputs, [], []
    flood = Peer(live.domain)
    flood.publish("rt/cmd_vel", ry.msg.Twist(linear=ry.msg.Vector3(x=0.9)), node="/flood", pause=1.5, seconds=8.0)
    assert live.wait(lambda: live.bridge.counts["dropped"] > 0, 60.0)
    at_ns, taken, said = live.bus.now_ns, inputs.taken, 0
    while live.bus.now_ns < at_ns + 3 * 10**9:
        said += 1
        assert call(live, "/ring", "std_srvs/srv/SetBool", ry.srv.SetBool.Request(data=True), 1000 + said).success
        waiting.append(inputs.waiting)
        memory.append(resident())
    at_ns, taken = live.bus.now_ns - at_ns, inputs.taken - taken
    assert taken <= INSTANT_LIMIT + (at_ns * 1e-9 + 0.1) * RATE_LIMIT
    assert max(waiting) <= BACKLOG + 20  # and few questions of the bridge itself
    assert said > 5
    half = len(memory) // 2
    assert max(memory[half:]) <= max(memory[:half]) + 10e6
    flood.close()


def resident() -> int:
    """Memory of this process [bytes]."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_foreign_node_of_our_name_is_told(live: Live) -> None:
    live.wheels.heard.clear()
    peer = Peer(live.domain)
    peer.publish("rt/cmd_vel", ry.msg.Twist(), node="/wheels", pause=1.5)
    assert live.wait(lambda: bool(live.wheels.heard))
    assert live.wheels.heard[0][0] == "/wheels_ros2"
    assert live.bridge.counts["name clash"] > 0
    peer.close()


def test_who_only_listens_changes_nothing(live: Live) -> None:
    live.peer.say(op="read", topic="rt/speed", type="std_msgs::msg::dds_::Float64_")
    assert live.wait(lambda: len(live.peer.heard.get("rt/speed", [])) > 5)

    def recorded(*, bridged: bool) -> bytes:
        bus, output = ry.Bus(seed=3), io.BytesIO()
        bus.add(Wheels(), "wheels")
        output.close = lambda: None  # type: ignore[method-assign]
        recorder = Recorder(bus, output)
        if bridged:
            bridge = Ros2Bridge(live.domain)
            bus.executor.pacer.factor = 2.0
            with Attached(bridge, bus):
                bus.executor.run_until(2_000_000_000)
                assert bridge.counts["sent"] > 20
        else:
            bus.executor.run_until(2_000_000_000)
        recorder.close()
        bus.close()
        return output.getvalue()

    assert recorded(bridged=True) == recorded(bridged=False)
