"""Compiled loops that turn hits into light: lamps, shadows, openness, sky, haze.

Light is linear.  Lambert surfaces under a hemisphere of sky and ground, lamps with one shadow a point (that of the
lamp which matters most there), a touch of highlight, haze in the far.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from roboyard.compute import kernel
from roboyard.simulation.render.single import (
    F32,
    I32,
    ONE,
    QUARTER,
    THREE,
    TINY,
    TWO,
    ZERO,
    Cases,
    F,
    floats,
    integers,
)

# Columns of a lamp's row, see ``lamps.lamps_of``.
SUN, PLACE, AIM, COLOUR, CUTOFF, FADE, SHADOW, LAMP_COLUMNS = 0, 1, 4, 7, 10, 11, 12, 13

FAR_AWAY = F(1e4)
FADED = F(40)  # a lamp that fades is dark where the square of its distance is this many half-brightness ones
LIFT = F(0.004)  # shadow rays start this far off the surface [m]
FAINT = F(1e-3)  # light below this needs no shadow
SEAM = F(0.3)  # lamps this much less bright than the brightest soften its shadow
DIRECT = F(0.65)  # share of lamps' light that corners do not lose
SKY_LEVEL, SKY_TILT = F(0.68), F(0.32)  # light from the side, and how much more from above
HIGHLIGHT_FROM = F(0.85)
HAZE = F(1 / 130)  # [1/m]


def _lamp_examples() -> Cases:
    yield 0, F(0), F(0), F(0), floats(1, LAMP_COLUMNS)


@kernel(examples=_lamp_examples, error_model="numpy")
def _lamp_at(k: int, x: float, y: float, z: float, lamps: F32) -> tuple[Any, Any, Any, Any, Any]:
    """Direction to lamp k from a point, its distance, and the brightness that arrives there."""
    if lamps[k, SUN] > ZERO:
        return -lamps[k, AIM], -lamps[k, AIM + 1], -lamps[k, AIM + 2], FAR_AWAY, ONE
    dx, dy, dz = lamps[k, PLACE] - x, lamps[k, PLACE + 1] - y, lamps[k, PLACE + 2] - z
    squared = dx * dx + dy * dy + dz * dz
    if lamps[k, FADE] > ZERO and squared > lamps[k, FADE] * lamps[k, FADE] * FADED:
        return ZERO, ZERO, ZERO, FAR_AWAY, ZERO
    distance = math.sqrt(squared)
    dx, dy, dz = dx / distance, dy / distance, dz / distance
    bright = ONE
    if lamps[k, FADE] > ZERO:
        ratio = distance / lamps[k, FADE]
        bright = ONE / (ONE + ratio * ratio) - ONE / (ONE + FADED)
    cutoff = lamps[k, CUTOFF]
    if cutoff > -ONE:
        inside = -(dx * lamps[k, AIM] + dy * lamps[k, AIM + 1] + dz * lamps[k, AIM + 2])
        soft = min(max((inside - cutoff) / (QUARTER * (ONE - cutoff)), ZERO), ONE)
        bright *= soft * soft * (THREE - TWO * soft)
    return dx, dy, dz, distance, bright


def _shadow_examples() -> Cases:
    yield floats(1, 3), floats(1, 3), integers(1), floats(1, LAMP_COLUMNS)


@kernel(examples=_shadow_examples, error_model="numpy")
def shadow_rays(points: F32, normals: F32, hits: I32, lamps: F32) -> tuple[I32, F32, F32, F32, I32, F32]:
    """Rays from the hits to the lamp that lights each of them most.

    Returns:
        rows (m,) of the hits; origins, directions, lengths of their rays; and for all n hits the lamp (−1: none) and
        how far its shadow counts: 1, but less where a second lamp is nearly as bright, so that no seam appears.
    """
    count = len(hits)
    rows = np.empty(count, np.int32)
    starts, towards, lengths = np.empty((count, 3), F), np.empty((count, 3), F), np.empty(count, F)
    key, weights = np.full(count, -1, np.int32), np.ones(count, F)
    used = 0
    for i in range(count):
        if hits[i] < 0:
            continue
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        nx, ny, nz = normals[i, 0], normals[i, 1], normals[i, 2]
        best, second, lamp = FAINT, ZERO, -1
        for k in range(len(lamps)):
            if lamps[k, SHADOW] <= ZERO:
                continue
            lx, ly, lz, length, bright = _lamp_at(k, x, y, z, lamps)
            value = bright * (nx * lx + ny * ly + nz * lz) * lamps[k, COLOUR + 1]
            if value > best:
                if lamp >= 0:
                    second = best
                best, lamp = value, k
                towards[used, 0], towards[used, 1], towards[used, 2] = lx, ly, lz
                lengths[used] = length
            elif value > second:
                second = value
        if lamp < 0:
            continue
        key[i] = lamp
        weights[i] = min(ONE, (best - second) / (SEAM * best))
        rows[used] = i
        starts[used, 0], starts[used, 1], starts[used, 2] = x + LIFT * nx, y + LIFT * ny, z + LIFT * nz
        used += 1
    return rows[:used], starts[:used], towards[:used], lengths[:used], key, weights


def _shade_examples() -> Cases:
    hits = floats(1, 3), floats(1, 3), floats(1), floats(1, 3), integers(1), floats(1), integers(1)
    yield (*hits, floats(1, 6), integers(1), floats(1), floats(1, LAMP_COLUMNS), floats(3, 3))


@kernel(examples=_shade_examples, error_model="numpy")
def shade(
    points: F32,
    normals: F32,
    openness: F32,
    directions: F32,
    hits: I32,
    distances: F32,
    geoms: I32,
    looks: F32,
    dark_lamp: I32,
    dark_share: F32,
    lamps: F32,
    surround: F32,
) -> F32:
    """Linear colour (n, 3) seen along each ray.

    Args:
        points: (n, 3) hits in the world [m].
        normals: (n, 3) there.
        openness: (n,) 0 … 1.
        directions: (n, 3) of the rays.
        hits: (n,) triangle, −1: sky.
        distances: (n,) [m].
        geoms: (t,) geom of each triangle.
        looks: (g, 6) linear colour, glow, highlight's strength and sharpness of each geom.
        dark_lamp: (n,) the lamp whose light does not reach the hit, −1: all do.
        dark_share: (n,) which share of that lamp's light is lost.
        lamps: Rows as ``lamps.Lamps`` packs them.
        surround: (3, 3) linear: light from everywhere, sky overhead, sky at the horizon.
    """
    count = len(hits)
    out = np.empty((count, 3), F)
    for i in range(count):
        dx, dy, dz = directions[i, 0], directions[i, 1], directions[i, 2]
        if hits[i] < 0:
            up = math.sqrt(min(max(dz, ZERO), ONE))
            for c in range(3):
                out[i, c] = surround[2, c] + (surround[1, c] - surround[2, c]) * up
            continue
        geom, opened = geoms[hits[i]], openness[i]
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        nx, ny, nz = normals[i, 0], normals[i, 1], normals[i, 2]
        sky = (SKY_LEVEL + SKY_TILT * nz) * opened
        red, green, blue = surround[0, 0] * sky, surround[0, 1] * sky, surround[0, 2] * sky
        gloss, sharp, shine = looks[geom, 4], looks[geom, 5], ZERO
        for k in range(len(lamps)):
            lx, ly, lz, _, bright = _lamp_at(k, x, y, z, lamps)
            cosine = nx * lx + ny * ly + nz * lz
            if cosine <= ZERO or bright <= ZERO:
                continue
            if k == dark_lamp[i]:
                bright *= ONE - dark_share[i]
            # A little of the openness goes into direct light too: corners stay soft in full sun.
            bright *= DIRECT + (ONE - DIRECT) * opened
            red += lamps[k, COLOUR] * cosine * bright
            green += lamps[k, COLOUR + 1] * cosine * bright
            blue += lamps[k, COLOUR + 2] * cosine * bright
            if gloss > ZERO:
                hx, hy, hz = lx - dx, ly - dy, lz - dz
                half = (hx * nx + hy * ny + hz * nz) / math.sqrt(hx * hx + hy * hy + hz * hz + TINY)
                if half > HIGHLIGHT_FROM:
                    miss = sharp * (ONE - half)
                    shine += bright * gloss / (ONE + miss * miss * miss)
        far = distances[i] * HAZE
        clear = ONE / (ONE + far * far)
        glow = looks[geom, 3]
        out[i, 0] = (looks[geom, 0] * (red + glow) + shine) * clear + surround[2, 0] * (ONE - clear)
        out[i, 1] = (looks[geom, 1] * (green + glow) + shine) * clear + surround[2, 1] * (ONE - clear)
        out[i, 2] = (looks[geom, 2] * (blue + glow) + shine) * clear + surround[2, 2] * (ONE - clear)
    return out
