"""Nodes in other processes take part in a run like its own: actions, latched topics, the clock, names."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread

import pytest

import roboyard as ry
from roboyard.bus import Status
from roboyard.bus.socket import RemoteBus, SocketServer, connect
from roboyard.errors import RunError

Fibonacci = ry.action.Fibonacci


class Robot(ry.Node):
    """Counts up to the goal's order, one a tenth of a second."""

    def setup(self) -> None:
        self.server = self.action_server("count", Fibonacci, self.on_goal)
        self.tag = self.publisher("tag", ry.msg.String, latched=True)
        self.tag.publish(ry.msg.String(data="the tag"))
        self.later: list[str] = []
        self.timer(0.1, self.tick)
        self.sequence: list[int] = []

    def on_goal(self, goal: object) -> None:
        if goal.goal.order > 100:
            goal.reject("only up to 100")
        else:
            goal.accept()
            self.sequence = []

    def tick(self) -> None:
        for goal in self.server.active:
            if goal.canceling:
                goal.cancel(Fibonacci.Result(sequence=self.sequence), "as you wish")
            elif len(self.sequence) == goal.goal.order:
                goal.succeed(Fibonacci.Result(sequence=self.sequence))
            else:
                self.sequence.append(len(self.sequence))
                goal.feedback(Fibonacci.Feedback(sequence=self.sequence.copy()))


@pytest.fixture(autouse=True)
def private_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@pytest.fixture
def run() -> Iterator[ry.Bus]:
    """A live run in a thread, at ten times real time, that began 100 s ago."""
    bus = ry.Bus()
    bus.add(Robot(), "robot")
    bus.executor.run_for(100.0)
    server = SocketServer(bus, "yard")
    bus.executor.pacer.factor = 10.0
    thread = Thread(target=lambda: bus.executor.run_until(10**16))
    thread.start()
    yield bus
    bus.executor.stop()
    thread.join()
    server.close()
    bus.close()


def in_run(bus: ry.Bus, question: object) -> object:
    """Ask on the run's own thread."""
    answers, done = [], Event()
    bus.inputs.query(lambda: (answers.append(question()), done.set()))
    assert done.wait(10.0)
    return answers[0]


class Client(ry.Node):
    """Sends goals, notes what it hears, and leaves when all are done."""

    def setup(self) -> None:
        self.client = self.action_client("count", Fibonacci)
        self.feedback: list[int] = []
        self.goals = [self.send(order) for order in (3, 500)]
        self.tags: list[str] = []
        self.subscribe("tag", ry.msg.String, lambda message: self.tags.append(message.data))
        self.clock: list[float] = []
        self.timer(0.5, lambda: self.clock.append(self.now))

    def send(self, order: int) -> object:
        return self.client.send(
            Fibonacci.Goal(order=order), feedback=lambda message: self.feedback.append(len(message.sequence))
        )


def follow(bus: RemoteBus, until: object) -> None:
    bus.spin(timeout=20.0, until=until)
    assert until()


def test_actions_reach_over_the_socket(run: ry.Bus) -> None:
    for attempt in range(2):  # the second comes from another connection and must not be taken for the first
        with RemoteBus("yard") as bus:
            client = bus.add(Client(), "client")
            assert client.client.available()
            follow(bus, lambda client=client: all(goal.done() for goal in client.goals))
            reached, refused = client.goals
            assert reached.succeeded, attempt
            assert list(reached.result.sequence) == [0, 1, 2]
            assert client.feedback == [1, 2, 3]
            assert refused.accepted is False
            assert refused.reason == "only up to 100"
            assert client.tags == ["the tag"]
            client.goals.append(client.send(50))
            follow(bus, lambda client=client: len(client.feedback) > 5)
            client.goals[-1].cancel()
            follow(bus, client.goals[-1].done)
            assert client.goals[-1].status is Status.CANCELED
            assert client.goals[-1].reason == "as you wish"


def test_a_remote_clock_begins_where_the_run_is(run: ry.Bus) -> None:
    with RemoteBus() as bus:
        client = bus.add(Client(), "client")
        follow(bus, lambda: len(client.clock) >= 3)
        assert client.clock[0] >= 100.4
        assert all(later - earlier == pytest.approx(0.5) for earlier, later in pairwise(client.clock))


def test_names_are_unique_over_all_processes_and_free_again(run: ry.Bus) -> None:
    for _ in range(2):
        with RemoteBus() as one, RemoteBus() as two:
            with pytest.raises(RunError, match="a node /robot takes part in the run already"):
                one.add(ry.Node(), "robot")
            one.add(ry.Node(), "guest")
            with pytest.raises(RunError, match="a node /guest takes part in the run already"):
                two.add(ry.Node(), "guest")


def test_latched_messages_health_and_log_of_a_remote_node_arrive(run: ry.Bus) -> None:
    heard: list[tuple[str, str]] = []
    run.tap(
        lambda topic, m, node, t: (
            heard.append((topic.name, m.msg if topic.name == "/rosout" else m.status[0].name))
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

            def late() -> list[str]:
                return [p.last.data for p in run.topics["/map"].publishers if p.last is not None]

            assert in_run(run, late) == ["a map"]
    in_run(run, lambda: None)
    assert ("/rosout", "here I am") in heard
    assert ("/diagnostics", "/guest") in heard


def test_a_follower_of_an_actions_topics_hears_that_its_server_left(run: ry.Bus) -> None:
    with RemoteBus() as bus:
        client = bus.add(Client(), "client")
        goal = client.send(90)
        follow(bus, lambda: len(client.feedback) > 3)
        in_run(run, lambda: run.remove(run.nodes["/robot"]))
        follow(bus, goal.done)
        assert goal.status is Status.ABORTED
        assert "went away" in str(goal.error)
        assert goal.reason == "its server went away"


RUN = """
import sys
import roboyard as ry
from roboyard.bus.socket import SocketServer

class Talker(ry.Node):
    def setup(self):
        self.out = self.publisher("blob", ry.msg.UInt8MultiArray)
        self.service("never", ry.srv.Trigger, lambda request: ry.bus.Future("never"))
        self.timer(0.01, lambda: self.out.publish(ry.msg.UInt8MultiArray(data=bytes(300_000))))

bus = ry.Bus()
bus.add(Talker(), "talker")
server = SocketServer(bus, "doomed")
bus.executor.pacer.factor = 1.0
print("up", flush=True)
bus.executor.run_until(10**16)
"""


def test_followers_of_a_run_that_is_killed_end_in_order(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "import roboyard.bus\n" + RUN], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            with connect("doomed") as connection, RemoteBus("doomed") as bus:
                connection.subscribe("/blob")
                guest = bus.add(ry.Node(), "guest")
                guest.subscribe("blob", ry.msg.UInt8MultiArray, lambda message: got.append(len(message.data)))
                got: list[int] = []
                call = guest.service_client("never", ry.srv.Trigger).call(ry.srv.Trigger.Request())
                follow(bus, lambda: len(got) > 5)
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                assert all(len(message.message.data) == 300_000 for message in connection.messages(5.0))
                with pytest.raises(RunError, match="run 'doomed' (is gone|has ended)"):
                    connection.graph()
                bus.spin(timeout=5.0)
                assert call.done()
                assert "has ended" in str(call.error)
                guest.log.info("nobody hears this")
        finally:
            process.kill()
