"""The bridge to ROS 2 with a participant in another process: topics, quality, services, actions, and nonsense."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.bridges.ros2.conftest import Peer
from tests.bridges.sample_robot import BridgedRobot
from tests.harness.live_bus import RunningBus
from tests.harness.live_run import poll

import roboyard as ry
from roboyard.bridges import Attached
from roboyard.bridges.gateway import BACKLOG
from roboyard.bridges.ros2 import Ros2Bridge, discovery, names
from roboyard.bus.external_inputs import MAX_INPUT_RATE, MAX_INPUTS_PER_INSTANT
from roboyard.messages import deserialize, message_type, serialize
from roboyard.record import Recorder

COUNT = "example_interfaces/action/Fibonacci"


class Ros2Run(RunningBus):
    """A robot behind the bridge, and a participant in another process."""

    def __init__(self, domain: int) -> None:
        super().__init__(ry.Bus(seed=1))
        self.domain = domain
        self.robot = self.bus.add(BridgedRobot(), "wheels")
        self.bridge = Ros2Bridge(domain)
        self._attached = Attached(self.bridge, self.bus)
        self.start()
        self.peer = Peer(domain)

    def stop(self) -> None:
        self.peer.close()
        self.end()
        self._attached.__exit__(None, None, None)
        super().stop()


@pytest.fixture(scope="module")
def live() -> Iterator[Ros2Run]:
    with Ros2Run(100 + os.getpid() % 100) as live:
        yield live


def test_messages_are_written_and_latched_ones_kept(live: Ros2Run) -> None:
    live.peer.send(op="read", topic="rt/speed", type="std_msgs::msg::dds_::Float64_")
    live.peer.send(op="read", topic="rt/plan", type="std_msgs::msg::dds_::String_", latched=True)
    poll(lambda: len(live.peer.received.get("rt/speed", [])) > 5)
    values = [deserialize(data, "std_msgs/msg/Float64").data for data in live.peer.received["rt/speed"]]
    assert np.diff(values) == pytest.approx(0.02)
    poll(lambda: "rt/plan" in live.peer.received)
    assert deserialize(live.peer.received["rt/plan"][0], "std_msgs/msg/String").data == "straight on"


def test_clock_is_published_at_every_instant(live: Ros2Run) -> None:
    live.peer.send(op="read", topic="rt/clock", type="rosgraph_msgs::msg::dds_::Clock_")
    poll(lambda: len(live.peer.received.get("rt/clock", [])) > 20)
    first, second = (deserialize(d, "rosgraph_msgs/msg/Clock").clock for d in live.peer.received["rt/clock"][:2])
    assert (second.sec - first.sec) * 10**9 + second.nanosec - first.nanosec == 20_000_000  # instants are 20 ms apart


def test_graph_is_announced(live: Ros2Run) -> None:
    poll(lambda: "ros_discovery_info" in live.peer.received)
    participant, nodes, size = discovery.decode(live.peer.received["ros_discovery_info"][-1])
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
def test_foreign_messages_keep_their_publisher_name(live: Ros2Run, reliable: bool) -> None:
    live.robot.commands.clear()
    peer = Peer(live.domain)
    twist = ry.msg.Twist(linear=ry.msg.Vector3(x=0.4))
    peer.publish("rt/cmd_vel", twist, node="/teleop", reliable=reliable, pause=1.5)
    poll(lambda: bool(live.robot.commands))
    assert live.robot.commands[0] == ("/teleop", 0.4)
    peer.close()


def test_participant_of_humble_is_understood(live: Ros2Run) -> None:
    live.robot.commands.clear()
    peer = Peer(live.domain, 24)
    peer.publish("rt/cmd_vel", ry.msg.Twist(linear=ry.msg.Vector3(x=0.2)), node="/old", pause=1.5)
    poll(lambda: bool(live.robot.commands))
    assert live.robot.commands[0] == ("/old", 0.2)
    peer.close()


def call(live: Ros2Run, service: str, kind: str, request: Any, number: int) -> Any:
    head = (77).to_bytes(8, "little") + number.to_bytes(8, "little")
    topic = names.reply(service)
    if topic not in live.peer.received:
        live.peer.read(topic, names.dds_type(f"{kind}_Response"))
    data = serialize(request)
    live.peer.send(
        op="write", topic=names.request(service), type=names.dds_type(f"{kind}_Request"),
        data=(data[:4] + head + data[4:]).hex(),
    )  # fmt: skip
    found: list[bytes] = []

    def answered() -> bool:
        found[:] = [data for data in live.peer.received[topic] if data[4:20] == head]
        return bool(found)

    poll(answered)
    return deserialize(found[0][:4] + found[0][20:], f"{kind}_Response")


def test_services_answer(live: Ros2Run) -> None:
    answer = call(live, "/ring", "std_srvs/srv/SetBool", ry.srv.SetBool.Request(data=True), 1)
    assert (answer.success, answer.message) == (True, "ding")
    assert call(live, "/ring", "std_srvs/srv/SetBool", ry.srv.SetBool.Request(data=False), 2).success is False


def test_parameters_are_read_through_their_service(live: Ros2Run) -> None:
    kind = "rcl_interfaces/srv/GetParameters"
    request = message_type(f"{kind}_Request")(names=["gain"])
    assert call(live, "/wheels/get_parameters", kind, request, 3).values[0].double_value == 1.0


def test_actions_have_feedback_and_results(live: Ros2Run) -> None:
    goal_id = message_type("unique_identifier_msgs/msg/UUID")(uuid=np.arange(16, dtype=np.uint8))
    action = ry.action.Fibonacci
    live.peer.read("rt/count/_action/feedback", names.dds_type(f"{COUNT}_FeedbackMessage"))
    goal = action.SendGoal.Request(goal_id=goal_id, goal=action.Goal(order=3))
    assert call(live, "/count/_action/send_goal", f"{COUNT}_SendGoal", goal, 1).accepted
    request = action.GetResult.Request(goal_id=goal_id)
    answer = call(live, "/count/_action/get_result", f"{COUNT}_GetResult", request, 1)
    assert (answer.status, list(answer.result.sequence)) == (4, [0, 1, 2])
    assert live.peer.received["rt/count/_action/feedback"]


@pytest.mark.slow
def test_malformed_messages_are_counted_and_logged_once(live: Ros2Run) -> None:
    live.robot.commands.clear()
    before = live.bridge.counts["malformed"]
    peer = Peer(live.domain)
    kind = "geometry_msgs::msg::dds_::Twist_"
    peer.send(op="write", topic="rt/cmd_vel", type=kind, data="0001000001020304", times=10, pause=1.5)
    peer.send(
        op="write", topic="rq/ringRequest", type="std_srvs::srv::dds_::SetBool_Request_", data="00010000", pause=1.0
    )
    peer.send(
        op="write", topic="ros_discovery_info", type=discovery.TYPE, data="0001000001020304", pause=1.0, latched=True
    )
    poll(lambda: live.bridge.counts["malformed"] >= before + 12)
    assert not live.robot.commands
    assert len([line for line in live.log_lines if "/cmd_vel" in line]) == 1
    peer.close()


def test_topic_of_another_type_is_logged_once(live: Ros2Run) -> None:
    peer = Peer(live.domain)
    peer.publish("rt/cmd_vel", ry.msg.String(data="no twist"), pause=1.5)
    poll(lambda: live.bridge.counts["another type"] > 1)
    poll(lambda: any("std_msgs::msg::dds_::String_" in line for line in live.log_lines))
    assert len([line for line in live.log_lines if "std_msgs::msg::dds_::String_" in line]) == 1
    peer.close()


@pytest.mark.slow
def test_flooding_writer_loses_only_its_own_messages(live: Ros2Run) -> None:
    inputs, waiting, memory = live.bus.inputs, [], []
    flood = Peer(live.domain)
    flood.publish("rt/cmd_vel", ry.msg.Twist(linear=ry.msg.Vector3(x=0.9)), node="/flood", pause=1.5, seconds=3.0)
    poll(lambda: live.bridge.counts["dropped"] > 0, timeout=60.0)
    at_ns, taken, calls = live.bus.now_ns, inputs.accepted, 0
    while live.bus.now_ns < at_ns + 10**9:
        calls += 1
        assert call(live, "/ring", "std_srvs/srv/SetBool", ry.srv.SetBool.Request(data=True), 1000 + calls).success
        waiting.append(inputs.pending_count)
        memory.append(resident())
    at_ns, taken = live.bus.now_ns - at_ns, inputs.accepted - taken
    assert taken <= MAX_INPUTS_PER_INSTANT + (at_ns * 1e-9 + 0.1) * MAX_INPUT_RATE
    assert max(waiting) <= BACKLOG + 20  # and few questions of the bridge itself
    assert calls > 5
    half = len(memory) // 2
    assert max(memory[half:]) <= max(memory[:half]) + 10e6
    flood.close()


def resident() -> int:
    """Memory of this process [bytes]."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_foreign_node_of_same_name_is_renamed(live: Ros2Run) -> None:
    live.robot.commands.clear()
    peer = Peer(live.domain)
    peer.publish("rt/cmd_vel", ry.msg.Twist(), node="/wheels", pause=1.5)
    poll(lambda: bool(live.robot.commands))
    assert live.robot.commands[0][0] == "/wheels_ros2"
    assert live.bridge.counts["name clash"] > 0
    peer.close()


def test_passive_reader_changes_no_byte(live: Ros2Run) -> None:
    live.peer.send(op="read", topic="rt/speed", type="std_msgs::msg::dds_::Float64_")
    poll(lambda: len(live.peer.received.get("rt/speed", [])) > 5)

    def recorded(*, bridged: bool) -> bytes:
        bus, output = ry.Bus(seed=3), io.BytesIO()
        bus.add(BridgedRobot(), "wheels")
        output.close = lambda: None  # type: ignore[method-assign]
        recorder = Recorder(bus, output)
        if bridged:
            bridge = Ros2Bridge(live.domain)
            bus.executor.pacer.real_time_factor = 2.0
            with Attached(bridge, bus):
                bus.executor.run_until(2_000_000_000)
                assert bridge.counts["sent"] > 20
        else:
            bus.executor.run_until(2_000_000_000)
        recorder.close()
        bus.close()
        return output.getvalue()

    assert recorded(bridged=True) == recorded(bridged=False)
