"""Normally distributed noise for whole images: random bits, looked up in a table of the normal distribution.

The distribution of a byte has 256 levels up to 2.9 standard deviations and variance 1: as fine as the bytes of an
image, in a tenth of the time. The distribution of 16 bits has 65,536 levels up to 4.3 standard deviations, for
depth.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

N_UINT16_VALUES = 65536
"""How many words there are."""


def _make_normal_table(count: int) -> NDArray[np.float32]:
    from scipy.special import ndtri  # slow to import, and only cameras with noise need it

    values = ndtri((np.arange(count) + 0.5) / count)
    found: NDArray[np.float32] = (values / values.std()).astype(np.float32)
    return found


@cache
def uint8_normal_table() -> NDArray[np.float32]:
    """(256,) the normal number of each byte."""
    return _make_normal_table(256)


@cache
def uint16_normal_table() -> NDArray[np.float32]:
    """(65536,) the normal number of each word."""
    return _make_normal_table(N_UINT16_VALUES)


def draw_uint8_normals(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Random bytes for `uint8_normal_table`."""
    return np.frombuffer(rng.bytes(int(np.prod(shape))), np.uint8).reshape(shape)


def draw_uint16_normals(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.uint16]:
    """Random words for `uint16_normal_table`."""
    return np.frombuffer(rng.bytes(2 * int(np.prod(shape))), "<u2").reshape(shape)
