"""Removal of a node ends every call and goal that waits for it, and no callback of a removed node runs."""

from __future__ import annotations

import math
from threading import Event

import pytest
from tests.harness.bus import BusHarness, FakeActionServer, Hold

import roboyard as ry
from roboyard.bus import Future, NodeError
from roboyard.errors import InputError, RunError

Fibonacci = ry.action.Fibonacci
Trigger = ry.srv.Trigger


def test_removed_node_gets_no_timers_and_no_results(harness: BusHarness) -> None:
    node, callbacks = harness.add(ry.Node(), "node"), []
    node.call_after(0.5, lambda: callbacks.append("after"))
    node.timer(0.1, lambda: callbacks.append("timer"))
    node.offload(sum, [1], latency=0.3, on_done=lambda task: callbacks.append("offload"))
    harness.bus.remove(node)
    harness.run_for(1.0)
    assert callbacks == []
    assert harness.bus.offload.pending == 0


@pytest.mark.parametrize("delivered", [False, True])
def test_calls_and_goals_fail_when_their_server_is_removed(harness: BusHarness, delivered: bool) -> None:
    server = harness.add(FakeActionServer("count", Fibonacci, Hold()), "server")
    server.service("later", Trigger, lambda request: Future("never"))
    call = harness.start_call("/later", Trigger)
    goal = harness.start_goal("/count", Fibonacci, order=3)
    if delivered:
        harness.run_for(0.5)
    harness.bus.remove(server)
    harness.run_for(0.5)
    for future in (call, goal):
        assert future.done()
        assert "was closed" in str(future.error)


def test_node_added_twice_stays_on_its_first_bus() -> None:
    with ry.Bus() as bus, ry.Bus() as other:
        node, ticks = bus.add(ry.Node(), "node"), []
        node.timer(0.1, lambda: ticks.append(node.now))
        for second in (bus, other):
            with pytest.raises(RunError, match="node /node is already on a bus"):
                second.add(node, "again")
        with pytest.raises(InputError, match="Node /node is not on this bus"):
            other.remove(node)
        bus.executor.run_for(0.5)
        assert len(ticks) == 5
        assert list(bus.nodes) == ["/roboyard", "/node"]
        bus.remove(node)
        assert other.add(node, "node") is node


def test_setup_error_is_raised_even_if_close_fails(harness: BusHarness) -> None:
    class FailingNode(ry.Node):
        def setup(self) -> None:
            raise OSError("no such port")

        def close(self) -> None:
            self.port.close()

    with pytest.raises(NodeError, match="node /broken, setup.*no such port"):
        harness.add(FailingNode(), "broken")
    assert list(harness.bus.nodes) == ["/roboyard"]


def test_error_in_response_callback_names_the_caller(harness: BusHarness) -> None:
    client = harness.add(ry.Node(), "client")
    client.service_client("ring", Trigger).call(Trigger.Request()).add_done_callback(lambda response: 1 / 0)
    with pytest.raises(NodeError, match="node /client, response of /ring, at 0.000000 s: ZeroDivisionError"):
        harness.run_for(1.0)


def test_canceled_task_stops_and_its_result_is_dropped(harness: BusHarness) -> None:
    is_searching = Event()

    def search(is_stopped: object) -> int:
        while not is_stopped():
            is_searching.set()
        return 7

    node, finished, stop = harness.add(ry.Node(), "node"), [], Event()
    endless = node.offload(search, stop.is_set, latency=0.2, on_done=finished.append, cancel_event=stop)
    queued = node.offload(sum, [1], latency=0.2, on_done=finished.append)
    assert is_searching.wait(10.0)
    for task in (endless, queued):
        task.cancel()
        task.cancel()
    assert stop.is_set()
    remaining = node.offload(sum, [1, 2], latency=0.1, on_done=finished.append)
    harness.run_for(1.0)
    assert finished == [remaining]
    assert remaining.result == 3
    assert not endless.done()
    assert harness.bus.offload.pending == 0
    remaining.cancel()


def test_close_of_bus_stops_endless_tasks(harness: BusHarness) -> None:
    stop = Event()
    harness.bus.offload.submit("x", 100.0, stop.wait, cancel_event=stop)
    harness.close()
    assert stop.is_set()


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf])
def test_non_finite_delays_and_rates_are_refused(harness: BusHarness, seconds: float) -> None:
    node = harness.add(ry.Node(), "node")
    with pytest.raises(InputError, match="node /node: delay "):
        node.call_after(seconds, lambda: None)
    with pytest.raises(InputError, match="node /node: latency"):
        node.offload(sum, [1], latency=seconds, on_done=lambda task: None)
    if not math.isinf(seconds) or seconds < 0:
        with pytest.raises(InputError, match="rate"):
            harness.bus.executor.pacer.real_time_factor = seconds
    with pytest.raises(InputError, match=r"unknown health level 'fine' \(ok, warn, error, stale\)"):
        node.report_health("fine", "all well")  # type: ignore[arg-type]
