"""Triangle meshes, mesh files and Hypothesis strategies that the tests of meshes share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import trimesh
from hypothesis import settings
from hypothesis import strategies as st
from PIL import Image

from roboyard.description.meshes import TriangleMesh, merge_vertices
from roboyard.geometry import SE3

numbers = st.floats(-2.0, 2.0)
poses = st.builds(
    SE3.from_xyz_rpy, st.tuples(numbers, numbers, numbers), st.tuples(numbers, st.floats(-1.5, 1.5), numbers)
)
reduced_examples = settings(max_examples=15)


def make_surface(mesh: trimesh.Trimesh) -> TriangleMesh:
    """Convert a mesh of trimesh, with equal vertices merged."""
    return merge_vertices(TriangleMesh(np.asarray(mesh.vertices, float), np.asarray(mesh.faces, np.int64)))


def make_box(x: float = 1.0, y: float = 2.0, z: float = 3.0) -> TriangleMesh:
    """Return a box around the origin."""
    return make_surface(trimesh.creation.box((x, y, z)))


def make_torus(major: int = 48, minor: int = 24) -> TriangleMesh:
    """Return a torus with radii 1 and 0.3 around the z axis."""
    return make_surface(trimesh.creation.torus(1.0, 0.3, major_sections=major, minor_sections=minor))


def make_cylinder(radius: float = 0.5, height: float = 2.0, sections: int = 64) -> TriangleMesh:
    """Return a cylinder along the z axis."""
    return make_surface(trimesh.creation.cylinder(radius, height, sections=sections))


BALL = make_surface(trimesh.creation.icosphere(subdivisions=3))
SMOOTH_BALL = make_surface(trimesh.creation.icosphere(subdivisions=5))


def write_triangles(file: Path, corners: np.ndarray) -> Path:
    """Write triangles (n, 3, 3) as a binary STL file without any check, and return the file."""
    rows = np.zeros(len(corners), dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    rows["corners"] = corners
    file.write_bytes(b"\0" * 80 + len(corners).to_bytes(4, "little") + rows.tobytes())
    return file


TEXTURED_COLLADA = """<COLLADA version="1.4.1"><asset><unit meter="{unit}"/></asset>
<library_images><image id="img"><init_from>{image}</init_from></image></library_images>
<library_effects>
 <effect id="red-fx"><profile_COMMON><technique sid="t"><lambert><diffuse><color>1 0 0 1</color></diffuse>
   <transparency><float>{opacity}</float></transparency></lambert></technique></profile_COMMON></effect>
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


def write_quarters_image(file: Path) -> None:
    """Write an image whose quarters are green (top left), blue (top right), white and black (below)."""
    pixels = np.zeros((64, 64, 3), np.uint8)
    pixels[:32, :32, 1] = pixels[:32, 32:, 2] = 255
    pixels[32:, :32] = 255
    Image.fromarray(pixels).save(file)


def write_textured_collada(folder: Path, *, unit: str = "1", opacity: str = "1") -> Path:
    """Write ``thing.dae`` with a textured square and a red part, and its image ``quarters.png``."""
    file = folder / "thing.dae"
    file.write_text(TEXTURED_COLLADA.format(image="quarters.png", unit=unit, opacity=opacity))
    write_quarters_image(folder / "quarters.png")
    return file
