"""Configuration of a robot's servos: ids, directions, zero positions, limits, and when motion is stopped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.config import load, parameter
from roboyard.description import Model
from roboyard.errors import ConfigError
from roboyard.hardware.dynamixel.control_table import MAX_POSITION, POSITION_UNIT

BAUD_RATES = (9600, 19200, 57600, 115200, 230400, 460800, 500000, 1000000)


@dataclass(frozen=True)
class ServoConfig:
    """One servo."""

    id: int = parameter(low=0, high=253, doc="on the bus")
    zero_position: int = parameter(512, low=0, high=MAX_POSITION, doc="servo position at joint angle zero, 0 to 1023")
    direction: Literal[1, -1] = parameter(1, doc="-1: it turns against the joint")
    limits: tuple[int, int] = parameter(
        (0, MAX_POSITION), low=0, high=MAX_POSITION, doc="positions that it may be sent to"
    )

    def __post_init__(self) -> None:
        if self.limits[0] >= self.limits[1]:
            raise ConfigError(
                f"from {self.limits[0]} to {self.limits[1]}", location="limits", valid="the lower one first"
            )


@dataclass(frozen=True)
class FaultLimits:
    """When motion is stopped, and how."""

    max_missed_replies: int = parameter(3, low=1, high=100, doc="consecutive requests that a servo does not answer")
    max_corrupt_packets: int = parameter(10, low=1, high=10_000, doc="corrupt packets of all servos within one second")
    min_voltage: float = parameter(12.0, unit="V", low=0.0, high=25.0, doc="three readings of a servo below it")
    max_temperature: float = parameter(75.0, low=20.0, high=150.0, doc="of a servo [°C]")
    on_fault: Literal["hold", "release"] = parameter(
        "hold", doc="hold: all servos hold their present positions; release: their torque is switched off"
    )


@dataclass(frozen=True)
class ServosConfig:
    """What `servos.yaml` may say."""

    servos: dict[str, ServoConfig] = parameter(doc="by name of the joint")
    baud: int = parameter(1_000_000, choices=BAUD_RATES, doc="bits a second on the bus")
    rate: float = parameter(50.0, unit="Hz", low=5.0, high=200.0, doc="how often goals are sent")
    servos_polled_per_cycle: int = parameter(
        6, low=1, high=253, doc="servos that report their state per cycle, in turn"
    )
    reply_timeout: float = parameter(0.02, unit="s", low=1e-3, high=1.0, doc="maximum time until a reply")
    compliance_slope: int = parameter(
        16, low=1, high=254, doc="steps of 0.29° beside the goal at which a servo gives all its torque"
    )
    compliance_margin: int = parameter(1, low=0, high=255, doc="steps beside the goal at which it gives none")
    punch: int = parameter(32, low=0, high=MAX_POSITION, doc="its least torque outside the margin, of 1023")
    start_speed: float = parameter(
        0.5, unit="rad/s", low=0.02, high=5.0, doc="of joints on their way to the first command"
    )
    fault_limits: FaultLimits = parameter(FaultLimits(), doc="")


@dataclass(frozen=True, eq=False)
class ServoMap:
    """Joints and their servos, in one order.

    Attributes:
        joints: (n) names.
        ids: (n) on the bus.
        zero_position: (n) positions of the servos at the joints' zeros [ticks].
        direction: (n) 1 or -1.
        min_position: (n) least positions of the joints [rad], by servo and description.
        max_position: (n) greatest ones [rad].
        max_velocity: (n) greatest speeds [rad/s].
        max_effort: (n) greatest efforts [N m].
    """

    joints: tuple[str, ...]
    ids: tuple[int, ...]
    zero_position: NDArray[np.int64]
    direction: NDArray[np.int64]
    min_position: NDArray[np.float64]
    max_position: NDArray[np.float64]
    max_velocity: NDArray[np.float64]
    max_effort: NDArray[np.float64]

    @classmethod
    def from_config(cls, config: ServosConfig, model: Model, source: str) -> ServoMap:
        """The servos of a described robot.

        Raises:
            ConfigError: a joint is not there or turns not, two servos have one id, or limits leave nothing.
        """
        joints_by_name = {joint.name: joint for joint in model.joints if joint.type in ("revolute", "continuous")}
        joint_of_id: dict[int, str] = {}
        for name, entry in config.servos.items():
            if name not in joints_by_name:
                raise ConfigError(
                    f"no joint {name!r}", location=f"{source}, servos", valid=f"joints: {', '.join(joints_by_name)}"
                )
            if entry.id in joint_of_id:
                raise ConfigError(
                    f"id {entry.id} is that of {joint_of_id[entry.id]} too", location=f"{source}, servos.{name}",
                    valid="an id for each servo",
                )  # fmt: skip
            joint_of_id[entry.id] = name
        if not joint_of_id:
            raise ConfigError("no servos", location=f"{source}, servos", valid="one or more")
        entries = list(config.servos.values())
        limits = [joints_by_name[name].axes[0].limits for name in config.servos]
        zero, direction = np.array([one.zero_position for one in entries]), np.array([one.direction for one in entries])
        ends = direction[:, None] * (np.array([one.limits for one in entries]) - zero[:, None]) * POSITION_UNIT
        low = np.maximum(ends.min(axis=1), [one.lower for one in limits])
        high = np.minimum(ends.max(axis=1), [one.upper for one in limits])
        for name, lower, upper in zip(config.servos, low, high, strict=True):
            if lower >= upper:
                raise ConfigError(
                    "nothing is left between limits of servo and joint", location=f"{source}, servos.{name}",
                    valid="another zero_position or other limits",
                )  # fmt: skip
        speed = np.array([one.velocity for one in limits])
        effort = np.array([one.effort if math.isfinite(one.effort) else 0.0 for one in limits])
        return cls(tuple(config.servos), tuple(one.id for one in entries), zero, direction, low, high, speed, effort)

    def to_ticks(self, q: ArrayLike) -> NDArray[np.int64]:
        """(n) positions of the servos nearest to joints (n) [rad]."""
        exact = self.zero_position + self.direction * np.asarray(q, float) / POSITION_UNIT
        nearest: NDArray[np.int64] = np.clip(np.rint(exact).astype(np.int64), 0, MAX_POSITION)
        return nearest

    def to_angles(self, ticks: ArrayLike) -> NDArray[np.float64]:
        """(n) joints [rad] at positions (n) of the servos."""
        angles: NDArray[np.float64] = self.direction * (np.asarray(ticks) - self.zero_position) * POSITION_UNIT
        return angles


def load_servos(path: Path, model: Model, joints: Sequence[str] = ()) -> tuple[ServosConfig, ServoMap]:
    """A robot's servos from a YAML file.

    Args:
        path: The file.
        model: The robot that it speaks of.
        joints: Those that must have a servo.

    Raises:
        ConfigError: it says something it may not, names what the robot has not, or a joint has no servo.
    """
    config = load(ServosConfig, path)
    missing = [name for name in joints if name not in config.servos]
    if missing:
        raise ConfigError(f"no servo for joint {missing[0]}", location=f"{path}, servos", valid="one for each joint")
    return config, ServoMap.from_config(config, model, str(path))
