"""What a scenario file may say, as frozen dataclasses.

Poses are (x, y, yaw) [m, m, rad], then the model stands on the ground, or (x, y, z, roll, pitch, yaw).  Names of
robots, worlds and nodes are those of ``roboyard list``, or paths beside the file.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Literal

from roboyard.config import parameter
from roboyard.description.extent import POSE_FORMAT, Pose
from roboyard.errors import ConfigError
from roboyard.grids.terrain import TerrainConfig
from roboyard.scenarios.faults.schema import FaultEntry
from roboyard.scenarios.missions import MissionConfig
from roboyard.scenarios.operator import OperatorScript, ScriptStep
from roboyard.scenarios.people import PersonConfig
from roboyard.scenarios.world.appearance import AppearanceConfig
from roboyard.scenarios.world.objects import ObjectConfig

OptionValue = str | int | float | bool

__all__ = [
    "DeviceConfig",
    "MissionConfig",
    "PersonConfig",
    "Pose",
    "RecordConfig",
    "ScenarioConfig",
    "ScenarioNodeConfig",
    "ScenarioOption",
    "ScenarioRobotConfig",
    "TerrainConfig",
    "VariantsEntry",
    "VideoConfig",
]

_NAME_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _check_names(names: tuple[str, ...], description: str) -> None:
    for name in names:
        if not _NAME_PATTERN.fullmatch(name):
            raise ConfigError(f"{description} {name!r}", valid="letters, digits and '_', not starting with a digit")


@dataclass(frozen=True)
class ScenarioNodeConfig:
    """A node of the scenario itself: the user's own, or one that no robot's package brings."""

    type: str = parameter(doc="name of `roboyard list`, `module:Class` or `file.py:Class`")
    robot: str | None = parameter(None, doc="whose namespace and resources it gets")
    namespace: str | None = parameter(None, doc="instead of the robot's")
    parameters: dict[str, Any] = parameter(factory=dict, doc="its declared parameters")
    remap: dict[str, str] = parameter(factory=dict, doc="other names of its topics and services")


@dataclass(frozen=True)
class ScenarioRobotConfig:
    """A robot of the scenario."""

    model: str = parameter(
        doc="a robot's name, a path to .yaml, .urdf, .xacro or .sdf, or `world:NAME`: a model of the world"
    )
    pose: Literal["free"] | Pose = parameter(
        (0.0, 0.0, 0.0), doc=f"{POSE_FORMAT} in m and rad; `free`: near the origin"
    )
    namespace: str | None = parameter(None, doc="default: none for the first robot, its own name for others")
    nodes: Literal["default", "all", "none"] | tuple[str, ...] = parameter(
        "default", doc="which of the robot's nodes run"
    )
    parameters: dict[str, dict[str, Any]] = parameter(factory=dict, doc="node: {key: value}")
    remap: dict[str, dict[str, str]] = parameter(factory=dict, doc="node: {name: other name}")
    xacro_args: dict[str, str] = parameter(factory=dict, doc="xacro arguments")
    repair: bool = parameter(
        False, doc="mend what can be mended in a bare description: links without mass and the like"
    )
    fixed_base: bool = parameter(False, doc="bolt it to the world where it is put")


@dataclass(frozen=True)
class DeviceConfig:
    """Furniture that moves: a conveyor belt, a door, a turntable."""

    model: str = parameter(doc="`conveyor`, `door`, `sliding_door`, `turntable`, or a path to a file")
    pose: Pose = parameter((0.0, 0.0, 0.0), doc=f"{POSE_FORMAT} in m and rad")
    initial_command: float = parameter(
        0.0, low=-100.0, high=100.0, doc="first command: m/s of a belt, rad/s, how far open (0 to 1)"
    )


@dataclass(frozen=True)
class RecordConfig:
    """What is recorded."""

    exclude_topics: tuple[str, ...] = parameter((), doc="topics, `*` stands for anything: [/scan, /truth/*]")
    camera_rate: float = parameter(2.0, unit="Hz", low=0.0, high=60.0, doc="of recorded images of each camera; 0: none")


@dataclass(frozen=True)
class VideoConfig:
    """The film of the run."""

    enabled: bool = parameter(False, doc="make one at every run, not only when asked")
    view: Literal["chase", "overview", "top"] = parameter("chase", doc="behind the robot, from a corner, from above")
    speed: float = parameter(2.0, low=0.01, high=1000.0, doc="simulated seconds a second of film")
    fps: float = parameter(15.0, unit="Hz", low=1.0, high=120.0, doc="pictures a second of film")
    width: int = parameter(640, unit="px", low=32, high=7680, doc="even")
    height: int = parameter(360, unit="px", low=32, high=4320, doc="even")

    def __post_init__(self) -> None:
        if self.width % 2 or self.height % 2:
            raise ConfigError(f"a picture of {self.width} × {self.height}", valid="even numbers of pixels")


@dataclass(frozen=True)
class VariantsEntry:
    """What differs in variants of a scenario: parts of one, laid on it key by key."""

    smoke: dict[str, Any] = parameter(
        factory=dict, doc="the smoke variant of at most 5 s; criteria only if it names some"
    )
    substituted: dict[str, Any] = parameter(factory=dict, doc="with another robot or world (`--robot`, `--world`)")


@dataclass(frozen=True)
class ScenarioConfig:
    """One scenario file."""

    world: str = parameter(doc="a world's name, or a path to .sdf, .world or .xml")
    duration: float = parameter(unit="s", low=0.001, high=1e6, doc="simulated time at which it ends")
    summary: str = parameter("", doc="one line for `roboyard list`")
    robots: dict[str, ScenarioRobotConfig] = parameter(factory=dict, doc="by name, the first is the main one")
    terrain: TerrainConfig | None = parameter(None, doc="uneven ground, made by its seed")
    devices: dict[str, DeviceConfig] = parameter(factory=dict, doc="what moves by itself, by name")
    people: dict[str, PersonConfig] = parameter(factory=dict, doc="who is there, by name")
    objects: dict[str, ObjectConfig] = parameter(factory=dict, doc="what stands or lies about, by name")
    appearance: AppearanceConfig = parameter(AppearanceConfig(), doc="")
    operator: (
        str | tuple[ScriptStep, ...] | OperatorScript | dict[str, str | tuple[ScriptStep, ...] | OperatorScript] | None
    ) = parameter(None, doc="a script file, or the script itself, for the main robot; or {robot: script}")
    movement: str | None = parameter(None, doc="a movement file that the main robot plays once it has stood up")
    mission: str | MissionConfig | None = parameter(
        None, doc="a behaviour tree (XML) or tasks (YAML) for the main robot, in place of the node `mission`"
    )
    nodes: dict[str, ScenarioNodeConfig] = parameter(factory=dict, doc="further nodes")
    faults: tuple[FaultEntry, ...] = parameter((), doc="faults, each with its time and type")
    criteria: dict[str, str] = parameter(factory=dict, doc="expressions over the metrics; all must hold")
    comparison_metrics: tuple[str, ...] = parameter((), doc="metrics that `roboyard compare` sets side by side first")
    stop_when: str | None = parameter(None, doc="expression over the metrics that ends the run early")
    randomize: dict[str, tuple[float, float]] = parameter(
        factory=dict, doc="numbers drawn evenly by the seed: {faults.0.friction: [0.4, 1]}"
    )
    seed: int = parameter(0, low=0, high=2**63 - 1, doc="of every random generator")
    timestep: float | None = parameter(None, unit="s", low=1e-5, high=0.1, doc="of the physics; default: the world's")
    record: RecordConfig = parameter(RecordConfig(), doc="")
    video: VideoConfig = parameter(VideoConfig(), doc="")
    options: dict[str, ScenarioOption] = parameter(factory=dict, doc="what `--set NAME=VALUE` offers by a short name")
    variants: VariantsEntry = parameter(VariantsEntry(), doc="")
    provenance: dict[str, Any] = parameter(factory=dict, doc="written by a run: how it was made; ignored when read")

    def __post_init__(self) -> None:
        _check_names(tuple(self.robots), "robot name")
        _check_names(tuple(self.nodes), "node name")
        _check_names(tuple(self.devices), "device name")
        _check_names(tuple(self.objects), "object name")
        _check_names(tuple(self.people), "person's name")
        ambiguous_names = sorted(self.people.keys() & {*self.robots, *self.devices, *self.objects, *self.nodes})
        if ambiguous_names:
            raise ConfigError(
                f"{ambiguous_names[0]!r} is a person and something else", location="people", valid="another name"
            )
        _check_names(tuple(self.criteria), "criterion name")
        _check_names(tuple(self.options), "option name")
        for key, (low, high) in self.randomize.items():
            if not (math.isfinite(low) and math.isfinite(high) and low <= high):
                raise ConfigError(f"[{low:g}, {high:g}]", location=f"randomize.{key}", valid="[least, greatest]")
        for name, entry in self.nodes.items():
            if entry.robot is not None and entry.robot not in self.robots:
                raise ConfigError(
                    f"no robot {entry.robot!r}",
                    location=f"nodes.{name}.robot",
                    valid=f"robots: {', '.join(self.robots)}",
                )
        if isinstance(self.operator, dict):
            for name in self.operator:
                if name not in self.robots:
                    raise ConfigError(
                        f"no robot {name!r}", location="operator", valid=f"robots: {', '.join(self.robots)}"
                    )
        if self.operator is not None and not self.robots:
            raise ConfigError("there is no robot for the operator", location="operator", valid="add one under robots")

    @property
    def main_robot(self) -> str | None:
        """Name of the first robot."""
        return next(iter(self.robots), None)


@dataclass(frozen=True)
class ScenarioOption:
    """One option: `choices`, each with what it changes, or `key`, the key that takes its value.

    `roboyard run … --set NAME=VALUE` gives the value.  What is changed is laid on the scenario as `variants.smoke`
    is; what
    `--set` says of deeper keys counts more.
    """

    summary: str = parameter("", doc="one line on what it is for")
    choices: dict[str, dict[str, Any]] = parameter(factory=dict, doc="by name, what each changes in the scenario")
    key: str = parameter("", doc="the key that the value is put at instead: robots.rover.parameters.navigator.planner")
    allowed: tuple[OptionValue, ...] = parameter((), doc="values that it may have; none named: any")
    default: OptionValue | None = parameter(
        None, doc="when nobody gives one; the first choice, or what stands at the key"
    )

    def __post_init__(self) -> None:
        if bool(self.choices) == bool(self.key):
            raise ConfigError("neither or both of 'choices' and 'key'", valid="one of them")
        if self.choices and self.allowed:
            raise ConfigError("'allowed' beside 'choices'", valid="the names of the choices are what is valid")

    @property
    def allowed_values(self) -> tuple[OptionValue, ...]:
        """Values that it may have; empty: any."""
        return tuple(self.choices) or self.allowed

    @property
    def selected(self) -> OptionValue | None:
        """The value that counts; None: what stands at the key."""
        return next(iter(self.choices)) if self.default is None and self.choices else self.default
