"""Simulations that a worker compiles once and that each test gets in their initial state."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from tests.harness.bus import BusHarness
from tests.harness.models import RIDE_HEIGHT, free_box, ground_plane, make_pose, make_world, room_walls, rover_model

from roboyard.simulation import Simulation
from roboyard.simulation.nodes import SimulationNode


def shared_simulation(make: Callable[[], Simulation]) -> Simulation:
    """The simulation that ``make`` builds, compiled once per worker and reset to its initial state.

    Tests that name the same function get the same object, one after the other: a test may step it, command it, begin
    faults in it and read it, but must neither add nor remove models nor close it, and must not need two at a time.

    Args:
        make: A function of a module, by which the simulation is known.

    Raises:
        AssertionError: a test before changed the models.
    """
    simulation, initial = _make_once(make)
    assert list(simulation.models) == initial["models"], f"a test changed the models of {make.__name__}"
    simulation.load_state(initial)
    return simulation


@cache
def _make_once(make: Callable[[], Simulation]) -> tuple[Simulation, dict[str, Any]]:
    simulation = make()
    return simulation, simulation.save_state()


def rover_in_room() -> Simulation:
    """The rover of `tests.harness.models` at rest in the middle of a room of 6 by 6 m, a crate ahead of it."""
    simulation = Simulation(make_world(ground_plane(), *room_walls()), seed=1)
    simulation.add(rover_model(), "rover", make_pose(z=RIDE_HEIGHT))
    simulation.add(free_box(), "crate", make_pose(1.0, 0.1, 0.1))
    return simulation


class SimulationHarness(BusHarness):
    """A bus with a simulation on it.

    Args:
        simulation: Tests may add models to it while the bus runs.
        seed: Of the bus.

    Attributes:
        simulation: As given.
        node: The node that drives it.
    """

    def __init__(self, simulation: Simulation, *, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.simulation = simulation
        self.node = self.bus.add(SimulationNode(simulation=simulation), "simulation")
