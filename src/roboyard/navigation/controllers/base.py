"""What every local controller offers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol

from roboyard.control import PlanarTwist
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.navigation.costmap import Costmap
from roboyard.navigation.path import Path


@dataclass(frozen=True, slots=True)
class MotionLimits:
    """What the base can do.

    Attributes:
        forward: Fastest ahead [m/s].
        backward: Fastest back, as a positive number [m/s]; 0: never back.
        sideways: Fastest to either side [m/s]; 0 for a base that cannot.
        turn: Fastest turning to either side [rad/s].
        acceleration: Of driving, either way [m/s²].
        turn_acceleration: Of turning, either way [rad/s²].
        latency: How long a command takes until the base answers it [s]: commands are chosen for where it is by then.
        least: Slowest command to drive that the base follows [m/s].
        least_turn: Slowest command to turn on the spot that it follows [rad/s].

    Raises:
        ConfigError: a number out of range.
    """

    forward: float = 0.5
    backward: float = 0.2
    sideways: float = 0.0
    turn: float = 1.5
    acceleration: float = 2.5
    turn_acceleration: float = 3.2
    latency: float = 0.0
    least: float = 0.0
    least_turn: float = 0.0

    def __post_init__(self) -> None:
        for name in ("forward", "turn", "acceleration", "turn_acceleration"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise ConfigError(f"{name} = {value}", location="MotionLimits", valid="a positive number")
        for name in ("backward", "sideways", "latency", "least", "least_turn"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0):
                raise ConfigError(f"{name} = {value}", location="MotionLimits", valid="zero or more")
        if self.least > self.forward or self.least_turn > self.turn:
            raise ConfigError(
                f"least = {self.least}, least_turn = {self.least_turn}", location="MotionLimits",
                valid=f"at most forward and turn, {self.forward} and {self.turn}",
            )  # fmt: skip

    def executable(self, twist: PlanarTwist) -> PlanarTwist:
        """The nearest command that the base follows: too slow a drive becomes faster on the same arc.

        Where the arc is too tight for that, and where it only turns, it turns on the spot, fast enough.
        """
        speed, turn = math.hypot(twist.vx, twist.vy), abs(twist.wz)
        if speed >= self.least and speed > 0.0:
            return twist
        factor = self.least / speed if speed > 0.0 else math.inf
        if math.isfinite(factor) and factor * turn <= self.turn:
            return PlanarTwist(twist.vx * factor, twist.vy * factor, twist.wz * factor)
        return PlanarTwist(0.0, 0.0, math.copysign(max(turn, self.least_turn), twist.wz) if turn > 0.0 else 0.0)

    def slowed(self, speed: float) -> MotionLimits:
        """The same base, driving no faster than ``speed`` (more than 0) in any direction [m/s]."""
        lower = {name: min(getattr(self, name), speed) for name in ("forward", "backward", "sideways", "least")}
        return replace(self, **lower)


class Controller(Protocol):
    """Follows a path among obstacles, one command at a time.

    Deterministic: the same calls give the same bits.
    """

    def follow(self, path: Path) -> None:
        """Take a new path; poses in the map of the costmaps to come, whose grids may lie in it as they like."""
        ...

    def command(self, pose: SE2, twist: PlanarTwist, costmap: Costmap) -> PlanarTwist:
        """The velocity to drive until the next call.

        Args:
            pose: ``T_map_base`` now.
            twist: Velocity now: measured, or of the last command where the base follows those well.
            costmap: What is known about the surroundings now.

        Raises:
            NavigationError: there is no safe command; its class says why.
        """
        ...

    def arrived(self, pose: SE2) -> bool:
        """Whether the robot, at ``T_map_base``, is at the end of the path, within the tolerance."""
        ...

    def limit_speed(self, speed: float | None) -> None:
        """Drive no faster than this from now on [m/s]; 0 holds the robot, None ends the limit.

        Raises:
            ConfigError: a negative speed, or one that is not finite.
        """
        ...

    def save_state(self) -> dict[str, Any]:
        """What it remembers from call to call, but for the path, as plain data."""
        ...

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`, after ``follow``."""
        ...
