"""Limits of speed and acceleration, as drive plugins state them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from roboyard.scenarios.plugins.reading import PluginReader
from roboyard.scenarios.robot_package import Limits

SPEED, TURN_RATE = 1.0, 2.0
"""For drives whose description states no limits [m/s, rad/s]."""


@dataclass(frozen=True, slots=True)
class Speeds:
    """What a drive may do; None where the plugin says nothing.

    Attributes:
        speed: Forward [m/s].
        reverse: Backwards [m/s].
        turn_rate: [rad/s].
        acceleration: [m/s²].
        deceleration: [m/s²].
        turn_acceleration: [rad/s²].
    """

    speed: float | None = None
    reverse: float | None = None
    turn_rate: float | None = None
    acceleration: float | None = None
    deceleration: float | None = None
    turn_acceleration: float | None = None

    @property
    def limits(self) -> Limits:
        """For planners and people."""
        return Limits(self.speed, self.turn_rate, self.acceleration, self.turn_acceleration)

    def parameters(self) -> dict[str, Any]:
        """Of a drive node."""
        given = {
            "speed": self.speed if self.speed is not None else SPEED,
            "turn_rate": self.turn_rate if self.turn_rate is not None else TURN_RATE,
            "reverse_speed": self.reverse,
            "acceleration": self.acceleration,
            "deceleration": self.deceleration,
            "turn_acceleration": self.turn_acceleration,
        }
        return {name: value for name, value in given.items() if value is not None}


def read_speeds(reader: PluginReader) -> Speeds:
    """The limits of Gazebo's drive plugins.

    ``max_velocity`` and its kin hold for both forward and turning, as in Gazebo; the more special ones go before.
    Minima are those of the signed values: the way backwards, and braking.
    """

    def bound(*tags: str) -> float | None:
        value = reader.number(*tags)
        return None if value is None else abs(value)

    def minimum(*tags: str) -> float | None:
        value = reader.number(*tags)
        return None if value is None else max(-value, 0.0)

    speed = bound("max_linear_velocity", "max_velocity", "max_speed")
    reverse = minimum("min_linear_velocity", "min_velocity")
    acceleration = bound("max_linear_acceleration", "max_acceleration", "max_wheel_acceleration")
    braking = minimum("min_linear_acceleration", "min_acceleration")
    for tag in ("min_angular_velocity", "min_angular_acceleration"):
        low, high = reader.number(tag), reader.number(tag.replace("min", "max"))
        if low is not None and high is not None and abs(low) != abs(high):
            reader.note(f"<{tag}> {low:g} not followed: turning is limited alike both ways")
    reader.ignore(
        ["min_jerk", "max_jerk", "min_linear_jerk", "max_linear_jerk", "min_angular_jerk", "max_angular_jerk"],
        "the drive ramps without a limit on jerk",
    )
    return Speeds(
        speed,
        None if reverse is None or reverse == speed else reverse,
        bound("max_angular_velocity", "max_velocity"),
        acceleration,
        None if not braking or braking == acceleration else braking,
        bound("max_angular_acceleration", "max_acceleration"),
    )
