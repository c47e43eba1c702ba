"""What a pressed bumper does to the drive: it is blocked until nothing touches any more.

Free, the robot drives as it is told.  A touch blocks it.  It is free again when the bumper has been open for a while:
somebody took the obstacle away, or the robot.  Where nobody can, a release allows one slow move away from what it
touches; other motions stay blocked, and a touch elsewhere blocks at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple

from roboyard.config import Config, parameter
from roboyard.control import STANDSTILL, PlanarTwist


class Bumping(Enum):
    """What the bumper lets the drive do."""

    FREE = "free"
    BLOCKED = "blocked"
    RELEASED = "released"


class TouchPoint(NamedTuple):
    """Where the bumper is pressed, in the base frame.

    Attributes:
        x: [m].
        y: [m].
        nx: Direction in which it is pressed, from the obstacle into the robot, a unit vector with ``ny``.
        ny: See ``nx``.
    """

    x: float
    y: float
    nx: float
    ny: float


_ELSEWHERE = 0.15
"""A touch farther than this from those that the release is for is another one [m]."""


class BumperConfig(Config):
    """How a bumper is cleared."""

    clear_time: float = parameter(
        0.3, unit="s", low=0.01, high=60.0, doc="Time for which the bumper must be open before the robot drives again."
    )
    release_speed: float = parameter(
        0.05, unit="m/s", low=0.001, high=1.0, doc="Speed of the fastest touched point in the move away."
    )
    release_distance: float = parameter(
        0.15, unit="m", low=0.001, high=5.0, doc="Longest path of a touched point in the move away."
    )
    release_time: float = parameter(10.0, unit="s", low=0.1, high=600.0, doc="Time for which a release holds.")


class BumperGuard:
    """The last word on commands of a robot with a bumper.

    Attributes:
        state: What it lets pass.
        touching: Where the bumper is pressed now, or was last while it is not free.
    """

    def __init__(self, config: BumperConfig | None = None) -> None:
        self.config = config or BumperConfig()
        self.state = Bumping.FREE
        self.touching: tuple[TouchPoint, ...] = ()
        self._pressed_ns = 0
        self._until_ns = 0
        self._left = 0.0

    def press(self, touches: Sequence[TouchPoint], time_ns: int) -> None:
        """What the bumper says at ``time_ns`` [ns]: where it is pressed; nowhere: it is open."""
        if not touches:
            if self.state is not Bumping.FREE and time_ns - self._pressed_ns >= self.config.clear_time * 1e9:
                self.state, self.touching = Bumping.FREE, ()
            return
        self._pressed_ns = time_ns
        if self.state is Bumping.RELEASED and not any(self._is_new(touch) for touch in touches):
            return
        self.state, self.touching = Bumping.BLOCKED, tuple(touches)

    def release(self, time_ns: int) -> bool:
        """Allow one slow move away; whether there is anything to release."""
        if self.state is Bumping.FREE:
            return False
        self.state = Bumping.RELEASED
        self._until_ns = time_ns + round(self.config.release_time * 1e9)
        self._left = self.config.release_distance
        return True

    def judge(self, wanted: PlanarTwist, dt: float, time_ns: int) -> PlanarTwist:
        """What of a command may pass.

        Args:
            wanted: Command, in the base frame.
            dt: For how long it will be driven [s].
            time_ns: Now [ns].
        """
        if self.state is Bumping.FREE:
            return wanted
        if self.state is Bumping.RELEASED and (time_ns >= self._until_ns or self._left <= 0.0):
            self.state = Bumping.BLOCKED
        if self.state is Bumping.BLOCKED or not self.leads_away(wanted):
            return STANDSTILL
        fastest = max((math.hypot(*_velocity(wanted, touch)) for touch in self.touching), default=0.0)
        fastest = max(fastest, math.hypot(wanted.vx, wanted.vy))
        share = min(1.0, self.config.release_speed / fastest) if fastest > 0.0 else 1.0
        self._left -= share * fastest * dt
        return PlanarTwist(*(share * value for value in wanted))

    def leads_away(self, twist: PlanarTwist) -> bool:
        """Whether every pressed place would move out of what presses it, none along it or into it."""
        if not any(twist):
            return True
        for touch in self.touching:
            vx, vy = _velocity(twist, touch)
            if vx * touch.nx + vy * touch.ny <= 0.02 * math.hypot(vx, vy):
                return False
        return True

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return {
            "state": self.state.value,
            "touching": [tuple(touch) for touch in self.touching],
            "pressed_ns": self._pressed_ns,
            "until_ns": self._until_ns,
            "left": self._left,
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self.state = Bumping(saved["state"])
        self.touching = tuple(TouchPoint(*touch) for touch in saved["touching"])
        self._pressed_ns, self._until_ns, self._left = saved["pressed_ns"], saved["until_ns"], saved["left"]

    def _is_new(self, touch: TouchPoint) -> bool:
        return all(
            math.hypot(touch.x - old.x, touch.y - old.y) > _ELSEWHERE for old in self.touching
        )  # fmt: skip


def _velocity(twist: PlanarTwist, touch: TouchPoint) -> tuple[float, float]:
    """Of the robot's matter at a place (rigid body): v + ω × p [m/s]."""
    return twist.vx - twist.wz * touch.y, twist.vy + twist.wz * touch.x
