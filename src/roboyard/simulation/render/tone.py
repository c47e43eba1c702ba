"""From light to picture bytes: a tone curve with a soft shoulder, then the sRGB curve."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import F32
from roboyard.simulation.render.single import ZERO, Cases, F, floats

TONE_LEVELS = 8192
TONE_TOP = 12.0  # brightest light the table knows


def tone_table() -> NDArray[np.uint8]:
    """Picture byte for light (k / (TONE_LEVELS − 1))² · TONE_TOP: soft shoulder, then the sRGB curve."""
    x = np.linspace(0.0, 1.0, TONE_LEVELS) ** 2 * TONE_TOP
    white = 3.2
    y = np.clip(x * (1 + x / white**2) / (1 + 0.55 * x), 0.0, 1.0)
    encoded = np.where(y <= 0.0031308, 12.92 * y, 1.055 * y ** (1 / 2.4) - 0.055)
    return np.asarray(np.round(encoded * 255), dtype=np.uint8)


def light_for(colour: ArrayLike, table: NDArray[np.uint8]) -> F32:
    """Linear light that the tone curve shows as this sRGB colour 0 … 1."""
    level = np.searchsorted(table, np.asarray(colour, dtype=np.float64) * 255.0)
    return ((level / (TONE_LEVELS - 1)) ** 2 * TONE_TOP).astype(np.float32)


def linear(colour: ArrayLike) -> F32:
    """SRGB components 0 … 1 as linear light."""
    c = np.asarray(colour, dtype=np.float64)
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4).astype(np.float32)


def _examples() -> Cases:
    yield floats(1, 3), np.zeros(1, np.uint8)


@kernel(examples=_examples, error_model="numpy")
def to_bytes(light: F32, table: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Linear light (n, 3) through the tone curve ``table`` (see ``tone_table``) to picture bytes (n, 3)."""
    out = np.empty(light.shape, np.uint8)
    top = np.int32(len(table) - 1)
    scale = F(top * top / TONE_TOP)
    for i in range(len(light)):
        for c in range(3):
            out[i, c] = table[min(np.int32(math.sqrt(max(light[i, c] * scale, ZERO))), top)]
    return out
