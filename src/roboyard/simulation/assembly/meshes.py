"""Mesh and terrain assets of an assembly: each file is read once, scaled once, and named once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import Heightmap, Mesh
from roboyard.errors import DescriptionError
from roboyard.simulation.assembly.collada import read_collada
from roboyard.simulation.assembly.convex import convex_pieces, is_flat

Surface = tuple[NDArray[np.float64], NDArray[np.int64]]  # vertices (n, 3) [m], faces (m, 3)

PLACEHOLDER_SIZE = 0.1
"""Edge of the marked box that stands for a mesh whose file is missing [m]."""


@lru_cache(maxsize=256)
def load_surface(file: Path, modified_ns: int) -> Surface:
    """Vertices and faces of a mesh file (STL, OBJ, DAE, glTF, PLY); ``modified_ns`` keys the cache.

    Raises:
        DescriptionError: the file cannot be read or holds no triangle.
    """
    import trimesh

    if file.suffix.lower() == ".dae":
        triangles = read_collada(file)
        mesh = trimesh.Trimesh(**trimesh.triangles.to_kwargs(triangles))
    else:
        try:
            mesh = trimesh.load(str(file), force="mesh")
        except Exception as error:
            raise DescriptionError(f"mesh cannot be read: {error}", where=str(file)) from error
    if not len(getattr(mesh, "faces", ())):
        raise DescriptionError("mesh holds no triangles", where=str(file))
    mesh.merge_vertices()
    return np.asarray(mesh.vertices, float), np.asarray(mesh.faces, np.int64)


class MeshStore:
    """Adds the assets that shapes ask for to one specification."""

    def __init__(self, spec: mujoco.MjSpec) -> None:
        self._spec = spec
        self._names: dict[tuple[object, ...], str] = {}
        self._pieces: dict[tuple[object, ...], list[str]] = {}

    def surface(self, mesh: Mesh) -> Surface:
        """The mesh's scaled surface. Raises DescriptionError."""
        if mesh.file is None:
            raise DescriptionError(f"mesh {mesh.uri} was not found", where=mesh.uri)
        try:
            stamp = mesh.file.stat().st_mtime_ns
        except OSError as error:
            raise DescriptionError(f"mesh cannot be read: {error}", where=str(mesh.file)) from error
        vertices, faces = load_surface(mesh.file, stamp)
        vertices = vertices * np.asarray(mesh.scale)
        return vertices, faces[:, ::-1] if np.prod(mesh.scale) < 0.0 else faces

    def whole(self, mesh: Mesh) -> str:
        """The asset of the mesh as it is (the engine touches its convex hull)."""
        return self._named(self._key(mesh, "whole"), lambda: self.surface(mesh))

    def concave(self, mesh: Mesh) -> list[str]:
        """Assets of convex pieces that follow the mesh's hollows."""
        key = self._key(mesh, "pieces")
        if key not in self._pieces:
            surface = self.surface(mesh)
            pieces = convex_pieces(*surface)
            if pieces is None:
                self._pieces[key] = [self.whole(mesh)]
            else:
                self._pieces[key] = [self.points(f"{key}#{i}", points) for i, points in enumerate(pieces)]
        return self._pieces[key]

    def is_flat(self, mesh: Mesh) -> bool:
        """Whether all of the mesh lies in one plane."""
        return is_flat(self.surface(mesh)[0])

    def points(self, key: object, points: NDArray[np.float64]) -> str:
        """The asset of a convex shape given by its corners."""
        from scipy.spatial import ConvexHull, QhullError

        def hull() -> Surface:
            try:
                faces = ConvexHull(points)
            except QhullError:
                faces = ConvexHull(points, qhull_options="QJ")  # nearly flat: let it move corners by rounding's width
            centre = points[faces.vertices].mean(axis=0)
            triangles = faces.simplices.astype(np.int64)
            normals = np.cross(
                points[triangles[:, 1]] - points[triangles[:, 0]], points[triangles[:, 2]] - points[triangles[:, 0]]
            )
            inward = np.einsum("ij,ij->i", normals, points[triangles[:, 0]] - centre) < 0.0
            triangles[inward] = triangles[inward][:, ::-1]
            return points, triangles

        return self._named(("points", key), hull)

    def heightmap(self, shape: Heightmap) -> tuple[str, float]:
        """The height field asset of a grey picture, black 0 and white ``size[2]`` high, and its base's height [m].

        Raises:
            DescriptionError: the picture is missing or unreadable.
        """
        grid = _grey(shape)
        low, span = float(grid.min()), float(grid.max() - grid.min())
        key = ("heightmap", str(shape.file), shape.size)
        if key not in self._names:
            name = f"terrain{len(self._names)}"
            field = self._spec.add_hfield(name=name, nrow=grid.shape[0], ncol=grid.shape[1])
            # The engine stretches the data to 0…1 over its third size.
            field.size = [shape.size[0] / 2, shape.size[1] / 2, max(span * shape.size[2], 1e-6), 0.1]
            field.userdata = grid.ravel().tolist()
            self._names[key] = name
        return self._names[key], low * shape.size[2]

    def _key(self, mesh: Mesh, use: str) -> tuple[object, ...]:
        return (use, str(mesh.file), mesh.scale)

    def _named(self, key: tuple[object, ...], surface: Callable[[], Surface]) -> str:
        if key not in self._names:
            vertices, faces = surface()
            name = f"mesh{len(self._names)}"
            asset = self._spec.add_mesh(
                name=name,
                uservert=np.ascontiguousarray(vertices, np.float32).ravel(),
                userface=np.ascontiguousarray(faces, np.int32).ravel(),
            )
            # Masses come from the description; "shell" spares open surfaces the volume check.
            asset.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
            self._names[key] = name
        return self._names[key]


def _grey(shape: Heightmap) -> NDArray[np.float32]:
    """Heights 0…1, first row at the least y."""
    from PIL import Image

    if shape.file is None:
        raise DescriptionError(f"heightmap {shape.uri} was not found", where=shape.uri)
    try:
        with Image.open(shape.file) as picture:
            deep = picture.mode.startswith("I")  # 16 bits
            grey = np.asarray(picture.convert("I") if deep else picture.convert("L"), np.float32)
    except OSError as error:
        raise DescriptionError(f"heightmap cannot be read: {error}", where=str(shape.file)) from error
    if min(grey.shape) < 2:
        raise DescriptionError("heightmap needs at least 2 x 2 pixels", where=str(shape.file))
    return np.asarray(grey[::-1] / (65535.0 if deep else 255.0), np.float32)
