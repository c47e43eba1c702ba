"""Each service call gets one response through the executor's queue, or an error that states the reason."""

from __future__ import annotations

import pytest
from tests.harness.bus import BusHarness

import roboyard as ry
from roboyard.bus import Future, NodeError
from roboyard.errors import InputError, MessageError, UnknownNameError

AddTwoInts = ry.srv.AddTwoInts


class Adder(ry.Node):
    """Adds two integers, rejects 13, and raises an unexpected error at 99."""

    def setup(self) -> None:
        self.service("add", AddTwoInts, self.add)

    def add(self, request: object) -> object:
        if request.a == 13:
            raise InputError("thirteen is not served")
        if request.a == 99:
            raise KeyError("bug")
        return AddTwoInts.Response(sum=request.a + request.b)


def start_adding(harness: BusHarness, a: int, b: int) -> Future:
    return harness.start_call("/add", AddTwoInts, a=a, b=b)


def test_service_responses_are_delivered_through_the_queue() -> None:
    with BusHarness((Adder(), "adder")) as harness:
        responses = [start_adding(harness, n, 1) for n in range(5)]
        assert not any(response.done() for response in responses)
        harness.deliver()
        assert [response.result.sum for response in responses] == [1, 2, 3, 4, 5]


def test_service_errors_distinguish_absence_rejection_and_bug(harness: BusHarness) -> None:
    unserved = start_adding(harness, 1, 1)
    harness.deliver()
    with pytest.raises(UnknownNameError, match="no server for service /add"):
        _ = unserved.result
    harness.add(Adder(), "adder")
    rejected = start_adding(harness, 13, 1)
    harness.deliver()
    with pytest.raises(InputError, match="thirteen"):
        _ = rejected.result
    with pytest.raises(MessageError, match="requires a example_interfaces/srv/AddTwoInts request"):
        harness.start_call("/add", AddTwoInts, ry.msg.String())
    with pytest.raises(InputError, match="already served by /adder"):
        harness.add(ry.Node(), "other").service("add", AddTwoInts, lambda r: None)
    start_adding(harness, 99, 1)
    with pytest.raises(NodeError, match="node /adder, service /add"):
        harness.deliver()


def test_service_refuses_other_types(harness: BusHarness) -> None:
    node = harness.add(ry.Node(), "node")
    for invalid in (3, None, ry.msg.Twist, ry.action.Fibonacci, "std_srvs/srv/Trigger"):
        for create in (lambda t: node.service("x", t, print), lambda t: node.service_client("x", t)):
            with pytest.raises(MessageError, match="node /node: .* is not a valid service type"):
                create(invalid)
