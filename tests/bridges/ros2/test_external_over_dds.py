"""Our nodes call services and actions of a node in another process, which speaks as rmw_cyclonedds does."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.bridges.ros2.conftest import Peer
from tests.bridges.sample_robot import BridgedRobot, CallingNode
from tests.harness.live_bus import RunningBus
from tests.harness.live_run import poll

import roboyard as ry
from roboyard.bridges import Attached
from roboyard.bridges.external import stand_in
from roboyard.bridges.ros2 import Ros2Bridge, names
from roboyard.messages import deserialize, message_type, serialize

RING, COUNT = "std_srvs/srv/SetBool", "example_interfaces/action/Fibonacci"
CANCEL = "action_msgs/srv/CancelGoal"
DOMAIN = 100 + os.getpid() % 100
Handler = Callable[[Any], Any]


class Served:
    """A service of the peer's; its requests are answered by `pump`, unless the handler gives None."""

    def __init__(self, peer: Peer, name: str, kind: str, handler: Handler) -> None:
        self.peer, self.kind, self.handler = peer, kind, handler
        self.requests, self.reply = names.request(name), names.reply(name)
        self.done = 0
        self.heads: list[bytes] = []
        peer.received[self.requests] = []
        self.write(b"", times=0)
        peer.send(op="read", topic=self.requests, type=names.dds_type(f"{kind}_Request"))

    def pump(self) -> None:
        for data in self.peer.received[self.requests][self.done :]:
            self.done += 1
            self.heads.append(data[4:20])
            request = deserialize(data[:4] + data[20:], f"{self.kind}_Request")
            response = self.handler(request)
            if response is not None:
                self.answer(self.heads[-1], serialize(response))

    def answer(self, head: bytes, data: bytes) -> None:
        self.write(data[:4] + head + data[4:])

    def write(self, data: bytes, times: int = 1) -> None:
        self.peer.send(
            op="write", topic=self.reply, type=names.dds_type(f"{self.kind}_Response"), data=data.hex(), times=times,
            node="/robot", pause=0.0, patience=0.0,
        )  # fmt: skip


class Ros2Caller(RunningBus):
    """A node that calls what peers serve."""

    def __init__(self, domain: int) -> None:
        super().__init__(ry.Bus(seed=1))
        self.domain = domain
        robot = self.bus.add(BridgedRobot(), "wheels")
        self.caller = self.bus.add(CallingNode(), "caller")
        stand_in(self.bus, robot, 200.0)
        self.sources: list[str] = []
        self.bus.add_message_observer(
            lambda topic, message, *_: self.sources.append(message.source) if topic.name == "/inputs" else 0
        )
        self.bridge = Ros2Bridge(domain)
        self.attached = Attached(self.bridge, self.bus)
        self.peers: list[Peer] = []
        self.served: list[Served] = []

    def peer(self) -> Peer:
        self.peers.append(Peer(self.domain))
        return self.peers[-1]

    def serve(self, peer: Peer, name: str, kind: str, handler: Handler) -> Served:
        self.served.append(Served(peer, name, kind, handler))
        return self.served[-1]

    def serve_until(self, condition: Callable[[], object]) -> None:
        """Answer what the peers are asked until something holds."""

        def serve() -> bool:
            for served in self.served:
                served.pump()
            return bool(condition())

        poll(serve)

    def serve_for(self, seconds: float) -> None:
        """Answer what the peers are asked while some time of the run passes [s]."""
        end_ns = self.bus.now_ns + round(seconds * 1e9)
        self.serve_until(lambda: self.bus.now_ns >= end_ns)

    def stop(self) -> None:
        self.end()
        self.attached.__exit__(None, None, None)
        for peer in self.peers:
            peer.close()
        super().stop()


@pytest.fixture
def live() -> Iterator[Ros2Caller]:
    with Ros2Caller(DOMAIN) as live:
        yield live.start()


def ding(request: Any) -> Any:
    return ry.srv.SetBool.Response(success=request.data, message="foreign ding")


@pytest.fixture
def not_started() -> Iterator[Ros2Caller]:
    """Before its clock goes."""
    with Ros2Caller(DOMAIN) as live:
        yield live


def test_call_waits_for_its_server_and_is_answered(not_started: Ros2Caller) -> None:
    live = not_started
    first = live.caller.call()  # at the first instant
    live.start()
    live.serve_for(1.0)  # nobody is there yet
    assert not first.done()
    live.serve(live.peer(), "/ring", RING, ding)
    live.serve_until(first.done)
    second = live.in_run(lambda: live.caller.call(data=False))
    live.serve_until(second.done)
    assert live.caller.outcomes == ["foreign ding"] * 2
    assert [future.result.success for future in (first, second)] == [True, False]
    assert live.bridge.counts["asked"] == 2
    assert live.sources == ["/robot"] * 2


def test_responses_of_other_clients_are_ignored(live: Ros2Caller) -> None:
    served = live.serve(live.peer(), "/ring", RING, lambda request: None)
    future = live.in_run(live.caller.call)
    live.serve_until(lambda: bool(served.heads))
    data = serialize(ding(ry.srv.SetBool.Request()))
    (number,) = np.frombuffer(served.heads[0][8:], np.int64)
    served.answer((7).to_bytes(8, "little") + served.heads[0][8:], data)  # of this number, to somebody else
    served.answer(served.heads[0][:8] + int(number + 1).to_bytes(8, "little"), data)  # to a call that was not made
    live.serve_for(1.0)
    assert not future.done()
    served.answer(served.heads[0], data)
    live.serve_until(future.done)
    served.answer(served.heads[0], data)  # once more
    live.serve_for(0.5)
    assert len(live.sources) == 1


def test_malformed_response_fails_the_call(live: Ros2Caller) -> None:
    served = live.serve(live.peer(), "/ring", RING, lambda request: None)
    future = live.in_run(live.caller.call)
    live.serve_until(lambda: bool(served.heads))
    served.answer(served.heads[0], b"\0\1\0\0\1\0\0\0\xff\xff\xff\x7f")
    live.serve_until(future.done)
    assert "the answer is malformed" in str(future.error)
    assert live.bridge.counts["malformed"] == 1


def test_lost_server_fails_its_calls(live: Ros2Caller) -> None:
    served = live.serve(live.peer(), "/ring", RING, lambda request: None)
    future = live.in_run(live.caller.call)
    live.serve_until(lambda: bool(served.heads))
    live.peers.pop().close()
    live.serve_until(future.done)
    assert "who served it has gone" in str(future.error)


def test_service_of_another_type_is_logged_once(live: Ros2Caller) -> None:
    live.serve(live.peer(), "/ring", "std_srvs/srv/Trigger", lambda request: None)
    live.serve_until(lambda: live.bridge.counts["another type"] > 1)
    live.serve_until(lambda: any("somebody serves /ring as" in line for line in live.log_lines))
    assert len([line for line in live.log_lines if "somebody serves /ring as" in line]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("cancelled", [False, True])
def test_goals_have_feedback_results_and_cancel(live: Ros2Caller, cancelled: bool) -> None:
    peer, action = live.peer(), ry.action.Fibonacci
    goals: list[Any] = []
    heads: list[bytes] = []

    def accept(request: Any) -> Any:
        goals.append(request)
        return action.SendGoal.Response(accepted=request.goal.order > 0)

    live.serve(peer, "/count/_action/send_goal", f"{COUNT}_SendGoal", accept)
    result = live.serve(peer, "/count/_action/get_result", f"{COUNT}_GetResult", lambda request: None)
    cancel = live.serve(
        peer, "/count/_action/cancel_goal", CANCEL, lambda request: message_type(f"{CANCEL}_Response")()
    )
    refused = live.in_run(lambda: live.caller.send(-1))
    live.serve_until(refused.done)
    assert "rejected" in str(refused.error)
    goal = live.in_run(lambda: live.caller.send(3))
    live.serve_until(lambda: bool(result.heads))
    assert goal.accepted
    assert goals[-1].goal.order == 3
    kind = f"{COUNT}_FeedbackMessage"
    for sequence in ([0], [0, 1]):
        data = serialize(action.FeedbackMessage(goal_id=goals[-1].goal_id, feedback=action.Feedback(sequence=sequence)))
        peer.send(
            op="write", topic="rt/count/_action/feedback", type=names.dds_type(kind), data=data.hex(), node="/robot",
            pause=1.5,
        )  # fmt: skip
    live.serve_until(lambda: "[0, 1]" in live.caller.outcomes)
    if cancelled:
        live.in_run(goal.cancel)
        live.serve_until(lambda: bool(cancel.heads))
    heads += result.heads
    status = 5 if cancelled else 4
    answer = action.GetResult.Response(status=status, result=action.Result(sequence=[0, 1, 1]))
    result.answer(heads[-1], serialize(answer))
    live.serve_until(goal.done)
    assert int(goal.status) == status
    assert live.caller.outcomes[-3:] == ["[0]", "[0, 1]", "[0, 1, 1]"]
