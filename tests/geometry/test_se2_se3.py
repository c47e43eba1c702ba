"""SE2 and SE3 satisfy the laws of the groups of rigid motions."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.errors import InputError
from roboyard.geometry import SE2, SE3, angle_between, wrap_angle

LENGTH = st.floats(-100.0, 100.0)
ANGLE = st.floats(-10.0, 10.0)
SMALL_ANGLE = st.floats(-1.0, 1.0)
POSE2 = st.builds(SE2, LENGTH, LENGTH, ANGLE)
POSE3 = st.builds(
    lambda xyz, rpy: SE3.from_xyz_rpy(xyz, rpy), st.tuples(LENGTH, LENGTH, LENGTH), st.tuples(ANGLE, ANGLE, ANGLE)
)
POSES = {SE2: POSE2, SE3: POSE3}
POSE = st.one_of(POSE2, POSE3)
TRIPLE = st.one_of(*(st.tuples(s, s, s) for s in (POSE2, POSE3)))


@given(TRIPLE)
def test_composition_is_associative(poses):
    a, b, c = poses
    assert ((a @ b) @ c).almost_equal(a @ (b @ c), 1e-9)


@given(POSE)
def test_identity_and_inverse_obey_the_group_laws(pose):
    identity = type(pose).identity()
    assert (identity @ pose).almost_equal(pose, 1e-12)
    assert (pose @ identity).almost_equal(pose, 1e-12)
    assert (pose @ pose.inverse()).almost_equal(identity, 1e-9)
    assert (pose.inverse() @ pose).almost_equal(identity, 1e-9)
    assert pose.inverse().inverse().almost_equal(pose, 1e-9)


@given(TRIPLE)
def test_composition_agrees_with_matrices(poses):
    a, b, _ = poses
    np.testing.assert_allclose((a @ b).matrix(), a.matrix() @ b.matrix(), atol=1e-9)
    np.testing.assert_allclose(a.inverse().matrix(), np.linalg.inv(a.matrix()), atol=1e-9)
    assert type(a).from_matrix(a.matrix()).almost_equal(a, 1e-7)


@given(TRIPLE, st.integers(0, 2**32 - 1))
def test_composition_acts_on_points_in_sequence(poses, seed):
    a, b, _ = poses
    points = np.random.default_rng(seed).normal(size=(4, 5, 2 if isinstance(a, SE2) else 3))
    np.testing.assert_allclose((a @ b) @ points, a @ (b @ points), atol=1e-9)
    homogeneous = np.concatenate([points, np.ones((4, 5, 1))], axis=-1)
    np.testing.assert_allclose(a @ points, (homogeneous @ a.matrix().T)[..., :-1], atol=1e-9)
    assert (a @ points[0, 0]).shape == points[0, 0].shape


@given(POSE)
def test_exponential_inverts_the_logarithm(pose):
    assert type(pose).exp(pose.log()).almost_equal(pose, 1e-7)


@given(st.tuples(LENGTH, LENGTH, LENGTH), st.floats(0.0, math.pi - 1e-6), st.integers(0, 2**32 - 1))
def test_logarithm_inverts_the_exponential(linear, angle, seed):
    axis = np.random.default_rng(seed).normal(size=3)
    twist = np.concatenate([linear, angle * axis / np.linalg.norm(axis)])
    np.testing.assert_allclose(SE3.exp(twist).log(), twist, atol=1e-6)
    flat = np.array([linear[0], linear[1], angle])
    np.testing.assert_allclose(SE2.exp(flat).log(), flat, atol=1e-8)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-9, 1e-6, 9.9e-5, 1.01e-4, 9.99e-4, 1.001e-3, 1e-2, 1.0, 3.0])
def test_exponential_agrees_with_the_matrix_series(angle):
    from scipy.linalg import expm

    v, axis = np.array([0.3, -1.0, 2.0]), np.array([1.0, 2.0, -2.0]) / 3.0
    x, y, z = angle * axis
    generator = np.array([[0, -z, y, v[0]], [z, 0, -x, v[1]], [-y, x, 0, v[2]], [0, 0, 0, 0.0]])
    np.testing.assert_allclose(SE3.exp([*v, x, y, z]).matrix(), expm(generator), atol=1e-13)
    flat = np.array([[0, -angle, v[0]], [angle, 0, v[1]], [0, 0, 0.0]])
    np.testing.assert_allclose(SE2.exp([v[0], v[1], angle]).matrix(), expm(flat), atol=1e-13)


@given(TRIPLE, st.integers(0, 2**32 - 1))
def test_adjoint_transforms_twists(poses, seed):
    pose = poses[0]
    twist = 0.3 * np.random.default_rng(seed).normal(size=3 if isinstance(pose, SE2) else 6)
    transformed = pose @ type(pose).exp(twist) @ pose.inverse()
    assert transformed.almost_equal(type(pose).exp(pose.adjoint() @ twist), 1e-8)
    a, b, _ = poses
    np.testing.assert_allclose((a @ b).adjoint(), a.adjoint() @ b.adjoint(), atol=1e-7)


@given(TRIPLE, st.floats(0.0, 1.0))
def test_interpolation_is_uniform_between_two_poses(poses, s):
    a, b, _ = poses
    assert a.interpolate(b, 0.0) == a
    assert a.interpolate(b, 1.0).almost_equal(b, 1e-12)
    midpoint = a.interpolate(b, s)
    assert midpoint.distance(a) == pytest.approx(s * a.distance(b), abs=1e-9)
    if isinstance(a, SE3) and a.angle_to(b) < 3.1:
        assert a.angle_to(midpoint) == pytest.approx(s * a.angle_to(b), abs=1e-7)
        assert midpoint.almost_equal(b.interpolate(a, 1.0 - s), 1e-7)


@given(POSE2)
def test_planar_poses_embed_in_space(pose):
    assert SE2.from_se3(pose.to_se3(0.7)).almost_equal(pose, 1e-9)
    assert pose.to_se3(0.7).z == 0.7
    other = SE2(0.3, -0.2, 2.0)
    assert (pose @ other).to_se3().almost_equal(pose.to_se3() @ other.to_se3(), 1e-9)


@given(st.tuples(LENGTH, LENGTH, LENGTH), st.tuples(st.floats(-3.1, 3.1), st.floats(-1.5, 1.5), st.floats(-3.1, 3.1)))
def test_roll_pitch_yaw_are_recovered(xyz, rpy):
    pose = SE3.from_xyz_rpy(xyz, rpy)
    np.testing.assert_allclose(pose.rpy, rpy, atol=1e-9)
    assert pose.yaw == pytest.approx(rpy[2], abs=1e-9)
    assert tuple(pose.xyz) == xyz


def test_rpy_are_rotations_around_fixed_axes():
    """As URDF defines it: R = Rz(yaw) Ry(pitch) Rx(roll)."""
    x, y, z = (SE3.from_xyz_rpy(rpy=rpy) for rpy in ((0.3, 0, 0), (0, 0.5, 0), (0, 0, 0.7)))
    assert (z @ y @ x).almost_equal(SE3.from_xyz_rpy(rpy=(0.3, 0.5, 0.7)), 1e-12)


@pytest.mark.parametrize("pitch", [math.pi / 2, -math.pi / 2])
@pytest.mark.parametrize("offset", [0.0, 1e-13, 1e-9, 1e-7, 1e-4])
def test_rpy_is_recovered_near_gimbal_lock(pitch, offset):
    pose = SE3.from_xyz_rpy(rpy=(0.4, pitch - math.copysign(offset, pitch), 0.3))
    assert SE3.from_xyz_rpy(rpy=pose.rpy).almost_equal(pose, 1e-12)
    if offset == 0.0:
        assert pose.rpy[2] == 0.0


def test_rotation_stays_normalized_in_long_products():
    step = SE3.from_xyz_rpy((0.001, 0.0, 0.0), (0.001, -0.002, 0.003))
    pose = SE3.identity()
    for _ in range(20_000):
        pose = pose @ step
    assert np.linalg.norm(pose.rotation) == pytest.approx(1.0, abs=1e-15)


@given(POSE3)
def test_opposite_quaternions_are_the_same_rotation(pose):
    assert pose == SE3(-pose.rotation, pose.translation)
    assert pose == SE3(pose.rotation, pose.translation)
    assert hash(pose) == hash(SE3(pose.rotation, pose.translation))
    assert pose.rotation[0] >= 0.0
    assert SE3(7.0 * pose.rotation, pose.translation).almost_equal(pose, 1e-12)
    assert pose.quaternion == tuple(pose.rotation)


@given(POSE)
def test_poses_survive_pickle_and_copy(pose):
    for duplicate in (pickle.loads(pickle.dumps(pose)), copy.copy(pose), copy.deepcopy(pose)):
        assert duplicate == pose


def test_poses_are_immutable():
    pose = SE3()
    with pytest.raises(AttributeError, match="immutable"):
        pose.x = 1.0
    with pytest.raises(AttributeError):
        pose._q = (0, 0, 0, 1)
    with pytest.raises(AttributeError):
        del pose._q
    with pytest.raises(ValueError, match="read-only"):
        pose.translation[0] = 1.0
    with pytest.raises(AttributeError):
        SE2().x = 1.0


@pytest.mark.parametrize(
    "compute",
    [
        lambda: SE3((0, 0, 0, 0)),
        lambda: SE3((math.nan, 0, 0, 1)),
        lambda: SE3((math.inf, 0, 0, 1)),
        lambda: SE3(translation=(math.nan, 0, 0)),
        lambda: SE3(translation=(0, 0)),
        lambda: SE3((1, 0, 0)),
        lambda: SE3(np.eye(4)),
        lambda: SE3.from_matrix(np.eye(3)),
        lambda: SE3.from_matrix(np.diag([1, 1, -1, 1])),
        lambda: SE3.from_matrix(np.diag([1, 1, 2, 1])),
        lambda: SE3.from_matrix(np.full((4, 4), math.nan)),
        lambda: SE3() @ np.zeros((3, 2)),
        lambda: SE2(math.nan),
        lambda: SE2(0, math.inf),
        lambda: SE2() @ np.zeros(3),
        lambda: SE2.from_matrix(np.eye(4)),
        lambda: SE2.from_matrix(np.diag([1, -1, 1])),
    ],
    ids=[
        "zero_rotation", "nan_rotation", "infinite_rotation", "nan_translation", "short_translation", "short_rotation",
        "matrix_as_rotation", "planar_matrix", "reflection", "scaling", "nan_matrix", "planar_points", "nan_x",
        "infinite_y", "spatial_point", "spatial_matrix", "planar_reflection",
    ],
)  # fmt: skip
def test_invalid_poses_are_refused(compute):
    with pytest.raises(InputError):
        compute()


def test_product_of_points_and_a_pose_is_refused():
    with pytest.raises(TypeError):
        np.zeros((4, 3)) @ SE3()
    with pytest.raises(TypeError):
        np.zeros((4, 2)) @ SE2()


@given(st.floats(-1e6, 1e6))
def test_wrapped_angle_is_equivalent_and_in_range(angle):
    wrapped = wrap_angle(angle)
    assert -math.pi < wrapped <= math.pi
    assert math.cos(wrapped) == pytest.approx(math.cos(angle), abs=1e-9)
    assert math.sin(wrapped) == pytest.approx(math.sin(angle), abs=1e-9)
    assert wrap_angle(wrapped) == wrapped
    assert wrap_angle(np.array([[angle]]))[0, 0] == wrapped


def test_half_turn_wraps_to_plus_pi():
    assert wrap_angle(math.pi) == wrap_angle(-math.pi) == math.pi
    assert wrap_angle(np.array([math.pi, -math.pi])).tolist() == [math.pi, math.pi]
    assert angle_between(3.0, -3.0) == pytest.approx(2 * math.pi - 6.0)
    assert SE2(0, 0, -math.pi).theta == math.pi


@pytest.mark.parametrize(
    "compute",
    [lambda: SE3() @ SE2(), lambda: SE2() @ SE3(), lambda: SE3() @ "x", lambda: SE2("a", 0, 0)],
    ids=["se3_se2", "se2_se3", "text", "text_coordinate"],
)
def test_pose_products_with_other_types_are_input_errors(compute) -> None:
    with pytest.raises(InputError):
        compute()


@given(POSE2)
def test_pose_to_tuple_and_back_is_exact(pose: SE2) -> None:
    assert SE2.from_tuple(pose.to_tuple()) == pose


@pytest.mark.parametrize("values", [(), (1.0, 2.0), (1.0, 2.0, 3.0, 4.0), (1.0, math.nan, 0.0)])
def test_tuple_that_is_no_pose_is_refused(values: tuple[float, ...]) -> None:
    with pytest.raises(InputError):
        SE2.from_tuple(values)
