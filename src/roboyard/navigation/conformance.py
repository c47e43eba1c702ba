"""Conformance tests of planners and controllers, of this package and of others: `check_planner`, `check_controller`.

They test what `GlobalPlanner` and `Controller` promise, on small costmaps whose grid is rotated in the map.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from roboyard.control import ZERO_TWIST, PlanarTwist
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2, wrap_angle
from roboyard.grids import GridGeometry
from roboyard.navigation.controllers.controller import Controller, GoalTolerance, MotionLimits
from roboyard.navigation.controllers.costmap_window import CostmapWindow
from roboyard.navigation.costmap import INSCRIBED, LETHAL, UNKNOWN, Costmap
from roboyard.navigation.errors import (
    GoalOccupiedError,
    GoalOutsideMapError,
    GoalUnknownError,
    NavigationError,
    NoSafeCommandError,
    StartOccupiedError,
    StartOutsideMapError,
)
from roboyard.navigation.footprint import Footprint, is_footprint_in_collision
from roboyard.navigation.path import Path
from roboyard.navigation.planners.planner import GlobalPlanner, TraversalCosts
from roboyard.navigation.plugins import ControllerFactory

_PLANNER_GRID = GridGeometry(0.1, (120, 160), SE2(-3.0, 2.0, 0.5))
_MAX_POSE_DISTANCE = 6.0
"""Largest distance between two poses of a path [cells]; controllers look for obstacles at poses."""


def check_planner(planner: GlobalPlanner) -> None:
    """Test a planner against the contract of `GlobalPlanner`.

    It plans on free space, around a wall, and on costly cells, and it is asked for impossible paths.  Checked are the
    ends of a path, its cells, cost and clearance, the class of each error, that neither costmap nor poses change, and
    that the same arguments give the same path, whatever was planned in between.  A planner with a field ``traversal``
    is also tested in unknown space, one with a field ``footprint`` for collisions of its outline.

    Args:
        planner: The planner; its robot must fit into a circle of 0.3 m radius.

    Raises:
        InputError: The planner breaks its contract; the message says how.
        NavigationError: The planner finds no path where there is one.
    """
    _PlannerCheck(planner).run_all()


class _PlannerCheck:
    def __init__(self, planner: GlobalPlanner) -> None:
        self._planner = planner
        self._free = np.zeros(_PLANNER_GRID.shape, dtype=np.uint8)
        self._wall = self._free.copy()
        self._wall[:80, 78:82] = LETHAL
        self._wall[:84, 74:86][self._wall[:84, 74:86] == 0] = INSCRIBED
        self._start, self._goal = _cell_pose(30, 30, 0.7), _cell_pose(30, 130, -1.0)

    def run_all(self) -> None:
        """Check every promise in turn."""
        costly = np.where(self._wall == 0, np.uint8(90), self._wall)
        paths = [self._plan(cells, self._start, self._goal) for cells in (self._free, self._wall, costly)]
        if paths[2].cost < paths[1].cost:
            self._report("costly cells make the path cheaper")
        self._plan(self._free, self._start, self._start)
        self._check_errors()
        self._check_unknown_space()
        repeated = self._plan(self._free, self._start, self._goal)
        if repeated.poses.tobytes() != paths[0].poses.tobytes():
            self._report("returns another path for the same arguments after other calls")

    def _check_errors(self) -> None:
        closed = self._wall.copy()
        closed[:, 76:84] = LETHAL
        outside = _PLANNER_GRID.T_map_grid @ SE2(-1.0, 1.0, 0.0)
        in_wall = _cell_pose(30, 80, 0.0)
        for cells, start, goal, error in (
            (closed, self._start, self._goal, NavigationError),
            (self._wall, self._start, in_wall, GoalOccupiedError),
            (self._wall, in_wall, self._goal, StartOccupiedError),
            (self._wall, self._start, outside, GoalOutsideMapError),
            (self._wall, outside, self._goal, StartOutsideMapError),
        ):
            self._expect_error(self._planner, cells, start, goal, error)

    def _check_unknown_space(self) -> None:
        traversal = getattr(self._planner, "traversal", None)
        if not isinstance(traversal, TraversalCosts):
            return
        unknown = self._wall.copy()
        unknown[84:, :] = UNKNOWN
        goal = _cell_pose(100, 80, 0.0)
        try:
            known_planner: Any = replace(self._planner, traversal=traversal.replace({"allow_unknown": False}))  # type: ignore[type-var]
        except TypeError:  # a property, as of a planner with a smoother
            return
        self._expect_error(known_planner, unknown, self._start, self._goal, NavigationError)
        self._expect_error(known_planner, unknown, self._start, goal, GoalUnknownError)

    def _expect_error(
        self, planner: GlobalPlanner, cells: NDArray[np.uint8], start: SE2, goal: SE2, error: type[NavigationError]
    ) -> None:
        try:
            planner.plan(Costmap(cells.copy(), _PLANNER_GRID), start, goal)
        except error as raised:
            if raised.cause == NavigationError.cause:
                self._report(f"raises {type(raised).__name__}, which names no cause")
        except NavigationError as raised:
            self._report(f"raises {type(raised).__name__} instead of {error.__name__}")
        else:
            self._report(f"finds a path where it must raise {error.__name__}")

    def _plan(self, cells: NDArray[np.uint8], start: SE2, goal: SE2) -> Path:
        """Plan a path, and check it."""
        costmap = Costmap(cells.copy(), _PLANNER_GRID)
        path: object = self._planner.plan(costmap, start, goal)
        if not isinstance(path, Path):
            self._report(f"returns {type(path).__name__} instead of Path")
        if (costmap.cells != cells).any():
            self._report("changes the costmap")
        self._check_poses(path, start, goal)
        self._check_cells(path, cells)
        self._check_rating(path, cells)
        repeated = self._planner.plan(Costmap(cells.copy(), _PLANNER_GRID), start, goal)
        if path.poses.tobytes() != repeated.poses.tobytes() or path.cost != repeated.cost:
            self._report("returns another path for the same arguments")
        return path

    def _check_poses(self, path: Path, start: SE2, goal: SE2) -> None:
        if not len(path) or path.pose(0).distance(start) > 1e-6 or path.pose(-1).distance(goal) > 1e-6:
            self._report("returns a path that does not lead from the start to the goal")
        tolerance = float(getattr(self._planner, "heading_tolerance", 0.0))
        if abs(wrap_angle(path.pose(-1).theta - goal.theta)) > tolerance + 1e-6:
            self._report("returns a path whose last pose does not have the goal's heading")
        steps = np.hypot(*np.diff(path.poses[:, :2], axis=0).T)
        if steps.max(initial=0.0) > _MAX_POSE_DISTANCE * _PLANNER_GRID.resolution:
            self._report(f"returns poses that are {steps.max():.2f} m apart")

    def _check_cells(self, path: Path, cells: NDArray[np.uint8]) -> None:
        points = np.linspace(path.poses[:-1, :2], path.poses[1:, :2], 16).reshape(-1, 2)
        indices = _PLANNER_GRID.cells_of_points(points)
        if not _PLANNER_GRID.contains(indices).all():
            self._report("returns a path that leaves the map")
        footprint = getattr(self._planner, "footprint", None)
        if not isinstance(footprint, Footprint):
            if (cells[indices[:, 0], indices[:, 1]] >= INSCRIBED).any():
                self._report("returns a path on cells where the robot touches an obstacle")
            return
        scale = 1.0 / _PLANNER_GRID.resolution
        border = footprint.sample_border(_PLANNER_GRID.resolution) * scale
        for x, y, theta in path.poses:
            pose = _PLANNER_GRID.T_map_grid.inverse() @ SE2(x, y, theta)
            if is_footprint_in_collision(cells, border, pose.x * scale, pose.y * scale, pose.theta, False):
                self._report(f"returns a path on which the footprint collides, at ({x:.2f}, {y:.2f})")

    def _check_rating(self, path: Path, cells: NDArray[np.uint8]) -> None:
        if not path.length * (1.0 - 1e-3) <= path.cost < math.inf:
            self._report(f"returns a cost of {path.cost:.2f} m for a path of {path.length:.2f} m")
        obstacles = _PLANNER_GRID.cell_centers(np.argwhere(cells == LETHAL))
        if len(obstacles):
            nearest = float(np.linalg.norm(obstacles[:, None] - path.poses[None, :, :2], axis=2).min())
            if abs(path.clearance - nearest) > _PLANNER_GRID.resolution:
                self._report(f"returns a clearance of {path.clearance:.2f} m where it is {nearest:.2f} m")

    def _report(self, violation: str) -> NoReturn:
        raise InputError(violation, location=type(self._planner).__name__, valid="the contract of GlobalPlanner")


def _cell_pose(row: int, column: int, theta: float) -> SE2:
    x, y = _PLANNER_GRID.cell_centers(np.array([row, column]))
    return SE2(x, y, theta)


_CONTROLLER_GRID = GridGeometry(0.05, (120, 120), SE2(-1.0, 2.0, 0.4))
_BODY = Footprint(np.array([[0.25, 0.18], [-0.25, 0.18], [-0.25, -0.18], [0.25, -0.18]]))
_LIMITS = MotionLimits(max_forward_speed=0.5, max_backward_speed=0.2, max_angular_speed=1.5)
_FORWARD_LIMITS = replace(_LIMITS, max_backward_speed=0.0)
_HOLONOMIC_LIMITS = replace(_LIMITS, max_backward_speed=0.5, max_lateral_speed=0.4)
_PERIOD = 0.05
_TOLERANCE = GoalTolerance(xy=0.1, yaw=0.15)
_MAX_DURATION = 60.0
"""Time allowed for 3 m of free space [s]."""


def check_controller(make: ControllerFactory, settings: Mapping[str, Any] | None = None) -> None:
    """Test a controller against the contract of `Controller`.

    It drives a simulated base in free space, among pillars, towards a wall, and out of a box; with a base that only
    drives forward, one that also backs up, and one that moves sideways.  Checked are arrival and its report, motion
    limits, speed limits, stopping distances, errors, that the same calls give the same commands, that a saved and
    loaded controller continues in the same way, and that path and costmap stay as they are.

    Args:
        make: Factory of the controller, as the entry points of ``roboyard.controllers`` name them.
        settings: Settings of the controller.

    Raises:
        InputError: The controller breaks its contract; the message says how.
    """
    for limits in (_LIMITS, _FORWARD_LIMITS, _HOLONOMIC_LIMITS):
        check = _ControllerCheck(partial(make, _BODY, limits, _PERIOD, _TOLERANCE, settings or {}), limits)
        check.check_arrival()
        if limits is _LIMITS:
            check.run_all()


class _ControllerCheck:
    def __init__(self, make: Callable[[], Controller], limits: MotionLimits) -> None:
        self._make, self._limits = make, limits
        self._ramp = PlanarTwist(limits.max_acceleration, limits.max_acceleration, limits.max_angular_acceleration)
        self._name = type(make()).__name__
        self._free = np.zeros(_CONTROLLER_GRID.shape, dtype=np.uint8)
        self._path = _straight_path(np.array([1.5, 3.0]), np.array([4.5, 3.0]))

    def run_all(self) -> None:
        """Check every promise but the arrival in turn."""
        self._check_errors()
        self._check_speed_limits()
        self._check_new_path()
        self._check_determinism()
        self._check_saved_state()
        self._check_obstacles()

    def check_arrival(self) -> None:
        """Check that the controller reaches the end of a path, reports it there and only there, and changes nothing."""
        controller, path = self._make(), Path(self._path.poses.copy())
        before = self._free.copy()
        if controller.is_goal_reached(path.pose(-1)):
            self._report("reports that the goal is reached before it has a path")
        n_periods = round(_MAX_DURATION / _PERIOD)
        pose, _ = self._drive(controller, self._free, path.pose(0), n_periods, path=path)
        if (self._free != before).any():
            self._report("changes the costmap")
        if path.poses.tobytes() != self._path.poses.tobytes():
            self._report("changes the path")
        if not controller.is_goal_reached(pose):
            self._report(f"has not reached the end of 3 m of free space after {_MAX_DURATION:g} s")
        goal = path.pose(-1)
        # a robot that has reached the position may slip while it rotates to the heading
        if pose.distance(goal) > 1.5 * _TOLERANCE.xy or abs(wrap_angle(pose.theta - goal.theta)) > _TOLERANCE.yaw:
            self._report("reports that the goal is reached where it is not")
        if controller.is_goal_reached(path.pose(30)):
            self._report("reports in the middle of the path that the goal is reached")

    def _check_errors(self) -> None:
        controller, start = self._make(), self._path.pose(0)
        costmap = Costmap(self._free, _CONTROLLER_GRID)
        self._expect(
            NavigationError, lambda: controller.compute_velocity(start, ZERO_TWIST, costmap), "commands without a path"
        )
        self._expect(InputError, lambda: controller.set_path(Path(np.zeros((0, 3)))), "accepts a path without poses")
        controller.set_path(self._path)
        twist = PlanarTwist(math.nan, 0.0, 0.0)
        self._expect(
            InputError, lambda: controller.compute_velocity(start, twist, costmap), f"accepts a velocity of {twist}"
        )

    def _expect(self, error: type[Exception], call: Callable[[], object], violation: str) -> None:
        try:
            call()
        except error:
            return
        self._report(f"{violation}, where it must raise {error.__name__}")

    def _check_speed_limits(self) -> None:
        controller = self._make()
        for speed in (0.2, 0.0):
            controller.set_speed_limit(speed)
            _, commands = self._drive(controller, self._free, self._path.pose(0), 60)
            if max(math.hypot(twist.vx, twist.vy) for twist in commands) > speed + 1e-6:
                self._report(f"drives faster than a speed limit of {speed:g} m/s")
        for wrong in (-1.0, math.nan, math.inf):
            self._expect(ConfigError, partial(controller.set_speed_limit, wrong), f"accepts a speed limit of {wrong}")
        controller.set_speed_limit(None)
        _, commands = self._drive(controller, self._free, self._path.pose(0), 60)
        if not max(twist.vx for twist in commands) > 0.25:
            self._report("does not drive after the end of a speed limit")

    def _check_new_path(self) -> None:
        controller = self._make()
        pose, _ = self._drive(controller, self._free, self._path.pose(0), 40)
        side_path = _straight_path(np.array([1.5, 3.0]), np.array([1.5, 4.8]))
        end, _ = self._drive(controller, self._free, pose, round(_MAX_DURATION / _PERIOD), path=side_path)
        if not controller.is_goal_reached(end) or end.distance(side_path.pose(-1)) > 1.5 * _TOLERANCE.xy:
            self._report("does not follow a new path")

    def _check_determinism(self) -> None:
        start = self._path.pose(0)
        (_, first), (_, second) = (self._drive(self._make(), self._free, start, 40) for _ in range(2))
        if first != second:
            self._report("returns other commands for the same calls")

    def _check_saved_state(self) -> None:
        for speed_limit in (None, 0.2):
            controller = self._make()
            controller.set_speed_limit(speed_limit)
            pose, commands = self._drive(controller, self._free, self._path.pose(0), 40)
            saved = controller.save_state()
            if not _is_plain(saved):
                self._report("saves a state that is not plain data")
            snapshot = copy.deepcopy(saved)
            costmap = Costmap(self._free, _CONTROLLER_GRID)
            command, uninterrupted = commands[-1], []
            for _ in range(5):
                command = controller.compute_velocity(pose, command, costmap)
                uninterrupted.append(command)
            for state in (snapshot, saved):
                loaded = self._make()
                loaded.set_path(self._path)
                loaded.load_state(state)
                command = commands[-1]
                for expected in uninterrupted:
                    command = loaded.compute_velocity(pose, command, costmap)
                    if command != expected:
                        self._report("continues differently after its state was saved and loaded")

    def _check_obstacles(self) -> None:
        pillars, wall = self._free.copy(), self._free.copy()
        pillars[45:55, 50:54] = pillars[66:76, 70:74] = LETHAL
        wall[:, 60:62] = LETHAL
        box = self._free.copy()
        box[53:68, 22:39] = LETHAL
        box[55:66, 24:37] = 0
        for cells in (pillars, wall, box):
            self._drive(self._make(), cells, self._path.pose(0), 200)

    def _drive(
        self,
        controller: Controller,
        cells: NDArray[np.uint8],
        pose: SE2,
        n_periods: int,
        *,
        path: Path | None = None,
    ) -> tuple[SE2, list[PlanarTwist]]:
        """Drive until the goal is reached or no safe command is left; return the last pose and the commands."""
        twist, commands = ZERO_TWIST, []
        controller.set_path(path or self._path)
        for _ in range(n_periods):
            if controller.is_goal_reached(pose):
                break
            before = twist
            try:
                twist = controller.compute_velocity(pose, twist, Costmap(cells, _CONTROLLER_GRID))
            except NoSafeCommandError:
                break
            self._check_command(before, twist)
            commands.append(twist)
            window = CostmapWindow.around(pose, Costmap(cells, _CONTROLLER_GRID), _BODY, 1.0)
            if not window.can_stop_safely(twist, self._ramp, _PERIOD):
                self._report("returns a command from which the base cannot stop without a collision")
            pose = pose @ SE2.exp([_PERIOD * value for value in twist])
        return pose, commands

    def _check_command(self, before: PlanarTwist, twist: object) -> None:
        if not isinstance(twist, PlanarTwist) or not all(math.isfinite(value) for value in twist):
            self._report(f"returns the command {twist!r}, which is not a finite PlanarTwist")
        limits = self._limits
        is_within_limits = (
            -limits.max_backward_speed - 1e-6 <= twist.vx <= limits.max_forward_speed + 1e-6
            and abs(twist.vy) <= limits.max_lateral_speed + 1e-6
            and abs(twist.wz) <= limits.max_angular_speed + 1e-6
        )
        if not is_within_limits:
            self._report(f"returns the command {tuple(twist)}, which exceeds the motion limits")
        if any(abs(b - a) > rate * _PERIOD + 1e-6 for a, b, rate in zip(before, twist, self._ramp, strict=True)):
            self._report("changes its command faster than the accelerations of the base allow")

    def _report(self, violation: str) -> NoReturn:
        raise InputError(violation, location=self._name, valid="the contract of Controller")


def _straight_path(start: NDArray[np.float64], end: NDArray[np.float64]) -> Path:
    """Make a path of poses 5 cm apart between two points in the frame of the controllers' grid."""
    count = round(float(np.linalg.norm(end - start)) / 0.05) + 1
    heading = math.atan2(end[1] - start[1], end[0] - start[0]) + _CONTROLLER_GRID.T_map_grid.theta
    points = _CONTROLLER_GRID.T_map_grid @ np.linspace(start, end, count)
    return Path(np.column_stack([points, np.full(count, heading)]))


def _is_plain(value: object) -> bool:
    """Return whether a state consists of dicts with text keys, lists, tuples, numbers, texts, None and arrays."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(element) for key, element in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str | bytes | np.ndarray | np.generic)
