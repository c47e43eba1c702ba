"""Protocols of a run and its robots for whatever adds to a run: people, missions, faults, actors.

`Run` and `RobotHandle` implement them.  Modules that add to a run import these protocols instead of `Run`, which
imports those modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from roboyard.bus import Bus, Node
from roboyard.description import Model
from roboyard.description.extent import PoseLike
from roboyard.grids.terrain import Terrain
from roboyard.manipulation import Groups
from roboyard.simulation import Simulation, Truth
from roboyard.simulation.nodes import FurnitureNode, PersonNode


class RobotBuilder(Protocol):
    """One robot of a run, to which nodes can be added."""

    @property
    def name(self) -> str:
        """Name of the robot in the run."""

    @property
    def namespace(self) -> str:
        """Namespace of its topics: "" or "/name"."""

    @property
    def truth(self) -> Truth:
        """Ground truth of its pose and velocity."""

    @property
    def groups(self) -> Groups:
        """Its joint groups and grippers."""

    def resources(self) -> Mapping[str, Any]:
        """Return the resources that its nodes may request, by name."""

    def add_node(
        self, node: Node, /, name: str, *, remap: dict[str, str] | None = None, namespace: str | None = None
    ) -> Node:
        """Start a node in the robot's namespace and return it."""


class RunBuilder(Protocol):
    """A run to which models, nodes and people can be added.

    Attributes:
        base_folder: Folder in which relative paths are looked up first.
        simulation: Physics of the run.
        bus: Bus of all nodes.
        terrain: Uneven ground of the scenario; None without.
        objects: Names of the scenario's objects.
        devices: Nodes of the devices, by the name of their model.
        people: Nodes of the people, by name.
    """

    base_folder: Path | None
    simulation: Simulation
    bus: Bus
    terrain: Terrain | None
    objects: tuple[str, ...]
    devices: dict[str, FurnitureNode]
    people: dict[str, PersonNode]

    @property
    def robots(self) -> Mapping[str, RobotBuilder]:
        """Robots by name; the first one is the main robot."""

    def resources(self) -> Mapping[str, Any]:
        """Return the resources that nodes without a robot may request, by name."""

    def add_object(self, model: Model, name: str | None = None, pose: PoseLike = (0.0, 0.0, 0.0)) -> str:
        """Add a model without nodes and return its name."""

    def add_person_node(self, name: str, node: PersonNode) -> PersonNode:
        """Start the node of a person whose body is in the simulation, and evaluate the person from now on."""

    def remove(self, name: str) -> None:
        """Remove a robot, device, person or object. Raises UnknownNameError."""
