"""Ground that steps are planned on: where feet may stand, how well, and how high the body goes over it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import distance_transform_edt, gaussian_filter, maximum_filter, minimum_filter

from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.grids.height_map import HeightMap
from roboyard.grids.terrain import Terrain
from roboyard.walking.steps.ground_kernels import GroundRows, body_height, lay_cones, spread_ground
from roboyard.walking.steps.rig import Rig

CELL: Final = 0.02
"""Edge of the cells that feet are set on [m]; feet stand on their middles."""
LARGEST: Final = 4_000_000
"""Cells of a map, at most."""
_HIGHEST: Final = 1e4
"""Heights of a map, at most, above and below zero [m]: beyond, a millimetre is lost in what numbers round off."""
SURE: Final = 0.015
"""Standard deviation of a height that a foot is set on, at most [m]."""
_STEP: Final = 0.015
"""Cells beside each other that differ by more have an edge between them [m]."""
_EDGE: Final = 0.01
"""No foot stands nearer to an edge [m]."""
_WALL: Final = 0.02
"""Nor so near to ground that is a step higher: feet are round and get stuck there, of the Akrobat [m]."""
_PRINT: Final = 0.007
"""Ground rises and falls by less within so far from a foot's middle, where the ground is known finer than cells [m]."""
_FIRM: Final = 0.03
"""From so far on an edge does not matter [m]."""
_BELLY: Final = 0.03
"""Room under the body [m]."""
_CLIMB: Final = 0.6
"""Rise of the body's height over the way."""
_BEGIN: Final = 0.03
"""So far round a place where a body is it is as high as there [m]."""
_LIFT: Final = 0.25
"""The body goes higher than its stance by at most so much of the legs' length."""
_ERRS: Final = 0.008
"""Heights that were seen differ by so much from cell to cell where the ground does not [m]."""
_ABOUT: Final = 0.25
_PIT: Final = 0.2
"""Ground that lies deeper than this below other ground so near is not what the body's height follows [m]."""
_ACROSS: Final = 0.5
"""No hole that is wider is stepped over [m]."""
_SPARE: Final = 0.03
"""Bodies may be so much higher or lower than over the ground as it is known now, of the Akrobat [m]."""
_RINGS: Final = 0.16
"""Feet are looked for round a place as far as this, of the Akrobat [m]."""


@dataclass(frozen=True, eq=False)
class Ground:
    """A height map for a robot at a heading.

    Attributes:
        rows: What kernels take.
        heading: Of the body, which keeps it [rad].
    """

    rows: GroundRows
    heading: float

    @classmethod
    def of(
        cls,
        heights: ArrayLike,
        corner: tuple[float, float],
        rig: Rig,
        *,
        cell: float = CELL,
        heading: float = 0.0,
        friction: float = 0.8,
        variance: ArrayLike | None = None,
        slack: float = 1e-3,
        start: ArrayLike | None = None,
    ) -> Ground:
        """Of a height map.

        Args:
            heights: (rows, columns) at the middles of its cells [m]; rows go along y.  Not finite: a hole.
            corner: Least x and y [m].
            rig: Who walks.
            cell: Edge of a cell [m].
            heading: Of the body [rad].
            friction: Coefficient that is guessed; ground steeper than 0.6 of it does not hold a foot.
            variance: (rows, columns) of the heights [m²]; None: they are the truth.  No foot stands where one is
                less sure than `SURE`, but all keep clear of what may be there.
            slack: Feet in the air may be so far below its height [m].
            start: (k, 2) where the robot's feet stand, or (2,) the middle of its stance [m]: the body goes as high as
                over ground that is got to from there, not over the tops of walls; None: over whatever is not far below
                other ground about it.

        Raises:
            InputError: heights that are no map, none that is finite, or one beyond 10 km; a cell or friction that is
                not positive.
        """
        given = np.array(heights, dtype=np.float64)
        if given.ndim != 2 or min(given.shape) < 4 or given.size > LARGEST:
            raise InputError(f"a map of shape {given.shape}", valid=f"4 x 4 to {LARGEST} cells")
        if not (0.0 < cell < 1.0 and 0.0 < friction < 10.0 and math.isfinite(sum(corner)) and math.isfinite(heading)):
            raise InputError(f"cells of {cell:g} m, friction {friction:g}", valid="finite, more than 0")
        given[~np.isfinite(given)] = np.nan
        if np.isnan(given).all():
            raise InputError("a map of nothing but holes", valid="finite heights [m]")
        if np.nanmax(np.abs(given)) > _HIGHEST:
            row, column = np.unravel_index(np.nanargmax(np.abs(given)), given.shape)
            raise InputError(
                f"cell ({row}, {column}) is {given[row, column]:.3g} m high", valid=f"heights up to {_HIGHEST:g} m"
            )
        steep, edge = _steepness(given, cell), _edge_distance(given, cell)
        allowed = 0.6 * friction
        stand = ~np.isnan(given) & (steep <= allowed) & (edge >= _EDGE - 1e-9)
        quality = np.clip(1.0 - steep / (2.0 * allowed), 0.0, 1.0) * np.clip(edge / _FIRM, 0.2, 1.0)
        reach = max(round(0.01 * rig.scale / cell), 1)
        solid = np.where(np.isnan(given), -np.inf, given)
        tops = maximum_filter(solid, footprint=_disc(reach))
        beside = maximum_filter(solid, footprint=_disc(max(round(_WALL * rig.scale / cell), 1)))
        with np.errstate(invalid="ignore"):  # holes, where nobody stands anyway
            stand &= beside - solid <= _STEP + steep * _WALL * rig.scale
        if variance is not None:
            stand &= np.asarray(variance) <= SURE**2
        if start is None:
            about = maximum_filter(tops, size=2 * round(_ABOUT * rig.scale / cell) + 1)
            counts = stand & (np.nan_to_num(given) >= about - _PIT * rig.scale)
        else:
            places = np.asarray(start, np.float64)
            if places.ndim == 1:
                turned = np.array([[math.cos(heading), math.sin(heading)], [-math.sin(heading), math.cos(heading)]])
                places = places + rig.rows.home[:, :2] @ turned
            counts = _got_to(given, stand, places - corner, rig, cell)
        body = _body_heights(given, counts, tops, rig, cell, heading)
        stand &= _in_reach(given, body, rig, cell)
        far = math.ceil(_RINGS * rig.scale / cell)
        a, b = np.mgrid[-far : far + 1, -far : far + 1]
        order = np.argsort((a * a + b * b).ravel(), kind="stable")
        rings = np.stack([a.ravel(), b.ravel()], axis=1)[order]
        rings = rings[np.hypot(*rings.T) <= far]
        rows = GroundRows(
            float(corner[0]),
            float(corner[1]),
            cell,
            given,
            tops,
            stand,
            quality,
            body,
            rings.astype(np.int64),
            slack,
        )
        return cls(rows, heading)

    @classmethod
    def of_map(
        cls, given: HeightMap, rig: Rig, *, heading: float = 0.0, friction: float = 0.8, start: ArrayLike | None = None
    ) -> Ground:
        """Of a map of heights; arguments and errors as for `of`."""
        return cls.of(
            given.heights, given.corner, rig, cell=given.resolution, heading=heading, friction=friction,
            variance=given.variance, slack=1e-3 if given.variance is None else _ERRS, start=start,
        )  # fmt: skip

    @classmethod
    def of_terrain(
        cls, terrain: Terrain, rig: Rig, places: ArrayLike, *, heading: float = 0.0, friction: float = 0.8
    ) -> Ground:
        """Of a terrain and the level ground round it, as far as is needed about places (k, 2) [m], of which the first
        is where the robot stands."""
        low, high = surroundings(terrain, rig, places)
        first = np.floor((low - terrain.corner) / CELL) * CELL + terrain.corner
        columns, rows = (int(n) for n in np.ceil((high - first) / CELL))
        x, y = first[0] + (np.arange(columns) + 0.5) * CELL, first[1] + (np.arange(rows) + 0.5) * CELL
        start = np.atleast_2d(np.asarray(places, np.float64))[0]
        places = np.stack(np.meshgrid(x, y), axis=-1)
        heights = terrain.height_at(places)
        # squares whose edge is no multiple of a cell's: an edge within a cell, which its middle's height does not tell
        turns = np.linspace(0.0, 2.0 * np.pi, 8, endpoint=False)
        rim = terrain.height_at(places[..., None, :] + 0.99 * _EDGE * np.stack([np.cos(turns), np.sin(turns)], axis=-1))
        off = np.nan_to_num(np.abs(rim - heights[..., None]), nan=np.inf).max(axis=-1)
        corner = float(first[0]), float(first[1])
        off[off > _PRINT] = np.inf
        return cls.of(heights, corner, rig, heading=heading, friction=friction, variance=off**2, start=start)

    def joined(self, place: ArrayLike) -> Ground:
        """The same ground, over which a body goes on from a place (3,) where it is as high as it is [m].

        A plan that is under way was made on a map that may have been another one.
        """
        x, y, z = np.asarray(place, dtype=np.float64).tolist()
        rows = self.rows
        off = z - body_height(rows.body, rows.x, rows.y, rows.cell, x, y)
        if not math.isfinite(off):
            return self
        columns = rows.x + (np.arange(rows.body.shape[1]) + 0.5) * rows.cell
        lines = rows.y + (np.arange(rows.body.shape[0]) + 0.5) * rows.cell
        away = np.hypot(columns - x, lines[:, None] - y)
        share = np.clip(1.0 - (away - _BEGIN) / max(abs(off) / _CLIMB, rows.cell), 0.0, 1.0)
        return Ground(rows._replace(body=rows.body + off * share), self.heading)

    def cell_at(self, x: float, y: float) -> tuple[int, int]:
        """Row and column of a place [m]; row -1 outside."""
        r, c = math.floor((y - self.rows.y) / self.rows.cell), math.floor((x - self.rows.x) / self.rows.cell)
        rows, columns = self.rows.heights.shape
        return (r, c) if 0 <= r < rows and 0 <= c < columns else (-1, -1)


def surroundings(terrain: Terrain, rig: Rig, places: ArrayLike) -> tuple[Array, Array]:
    """Least and greatest x and y [m] of a terrain and of all that a robot needs about places (k, 2)."""
    around = np.atleast_2d(np.asarray(places, np.float64))
    corner, size, room = np.array(terrain.corner), np.array(terrain.size), 0.8 * rig.scale
    return np.minimum(around.min(axis=0) - room, corner), np.maximum(around.max(axis=0) + room, corner + size)


def _disc(radius: int) -> NDArray[np.bool_]:
    a, b = np.mgrid[-radius : radius + 1, -radius : radius + 1]
    found: NDArray[np.bool_] = a * a + b * b <= radius * radius
    return found


def _edges(heights: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Between rows (rows - 1, columns), and between columns (rows, columns - 1): where the ground steps or ends."""
    found = []
    for axis in (0, 1):
        step = np.diff(heights, axis=axis)
        holes = np.diff(np.isnan(heights).astype(np.int8), axis=axis) != 0
        found.append((np.abs(np.nan_to_num(step)) > _STEP) | holes)
    return found[0], found[1]


def _edge_distance(heights: Array, cell: float) -> Array:
    """From each cell's middle to the nearest edge [m]."""
    rows, columns = heights.shape
    along, across = _edges(heights)
    # twice as fine: cells at even places, edges at odd ones
    free = np.ones((2 * rows - 1, 2 * columns - 1), np.bool_)
    free[1::2, ::2] = ~along
    free[::2, 1::2] = ~across
    if free.all():
        return np.full(heights.shape, np.inf)
    away: Array = distance_transform_edt(free, sampling=0.5 * cell)[::2, ::2]
    return away


def _steepness(heights: Array, cell: float) -> Array:
    """(rows, columns) slope, by the smaller of both differences along an axis that cross no edge; 0 where none is."""
    steep = np.zeros(heights.shape)
    for axis, edges in enumerate(_edges(heights)):
        slope = np.where(edges, np.nan, np.abs(np.diff(heights, axis=axis)) / cell)
        pad = [(0, 0), (0, 0)]
        pad[axis] = (1, 1)
        both = np.pad(slope, pad, constant_values=np.nan)
        one, other = (both[:-1], both[1:]) if axis == 0 else (both[:, :-1], both[:, 1:])
        steep += np.nan_to_num(np.fmax(one, other)) ** 2
    return np.sqrt(steep)


def _got_to(heights: Array, stand: NDArray[np.bool_], feet: Array, rig: Rig, cell: float) -> NDArray[np.bool_]:
    """(rows, columns) ground to stand on that is got to from under feet (k, 2) of the map [m] without a step higher, or
    a hole wider, than any: generous."""
    found = np.zeros(stand.shape, np.bool_)
    where = np.argwhere(stand)
    if len(where):
        under = np.array([where[np.argmin(((where - place) ** 2).sum(axis=1))] for place in feet[:, ::-1] / cell - 0.5])
        level = heights[tuple(under.T)]
        far = max(round(_ACROSS * rig.scale / cell), 1)
        for row, column in under[np.abs(level - np.median(level)) <= _PIT * rig.scale]:  # a stance may be over holes
            if not found[row, column]:
                spread_ground(heights, stand, row, column, far, _PIT * rig.scale, found)
    return found


def _body_heights(
    heights: Array, counts: NDArray[np.bool_], tops: Array, rig: Rig, cell: float, heading: float
) -> Array:
    """(rows, columns) how high the body's frame is [m]: over the mean of the ground that counts, clear of all below."""
    width = 0.12 * rig.scale / cell
    weight = gaussian_filter(counts.astype(np.float64), width, mode="nearest")
    sums = gaussian_filter(np.where(counts, heights, 0.0), width, mode="nearest")
    level = np.divide(sums, weight, out=np.full(heights.shape, np.nan), where=weight > 1e-5)
    level -= float(rig.rows.home[:, 2].mean())
    need = maximum_filter(tops, footprint=_outline(rig, cell, heading)) - float(rig.body[0, 2]) + _BELLY * rig.scale
    legs = float((np.hypot(*rig.rows.legs.thigh.T) + np.hypot(*rig.rows.legs.shank.T)).min())
    steep = np.hypot(*np.gradient(level, cell)) > _CLIMB  # nan where there is no level: blocked anyway
    blocked = np.isnan(level) | steep | (need > level + _LIFT * legs)
    out = np.where(blocked, -np.inf, np.fmax(level, need))
    lay_cones(out, _CLIMB * cell)
    return np.where(blocked, np.nan, np.minimum(out, level + _LIFT * legs))


def _in_reach(heights: Array, body: Array, rig: Rig, cell: float) -> NDArray[np.bool_]:
    """(rows, columns) where ground is neither too deep nor too high for all legs of bodies about it: generous."""
    legs, cells, reached = rig.rows.low.shape[0], rig.rows.cell, rig.rows.table
    leg, a, b = np.nonzero(reached)
    far = float(np.hypot(rig.rows.low[leg, 0] + a * cells, rig.rows.low[leg, 1] + b * cells).max())
    layers = [
        np.flatnonzero([(int(bits) >> k) & 1 for k in range(64)]) for bits in np.bitwise_or.reduce(reached, (1, 2))
    ]
    lowest = min(float(rig.rows.low[k, 2] + layers[k][0] * rig.rows.layer) for k in range(legs)) - _SPARE * rig.scale
    highest = max(float(rig.rows.low[k, 2] + layers[k][-1] * rig.rows.layer) for k in range(legs)) + _SPARE * rig.scale
    wide, there = 2 * math.ceil(far / cell) + 1, np.isnan(body)
    deepest = minimum_filter(np.where(there, np.inf, body), size=wide)
    tallest = maximum_filter(np.where(there, -np.inf, body), size=wide)
    with np.errstate(invalid="ignore"):  # holes, where nobody stands anyway
        found: NDArray[np.bool_] = (heights >= deepest + lowest) & (heights <= tallest + highest)
    return found


def _outline(rig: Rig, cell: float, heading: float) -> NDArray[np.bool_]:
    """Cells under the box of the body about its middle."""
    far = math.ceil(float(np.hypot(*np.abs(rig.body[:, :2]).max(axis=0))) / cell) + 1
    b, a = np.mgrid[-far : far + 1, -far : far + 1] * cell
    c, s = math.cos(heading), math.sin(heading)
    x, y = c * a + s * b, c * b - s * a
    low, high = rig.body[0, :2] - 0.5 * cell, rig.body[1, :2] + 0.5 * cell
    inside: NDArray[np.bool_] = (x >= low[0]) & (x <= high[0]) & (y >= low[1]) & (y <= high[1])
    return inside[::-1, ::-1]  # a filter looks to the other side
