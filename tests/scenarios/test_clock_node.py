"""A run's clock obeys the standard services of simulators."""

from __future__ import annotations

from typing import Any

import pytest

import roboyard as ry
from roboyard.bus import Future
from roboyard.scenarios.clock_node import ClockNode
from roboyard.scenarios.control import Control


class Hand(ry.Node):
    """Calls them."""

    def ask(self, service: str, kind: Any, **fields: Any) -> Future:
        return self.service_client(service, kind).call(kind.Request(**fields))


@pytest.fixture
def control() -> Control:
    return Control()


@pytest.fixture
def hand(control: Control) -> Any:
    with ry.Bus() as bus:
        control.bind(bus)
        bus.add(ClockNode(control=control), "clock")
        yield bus.add(Hand(), "hand")


def answer(hand: Hand, service: str, kind: Any, **fields: Any) -> Any:
    future = hand.ask(service, kind, **fields)
    hand.bus.executor.run_until(hand.now_ns)
    return future.result


def state(value: int) -> Any:
    return ry.msg.simulation_interfaces.SimulationState(state=value)


def test_pause_resume_and_state(hand: Hand) -> None:
    assert answer(hand, "/get_simulation_state", ry.srv.GetSimulationState).state.state == 1
    assert answer(hand, "/set_simulation_state", ry.srv.SetSimulationState, state=state(2)).result.result == 1
    assert hand.bus.executor.paused
    assert answer(hand, "/get_simulation_state", ry.srv.GetSimulationState).state.state == 2
    assert answer(hand, "/set_simulation_state", ry.srv.SetSimulationState, state=state(1)).result.result == 1
    assert not hand.bus.executor.paused


def test_an_unknown_state_is_refused(hand: Hand) -> None:
    result = answer(hand, "/set_simulation_state", ry.srv.SetSimulationState, state=state(9)).result
    assert result.result == 0
    assert "no state 9" in result.error_message


def test_steps_are_for_paused_runs(hand: Hand, control: Control) -> None:
    assert answer(hand, "/step_simulation", ry.srv.StepSimulation, steps=3).result.result == 3
    assert control.next_step() is None
    control.pause()
    assert answer(hand, "/step_simulation", ry.srv.StepSimulation, steps=2).result.result == 1
    assert [control.next_step() for _ in range(3)] == [0.0, 0.0, None]


def test_reset_ends_the_run_and_says_so(hand: Hand, control: Control) -> None:
    assert answer(hand, "/reset_simulation", ry.srv.ResetSimulation).result.result == 1
    assert control.stopping
    assert control.resetting
