"""Mesh and terrain assets of an assembly: each file is read once, scaled once, and named once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.meshes.convex import (
    ConvexApproximation,
    approximate_by_convex_pieces,
    convex_hull_arrays,
    is_flat,
)
from roboyard.description.meshes.files import MeshArrays, load_mesh, mesh_modified_ns
from roboyard.description.model import Heightmap, Mesh
from roboyard.errors import DescriptionError
from roboyard.simulation.assembly.pictures import opened

TextureCoordinates = NDArray[np.float64]  # (n, 2): of each vertex in a picture, v upwards

PLACEHOLDER_SIZE = 0.1
"""Edge of the marked box that stands for a mesh whose file is missing [m]."""
MAX_HEIGHTS = 4_200_000
"""Points of a terrain: 2049 × 2049, Gazebo's largest, and a little."""
NO_DEPTH = 1e-3
"""Depth given to what is flat [m]: a sheet of paper has no hull."""


@lru_cache(maxsize=32)
def _approximate_mesh(mesh: Mesh, modified_ns: int) -> ConvexApproximation:
    """The mesh taken apart; a world is assembled anew whenever a model comes or goes. Raises DescriptionError."""
    return approximate_by_convex_pieces(*load_mesh(mesh))


class MeshStore:
    """Adds the assets that shapes ask for to one specification."""

    def __init__(self, spec: mujoco.MjSpec) -> None:
        self._spec = spec
        self._names: dict[tuple[object, ...], str] = {}
        self._pieces: dict[tuple[object, ...], tuple[list[str], ConvexApproximation]] = {}

    def whole(self, mesh: Mesh) -> str:
        """The asset of the mesh as it is (the engine touches its convex hull)."""
        return self._named(self._key(mesh, "whole"), lambda: load_mesh(mesh))

    def concave(self, mesh: Mesh) -> tuple[list[str], ConvexApproximation]:
        """Assets of convex pieces that follow the mesh's hollows, and how near they are."""
        key = self._key(mesh, "pieces")
        if key not in self._pieces:
            pieces = _approximate_mesh(mesh, mesh_modified_ns(mesh))
            names = [self._named((key, i), partial(_same, surface)) for i, surface in enumerate(pieces.pieces)]
            self._pieces[key] = names, pieces
        return self._pieces[key]

    def drawn(self, key: object, surface: MeshArrays, uv: TextureCoordinates | None) -> str:
        """The asset of a surface that is only seen, with its vertices' places in a picture."""
        vertices, faces = surface
        if len(vertices) < 4:  # the engine takes fewer for no mesh
            extra = np.repeat(vertices[:1], 4 - len(vertices), axis=0) + NO_DEPTH * np.eye(4)[: 4 - len(vertices), :3]
            vertices = np.concatenate([vertices, extra])
            uv = None if uv is None else np.concatenate([uv, np.repeat(uv[:1], len(extra), axis=0)])
        return self._named(("drawn", key), lambda: (vertices, faces), uv)

    def sheet(self, mesh: Mesh) -> str:
        """The asset of a flat mesh, `NO_DEPTH` thick."""
        vertices, _ = load_mesh(mesh)
        normal = np.linalg.svd(vertices - vertices.mean(axis=0), full_matrices=False)[2][2]
        return self.points(self._key(mesh, "sheet"), np.concatenate([vertices, vertices - NO_DEPTH * normal]))

    def is_flat(self, mesh: Mesh) -> bool:
        """Whether all of the mesh lies in one plane."""
        return is_flat(load_mesh(mesh)[0])

    def is_single(self, mesh: Mesh) -> bool:
        """Whether it is one triangle, which the engine takes for no mesh."""
        return len(load_mesh(mesh)[0]) < 4

    def points(self, key: object, points: NDArray[np.float64]) -> str:
        """The asset of a convex shape given by its corners."""
        return self._named(("points", key), lambda: convex_hull_arrays(points))

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

    def _named(
        self, key: tuple[object, ...], surface: Callable[[], MeshArrays], uv: TextureCoordinates | None = None
    ) -> str:
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


def _same(surface: MeshArrays) -> MeshArrays:
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
