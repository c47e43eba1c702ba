"""What controllers that follow a path share: progress along it, arrival, commands from which the base can stop."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.control import STANDSTILL, PlanarTwist
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2
from roboyard.navigation.controllers.arrival import Arrival, Tolerance
from roboyard.navigation.controllers.base import MotionLimits
from roboyard.navigation.controllers.surroundings import Surroundings, classify, deepest, stops_clear, touches
from roboyard.navigation.costmap import Costmap
from roboyard.navigation.errors import NavigationError, NoSafeCommand
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.path import Path

_SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)  # of a wanted command, the first of them from which the base can stop is driven


@dataclass(frozen=True, slots=True)
class Leg:
    """What is left of the path up to where the robot turns from driving forward to backward, or to its end.

    Attributes:
        poses: (n, 3) x, y, theta in the window's frame, at least one; the first is the one nearest to the robot.
        backward: Whether it is driven backward.
        last: Whether it ends at the goal.
    """

    poses: NDArray[np.float64]
    backward: bool
    last: bool


class PathFollower(ABC):
    """A controller but for how it steers.

    Args:
        footprint: Of the robot.
        limits: Of its base.
        period: Between commands [s].
        reach: How far it looks about [m].
        tolerance: At the goal.
    """

    _SPACING = 0.05  # between poses of the path, at most [m]
    _PATIENCE = 20  # so many commands in a row may leave the robot where it is
    _SEARCH = 1.0  # how far along the path the robot can have come since the last command [m]
    _OFF = 0.5  # nearer than this to where it was along the path, the robot is still there [m]
    _CUSP = 0.12  # how near to where it changes direction a leg is done [m]

    def __init__(
        self, footprint: Footprint, limits: MotionLimits, period: float, reach: float, tolerance: Tolerance
    ) -> None:
        expect_kernels(classify, deepest, stops_clear, touches)
        self._footprint = footprint
        self._base = limits
        self._period = period
        self._reach = reach
        self._arrival = Arrival(tolerance)
        self._path: Path | None = None
        self._along: NDArray[np.float64] = np.zeros(0)
        self._ends: list[tuple[int, bool]] = []
        self._index = 0
        self._slow: float | None = None
        self._stood = 0

    def follow(self, path: Path) -> None:
        """See ``Controller``."""
        if len(path) == 0:
            raise InputError("a path without poses", valid="at least the goal")
        path = self._path = Path(_dense(path.poses, self._SPACING), path.cost, path.clearance)
        self._along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(path.poses[:, :2], axis=0).T))])
        self._ends = _legs(path.poses)
        self._index = 0
        self._arrival.expect(path.pose(-1))

    def limit_speed(self, speed: float | None) -> None:
        """See ``Controller``."""
        if speed is not None and not (math.isfinite(speed) and speed >= 0.0):
            raise ConfigError(f"a speed limit of {speed}", location="controller", valid="zero or more [m/s], or None")
        self._slow = speed

    def arrived(self, pose: SE2) -> bool:
        """See ``Controller``."""
        return self._path is not None and self._at_end and self._arrival.complete(pose)

    def command(self, pose: SE2, twist: PlanarTwist, costmap: Costmap) -> PlanarTwist:
        """See ``Controller``."""
        path = self._path
        if path is None:
            raise NavigationError("no path to follow", valid="follow(path) first")
        if not all(math.isfinite(value) for value in twist):
            raise InputError(f"a measured velocity of {tuple(twist)}", valid="finite numbers")
        if self._base.latency > 0.0:
            pose = pose @ SE2.exp([self._base.latency * value for value in twist])
        seen = Surroundings.about(pose, costmap, self._footprint, self._reach)
        if self._slow == 0.0 or self.arrived(pose):
            wanted = STANDSTILL
        elif self._at_end and self._arrival.in_place(pose):
            wanted = PlanarTwist(0.0, 0.0, self._turn(self._arrival.heading_left(pose)))
        else:
            wanted = self._steer(seen, self._leg(path, pose, seen), twist, self._limits)
        command = self._safe(wanted, twist, seen)
        stands = math.hypot(command.vx, command.vy) < 0.01 and abs(command.wz) < 0.02
        self._stood = self._stood + 1 if stands and self._slow != 0.0 and not self.arrived(pose) else 0
        if self._stood > self._PATIENCE:
            self._stood = 0
            raise NoSafeCommand("nothing leads on along the path", valid="another path, or a recovery")
        return command

    def save_state(self) -> dict[str, Any]:
        """See ``Controller``."""
        return {"index": self._index, "arrival": self._arrival.save_state(), "slow": self._slow, "stood": self._stood}

    def load_state(self, saved: dict[str, Any]) -> None:
        """See ``Controller``."""
        self._index, self._slow, self._stood = saved["index"], saved["slow"], saved["stood"]
        self._arrival.load_state(saved["arrival"])

    @abstractmethod
    def _steer(self, seen: Surroundings, leg: Leg, twist: PlanarTwist, limits: MotionLimits) -> PlanarTwist:
        """The velocity to aim at, within the limits; what the base can reach of it is driven.

        Raises:
            NavigationError: there is none.
        """

    @property
    def _at_end(self) -> bool:
        """Whether little of the path is left: it may come by its own end before it ends."""
        return bool(self._along[-1] - self._along[self._index] <= self._SEARCH)

    @property
    def _limits(self) -> MotionLimits:
        return self._base if not self._slow else self._base.slowed(self._slow)

    def _turn(self, left: float) -> float:
        """How fast to turn so that the base can stop at a heading ``left`` [rad] away [rad/s]."""
        # in whole periods: one more period at this speed, and the way of braking, are what is left
        brake, period = 0.8 * self._base.turn_acceleration, self._period
        speed = math.sqrt((0.5 * brake * period) ** 2 + 2.0 * brake * abs(left)) - 0.5 * brake * period
        return math.copysign(min(max(speed, 0.0), self._base.turn, abs(left) / period), left)

    def _leg(self, path: Path, pose: SE2, seen: Surroundings) -> Leg:
        distance = np.hypot(path.poses[:, 0] - pose.x, path.poses[:, 1] - pose.y)
        while True:
            end, backward = next(leg for leg in self._ends if leg[0] >= self._index)
            until = int(np.searchsorted(self._along, self._along[self._index] + self._SEARCH, side="right"))
            near = distance[self._index : max(min(until, end + 1), self._index + 1)]
            self._index += int(np.argmin(near))
            if end == len(path) - 1:
                if near.min() > self._OFF:  # carried off, or begun in the middle: find the place anew
                    best = int(np.argmin(distance))
                    if distance[best] < near.min() - self._OFF:
                        self._index = best
                break
            if distance[end] > self._CUSP and not (self._index == end and self._passed(path, pose, end, backward)):
                break
            self._index = end + 1
        end, backward = next(leg for leg in self._ends if leg[0] >= self._index)
        poses = path.poses[self._index : end + 1]
        local = np.column_stack([seen.T_window_map @ poses[:, :2], poses[:, 2] + seen.T_window_map.theta])
        return Leg(local, backward, end == len(path) - 1)

    @staticmethod
    def _passed(path: Path, pose: SE2, end: int, backward: bool) -> bool:
        """Whether the robot is already beyond the end of a leg."""
        ahead = path.pose(end).inverse() @ pose
        return ahead.x < 0.0 if backward else ahead.x > 0.0

    def _safe(self, wanted: PlanarTwist, twist: PlanarTwist, seen: Surroundings) -> PlanarTwist:
        """What the base can reach of a velocity within a period, slowed until it could stop before it touches anything.

        Raises:
            NoSafeCommand: it touches something even if it brakes, or stands and must not go.
        """
        base, period = self._base, self._period
        ramp = PlanarTwist(base.acceleration, base.acceleration, base.turn_acceleration)
        for share in _SHARES:
            command = PlanarTwist(
                *(
                    min(max(share * aim, now - rate * period), now + rate * period)
                    for aim, now, rate in zip(wanted, twist, ramp, strict=True)
                )
            )
            if seen.stops_clear(command, ramp, period):
                if share < 1.0 and max(map(abs, (*command, *twist))) < 1e-3:
                    break  # it stands already, and cannot go
                return command
        raise NoSafeCommand("whatever the base does next, it touches an obstacle", valid="stop, then recover")


def _dense(poses: NDArray[np.float64], spacing: float) -> NDArray[np.float64]:
    """The same line with poses no farther than ``spacing`` from each other; those between look as the one before."""
    lengths = np.hypot(*np.diff(poses[:, :2], axis=0).T)
    counts = np.maximum(np.ceil(lengths / spacing - 1e-9).astype(np.int64), 1)
    first = np.repeat(np.arange(len(counts)), counts)
    share = np.concatenate([np.arange(count) / count for count in counts]) if len(counts) else np.zeros(0)
    between = poses[:-1][first]
    between[:, :2] += share[:, None] * np.diff(poses[:, :2], axis=0)[first]
    return np.concatenate([between, poses[-1:]])


def _legs(poses: NDArray[np.float64]) -> list[tuple[int, bool]]:
    """Index of the last pose of each leg, and whether it is driven backward.

    Between two poses the robot backs if the heading of the first, or where it has none of its own of the second, looks
    away from the way.
    """
    steps = np.diff(poses[:, :2], axis=0)
    ahead = np.einsum("ij,ij->i", steps, np.column_stack([np.cos(poses[:-1, 2]), np.sin(poses[:-1, 2])]))
    after = np.einsum("ij,ij->i", steps, np.column_stack([np.cos(poses[1:, 2]), np.sin(poses[1:, 2])]))
    backward = (ahead < -1e-9) & (after < -1e-9)
    turns = np.flatnonzero(np.diff(backward.astype(np.int8)))
    ends = [(int(k) + 1, bool(backward[k])) for k in turns]
    return [*ends, (len(poses) - 1, bool(backward[-1]) if len(backward) else False)]
