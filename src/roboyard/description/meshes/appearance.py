"""Colors and textures of a mesh file, by part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from roboyard.description.meshes.collada import read_material_triangles
from roboyard.description.meshes.files import MAX_WORLD_TRIANGLES, find_referenced_file, load_mesh
from roboyard.description.meshes.submesh import center_on_bounding_box
from roboyard.description.model import Material, Mesh, Rgba
from roboyard.errors import DescriptionError

if TYPE_CHECKING:
    from lxml import etree

_DEFAULT_COLOR: Rgba = (0.7, 0.7, 0.7, 1.0)
_MIN_OPACITY = 0.05
"""Materials with a smaller opacity are treated as opaque: exporters disagree about the direction of the scale, and
invisible meshes are not intended.
"""


def read_collada_materials(root: etree._Element, file: Path) -> dict[str, Material]:
    """Read the materials of a COLLADA document by id.

    Args:
        root: Root of the document, its tags without prefixes.
        file: The file; image paths are relative to it.
    """
    ids = {str(element.get("id")): element for element in root.iter() if element.get("id")}
    materials: dict[str, Material] = {}
    for element in root.iter("material"):
        effect = element.find("instance_effect")
        target = ids.get(str(effect.get("url"))[1:]) if effect is not None else None
        if target is not None and element.get("id"):
            materials[str(element.get("id"))] = _read_effect(str(element.get("name") or ""), target, ids, file)
    return materials


def _read_effect(name: str, effect: etree._Element, ids: dict[str, etree._Element], file: Path) -> Material:
    shading = next((e for e in effect.iter("phong", "lambert", "blinn", "constant")), None)
    if shading is None:
        return Material(name, _DEFAULT_COLOR)
    diffuse, emission = shading.find("diffuse"), shading.find("emission")
    texture = _find_texture_file(diffuse, effect, ids, file)
    default_color = (1.0, 1.0, 1.0, 1.0) if texture is not None else _DEFAULT_COLOR
    red, green, blue, _ = _read_color(diffuse) or default_color
    emissive = _read_color(emission) or (0.0, 0.0, 0.0, 1.0)
    return Material(name, (red, green, blue, _read_opacity(shading)), texture, emissive[:3])


def _read_color(channel: etree._Element | None) -> Rgba | None:
    values = _parse_floats(channel.findtext("color") if channel is not None else None)
    if len(values) < 3:
        return None
    red, green, blue = (min(max(value, 0.0), 1.0) for value in values[:3])
    return red, green, blue, min(max(values[3], 0.0), 1.0) if len(values) > 3 else 1.0


def _parse_floats(text: str | None) -> list[float]:
    try:
        return [float(word) for word in (text or "").split()[:4]]
    except ValueError:
        return []


def _read_opacity(shading: etree._Element) -> float:
    """Read the opacity as COLLADA 1.4.1, chapter 7 "determining transparency", defines it."""
    transparent = shading.find("transparent")
    transparencies = _parse_floats(shading.findtext("transparency/float"))
    if transparent is None and not transparencies:
        return 1.0
    color = _read_color(transparent) or (1.0, 1.0, 1.0, 1.0)
    transparency = transparencies[0] if transparencies else 1.0
    if transparent is not None and transparent.get("opaque") == "RGB_ZERO":
        alpha = 1.0 - transparency * (0.212671 * color[0] + 0.715160 * color[1] + 0.072169 * color[2])
    else:
        alpha = transparency * color[3]
    return alpha if _MIN_OPACITY < alpha <= 1.0 else 1.0


def _find_texture_file(
    channel: etree._Element | None, effect: etree._Element, ids: dict[str, etree._Element], file: Path
) -> Path | None:
    """Return the image file of a channel: texture → sampler → surface → image, with missing steps allowed."""
    texture = channel.find("texture") if channel is not None else None
    if texture is None:
        return None
    params = {str(parameter.get("sid")): parameter for parameter in effect.iter("newparam")}
    name = str(texture.get("texture"))
    for _ in range(3):
        param = params.get(name)
        if param is None:
            break
        image = param.find(".//instance_image")
        source = param.findtext(".//source") or param.findtext(".//init_from")
        name = str(image.get("url"))[1:] if image is not None else (source or "").strip()
    image = ids.get(name)
    if image is None or image.tag != "image":
        return None
    init_from = image.find("init_from")
    text = (init_from.findtext("ref") or init_from.text or "") if init_from is not None else ""
    return find_referenced_file(unquote(text.strip()), file)


Pixels = NDArray[np.uint8]
MAX_MATERIALS = 200
"""Maximum number of materials of a mesh; with more, the complete mesh has one color."""
MAX_TEXTURE_SIDE = 1024
"""Maximum side length of images inside a mesh file; larger ones are reduced [pixels]."""


@dataclass(frozen=True, slots=True, eq=False)
class TexturedMesh:
    """Triangles with one material.

    Attributes:
        vertices: (n, 3) vertices [m], before the description's scale.
        faces: (m, 3) vertex indices.
        uv: (n, 2) texture coordinates, v upwards; None if the file has none.
        material: Material of the file; None if it has none.
        pixels: Image inside the mesh file (h, w, 3); None without one.
    """

    vertices: NDArray[np.float64]
    faces: NDArray[np.int64]
    uv: NDArray[np.float64] | None = None
    material: Material | None = None
    pixels: Pixels | None = None


def read_textured_meshes(mesh: Mesh) -> list[TexturedMesh]:
    """Read the parts of a description's mesh with their materials, scaled; one part without material if the file has
    none.

    Raises:
        DescriptionError: The mesh cannot be read.
    """
    vertices, faces = load_mesh(mesh)  # reports all faults of the file
    untextured = [TexturedMesh(vertices, faces)]
    if mesh.file is None or mesh.file.suffix.lower() not in (".dae", ".obj", ".gltf", ".glb", ".ply"):
        return untextured
    meshes = _read_file(mesh.file, mesh.file.stat().st_mtime_ns, mesh.submesh or "")
    if not 0 < len(meshes) <= MAX_MATERIALS:
        return untextured
    shift = np.zeros(3)
    if mesh.submesh and mesh.center_submesh:
        points = np.concatenate([textured.vertices for textured in meshes])
        shift = center_on_bounding_box(points)[0] - points[0]
    scale, is_mirrored = np.asarray(mesh.scale), bool(np.prod(mesh.scale) < 0.0)
    return [
        TexturedMesh(
            (textured.vertices + shift) * scale,
            textured.faces[:, ::-1] if is_mirrored else textured.faces,
            textured.uv,
            textured.material,
            textured.pixels,
        )
        for textured in meshes
    ]


def effective_material(described: Material, file_material: Material | None) -> Material:
    """Return the material of a part of a mesh: the description's, else the file's; each may be transparent."""
    if described.is_explicit or file_material is None:
        return described
    red, green, blue, alpha = file_material.rgba
    return replace(file_material, rgba=(red, green, blue, alpha * described.rgba[3]))


@lru_cache(maxsize=128)
def _read_file(file: Path, modified_ns: int, submesh: str) -> tuple[TexturedMesh, ...]:
    """Read the parts of a file with their materials; empty if the file cannot be split."""
    try:
        return tuple(
            _read_collada_file(file, submesh) if file.suffix.lower() == ".dae" else _read_trimesh_scene(file, submesh)
        )
    except (DescriptionError, OSError, ValueError, TypeError, KeyError, IndexError, AttributeError):
        return ()  # a fault in materials does not reject the file: it is drawn in one color


def _read_collada_file(file: Path, submesh: str) -> list[TexturedMesh]:
    groups, root = read_material_triangles(file, MAX_WORLD_TRIANGLES, submesh)
    materials = read_collada_materials(root, file)
    indices_by_material: dict[tuple[str, bool], list[int]] = {}
    for index, group in enumerate(groups):
        if len(group.triangles):
            indices_by_material.setdefault((group.material, group.uv is not None), []).append(index)
    meshes = []
    for (name, _), members in indices_by_material.items():
        corners = np.concatenate([groups[i].triangles for i in members]).reshape(-1, 3)
        uvs = [uv.reshape(-1, 2) for i in members if (uv := groups[i].uv) is not None]
        meshes.append(_merge_corners(corners, np.concatenate(uvs) if uvs else None, materials.get(name)))
    return meshes


def _merge_corners(
    corners: NDArray[np.float64],
    uv: NDArray[np.float64] | None,
    material: Material | None,
    pixels: Pixels | None = None,
) -> TexturedMesh:
    """Merge equal corners (3 n, 3) of triangles."""
    rows = corners if uv is None else np.concatenate([corners, uv], axis=1)
    unique, index = np.unique(rows.astype(np.float32), axis=0, return_inverse=True)
    faces = index.reshape(-1, 3).astype(np.int64)
    is_nondegenerate = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 0] != faces[:, 2])
    texture_coordinates = unique[:, 3:].astype(float) if uv is not None else None
    return TexturedMesh(unique[:, :3].astype(float), faces[is_nondegenerate], texture_coordinates, material, pixels)


def _read_trimesh_scene(file: Path, submesh: str) -> list[TexturedMesh]:
    import trimesh

    if submesh:
        return []
    scene = trimesh.load(str(file), force="scene", process=False, resolver=_make_resolver(file))
    meshes = []
    for node in scene.graph.nodes_geometry:
        T, name = scene.graph[node]
        geometry = scene.geometry[name]
        if not len(getattr(geometry, "faces", ())):
            continue
        corners = trimesh.transform_points(geometry.vertices, T)[geometry.faces].reshape(-1, 3)
        uv = getattr(geometry.visual, "uv", None)
        uv = None if uv is None or len(uv) != len(geometry.vertices) else np.asarray(uv)[geometry.faces].reshape(-1, 2)
        meshes.append(_merge_corners(corners, uv, *_read_visual(geometry.visual)))
    return meshes


def _make_resolver(file: Path) -> Any:
    """Return a resolver for files that an OBJ or glTF refers to, restricted to files near it."""
    import trimesh

    class SiblingResolver(trimesh.resolvers.Resolver):  # type: ignore[misc]
        def get(self, name: str) -> bytes:
            found = find_referenced_file(str(name).strip(), file)
            if found is None:
                raise FileNotFoundError(name)
            return found.read_bytes()

        def keys(self) -> list[str]:
            return []

        def write(self, name: str, data: Any) -> None:
            raise ValueError("writing is not supported")

        def namespaced(self, namespace: str) -> Any:
            return self

    return SiblingResolver()


def _read_visual(visual: Any) -> tuple[Material | None, Pixels | None]:
    """Return material and image of a trimesh visual."""
    material = getattr(visual, "material", None)
    if material is None:
        kind = getattr(visual, "kind", None)
        if kind not in ("face", "vertex"):
            return None, None
        colors = visual.face_colors if kind == "face" else visual.vertex_colors
        return Material("", _clip_rgba(np.asarray(colors, float).mean(axis=0) / 255.0)), None
    image = getattr(material, "baseColorTexture", None) or getattr(material, "image", None)
    factor = getattr(material, "baseColorFactor", None)
    if factor is None:
        factor = getattr(material, "diffuse", None)
    rgba = (1.0, 1.0, 1.0, 1.0) if factor is None else _clip_rgba(np.asarray(factor, float) / 255.0)
    emissive_factor = getattr(material, "emissiveFactor", None)
    emissive = (
        (0.0, 0.0, 0.0) if emissive_factor is None else tuple(min(max(float(v), 0.0), 1.0) for v in emissive_factor[:3])
    )
    if getattr(material, "alphaMode", "BLEND") in (None, "OPAQUE"):
        rgba = (*rgba[:3], 1.0)
    if rgba[3] <= 0.0:  # "d 0" of an OBJ: see `_MIN_OPACITY`
        rgba = (*rgba[:3], 1.0)
    red, green, blue = emissive
    return Material(str(getattr(material, "name", "") or ""), rgba, None, (red, green, blue)), _shrink_image(image)


def _clip_rgba(values: NDArray[np.float64]) -> tuple[float, float, float, float]:
    red, green, blue, *alpha = (min(max(float(value), 0.0), 1.0) for value in values)
    return red, green, blue, alpha[0] if alpha else 1.0


def _shrink_image(image: Any) -> Pixels | None:
    if image is None or not hasattr(image, "convert") or image.width * image.height > 64_000_000:
        return None
    thumbnail = image.convert("RGB")
    thumbnail.thumbnail((MAX_TEXTURE_SIDE, MAX_TEXTURE_SIDE))
    return np.asarray(thumbnail, np.uint8)
