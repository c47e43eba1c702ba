"""Create nodes from their configuration, and start the nodes of a robot on a bus, simulated or real."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from roboyard.bringup.catalog import resolve_node_class
from roboyard.bringup.robot_config import RobotPackage
from roboyard.bus import Bus, Node
from roboyard.config import did_you_mean
from roboyard.errors import ConfigError, describe_exception


class LazyResources(Mapping[str, Any]):
    """Resources by name.

    Args:
        resources: Those that exist.
        factories: Those that take time to make: called whenever one is asked for.
    """

    def __init__(self, resources: Mapping[str, Any], factories: Mapping[str, Callable[[], Any]]) -> None:
        self._resources, self._factories = dict(resources), dict(factories)

    def __getitem__(self, name: str) -> Any:
        return self._factories[name]() if name in self._factories else self._resources[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*self._resources, *self._factories))

    def __len__(self) -> int:
        return len(self._resources) + len(self._factories)


def create_node(
    node_type: str,
    parameters: Mapping[str, Any],
    resources: Mapping[str, Any],
    *,
    defaults: Mapping[str, Any] | None = None,
    base_folder: Path | None = None,
    location: str = "",
) -> Node:
    """A node, not on any bus yet.

    Args:
        node_type: Registered name, ``module:Class`` or ``file.py:Class``.
        parameters: Its declared parameters; numbers may carry a unit ("500 mm").
        resources: What there is to hand out by name; the node gets those that it declares.
        defaults: Instead of defaults, for parameters that the node declares.
        base_folder: Folder that paths are relative to.
        location: The node's place in a file, for errors.

    Raises:
        UnknownNameError: no such node class.
        ConfigError: an unknown parameter, a bad value, or a resource that nobody has.
    """
    node_class = resolve_node_class(node_type, base_folder)
    keys = node_class.config_class.keys()
    values: dict[str, Any] = {key: value for key, value in (defaults or {}).items() if key in keys}
    for key in parameters:
        if key not in keys:
            raise ConfigError(
                f"no parameter {key!r}{did_you_mean(key, keys)}",
                location=location or node_type,
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
        raise ConfigError(str(error), location=location) from error
    except SystemExit as error:
        raise ConfigError(
            f"the constructor of {node_type} {describe_exception(error)}", location=location or None
        ) from error


_BASE_FRAMES = ("base_frame", "base_frame_id", "base_link_frame")
"""Parameters that name the robot's own frame, after the conventions of ROS's packages."""


class RobotBringup(ABC):
    """A robot's nodes on a bus.

    Attributes:
        name: Of the robot.
        namespace: "" or "/name".
        package: What its kind offers.
        nodes: Those that are up, by name.
    """

    def __init__(self, bus: Bus, name: str, namespace: str, package: RobotPackage) -> None:
        self._bus = bus
        self.name = name
        self.namespace = namespace
        self.package = package
        self.nodes: dict[str, Node] = {}

    @abstractmethod
    def resources(self) -> Mapping[str, Any]:
        """What its nodes may be handed, by name."""

    @property
    def frame_prefix(self) -> str:
        """What its frame ids begin with: "" in the root namespace, else "name/"."""
        return f"{self.namespace.strip('/')}/" if self.namespace else ""

    def start_nodes(self, *names: str) -> Self:
        """Start nodes that the robot's package offers; those that are up already stay as they are.

        Raises:
            UnknownNameError: it offers no such node, or the node's class is not there.
            ConfigError: a parameter or resource is not right, or a node belongs between two that are up already.
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
            self.add_node(
                node_config.type,
                name,
                parameters=node_config.parameters,
                remap={**remaps.get(name, {}), **node_config.remap},
                location=f"{self.package.source}, nodes.{name}",
            )
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
            node_or_type: A node, or a registered name, ``module:Class`` or ``file.py:Class``; then it gets the robot's
                resources (``hardware``, ``description``) as far as it declares them.
            name: On the bus.
            parameters: Of a node that is made here.
            remap: Other names of topics and services, beside those of the robot's package.
            namespace: Instead of the robot's.
            location: Its place in a file, for errors.
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
