"""Configuration of a robot's servos: ids, directions, zero positions, limits, and fault thresholds."""

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
    """Configuration of one servo."""

    id: int = parameter(low=0, high=253, doc="Id of the servo on the bus")
    zero_position: int = parameter(
        512, low=0, high=MAX_POSITION, doc="Servo position at which the joint is at zero, 0 to 1023"
    )
    direction: Literal[1, -1] = parameter(1, doc="Rotation direction of the servo relative to the joint; -1: opposite")
    limits: tuple[int, int] = parameter(
        (0, MAX_POSITION), low=0, high=MAX_POSITION, doc="Range of servo positions that may be commanded"
    )

    def __post_init__(self) -> None:
        if self.limits[0] >= self.limits[1]:
            raise ConfigError(
                f"lower limit {self.limits[0]} must be below upper limit {self.limits[1]}",
                location="limits",
                valid="lower limit first",
            )


@dataclass(frozen=True)
class FaultLimits:
    """Thresholds at which motion is stopped, and the reaction."""

    max_missed_replies: int = parameter(3, low=1, high=100, doc="Number of consecutive unanswered requests to a servo")
    max_corrupt_packets: int = parameter(
        10, low=1, high=10_000, doc="Number of corrupt packets of all servos within one second"
    )
    min_voltage: float = parameter(
        12.0, unit="V", low=0.0, high=25.0, doc="Supply voltage; motion stops after three lower readings of a servo"
    )
    max_temperature: float = parameter(75.0, low=20.0, high=150.0, doc="Temperature of a servo [°C]")
    on_fault: Literal["hold", "release"] = parameter(
        "hold", doc="Reaction to a fault. hold: all servos hold their positions; release: torque is switched off"
    )


@dataclass(frozen=True)
class ServosConfig:
    """Content of `servos.yaml`."""

    servos: dict[str, ServoConfig] = parameter(doc="Servos by joint name")
    baud: int = parameter(1_000_000, choices=BAUD_RATES, doc="Baud rate of the bus")
    rate: float = parameter(50.0, unit="Hz", low=5.0, high=200.0, doc="Rate at which goal positions are sent")
    servos_polled_per_cycle: int = parameter(
        6, low=1, high=253, doc="Number of servos whose state is read in each period, in turn"
    )
    reply_timeout: float = parameter(0.02, unit="s", low=1e-3, high=1.0, doc="Timeout of a reply")
    compliance_slope: int = parameter(
        16,
        low=1,
        high=254,
        doc="Compliance slope: position error in steps of 0.29° at which a servo applies its full torque",
    )
    compliance_margin: int = parameter(
        1,
        low=0,
        high=255,
        doc="Compliance margin: position error in steps of 0.29° below which a servo applies no torque",
    )
    punch: int = parameter(32, low=0, high=MAX_POSITION, doc="Minimum torque outside the margin, of 1023")
    start_speed: float = parameter(
        0.5, unit="rad/s", low=0.02, high=5.0, doc="Maximum speed of joints during the soft start"
    )
    fault_limits: FaultLimits = parameter(FaultLimits(), doc="Thresholds at which motion is stopped")


@dataclass(frozen=True, eq=False)
class ServoMap:
    """Mapping between joints and servos, in one order.

    Attributes:
        joints: (n,) joint names.
        ids: (n,) servo ids on the bus.
        zero_position: (n,) servo positions at the joints' zeros [ticks].
        direction: (n,) 1 or -1.
        min_position: (n,) minimum joint positions [rad], from servo limits and description.
        max_position: (n,) maximum joint positions [rad].
        max_velocity: (n,) maximum joint velocities [rad/s].
        max_effort: (n,) maximum efforts [N m].
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
        """Make the map for a robot description.

        Args:
            config: Servo configuration.
            model: Description of the robot.
            source: Name of the configuration in error messages.

        Raises:
            ConfigError: A joint does not exist or is not a rotating joint, two servos share an id, or limits leave no
                range.
        """
        joints_by_name = {joint.name: joint for joint in model.joints if joint.type in ("revolute", "continuous")}
        joint_of_id: dict[int, str] = {}
        for name, entry in config.servos.items():
            if name not in joints_by_name:
                raise ConfigError(
                    f"joint {name!r} does not exist or does not rotate",
                    location=f"{source}, servos",
                    valid=f"joints: {', '.join(joints_by_name)}",
                )
            if entry.id in joint_of_id:
                raise ConfigError(
                    f"servo id {entry.id} is already used by joint {joint_of_id[entry.id]}",
                    location=f"{source}, servos.{name}",
                    valid="a unique id per servo",
                )  # fmt: skip
            joint_of_id[entry.id] = name
        if not joint_of_id:
            raise ConfigError("no servos are defined", location=f"{source}, servos", valid="at least one servo")
        entries = list(config.servos.values())
        limits = [joints_by_name[name].axes[0].limits for name in config.servos]
        zero, direction = np.array([one.zero_position for one in entries]), np.array([one.direction for one in entries])
        ends = direction[:, None] * (np.array([one.limits for one in entries]) - zero[:, None]) * POSITION_UNIT
        low = np.maximum(ends.min(axis=1), [one.lower for one in limits])
        high = np.minimum(ends.max(axis=1), [one.upper for one in limits])
        for name, lower, upper in zip(config.servos, low, high, strict=True):
            if lower >= upper:
                raise ConfigError(
                    "the limits of servo and joint do not overlap", location=f"{source}, servos.{name}",
                    valid="another zero_position or other limits",
                )  # fmt: skip
        speed = np.array([one.velocity for one in limits])
        effort = np.array([one.effort if math.isfinite(one.effort) else 0.0 for one in limits])
        return cls(tuple(config.servos), tuple(one.id for one in entries), zero, direction, low, high, speed, effort)

    def to_ticks(self, q: ArrayLike) -> NDArray[np.int64]:
        """Convert joint positions (n,) [rad] to the nearest servo positions (n,) [ticks]."""
        exact = self.zero_position + self.direction * np.asarray(q, float) / POSITION_UNIT
        nearest: NDArray[np.int64] = np.clip(np.rint(exact).astype(np.int64), 0, MAX_POSITION)
        return nearest

    def to_angles(self, ticks: ArrayLike) -> NDArray[np.float64]:
        """Convert servo positions (n,) [ticks] to joint positions (n,) [rad]."""
        angles: NDArray[np.float64] = self.direction * (np.asarray(ticks) - self.zero_position) * POSITION_UNIT
        return angles


def load_servos(path: Path, model: Model, joints: Sequence[str] = ()) -> tuple[ServosConfig, ServoMap]:
    """Load the servo configuration of a robot from a YAML file.

    Args:
        path: The file.
        model: Description of the robot.
        joints: Joints that must have a servo.

    Raises:
        ConfigError: A key or value is invalid, a joint does not exist in the robot, or a required joint has no servo.
    """
    config = load(ServosConfig, path)
    missing = [name for name in joints if name not in config.servos]
    if missing:
        raise ConfigError(
            f"joint {missing[0]} has no servo", location=f"{path}, servos", valid="one servo for each joint"
        )
    return config, ServoMap.from_config(config, model, str(path))
