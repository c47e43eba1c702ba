"""Kinds of uneven ground, made by numbers and a generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.config.describe import did_you_mean as did_you_mean
from roboyard.errors import InputError, UnknownNameError
from roboyard.grids.terrain import Terrain

Array = NDArray[np.float64]
HeightGenerator = Callable[[int, int, float, float, np.random.Generator], Array]
"""Heights from rows, columns, relief [m], a share from 0 to 1 and a generator."""

MAX_CELLS: Final = 250_000
"""Squares of a terrain."""
_HILL_WIDTH: Final = 1.5
"""Width of hills, in squares."""


def _flat(rows: int, columns: int, height_range: float, fraction: float, rng: np.random.Generator) -> Array:
    return np.zeros((rows, columns))


def _rough(rows: int, columns: int, height_range: float, fraction: float, rng: np.random.Generator) -> Array:
    from scipy.ndimage import gaussian_filter

    hills = gaussian_filter(rng.standard_normal((rows + 1, columns + 1)), _HILL_WIDTH)
    along, across = np.arange(columns + 1), np.arange(rows + 1)
    border_distance = np.minimum.outer(np.minimum(across, across[::-1]), np.minimum(along, along[::-1]))
    out: Array = (
        (hills - hills.min()) / max(float(np.ptp(hills)), 1e-12) * height_range * np.minimum(border_distance / 2.0, 1.0)
    )
    return out


def _slope(rows: int, columns: int, height_range: float, fraction: float, rng: np.random.Generator) -> Array:
    top = max(fraction, 1.0 / columns) * columns
    column = np.arange(columns + 1)
    climb = np.minimum(np.minimum(column, columns - column) / (0.5 * (columns - top) + 1e-9), 1.0)
    return np.tile(climb * height_range, (rows + 1, 1))


def _blocks(rows: int, columns: int, height_range: float, fraction: float, rng: np.random.Generator) -> Array:
    return rng.uniform(0.0, height_range, (rows, columns))


def _stairs(rows: int, columns: int, height_range: float, fraction: float, rng: np.random.Generator) -> Array:
    flight = max(round(0.5 * (1.0 - fraction) * columns), 1)
    column = np.arange(columns)
    steps = np.minimum(np.minimum(column, columns - 1 - column) + 1, flight)
    return np.tile(steps * height_range, (rows, 1))


def _make_band(rows: int, columns: int, height: float, fraction: float) -> Array:
    out, width = np.zeros((rows, columns)), max(round(fraction * columns), 1)
    first = (columns - width) // 2
    out[:, first : first + width] = height
    return out


def _ditch(rows: int, columns: int, height_range: float, fraction: float, rng: np.random.Generator) -> Array:
    return _make_band(rows, columns, -height_range, fraction)


def _wall(rows: int, columns: int, height_range: float, fraction: float, rng: np.random.Generator) -> Array:
    return _make_band(rows, columns, height_range, fraction)


def _stones(rows: int, columns: int, height_range: float, fraction: float, rng: np.random.Generator) -> Array:
    return np.where(rng.random((rows, columns)) < fraction, 0.0, -height_range)


TERRAIN_TYPES: Final[dict[str, tuple[HeightGenerator, bool]]] = {
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


def generate_terrain(
    terrain_type: str,
    size: tuple[float, float],
    rng: np.random.Generator,
    *,
    corner: tuple[float, float] = (0.0, 0.0),
    cell_size: float = 0.2,
    height_range: float = 0.1,
    fraction: float = 0.2,
) -> Terrain:
    """Uneven ground.

    Args:
        terrain_type: "flat"; "rough": hills that fall to height 0 over the two squares at the border; "blocks": squares
            whose heights are drawn uniformly from 0 to ``height_range``; "stairs": up and down along x, one step per
            square, each ``height_range`` high; "ditch", "wall": across the whole width, ``height_range`` deep or high;
            "stones": squares at height 0 in a pit ``height_range`` deep; "slope": up to ``height_range`` and down again
            along x.
        size: Along x and y [m]; whole squares of it, at least one, are taken.
        rng: Draws it.
        corner: Of the least x and y [m].
        cell_size: Edge of a square [m].
        height_range: How high or deep it is [m].
        fraction: Fraction of the squares that are stones; or of the length that the ditch, the wall, or the level top
            of the stairs or slope takes up.

    Raises:
        UnknownNameError: there is no such kind.
        InputError: a size, an edge or a relief that is not positive, a share beyond 0 to 1, or too many squares.
    """
    if terrain_type not in TERRAIN_TYPES:
        raise UnknownNameError(
            f"no terrain {terrain_type!r}{did_you_mean(terrain_type, TERRAIN_TYPES)}", valid=", ".join(TERRAIN_TYPES)
        )
    if not (min(*size, cell_size) > 0.0 and height_range >= 0.0 and 0.0 <= fraction <= 1.0):
        values = f"size {size}, cell {cell_size:g}, relief {height_range:g} m, share {fraction:g}"
        raise InputError(f"terrain of {values}", valid="positive metres, a share from 0 to 1")
    columns, rows = (max(round(length / cell_size), 1) for length in size)
    if rows * columns > MAX_CELLS:
        raise InputError(f"terrain of {columns} x {rows} squares", valid=f"{MAX_CELLS} or fewer")
    generate, smooth = TERRAIN_TYPES[terrain_type]
    return Terrain(generate(rows, columns, height_range, fraction, rng), cell_size, corner, smooth)
