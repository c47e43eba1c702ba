"""How far points are from a surface, exactly; and how far two surfaces are from each other. Compiled."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.description.mesh_tools.surface import Points, Surface

LEAF = 8
"""Triangles in a leaf of the tree."""


def _example_boxes() -> Iterable[tuple[Any, ...]]:
    yield (np.zeros((1, 3, 3)), np.zeros(1, np.int64), np.zeros((1, 2), np.int64), np.zeros((1, 2, 3)))


@kernel(examples=_example_boxes)
def _boxes(
    triangles: NDArray[np.float64], order: NDArray[np.int64], spans: NDArray[np.int64], boxes: NDArray[np.float64]
) -> None:
    """Bounding boxes (k, 2, 3) of the tree's spans of triangles."""
    for node in range(len(spans)):
        for axis in range(3):
            boxes[node, 0, axis] = math.inf
            boxes[node, 1, axis] = -math.inf
        for place in range(spans[node, 0], spans[node, 1]):
            for corner in range(3):
                for axis in range(3):
                    value = triangles[order[place], corner, axis]
                    boxes[node, 0, axis] = min(boxes[node, 0, axis], value)
                    boxes[node, 1, axis] = max(boxes[node, 1, axis], value)


@kernel
def _square_to_triangle(p: NDArray[np.float64], t: NDArray[np.float64]) -> float:
    """Squared distance of a point from a triangle (C. Ericson, Real-Time Collision Detection, 5.1.5)."""
    ab = t[1] - t[0]
    ac = t[2] - t[0]
    ap = p - t[0]
    d1, d2 = ab @ ap, ac @ ap
    nearest = t[0]
    bp = p - t[1]
    d3, d4 = ab @ bp, ac @ bp
    cp = p - t[2]
    d5, d6 = ab @ cp, ac @ cp
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2
    if d1 <= 0.0 and d2 <= 0.0:
        nearest = t[0]
    elif d3 >= 0.0 and d4 <= d3:
        nearest = t[1]
    elif vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        nearest = t[0] + ab * (d1 / (d1 - d3) if d1 > d3 else 0.0)
    elif d6 >= 0.0 and d5 <= d6:
        nearest = t[2]
    elif vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        nearest = t[0] + ac * (d2 / (d2 - d6) if d2 > d6 else 0.0)
    elif va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        total = (d4 - d3) + (d5 - d6)
        nearest = t[1] + (t[2] - t[1]) * ((d4 - d3) / total if total > 0.0 else 0.0)
    else:
        total = va + vb + vc
        nearest = t[0] + ab * (vb / total) + ac * (vc / total)
    away = p - nearest
    square: float = away @ away
    return square


@kernel
def _square_to_box(p: NDArray[np.float64], box: NDArray[np.float64]) -> float:
    """Squared distance of a point from a box."""
    total = 0.0
    for axis in range(3):
        away = max(box[0, axis] - p[axis], 0.0, p[axis] - box[1, axis])
        total += away * away
    return total


def _example_search() -> Iterable[tuple[Any, ...]]:
    whole = np.zeros((1, 2), np.int64)
    yield (np.zeros((1, 3)), np.zeros((1, 3, 3)), np.zeros(1, np.int64), whole, whole, np.zeros((1, 2, 3)), np.zeros(1))


@kernel(examples=_example_search)
def _search(
    points: NDArray[np.float64],
    triangles: NDArray[np.float64],
    order: NDArray[np.int64],
    spans: NDArray[np.int64],
    children: NDArray[np.int64],
    boxes: NDArray[np.float64],
    squares: NDArray[np.float64],
) -> None:
    """Squared distance of every point from the nearest triangle; nodes nearer first."""
    stack = np.empty(128, np.int64)
    for i in range(len(points)):
        p, best = points[i], math.inf
        stack[0] = 0
        depth = 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            if _square_to_box(p, boxes[node]) >= best:
                continue
            if children[node, 0] < 0:
                for place in range(spans[node, 0], spans[node, 1]):
                    best = min(best, _square_to_triangle(p, triangles[order[place]]))
                continue
            left, right = children[node, 0], children[node, 1]
            if _square_to_box(p, boxes[left]) < _square_to_box(p, boxes[right]):
                left, right = right, left
            stack[depth] = left
            stack[depth + 1] = right
            depth += 2
        squares[i] = best


class Nearness:
    """A tree over a surface's triangles that answers how far points are from it."""

    def __init__(self, surface: Surface) -> None:
        self._triangles = np.ascontiguousarray(surface.triangles)
        centres = self._triangles.mean(axis=1)
        self._order = np.arange(len(centres))
        spans, children = [(0, len(centres))], [[-1, -1]]
        waiting = [0]
        while waiting:
            node = waiting.pop()
            start, end = spans[node]
            if end - start <= LEAF:
                continue
            own = self._order[start:end]
            axis = int(np.argmax(np.ptp(centres[own], axis=0)))
            middle = (end - start) // 2
            self._order[start:end] = own[np.argpartition(centres[own, axis], middle)]
            children[node] = [len(spans), len(spans) + 1]
            spans += [(start, start + middle), (start + middle, end)]
            children += [[-1, -1], [-1, -1]]
            waiting += children[node]
        self._spans, self._children = np.array(spans, np.int64), np.array(children, np.int64)
        self._boxes = np.empty((len(spans), 2, 3))
        _boxes(self._triangles, self._order, self._spans, self._boxes)

    def distances(self, points: Points) -> NDArray[np.float64]:
        """(n,) distances of points (n, 3) [m]."""
        squares = np.empty(len(points))
        points = np.ascontiguousarray(points, float)
        _search(points, self._triangles, self._order, self._spans, self._children, self._boxes, squares)
        return np.sqrt(squares)


def scattered(surface: Surface, count: int) -> Points:
    """(n, 3) points on a surface [m]: its vertices, and about ``count`` more spread evenly; the same each time."""
    areas = np.linalg.norm(surface.normals, axis=1)
    if count <= 0 or areas.sum() <= 0.0:
        return surface.vertices
    shares = np.cumsum(areas) / areas.sum()
    number = np.arange(count)
    owner = np.minimum(np.searchsorted(shares, (number + 0.5) / count), len(areas) - 1)
    u, v = (number * 0.7548776662466927) % 1.0, (number * 0.5698402909980532) % 1.0  # M. Roberts' R2 sequence
    flip = u + v > 1.0
    u, v = np.where(flip, 1.0 - u, u), np.where(flip, 1.0 - v, v)
    a, b, c = surface.triangles[owner].transpose(1, 0, 2)
    used = surface.vertices[np.unique(surface.faces)]
    return np.concatenate([used, a + u[:, None] * (b - a) + v[:, None] * (c - a)])


def hausdorff(one: Surface, other: Surface, samples: int = 20_000) -> float:
    """Largest distance of either surface from the other [m], at their vertices and ``samples`` points of each."""
    there = Nearness(other).distances(scattered(one, samples)).max()
    return float(max(there, Nearness(one).distances(scattered(other, samples)).max()))
