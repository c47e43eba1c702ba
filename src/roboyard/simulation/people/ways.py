"""Where people can walk: straight ways between what stands still in a world."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from roboyard.grids.distance import distance_to
from roboyard.simulation.engine import Simulation
from roboyard.simulation.floor_plan import floor_plan

HEIGHTS = (0.2, 0.6, 1.1)
"""At which people would touch something [m]."""
ROOM = 0.20
"""Half of the width that somebody needs [m]."""
RESOLUTION = 0.05
_FAR = 2.0
_FIRST = 0.5
"""Somebody who stands closer to something than `ROOM` may leave it: the first part of a way is not looked at [m]."""


class Ways:
    """The ways of a world; it is cut when they are first asked for, and anew when models come or go."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._cut: tuple[object, NDArray[np.floating], tuple[float, float]] | None = None

    def blocked(self, start: tuple[float, float], end: tuple[float, float]) -> str:
        """Why nobody can walk straight from one place to another [m]; empty where they can."""
        clearance, origin = self._clearance()
        rows, columns = clearance.shape
        length = math.dist(start, end)
        for s in np.linspace(0.0, length, max(math.ceil(length / (0.5 * RESOLUTION)), 1) + 1)[::-1].tolist():
            share = s / length if length else 0.0
            x, y = (a + share * (b - a) for a, b in zip(start, end, strict=True))
            column, row = math.floor((x - origin[0]) / RESOLUTION), math.floor((y - origin[1]) / RESOLUTION)
            if not (0 <= row < rows and 0 <= column < columns) or clearance[row, column] >= ROOM:
                continue
            if s < length and s < _FIRST:
                continue
            return f"something stands at ({x:.2f}, {y:.2f})"
        return ""

    def nearest(self, place: tuple[float, float]) -> tuple[float, float] | None:
        """The place of what stands nearest, roughly, within two metres [m]; None: nothing does."""
        clearance, origin = self._clearance()
        column, row = ((a - b) / RESOLUTION for a, b in zip(place, origin, strict=True))
        k, n = math.floor(row), math.floor(column)
        if not (1 <= k < clearance.shape[0] - 1 and 1 <= n < clearance.shape[1] - 1) or not clearance[k, n] < _FAR:
            return None
        y = float(clearance[k + 1, n] - clearance[k - 1, n])
        x = float(clearance[k, n + 1] - clearance[k, n - 1])
        length = math.hypot(x, y)
        if length < 1e-9:
            return None
        far = float(clearance[k, n]) / length
        return place[0] - far * x, place[1] - far * y

    def _clearance(self) -> tuple[NDArray[np.floating], tuple[float, float]]:
        model = self._simulation.model
        if self._cut is None or self._cut[0] is not model:
            frames = [floor_plan(model, height=height, resolution=0.5, margin=_FAR).extent for height in HEIGHTS]
            low_x, high_x = min(f[0] for f in frames), max(f[1] for f in frames)
            low_y, high_y = min(f[2] for f in frames), max(f[3] for f in frames)
            bounds = (low_x, high_x, low_y, high_y)
            plans = [floor_plan(model, height=h, resolution=RESOLUTION, bounds=bounds).occupied for h in HEIGHTS]
            solid = reduce(np.logical_or, plans)
            far = np.full(solid.shape, math.inf) if not solid.any() else distance_to(solid, RESOLUTION)
            self._cut = model, far, (low_x, low_y)
        return self._cut[1], self._cut[2]
