"""Kernels of the dynamic window: what each sampled velocity would lead to.

Positions are in the grid's frame: metres from the corner of its cell (0, 0).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.navigation.controllers.surroundings import Ground, empty_ground, touches
from roboyard.navigation.costmap import INSCRIBED, LETHAL


@kernel(examples=lambda: [(np.zeros(3), np.ones(3), np.ones(3, dtype=np.int64))])
def lattice(first: NDArray[np.float64], last: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n, 3) all combinations of evenly spaced numbers from ``first`` to ``last``, and of zero where it is between."""
    axes = np.empty((3, counts.max() + 1))
    sizes = np.zeros(3, dtype=np.int64)
    for axis in range(3):
        steps = counts[axis] - 1
        for k in range(counts[axis]):
            value = last[axis] if k == steps else first[axis] + k * ((last[axis] - first[axis]) / steps)
            if k > 0 and axes[axis, sizes[axis] - 1] < 0.0 < value:
                axes[axis, sizes[axis]] = 0.0
                sizes[axis] += 1
            axes[axis, sizes[axis]] = value
            sizes[axis] += 1
    combined = np.empty((sizes[0] * sizes[1] * sizes[2], 3))
    n = 0
    for i in range(sizes[0]):
        for j in range(sizes[1]):
            for k in range(sizes[2]):
                combined[n, 0], combined[n, 1], combined[n, 2] = axes[0, i], axes[1, j], axes[2, k]
                n += 1
    return combined


@kernel(
    examples=lambda: [
        (np.zeros((2, 3)), np.zeros(3), np.zeros(3), 1.7, 0.025, 0.1, empty_ground(), np.zeros((7, 7)),
         np.zeros((7, 7)), np.ones(6), 0.3, np.zeros(2))
    ]
)  # fmt: skip
def judge_velocities(
    samples: NDArray[np.float64],
    twist: NDArray[np.float64],
    acceleration: NDArray[np.float64],
    horizon: float,
    way_step: float,
    turn_step: float,
    ground: Ground,
    path_field: NDArray[np.float64],
    goal_field: NDArray[np.float64],
    weights: NDArray[np.float64],
    nose: float,
    costs: NDArray[np.float64],
) -> None:
    """Simulate each sample and write what it costs, infinite where it touches an obstacle.

    Args:
        samples: (n, 3) velocities vx, vy, wz.
        twist: vx, vy, wz now.
        acceleration: (3,) with which the base goes from ``twist`` to the sample during the rollout [1/s²]; infinite:
            at once.
        horizon: Of the simulation [s].
        way_step: Between looks at obstacles [m].
        turn_step: The same for turning [rad].
        ground: What lies about the robot.
        path_field: (rows + 2, columns + 2) distance from each cell to the path [cells].
        goal_field: The same to the path's end.
        weights: Of the distance of the end to the path and to the goal [1/m], of the same for the nose, of the highest
            cost met, as a share, and of turning [1/rad].
        nose: How far the nose lies ahead of the base's origin [m].
        costs: (n,) result.
    """
    cells, scale = ground.cells, 1.0 / ground.resolution
    rows, columns = cells.shape
    for k in range(len(samples)):
        vx, vy, wz = samples[k]
        speed, turn = math.hypot(vx, vy), abs(wz)
        if acceleration[0] < np.inf:  # on the way from the one velocity to the other, neither is exceeded
            speed, turn = max(speed, math.hypot(twist[0], twist[1])), max(turn, abs(twist[2]))
        count = max(math.ceil(max(speed * horizon / way_step, turn * horizon / turn_step)), 1)
        dt = horizon / count
        x, y, theta = ground.start
        u, v, w = (twist[0], twist[1], twist[2])
        highest = 0
        touched = False
        for _ in range(count):
            u = _toward(u, vx, acceleration[0] * dt)
            v = _toward(v, vy, acceleration[1] * dt)
            w = _toward(w, wz, acceleration[2] * dt)
            middle = theta + 0.5 * w * dt
            c, s = math.cos(middle), math.sin(middle)
            x += (c * u - s * v) * dt
            y += (s * u + c * v) * dt
            theta += w * dt
            if touches(ground, x, y, theta, True):
                touched = True
                break
            if 0.0 <= x * scale < columns and 0.0 <= y * scale < rows:
                cost = int(cells[int(y * scale), int(x * scale)])
                if cost <= LETHAL:
                    highest = max(highest, cost)
        if touched:
            costs[k] = np.inf
            continue
        c, s = math.cos(theta), math.sin(theta)
        nx, ny = x + c * nose, y + s * nose
        total = weights[0] * _at(path_field, x * scale, y * scale) / scale
        total += weights[1] * _at(goal_field, x * scale, y * scale) / scale
        total += weights[2] * _at(path_field, nx * scale, ny * scale) / scale
        total += weights[3] * _at(goal_field, nx * scale, ny * scale) / scale
        total += weights[4] * highest / INSCRIBED + weights[5] * abs(wz)
        costs[k] = total


@kernel
def _toward(value: float, wanted: float, change: float) -> float:
    return min(max(wanted, value - change), value + change)


@kernel
def _at(field: NDArray[np.float64], x: float, y: float) -> float:
    """Of a padded field, between the four middles about a point; of the nearest cell where one of them is unknown."""
    rows, columns = field.shape
    fx, fy = min(max(x + 0.5, 0.0), columns - 1.001), min(max(y + 0.5, 0.0), rows - 1.001)
    c, r = np.int64(fx), np.int64(fy)
    a, b = fx - c, fy - r
    value = (1.0 - b) * ((1.0 - a) * field[r, c] + a * field[r, c + 1])
    value += b * ((1.0 - a) * field[r + 1, c] + a * field[r + 1, c + 1])
    if value < np.inf:
        return float(value)
    nearest = field[np.int64(fy + 0.5), np.int64(fx + 0.5)]
    # nobody gets there: dearer than anything that can be reached, and finite, so that sums stay comparable
    return float(nearest) if nearest < np.inf else float(rows * columns)
