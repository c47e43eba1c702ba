"""Coerces values of numeric fields to the declared array type, if no information but precision is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import MessageError


def coerce_array(value: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Convert `value` to a one-dimensional array of `dtype`.

    Lists, tuples, bytes and arrays of other number types are converted if the numbers fit: integers to any type that
    can represent them, real numbers to real numbers.

    Raises:
        TypeError: The numbers do not fit, the values are not numbers, or the array has not one dimension.
    """
    if isinstance(value, bytes | bytearray | memoryview) and dtype == np.uint8:
        return np.frombuffer(bytes(value), dtype=np.uint8)
    if isinstance(value, str) or not hasattr(value, "__len__"):
        raise TypeError(f"an array of {dtype} is required, got {_describe(value)}")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise TypeError(f"{_describe(value)} cannot be converted to an array of {dtype}") from error
    if array.ndim != 1:
        raise TypeError(f"a one-dimensional array is required, got shape {array.shape} (use .ravel())")
    if array.dtype == dtype:
        return array
    if array.size == 0:
        return np.zeros(0, dtype)
    fits = (
        dtype.kind == array.dtype.kind == "f"
        or (dtype.kind == "f" and array.dtype.kind in "iu")
        or (dtype.kind in "iu" and array.dtype.kind in "iu" and _is_in_range(array, dtype))
    )
    if not fits:
        raise TypeError(f"an array of {dtype} is required, got one of {array.dtype}")
    with np.errstate(over="ignore"):
        return array.astype(dtype)


def as_numbers(values: Any, name: str, dtype: Any = np.float64) -> NDArray[Any]:
    """Convert `values` to a new array of `dtype`, for a message.

    Raises:
        MessageError: They are not numbers, or do not fit.
    """
    try:
        return np.array(values, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise MessageError(f"{name}: {error}", valid=f"numbers as {np.dtype(dtype)}") from error


def coerce_bool(value: Any) -> bool:
    """Convert `value` to a bool.

    Raises:
        TypeError: It is neither a bool nor 0 or 1.
    """
    if isinstance(value, np.bool_) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise TypeError(f"a bool is required, got {_describe(value)}")


def _is_in_range(array: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    limits = np.iinfo(dtype)
    return int(array.min()) >= limits.min and int(array.max()) <= limits.max


def _describe(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"[:80]
