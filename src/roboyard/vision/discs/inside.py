"""What lies inside an ellipse: an even ring, and a mark in its middle?"""

from __future__ import annotations

import math

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import U8, Array
from roboyard.vision.discs.outline import RAYS, value_at

CONTRAST, UNEVEN, MARK, OFF_X, OFF_Y, SHARE, LIGHTER, OUTER, SLENDER, LEVEL = range(10)
TOLD = 10
"""What `look_inside` writes: see there."""
_RING = 0.62, 0.86


_GLANCE = 12


def _glance_examples() -> list[tuple[object, ...]]:
    return [(np.zeros((2, 2), np.uint8), np.zeros(5), np.zeros(2))]


@kernel(examples=_glance_examples, error_model="numpy")
def glance(image: U8, ellipse: Array, out: Array) -> None:
    """Level of a rough ellipse's ring, and the darkest pixel's near its middle: no mark there has more contrast.

    Args:
        image: Light where discs are.
        ellipse: (5,) middle, half axes, angle.
        out: (2,) written.
    """
    c, s = math.cos(ellipse[4]), math.sin(ellipse[4])
    total = 0.0
    for k in range(_GLANCE):
        turn = 2.0 * math.pi * k / _GLANCE
        u, v = 0.72 * ellipse[2] * math.cos(turn), 0.72 * ellipse[3] * math.sin(turn)
        total += value_at(image, ellipse[0] + c * u - s * v, ellipse[1] + s * u + c * v)
    out[0], out[1] = total / _GLANCE, 255.0
    for j in range(-1, 2):
        for i in range(-1, 2):
            out[1] = min(out[1], value_at(image, ellipse[0] + i, ellipse[1] + j))


def _examples() -> list[tuple[object, ...]]:
    return [(np.zeros((2, 2), np.uint8), np.zeros(5), np.zeros(RAYS), np.zeros(TOLD))]


@kernel(examples=_examples, error_model="numpy")
def look_inside(image: U8, ellipse: Array, weights: Array, out: Array) -> None:
    """Measure a disc's ring, mark and contrast.

    Args:
        image: Light where discs are.
        ellipse: (5,) middle, half axes, angle.
        weights: (RAYS,) 0 where the outline is not seen: something may lie over the ring there.
        out: (TOLD,) written: contrast of the ring to what lies just outside; standard deviation of the ring; contrast
            of the middle to the ring; place of the mark's weight from the ellipse's middle [px], two numbers; the
            mark's size as a share of the disc's; share of the outline that is seen at which it is lighter inside;
            weight of the mark that lies near the ring, as a share; spread of the mark along the ellipse's shorter
            axis over that along its longer one; level of the ring.
    """
    x0, y0, a, b, angle = ellipse[0], ellipse[1], ellipse[2], ellipse[3], ellipse[4]
    c, s = math.cos(angle), math.sin(angle)
    height, width = image.shape
    left, right = max(int(x0 - a), 0), min(int(x0 + a) + 1, width - 1)
    top, bottom = max(int(y0 - a), 0), min(int(y0 + a) + 1, height - 1)
    last = min(_RING[1], 1.0 - 1.3 / b)
    first = min(_RING[0], last - 0.15)
    total, squares, count = 0.0, 0.0, 0
    for row in range(top, bottom + 1):
        for column in range(left, right + 1):
            px, py = column - x0, row - y0
            u, v = (c * px + s * py) / a, (c * py - s * px) / b
            reach = u * u + v * v
            if first * first <= reach <= last * last:
                ray = int(math.atan2(v, u) * RAYS / (2.0 * math.pi) + RAYS + 0.5) % RAYS
                if not weights[ray] > 0.0:
                    continue
                value = float(image[row, column])
                total += value
                squares += value * value
                count += 1
    if count == 0:
        out[:] = 0.0
        return
    ring = total / count
    uneven = math.sqrt(max(squares / count - ring * ring, 0.0))
    weight, wx, wy, peak, outer, muu, mvv = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    middle, inner = 0.0, 0
    close = max(1.0, 0.12 * a)
    for row in range(top, bottom + 1):
        for column in range(left, right + 1):
            px, py = column - x0, row - y0
            reach = ((c * px + s * py) / a) ** 2 + ((c * py - s * px) / b) ** 2
            if reach < first * first:
                w = ring - float(image[row, column])
                if px * px + py * py <= close * close:
                    middle += w
                    inner += 1
                w = max(w - 2.0 * uneven, 0.0)
                weight += w
                wx += w * px
                wy += w * py
                peak = max(peak, w)
                muu += w * (c * px + s * py) ** 2
                mvv += w * (c * py - s * px) ** 2
                if reach > (0.8 * first) ** 2:
                    outer += w
    out[MARK] = middle / inner if inner > 0 else 0.0
    out[OFF_X] = wx / weight if weight > 0.0 else 0.0
    out[OFF_Y] = wy / weight if weight > 0.0 else 0.0
    out[SHARE] = math.sqrt(weight / (peak * math.pi * a * b)) if peak > 0.0 else 0.0
    out[OUTER] = outer / weight if weight > 0.0 else 0.0
    out[SLENDER] = math.sqrt(mvv / muu) if muu > 0.0 else 0.0
    out[LEVEL] = ring
    steps, lighter, seen = np.empty(RAYS), 0, 0
    for k in range(RAYS):
        turn = 2.0 * math.pi * k / RAYS
        u, v = math.cos(turn), math.sin(turn)
        inside = max(1.0 - 2.0 / b, 0.5)
        outside = 1.0 + 2.0 / b
        dx, dy = c * a * u - s * b * v, s * a * u + c * b * v
        step = value_at(image, x0 + inside * dx, y0 + inside * dy) - value_at(
            image, x0 + outside * dx, y0 + outside * dy
        )
        if weights[k] > 0.0:
            steps[seen] = step
            lighter += step > 0.0
            seen += 1
    out[CONTRAST] = np.median(steps[:seen])
    out[UNEVEN] = uneven
    out[LIGHTER] = lighter / seen
