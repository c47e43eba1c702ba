"""Types of arrays and vectors, and conversion of what users give to arrays and plain numbers."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError

Array: TypeAlias = NDArray[np.float64]
"""Real numbers; the docstring says the shape."""

F32: TypeAlias = NDArray[np.float32]
U8: TypeAlias = NDArray[np.uint8]
I32: TypeAlias = NDArray[np.int32]
I64: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

Vec3: TypeAlias = tuple[float, float, float]
"""Three numbers along x, y and z."""


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
