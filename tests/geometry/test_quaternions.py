"""Quaternion functions agree with the rotations of scipy."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation, Slerp

from roboyard.errors import InputError
from roboyard.geometry import quaternions as quat

SEEDS = st.integers(0, 2**32 - 1)


def random_rotations(seed, count=6):
    return Rotation.random(count, random_state=np.random.default_rng(seed))


def as_wxyz(rotation):
    return rotation.as_quat(canonical=True, scalar_first=True)


@given(SEEDS)
def test_products_and_rotated_vectors_agree_with_scipy(seed):
    a, b = random_rotations(seed), random_rotations(seed + 1)
    v = np.random.default_rng(seed).normal(size=(6, 3))
    np.testing.assert_allclose(quat.normalize(quat.multiply(as_wxyz(a), as_wxyz(b))), as_wxyz(a * b), atol=1e-12)
    np.testing.assert_allclose(quat.rotate(as_wxyz(a), v), a.apply(v), atol=1e-12)
    np.testing.assert_allclose(quat.normalize(quat.conjugate(as_wxyz(a))), as_wxyz(a.inv()), atol=1e-12)


@given(SEEDS)
def test_matrices_and_angles_agree_with_scipy(seed):
    a = random_rotations(seed)
    q = as_wxyz(a)
    np.testing.assert_allclose(quat.to_matrix(q), a.as_matrix(), atol=1e-12)
    np.testing.assert_allclose(quat.z_axis(q), a.as_matrix()[..., 2], atol=1e-12)
    np.testing.assert_allclose(quat.from_matrix(a.as_matrix()), q, atol=1e-9)
    np.testing.assert_allclose(quat.to_rpy(q), a.as_euler("xyz"), atol=1e-9)
    np.testing.assert_allclose(quat.from_rpy(a.as_euler("xyz")), q, atol=1e-9)
    np.testing.assert_allclose(quat.to_rotation_vector(q), a.as_rotvec(), atol=1e-9)
    np.testing.assert_allclose(quat.from_rotation_vector(a.as_rotvec()), q, atol=1e-12)


@given(SEEDS, st.floats(0.0, 1.0))
def test_slerp_agrees_with_scipy(seed, s):
    a, b = random_rotations(seed, 2)
    expected = Slerp([0.0, 1.0], Rotation.concatenate([a, b]))(s)
    interpolated = Rotation.from_quat(quat.slerp(as_wxyz(a), as_wxyz(b), s), scalar_first=True)
    assert (interpolated * expected.inv()).magnitude() < 1e-7 or (a.inv() * b).magnitude() > 3.14


def test_slerp_broadcasts_and_handles_close_quaternions():
    a, b = as_wxyz(random_rotations(1)), as_wxyz(random_rotations(2))
    path = quat.slerp(a[0], b[0], np.linspace(0.0, 1.0, 11))
    assert path.shape == (11, 4)
    rotations = [Rotation.from_quat(q, scalar_first=True) for q in path]
    steps = [(p.inv() * q).magnitude() for p, q in itertools.pairwise(rotations)]
    np.testing.assert_allclose(steps, steps[0], atol=1e-9)
    close = quat.from_rotation_vector([1e-12, 0.0, 0.0])
    np.testing.assert_allclose(quat.slerp([1, 0, 0, 0], close, 0.5), [1, 0, 0, 0], atol=1e-12)
    assert quat.slerp(a, b, 0.3).shape == (6, 4)


@given(SEEDS)
def test_rotation_from_two_vectors_aligns_them(seed):
    a, b = np.random.default_rng(seed).normal(size=(2, 5, 3))
    q = quat.from_two_vectors(a, b)
    rotated = quat.rotate(q, a)
    np.testing.assert_allclose(np.cross(rotated, b), 0.0, atol=1e-9)
    assert np.all(np.sum(rotated * b, axis=-1) > 0.0)
    angle = np.arccos(np.clip(np.sum(a * b, -1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1), -1, 1))
    np.testing.assert_allclose(np.linalg.norm(quat.to_rotation_vector(q), axis=-1), angle, atol=1e-7)


@pytest.mark.parametrize("axis", np.vstack([np.eye(3), -np.eye(3), [[0.6, 0.8, 0.0]], [[0.5, 0.5, 0.7]]]))
def test_rotation_from_opposite_vectors_is_a_half_turn(axis):
    np.testing.assert_allclose(quat.rotate(quat.from_two_vectors(axis, -axis), axis), -axis, atol=1e-9)
    np.testing.assert_allclose(quat.from_two_vectors(axis, 3.0 * axis), [1, 0, 0, 0], atol=1e-12)


def test_half_turn_rotations_keep_their_axis():
    for axis in np.eye(3):
        R = Rotation.from_rotvec(np.pi * axis).as_matrix()
        np.testing.assert_allclose(np.abs(quat.from_matrix(R)), [0, *axis], atol=1e-12)
        assert quat.normalize([0.0, *-axis]).tolist() == [0.0, *axis]


def test_tiny_rotations_keep_their_precision():
    vector = np.array([1e-9, -2e-9, 3e-9])
    np.testing.assert_allclose(quat.to_rotation_vector(quat.from_rotation_vector(vector)), vector, rtol=1e-12)
    assert quat.to_rotation_vector([1.0, 0.0, 0.0, 0.0]).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "compute",
    [
        lambda: quat.normalize(np.zeros(4)),
        lambda: quat.normalize([np.nan, 0, 0, 0]),
        lambda: quat.normalize(np.zeros(3)),
        lambda: quat.rotate([1, 0, 0, 0], [1, 2]),
        lambda: quat.from_matrix(np.zeros((3, 3))),
        lambda: quat.from_matrix(-np.eye(3)),
        lambda: quat.from_matrix(np.eye(4)),
        lambda: quat.from_two_vectors(np.zeros(3), np.ones(3)),
    ],
    ids=["zero", "nan", "length", "planar_vector", "zero_matrix", "reflection", "matrix_4x4", "zero_vector"],
)
def test_invalid_rotations_are_refused(compute):
    with pytest.raises(InputError):
        compute()
