"""Where people can walk in a world: straight where nothing stands in the way, else round it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.geometry.arrays import Array
from roboyard.grids.distance_field import distance_transform, squared_distance_transform
from roboyard.simulation.engine import Simulation
from roboyard.simulation.flesh_loop import FROM, TO
from roboyard.simulation.floor_plan import floor_plan, heights_of
from roboyard.simulation.people.movement import ACCELERATION, RefusedError
from roboyard.simulation.people.route import Route
from roboyard.simulation.people.way_search import find_way, line_price

Place = tuple[float, float]
HEIGHTS = (0.2, 0.6, 1.1)
"""At which people would touch something [m]; what is too thin for any of them is cut at a height of its own."""
_HEAD = 1.7
"""What hangs higher is over people's heads [m]."""
_THIN = 1e-3
"""So far below its top something thin is cut, at most [m]."""
ROOM = 0.20
"""Half of the width that somebody needs [m]."""
RESOLUTION = 0.05
_FAR = 2.0
_FIRST = 0.5
"""Somebody who stands closer to something than `ROOM` may leave it: the first part of a way is not looked at [m]."""
_EASY = 0.5
"""Farther from everything than this nobody minds it [m]."""
_TIGHT = 3.0
"""What the narrowest way costs, in easy ones."""
_LEAVING = 20.0
"""What leaving something costs that is too close."""
_OTHERS = {"person": 0.55, "robot": 0.6}
"""How far from the middle of somebody who stands, or of a robot, people keep where they can [m]."""
_STANDS = 1e-3
"""Whose middle moves less from one of their steps to the next stands [m]."""
_CROSSING = 8.0
"""What it costs to get through there."""
_MOST_CELLS = 25_000_000


class Cut(NamedTuple):
    """A world cut at `cut_heights`.

    Attributes:
        clearance: (rows, columns) how far what stands still is from each cell's middle [m].
        origin: Its corner [m].
    """

    clearance: NDArray[np.floating]
    origin: Place


def cut_heights(spans: Array) -> list[float]:
    """`HEIGHTS`, and as few others as it takes to meet everything between the lowest of them and people's heads.

    Args:
        spans: (n, 2) lowest and highest point of each thing [m].
    """
    heights = list(HEIGHTS)
    for low, high in sorted(spans.tolist(), key=lambda span: span[1]):
        if high > HEIGHTS[0] and low < _HEAD and not any(low < height < high for height in heights):
            heights.append(high - min(_THIN, 0.5 * (high - low)))
    return heights


class Ways:
    """The ways of a world; it is cut when they are first asked for, and anew when models come or go."""

    def __init__(self, simulation: Simulation) -> None:
        expect_kernels(squared_distance_transform)
        self._simulation = simulation
        self._cut: tuple[mujoco.MjModel, Cut] | None = None

    def route(self, start: Place, end: Place, name: str = "") -> Route:
        """How to walk from one place to another [m]: straight, or round what stands there, robots and people too.

        People and robots that drive are gone round where there is room, and not taken for walls: they move on.

        Args:
            start: Where.
            end: Where to.
            name: Whose body walks, which is in nobody's way.

        Raises:
            RefusedError: something stands at the end, or there is no way.
        """
        why, others = self.blocked(start, end), self._others(name)
        straight = np.array([start, end], dtype=np.float64)
        if not why and not any(_passes(straight, place, far) for place, far in others):
            return Route(straight, ACCELERATION)
        if why and self.blocked(end, end):
            raise RefusedError(f"({end[0]:.2f}, {end[1]:.2f}) cannot be reached: {why}", "unreachable")
        prices, origin = self._prices(start, end, others)
        way = find_way(prices, _cell(start, origin), _cell(end, origin))
        if not len(way):
            raise RefusedError(
                f"({end[0]:.2f}, {end[1]:.2f}) cannot be reached: {why}, and no way leads round it", "unreachable"
            )
        corners = np.array(origin) + RESOLUTION * (way[:, ::-1] + 0.5)
        corners[0], corners[-1] = start, end

        def free(places: Array) -> bool:
            rows = (places - origin) / RESOLUTION - 0.5
            return all(
                math.isfinite(line_price(prices, a[1], a[0], b[1], b[0]))
                for a, b in zip(rows.tolist(), rows[1:].tolist(), strict=False)
            )

        return Route.through(corners, ACCELERATION, free)

    def blocked(self, start: Place, end: Place) -> str:
        """Why nobody can walk straight from one place to another [m]; empty where they can."""
        clearance, origin = self._clearance()
        rows, columns = clearance.shape
        length = math.dist(start, end)
        for s in np.linspace(0.0, length, max(math.ceil(length / (0.5 * RESOLUTION)), 1) + 1)[::-1].tolist():
            share = s / length if length else 0.0
            x, y = (a + share * (b - a) for a, b in zip(start, end, strict=True))
            row, column = _cell((x, y), origin)
            if not (0 <= row < rows and 0 <= column < columns) or clearance[row, column] >= ROOM:
                continue
            if s < length and s < _FIRST:
                continue
            return f"something stands at ({x:.2f}, {y:.2f})"
        return ""

    def nearest(self, place: Place) -> Place | None:
        """The place of what stands nearest, roughly, within two metres [m]; None: nothing does."""
        clearance, origin = self._clearance()
        k, n = _cell(place, origin)
        if not (1 <= k < clearance.shape[0] - 1 and 1 <= n < clearance.shape[1] - 1) or not clearance[k, n] < _FAR:
            return None
        y = float(clearance[k + 1, n] - clearance[k - 1, n])
        x = float(clearance[k, n + 1] - clearance[k, n - 1])
        length = math.hypot(x, y)
        if length < 1e-9:
            return None
        far = float(clearance[k, n]) / length
        return place[0] - far * x, place[1] - far * y

    # -- what stands there ---------------------------------------------------------------------------------------------
    def _clearance(self) -> Cut:
        model = self._simulation.model
        if self._cut is None or self._cut[0] is not model:
            heights = cut_heights(heights_of(model))
            frames = [floor_plan(model, height=height, resolution=0.5, margin=_FAR).extent for height in heights]
            low_x, high_x = min(f[0] for f in frames), max(f[1] for f in frames)
            low_y, high_y = min(f[2] for f in frames), max(f[3] for f in frames)
            bounds = (low_x, high_x, low_y, high_y)
            plans = [floor_plan(model, height=h, resolution=RESOLUTION, bounds=bounds).occupied for h in heights]
            solid = reduce(np.logical_or, plans)
            far = np.full(solid.shape, math.inf) if not solid.any() else distance_transform(solid, RESOLUTION)
            self._cut = model, Cut(far, (low_x, low_y))
        return self._cut[1]

    def _others(self, name: str) -> list[tuple[Place, float]]:
        """Where people stand and robots are that can drive, and how far to keep off each."""
        simulation, found = self._simulation, []
        flesh, model = simulation.flesh, simulation.model
        for who, rows in flesh.rows.items():
            pelvis = next(iter(rows.values()))
            part, (x, y, _) = flesh.parts[pelvis], flesh.places[pelvis].tolist()
            if who != name and np.linalg.norm(part[TO : TO + 2] - part[FROM : FROM + 2]) < _STANDS:
                found.append(((x, y), _OTHERS["person"]))
        for who, handle in simulation.models.items():
            joint = int(model.body_jntadr[simulation.placement(who).bodies[0]]) if handle.is_robot else -1
            if joint >= 0 and model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
                x, y, _ = simulation.truth(who).pose.xyz
                found.append(((float(x), float(y)), _OTHERS["robot"]))
        return found

    def _prices(self, start: Place, end: Place, others: Iterable[tuple[Place, float]]) -> tuple[Array, Place]:
        """What walking over each cell costs, of a grid that also holds both ends of a way, and its corner.

        Raises RefusedError where that would be a whole country.
        """
        cut = self._clearance()
        rows, columns = cut.clearance.shape
        low = [
            math.floor((min(a, b, o + _FAR) - _FAR - o) / RESOLUTION)
            for a, b, o in zip(start, end, cut.origin, strict=True)
        ]
        high = [
            max(size, math.ceil((max(a, b) + _FAR - o) / RESOLUTION))
            for a, b, o, size in zip(start, end, cut.origin, (columns, rows), strict=True)
        ]
        width, height = high[0] - low[0], high[1] - low[1]
        if width * height > _MOST_CELLS:
            raise RefusedError(f"({end[0]:g}, {end[1]:g}) is too far to look for a way", "unreachable")
        clearance = np.full((height, width), math.inf)
        clearance[-low[1] : rows - low[1], -low[0] : columns - low[0]] = cut.clearance
        origin = cut.origin[0] + RESOLUTION * low[0], cut.origin[1] + RESOLUTION * low[1]
        narrow = np.clip((_EASY - clearance) / (_EASY - ROOM), 0.0, 1.0)
        prices = 1.0 + (_TIGHT - 1.0) * narrow**2
        x, y = (o + RESOLUTION * (np.arange(n) + 0.5) for o, n in zip(origin, (width, height), strict=True))
        for (at_x, at_y), far in others:
            prices[np.hypot(x[None] - at_x, y[:, None] - at_y) < far] += _CROSSING
        leaving = np.hypot(x[None] - start[0], y[:, None] - start[1]) < _FIRST
        prices[clearance < ROOM] = math.inf
        prices[leaving & (clearance < ROOM) & (clearance > 0.0)] = _LEAVING
        row, column = _cell(start, origin)
        prices[row, column] = min(prices[row, column], _LEAVING)
        return prices, origin


def _cell(place: Place, origin: Place) -> tuple[int, int]:
    """Row and column."""
    return math.floor((place[1] - origin[1]) / RESOLUTION), math.floor((place[0] - origin[0]) / RESOLUTION)


def _passes(line: Array, place: Place, far: float) -> bool:
    """Whether a straight way (2, 2) comes as near to a place, which is at neither of its ends."""
    way, at = line[1] - line[0], np.asarray(place)
    share = float(np.clip(np.dot(at - line[0], way) / max(float(way @ way), 1e-12), 0.0, 1.0))
    near = float(np.linalg.norm(line[0] + share * way - at))
    return near < far and min(float(np.linalg.norm(end - at)) for end in line) > near + 1e-9
