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
from roboyard.errors import ConfigError
from roboyard.scenarios.faults.kinds import POSE, Fault, Pose, Remove, Spawn
from roboyard.scenarios.ground import TerrainEntry
from roboyard.scenarios.missions import MissionEntry
from roboyard.scenarios.options import OptionEntry
from roboyard.scenarios.people import PersonEntry
from roboyard.scenarios.script import Script, Step
from roboyard.scenarios.setting import LooksEntry, ThingEntry

__all__ = [
    "FurnitureEntry",
    "MissionEntry",
    "NodeEntry",
    "OptionEntry",
    "PersonEntry",
    "Pose",
    "RecordEntry",
    "Remove",
    "RobotEntry",
    "Scenario",
    "Spawn",
    "TerrainEntry",
    "VideoEntry",
]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _check_names(names: tuple[str, ...], what: str) -> None:
    for name in names:
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{what} {name!r}", valid="letters, digits and '_', not starting with a digit")


@dataclass(frozen=True)
class NodeEntry:
    """A node of the scenario itself: the user's own, or one that no robot's package brings."""

    use: str = parameter(doc="name of `roboyard list`, `module:Class` or `file.py:Class`")
    robot: str | None = parameter(None, doc="whose namespace and resources it gets")
    namespace: str | None = parameter(None, doc="instead of the robot's")
    parameters: dict[str, Any] = parameter(factory=dict, doc="its declared parameters")
    remap: dict[str, str] = parameter(factory=dict, doc="other names of its topics and services")


@dataclass(frozen=True)
class RobotEntry:
    """A robot of the scenario."""

    model: str = parameter(
        doc="a robot's name, a path to .yaml, .urdf, .xacro or .sdf, or `world:NAME`: a model of the world"
    )
    at: Literal["free"] | Pose = parameter((0.0, 0.0, 0.0), doc=f"{POSE} in m and rad; `free`: near the origin")
    namespace: str | None = parameter(None, doc="default: none for the first robot, its own name for others")
    nodes: Literal["default", "all", "none"] | tuple[str, ...] = parameter(
        "default", doc="which of the robot's nodes run"
    )
    parameters: dict[str, dict[str, Any]] = parameter(factory=dict, doc="node: {key: value}")
    remap: dict[str, dict[str, str]] = parameter(factory=dict, doc="node: {name: other name}")
    arguments: dict[str, str] = parameter(factory=dict, doc="xacro arguments")
    repair: bool = parameter(
        False, doc="mend what can be mended in a bare description: links without mass and the like"
    )
    fixed: bool = parameter(False, doc="bolt it to the world where it is put")


@dataclass(frozen=True)
class FurnitureEntry:
    """Furniture that moves: a conveyor belt, a door, a turntable."""

    model: str = parameter(doc="`conveyor`, `door`, `sliding_door`, `turntable`, or a path to a file")
    at: Pose = parameter((0.0, 0.0, 0.0), doc=f"{POSE} in m and rad")
    start: float = parameter(
        0.0, low=-100.0, high=100.0, doc="first command: m/s of a belt, rad/s, how far open (0 to 1)"
    )


@dataclass(frozen=True)
class RecordEntry:
    """What is recorded."""

    exclude_topics: tuple[str, ...] = parameter((), doc="topics, `*` stands for anything: [/scan, /truth/*]")
    camera_rate: float = parameter(2.0, unit="Hz", low=0.0, high=60.0, doc="of recorded images of each camera; 0: none")


@dataclass(frozen=True)
class VideoEntry:
    """The film of the run."""

    always: bool = parameter(False, doc="make one at every run, not only when asked")
    view: Literal["chase", "overview", "top"] = parameter("chase", doc="behind the robot, from a corner, from above")
    speed: float = parameter(2.0, low=0.01, high=1000.0, doc="simulated seconds a second of film")
    fps: float = parameter(15.0, unit="Hz", low=1.0, high=120.0, doc="pictures a second of film")
    width: int = parameter(640, unit="px", low=32, high=7680, doc="even")
    height: int = parameter(360, unit="px", low=32, high=4320, doc="even")

    def __post_init__(self) -> None:
        if self.width % 2 or self.height % 2:
            raise ConfigError(f"a picture of {self.width} × {self.height}", valid="even numbers of pixels")


@dataclass(frozen=True)
class Scenario:
    """One scenario file."""

    world: str = parameter(doc="a world's name, or a path to .sdf, .world or .xml")
    duration: float = parameter(unit="s", low=0.001, high=1e6, doc="simulated time at which it ends")
    summary: str = parameter("", doc="one line for `roboyard list`")
    robots: dict[str, RobotEntry] = parameter(factory=dict, doc="by name, the first is the main one")
    terrain: TerrainEntry | None = parameter(None, doc="uneven ground, made by its seed")
    furniture: dict[str, FurnitureEntry] = parameter(factory=dict, doc="what moves by itself, by name")
    people: dict[str, PersonEntry] = parameter(factory=dict, doc="who is there, by name")
    things: dict[str, ThingEntry] = parameter(factory=dict, doc="what stands or lies about, by name")
    looks: LooksEntry = parameter(LooksEntry(), doc="")
    operator: str | tuple[Step, ...] | Script | dict[str, str | tuple[Step, ...] | Script] | None = parameter(
        None, doc="a script file, or the script itself, for the main robot; or {robot: script}"
    )
    movement: str | None = parameter(None, doc="a movement file that the main robot plays once it has stood up")
    mission: str | MissionEntry | None = parameter(
        None, doc="a behaviour tree (XML) or tasks (YAML) for the main robot, in place of the node `mission`"
    )
    nodes: dict[str, NodeEntry] = parameter(factory=dict, doc="further nodes")
    faults: tuple[Fault, ...] = parameter((), doc="what happens when")
    criteria: dict[str, str] = parameter(factory=dict, doc="expressions over the metrics; all must hold")
    compared: tuple[str, ...] = parameter((), doc="metrics that `roboyard compare` sets side by side first")
    until: str | None = parameter(None, doc="expression over the metrics that ends the run early")
    draws: dict[str, tuple[float, float]] = parameter(
        factory=dict, doc="numbers drawn evenly by the seed: {faults.0.friction: [0.4, 1]}"
    )
    seed: int = parameter(0, low=0, high=2**63 - 1, doc="of every random generator")
    timestep: float | None = parameter(None, unit="s", low=1e-5, high=0.1, doc="of the physics; default: the world's")
    record: RecordEntry = parameter(RecordEntry(), doc="")
    video: VideoEntry = parameter(VideoEntry(), doc="")
    options: dict[str, OptionEntry] = parameter(factory=dict, doc="what `--set NAME=VALUE` offers by a short name")
    smoke: dict[str, Any] = parameter(factory=dict, doc="what differs in the smoke variant of at most 5 s")
    elsewhere: dict[str, Any] = parameter(factory=dict, doc="what differs with another robot or world in place")
    run: dict[str, Any] = parameter(factory=dict, doc="written by a run: how it was made; ignored when read")

    def __post_init__(self) -> None:
        _check_names(tuple(self.robots), "robot name")
        _check_names(tuple(self.nodes), "node name")
        _check_names(tuple(self.furniture), "furniture name")
        _check_names(tuple(self.things), "thing name")
        _check_names(tuple(self.people), "person's name")
        both = sorted(self.people.keys() & {*self.robots, *self.furniture, *self.things, *self.nodes})
        if both:
            raise ConfigError(f"{both[0]!r} is a person and something else", location="people", valid="another name")
        _check_names(tuple(self.criteria), "criterion name")
        _check_names(tuple(self.options), "option name")
        for key, (low, high) in self.draws.items():
            if not (math.isfinite(low) and math.isfinite(high) and low <= high):
                raise ConfigError(f"[{low:g}, {high:g}]", location=f"draws.{key}", valid="[least, greatest]")
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
