"""Convex hulls and convex decompositions enclose the mesh."""

import numpy as np
import pytest
import trimesh
from tests.description.mesh_samples import make_box, make_surface, make_torus

from roboyard.description.meshes import (
    approximate_collision,
    decompose_convex,
    hull_decomposition,
)
from roboyard.description.meshes.convex import split_into_convex_pieces
from roboyard.errors import InputError
from roboyard.geometry import SE3


def test_hull_and_decomposition_enclose_the_mesh() -> None:
    hull = hull_decomposition(make_torus())
    assert hull.pieces[0].is_closed
    assert hull.max_protrusion <= 1e-9
    assert hull.volume_excess > 0.5
    assert decompose_convex(make_box(), 8).volume_excess == pytest.approx(0.0, abs=1e-9)  # a convex mesh
    with pytest.raises(InputError):
        decompose_convex(make_torus(), 0)


@pytest.mark.slow
def test_decomposition_is_closer_than_the_hull_and_repeats() -> None:
    # The union of two boxes at a right angle consists of two convex pieces.
    low, high = make_box(2.0, 1.0, 0.2), make_box(0.2, 1.0, 2.0).transformed(SE3(translation=(-0.9, 0, 0.9)))
    angle = make_surface(
        trimesh.boolean.union([trimesh.Trimesh(s.vertices, s.faces) for s in (low, high)], engine="manifold")
    )
    first, second = decompose_convex(angle, 4), decompose_convex(angle, 4)
    assert first.volume_excess < 0.1 < hull_decomposition(angle).volume_excess
    assert first.max_protrusion < 0.05
    assert len(first.pieces) <= 4
    assert all(np.array_equal(a.vertices, b.vertices) for a, b in zip(first.pieces, second.pieces, strict=True))
    boxes = approximate_collision(angle, ("box",), 2)
    assert len(boxes.shapes) == 2
    assert boxes.volume_excess < 0.1


def test_convex_parts_are_not_decomposed() -> None:
    box, ball = trimesh.creation.box((1, 1, 1)), trimesh.creation.icosphere(subdivisions=2)
    ball.apply_translation((3, 0, 0))
    mesh = trimesh.util.concatenate([box, ball])
    pieces = split_into_convex_pieces(mesh.vertices, mesh.faces)
    assert pieces is not None
    assert sorted(len(piece) for piece in pieces) == sorted([8, len(ball.vertices)])
