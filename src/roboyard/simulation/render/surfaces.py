"""Compiled loops over hits: where and which way the surface is, how open it lies, and where pictures have edges."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import F32, I32
from roboyard.simulation.render.single import ONE, SIXTEEN, TINY, ZERO, Cases, F, floats, integers

BACKWARD = F(0.15)  # cosine beyond which a normal is taken for turned away, not for a smooth one near the outline
HIDES = F(0.9)  # how dark a moving piece makes what it stands on


def _surface_examples() -> Cases:
    hits = floats(1, 3), floats(1, 3), integers(1), floats(1), floats(1, 2)
    scene = floats(1, 3, 3), integers(1), floats(1, 3, 3), floats(1, 3)
    yield (*hits, *scene, integers(1), integers(1, 2), integers(1), floats(1))


@kernel(examples=_surface_examples, error_model="numpy")
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


def _darken_examples() -> Cases:
    yield floats(1, 3), floats(1, 3), integers(1), integers(1), floats(1, 4), floats(1)


@kernel(examples=_darken_examples, error_model="numpy")
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


def _edge_examples() -> Cases:
    yield integers(1), integers(1), floats(1, 3), np.zeros(1, np.bool_), 1, 1


@kernel(examples=_edge_examples, error_model="numpy")
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
