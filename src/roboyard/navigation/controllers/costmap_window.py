"""Part of the costmap around the robot, and collision kernels over it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.control import PlanarTwist
from roboyard.geometry import SE2
from roboyard.geometry.planar_kernels import signed_distance
from roboyard.navigation.costmap import INSCRIBED, LETHAL, Costmap
from roboyard.navigation.footprint import Footprint, is_footprint_in_collision

CLEAR, NEAR_OBSTACLE, IN_COLLISION = 0, 1, 2
"""Of a place of the robot's center: nothing within its circumscribed circle; look at the outline; touched anyhow."""
_CONTACT_DEPTH = -0.5  # so deep in the outline, in cells, is the middle of a cell that begins to touch it


class CostmapWindowArrays(NamedTuple):
    """A window of the costmap and the robot in it, as kernels take them.

    Attributes:
        cells: (rows, columns) costs.
        proximity: (rows, columns) ``CLEAR``, ``NEAR`` or ``TOUCHED``.
        footprint_border: (n, 2) points of the robot's outline [cells].
        footprint_corners: (m, 2) the outline's corners [cells].
        resolution: Of the cells [m].
        start_pose: (3,) where the robot is: x, y [m] and heading in the window's frame.
        start_penetration: How deep obstacles reach into its outline already [cells]: they came near, or the map is
            coarse; minus
            infinity if none does.
    """

    cells: NDArray[np.uint8]
    proximity: NDArray[np.uint8]
    footprint_border: NDArray[np.float64]
    footprint_corners: NDArray[np.float64]
    resolution: float
    start_pose: NDArray[np.float64]
    start_penetration: float


def example_window_arrays() -> CostmapWindowArrays:
    """An example for kernels."""
    cells = np.zeros((5, 5), dtype=np.uint8)
    return CostmapWindowArrays(cells, cells, np.zeros((4, 2)), np.zeros((4, 2)), 0.05, np.zeros(3), -np.inf)


@dataclass(frozen=True, slots=True)
class CostmapWindow:
    """A window of the costmap.

    Positions are in its own frame: metres from the corner of its cell (0, 0).

    Attributes:
        arrays: The window and the robot, for kernels.
        T_window_map: From the map to here.
        pose: Where the robot is.
    """

    arrays: CostmapWindowArrays
    T_window_map: SE2
    pose: SE2

    @classmethod
    def around(cls, pose: SE2, costmap: Costmap, footprint: Footprint, radius: float) -> CostmapWindow:
        """The window that reaches so far [m] to each side of a pose in the map, as far as there is a map."""
        geometry = costmap.geometry
        row, column = (int(i) for i in geometry.cells_of_points(pose.xy))
        half = math.ceil((radius + footprint.circumscribed_radius) / geometry.resolution)
        top, left = max(row - half, 0), max(column - half, 0)
        cells = np.ascontiguousarray(costmap.cells[top : max(row + half + 1, 0), left : max(column + half + 1, 0)])
        origin = geometry.T_map_grid @ SE2(left * geometry.resolution, top * geometry.resolution, 0.0)
        T_window_map = origin.inverse()
        window_pose = T_window_map @ pose
        scale = 1.0 / geometry.resolution
        proximity = classify_proximity(
            cells, footprint.circumscribed_radius * scale, footprint.inscribed_radius * scale
        )
        border, corners = footprint.sample_border(geometry.resolution) * scale, footprint.corners * scale
        start_pose = np.array([window_pose.x, window_pose.y, window_pose.theta])
        arrays = CostmapWindowArrays(cells, proximity, border, corners, geometry.resolution, start_pose, -math.inf)
        if is_in_collision(arrays, window_pose.x, window_pose.y, window_pose.theta, True):
            arrays = arrays._replace(start_penetration=float(max_penetration(arrays)))
        return cls(arrays, T_window_map, window_pose)

    def center_cost(self) -> int:
        """Cost at the robot's center; 0 outside the map and on unknown cells."""
        row, column = int(self.pose.y / self.arrays.resolution), int(self.pose.x / self.arrays.resolution)
        rows, columns = self.arrays.cells.shape
        found = int(self.arrays.cells[row, column]) if 0 <= row < rows and 0 <= column < columns else 0
        return found if found <= LETHAL else 0

    def can_stop_safely(self, command: PlanarTwist, braking: PlanarTwist, period: float) -> bool:
        """Whether the robot touches nothing if it drives a command for one period, and then brakes to a stand.

        Args:
            command: In the base's frame.
            braking: With which each of the velocities goes to zero [1/s²].
            period: Of control [s]; velocities change once a period.
        """
        return bool(
            can_stop_safely(self.arrays, np.array(command, dtype=float), np.array(braking, dtype=float), period)
        )


@kernel(examples=lambda: [(np.zeros((5, 5), dtype=np.uint8), 4.0, 2.0)])
def classify_proximity(
    cells: NDArray[np.uint8], circumscribed_radius: float, inscribed_radius: float
) -> NDArray[np.uint8]:
    """How near obstacles are to each cell's middle, whether the map is inflated or not.

    By chamfer distances with steps of 3 and 4 (G. Borgefors 1986), which are at most 6 % off three times the distance;
    what they leave in doubt is ``NEAR``.

    Args:
        cells: (rows, columns) of a costmap.
        circumscribed_radius: Radius of the circle about the robot [cells].
        inscribed_radius: Of the circle within it [cells].
    """
    rows, columns = cells.shape
    # the center may be off its cell's middle, and the obstacle's nearest point off its cell's: 0.71 each
    clear_steps = np.int64(math.ceil(3.0 * 1.07 * (circumscribed_radius + 1.5)))
    collision_steps = np.int64(math.floor(3.0 * 0.94 * (inscribed_radius - 0.75)))
    steps = np.full((rows + 2, columns + 2), clear_steps + 1, dtype=np.int64)
    for r in range(rows):
        for c in range(columns):
            if cells[r, c] == LETHAL:
                steps[r + 1, c + 1] = 0
    for r in range(1, rows + 1):
        for c in range(1, columns + 1):
            best = min(min(steps[r - 1, c - 1], steps[r - 1, c + 1]) + 4, min(steps[r - 1, c], steps[r, c - 1]) + 3)
            steps[r, c] = min(steps[r, c], best)
    proximity = np.empty((rows, columns), dtype=np.uint8)
    for r in range(rows, 0, -1):
        for c in range(columns, 0, -1):
            best = min(min(steps[r + 1, c + 1], steps[r + 1, c - 1]) + 4, min(steps[r + 1, c], steps[r, c + 1]) + 3)
            best = min(steps[r, c], best)
            steps[r, c] = best
            value = cells[r - 1, c - 1]
            if best <= collision_steps or INSCRIBED <= value <= LETHAL:
                proximity[r - 1, c - 1] = IN_COLLISION
            else:
                is_inside = min(min(r, c), min(rows - r, columns - c) + 1) > circumscribed_radius + 1.0
                proximity[r - 1, c - 1] = CLEAR if best > clear_steps and is_inside else NEAR_OBSTACLE
    return proximity


@kernel(examples=lambda: [(example_window_arrays(), 0.1, 0.1, 0.0, False)])
def is_in_collision(window: CostmapWindowArrays, x: float, y: float, theta: float, outside_is_free: bool) -> bool:
    """Whether the robot, at a pose [m, rad], touches an obstacle.

    One that overlaps obstacles already may back out of them, and along them if it hardly overlaps: it touches them
    where one reaches deeper into its outline than now.

    Args:
        window: The window.
        x: Of the robot in the window's frame [m].
        y: See above.
        theta: Its heading [rad].
        outside_is_free: Whether the robot may reach beyond the map.
    """
    column, row = x / window.resolution, y / window.resolution
    rows, columns = window.cells.shape
    if column < 0.0 or row < 0.0 or column >= columns or row >= rows:
        return not outside_is_free
    proximity = window.proximity[int(row), int(column)]
    if proximity == CLEAR:
        return False
    if window.start_penetration > -np.inf:
        return _increases_penetration(window, column, row, theta)
    return proximity == IN_COLLISION or is_footprint_in_collision(
        window.cells, window.footprint_border, column, row, theta, outside_is_free
    )


@kernel(examples=lambda: [(example_window_arrays(),)])
def max_penetration(window: CostmapWindowArrays) -> float:
    """How deep any obstacle reaches into the outline at the start [cells]; at least as deep as one that touches it."""
    max_depth = _CONTACT_DEPTH
    x, y = window.start_pose[0] / window.resolution, window.start_pose[1] / window.resolution
    top, bottom, left, right = _covered_cells(window, x, y)
    for r in range(top, bottom):
        for c in range(left, right):
            if window.cells[r, c] == LETHAL:
                max_depth = max(
                    max_depth,
                    _penetration_depth(window.footprint_corners, x, y, window.start_pose[2], c + 0.5, r + 0.5),
                )
    return max_depth


@kernel
def _increases_penetration(window: CostmapWindowArrays, x: float, y: float, theta: float) -> bool:
    """Whether an obstacle is deeper in the outline than at the start, new ones more than half a cell; in cells."""
    x0, y0 = window.start_pose[0] / window.resolution, window.start_pose[1] / window.resolution
    allowed_depth = min(window.start_penetration, 0.0)
    top, bottom, left, right = _covered_cells(window, x, y)
    for r in range(top, bottom):
        for c in range(left, right):
            if window.cells[r, c] == LETHAL:
                depth = _penetration_depth(window.footprint_corners, x, y, theta, c + 0.5, r + 0.5)
                if depth > allowed_depth + 1e-6:
                    before = _penetration_depth(
                        window.footprint_corners, x0, y0, window.start_pose[2], c + 0.5, r + 0.5
                    )
                    if depth > before + 1e-6:
                        return True
    return False


@kernel
def _covered_cells(window: CostmapWindowArrays, x: float, y: float) -> tuple[int, int, int, int]:
    """First and last rows and columns of the cells that the robot can reach into; last ones excluded."""
    rows, columns = window.cells.shape
    radius = 1.0
    for k in range(len(window.footprint_corners)):
        radius = max(radius, 1.0 + math.hypot(window.footprint_corners[k, 0], window.footprint_corners[k, 1]))
    return (
        max(int(y - radius), 0),
        min(int(y + radius) + 1, rows),
        max(int(x - radius), 0),
        min(int(x + radius) + 1, columns),
    )


@kernel
def _penetration_depth(corners: NDArray[np.float64], x: float, y: float, theta: float, px: float, py: float) -> float:
    """How deep a point lies in the outline of a robot at a pose, negative outside; all in cells."""
    c, s = math.cos(theta), math.sin(theta)
    dx, dy = px - x, py - y
    return -signed_distance(corners, c * dx + s * dy, c * dy - s * dx)


@kernel(examples=lambda: [(example_window_arrays(), np.zeros(3), np.ones(3), 0.05)])
def can_stop_safely(
    window: CostmapWindowArrays, command: NDArray[np.float64], braking: NDArray[np.float64], period: float
) -> bool:
    """See ``Surroundings.stops_clear``."""
    x, y, theta = window.start_pose
    v, u, w = command
    circumscribed_radius = 0.0
    for k in range(len(window.footprint_corners)):
        circumscribed_radius = max(
            circumscribed_radius, math.hypot(window.footprint_corners[k, 0], window.footprint_corners[k, 1])
        )
    while True:
        sweep = (math.hypot(v, u) / window.resolution + abs(w) * circumscribed_radius) * period
        count = max(math.ceil(sweep), 1)
        dt = period / count
        for _ in range(count):
            mean_heading = theta + 0.5 * w * dt
            c, s = math.cos(mean_heading), math.sin(mean_heading)
            x += (c * v - s * u) * dt
            y += (s * v + c * u) * dt
            theta += w * dt
            if is_in_collision(window, x, y, theta, False):
                return False
        if v == 0.0 and u == 0.0 and w == 0.0:
            return True
        v = _ramp_down(v, braking[0] * period)
        u = _ramp_down(u, braking[1] * period)
        w = _ramp_down(w, braking[2] * period)


@kernel
def _ramp_down(value: float, change: float) -> float:
    return max(value - change, 0.0) if value > 0.0 else min(value + change, 0.0)
