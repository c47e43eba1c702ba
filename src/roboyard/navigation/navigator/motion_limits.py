"""Footprint and motion limits with which a robot is driven: those that its file states, within configured limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from roboyard.config import check, parameter
from roboyard.control.drive_config import DriveLimits
from roboyard.description.extent import FootprintPolygon
from roboyard.navigation.controllers import MotionLimits
from roboyard.navigation.footprint import DEFAULT_RADIUS, Footprint


@dataclass(frozen=True)
class VelocityLimits:
    """Limits within those of the robot's drive; a missing one is the drive's, as the robot's file states it."""

    forward: float | None = parameter(
        None, unit="m/s", low=0.01, high=100.0, doc="Largest speed forward; none: the drive's."
    )
    backward: float | None = parameter(
        None, unit="m/s", low=0.0, high=100.0, doc="Largest speed backward; 0: never backward; none: the drive's."
    )
    allow_reverse: bool = parameter(False, doc="Drive paths backward too; recovery steps always may.")
    lateral: float | None = parameter(
        None,
        unit="m/s",
        low=0.0,
        high=100.0,
        doc="Largest speed sideways; 0: never sideways; none: the lateral speed that the drive states, else 0.",
    )
    angular: float | None = parameter(
        None, unit="rad/s", low=0.01, high=100.0, doc="Largest angular speed; none: the drive's."
    )
    command_latency: float = parameter(
        0.0, unit="s", low=0.0, high=2.0, doc="Time from a command to the base's reaction."
    )
    acceleration: float | None = parameter(
        None, unit="m/s^2", low=0.01, high=1000.0, doc="Largest acceleration; none: the drive's."
    )
    angular_acceleration: float | None = parameter(
        None, unit="rad/s^2", low=0.01, high=1000.0, doc="Largest angular acceleration; none: the drive's."
    )

    def __post_init__(self) -> None:
        check(self, "velocity_limits")


class ResolvedLimits(NamedTuple):
    """Motion limits of a robot, and what was assumed.

    Attributes:
        limits: Motion limits of the base.
        assumed: Keys of ``limits`` in the robot's file that neither the file nor the configuration states, with the
            values that were assumed instead: "speed = 0.5 m/s".
    """

    limits: MotionLimits
    assumed: tuple[str, ...]


def resolve_motion_limits(
    drive_limits: DriveLimits | None, velocity_limits: VelocityLimits | None = None
) -> ResolvedLimits:
    """Return the motion limits of a robot: the configured ones, within those that its file states for the drive.

    What neither states has the default of `MotionLimits` and is listed, so that the caller can report it.

    Args:
        drive_limits: ``limits`` of the robot's file; None if it states none.
        velocity_limits: Configured limits; None: those of the drive.
    """
    drive, selected, default = drive_limits or DriveLimits(), velocity_limits or VelocityLimits(), MotionLimits()
    assumed: list[str] = []

    def choose(configured: float | None, stated: float | None, fallback: float, key: str, unit: str) -> float:
        if configured is None and not stated:
            assumed.append(f"{key} = {fallback:g} {unit}")
            return fallback
        return float(min(value for value in (configured, stated or None) if value is not None))

    forward = choose(selected.forward, drive.speed, default.max_forward_speed, "speed", "m/s")
    angular = choose(selected.angular, drive.angular_speed, default.max_angular_speed, "angular_speed", "rad/s")
    reverse_speed, lateral_speed = drive.reverse_speed or drive.speed, drive.lateral_speed or drive.speed
    lateral = drive.lateral_speed or 0.0 if selected.lateral is None else selected.lateral
    limits = MotionLimits(
        max_forward_speed=forward,
        max_backward_speed=choose(selected.backward, reverse_speed, default.max_backward_speed, "reverse_speed", "m/s"),
        max_lateral_speed=min(lateral, lateral_speed) if lateral_speed else lateral,
        max_angular_speed=angular,
        max_acceleration=choose(
            selected.acceleration, drive.acceleration, default.max_acceleration, "acceleration", "m/s^2"
        ),
        max_angular_acceleration=choose(
            selected.angular_acceleration,
            drive.angular_acceleration,
            default.max_angular_acceleration,
            "angular_acceleration",
            "rad/s^2",
        ),
        command_latency=selected.command_latency,
        min_speed=min(drive.min_speed, forward),
        min_angular_speed=min(drive.min_angular_speed, angular),
    )
    return ResolvedLimits(limits, tuple(assumed))


def padded_footprint(polygon: FootprintPolygon | None, padding: float) -> Footprint:
    """Return the footprint of a robot with a padding on each side.

    Args:
        polygon: Corners of the robot's own footprint [m]; None or empty if unknown: then a circle of `DEFAULT_RADIUS`.
        padding: Addition on each side [m].

    Raises:
        ConfigError: The corners form no polygon.
    """
    unpadded_corners = np.asarray(polygon) if polygon else Footprint.circle(DEFAULT_RADIUS).corners
    corners = Footprint(unpadded_corners).corners
    return Footprint(corners + np.sign(corners) * padding)
