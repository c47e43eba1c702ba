"""Hypothesis strategies: messages of any type from the fields that its definition lists, poses, polygons."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from roboyard.geometry import SE2, SE3
from roboyard.messages import action_type, message_type, service_type, type_names
from roboyard.messages.message_definition import DTYPES, EMPTY_MEMBER
from roboyard.messages.type_registry import definition_of


def all_wire_types() -> list[str]:
    """Names of everything that travels: messages, and the parts of services and actions."""
    types = type_names("msg")
    for name in type_names("srv"):
        service = service_type(name)
        types += [service.Request.__msgtype__, service.Response.__msgtype__]
    for name in type_names("action"):
        action = action_type(name)
        parts = [action.Goal, action.Result, action.Feedback, action.FeedbackMessage]
        parts += [
            part for service in (action.SendGoal, action.GetResult) for part in (service.Request, service.Response)
        ]
        types += [part.__msgtype__ for part in parts]
    return types


@cache  # a strategy that is made anew for each draw costs more than the draw
def messages(name: str) -> st.SearchStrategy[Any]:
    """Messages of a type, all fields drawn."""
    fields = {f.python_name: values(f) for f in definition_of(name).fields if f.name != EMPTY_MEMBER}
    return st.builds(message_type(name), **fields)


def values(field: Any) -> st.SearchStrategy[Any]:
    """What a field may hold."""
    if field.arity == "one":
        return single(field)
    low, high = (field.size, field.size) if field.arity == "array" else (0, min(field.size or 3, 3))
    if field.is_primitive:
        dtype = np.dtype(DTYPES[field.type])
        return st.binary(min_size=low * 8, max_size=high * 8).map(lambda raw: numbers(raw, dtype, low))
    return st.lists(single(field), min_size=low, max_size=high)


def numbers(raw: bytes, dtype: np.dtype[Any], low: int) -> np.ndarray:
    """An array of whatever the bytes give: every bit pattern may come, NaN aside."""
    if dtype.kind == "b":
        return (np.frombuffer(raw[:: 8 if low else 1][: max(low, 3)], np.uint8) & 1).astype(bool)
    count = len(raw) // 8
    array = np.frombuffer(raw[: count * dtype.itemsize], dtype).copy()
    return np.nan_to_num(array, nan=0.5) if dtype.kind == "f" else array


def single(field: Any) -> st.SearchStrategy[Any]:
    """What one element of a field may be."""
    if field.is_message:
        return messages(field.type)
    if field.type == "string":
        return st.text(st.characters(exclude_categories=["Cs"]), max_size=min(field.string_capacity or 6, 6)).filter(
            lambda text: not field.string_capacity or len(text.encode()) <= field.string_capacity
        )
    if field.type == "bool":
        return st.booleans()
    if field.type == "byte":
        return st.integers(0, 127)  # rosbags, which we compare with, takes it for signed
    if field.type == "float32":
        return st.floats(width=32, allow_nan=False)
    if field.type == "float64":
        return st.floats(allow_nan=False)
    limits = np.iinfo(DTYPES[field.type])
    return st.integers(int(limits.min), int(limits.max))


def coordinates(limit: float = 3.0) -> st.SearchStrategy[float]:
    """Finite coordinates within a limit [m]."""
    return st.floats(-limit, limit)


def planar_poses(limit: float = 3.0) -> st.SearchStrategy[SE2]:
    """Poses in the plane with any heading."""
    return st.builds(SE2, coordinates(limit), coordinates(limit), st.floats(-math.pi, math.pi))


def poses(limit: float = 3.0) -> st.SearchStrategy[SE3]:
    """Poses in space with any roll, pitch and yaw."""
    three = st.tuples(coordinates(limit), coordinates(limit), coordinates(limit))
    angles = st.tuples(*[st.floats(-math.pi, math.pi)] * 3)
    return st.builds(SE3.from_xyz_rpy, three, angles)


@st.composite
def star_polygons(draw: st.DrawFn, *, corners: tuple[int, int] = (3, 12), radius: tuple[float, float] = (0.1, 2.0)):
    """Simple polygons (n, 2) round the origin, counter-clockwise: corners at increasing angles, at any distances.

    No two neighbours are half a turn apart, so that the origin lies inside.
    """
    n = draw(st.integers(*corners))
    shifts = draw(st.lists(st.floats(0.0, 0.9), min_size=n, max_size=n))
    radii = draw(st.lists(st.floats(*radius), min_size=n, max_size=n))
    # a corner in each of n equal sectors; the gap of two neighbours is below 2 sectors: half a turn from n = 4 on
    angles = 2.0 * np.pi * (np.arange(n) + np.array(shifts) * (0.5 if n == 3 else 1.0)) / n
    return np.array(radii)[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
