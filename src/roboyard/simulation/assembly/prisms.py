"""Prisms over outlines of any form, taken apart into convex ones: hollows stay hollow, holes stay holes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import DescriptionError
from roboyard.geometry import polygons

Points = NDArray[np.float64]
Outline = Sequence[Sequence[float]]

TINY = 1e-8
"""Trapezoids smaller than this are left out [m²]."""
MAX_CORNERS = 2000
"""Of all outlines together; the time grows with the square."""


def convex_prisms(outlines: Sequence[Outline], height: float) -> list[Points]:
    """Corners of convex prisms that together fill what lies inside an odd number of outlines, from 0 to ``height``.

    The plane is cut at the height of every corner and crossing; between two cuts the inside consists of trapezoids,
    and those between the same two edges are one (trapezoidal decomposition, de Berg et al., Computational Geometry,
    2008, section 6.1).

    Args:
        outlines: Closed outlines, each (n, 2) [m].
        height: [m].

    Returns:
        Each (k, 3) [m].

    Raises:
        DescriptionError: too many corners, or nothing inside.
    """
    edges = _edges(outlines)
    if len(edges) > MAX_CORNERS:
        raise DescriptionError(f"a polyline has {len(edges)} corners", valid=f"at most {MAX_CORNERS}")
    trapezoids = _trapezoids(edges)
    if not trapezoids:
        raise DescriptionError("the points of a polyline lie on a line", valid="an area")
    flat = np.concatenate(trapezoids)
    hull = _hull(flat)
    if sum(abs(polygons.signed_area(one)) for one in trapezoids) >= abs(polygons.signed_area(hull)) * (1.0 - 1e-9):
        trapezoids = [hull]
    return [
        np.concatenate([np.c_[one, np.zeros(len(one))], np.c_[one, np.full(len(one), height)]]) for one in trapezoids
    ]


def _edges(outlines: Sequence[Outline]) -> Points:
    """(n, 2, 2) the edges that rise, lower end first; level ones bound nothing that the cuts do not."""
    found = []
    for outline in outlines:
        points = np.asarray(outline, float)
        both = np.stack([points, np.roll(points, -1, axis=0)], axis=1)
        up = both[:, 0, 1] < both[:, 1, 1]
        found.append(np.where(up[:, None, None], both, both[:, ::-1]))
    edges = np.concatenate(found) if found else np.zeros((0, 2, 2))
    return edges[edges[:, 0, 1] < edges[:, 1, 1]]


def _trapezoids(edges: Points) -> list[Points]:
    cuts = np.unique(np.concatenate([edges[:, :, 1].ravel(), _crossings(edges)]))
    open_ones: dict[tuple[int, int], float] = {}
    found: list[Points] = []

    def close(pair: tuple[int, int], low: float, high: float) -> None:
        corners = np.array(
            [[_x(edges[one], y), y] for one, y in ((pair[0], low), (pair[1], low), (pair[1], high), (pair[0], high))]
        )
        if abs(polygons.signed_area(corners)) > TINY:
            found.append(corners)

    for low, high in pairwise(cuts):
        middle = 0.5 * (low + high)
        here = np.flatnonzero((edges[:, 0, 1] < middle) & (edges[:, 1, 1] > middle))
        order = here[np.argsort([_x(edges[one], middle) for one in here], kind="stable")]
        pairs = {(int(a), int(b)) for a, b in zip(order[::2], order[1::2], strict=False)}
        for pair in [pair for pair in open_ones if pair not in pairs]:
            close(pair, open_ones.pop(pair), float(low))
        for pair in sorted(pairs):
            open_ones.setdefault(pair, float(low))
    for pair, start in open_ones.items():
        close(pair, start, float(cuts[-1]))
    return found


def _x(edge: Points, y: float) -> float:
    (x0, y0), (x1, y1) = edge
    return float(x0 + (x1 - x0) * (y - y0) / (y1 - y0))


def _crossings(edges: Points) -> Points:
    """Heights at which two edges cross."""
    found = []
    start, along = edges[:, 0], edges[:, 1] - edges[:, 0]
    for index in range(len(edges)):
        others = slice(index + 1, None)
        across = along[index, 0] * along[others, 1] - along[index, 1] * along[others, 0]
        between = start[others] - start[index]
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (between[:, 0] * along[others, 1] - between[:, 1] * along[others, 0]) / across
            u = (between[:, 0] * along[index, 1] - between[:, 1] * along[index, 0]) / across
        met = (t > 0.0) & (t < 1.0) & (u > 0.0) & (u < 1.0)
        found.append(start[index, 1] + t[met] * along[index, 1])
    return np.concatenate(found) if found else np.zeros(0)


def _hull(points: Points) -> Points:
    from scipy.spatial import ConvexHull, QhullError

    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except (QhullError, ValueError):
        raise DescriptionError("the points of a polyline lie on a line", valid="an area") from None
