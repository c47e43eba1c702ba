"""Conformance tests for planners and controllers of other packages: `check_planner`, `check_controller`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from roboyard.control import ZERO_TWIST, PlanarTwist
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2, wrap_angle
from roboyard.grids import GridGeometry
from roboyard.navigation.controllers.controller import Controller, GoalTolerance, MotionLimits
from roboyard.navigation.controllers.costmap_window import CostmapWindow
from roboyard.navigation.costmap import INSCRIBED, LETHAL, Costmap
from roboyard.navigation.errors import (
    GoalOccupiedError,
    GoalOutsideMapError,
    NavigationError,
    NoSafeCommandError,
    StartOccupiedError,
    StartOutsideMapError,
)
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.path import Path
from roboyard.navigation.planners.planner import GlobalPlanner
from roboyard.navigation.plugins import ControllerFactory

_PLANNER_GRID = GridGeometry(0.1, (120, 160), SE2(-3.0, 2.0, 0.5))


def check_planner(planner: GlobalPlanner) -> None:
    """Try a planner on small maps: paths, causes of failures, and that it does not change its inputs.

    Raises:
        InputError: it breaks its contract; the message says how.
    """
    wall = np.zeros(_PLANNER_GRID.shape, dtype=np.uint8)
    wall[:80, 78:82] = LETHAL
    wall[:84, 74:86][wall[:84, 74:86] == 0] = INSCRIBED
    start, goal = _cell_pose(30, 30, 0.7), _cell_pose(30, 130, -1.0)
    for cells in (np.zeros(_PLANNER_GRID.shape, dtype=np.uint8), wall, np.where(wall == 0, np.uint8(90), wall)):
        _check_path(planner, Costmap(cells, _PLANNER_GRID), start, goal)
    closed = wall.copy()
    closed[:, 76:84] = LETHAL
    outside = _PLANNER_GRID.T_map_grid @ SE2(-1.0, 1.0, 0.0)
    for cells, first, last, error in (
        (closed, start, goal, NavigationError),
        (wall, start, _cell_pose(30, 80, 0.0), GoalOccupiedError),
        (wall, _cell_pose(30, 80, 0.0), goal, StartOccupiedError),
        (wall, start, outside, GoalOutsideMapError),
        (wall, outside, goal, StartOutsideMapError),
    ):
        try:
            planner.plan(Costmap(cells.copy(), _PLANNER_GRID), first, last)
        except error as raised:
            if raised.cause == NavigationError.cause:
                _report_planner_violation(planner, f"{type(raised).__name__} names no cause")
        except NavigationError as raised:
            _report_planner_violation(planner, f"raises {type(raised).__name__} instead of {error.__name__}")
        else:
            _report_planner_violation(planner, f"finds a way where {error.__name__} is to be raised")


def _cell_pose(row: int, column: int, theta: float) -> SE2:
    x, y = _PLANNER_GRID.cell_centers(np.array([row, column]))
    return SE2(x, y, theta)


def _check_path(planner: GlobalPlanner, costmap: Costmap, start: SE2, goal: SE2) -> None:
    before = costmap.cells.copy()
    path: object = planner.plan(costmap, start, goal)
    if not isinstance(path, Path):
        _report_planner_violation(planner, f"gives {type(path).__name__}, not Path")
    if (costmap.cells != before).any():
        _report_planner_violation(planner, "changes the costmap it was given")
    if not len(path) or path.pose(0).distance(start) > 1e-6 or path.pose(-1).distance(goal) > 1e-6:
        _report_planner_violation(planner, "its way does not lead from the start to the goal")
    steps = np.linspace(path.poses[:-1, :2], path.poses[1:, :2], 16).reshape(-1, 2)
    cells = _PLANNER_GRID.cells_of_points(steps)
    if not _PLANNER_GRID.contains(cells).all():
        _report_planner_violation(planner, "its way leaves the map")
    crossed_costs = costmap.cells[cells[:, 0], cells[:, 1]]
    if (crossed_costs >= INSCRIBED).any():
        _report_planner_violation(planner, "its way leads through cells where the robot touches an obstacle")
    if path.cost < path.length * (1.0 - 1e-3):
        _report_planner_violation(
            planner, f"a way of {path.length:.2f} m is said to cost {path.cost:.2f} m of free ground"
        )
    lethal = _PLANNER_GRID.cell_centers(np.argwhere(costmap.cells == LETHAL))
    if len(lethal):
        nearest = float(np.linalg.norm(lethal[:, None] - path.poses[None, :, :2], axis=2).min())
        if not nearest - _PLANNER_GRID.resolution <= path.clearance <= nearest + _PLANNER_GRID.resolution:
            _report_planner_violation(planner, f"its clearance is {nearest:.2f} m, not {path.clearance:.2f} m")
    repeated = planner.plan(Costmap(before, _PLANNER_GRID), start, goal)
    if path.poses.shape != repeated.poses.shape or (path.poses != repeated.poses).any():
        _report_planner_violation(planner, "finds another way when asked the same again")


def _report_planner_violation(planner: GlobalPlanner, violation: str) -> NoReturn:
    raise InputError(violation, location=type(planner).__name__, valid="what GlobalPlanner promises")


_CONTROLLER_GRID = GridGeometry(0.05, (120, 120), SE2(-1.0, 2.0, 0.4))
_BODY = Footprint(np.array([[0.25, 0.18], [-0.25, 0.18], [-0.25, -0.18], [0.25, -0.18]]))
_LIMITS = MotionLimits(max_forward_speed=0.5, max_backward_speed=0.2, max_angular_speed=1.5)
_PERIOD = 0.05
_TOLERANCE = GoalTolerance(xy=0.1, yaw=0.15)
_MAX_DURATION = 60.0  # for three metres [s]


def check_controller(make: ControllerFactory) -> None:
    """Try a controller on small costmaps: it reaches the goal, keeps limits, and never collides.

    Args:
        make: What an entry point ``roboyard.controllers`` names.

    Raises:
        InputError: it breaks its contract; the message says how.
    """
    _ControllerCheck(lambda: make(_BODY, _LIMITS, _PERIOD, _TOLERANCE, {})).run_all()


class _ControllerCheck:
    def __init__(self, make: Callable[[], Controller]) -> None:
        self._make = make
        self._name = type(make()).__name__
        self._free_cells = np.zeros(_CONTROLLER_GRID.shape, dtype=np.uint8)
        line = np.column_stack([np.linspace(1.5, 4.5, 61), np.full(61, 3.0)])
        self._path = Path(
            np.column_stack([_CONTROLLER_GRID.T_map_grid @ line, np.full(61, _CONTROLLER_GRID.T_map_grid.theta)])
        )

    def run_all(self) -> None:
        """Every promise in turn."""
        self._check_requires_path()
        self._check_reaches_goal()
        self._check_speed_limits()
        self._check_determinism()
        self._check_collision_free()

    def _check_requires_path(self) -> None:
        try:
            self._make().compute_velocity(self._path.pose(0), ZERO_TWIST, Costmap(self._free_cells, _CONTROLLER_GRID))
        except NavigationError:
            return
        self._report_violation("gives a command before it has a path")

    def _check_reaches_goal(self) -> None:
        controller = self._make()
        before = self._free_cells.copy()
        pose, _ = self._drive(controller, self._free_cells, self._path.pose(0), round(_MAX_DURATION / _PERIOD))
        if (self._free_cells != before).any():
            self._report_violation("changes the costmap it was given")
        if not controller.is_goal_reached(pose):
            self._report_violation(f"has not come along 3 m of free ground after {_MAX_DURATION:g} s")
        goal = self._path.pose(-1)
        heading_error = abs(wrap_angle(pose.theta - goal.theta))
        if pose.distance(goal) > 1.5 * _TOLERANCE.xy or heading_error > _TOLERANCE.yaw:  # it may slip while it turns
            self._report_violation("says that it has arrived where it has not")
        if controller.is_goal_reached(self._path.pose(30)):
            self._report_violation("says in the middle of the path that it has arrived")

    def _check_speed_limits(self) -> None:
        controller = self._make()
        for speed in (0.2, 0.0):
            controller.set_speed_limit(speed)
            _, commands = self._drive(controller, self._free_cells, self._path.pose(0), 60)
            if max(math.hypot(twist.vx, twist.vy) for twist in commands) > speed + 1e-6:
                self._report_violation(f"drives faster than a limit of {speed:g} m/s")
        controller.set_speed_limit(None)
        _, commands = self._drive(controller, self._free_cells, self._path.pose(0), 60)
        if not max(twist.vx for twist in commands) > 0.25:
            self._report_violation("does not drive on when a speed limit has ended")
        for wrong in (-1.0, math.nan):
            try:
                controller.set_speed_limit(wrong)
            except ConfigError:
                continue
            self._report_violation(f"takes a speed limit of {wrong}")

    def _check_determinism(self) -> None:
        first, second = self._make(), self._make()
        (pose, first_commands), (_, second_commands) = (
            self._drive(c, self._free_cells, self._path.pose(0), 40) for c in (first, second)
        )
        if first_commands != second_commands:
            self._report_violation("commands something else when asked the same again")
        third = self._make()
        third.set_path(self._path)
        third.load_state(first.save_state())
        found = [
            controller.compute_velocity(pose, first_commands[-1], Costmap(self._free_cells, _CONTROLLER_GRID))
            for controller in (first, third)
        ]
        if found[0] != found[1]:
            self._report_violation("goes on otherwise when it was saved and loaded")

    def _check_collision_free(self) -> None:
        pillars, wall = self._free_cells.copy(), self._free_cells.copy()
        pillars[45:55, 50:54] = pillars[66:76, 70:74] = LETHAL
        wall[:, 60:62] = LETHAL
        box = self._free_cells.copy()
        box[53:68, 22:39] = LETHAL
        box[55:66, 24:37] = 0
        for cells in (pillars, wall, box):
            self._drive(self._make(), cells, self._path.pose(0), 200)

    def _drive(
        self, controller: Controller, cells: np.ndarray[tuple[int, int], np.dtype[np.uint8]], pose: SE2, n_periods: int
    ) -> tuple[SE2, list[PlanarTwist]]:
        """Where it gets, and by which commands; until it has arrived, or says that nothing safe is left to do."""
        twist, commands = ZERO_TWIST, []
        controller.set_path(self._path)
        for _ in range(n_periods):
            if controller.is_goal_reached(pose):
                break
            before = twist
            try:
                twist = controller.compute_velocity(pose, twist, Costmap(cells, _CONTROLLER_GRID))
            except NoSafeCommandError:
                break
            self._check_limits(before, twist)
            commands.append(twist)
            window = CostmapWindow.around(pose, Costmap(cells, _CONTROLLER_GRID), _BODY, 1.0)
            if not window.can_stop_safely(twist, _BRAKING, _PERIOD):
                self._report_violation("commands what the base could not stop from before it touches an obstacle")
            pose = pose @ SE2.exp([_PERIOD * value for value in twist])
        return pose, commands

    def _check_limits(self, before: PlanarTwist, twist: object) -> None:
        if not isinstance(twist, PlanarTwist) or not all(math.isfinite(value) for value in twist):
            self._report_violation(f"commands {twist!r}, not a finite PlanarTwist")
        is_within_limits = (
            -_LIMITS.max_backward_speed <= twist.vx <= _LIMITS.max_forward_speed
            and abs(twist.wz) <= _LIMITS.max_angular_speed
        )
        if not (is_within_limits and twist.vy == 0.0):
            self._report_violation(f"commands {tuple(twist)}, which is beyond the base's limits")
        if any(abs(new - old) > rate * _PERIOD + 1e-6 for new, old, rate in zip(twist, before, _BRAKING, strict=True)):
            self._report_violation("changes its command by more than the base's acceleration")

    def _report_violation(self, violation: str) -> NoReturn:
        raise InputError(violation, location=self._name, valid="what Controller promises")


_BRAKING = PlanarTwist(_LIMITS.max_acceleration, _LIMITS.max_acceleration, _LIMITS.max_angular_acceleration)
