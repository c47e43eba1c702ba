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

_SPEED_FRACTIONS = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Fractions of the target velocity; the base drives the first one from which it can stop without a collision."""


@dataclass(frozen=True, slots=True)
class PathSegment:
    """Rest of the path up to the next change between forward and backward, or up to its end.

    Attributes:
        poses: (n, 3) x, y, theta in the frame of the window, at least one; the first one is nearest to the robot.
        backward: Whether the robot drives it backward.
        is_final: Whether it ends at the goal.
    """

    poses: NDArray[np.float64]
    backward: bool
    is_final: bool


class PathFollower(ABC):
    """Base class of controllers: progress along the path, goal check, and commands from which the base can stop.

    Derived classes implement `_compute_target_velocity`; this class keeps the rest of the contract of `Controller`.

    Args:
        footprint: Footprint of the robot.
        limits: Motion limits of its base.
        period: Time between two commands [s].
        window_radius: Distance up to which the derived class needs the costmap [m].
        tolerance: Tolerance of the goal.
    """

    _POSE_SPACING = 0.05  # largest distance between poses of the path [m]
    _MAX_STOPPED_CYCLES = 20  # number of commands in a row that may leave the robot where it is
    _SEARCH_DISTANCE = 1.0  # distance along the path within which the nearest pose is searched [m]
    _MAX_PATH_OFFSET = 0.5  # distance from the path beyond which the nearest pose is searched on all of it [m]
    _CUSP_TOLERANCE = 0.12  # distance from a change of direction at which the segment is finished [m]

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
        """Start to follow a path; see the contract in `Controller.set_path`."""
        if len(path) == 0:
            raise InputError("a path without poses", valid="at least the goal")
        path = self._path = Path(resample_polyline(path.poses, self._POSE_SPACING), path.cost, path.clearance)
        self._arc_lengths = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(path.poses[:, :2], axis=0).T))])
        self._segment_ends = _find_segment_ends(path.poses)
        self._path_index = 0
        self._goal_checker.set_goal(path.pose(-1))

    def set_speed_limit(self, speed: float | None) -> None:
        """Limit the speed of all later commands [m/s]; 0 holds the robot, None ends the limit."""
        if speed is not None and not (math.isfinite(speed) and speed >= 0.0):
            raise ConfigError(f"a speed limit of {speed}", location="controller", valid="zero or more [m/s], or None")
        self._speed_limit = speed

    def is_goal_reached(self, pose: SE2) -> bool:
        """Return whether a base at ``T_map_base`` is at the end of the path, within the tolerance."""
        return self._path is not None and self._is_near_end and self._goal_checker.is_goal_reached(pose)

    def compute_velocity(self, pose: SE2, twist: PlanarTwist, costmap: Costmap) -> PlanarTwist:
        """Compute the next velocity; see the contract in `Controller.compute_velocity`."""
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
        """Return the progress along the path, the speed limit and the state of the goal checker."""
        return {
            "index": self._path_index,
            "goal_checker": self._goal_checker.save_state(),
            "speed_limit": self._speed_limit,
            "stopped_cycles": self._stopped_cycles,
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what `save_state` returned, after `set_path` with the same path."""
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
        """Compute the velocity at which the controller aims.

        The base class drives what the base can reach of it within one period, and slows it down until the base can stop
        without a collision.

        Args:
            window: Costmap around the robot, with its pose.
            segment: Rest of the path up to the next change of direction, in the frame of the window.
            twist: Velocity of the base [m/s, rad/s].
            limits: Motion limits within the speed limit.

        Raises:
            NavigationError: No motion follows the path.
        """

    @property
    def _is_near_end(self) -> bool:
        """Whether the rest of the path is short; a path may pass its own end before it ends."""
        return bool(self._arc_lengths[-1] - self._arc_lengths[self._path_index] <= self._SEARCH_DISTANCE)

    @property
    def _limits(self) -> MotionLimits:
        return self._base_limits if not self._speed_limit else self._base_limits.with_max_speed(self._speed_limit)

    def _rotation_speed(self, remaining: float) -> float:
        """Return the angular speed from which the base can stop at a heading ``remaining`` [rad] away [rad/s]."""
        # in whole periods: the rest is one more period at this speed, and the rotation while the base brakes
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
                if nearby.min() > self._MAX_PATH_OFFSET:  # the robot was moved, or started in the middle of the path
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
        """Return whether the robot is beyond the end of a segment."""
        offset = path.pose(end).inverse() @ pose
        return offset.x < 0.0 if backward else offset.x > 0.0

    def _limit_to_safe_velocity(self, target: PlanarTwist, twist: PlanarTwist, window: CostmapWindow) -> PlanarTwist:
        """Return what the base reaches of a velocity within a period, slowed until it can stop without a collision.

        Raises:
            NoSafeCommandError: The robot collides even if it brakes, or it stands and no motion is free.
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
                    break  # the robot stands already, and no motion is free
                return command
        raise NoSafeCommandError("every command of the base leads to a collision", valid="stop, then recover")


def _find_segment_ends(poses: NDArray[np.float64]) -> list[tuple[int, bool]]:
    """Return the index of the last pose of each segment, and whether the robot drives it backward.

    The robot drives backward between two poses if the headings of both point away from the direction of motion.
    """
    steps = np.diff(poses[:, :2], axis=0)
    along_first_heading = np.einsum("ij,ij->i", steps, np.column_stack([np.cos(poses[:-1, 2]), np.sin(poses[:-1, 2])]))
    along_second_heading = np.einsum("ij,ij->i", steps, np.column_stack([np.cos(poses[1:, 2]), np.sin(poses[1:, 2])]))
    is_backward = (along_first_heading < -1e-9) & (along_second_heading < -1e-9)
    cusps = np.flatnonzero(np.diff(is_backward.astype(np.int8)))
    ends = [(int(k) + 1, bool(is_backward[k])) for k in cusps]
    return [*ends, (len(poses) - 1, bool(is_backward[-1]) if len(is_backward) else False)]
