"""Mesh and terrain assets of an assembly: each file is read once, scaled once, and named once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import Heightmap, Mesh
from roboyard.errors import DescriptionError
from roboyard.simulation.assembly.coarser import Pieces, taken_apart
from roboyard.simulation.assembly.collada import read_collada
from roboyard.simulation.assembly.convex import hull_of, is_flat
from roboyard.simulation.assembly.parts import centred, pick
from roboyard.simulation.assembly.pictures import opened

Surface = tuple[NDArray[np.float64], NDArray[np.int64]]  # vertices (n, 3) [m], faces (m, 3)
Places = NDArray[np.float64]  # (n, 2): of each vertex in a picture, v upwards

PLACEHOLDER_SIZE = 0.1
"""Edge of the marked box that stands for a mesh whose file is missing [m]."""
MAX_TRIANGLES = 500_000
"""A mesh of a million takes a quarter of a minute and 2 GB."""
FAR = 1e6
"""Coordinates beyond are no robot's or room's [m]; the engine reckons meshes in single precision."""
MAX_HEIGHTS = 4_200_000
"""Points of a terrain: 2049 × 2049, Gazebo's largest, and a little."""
NO_DEPTH = 1e-3
"""Depth given to what is flat [m]: a sheet of paper has no hull."""


@lru_cache(maxsize=256)
def load_surface(file: Path, modified_ns: int, part: str = "") -> Surface:
    """Vertices and faces of a mesh file (STL, OBJ, DAE, glTF, PLY), or of one named part of it.

    ``modified_ns`` keys the cache.

    Raises:
        DescriptionError: the file cannot be read, has no such part, or holds no triangle, too many, or none with an
            area.
    """
    import trimesh

    _refuse_crowd(file, _stated_triangles(file))
    if file.suffix.lower() == ".dae":
        triangles = read_collada(file, MAX_TRIANGLES, part)
        mesh = trimesh.Trimesh(**trimesh.triangles.to_kwargs(triangles))
    else:
        try:
            if part:  # an OBJ's parts are its objects and groups
                split = (
                    {"split_objects": True, "split_groups": True, "group_material": False}
                    if file.suffix.lower() == ".obj"
                    else {}
                )
                mesh = pick(trimesh.load(str(file), force="scene", **split), part, file)
            else:
                mesh = trimesh.load(str(file), force="mesh")
        except DescriptionError:
            raise
        except Exception as error:
            why = str(error).partition("\n")[0][:200] or type(error).__name__
            raise DescriptionError(f"mesh cannot be read: {why}", location=str(file)) from error
    if not len(getattr(mesh, "faces", ())):
        raise DescriptionError("mesh holds no triangles", location=str(file))
    _refuse_crowd(file, len(mesh.faces))
    mesh.merge_vertices()
    vertices = np.asarray(mesh.vertices, float)
    if not np.isfinite(vertices).all() or np.abs(vertices).max() > FAR:
        raise DescriptionError("mesh reaches too far", location=str(file), valid=f"coordinates below {FAR:g} m")
    spread = np.linalg.svd(np.cov(vertices.T), compute_uv=False) if len(vertices) > 2 else np.zeros(3)
    if spread[1] <= 1e-12 * spread[0]:
        raise DescriptionError("mesh has no area: its points lie on a line", location=str(file))
    return vertices, np.asarray(mesh.faces, np.int64)


def _stated_triangles(file: Path) -> int:
    """What a binary STL says of itself; 0 for anything else."""
    if file.suffix.lower() != ".stl":
        return 0
    try:
        with file.open("rb") as stream:
            start = stream.read(84)
            size = stream.seek(0, 2)
    except OSError as error:
        raise DescriptionError(f"mesh cannot be read: {error.strerror}", location=str(file)) from None
    count = int.from_bytes(start[80:84], "little")
    return count if size == 84 + 50 * count else 0


def _refuse_crowd(file: Path, triangles: int) -> None:
    if triangles > MAX_TRIANGLES:
        raise DescriptionError(
            f"mesh has {triangles} triangles", location=str(file), valid=f"at most {MAX_TRIANGLES}: simplify it"
        )


def surface_of(mesh: Mesh) -> Surface:
    """A description's mesh, read and scaled. Raises DescriptionError."""
    if mesh.inline is not None:
        points = np.frombuffer(mesh.inline.values, np.float32).reshape(-1, 3).astype(float)
        triangles = np.frombuffer(mesh.inline.faces, np.int32).reshape(-1, 3).astype(np.int64)
        return points * np.asarray(mesh.scale), triangles
    stamp = _stamp(mesh)
    vertices, faces = load_surface(Path(str(mesh.file)), stamp, mesh.submesh or "")
    if mesh.submesh and mesh.center_submesh:
        vertices = centred(vertices)
    vertices = vertices * np.asarray(mesh.scale)
    return vertices, faces[:, ::-1] if np.prod(mesh.scale) < 0.0 else faces


def _stamp(mesh: Mesh) -> int:
    """When the mesh's file was written [ns]; 0 for one without. Raises DescriptionError."""
    if mesh.inline is not None:
        return 0
    if mesh.file is None:
        raise DescriptionError(f"mesh {mesh.uri} was not found", location=mesh.uri)
    try:
        return mesh.file.stat().st_mtime_ns
    except OSError as error:
        raise DescriptionError(f"mesh cannot be read: {error}", location=str(mesh.file)) from error


@lru_cache(maxsize=32)
def _pieces_of(mesh: Mesh, stamp: int) -> Pieces:
    """The mesh taken apart; a world is assembled anew whenever a model comes or goes. Raises DescriptionError."""
    return taken_apart(*surface_of(mesh))


class MeshStore:
    """Adds the assets that shapes ask for to one specification."""

    def __init__(self, spec: mujoco.MjSpec) -> None:
        self._spec = spec
        self._names: dict[tuple[object, ...], str] = {}
        self._pieces: dict[tuple[object, ...], tuple[list[str], Pieces]] = {}

    def whole(self, mesh: Mesh) -> str:
        """The asset of the mesh as it is (the engine touches its convex hull)."""
        return self._named(self._key(mesh, "whole"), lambda: surface_of(mesh))

    def concave(self, mesh: Mesh) -> tuple[list[str], Pieces]:
        """Assets of convex pieces that follow the mesh's hollows, and how near they are."""
        key = self._key(mesh, "pieces")
        if key not in self._pieces:
            pieces = _pieces_of(mesh, _stamp(mesh))
            names = [self._named((key, i), partial(_same, surface)) for i, surface in enumerate(pieces.surfaces)]
            self._pieces[key] = names, pieces
        return self._pieces[key]

    def drawn(self, key: object, surface: Surface, uv: Places | None) -> str:
        """The asset of a surface that is only seen, with its vertices' places in a picture."""
        vertices, faces = surface
        if len(vertices) < 4:  # the engine takes fewer for no mesh
            extra = np.repeat(vertices[:1], 4 - len(vertices), axis=0) + NO_DEPTH * np.eye(4)[: 4 - len(vertices), :3]
            vertices = np.concatenate([vertices, extra])
            uv = None if uv is None else np.concatenate([uv, np.repeat(uv[:1], len(extra), axis=0)])
        return self._named(("drawn", key), lambda: (vertices, faces), uv)

    def sheet(self, mesh: Mesh) -> str:
        """The asset of a flat mesh, `NO_DEPTH` thick."""
        vertices, _ = surface_of(mesh)
        normal = np.linalg.svd(vertices - vertices.mean(axis=0), full_matrices=False)[2][2]
        return self.points(self._key(mesh, "sheet"), np.concatenate([vertices, vertices - NO_DEPTH * normal]))

    def is_flat(self, mesh: Mesh) -> bool:
        """Whether all of the mesh lies in one plane."""
        return is_flat(surface_of(mesh)[0])

    def is_single(self, mesh: Mesh) -> bool:
        """Whether it is one triangle, which the engine takes for no mesh."""
        return len(surface_of(mesh)[0]) < 4

    def points(self, key: object, points: NDArray[np.float64]) -> str:
        """The asset of a convex shape given by its corners."""
        return self._named(("points", key), lambda: hull_of(points))

    def heightmap(self, shape: Heightmap) -> tuple[str, float]:
        """The height field asset of a grey picture, black 0 and white ``size[2]`` high, and its base's height [m].

        Raises:
            DescriptionError: the picture is missing or unreadable.
        """
        grid = _grey(shape)
        low, span = float(grid.min()), float(grid.max() - grid.min())
        key = ("heightmap", str(shape.file), shape.size, shape.inline)
        if key not in self._names:
            name = f"terrain{len(self._names)}"
            field = self._spec.add_hfield(name=name, nrow=grid.shape[0], ncol=grid.shape[1])
            # The engine stretches the data to 0…1 over its third size.
            field.size = [shape.size[0] / 2, shape.size[1] / 2, max(span * shape.size[2], 1e-6), 0.1]
            field.userdata = grid.ravel().tolist()
            self._names[key] = name
        return self._names[key], low * shape.size[2]

    def _key(self, mesh: Mesh, use: str) -> tuple[object, ...]:
        return (use, str(mesh.file), mesh.scale, mesh.submesh, mesh.center_submesh, mesh.inline)

    def _named(self, key: tuple[object, ...], surface: Callable[[], Surface], uv: Places | None = None) -> str:
        if key not in self._names:
            vertices, faces = surface()
            name = f"mesh{len(self._names)}"
            asset = self._spec.add_mesh(
                name=name,
                uservert=np.ascontiguousarray(vertices, np.float32).ravel(),
                userface=np.ascontiguousarray(faces, np.int32).ravel(),
            )
            if uv is not None:  # the engine's pictures begin at the top
                places = np.stack([uv[:, 0], 1.0 - uv[:, 1]], axis=1)
                asset.usertexcoord = np.ascontiguousarray(places, np.float32).ravel()
            # Masses come from the description; "shell" spares open surfaces the volume check.
            asset.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
            self._names[key] = name
        return self._names[key]


def _same(surface: Surface) -> Surface:
    return surface


def _grey(shape: Heightmap) -> NDArray[np.float32]:
    """Heights 0…1, first row at the least y."""
    if shape.inline is not None:
        heights = np.frombuffer(shape.inline.values, np.float32)
        return heights.reshape(-1, shape.inline.columns)
    if shape.file is None:
        raise DescriptionError(f"heightmap {shape.uri} was not found", location=shape.uri)
    with opened(shape.file, "heightmap", MAX_HEIGHTS) as picture:
        deep = picture.mode.startswith("I")  # 16 bits
        grey = np.asarray(picture.convert("I") if deep else picture.convert("L"), np.float32)
    if min(grey.shape) < 2:
        raise DescriptionError("heightmap needs at least 2 x 2 pixels", location=str(shape.file))
    return np.asarray(grey[::-1] / (65535.0 if deep else 255.0), np.float32)
