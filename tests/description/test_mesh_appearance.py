"""Materials and textures that mesh files state by part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.description.mesh_samples import write_textured_collada

from roboyard.description.meshes.appearance import effective_material, read_textured_meshes
from roboyard.description.meshes.files import load_mesh
from roboyard.description.model import Material, Mesh


def test_mesh_parts_have_materials_and_form_the_mesh(tmp_path: Path) -> None:
    file = write_textured_collada(tmp_path, unit="0.5")
    mesh = Mesh("thing.dae", file, (2.0, 2.0, 2.0))
    textured, red = read_textured_meshes(mesh)
    assert textured.material is not None
    assert textured.material.texture == tmp_path / "quarters.png"
    assert red.material is not None
    assert red.material.rgba == (1.0, 0.0, 0.0, 1.0)
    assert red.uv is None
    assert textured.uv is not None
    vertices, faces = load_mesh(mesh)
    assert len(textured.faces) + len(red.faces) == len(faces)
    corners = np.concatenate([part.vertices[part.faces].reshape(-1, 3) for part in (textured, red)])
    assert np.allclose(np.unique(corners.round(6), axis=0), np.unique(vertices.round(6), axis=0))


@pytest.mark.parametrize(("opacity", "alpha"), [("1", 1.0), ("0.5", 0.5), ("0", 1.0)])
def test_fully_transparent_mesh_material_becomes_opaque(tmp_path: Path, opacity: str, alpha: float) -> None:
    red = read_textured_meshes(Mesh("thing.dae", write_textured_collada(tmp_path, opacity=opacity)))[1]
    assert red.material is not None
    assert red.material.rgba[3] == alpha


def test_material_of_the_description_overrides_the_mesh() -> None:
    mesh_material = Material("mesh", (1.0, 0.0, 0.0, 1.0))
    assert effective_material(Material("stated", (0.0, 1.0, 0.0, 1.0)), mesh_material).name == "stated"
    assert effective_material(Material(rgba=(0.7, 0.7, 0.7, 0.5), is_explicit=False), mesh_material).rgba == (
        1.0,
        0.0,
        0.0,
        0.5,
    )
    assert effective_material(Material(is_explicit=False), None) == Material(is_explicit=False)
