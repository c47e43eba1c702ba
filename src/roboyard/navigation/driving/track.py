"""The way a robot came by, and getting to where there is room to turn, back along it or ahead."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.control import PlanarTwist
from roboyard.geometry import SE2, wrap_angle
from roboyard.grids import distance_to
from roboyard.navigation.costmap import LETHAL, Costmap
from roboyard.navigation.driving.behaviors import Body, check_positive
from roboyard.navigation.driving.situation import Remembering, Situation
from roboyard.navigation.errors import TimeOut
from roboyard.navigation.footprint import lies_on_obstacle

_SPACING = 0.05
"""Between remembered poses [m]."""
_RECENT = 10
"""Among so many of the last poses it is seen that the robot drives back."""
_TURN = 0.25
"""A turn of one radian counts as so much way [m]."""
_AIM = 0.12
"""So far back along the track the robot aims [m]."""
_REACH = 0.8
"""So far ahead it looks for room [m]."""
_OVERLAP = 0.25
"""Within so much way ahead it must be out of what it overlaps [m]; a wall is not driven through."""
_ON_THE_SPOT = 0.03
"""Nearer than this, what is left is a turn [m]."""


class Track:
    """Remembers the last metres of the way, turns on the spot included.

    What is driven back is forgotten: the newest pose is always about where the robot is.

    Args:
        length: How much is remembered [m].
    """

    def __init__(self, length: float = 4.0) -> None:
        self._most = max(round(length / _SPACING), 2)
        self._poses: list[SE2] = []

    def __len__(self) -> int:
        return len(self._poses)

    def go(self, pose: SE2) -> None:
        """The robot is at a pose, in a frame that does not jump: ``T_odom_base``."""
        poses = self._poses
        for index in range(max(len(poses) - _RECENT, 0), len(poses)):
            if _apart(pose, poses[index]) < _SPACING:  # still there, or back there
                del poses[index + 1 :]
                return
        poses.append(pose)
        del poses[: -self._most]

    def behind(self, pose: SE2) -> SE2 | None:
        """Where to go next to go back; None at the end of what is remembered."""
        return next((one for one in reversed(self._poses) if _apart(pose, one) >= _AIM), None)

    def before(self, way: float) -> SE2 | None:
        """Where the robot was ``way`` [m] ago; None if that is not remembered."""
        for later, earlier in pairwise(reversed(self._poses)):
            way -= _apart(later, earlier)
            if way <= 0.0:
                return earlier
        return None

    def save(self) -> Any:
        """State as plain data."""
        return [(pose.x, pose.y, pose.theta) for pose in self._poses]

    def load(self, saved: Iterable[tuple[float, float, float]]) -> None:
        """Take back what ``save`` gave."""
        self._poses = [SE2(*pose) for pose in saved]


class MakeRoom(Remembering):
    """Moves the robot to where it can turn on the spot; where it can already, that is done at once.

    What keeps a robot in a narrow place is mostly that its corners would touch something if it turned.  It drives ahead
    if there is room within ``_REACH``, and nearer than back along the way it came; else it drives back that way, as far
    as it must: that ground is behind what its sensors see, but it has driven over it.

    Args:
        body: Of the robot.
        track: Of the robot, kept by whoever makes this.
        speed: Fastest [m/s].
        allowance: Longest time [s].

    Raises:
        InputError: a speed or time that is not positive.
    """

    remembered = ("_began", "_ahead")

    def __init__(self, body: Body, track: Track, speed: float, allowance: float) -> None:
        check_positive(speed=speed, time_allowance=allowance)
        self._body, self._track, self._allowance = body, track, allowance
        self._speed = speed
        self._began: float | None = None
        self._ahead = False

    def step(self, now: Situation) -> PlanarTwist | None:
        """See ``Task``."""
        clear = distance_to(now.local.cells == LETHAL, now.local.frame.resolution)
        if self._has_room(now.local, clear, now.pose):
            return None
        if self._began is None:
            self._began, self._ahead = now.time, self._prefers_ahead(now, clear)
        if now.time - self._began > self._allowance:
            raise TimeOut("no room to turn was found in the time allowed")
        limits = self._body.limits
        if self._ahead:
            twist = PlanarTwist(min(self._speed, limits.forward), 0.0, 0.0)
        else:
            here = now.T_odom_base
            aim = self._track.behind(here)
            if aim is None or limits.backward == 0.0:
                return None
            twist = self._towards(here.inverse() @ aim, min(self._speed, limits.backward))
        self._body.check(now, twist)
        return twist

    def _has_room(self, costmap: Costmap, clear: NDArray[np.float32], pose: SE2) -> bool:
        row, column = costmap.frame.cells(pose.xy)
        inside = costmap.frame.contains((row, column))
        return not inside or clear[row, column] > self._body.footprint.circumscribed_radius + costmap.frame.resolution

    def _prefers_ahead(self, now: Situation, clear: NDArray[np.float32]) -> bool:
        frame = now.local.frame
        border = self._body.footprint.border(frame.resolution) / frame.resolution
        out = False  # of what it may overlap at first
        for way in np.arange(0.0, _REACH, _SPACING):
            there = now.pose @ SE2(float(way), 0.0, 0.0)
            here = frame.T_map_grid.inverse() @ there
            x, y = here.xy / frame.resolution
            if lies_on_obstacle(now.local.cells, border, x, y, here.theta, True):
                if out or way > _OVERLAP:
                    return False
                continue
            out = True
            if self._has_room(now.local, clear, there):
                return True
            back = self._track.before(float(way))
            if back is not None and self._has_room(now.local, clear, now.T_map_odom @ back):
                return False
        return False

    def _towards(self, aim: SE2, speed: float) -> PlanarTwist:
        """On an arc to a place close by, or a turn on the spot to its heading."""
        limit = 0.5 * self._body.limits.turn
        distance = math.hypot(aim.x, aim.y)
        if distance < _ON_THE_SPOT:
            return PlanarTwist(0.0, 0.0, max(-limit, min(limit, 2.0 * wrap_angle(aim.theta))))
        speed = math.copysign(speed, aim.x)
        return PlanarTwist(speed, 0.0, max(-limit, min(limit, 2.0 * speed * aim.y / distance**2)))


def _apart(a: SE2, b: SE2) -> float:
    return a.distance(b) + _TURN * abs(wrap_angle(a.theta - b.theta))
