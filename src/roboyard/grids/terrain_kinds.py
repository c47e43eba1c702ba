"""Kinds of uneven ground, made by numbers and a generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.config.describe import near as similar
from roboyard.errors import InputError, UnknownNameError
from roboyard.grids.terrain import Terrain

Array = NDArray[np.float64]
Maker = Callable[[int, int, float, float, np.random.Generator], Array]
"""Heights from rows, columns, relief [m], a share from 0 to 1 and a generator."""

MOST: Final = 250_000
"""Squares of a terrain."""
_SWELL: Final = 1.5
"""Width of hills, in squares."""


def _flat(rows: int, columns: int, relief: float, share: float, rng: np.random.Generator) -> Array:
    return np.zeros((rows, columns))


def _rough(rows: int, columns: int, relief: float, share: float, rng: np.random.Generator) -> Array:
    from scipy.ndimage import gaussian_filter

    hills = gaussian_filter(rng.standard_normal((rows + 1, columns + 1)), _SWELL)
    along, across = np.arange(columns + 1), np.arange(rows + 1)
    rim = np.minimum.outer(np.minimum(across, across[::-1]), np.minimum(along, along[::-1]))
    out: Array = (hills - hills.min()) / max(float(np.ptp(hills)), 1e-12) * relief * np.minimum(rim / 2.0, 1.0)
    return out


def _slope(rows: int, columns: int, relief: float, share: float, rng: np.random.Generator) -> Array:
    top = max(share, 1.0 / columns) * columns
    way = np.arange(columns + 1)
    climb = np.minimum(np.minimum(way, columns - way) / (0.5 * (columns - top) + 1e-9), 1.0)
    return np.tile(climb * relief, (rows + 1, 1))


def _blocks(rows: int, columns: int, relief: float, share: float, rng: np.random.Generator) -> Array:
    return rng.uniform(0.0, relief, (rows, columns))


def _stairs(rows: int, columns: int, relief: float, share: float, rng: np.random.Generator) -> Array:
    flight = max(round(0.5 * (1.0 - share) * columns), 1)
    way = np.arange(columns)
    steps = np.minimum(np.minimum(way, columns - 1 - way) + 1, flight)
    return np.tile(steps * relief, (rows, 1))


def _across(rows: int, columns: int, height: float, share: float) -> Array:
    out, wide = np.zeros((rows, columns)), max(round(share * columns), 1)
    first = (columns - wide) // 2
    out[:, first : first + wide] = height
    return out


def _ditch(rows: int, columns: int, relief: float, share: float, rng: np.random.Generator) -> Array:
    return _across(rows, columns, -relief, share)


def _wall(rows: int, columns: int, relief: float, share: float, rng: np.random.Generator) -> Array:
    return _across(rows, columns, relief, share)


def _stones(rows: int, columns: int, relief: float, share: float, rng: np.random.Generator) -> Array:
    return np.where(rng.random((rows, columns)) < share, 0.0, -relief)


KINDS: Final[dict[str, tuple[Maker, bool]]] = {
    "flat": (_flat, False),
    "rough": (_rough, True),
    "blocks": (_blocks, False),
    "stairs": (_stairs, False),
    "ditch": (_ditch, False),
    "wall": (_wall, False),
    "stones": (_stones, False),
    "slope": (_slope, True),
}
"""By name: how its heights are made, and whether it is smooth."""


def make_terrain(
    kind: str,
    size: tuple[float, float],
    rng: np.random.Generator,
    *,
    corner: tuple[float, float] = (0.0, 0.0),
    cell: float = 0.2,
    relief: float = 0.1,
    share: float = 0.2,
) -> Terrain:
    """Uneven ground.

    Args:
        kind: "flat"; "rough": hills, two squares of rising ground round them; "blocks": squares of heights drawn evenly
            from 0 to the relief; "stairs": up and down along x, a step a square, each as high as the relief; "ditch",
            "wall": right across, as deep or high as the relief; "stones": squares at height 0 in a pit as deep as the
            relief; "slope": up to the relief and down again along x.
        size: Along x and y [m]; whole squares of it, at least one, are taken.
        rng: Draws it.
        corner: Of the least x and y [m].
        cell: Edge of a square [m].
        relief: How high or deep it is [m].
        share: Of stones among the squares; of the length that ditch or wall take, or the level top of stairs and slope.

    Raises:
        UnknownNameError: there is no such kind.
        InputError: a size, an edge or a relief that is not positive, a share beyond 0 to 1, or too many squares.
    """
    if kind not in KINDS:
        raise UnknownNameError(f"no terrain {kind!r}{similar(kind, KINDS)}", valid=", ".join(KINDS))
    if not (min(*size, cell) > 0.0 and relief >= 0.0 and 0.0 <= share <= 1.0):
        said = f"size {size}, cell {cell:g}, relief {relief:g} m, share {share:g}"
        raise InputError(f"terrain of {said}", valid="positive metres, a share from 0 to 1")
    columns, rows = (max(round(length / cell), 1) for length in size)
    if rows * columns > MOST:
        raise InputError(f"terrain of {columns} x {rows} squares", valid=f"{MOST} or fewer")
    maker, smooth = KINDS[kind]
    return Terrain(maker(rows, columns, relief, share, rng), cell, corner, smooth)
