"""A run's clock offers the standard services of simulators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.harness.bus import BusHarness

from roboyard.messages import msg, srv
from roboyard.scenarios.nodes.simulation_control import SimulationControlNode
from roboyard.scenarios.run_control import RunControl


@pytest.fixture
def control() -> RunControl:
    """Of the run."""
    return RunControl()


@pytest.fixture
def harness(control: RunControl) -> Iterator[BusHarness]:
    """The bus of a run whose clock can be controlled."""
    with BusHarness() as harness:
        control.bind(harness.bus)
        harness.add(SimulationControlNode(control=control), "clock")
        yield harness


def call(harness: BusHarness, service: str, type_: Any, **fields: Any) -> Any:
    """Call a service that answers at once, also while the clock stands."""
    return harness.call(service, type_, timeout=0.0, **fields)


def set_state(harness: BusHarness, state: int) -> Any:
    """Ask the simulation for a state; returns the result."""
    value = msg.simulation_interfaces.SimulationState(state=state)
    return call(harness, "/set_simulation_state", srv.SetSimulationState, state=value).result


def test_clock_pauses_resumes_and_reports_its_state(harness: BusHarness) -> None:
    assert call(harness, "/get_simulation_state", srv.GetSimulationState).state.state == 1
    assert set_state(harness, 2).result == 1
    assert harness.bus.executor.paused
    assert call(harness, "/get_simulation_state", srv.GetSimulationState).state.state == 2
    assert set_state(harness, 1).result == 1
    assert not harness.bus.executor.paused


def test_unknown_simulation_state_is_refused(harness: BusHarness) -> None:
    result = set_state(harness, 9)
    assert result.result == 0
    assert "no state 9" in result.error_message


def test_steps_are_for_paused_runs(harness: BusHarness, control: RunControl) -> None:
    assert call(harness, "/step_simulation", srv.StepSimulation, steps=3).result.result == 3
    assert control.pop_step_request() is None
    control.pause()
    assert call(harness, "/step_simulation", srv.StepSimulation, steps=2).result.result == 1
    assert [control.pop_step_request() for _ in range(3)] == [0.0, 0.0, None]


def test_reset_ends_the_run_for_a_restart(harness: BusHarness, control: RunControl) -> None:
    assert call(harness, "/reset_simulation", srv.ResetSimulation).result.result == 1
    assert control.is_stopping
    assert control.is_resetting
