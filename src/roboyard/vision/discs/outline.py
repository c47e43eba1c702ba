"""The outline of a disc with the sharpness of parts of a pixel: edges along rays, and the ellipse through them."""

from __future__ import annotations

import math

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import U8, Array
from roboyard.vision.discs.conics import fit_ellipse

RAYS = 64
_COARSE = 32
_SAMPLES = 200


def _at_examples() -> list[tuple[object, ...]]:
    return [(np.zeros((2, 2), np.uint8), 0.0, 0.0)]


@kernel(examples=_at_examples, error_model="numpy", inline="always")
def value_at(image: U8, x: float, y: float) -> float:
    """Grey level between pixels; the edge's beyond it."""
    height, width = image.shape
    x, y = min(max(x, 0.0), width - 1.001), min(max(y, 0.0), height - 1.001)
    i, j = int(x), int(y)
    a, b = x - i, y - j
    above: float = (1.0 - a) * image[j, i] + a * image[j, i + 1]
    below: float = (1.0 - a) * image[j + 1, i] + a * image[j + 1, i + 1]
    return (1.0 - b) * above + b * below


def _edge_examples() -> list[tuple[object, ...]]:
    return [(np.zeros((2, 2), np.uint8), 0.0, 0.0, 1.0, 0.0, 1.0, 2.0, 1.0, 1.0, np.zeros(_SAMPLES), np.zeros(2))]


@kernel(examples=_edge_examples, error_model="numpy")
def edge_along(
    image: U8, x: float, y: float, dx: float, dy: float, low: float, high: float, step: float, first: float,
    values: Array, out: Array,
) -> None:  # fmt: skip
    """Where a ray leaves the light for the dark.

    Args:
        image: Light where discs are.
        x: Start of the ray [px].
        y: [px].
        dx: Direction, of length 1.
        dy: Of length 1.
        low: Begin of the search along the ray [px].
        high: End [px].
        step: Between samples [px].
        first: The first edge is taken that is at least this share of the steepest; 1: the steepest.
        values: Room for samples.
        out: (2,) place along the ray [px] and steepness there [grey levels a pixel], written; 0 where none is.
    """
    out[0], out[1] = 0.0, 0.0
    count = min(int((high - low) / step) + 3, _SAMPLES)
    for k in range(count):
        way = low + (k - 1) * step
        values[k] = value_at(image, x + way * dx, y + way * dy)
    steepest = 0.0
    for k in range(1, count - 1):
        steepest = max(steepest, values[k - 1] - values[k + 1])
    if steepest <= 0.0:
        return
    least = first * steepest
    for k in range(1, count - 1):
        slope = values[k - 1] - values[k + 1]
        before = values[k - 2] - values[k] if k > 1 else slope - 1e-9
        after = values[k] - values[k + 2] if k < count - 2 else slope - 1e-9
        if slope >= least and slope >= before and slope > after:
            bend = before - 2.0 * slope + after
            shift = 0.5 * (before - after) / bend if bend < 0.0 else 0.0
            out[0] = low + (k - 1 + min(max(shift, -0.5), 0.5)) * step
            out[1] = slope / (2.0 * step)
            return


def _fit_examples() -> list[tuple[object, ...]]:
    points = np.zeros((8, 2))
    return [(points, np.zeros(8), 4, 1.0, np.zeros(5), np.zeros(8))]


@kernel(examples=_fit_examples, error_model="numpy")
def robust_ellipse(points: Array, weights: Array, rounds: int, least: float, ellipse: Array, off: Array) -> bool:
    """Ellipse through most of the points; those that lie far off lose their weight.

    Args:
        points: (n, 2) [px].
        weights: (n,), 0: left out; set to 0 for points that lie off.
        rounds: Of fitting and leaving out.
        least: Points so near the ellipse are kept in any case [px].
        ellipse: (5,) as `fit_ellipse` writes it.
        off: (n,) distance of each point from it, outwards, written [px].

    Returns:
        Whether there is one.
    """
    n = len(points)
    begun = weights.copy()
    sizes = np.empty(n)
    for _ in range(rounds):
        if not fit_ellipse(points, weights, ellipse):
            return False
        c, s = math.cos(ellipse[4]), math.sin(ellipse[4])
        used = 0
        for k in range(n):
            px, py = points[k, 0] - ellipse[0], points[k, 1] - ellipse[1]
            u, v = (c * px + s * py) / ellipse[2], (c * py - s * px) / ellipse[3]
            reach = math.hypot(u, v)
            # first order in the distance: the form's value over its slope
            slope = math.hypot(u / ellipse[2], v / ellipse[3])
            off[k] = (reach - 1.0) * reach / slope if slope > 0.0 else -ellipse[3]
            if weights[k] > 0.0:
                sizes[used] = abs(off[k])
                used += 1
        bound, changed = max(least, 2.2 * np.median(sizes[:used])), False
        for k in range(n):
            weight = begun[k] if abs(off[k]) <= bound else 0.0
            changed = changed or weight != weights[k]
            weights[k] = weight
        if not changed:
            return True
    return fit_ellipse(points, weights, ellipse)


def _rough_examples() -> list[tuple[object, ...]]:
    return [(np.zeros((2, 2), np.uint8), 0.0, 0.0, 2.0, 6.0, 1.0, np.zeros(5))]


@kernel(examples=_rough_examples, error_model="numpy")
def rough_outline(
    image: U8, x: float, y: float, radius_min: float, radius_max: float, steepness: float, ellipse: Array
) -> float:
    """A first ellipse about a place near a disc's middle.

    Args:
        image: Light where discs are.
        x: Near the middle [px].
        y: [px].
        radius_min: Of the shorter half axis [px].
        radius_max: Of the longer [px].
        steepness: Least, of an edge [grey levels a pixel].
        ellipse: (5,) as `fit_ellipse` writes it.

    Returns:
        Share of the rays that meet it; 0 if there is none.
    """
    points, weights, off = np.zeros((_COARSE, 2)), np.zeros(_COARSE), np.zeros(_COARSE)
    reach, found, values, sorted_ = np.zeros(_COARSE), np.zeros(2), np.zeros(_SAMPLES), np.zeros(_COARSE)
    used = 0
    for k in range(_COARSE):
        angle = 2.0 * math.pi * k / _COARSE
        dx, dy = math.cos(angle), math.sin(angle)
        edge_along(image, x, y, dx, dy, 0.5 * radius_min, 1.25 * radius_max + 1.0, 1.0, 0.5, values, found)
        if found[1] >= steepness:
            points[k, 0], points[k, 1], weights[k] = x + found[0] * dx, y + found[0] * dy, 1.0
            reach[k] = found[0]
            sorted_[used] = found[0]
            used += 1
        elif k + 1 - used > _COARSE // 2:
            return 0.0
    middle = np.median(sorted_[:used])
    for k in range(_COARSE):
        if weights[k] > 0.0 and not 0.55 * middle <= reach[k] <= 1.6 * middle:
            weights[k] = 0.0
            used -= 1
    if used < _COARSE // 2:
        return 0.0
    if not robust_ellipse(points, weights, 3, 1.0, ellipse, off):
        return 0.0
    near = 0
    for k in range(_COARSE):
        near += weights[k] > 0.0
    return near / _COARSE


def _fine_examples() -> list[tuple[object, ...]]:
    return [(np.zeros((2, 2), np.uint8), 1.0, np.zeros(5), np.zeros((RAYS, 2)), np.zeros(RAYS), np.zeros(3))]


@kernel(examples=_fine_examples, error_model="numpy")
def fine_outline(image: U8, steepness: float, ellipse: Array, points: Array, weights: Array, out: Array) -> bool:
    """Sharpen an ellipse: edges across it, from its middle outwards, twice.

    Args:
        image: Light where discs are.
        steepness: Least, of an edge [grey levels a pixel].
        ellipse: (5,) as `fit_ellipse` writes it, changed.
        points: (RAYS, 2) edges [px], written.
        weights: (RAYS,) 1 where an edge lies on the ellipse, written.
        out: (3,) share of the rays that meet the ellipse, root mean square of their distances from it [px],
            median steepness [grey levels a pixel], written.

    Returns:
        Whether there still is an ellipse.
    """
    found, values, off, steep = np.zeros(2), np.zeros(_SAMPLES), np.zeros(RAYS), np.zeros(RAYS)
    for turn in range(2):
        c, s = math.cos(ellipse[4]), math.sin(ellipse[4])
        a, b = ellipse[2], ellipse[3]
        around = max(2.0, 0.25 * b) if turn == 0 else max(1.6, 0.15 * b)
        every = 2 - turn  # half the rays will do at first
        used = 0
        weights[:] = 0.0
        for k in range(0, RAYS, every):
            angle = 2.0 * math.pi * k / RAYS
            u, v = math.cos(angle), math.sin(angle)
            # normal of the ellipse there
            nu, nv = u / a, v / b
            size = math.hypot(nu, nv)
            nu, nv = nu / size, nv / size
            dx, dy = c * nu - s * nv, s * nu + c * nv
            px, py = ellipse[0] + c * a * u - s * b * v, ellipse[1] + s * a * u + c * b * v
            edge_along(image, px, py, dx, dy, -around, around, 0.5, 0.7, values, found)
            points[k, 0], points[k, 1] = px + found[0] * dx, py + found[0] * dy
            steep[used] = found[1]
            weights[k] = found[1] if found[1] >= steepness else 0.0
            used += 1
        typical = np.median(steep[:used])
        near = 0.3 + 0.6 * steepness / max(typical, steepness)  # noise moves edges
        count = 0
        for k in range(RAYS):
            weights[k] = 1.0 if weights[k] > 0.12 * typical else 0.0
            count += weights[k] > 0.0
        if count < used // 2 or not robust_ellipse(points, weights, 2 + 2 * turn, near, ellipse, off):
            return False
        count = 0
        for k in range(RAYS):
            count += weights[k] > 0.0
        if count < used // 2:  # it will not do; most places end here
            return False
    total, squares = 0.0, 0.0
    for k in range(RAYS):
        if weights[k] > 0.0:
            total += 1.0
            squares += off[k] * off[k]
    out[0], out[1], out[2] = total / RAYS, math.sqrt(squares / total), typical
    return True
