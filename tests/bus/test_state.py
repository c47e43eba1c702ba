"""A run that is saved and loaded goes on as if nothing had happened, and what cannot be saved is named."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import roboyard as ry
from roboyard.bus.futures import Future
from roboyard.errors import RunError
from roboyard.geometry import SE3
from roboyard.messages import serialize
from roboyard.scenarios.state.codec import decode, encode


class Walker(ry.Node):
    """Walks at random and says where it is."""

    fields = ("position", "trail")
    step: float = ry.param(1.0)

    def setup(self) -> None:
        self.position = np.zeros(2)
        self.trail: list[float] = []
        self.out = self.publisher("position", ry.msg.Float64)
        self.name_tag = self.publisher("tag", ry.msg.String, latched=True)
        self.broadcast(SE3.from_xyz_rpy((0, 0, 1)), "base", "laser", static=True)
        self.timer(0.1, self.tick)
        self.timer(0.25, self.tag)

    def tick(self) -> None:
        self.position = self.position + self.step * self.random.normal(size=2)
        self.trail.append(float(self.position[0]))
        self.out.publish(ry.msg.Float64(data=float(self.position[0])))
        self.broadcast(SE3.from_xyz_rpy((self.position[0], self.position[1], 0.0)), "odom", "base")
        if len(self.trail) == 7:
            self.set_parameter("step", 0.5)
            self.report_health("warn", "tired", steps=7)

    def tag(self) -> None:
        self.name_tag.publish(ry.msg.String(data=f"walker {len(self.trail)}"))


class Listener(ry.Node):
    """Listens, and looks frames up."""

    fields = ("heard",)

    def setup(self) -> None:
        self.heard: list[float] = []
        self.subscribe("position", ry.msg.Float64, lambda message: self.heard.append(message.data))
        self.timer(0.3, self.look, start=True)

    def look(self) -> None:
        if self.transforms.can_lookup("odom", "laser"):
            self.heard.append(self.transforms.lookup("odom", "laser").x)


def start() -> tuple[ry.Bus, list[tuple[int, str, bytes]]]:
    bus, seen = ry.Bus(seed=5), []
    bus.add(Walker(), "walker")
    bus.add(Listener(), "listener")
    bus.tap(lambda topic, message, node, time_ns: seen.append((time_ns, topic.name, serialize(message))))
    return bus, seen


@given(st.integers(0, 2_900_000_000))
def test_going_on_from_a_saved_state_equals_never_having_stopped(moment_ns: int) -> None:
    whole, all_seen = start()
    whole.executor.run_until(3 * 10**9)

    first, _ = start()
    first.executor.run_until(moment_ns)
    saved = pickle.loads(pickle.dumps(first.save()))
    first.executor.run_until(3 * 10**9)  # what is saved is a copy

    second, seen = start()
    second.load(saved)
    second.executor.run_until(3 * 10**9)
    assert seen == [item for item in all_seen if item[0] > moment_ns]
    assert second.nodes["/listener"].heard == whole.nodes["/listener"].heard
    late = second.add(Listener(), "late", remap={"position": "tag_number"})
    tags: list[str] = []
    late.subscribe("tag", ry.msg.String, lambda message: tags.append(message.data))
    second.executor.run_until(3 * 10**9)
    assert tags == [whole.topics["/tag"].publishers[0].last.data]
    for bus in (whole, first, second):
        bus.close()


class Server(ry.Node):
    """Takes goals."""

    def setup(self) -> None:
        self.server = self.action_server("count", ry.action.Fibonacci, lambda goal: goal.accept())


class Counter(ry.Node):
    """Counts up to a goal's order, and takes its goals up again."""

    def setup(self) -> None:
        self.goals: dict[bytes, ry.GoalHandle] = {}
        self.server = self.action_server("count", ry.action.Fibonacci, self.take, preempt=False, on_restored=self.mine)
        self.timer(0.1, self.tick)

    def take(self, goal: ry.GoalHandle) -> None:
        if goal.goal.order > 9:
            goal.reject("too far")
            return
        goal.accept()
        self.mine(goal)

    def mine(self, goal: ry.GoalHandle) -> None:
        self.goals[goal.id] = goal

    def tick(self) -> None:
        for goal in list(self.goals.values()):
            done = round((self.now_ns - goal.accepted_ns) / 1e8)
            if goal.canceling or done >= goal.goal.order:
                result = ry.action.Fibonacci.Result(sequence=list(range(done)))
                (goal.cancel if goal.canceling else goal.succeed)(result)
                del self.goals[goal.id]
            else:
                goal.feedback(ry.action.Fibonacci.Feedback(sequence=[done]))


class Asker(ry.Node):
    """Sends goals one after the other, some side by side, cancels a few, and publishes all that it hears of them."""

    fields = ("sent",)

    def setup(self) -> None:
        self.sent = 0
        self.open: list[ry.GoalFuture] = []
        self.out = self.publisher("heard", ry.msg.String)
        self.client = self.action_client("count", ry.action.Fibonacci, on_restored=self.follow)
        self.timer(0.35, self.send)
        self.timer(0.9, self.cancel)

    def send(self) -> None:
        self.sent += 1
        self.follow(self.client.send(ry.action.Fibonacci.Goal(order=3 + 4 * (self.sent % 3))))

    def cancel(self) -> None:
        waiting = [goal for goal in self.open if not goal.done()]
        if waiting:
            waiting[0].cancel()

    def follow(self, goal: ry.GoalFuture) -> None:
        self.open.append(goal)
        goal.on_feedback(lambda feedback: self.say(f"{goal.id.hex()[:6]} at {feedback.sequence[0]}"))
        goal.then(lambda end: self.say(f"{goal.id.hex()[:6]} {goal.status.name} {end.error or end.result.sequence}"))

    def say(self, text: str) -> None:
        self.out.publish(ry.msg.String(data=text))


@given(st.integers(0, 3_900_000_000))
def test_goals_under_way_go_on_from_a_saved_state(moment_ns: int) -> None:
    """Feedback, results, cancels, ids, the list of what was: every message is what it would have been."""

    def begin() -> tuple[ry.Bus, list[tuple[int, str, str, bytes]]]:
        bus, seen = ry.Bus(seed=5), []
        bus.tap(lambda topic, message, node, now: seen.append((now, topic.name, node, serialize(message))))
        bus.add(Asker(), "asker")
        bus.add(Counter(), "counter")
        return bus, seen

    whole, all_seen = begin()
    whole.executor.run_until(moment_ns)
    saved = decode(*encode(whole.save()))
    whole.executor.run_until(4 * 10**9)
    again, seen = begin()
    again.load(saved)
    assert decode(*encode(again.save())).keys() == saved.keys()  # at once: nothing is on its way
    again.executor.run_until(4 * 10**9)
    assert [item for item in seen if item[0] > moment_ns] == [item for item in all_seen if item[0] > moment_ns]
    assert any("CANCELED" in str(item[3]) for item in all_seen)
    whole.close()
    again.close()


class Slow(ry.Node):
    """Answers later."""

    def setup(self) -> None:
        self.answer = Future()
        self.service("ask", ry.srv.Trigger, lambda _: self.answer)


def test_a_service_that_owes_an_answer_is_named() -> None:
    with ry.Bus() as bus:
        slow, asker = bus.add(Slow(), "slow"), bus.add(ry.Node(), "asker")
        asker.service_client("ask", ry.srv.Trigger).call(ry.srv.Trigger.Request())
        bus.executor.run_for(0.1)
        with pytest.raises(RunError, match="node /slow: cannot be saved: 1 calls of /ask are unanswered"):
            bus.save()
        slow.answer.resolve(ry.srv.Trigger.Response())
        bus.executor.run_for(0.1)
        bus.save()


def _generator(node: Any) -> None:
    node.fields, node.walk = ("walk",), (n for n in range(3))


def _fails(node: Any) -> None:
    node.save = lambda: 1 / 0


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda node: node.after(9.0, print), "1 one-shot timers are pending"),
        (lambda node: node.offload(sum, [1], latency=9.0, then=print), "1 pieces of offloaded work"),
        (_generator, "attribute 'walk': cannot pickle 'generator' object"),
        (lambda node: setattr(node, "fields", ("nothing",)), "attribute 'nothing'"),
        (_fails, "ZeroDivisionError"),
        (
            lambda node: node.action_client("/count", ry.action.Fibonacci).send(ry.action.Fibonacci.Goal()),
            "1 goals of /count are under way",
        ),
    ],
)
def test_a_node_that_cannot_be_saved_is_named(prepare: Any, message: str) -> None:
    with ry.Bus() as bus:
        bus.add(Server(), "server", namespace="other", remap={"count": "/count2"})
        node = bus.add(ry.Node(), "node", namespace="r")
        bus.add(Server(), "zserver", remap={})
        prepare(node)
        bus.executor.run_for(1.0)
        with pytest.raises(RunError, match=rf"node /r/node: cannot be saved: .*{message}"):
            bus.save()


def test_a_server_with_a_goal_cannot_be_saved_until_it_is_done() -> None:
    with ry.Bus() as bus:
        server, client = bus.add(Server(), "server"), bus.add(ry.Node(), "client")
        client.action_client("count", ry.action.Fibonacci).send(ry.action.Fibonacci.Goal())
        with pytest.raises(RunError, match="messages are on their way"):
            bus.save()
        bus.executor.run_for(1.0)
        with pytest.raises(RunError, match="node /server: cannot be saved: 1 goals of /count"):
            bus.save()
        server.server.active[0].succeed(ry.action.Fibonacci.Result())
        bus.executor.run_for(1.0)
        assert set(bus.save()["nodes"]) == {"/roboyard", "/server", "/client"}


def test_a_timer_that_load_sets_again_is_no_hindrance() -> None:
    with ry.Bus() as bus:
        node = bus.add(ry.Node(), "node")
        node.after(1.0, print, restored=True)
        cancelled = node.after(1.0, print)
        cancelled.cancel()
        assert node.save()["timers"] == []


def test_a_state_of_another_set_up_is_refused() -> None:
    bus, _ = start()
    bus.executor.run_until(10**9)
    saved = bus.save()
    bus.executor.run_until(3 * 10**9)
    with pytest.raises(RunError, match="cannot jump"):
        bus.load(saved)
    bus.close()
    with ry.Bus() as other:
        with pytest.raises(RunError, match=r"the state is of the nodes .*/walker.* \(on this bus are /roboyard\)"):
            other.load(saved)
        other.add(ry.Node(), "walker")
        other.add(Listener(), "listener")
        with pytest.raises(RunError, match="node /walker: was set up otherwise"):
            other.load(saved)
