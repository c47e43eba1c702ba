"""Circles as MATLAB's ``imfindcircles`` finds them (method "TwoStage"), which a thesis found its discs with.

Every edge votes for the middles that its gradient points at, at all radii of a range; middles are where the votes, a
share of a whole circle's, stand out by enough; a radius is where the gradient about a middle is strongest.  Own code
after MathWorks's description and T. J. Atherton, D. J. Kerbyson, "Size invariant circle detection", Image and Vision
Computing 17 (1999); H. K. Yuen and others, "Comparative study of Hough Transform methods for circle finding", Image and
Vision Computing 8 (1990).
"""

from __future__ import annotations

import math

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import F32, I64, U8, Array
from roboyard.vision.discs.config import DiscConfig
from roboyard.vision.opencv import opencv

_STEP = 0.5
"""Between radii that are voted for [px]."""
_SLACK = 1.0
"""Beyond the range of radii [px]: edges are some pixels thick, and vote for a middle from both of its sides."""
_LEAST = 1e-6
"""Of a circle's votes that make a peak."""


def circles_by_votes(grey: U8, config: DiscConfig) -> Array:
    """Columns, rows and radii (n, 3) [px] of circles, the most votes first; radii are whole numbers.

    Args:
        grey: (h, w).
        config: Polarity, radii, and sensitivity: the share of a circle's votes that may be missing.
    """
    cv2 = opencv()
    down, across = (
        cv2.Sobel(grey, cv2.CV_32F, dx, dy, ksize=3, borderType=cv2.BORDER_REPLICATE) for dx, dy in ((0, 1), (1, 0))
    )
    gradient = cv2.magnitude(across, down)
    votes = _votes(gradient, across, down, config)
    middles = _peaks(votes, 1.0 - config.sensitivity)
    rows = [(x, y, _radius(gradient, x, y, config)) for x, y in middles]
    return np.array(rows, dtype=np.float64).reshape(-1, 3)


def _votes(gradient: F32, across: F32, down: F32, config: DiscConfig) -> F32:
    """(h, w) for each pixel as a middle: 1 where a whole circle's edge votes for it."""
    height, width = gradient.shape
    rows, columns = np.nonzero(gradient > _otsu(gradient))
    inward = 1.0 if config.polarity == "white" else -1.0
    length = gradient[rows, columns]
    u, v = inward * across[rows, columns] / length, inward * down[rows, columns] / length
    radii = np.arange(config.radius_min - _SLACK, config.radius_max + _SLACK + 0.5 * _STEP, _STEP, dtype=np.float32)
    x = np.rint(columns[:, None] + u[:, None] * radii).astype(np.intp)
    y = np.rint(rows[:, None] + v[:, None] * radii).astype(np.intp)
    share = np.broadcast_to(1.0 / (2.0 * math.pi * radii), x.shape)
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    counted = np.bincount((y * width + x)[inside], weights=share[inside], minlength=height * width)
    return counted.reshape(height, width).astype(np.float32)


def _otsu(gradient: F32) -> float:
    """The threshold that parts weak from strong gradients best (N. Otsu, IEEE SMC 9, 1979), in 256 levels."""
    top = float(gradient.max())
    if top <= 0.0:
        return 0.0
    levels = opencv().convertScaleAbs(gradient, alpha=255.0 / top)
    level, _ = opencv().threshold(levels, 0, 255, opencv().THRESH_OTSU)
    return float(level) / 255.0 * top


def _peaks(votes: F32, least: float) -> list[tuple[float, float]]:
    """Columns and rows of peaks that reach ``least`` and stand out by as much, the highest first."""
    smooth = opencv().medianBlur(votes, 5).ravel()
    lit = np.flatnonzero(smooth > 0.0)
    order = lit[np.argsort(-smooth[lit], kind="stable")]
    found = _stand_out(smooth, votes.ravel(), order, votes.shape[1], max(least, _LEAST))
    return [(float(x), float(y)) for _, x, y in found[np.argsort(-found[:, 0], kind="stable")]]


def _examples() -> list[tuple[object, ...]]:
    flat = np.zeros(12, dtype=np.float32)
    return [(flat, flat, np.zeros(0, dtype=np.int64), 4, 0.3)]


@kernel(examples=_examples, error_model="numpy")
def _stand_out(smooth: F32, votes: F32, order: I64, width: int, least: float) -> Array:
    """Height, column and row (n, 3) of each peak that one has to go down from by ``least`` to get to a higher one.

    The ground is flooded from above: pixels come in falling ``order``, each joins the peaks that it touches, and the
    lower of two that meet is forgotten unless it stands out.  A peak's place is the middle of the votes down to
    ``least`` below it.
    """
    size = smooth.size
    parent = np.full(size, -1, dtype=np.int64)
    top = np.zeros(size)
    sums = np.zeros((size, 3))
    found = np.zeros((order.size, 3))
    count = 0
    for p in order:
        level = float(smooth[p])
        row, column = p // width, p % width
        parent[p], top[p] = p, level
        sums[p, 0], sums[p, 1], sums[p, 2] = votes[p], votes[p] * column, votes[p] * row
        for step in range(9):
            y, x = row + step // 3 - 1, column + step % 3 - 1
            q = y * width + x
            if x < 0 or x >= width or q < 0 or q >= size or parent[q] < 0:
                continue
            while parent[q] != q:
                parent[q] = parent[parent[q]]
                q = parent[q]
            root = p
            while parent[root] != root:
                root = parent[root]
            if q == root:
                continue
            high, low = (q, root) if top[q] >= top[root] else (root, q)
            if top[low] - level >= least and sums[low, 0] > 0.0:
                found[count] = top[low], sums[low, 1] / sums[low, 0], sums[low, 2] / sums[low, 0]
                count += 1
            elif top[high] - level <= least:
                sums[high] += sums[low]
            parent[low] = high
    for p in order:
        if parent[p] == p and top[p] >= least and sums[p, 0] > 0.0:
            found[count] = top[p], sums[p, 1] / sums[p, 0], sums[p, 2] / sums[p, 0]
            count += 1
    return found[:count]


def _radius(gradient: F32, x: float, y: float, config: DiscConfig) -> float:
    """Where the gradient about a middle is strongest, as a mean over the circle [px]."""
    low, high = math.floor(config.radius_min), math.ceil(config.radius_max)
    left, top = max(math.floor(x) - high, 0), max(math.floor(y) - high, 0)
    part = gradient[top : math.floor(y) + high + 2, left : math.floor(x) + high + 2]
    rows, columns = np.indices(part.shape)
    away = np.rint(np.hypot(columns + left - x, rows + top - y)).astype(np.intp)
    sums = np.bincount(away.ravel(), weights=part.ravel(), minlength=high + 1)[: high + 1]
    radii = np.arange(low, high + 1)
    return float(radii[np.argmax(sums[low:] / (2.0 * math.pi * radii))])
