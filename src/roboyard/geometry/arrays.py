"""Types of arrays and vectors, and conversion of arguments to arrays and plain numbers."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError

Array: TypeAlias = NDArray[np.float64]
"""Array of real numbers; the docstring states the shape."""

F32: TypeAlias = NDArray[np.float32]
U8: TypeAlias = NDArray[np.uint8]
I32: TypeAlias = NDArray[np.int32]
I64: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

Vec3: TypeAlias = tuple[float, float, float]
"""Three numbers along x, y and z."""


def as_points(values: object, size: int) -> NDArray[np.float64]:
    """Convert the operand to the right of ``T @`` to an array (..., size) [m].

    Raises:
        InputError: It has no points of that size.
    """
    try:
        points = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"cannot multiply a transform by {type(values).__name__}",
            valid=f"a pose of the same kind or points (..., {size})",
        ) from error
    if points.shape[-1:] != (size,):
        raise InputError(f"points have the shape {points.shape}", valid=f"(..., {size})")
    return points


def as_floats(values: ArrayLike, count: int, name: str) -> tuple[float, ...]:
    """Convert `values` to `count` plain numbers.

    Raises:
        InputError: They are not numbers, or have another count.
    """
    try:
        items = values if isinstance(values, tuple) else np.asarray(values, dtype=np.float64).tolist()
        numbers = tuple(map(float, items))
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} has the shape {np.shape(values)}", valid=f"{count} numbers") from error
    if len(numbers) != count:
        raise InputError(f"{name} has {len(numbers)} numbers", valid=f"{count} numbers")
    return numbers
