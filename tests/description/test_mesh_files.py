"""Mesh files are read in their unit within limits, and written files are read back unchanged."""

from pathlib import Path

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.description.mesh_samples import BALL, make_torus, write_quarters_image, write_triangles

from roboyard.description.meshes import (
    compute_mass_properties,
    read_mesh,
    write_stl,
)
from roboyard.description.meshes.files import MAX_WORLD_TRIANGLES, find_referenced_file, load_mesh_file
from roboyard.errors import DescriptionError


@pytest.mark.parametrize("kind", ["stl", "obj", "ply", "off", "glb", "ascii"])
def test_mesh_files_are_read_in_their_unit(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"ball.{'stl' if kind == 'ascii' else kind}"
    trimesh.Trimesh(BALL.vertices * 1000.0, BALL.faces).export(file, file_type="stl_ascii" if kind == "ascii" else kind)
    mesh = read_mesh(file, "mm")
    assert mesh.is_closed
    assert mesh.volume == pytest.approx(BALL.volume, rel=1e-4)


def test_written_meshes_are_read_back_unchanged(tmp_path: Path) -> None:
    write_stl(tmp_path / "sub" / "torus.stl", make_torus())
    mesh = read_mesh(tmp_path / "sub" / "torus.stl")
    assert len(mesh.faces) == len(make_torus().faces)
    assert mesh.volume == pytest.approx(make_torus().volume, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.stl", b"", "mesh"),
        ("cut.stl", b"\0" * 80 + (10**9).to_bytes(4, "little") + b"\0" * 100, "mesh"),
        ("crowd.stl", b"\0" * 80 + (3_000_000).to_bytes(4, "little"), "triangles"),
        ("points.stl", b"\0" * 80 + (2).to_bytes(4, "little") + b"\0" * 100, "area"),
        ("nan.stl", b"\0" * 80 + (1).to_bytes(4, "little") + b"\xff" * 50, "too large"),
        ("text.obj", b"v 0 0 0\nf 1 2 99\n", "mesh|vertex|triangle"),
        ("noise.ply", bytes(range(256)), "mesh"),
        ("noise.glb", b"glTF" + bytes(range(200)), "mesh"),
        ("robot.urdf", b"<robot/>", "unknown mesh format"),
    ],
)
def test_hostile_mesh_files_are_refused_with_a_reason(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    if name == "crowd.stl":
        with file.open("r+b") as stream:
            stream.truncate(84 + 50 * 3_000_000)
    with pytest.raises(DescriptionError, match=message):
        read_mesh(file)


@given(st.binary(max_size=300), st.sampled_from(["stl", "obj", "ply", "off", "glb"]))
@settings(max_examples=60)
def test_arbitrary_bytes_are_refused_or_a_mesh(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, kind: str
) -> None:
    file = tmp_path_factory.mktemp("noise") / f"a.{kind}"
    file.write_bytes(noise)
    try:
        assert read_mesh(file).area > 0.0
    except DescriptionError as error:
        assert str(file) in str(error)


def test_gltf_reads_only_files_in_its_folder(tmp_path: Path) -> None:
    mesh = trimesh.creation.box((1.0, 2.0, 3.0))
    for name, data in trimesh.exchange.gltf.export_gltf(trimesh.Scene(mesh)).items():
        (tmp_path / name).write_bytes(data)
    file = next(tmp_path.glob("*.gltf"))
    assert compute_mass_properties(read_mesh(file), 1.0).volume == pytest.approx(6.0)
    outside = tmp_path / "sub" / "model.gltf"
    outside.parent.mkdir()
    for name in tmp_path.glob("*.bin"):
        text = file.read_text().replace(f'"{name.name}"', f'"../{name.name}"')
        outside.write_text(text)
    with pytest.raises(DescriptionError, match="not in the folder of the mesh"):
        read_mesh(outside)


@pytest.mark.parametrize(
    ("name", "text"), [("a.dae", "<oops"), ("b.dae", "<COLLADA/>"), ("c.stl", "solid x"), ("d.obj", "")]
)
def test_error_of_broken_mesh_file_names_it(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(DescriptionError, match="mesh") as caught:
        load_mesh_file(file, 0)
    assert name in str(caught.value)


def test_too_many_triangles_are_refused_before_reading(tmp_path: Path) -> None:
    file = write_triangles(tmp_path / "crowd.stl", np.zeros((MAX_WORLD_TRIANGLES + 1, 3, 3)))
    with pytest.raises(DescriptionError, match=f"{MAX_WORLD_TRIANGLES + 1} triangles.*at most {MAX_WORLD_TRIANGLES}"):
        load_mesh_file(file, 0)


@pytest.mark.parametrize("suffix", [".stl", ".obj", ".ply", ".glb"])
def test_mesh_formats_give_the_same_mesh(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"box{suffix}"
    trimesh.creation.box((1.0, 2.0, 3.0)).export(file)
    vertices, faces = load_mesh_file(file, 0)
    assert len(vertices) == 8
    assert len(faces) == 12
    np.testing.assert_allclose(np.ptp(vertices, axis=0), [1, 2, 3], atol=1e-6)


def test_textures_are_found_only_near_the_mesh_file(tmp_path: Path) -> None:
    mesh_folder = tmp_path / "deep" / "model" / "meshes"
    mesh_folder.mkdir(parents=True)
    mesh = mesh_folder / "thing.dae"
    write_quarters_image(tmp_path / "secret.png")
    (mesh_folder.parent / "materials" / "textures").mkdir(parents=True)
    write_quarters_image(mesh_folder.parent / "materials" / "textures" / "skin.png")
    for name in ("../../../secret.png", str(tmp_path / "secret.png"), "", "..", "\x00", "x" * 5000):
        assert find_referenced_file(name, mesh) is None
    for name in ("skin.png", "C:\\work\\skin.png", "file:///home/me/skin.png"):
        texture = find_referenced_file(name, mesh)
        assert texture is not None
        assert texture.samefile(mesh_folder.parent / "materials" / "textures" / "skin.png")
