"""The faults that a scenario may list, as frozen dataclasses.

Every fault has a time.  Those that last have a duration; without one they last to the end of the run.
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
POSE_FORMAT = "[x, y, yaw] or [x, y, z, roll, pitch, yaw]"
_TRIGGER_PATTERN = re.compile(r"\w+(\.\w+)?")
_TRIGGER_DOC = "SKILL or SKILL.PHASE: when the robot's skills next tell that, at `time` or after"
_ROBOT_DOC = "whose; default: the first robot"


@dataclass(frozen=True)
class SpawnFault:
    """At a time a model appears."""

    time: float = parameter(unit="s", low=0.0, high=1e6, doc="simulated time")
    type: Literal["spawn"] = "spawn"
    model: str = parameter("box", doc="a path to a description, or `box`, `cylinder`, `sphere`")
    pose: Pose = parameter((0.0, 0.0, 0.0), doc=f"{POSE_FORMAT} in m and rad")
    name: str | None = parameter(None, doc="autostart: the model's")
    size: tuple[float, float, float] = parameter((0.4, 0.4, 0.4), unit="m", low=1e-3, doc="of the named shapes")
    pose_noise: tuple[float, float, float] = parameter(
        (0.0, 0.0, 0.0), low=0.0, high=1000.0, doc="x, y, yaw: by how much the pose differs from seed to seed, at most"
    )


@dataclass(frozen=True)
class RemoveFault:
    """At a time a model disappears."""

    time: float = parameter(unit="s", low=0.0, high=1e6, doc="simulated time")
    type: Literal["remove"] = "remove"
    name: str = parameter("", doc="of a spawned model or a robot")

    def __post_init__(self) -> None:
        if not self.name:
            raise ConfigError("key 'name' is missing", valid="the name of a spawned model or a robot")


@dataclass(frozen=True, kw_only=True)
class TeleportFault:
    """At a time a robot is carried elsewhere, which no wheel of it feels."""

    time: float = parameter(unit="s", low=0.0, high=1e6, doc="simulated time")
    type: Literal["teleport"]
    pose: Annotated[tuple[float, float, float], ValueConstraint(units=("m", "m", "rad"))] = parameter(
        doc="[x, y, yaw] where it is put"
    )
    robot: str | None = parameter(None, doc=_ROBOT_DOC)


@dataclass(frozen=True, kw_only=True)
class FootholdCollapseFault:
    """At a time the square of the terrain is gone on which a robot is about to set a foot, by its plan of steps."""

    time: float = parameter(unit="s", low=0.0, high=1e6, doc="simulated time")
    type: Literal["foothold_collapse"]
    lead_time: float = parameter(
        0.5, unit="s", low=0.0, high=1e3, doc="of feet that rise no sooner than this, by the plan"
    )
    robot: str | None = parameter(None, doc=_ROBOT_DOC)


@dataclass(frozen=True, kw_only=True)
class TriggeredFault:
    """What happens at a time, or when a robot's skills come to something."""

    time: float = parameter(unit="s", low=0.0, high=1e6, doc="simulated time at which it happens or begins")
    trigger: str | None = parameter(None, doc=_TRIGGER_DOC)
    occurrence: int = parameter(1, low=1, high=1_000_000, doc="of these moments, counted from `time` on")
    trigger_delay: float = parameter(0.0, unit="s", low=0.0, high=1e6, doc="after that moment")

    def __post_init__(self) -> None:
        if self.trigger is not None and not _TRIGGER_PATTERN.fullmatch(self.trigger):
            raise ConfigError(
                f"trigger {self.trigger!r}",
                valid="SKILL (when it begins) or SKILL.PHASE, as skills tell them: grasp.low",
            )
        if self.trigger is None and (self.occurrence != 1 or self.trigger_delay > 0.0):
            raise ConfigError(
                "occurrence or trigger_delay of no moment", valid="with 'trigger', which says what is counted"
            )


@dataclass(frozen=True, kw_only=True)
class LastingFault(TriggeredFault):
    """A fault that begins and, unless it lasts to the end, ends."""

    duration: float | None = parameter(None, unit="s", low=1e-9, high=1e6, doc="how long; default: to the end")


@dataclass(frozen=True, kw_only=True)
class ObjectFault(TriggeredFault):
    """Somebody meddles with what an arm goes for."""

    type: Literal[
        "knock_over", "remove_object", "drop_object", "cover_place", "remove_place", "push_objects_together",
        "occupy_place",
    ]  # fmt: skip
    object: str | None = parameter(
        None, doc="autostart: nearest to where the skill is at; of `drop_object` to the hand"
    )
    robot: str | None = parameter(None, doc=_ROBOT_DOC)


@dataclass(frozen=True, kw_only=True)
class DeviceCommandFault(TriggeredFault):
    """Furniture gets a command: a belt runs, a door opens."""

    type: Literal["device_command"]
    name: str = parameter(doc="of the furniture")
    value: float = parameter(
        low=-100.0, high=100.0, doc="m/s of a belt, rad/s of a turntable, how far a door is open (0 to 1)"
    )


@dataclass(frozen=True, kw_only=True)
class ServiceCallFault(TriggeredFault):
    """Somebody calls a service that takes nothing (std_srvs/Trigger), as an emergency stop."""

    type: Literal["call_service"]
    service: str = parameter("arm/stop", doc="its name in the robot's namespace")
    robot: str | None = parameter(None, doc=_ROBOT_DOC)


@dataclass(frozen=True, kw_only=True)
class SensorOutputFault(LastingFault):
    """A sensor says nothing, the same again and again, or of a depth camera that it could measure nothing."""

    type: Literal["sensor_dropout", "sensor_frozen", "depth_dropout"]
    sensor: str = parameter(doc="its name in the robot's description")
    robot: str | None = parameter(None, doc=_ROBOT_DOC)


@dataclass(frozen=True, kw_only=True)
class LowLightFault(LastingFault):
    """A camera's pictures are darker: the lamps are off. Depth, which brings its own light, is as ever."""

    type: Literal["low_light"]
    sensor: str = parameter(doc="its name in the robot's description")
    brightness: float = parameter(0.0, low=0.0, high=1.0, doc="what is left, as a share")
    robot: str | None = parameter(None, doc=_ROBOT_DOC)


@dataclass(frozen=True, kw_only=True)
class SensorDelayFault(LastingFault):
    """A sensor's readings come late."""

    type: Literal["sensor_delay"]
    sensor: str = parameter(doc="its name in the robot's description")
    delay: float = parameter(unit="s", low=1e-9, high=3600.0, doc="how late")
    robot: str | None = parameter(None, doc=_ROBOT_DOC)


@dataclass(frozen=True, kw_only=True)
class SensorNoiseFault(LastingFault):
    """A sensor has more noise than it is made with."""

    type: Literal["sensor_noise"]
    sensor: str = parameter(doc="its name in the robot's description")
    stddev: float = parameter(low=0.0, high=1e6, doc="of white noise, in the unit of what it measures")
    robot: str | None = parameter(None, doc=_ROBOT_DOC)


@dataclass(frozen=True, kw_only=True)
class JointLockedFault(LastingFault):
    """A wheel or joint cannot move."""

    type: Literal["joint_locked"]
    joint: str = parameter(doc="its name in the robot's description")
    robot: str | None = parameter(None, doc=_ROBOT_DOC)


@dataclass(frozen=True, kw_only=True)
class JointDegradedFault(LastingFault):
    """A wheel's or joint's motor has only a share of its effort left."""

    type: Literal["joint_degraded"]
    joint: str = parameter(doc="its name in the robot's description")
    effort_scale: float = parameter(0.3, low=0.0, high=1.0, doc="what is left, as a share of its limit")
    robot: str | None = parameter(None, doc=_ROBOT_DOC)


@dataclass(frozen=True, kw_only=True)
class PowerLossFault(LastingFault):
    """No motor of a robot has any effort, joints with brakes are held, and its sensors are silent."""

    type: Literal["power_loss"]
    robot: str | None = parameter(None, doc=_ROBOT_DOC)


@dataclass(frozen=True, kw_only=True)
class LowFrictionFault(LastingFault):
    """A rectangle of the ground has another friction."""

    type: Literal["low_friction_area"]
    pose: Annotated[tuple[float, float, float], ValueConstraint(units=("m", "m", "rad"))] = parameter(
        doc="[x, y, yaw] of its middle"
    )
    size: tuple[float, float] = parameter(unit="m", low=1e-3, high=1e4, doc="[length, width]")
    friction: float = parameter(0.1, low=0.0, high=10.0, doc="Coulomb's coefficient of the ground there")


@dataclass(frozen=True, kw_only=True)
class MessageLossFault(LastingFault):
    """Some of the messages of a topic do not reach their subscribers."""

    type: Literal["message_loss"]
    topic: str = parameter(doc="e.g. /scan")
    probability: float = parameter(1.0, low=0.0, high=1.0, doc="of the messages that get lost")


@dataclass(frozen=True, kw_only=True)
class MessageDelayFault(LastingFault):
    """The messages of a topic reach their subscribers late."""

    type: Literal["message_delay"]
    topic: str = parameter(doc="e.g. /scan")
    delay: float = parameter(unit="s", low=1e-9, high=3600.0, doc="how late")


FaultConfig = (
    SpawnFault
    | RemoveFault
    | DeviceCommandFault
    | TeleportFault
    | FootholdCollapseFault
    | ObjectFault
    | ServiceCallFault
    | SensorOutputFault
    | LowLightFault
    | SensorDelayFault
    | SensorNoiseFault
    | JointLockedFault
    | JointDegradedFault
    | PowerLossFault
    | LowFrictionFault
    | MessageLossFault
    | MessageDelayFault
)
