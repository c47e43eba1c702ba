"""Compiled loops of the ray caster that turn hits into light: normals, lamps, openness, sky, tone.

Light is linear until ``to_bytes``.  Lambert surfaces under a hemisphere of sky and ground, lamps with one shadow a
point (that of the lamp which matters most there), a touch of Blinn's highlight, haze in the far.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import kernel

F32 = NDArray[np.float32]
I32 = NDArray[np.int32]

# Columns of a lamp's row, see ``lamps.Lamps``.
SUN, PLACE, AIM, COLOUR, CUTOFF, FADE, SHADOW, LAMP_COLUMNS = 0, 1, 4, 7, 10, 11, 12, 13

# Single-precision constants: a Python float would turn every sum of the loops into double precision.
F = np.float32
ZERO, ONE, TWO, THREE, QUARTER, SIXTEEN, TINY = F(0), F(1), F(2), F(3), F(0.25), F(16), F(1e-9)
FAR_AWAY = F(1e4)
FADED = F(40)  # a lamp that fades is dark where the square of its distance is this many half-brightness ones
BACKWARD = F(0.15)  # cosine beyond which a normal is taken for turned away, not for a smooth one near the outline
LIFT = F(0.004)  # shadow rays start this far off the surface [m]
FAINT = F(1e-3)  # light below this needs no shadow
SEAM = F(0.3)  # lamps this much less bright than the brightest soften its shadow
HIDES = F(0.9)  # how dark a moving piece makes what it stands on
DIRECT = F(0.65)  # share of lamps' light that corners do not lose
SKY_LEVEL, SKY_TILT = F(0.68), F(0.32)  # light from the side, and how much more from above
HIGHLIGHT_FROM = F(0.85)
HAZE = F(1 / 130)  # [1/m]
TONE_LEVELS = 8192
TONE_TOP = 12.0


@kernel(error_model="numpy")
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


@kernel(error_model="numpy")
def surfaces(
    origins: F32,
    directions: F32,
    hits: I32,
    distances: F32,
    inside: F32,
    corner_normals: F32,
    piece_of: I32,
    rotations: F32,
    translations: F32,
    open_start: I32,
    open_cells: I32,
    open_spots: I32,
    open_values: F32,
) -> tuple[F32, F32, F32]:
    """Point (n, 3) and shading normal (n, 3) in the world, and openness (n,), of each hit."""
    count = len(hits)
    points, normals, openness = np.empty((count, 3), F), np.empty((count, 3), F), np.ones(count, F)
    for i in range(count):
        hit = hits[i]
        t = distances[i] if hit >= 0 else ZERO
        x, y, z = (
            origins[i, 0] + t * directions[i, 0],
            origins[i, 1] + t * directions[i, 1],
            origins[i, 2] + t * directions[i, 2],
        )
        points[i, 0], points[i, 1], points[i, 2] = x, y, z
        if hit < 0:
            normals[i, 0], normals[i, 1], normals[i, 2] = ZERO, ZERO, ONE
            continue
        piece = piece_of[hit]
        n = corner_normals[hit]
        start = open_start[hit]
        smooth = n[0, 0] != n[1, 0] or n[0, 1] != n[1, 1] or n[0, 0] != n[2, 0] or n[0, 1] != n[2, 1]
        nx, ny, nz = n[0, 0], n[0, 1], n[0, 2]
        if smooth or start >= 0:
            u, v = inside[i, 0], inside[i, 1]
            if smooth:
                w = max(ONE - u - v, ZERO)
                nx = w * n[0, 0] + u * n[1, 0] + v * n[2, 0]
                ny = w * n[0, 1] + u * n[1, 1] + v * n[2, 1]
                nz = w * n[0, 2] + u * n[1, 2] + v * n[2, 2]
                inverse = ONE / math.sqrt(nx * nx + ny * ny + nz * nz)
                nx, ny, nz = nx * inverse, ny * inverse, nz * inverse
            if start >= 0:
                rows, cols = open_cells[hit, 0], open_cells[hit, 1]
                fu, fv = u * rows, v * cols
                iu, iv = min(int(fu), rows - 1), min(int(fv), cols - 1)
                fu, fv = fu - iu, fv - iv
                at = start + iu * (cols + 1) + iv
                to = at + cols + 1
                low = open_values[open_spots[at]] * (ONE - fv) + open_values[open_spots[at + 1]] * fv
                high = open_values[open_spots[to]] * (ONE - fv) + open_values[open_spots[to + 1]] * fv
                openness[i] = low * (ONE - fu) + high * fu
        if piece > 0:
            r = rotations[piece]
            nx, ny, nz = (
                r[0, 0] * nx + r[0, 1] * ny + r[0, 2] * nz,
                r[1, 0] * nx + r[1, 1] * ny + r[1, 2] * nz,
                r[2, 0] * nx + r[2, 1] * ny + r[2, 2] * nz,
            )
        # Meshes are often wound the wrong way round: light the side that is looked at.
        if nx * directions[i, 0] + ny * directions[i, 1] + nz * directions[i, 2] > BACKWARD:
            nx, ny, nz = -nx, -ny, -nz
        normals[i, 0], normals[i, 1], normals[i, 2] = nx, ny, nz
    return points, normals, openness


@kernel(error_model="numpy")
def darken_below(points: F32, normals: F32, hits: I32, piece_of: I32, balls: F32, openness: F32) -> None:
    """Lower the openness near moving pieces, each taken as a ball (x, y, z, radius) that hides its share of the sky.

    A piece does not darken itself.  Changes ``openness``.
    """
    for k in range(len(balls)):
        radius = balls[k, 3]
        if radius <= ZERO:
            continue
        squared, limit = radius * radius, SIXTEEN * radius * radius
        cx, cy, cz = balls[k, 0], balls[k, 1], balls[k, 2]
        for i in range(len(hits)):
            dx, dy, dz = cx - points[i, 0], cy - points[i, 1], cz - points[i, 2]
            away = dx * dx + dy * dy + dz * dz
            if away > limit or hits[i] < 0 or piece_of[hits[i]] == k:
                continue
            cosine = (dx * normals[i, 0] + dy * normals[i, 1] + dz * normals[i, 2]) / math.sqrt(away + TINY)
            if cosine > ZERO:
                hidden = cosine * squared / max(away, squared)
                openness[i] *= ONE - HIDES * hidden * (ONE - away / limit)


@kernel(error_model="numpy")
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


@kernel(error_model="numpy")
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


@kernel(error_model="numpy")
def to_bytes(light: F32, table: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Linear light (n, 3) through the tone curve ``table`` (see ``tone_table``) to picture bytes (n, 3)."""
    out = np.empty(light.shape, np.uint8)
    top = np.int32(len(table) - 1)
    scale = F(top * top / TONE_TOP)
    for i in range(len(light)):
        for c in range(3):
            out[i, c] = table[min(np.int32(math.sqrt(max(light[i, c] * scale, ZERO))), top)]
    return out


def tone_table() -> NDArray[np.uint8]:
    """Picture byte for light (k / (TONE_LEVELS − 1))² · TONE_TOP: soft shoulder, then the sRGB curve."""
    x = np.linspace(0.0, 1.0, TONE_LEVELS) ** 2 * TONE_TOP
    white = 3.2
    y = np.clip(x * (1 + x / white**2) / (1 + 0.55 * x), 0.0, 1.0)
    encoded = np.where(y <= 0.0031308, 12.92 * y, 1.055 * y ** (1 / 2.4) - 0.055)
    return np.asarray(np.round(encoded * 255), dtype=np.uint8)


def light_for(colour: ArrayLike, table: NDArray[np.uint8]) -> F32:
    """Linear light that the tone curve shows as this sRGB colour 0 … 1."""
    level = np.searchsorted(table, np.asarray(colour, dtype=np.float64) * 255.0)
    return ((level / (TONE_LEVELS - 1)) ** 2 * TONE_TOP).astype(np.float32)


def linear(colour: ArrayLike) -> F32:
    """SRGB components 0 … 1 as linear light."""
    c = np.asarray(colour, dtype=np.float64)
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4).astype(np.float32)


@kernel(error_model="numpy")
def edge_pixels(hits: I32, geoms: I32, normals: F32, lit: NDArray[np.bool_], width: int, height: int) -> I32:
    """Pixels (row-major numbers) that differ from a neighbour in geom, in normal or in being lit."""
    chosen = np.empty(width * height, np.int32)
    marked = np.zeros(width * height, np.bool_)
    for row in range(height):
        for col in range(width):
            i = row * width + col
            for step in range(2):
                if (step == 0 and col + 1 >= width) or (step == 1 and row + 1 >= height):
                    continue
                j = i + 1 if step == 0 else i + width
                a, b = hits[i], hits[j]
                if a == b and lit[i] == lit[j]:
                    continue
                differs = (a < 0) != (b < 0) or lit[i] != lit[j]
                if not differs and a >= 0:
                    dot = normals[i, 0] * normals[j, 0] + normals[i, 1] * normals[j, 1] + normals[i, 2] * normals[j, 2]
                    differs = geoms[a] != geoms[b] or dot < 0.9
                if differs:
                    marked[i] = True
                    marked[j] = True
    count = 0
    for i in range(width * height):
        if marked[i]:
            chosen[count] = i
            count += 1
    return chosen[:count].copy()
