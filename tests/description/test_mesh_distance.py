"""Distances of points and meshes are exact, and simplification keeps its error bound."""

import math

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.description.mesh_samples import (
    make_box,
    make_surface,
    make_torus,
    numbers,
)

from roboyard.description.meshes import (
    MeshDistance,
    TriangleMesh,
    hausdorff_distance,
    simplify_to_count,
    simplify_to_error,
)
from roboyard.errors import InputError


@given(st.tuples(numbers, numbers, numbers))
@settings(max_examples=50)
def test_mesh_distances_agree_with_a_box(point: tuple[float, float, float]) -> None:
    p, half = np.array(point), np.array([0.5, 1.0, 1.5])
    outside = np.linalg.norm(np.maximum(np.abs(p) - half, 0.0))
    expected = outside if outside > 0.0 else (half - np.abs(p)).min()
    assert MeshDistance(make_box()).distances(p[None])[0] == pytest.approx(expected, abs=1e-12)


def test_hausdorff_distance_is_a_metric() -> None:
    ball = make_surface(trimesh.creation.icosphere(subdivisions=4))
    larger = TriangleMesh(ball.vertices * 1.1, ball.faces)
    assert hausdorff_distance(ball, ball, 100) == pytest.approx(0.0, abs=1e-12)
    distance = hausdorff_distance(ball, larger, 1000)
    assert distance == hausdorff_distance(larger, ball, 1000)
    assert distance == pytest.approx(0.1, abs=1e-3)


def test_simplification_keeps_face_count_and_error_bound() -> None:
    mesh = make_torus(36, 18)
    errors = []
    for triangles in (100, 300, 900):
        reduced = simplify_to_count(mesh, triangles)
        assert len(reduced.mesh.faces) <= 1.02 * triangles
        # The error is checked at other points than those at which it was measured.
        points = trimesh.sample.sample_surface(trimesh.Trimesh(mesh.vertices, mesh.faces), 5000, seed=3)[0]
        assert MeshDistance(reduced.mesh).distances(np.asarray(points)).max() <= 1.02 * reduced.error + 1e-9
        errors.append(reduced.error)
    assert errors[0] > errors[1] > errors[2]
    assert simplify_to_count(mesh, len(mesh.faces)).error == 0.0
    simplified = simplify_to_error(mesh, 0.03)
    assert simplified.error <= 0.03
    assert len(simplified.mesh.faces) < len(mesh.faces) / 2
    for invalid in (
        lambda: simplify_to_count(mesh, 3),
        lambda: simplify_to_error(mesh, 0.0),
        lambda: simplify_to_error(mesh, math.nan),
    ):
        with pytest.raises(InputError):
            invalid()
