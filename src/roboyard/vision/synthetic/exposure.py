"""From light that arrives to the bytes of a picture: blur, noise, the bend of the scale, rounding."""

from __future__ import annotations

import numpy as np

from roboyard.geometry.arrays import F32, U8
from roboyard.vision.opencv import opencv

GAMMA = 2.2
"""Bytes go with light to the power of 1 / GAMMA, nearly as in IEC 61966-2-1 (sRGB)."""


def expose(light: F32, rng: np.random.Generator, *, blur: float, noise: float) -> U8:
    """The picture of light (h, w, 3), where 1 gives the lightest byte.

    Args:
        light: Linear in energy.
        rng: Draws the noise.
        blur: Standard deviation of the point spread [px].
        noise: Standard deviation of each byte.
    """
    cv2 = opencv()
    if blur > 0.0:
        light = cv2.GaussianBlur(light, (0, 0), blur)
    bent = 255.0 * np.clip(light, 0.0, 1.0) ** np.float32(1.0 / GAMMA)
    if noise > 0.0:
        bent = bent + np.float32(noise) * rng.standard_normal(bent.shape, dtype=np.float32)
    return np.clip(np.round(bent), 0.0, 255.0).astype(np.uint8)


def light_of(picture: U8) -> F32:
    """The inverse: light of a picture."""
    table = (np.arange(256, dtype=np.float32) / 255.0) ** np.float32(GAMMA)
    return table[picture]
