"""Nodes that are left out: what they served is asked outside, in time, and what comes back is an input of the run."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bridges.sample_robot import BridgedRobot, CallingNode

import roboyard as ry
from roboyard.bridges.external import NODE, External, ExternalError, answer, stand_in
from roboyard.bridges.gateway import Gateway
from roboyard.bus.external_inputs import EXTERNAL_REQUEST_TOPIC, EXTERNAL_RESPONSE_TOPIC
from roboyard.messages import deserialize, serialize
from roboyard.record import Recorder, open_recording, recorded_inputs

RING = "std_srvs/srv/SetBool"


def bus_without_server(patience: float = 2.0) -> tuple[ry.Bus, CallingNode, External]:
    bus = ry.Bus(seed=1)
    robot, caller = bus.add(BridgedRobot(), "wheels"), bus.add(CallingNode(), "caller")
    external = stand_in(bus, robot, patience)
    assert external is not None
    return bus, caller, external


Respond = Callable[[Any], tuple[bytes, str]]


def answer_outside(bus: ry.Bus, respond: Respond, delay: float = 0.0) -> list[Any]:
    """Answer each call from outside, ``delay`` simulated seconds after it was made; returns the calls."""
    requests: list[Any] = []

    def hear(topic: Any, message: Any, node: str, time_ns: int) -> None:
        if topic.name == EXTERNAL_REQUEST_TOPIC:
            requests.append(message)
            found = answer(int(message.call_id), "/robot", *respond(message))
            bus.executor.schedule(time_ns + round(delay * 1e9), lambda: bus.inputs.put(found), priority=98)

    bus.add_message_observer(hear)
    return requests


def ding(message: Any) -> tuple[bytes, str]:
    request = deserialize(bytes(message.request), f"{message.type}_Request")
    return serialize(ry.srv.SetBool.Response(success=request.data, message=f"ding {message.call_id}")), ""


@given(st.lists(st.floats(0.0, 3.5), min_size=1, max_size=6), st.floats(0.2, 3.0))
def test_each_call_is_answered_once_or_fails_in_time(delays: list[float], patience: float) -> None:
    bus, caller, _ = bus_without_server(patience)
    waits = iter(delays)

    def hear(topic: Any, message: Any, node: str, time_ns: int) -> None:
        if topic.name == EXTERNAL_REQUEST_TOPIC:
            found = answer(int(message.call_id), "/robot", *ding(message))
            for times in (1, 2):  # the second one is a second server's
                at_ns = time_ns + round(times * next_wait * 1e9)
                bus.executor.schedule(at_ns, lambda: bus.inputs.put(found), priority=98)

    bus.add_message_observer(hear)
    for next_wait in waits:
        began_ns = bus.now_ns
        future = caller.call()
        bus.executor.run_until(began_ns + 10**11, future.done)
        took = (bus.now_ns - began_ns) / 1e9
        if next_wait < patience:
            assert future.result.message.startswith("ding")
            assert took == pytest.approx(next_wait, abs=1e-6)
        else:
            assert isinstance(future.error, ExternalError)
            assert took == pytest.approx(patience, abs=1e-6)
        bus.executor.run_for(8.0)
    assert len(caller.outcomes) == len(delays)
    bus.close()


def test_missing_response_names_service_and_node() -> None:
    bus, caller, _ = bus_without_server(1.5)
    future = caller.call()
    bus.executor.run_for(2.0)
    text = str(future.error)
    assert "nobody outside has answered /ring within 1.5 s" in text
    assert "/wheels was left out" in text
    bus.close()


def test_goal_not_accepted_in_time_is_canceled() -> None:
    """Somebody may take it up yet, and would go on with what nobody waits for."""
    bus, caller, _ = bus_without_server(1.0)
    requests: list[Any] = []
    bus.add_message_observer(
        lambda topic, message, node, time_ns: requests.append(message) if topic.name == EXTERNAL_REQUEST_TOPIC else None
    )
    goal = caller.send(5)
    bus.executor.run_for(3.0)
    assert isinstance(goal.error, ExternalError)
    sent, cancelled = requests
    assert (sent.service, cancelled.service) == ("/count/_action/send_goal", "/count/_action/cancel_goal")
    request = deserialize(bytes(cancelled.request), f"{cancelled.type}_Request")
    assert bytes(request.goal_info.goal_id.uuid) == goal.id
    bus.close()


@pytest.mark.parametrize(
    ("response", "error", "expected"),
    [(b"", "gone fishing", "gone fishing"), (b"\0\1\0\0\1\2", "", "std_srvs/srv/SetBool_Response")],
)
def test_errors_and_malformed_responses_fail_only_the_call(response: bytes, error: str, expected: str) -> None:
    bus, caller, _ = bus_without_server()
    answer_outside(bus, lambda message: (response, error))
    future = caller.call()
    bus.executor.run_for(0.1)
    assert expected in str(future.error)
    bus.close()


def test_goal_results_have_no_deadline() -> None:
    bus, caller, _ = bus_without_server(1.0)

    def respond(message: Any) -> tuple[bytes, str]:
        if message.service.endswith("send_goal"):
            return serialize(ry.action.Fibonacci.SendGoal.Response(accepted=True)), ""
        result = ry.action.Fibonacci.Result(sequence=[0, 1])
        return serialize(ry.action.Fibonacci.GetResult.Response(status=4, result=result)), ""

    requests = answer_outside(bus, respond, 0.9)
    bus.executor.run_for(0.1)
    goal = caller.send(2)
    bus.executor.run_for(1.0)
    untils = {message.service.rsplit("/", 1)[1]: message.deadline.sec for message in requests}
    assert untils == {"send_goal": 1, "get_result": 0}  # which has no end
    bus.executor.run_for(1.0)
    assert goal.succeeded
    assert list(goal.result.sequence) == [0, 1]
    bus.close()


def test_run_is_repeated_from_recorded_responses(tmp_path: Path) -> None:
    def recorded(path: Path, *, live: bool) -> bytes:
        bus, caller, _ = bus_without_server()
        output = io.BytesIO()
        output.close = lambda: None  # type: ignore[method-assign]
        recorder = Recorder(bus, output)
        if live:
            answer_outside(bus, ding, 0.137)
        else:
            with open_recording(path) as recording:
                bus.inputs.schedule(recorded_inputs(recording))
        for time in (0.0, 0.5, 0.55):
            bus.executor.schedule(round(time * 1e9), caller.call)
        bus.executor.run_until(2_000_000_000)
        assert len(caller.outcomes) == 3
        recorder.close()
        bus.close()
        return output.getvalue()

    path = tmp_path / "first.mcap"
    first = recorded(path, live=True)
    path.write_bytes(first)
    assert recorded(path, live=False) == first


def test_bridges_hide_external_services() -> None:
    bus, _, _ = bus_without_server()
    seen = Gateway(bus, "bridge").look()
    assert seen.asked == {"/ring": RING}
    assert seen.asked_actions == {"/count": "example_interfaces/action/Fibonacci"}
    assert not seen.actions
    assert NODE not in seen.parameters
    assert not {EXTERNAL_REQUEST_TOPIC, EXTERNAL_RESPONSE_TOPIC} & seen.topics.keys()
    assert not [name for name in seen.services if name.startswith((NODE, "/ring", "/wheels"))]
    bus.close()


def test_node_without_services_needs_no_substitute() -> None:
    bus = ry.Bus()
    assert stand_in(bus, bus.add(ry.Node(), "idle")) is None
    assert NODE not in bus.nodes
    bus.close()
