"""A navigation task, the state it decides by, and the progress checker."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

from roboyard.config import Config, parameter
from roboyard.control import PlanarTwist
from roboyard.geometry import SE2, wrap_angle
from roboyard.navigation.costmap import Costmap


@dataclass(frozen=True, slots=True)
class NavigationState:
    """Pose, velocity and surroundings of the robot at one moment.

    Attributes:
        time: Of the moment [s].
        pose: ``T_map_base``.
        twist: Measured velocity.
        local_costmap: Local costmap, its geometry in the map.
        T_map_odom: Pose of the odometry frame in the map.
    """

    time: float
    pose: SE2
    twist: PlanarTwist
    local_costmap: Costmap
    T_map_odom: SE2 = SE2.identity()

    @property
    def T_odom_base(self) -> SE2:
        """Pose of the robot in the odometry frame."""
        return self.T_map_odom.inverse() @ self.pose


class NavigationTask(Protocol):
    """Activity of the robot that gives a command in each control period until it is finished or has failed.

    Deterministic: the same states give the same commands.
    """

    def compute_command(self, state: NavigationState) -> PlanarTwist | None:
        """Return the velocity until the next step; None if the task is finished.

        Raises:
            NavigationError: The task has failed; the class is the cause.
        """
        ...

    def save_state(self) -> dict[str, Any]:
        """Return the state between steps as plain data."""
        ...

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore the state that `save_state` returned; the task was made the same way."""
        ...


class AttributeState:
    """Mixin that saves and restores the attributes named in ``state_attributes``."""

    state_attributes: tuple[str, ...] = ()

    def save_state(self) -> dict[str, Any]:
        """Return the named attributes."""
        return {name: getattr(self, name) for name in self.state_attributes}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore the named attributes."""
        for name in self.state_attributes:
            setattr(self, name, saved[name])


class ProgressCheckerConfig(Config):
    """Motion that counts as progress, and the time allowed for it."""

    required_movement_radius: float = parameter(
        0.25, unit="m", low=0.0, high=100.0, doc="Distance that counts as progress."
    )
    required_movement_angle: float = parameter(
        0.5, unit="rad", low=0.01, high=100.0, doc="Turn that counts as progress too."
    )
    movement_time_allowance: float = parameter(
        8.0, unit="s", low=0.1, high=1e4, doc="Time in which there must be progress."
    )


class ProgressChecker(AttributeState):
    """Detects a robot that makes no progress (nav2_controller::PoseProgressChecker).

    Args:
        config: Motion that counts as progress.
    """

    state_attributes = ("_last_progress",)

    def __init__(self, config: ProgressCheckerConfig) -> None:
        self._config = config
        self._last_progress: tuple[float, float, float, float] | None = None

    def reset(self) -> None:
        """Start the time allowance anew at the next call."""
        self._last_progress = None

    def is_progressing(self, time: float, pose: SE2) -> bool:
        """Return whether the robot made progress within the time allowance."""
        if self._last_progress is None:
            self._last_progress = (time, pose.x, pose.y, pose.theta)
        last_time, x, y, theta = self._last_progress
        has_moved = math.hypot(pose.x - x, pose.y - y) > self._config.required_movement_radius
        if has_moved or abs(wrap_angle(pose.theta - theta)) > self._config.required_movement_angle:
            self._last_progress = (time, pose.x, pose.y, pose.theta)
            return True
        return time - last_time <= self._config.movement_time_allowance
