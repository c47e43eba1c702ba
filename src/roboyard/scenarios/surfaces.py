"""Surfaces of floors, drawn: plain, wood, terrazzo, tiles, carpet; the pictures are kept in the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from roboyard.compute.kernel_folders import cache_root
from roboyard.config import atomic_path

Floor = Literal["plain", "wood", "terrazzo", "tiles", "carpet"]
_SIDE = 1024
"""Of the pictures [px]."""
_RGB = NDArray[np.float64]


def floor_picture(floor: Floor) -> NDArray[np.uint8] | None:
    """(h, w, 3) of a floor; None: a plain one.  Always the same."""
    draw = _DRAWN.get(floor)
    if draw is None:
        return None
    return np.clip(np.round(draw(np.random.default_rng([0xF1, len(floor)]))), 0, 255).astype(np.uint8)


def floor_file(floor: Floor) -> Path | None:
    """The picture as a PNG in the cache; None: a plain floor."""
    pixels = floor_picture(floor)
    if pixels is None:
        return None
    from PIL import Image

    folder = cache_root().parent / "surfaces"
    path = folder / f"{floor}-{hashlib.sha256(pixels.tobytes()).hexdigest()[:16]}.png"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as temporary:
            Image.fromarray(pixels).save(temporary, "PNG")
    return path


def _smooth(rng: np.random.Generator, rows: int, columns: int) -> NDArray[np.float64]:
    """Noise of ``rows`` x ``columns`` waves over the picture, between -1 and 1."""
    from scipy.ndimage import zoom

    grid = rng.uniform(-1.0, 1.0, (rows + 1, columns + 1))
    grown = zoom(grid, (_SIDE / (rows + 1) + 1e-9, _SIDE / (columns + 1) + 1e-9), order=1)
    return np.asarray(grown[:_SIDE, :_SIDE], dtype=np.float64)


def _wood(rng: np.random.Generator) -> _RGB:
    """Boards of 8 to a picture with grain along them."""
    board = np.arange(_SIDE) // (_SIDE // 8)
    tone = rng.uniform(-14.0, 14.0, 8)[board][:, None]
    grain = 12.0 * _smooth(rng, 256, 6) + 7.0 * _smooth(rng, 64, 3)
    seam = np.where(np.arange(_SIDE) % (_SIDE // 8) < 2, -45.0, 0.0)[:, None]
    return np.array([166.0, 126.0, 84.0]) + (tone + grain + seam)[..., None]


def _terrazzo(rng: np.random.Generator) -> _RGB:
    """Chips of 1 to 6 mm, light and dark, in grey."""
    picture = np.full((_SIDE, _SIDE, 3), 138.0) + 4.0 * _smooth(rng, 128, 128)[..., None]
    rows, columns = np.mgrid[0:_SIDE, 0:_SIDE]
    for _ in range(2500):
        x, y = (int(value) for value in rng.integers(0, _SIDE, 2))
        size = float(rng.uniform(1.0, 4.0))
        part = np.s_[max(y - 5, 0) : y + 6, max(x - 5, 0) : x + 6]
        inside = np.hypot((columns[part] - x) * rng.uniform(0.6, 1.4), rows[part] - y) < size
        picture[part][inside] = rng.uniform(70.0, 205.0) + rng.uniform(-8.0, 8.0, 3)
    return picture


def _tiles(rng: np.random.Generator) -> _RGB:
    """Square tiles, 10 to a side, with light joints."""
    tone = np.kron(rng.uniform(-10.0, 10.0, (11, 11)), np.ones((100, 100)))[:_SIDE, :_SIDE]
    place = np.arange(_SIDE) % 100
    joint = (place < 3)[:, None] | (place < 3)[None, :]
    tiles: _RGB = np.where(joint, 196.0, 118.0 + tone)[..., None] * np.array([1.0, 0.98, 0.94])
    return tiles


def _carpet(rng: np.random.Generator) -> _RGB:
    """Short pile in blue grey, uneven."""
    pile = rng.normal(0.0, 11.0, (_SIDE, _SIDE)) + 8.0 * _smooth(rng, 16, 16)
    return np.array([92.0, 104.0, 124.0]) + pile[..., None]


_DRAWN: dict[str, Callable[[np.random.Generator], _RGB]] = {
    "wood": _wood,
    "terrazzo": _terrazzo,
    "tiles": _tiles,
    "carpet": _carpet,
}
