"""Create nodes from their configuration, and start the nodes of a robot on a bus, simulated or real."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol, Self

from roboyard.bringup.catalog import resolve_node_class
from roboyard.bringup.joint_groups import RobotJoints
from roboyard.bringup.robot_config import RobotPackage
from roboyard.bus import Bus, Node
from roboyard.bus.names import frame_prefix
from roboyard.config import did_you_mean
from roboyard.config.registry import Registry
from roboyard.description import Model
from roboyard.description.extent import FootprintPolygon, footprint_polygon
from roboyard.errors import ConfigError, describe_exception
from roboyard.evaluation.scenario_key import RobotFiles
from roboyard.manipulation import SemanticDescription


class RobotResources(Mapping[str, Any]):
    """Resources of a robot by name, some of which are created when a node asks for them.

    Args:
        resources: Resources that exist.
        factories: Functions that create further ones; one that returns None has no such resource for this robot.
    """

    def __init__(self, resources: Mapping[str, Any], factories: Mapping[str, Callable[[], Any]]) -> None:
        self._resources, self._factories = dict(resources), dict(factories)

    def __getitem__(self, name: str) -> Any:
        if name in self._factories and name not in self._resources:
            self._resources[name] = self._factories[name]()
        found = self._resources[name]
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name in {**self._factories, **self._resources} if self._resources.get(name, name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def create_node(
    node_type: str,
    parameters: Mapping[str, Any],
    resources: Mapping[str, Any],
    *,
    defaults: Mapping[str, Any] | None = None,
    base_folder: Path | None = None,
    location: str = "",
) -> Node:
    """Create a node that is not on a bus yet.

    Args:
        node_type: Registered name, ``module:Class`` or ``file.py:Class``.
        parameters: Values of its parameters; numbers may have a unit ("500 mm").
        resources: Available resources by name; the node gets those that it declares.
        defaults: Other defaults for parameters that the node declares.
        base_folder: Folder that relative paths start from.
        location: Key of the node in a file, for errors: "nodes.map"; errors of a parameter name its key below that.

    Raises:
        UnknownNameError: There is no such node class.
        ConfigError: A parameter is unknown, a value is invalid, or a resource is missing.
    """
    node_class = resolve_node_class(node_type, base_folder)
    keys = node_class.config_class.keys()
    values: dict[str, Any] = {key: value for key, value in (defaults or {}).items() if key in keys}
    for key in parameters:
        if key not in keys:
            raise ConfigError(
                f"no parameter {key!r}{did_you_mean(key, keys)}",
                location=f"{location}.parameters.{key}" if location else node_type,
                valid="there are: " + (", ".join(keys) or "none"),
            )
    values.update(parameters)
    node_resources: dict[str, Any] = {}
    for name, resource in node_class.resources_declared().items():
        if name in resources:
            node_resources[name] = resources[name]
        elif not resource.optional:
            raise ConfigError(
                f"node {node_type} wants a resource {name!r}",
                location=location or None,
                valid=f"here there are: {', '.join(resources) or 'none'}",
            )
    try:
        return node_class(**values, **node_resources)
    except ConfigError as error:
        if not location:
            raise
        _, _, path = (error.location or "").partition(", ")  # "DriveNode, wheel_radius"
        if re.split(r"[.\[]", path)[0] not in keys:
            raise ConfigError(str(error), location=location) from error
        raise ConfigError(error.message, location=f"{location}.parameters.{path}", valid=error.valid) from error
    except SystemExit as error:
        raise ConfigError(
            f"the constructor of {node_type} {describe_exception(error)}", location=location or None
        ) from error


_BASE_FRAMES = ("base_frame", "base_frame_id", "base_link_frame")
"""Parameters that name the robot's own frame, after the conventions of ROS's packages."""


class RobotBringup(ABC):
    """A robot's nodes on a bus.

    Args:
        bus: Bus that the nodes are added to.
        name: Name of the robot.
        namespace: "" or "/name".
        package: What robots of its kind offer.
        joints: Its description, and what is known of its joints beside that.

    Attributes:
        name: Name of the robot.
        namespace: "" or "/name".
        package: What robots of its kind offer.
        joints: Its description, and what is known of its joints beside that.
        model: Its description.
        nodes: Its nodes that run, by name.
    """

    def __init__(self, bus: Bus, name: str, namespace: str, package: RobotPackage, joints: RobotJoints) -> None:
        self._bus = bus
        self.name = name
        self.namespace = namespace
        self.package = package
        self.joints = joints
        self.model = joints.model
        self.nodes: dict[str, Node] = {}

    @abstractmethod
    def host_resources(self) -> Mapping[str, Any]:
        """Return what the robot's host, a simulation or real servos, offers its nodes: ``hardware`` and others."""

    @cached_property
    def footprint(self) -> FootprintPolygon:
        """Corners of its footprint in its base frame [m]: as its file states them, else as its shapes say."""
        return footprint_polygon(self.package.config.footprint, self.model)

    def companion_file(self, key: str) -> Path | None:
        """Return the path of a file that its YAML file names under a key; None without. Raises ConfigError."""
        return self.package.companion_file(key)

    def resources(self) -> Mapping[str, Any]:
        """Return what its nodes may be given, by name: what its package says, and what its host offers.

        They are ``description``, ``acceleration_limits`` of its joints, ``footprint``, ``drive_limits``,
        ``drive_geometry``, those of
        `ROBOT_RESOURCES`, and those of the host.
        """
        return RobotResources(
            {
                "description": self.model,
                "acceleration_limits": self.joints.acceleration_limits,
                **self.package.stated_resources(),
                "footprint": self.footprint,
                **self.host_resources(),
            },
            {name: partial(self._make_resource, name) for name in ROBOT_RESOURCES.names()},
        )

    def _make_resource(self, name: str) -> Any:
        if name not in self._made_resources:
            self._made_resources[name] = ROBOT_RESOURCES[name](self)
        return self._made_resources[name]

    @cached_property
    def _made_resources(self) -> dict[str, Any]:
        return {}

    @property
    def frame_prefix(self) -> str:
        """Prefix of its frame ids: "" in the root namespace, else "name/"."""
        return frame_prefix(self.namespace)

    def start_nodes(self, *names: str) -> Self:
        """Start nodes that the robot's package offers; nodes that run already stay unchanged.

        Raises:
            UnknownNameError: It offers no such node, or there is no such node class.
            ConfigError: A parameter or resource is invalid, or a node belongs between two nodes that run already.
        """
        current_remaps, remaps = (
            self.package.command_chain_remaps(self.nodes),
            self.package.command_chain_remaps({*self.nodes, *names}),
        )
        conflicting = next((name for name in current_remaps if current_remaps[name] != remaps[name]), None)
        if conflicting is not None:
            raise ConfigError(
                f"'{conflicting}' hands commands on already, and cannot pass them to a node that comes later",
                location=f"robot {self.name}",
                valid=f"bring up together: {', '.join(remaps)}",
            )
        for name in names:
            if name in self.nodes:
                continue
            node_config = self.package.node(name)
            location = f"nodes.{name}"
            try:
                self.add_node(
                    node_config.type,
                    name,
                    parameters=node_config.parameters,
                    remap={**remaps.get(name, {}), **node_config.remap},
                    location=location,
                )
            except ConfigError as error:
                if error.location is None or not error.location.startswith(location):
                    raise
                error.location = self.package.locate(error.location)
                raise
        return self

    def add_node(
        self,
        node_or_type: str | Node,
        name: str,
        *,
        parameters: dict[str, Any] | None = None,
        remap: dict[str, str] | None = None,
        namespace: str | None = None,
        location: str = "",
    ) -> Node:
        """Start a node in the robot's namespace.

        Args:
            node_or_type: A node, or its registered name, ``module:Class`` or ``file.py:Class``; then it gets those of
                the robot's resources that it declares.
            name: Name on the bus.
            parameters: Parameters of a node that is created here.
            remap: Other names of topics and services, in addition to those of the robot's package.
            namespace: Namespace, if not the robot's.
            location: Location in a file, for errors.
        """
        node = (
            node_or_type
            if isinstance(node_or_type, Node)
            else create_node(
                node_or_type, parameters or {}, self.resources(),
                defaults=dict.fromkeys(_BASE_FRAMES, self.package.config.base_frame),
                base_folder=self.package.source.parent, location=location,
            )
        )  # fmt: skip
        self._bus.add(
            node, name,
            namespace=self.namespace if namespace is None else namespace,
            remap={**self.package.config.topics, **(remap or {})},
            frame_prefix=self.frame_prefix,
        )  # fmt: skip
        self.nodes[name] = node
        return node


class ResourceOwner(RobotFiles, Protocol):
    """A robot for which resources are created: a `DescribedRobot`, or a `RobotBringup` with its nodes."""

    @property
    def joints(self) -> RobotJoints:
        """Its description with servo gains and start positions, and its joint groups."""


@dataclass(frozen=True)
class DescribedRobot:
    """A robot that is on no bus: its package and its loaded description.

    Attributes:
        package: Its package.
        model: Its description.
    """

    package: RobotPackage
    model: Model

    @property
    def name(self) -> str:
        """Name of its kind."""
        return self.package.name

    @cached_property
    def joints(self) -> RobotJoints:
        """Its description with servo gains and start positions, and its joint groups."""
        return RobotJoints.from_package(self.package, self.model)

    def companion_file(self, key: str) -> Path | None:
        """Return the path of a file that its YAML file names under a key; None without. Raises ConfigError."""
        return self.package.companion_file(key)

    def resource(self, name: str) -> Any:
        """Return a resource of `ROBOT_RESOURCES`, created anew; None where the robot has none.

        Raises:
            UnknownNameError: There is no resource of this name.
            RoboyardError: A file that it is created from is wrong.
        """
        return ROBOT_RESOURCES[name](self)


def _joint_groups(robot: ResourceOwner) -> SemanticDescription:
    return robot.joints.groups


ResourceProvider = Callable[[ResourceOwner], Any]
"""Creates a resource of a robot's nodes; returns None where the robot has none."""
ROBOT_RESOURCES: Registry[ResourceProvider] = Registry(
    "robot resource", group="roboyard.robot_resources", built_in={"groups": _joint_groups}
)
"""Resources that are created when the first node of a robot asks for them.

Domains offer theirs by entry points: control offers ``joint_claims``, walking ``legs``.
"""
