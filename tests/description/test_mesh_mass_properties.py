"""Mass properties of meshes agree with closed forms and trimesh, and obey the parallel axis theorem."""

import math

import numpy as np
import pytest
import trimesh
from hypothesis import given
from hypothesis import strategies as st
from tests.description.mesh_samples import (
    BALL,
    SMOOTH_BALL,
    make_box,
    make_cylinder,
    make_surface,
    make_torus,
    numbers,
    poses,
    reduced_examples,
)

from roboyard.description.meshes import (
    TriangleMesh,
    combine_mass_properties,
    compute_mass_properties,
    compute_origin_transform,
)
from roboyard.errors import InputError
from roboyard.geometry import SE3


@given(st.tuples(*[st.floats(0.1, 3.0)] * 3), poses, st.floats(0.1, 50.0))
@reduced_examples
def test_box_mass_properties_agree_with_closed_forms(size: tuple[float, float, float], T: SE3, mass: float) -> None:
    x, y, z = size
    properties = compute_mass_properties(make_box(x, y, z).transformed(T), mass=mass)
    box_inertia = np.diag([mass * (y * y + z * z), mass * (x * x + z * z), mass * (x * x + y * y)]) / 12.0
    R = T.rotation_matrix()
    np.testing.assert_allclose(properties.inertia, R @ box_inertia @ R.T, atol=1e-9 * mass * 10)
    np.testing.assert_allclose(properties.com, T.translation, atol=1e-9)
    assert properties.volume == pytest.approx(x * y * z)
    assert properties.density == pytest.approx(mass / (x * y * z))


@pytest.mark.parametrize(
    ("mesh", "volume", "moments"),
    [
        (SMOOTH_BALL, 4 / 3 * math.pi, (0.4, 0.4, 0.4)),
        (make_cylinder(sections=256), math.pi * 0.25 * 2, (1 / 16 + 4 / 12, 1 / 16 + 4 / 12, 1 / 8)),
        (make_torus(128, 64), 2 * math.pi**2 * 0.09, (0.5 + 5 / 8 * 0.09, 0.5 + 5 / 8 * 0.09, 1 + 3 / 4 * 0.09)),
    ],
    ids=["sphere", "cylinder", "torus"],
)
def test_round_solid_mass_properties_approach_closed_forms(
    mesh: TriangleMesh, volume: float, moments: tuple[float, ...]
) -> None:
    properties = compute_mass_properties(mesh, mass=1.0)
    assert properties.volume == pytest.approx(volume, rel=0.003)
    np.testing.assert_allclose(properties.inertia, np.diag(moments), atol=0.003)
    np.testing.assert_allclose(properties.principal_moments, sorted(moments), atol=0.003)


@given(poses, st.tuples(numbers, numbers, numbers))
@reduced_examples
def test_mesh_inertia_obeys_the_parallel_axis_theorem(T: SE3, point: tuple[float, float, float]) -> None:
    """Combined halves equal the body, also around another point, and a transform of the body transforms its inertia."""
    body = compute_mass_properties(make_box(1, 1, 2).transformed(T), density=3.0)
    halves = [
        compute_mass_properties(make_box(1, 1, 1).transformed(T @ SE3(translation=(0, 0, z))), density=3.0)
        for z in (-0.5, 0.5)
    ]
    combined = combine_mass_properties(halves)
    assert combined.mass == pytest.approx(body.mass)
    np.testing.assert_allclose(combined.inertia, body.inertia, atol=1e-9)
    np.testing.assert_allclose(
        combined.inertia_at(np.array(point)), sum(half.inertia_at(np.array(point)) for half in halves), atol=1e-7
    )
    transformed_back = body.transformed(T.inverse())
    np.testing.assert_allclose(
        transformed_back.inertia, compute_mass_properties(make_box(1, 1, 2), density=3.0).inertia, atol=1e-9
    )


def test_mass_properties_agree_with_trimesh() -> None:
    mesh = trimesh.creation.annulus(0.3, 0.5, 1.0)
    mesh.density = 2.0
    properties = compute_mass_properties(make_surface(mesh), density=2.0)
    np.testing.assert_allclose(properties.inertia, mesh.moment_inertia, rtol=1e-6, atol=1e-9)


def test_meshes_without_volume_are_refused() -> None:
    for options in ({}, {"mass": 1.0, "density": 1.0}, {"mass": -1.0}, {"mass": math.nan}, {"density": 0.0}):
        with pytest.raises(InputError, match="a positive number"):
            compute_mass_properties(BALL, **options)
    with pytest.raises(InputError, match="outward normals"):
        compute_mass_properties(TriangleMesh(BALL.vertices, BALL.faces[:, ::-1]), mass=1.0)


@given(poses, st.sampled_from(["com", "base", "center"]), st.tuples(numbers, numbers, numbers))
@reduced_examples
def test_changing_the_origin_is_an_isometry(T: SE3, origin: str, rpy: tuple[float, float, float]) -> None:
    mesh = make_torus().transformed(T)
    moved_mesh = mesh.transformed(compute_origin_transform(mesh, origin, rpy))
    assert moved_mesh.volume == pytest.approx(mesh.volume)
    assert moved_mesh.area == pytest.approx(mesh.area)
    restored = moved_mesh.transformed(compute_origin_transform(mesh, origin, rpy).inverse())
    np.testing.assert_allclose(restored.vertices, mesh.vertices, atol=1e-9)
    if origin == "com":
        np.testing.assert_allclose(compute_mass_properties(moved_mesh, mass=1.0).com, 0.0, atol=1e-9)


def test_base_origin_is_at_the_bottom_of_the_bounding_box() -> None:
    mesh = make_box().transformed(SE3(translation=(3, 2, 1)))
    low, high = mesh.transformed(compute_origin_transform(mesh, "base")).bounds
    np.testing.assert_allclose([low, high], [[-0.5, -1, 0], [0.5, 1, 3]], atol=1e-12)
    np.testing.assert_allclose(compute_origin_transform(mesh, np.array([1.0, 2, 3])) @ np.array([1.0, 2, 3]), 0.0)
    for origin in ("top", np.array([1.0, 2.0]), np.array([0, 0, np.nan])):
        with pytest.raises(InputError):
            compute_origin_transform(mesh, origin)
