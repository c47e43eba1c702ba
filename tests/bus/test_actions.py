"""Action goals pass through their states to one final state, and state the reason of a failure."""

from __future__ import annotations

import pytest
from tests.harness.bus import BusHarness, Goal

import roboyard as ry
from roboyard.bus import GoalHandle
from roboyard.errors import MessageError, UnknownNameError
from roboyard.messages.convert.action_goals import GoalStatus

Fibonacci = ry.action.Fibonacci


class CounterConfig(ry.Config):
    """Configuration of `Counter`."""

    preempt: bool = ry.parameter(True, runtime=True)


class Counter(ry.Node[CounterConfig]):
    """Counts up to ``order`` at 10 Hz."""

    def setup(self) -> None:
        self.server = self.action_server("count", Fibonacci, self.on_goal, preempt=self.config.preempt)
        self.timer(0.1, self.tick)
        self.counts: dict[bytes, list[int]] = {}

    def on_goal(self, handle: GoalHandle) -> None:
        if handle.goal.order < 0:
            handle.reject("order must not be negative")
        elif handle.goal.order < 1000:
            handle.accept()
            self.counts[handle.id] = []

    def tick(self) -> None:
        for handle in self.server.active_goals:
            count = self.counts[handle.id]
            result = Fibonacci.Result(sequence=count)
            if handle.is_cancel_requested:
                handle.set_canceled(result, "as you wish")
            elif len(count) >= handle.goal.order:
                handle.succeed(result)
            else:
                count.append(len(count))
                handle.publish_feedback(Fibonacci.Feedback(sequence=list(count)))


def start_counting(harness: BusHarness, order: int, namespace: str = "") -> Goal:
    return harness.start_goal(f"{namespace}/count", Fibonacci, order=order)


def test_goal_gives_feedback_and_succeeds(harness: BusHarness) -> None:
    harness.add(Counter(), "server")
    goal = start_counting(harness, 3)
    harness.deliver()
    assert goal.accepted
    assert goal.status is GoalStatus.EXECUTING
    assert not goal.done()
    harness.wait_for(goal, timeout=2.0)
    assert harness.now_ns == 400_000_000
    assert goal.succeeded
    assert list(goal.result.sequence) == [0, 1, 2]
    assert [len(feedback.sequence) for feedback in goal.feedback] == [1, 2, 3]


def test_rejected_goal_gives_reason(harness: BusHarness) -> None:
    harness.add(Counter(), "server")
    rejected, ignored = start_counting(harness, -1), start_counting(harness, 5000)
    harness.deliver()
    assert rejected.accepted is False
    assert rejected.error_message == "order must not be negative"
    with pytest.raises(ry.RoboyardError, match="goal rejected: order must not be negative"):
        _ = rejected.result
    assert ignored.accepted is False
    assert "did not accept it" in ignored.error_message


def test_canceled_goal_stops_without_success(harness: BusHarness) -> None:
    harness.add(Counter(), "server")
    goal = start_counting(harness, 100)
    harness.run_for(0.55)
    goal.cancel()
    harness.wait_for(goal)
    assert goal.status is GoalStatus.CANCELED
    assert goal.error_message == "as you wish"
    assert len(goal.result.sequence) == 5
    second_cancel = goal.cancel()
    harness.run_for(0.1)
    assert second_cancel.result.return_code == 3


def test_newer_goal_preempts_unless_servers_run_several(harness: BusHarness) -> None:
    harness.add(Counter(), "server")
    harness.add(Counter(preempt=False), "side", namespace="b")
    for namespace, statuses in (("", [GoalStatus.ABORTED, GoalStatus.SUCCEEDED]), ("/b", [GoalStatus.SUCCEEDED] * 2)):
        first = start_counting(harness, 5, namespace)
        harness.run_for(0.25)
        second = start_counting(harness, 2, namespace)
        harness.wait_for(first)
        harness.wait_for(second)
        assert [first.status, second.status] == statuses


def test_preempted_goal_gives_reason(harness: BusHarness) -> None:
    harness.add(Counter(), "server")
    first, second = start_counting(harness, 5), start_counting(harness, 2)
    harness.wait_for(second)
    assert first.error_message == "preempted by a newer goal"


def test_goal_fails_without_server_and_when_it_is_removed(harness: BusHarness) -> None:
    unserved_goal = start_counting(harness, 1)
    harness.deliver()
    with pytest.raises(UnknownNameError, match="no server for service /count/_action/send_goal"):
        _ = unserved_goal.result
    server = harness.add(Counter(), "server")
    goal = start_counting(harness, 50)
    harness.run_for(0.5)
    harness.bus.remove(server)
    harness.wait_for(goal, timeout=0.5)
    assert goal.status is GoalStatus.ABORTED
    with pytest.raises(ry.RoboyardError, match="was closed"):
        _ = goal.result


def test_action_refuses_other_types_and_goals(harness: BusHarness) -> None:
    node = harness.add(ry.Node(), "node")
    for invalid in (3, None, ry.msg.Twist, ry.srv.Trigger):
        for create in (lambda t: node.action_server("x", t, print), lambda t: node.action_client("x", t)):
            with pytest.raises(MessageError, match="node /node: .* is not a valid action type"):
                create(invalid)
    client = node.action_client("x", Fibonacci)
    for invalid in (None, ry.msg.Twist(), Fibonacci.Result(), Fibonacci.Goal):
        with pytest.raises(MessageError, match="action /x requires a goal of example_interfaces/action/Fibonacci, got"):
            client.send(invalid)
