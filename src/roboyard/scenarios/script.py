"""Operator scripts: what the person at the joystick does, as a list of timed steps.

- {drive: {v: 0.5, w: 0.2, for: 3}}     hold a twist
- {keys: {press: [w, w, wa], each: 0.5}} hold keys one after the other
- {goto: [2.0, 1.0]}                     drive to a point by odometry
- {follow: {points: [[1, 0], [2, 1]]}}   drive along points by odometry
- {wait: 1}                              hold the stick at zero
- {silence: 5}                           say nothing at all: the link is lost
- {repeat: {times: 2, steps: [...]}}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from roboyard.config import ValueConstraint, YamlNode, load, parameter, read_yaml, yaml_from_data
from roboyard.errors import ConfigError

MAX_ACTIONS = 100_000
KEYS: dict[str, tuple[float, float]] = {"w": (1, 0), "s": (-1, 0), "a": (0, 1), "d": (0, -1), "x": (0, 0), " ": (0, 0)}
"""Parts of full speed (forward, left turn) that each key stands for; keys held together add up."""

Point = Annotated[tuple[float, float], ValueConstraint(unit="m")]


@dataclass(frozen=True)
class Drive:
    """Hold a twist."""

    v: float = parameter(0.0, unit="m/s", low=-20.0, high=20.0, doc="forward")
    w: float = parameter(0.0, unit="rad/s", low=-20.0, high=20.0, doc="left turn")
    seconds: float = parameter(1.0, unit="s", low=0.0, high=1e6, doc="how long", key="for")


@dataclass(frozen=True)
class Keys:
    """Hold keys one after the other: w a s d, several at once as `wa`, x or a space for none."""

    press: tuple[str, ...] = parameter(doc="e.g. [w, w, wa, x]")
    each: float = parameter(0.5, unit="s", low=0.0, high=1e4, doc="how long each")
    speed: float = parameter(0.5, unit="m/s", low=0.0, high=20.0, doc="of w and s")
    turn: float = parameter(1.0, unit="rad/s", low=0.0, high=20.0, doc="of a and d")

    def __post_init__(self) -> None:
        for held in self.press:
            for key in held:
                if key not in KEYS:
                    raise ConfigError(f"key {key!r}", location="press", valid="w, a, s, d, x")


@dataclass(frozen=True)
class Follow:
    """Drive along points given in the odometry's frame, by what the robot itself knows."""

    points: tuple[Point, ...] = parameter(doc="[[x, y], ...] in the frame of /odom")
    speed: float = parameter(0.5, unit="m/s", low=0.01, high=20.0, doc="on straights")
    turn: float = parameter(1.5, unit="rad/s", low=0.01, high=20.0, doc="at most")
    tolerance: float = parameter(0.15, unit="m", low=0.01, doc="distance at which the last point counts as reached")
    lookahead: float = parameter(0.5, unit="m", low=0.05, doc="how far ahead on the line it aims")
    timeout: float = parameter(300.0, unit="s", low=0.0, doc="after which it goes on with the next step")

    def __post_init__(self) -> None:
        if not self.points:
            raise ConfigError("there is no point", location="points")


@dataclass(frozen=True)
class Goto:
    """Drive to one point."""

    to: Point = parameter(doc="[x, y] in the frame of /odom")
    speed: float = parameter(0.5, unit="m/s", low=0.01, high=20.0)
    turn: float = parameter(1.5, unit="rad/s", low=0.01, high=20.0)
    tolerance: float = parameter(0.15, unit="m", low=0.01)
    timeout: float = parameter(120.0, unit="s", low=0.0)


@dataclass(frozen=True)
class Wander:
    """Drive about by lidar, wherever there is room."""

    seconds: float = parameter(30.0, unit="s", low=0.0, high=1e6, doc="how long", key="for")
    speed: float = parameter(0.5, unit="m/s", low=0.01, high=20.0, doc="at most, and at most two of its radii a second")
    turn: float = parameter(1.0, unit="rad/s", low=0.01, high=20.0, doc="at most")
    margin: float = parameter(0.1, unit="m", low=0.0, high=10.0, doc="kept from everything seen")


@dataclass(frozen=True)
class Repeat:
    """Steps several times."""

    times: int = parameter(low=0, high=MAX_ACTIONS)
    steps: tuple[Step, ...] = parameter()


@dataclass(frozen=True)
class Step:
    """One step: exactly one of these keys."""

    drive: Drive | None = None
    keys: Keys | None = None
    goto: Goto | Point | None = None
    follow: Follow | None = None
    wander: Wander | None = None
    wait: float | None = parameter(None, unit="s", low=0.0)
    silence: float | None = parameter(None, unit="s", low=0.0)
    repeat: Repeat | None = None

    def __post_init__(self) -> None:
        names = [f.name for f in fields(self)]
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) != 1:
            what = f"a step with {' and '.join(given)}" if given else "an empty step"
            raise ConfigError(what, valid=f"exactly one of: {', '.join(names)}")


@dataclass(frozen=True)
class Script:
    """A whole script."""

    steps: tuple[Step, ...] = parameter(doc="what the operator does, one after the other")
    rate: float = parameter(20.0, unit="Hz", low=0.1, high=1000.0, doc="of the operator's messages")
    frame: str = parameter("odom", doc="of the points: odom, or map where the robot finds its place in one")
    tremor: float = parameter(0.0, low=0.0, high=1.0, doc="how far the hand strays, as a share of what it holds")


@dataclass(frozen=True, slots=True)
class Hold:
    """A twist (v [m/s], w [rad/s]) for some seconds; None: say nothing."""

    twist: tuple[float, float] | None
    seconds: float


Action = Hold | Follow | Wander


ScriptFile = tuple[Step, ...] | Script
"""Content of a script's file."""


def load_script(source: str | Path | Sequence[Any] | Mapping[str, Any], where: str = "operator") -> Script:
    """Read a script: a YAML file's path, or data; either the list of steps or a mapping with `steps` and `rate`.

    Raises:
        ConfigError: it cannot be read or says something it may not.
    """
    node = read_yaml(source) if isinstance(source, str | Path) else yaml_from_data(source, where)
    if isinstance(node.value, list):
        node = YamlNode(
            {"steps": YamlNode(node.value, node.location, node.location, node.size)},
            node.location,
            node.location,
            node.size,
        )
    return load(Script, node, source_name=where)


def actions(script: Script) -> tuple[Action, ...]:
    """The script as a flat list of actions, repeats written out.

    Raises:
        ConfigError: that would be more than ``MAX_ACTIONS``.
    """
    flat: list[Action] = []
    for action in _flatten(script.steps):
        if len(flat) == MAX_ACTIONS:
            raise ConfigError(f"the script has more than {MAX_ACTIONS} steps", location="operator")
        flat.append(action)
    return tuple(flat)


def _flatten(steps: tuple[Step, ...]) -> Iterator[Action]:
    for step in steps:
        if step.drive is not None:
            yield Hold((step.drive.v, step.drive.w), step.drive.seconds)
        elif step.keys is not None:
            for held in step.keys.press:
                forward = sum(KEYS[key][0] for key in held)
                left = sum(KEYS[key][1] for key in held)
                yield Hold((forward * step.keys.speed, left * step.keys.turn), step.keys.each)
        elif step.follow is not None:
            yield step.follow
        elif isinstance(step.goto, Goto):
            goto = step.goto
            yield Follow((goto.to,), goto.speed, goto.turn, goto.tolerance, timeout=goto.timeout)
        elif step.goto is not None:
            yield Follow((step.goto,))
        elif step.wander is not None:
            yield step.wander
        elif step.wait is not None:
            yield Hold((0.0, 0.0), step.wait)
        elif step.silence is not None:
            yield Hold(None, step.silence)
        elif step.repeat is not None:
            for _ in range(step.repeat.times):
                yield from _flatten(step.repeat.steps)
