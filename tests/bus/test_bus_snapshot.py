"""A bus that is loaded from a snapshot continues with identical messages; an error names state that cannot be saved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.bus import BusHarness

import roboyard as ry
from roboyard.bus.services import Future
from roboyard.errors import RunError
from roboyard.geometry import SE3
from roboyard.scenarios.snapshot_file import decode_snapshot, encode_snapshot


class RandomWalkConfig(ry.Config):
    """Configuration of `RandomWalk`."""

    step: float = ry.parameter(1.0, runtime=True)


class RandomWalk(ry.Node[RandomWalkConfig]):
    """A random walk that publishes its position."""

    state_fields = ("position", "track_x")

    def setup(self) -> None:
        self.position = np.zeros(2)
        self.track_x: list[float] = []
        self.out = self.publisher("position", ry.msg.Float64)
        self.label = self.publisher("label", ry.msg.String, latched=True)
        self.send_transform(SE3.from_xyz_rpy((0, 0, 1)), "base", "laser", static=True)
        self.timer(0.1, self.tick)
        self.timer(0.25, self.publish_label)

    def tick(self) -> None:
        self.position = self.position + self.config.step * self.random.normal(size=2)
        self.track_x.append(float(self.position[0]))
        self.out.publish(ry.msg.Float64(data=float(self.position[0])))
        self.send_transform(SE3.from_xyz_rpy((self.position[0], self.position[1], 0.0)), "odom", "base")
        if len(self.track_x) == 7:
            self.set_parameter("step", 0.5)
            self.report_health("warn", "tired", steps=7)

    def publish_label(self) -> None:
        self.label.publish(ry.msg.String(data=f"walker {len(self.track_x)}"))


class PositionListener(ry.Node):
    """Stores received positions and positions from transform lookups."""

    state_fields = ("positions",)

    def setup(self) -> None:
        self.positions: list[float] = []
        self.subscribe("position", ry.msg.Float64, lambda message: self.positions.append(message.data))
        self.timer(0.3, self.record_transform, immediate=True)

    def record_transform(self) -> None:
        if self.transforms.can_lookup("odom", "laser"):
            self.positions.append(self.transforms.lookup("odom", "laser").x)


def make_walk() -> BusHarness:
    return BusHarness((RandomWalk(), "walker"), (PositionListener(), "listener"), seed=5)


@given(st.integers(0, 2_900_000_000))
def test_loaded_bus_continues_with_identical_messages(snapshot_ns: int) -> None:
    uninterrupted = make_walk()
    uninterrupted.run_until(3.0)

    first = make_walk()
    first.bus.executor.run_until(snapshot_ns)
    second = first.snapshot_roundtrip(make_walk)
    first.run_until(3.0)  # the saved state is a copy: this must not change it
    second.run_until(3.0)
    assert second.wire(after_ns=snapshot_ns) == uninterrupted.wire(after_ns=snapshot_ns)
    assert second.bus.nodes["/listener"].positions == uninterrupted.bus.nodes["/listener"].positions
    labels = second.record("/label", ry.msg.String)
    second.deliver()
    assert labels.data == [uninterrupted.last("/label").data]
    for harness in (uninterrupted, first, second):
        harness.close()


class NonRestoringActionServer(ry.Node):
    """Accepts goals, never finishes them, and does not restore them from a snapshot."""

    def setup(self) -> None:
        self.server = self.action_server("count", ry.action.Fibonacci, lambda goal: goal.accept())


class CountingServer(ry.Node):
    """Counts up to a goal's order, and restores its goals from a snapshot."""

    def setup(self) -> None:
        self.goals: dict[bytes, ry.GoalHandle] = {}
        self.server = self.action_server(
            "count", ry.action.Fibonacci, self.on_goal, preempt=False, on_goal_restored=self.follow
        )
        self.timer(0.1, self.tick)

    def on_goal(self, goal: ry.GoalHandle) -> None:
        if goal.goal.order > 9:
            goal.reject("too far")
            return
        goal.accept()
        self.follow(goal)

    def follow(self, goal: ry.GoalHandle) -> None:
        self.goals[goal.id] = goal

    def tick(self) -> None:
        for goal in list(self.goals.values()):
            count = round((self.now_ns - goal.accepted_ns) / 1e8)
            if goal.is_cancel_requested or count >= goal.goal.order:
                result = ry.action.Fibonacci.Result(sequence=list(range(count)))
                (goal.set_canceled if goal.is_cancel_requested else goal.succeed)(result)
                del self.goals[goal.id]
            else:
                goal.publish_feedback(ry.action.Fibonacci.Feedback(sequence=[count]))


class GoalSender(ry.Node):
    """Sends overlapping goals, cancels some of them, and publishes the feedback and result of each."""

    state_fields = ("sent",)

    def setup(self) -> None:
        self.sent = 0
        self.goals: list[ry.GoalFuture] = []
        self.out = self.publisher("report", ry.msg.String)
        self.client = self.action_client("count", ry.action.Fibonacci, on_goal_restored=self.follow)
        self.timer(0.35, self.send)
        self.timer(0.9, self.cancel)

    def send(self) -> None:
        self.sent += 1
        self.follow(self.client.send(ry.action.Fibonacci.Goal(order=3 + 4 * (self.sent % 3))))

    def cancel(self) -> None:
        waiting = [goal for goal in self.goals if not goal.done()]
        if waiting:
            waiting[0].cancel()

    def follow(self, goal: ry.GoalFuture) -> None:
        name = goal.id.hex()[:6]
        self.goals.append(goal)
        goal.on_feedback(lambda feedback: self.report(f"{name} at {feedback.sequence[0]}"))
        goal.add_done_callback(lambda end: self.report(f"{name} {goal.status.name} {end.error or end.result.sequence}"))

    def report(self, text: str) -> None:
        self.out.publish(ry.msg.String(data=text))


@given(st.integers(0, 3_900_000_000))
def test_loaded_goals_continue_with_identical_messages(snapshot_ns: int) -> None:
    """Feedback, results, cancellations, ids and the list of past goals are those of a run without interruption."""

    def make() -> BusHarness:
        return BusHarness((GoalSender(), "sender"), (CountingServer(), "counter"), seed=5)

    with make() as uninterrupted:
        uninterrupted.bus.executor.run_until(snapshot_ns)
        saved = decode_snapshot(*encode_snapshot(uninterrupted.bus.save_state()))
        uninterrupted.run_until(4.0)
        with make() as restored:
            restored.bus.load_state(saved)
            assert (
                decode_snapshot(*encode_snapshot(restored.bus.save_state())).keys() == saved.keys()
            )  # a loaded bus can be saved at once
            restored.run_until(4.0)
            assert restored.wire(after_ns=snapshot_ns) == uninterrupted.wire(after_ns=snapshot_ns)
        assert any("CANCELED" in text for text in uninterrupted.published("/report").data)


def test_pending_service_call_prevents_saving(harness: BusHarness) -> None:
    response = Future()
    harness.add(ry.Node(), "slow").service("ask", ry.srv.Trigger, lambda request: response)
    call = harness.start_call("/ask", ry.srv.Trigger)
    harness.deliver()
    with pytest.raises(RunError, match="node /slow: cannot be saved: 1 calls of /ask are pending"):
        harness.bus.save_state()
    response.set_result(ry.srv.Trigger.Response())
    harness.wait_for(call)
    harness.bus.save_state()


def _add_generator_field(node: Any) -> None:
    node.state_fields, node.walk = ("walk",), (n for n in range(3))


def _make_save_state_fail(node: Any) -> None:
    node.save_state = lambda: 1 / 0


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda node: node.call_after(9.0, print), "1 one-shot timers are pending"),
        (lambda node: node.offload(sum, [1], latency=9.0, on_done=print), "1 offloaded tasks are pending"),
        (_add_generator_field, "attribute 'walk': cannot pickle 'generator' object"),
        (lambda node: setattr(node, "state_fields", ("nothing",)), "attribute 'nothing'"),
        (_make_save_state_fail, "ZeroDivisionError"),
        (
            lambda node: node.action_client("/count", ry.action.Fibonacci).send(ry.action.Fibonacci.Goal()),
            "1 goals of /count are active",
        ),
    ],
)
def test_node_that_cannot_be_saved_is_named(harness: BusHarness, prepare: Any, message: str) -> None:
    harness.add(NonRestoringActionServer(), "server", namespace="other", remap={"count": "/count2"})
    node = harness.add(ry.Node(), "node", namespace="r")
    harness.add(NonRestoringActionServer(), "zserver", remap={})
    prepare(node)
    harness.run_for(1.0)
    with pytest.raises(RunError, match=rf"node /r/node: cannot be saved: .*{message}"):
        harness.bus.save_state()


def test_server_with_a_goal_prevents_saving_until_it_ends(harness: BusHarness) -> None:
    server = harness.add(NonRestoringActionServer(), "server")
    goal = harness.start_goal("/count", ry.action.Fibonacci)
    with pytest.raises(RunError, match="messages are in transit"):
        harness.bus.save_state()
    harness.deliver()
    with pytest.raises(RunError, match="node /server: cannot be saved: 1 goals of /count"):
        harness.bus.save_state()
    server.server.active_goals[0].succeed(ry.action.Fibonacci.Result())
    harness.wait_for(goal)
    assert set(harness.bus.save_state()["nodes"]) == {"/roboyard", "/server", "/test"}


def test_pending_timer_restored_by_its_node_does_not_prevent_saving(harness: BusHarness) -> None:
    node = harness.add(ry.Node(), "node")
    node.call_after(1.0, print, restored_by_node=True)
    canceled = node.call_after(1.0, print)
    canceled.cancel()
    assert node.save_state()["timers"] == []


def test_snapshot_of_another_setup_is_refused() -> None:
    with make_walk() as harness:
        harness.run_until(1.0)
        saved = harness.bus.save_state()
        harness.run_until(3.0)
        with pytest.raises(RunError, match="cannot set the clock"):
            harness.bus.load_state(saved)
    with ry.Bus() as other:
        with pytest.raises(RunError, match=r"the snapshot has the nodes .*/walker.* \(this bus has .*/roboyard\)"):
            other.load_state(saved)
        other.add(ry.Node(), "walker")
        other.add(PositionListener(), "listener")
        with pytest.raises(RunError, match="node /walker: cannot load the state"):
            other.load_state(saved)
