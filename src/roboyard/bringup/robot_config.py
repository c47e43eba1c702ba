"""Configuration of a robot: what its YAML file says, and `RobotPackage`, which combines it with the description."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roboyard.config import YamlNode, parameter
from roboyard.config.registry import Registry
from roboyard.config.wording import did_you_mean
from roboyard.config.yaml_tree import find_along_path
from roboyard.control.drive_config import AnyDriveConfig, DriveLimits
from roboyard.errors import ConfigError, UnknownNameError
from roboyard.hardware.interface import BaseMotion

if TYPE_CHECKING:
    from roboyard.bus import Node
    from roboyard.description import Model, ModelLoader

_DEFAULT_COMMAND_CHAIN = ("arbiter", "velocity_smoother", "collision_monitor")
"""Command chain of a robot whose file states none."""


@dataclass(frozen=True)
class RobotNodeConfig:
    """Configuration of a node that a robot offers."""

    type: str = parameter(doc="Registered name (`roboyard list nodes`), `module:Class` or `file.py:Class`.")
    parameters: dict[str, Any] = parameter(factory=dict, doc="Its parameters.")
    remap: dict[str, str] = parameter(factory=dict, doc="Other names of its topics and services.")

    def with_overrides(self, parameters: Mapping[str, Any], remap: Mapping[str, str]) -> RobotNodeConfig:
        """Return the node with some parameters and topic names changed; nested parameters are merged."""
        return replace(self, parameters=_merge_parameters(self.parameters, parameters), remap={**self.remap, **remap})


_NEVER_INHERITED = ("description", "summary", "extends", "xacro_args", "nodes")
"""Keys that a robot's file does not take from the file that it extends."""


@dataclass(frozen=True)
class RobotConfig:
    """Content of a robot's YAML file."""

    description: Path = parameter(doc="Description: URDF, xacro, SDF or MJCF; a path relative to this file.")
    summary: str = parameter("", doc="One line for `roboyard list`.")
    extends: Path | None = parameter(
        None,
        doc="File of another robot: its values apply to keys that this file does not state; its nodes are offered too.",
    )
    xacro_args: dict[str, str] = parameter(factory=dict, doc="Arguments of the xacro description.")
    base_frame: str = parameter("base_link", doc="Frame that odometry moves.")
    footprint: tuple[tuple[float, float], ...] = parameter(
        (),
        unit="m",
        doc="Corners (x, y) of its outline in base_frame; default: hull of its shapes.",
    )
    drive: AnyDriveConfig | None = parameter(
        None, doc="Drive: joints and geometry, the defaults of its drive and odometry nodes."
    )
    limits: DriveLimits = parameter(
        DriveLimits(), doc="Limits of its drive, the defaults of drive nodes, planners and smoothers."
    )
    gains: dict[str, dict[str, float]] = parameter(
        factory=dict,
        doc="Gains of joint servos, named as in ros2_control: {elbow: {pos_kp: 50, pos_ki: 0, pos_kd: 2}}.",
    )
    topics: dict[str, str] = parameter(factory=dict, doc="Other names of its standard topics: {cmd_vel: /cmd}.")
    joint_groups: Path | None = parameter(
        None, doc="File of joint groups, tools and named poses: YAML or SRDF, relative to this file."
    )
    legs: Path | None = parameter(None, doc="File of its legs and their stance and rest poses: YAML.")
    servos: Path | None = parameter(None, doc="File of the servos of the real robot: YAML.")
    nodes: dict[str, RobotNodeConfig] = parameter(factory=dict, doc="Nodes that it offers, by name.")
    command_chain: tuple[str, ...] = parameter(
        (),
        doc="Nodes that pass velocity commands on, in this order, as far as they run; default: "
        + ", ".join(_DEFAULT_COMMAND_CHAIN),
    )
    autostart: tuple[str, ...] = parameter(
        (), doc="Nodes that every run starts, in this order, unless the scenario selects others."
    )

    def __post_init__(self) -> None:
        if self.extends is None:
            self._validate()

    def _validate(self) -> None:
        if self.footprint and len(self.footprint) < 3:
            raise ConfigError(f"has {len(self.footprint)} corners", location="footprint", valid="at least 3")
        for key, names in (("autostart", self.autostart), ("command_chain", self.command_chain)):
            for name in names:
                if name not in self.nodes:
                    raise ConfigError(f"no node {name!r}", location=key, valid=f"nodes: {', '.join(self.nodes)}")

    @property
    def base_motion(self) -> BaseMotion | None:
        """Which velocities its body itself takes; None where wheels or legs move it."""
        return None if self.drive is None else self.drive.base_motion

    def merge_onto(self, base_config: RobotConfig, stated_keys: Collection[str]) -> RobotConfig:
        """Return this configuration with the values of another one for all keys that its file does not state.

        Nodes of both are offered; parameters of nodes of the same name and type are merged.

        Args:
            base_config: The configuration that this one extends.
            stated_keys: Keys that the file of this one states."""
        inherited = {
            key_field.name: getattr(base_config, key_field.name)
            for key_field in fields(self)
            if key_field.name not in _NEVER_INHERITED and key_field.name not in stated_keys
        }
        nodes = {**base_config.nodes, **self.nodes}
        for name, node in self.nodes.items():
            if (base_node := base_config.nodes.get(name)) is not None and base_node.type == node.type:
                nodes[name] = base_node.with_overrides(node.parameters, node.remap)
        return replace(self, extends=None, nodes=nodes, **inherited)


@dataclass(frozen=True)
class ConfigSource:
    """A YAML tree that states values of a robot's configuration: its file, the file it extends, or a scenario.

    Attributes:
        tree: The mapping that holds them.
        path: Key path of the mapping in its file; "" for the whole file.
        is_scenario: The mapping is a scenario's entry of the robot, where parameters are "parameters.NODE.KEY".
    """

    tree: YamlNode
    path: str = ""
    is_scenario: bool = False

    def locate(self, key: str) -> str:
        """Return where a key of the robot's file ("nodes.drive.parameters.track") is stated here; "" if it is not."""
        if self.is_scenario:
            match = re.fullmatch(r"nodes\.([^.]+)\.(parameters|remap)(?:\.(.+))?", key)
            if match is None:
                return ""
            key = ".".join(part for part in (match[2], match[1], match[3]) if part)
        found, remaining_path = find_along_path(self.tree, key)
        if remaining_path:
            return ""
        full_path = f"{self.path}.{key}" if self.path else key
        return found.location if found.location.endswith(f" {full_path}") else f"{found.location}, {full_path}"


@dataclass(frozen=True)
class RobotPackage:
    """A robot that can be added to a run: its description, its configuration and the nodes that it offers.

    Attributes:
        name: Name of this kind of robot.
        config: Configuration: content of its YAML file, or derived from its description.
        source: Path of the YAML file, or of the description where there is none.
        findings: Assumptions that were made, for people to read.
        loader: Loader that reads the description once for all users of this package; None: every `load_model` reads it.
        node_registry: Registered node classes; the robot also offers those that command no joints.
        is_installed: Whether an installed package brings the robot, into whose folder the user does not write.
        config_sources: The files that state its configuration, for the locations of errors; later ones count more.
        calibrated_parameters: Parameters of nodes that come from the drive's stored calibration, by node.
    """

    name: str
    config: RobotConfig
    source: Path
    findings: tuple[str, ...] = ()
    loader: ModelLoader | None = dataclasses.field(default=None, repr=False, compare=False)
    node_registry: Registry[type[Node]] | None = dataclasses.field(default=None, repr=False, compare=False)
    is_installed: bool = False
    config_sources: tuple[ConfigSource, ...] = dataclasses.field(default=(), repr=False, compare=False)
    calibrated_parameters: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)

    @property
    def description(self) -> Path:
        """Path of the description."""
        return self.source.parent / self.config.description

    def load_model(self, arguments: Mapping[str, str] | None = None, *, repair: bool = False) -> Model:
        """Load its description; xacro ``arguments`` override those of the package. Raises DescriptionError."""
        from roboyard.description import ModelLoader

        model_loader = self.loader or ModelLoader(self.description)
        return model_loader.load({**self.config.xacro_args, **(arguments or {})}, repair=repair)

    def stated_resources(self) -> dict[str, Any]:
        """Return what its file states for its nodes: ``drive_limits``, perhaps ``drive_geometry``, ``footprint``."""
        stated = {"drive_geometry": self.config.drive, "footprint": self.config.footprint or None}
        return {"drive_limits": self.config.limits} | {key: value for key, value in stated.items() if value is not None}

    def locate(self, key: str) -> str:
        """Return the file and line that state a key of its configuration, such as "nodes.drive.parameters.track"."""
        stated = (source.locate(key) for source in reversed(self.config_sources))
        return next(filter(None, stated), f"{self.source}, {key}")

    def companion_file(self, key: str) -> Path | None:
        """Return the path of a file that its YAML file names under a key; None without. Raises ConfigError."""
        relative_path: Path | None = getattr(self.config, key)
        if relative_path is None:
            return None
        path = self.source.parent / relative_path
        if not path.is_file():
            raise ConfigError(
                f"there is no file {relative_path}", location=f"{self.source}, {key}", valid="a path beside it"
            )
        return path

    def select_nodes(self, nodes: str | tuple[str, ...] = "default") -> tuple[str, ...]:
        """Return the names of the nodes that "default", "all", "none" or a list of names selects.

        Raises:
            UnknownNameError: The robot does not offer one of them.
        """
        if nodes == "default":
            return self.config.autostart
        if nodes == "all":
            return tuple(self.config.nodes)
        if nodes == "none":
            return ()
        for name in (nodes,) if isinstance(nodes, str) else nodes:
            self.node(name)
        return (nodes,) if isinstance(nodes, str) else nodes

    def node(self, name: str) -> RobotNodeConfig:
        """Return the configuration of a node that the robot offers.

        The robot offers the nodes of its file, and every registered node that commands no joints.

        Raises:
            UnknownNameError: It offers none of this name.
        """
        if name in self.config.nodes:
            return self.config.nodes[name]
        registry = self.node_registry
        if registry is not None and name in registry and "hardware" not in registry[name].resources_declared():
            return RobotNodeConfig(name)
        names = [*self.config.nodes, *(registry.names() if registry is not None else ())]
        raise UnknownNameError(
            f"no node {name!r}{did_you_mean(name, names)}",
            location=f"robot {self.name}",
            valid=f"it offers: {', '.join(self.config.nodes)}; and every node of `roboyard list nodes` without joints",
        )

    def command_chain_remaps(self, active_nodes: Collection[str]) -> dict[str, dict[str, str]]:
        """Return topic remaps, by node, with which the running nodes of the command chain pass velocity commands on.

        The first node subscribes to ``cmd_vel``, the last one publishes ``cmd_vel_out``.
        """
        chain = [name for name in self.config.command_chain or _DEFAULT_COMMAND_CHAIN if name in active_nodes]
        remaps = {name: {"cmd_vel_in": "cmd_vel"} for name in chain}
        for sender, receiver in pairwise(chain):
            remaps[sender]["cmd_vel_out"] = remaps[receiver]["cmd_vel_in"] = f"{sender}/cmd_vel"
        return remaps

    def with_overrides(
        self,
        parameters: Mapping[str, Mapping[str, Any]],
        remap: Mapping[str, Mapping[str, str]],
        source: ConfigSource | None = None,
    ) -> RobotPackage:
        """Return the package with some parameters and topic names of its nodes changed.

        Args:
            parameters: New values of parameters by node and key.
            remap: New names of topics and services by node and name.
            source: The scenario's entry of the robot that states them, for the locations of errors.

        Raises:
            UnknownNameError: It offers no such node.
        """
        nodes = dict(self.config.nodes)
        for name in [*parameters, *remap]:
            try:
                nodes[name] = self.node(name).with_overrides(parameters.get(name, {}), remap.get(name, {}))
            except UnknownNameError as error:
                part = "parameters" if name in parameters else "remap"
                error.location = (source.locate(f"nodes.{name}.{part}") if source is not None else "") or error.location
                raise
        sources = self.config_sources if source is None else (*self.config_sources, source)
        return replace(self, config=replace(self.config, nodes=nodes), config_sources=sources)


def _merge_parameters(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``base`` with ``overrides`` merged in: nested mappings merge, but one of another ``type`` replaces."""
    merged = dict(base)
    for key, value in overrides.items():
        base_value = merged.get(key)
        if isinstance(value, Mapping) and isinstance(base_value, Mapping):
            is_same_type = value.get("type") in (None, base_value.get("type"))
            merged[key] = _merge_parameters(base_value, value) if is_same_type else value
        else:
            merged[key] = value
    return merged
