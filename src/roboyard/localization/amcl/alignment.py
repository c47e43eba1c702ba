"""Poses moved until the points seen from them lie on the surfaces of the map: Gauss-Newton over the distance field."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry import wrap_angle
from roboyard.geometry.arrays import Array
from roboyard.grids import LikelihoodField


def _examples() -> Iterable[tuple[Any, ...]]:
    distances = np.zeros((2, 2), np.float32)
    distances.flags.writeable = False  # as those of a likelihood field are
    yield (
        np.zeros((1, 3)),
        np.zeros((1, 3, 3)),
        np.zeros((1, 2)),
        distances,
        1.0,
        1.0,
        1.0,
        1.0,
        1.0,
        1,
    )


@kernel(examples=_examples)
def align_all(
    start: NDArray[np.float64],
    prior: NDArray[np.float64],
    points: NDArray[np.float64],
    distances: NDArray[np.float32],
    per_cell: float,
    sigma: float,
    wide: float,
    narrow: float,
    near: float,
    iterations: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Poses (n, 3), their information (n, 3, 3), and shares (n,) of points ``near`` a surface.

    All lengths are in cells; ``distances`` become so by ``per_cell``.  Each point's distance is a residual of
    deviation ``sigma``, weighed after Geman and McClure with a scale that shrinks from ``wide`` to ``narrow``.
    ``prior`` (n, 3, 3) is the information about the start itself.
    """
    rows, columns = distances.shape
    poses = start.copy()
    information = np.zeros((len(start), 3, 3))
    shares = np.zeros(len(start))
    for i in range(len(start)):
        scale = wide
        for turn in range(iterations + 1):
            x, y, heading = poses[i, 0], poses[i, 1], poses[i, 2]
            c, s = np.cos(heading), np.sin(heading)
            dx, dy, dt = x - start[i, 0], y - start[i, 1], heading - start[i, 2]
            h00, h01, h02, h11, h12, h22 = (
                prior[i, 0, 0], prior[i, 0, 1], prior[i, 0, 2], prior[i, 1, 1], prior[i, 1, 2], prior[i, 2, 2],
            )  # fmt: skip
            g0 = h00 * dx + h01 * dy + h02 * dt
            g1 = h01 * dx + h11 * dy + h12 * dt
            g2 = h02 * dx + h12 * dy + h22 * dt
            explained = 0
            for k in range(len(points)):
                qx, qy = c * points[k, 0] - s * points[k, 1], s * points[k, 0] + c * points[k, 1]
                u, v = x + qx - 0.5, y + qy - 0.5
                if not (0.0 <= u < columns - 1 and 0.0 <= v < rows - 1):
                    continue
                a, b = int(u), int(v)
                fu, fv = u - a, v - b
                d00, d01 = distances[b, a] * per_cell, distances[b, a + 1] * per_cell
                d10, d11 = distances[b + 1, a] * per_cell, distances[b + 1, a + 1] * per_cell
                low, high = d00 + fu * (d01 - d00), d10 + fu * (d11 - d10)
                d = low + fv * (high - low)
                if d < near:
                    explained += 1
                ratio = d / scale
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
            if turn == iterations:
                information[i, 0, 0], information[i, 1, 1], information[i, 2, 2] = h00, h11, h22
                information[i, 0, 1] = information[i, 1, 0] = h01
                information[i, 0, 2] = information[i, 2, 0] = h02
                information[i, 1, 2] = information[i, 2, 1] = h12
                shares[i] = explained / max(len(points), 1)
                break
            # Damped a little, so that a direction of which nothing is known stays where it is.
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
            shrink = min(1.0, wide / max(length, 1e-12), 0.2 / max(abs(step_t), 1e-12))
            poses[i, 0] += shrink * step_x
            poses[i, 1] += shrink * step_y
            poses[i, 2] += shrink * step_t
            scale = max(narrow, 0.6 * scale)
    return poses, information, shares


@dataclass(frozen=True, slots=True)
class Aligned:
    """Where poses ended.

    Attributes:
        poses: (n, 3) in the map.
        information: (n, 3, 3) inverse covariance, in the map's axes, prior included.
        shares: (n,) of the points that lie on a surface.
    """

    poses: Array
    information: Array
    shares: Array


def align(
    field: LikelihoodField,
    poses: Array,
    points: Array,
    *,
    prior: Array | None = None,
    sigma: float = 0.1,
    reach: float = 0.5,
    iterations: int = 12,
) -> Aligned:
    """Move poses so that the points seen from them lie on surfaces.

    Args:
        field: Distances in the map.
        poses: (n, 3) to begin with.
        points: (m, 2) in the base's frame [m].
        prior: (n, 3, 3) information about the poses to begin with, in the map's axes; None: nothing is known.
        sigma: Standard deviation of what one point says [m].
        reach: Surfaces so far away still pull at first [m].
        iterations: Steps; enough for a descent from ``reach``.
    """
    r, frame = field.geometry.resolution, field.geometry
    place = frame.T_map_grid.inverse()
    inside = np.array(poses, dtype=np.float64).reshape(-1, 3)
    inside[:, :2] = (place @ inside[:, :2]) / r
    inside[:, 2] += place.theta
    turn = np.eye(3)  # a small step in the grid, in cells, is this in the map, in metres
    turn[:2, :2] = frame.T_map_grid.matrix()[:2, :2] * r
    known = np.zeros((len(inside), 3, 3)) if prior is None else turn.T @ prior @ turn
    near = max(0.1, 1.5 * r)
    seen = np.ascontiguousarray(points, dtype=np.float64) / r
    narrow = max(0.1, 2.0 * r)
    ended, information, shares = align_all(
        inside, np.ascontiguousarray(known), seen, field.distances, 1.0 / r, sigma / r, reach / r, narrow / r,
        near / r, iterations,
    )  # fmt: skip
    back = np.linalg.inv(turn)
    found = ended.copy()
    found[:, :2] = frame.T_map_grid @ (ended[:, :2] * r)
    found[:, 2] = wrap_angle(ended[:, 2] + frame.T_map_grid.theta)
    return Aligned(found, back.T @ information @ back, shares)
