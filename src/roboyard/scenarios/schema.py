"""What a scenario file may say, as frozen dataclasses.

Poses are (x, y, yaw) [m, m, rad], then the model stands on the ground, or (x, y, z, roll, pitch, yaw).  Names of
robots, worlds and nodes are those of ``roboyard list``, or paths beside the file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, make_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from roboyard.config import YamlNode, load, parameter, read_yaml
from roboyard.description.extent import POSE_FORMAT, Pose
from roboyard.errors import ConfigError
from roboyard.evaluation.plugin import scenario_keys
from roboyard.evaluation.scenario_key import ScenarioKey
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

NAME_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""What robots, nodes and all else in `NAMED_SECTIONS` may be called."""
NAMED_SECTIONS = {
    "robots": "robot name",
    "nodes": "node name",
    "devices": "device name",
    "objects": "object name",
    "people": "person's name",
    "criteria": "criterion name",
    "options": "option name",
}
"""Keys whose mappings name things, each with what errors call such a name."""


def _check_names(section: str, names: Iterable[str], description: str) -> None:
    for name in names:
        if not NAME_PATTERN.fullmatch(name):
            raise ConfigError(
                f"{description} {name!r}",
                location=f"{section}.{name}",
                valid="letters, digits and '_', not starting with a digit",
            )


@dataclass(frozen=True)
class ScenarioNodeConfig:
    """A node of the scenario itself: the user's own, or one that no robot's package brings."""

    type: str = parameter(doc="name of `roboyard list`, `module:Class` or `file.py:Class`")
    robot: str | None = parameter(None, doc="robot whose namespace and resources the node gets")
    namespace: str | None = parameter(None, doc="namespace of the node; default: that of `robot`")
    parameters: dict[str, Any] = parameter(factory=dict, doc="values of the node's parameters")
    remap: dict[str, str] = parameter(factory=dict, doc="other names of its topics and services: {name: other name}")


@dataclass(frozen=True)
class ScenarioRobotConfig:
    """A robot of the scenario."""

    model: str = parameter(
        doc="a robot's name, a path to .yaml, .urdf, .xacro or .sdf, or `world:NAME`: a model of the world"
    )
    pose: Literal["free"] | Pose = parameter(
        (0.0, 0.0, 0.0), doc=f"{POSE_FORMAT} in m and rad; `free`: a free place near the origin"
    )
    namespace: str | None = parameter(
        None, doc="namespace of its nodes; default: none for the first robot, the robot's name for others"
    )
    nodes: Literal["default", "all", "none"] | tuple[str, ...] = parameter(
        "default", doc="nodes of the robot that are started"
    )
    parameters: dict[str, dict[str, Any]] = parameter(
        factory=dict, doc="values of its nodes' parameters: {node: {key: value}}"
    )
    remap: dict[str, dict[str, str]] = parameter(
        factory=dict, doc="other names of its nodes' topics and services: {node: {name: other name}}"
    )
    xacro_args: dict[str, str] = parameter(factory=dict, doc="xacro arguments")
    repair: bool = parameter(False, doc="repair faults of a bare description, such as links without mass")
    fixed_base: bool = parameter(False, doc="the base is fixed to the world")


@dataclass(frozen=True)
class DeviceConfig:
    """A device with a commanded joint or surface: a conveyor belt, a door, a turntable."""

    model: str = parameter(doc="`conveyor`, `door`, `sliding_door`, `turntable`, or a path to a file")
    pose: Pose = parameter((0.0, 0.0, 0.0), doc=f"{POSE_FORMAT} in m and rad")
    initial_command: float = parameter(
        0.0,
        low=-100.0,
        high=100.0,
        doc="first command: speed of a belt in m/s, of a turntable in rad/s, opening of a door (0 to 1)",
    )


@dataclass(frozen=True)
class RecordConfig:
    """What is recorded."""

    exclude_topics: tuple[str, ...] = parameter(
        (), doc="topics that are not recorded, with wildcards: [/scan, /truth/*]"
    )
    camera_rate: float = parameter(
        2.0, unit="Hz", low=0.0, high=60.0, doc="rate of recorded images of each camera; 0: none"
    )


@dataclass(frozen=True)
class VideoConfig:
    """The video of the run."""

    enabled: bool = parameter(False, doc="make a video of every run, not only with `--video`")
    view: Literal["chase", "overview", "top"] = parameter(
        "chase", doc="camera behind the first robot, in a corner of the world, above the world"
    )
    speed: float = parameter(2.0, low=0.01, high=1000.0, doc="simulated seconds per second of the video")
    fps: float = parameter(15.0, unit="Hz", low=1.0, high=120.0, doc="frames per second")
    width: int = parameter(640, unit="px", low=32, high=7680, doc="width of the frames, an even number")
    height: int = parameter(360, unit="px", low=32, high=4320, doc="height of the frames, an even number")

    def __post_init__(self) -> None:
        if self.width % 2 or self.height % 2:
            raise ConfigError(
                f"a video of {self.width} × {self.height} pixels",
                location="width" if self.width % 2 else "height",
                valid="even numbers of pixels",
            )


@dataclass(frozen=True)
class VariantsEntry:
    """Variants of a scenario: parts of a scenario that are laid over it key by key."""

    smoke: dict[str, Any] = parameter(
        factory=dict, doc="the short variant for tests, at most 5 s; it has only the criteria that it names itself"
    )
    substituted: dict[str, Any] = parameter(
        factory=dict, doc="the variant with another robot or world (`--robot`, `--world`)"
    )


@dataclass(frozen=True)
class ScenarioConfig:
    """One scenario file.

    `load_config` returns an object of a subclass if the file has keys that run plug-ins contribute.
    """

    world: str = parameter(doc="a world's name, or a path to .sdf, .world or .xml")
    duration: float = parameter(unit="s", low=0.001, high=1e6, doc="simulated time at which the run ends")
    extends: str | None = parameter(None, doc="name or path of a scenario that this one is laid over, as a variant is")
    summary: str = parameter("", doc="one line for `roboyard list`")
    robots: dict[str, ScenarioRobotConfig] = parameter(factory=dict, doc="robots by name; the first is the main robot")
    terrain: TerrainConfig | None = parameter(None, doc="uneven ground")
    devices: dict[str, DeviceConfig] = parameter(factory=dict, doc="devices by name")
    people: dict[str, PersonConfig] = parameter(factory=dict, doc="people by name")
    objects: dict[str, ObjectConfig] = parameter(factory=dict, doc="loose objects by name")
    appearance: AppearanceConfig = parameter(AppearanceConfig(), doc="light and floor texture")
    operator: (
        str | tuple[ScriptStep, ...] | OperatorScript | dict[str, str | tuple[ScriptStep, ...] | OperatorScript] | None
    ) = parameter(
        None, doc="operator script of the main robot: a file, its steps, or a mapping with `steps`; or {robot: script}"
    )
    mission: str | MissionConfig | None = parameter(
        None, doc="behavior tree (XML) or task file (YAML) of the main robot; replaces the node `mission`"
    )
    nodes: dict[str, ScenarioNodeConfig] = parameter(factory=dict, doc="further nodes by name")
    faults: tuple[FaultEntry, ...] = parameter((), doc="scheduled faults and events")
    criteria: dict[str, str] = parameter(
        factory=dict, doc="expressions over the metrics by name; a run succeeds if all of them hold"
    )
    comparison_metrics: tuple[str, ...] = parameter((), doc="metrics that `roboyard compare` shows first")
    stop_when: str | None = parameter(None, doc="expression over the metrics that ends the run when it holds")
    randomize: dict[str, tuple[float, float]] = parameter(
        factory=dict, doc="numbers that the seed draws uniformly, by key: {faults.0.friction: [0.4, 1]}"
    )
    seed: int = parameter(0, low=0, high=2**63 - 1, doc="seed of all random generators")
    timestep: float | None = parameter(
        None, unit="s", low=1e-5, high=0.1, doc="time step of the physics; default: that of the world"
    )
    record: RecordConfig = parameter(RecordConfig(), doc="settings of the recording")
    video: VideoConfig = parameter(VideoConfig(), doc="settings of the video")
    options: dict[str, ScenarioOption] = parameter(factory=dict, doc="named choices, set with `--set NAME=VALUE`")
    variants: VariantsEntry = parameter(VariantsEntry(), doc="what differs in variants")
    provenance: dict[str, Any] = parameter(
        factory=dict, doc="how the run was made; a run writes it, and it is ignored when the file is read"
    )

    def __post_init__(self) -> None:
        for section, description in NAMED_SECTIONS.items():
            _check_names(section, getattr(self, section), description)
        ambiguous_names = sorted(self.people.keys() & {*self.robots, *self.devices, *self.objects, *self.nodes})
        if ambiguous_names:
            raise ConfigError(
                f"{ambiguous_names[0]!r} is the name of a person and of another entry",
                location=f"people.{ambiguous_names[0]}",
                valid="another name",
            )
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
                        f"no robot {name!r}", location=f"operator.{name}", valid=f"robots: {', '.join(self.robots)}"
                    )
        if self.operator is not None and not self.robots:
            raise ConfigError("there is no robot for the operator", location="operator", valid="add one under robots")

    @property
    def main_robot(self) -> str | None:
        """Name of the first robot."""
        return next(iter(self.robots), None)

    def plugin_values(self) -> dict[str, Any]:
        """Return the values of the keys that run plug-ins contribute, by key; those that the file does not state lack.

        Their order is that of `scenario_keys`.
        """
        core_keys = {field.name for field in fields(ScenarioConfig)}
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in core_keys}
        return {key: value for key, value in values.items() if value is not None}


@dataclass(frozen=True)
class ScenarioOption:
    """One option: `choices`, each with what it changes, or `key`, the key that takes its value.

    `roboyard run … --set NAME=VALUE` gives the value.  What is changed is laid on the scenario as `variants.smoke`
    is; what
    `--set` says of deeper keys counts more.
    """

    summary: str = parameter("", doc="one line on the purpose of the option")
    choices: dict[str, dict[str, Any]] = parameter(
        factory=dict, doc="part of a scenario that each choice lays over it, by name"
    )
    key: str = parameter(
        "", doc="key that takes the value, instead of `choices`: robots.rover.parameters.navigator.planner"
    )
    allowed: tuple[OptionValue, ...] = parameter((), doc="values that the key may have; empty: any value")
    default: OptionValue | None = parameter(
        None, doc="value that holds unless another one is given; default: the first choice, or the value at the key"
    )

    def __post_init__(self) -> None:
        if bool(self.choices) == bool(self.key):
            raise ConfigError("neither or both of 'choices' and 'key'", location="key, choices", valid="one of them")
        if self.choices and self.allowed:
            raise ConfigError(
                "'allowed' beside 'choices'", location="allowed", valid="the names of the choices are what is valid"
            )

    @property
    def allowed_values(self) -> tuple[OptionValue, ...]:
        """Values that it may have; empty: any."""
        return tuple(self.choices) or self.allowed

    @property
    def selected(self) -> OptionValue | None:
        """The value that counts; None: what stands at the key."""
        return next(iter(self.choices)) if self.default is None and self.choices else self.default


def complete_config_class() -> type[ScenarioConfig]:
    """Return the class of scenario files with all keys: those of `ScenarioConfig`, and those of all run plug-ins.

    Raises:
        ConfigError: A run plug-in is wrong, or contributes a key that there is already.
    """
    contributed = scenario_keys()
    for key in fields(ScenarioConfig):
        if key.name in contributed:
            raise ConfigError(
                f"a run plug-in contributes the scenario key {key.name!r}, which there is already",
                location=type(contributed[key.name]).__name__,
                valid="another name",
            )
    return _extend_config(tuple(contributed.values()))


@lru_cache(maxsize=8)
def _extend_config(keys: tuple[ScenarioKey[Any], ...]) -> type[ScenarioConfig]:
    """Return `ScenarioConfig` with further keys; the same class for the same keys, so that its objects compare."""
    extended = make_dataclass(
        ScenarioConfig.__name__,
        [(key.key, key.config | None, parameter(None, doc=key.doc)) for key in keys],
        bases=(ScenarioConfig,),
        namespace={"__doc__": ScenarioConfig.__doc__, "__module__": __name__},
        frozen=True,
    )
    return extended


def load_config(source: Path | YamlNode, source_name: str | None = None) -> ScenarioConfig:
    """Read a scenario's file or tree.  Plug-ins are imported only if it has a key that `ScenarioConfig` lacks.

    Args:
        source: The file, or what was read of it.
        source_name: Name of the source in errors, if not its path.

    Raises:
        ConfigError: A key or a value is not right, or a run plug-in is wrong.
    """
    tree = read_yaml(source) if isinstance(source, Path) else source
    core_keys = {field.name for field in fields(ScenarioConfig)}
    is_extended = isinstance(tree.value, dict) and not core_keys.issuperset(tree.value)
    return load(complete_config_class() if is_extended else ScenarioConfig, tree, source_name=source_name)
