"""Our nodes call services and actions of a node in another process, which speaks as rmw_cyclonedds does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import numpy as np
import pytest
from tests.bridges.ros2.conftest import Peer
from tests.bridges.test_external import Caller
from tests.bridges.web.conftest import Wheels

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
        peer.heard[self.requests] = []
        self.write(b"", times=0)
        peer.say(op="read", topic=self.requests, type=names.dds_type(f"{kind}_Request"))

    def pump(self) -> None:
        for data in self.peer.heard[self.requests][self.done :]:
            self.done += 1
            self.heads.append(data[4:20])
            request = deserialize(data[:4] + data[20:], f"{self.kind}_Request")
            response = self.handler(request)
            if response is not None:
                self.answer(self.heads[-1], serialize(response))

    def answer(self, head: bytes, data: bytes) -> None:
        self.write(data[:4] + head + data[4:])

    def write(self, data: bytes, times: int = 1) -> None:
        self.peer.say(
            op="write", topic=self.reply, type=names.dds_type(f"{self.kind}_Response"), data=data.hex(), times=times,
            node="/robot", pause=0.0, patience=0.0,
        )  # fmt: skip


class Live:
    def __init__(self, domain: int) -> None:
        self.domain = domain
        self.bus = ry.Bus(seed=1)
        wheels = self.bus.add(Wheels(), "wheels")
        self.caller = self.bus.add(Caller(), "caller")
        stand_in(self.bus, wheels, 200.0)
        self.sources: list[str] = []
        self.bus.tap(lambda topic, message, *_: self.sources.append(message.source) if topic.name == "/inputs" else 0)
        self.bus.executor.pacer.factor = 1.0
        self.lines: list[str] = []
        self.bus.log_sinks.append(lambda record: self.lines.append(record.text))
        self.bridge = Ros2Bridge(domain)
        self.attached = Attached(self.bridge, self.bus)
        self._thread = Thread(target=lambda: self.bus.executor.run_until(10**12), daemon=True)
        self.peers: list[Peer] = []
        self.served: list[Served] = []

    def start(self) -> Live:
        self._thread.start()
        return self

    def peer(self) -> Peer:
        self.peers.append(Peer(self.domain))
        return self.peers[-1]

    def serve(self, peer: Peer, name: str, kind: str, handler: Handler) -> Served:
        self.served.append(Served(peer, name, kind, handler))
        return self.served[-1]

    def do(self, what: Callable[[], Any]) -> Any:
        """On the executor's thread."""
        found: list[Any] = []
        self.bus.inputs.query(lambda: found.append(what()))
        assert self.wait(lambda: bool(found))
        return found[0]

    def wait(self, until: Callable[[], bool], seconds: float = 60.0) -> bool:
        end = time.monotonic() + seconds
        while not until() and time.monotonic() < end:
            for served in self.served:
                served.pump()
            time.sleep(0.02)
        return until()

    def close(self) -> None:
        self.bus.executor.stop()
        self._thread.join()
        self.attached.__exit__(None, None, None)
        for peer in self.peers:
            peer.close()
        self.bus.close()


@pytest.fixture
def live() -> Iterator[Live]:
    made = Live(DOMAIN).start()
    yield made
    made.close()


def ding(request: Any) -> Any:
    return ry.srv.SetBool.Response(success=request.data, message="foreign ding")


@pytest.fixture
def begun() -> Iterator[Live]:
    """Before its clock goes."""
    made = Live(DOMAIN)
    yield made
    made.close()


def test_a_call_waits_for_its_server_and_is_answered(begun: Live) -> None:
    live = begun
    first = live.caller.call()  # at the first instant
    live.start()
    assert not live.wait(first.done, 1.0)  # nobody is there yet
    live.serve(live.peer(), "/ring", RING, ding)
    assert live.wait(first.done)
    second = live.do(lambda: live.caller.call(data=False))
    assert live.wait(second.done)
    assert live.caller.came == ["foreign ding"] * 2
    assert [future.result.success for future in (first, second)] == [True, False]
    assert live.bridge.counts["asked"] == 2
    assert live.sources == ["/robot"] * 2


def test_other_clients_answers_are_theirs(live: Live) -> None:
    served = live.serve(live.peer(), "/ring", RING, lambda request: None)
    future = live.do(live.caller.call)
    assert live.wait(lambda: bool(served.heads))
    data = serialize(ding(ry.srv.SetBool.Request()))
    (number,) = np.frombuffer(served.heads[0][8:], np.int64)
    served.answer((7).to_bytes(8, "little") + served.heads[0][8:], data)  # of this number, to somebody else
    served.answer(served.heads[0][:8] + int(number + 1).to_bytes(8, "little"), data)  # to a call that was not made
    assert not live.wait(future.done, 1.0)
    served.answer(served.heads[0], data)
    assert live.wait(future.done)
    served.answer(served.heads[0], data)  # once more
    assert not live.wait(lambda: len(live.sources) > 1, 0.5)


def test_a_malformed_answer_fails_the_call(live: Live) -> None:
    served = live.serve(live.peer(), "/ring", RING, lambda request: None)
    future = live.do(live.caller.call)
    assert live.wait(lambda: bool(served.heads))
    served.answer(served.heads[0], b"\0\1\0\0\1\0\0\0\xff\xff\xff\x7f")
    assert live.wait(future.done)
    assert "the answer is malformed" in str(future.error)
    assert live.bridge.counts["malformed"] == 1


def test_a_server_that_goes_fails_what_it_was_asked(live: Live) -> None:
    served = live.serve(live.peer(), "/ring", RING, lambda request: None)
    future = live.do(live.caller.call)
    assert live.wait(lambda: bool(served.heads))
    live.peers.pop().close()
    assert live.wait(future.done)
    assert "who served it has gone" in str(future.error)


def test_somebody_who_serves_something_else_is_told(live: Live) -> None:
    live.serve(live.peer(), "/ring", "std_srvs/srv/Trigger", lambda request: None)
    assert live.wait(lambda: live.bridge.counts["another type"] > 1)
    assert live.wait(lambda: any("somebody serves /ring as" in line for line in live.lines))
    assert len([line for line in live.lines if "somebody serves /ring as" in line]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("cancelled", [False, True])
def test_goals_with_feedback_results_and_cancel(live: Live, cancelled: bool) -> None:
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
    refused = live.do(lambda: live.caller.send(-1))
    assert live.wait(refused.done)
    assert "rejected" in str(refused.error)
    goal = live.do(lambda: live.caller.send(3))
    assert live.wait(lambda: bool(result.heads))
    assert goal.accepted
    assert goals[-1].goal.order == 3
    kind = f"{COUNT}_FeedbackMessage"
    for sequence in ([0], [0, 1]):
        data = serialize(action.FeedbackMessage(goal_id=goals[-1].goal_id, feedback=action.Feedback(sequence=sequence)))
        peer.say(
            op="write", topic="rt/count/_action/feedback", type=names.dds_type(kind), data=data.hex(), node="/robot",
            pause=1.5,
        )  # fmt: skip
    assert live.wait(lambda: "[0, 1]" in live.caller.came)
    if cancelled:
        live.do(goal.cancel)
        assert live.wait(lambda: bool(cancel.heads))
    heads += result.heads
    status = 5 if cancelled else 4
    answer = action.GetResult.Response(status=status, result=action.Result(sequence=[0, 1, 1]))
    result.answer(heads[-1], serialize(answer))
    assert live.wait(goal.done)
    assert int(goal.status) == status
    assert live.caller.came[-3:] == ["[0]", "[0, 1]", "[0, 1, 1]"]
