"""What a cloud says about the cells of an elevation map."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import F32, Array

_FEW: Final = 3.0
"""Fewer points of a cell that seem to be of something upright are errors."""


class Layers(NamedTuple):
    """What is known of each cell, (rows, columns).

    Attributes:
        height: Of its ground [m]; not a number: none has been seen.
        variance: Of that height [m²].
        upright: How high something upright is there [m]; not a number: there is none.
        ceiling: The lowest that a ray has passed over it: what is there is lower [m]; infinite: none has.
        against: Clouds in a row that contradict the height.
        covered: (rows, columns, 4) least and greatest x, least and greatest y of the points that told the height, as
            shares of the cell.
    """

    height: Array
    variance: Array
    upright: Array
    ceiling: Array
    against: NDArray[np.int64]
    covered: Array


class Told(NamedTuple):
    """What one cloud says of each cell, (rows, columns).

    Attributes:
        top: The highest point on ground [m], -inf without any.
        weight: Information of the points on ground that are as high, by what is known of their errors [1/m²].
        moment: Their heights, weighted with it [1/m].
        upright: The highest point on something upright [m], -inf without any.
        steep: How many of these there are.
        ceiling: The lowest ray over it [m].
        covered: As `Layers` has it.
    """

    top: Array
    weight: Array
    moment: Array
    upright: Array
    steep: Array
    ceiling: Array
    covered: Array


class DepthNoiseModel(NamedTuple):
    """Errors of points, and which count: as `SensorProcessor` has them."""

    a: float
    b: float
    c: float
    lateral: float
    near: float
    far: float


def _layers() -> Layers:
    one = np.zeros((1, 1))
    return Layers(one, one, one, one, np.zeros((1, 1), np.int64), np.zeros((1, 1, 4)))


def _told() -> Told:
    one = np.zeros((1, 1))
    return Told(one, one, one, one, one, one, np.zeros((1, 1, 4)))


@kernel(examples=lambda: [(np.zeros((1, 1, 3), np.float32), np.eye(3), np.zeros(3))])
def placed(points: F32, R: Array, p: Array) -> Array:
    """(h, w, 3) points in the map, of points (h, w, 3) in a sensor that is at a pose in it [m]."""
    out = np.empty(points.shape)
    for i in range(points.shape[0]):
        for j in range(points.shape[1]):
            x, y, z = float(points[i, j, 0]), float(points[i, j, 1]), float(points[i, j, 2])
            for k in range(3):
                out[i, j, k] = R[k, 0] * x + R[k, 1] * y + R[k, 2] * z + p[k]
    return out


LEVEL, UPRIGHT, UNCLEAR = 0, 1, 2


@kernel(examples=lambda: [(np.zeros((1, 1, 3)), 0, 0, 1, 0.5)], inline="never")
def steep(points: Array, i: int, j: int, to: int, least: float) -> int:
    """Whether the surface from a point of a cloud (h, w, 3) to its neighbours on one side stands upright.

    Args:
        points: Organised [m].
        i: Row of the point.
        j: Column of it.
        to: 1 for the neighbours after it, -1 for those before.
        least: Upward part of a normal that does not stand upright, at least.
    """
    ax, ay = points[i, j + to, 0] - points[i, j, 0], points[i, j + to, 1] - points[i, j, 1]
    bx, by = points[i + to, j, 0] - points[i, j, 0], points[i + to, j, 1] - points[i, j, 1]
    az, bz = points[i, j + to, 2] - points[i, j, 2], points[i + to, j, 2] - points[i, j, 2]
    nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    n = nx * nx + ny * ny + nz * nz
    if math.isnan(n):  # a neighbour is missing
        return UNCLEAR
    return UPRIGHT if nz * nz < least * least * n else LEVEL


@kernel(examples=lambda: [(np.zeros((1, 1, 3)), 0, 0, 0.5)], inline="never")
def kind_of(points: Array, i: int, j: int, least: float) -> int:
    """What the surface at a point of a cloud (h, w, 3) is: level only where it is on all sides.

    So nothing of a side is level at its rim.  A point at the border of an organised cloud is unclear; of a cloud
    that is one row, and not organised, all are level.
    """
    h, w = points.shape[0], points.shape[1]
    if h == 1:
        return LEVEL
    if not (0 < i < h - 1 and 0 < j < w - 1):
        return UNCLEAR
    one, other = steep(points, i, j, 1, least), steep(points, i, j, -1, least)
    if one == UPRIGHT or other == UPRIGHT:
        return UPRIGHT
    return LEVEL if one == LEVEL and other == LEVEL else UNCLEAR


@kernel(examples=lambda: [(np.zeros(4), 0.0, 0.0)], inline="never")
def widen(covered: Array, u: float, v: float) -> None:
    """Let least and greatest x, least and greatest y (4,) hold a place."""
    covered[0], covered[1] = min(covered[0], u), max(covered[1], u)
    covered[2], covered[3] = min(covered[2], v), max(covered[3], v)


@kernel(
    examples=lambda: [
        (
            np.zeros((1, 1, 3)),
            np.zeros(3),
            0.0,
            0.0,
            0.02,
            0.6,
            2.5,
            DepthNoiseModel(0.0, 0.0, 0.0, 0.0, 0.2, 3.0),
            _told(),
        )
    ]
)
def ask(
    points: Array,
    eye: Array,
    x: float,
    y: float,
    cell: float,
    level: float,
    gate: float,
    sensor: DepthNoiseModel,
    told: Told,
) -> int:
    """Fill in what a cloud's points say of the cells in which they lie; how many points that were.

    The highest ground that a cell shows counts, and what is as high within errors: below it are sides.

    Args:
        points: (h, w, 3) in the map [m]; neighbours in space are neighbours in it, or it is one row.
        eye: (3,) where they were seen from [m].
        x: Corner of the map [m].
        y: Likewise [m].
        cell: Edge of a cell [m].
        level: Upward part of the normal of ground, at least.
        gate: Heights are alike within so many standard deviations.
        sensor: Errors of points.
        told: What to fill in; begins empty.
    """
    h, w = points.shape[0], points.shape[1]
    rows, columns = told.top.shape
    spread = np.full((h, w), -1.0)  # a point's variance, of ground; -1 of others
    count = 0
    for i in range(h):
        for j in range(w):
            px, py, pz = points[i, j, 0], points[i, j, 1], points[i, j, 2]
            dx, dy, dz = px - eye[0], py - eye[1], pz - eye[2]
            d = math.sqrt(dx * dx + dy * dy + dz * dz)
            if not sensor.near <= d <= sensor.far:  # not a number is neither
                continue
            r, c = math.floor((py - y) / cell), math.floor((px - x) / cell)
            if not (0 <= r < rows and 0 <= c < columns):
                continue
            count += 1
            kind = kind_of(points, i, j, level)
            if kind == UPRIGHT:
                told.upright[r, c] = max(told.upright[r, c], pz)
                told.steep[r, c] += 1.0
            if kind != LEVEL:
                continue
            along, across = sensor.a + sensor.b * (d - sensor.c) ** 2, sensor.lateral * d
            up = (dz / d) ** 2
            spread[i, j] = up * along * along + (1.0 - up) * across * across
            told.top[r, c] = max(told.top[r, c], pz)
    for i in range(h):
        for j in range(w):
            if spread[i, j] < 0.0:
                continue
            r, c = math.floor((points[i, j, 1] - y) / cell), math.floor((points[i, j, 0] - x) / cell)
            # a cell of a slope has points as much apart as it is steep
            if told.top[r, c] - points[i, j, 2] <= gate * math.sqrt(2.0 * spread[i, j]) + 0.5 * cell:
                information = 1.0 / max(spread[i, j], 1e-12)
                told.weight[r, c] += information
                told.moment[r, c] += information * points[i, j, 2]
                widen(told.covered[r, c], (points[i, j, 0] - x) / cell - c, (points[i, j, 1] - y) / cell - r)
    return count


@kernel(examples=lambda: [(np.zeros((1, 1, 3)), np.zeros(3), 0.0, 0.0, 0.02, 3.0, 1, np.zeros((1, 1)))])
def look_through(
    points: Array, eye: Array, x: float, y: float, cell: float, far: float, stride: int, ceiling: Array
) -> None:
    """Lower a ceiling (rows, columns) [m] to the rays from an eye (3,) to points (h, w, 3) [m].

    A ray counts, where it is highest in a cell, for those that it passes on the way, but for the two about its end:
    where a surface is seen flat the ray is just above it there.

    Args:
        points: In the map [m].
        eye: In the map [m].
        x: Corner of the map [m].
        y: Likewise [m].
        cell: Edge of a cell [m].
        far: Rays count up to this distance [m].
        stride: Every so many points of a row and of a column of an organised cloud.
        ceiling: To be lowered.
    """
    rows, columns = ceiling.shape
    for i in range(0, points.shape[0], stride):
        for j in range(0, points.shape[1], stride):
            dx, dy, dz = points[i, j, 0] - eye[0], points[i, j, 1] - eye[1], points[i, j, 2] - eye[2]
            flat = math.hypot(dx, dy)
            if not flat > 2.0 * cell or not math.isfinite(dz):
                continue
            end = min(1.0, far / math.sqrt(flat * flat + dz * dz)) - 2.0 * cell / flat  # share of the ray
            # from cell to cell (Amanatides and Woo, 1987)
            c, r = math.floor((eye[0] - x) / cell), math.floor((eye[1] - y) / cell)
            sx, sy = (1 if dx > 0.0 else -1), (1 if dy > 0.0 else -1)
            tx = (x + (c + (sx > 0)) * cell - eye[0]) / dx if dx != 0.0 else math.inf
            ty = (y + (r + (sy > 0)) * cell - eye[1]) / dy if dy != 0.0 else math.inf
            wx = cell / abs(dx) if dx != 0.0 else math.inf
            wy = cell / abs(dy) if dy != 0.0 else math.inf
            t = 0.0
            while t < end:
                leave = min(tx, ty)
                if 0 <= r < rows and 0 <= c < columns:
                    z = eye[2] + dz * (t if dz < 0.0 else leave)
                    ceiling[r, c] = min(ceiling[r, c], z)
                t = leave
                if tx < ty:
                    tx, c = tx + wx, c + sx
                else:
                    ty, r = ty + wy, r + sy


@kernel(examples=lambda: [(_layers(), _told(), 2.5, 9e-6, 3)])
def take(known: Layers, told: Told, gate: float, least: float, patience: int) -> None:
    """Take in what a cloud says of each cell: forget what it sees through, then fuse heights by their variances.

    What stood upright is gone, too, where the cloud shows ground and nothing upright.

    Args:
        known: Of the map, changed.
        told: By the cloud.
        gate: Heights farther apart in standard deviations contradict.
        least: What one cloud says has no smaller variance, and no height is believed to have one [m²].
        patience: Clouds in a row that contradict a height until the cell begins anew.
    """
    rows, columns = known.height.shape
    for r in range(rows):
        for c in range(columns):
            through = told.ceiling[r, c]
            known.ceiling[r, c] = min(known.ceiling[r, c], through)
            seen = told.weight[r, c] > 0.0
            z = told.moment[r, c] / told.weight[r, c] if seen else 0.0
            variance = max(1.0 / told.weight[r, c], least) if seen else 0.0
            old, sure = known.height[r, c], known.variance[r, c]
            doubt = max(sure, least)
            alike = seen and abs(z - old) <= gate * math.sqrt(doubt + variance)  # a height that is none is not
            if not alike and old - 3.0 * math.sqrt(doubt) > through:
                old = math.nan
                known.height[r, c], known.variance[r, c], known.against[r, c] = math.nan, math.nan, 0
            upright = told.upright[r, c] if told.steep[r, c] >= _FEW else -math.inf
            if known.upright[r, c] > max(through, upright) or (seen and upright == -math.inf):
                known.upright[r, c] = math.nan
            if upright > -math.inf and not known.upright[r, c] >= upright:
                known.upright[r, c] = upright
            if not seen:
                continue
            if alike:
                known.height[r, c] = (sure * z + variance * old) / (sure + variance)
                known.variance[r, c] = sure * variance / (sure + variance)
                known.against[r, c] = 0
                widen(known.covered[r, c], told.covered[r, c, 0], told.covered[r, c, 2])
                widen(known.covered[r, c], told.covered[r, c, 1], told.covered[r, c, 3])
                continue
            known.against[r, c] += 1
            if math.isnan(old) or known.against[r, c] >= patience:
                known.height[r, c], known.variance[r, c], known.against[r, c] = z, variance, 0
                known.covered[r, c] = told.covered[r, c]
