"""Normal numbers for whole pictures, quickly: random bits each, through a table of the normal distribution.

A byte's distribution has 256 levels out to 2.9 standard deviations and variance 1: as fine as a picture's own bytes,
and a tenth of the time.  A word's has 65,536 levels out to 4.3 of them, for depth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

WORDS = 65536
"""How many words there are."""


def _levels(count: int) -> NDArray[np.float32]:
    values = ndtri((np.arange(count) + 0.5) / count)
    found: NDArray[np.float32] = (values / values.std()).astype(np.float32)
    return found


NORMAL = _levels(256)
"""Normal number of each byte."""
FINE_NORMAL = _levels(WORDS)
"""Normal number of each word."""


def byte_draws(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Random bytes for `NORMAL`."""
    return np.frombuffer(rng.bytes(int(np.prod(shape))), np.uint8).reshape(shape)


def word_draws(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.uint16]:
    """Random words for `FINE_NORMAL`."""
    return np.frombuffer(rng.bytes(2 * int(np.prod(shape))), "<u2").reshape(shape)
