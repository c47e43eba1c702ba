"""Kernels of geometry: laws, and agreement with the functions of numpy that they are the counterparts of."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from roboyard.compute import kernel
from roboyard.geometry import polygons, quaternion_kernels, quaternions, wrap_angle
from roboyard.geometry.planar_kernels import signed_distance, wrap_angle_into_range
from roboyard.geometry.planar_kernels import wrap_angle as wrap_angle_compiled

SEEDS = st.integers(0, 2**32 - 1)
COMPONENT = st.floats(-3.0, 3.0)
VECTOR = st.tuples(COMPONENT, COMPONENT, COMPONENT)


@st.composite
def unit_vectors(draw, size):
    values = np.array(draw(st.tuples(*[st.floats(-1.0, 1.0)] * size)))
    length = np.linalg.norm(values)
    assume(length > 1e-3)
    return tuple((values / length).tolist())


UNIT_VECTOR, QUATERNION = unit_vectors(3), unit_vectors(4)


@kernel
def _rotate(q, v):
    return quaternion_kernels.rotate_vector(q, v)


@kernel
def _multiply(a, b):
    return quaternion_kernels.multiply(a, b)


@kernel
def _rotate_back(q, v):
    return quaternion_kernels.rotate_vector(quaternion_kernels.conjugate(q), quaternion_kernels.rotate_vector(q, v))


@kernel
def _rotated_x_axis(q):
    return quaternion_kernels.rotated_x_axis(q)


@kernel
def _shortest_rotation(a, b):
    return quaternion_kernels.shortest_rotation(a, b)


@kernel
def _project(a, b):
    return quaternion_kernels.subtract(a, quaternion_kernels.add_scaled(a, -quaternion_kernels.dot(a, b), b))


@given(st.floats(-math.pi + 1e-15, math.pi))
def test_angle_in_range_is_returned_as_it_is(angle):
    assert wrap_angle_compiled(angle) == wrap_angle(angle) == angle


@given(st.floats(-1e4, 1e4))
def test_compiled_wrap_gives_the_same_direction_as_the_exact_one(angle):
    wrapped = wrap_angle_compiled(angle)
    assert abs(wrapped) <= math.pi + 1e-11
    assert abs(math.remainder(wrapped - wrap_angle(angle), math.tau)) < 1e-11


def test_both_wraps_give_plus_pi_for_a_half_turn():
    assert wrap_angle_compiled(-math.pi) == wrap_angle(-math.pi) == math.pi
    assert wrap_angle_compiled(math.pi) == wrap_angle(math.pi) == math.pi


@given(SEEDS, st.booleans())
def test_signed_distance_agrees_with_polygons(seed, is_clockwise):
    rng = np.random.default_rng(seed)
    angles = np.sort(rng.uniform(0.0, math.tau, 9))
    corners = rng.uniform(0.5, 2.0, (9, 1)) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    corners = np.ascontiguousarray(corners[::-1]) if is_clockwise else corners
    points = rng.uniform(-2.5, 2.5, (20, 2))
    distances = np.array([signed_distance(corners, x, y) for x, y in points])
    np.testing.assert_allclose(np.abs(distances), polygons.boundary_distance(corners, points), atol=1e-12)
    np.testing.assert_array_equal(distances < 0.0, polygons.contains(corners, points))


def test_signed_distance_to_a_polygon_with_a_repeated_corner_is_finite():
    corners = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    assert signed_distance(corners, 0.5, 0.25) == -0.25
    assert signed_distance(corners, -3.0, -4.0) == 5.0


@given(QUATERNION, QUATERNION, VECTOR)
def test_compiled_products_and_rotations_agree_with_those_of_arrays(a, b, v):
    np.testing.assert_allclose(_rotate(a, v), quaternions.rotate(a, v), atol=1e-12)
    np.testing.assert_allclose(_rotate(_multiply(a, b), v), _rotate(a, _rotate(b, v)), atol=1e-12)


@given(QUATERNION, VECTOR)
def test_conjugate_inverts_a_rotation(q, v):
    np.testing.assert_allclose(_rotate_back(q, v), v, atol=1e-12)


@given(QUATERNION)
def test_rotated_x_axis_is_the_rotation_of_that_axis(q):
    np.testing.assert_allclose(_rotated_x_axis(q), _rotate(q, (1.0, 0.0, 0.0)), atol=1e-12)


@given(UNIT_VECTOR, UNIT_VECTOR)
def test_shortest_rotation_takes_the_first_vector_to_the_second_across_both(a, b):
    q = _shortest_rotation(a, b)
    np.testing.assert_allclose(_rotate(q, a), b, atol=1e-6)
    assert np.dot(q[1:], a) == pytest.approx(0.0, abs=1e-6)


@given(UNIT_VECTOR)
def test_shortest_rotation_to_the_opposite_vector_is_a_half_turn(a):
    q = _shortest_rotation(a, (-a[0], -a[1], -a[2]))
    np.testing.assert_allclose(_rotate(q, a), np.negative(a), atol=1e-12)


@given(VECTOR, UNIT_VECTOR)
def test_projection_onto_a_direction_keeps_the_part_along_it(a, b):
    np.testing.assert_allclose(_project(a, b), np.dot(a, b) * np.array(b), atol=1e-12)


@given(st.floats(-20.0, 20.0), st.floats(-4.0, 4.0), st.floats(0.01, 6.2))
def test_angle_is_wrapped_into_a_range_that_whole_turns_reach(angle, low, width):
    high, center = low + width, low + 0.5 * width
    wrapped = wrap_angle_into_range(angle, low, high)
    assert abs(math.remainder(wrapped - angle, math.tau)) < 1e-9
    assert abs(wrapped - center) <= math.pi + 1e-9
    if low <= angle <= high:
        assert wrapped == angle
