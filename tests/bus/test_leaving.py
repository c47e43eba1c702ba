"""Nodes come and go while others still wait for them: nobody is left waiting, and nothing happens to who is gone."""

from __future__ import annotations

import math
from threading import Event

import pytest

import roboyard as ry
from roboyard.bus import Future, NodeError
from roboyard.errors import InputError, RunError

Fibonacci = ry.action.Fibonacci
Trigger = ry.srv.Trigger


class Plain(ry.Node):
    """Does what the test says."""


class Server(ry.Node):
    """Takes goals and calls and never ends them."""

    def setup(self) -> None:
        self.server = self.action_server("count", Fibonacci, lambda goal: goal.accept())
        self.service("later", Trigger, lambda request: Future("never"))


def test_nothing_happens_to_a_node_that_left() -> None:
    with ry.Bus() as bus:
        node, seen = bus.add(Plain(), "node"), []
        node.after(0.5, lambda: seen.append("after"))
        node.timer(0.1, lambda: seen.append("timer"))
        node.offload(sum, [1], latency=0.3, then=lambda done: seen.append("offload"))
        bus.remove(node)
        bus.executor.run_for(1.0)
        assert seen == []
        assert bus.offload.pending == 0


@pytest.mark.parametrize("delivered", [False, True])
def test_calls_and_goals_fail_when_their_server_leaves(delivered: bool) -> None:
    with ry.Bus() as bus:
        server, client = bus.add(Server(), "server"), bus.add(Plain(), "client")
        call = client.service_client("later", Trigger).call(Trigger.Request())
        goal = client.action_client("count", Fibonacci).send(Fibonacci.Goal(order=3))
        if delivered:
            bus.executor.run_for(0.5)
        bus.remove(server)
        bus.executor.run_for(0.5)
        for future in (call, goal):
            assert future.done()
            assert "went away" in str(future.error)


def test_adding_a_node_twice_leaves_it_where_it_is() -> None:
    with ry.Bus() as bus, ry.Bus() as other:
        node, ticks = bus.add(Plain(), "node"), []
        node.timer(0.1, lambda: ticks.append(node.now))
        for wrong in (bus, other):
            with pytest.raises(RunError, match="node /node is on a bus already"):
                wrong.add(node, "again")
        with pytest.raises(InputError, match="Plain /node is not on this bus"):
            other.remove(node)
        bus.executor.run_for(0.5)
        assert len(ticks) == 5
        assert list(bus.nodes) == ["/roboyard", "/node"]
        bus.remove(node)
        assert other.add(node, "node") is node


def test_the_error_of_setup_is_told_even_if_closing_fails_too() -> None:
    class Broken(ry.Node):
        def setup(self) -> None:
            raise OSError("no such port")

        def close(self) -> None:
            self.port.close()

    with ry.Bus() as bus:
        with pytest.raises(NodeError, match="node /broken, setup.*no such port"):
            bus.add(Broken(), "broken")
        assert list(bus.nodes) == ["/roboyard"]


def test_what_a_caller_does_with_an_answer_is_done_in_its_name() -> None:
    with ry.Bus() as bus:
        client = bus.add(Plain(), "client")
        client.service_client("ring", Trigger).call(Trigger.Request()).then(lambda answer: 1 / 0)
        with pytest.raises(NodeError, match="node /client, response of /ring, at 0.000000 s: ZeroDivisionError"):
            bus.executor.run_for(1.0)


def test_work_can_be_given_up_and_is_told_so() -> None:
    looked = Event()

    def search(stopped: object) -> int:
        while not stopped():
            looked.set()
        return 7

    with ry.Bus() as bus:
        node, got, stop = bus.add(Plain(), "node"), [], Event()
        endless = node.offload(search, stop.is_set, latency=0.2, then=got.append, stop=stop)
        queued = node.offload(sum, [1], latency=0.2, then=got.append)
        assert looked.wait(10.0)
        for work in (endless, queued):
            work.cancel()
            work.cancel()
        assert stop.is_set()
        kept = node.offload(sum, [1, 2], latency=0.1, then=got.append)
        bus.executor.run_for(1.0)
        assert got == [kept]
        assert kept.result == 3
        assert not endless.done()
        assert bus.offload.pending == 0
        kept.cancel()


def test_closing_tells_endless_work_to_stop() -> None:
    stop = Event()
    with ry.Bus() as bus:
        bus.offload.submit("x", 100.0, stop.wait, stop=stop)
    assert stop.is_set()


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf])
def test_times_that_are_none_are_refused(seconds: float) -> None:
    with ry.Bus() as bus:
        node = bus.add(Plain(), "node")
        with pytest.raises(InputError, match="node /node: a delay of"):
            node.after(seconds, lambda: None)
        with pytest.raises(InputError, match="node /node: latency"):
            node.offload(sum, [1], latency=seconds, then=lambda done: None)
        if not math.isinf(seconds) or seconds < 0:
            with pytest.raises(InputError, match="rate"):
                bus.executor.pacer.factor = seconds
        with pytest.raises(InputError, match=r"health 'fine' \(ok, warn, error, stale\)"):
            node.report_health("fine", "all well")  # type: ignore[arg-type]
