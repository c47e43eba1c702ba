"""What mesh files say of their looks: colours and pictures by part, nowhere farther than their own folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from roboyard.description import World, load_model
from roboyard.description.meshes.appearance import effective_material, read_textured_meshes
from roboyard.description.meshes.files import find_referenced_file, load_mesh
from roboyard.description.model import Material, Mesh, PlacedModel
from roboyard.geometry import SE3
from roboyard.simulation import Simulation
from roboyard.simulation.render.camera import top_view
from roboyard.simulation.render.rays import RayRenderer

DAE = """<COLLADA version="1.4.1"><asset><unit meter="{unit}"/></asset>
<library_images><image id="img"><init_from>{picture}</init_from></image></library_images>
<library_effects>
 <effect id="red-fx"><profile_COMMON><technique sid="t"><lambert><diffuse><color>1 0 0 1</color></diffuse>
   <transparency><float>{clear}</float></transparency></lambert></technique></profile_COMMON></effect>
 <effect id="pic-fx"><profile_COMMON>
   <newparam sid="srf"><surface type="2D"><init_from>img</init_from></surface></newparam>
   <newparam sid="smp"><sampler2D><source>srf</source></sampler2D></newparam>
   <technique sid="t"><phong><diffuse><texture texture="smp" texcoord="UV"/></diffuse></phong></technique>
 </profile_COMMON></effect>
</library_effects>
<library_materials><material id="red"><instance_effect url="#red-fx"/></material>
 <material id="pic"><instance_effect url="#pic-fx"/></material></library_materials>
<library_geometries><geometry id="g"><mesh>
 <source id="p"><float_array count="18">-1 -1 0 1 -1 0 1 1 0 -1 1 0 3 -1 0 3 1 0</float_array>
  <technique_common><accessor source="#p" count="6" stride="3"/></technique_common></source>
 <source id="uv"><float_array count="8">0 0 1 0 1 1 0 1</float_array>
  <technique_common><accessor source="#uv" count="4" stride="2"/></technique_common></source>
 <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
 <triangles material="A" count="2"><input semantic="VERTEX" source="#v" offset="0"/>
  <input semantic="TEXCOORD" source="#uv" offset="1" set="0"/><p>0 0 1 1 2 2 0 0 2 2 3 3</p></triangles>
 <polylist material="B" count="1"><input semantic="VERTEX" source="#v" offset="0"/><vcount>4</vcount>
  <p>1 4 5 2</p></polylist>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node><instance_geometry url="#g"><bind_material><technique_common>
 <instance_material symbol="A" target="#pic"/><instance_material symbol="B" target="#red"/>
</technique_common></bind_material></instance_geometry></node></visual_scene></library_visual_scenes></COLLADA>"""


def quarters(file: Path) -> None:
    """A picture whose quarters are green (top left), blue (top right), white and black (below)."""
    pixels = np.zeros((64, 64, 3), np.uint8)
    pixels[:32, :32, 1] = pixels[:32, 32:, 2] = 255
    pixels[32:, :32] = 255
    Image.fromarray(pixels).save(file)


def write(folder: Path, *, picture: str = "quarters.png", unit: str = "1", clear: str = "1") -> Path:
    file = folder / "thing.dae"
    file.write_text(DAE.format(picture=picture, unit=unit, clear=clear))
    quarters(folder / "quarters.png")
    return file


def test_mesh_parts_have_materials_and_make_up_the_whole(tmp_path: Path) -> None:
    file = write(tmp_path, unit="0.5")
    mesh = Mesh("thing.dae", file, (2.0, 2.0, 2.0))
    pictured, red = read_textured_meshes(mesh)
    assert pictured.material is not None
    assert pictured.material.texture == tmp_path / "quarters.png"
    assert red.material is not None
    assert red.material.rgba == (1.0, 0.0, 0.0, 1.0)
    assert red.uv is None
    assert pictured.uv is not None
    vertices, faces = load_mesh(mesh)
    assert len(pictured.faces) + len(red.faces) == len(faces)
    corners = np.concatenate([look.vertices[look.faces].reshape(-1, 3) for look in (pictured, red)])
    assert np.allclose(np.unique(corners.round(6), axis=0), np.unique(vertices.round(6), axis=0))


@pytest.mark.parametrize(("opacity", "alpha"), [("1", 1.0), ("0.5", 0.5), ("0", 1.0)])
def test_fully_transparent_mesh_material_becomes_opaque(tmp_path: Path, opacity: str, alpha: float) -> None:
    red = read_textured_meshes(Mesh("thing.dae", write(tmp_path, clear=opacity)))[1]
    assert red.material is not None
    assert red.material.rgba[3] == alpha


def test_material_of_the_description_overrides_the_mesh() -> None:
    own = Material("own", (1.0, 0.0, 0.0, 1.0))
    assert effective_material(Material("said", (0.0, 1.0, 0.0, 1.0)), own).name == "said"
    assert effective_material(Material(rgba=(0.7, 0.7, 0.7, 0.5), is_explicit=False), own).rgba == (1.0, 0.0, 0.0, 0.5)
    assert effective_material(Material(is_explicit=False), None) == Material(is_explicit=False)


def test_textures_are_found_only_beside_the_mesh(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "model" / "meshes"
    home.mkdir(parents=True)
    mesh = home / "thing.dae"
    quarters(tmp_path / "secret.png")
    (home.parent / "materials" / "textures").mkdir(parents=True)
    quarters(home.parent / "materials" / "textures" / "skin.png")
    for name in ("../../../secret.png", str(tmp_path / "secret.png"), "", "..", "\x00", "x" * 5000):
        assert find_referenced_file(name, mesh) is None
    for name in ("skin.png", "C:\\work\\skin.png", "file:///home/me/skin.png"):
        found = find_referenced_file(name, mesh)
        assert found is not None
        assert found.samefile(home.parent / "materials" / "textures" / "skin.png")


def test_flat_parts_of_visual_meshes_are_drawn(tmp_path: Path) -> None:
    """A body of which one part is flat: rays scan it as a whole, pictures show its parts."""
    file = write(tmp_path)
    text = file.read_text().replace("3 -1 0 3 1 0</float", "3 -1 2 3 1 2</float")  # the red part stands up
    file.write_text(text)
    (tmp_path / "m.sdf").write_text(
        '<sdf version="1.9"><model name="m"><static>true</static><link name="l"><visual name="v"><geometry><mesh>'
        "<uri>thing.dae</uri></mesh></geometry></visual></link></model></sdf>"
    )
    model = load_model(tmp_path / "m.sdf")
    simulation = Simulation(World("w", models=(PlacedModel("m", model, SE3.identity()),)))
    assert simulation.scene().model.ngeom == 2
    simulation.close()


def test_texture_lies_upright_on_its_surface(tmp_path: Path) -> None:
    """Seen from above, u grows with x and v with y: the picture's top left is at −x, +y."""
    write(tmp_path)
    text = (
        '<sdf version="1.9"><model name="m"><static>true</static><link name="l"><visual name="v"><geometry><mesh>'
        "<uri>thing.dae</uri></mesh></geometry></visual></link></model></sdf>"
    )
    (tmp_path / "m.sdf").write_text(text)
    model = load_model(tmp_path / "m.sdf")
    with_lamp = World("w", models=(PlacedModel("m", model, SE3.identity()),))
    simulation = Simulation(with_lamp)
    scene = simulation.scene()
    low, high = np.array([-1.0, -1.0, 0.0]), np.array([3.0, 1.0, 0.01])
    with RayRenderer(scene.model, 160, 80, shadows=False) as renderer:
        picture = renderer.render(scene.data, top_view(low, high, aspect=2.0)).astype(int)
    simulation.close()
    middle, width = 40, 160

    def colour(x: float, y: float) -> np.ndarray:
        scale = 78.0 / 2.0
        return picture[int(middle - y * scale), int(width / 2 + (x - 1.0) * scale)]

    green, blue, white, black, red = (
        colour(*at) for at in ((-0.5, 0.5), (0.5, 0.5), (-0.5, -0.5), (0.5, -0.5), (2, 0))
    )
    assert green[1] > 2 * max(green[0], green[2])
    assert blue[2] > 2 * max(blue[0], blue[1])
    assert white.min() > 100
    assert black.max() < 80
    assert red[0] > 2 * max(red[1], red[2])
