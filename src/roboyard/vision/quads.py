"""Corners of a dark square to parts of a pixel: edges across its sides, lines through them, where the lines meet."""

from __future__ import annotations

import numpy as np

from roboyard.geometry.arrays import U8, Array
from roboyard.vision.discs.outline import edge_along

_POINTS = 16
_ENDS = 0.12
"""Share of a side left out at each end, where the neighbouring side blurs it."""
_AROUND = 1.6
"""How far from the first guess edges are looked for [px], but for a twentieth of a side where that is more."""
_FAR = 0.5


def sharpen_quad(light: U8, corners: Array) -> Array:
    """Corners (4, 2) of a square that is light in ``light`` [px]; as they were given where a side has no clear edge.

    Args:
        light: (h, w), inverted for dark squares.
        corners: (4, 2) within a pixel or two, in their order round the square either way.
    """
    middle = corners.mean(axis=0)
    lines = []
    for k in range(4):
        line = _side(light, corners[k], corners[(k + 1) % 4], middle)
        if line is None:
            return corners
        lines.append(line)
    out = np.empty((4, 2))
    for k in range(4):
        # corner k lies on the side that ends there and on the one that begins there
        out[k] = np.linalg.solve(np.array([lines[k - 1][:2], lines[k][:2]]), -np.array([lines[k - 1][2], lines[k][2]]))
    near = np.abs(out - corners).max() < 3.0
    return out if near else corners


def _side(light: U8, start: Array, end: Array, middle: Array) -> Array | None:
    """Line (3,), a x + b y + c = 0 with a normal of length 1, through the edges of a side."""
    along = end - start
    length = float(np.linalg.norm(along))
    normal = np.array([along[1], -along[0]]) / length
    if normal @ (middle - start) > 0.0:
        normal = -normal
    around = max(_AROUND, 0.05 * length)
    found, values, points = np.zeros(2), np.zeros(200), []
    for share in np.linspace(_ENDS, 1.0 - _ENDS, _POINTS):
        x, y = (float(value) for value in start + share * along)
        edge_along(light, x, y, float(normal[0]), float(normal[1]), -around, around, 0.25, 1.0, values, found)
        if found[1] > 1.0:
            points.append([x + found[0] * normal[0], y + found[0] * normal[1]])
    if len(points) < _POINTS // 2:
        return None
    kept = np.array(points)
    for _ in range(3):
        centre = kept.mean(axis=0)
        direction = np.linalg.svd(kept - centre)[2][0]
        across = np.array([-direction[1], direction[0]])
        off = np.abs((kept - centre) @ across)
        if off.max() <= _FAR or len(kept) < 6:
            break
        kept = kept[off <= max(_FAR, float(np.median(off)))]
    return np.array([*across, -float(across @ centre)])
