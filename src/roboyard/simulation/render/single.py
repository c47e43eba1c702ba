"""Single-precision numbers for the kernels: a Python float would turn every sum of a loop into double precision."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from roboyard.geometry.arrays import F32, I32

Cases = Iterable[tuple[Any, ...]]

F = np.float32
ZERO, ONE, TWO, THREE, QUARTER, SIXTEEN, TINY = F(0), F(1), F(2), F(3), F(0.25), F(16), F(1e-9)


def floats(*shape: int) -> F32:
    """An array as a kernel meets it, for its examples."""
    return np.zeros(shape, np.float32)


def integers(*shape: int) -> I32:
    """The same of int32."""
    return np.zeros(shape, np.int32)
