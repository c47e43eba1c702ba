"""Compiled loops that turn hits into light: lamps, shadows, openness, sky, haze.

Light is linear.  Lambert surfaces under a hemisphere of sky and ground, lamps with one shadow a point (that of the
lamp which matters most there), a touch of highlight, haze in the far.

Points are treated in blocks: a block's numbers lie row by row in one array, and each loop over a row is free of
branches, so that the compiler turns it into vector instructions.  The order of operations at each point does not
depend on the block, so neither does its color.
"""

from __future__ import annotations

import math

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import F32, I32
from roboyard.simulation.render.single import ONE, QUARTER, THREE, TINY, TWO, ZERO, Cases, F, floats, integers

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

BLOCK = 128
"""Points that are treated together: a constant, so that the compiler knows that rows do not overlap."""
# Starts of the rows of a block's array.  Given: point, normal, ray direction, openness, looks, the lamp in whose shadow
# a point lies (-1: none) and the share of that lamp's light that is lost.
_X, _Y, _Z, _NX, _NY, _NZ, _DX, _DY, _DZ, _OPEN, _GLOSS, _SHARP, _DARK, _SHADE = (BLOCK * row for row in range(14))
# Of one lamp at each point: direction to it, distance, brightness that arrives.
_LX, _LY, _LZ, _LENGTH, _BRIGHT = (BLOCK * row for row in range(14, 19))
# Results of shading.
_RED, _GREEN, _BLUE, _SHINE = (BLOCK * row for row in range(19, 23))
# Results of choosing the lamp that matters most: its number (-1: none), its value, the second value, direction, length.
_LIGHT, _BEST, _SECOND, _TX, _TY, _TZ, _FAR = (BLOCK * row for row in range(19, 26))
_ROWS = 26


def _block_examples() -> Cases:
    yield 0, floats(1, LAMP_COLUMNS), floats(_ROWS * BLOCK)


@kernel(examples=_block_examples, error_model="numpy")
def _light_block(k: int, lamps: F32, w: F32) -> None:
    """Compute direction to lamp ``k``, its distance and the brightness that arrives, for each point of a block."""
    if lamps[k, SUN] > ZERO:
        sx, sy, sz = -lamps[k, AIM], -lamps[k, AIM + 1], -lamps[k, AIM + 2]
        for j in range(BLOCK):
            w[_LX + j] = sx
            w[_LY + j] = sy
            w[_LZ + j] = sz
            w[_LENGTH + j] = FAR_AWAY
            w[_BRIGHT + j] = ONE
        return
    px, py, pz = lamps[k, PLACE], lamps[k, PLACE + 1], lamps[k, PLACE + 2]
    fade, cutoff = lamps[k, FADE], lamps[k, CUTOFF]
    for j in range(BLOCK):
        dx, dy, dz = px - w[_X + j], py - w[_Y + j], pz - w[_Z + j]
        distance = math.sqrt(dx * dx + dy * dy + dz * dz)
        w[_LX + j] = dx / distance
        w[_LY + j] = dy / distance
        w[_LZ + j] = dz / distance
        w[_LENGTH + j] = distance
        w[_BRIGHT + j] = ONE
    if fade > ZERO:
        limit = fade * fade * FADED
        for j in range(BLOCK):
            dx, dy, dz = px - w[_X + j], py - w[_Y + j], pz - w[_Z + j]
            ratio = w[_LENGTH + j] / fade
            faded = ONE / (ONE + ratio * ratio) - ONE / (ONE + FADED)
            w[_BRIGHT + j] = ZERO if dx * dx + dy * dy + dz * dz > limit else faded
    if cutoff > -ONE:
        ax, ay, az = lamps[k, AIM], lamps[k, AIM + 1], lamps[k, AIM + 2]
        for j in range(BLOCK):
            inside = -(w[_LX + j] * ax + w[_LY + j] * ay + w[_LZ + j] * az)
            soft = min(max((inside - cutoff) / (QUARTER * (ONE - cutoff)), ZERO), ONE)
            w[_BRIGHT + j] = w[_BRIGHT + j] * (soft * soft * (THREE - TWO * soft))


@kernel(examples=_block_examples, error_model="numpy")
def _choose_block(k: int, lamps: F32, w: F32) -> None:
    """Keep lamp ``k`` at those points of a block where it matters more than the lamps before it."""
    green, number = lamps[k, COLOUR + 1], F(k)
    for j in range(BLOCK):
        lx, ly, lz = w[_LX + j], w[_LY + j], w[_LZ + j]
        value = w[_BRIGHT + j] * (w[_NX + j] * lx + w[_NY + j] * ly + w[_NZ + j] * lz) * green
        best, second, lamp = w[_BEST + j], w[_SECOND + j], w[_LIGHT + j]
        better = value > best
        behind = best if lamp >= ZERO else second
        beaten = value if value > second else second
        tx, ty, tz, far = w[_TX + j], w[_TY + j], w[_TZ + j], w[_FAR + j]
        w[_SECOND + j] = behind if better else beaten
        w[_BEST + j] = value if better else best
        w[_LIGHT + j] = number if better else lamp
        w[_TX + j] = lx if better else tx
        w[_TY + j] = ly if better else ty
        w[_TZ + j] = lz if better else tz
        w[_FAR + j] = w[_LENGTH + j] if better else far


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
    w = np.zeros(_ROWS * BLOCK, F)
    used = 0
    for first in range(0, count, BLOCK):
        n_points = min(BLOCK, count - first)
        for j in range(n_points):
            i = first + j
            w[_X + j], w[_Y + j], w[_Z + j] = points[i, 0], points[i, 1], points[i, 2]
            w[_NX + j], w[_NY + j], w[_NZ + j] = normals[i, 0], normals[i, 1], normals[i, 2]
        for j in range(BLOCK):
            w[_BEST + j] = FAINT
            w[_SECOND + j] = ZERO
            w[_LIGHT + j] = -ONE
        for k in range(len(lamps)):
            if lamps[k, SHADOW] > ZERO:
                _light_block(k, lamps, w)
                _choose_block(k, lamps, w)
        for j in range(n_points):
            i = first + j
            light = np.int32(w[_LIGHT + j])
            if hits[i] < 0 or light < 0:
                continue
            best = w[_BEST + j]
            key[i] = light
            weights[i] = min(ONE, (best - w[_SECOND + j]) / (SEAM * best))
            rows[used] = i
            towards[used, 0], towards[used, 1], towards[used, 2] = w[_TX + j], w[_TY + j], w[_TZ + j]
            lengths[used] = w[_FAR + j]
            starts[used, 0] = points[i, 0] + LIFT * normals[i, 0]
            starts[used, 1] = points[i, 1] + LIFT * normals[i, 1]
            starts[used, 2] = points[i, 2] + LIFT * normals[i, 2]
            used += 1
    return rows[:used], starts[:used], towards[:used], lengths[:used], key, weights


@kernel(examples=_block_examples, error_model="numpy")
def _add_block(k: int, lights: F32, w: F32) -> None:
    """Add the light of lamp ``k``, and its highlight, at each point of a block."""
    red, green, blue, number = lights[k, COLOUR], lights[k, COLOUR + 1], lights[k, COLOUR + 2], F(k)
    for j in range(BLOCK):
        lx, ly, lz = w[_LX + j], w[_LY + j], w[_LZ + j]
        nx, ny, nz = w[_NX + j], w[_NY + j], w[_NZ + j]
        arrives, opened = w[_BRIGHT + j], w[_OPEN + j]
        cosine = nx * lx + ny * ly + nz * lz
        unlit = (cosine <= ZERO) | (arrives <= ZERO)
        shaded = arrives * (ONE - w[_SHADE + j])
        bright = shaded if w[_DARK + j] == number else arrives
        # A little of the openness goes into direct light too: corners stay soft in full sun.
        bright *= DIRECT + (ONE - DIRECT) * opened
        more_red, more_green, more_blue = red * cosine * bright, green * cosine * bright, blue * cosine * bright
        w[_RED + j] += ZERO if unlit else more_red
        w[_GREEN + j] += ZERO if unlit else more_green
        w[_BLUE + j] += ZERO if unlit else more_blue
        hx, hy, hz = lx - w[_DX + j], ly - w[_DY + j], lz - w[_DZ + j]
        half = (hx * nx + hy * ny + hz * nz) / math.sqrt(hx * hx + hy * hy + hz * hz + TINY)
        gloss, miss = w[_GLOSS + j], w[_SHARP + j] * (ONE - half)
        glint = bright * gloss / (ONE + miss * miss * miss)
        dull = unlit | (gloss <= ZERO) | (half <= HIGHLIGHT_FROM)
        w[_SHINE + j] += ZERO if dull else glint


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
    w = np.zeros(_ROWS * BLOCK, F)
    for first in range(0, count, BLOCK):
        n_points, n_hits = min(BLOCK, count - first), 0
        for j in range(n_points):
            i = first + j
            opened, nz = openness[i], normals[i, 2]
            w[_X + j], w[_Y + j], w[_Z + j] = points[i, 0], points[i, 1], points[i, 2]
            w[_NX + j], w[_NY + j], w[_NZ + j] = normals[i, 0], normals[i, 1], nz
            w[_DX + j], w[_DY + j], w[_DZ + j] = directions[i, 0], directions[i, 1], directions[i, 2]
            w[_OPEN + j], w[_DARK + j], w[_SHADE + j] = opened, F(dark_lamp[i]), dark_share[i]
            sky = (SKY_LEVEL + SKY_TILT * nz) * opened
            w[_RED + j], w[_GREEN + j], w[_BLUE + j] = surround[0, 0] * sky, surround[0, 1] * sky, surround[0, 2] * sky
            w[_SHINE + j] = ZERO
            if hits[i] >= 0:
                geom = geoms[hits[i]]
                w[_GLOSS + j], w[_SHARP + j] = looks[geom, 4], looks[geom, 5]
                n_hits += 1
            else:
                w[_GLOSS + j] = ZERO
        if n_hits > 0:
            for k in range(len(lamps)):
                _light_block(k, lamps, w)
                _add_block(k, lamps, w)
        for j in range(n_points):
            i = first + j
            if hits[i] < 0:
                up = math.sqrt(min(max(directions[i, 2], ZERO), ONE))
                for c in range(3):
                    out[i, c] = surround[2, c] + (surround[1, c] - surround[2, c]) * up
                continue
            geom, shine = geoms[hits[i]], w[_SHINE + j]
            far = distances[i] * HAZE
            clear = ONE / (ONE + far * far)
            glow = looks[geom, 3]
            out[i, 0] = (looks[geom, 0] * (w[_RED + j] + glow) + shine) * clear + surround[2, 0] * (ONE - clear)
            out[i, 1] = (looks[geom, 1] * (w[_GREEN + j] + glow) + shine) * clear + surround[2, 1] * (ONE - clear)
            out[i, 2] = (looks[geom, 2] * (w[_BLUE + j] + glow) + shine) * clear + surround[2, 2] * (ONE - clear)
    return out
