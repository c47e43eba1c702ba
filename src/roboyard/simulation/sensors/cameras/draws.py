"""Normal numbers for whole pictures, quickly: random bits each, through a table of the normal distribution.

A byte's distribution has 256 levels out to 2.9 standard deviations and variance 1: as fine as a picture's own bytes,
and a tenth of the time.  A word's has 65,536 levels out to 4.3 of them, for depth.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

WORDS = 65536
"""How many words there are."""


def _levels(count: int) -> NDArray[np.float32]:
    from scipy.special import ndtri  # slow to import, and only cameras with noise need it

    values = ndtri((np.arange(count) + 0.5) / count)
    found: NDArray[np.float32] = (values / values.std()).astype(np.float32)
    return found


@cache
def normal_bytes() -> NDArray[np.float32]:
    """(256,) the normal number of each byte."""
    return _levels(256)


@cache
def normal_words() -> NDArray[np.float32]:
    """(65536,) the normal number of each word."""
    return _levels(WORDS)


def byte_draws(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Random bytes for `normal_bytes`."""
    return np.frombuffer(rng.bytes(int(np.prod(shape))), np.uint8).reshape(shape)


def word_draws(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.uint16]:
    """Random words for `normal_words`."""
    return np.frombuffer(rng.bytes(2 * int(np.prod(shape))), "<u2").reshape(shape)
