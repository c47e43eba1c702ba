"""Conversion of what users give to arrays and plain numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError


def as_points(values: object, size: int) -> NDArray[np.float64]:
    """What stands right of ``T @`` as an array (..., size) [m].

    Raises:
        InputError: it holds no points of that size.
    """
    try:
        points = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"T @ {type(values).__name__}", valid=f"a pose of the same kind or points (..., {size})"
        ) from error
    if points.shape[-1:] != (size,):
        raise InputError(f"points of shape {points.shape}", valid=f"(..., {size})")
    return points


def as_floats(values: ArrayLike, count: int, name: str) -> tuple[float, ...]:
    """``values`` as ``count`` plain numbers.

    Raises:
        InputError: no numbers, or another count.
    """
    try:
        items = values if isinstance(values, tuple) else np.asarray(values, dtype=np.float64).tolist()
        numbers = tuple(map(float, items))
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} of {np.shape(values)}", valid=f"{count} numbers") from error
    if len(numbers) != count:
        raise InputError(f"{name} of {len(numbers)} numbers", valid=f"{count} numbers")
    return numbers
