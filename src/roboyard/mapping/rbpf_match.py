"""How well a scan fits a particle's map, and the best pose near a guess."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.mapping.rbpf_tiles import HITS, MEAN_X, MEAN_Y, SEEN, SIDE

_SHIFT = SIDE.bit_length() - 1
_MASK = SIDE - 1
_FAR = 1e-3
"""What is left of a beam's likelihood where nothing is near its end."""


def _example_fit() -> Iterable[tuple[Any, ...]]:
    tiles, table = np.zeros((1, SIDE, SIDE, 4), np.float32), np.zeros((1, 1), np.int32)
    yield tiles, table, np.zeros(2, np.int64), np.zeros((3, 2)), np.zeros(3), 0.05, 0.06, 1


@kernel(error_model="numpy", examples=_example_fit)
def fit(
    tiles: NDArray[np.float32],
    table: NDArray[np.int32],
    corner: NDArray[np.int64],
    points: NDArray[np.float64],
    pose: NDArray[np.float64],
    resolution: float,
    sigma: float,
    reach: int,
) -> float:
    """Mean logarithm of the beams' likelihoods, between log(0.001) and 0.

    Args:
        tiles: As in ``TileMaps``.
        table: (rows, columns) of one map.
        corner: (2,) of the table.
        points: (n, 2) where the beams ended, in the base's frame [m].
        pose: (3,) of the base [m, rad].
        resolution: Side of a cell [m].
        sigma: Standard deviation of an end from the wall [m].
        reach: How many cells around an end are looked at.
    """
    rows, columns = table.shape
    c, s = math.cos(pose[2]) / resolution, math.sin(pose[2]) / resolution
    first_row, first_column = corner[0] * SIDE, corner[1] * SIDE
    x0, y0 = pose[0] / resolution - first_column, pose[1] / resolution - first_row
    scale = -0.5 * (resolution / sigma) ** 2
    nothing = math.log(_FAR)
    total = 0.0
    for k in range(len(points)):
        x = x0 + c * points[k, 0] - s * points[k, 1]
        y = y0 + s * points[k, 0] + c * points[k, 1]
        column, row = math.floor(x), math.floor(y)
        nearest = 1e9
        for i in range(max(row - reach, 0), min(row + reach + 1, rows * SIDE)):
            for j in range(max(column - reach, 0), min(column + reach + 1, columns * SIDE)):
                number = table[i >> _SHIFT, j >> _SHIFT]
                if number < 0:
                    continue
                hits = tiles[number, i & _MASK, j & _MASK, HITS]
                if hits > 0.0 and hits > 0.1 * tiles[number, i & _MASK, j & _MASK, SEEN]:
                    dx = x - (j + 0.5 + tiles[number, i & _MASK, j & _MASK, MEAN_X])
                    dy = y - (i + 0.5 + tiles[number, i & _MASK, j & _MASK, MEAN_Y])
                    nearest = min(nearest, dx * dx + dy * dy)
        if nearest < 1e8:
            total += math.log(_FAR + (1.0 - _FAR) * math.exp(scale * nearest))
        else:
            total += nothing
    return total / max(len(points), 1)


def _example_climb() -> Iterable[tuple[Any, ...]]:
    tiles, table = np.zeros((1, SIDE, SIDE, 4), np.float32), np.zeros((1, 1), np.int32)
    yield tiles, table, np.zeros(2, np.int64), np.zeros((3, 2)), np.zeros(3), 0.05, 0.06, 0.1, 0.05, 5


@kernel(error_model="numpy", examples=_example_climb)
def climb(
    tiles: NDArray[np.float32],
    table: NDArray[np.int32],
    corner: NDArray[np.int64],
    points: NDArray[np.float64],
    start: NDArray[np.float64],
    resolution: float,
    sigma: float,
    step: float,
    turn: float,
    halvings: int,
) -> tuple[float, float, float, float]:
    """Climb from a pose to one where no step along an axis fits better, then with half the steps, and so on.

    Args:
        tiles: As for ``fit``, like table, corner, points, resolution and sigma.
        table: Likewise.
        corner: Likewise.
        points: Likewise.
        start: (3,) where to begin [m, rad].
        resolution: Likewise.
        sigma: Likewise.
        step: First steps along x and y [m].
        turn: First turns [rad].
        halvings: How often steps are halved.

    Returns:
        x, y, theta, and the fit there.
    """
    best = start.copy()
    score = fit(tiles, table, corner, points, best, resolution, sigma, 1)
    trial = best.copy()
    for _ in range(halvings + 1):
        for _ in range(30):
            better = False
            for axis in range(3):
                size = turn if axis == 2 else step
                for sign in (-1.0, 1.0):
                    trial[:] = best
                    trial[axis] += sign * size
                    value = fit(tiles, table, corner, points, trial, resolution, sigma, 1)
                    if value > score:
                        score = value
                        best[:] = trial
                        better = True
                        break
            if not better:
                break
        step *= 0.5
        turn *= 0.5
    return best[0], best[1], best[2], score


def _example_search() -> Iterable[tuple[Any, ...]]:
    tiles, table = np.zeros((1, SIDE, SIDE, 4), np.float32), np.zeros((1, 1), np.int32)
    yield tiles, table, np.zeros(2, np.int64), np.zeros((3, 2)), np.zeros(3), 0.05, 0.5, 0.3


@kernel(error_model="numpy", examples=_example_search)
def search(
    tiles: NDArray[np.float32],
    table: NDArray[np.int32],
    corner: NDArray[np.int64],
    points: NDArray[np.float64],
    middle: NDArray[np.float64],
    resolution: float,
    reach: float,
    turn: float,
) -> tuple[float, float, float, float]:
    """The best fit on a coarse lattice about a pose: every two cells, every 2 degrees.

    Args:
        tiles: As for ``fit``, like table, corner, points and resolution.
        table: Likewise.
        corner: Likewise.
        points: Likewise.
        middle: (3,) of the lattice [m, rad].
        resolution: Likewise.
        reach: Of the lattice along x and y [m].
        turn: Of the lattice in direction [rad].

    Returns:
        x, y, theta, and the fit there.
    """
    pace, pace_turn = 2.0 * resolution, 0.035
    n, m = math.floor(reach / pace), math.floor(turn / pace_turn)
    best = middle.copy()
    trial = middle.copy()
    score = fit(tiles, table, corner, points, best, resolution, resolution, 1)
    for k in range(-m, m + 1):
        trial[2] = middle[2] + k * pace_turn
        for i in range(-n, n + 1):
            trial[0] = middle[0] + i * pace
            for j in range(-n, n + 1):
                trial[1] = middle[1] + j * pace
                value = fit(tiles, table, corner, points, trial, resolution, resolution, 1)
                if value > score:
                    score = value
                    best[:] = trial
    return best[0], best[1], best[2], score


@kernel(error_model="numpy", examples=_example_fit)
def curvature(
    tiles: NDArray[np.float32],
    table: NDArray[np.int32],
    corner: NDArray[np.int64],
    points: NDArray[np.float64],
    pose: NDArray[np.float64],
    resolution: float,
    sigma: float,
    reach: int,
) -> NDArray[np.float64]:
    """Second derivatives (3, 3) of the fit at a pose with the sign turned: how sharp the best pose is.

    Arguments as for ``fit``.
    """
    steps = np.array([0.02, 0.02, 0.008])
    value = fit(tiles, table, corner, points, pose, resolution, sigma, reach)
    sharp = np.zeros((3, 3))
    trial = pose.copy()
    ahead, behind = np.zeros(3), np.zeros(3)
    for a in range(3):
        trial[:] = pose
        trial[a] += steps[a]
        ahead[a] = fit(tiles, table, corner, points, trial, resolution, sigma, reach)
        trial[a] -= 2.0 * steps[a]
        behind[a] = fit(tiles, table, corner, points, trial, resolution, sigma, reach)
        sharp[a, a] = -(ahead[a] - 2.0 * value + behind[a]) / steps[a] ** 2
    for a in range(3):
        for b in range(a):
            trial[:] = pose
            trial[a] += steps[a]
            trial[b] += steps[b]
            both = fit(tiles, table, corner, points, trial, resolution, sigma, reach)
            trial[a] -= 2.0 * steps[a]
            trial[b] -= 2.0 * steps[b]
            neither = fit(tiles, table, corner, points, trial, resolution, sigma, reach)
            mixed = both + neither + 2.0 * value - ahead[a] - ahead[b] - behind[a] - behind[b]
            sharp[a, b] = sharp[b, a] = -0.5 * mixed / (steps[a] * steps[b])
    return sharp
