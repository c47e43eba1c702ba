"""External nodes use actions, latched topics, the clock and names of a run in the same way as nodes inside it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.harness.live_bus import LiveBus

import roboyard as ry
from roboyard.bus.socket import RemoteBus, connect
from roboyard.errors import RunError
from roboyard.messages.convert.action_goals import GoalStatus

Fibonacci = ry.action.Fibonacci


class FibonacciServer(ry.Node):
    """Counts up to the goal's order at 10 Hz."""

    def setup(self) -> None:
        self.server = self.action_server("count", Fibonacci, self.on_goal)
        self.label = self.publisher("label", ry.msg.String, latched=True)
        self.label.publish(ry.msg.String(data="the label"))
        self.timer(0.1, self.tick)
        self.sequence: list[int] = []

    def on_goal(self, goal: object) -> None:
        if goal.goal.order > 100:
            goal.reject("only up to 100")
        else:
            goal.accept()
            self.sequence = []

    def tick(self) -> None:
        for goal in self.server.active_goals:
            if goal.is_cancel_requested:
                goal.set_canceled(Fibonacci.Result(sequence=self.sequence), "as you wish")
            elif len(self.sequence) == goal.goal.order:
                goal.succeed(Fibonacci.Result(sequence=self.sequence))
            else:
                self.sequence.append(len(self.sequence))
                goal.publish_feedback(Fibonacci.Feedback(sequence=self.sequence.copy()))


@pytest.fixture
def live() -> Iterator[LiveBus]:
    """A live run that started at least 100 s of simulated time ago."""
    with LiveBus((FibonacciServer(), "robot"), factor=10.0, warm_up=100.0) as live:
        yield live


class GoalSender(ry.Node):
    """Sends goals, and stores feedback, labels and the times of its timer."""

    def setup(self) -> None:
        self.client = self.action_client("count", Fibonacci)
        self.feedback: list[int] = []
        self.goals = [self.send(order) for order in (3, 500)]
        self.labels: list[str] = []
        self.subscribe("label", ry.msg.String, lambda message: self.labels.append(message.data))
        self.clock: list[float] = []
        self.timer(0.5, lambda: self.clock.append(self.now))

    def send(self, order: int) -> object:
        return self.client.send(
            Fibonacci.Goal(order=order), feedback_callback=lambda message: self.feedback.append(len(message.sequence))
        )


def spin_until(bus: RemoteBus, condition: Callable[[], bool]) -> None:
    bus.spin(timeout=20.0, stop_condition=condition)
    assert condition()


def test_goals_reach_the_run_over_the_socket(live: LiveBus) -> None:
    for attempt in range(2):  # goals of the second connection must not be confused with those of the first
        with RemoteBus("yard") as bus:
            client = bus.add(GoalSender(), "client")
            assert client.client.is_available()
            spin_until(bus, lambda client=client: all(goal.done() for goal in client.goals))
            reached, rejected = client.goals
            assert reached.succeeded, attempt
            assert list(reached.result.sequence) == [0, 1, 2]
            assert client.feedback == [1, 2, 3]
            assert rejected.accepted is False
            assert rejected.error_message == "only up to 100"
            assert client.labels == ["the label"]
            client.goals.append(client.send(50))
            spin_until(bus, lambda client=client: len(client.feedback) > 5)
            client.goals[-1].cancel()
            spin_until(bus, client.goals[-1].done)
            assert client.goals[-1].status is GoalStatus.CANCELED
            assert client.goals[-1].error_message == "as you wish"


def test_remote_clock_starts_at_the_time_of_the_run(live: LiveBus) -> None:
    with RemoteBus() as bus:
        client = bus.add(GoalSender(), "client")
        spin_until(bus, lambda: len(client.clock) >= 3)
        assert client.clock[0] >= 100.4
        assert all(later - earlier == pytest.approx(0.5) for earlier, later in pairwise(client.clock))


def test_node_names_are_unique_over_processes_and_released(live: LiveBus) -> None:
    for _ in range(2):
        with RemoteBus() as first, RemoteBus() as second:
            with pytest.raises(RunError, match="node name /robot is already in use"):
                first.add(ry.Node(), "robot")
            first.add(ry.Node(), "guest")
            with pytest.raises(RunError, match="node name /guest is already in use"):
                second.add(ry.Node(), "guest")


def test_remote_latched_messages_health_and_log_arrive(live: LiveBus) -> None:
    received: list[tuple[str, str]] = []
    live.bus.add_message_observer(
        lambda topic, m, node, t: (
            received.append((topic.name, m.msg if topic.name == "/rosout" else m.status[0].name))
            if topic.name in ("/rosout", "/diagnostics")
            else None
        )
    )
    with RemoteBus() as bus:
        guest = bus.add(ry.Node(), "guest")
        guest.publisher("map", ry.msg.String, latched=True).publish(ry.msg.String(data="a map"))
        guest.log.info("here I am")
        guest.report_health("warn", "tired")
        with connect() as connection:
            connection.graph()

            def latched_maps() -> list[str]:
                return [p.last.data for p in live.bus.topics["/map"].publishers if p.last is not None]

            assert live.in_run(latched_maps) == ["a map"]
    live.in_run(lambda: None)
    assert ("/rosout", "here I am") in received
    assert ("/diagnostics", "/guest") in received


def test_remote_goal_is_aborted_when_its_server_is_removed(live: LiveBus) -> None:
    with RemoteBus() as bus:
        client = bus.add(GoalSender(), "client")
        goal = client.send(90)
        spin_until(bus, lambda: len(client.feedback) > 3)
        live.in_run(lambda: live.bus.remove(live.bus.nodes["/robot"]))
        spin_until(bus, goal.done)
        assert goal.status is GoalStatus.ABORTED
        assert "was closed" in str(goal.error)
        assert goal.error_message == "the action server was closed"


RUN = """
import sys
import roboyard as ry
from roboyard.bus.socket import SocketServer

class BlobPublisher(ry.Node):
    def setup(self):
        self.out = self.publisher("blob", ry.msg.UInt8MultiArray)
        self.service("never", ry.srv.Trigger, lambda request: ry.bus.Future("never"))
        self.timer(0.01, lambda: self.out.publish(ry.msg.UInt8MultiArray(data=bytes(300_000))))

bus = ry.Bus()
bus.add(BlobPublisher(), "publisher")
server = SocketServer(bus, "doomed")
bus.executor.pacer.real_time_factor = 1.0
print("up", flush=True)
bus.executor.run_until(10**16)
"""


def test_remote_nodes_end_in_order_when_the_run_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "import roboyard.bus\n" + RUN], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            with connect("doomed") as connection, RemoteBus("doomed") as bus:
                connection.subscribe("/blob")
                guest = bus.add(ry.Node(), "guest")
                guest.subscribe("blob", ry.msg.UInt8MultiArray, lambda message: sizes.append(len(message.data)))
                sizes: list[int] = []
                call = guest.service_client("never", ry.srv.Trigger).call(ry.srv.Trigger.Request())
                spin_until(bus, lambda: len(sizes) > 5)
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                assert all(len(message.message.data) == 300_000 for message in connection.messages(5.0))
                with pytest.raises(RunError, match="(lost connection to run 'doomed'|run 'doomed' has ended)"):
                    connection.graph()
                bus.spin(timeout=5.0)
                assert call.done()
                assert "has ended" in str(call.error)
                guest.log.info("nobody hears this")
        finally:
            process.kill()
