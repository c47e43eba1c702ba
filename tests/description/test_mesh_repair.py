"""Repair of meshes closes holes, orients faces, and refuses meshes whose volume is ambiguous."""

from pathlib import Path

import numpy as np
import pytest
import trimesh
from hypothesis import given
from hypothesis import strategies as st
from tests.description.mesh_samples import BALL, SMOOTH_BALL, reduced_examples

from roboyard.description.meshes import (
    TriangleMesh,
    compute_mass_properties,
    read_mesh,
    repair_mesh,
    simplify_to_count,
)
from roboyard.description.meshes.repair import merge_narrow_gaps
from roboyard.errors import DescriptionError


def test_open_meshes_are_refused_or_closed_by_repair() -> None:
    open_mesh = TriangleMesh(SMOOTH_BALL.vertices, np.delete(SMOOTH_BALL.faces, [0, 100, 101], axis=0))
    with pytest.raises(DescriptionError, match="open: .* hole.*--repair"):
        repair_mesh(open_mesh, False, "ball.stl")
    repaired, repairs = repair_mesh(open_mesh, True, "ball.stl")
    assert repaired.is_closed
    assert any("capped" in line for line in repairs)
    assert repaired.volume == pytest.approx(SMOOTH_BALL.volume, rel=1e-3)


@given(st.sets(st.integers(0, len(BALL.faces) - 1), max_size=300))
@reduced_examples
def test_flipped_triangles_are_repaired(flipped: set[int]) -> None:
    faces = BALL.faces.copy()
    faces[list(flipped)] = faces[list(flipped)][:, ::-1]
    repaired, _ = repair_mesh(TriangleMesh(BALL.vertices, faces), True, "ball")
    assert repaired.is_closed
    assert repaired.volume == pytest.approx(BALL.volume)


def test_other_mesh_faults_are_repaired_or_named() -> None:
    reoriented, repairs = repair_mesh(TriangleMesh(BALL.vertices, BALL.faces[:, ::-1]), False, "ball")
    assert reoriented.volume == pytest.approx(BALL.volume)
    assert "inside out" in repairs[0]
    with_duplicates = TriangleMesh(BALL.vertices, np.concatenate([BALL.faces, BALL.faces[:1], BALL.faces[:1, ::-1]]))
    assert repair_mesh(with_duplicates, False, "ball")[0].volume == pytest.approx(BALL.volume)
    half = BALL.submesh(BALL.triangles.mean(axis=1)[:, 2] > 0.0)
    with pytest.raises(DescriptionError, match="guess"):
        repair_mesh(half, True, "half")
    fan = TriangleMesh(
        np.array([[0, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [-1, -1, 0.0]]),
        np.array([[0, 1, 2], [0, 1, 3], [0, 1, 4]]),
    )
    with pytest.raises(DescriptionError):
        repair_mesh(fan, True, "fan")
    flat = TriangleMesh(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0.0]]), np.array([[0, 1, 2], [0, 2, 1]]))
    with pytest.raises(DescriptionError, match="no volume"):
        repair_mesh(flat, True, "flat")


def test_external_meshes_are_read(external_data: Path) -> None:
    """External meshes are closed or refused with a reason; mass properties of closed ones agree with trimesh."""
    folder = external_data / "descriptions"
    closed = 0
    for file in sorted(folder.rglob("*.[sS][tT][lL]"))[::6][:40]:
        try:
            mesh, _ = repair_mesh(read_mesh(file), True, str(file))
        except DescriptionError as error:
            assert str(file) in str(error)
            continue
        closed += 1
        properties = compute_mass_properties(mesh, mass=1.0)
        reference = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)
        np.testing.assert_allclose(properties.com, reference.center_mass, atol=1e-6 * mesh.diagonal)
        assert properties.principal_moments[0] + properties.principal_moments[1] >= properties.principal_moments[2] * (
            1 - 1e-9
        )
    assert closed > 5


def test_coinciding_triangles_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "lots.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\n" + "f 1 2 3\n" * 1000)
    mesh = read_mesh(path)
    assert len(simplify_to_count(merge_narrow_gaps(mesh), 50).mesh.faces) > 0
    with pytest.raises(DescriptionError, match="its volume is undefined"):
        repair_mesh(merge_narrow_gaps(mesh), False, "lots.obj")
