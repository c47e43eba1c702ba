"""Continuous scan matching: Gauss-Newton from points to surfels, with a robust kernel and a prior.

Each point is matched with the nearest surfel whose normal has a similar direction; its error counts across the surface
only where the surface is straight (point-to-line, Chen and Medioni 1991; Censi 2008), and in all directions where it is
not. The robust kernel is that of Geman and McClure; it becomes narrower with each iteration.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry import SE2, wrap_angle
from roboyard.mapping.scan import PreprocessedScan
from roboyard.mapping.scan_matching.surfel_map import (
    CELL_SIZE,
    COUNT,
    N_FIELDS,
    SUM_NX,
    SUM_NY,
    SUM_X,
    SUM_Y,
    SurfelMap,
    SurfelMapArrays,
)

STRAIGHTNESS = 0.75
"""Squared length of the mean normal above which a surface counts as straight, and constrains nothing along itself."""


@dataclass(frozen=True, slots=True)
class RefinementConfig:
    """Parameters of the point-to-line refinement.

    Attributes:
        max_iterations: Largest number of Gauss-Newton iterations.
        initial_kernel_width: Width of the robust kernel in the first iteration [m].
        final_kernel_width: Width of the robust kernel in the last iteration [m].
        sigma: Standard deviation of a point's distance from its surface [m].
        max_effective_points: Number of points above which more points add no information, since their errors are not
            independent.
    """

    max_iterations: int = 12
    initial_kernel_width: float = 0.25
    final_kernel_width: float = 0.05
    sigma: float = 0.03
    max_effective_points: int = 40


@dataclass(frozen=True, slots=True)
class ScanMatch:
    """Result of matching a scan.

    Attributes:
        pose: ``T_map_base``.
        information: (3, 3) inverse covariance of x, y [m] and theta [rad] in the map's frame from the scan alone; close
            to singular where the surroundings leave a direction open, as a corridor does.
        fit: Fraction of the points that lie on surfaces, weighted by the robust kernel; 0 to 1.
        overlap: Fraction of the points with a surface nearby; 0 to 1.
        data_cost: Half the sum of robust squared errors, in variances; it compares matches of one scan.
    """

    pose: SE2
    information: NDArray[np.float64]
    fit: float
    overlap: float
    data_cost: float


def refine_pose(
    surfel_map: SurfelMap, scan: PreprocessedScan, start: SE2, config: RefinementConfig, *,
    prior: SE2 | None = None, prior_information: NDArray[np.float64] | None = None,
) -> ScanMatch:  # fmt: skip
    """Refine the pose of a scan by point-to-line matching, from a start with errors of decimetres and degrees.

    Args:
        surfel_map: Surfaces of the map.
        scan: The scan.
        start: Pose ``T_map_base`` with which the iterations start.
        config: Parameters.
        prior: Mean of the prior of the pose; None: ``start``.
        prior_information: (3, 3) inverse covariance of the prior in the map's frame; None: no prior.
    """
    prior_pose = start if prior is None else prior
    information = np.zeros((3, 3)) if prior_information is None else prior_information
    pose = np.array([start.x, start.y, start.theta])
    scale = min(1.0, config.max_effective_points / max(len(scan.points), 1)) / config.sigma**2
    pose_prior = PosePrior(np.array([prior_pose.x, prior_pose.y, prior_pose.theta]), np.ascontiguousarray(information))
    schedule = KernelSchedule(config.max_iterations, config.initial_kernel_width, config.final_kernel_width)
    hessian, fit, overlap, cost = gauss_newton(
        surfel_map.arrays(), scan.points, scan.normals, pose, pose_prior, scale, schedule
    )
    return ScanMatch(SE2(pose[0], pose[1], pose[2]), hessian, fit, overlap, cost)


class PosePrior(NamedTuple):
    """Prior of a pose: its mean (3,) [m, rad] and its information (3, 3)."""

    pose: NDArray[np.float64]
    information: NDArray[np.float64]


class KernelSchedule(NamedTuple):
    """Number of Gauss-Newton iterations, and the width of the robust kernel in the first and in the last [m]."""

    max_iterations: int
    initial_width: float
    final_width: float


def _example_newton() -> Iterable[tuple[Any, ...]]:
    surfels = SurfelMapArrays(np.full((2, 4, 4), -1, dtype=np.int32), np.zeros((8, N_FIELDS)), 0.2)
    prior = PosePrior(np.zeros(3), np.zeros((3, 3)))
    yield surfels, np.zeros((3, 2)), np.zeros((3, 2)), np.zeros(3), prior, 1.0, KernelSchedule(5, 0.2, 0.05)


@kernel
def nearest_surfel(
    index: NDArray[np.int32], surfels: NDArray[np.float64], half_size: float, cell_reach: int,
    x: float, y: float, nx: float, ny: float,
) -> tuple[int, float]:  # fmt: skip
    """Return the nearest surfel with a similar normal, or -1, and the squared distance to its mean [m²]."""
    side = index.shape[1]
    column, row = math.floor((x + half_size) / CELL_SIZE), math.floor((y + half_size) / CELL_SIZE)
    nearest, min_distance = -1, (cell_reach + 0.5) ** 2 * CELL_SIZE * CELL_SIZE
    for r in range(max(row - cell_reach, 0), min(row + cell_reach + 1, side)):
        for q in range(max(column - cell_reach, 0), min(column + cell_reach + 1, side)):
            for layer in range(2):
                k = index[layer, r, q]
                if k < 0:
                    break
                count = surfels[k, COUNT]
                dx, dy = surfels[k, SUM_X] / count - x, surfels[k, SUM_Y] / count - y
                distance = dx * dx + dy * dy
                if distance >= min_distance:
                    continue
                length = math.sqrt((nx * nx + ny * ny) * (surfels[k, SUM_NX] ** 2 + surfels[k, SUM_NY] ** 2))
                if nx * surfels[k, SUM_NX] + ny * surfels[k, SUM_NY] < 0.5 * length - 0.15 * count:
                    continue  # another surface; where directions are uncertain, any will do
                nearest, min_distance = k, distance
    return nearest, min_distance


@kernel(examples=_example_newton)
def gauss_newton(
    surfel_arrays: SurfelMapArrays,
    points: NDArray[np.float64],
    normals: NDArray[np.float64],
    pose: NDArray[np.float64],
    prior: PosePrior,
    scale: float,
    schedule: KernelSchedule,
) -> tuple[NDArray[np.float64], float, float, float]:
    """Move a pose in place to the best fit of a scan.

    Args:
        surfel_arrays: Surfels of the map.
        points: (n, 2) points of the scan, in the base's frame [m].
        normals: (n, 2) normals there.
        pose: (3,) start [m, rad]; written.
        prior: Prior of the pose.
        scale: Information of a point across its surface [1/m²].
        schedule: Iterations, and widths of the robust kernel.

    Returns:
        Information (3, 3) of the scan alone, fit and overlap (0 to 1), and cost.
    """
    index, surfels, half_size = surfel_arrays.cell_index, surfel_arrays.surfels, surfel_arrays.half_size
    iterations, final_width = schedule.max_iterations, schedule.final_width
    prior_pose, prior_information = prior.pose, prior.information
    n = len(points)
    hessian = np.zeros((3, 3))
    gradient = np.zeros(3)
    fit, overlap, cost = 0.0, 0.0, 0.0
    width = schedule.initial_width
    last = False
    for iteration in range(iterations + 1):
        last = last or iteration == iterations
        if last:
            width = final_width
        hessian[:] = 0.0
        gradient[:] = 0.0
        fit, overlap, cost = 0.0, 0.0, 0.0
        c, s = math.cos(pose[2]), math.sin(pose[2])
        squared = width * width
        cell_reach = 1 if width < 0.12 else 2
        for i in range(n):
            rx, ry = c * points[i, 0] - s * points[i, 1], s * points[i, 0] + c * points[i, 1]
            x, y = pose[0] + rx, pose[1] + ry
            nx, ny = c * normals[i, 0] - s * normals[i, 1], s * normals[i, 0] + c * normals[i, 1]
            k, _distance = nearest_surfel(index, surfels, half_size, cell_reach, x, y, nx, ny)
            if k < 0:
                cost += 0.5 * squared
                continue
            count = surfels[k, COUNT]
            dx, dy = x - surfels[k, SUM_X] / count, y - surfels[k, SUM_Y] / count
            ax, ay = surfels[k, SUM_NX] / count, surfels[k, SUM_NY] / count
            length = math.sqrt(ax * ax + ay * ay)
            straightness = min(1.0, length * length / STRAIGHTNESS)  # noise bends what is straight, too
            if length > 0.0:
                ax, ay = ax / length, ay / length
            roundness = 0.5 * (1.0 - straightness)
            # error matrix: straight across the surface, and some of the rest in all directions
            mxx, mxy, myy = (
                straightness * ax * ax + roundness,
                straightness * ax * ay,
                straightness * ay * ay + roundness,
            )
            ex, ey = mxx * dx + mxy * dy, mxy * dx + myy * dy
            error = dx * ex + dy * ey
            robust_factor = squared / (squared + error)
            weight = robust_factor * robust_factor
            fit += weight
            overlap += 1.0
            cost += 0.5 * error * robust_factor  # Geman-McClure's rho
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
        prior_residual = pose - prior_pose
        prior_residual[2] = math.atan2(math.sin(prior_residual[2]), math.cos(prior_residual[2]))
        prior_gradient = np.zeros(3)
        for a in range(3):
            for b in range(3):
                prior_gradient[a] += prior_information[a, b] * prior_residual[b]
        if last:
            break
        step = solve3(hessian + prior_information, gradient + prior_gradient)
        pose -= step
        step_size = max(abs(step[0]), abs(step[1]), 5.0 * abs(step[2]))
        if width <= final_width and step_size < 1e-4:
            last = True
        width = max(final_width, width * 0.6)
    total = max(n, 1)
    return hessian, fit / total, overlap / total, cost


@kernel
def solve3(A: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve a symmetric system of three equations by Cholesky's method, with damping that keeps it solvable."""
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


def match_covariance(information: NDArray[np.float64], max_std: tuple[float, float, float]) -> NDArray[np.float64]:
    """Return the covariance (3, 3) of a match; an unobserved direction gets ``max_std`` [m, m, rad]."""
    floor = np.diag([1.0 / value**2 for value in max_std])
    return np.asarray(np.linalg.inv(information + floor))


def pose_difference(first: SE2, second: SE2) -> tuple[float, float]:
    """Return the distance [m] and the angle [rad] between two poses."""
    return first.distance(second), abs(float(wrap_angle(first.theta - second.theta)))
