"""Whether somebody's controller keeps what ``Controller`` promises."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from roboyard.control import STANDSTILL, PlanarTwist
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2, wrap_angle
from roboyard.grids import GridGeometry
from roboyard.navigation.controllers.arrival import Tolerance
from roboyard.navigation.controllers.base import Controller, MotionLimits
from roboyard.navigation.controllers.choice import Factory
from roboyard.navigation.controllers.surroundings import Surroundings
from roboyard.navigation.costmap import LETHAL, Costmap
from roboyard.navigation.errors import NavigationError, NoSafeCommand
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.path import Path

_FRAME = GridGeometry(0.05, (120, 120), SE2(-1.0, 2.0, 0.4))
_BODY = Footprint(np.array([[0.25, 0.18], [-0.25, 0.18], [-0.25, -0.18], [0.25, -0.18]]))
_LIMITS = MotionLimits(forward=0.5, backward=0.2, turn=1.5)
_PERIOD = 0.05
_TOLERANCE = Tolerance(xy=0.1, yaw=0.15)
_LONGEST = 60.0  # for three metres [s]


def check_controller(make: Factory) -> None:
    """Try a controller on small costmaps: it arrives, keeps limits, and touches nothing, however the ground is.

    Args:
        make: What an entry point ``roboyard.controllers`` names.

    Raises:
        InputError: it breaks its contract; the message says how.
    """
    _Check(lambda: make(_BODY, _LIMITS, _PERIOD, _TOLERANCE, {})).all()


class _Check:
    def __init__(self, make: Callable[[], Controller]) -> None:
        self._make = make
        self._name = type(make()).__name__
        self._free = np.zeros(_FRAME.shape, dtype=np.uint8)
        line = np.column_stack([np.linspace(1.5, 4.5, 61), np.full(61, 3.0)])
        self._path = Path(np.column_stack([_FRAME.T_map_grid @ line, np.full(61, _FRAME.T_map_grid.theta)]))

    def all(self) -> None:
        """Every promise in turn."""
        self._wants_a_path()
        self._arrives()
        self._holds_speed_limits()
        self._repeats_itself()
        self._touches_nothing()

    def _wants_a_path(self) -> None:
        try:
            self._make().command(self._path.pose(0), STANDSTILL, Costmap(self._free, _FRAME))
        except NavigationError:
            return
        self._broken("gives a command before it has a path")

    def _arrives(self) -> None:
        controller = self._make()
        before = self._free.copy()
        pose, _ = self._drive(controller, self._free, self._path.pose(0), round(_LONGEST / _PERIOD))
        if (self._free != before).any():
            self._broken("changes the costmap it was given")
        if not controller.arrived(pose):
            self._broken(f"has not come along 3 m of free ground after {_LONGEST:g} s")
        goal = self._path.pose(-1)
        turned = abs(wrap_angle(pose.theta - goal.theta))
        if pose.distance(goal) > 1.5 * _TOLERANCE.xy or turned > _TOLERANCE.yaw:  # it may slip while it turns
            self._broken("says that it has arrived where it has not")
        if controller.arrived(self._path.pose(30)):
            self._broken("says in the middle of the path that it has arrived")

    def _holds_speed_limits(self) -> None:
        controller = self._make()
        for speed in (0.2, 0.0):
            controller.limit_speed(speed)
            _, commands = self._drive(controller, self._free, self._path.pose(0), 60)
            if max(math.hypot(twist.vx, twist.vy) for twist in commands) > speed + 1e-6:
                self._broken(f"drives faster than a limit of {speed:g} m/s")
        controller.limit_speed(None)
        _, commands = self._drive(controller, self._free, self._path.pose(0), 60)
        if not max(twist.vx for twist in commands) > 0.25:
            self._broken("does not drive on when a speed limit has ended")
        for wrong in (-1.0, math.nan):
            try:
                controller.limit_speed(wrong)
            except ConfigError:
                continue
            self._broken(f"takes a speed limit of {wrong}")

    def _repeats_itself(self) -> None:
        first, second = self._make(), self._make()
        (pose, one), (_, other) = (self._drive(c, self._free, self._path.pose(0), 40) for c in (first, second))
        if one != other:
            self._broken("commands something else when asked the same again")
        third = self._make()
        third.follow(self._path)
        third.load_state(first.save_state())
        found = [controller.command(pose, one[-1], Costmap(self._free, _FRAME)) for controller in (first, third)]
        if found[0] != found[1]:
            self._broken("goes on otherwise when it was saved and loaded")

    def _touches_nothing(self) -> None:
        beside, across = self._free.copy(), self._free.copy()
        beside[45:55, 50:54] = beside[66:76, 70:74] = LETHAL
        across[:, 60:62] = LETHAL
        box = self._free.copy()
        box[53:68, 22:39] = LETHAL
        box[55:66, 24:37] = 0
        for cells in (beside, across, box):
            self._drive(self._make(), cells, self._path.pose(0), 200)

    def _drive(
        self, controller: Controller, cells: np.ndarray[tuple[int, int], np.dtype[np.uint8]], pose: SE2, periods: int
    ) -> tuple[SE2, list[PlanarTwist]]:
        """Where it gets, and by which commands; until it has arrived, or says that nothing safe is left to do."""
        twist, commands = STANDSTILL, []
        controller.follow(self._path)
        for _ in range(periods):
            if controller.arrived(pose):
                break
            before = twist
            try:
                twist = controller.command(pose, twist, Costmap(cells, _FRAME))
            except NoSafeCommand:
                break
            self._check_limits(before, twist)
            commands.append(twist)
            seen = Surroundings.about(pose, Costmap(cells, _FRAME), _BODY, 1.0)
            if not seen.stops_clear(twist, _BRAKING, _PERIOD):
                self._broken("commands what the base could not stop from before it touches an obstacle")
            pose = pose @ SE2.exp([_PERIOD * value for value in twist])
        return pose, commands

    def _check_limits(self, before: PlanarTwist, twist: object) -> None:
        if not isinstance(twist, PlanarTwist) or not all(math.isfinite(value) for value in twist):
            self._broken(f"commands {twist!r}, not a finite PlanarTwist")
        within = -_LIMITS.backward <= twist.vx <= _LIMITS.forward and abs(twist.wz) <= _LIMITS.turn
        if not (within and twist.vy == 0.0):
            self._broken(f"commands {tuple(twist)}, which is beyond the base's limits")
        if any(abs(new - old) > rate * _PERIOD + 1e-6 for new, old, rate in zip(twist, before, _BRAKING, strict=True)):
            self._broken("changes its command by more than the base's acceleration")

    def _broken(self, how: str) -> NoReturn:
        raise InputError(how, location=self._name, valid="what Controller promises")


_BRAKING = PlanarTwist(_LIMITS.acceleration, _LIMITS.acceleration, _LIMITS.turn_acceleration)
