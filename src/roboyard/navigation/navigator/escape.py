"""Escape manoeuvre: the cheapest collision-free sequence of motions to a pose where the robot can rotate in place."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.config import parameter
from roboyard.control import PlanarTwist
from roboyard.geometry import SE2
from roboyard.grids import distance_transform
from roboyard.navigation.controllers import CostmapWindow
from roboyard.navigation.controllers.costmap_window import CostmapWindowArrays, example_window_arrays, is_in_collision
from roboyard.navigation.costmap import LETHAL, UNKNOWN
from roboyard.navigation.errors import MotionBlockedError, TimeAllowanceExceededError
from roboyard.navigation.navigator.behavior import Behavior, BehaviorContext, MobileBase, MotionBehaviorConfig
from roboyard.navigation.navigator.behaviors import check_positive
from roboyard.navigation.navigator.task import NavigationState

_SEARCH_RADIUS = 3.0
"""Radius of the search [m]."""
_STEP_LENGTH = 0.05
"""Length of a motion primitive [m]."""
_N_HEADINGS = 72
"""Number of headings of the search; a motion primitive rotates by one of them at most."""
_ROTATION_PENALTY = 0.25
"""Distance that costs as much as a rotation of one radian [m]."""
_DIRECTION_CHANGE_PENALTY, _STEERING_CHANGE_PENALTY = 0.1, 0.02
"""Distances that cost as much as a change of direction and of steering [m]."""
_UNKNOWN_COST_FACTOR = 5.0
"""Ratio of the cost of a motion over unknown space to that over free space."""
_FOOTPRINT_SHRINK_RATIO = 0.7
"""Fraction of the footprint under which space must be known: cells at its edge were never wholly under it."""
_MAX_EXPANSIONS = 20_000
"""Largest number of expanded poses."""
_SPEED_FRACTIONS = (1.0, 0.5, 0.25)
"""Fractions of the speed that are tried in turn: near obstacles the robot drives more slowly."""


class EscapeTask(Behavior):
    """Drive to a pose where the robot can rotate in place; it is finished at once where the robot already can.

    A robot is mostly held in a narrow place because its corners would collide if it rotated.  The behavior drives the
    cheapest sequence of straight motions, arcs and small rotations, and searches another one when an obstacle blocks
    it.
    It may use the padding of the footprint.

    Args:
        mobile_base: Footprints and limits of the robot.
        max_speed: Largest speed [m/s].
        time_allowance: Longest duration [s].

    Raises:
        InputError: A speed or time is not positive.
    """

    state_attributes = ("_start_time", "_remaining_motions", "_motion_start")

    def __init__(self, mobile_base: MobileBase, max_speed: float, time_allowance: float) -> None:
        check_positive(speed=max_speed, time_allowance=time_allowance)
        self._mobile_base, self._max_speed, self._time_allowance = (
            replace(mobile_base, footprint=mobile_base.unpadded_footprint),
            max_speed,
            time_allowance,
        )
        self._required_clearance = mobile_base.footprint.circumscribed_radius
        self._motion_primitives = (
            _MOTION_PRIMITIVES
            if mobile_base.limits.max_backward_speed > 0.0
            else _MOTION_PRIMITIVES[_MOTION_PRIMITIVES[:, 0] >= 0.0]
        )
        self._start_time: float | None = None
        self._remaining_motions: list[int] = []  # the present one first, which began at `_motion_start`
        self._motion_start = (0.0, 0.0, 0.0)

    def compute_command(self, state: NavigationState) -> PlanarTwist | None:
        """Return the velocity of the manoeuvre; None if the robot can rotate here."""
        window = CostmapWindow.around(state.pose, state.local_costmap, self._mobile_base.footprint, _SEARCH_RADIUS)
        window_arrays = window.arrays
        can_rotate = (
            distance_transform(window_arrays.cells == LETHAL, window_arrays.resolution)
            > self._required_clearance + window_arrays.resolution
        )
        row, column = (math.floor(value / window_arrays.resolution) for value in (window.pose.y, window.pose.x))
        if not (0 <= row < can_rotate.shape[0] and 0 <= column < can_rotate.shape[1]) or can_rotate[row, column]:
            return None
        self._start_time = state.time if self._start_time is None else self._start_time
        if state.time - self._start_time > self._time_allowance:
            raise TimeAllowanceExceededError(
                "the robot has reached no pose where it can rotate within the time allowance"
            )
        T_odom_base = state.T_odom_base
        while self._remaining_motions and self._is_motion_finished(T_odom_base):
            self._remaining_motions = self._remaining_motions[1:]
            self._motion_start = (T_odom_base.x, T_odom_base.y, T_odom_base.theta)
        if self._remaining_motions:
            try:
                return self._motion_command(state)
            except MotionBlockedError:
                pass  # an obstacle has come into the way, or is observed more exactly
        motions = plan_escape(
            window_arrays,
            distance_transform(can_rotate, window_arrays.resolution),
            self._motion_primitives,
            _MAX_EXPANSIONS,
        )
        self._remaining_motions, self._motion_start = (
            [int(k) for k in motions],
            (T_odom_base.x, T_odom_base.y, T_odom_base.theta),
        )
        if not self._remaining_motions:
            raise MotionBlockedError(
                "no manoeuvre leads to a pose where the robot can rotate", valid="such a pose within 3 m"
            )
        return self._motion_command(state)

    def _is_motion_finished(self, T_odom_base: SE2) -> bool:
        """Return whether the present motion is finished."""
        length, rotation = self._motion_primitives[self._remaining_motions[0]]
        motion = SE2(*self._motion_start).inverse() @ T_odom_base
        return bool(motion.x / length >= 1.0 if length else motion.theta / rotation >= 1.0)

    def _motion_command(self, state: NavigationState) -> PlanarTwist:
        """Return the velocity of the present motion, slow enough to stop before a collision.

        Raises:
            MotionBlockedError: No speed is slow enough.
        """
        limits, (length, rotation) = (
            self._mobile_base.limits,
            (float(value) for value in self._motion_primitives[self._remaining_motions[0]]),
        )
        max_speed = min(self._max_speed, limits.max_backward_speed if length < 0.0 else limits.max_forward_speed)
        duration = max(abs(length) / max_speed, 2.0 * abs(rotation) / limits.max_angular_speed)
        for fraction in _SPEED_FRACTIONS:
            twist = PlanarTwist(fraction * length / duration, 0.0, fraction * rotation / duration)
            try:
                self._mobile_base.assert_collision_free(state, twist)
            except MotionBlockedError:
                if fraction == _SPEED_FRACTIONS[-1]:
                    raise
            else:
                break
        return twist


@dataclass(frozen=True, kw_only=True)
class EscapeConfig(MotionBehaviorConfig):
    """Drive the cheapest collision-free maneuver to a pose where the robot can rotate.

    The behavior ends at once where the robot can rotate already.
    """

    max_speed: float = parameter(0.15, unit="m/s", low=0.01, high=10.0, doc="Largest speed.")

    def make_behavior(self, context: BehaviorContext) -> EscapeTask:
        """Return an escape manoeuvre."""
        return EscapeTask(context.mobile_base, self.max_speed, self.time_allowance)


def _make_motion_primitives() -> NDArray[np.float64]:
    """Return (n, 2) length [m] and rotation [rad] of each motion; wide arcs lead away from a wall beside the robot."""
    heading_step = 2.0 * math.pi / _N_HEADINGS
    arcs = [
        (length, rotation)
        for length in (_STEP_LENGTH, -_STEP_LENGTH)
        for rotation in (0.0, 0.2 * heading_step, -0.2 * heading_step, heading_step, -heading_step)
    ]
    return np.array([*arcs, (0.0, heading_step), (0.0, -heading_step)])


_MOTION_PRIMITIVES = _make_motion_primitives()


@kernel(examples=lambda: [(example_window_arrays(), np.zeros((5, 5), dtype=np.float32), _MOTION_PRIMITIVES, 10)])
def plan_escape(
    window: CostmapWindowArrays, distances: NDArray[np.float32], motions: NDArray[np.float64], max_expansions: int
) -> NDArray[np.int64]:
    """Return the cheapest sequence (m,) of motions to a pose where the robot can rotate; empty if none is found.

    The search is A* over poses; one pose is kept for each half of a cell and each heading.

    Args:
        window: Costmap around the robot.
        distances: (rows, columns) straight distance to the nearest pose where the robot can rotate [m].
        motions: (n, 2) length [m] and rotation [rad] of each motion.
        max_expansions: Largest number of expanded poses.
    """
    scale = 1.0 / window.resolution
    rows, columns = window.cells.shape
    best_costs = np.full((2 * rows, 2 * columns, _N_HEADINGS), np.inf, dtype=np.float32)
    max_nodes = max_expansions * len(motions) + 1
    poses = np.empty((max_nodes, 3))
    parents, incoming_motions = np.empty(max_nodes, dtype=np.int64), np.empty(max_nodes, dtype=np.int64)
    costs = np.empty(max_nodes)
    poses[0] = window.start_pose
    parents[0], incoming_motions[0], costs[0] = -1, -1, 0.0
    count, n_expanded = 1, 0
    queue = [(0.0, 0)]
    while len(queue) > 0 and n_expanded < max_expansions:
        _, node = heapq.heappop(queue)
        x, y, theta = poses[node]
        row, column = int(y * scale), int(x * scale)
        if distances[row, column] == 0.0:
            return _trace_motions(node, parents, incoming_motions)
        r, c, h = int(2.0 * y * scale), int(2.0 * x * scale), _heading_index(theta)
        if np.float32(costs[node]) > best_costs[r, c, h]:
            continue
        n_expanded += 1
        for k in range(len(motions)):
            length, rotation = motions[k]
            px, py, angle, is_free = x, y, theta, True
            for _ in range(2):  # so that no obstacle lies between two checks
                mid_heading = angle + 0.25 * rotation
                px += 0.5 * length * math.cos(mid_heading)
                py += 0.5 * length * math.sin(mid_heading)
                angle += 0.5 * rotation
                if is_in_collision(window, px, py, angle, False):
                    is_free = False
                    break
            if not is_free:
                continue
            motion_cost = abs(length) + _ROTATION_PENALTY * abs(rotation)
            if _is_over_unknown(window, px * scale, py * scale, angle):
                motion_cost *= _UNKNOWN_COST_FACTOR
            if k != incoming_motions[node]:
                motion_cost += (
                    _STEERING_CHANGE_PENALTY
                    if incoming_motions[node] >= 0 and motions[incoming_motions[node], 0] * length > 0.0
                    else _DIRECTION_CHANGE_PENALTY
                )
            cost = costs[node] + motion_cost
            r, c, h = int(2.0 * py * scale), int(2.0 * px * scale), _heading_index(angle)
            if np.float32(cost) >= best_costs[r, c, h]:
                continue
            best_costs[r, c, h] = cost
            poses[count, 0], poses[count, 1], poses[count, 2] = px, py, angle
            parents[count], incoming_motions[count], costs[count] = node, k, cost
            heapq.heappush(queue, (cost + np.float64(distances[int(py * scale), int(px * scale)]), count))
            count += 1
    return np.zeros(0, dtype=np.int64)


@kernel
def _trace_motions(node: int, parents: NDArray[np.int64], incoming_motions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the motions (m,) that lead to a pose."""
    steps, ancestor = 0, node
    while parents[ancestor] >= 0:
        steps, ancestor = steps + 1, parents[ancestor]
    motions = np.empty(steps, dtype=np.int64)
    for k in range(steps - 1, -1, -1):
        motions[k], node = incoming_motions[node], parents[node]
    return motions


@kernel
def _heading_index(theta: float) -> int:
    return math.floor(theta * _N_HEADINGS / (2.0 * math.pi) + 0.5) % _N_HEADINGS


@kernel
def _is_over_unknown(window: CostmapWindowArrays, x: float, y: float, theta: float) -> bool:
    """Return whether a part of the space under the robot, at a pose in cells, is unknown."""
    c, s = math.cos(theta), math.sin(theta)
    rows, columns = window.cells.shape
    for k in range(len(window.footprint_corners) + 1):
        px, py = x, y
        if k < len(window.footprint_corners):
            bx, by = (
                _FOOTPRINT_SHRINK_RATIO * window.footprint_corners[k, 0],
                _FOOTPRINT_SHRINK_RATIO * window.footprint_corners[k, 1],
            )
            px, py = x + c * bx - s * by, y + s * bx + c * by
        is_inside = px >= 0.0 and py >= 0.0 and px < columns and py < rows
        if not is_inside or window.cells[int(py), int(px)] == UNKNOWN:
            return True
    return False
