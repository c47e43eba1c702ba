"""What lies about the robot: the part of the costmap that a controller looks at, and whether the robot touches it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry import SE2
from roboyard.navigation.costmap import INSCRIBED, LETHAL, Costmap
from roboyard.navigation.footprint import Footprint

CLEAR, NEAR, TOUCHED = 0, 1, 2
"""Of a place of the robot's centre: nothing within its circumscribed circle; look at the outline; touched anyhow."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A window of the costmap.

    Positions are in its own frame: metres from the corner of its cell (0, 0).

    Attributes:
        cells: (rows, columns) costs.
        nearness: (rows, columns) ``CLEAR``, ``NEAR`` or ``TOUCHED``.
        border: (n, 2) points of the robot's outline [cells].
        resolution: Of the cells [m].
        T_window_map: From the map to here.
        here: Where the robot is.
    """

    cells: NDArray[np.uint8]
    nearness: NDArray[np.uint8]
    border: NDArray[np.float64]
    resolution: float
    T_window_map: SE2
    here: SE2

    @classmethod
    def about(cls, pose: SE2, costmap: Costmap, footprint: Footprint, reach: float) -> Surroundings:
        """The window that reaches so far [m] to each side of a pose in the map, as far as there is a map."""
        frame = costmap.frame
        row, column = (int(i) for i in frame.cells(pose.xy))
        half = math.ceil((reach + footprint.circumscribed_radius) / frame.resolution)
        top, left = max(row - half, 0), max(column - half, 0)
        cells = np.ascontiguousarray(costmap.cells[top : max(row + half + 1, 0), left : max(column + half + 1, 0)])
        origin = frame.T_map_grid @ SE2(left * frame.resolution, top * frame.resolution, 0.0)
        T_window_map = origin.inverse()
        scale = 1.0 / frame.resolution
        nearness = classify(cells, footprint.circumscribed_radius * scale, footprint.inscribed_radius * scale)
        border = footprint.border(frame.resolution) * scale
        return cls(cells, nearness, border, frame.resolution, T_window_map, T_window_map @ pose)

    def touches(self, pose: SE2) -> bool:
        """Whether the robot, at a pose in the window's frame, touches an obstacle or reaches beyond the map."""
        scale = 1.0 / self.resolution
        return bool(touches(self.cells, self.nearness, self.border, pose.x * scale, pose.y * scale, pose.theta, False))


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


_PLACE = (np.zeros((5, 5), dtype=np.uint8), np.zeros((5, 5), dtype=np.uint8), np.zeros((4, 2)))


@kernel(examples=lambda: [(*_PLACE, 1.0, 1.0, 0.0, False)])
def touches(
    cells: NDArray[np.uint8],
    nearness: NDArray[np.uint8],
    border: NDArray[np.float64],
    x: float,
    y: float,
    theta: float,
    beyond: bool,
) -> bool:
    """Whether the robot touches an obstacle.

    Args:
        cells: See ``Surroundings``, as are the next two.
        nearness: See above.
        border: See above.
        x: Of the robot, along columns [cells].
        y: The same along rows.
        theta: Its heading [rad].
        beyond: Whether the robot may reach beyond the map.
    """
    rows, columns = cells.shape
    if x < 0.0 or y < 0.0 or x >= columns or y >= rows:
        return not beyond
    near = nearness[int(y), int(x)]
    if near == TOUCHED:
        return True
    if near == CLEAR:
        return False
    c, s = math.cos(theta), math.sin(theta)
    for k in range(len(border)):
        px = x + c * border[k, 0] - s * border[k, 1]
        py = y + s * border[k, 0] + c * border[k, 1]
        if px < 0.0 or py < 0.0 or px >= columns or py >= rows:
            if not beyond:
                return True
        elif cells[int(py), int(px)] == LETHAL:
            return True
    return False


@kernel(examples=lambda: [(*_PLACE, 0.05, np.zeros(3), np.zeros(3), np.ones(3), 0.05)])
def stops_clear(
    cells: NDArray[np.uint8],
    nearness: NDArray[np.uint8],
    border: NDArray[np.float64],
    resolution: float,
    pose: NDArray[np.float64],
    command: NDArray[np.float64],
    braking: NDArray[np.float64],
    period: float,
) -> bool:
    """Whether the robot touches nothing if it drives a command for one period, and then brakes to a stand.

    Args:
        cells: See ``Surroundings``, as are the next three.
        nearness: See above.
        border: See above.
        resolution: See above.
        pose: (3,) x, y, theta now.
        command: (3,) vx, vy, wz.
        braking: (3,) with which each of them goes to zero [1/s²].
        period: Of control [s]; velocities change once a period.
    """
    x, y, theta = pose
    v, u, w = command[0], command[1], command[2]
    outer = 0.0
    for k in range(len(border)):
        outer = max(outer, math.hypot(border[k, 0], border[k, 1]))
    while True:
        sweep = (math.hypot(v, u) / resolution + abs(w) * outer) * period
        count = max(math.ceil(sweep), 1)
        dt = period / count
        for _ in range(count):
            middle = theta + 0.5 * w * dt
            c, s = math.cos(middle), math.sin(middle)
            x += (c * v - s * u) * dt
            y += (s * v + c * u) * dt
            theta += w * dt
            if touches(cells, nearness, border, x / resolution, y / resolution, theta, False):
                return False
        if v == 0.0 and u == 0.0 and w == 0.0:
            return True
        v = _less(v, braking[0] * period)
        u = _less(u, braking[1] * period)
        w = _less(w, braking[2] * period)


@kernel
def _less(value: float, change: float) -> float:
    return max(value - change, 0.0) if value > 0.0 else min(value + change, 0.0)
