"""Split meshes are closed and keep volume and inertia."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.description.mesh_samples import BALL, make_box, make_torus, numbers, poses, reduced_examples

from roboyard.description.meshes import (
    TriangleMesh,
    combine_mass_properties,
    compute_mass_properties,
    concatenate_meshes,
    split_by_boxes,
    split_by_planes,
    split_components,
)
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3


@given(poses, st.lists(st.tuples(numbers, numbers, numbers, st.floats(-0.5, 0.5)), min_size=1, max_size=3))
@reduced_examples
def test_split_meshes_are_closed_and_keep_volume_and_inertia(
    T: SE3, planes: list[tuple[float, float, float, float]]
) -> None:
    mesh = make_torus().transformed(T)
    cuts = []
    for a, b, c, d in planes:
        normal = np.array([a, b, c + 0.01])
        normal /= np.linalg.norm(normal)
        cuts.append((normal, float(normal @ T.translation) + d))
    parts = split_by_planes(mesh, cuts)
    assert all(part.is_closed for part in parts)
    assert sum(part.volume for part in parts) == pytest.approx(mesh.volume, rel=1e-6)
    combined = combine_mass_properties([compute_mass_properties(part, density=1.0) for part in parts])
    np.testing.assert_allclose(
        combined.inertia, compute_mass_properties(mesh, density=1.0).inertia, rtol=1e-5, atol=1e-6
    )


def test_split_by_boxes_selects_the_interior() -> None:
    inner, outer = split_by_boxes(make_box(2, 2, 2), [(np.array([0, 0, 0.0]), np.array([5, 5, 5.0]))])
    assert inner.volume == pytest.approx(1.0)
    assert outer.volume == pytest.approx(7.0)
    with pytest.raises(DescriptionError, match="manifold"):
        split_by_planes(TriangleMesh(BALL.vertices, BALL.faces[1:]), [(np.eye(3)[0], 0.0)])


def test_components_are_split_and_concatenated_again() -> None:
    parts = [
        make_box(),
        BALL.transformed(SE3(translation=(5, 0, 0))),
        make_torus().transformed(SE3(translation=(-5, 0, 0))),
    ]
    components = split_components(concatenate_meshes(parts))
    assert [part.volume for part in components] == pytest.approx(sorted((part.volume for part in parts), reverse=True))
    assert len(concatenate_meshes(components).faces) == sum(len(part.faces) for part in parts)


def test_cavity_belongs_to_its_component() -> None:
    cavity = TriangleMesh(BALL.vertices * 0.2, BALL.faces[:, ::-1])
    hollow, solid = split_components(
        concatenate_meshes([make_box(), cavity, make_box().transformed(SE3(translation=(9, 0, 0)))])
    )
    assert sorted([hollow.volume, solid.volume]) == pytest.approx([6.0 - 0.008 * BALL.volume, 6.0])
