"""What a mesh file says of its own looks: its triangles by material, with the places of their corners in a picture."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import Material, Mesh
from roboyard.errors import DescriptionError
from roboyard.simulation.assembly.collada import read_patches
from roboyard.simulation.assembly.collada_materials import materials_of
from roboyard.simulation.assembly.meshes import MAX_TRIANGLES, surface_of
from roboyard.simulation.assembly.near import near
from roboyard.simulation.assembly.parts import centred

Pixels = NDArray[np.uint8]
MAX_LOOKS = 200
"""Materials of one mesh; of more the whole mesh is drawn in one colour."""
LARGEST_EDGE = 1024
"""Pictures inside a mesh file are made no larger [pixels]."""


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """Triangles of one material.

    Attributes:
        vertices: (n, 3) [m], before the description's scale.
        faces: (m, 3).
        uv: Of each vertex, v upwards; None where the file gives none.
        material: Of the file; None where it says nothing.
        pixels: A picture that stands inside the file (h, w, 3).
    """

    vertices: NDArray[np.float64]
    faces: NDArray[np.int64]
    uv: NDArray[np.float64] | None = None
    material: Material | None = None
    pixels: Pixels | None = None


def looks_of(mesh: Mesh) -> list[Look]:
    """The looks of a description's mesh, scaled; one without material where its file has nothing to say.

    Raises:
        DescriptionError: the mesh cannot be read.
    """
    vertices, faces = surface_of(mesh)  # all that is wrong with a file is said there
    whole = [Look(vertices, faces)]
    if mesh.file is None or mesh.file.suffix.lower() not in (".dae", ".obj", ".gltf", ".glb", ".ply"):
        return whole
    found = _of_file(mesh.file, mesh.file.stat().st_mtime_ns, mesh.submesh or "")
    if not 0 < len(found) <= MAX_LOOKS:
        return whole
    shift = np.zeros(3)
    if mesh.submesh and mesh.center_submesh:
        points = np.concatenate([look.vertices for look in found])
        shift = centred(points)[0] - points[0]
    scale, turned = np.asarray(mesh.scale), bool(np.prod(mesh.scale) < 0.0)
    return [
        Look(
            (look.vertices + shift) * scale,
            look.faces[:, ::-1] if turned else look.faces,
            look.uv,
            look.material,
            look.pixels,
        )
        for look in found
    ]


def drawn_as(stated: Material, own: Material | None) -> Material:
    """How a part of a mesh is drawn: as the description states, else as its file says; either may be see-through."""
    if stated.is_explicit or own is None:
        return stated
    red, green, blue, alpha = own.rgba
    return replace(own, rgba=(red, green, blue, alpha * stated.rgba[3]))


@lru_cache(maxsize=128)
def _of_file(file: Path, modified_ns: int, part: str) -> tuple[Look, ...]:
    """Looks of a file; none where it cannot be taken apart."""
    try:
        return tuple(_of_collada(file, part) if file.suffix.lower() == ".dae" else _of_scene(file, part))
    except (DescriptionError, OSError, ValueError, TypeError, KeyError, IndexError, AttributeError):
        return ()  # its looks are worth no refusal: it is drawn in one colour


def _of_collada(file: Path, part: str) -> list[Look]:
    patches, root = read_patches(file, MAX_TRIANGLES, part)
    materials = materials_of(root, file)
    groups: dict[tuple[str, bool], list[int]] = {}
    for index, patch in enumerate(patches):
        if len(patch.triangles):
            groups.setdefault((patch.material, patch.uv is not None), []).append(index)
    looks = []
    for (name, _), members in groups.items():
        corners = np.concatenate([patches[i].triangles for i in members]).reshape(-1, 3)
        uvs = [uv.reshape(-1, 2) for i in members if (uv := patches[i].uv) is not None]
        looks.append(_welded(corners, np.concatenate(uvs) if uvs else None, materials.get(name)))
    return looks


def _welded(
    corners: NDArray[np.float64],
    uv: NDArray[np.float64] | None,
    material: Material | None,
    pixels: Pixels | None = None,
) -> Look:
    """Corners (3 n, 3) of triangles with those that agree made one."""
    rows = corners if uv is None else np.concatenate([corners, uv], axis=1)
    unique, index = np.unique(rows.astype(np.float32), axis=0, return_inverse=True)
    faces = index.reshape(-1, 3).astype(np.int64)
    whole = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 0] != faces[:, 2])
    places = unique[:, 3:].astype(float) if uv is not None else None
    return Look(unique[:, :3].astype(float), faces[whole], places, material, pixels)


def _of_scene(file: Path, part: str) -> list[Look]:
    import trimesh

    if part:
        return []
    scene = trimesh.load(str(file), force="scene", process=False, resolver=_resolver(file))
    looks = []
    for node in scene.graph.nodes_geometry:
        T, name = scene.graph[node]
        geometry = scene.geometry[name]
        if not len(getattr(geometry, "faces", ())):
            continue
        corners = trimesh.transform_points(geometry.vertices, T)[geometry.faces].reshape(-1, 3)
        uv = getattr(geometry.visual, "uv", None)
        uv = None if uv is None or len(uv) != len(geometry.vertices) else np.asarray(uv)[geometry.faces].reshape(-1, 2)
        looks.append(_welded(corners, uv, *_material(geometry.visual)))
    return looks


def _resolver(file: Path) -> Any:
    """Opens what an OBJ or glTF names, near the file only."""
    import trimesh

    class Near(trimesh.resolvers.Resolver):  # type: ignore[misc]
        def get(self, name: str) -> bytes:
            found = near(str(name).strip(), file)
            if found is None:
                raise FileNotFoundError(name)
            return found.read_bytes()

        def keys(self) -> list[str]:
            return []

        def write(self, name: str, data: Any) -> None:
            raise ValueError("nothing is written")

        def namespaced(self, namespace: str) -> Any:
            return self

    return Near()


def _material(visual: Any) -> tuple[Material | None, Pixels | None]:
    """Colour and picture of a trimesh visual."""
    material = getattr(visual, "material", None)
    if material is None:
        kind = getattr(visual, "kind", None)
        if kind not in ("face", "vertex"):
            return None, None
        colours = visual.face_colors if kind == "face" else visual.vertex_colors
        return Material("", _rgba(np.asarray(colours, float).mean(axis=0) / 255.0)), None
    picture = getattr(material, "baseColorTexture", None) or getattr(material, "image", None)
    factor = getattr(material, "baseColorFactor", None)
    if factor is None:
        factor = getattr(material, "diffuse", None)
    rgba = (1.0, 1.0, 1.0, 1.0) if factor is None else _rgba(np.asarray(factor, float) / 255.0)
    glow = getattr(material, "emissiveFactor", None)
    emissive = (0.0, 0.0, 0.0) if glow is None else tuple(min(max(float(v), 0.0), 1.0) for v in glow[:3])
    if getattr(material, "alphaMode", "BLEND") in (None, "OPAQUE"):
        rgba = (*rgba[:3], 1.0)
    if rgba[3] <= 0.0:  # an OBJ's "d 0": see collada_materials
        rgba = (*rgba[:3], 1.0)
    red, green, blue = emissive
    return Material(str(getattr(material, "name", "") or ""), rgba, None, (red, green, blue)), _pixels(picture)


def _rgba(values: NDArray[np.float64]) -> tuple[float, float, float, float]:
    red, green, blue, *rest = (min(max(float(value), 0.0), 1.0) for value in values)
    return red, green, blue, rest[0] if rest else 1.0


def _pixels(picture: Any) -> Pixels | None:
    if picture is None or not hasattr(picture, "convert") or picture.width * picture.height > 64_000_000:
        return None
    small = picture.convert("RGB")
    small.thumbnail((LARGEST_EDGE, LARGEST_EDGE))
    return np.asarray(small, np.uint8)
