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
from roboyard.description.meshes.files import MAX_WORLD_TRIANGLES, find_referenced_file, load_mesh, load_mesh_file
from roboyard.description.model import Mesh
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


def box_obj(name: str, x: float, first: int) -> str:
    corners = [(x + i, j, k) for i in (0, 1) for j in (0, 1) for k in (0, 1)]
    faces = [(1, 2, 4), (1, 4, 3), (5, 7, 8), (5, 8, 6), (1, 5, 6), (1, 6, 2), (3, 4, 8), (3, 8, 7), (1, 3, 7),
             (1, 7, 5), (2, 6, 8), (2, 8, 4)]  # fmt: skip
    lines = [f"o {name}", *(f"v {a} {b} {c}" for a, b, c in corners)]
    return "\n".join(lines + [f"f {a + first} {b + first} {c + first}" for a, b, c in faces]) + "\n"


COLLADA_WITH_NODES = """<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema"><library_geometries>
<geometry id="g"><mesh><source id="p"><float_array count="12">0 0 0 1 0 0 0 1 0 0 0 1</float_array></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices><triangles count="4">
<input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2 0 1 3 0 2 3 1 2 3</p></triangles></mesh></geometry>
</library_geometries><library_visual_scenes><visual_scene id="s">
<node name="left"><translate>-5 0 0</translate><instance_geometry url="#g"/></node>
<node name="right"><translate>5 0 0</translate><node name="tip"><instance_geometry url="#g"/></node></node>
</visual_scene></library_visual_scenes></COLLADA>"""


@pytest.mark.parametrize("name", ["a.obj", "a.dae"])
def test_submeshes_are_selected_by_name(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text(COLLADA_WITH_NODES if name.endswith("dae") else box_obj("left", -5.0, 0) + box_obj("right", 5.0, 8))
    complete, _ = load_mesh(Mesh(name, file))
    left, _ = load_mesh(Mesh(name, file, submesh="left"))
    right, _ = load_mesh(Mesh(name, file, submesh="right"))
    assert len(complete) == len(left) + len(right)
    assert left[:, 0].max() <= -4.0
    assert right[:, 0].min() >= 5.0
    centered, _ = load_mesh(Mesh(name, file, submesh="right", center_submesh=True, scale=(2.0, 2.0, 2.0)))
    assert np.allclose(centered.min(axis=0), -1.0)
    assert np.allclose(centered.max(axis=0), 1.0)
    with pytest.raises(DescriptionError, match="no submesh 'top'") as error:
        load_mesh(Mesh(name, file, submesh="top"))
    assert "left" in (error.value.valid or "")
