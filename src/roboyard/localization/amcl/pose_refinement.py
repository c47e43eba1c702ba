"""Refinement of poses in a map: alignment of scans to surfaces, the pose estimate, and the global search.

The alignment moves poses by Gauss-Newton steps over the distance field until the points of a scan lie on surfaces.  The
search tries many poses in the whole map and aligns the best.
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
from roboyard.geometry.arrays import Array
from roboyard.grids import OCCUPIED_THRESHOLD, LikelihoodField, OccupancyGrid
from roboyard.localization.amcl.laser_model import LaserModel, ScanMeasurement, compute_visibility_scores
from roboyard.localization.amcl.particles import ParticleCluster
from roboyard.mapping import LaserScan


class AlignmentParameters(NamedTuple):
    """Parameters of `align_poses_kernel`; all lengths are in cells.

    Attributes:
        sigma: Standard deviation of the distance of one point to its surface.
        initial_width: Width of the robust weight at the first iteration; surfaces attract points within about this
            distance.
        final_width: Smallest width, which later iterations reach.
        inlier_distance: Largest distance of a point that counts as lying on a surface.
        iterations: Number of Gauss-Newton steps.
    """

    sigma: float
    initial_width: float
    final_width: float
    inlier_distance: float
    iterations: int


def _align_examples() -> Iterable[tuple[Any, ...]]:
    distances = np.zeros((2, 2), np.float32)
    distances.flags.writeable = False  # as those of a likelihood field are
    yield (
        np.zeros((1, 3)),
        np.zeros((1, 3, 3)),
        np.zeros((1, 2)),
        distances,
        1.0,
        AlignmentParameters(1.0, 1.0, 1.0, 1.0, 1),
    )


@kernel(examples=_align_examples)
def align_poses_kernel(
    start_poses: NDArray[np.float64],
    prior: NDArray[np.float64],
    points: NDArray[np.float64],
    distances: NDArray[np.float32],
    cells_per_meter: float,
    parameters: AlignmentParameters,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Align poses to the surfaces of a map by Gauss-Newton steps over the distance field.

    The distance of each point to the nearest surface is a residual of standard deviation ``sigma``, weighted after
    Geman and McClure with a width that shrinks from ``initial_width`` to ``final_width``.

    Args:
        start_poses: (n, 3) poses in the grid [cells], [rad].
        prior: (n, 3, 3) information about the start poses.
        points: (m, 2) points of the scan in the base's frame [cells].
        distances: (rows, columns) distances to the nearest surface [m].
        cells_per_meter: Converts ``distances`` to cells.
        parameters: Widths and number of steps.

    Returns:
        Poses (n, 3), their information (n, 3, 3), and fractions (n,) of points within ``inlier_distance``.
    """
    sigma, initial_width, final_width = parameters.sigma, parameters.initial_width, parameters.final_width
    inlier_distance, iterations = parameters.inlier_distance, parameters.iterations
    rows, columns = distances.shape
    poses = start_poses.copy()
    information = np.zeros((len(start_poses), 3, 3))
    inlier_fractions = np.zeros(len(start_poses))
    for i in range(len(start_poses)):
        width = initial_width
        for iteration in range(iterations + 1):
            x, y, heading = poses[i, 0], poses[i, 1], poses[i, 2]
            c, s = np.cos(heading), np.sin(heading)
            dx, dy, dt = x - start_poses[i, 0], y - start_poses[i, 1], heading - start_poses[i, 2]
            h00, h01, h02, h11, h12, h22 = (
                prior[i, 0, 0], prior[i, 0, 1], prior[i, 0, 2], prior[i, 1, 1], prior[i, 1, 2], prior[i, 2, 2],
            )  # fmt: skip
            g0 = h00 * dx + h01 * dy + h02 * dt
            g1 = h01 * dx + h11 * dy + h12 * dt
            g2 = h02 * dx + h12 * dy + h22 * dt
            n_inliers = 0
            for k in range(len(points)):
                qx, qy = c * points[k, 0] - s * points[k, 1], s * points[k, 0] + c * points[k, 1]
                u, v = x + qx - 0.5, y + qy - 0.5
                if not (0.0 <= u < columns - 1 and 0.0 <= v < rows - 1):
                    continue
                a, b = int(u), int(v)
                fu, fv = u - a, v - b
                d00, d01 = distances[b, a] * cells_per_meter, distances[b, a + 1] * cells_per_meter
                d10, d11 = distances[b + 1, a] * cells_per_meter, distances[b + 1, a + 1] * cells_per_meter
                low, high = d00 + fu * (d01 - d00), d10 + fu * (d11 - d10)
                d = low + fv * (high - low)
                if d < inlier_distance:
                    n_inliers += 1
                ratio = d / width
                weight = 1.0 / (1.0 + ratio * ratio) ** 2 / (sigma * sigma)
                jx, jy = (1.0 - fv) * (d01 - d00) + fv * (d11 - d10), high - low
                jt = -jx * qy + jy * qx
                h00 += weight * jx * jx
                h01 += weight * jx * jy
                h02 += weight * jx * jt
                h11 += weight * jy * jy
                h12 += weight * jy * jt
                h22 += weight * jt * jt
                g0 += weight * jx * d
                g1 += weight * jy * d
                g2 += weight * jt * d
            if iteration == iterations:
                information[i, 0, 0], information[i, 1, 1], information[i, 2, 2] = h00, h11, h22
                information[i, 0, 1] = information[i, 1, 0] = h01
                information[i, 0, 2] = information[i, 2, 0] = h02
                information[i, 1, 2] = information[i, 2, 1] = h12
                inlier_fractions[i] = n_inliers / max(len(points), 1)
                break
            # Slightly damped, so that unobservable directions keep their value.
            a00, a11, a22 = h00 * 1.001 + 1e-6, h11 * 1.001 + 1e-6, h22 * 1.001 + 1e-3
            m00, m01, m02 = a11 * a22 - h12 * h12, h02 * h12 - h01 * a22, h01 * h12 - h02 * a11
            determinant = a00 * m00 + h01 * m01 + h02 * m02
            if determinant <= 0.0:
                break
            m11, m12, m22 = a00 * a22 - h02 * h02, h01 * h02 - a00 * h12, a00 * a11 - h01 * h01
            step_x = -(m00 * g0 + m01 * g1 + m02 * g2) / determinant
            step_y = -(m01 * g0 + m11 * g1 + m12 * g2) / determinant
            step_t = -(m02 * g0 + m12 * g1 + m22 * g2) / determinant
            length = np.sqrt(step_x * step_x + step_y * step_y)
            step_scale = min(1.0, initial_width / max(length, 1e-12), 0.2 / max(abs(step_t), 1e-12))
            poses[i, 0] += step_scale * step_x
            poses[i, 1] += step_scale * step_y
            poses[i, 2] += step_scale * step_t
            width = max(final_width, 0.6 * width)
    return poses, information, inlier_fractions


@dataclass(frozen=True, slots=True)
class AlignedPoses:
    """Poses after the alignment.

    Attributes:
        poses: (n, 3) in the map.
        information: (n, 3, 3) inverse covariance, in the map's axes, with the prior.
        inlier_fractions: (n,) fractions of the points that lie on a surface.
    """

    poses: Array
    information: Array
    inlier_fractions: Array


def align_poses(
    field: LikelihoodField,
    poses: Array,
    points: Array,
    *,
    prior: Array | None = None,
    sigma: float = 0.1,
    initial_width: float = 0.5,
    iterations: int = 12,
) -> AlignedPoses:
    """Move poses so that the points of a scan lie on surfaces.

    Args:
        field: Distances in the map.
        poses: (n, 3) start poses.
        points: (m, 2) in the base's frame [m].
        prior: (n, 3, 3) information about the start poses, in the map's axes; None: no information.
        sigma: Standard deviation of one point [m].
        initial_width: Distance up to which surfaces attract points at first [m].
        iterations: Number of steps; the default suffices for a start within ``initial_width``.
    """
    resolution, geometry = field.geometry.resolution, field.geometry
    T_grid_map = geometry.T_map_grid.inverse()
    grid_poses = np.array(poses, dtype=np.float64).reshape(-1, 3)
    grid_poses[:, :2] = (T_grid_map @ grid_poses[:, :2]) / resolution
    grid_poses[:, 2] += T_grid_map.theta
    grid_to_map = np.eye(3)  # converts a small step in the grid [cells] to the map [m]
    grid_to_map[:2, :2] = geometry.T_map_grid.matrix()[:2, :2] * resolution
    grid_prior = np.zeros((len(grid_poses), 3, 3)) if prior is None else grid_to_map.T @ prior @ grid_to_map
    grid_points = np.ascontiguousarray(points, dtype=np.float64) / resolution
    parameters = AlignmentParameters(
        sigma=sigma / resolution,
        initial_width=initial_width / resolution,
        final_width=max(0.1, 2.0 * resolution) / resolution,
        inlier_distance=max(0.1, 1.5 * resolution) / resolution,
        iterations=iterations,
    )
    aligned_in_grid, information, inlier_fractions = align_poses_kernel(
        grid_poses, np.ascontiguousarray(grid_prior), grid_points, field.distances, 1.0 / resolution, parameters
    )
    map_to_grid = np.linalg.inv(grid_to_map)
    aligned_in_map = aligned_in_grid.copy()
    aligned_in_map[:, :2] = geometry.T_map_grid @ (aligned_in_grid[:, :2] * resolution)
    aligned_in_map[:, 2] = wrap_angle(aligned_in_grid[:, 2] + geometry.T_map_grid.theta)
    return AlignedPoses(aligned_in_map, map_to_grid.T @ information @ map_to_grid, inlier_fractions)


_MIN_COVARIANCE = np.diag([0.02**2, 0.02**2, math.radians(0.5) ** 2])
"""Least covariance of a cluster: few particles underestimate it."""
_ALIGNMENT_GATE = 16.3
"""Chi-square of 3 degrees of freedom at 99.9 %: an alignment farther from its cluster has diverged."""


@dataclass(frozen=True, slots=True)
class AmclEstimate:
    """Estimated pose of the base.

    Attributes:
        time_ns: Time of the scan [ns].
        T_map_base: Pose.
        covariance: (3, 3) of x, y [m²], heading [rad²] in the map's axes.
        T_map_odom: Correction of the odometry.
        clusters: Clusters of the particles, the heaviest first.
        inlier_fraction: Fraction of the scan's hits that lie on a surface of the map.
        n_particles: Number of particles.
        is_refined: Whether the pose was aligned to the map.
    """

    time_ns: int
    T_map_base: SE2
    covariance: NDArray[np.float64]
    T_map_odom: SE2
    clusters: tuple[ParticleCluster, ...]
    inlier_fraction: float
    n_particles: int
    is_refined: bool


def estimate_pose(
    scan: LaserScan, clusters: list[ParticleCluster], model: LaserModel, measurement: ScanMeasurement, n_particles: int
) -> AmclEstimate:
    """Return the pose of the best cluster, aligned unless this is switched off or the alignment diverges."""
    config, best = model.config, clusters[0]
    prior = np.asarray(np.linalg.inv(best.covariance + _MIN_COVARIANCE), dtype=np.float64)
    start = np.array([[best.pose.x, best.pose.y, best.pose.theta]])
    iterations = 12 if config.refine else 0
    points = measurement.subsample(config.refine_beams)
    aligned = align_poses(
        model.field,
        start,
        points,
        prior=prior[None],
        sigma=config.refine_sigma,
        initial_width=0.3,
        iterations=iterations,
    )
    correction = aligned.poses[0] - start[0]
    correction[2] = wrap_angle(correction[2])
    is_refined = config.refine and float(correction @ prior @ correction) < _ALIGNMENT_GATE
    pose = SE2(*aligned.poses[0]) if is_refined else best.pose
    covariance = np.linalg.inv(aligned.information[0]) if is_refined else best.covariance
    odometry = SE2.identity() if scan.odometry is None else scan.odometry
    return AmclEstimate(
        scan.time_ns, pose, covariance, pose @ odometry.inverse(), tuple(clusters),
        float(aligned.inlier_fractions[0]), n_particles, is_refined,
    )  # fmt: skip


_MAX_ALIGNED_POSES = 300
_MIN_SEPARATION = (0.3, math.radians(12.0))
"""Hypotheses that are closer than this [m], [rad] count as one."""
VISIBILITY_WEIGHT = 30.0
"""Weight of the visibility score beside log-likelihoods: a beam through a wall counts more than an inexact one."""


@dataclass(frozen=True, slots=True)
class PoseHypotheses:
    """Poses that explain a scan, the best first.

    Attributes:
        poses: (k, 3) in the map.
        log_likelihoods: (k,) by the laser model.
        visibility_scores: (k,) see `compute_visibility_scores`.
        information: (k, 3, 3) inverse covariance by the scan.
    """

    poses: Array
    log_likelihoods: Array
    visibility_scores: Array
    information: Array


class FreeSpace:
    """The free cells of a map, from which poses are sampled.

    Args:
        grid: The map; if it has no free cell, all cells that are not occupied count as free.
    """

    def __init__(self, grid: OccupancyGrid) -> None:
        is_free = (grid.cells >= 0) & (grid.cells < OCCUPIED_THRESHOLD)
        self._cells = np.argwhere(is_free if is_free.any() else grid.cells < OCCUPIED_THRESHOLD)
        self._geometry = grid.geometry

    @property
    def area(self) -> float:
        """Area of all free cells [m²]."""
        return len(self._cells) * self._geometry.resolution**2

    def sample_poses(self, count: int, rng: np.random.Generator) -> Array:
        """Sample poses (count, 3): positions stratified over the free space, any heading."""
        if not len(self._cells):
            return np.zeros((0, 3))
        indices = (np.arange(count) + rng.random(count)) * (len(self._cells) / count)
        cells = self._cells[np.minimum(indices.astype(np.int64), len(self._cells) - 1)] + rng.random((count, 2)) - 0.5
        return np.column_stack([self._geometry.cell_centers(cells), rng.uniform(-math.pi, math.pi, count)])


def search_poses(
    model: LaserModel, free_space: FreeSpace, measurement: ScanMeasurement, rng: np.random.Generator
) -> PoseHypotheses:
    """Search the free space of a map for poses that explain a scan.

    It scores ``search_poses_per_m2`` poses per square meter, at most ``max_search_poses``, aligns the best, and keeps
    those that differ.
    """
    config = model.config
    count = max(1, min(config.max_search_poses, math.ceil(free_space.area * config.search_poses_per_m2)))
    candidates, points = free_space.sample_poses(count, rng), measurement.subsample(config.max_beams)
    if not len(candidates) or len(points) < 3:
        return PoseHypotheses(np.zeros((0, 3)), np.zeros(0), np.zeros(0), np.zeros((0, 3, 3)))
    coarse_scores = model.field.score_poses(model.log_likelihood_field(measurement.range_max), candidates, points)
    best = np.argsort(-coarse_scores, kind="stable")[: 20 * _MAX_ALIGNED_POSES]
    separated = _suppress_non_maxima(candidates[best], _MAX_ALIGNED_POSES)
    start_poses = candidates[best[separated]]
    aligned = align_poses(model.field, start_poses, points, sigma=config.refine_sigma)
    scores, _ = model.log_weights(aligned.poses, measurement)
    visibility = compute_visibility_scores(model, aligned.poses, measurement)
    order = np.argsort(-(scores + VISIBILITY_WEIGHT * visibility), kind="stable")
    order = order[_suppress_non_maxima(aligned.poses[order], _MAX_ALIGNED_POSES)]
    return PoseHypotheses(aligned.poses[order], scores[order], visibility[order], aligned.information[order])


def _suppress_non_maxima(poses: Array, max_count: int) -> NDArray[np.int64]:
    """Return the indices of poses (in order of preference) that are not close to a preferred one."""
    is_remaining, selected = np.ones(len(poses), dtype=np.bool_), []
    max_distance, max_angle = _MIN_SEPARATION
    for index in range(len(poses)):
        if not is_remaining[index]:
            continue
        selected.append(index)
        if len(selected) >= max_count:
            break
        is_duplicate = np.abs(poses[:, 0] - poses[index, 0]) < max_distance
        is_duplicate &= np.abs(poses[:, 1] - poses[index, 1]) < max_distance
        is_duplicate &= np.abs(wrap_angle(poses[:, 2] - poses[index, 2])) < max_angle
        is_remaining &= ~is_duplicate
    return np.array(selected, dtype=np.int64)
