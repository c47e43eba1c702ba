"""Single-precision numbers for kernels, and arrays for the examples by which kernels are compiled.

A Python float in a kernel is a double: it would turn each sum in a loop into double precision. Kernels of this room
therefore take their constants from here. The constants are numbers of NumPy, which numba compiles as literals of single
precision.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from roboyard.geometry.arrays import F32, I32

ExampleArguments = Iterable[tuple[Any, ...]]
"""What a function returns that gives the examples of a kernel: tuples of arguments."""

F = np.float32
"""Type of the numbers."""

ZERO = F(0)
ONE = F(1)
TWO = F(2)
THREE = F(3)
QUARTER = F(0.25)
SIXTEEN = F(16)
TINY = F(1e-9)
"""Added to squares so that their root is never zero."""


def zeros_float32(*shape: int) -> F32:
    """Return an array of float32 of this shape, for the examples of a kernel."""
    return np.zeros(shape, np.float32)


def zeros_int32(*shape: int) -> I32:
    """Return an array of int32 of this shape, for the examples of a kernel."""
    return np.zeros(shape, np.int32)
