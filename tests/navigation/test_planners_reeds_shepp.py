"""Shortest ways of cars: they arrive, keep symmetries and the triangle inequality, and are no longer than others."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.navigation.planners.reeds_shepp import arc_end, dubins, reeds_shepp

POSE = st.tuples(st.floats(-8, 8), st.floats(-8, 8), st.floats(-math.pi, math.pi))
NEAR_POSE = st.tuples(st.floats(-2, 2), st.floats(-2, 2), st.floats(-math.pi, math.pi))


def _solve(kind, pose: tuple[float, float, float]) -> tuple[float, np.ndarray, np.ndarray]:
    sides, lengths = np.zeros(5, dtype=np.int64), np.zeros(5)
    return kind(*pose, sides, lengths), sides, lengths


def _relative(a: tuple[float, float, float], b: tuple[float, float, float]) -> tuple[float, float, float]:
    c, s = math.cos(a[2]), math.sin(a[2])
    dx, dy = b[0] - a[0], b[1] - a[1]
    return c * dx + s * dy, -s * dx + c * dy, b[2] - a[2]


@settings(max_examples=300, deadline=None)
@given(st.one_of(POSE, NEAR_POSE), st.sampled_from([dubins, reeds_shepp]))
def test_curve_reaches_its_end_with_its_stated_length(pose, kind) -> None:
    length, sides, lengths = _solve(kind, pose)
    reached = np.zeros(3)
    for side, part in zip(sides, lengths, strict=True):
        reached = np.array(arc_end(reached, part, float(side)))
    assert np.abs(lengths).sum() == pytest.approx(length)
    assert reached[:2] == pytest.approx(np.array(pose[:2]), abs=1e-6)
    assert math.cos(reached[2] - pose[2]) == pytest.approx(1.0, abs=1e-9)
    assert length >= math.hypot(pose[0], pose[1]) - 1e-9
    if kind is dubins:
        assert (lengths >= 0.0).all()


@settings(max_examples=200, deadline=None)
@given(st.one_of(POSE, NEAR_POSE), st.one_of(POSE, NEAR_POSE), st.one_of(POSE, NEAR_POSE))
def test_curve_lengths_are_a_metric(a, b, c) -> None:
    """A word forgotten or a formula wrong would break one of these somewhere."""
    ab, bc, ac = (_solve(reeds_shepp, _relative(p, q))[0] for p, q in ((a, b), (b, c), (a, c)))
    assert _solve(reeds_shepp, _relative(b, a))[0] == pytest.approx(ab, abs=1e-6)
    assert ac <= ab + bc + 1e-6
    forwards = [_solve(dubins, _relative(p, q))[0] for p, q in ((a, b), (b, c), (a, c))]
    assert forwards[2] <= forwards[0] + forwards[1] + 1e-6
    assert ab <= forwards[0] + 1e-6
    mirrored = _relative(a, b)
    assert _solve(reeds_shepp, (mirrored[0], -mirrored[1], -mirrored[2]))[0] == pytest.approx(ab, abs=1e-6)
