"""A robot's package: the YAML beside its description that names the nodes which bring it up."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from roboyard.config import load, parameter, read_yaml
from roboyard.config.wording import did_you_mean
from roboyard.errors import ConfigError, UnknownNameError
from roboyard.scenarios.catalog import NODES, node_class

if TYPE_CHECKING:
    from roboyard.description import Model, ModelLoader

_CHAIN = ("arbiter", "velocity_smoother", "collision_monitor")
"""What commands pass on their way to the drive of a robot that does not say."""


@dataclass(frozen=True)
class NodeSpec:
    """A node that a robot offers."""

    use: str = parameter(doc="name of `roboyard list`, `module:Class` or `file.py:Class`")
    parameters: dict[str, Any] = parameter(factory=dict, doc="its declared parameters")
    remap: dict[str, str] = parameter(factory=dict, doc="other names of its topics and services")

    def customised(self, parameters: Mapping[str, Any], remap: Mapping[str, str]) -> NodeSpec:
        """The node with some parameters and names changed; nested parameters are joined."""
        return replace(self, parameters=_laid_over(self.parameters, parameters), remap={**self.remap, **remap})


@dataclass(frozen=True)
class Limits:
    """What the robot's drive can do; None where nobody knows."""

    speed: float | None = parameter(None, unit="m/s", low=0.0, doc="forward")
    turn_rate: float | None = parameter(None, unit="rad/s", low=0.0, doc="about the vertical")
    acceleration: float | None = parameter(None, unit="m/s^2", low=0.0, doc="forward")
    turn_acceleration: float | None = parameter(None, unit="rad/s^2", low=0.0, doc="about the vertical")
    least_speed: float = parameter(0.0, unit="m/s", low=0.0, doc="slowest command to drive that it follows")
    least_turn_rate: float = parameter(
        0.0, unit="rad/s", low=0.0, doc="slowest command to turn on the spot that it follows"
    )

    def __post_init__(self) -> None:
        for least, most in (("least_speed", "speed"), ("least_turn_rate", "turn_rate")):
            low, high = getattr(self, least), getattr(self, most)
            if high is not None and low > high:
                raise ConfigError(f"{least} of {low}", location=f"limits.{least}", valid=f"at most {most}, {high}")


_OWN = ("description", "summary", "like", "arguments", "nodes")
"""What a file says for itself, whatever it is like."""


@dataclass(frozen=True)
class RobotFile:
    """What `<robot>.yaml` may say."""

    description: Path = parameter(doc="URDF, xacro, SDF or MJCF, beside this file")
    summary: str = parameter("", doc="one line for `roboyard list`")
    like: Path | None = parameter(
        None, doc="another robot's file: what is not said here is as there, and its nodes are offered too"
    )
    arguments: dict[str, str] = parameter(factory=dict, doc="xacro arguments")
    base_frame: str = parameter("base_link", doc="the frame that odometry moves")
    footprint: tuple[tuple[float, float], ...] = parameter((), unit="m", doc="outline on the ground in base_frame")
    limits: Limits = parameter(Limits(), doc="")
    base: Literal["planar", "free"] | None = parameter(
        None, doc="its body takes velocities: in the plane, or all six; for drives whose wheels are not simulated"
    )
    gains: dict[str, dict[str, float]] = parameter(
        factory=dict, doc="gains of joints' servos: {elbow: {pos_kp: 50, pos_ki: 0, pos_kd: 2}}, as in ros2_control"
    )
    topics: dict[str, str] = parameter(factory=dict, doc="where its standard topics are if elsewhere: {cmd_vel: /cmd}")
    groups: Path | None = parameter(None, doc="groups of joints, tools, named poses: a YAML or SRDF, beside this file")
    legs: Path | None = parameter(None, doc="its legs, their stance and rest: a YAML beside this file")
    servos: Path | None = parameter(None, doc="servos of the real robot's joints: a YAML beside this file")
    nodes: dict[str, NodeSpec] = parameter(factory=dict, doc="what it offers, by name")
    chain: tuple[str, ...] = parameter(
        (), doc=f"nodes that hand commands on, in this order, as far as they are up; none: {', '.join(_CHAIN)}"
    )
    default: tuple[str, ...] = parameter((), doc="what comes up unless the scenario says otherwise, in this order")

    def __post_init__(self) -> None:
        if self.like is None:
            self._check()

    def _check(self) -> None:
        if self.footprint and len(self.footprint) < 3:
            raise ConfigError(f"has {len(self.footprint)} corners", location="footprint", valid="at least 3")
        for key, names in (("default", self.default), ("chain", self.chain)):
            for name in names:
                if name not in self.nodes:
                    raise ConfigError(f"no node {name!r}", location=key, valid=f"nodes: {', '.join(self.nodes)}")

    def laid_over(self, other: RobotFile, said: Collection[str]) -> RobotFile:
        """This file, with all but what is ``said`` in it as in ``other``, and with the nodes of both, joined."""
        taken = {
            one.name: getattr(other, one.name) for one in fields(self) if one.name not in _OWN and one.name not in said
        }
        nodes = {**other.nodes, **self.nodes}
        for name, mine in self.nodes.items():
            if (theirs := other.nodes.get(name)) is not None and theirs.use == mine.use:
                nodes[name] = theirs.customised(mine.parameters, mine.remap)
        return replace(self, like=None, nodes=nodes, **taken)


@dataclass(frozen=True)
class RobotPackage:
    """A robot ready to be put into a world: where its description lies and which nodes it offers.

    Attributes:
        name: Of the robot's kind.
        file: What its YAML says, or what ``bringup`` derived from the description.
        source: The YAML file, or the description itself.
        findings: What was guessed, for people to read.
        loader: Reads the description once for everyone who works with this package; None: every `load_model` reads it.
    """

    name: str
    file: RobotFile
    source: Path
    findings: tuple[str, ...] = ()
    loader: ModelLoader | None = dataclasses.field(default=None, repr=False, compare=False)

    @property
    def description(self) -> Path:
        """Path of the description."""
        return self.source.parent / self.file.description

    def load_model(self, arguments: Mapping[str, str] | None = None, *, repair: bool = False) -> Model:
        """Its description, read; ``arguments`` for xacro go before those of the package. Raises DescriptionError."""
        from roboyard.description import ModelLoader

        loader = self.loader or ModelLoader(self.description)
        return loader.load({**self.file.arguments, **(arguments or {})}, repair=repair)

    def beside(self, key: str) -> Path | None:
        """The file that its YAML names under ``key``, beside it; None where it names none. Raises ConfigError."""
        said: Path | None = getattr(self.file, key)
        if said is None:
            return None
        path = self.source.parent / said
        if not path.is_file():
            raise ConfigError(f"there is no file {said}", location=f"{self.source}, {key}", valid="a path beside it")
        return path

    def select(self, nodes: str | tuple[str, ...] = "default") -> tuple[str, ...]:
        """Names of the nodes meant by "default", "all", "none" or a list of names.

        Raises:
            UnknownNameError: the robot does not offer one.
        """
        if nodes == "default":
            return self.file.default
        if nodes == "all":
            return tuple(self.file.nodes)
        if nodes == "none":
            return ()
        for name in (nodes,) if isinstance(nodes, str) else nodes:
            self.node(name)
        return (nodes,) if isinstance(nodes, str) else nodes

    def node(self, name: str) -> NodeSpec:
        """What the robot says about its node ``name``; registered ones that command no joints need not be mentioned.

        Raises:
            UnknownNameError: it offers none of this name.
        """
        if name in self.file.nodes:
            return self.file.nodes[name]
        if name in NODES and "hardware" not in node_class(name).resources_declared():
            return NodeSpec(name)
        raise UnknownNameError(
            f"no node {name!r}{did_you_mean(name, [*self.file.nodes, *NODES.names()])}",
            location=f"robot {self.name}",
            valid=f"it offers: {', '.join(self.file.nodes)}; and every node of `roboyard list nodes` without joints",
        )

    def links(self, up: Collection[str]) -> dict[str, dict[str, str]]:
        """By which names of topics the nodes of the chain that are up hand commands on, each to the next.

        The first takes ``cmd_vel``, the last gives ``cmd_vel_out``.
        """
        chain = [name for name in self.file.chain or _CHAIN if name in up]
        links = {name: {"cmd_vel_in": "cmd_vel"} for name in chain}
        for sender, receiver in pairwise(chain):
            links[sender]["cmd_vel_out"] = links[receiver]["cmd_vel_in"] = f"{sender}/cmd_vel"
        return links

    def customised(
        self, parameters: Mapping[str, Mapping[str, Any]], remap: Mapping[str, Mapping[str, str]]
    ) -> RobotPackage:
        """The package with some nodes' parameters and names changed.

        Raises:
            UnknownNameError: it offers no such node.
        """
        nodes = dict(self.file.nodes)
        for name in [*parameters, *remap]:
            nodes[name] = self.node(name).customised(parameters.get(name, {}), remap.get(name, {}))
        return replace(self, file=replace(self.file, nodes=nodes))


def _laid_over(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with what ``over`` says; nested mappings are joined, but one that uses another part is taken whole."""
    joined = dict(base)
    for key, value in over.items():
        before = joined.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping) and value.get("use") in (None, before.get("use")):
            joined[key] = _laid_over(before, value)
        else:
            joined[key] = value
    return joined


def load_robot(path: Path) -> RobotPackage:
    """Read a robot's YAML.

    Raises:
        ConfigError: it cannot be read or says something it may not, or its description is not there.
    """
    from roboyard.description import ModelLoader

    text = read_yaml(path)
    file = load(RobotFile, text)
    if file.like is not None:
        other = path.parent / file.like
        if not other.is_file():
            raise ConfigError(
                f"there is no file {file.like}", location=f"{path}, like", valid="a path beside this file"
            )
        base = load(RobotFile, other)
        if base.like is not None:
            raise ConfigError(
                f"{file.like} is like another one", location=f"{path}, like", valid="the file of that one"
            )
        try:
            file = file.laid_over(base, text.to_data())
        except ConfigError as error:
            raise ConfigError(error.message, location=f"{path}, {error.location}", valid=error.valid) from None
    package = RobotPackage(path.stem, file, path, loader=ModelLoader(path.parent / file.description))
    if not package.description.is_file():
        raise ConfigError(
            f"there is no file {file.description}", location=f"{path}, description", valid="a path beside this file"
        )
    return package
