"""Collision and visual shapes of links as MuJoCo geoms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.meshes.appearance import TexturedMesh, effective_material, read_textured_meshes
from roboyard.description.meshes.convex import is_flat
from roboyard.description.meshes.files import mesh_modified_ns
from roboyard.description.model import (
    Box,
    Capsule,
    Collision,
    Cone,
    Cylinder,
    Ellipsoid,
    Geometry,
    Heightmap,
    Link,
    Mesh,
    Plane,
    Polyline,
    Rgba,
    Sphere,
    Visual,
)
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3, polygons
from roboyard.physics.compiled_world import COLLISION_BITS, VISUAL_CONTYPE, GeomGroup, scoped_name
from roboyard.physics.compiler.assets import PLACEHOLDER_SIZE, MaterialStore, MeshStore, displayed_color
from roboyard.physics.compiler.contact_properties import (
    AnisotropicFriction,
    is_anisotropic,
    make_contact_properties,
    read_anisotropic_friction,
)

COLLISION_RGBA: Rgba = (0.6, 0.6, 0.7, 0.6)  # never fully transparent: MuJoCo's rays pass through geoms of alpha 0
BOX_REPLACES_IT = "a marked box replaces it"
COLLISIONS_REPLACE_IT = "the link's collision shapes are drawn in its place"
PLACEHOLDER_RGBA: Rgba = (1.0, 0.0, 1.0, 1.0)


@dataclass(slots=True)
class GeomOwner:
    """Model, link and shape that a geom belongs to."""

    geom_name: str
    model_index: int
    link_name: str
    shape_name: str
    anisotropic_friction: AnisotropicFriction | None = None


@dataclass(frozen=True, slots=True)
class GeomTarget:
    """A link whose shapes become geoms, and the body that gets them.

    Attributes:
        model_index: Number of the model in the geom tables.
        model_name: Name of the model.
        link: The link.
        body: Body of the link; None for static links, whose shapes go to the bodies of `StaticBodyGrid`.
        T_base_link: Pose of the link in the body, or in the world where there is no body.
        is_static: Whether the link never moves: its meshes then collide as convex pieces instead of convex hulls.
    """

    model_index: int
    model_name: str
    link: Link
    body: mujoco.MjsBody | None
    T_base_link: SE3
    is_static: bool

    def geom_name(self, shape_name: str) -> str:
        """Return the name of a geom of the link."""
        return scoped_name(self.model_name, self.link.name, shape_name)


@dataclass(slots=True)
class GeomBuilder:
    """Adds the shapes of links to bodies as geoms, and records which link each geom belongs to.

    Attributes:
        mesh_store: Meshes and height fields of the world.
        material_store: Materials of the world.
        static_bodies: Bodies of static shapes.
        contact_time: Time constant of contacts [s].
        with_visuals: Whether visuals of links with collision shapes are added; physics does without them, since each
            shape takes time in every step.
        warnings: Warnings are appended.
        owners: Link and shape of each geom.
    """

    mesh_store: MeshStore
    material_store: MaterialStore
    static_bodies: StaticBodyGrid
    contact_time: float
    with_visuals: bool
    warnings: list[str]
    owners: list[GeomOwner] = field(default_factory=list)
    _name_counts: dict[str, int] = field(default_factory=dict)
    _links_drawn_by_collisions: set[str] = field(default_factory=set)

    def add_link_geoms(self, target: GeomTarget) -> None:
        """Add all shapes of a link."""
        link = target.link
        for collision in link.collisions:
            if collision.surface.collide:
                self._add_collision(target, collision)
        has_no_collision = not any(collision.surface.collide for collision in link.collisions)
        for visual in link.visuals:
            if self.with_visuals or has_no_collision:
                self._add_visual(target, visual, has_no_collision=has_no_collision)
            else:
                self._warn_if_mesh_is_missing(target, visual)

    def _add_collision(self, target: GeomTarget, collision: Collision) -> None:
        collision_name = target.geom_name(collision.name)
        T_base_geom = target.T_base_link @ collision.T_link_geom
        properties = make_contact_properties(collision.surface, self.contact_time)
        if is_anisotropic(collision.surface) and collision.surface.friction_direction is None:
            self.warnings.append(
                f"{collision_name}: friction differs along two directions, but there is no <fdir1>: their "
                "geometric mean is used"
            )
        anisotropic_friction = read_anisotropic_friction(collision.surface, T_base_geom)
        for shape in make_geom_shapes(
            collision.geometry,
            self.mesh_store,
            is_collision=True,
            is_static=target.is_static,
            warnings=self.warnings,
            location=collision_name,
        ):
            if self.with_visuals and not shape.is_collidable:
                continue
            geom = self._add_geom(collision_name, shape, target.body, T_base_geom, is_visual=False)
            if shape.is_collidable:
                geom.group = GeomGroup.COLLISION if shape.is_ray_visible else GeomGroup.INVISIBLE_COLLISION
                geom.contype, geom.conaffinity = COLLISION_BITS, COLLISION_BITS
            else:
                geom.group, geom.contype, geom.conaffinity = GeomGroup.VISUAL_AS_COLLISION, VISUAL_CONTYPE, 0
            geom.rgba = COLLISION_RGBA
            geom.friction, geom.condim, geom.priority = properties.friction, properties.condim, properties.priority
            if properties.solref is not None:
                geom.solref = properties.solref
            self.owners.append(
                GeomOwner(geom.name, target.model_index, target.link.name, collision.name, anisotropic_friction)
            )

    def _add_visual(self, target: GeomTarget, visual: Visual, *, has_no_collision: bool) -> None:
        owner_name = f"visual {visual.name}"
        visual_name = target.geom_name(owner_name)
        T_base_geom = target.T_base_link @ visual.T_link_geom
        consequence = BOX_REPLACES_IT if has_no_collision else COLLISIONS_REPLACE_IT
        shapes = self._make_visual_shapes(visual, target.is_static, visual_name, consequence)
        if not has_no_collision and any(shape.is_placeholder for shape in shapes):
            self._replace_visual_by_collisions(target, visual)
            return
        for shape in shapes:
            geom = self._add_geom(visual_name, shape, target.body, T_base_geom, is_visual=not has_no_collision)
            is_flat_shape = (
                is_flat(shape.textured_mesh.vertices)
                if shape.textured_mesh
                else bool(shape.mesh_asset) and self._has_flat_mesh(visual)
            )
            is_ray_visible = has_no_collision and not is_flat_shape  # rays need a mesh with a convex hull
            geom.group = GeomGroup.VISUAL_AS_COLLISION if is_ray_visible else GeomGroup.VISUAL
            geom.contype, geom.conaffinity = (VISUAL_CONTYPE, 0) if is_ray_visible else (0, 0)
            geom.castshadow = visual.cast_shadows
            if shape.is_placeholder:
                geom.rgba = PLACEHOLDER_RGBA
            else:
                textured_mesh = shape.textured_mesh
                material = (
                    visual.material
                    if textured_mesh is None
                    else effective_material(visual.material, textured_mesh.material)
                )
                geom.rgba = displayed_color(material)
                if self.with_visuals:
                    uses_mesh_texture = textured_mesh is not None and not visual.material.is_explicit
                    geom.material = self.material_store.add_material(
                        material, textured_mesh.pixels if textured_mesh and uses_mesh_texture else None
                    )
            self.owners.append(GeomOwner(geom.name, target.model_index, target.link.name, owner_name))

    def _replace_visual_by_collisions(self, target: GeomTarget, visual: Visual) -> None:
        """Draw the collision shapes of a link in place of a visual whose file cannot be read, in the visual's color."""
        owner_name, link_name = f"visual {visual.name}", target.geom_name("")
        if link_name in self._links_drawn_by_collisions:  # another visual of the link is missing too
            return
        self._links_drawn_by_collisions.add(link_name)
        for collision in target.link.collisions:
            if not collision.surface.collide:
                continue
            for shape in make_geom_shapes(
                collision.geometry,
                self.mesh_store,
                is_collision=False,
                is_static=target.is_static,
                warnings=[],  # the collision shape itself warns
                location=owner_name,
            ):
                T_base_geom = target.T_base_link @ collision.T_link_geom
                geom = self._add_geom(target.geom_name(owner_name), shape, target.body, T_base_geom, is_visual=True)
                geom.group, geom.contype, geom.conaffinity = GeomGroup.VISUAL, 0, 0
                geom.castshadow = visual.cast_shadows
                geom.rgba = PLACEHOLDER_RGBA if shape.is_placeholder else displayed_color(visual.material)
                self.owners.append(GeomOwner(geom.name, target.model_index, target.link.name, owner_name))

    def _warn_if_mesh_is_missing(self, target: GeomTarget, visual: Visual) -> None:
        """Warn about the missing mesh of a visual, although only renderers need it."""
        if isinstance(visual.geometry, Mesh):
            try:
                mesh_modified_ns(visual.geometry)
            except DescriptionError as error:
                self.warnings.append(f"{target.geom_name(f'visual {visual.name}')}: {error}; {COLLISIONS_REPLACE_IT}")

    def _make_visual_shapes(self, visual: Visual, is_static: bool, location: str, consequence: str) -> list[GeomShape]:
        """Make the shapes of a visual; for rendering a mesh is split by its materials."""
        if self.with_visuals and isinstance(visual.geometry, Mesh):
            try:
                textured_meshes = read_textured_meshes(visual.geometry)
                identity, size = SE3.identity(), (0.0, 0.0, 0.0)
                key = (visual.geometry, "look")
                return [
                    GeomShape(
                        mujoco.mjtGeom.mjGEOM_MESH,
                        size,
                        identity,
                        mesh_asset=self.mesh_store.add_visual_mesh(
                            (*key, i), (textured_mesh.vertices, textured_mesh.faces), textured_mesh.uv
                        ),
                        textured_mesh=textured_mesh,
                    )
                    for i, textured_mesh in enumerate(textured_meshes)
                    if len(textured_mesh.faces)
                ]
            except DescriptionError:
                pass  # make_geom_shapes warns and adds a placeholder
        return make_geom_shapes(
            visual.geometry,
            self.mesh_store,
            is_collision=False,
            is_static=is_static,
            warnings=self.warnings,
            location=location,
            consequence=consequence,
        )

    def _has_flat_mesh(self, visual: Visual) -> bool:
        return isinstance(visual.geometry, Mesh) and self.mesh_store.is_flat(visual.geometry)

    def _add_geom(
        self, base_name: str, shape: GeomShape, body: mujoco.MjsBody | None, T_base_geom: SE3, *, is_visual: bool
    ) -> mujoco.MjsGeom:
        T = T_base_geom @ shape.T_geom_shape
        target_body = self.static_bodies.body_for(shape, T, is_visual=is_visual) if body is None else body
        name = base_name
        while name in self._name_counts:  # count the copies of a name: a mesh has up to 5,000 pieces
            self._name_counts[base_name] += 1
            name = f"{base_name}#{self._name_counts[base_name]}"
        self._name_counts[name] = 1
        geom = target_body.add_geom(name=name, type=shape.type, size=shape.size, pos=T.translation, quat=T.rotation)
        if shape.mesh_asset:
            geom.meshname = shape.mesh_asset
        if shape.height_field:
            geom.hfieldname = shape.height_field
        return geom


STATIC_CELL_SIZE = 6.0
"""Edge of a cell [m].  One body for each geom and one body for all geoms are both slower (measured)."""


class StaticBodyGrid:
    """Bodies of static shapes: one body for all shapes within a cell of the ground plane, for a fast broad phase."""

    def __init__(self, spec: mujoco.MjSpec) -> None:
        self._spec = spec
        self._bodies: dict[str, mujoco.MjsBody] = {}

    def body_for(self, shape: GeomShape, T_world_shape: SE3, *, is_visual: bool) -> mujoco.MjsBody:
        """Return the body of a shape at ``T_world_shape``.

        Planes, terrain and meshes belong to MuJoCo's world body, and each large shape gets its own body.  Visual shapes
        have separate bodies so that they do not enlarge the bounding boxes of collision detection.  MuJoCo tests all
        shapes of each body at every step, but finds those of the world body by a tree, and a mesh can have thousands of
        pieces (a step of a rover among 5,000 pieces takes 38 µs, in cells 107 µs; in a house of 900 pieces 45 and
        75 µs).
        """
        geom_types = mujoco.mjtGeom
        if shape.type in (geom_types.mjGEOM_PLANE, geom_types.mjGEOM_HFIELD) or (
            shape.type == geom_types.mjGEOM_MESH and not is_visual
        ):
            return self._spec.worldbody
        if shape.type != geom_types.mjGEOM_MESH and 2.0 * max(shape.size) > STATIC_CELL_SIZE:
            return self._find_or_add_body(f"large {len(self._bodies)}")
        i, j = math.floor(T_world_shape.x / STATIC_CELL_SIZE), math.floor(T_world_shape.y / STATIC_CELL_SIZE)
        return self._find_or_add_body(f"{'looks' if is_visual else 'cell'} {i} {j}")

    def _find_or_add_body(self, name: str) -> mujoco.MjsBody:
        if name not in self._bodies:
            self._bodies[name] = self._spec.worldbody.add_body(name=name)
        return self._bodies[name]


PlanarPoints = NDArray[np.float64]
Outline = Sequence[Sequence[float]]

MIN_TRAPEZOID_AREA = 1e-8
"""Smaller trapezoids are left out [m²]."""
MAX_OUTLINE_CORNERS = 2000
"""Largest number of corners of all outlines together; the computing time grows with its square."""


def decompose_into_convex_prisms(outlines: Sequence[Outline], height: float) -> list[PlanarPoints]:
    """Decompose a prism over outlines of any shape into convex prisms from 0 to ``height``.

    A point is inside if an odd number of outlines encloses it.  The plane is cut at the y of each corner and crossing.
    Between two cuts the inside consists of trapezoids; those between the same two edges are merged (trapezoidal
    decomposition, de Berg et al., Computational Geometry, 2008, section 6.1).

    Args:
        outlines: Closed outlines, each (n, 2) [m].
        height: [m].

    Returns:
        Corners of each convex prism (k, 3) [m].

    Raises:
        DescriptionError: there are too many corners, or the outlines enclose no area.
    """
    edges = _rising_edges(outlines)
    if len(edges) > MAX_OUTLINE_CORNERS:
        raise DescriptionError(f"a polyline has {len(edges)} corners", valid=f"at most {MAX_OUTLINE_CORNERS}")
    trapezoids = _decompose_into_trapezoids(edges)
    if not trapezoids:
        raise DescriptionError("the points of a polyline lie on a line", valid="an area")
    corners = np.concatenate(trapezoids)
    hull = _convex_hull(corners)
    if sum(abs(polygons.signed_area(trapezoid)) for trapezoid in trapezoids) >= abs(polygons.signed_area(hull)) * (
        1.0 - 1e-9
    ):
        trapezoids = [hull]
    return [
        np.concatenate([np.c_[trapezoid, np.zeros(len(trapezoid))], np.c_[trapezoid, np.full(len(trapezoid), height)]])
        for trapezoid in trapezoids
    ]


def _rising_edges(outlines: Sequence[Outline]) -> PlanarPoints:
    """Return the edges (n, 2, 2) that are not horizontal, lower end first; horizontal ones are cuts."""
    edge_arrays = []
    for outline in outlines:
        points = np.asarray(outline, float)
        segments = np.stack([points, np.roll(points, -1, axis=0)], axis=1)
        is_rising = segments[:, 0, 1] < segments[:, 1, 1]
        edge_arrays.append(np.where(is_rising[:, None, None], segments, segments[:, ::-1]))
    edges = np.concatenate(edge_arrays) if edge_arrays else np.zeros((0, 2, 2))
    return edges[edges[:, 0, 1] < edges[:, 1, 1]]


def _decompose_into_trapezoids(edges: PlanarPoints) -> list[PlanarPoints]:
    cut_heights = np.unique(np.concatenate([edges[:, :, 1].ravel(), _crossing_heights(edges)]))
    open_trapezoids: dict[tuple[int, int], float] = {}
    trapezoids: list[PlanarPoints] = []

    def close(pair: tuple[int, int], low: float, high: float) -> None:
        corners = np.array(
            [
                [_edge_x_at(edges[edge_index], y), y]
                for edge_index, y in ((pair[0], low), (pair[1], low), (pair[1], high), (pair[0], high))
            ]
        )
        if abs(polygons.signed_area(corners)) > MIN_TRAPEZOID_AREA:
            trapezoids.append(corners)

    for low, high in pairwise(cut_heights):
        center_y = 0.5 * (low + high)
        crossing_edges = np.flatnonzero((edges[:, 0, 1] < center_y) & (edges[:, 1, 1] > center_y))
        edges_by_x = crossing_edges[
            np.argsort([_edge_x_at(edges[edge_index], center_y) for edge_index in crossing_edges], kind="stable")
        ]
        pairs = {(int(a), int(b)) for a, b in zip(edges_by_x[::2], edges_by_x[1::2], strict=False)}
        for pair in [pair for pair in open_trapezoids if pair not in pairs]:
            close(pair, open_trapezoids.pop(pair), float(low))
        for pair in sorted(pairs):
            open_trapezoids.setdefault(pair, float(low))
    for pair, start in open_trapezoids.items():
        close(pair, start, float(cut_heights[-1]))
    return trapezoids


def _edge_x_at(edge: PlanarPoints, y: float) -> float:
    (x0, y0), (x1, y1) = edge
    return float(x0 + (x1 - x0) * (y - y0) / (y1 - y0))


def _crossing_heights(edges: PlanarPoints) -> PlanarPoints:
    """Compute the y at which two edges cross."""
    heights = []
    start, direction = edges[:, 0], edges[:, 1] - edges[:, 0]
    for index in range(len(edges)):
        others = slice(index + 1, None)
        determinant = direction[index, 0] * direction[others, 1] - direction[index, 1] * direction[others, 0]
        offset = start[others] - start[index]
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (offset[:, 0] * direction[others, 1] - offset[:, 1] * direction[others, 0]) / determinant
            u = (offset[:, 0] * direction[index, 1] - offset[:, 1] * direction[index, 0]) / determinant
        is_crossing = (t > 0.0) & (t < 1.0) & (u > 0.0) & (u < 1.0)
        heights.append(start[index, 1] + t[is_crossing] * direction[index, 1])
    return np.concatenate(heights) if heights else np.zeros(0)


def _convex_hull(points: PlanarPoints) -> PlanarPoints:
    from scipy.spatial import ConvexHull, QhullError

    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except (QhullError, ValueError):
        raise DescriptionError("the points of a polyline lie on a line", valid="an area") from None


_GeomType = mujoco.mjtGeom
N_CONE_SIDES = 32
_NO_SIZE = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class GeomShape:
    """One MuJoCo geom: type, ``size`` (half lengths, radii [m]), asset, pose and appearance.

    The convex pieces of a mesh are ``is_collidable`` only, the mesh itself is ``is_ray_visible`` only.
    """

    type: int
    size: tuple[float, float, float]
    T_geom_shape: SE3
    mesh_asset: str = ""
    height_field: str = ""
    is_placeholder: bool = False
    textured_mesh: TexturedMesh | None = None
    is_collidable: bool = True
    is_ray_visible: bool = True


def make_geom_shapes(
    geometry: Geometry,
    mesh_store: MeshStore,
    *,
    is_collision: bool,
    is_static: bool,
    warnings: list[str],
    location: str,
    consequence: str = BOX_REPLACES_IT,
) -> list[GeomShape]:
    """Make the MuJoCo geoms that represent a geometry.

    Args:
        geometry: What the description says.
        mesh_store: Takes the assets.
        is_collision: For contact (concave still meshes are taken apart) rather than for looks.
        is_static: The link never moves; planes and terrain exist only there.
        warnings: What could not be represented is said here.
        location: ``model::link::name`` for those notes.
        consequence: What the warning about an unreadable file says of the shape.

    Returns:
        None to many shapes.
    """
    identity = SE3.identity()
    match geometry:
        case Box(size=(x, y, z)):
            return [GeomShape(_GeomType.mjGEOM_BOX, (x / 2, y / 2, z / 2), identity)]
        case Sphere(radius=r):
            return [GeomShape(_GeomType.mjGEOM_SPHERE, (r, 0.0, 0.0), identity)]
        case Cylinder(radius=r, length=length):
            return [GeomShape(_GeomType.mjGEOM_CYLINDER, (r, length / 2, 0.0), identity)]
        case Capsule(radius=r, length=length):
            return [GeomShape(_GeomType.mjGEOM_CAPSULE, (r, length / 2, 0.0), identity)]
        case Ellipsoid(radii=radii):
            return [GeomShape(_GeomType.mjGEOM_ELLIPSOID, radii, identity)]
        case Cone(radius=r, length=length):
            return [
                GeomShape(
                    _GeomType.mjGEOM_MESH,
                    (0.0, 0.0, 0.0),
                    identity,
                    mesh_asset=mesh_store.add_convex_points(geometry, _cone_vertices(r, length)),
                )
            ]
        case Plane(normal=normal, size=size):
            if not is_static:
                warnings.append(
                    f"{location}: a plane on a moving link is left out (planes are infinite and never move)"
                )
                return []
            extent = (0.0, 0.0, 1.0) if is_collision else (size[0] / 2, size[1] / 2, 1.0)
            return [GeomShape(_GeomType.mjGEOM_PLANE, extent, SE3(_quaternion_from_z_to(normal), (0.0, 0.0, 0.0)))]
        case Polyline(points=outlines, height=height):
            try:
                prisms = decompose_into_convex_prisms(outlines, height)
            except DescriptionError as error:
                raise DescriptionError(error.message, location=location, valid=error.valid) from None
            keys = [(geometry, index) for index in range(len(prisms))]
            names = [mesh_store.add_convex_points(key, prism) for key, prism in zip(keys, prisms, strict=True)]
            return [GeomShape(_GeomType.mjGEOM_MESH, (0.0, 0.0, 0.0), identity, mesh_asset=name) for name in names]
        case Mesh() | Heightmap():
            try:
                return _make_file_shapes(
                    geometry,
                    mesh_store,
                    is_collision=is_collision,
                    is_static=is_static,
                    warnings=warnings,
                    location=location,
                )
            except DescriptionError as error:
                warnings.append(f"{location}: {error}; {consequence}")
                half = PLACEHOLDER_SIZE / 2
                return [GeomShape(_GeomType.mjGEOM_BOX, (half, half, half), identity, is_placeholder=True)]


def _make_file_shapes(
    geometry: Mesh | Heightmap,
    mesh_store: MeshStore,
    *,
    is_collision: bool,
    is_static: bool,
    warnings: list[str],
    location: str,
) -> list[GeomShape]:
    if isinstance(geometry, Heightmap):
        if not is_static:
            warnings.append(f"{location}: terrain on a moving link is left out")
            return []
        name, base = mesh_store.add_height_field(geometry)
        x, y, z = geometry.position
        return [
            GeomShape(_GeomType.mjGEOM_HFIELD, (0.0, 0.0, 0.0), SE3(translation=(x, y, z + base)), height_field=name)
        ]
    pieces: list[str] = []
    if is_collision and is_static and not (geometry.convex or mesh_store.is_flat(geometry)):
        pieces, approximation = mesh_store.add_convex_pieces(geometry)
        if approximation.triangles:
            warnings.append(
                f"{location}: {geometry.uri} has too many triangles for a convex decomposition: it collides as a mesh "
                f"of {approximation.triangles} triangles, within {1000.0 * approximation.error:.1f} mm of its surface"
            )
        elif approximation.filled_width:
            warnings.append(
                f"{location}: {geometry.uri} has too many triangles for a convex decomposition: it collides as "
                f"{len(pieces)} pieces, gaps narrower than {approximation.filled_width:.2f} m are filled"
            )
    if mesh_store.is_flat(geometry):
        names = (
            [mesh_store.add_flat_mesh(geometry)]
            if is_collision or mesh_store.is_single_triangle(geometry)
            else [mesh_store.add_mesh(geometry)]
        )
    else:
        names = pieces or [mesh_store.add_mesh(geometry)]
    if len(pieces) < 2:
        return [GeomShape(_GeomType.mjGEOM_MESH, _NO_SIZE, SE3.identity(), mesh_asset=name) for name in names]
    convex_shapes = [
        GeomShape(_GeomType.mjGEOM_MESH, _NO_SIZE, SE3.identity(), mesh_asset=name, is_ray_visible=False)
        for name in pieces
    ]
    return [
        *convex_shapes,
        GeomShape(
            _GeomType.mjGEOM_MESH,
            _NO_SIZE,
            SE3.identity(),
            mesh_asset=mesh_store.add_mesh(geometry),
            is_collidable=False,
        ),
    ]


def _cone_vertices(radius: float, length: float) -> NDArray[np.float64]:
    angles = np.arange(N_CONE_SIDES) * (2.0 * math.pi / N_CONE_SIDES)
    base = np.c_[radius * np.cos(angles), radius * np.sin(angles), np.full(N_CONE_SIDES, -length / 2)]
    return np.concatenate([base, [[0.0, 0.0, length / 2]]])


def _quaternion_from_z_to(normal: tuple[float, float, float]) -> NDArray[np.float64]:
    """Quaternion (w, x, y, z) that rotates the z axis to ``normal``."""
    quat = np.zeros(4)
    mujoco.mju_quatZ2Vec(quat, np.asarray(normal, float) / math.sqrt(sum(c * c for c in normal)))
    return quat
