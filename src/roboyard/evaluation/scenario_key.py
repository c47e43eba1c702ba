"""Keys of scenario files that packages contribute: what their values must be, and what they change in a run.

A `RunPlugin` names its `ScenarioKey`s.  A run handles a key in the order of its stages: `ScenarioKey.resolve` finds the
files that the value names, `transform_world` changes the world's description, `node_parameters` sets parameters of
robots' nodes, and `apply` adds objects and nodes to the built run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from roboyard.bus import Bus, Node
from roboyard.description import Model, World
from roboyard.description.extent import PoseLike

T = TypeVar("T")


class FileLookup(Protocol):
    """Finds files that a scenario names."""

    def __call__(self, name: str, /) -> Path:
        """Return the absolute path of a file beside the scenario or in the working folder. Raises InputError."""


class RobotFiles(Protocol):
    """A robot's description, and the files that its package names."""

    @property
    def name(self) -> str:
        """Name of its kind, as its package states it."""

    @property
    def model(self) -> Model:
        """Its description."""

    def companion_file(self, key: str, /) -> Path | None:
        """Return the path of a file that its package names under a key; None without. Raises ConfigError."""


class RobotSetup(RobotFiles, Protocol):
    """A robot of a scenario before it is in a run."""

    @property
    def is_main(self) -> bool:
        """Whether it is the scenario's main robot, the first one."""

    @property
    def node_types(self) -> Mapping[str, str]:
        """Types of the nodes that it offers, by name."""

    def node_parameters(self, name: str, /) -> Mapping[str, Any]:
        """Return the parameters of a node that its package and the scenario state."""

    def resource(self, name: str, /) -> Any:
        """Return a resource of its nodes, such as ``legs``; None where it has no such resource."""


class RobotBuilder(Protocol):
    """One robot of a run, to which nodes can be added."""

    @property
    def name(self) -> str:
        """Name of the robot in the run."""

    @property
    def namespace(self) -> str:
        """Namespace of its topics: "" or "/name"."""

    def resources(self) -> Mapping[str, Any]:
        """Return the resources that its nodes may request, by name."""

    def add_node(
        self, node: Node, /, name: str, *, remap: dict[str, str] | None = None, namespace: str | None = None
    ) -> Node:
        """Start a node in the robot's namespace and return it."""


class RunBuilder(Protocol):
    """A run to which objects and nodes can be added.

    Attributes:
        base_folder: Folder in which relative paths are looked up first.
        seed: Seed of all random generators.
        bus: Bus of all nodes.
    """

    base_folder: Path | None
    seed: int
    bus: Bus

    @property
    def robots(self) -> Mapping[str, RobotBuilder]:
        """Robots by name; the first one is the main robot."""

    def resources(self) -> Mapping[str, Any]:
        """Return the resources that nodes without a robot may request, by name."""

    def add_object(self, model: Model, name: str | None = None, pose: PoseLike = (0.0, 0.0, 0.0)) -> str:
        """Add a model without nodes and return its name."""

    def add_node(self, node: Node | str, name: str, *, namespace: str = "", **options: Any) -> Node:
        """Start a node that belongs to no robot: a node, or ``module:Class`` or ``file.py:Class``."""


class ScenarioKey(Generic[T]):
    """A key of scenario files.  Each hook gets the key's value; a scenario without the key calls none of them.

    Attributes:
        key: The key: letters, digits and '_'.
        config: What the value must be: a dataclass whose fields are declared with `roboyard.config.parameter`, or
            another type that a file may hold.
        doc: One sentence on its purpose, for the JSON Schema and the page of scenario files.
        path_keys: Keys within the value that hold paths of files: "" the value itself, "file", "animations.*".
    """

    key: ClassVar[str]
    config: ClassVar[Any]
    doc: ClassVar[str]
    path_keys: ClassVar[tuple[str, ...]] = ()

    def resolve(self, value: T, find_file: FileLookup) -> T:
        """Return the value with absolute paths; read here what must be right before the run is built.

        Raises:
            RoboyardError: A file is missing or wrong.  The error gets the place of the key in the scenario.
        """
        return value

    def transform_world(self, value: T, world: World, seed: int) -> World:
        """Return the world as the key changes it, before robots are in it.  Raises RoboyardError."""
        return world

    def node_parameters(self, value: T, robot: RobotSetup) -> Mapping[str, Mapping[str, Any]]:
        """Return parameters that the key sets for a robot's nodes, by name of the node.  Raises RoboyardError."""
        return {}

    def apply(self, value: T, run: RunBuilder) -> None:
        """Add objects and nodes to the run; its robots, people and the scenario's nodes are in it already.

        Raises:
            RoboyardError: What the key states does not fit the run.
        """
