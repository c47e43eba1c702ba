"""Sound of sonars: patches that a pulse falls on, ways it takes, and when a receiver says "echo"; compiled."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

EDGE = 0.15
"""A beam that goes farther by more than this share than a plane through its neighbours has passed an edge: it echoes.
"""
IN_SIGHT = 0.9
"""Share of a way that must be free for sound to come along it: housings and the grid of beams take the rest."""


class Patches(NamedTuple):
    """What a pulse falls on, one patch for each beam of a cone that meets something.

    Attributes:
        ways: (n,) from the pulse's origin [m].
        points: (n, 3) in the world [m].
        normals: (n, 3) of the surfaces, of unit length or zero; either side.
        edges: (n,) whether the patch lies at the edge of something, which scatters sound to all sides.
    """

    ways: Floats
    points: Floats
    normals: Floats
    edges: Mask


def _patch_examples() -> Iterator[tuple[Any, ...]]:
    yield np.ones((3, 3)), np.ones((3, 3, 3)), np.ones((3, 3), np.bool_), np.zeros(3), np.eye(3), 3.0


@kernel(examples=_patch_examples, error_model="numpy")
def patches_of(
    ways: Floats, grid: Floats, cone: Mask, origin: Floats, turn: Floats, reach: float
) -> tuple[Floats, Floats, Floats, Mask]:
    """The fields of `Patches`, where the beams of a cone end.

    Args:
        ways: (rows, columns) of the beams [m]; infinite where nothing is met.
        grid: (rows, columns, 3) their directions in the sensor's frame.
        cone: (rows, columns) which of them belong to the cone.
        origin: (3,) of the beams in the world [m].
        turn: (3, 3) world from the sensor's frame.
        reach: How far the beams go [m]: what they do not meet may be right behind.
    """
    rows, columns = ways.shape
    ends = np.zeros((rows, columns, 3))
    count = 0
    for r in range(rows):
        for c in range(columns):
            if math.isfinite(ways[r, c]):
                count += 1 if cone[r, c] else 0
                for k in range(3):
                    ends[r, c, k] = grid[r, c, k] * ways[r, c]
    lengths, points, normals, edges = (
        np.empty(count),
        np.empty((count, 3)),
        np.empty((count, 3)),
        np.zeros(count, np.bool_),
    )
    i = 0
    for r in range(rows):
        for c in range(columns):
            way = ways[r, c]
            if not (cone[r, c] and math.isfinite(way)):
                continue
            up, down, left, right = max(r - 1, 0), min(r + 1, rows - 1), max(c - 1, 0), min(c + 1, columns - 1)
            ax, ay, az = ends[down, c] - ends[up, c]
            bx, by, bz = ends[r, right] - ends[r, left]
            nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
            length = math.sqrt(nx * nx + ny * ny + nz * nz)
            scale = 1.0 / length if length > 0.0 else 1.0
            lengths[i] = way
            for k in range(3):
                points[i, k] = (
                    origin[k] + turn[k, 0] * ends[r, c, 0] + turn[k, 1] * ends[r, c, 1] + turn[k, 2] * ends[r, c, 2]
                )
                normals[i, k] = scale * (turn[k, 0] * nx + turn[k, 1] * ny + turn[k, 2] * nz)
            edges[i] = (
                _ends(ways, r, c, 1, 0, reach)
                or _ends(ways, r, c, -1, 0, reach)
                or _ends(ways, r, c, 0, 1, reach)
                or _ends(ways, r, c, 0, -1, reach)
            )
            i += 1
    return lengths, points, normals, edges


@kernel(error_model="numpy")
def _ends(ways: Floats, r: int, c: int, down: int, right: int, reach: float) -> bool:
    """Whether a surface ends between a beam and its neighbour: that one goes farther than the surface would.

    The inverse way to a plane changes by equal amounts from beam to beam, but for the cosines of small angles.
    """
    rows, columns = ways.shape
    nr, nc = r + down, c + right
    if not (0 <= nr < rows and 0 <= nc < columns):
        return False
    here, there = 1.0 / ways[r, c], 1.0 / min(ways[nr, nc], reach)
    if there * (1.0 + EDGE) >= here:
        return False
    br, bc, fr, fc = r - down, c - right, nr + down, nc + right
    if 0 <= br < rows and 0 <= bc < columns:
        expected = 2.0 * here - 1.0 / min(ways[br, bc], reach)
    elif 0 <= fr < rows and 0 <= fc < columns:
        expected = 0.5 * (here + 1.0 / min(ways[fr, fc], reach))
    else:
        expected = here
    return bool(there * (1.0 + EDGE) < min(expected, here))


def _hears_examples() -> Iterator[tuple[Any, ...]]:
    yield 1.0, 0.0, 0.0, 1.0, np.eye(3), np.ones((3, 3)), 0.26


@kernel(examples=_hears_examples, error_model="numpy")
def hears(x: float, y: float, z: float, far: float, turn: Floats, free: Floats, half_angle: float) -> bool:
    """Whether sound from a point comes straight: ``x``, ``y``, ``z`` [m] from the ear (world axes), ``far`` away.

    Args:
        x: See above; so ``y``, ``z`` and ``far``.
        y: See there.
        z: See there.
        far: See there.
        turn: (3, 3) world from the ear's frame, which listens along x.
        free: (rows, columns) ways of the ear's own beams [m].
        half_angle: Of the ear's cone [rad].
    """
    rows, columns = free.shape
    ahead = turn[0, 0] * x + turn[1, 0] * y + turn[2, 0] * z
    if ahead < math.cos(half_angle) * far:
        return False
    left = turn[0, 1] * x + turn[1, 1] * y + turn[2, 1] * z
    up = turn[0, 2] * x + turn[1, 2] * y + turn[2, 2] * z
    row = (math.asin(min(max(up / far, -1.0), 1.0)) if far > 0.0 else 0.0) + half_angle
    column = math.atan2(left, ahead) + half_angle
    r = min(max(round(row / (2.0 * half_angle) * (rows - 1)), 0), rows - 1)
    c = min(max(round(column / (2.0 * half_angle) * (columns - 1)), 0), columns - 1)
    return bool(free[int(r), int(c)] >= IN_SIGHT * far)


def _arrival_examples() -> Iterator[tuple[Any, ...]]:
    yield (
        np.ones(2), np.ones((2, 3)), np.ones((2, 3)), np.ones(2, np.bool_), np.zeros(3), np.zeros(3), np.eye(3),
        np.ones((3, 3)), 0.26, 0.6, False,
    )  # fmt: skip


@kernel(examples=_arrival_examples, error_model="numpy")
def arrivals(
    lengths: Floats,
    points: Floats,
    normals: Floats,
    edges: Mask,
    origin: Floats,
    ear: Floats,
    turn: Floats,
    free: Floats,
    half_angle: float,
    grazing: float,
    own: bool,
) -> tuple[Floats, Floats]:
    """Ways (n,) of the patches' sound to an ear, and the last parts (n,) of them [m]; infinite where none comes.

    A patch throws sound on as a mirror does, up to a tilt of ``grazing``; edges throw it to all sides.

    Args:
        lengths: See `Patches`; so ``points``, ``normals`` and ``edges``.
        points: See there.
        normals: See there.
        edges: See there.
        origin: (3,) of the pulse in the world [m].
        ear: (3,) in the world [m].
        turn: (3, 3) world from the ear's frame, which listens along x.
        free: (rows, columns) ways of the ear's own beams [m].
        half_angle: Of the ear's cone [rad].
        grazing: Of the ear [rad].
        own: The ear sent the pulse itself: what it fell on, it hears.
    """
    count = len(lengths)
    ways, away = np.full(count, np.inf), np.full(count, np.inf)
    least = math.cos(grazing)
    for i in range(count):
        x, y, z = ear[0] - points[i, 0], ear[1] - points[i, 1], ear[2] - points[i, 2]
        far = math.sqrt(x * x + y * y + z * z)
        if not own and not hears(-x, -y, -z, far, turn, free, half_angle):
            continue
        if not edges[i]:
            ex, ey, ez = x, y, z
            if far > 0.0:
                ex, ey, ez = x / far, y / far, z / far
            ox, oy, oz = origin[0] - points[i, 0], origin[1] - points[i, 1], origin[2] - points[i, 2]
            length = math.sqrt(ox * ox + oy * oy + oz * oz)
            if length > 0.0:
                ex, ey, ez = ex + ox / length, ey + oy / length, ez + oz / length
            back = math.sqrt(ex * ex + ey * ey + ez * ez)
            along = abs(normals[i, 0] * ex + normals[i, 1] * ey + normals[i, 2] * ez)
            if along < least * (back if back > 0.0 else 1.0):
                continue
        away[i] = lengths[i] if own else far
        ways[i] = lengths[i] + away[i]
    return ways, away


def detected(ways: Floats, energies: Floats, pulse: float, threshold: float) -> float:
    """Way [m] after which a receiver that adds up energy says "echo"; infinite if it never does.

    Args:
        ways: (n,) that the pulse's front goes to reach it [m].
        energies: (n,) that arrive on them by the end of the pulse.
        pulse: Length of the pulse [m].
        threshold: What is enough; 0: the first arrival.
    """
    if threshold <= 0.0 or not len(ways):
        return float(np.min(ways, initial=np.inf))
    instants = np.concatenate([ways, ways + pulse])
    order = np.argsort(instants, kind="stable")
    at, power = instants[order], np.cumsum(np.concatenate([energies, -energies])[order]) / pulse
    gained = np.concatenate([[0.0], np.cumsum(power[:-1] * np.diff(at))])
    enough = np.flatnonzero(gained >= threshold)
    if not len(enough):
        return np.inf
    k = int(enough[0])  # not 0, where nothing is gained yet
    return float(at[k] - (gained[k] - threshold) / power[k - 1])
