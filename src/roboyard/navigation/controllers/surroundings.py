"""What lies about the robot: the part of the costmap that a controller looks at, and whether the robot touches it."""

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
from roboyard.navigation.footprint import Footprint, lies_on_obstacle

CLEAR, NEAR, TOUCHED = 0, 1, 2
"""Of a place of the robot's centre: nothing within its circumscribed circle; look at the outline; touched anyhow."""
_TOUCHING = -0.5  # so deep in the outline, in cells, is the middle of a cell that begins to touch it


class Ground(NamedTuple):
    """What kernels are told of a window of the costmap and the robot in it.

    Attributes:
        cells: (rows, columns) costs.
        nearness: (rows, columns) ``CLEAR``, ``NEAR`` or ``TOUCHED``.
        border: (n, 2) points of the robot's outline [cells].
        corners: (m, 2) the outline's corners [cells].
        resolution: Of the cells [m].
        start: (3,) where the robot is: x, y [m] and heading in the window's frame.
        deepest: How deep obstacles reach into its outline already [cells]: they came near, or the map is coarse; minus
            infinity if none does.
    """

    cells: NDArray[np.uint8]
    nearness: NDArray[np.uint8]
    border: NDArray[np.float64]
    corners: NDArray[np.float64]
    resolution: float
    start: NDArray[np.float64]
    deepest: float


def empty_ground() -> Ground:
    """An example for kernels."""
    cells = np.zeros((5, 5), dtype=np.uint8)
    return Ground(cells, cells, np.zeros((4, 2)), np.zeros((4, 2)), 0.05, np.zeros(3), -np.inf)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A window of the costmap.

    Positions are in its own frame: metres from the corner of its cell (0, 0).

    Attributes:
        ground: The window and the robot, for kernels.
        T_window_map: From the map to here.
        here: Where the robot is.
    """

    ground: Ground
    T_window_map: SE2
    here: SE2

    @classmethod
    def about(cls, pose: SE2, costmap: Costmap, footprint: Footprint, reach: float) -> Surroundings:
        """The window that reaches so far [m] to each side of a pose in the map, as far as there is a map."""
        frame = costmap.frame
        row, column = (int(i) for i in frame.cells_of_points(pose.xy))
        half = math.ceil((reach + footprint.circumscribed_radius) / frame.resolution)
        top, left = max(row - half, 0), max(column - half, 0)
        cells = np.ascontiguousarray(costmap.cells[top : max(row + half + 1, 0), left : max(column + half + 1, 0)])
        origin = frame.T_map_grid @ SE2(left * frame.resolution, top * frame.resolution, 0.0)
        T_window_map = origin.inverse()
        here = T_window_map @ pose
        scale = 1.0 / frame.resolution
        nearness = classify(cells, footprint.circumscribed_radius * scale, footprint.inscribed_radius * scale)
        border, corners = footprint.border(frame.resolution) * scale, footprint.corners * scale
        start = np.array([here.x, here.y, here.theta])
        ground = Ground(cells, nearness, border, corners, frame.resolution, start, -math.inf)
        if touches(ground, here.x, here.y, here.theta, True):
            ground = ground._replace(deepest=float(deepest(ground)))
        return cls(ground, T_window_map, here)

    def cost(self) -> int:
        """Of the robot's centre; 0 beyond the map, and where nobody has looked."""
        row, column = int(self.here.y / self.ground.resolution), int(self.here.x / self.ground.resolution)
        rows, columns = self.ground.cells.shape
        found = int(self.ground.cells[row, column]) if 0 <= row < rows and 0 <= column < columns else 0
        return found if found <= LETHAL else 0

    def stops_clear(self, command: PlanarTwist, braking: PlanarTwist, period: float) -> bool:
        """Whether the robot touches nothing if it drives a command for one period, and then brakes to a stand.

        Args:
            command: In the base's frame.
            braking: With which each of the velocities goes to zero [1/s²].
            period: Of control [s]; velocities change once a period.
        """
        return bool(stops_clear(self.ground, np.array(command, dtype=float), np.array(braking, dtype=float), period))


@kernel(examples=lambda: [(np.zeros((5, 5), dtype=np.uint8), 4.0, 2.0)])
def classify(cells: NDArray[np.uint8], outer: float, inner: float) -> NDArray[np.uint8]:
    """How near obstacles are to each cell's middle, whether the map is inflated or not.

    By chamfer distances with steps of 3 and 4 (G. Borgefors 1986), which are at most 6 % off three times the distance;
    what they leave in doubt is ``NEAR``.

    Args:
        cells: (rows, columns) of a costmap.
        outer: Radius of the circle about the robot [cells].
        inner: Of the circle within it [cells].
    """
    rows, columns = cells.shape
    # the centre may be off its cell's middle, and the obstacle's nearest point off its cell's: 0.71 each
    far = np.int64(math.ceil(3.0 * 1.07 * (outer + 1.5)))
    hit = np.int64(math.floor(3.0 * 0.94 * (inner - 0.75)))
    steps = np.full((rows + 2, columns + 2), far + 1, dtype=np.int64)
    for r in range(rows):
        for c in range(columns):
            if cells[r, c] == LETHAL:
                steps[r + 1, c + 1] = 0
    for r in range(1, rows + 1):
        for c in range(1, columns + 1):
            best = min(min(steps[r - 1, c - 1], steps[r - 1, c + 1]) + 4, min(steps[r - 1, c], steps[r, c - 1]) + 3)
            steps[r, c] = min(steps[r, c], best)
    nearness = np.empty((rows, columns), dtype=np.uint8)
    for r in range(rows, 0, -1):
        for c in range(columns, 0, -1):
            best = min(min(steps[r + 1, c + 1], steps[r + 1, c - 1]) + 4, min(steps[r + 1, c], steps[r, c + 1]) + 3)
            best = min(steps[r, c], best)
            steps[r, c] = best
            value = cells[r - 1, c - 1]
            if best <= hit or INSCRIBED <= value <= LETHAL:
                nearness[r - 1, c - 1] = TOUCHED
            else:
                inside = min(min(r, c), min(rows - r, columns - c) + 1) > outer + 1.0
                nearness[r - 1, c - 1] = CLEAR if best > far and inside else NEAR
    return nearness


@kernel(examples=lambda: [(empty_ground(), 0.1, 0.1, 0.0, False)])
def touches(ground: Ground, x: float, y: float, theta: float, beyond: bool) -> bool:
    """Whether the robot, at a pose [m, rad], touches an obstacle.

    One that overlaps obstacles already may back out of them, and along them if it hardly overlaps: it touches them
    where one reaches deeper into its outline than now.

    Args:
        ground: The window.
        x: Of the robot in the window's frame [m].
        y: See above.
        theta: Its heading [rad].
        beyond: Whether the robot may reach beyond the map.
    """
    column, row = x / ground.resolution, y / ground.resolution
    rows, columns = ground.cells.shape
    if column < 0.0 or row < 0.0 or column >= columns or row >= rows:
        return not beyond
    near = ground.nearness[int(row), int(column)]
    if near == CLEAR:
        return False
    if ground.deepest > -np.inf:
        return _sinks_in(ground, column, row, theta)
    return near == TOUCHED or lies_on_obstacle(ground.cells, ground.border, column, row, theta, beyond)


@kernel(examples=lambda: [(empty_ground(),)])
def deepest(ground: Ground) -> float:
    """How deep any obstacle reaches into the outline at the start [cells]; at least as deep as one that touches it."""
    most = _TOUCHING
    x, y = ground.start[0] / ground.resolution, ground.start[1] / ground.resolution
    top, bottom, left, right = _about(ground, x, y)
    for r in range(top, bottom):
        for c in range(left, right):
            if ground.cells[r, c] == LETHAL:
                most = max(most, _depth(ground.corners, x, y, ground.start[2], c + 0.5, r + 0.5))
    return most


@kernel
def _sinks_in(ground: Ground, x: float, y: float, theta: float) -> bool:
    """Whether an obstacle is deeper in the outline than at the start, new ones more than half a cell; in cells."""
    x0, y0 = ground.start[0] / ground.resolution, ground.start[1] / ground.resolution
    along = min(ground.deepest, 0.0)
    top, bottom, left, right = _about(ground, x, y)
    for r in range(top, bottom):
        for c in range(left, right):
            if ground.cells[r, c] == LETHAL:
                depth = _depth(ground.corners, x, y, theta, c + 0.5, r + 0.5)
                if depth > along + 1e-6:
                    before = _depth(ground.corners, x0, y0, ground.start[2], c + 0.5, r + 0.5)
                    if depth > before + 1e-6:
                        return True
    return False


@kernel
def _about(ground: Ground, x: float, y: float) -> tuple[int, int, int, int]:
    """First and last rows and columns of the cells that the robot can reach into; last ones excluded."""
    rows, columns = ground.cells.shape
    reach = 1.0
    for k in range(len(ground.corners)):
        reach = max(reach, 1.0 + math.hypot(ground.corners[k, 0], ground.corners[k, 1]))
    return (
        max(int(y - reach), 0), min(int(y + reach) + 1, rows), max(int(x - reach), 0), min(int(x + reach) + 1, columns)
    )  # fmt: skip


@kernel
def _depth(corners: NDArray[np.float64], x: float, y: float, theta: float, px: float, py: float) -> float:
    """How deep a point lies in the outline of a robot at a pose, negative outside; all in cells."""
    c, s = math.cos(theta), math.sin(theta)
    dx, dy = px - x, py - y
    return -signed_distance(corners, c * dx + s * dy, c * dy - s * dx)


@kernel(examples=lambda: [(empty_ground(), np.zeros(3), np.ones(3), 0.05)])
def stops_clear(ground: Ground, command: NDArray[np.float64], braking: NDArray[np.float64], period: float) -> bool:
    """See ``Surroundings.stops_clear``."""
    x, y, theta = ground.start
    v, u, w = command
    outer = 0.0
    for k in range(len(ground.corners)):
        outer = max(outer, math.hypot(ground.corners[k, 0], ground.corners[k, 1]))
    while True:
        sweep = (math.hypot(v, u) / ground.resolution + abs(w) * outer) * period
        count = max(math.ceil(sweep), 1)
        dt = period / count
        for _ in range(count):
            middle = theta + 0.5 * w * dt
            c, s = math.cos(middle), math.sin(middle)
            x += (c * v - s * u) * dt
            y += (s * v + c * u) * dt
            theta += w * dt
            if touches(ground, x, y, theta, False):
                return False
        if v == 0.0 and u == 0.0 and w == 0.0:
            return True
        v = _less(v, braking[0] * period)
        u = _less(u, braking[1] * period)
        w = _less(w, braking[2] * period)


@kernel
def _less(value: float, change: float) -> float:
    return max(value - change, 0.0) if value > 0.0 else min(value + change, 0.0)
