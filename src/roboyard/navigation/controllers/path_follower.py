"""Base class of the controllers: progress along the path, goal check, and commands from which the base can stop."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.control import ZERO_TWIST, PlanarTwist
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2
from roboyard.navigation.controllers.controller import GoalChecker, GoalTolerance, MotionLimits
from roboyard.navigation.controllers.costmap_window import (
    CostmapWindow,
    can_stop_safely,
    classify_proximity,
    is_in_collision,
    max_penetration,
)
from roboyard.navigation.costmap import Costmap
from roboyard.navigation.errors import NavigationError, NoSafeCommandError
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.path import Path, resample_polyline

_SPEED_FRACTIONS = (
    1.0,
    0.75,
    0.5,
    0.25,
    0.0,
)  # of a wanted command, the first of them from which the base can stop is driven


@dataclass(frozen=True, slots=True)
class PathSegment:
    """What is left of the path up to where the robot turns from driving forward to backward, or to its end.

    Attributes:
        poses: (n, 3) x, y, theta in the window's frame, at least one; the first is the one nearest to the robot.
        backward: Whether it is driven backward.
        is_final: Whether it ends at the goal.
    """

    poses: NDArray[np.float64]
    backward: bool
    is_final: bool


class PathFollower(ABC):
    """Base class of path followers; derived classes compute the target velocity.

    Args:
        footprint: Of the robot.
        limits: Of its base.
        period: Between commands [s].
        window_radius: How far it looks about [m].
        tolerance: At the goal.
    """

    _POSE_SPACING = 0.05  # between poses of the path, at most [m]
    _MAX_STOPPED_CYCLES = 20  # so many commands in a row may leave the robot where it is
    _SEARCH_DISTANCE = 1.0  # how far along the path the robot can have come since the last command [m]
    _MAX_PATH_OFFSET = 0.5  # nearer than this to where it was along the path, the robot is still there [m]
    _CUSP_TOLERANCE = 0.12  # how near to where it changes direction a leg is done [m]

    def __init__(
        self, footprint: Footprint, limits: MotionLimits, period: float, window_radius: float, tolerance: GoalTolerance
    ) -> None:
        expect_kernels(classify_proximity, max_penetration, can_stop_safely, is_in_collision)
        self._footprint = footprint
        self._base_limits = limits
        self._period = period
        self._window_radius = window_radius
        self._goal_checker = GoalChecker(tolerance)
        self._path: Path | None = None
        self._arc_lengths: NDArray[np.float64] = np.zeros(0)
        self._segment_ends: list[tuple[int, bool]] = []
        self._path_index = 0
        self._speed_limit: float | None = None
        self._stopped_cycles = 0

    def set_path(self, path: Path) -> None:
        """See ``Controller``."""
        if len(path) == 0:
            raise InputError("a path without poses", valid="at least the goal")
        path = self._path = Path(resample_polyline(path.poses, self._POSE_SPACING), path.cost, path.clearance)
        self._arc_lengths = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(path.poses[:, :2], axis=0).T))])
        self._segment_ends = _find_segment_ends(path.poses)
        self._path_index = 0
        self._goal_checker.set_goal(path.pose(-1))

    def set_speed_limit(self, speed: float | None) -> None:
        """See ``Controller``."""
        if speed is not None and not (math.isfinite(speed) and speed >= 0.0):
            raise ConfigError(f"a speed limit of {speed}", location="controller", valid="zero or more [m/s], or None")
        self._speed_limit = speed

    def is_goal_reached(self, pose: SE2) -> bool:
        """See ``Controller``."""
        return self._path is not None and self._is_near_end and self._goal_checker.is_goal_reached(pose)

    def compute_velocity(self, pose: SE2, twist: PlanarTwist, costmap: Costmap) -> PlanarTwist:
        """See ``Controller``."""
        path = self._path
        if path is None:
            raise NavigationError("no path to follow", valid="set_path(path) first")
        if not all(math.isfinite(value) for value in twist):
            raise InputError(f"a measured velocity of {tuple(twist)}", valid="finite numbers")
        if self._base_limits.command_latency > 0.0:
            pose = pose @ SE2.exp([self._base_limits.command_latency * value for value in twist])
        window = CostmapWindow.around(pose, costmap, self._footprint, self._window_radius)
        if self._speed_limit == 0.0 or self.is_goal_reached(pose):
            target = ZERO_TWIST
        elif self._is_near_end and self._goal_checker.is_position_reached(pose):
            target = PlanarTwist(0.0, 0.0, self._rotation_speed(self._goal_checker.remaining_rotation(pose)))
        else:
            target = self._compute_target_velocity(
                window, self._current_segment(path, pose, window), twist, self._limits
            )
        command = self._limit_to_safe_velocity(target, twist, window)
        is_stopped = math.hypot(command.vx, command.vy) < 0.01 and abs(command.wz) < 0.02
        self._stopped_cycles = (
            self._stopped_cycles + 1
            if is_stopped and self._speed_limit != 0.0 and not self.is_goal_reached(pose)
            else 0
        )
        if self._stopped_cycles > self._MAX_STOPPED_CYCLES:
            self._stopped_cycles = 0
            raise NoSafeCommandError("no free motion continues along the path", valid="another path, or a recovery")
        return command

    def save_state(self) -> dict[str, Any]:
        """See ``Controller``."""
        return {
            "index": self._path_index,
            "goal_checker": self._goal_checker.save_state(),
            "speed_limit": self._speed_limit,
            "stopped_cycles": self._stopped_cycles,
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """See ``Controller``."""
        self._path_index, self._speed_limit, self._stopped_cycles = (
            saved["index"],
            saved["speed_limit"],
            saved["stopped_cycles"],
        )
        self._goal_checker.load_state(saved["goal_checker"])

    @abstractmethod
    def _compute_target_velocity(
        self, window: CostmapWindow, segment: PathSegment, twist: PlanarTwist, limits: MotionLimits
    ) -> PlanarTwist:
        """The velocity to aim at, within the limits; what the base can reach of it is driven.

        Raises:
            NavigationError: there is none.
        """

    @property
    def _is_near_end(self) -> bool:
        """Whether little of the path is left: it may come by its own end before it ends."""
        return bool(self._arc_lengths[-1] - self._arc_lengths[self._path_index] <= self._SEARCH_DISTANCE)

    @property
    def _limits(self) -> MotionLimits:
        return self._base_limits if not self._speed_limit else self._base_limits.with_max_speed(self._speed_limit)

    def _rotation_speed(self, remaining: float) -> float:
        """How fast to turn so that the base can stop at a heading ``remaining`` [rad] away [rad/s]."""
        # in whole periods: one more period at this speed, and the way of braking, are what is left
        brake, period = 0.8 * self._base_limits.max_angular_acceleration, self._period
        speed = math.sqrt((0.5 * brake * period) ** 2 + 2.0 * brake * abs(remaining)) - 0.5 * brake * period
        return math.copysign(
            min(max(speed, 0.0), self._base_limits.max_angular_speed, abs(remaining) / period), remaining
        )

    def _current_segment(self, path: Path, pose: SE2, window: CostmapWindow) -> PathSegment:
        distances = np.hypot(path.poses[:, 0] - pose.x, path.poses[:, 1] - pose.y)
        while True:
            end, backward = next(
                segment_end for segment_end in self._segment_ends if segment_end[0] >= self._path_index
            )
            search_end = int(
                np.searchsorted(
                    self._arc_lengths, self._arc_lengths[self._path_index] + self._SEARCH_DISTANCE, side="right"
                )
            )
            nearby = distances[self._path_index : max(min(search_end, end + 1), self._path_index + 1)]
            self._path_index += int(np.argmin(nearby))
            if end == len(path) - 1:
                if nearby.min() > self._MAX_PATH_OFFSET:  # carried off, or begun in the middle: find the place anew
                    best = int(np.argmin(distances))
                    if distances[best] < nearby.min() - self._MAX_PATH_OFFSET:
                        self._path_index = best
                break
            if distances[end] > self._CUSP_TOLERANCE and not (
                self._path_index == end and self._has_passed(path, pose, end, backward)
            ):
                break
            self._path_index = end + 1
        end, backward = next(segment_end for segment_end in self._segment_ends if segment_end[0] >= self._path_index)
        poses = path.poses[self._path_index : end + 1]
        local = np.column_stack([window.T_window_map @ poses[:, :2], poses[:, 2] + window.T_window_map.theta])
        return PathSegment(local, backward, end == len(path) - 1)

    @staticmethod
    def _has_passed(path: Path, pose: SE2, end: int, backward: bool) -> bool:
        """Whether the robot is already beyond the end of a leg."""
        offset = path.pose(end).inverse() @ pose
        return offset.x < 0.0 if backward else offset.x > 0.0

    def _limit_to_safe_velocity(self, target: PlanarTwist, twist: PlanarTwist, window: CostmapWindow) -> PlanarTwist:
        """What the base can reach of a velocity within a period, slowed until it could stop before it touches anything.

        Raises:
            NoSafeCommand: it touches something even if it brakes, or stands and must not go.
        """
        limits, period = self._base_limits, self._period
        ramp = PlanarTwist(limits.max_acceleration, limits.max_acceleration, limits.max_angular_acceleration)
        for fraction in _SPEED_FRACTIONS:
            command = PlanarTwist(
                *(
                    min(max(fraction * target_value, current_value - rate * period), current_value + rate * period)
                    for target_value, current_value, rate in zip(target, twist, ramp, strict=True)
                )
            )
            if window.can_stop_safely(command, ramp, period):
                if fraction < 1.0 and max(map(abs, (*command, *twist))) < 1e-3:
                    break  # it stands already, and cannot go
                return command
        raise NoSafeCommandError("whatever the base does next, it touches an obstacle", valid="stop, then recover")


def _find_segment_ends(poses: NDArray[np.float64]) -> list[tuple[int, bool]]:
    """Index of the last pose of each leg, and whether it is driven backward.

    Between two poses the robot backs if the heading of the first, or where it has none of its own of the second, looks
    away from the way.
    """
    steps = np.diff(poses[:, :2], axis=0)
    along_first_heading = np.einsum("ij,ij->i", steps, np.column_stack([np.cos(poses[:-1, 2]), np.sin(poses[:-1, 2])]))
    along_second_heading = np.einsum("ij,ij->i", steps, np.column_stack([np.cos(poses[1:, 2]), np.sin(poses[1:, 2])]))
    is_backward = (along_first_heading < -1e-9) & (along_second_heading < -1e-9)
    cusps = np.flatnonzero(np.diff(is_backward.astype(np.int8)))
    ends = [(int(k) + 1, bool(is_backward[k])) for k in cusps]
    return [*ends, (len(poses) - 1, bool(is_backward[-1]) if len(is_backward) else False)]
