"""What a scenario's ``faults`` may say, as frozen dataclasses.

Every entry has a time ``at``.  Those that last have ``for``; without it they last to the end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from roboyard.config import ValueConstraint, parameter
from roboyard.errors import ConfigError

Pose = (
    Annotated[tuple[float, float, float], ValueConstraint(units=("m", "m", "rad"))]
    | Annotated[
        tuple[float, float, float, float, float, float], ValueConstraint(units=("m", "m", "m", "rad", "rad", "rad"))
    ]
)
POSE = "[x, y, yaw] or [x, y, z, roll, pitch, yaw]"
_MOMENT = re.compile(r"\w+(\.\w+)?")
_ON = "SKILL or SKILL.PHASE: when the robot's skills next tell that, at `at` or after"
_WHOSE = "whose; default: the first robot"


@dataclass(frozen=True)
class Spawn:
    """At a time a model appears."""

    at: float = parameter(unit="s", low=0.0, high=1e6, doc="simulated time")
    what: Literal["spawn"] = "spawn"
    model: str = parameter("box", doc="a path to a description, or `box`, `cylinder`, `sphere`")
    pose: Pose = parameter((0.0, 0.0, 0.0), doc=f"{POSE} in m and rad")
    name: str | None = parameter(None, doc="default: the model's")
    size: tuple[float, float, float] = parameter((0.4, 0.4, 0.4), unit="m", low=1e-3, doc="of the named shapes")
    scatter: tuple[float, float, float] = parameter(
        (0.0, 0.0, 0.0), low=0.0, high=1000.0, doc="x, y, yaw: by how much the pose differs from seed to seed, at most"
    )


@dataclass(frozen=True)
class Remove:
    """At a time a model disappears."""

    at: float = parameter(unit="s", low=0.0, high=1e6, doc="simulated time")
    what: Literal["remove"] = "remove"
    name: str = parameter("", doc="of a spawned model or a robot")

    def __post_init__(self) -> None:
        if not self.name:
            raise ConfigError("key 'name' is missing", valid="the name of a spawned model or a robot")


@dataclass(frozen=True, kw_only=True)
class Carry:
    """At a time a robot is carried elsewhere, which no wheel of it feels."""

    at: float = parameter(unit="s", low=0.0, high=1e6, doc="simulated time")
    what: Literal["carry"]
    pose: Annotated[tuple[float, float, float], ValueConstraint(units=("m", "m", "rad"))] = parameter(
        doc="[x, y, yaw] where it is put"
    )
    robot: str | None = parameter(None, doc=_WHOSE)


@dataclass(frozen=True, kw_only=True)
class FootholdGone:
    """At a time the square of the terrain is gone on which a robot is about to set a foot, by its plan of steps."""

    at: float = parameter(unit="s", low=0.0, high=1e6, doc="simulated time")
    what: Literal["foothold_gone"]
    ahead: float = parameter(0.5, unit="s", low=0.0, high=1e3, doc="of feet that rise no sooner than this, by the plan")
    robot: str | None = parameter(None, doc=_WHOSE)


@dataclass(frozen=True, kw_only=True)
class Awaiting:
    """What happens at a time, or when a robot's skills come to something."""

    at: float = parameter(unit="s", low=0.0, high=1e6, doc="simulated time at which it happens or begins")
    on: str | None = parameter(None, doc=_ON)
    nth: int = parameter(1, low=1, high=1_000_000, doc="of these moments, counted from `at` on")
    later: float = parameter(0.0, unit="s", low=0.0, high=1e6, doc="after that moment")

    def __post_init__(self) -> None:
        if self.on is not None and not _MOMENT.fullmatch(self.on):
            raise ConfigError(
                f"on {self.on!r}", valid="SKILL (when it begins) or SKILL.PHASE, as skills tell them: grasp.low"
            )
        if self.on is None and (self.nth != 1 or self.later > 0.0):
            raise ConfigError("nth or later of no moment", valid="with 'on', which says what is counted")


@dataclass(frozen=True, kw_only=True)
class Lasting(Awaiting):
    """A fault that begins and, unless it lasts to the end, ends."""

    seconds: float | None = parameter(
        None, unit="s", low=1e-9, high=1e6, doc="how long; default: to the end", key="for"
    )


@dataclass(frozen=True, kw_only=True)
class Meddle(Awaiting):
    """Somebody meddles with what an arm goes for."""

    what: Literal["knock_over", "take_away", "slip", "cover", "erase", "push_together", "occupy"]
    thing: str | None = parameter(None, doc="default: nearest to where the skill is at; of `slip` to the hand")
    robot: str | None = parameter(None, doc=_WHOSE)


@dataclass(frozen=True, kw_only=True)
class Move(Awaiting):
    """Furniture gets a command: a belt runs, a door opens."""

    what: Literal["furniture"]
    name: str = parameter(doc="of the furniture")
    to: float = parameter(
        low=-100.0, high=100.0, doc="m/s of a belt, rad/s of a turntable, how far a door is open (0 to 1)"
    )


@dataclass(frozen=True, kw_only=True)
class Press(Awaiting):
    """Somebody calls a service that takes nothing (std_srvs/Trigger), as an emergency stop."""

    what: Literal["press"]
    service: str = parameter("arm/stop", doc="its name in the robot's namespace")
    robot: str | None = parameter(None, doc=_WHOSE)


@dataclass(frozen=True, kw_only=True)
class SensorSilent(Lasting):
    """A sensor says nothing, the same again and again, or of a depth camera that it could measure nothing."""

    what: Literal["sensor_silent", "sensor_stuck", "sensor_blind"]
    sensor: str = parameter(doc="its name in the robot's description")
    robot: str | None = parameter(None, doc=_WHOSE)


@dataclass(frozen=True, kw_only=True)
class SensorDark(Lasting):
    """A camera's pictures are darker: the lamps are off. Depth, which brings its own light, is as ever."""

    what: Literal["sensor_dark"]
    sensor: str = parameter(doc="its name in the robot's description")
    light: float = parameter(0.0, low=0.0, high=1.0, doc="what is left, as a share")
    robot: str | None = parameter(None, doc=_WHOSE)


@dataclass(frozen=True, kw_only=True)
class SensorDelayed(Lasting):
    """A sensor's readings come late."""

    what: Literal["sensor_delayed"]
    sensor: str = parameter(doc="its name in the robot's description")
    delay: float = parameter(unit="s", low=1e-9, high=3600.0, doc="how late")
    robot: str | None = parameter(None, doc=_WHOSE)


@dataclass(frozen=True, kw_only=True)
class SensorNoisy(Lasting):
    """A sensor has more noise than it is made with."""

    what: Literal["sensor_noisy"]
    sensor: str = parameter(doc="its name in the robot's description")
    stddev: float = parameter(low=0.0, high=1e6, doc="of white noise, in the unit of what it measures")
    robot: str | None = parameter(None, doc=_WHOSE)


@dataclass(frozen=True, kw_only=True)
class JointBlocked(Lasting):
    """A wheel or joint cannot move."""

    what: Literal["joint_blocked"]
    joint: str = parameter(doc="its name in the robot's description")
    robot: str | None = parameter(None, doc=_WHOSE)


@dataclass(frozen=True, kw_only=True)
class JointWeak(Lasting):
    """A wheel's or joint's motor has only a share of its effort left."""

    what: Literal["joint_weak"]
    joint: str = parameter(doc="its name in the robot's description")
    effort: float = parameter(0.3, low=0.0, high=1.0, doc="what is left, as a share of its limit")
    robot: str | None = parameter(None, doc=_WHOSE)


@dataclass(frozen=True, kw_only=True)
class PowerLoss(Lasting):
    """No motor of a robot has any effort, joints with brakes are held, and its sensors are silent."""

    what: Literal["power_loss"]
    robot: str | None = parameter(None, doc=_WHOSE)


@dataclass(frozen=True, kw_only=True)
class SlipPatch(Lasting):
    """A rectangle of the ground has another friction."""

    what: Literal["slip_patch"]
    pose: Annotated[tuple[float, float, float], ValueConstraint(units=("m", "m", "rad"))] = parameter(
        doc="[x, y, yaw] of its middle"
    )
    size: tuple[float, float] = parameter(unit="m", low=1e-3, high=1e4, doc="[length, width]")
    friction: float = parameter(0.1, low=0.0, high=10.0, doc="Coulomb's coefficient of the ground there")


@dataclass(frozen=True, kw_only=True)
class MessageLoss(Lasting):
    """Some of the messages of a topic do not reach their subscribers."""

    what: Literal["message_loss"]
    topic: str = parameter(doc="e.g. /scan")
    share: float = parameter(1.0, low=0.0, high=1.0, doc="of the messages that get lost")


@dataclass(frozen=True, kw_only=True)
class MessageDelay(Lasting):
    """The messages of a topic reach their subscribers late."""

    what: Literal["message_delay"]
    topic: str = parameter(doc="e.g. /scan")
    delay: float = parameter(unit="s", low=1e-9, high=3600.0, doc="how late")


Fault = (
    Spawn
    | Remove
    | Move
    | Carry
    | FootholdGone
    | Meddle
    | Press
    | SensorSilent
    | SensorDark
    | SensorDelayed
    | SensorNoisy
    | JointBlocked
    | JointWeak
    | PowerLoss
    | SlipPatch
    | MessageLoss
    | MessageDelay
)
