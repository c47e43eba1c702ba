"""A description's shapes as the engine's: type, half sizes, asset and offset."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.meshes.appearance import TexturedMesh
from roboyard.description.model import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Ellipsoid,
    Geometry,
    Heightmap,
    Mesh,
    Plane,
    Polyline,
    Sphere,
)
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3
from roboyard.simulation.assembly.meshes import PLACEHOLDER_SIZE, MeshStore
from roboyard.simulation.assembly.prisms import convex_prisms

_G = mujoco.mjtGeom
CONE_SIDES = 32
_NO_SIZE = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Shape:
    """One engine geom: type, ``size`` (half lengths, radii [m]), the asset it needs, where it sits, how it looks.

    ``touches`` and ``seen`` tell apart the pieces of a mesh, for contacts, and the mesh itself, for rays.
    """

    type: int
    size: tuple[float, float, float]
    T_geom_shape: SE3
    mesh: str = ""
    terrain: str = ""
    placeholder: bool = False
    look: TexturedMesh | None = None
    touches: bool = True
    seen: bool = True


def shapes_of(
    geometry: Geometry, store: MeshStore, *, collides: bool, still: bool, notes: list[str], where: str
) -> list[Shape]:
    """The engine shapes that stand for ``geometry``.

    Args:
        geometry: What the description says.
        store: Takes the assets.
        collides: For contact (concave still meshes are taken apart) rather than for looks.
        still: The link never moves; planes and terrain exist only there.
        notes: What could not be represented is said here.
        where: ``model::link::name`` for those notes.

    Returns:
        None to many shapes.
    """
    identity = SE3.identity()
    match geometry:
        case Box(size=(x, y, z)):
            return [Shape(_G.mjGEOM_BOX, (x / 2, y / 2, z / 2), identity)]
        case Sphere(radius=r):
            return [Shape(_G.mjGEOM_SPHERE, (r, 0.0, 0.0), identity)]
        case Cylinder(radius=r, length=length):
            return [Shape(_G.mjGEOM_CYLINDER, (r, length / 2, 0.0), identity)]
        case Capsule(radius=r, length=length):
            return [Shape(_G.mjGEOM_CAPSULE, (r, length / 2, 0.0), identity)]
        case Ellipsoid(radii=radii):
            return [Shape(_G.mjGEOM_ELLIPSOID, radii, identity)]
        case Cone(radius=r, length=length):
            return [Shape(_G.mjGEOM_MESH, (0.0, 0.0, 0.0), identity, mesh=store.points(geometry, _cone(r, length)))]
        case Plane(normal=normal, size=size):
            if not still:
                notes.append(f"{where}: a plane on a moving link is left out (planes are infinite and never move)")
                return []
            extent = (0.0, 0.0, 1.0) if collides else (size[0] / 2, size[1] / 2, 1.0)
            return [Shape(_G.mjGEOM_PLANE, extent, SE3(_rotation_to(normal), (0.0, 0.0, 0.0)))]
        case Polyline(points=outlines, height=height):
            try:
                prisms = convex_prisms(outlines, height)
            except DescriptionError as error:
                raise DescriptionError(error.message, location=where, valid=error.valid) from None
            keys = [(geometry, index) for index in range(len(prisms))]
            names = [store.points(key, prism) for key, prism in zip(keys, prisms, strict=True)]
            return [Shape(_G.mjGEOM_MESH, (0.0, 0.0, 0.0), identity, mesh=name) for name in names]
        case Mesh() | Heightmap():
            try:
                return _from_file(geometry, store, collides=collides, still=still, notes=notes, where=where)
            except DescriptionError as error:
                notes.append(f"{where}: {error}; a marked box stands for it")
                half = PLACEHOLDER_SIZE / 2
                return [Shape(_G.mjGEOM_BOX, (half, half, half), identity, placeholder=True)]


def _from_file(
    geometry: Mesh | Heightmap, store: MeshStore, *, collides: bool, still: bool, notes: list[str], where: str
) -> list[Shape]:
    if isinstance(geometry, Heightmap):
        if not still:
            notes.append(f"{where}: terrain on a moving link is left out")
            return []
        name, base = store.heightmap(geometry)
        x, y, z = geometry.position
        return [Shape(_G.mjGEOM_HFIELD, (0.0, 0.0, 0.0), SE3(translation=(x, y, z + base)), terrain=name)]
    pieces: list[str] = []
    if collides and still and not (geometry.convex or store.is_flat(geometry)):
        pieces, how = store.concave(geometry)
        if how.triangles:
            notes.append(
                f"{where}: {geometry.uri} is too fine to be taken apart as it is: reduced to {how.triangles} triangles "
                f"it touches within {1000.0 * how.error:.1f} mm of its surface"
            )
        elif how.filled_width:
            notes.append(
                f"{where}: {geometry.uri} is too fine to be taken apart as it is: it touches as {len(pieces)} lumps, "
                f"hollows narrower than {how.filled_width:.2f} m are filled"
            )
    if store.is_flat(geometry):
        names = [store.sheet(geometry)] if collides or store.is_single(geometry) else [store.whole(geometry)]
    else:
        names = pieces or [store.whole(geometry)]
    if len(pieces) < 2:
        return [Shape(_G.mjGEOM_MESH, _NO_SIZE, SE3.identity(), mesh=name) for name in names]
    apart = [Shape(_G.mjGEOM_MESH, _NO_SIZE, SE3.identity(), mesh=name, seen=False) for name in pieces]
    return [*apart, Shape(_G.mjGEOM_MESH, _NO_SIZE, SE3.identity(), mesh=store.whole(geometry), touches=False)]


def _cone(radius: float, length: float) -> NDArray[np.float64]:
    angles = np.arange(CONE_SIDES) * (2.0 * math.pi / CONE_SIDES)
    base = np.c_[radius * np.cos(angles), radius * np.sin(angles), np.full(CONE_SIDES, -length / 2)]
    return np.concatenate([base, [[0.0, 0.0, length / 2]]])


def _rotation_to(normal: tuple[float, float, float]) -> NDArray[np.float64]:
    """Quaternion (w, x, y, z) turning z to ``normal``."""
    quat = np.zeros(4)
    mujoco.mju_quatZ2Vec(quat, np.asarray(normal, float) / math.sqrt(sum(c * c for c in normal)))
    return quat
