"""Numbers drawn by what they are for: the same ones whoever draws them, in whatever order and on however many cores."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from roboyard.compute import kernel

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.uint64(1),)])
def mixed(word: np.uint64) -> np.uint64:
    """A word's bits, each spread over all.  Steele, Lea, Flood: Fast splittable pseudorandom numbers, 2014."""
    x = word
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.uint64(1), 0)])
def key_of(parent: np.uint64, number: int) -> np.uint64:
    """A stream's key, of its parent's and its number."""
    return mixed(parent + _GOLDEN * np.uint64(number + 1))


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.uint64(1), 0)])
def uniform(key: np.uint64, number: int) -> float:
    """The number-th draw of a stream: from 0 up to 1."""
    return float(key_of(key, number) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(0.5, 0.0, 0.5, 1.0)])
def triangular(share: float, low: float, mode: float, high: float) -> float:
    """A uniform draw turned into one of a triangular distribution."""
    wide = high - low
    if wide <= 0.0:
        return low
    cut = (mode - low) / wide
    if share < cut:
        return low + math.sqrt(share * wide * (mode - low))
    return high - math.sqrt((1.0 - share) * wide * (high - mode))
