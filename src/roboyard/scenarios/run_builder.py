"""Protocols of a simulated run and its robots for whatever adds to a run: people, missions, faults, actors.

`Run` and `RobotHandle` implement them.  Modules that add to a run import these protocols instead of `Run`, which
imports those modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from roboyard.evaluation.scenario_key import RobotBuilder, RunBuilder
from roboyard.grids.terrain import Terrain
from roboyard.manipulation import SemanticDescription
from roboyard.physics.world import GroundTruth
from roboyard.simulation import Simulation
from roboyard.simulation.nodes import DeviceNode, PersonNode


class SimulatedRobotBuilder(RobotBuilder, Protocol):
    """One simulated robot of a run, to which nodes can be added."""

    @property
    def truth(self) -> GroundTruth:
        """Ground truth of its pose and velocity."""

    @property
    def groups(self) -> SemanticDescription:
        """Its joint groups and grippers."""


class SimulatedRunBuilder(RunBuilder, Protocol):
    """A simulated run to which models, nodes and people can be added.

    Attributes:
        simulation: Physics of the run.
        terrain: Uneven ground of the scenario; None without.
        objects: Names of the scenario's objects.
        devices: Nodes of the devices, by the name of their model.
        people: Nodes of the people, by name.
    """

    simulation: Simulation
    terrain: Terrain | None
    objects: tuple[str, ...]
    devices: dict[str, DeviceNode]
    people: dict[str, PersonNode]

    @property
    def robots(self) -> Mapping[str, SimulatedRobotBuilder]:
        """Robots by name; the first one is the main robot."""

    def add_person_node(self, name: str, node: PersonNode) -> PersonNode:
        """Start the node of a person whose body is in the simulation, and evaluate the person from now on."""

    def remove(self, name: str) -> None:
        """Remove a robot, device, person or object. Raises UnknownNameError."""
