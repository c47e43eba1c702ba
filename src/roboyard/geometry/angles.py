"""Angles on the circle."""

from __future__ import annotations

import math
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray


@overload
def wrap_angle(angle: float) -> float: ...
@overload
def wrap_angle(angle: ArrayLike) -> NDArray[np.float64]: ...
def wrap_angle(angle: Any) -> float | NDArray[np.float64]:
    """The same direction in (-pi, pi].

    Args:
        angle: One angle [rad], or an array of any shape.

    Returns:
        A float for a float, an array of the same shape otherwise; exact, without rounding drift over many turns.
    """
    if isinstance(angle, float | int):
        wrapped = math.remainder(angle, math.tau)
        return math.pi if wrapped == -math.pi else wrapped
    array = np.fmod(np.asarray(angle, dtype=np.float64), math.tau)
    array = np.where(array > math.pi, array - math.tau, array)
    wrapped_array: NDArray[np.float64] = np.where(array <= -math.pi, array + math.tau, array)
    return wrapped_array


def angle_between(start: float, end: float) -> float:
    """The shortest turn from ``start`` to ``end`` [rad], in (-pi, pi]."""
    return wrap_angle(end - start)
