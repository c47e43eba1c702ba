"""What a task is told at each step, and what it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from roboyard.control import PlanarTwist
from roboyard.geometry import SE2
from roboyard.navigation.costmap import Costmap


@dataclass(frozen=True, slots=True)
class Situation:
    """Where the robot is and what it sees, at one moment.

    Attributes:
        time: Of the moment [s].
        pose: ``T_map_base``.
        twist: Measured velocity.
        local: What is known about the surroundings, its frame in the map.
        T_map_odom: Where the odometry's frame is.
    """

    time: float
    pose: SE2
    twist: PlanarTwist
    local: Costmap
    T_map_odom: SE2 = SE2.identity()

    @property
    def T_odom_base(self) -> SE2:
        """Where the robot is by its odometry."""
        return self.T_map_odom.inverse() @ self.pose


class Task(Protocol):
    """Something that the robot does, step by step, until it is done or cannot be done.

    Deterministic: the same situations give the same commands.
    """

    def step(self, now: Situation) -> PlanarTwist | None:
        """The velocity to drive until the next step, or None: it is done.

        Raises:
            NavigationError: it cannot be done; its class says why.
        """
        ...

    def save_state(self) -> dict[str, Any]:
        """What it remembers from step to step, as plain data."""
        ...

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`, for a task that was made the same way."""
        ...


class Remembering:
    """Base of tasks and checkers that remember plain attributes: those named in ``remembered``."""

    remembered: tuple[str, ...] = ()

    def save_state(self) -> dict[str, Any]:
        """See ``Task``."""
        return {name: getattr(self, name) for name in self.remembered}

    def load_state(self, saved: dict[str, Any]) -> None:
        """See ``Task``."""
        for name in self.remembered:
            setattr(self, name, saved[name])
