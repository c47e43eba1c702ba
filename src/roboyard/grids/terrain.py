"""Terrain: ground heights on a grid, and generators of rough ground, stairs, slopes, blocks, ditches and stones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
from numpy.typing import ArrayLike

from roboyard.config import RegisteredName, parameter
from roboyard.config.registry import Registry
from roboyard.errors import ConfigError, InputError
from roboyard.geometry.arrays import Array, as_points


@dataclass(frozen=True, eq=False)
class Terrain:
    """Rectangle of uneven ground in a plane of height 0.

    Attributes:
        heights: (rows, columns) [m]; rows along y, columns along x.  Heights of level squares or, if `smooth`, of the
            corners between them, with two triangles per square, split from the corner at minimum x and y.
        cell_size: Edge length of a square [m].
        corner: (2,) corner of the rectangle at minimum x and y [m].
        smooth: Whether the ground is interpolated instead of made of level squares.

    Raises:
        InputError: The heights are not a grid or not finite, or the edge length is not positive.
    """

    heights: Array
    cell_size: float
    corner: tuple[float, float]
    smooth: bool = False

    def __post_init__(self) -> None:
        heights, min_count = self.heights, 2 if self.smooth else 1
        if heights.ndim != 2 or min(heights.shape) < min_count or not np.isfinite(heights).all():
            raise InputError(
                f"heights have the shape {heights.shape}",
                valid=f"finite heights, at least {min_count} rows and columns",
            )
        if not self.cell_size > 0.0:
            raise InputError(f"cell_size must be positive, got {self.cell_size:g} m", valid="a positive length")

    @property
    def size(self) -> tuple[float, float]:
        """Size of the rectangle along x and y [m]."""
        rows, columns = (count - self.smooth for count in self.heights.shape)
        return columns * self.cell_size, rows * self.cell_size

    def height_at(self, points: ArrayLike) -> Array:
        """Return the height (…) of the ground at points (…, 2) [m]; 0 outside the rectangle."""
        positions = as_points(points, 2)
        cell_coordinates = (positions - np.array(self.corner)) / self.cell_size
        rows, columns = (count - self.smooth for count in self.heights.shape)
        inside = ((cell_coordinates >= 0.0) & (cell_coordinates <= np.array([columns, rows]))).all(axis=-1)
        column = np.clip(np.floor(cell_coordinates[..., 0]).astype(np.int64), 0, columns - 1)
        row = np.clip(np.floor(cell_coordinates[..., 1]).astype(np.int64), 0, rows - 1)
        h = self.heights
        if not self.smooth:
            return np.where(inside, h[row, column], 0.0)
        x, y = cell_coordinates[..., 0] - column, cell_coordinates[..., 1] - row
        low, high = h[row, column], h[row + 1, column + 1]
        by_x = low + x * (h[row, column + 1] - low) + y * (high - h[row, column + 1])
        by_y = low + y * (h[row + 1, column] - low) + x * (high - h[row + 1, column])
        return np.where(inside, np.where(x >= y, by_x, by_y), 0.0)

    def level_rectangles(self) -> Array:
        """Return rectangles of equal height, (n, 5): minimum x and y, maximum x and y, height [m]; without those of
        height 0.

        Adjacent squares of the same height are merged, first along x, then along y.

        Raises:
            InputError: The terrain is smooth.
        """
        if self.smooth:
            raise InputError("a smooth terrain cannot be converted to boxes", valid="a terrain of level squares")
        rectangles: list[tuple[int, int, int, int, float]] = []
        is_covered = self.heights == 0.0
        rows, columns = self.heights.shape
        for row in range(rows):
            for column in range(columns):
                if is_covered[row, column]:
                    continue
                same = (self.heights == self.heights[row, column]) & ~is_covered
                right = column + int(np.argmin(np.append(same[row, column:], False)))
                top = row + int(np.argmin(np.append(same[row:, column:right].all(axis=1), False)))
                is_covered[row:top, column:right] = True
                rectangles.append((column, row, right, top, float(self.heights[row, column])))
        out = np.array(rectangles, dtype=np.float64).reshape(-1, 5)
        out[:, :4] = out[:, :4] * self.cell_size + np.tile(self.corner, 2)
        return out


HeightGenerator = Callable[[int, int, float, float, np.random.Generator], Array]
"""Function that makes heights from rows, columns, height range [m], a fraction from 0 to 1 and a random generator.
"""


@dataclass(frozen=True, slots=True)
class TerrainGenerator:
    """Generator of one type of terrain; a package registers one under the name that scenarios give as `type`.

    Attributes:
        make_heights: Function that makes (rows, columns) heights of level squares [m], or (rows + 1, columns + 1)
            heights of their corners for a smooth terrain.
        smooth: Whether the ground is interpolated between the heights.
    """

    make_heights: HeightGenerator
    smooth: bool = False


MAX_CELLS: Final = 250_000
"""Maximum number of squares of a terrain."""
_HILL_WIDTH: Final = 1.5
"""Width of hills, in squares."""


def _flat(rows: int, columns: int, height_range: float, fraction: float, rng: np.random.Generator) -> Array:
    """Level ground."""
    return np.zeros((rows, columns))


def _rough(rows: int, columns: int, height_range: float, fraction: float, rng: np.random.Generator) -> Array:
    """Smooth random hills."""
    from scipy.ndimage import gaussian_filter

    hills = gaussian_filter(rng.standard_normal((rows + 1, columns + 1)), _HILL_WIDTH)
    along, across = np.arange(columns + 1), np.arange(rows + 1)
    border_distance = np.minimum.outer(np.minimum(across, across[::-1]), np.minimum(along, along[::-1]))
    out: Array = (
        (hills - hills.min()) / max(float(np.ptp(hills)), 1e-12) * height_range * np.minimum(border_distance / 2.0, 1.0)
    )
    return out


def _slope(rows: int, columns: int, height_range: float, fraction: float, rng: np.random.Generator) -> Array:
    """A ramp up to a level top, and down again."""
    top = max(fraction, 1.0 / columns) * columns
    column = np.arange(columns + 1)
    climb = np.minimum(np.minimum(column, columns - column) / (0.5 * (columns - top) + 1e-9), 1.0)
    return np.tile(climb * height_range, (rows + 1, 1))


def _blocks(rows: int, columns: int, height_range: float, fraction: float, rng: np.random.Generator) -> Array:
    """Squares of random heights."""
    return rng.uniform(0.0, height_range, (rows, columns))


def _stairs(rows: int, columns: int, height_range: float, fraction: float, rng: np.random.Generator) -> Array:
    """A flight of stairs up, a level top, and a flight down."""
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
    """A ditch across level ground."""
    return _make_band(rows, columns, -height_range, fraction)


def _wall(rows: int, columns: int, height_range: float, fraction: float, rng: np.random.Generator) -> Array:
    """A wall across level ground."""
    return _make_band(rows, columns, height_range, fraction)


def _stones(rows: int, columns: int, height_range: float, fraction: float, rng: np.random.Generator) -> Array:
    """Stones that stand out of low ground: random squares at height 0."""
    return np.where(rng.random((rows, columns)) < fraction, 0.0, -height_range)


TERRAINS: Registry[TerrainGenerator] = Registry(
    "terrain",
    group="roboyard.terrains",
    built_in={
        "flat": TerrainGenerator(_flat),
        "rough": TerrainGenerator(_rough, smooth=True),
        "blocks": TerrainGenerator(_blocks),
        "stairs": TerrainGenerator(_stairs),
        "ditch": TerrainGenerator(_ditch),
        "wall": TerrainGenerator(_wall),
        "stones": TerrainGenerator(_stones),
        "slope": TerrainGenerator(_slope, smooth=True),
    },
)
"""Generators of terrain by the name that scenarios give as `type`."""


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
    """Generate a terrain.

    Args:
        terrain_type: "flat"; "rough": hills that fall to height 0 over the two squares at the border; "blocks": squares
            whose heights are drawn uniformly from 0 to ``height_range``; "stairs": up and down along x, one step per
            square, each ``height_range`` high; "ditch", "wall": across the whole width, ``height_range`` deep or high;
            "stones": squares at height 0 in a pit ``height_range`` deep; "slope": up to ``height_range`` and down again
            along x; or the name of another registered `TerrainGenerator`.
        size: Size along x and y [m], rounded to whole squares, at least one.
        rng: Random generator.
        corner: Corner at minimum x and y [m].
        cell_size: Edge length of a square [m].
        height_range: Height or depth of the terrain [m].
        fraction: Fraction of the squares that are stones; or of the length that the ditch, the wall, or the level top
            of the stairs or slope takes up.

    Raises:
        UnknownNameError: The terrain type is unknown.
        ConfigError: The package that registers the terrain type offers no `TerrainGenerator`.
        InputError: A size, edge length or height range is not positive, the fraction is not within 0 to 1, or there are
            too many squares.
    """
    generator = TERRAINS[terrain_type]
    if not isinstance(generator, TerrainGenerator):
        raise ConfigError(
            f"terrain {terrain_type!r} is {generator!r}", location=TERRAINS.group, valid="a TerrainGenerator"
        )
    if not (min(*size, cell_size) > 0.0 and height_range >= 0.0 and 0.0 <= fraction <= 1.0):
        values = f"size {size}, cell_size {cell_size:g} m, height_range {height_range:g} m, fraction {fraction:g}"
        raise InputError(f"invalid terrain: {values}", valid="positive lengths, a fraction from 0 to 1")
    columns, rows = (max(round(length / cell_size), 1) for length in size)
    if rows * columns > MAX_CELLS:
        raise InputError(f"the terrain has {columns} x {rows} squares", valid=f"at most {MAX_CELLS}")
    return Terrain(
        generator.make_heights(rows, columns, height_range, fraction, rng), cell_size, corner, generator.smooth
    )


@dataclass(frozen=True)
class TerrainConfig:
    """Uneven ground that a seed generates."""

    type: Annotated[str, RegisteredName(TERRAINS)] = parameter(doc="name of its generator")
    origin: tuple[float, float] = parameter((0.6, -1.0), unit="m", doc="corner at minimum x and y")
    size: tuple[float, float] = parameter((2.0, 2.0), unit="m", doc="size along x and y")
    cell_size: float = parameter(0.2, unit="m", low=0.01, high=10.0, doc="edge length of a square")
    height_range: float = parameter(
        0.1, unit="m", low=0.0, high=10.0, doc="height or depth; of stairs the height of each step"
    )
    fraction: float = parameter(
        0.2, low=0.0, high=1.0, doc="fraction of the squares that are stones, or of the length: ditch, wall, level top"
    )
    seed: int | None = parameter(None, low=0, high=2**63 - 1, doc="seed of the generator; default: the scenario's seed")

    def generate(self, seed: int) -> Terrain:
        """Generate the terrain; ``seed`` is used if the configuration has none. Raises InputError."""
        rng = np.random.default_rng([0x6E04, seed if self.seed is None else self.seed])
        return generate_terrain(
            self.type,
            self.size,
            rng,
            corner=self.origin,
            cell_size=self.cell_size,
            height_range=self.height_range,
            fraction=self.fraction,
        )
