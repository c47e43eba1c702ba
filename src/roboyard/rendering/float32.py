"""Single-precision numbers for kernels: a Python float would make each sum in a loop double precision."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from roboyard.geometry.arrays import F32, I32

ExampleArguments = Iterable[tuple[Any, ...]]

F = np.float32
ZERO, ONE, TWO, THREE, QUARTER, SIXTEEN, TINY = F(0), F(1), F(2), F(3), F(0.25), F(16), F(1e-9)


def zeros_float32(*shape: int) -> F32:
    """An array as a kernel meets it, for its examples."""
    return np.zeros(shape, np.float32)


def zeros_int32(*shape: int) -> I32:
    """The same of int32."""
    return np.zeros(shape, np.int32)
