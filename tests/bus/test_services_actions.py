"""Services answer once; actions go through their states and tell the reason."""

from __future__ import annotations

import pytest

import roboyard as ry
from roboyard.bus import GoalHandle, NodeError, Status
from roboyard.errors import InputError, MessageError, UnknownNameError

Fibonacci = ry.action.Fibonacci


class Adder(ry.Node):
    def setup(self) -> None:
        self.service("add", ry.srv.AddTwoInts, self.add)

    def add(self, request: object) -> object:
        if request.a == 13:
            raise InputError("thirteen is not served")
        if request.a == 99:
            raise KeyError("bug")
        return ry.srv.AddTwoInts.Response(sum=request.a + request.b)


class Asker(ry.Node):
    def setup(self) -> None:
        self.client = self.service_client("add", ry.srv.AddTwoInts)

    def ask(self, a: int, b: int) -> object:
        return self.client.call(ry.srv.AddTwoInts.Request(a=a, b=b))


def test_a_call_is_answered_through_the_queue() -> None:
    with ry.Bus() as bus:
        asker, _ = bus.add(Asker(), "asker"), bus.add(Adder(), "adder")
        answers = [asker.ask(n, 1) for n in range(5)]
        assert not any(answer.done() for answer in answers)
        bus.executor.run_until(0)
        assert [answer.result.sum for answer in answers] == [1, 2, 3, 4, 5]


def test_a_call_to_nobody_a_refusal_and_a_bug_are_told_apart() -> None:
    with ry.Bus() as bus:
        asker = bus.add(Asker(), "asker")
        alone = asker.ask(1, 1)
        bus.executor.run_until(0)
        with pytest.raises(UnknownNameError, match="nobody serves /add"):
            _ = alone.result
        bus.add(Adder(), "adder")
        refused = asker.ask(13, 1)
        bus.executor.run_until(0)
        with pytest.raises(InputError, match="thirteen"):
            _ = refused.result
        with pytest.raises(MessageError, match="takes a example_interfaces/srv/AddTwoInts request"):
            asker.client.call(ry.msg.String())
        with pytest.raises(InputError, match="served by /adder already"):
            bus.nodes["/asker"].service("add", ry.srv.AddTwoInts, lambda r: None)
        asker.ask(99, 1)
        with pytest.raises(NodeError, match="node /adder, service /add"):
            bus.executor.run_until(0)


class Counter(ry.Node):
    """Counts up to ``order`` at 10 Hz."""

    preempt: bool = ry.param(True)

    def setup(self) -> None:
        self.server = self.action_server("count", Fibonacci, self.on_goal, preempt=self.preempt)
        self.timer(0.1, self.tick)
        self.counts: dict[bytes, list[int]] = {}

    def on_goal(self, handle: GoalHandle) -> None:
        if handle.goal.order < 0:
            handle.reject("order must not be negative")
        elif handle.goal.order < 1000:
            handle.accept()
            self.counts[handle.id] = []

    def tick(self) -> None:
        for handle in self.server.active:
            count = self.counts[handle.id]
            result = Fibonacci.Result(sequence=count)
            if handle.canceling:
                handle.cancel(result, "as you wish")
            elif len(count) >= handle.goal.order:
                handle.succeed(result)
            else:
                count.append(len(count))
                handle.feedback(Fibonacci.Feedback(sequence=list(count)))


class Client(ry.Node):
    def setup(self) -> None:
        self.client = self.action_client("count", Fibonacci)
        self.feedback: list[int] = []

    def send(self, order: int) -> object:
        return self.client.send(Fibonacci.Goal(order=order), feedback=lambda f: self.feedback.append(len(f.sequence)))


@pytest.fixture
def bus() -> ry.Bus:
    with ry.Bus() as bus:
        yield bus


def test_a_goal_runs_gives_feedback_and_succeeds(bus: ry.Bus) -> None:
    bus.add(Counter(), "server")
    client = bus.add(Client(), "client")
    goal = client.send(3)
    bus.executor.run_until(0)
    assert goal.accepted
    assert goal.status is Status.EXECUTING
    assert not goal.done()
    assert bus.executor.run_until(2 * 10**9, until=goal.done)
    assert bus.now_ns == 400_000_000
    assert goal.succeeded
    assert list(goal.result.sequence) == [0, 1, 2]
    assert client.feedback == [1, 2, 3]


def test_rejection_gives_the_reason(bus: ry.Bus) -> None:
    bus.add(Counter(), "server")
    client = bus.add(Client(), "client")
    refused, ignored = client.send(-1), client.send(5000)
    bus.executor.run_until(0)
    assert refused.accepted is False
    assert refused.reason == "order must not be negative"
    with pytest.raises(ry.RoboyardError, match="goal rejected: order must not be negative"):
        _ = refused.result
    assert ignored.accepted is False
    assert "did not take it" in ignored.reason


def test_cancel_stops_and_is_no_success(bus: ry.Bus) -> None:
    bus.add(Counter(), "server")
    client = bus.add(Client(), "client")
    goal = client.send(100)
    bus.executor.run_for(0.55)
    goal.cancel()
    assert bus.executor.run_until(10**10, until=goal.done)
    assert goal.status is Status.CANCELED
    assert goal.reason == "as you wish"
    assert len(goal.result.sequence) == 5
    late = goal.cancel()
    bus.executor.run_for(0.1)
    assert late.result.return_code == 3


def test_a_newer_goal_preempts_the_older_or_runs_beside_it(bus: ry.Bus) -> None:
    bus.add(Counter(), "server")
    bus.add(Counter(preempt=False), "side", namespace="b")
    for namespace, statuses in (("", [Status.ABORTED, Status.SUCCEEDED]), ("/b", [Status.SUCCEEDED] * 2)):
        client = bus.add(Client(), "client", namespace=namespace)
        first = client.send(5)
        bus.executor.run_for(0.25)
        second = client.send(2)
        bus.executor.run_for(2.0)
        assert [first.status, second.status] == statuses


def test_preempted_goals_say_so(bus: ry.Bus) -> None:
    bus.add(Counter(), "server")
    client = bus.add(Client(), "client")
    first, _ = client.send(5), client.send(2)
    bus.executor.run_for(1.0)
    assert first.reason == "preempted by a newer goal"


def test_without_a_server_or_when_it_leaves_the_client_hears_it(bus: ry.Bus) -> None:
    client = bus.add(Client(), "client")
    nobody = client.send(1)
    bus.executor.run_until(0)
    with pytest.raises(UnknownNameError, match="nobody serves /count/_action/send_goal"):
        _ = nobody.result
    server = bus.add(Counter(), "server")
    goal = client.send(50)
    bus.executor.run_for(0.5)
    bus.remove(server)
    bus.executor.run_for(0.5)
    assert goal.done()
    assert goal.status is Status.ABORTED
    with pytest.raises(ry.RoboyardError, match="went away"):
        _ = goal.result


def test_what_is_no_type_or_no_goal_is_refused_at_once(bus: ry.Bus) -> None:
    node = bus.add(ry.Node(), "node")
    for wrong in (3, None, ry.msg.Twist, Fibonacci, "std_srvs/srv/Trigger"):
        for make in (lambda t: node.service("x", t, print), lambda t: node.service_client("x", t)):
            with pytest.raises(MessageError, match="node /node: .* is no service"):
                make(wrong)
    for wrong in (3, None, ry.msg.Twist, ry.srv.Trigger):
        for make in (lambda t: node.action_server("x", t, print), lambda t: node.action_client("x", t)):
            with pytest.raises(MessageError, match="node /node: .* is no action"):
                make(wrong)
    client = node.action_client("x", Fibonacci)
    for wrong in (None, ry.msg.Twist(), Fibonacci.Result(), Fibonacci.Goal):
        with pytest.raises(MessageError, match="action /x takes a goal of example_interfaces/action/Fibonacci, not"):
            client.send(wrong)
    with pytest.raises(InputError, match="callback 3 cannot be called"):
        node.subscribe("x", ry.msg.String, 3)


def test_what_is_no_node_is_refused(bus: ry.Bus) -> None:
    class Careless(ry.Node):
        def __init__(self) -> None:
            pass

    for wrong in (object(), ry.Node, None, Careless()):
        with pytest.raises(InputError, match="node /x: .*(is no node|does not call Node's)"):
            bus.add(wrong, "x")
    assert list(bus.nodes) == ["/roboyard"]
