"""Coerces values of numeric fields to the declared array type, if no information but precision is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import MessageError


def coerce_array(value: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """``value`` as a one-dimensional array of ``dtype``.

    Lists, tuples, bytes and arrays of other number types are converted if the numbers fit: whole numbers into any type
    that holds them, real numbers into real numbers.

    Raises:
        TypeError: numbers that do not fit, no numbers, or not one dimension.
    """
    if isinstance(value, bytes | bytearray | memoryview) and dtype == np.uint8:
        return np.frombuffer(bytes(value), dtype=np.uint8)
    if isinstance(value, str) or not hasattr(value, "__len__"):
        raise TypeError(f"{_describe(value)} where an array of {dtype} belongs")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise TypeError(f"{_describe(value)} is no array of {dtype}") from error
    if array.ndim != 1:
        raise TypeError(f"array of shape {array.shape} where one dimension belongs (use .ravel())")
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
        raise TypeError(f"array of {array.dtype} where one of {dtype} belongs")
    with np.errstate(over="ignore"):
        return array.astype(dtype)


def as_numbers(values: Any, name: str, dtype: Any = np.float64) -> NDArray[Any]:
    """``values`` as a new array of ``dtype``, for conversion into a message.

    Raises:
        MessageError: they are no numbers, or do not fit.
    """
    try:
        return np.array(values, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise MessageError(f"{name}: {error}", valid=f"numbers as {np.dtype(dtype)}") from error


def coerce_bool(value: Any) -> bool:
    """``value`` as a bool.

    Raises:
        TypeError: neither a bool nor 0 or 1.
    """
    if isinstance(value, np.bool_) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise TypeError(f"{_describe(value)} where a bool belongs")


def _is_in_range(array: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    limits = np.iinfo(dtype)
    return int(array.min()) >= limits.min and int(array.max()) <= limits.max


def _describe(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"[:80]
