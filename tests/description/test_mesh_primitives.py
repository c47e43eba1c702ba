"""Fitted primitives enclose the mesh, state their error, and recover the parameters of primitives."""

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.description.mesh_samples import BALL, make_box, make_cylinder, make_surface, poses

from roboyard.description import Box, Cylinder, Sphere
from roboyard.description.meshes import (
    TriangleMesh,
    approximate_collision,
    concatenate_meshes,
    fit_primitive,
    fit_primitives,
)
from roboyard.description.meshes.primitives import signed_distance, smallest_enclosing_ball
from roboyard.errors import DescriptionError, InputError, UnknownNameError
from roboyard.geometry import SE3


@pytest.mark.slow
@given(poses)
@settings(max_examples=3)
def test_fitted_shapes_recover_their_own_parameters(T: SE3) -> None:
    fitted_box, fitted_cylinder, fitted_sphere = (
        fit_primitive(make_box().transformed(T)),
        fit_primitive(make_cylinder().transformed(T)),
        fit_primitive(BALL.transformed(T)),
    )
    assert isinstance(fitted_box.shape, Box)
    np.testing.assert_allclose(sorted(fitted_box.shape.size), [1.0, 2.0, 3.0], atol=1e-6)
    assert isinstance(fitted_cylinder.shape, Cylinder)
    assert (fitted_cylinder.shape.radius, fitted_cylinder.shape.length) == pytest.approx((0.5, 2.0), abs=1e-3)
    assert isinstance(fitted_sphere.shape, Sphere)
    assert fitted_sphere.shape.radius == pytest.approx(1.0, abs=1e-6)
    for primitive in (fitted_box, fitted_cylinder, fitted_sphere):
        np.testing.assert_allclose(primitive.T_mesh_shape.translation, T.translation, atol=1e-5)


@given(st.integers(0, 10_000))
@settings(max_examples=8)
def test_fitted_shapes_enclose_the_mesh_and_state_their_error(seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(40, 3)) * [1.0, 0.5, 0.2]
    body = make_surface(trimesh.convex.convex_hull(points))
    for primitive in fit_primitives(body):
        protrusions = signed_distance(primitive.shape, primitive.T_mesh_shape.inverse() @ body.vertices)
        assert protrusions.max() <= 1e-9
        assert primitive.max_protrusion <= 1e-9
        assert primitive.volume_excess >= -1e-9
        assert primitive.volume == pytest.approx((1.0 + primitive.volume_excess) * body.volume)
        assert 0.0 <= primitive.max_gap < body.diagonal


@given(st.integers(0, 10_000), st.integers(2, 3))
@settings(max_examples=25)
def test_smallest_ball_touches_its_support_points(seed: int, dimensions: int) -> None:
    points = np.random.default_rng(seed).normal(size=(30, dimensions))
    center, radius = smallest_enclosing_ball(points)
    distances = np.linalg.norm(points - center, axis=1)
    assert distances.max() <= radius * (1 + 1e-9)
    support_vectors = points[distances >= radius * (1 - 1e-7)] - center
    # The radius is minimal: a step of the center in any direction increases the distance to a support point.
    for direction in np.random.default_rng(seed + 1).normal(size=(200, dimensions)):
        assert (support_vectors @ direction).min() <= 1e-9


def test_collision_approximation_fits_each_component() -> None:
    pair = concatenate_meshes([make_box(), BALL.transformed(SE3(translation=(5, 0, 0)))])
    approximation = approximate_collision(pair, ("box", "sphere"), 2)
    assert {type(shape) for shape, _ in approximation.shapes} == {Box, Sphere}
    assert approximation.volume_excess < 0.01 < approximate_collision(pair, ("box",), 1).volume_excess
    assert approximation.max_protrusion < 1e-6
    for shape_types, error in ((("ball",), UnknownNameError), (("hull", "box"), InputError), ((), InputError)):
        with pytest.raises(error):
            approximate_collision(pair, shape_types)
    flat = TriangleMesh(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0.0]]), np.array([[0, 1, 2]]))
    with pytest.raises(DescriptionError, match="flat"):
        approximate_collision(flat)


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.2, 1.0))
def test_dense_hull_is_fitted_as_tightly_as_a_sparse_one(seed: int, flat: float) -> None:
    """The fit to a dense rotated ellipsoid evaluates few of its vertices, but encloses all of them."""
    random = np.random.default_rng(seed)
    ball = trimesh.creation.icosphere(subdivisions=5)
    rotation = trimesh.transformations.random_rotation_matrix(random.random(3))[:3, :3]
    corners = (ball.vertices * [1.0, flat, 0.5 * flat]) @ rotation.T
    ellipsoid = TriangleMesh(corners, ball.faces)
    for primitive in fit_primitives(ellipsoid):
        assert signed_distance(primitive.shape, primitive.T_mesh_shape.inverse() @ corners).max() < 1e-9
        assert primitive.max_protrusion < 1e-9
    # The smallest box around an ellipsoid is aligned with its axes; the fitted one is close to it.
    fitted_box = next(primitive for primitive in fit_primitives(ellipsoid, ("box",)))
    assert 1.0 - 1e-2 <= fitted_box.volume / (4.0 * flat * flat) <= 1.15
