"""Continuous scan matching: Gauss-Newton from points to surface cells, with a robust kernel and a prior.

Each point pulls towards the nearest cell whose surface faces the same way, across the surface only where it is
straight (point-to-line, Chen and Medioni 1991; Censi 2008), in all directions where it is not.
The kernel is Geman and McClure's, narrowed while the iteration goes on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry import SE2, wrap_angle
from roboyard.mapping.matching.cells import CELL, COUNT, FIELDS, NX, NY, CellMap, X, Y
from roboyard.mapping.preparation import Prepared

STRAIGHT = 0.75
"""Squared mean normal from which a surface holds nothing along itself."""


@dataclass(frozen=True, slots=True)
class RefineConfig:
    """How matching is refined.

    Attributes:
        iterations: Most Gauss-Newton steps.
        widest: Width of the robust kernel at first [m].
        narrowest: And in the end [m].
        sigma: Standard deviation of a point's distance from its surface [m].
        effective: Points beyond so many add no more certainty: their errors are not independent.
    """

    iterations: int = 12
    widest: float = 0.25
    narrowest: float = 0.05
    sigma: float = 0.03
    effective: int = 40


@dataclass(frozen=True, slots=True)
class Match:
    """Where a scan fits.

    Attributes:
        pose: ``T_map_base``.
        information: (3, 3) inverse covariance of x, y [m] and theta [rad] in the map's frame from the scan alone; close
            to singular where the surroundings leave a direction open, as a corridor does.
        fit: 0 to 1: share of points that lie on surfaces.
        overlap: 0 to 1: share of points near any surface.
        data_cost: Half the squared errors over their variances, robustly; for comparing matches of one scan.
    """

    pose: SE2
    information: NDArray[np.float64]
    fit: float
    overlap: float
    data_cost: float


def refine(
    cells: CellMap, scan: Prepared, start: SE2, config: RefineConfig, *,
    prior: SE2 | None = None, prior_information: NDArray[np.float64] | None = None,
) -> Match:  # fmt: skip
    """Fit a scan to surfaces, from a start that is some decimetres and degrees off.

    Args:
        cells: The surfaces.
        scan: The scan.
        start: Where to begin.
        config: How.
        prior: Where the scan is believed to be beforehand; ``start`` if None.
        prior_information: (3, 3) inverse covariance of that belief in the map's frame; none if None.
    """
    belief = start if prior is None else prior
    weight = np.zeros((3, 3)) if prior_information is None else prior_information
    pose = np.array([start.x, start.y, start.theta])
    scale = min(1.0, config.effective / max(len(scan.points), 1)) / config.sigma**2
    hessian, fit, overlap, cost = gauss_newton(
        cells.index, cells._cells, cells.half, scan.points, scan.normals, pose,
        np.array([belief.x, belief.y, belief.theta]), np.ascontiguousarray(weight), scale,
        config.iterations, config.widest, config.narrowest,
    )  # fmt: skip
    return Match(SE2(pose[0], pose[1], pose[2]), hessian, fit, overlap, cost)


def _example_newton() -> Iterable[tuple[Any, ...]]:
    yield (
        np.full((2, 4, 4), -1, dtype=np.int32), np.zeros((8, FIELDS)), 0.2, np.zeros((3, 2)), np.zeros((3, 2)),
        np.zeros(3), np.zeros(3), np.zeros((3, 3)), 1.0, 5, 0.2, 0.05,
    )  # fmt: skip


@kernel
def nearest_cell(
    index: NDArray[np.int32], cells: NDArray[np.float64], half: float, reach: int,
    x: float, y: float, nx: float, ny: float,
) -> tuple[int, float]:  # fmt: skip
    """The nearest cell that faces the same way, or -1, and the squared distance to its mean."""
    side = index.shape[1]
    column, row = math.floor((x + half) / CELL), math.floor((y + half) / CELL)
    best, least = -1, (reach + 0.5) ** 2 * CELL * CELL
    for r in range(max(row - reach, 0), min(row + reach + 1, side)):
        for q in range(max(column - reach, 0), min(column + reach + 1, side)):
            for layer in range(2):
                k = index[layer, r, q]
                if k < 0:
                    break
                count = cells[k, COUNT]
                dx, dy = cells[k, X] / count - x, cells[k, Y] / count - y
                distance = dx * dx + dy * dy
                if distance >= least:
                    continue
                length = math.sqrt((nx * nx + ny * ny) * (cells[k, NX] ** 2 + cells[k, NY] ** 2))
                if nx * cells[k, NX] + ny * cells[k, NY] < 0.5 * length - 0.15 * count:
                    continue  # another surface; where directions are uncertain, any will do
                best, least = k, distance
    return best, least


@kernel(examples=_example_newton)
def gauss_newton(
    index: NDArray[np.int32],
    cells: NDArray[np.float64],
    half: float,
    points: NDArray[np.float64],
    normals: NDArray[np.float64],
    pose: NDArray[np.float64],
    prior: NDArray[np.float64],
    prior_information: NDArray[np.float64],
    scale: float,
    iterations: int,
    widest: float,
    narrowest: float,
) -> tuple[NDArray[np.float64], float, float, float]:
    """Move ``pose`` in place to the best fit; returns the scan's information, fit, overlap and cost."""
    n = len(points)
    hessian = np.zeros((3, 3))
    gradient = np.zeros(3)
    fit, overlap, cost = 0.0, 0.0, 0.0
    width = widest
    last = False
    for iteration in range(iterations + 1):
        last = last or iteration == iterations
        if last:
            width = narrowest
        hessian[:] = 0.0
        gradient[:] = 0.0
        fit, overlap, cost = 0.0, 0.0, 0.0
        c, s = math.cos(pose[2]), math.sin(pose[2])
        squared = width * width
        reach = 1 if width < 0.12 else 2
        for i in range(n):
            rx, ry = c * points[i, 0] - s * points[i, 1], s * points[i, 0] + c * points[i, 1]
            x, y = pose[0] + rx, pose[1] + ry
            nx, ny = c * normals[i, 0] - s * normals[i, 1], s * normals[i, 0] + c * normals[i, 1]
            k, _distance = nearest_cell(index, cells, half, reach, x, y, nx, ny)
            if k < 0:
                cost += 0.5 * squared
                continue
            count = cells[k, COUNT]
            dx, dy = x - cells[k, X] / count, y - cells[k, Y] / count
            ax, ay = cells[k, NX] / count, cells[k, NY] / count
            length = math.sqrt(ax * ax + ay * ay)
            straight = min(1.0, length * length / STRAIGHT)  # noise bends what is straight, too
            if length > 0.0:
                ax, ay = ax / length, ay / length
            round_ = 0.5 * (1.0 - straight)
            # error matrix: straight across the surface, and some of the rest in all directions
            mxx, mxy, myy = straight * ax * ax + round_, straight * ax * ay, straight * ay * ay + round_
            ex, ey = mxx * dx + mxy * dy, mxy * dx + myy * dy
            error = dx * ex + dy * ey
            share = squared / (squared + error)
            weight = share * share
            fit += weight
            overlap += 1.0
            cost += 0.5 * error * share  # Geman-McClure's rho
            jx, jy = -ry, rx
            tx, ty = mxx * jx + mxy * jy, mxy * jx + myy * jy
            hessian[0, 0] += weight * mxx
            hessian[0, 1] += weight * mxy
            hessian[1, 1] += weight * myy
            hessian[0, 2] += weight * tx
            hessian[1, 2] += weight * ty
            hessian[2, 2] += weight * (jx * tx + jy * ty)
            gradient[0] += weight * ex
            gradient[1] += weight * ey
            gradient[2] += weight * (jx * ex + jy * ey)
        hessian *= scale
        gradient *= scale
        cost *= scale
        hessian[1, 0], hessian[2, 0], hessian[2, 1] = hessian[0, 1], hessian[0, 2], hessian[1, 2]
        off = pose - prior
        off[2] = math.atan2(math.sin(off[2]), math.cos(off[2]))
        pull = np.zeros(3)
        for a in range(3):
            for b in range(3):
                pull[a] += prior_information[a, b] * off[b]
        if last:
            break
        step = solve3(hessian + prior_information, gradient + pull)
        pose -= step
        moved = max(abs(step[0]), abs(step[1]), 5.0 * abs(step[2]))
        if width <= narrowest and moved < 1e-4:
            last = True
        width = max(narrowest, width * 0.6)
    total = max(n, 1)
    return hessian, fit / total, overlap / total, cost


@kernel
def solve3(A: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve a symmetric system of three by Cholesky's method, with as much damping as keeps it solvable."""
    trace = A[0, 0] + A[1, 1] + A[2, 2]
    damping = 1e-6 * trace + 1e-9
    l00 = math.sqrt(A[0, 0] + damping)
    l10, l20 = A[1, 0] / l00, A[2, 0] / l00
    l11 = math.sqrt(max(A[1, 1] + damping - l10 * l10, damping))
    l21 = (A[2, 1] - l20 * l10) / l11
    l22 = math.sqrt(max(A[2, 2] + damping - l20 * l20 - l21 * l21, damping))
    y0 = b[0] / l00
    y1 = (b[1] - l10 * y0) / l11
    y2 = (b[2] - l20 * y0 - l21 * y1) / l22
    x = np.empty(3)
    x[2] = y2 / l22
    x[1] = (y1 - l21 * x[2]) / l11
    x[0] = (y0 - l10 * x[1] - l20 * x[2]) / l00
    return x


def covariance(information: NDArray[np.float64], widest: tuple[float, float, float]) -> NDArray[np.float64]:
    """(3, 3) covariance of a match; a direction that is left open gets the width of the search [m, m, rad]."""
    floor = np.diag([1.0 / value**2 for value in widest])
    return np.asarray(np.linalg.inv(information + floor))


def apart(first: SE2, second: SE2) -> tuple[float, float]:
    """Distance [m] and angle [rad] between two poses."""
    return first.distance(second), abs(float(wrap_angle(first.theta - second.theta)))
