"""The nodes that bring a robot up, simulated or real: made as its package says, in its namespace."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

from roboyard.bus import Bus, Node
from roboyard.errors import ConfigError
from roboyard.scenarios.node_factory import make_node
from roboyard.scenarios.robot_package import RobotPackage

_BASE_FRAMES = ("base_frame", "base_frame_id", "base_link_frame")
"""Parameters that name the robot's own frame, after the conventions of ROS's packages."""


class Crew(ABC):
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

    def bring_up(self, *names: str) -> Self:
        """Start nodes that the robot's package offers; those that are up already stay as they are.

        Raises:
            UnknownNameError: it offers no such node, or the node's class is not there.
            ConfigError: a parameter or resource is not right, or a node belongs between two that are up already.
        """
        before, links = self.package.links(self.nodes), self.package.links({*self.nodes, *names})
        late = next((name for name in before if before[name] != links[name]), None)
        if late is not None:
            raise ConfigError(
                f"'{late}' hands commands on already, and cannot pass them to a node that comes later",
                location=f"robot {self.name}",
                valid=f"bring up together: {', '.join(links)}",
            )
        for name in names:
            if name in self.nodes:
                continue
            spec = self.package.node(name)
            self.add_node(
                spec.use, name, parameters=spec.parameters, remap={**links.get(name, {}), **spec.remap},
                where=f"{self.package.source}, nodes.{name}",
            )  # fmt: skip
        return self

    def add_node(
        self,
        use: str | Node,
        name: str,
        *,
        parameters: dict[str, Any] | None = None,
        remap: dict[str, str] | None = None,
        namespace: str | None = None,
        where: str = "",
    ) -> Node:
        """Start a node in the robot's namespace.

        Args:
            use: A node, or a registered name, ``module:Class`` or ``file.py:Class``; then it gets the robot's
                resources (``hardware``, ``description``) as far as it declares them.
            name: On the bus.
            parameters: Of a node that is made here.
            remap: Other names of topics and services, beside those of the robot's package.
            namespace: Instead of the robot's.
            where: Its place in a file, for errors.
        """
        node = (
            use
            if isinstance(use, Node)
            else make_node(
                use, parameters or {}, self.resources(),
                usual=dict.fromkeys(_BASE_FRAMES, self.package.file.base_frame),
                base=self.package.source.parent, where=where,
            )
        )  # fmt: skip
        self._bus.add(
            node, name,
            namespace=self.namespace if namespace is None else namespace,
            remap={**self.package.file.topics, **(remap or {})},
            frame_prefix=self.frame_prefix,
        )  # fmt: skip
        self.nodes[name] = node
        return node
