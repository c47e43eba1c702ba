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
"""Classes of cells for the center of the robot: no obstacle within the circumscribed circle; a collision at some
headings, perhaps; a collision at any heading."""
_CONTACT_DEPTH = -0.5  # depth of a cell's center in the outline at which the cell begins to touch it [cells]


class CostmapWindowArrays(NamedTuple):
    """A window of the costmap and the robot in it, for kernels.

    Attributes:
        cells: (rows, columns) costs.
        proximity: (rows, columns) ``CLEAR``, ``NEAR_OBSTACLE`` or ``IN_COLLISION``.
        footprint_border: (n, 2) points on the outline of the robot [cells].
        footprint_corners: (m, 2) corners of the outline [cells].
        resolution: Edge of a cell [m].
        start_pose: (3,) pose of the robot: x, y [m] and heading [rad] in the frame of the window.
        start_penetration: Depth of obstacles in the outline at that pose [cells], since they have come near or the map
            is coarse; minus infinity if the robot touches none.
    """

    cells: NDArray[np.uint8]
    proximity: NDArray[np.uint8]
    footprint_border: NDArray[np.float64]
    footprint_corners: NDArray[np.float64]
    resolution: float
    start_pose: NDArray[np.float64]
    start_penetration: float


def example_window_arrays() -> CostmapWindowArrays:
    """Return an example for the compilation of kernels."""
    cells = np.zeros((5, 5), dtype=np.uint8)
    return CostmapWindowArrays(cells, cells, np.zeros((4, 2)), np.zeros((4, 2)), 0.05, np.zeros(3), -np.inf)


@dataclass(frozen=True, slots=True)
class CostmapWindow:
    """Part of a costmap around the robot.

    Positions are in the frame of the window: meters from the corner of its cell (0, 0).

    Attributes:
        arrays: The window and the robot, for kernels.
        T_window_map: Transform from the map to the window.
        pose: Pose of the robot in the window.
    """

    arrays: CostmapWindowArrays
    T_window_map: SE2
    pose: SE2

    @classmethod
    def around(cls, pose: SE2, costmap: Costmap, footprint: Footprint, radius: float) -> CostmapWindow:
        """Cut the window that reaches ``radius`` [m] to each side of a pose in the map, as far as the map reaches."""
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
        """Return the cost at the center of the robot; 0 outside of the map and in unknown space."""
        row, column = int(self.pose.y / self.arrays.resolution), int(self.pose.x / self.arrays.resolution)
        rows, columns = self.arrays.cells.shape
        found = int(self.arrays.cells[row, column]) if 0 <= row < rows and 0 <= column < columns else 0
        return found if found <= LETHAL else 0

    def can_stop_safely(self, command: PlanarTwist, braking: PlanarTwist, period: float) -> bool:
        """Return whether the robot has no collision if it drives a command for one period and then brakes to a stand.

        Args:
            command: Velocity in the frame of the base [m/s, rad/s].
            braking: Decelerations of each component [m/s², rad/s²].
            period: Control period [s]; velocities change once per period.
        """
        return bool(
            can_stop_safely(self.arrays, np.array(command, dtype=float), np.array(braking, dtype=float), period)
        )


@kernel(examples=lambda: [(np.zeros((5, 5), dtype=np.uint8), 4.0, 2.0)])
def classify_proximity(
    cells: NDArray[np.uint8], circumscribed_radius: float, inscribed_radius: float
) -> NDArray[np.uint8]:
    """Classify each cell by its distance from obstacles, whether the map is inflated or not.

    Chamfer distances with steps of 3 and 4 (Borgefors 1986) differ from three times the distance by at most 6 %; cells
    of which they do not decide are ``NEAR_OBSTACLE``.

    Args:
        cells: (rows, columns) costs of a costmap.
        circumscribed_radius: Circumscribed radius of the footprint [cells].
        inscribed_radius: Inscribed radius of the footprint [cells].
    """
    rows, columns = cells.shape
    # robot and obstacle may each be 0.71 cells from the centers of their cells
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
    """Return whether the robot collides at a pose.

    A robot that overlaps obstacles already may drive out of them, and along them if it hardly overlaps: then a pose
    counts as a collision only if an obstacle reaches deeper into the outline than at the start.

    Args:
        window: The window.
        x: Position in the frame of the window [m].
        y: Position in the frame of the window [m].
        theta: Heading in the frame of the window [rad].
        outside_is_free: Whether the robot may leave the map.
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
    """Return the largest depth of an obstacle in the outline at the start [cells], at least the contact depth."""
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
    """Return whether an obstacle is deeper in the outline than at the start; positions are in cells."""
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
    """Return the range of rows and columns that the outline can touch, ends excluded."""
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
    """Return the depth of a point in the outline of a robot at a pose, negative outside [cells]."""
    c, s = math.cos(theta), math.sin(theta)
    dx, dy = px - x, py - y
    return -signed_distance(corners, c * dx + s * dy, c * dy - s * dx)


@kernel(examples=lambda: [(example_window_arrays(), np.zeros(3), np.ones(3), 0.05)])
def can_stop_safely(
    window: CostmapWindowArrays, command: NDArray[np.float64], braking: NDArray[np.float64], period: float
) -> bool:
    """Return whether the robot can drive a command for one period and brake to a stand without a collision.

    Args:
        window: The window, with the start pose of the robot.
        command: (3,) velocity in the frame of the base [m/s, rad/s].
        braking: (3,) decelerations [m/s², rad/s²].
        period: Control period [s].
    """
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
