"""Collision and visual shapes of links, made into engine geoms."""

from __future__ import annotations

from dataclasses import dataclass, field

import mujoco

from roboyard.description.meshes.appearance import effective_material, read_textured_meshes
from roboyard.description.meshes.convex import is_flat
from roboyard.description.model import Collision, Link, Mesh, Rgba, Visual
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3
from roboyard.simulation.assembly.cells import Cells
from roboyard.simulation.assembly.grain import Grain, grain_of
from roboyard.simulation.assembly.meshes import MeshStore
from roboyard.simulation.assembly.scenery import MaterialStore, seen_colour
from roboyard.simulation.assembly.shapes import Shape, shapes_of
from roboyard.simulation.assembly.surfaces import contact_of, differs
from roboyard.simulation.naming import (
    COLLISION,
    COLLISION_BITS,
    SEEN_ONLY,
    TOUCH_ONLY,
    VISUAL,
    VISUAL_CONTYPE,
    is_ground_name,
    scoped,
)

COLLISION_RGBA: Rgba = (0.6, 0.6, 0.7, 0.6)  # never fully clear: the engine's rays pass through alpha 0
PLACEHOLDER_RGBA: Rgba = (1.0, 0.0, 1.0, 1.0)


@dataclass(slots=True)
class GeomMark:
    """Whose geom it is."""

    name: str
    model: int
    link: str
    part: str
    ground: bool
    grain: Grain | None = None


@dataclass(slots=True)
class GeomMaker:
    """Puts links' shapes into bodies, and remembers whose each geom is.

    Attributes:
        looks: Also add what is only drawn; physics does without (each shape costs time at every step).
    """

    store: MeshStore
    materials: MaterialStore
    cells: Cells
    contact_time: float
    looks: bool
    notes: list[str]
    marks: list[GeomMark] = field(default_factory=list)
    _taken: dict[str, int] = field(default_factory=dict)

    def add(
        self, index: int, model: str, link: Link, body: mujoco.MjsBody | None, T_base_link: SE3, *, still: bool
    ) -> None:
        """Add all shapes of ``link``.

        Args:
            index: The model's number.
            model: Its name.
            link: The link.
            body: Its own body; None for scenery, which goes to the cells.
            T_base_link: Where the link is in the body, or in the world for static geometry.
            still: It never moves: meshes are then taken apart instead of filled up.
        """
        ground = is_ground_name(model) or is_ground_name(link.name)
        for collision in link.collisions:
            if collision.surface.collide:
                self._collision(index, model, link, collision, body, T_base_link, still, ground)
        seen_only = not any(collision.surface.collide for collision in link.collisions)
        for visual in link.visuals if self.looks or seen_only else ():
            self._visual(index, model, link, visual, body, T_base_link, still, seen_only)

    def _collision(
        self,
        index: int,
        model: str,
        link: Link,
        collision: Collision,
        body: mujoco.MjsBody | None,
        T_base_link: SE3,
        still: bool,
        ground: bool,
    ) -> None:
        where = scoped(model, link.name, collision.name)
        contact = contact_of(collision.surface, self.contact_time)
        if differs(collision.surface) and collision.surface.friction_direction is None:
            self.notes.append(
                f"{where}: friction differs along two directions, but no <fdir1> says which: their mean is taken"
            )
        grain = grain_of(collision.surface, T_base_link @ collision.T_link_geom)
        for shape in shapes_of(
            collision.geometry, self.store, collides=True, still=still, notes=self.notes, where=where
        ):
            if self.looks and not shape.touches:
                continue
            flat = shape.type in (mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_HFIELD)
            geom = self._geom(where, shape, body, T_base_link @ collision.T_link_geom, looks=False)
            if shape.touches:
                geom.group = COLLISION if shape.seen else TOUCH_ONLY
                geom.contype, geom.conaffinity = COLLISION_BITS, COLLISION_BITS
            else:
                geom.group, geom.contype, geom.conaffinity = SEEN_ONLY, VISUAL_CONTYPE, 0
            geom.rgba = COLLISION_RGBA
            geom.friction, geom.condim, geom.priority = contact.friction, contact.dimensions, contact.priority
            if contact.solref is not None:
                geom.solref = contact.solref
            self.marks.append(GeomMark(geom.name, index, link.name, collision.name, ground or flat, grain))

    def _visual(
        self,
        index: int,
        model: str,
        link: Link,
        visual: Visual,
        body: mujoco.MjsBody | None,
        T_base_link: SE3,
        still: bool,
        seen_only: bool,
    ) -> None:
        where = scoped(model, link.name, f"visual {visual.name}")
        for shape in self._seen(visual, still, where):
            geom = self._geom(where, shape, body, T_base_link @ visual.T_link_geom, looks=not seen_only)
            flat = is_flat(shape.look.vertices) if shape.look else bool(shape.mesh) and self._flat(visual)
            scanned = seen_only and not flat  # what rays scan must have a hull
            geom.group = SEEN_ONLY if scanned else VISUAL
            geom.contype, geom.conaffinity = (VISUAL_CONTYPE, 0) if scanned else (0, 0)
            geom.castshadow = visual.cast_shadows
            if shape.placeholder:
                geom.rgba = PLACEHOLDER_RGBA
            else:
                look = shape.look
                material = visual.material if look is None else effective_material(visual.material, look.material)
                geom.rgba = seen_colour(material)
                if self.looks:
                    own = look is not None and not visual.material.is_explicit
                    geom.material = self.materials.name(material, look.pixels if look and own else None)
            self.marks.append(GeomMark(geom.name, index, link.name, f"visual {visual.name}", False))

    def _seen(self, visual: Visual, still: bool, where: str) -> list[Shape]:
        """Shapes of a visual; for pictures a mesh is taken apart by its materials."""
        if self.looks and isinstance(visual.geometry, Mesh):
            try:
                looks = read_textured_meshes(visual.geometry)
                identity, size = SE3.identity(), (0.0, 0.0, 0.0)
                key = (visual.geometry, "look")
                return [
                    Shape(
                        mujoco.mjtGeom.mjGEOM_MESH,
                        size,
                        identity,
                        mesh=self.store.drawn((*key, i), (look.vertices, look.faces), look.uv),
                        look=look,
                    )
                    for i, look in enumerate(looks)
                    if len(look.faces)
                ]
            except DescriptionError:
                pass  # said by what follows, with a placeholder
        return shapes_of(visual.geometry, self.store, collides=False, still=still, notes=self.notes, where=where)

    def _flat(self, visual: Visual) -> bool:
        return isinstance(visual.geometry, Mesh) and self.store.is_flat(visual.geometry)

    def _geom(
        self, where: str, shape: Shape, body: mujoco.MjsBody | None, T_base_geom: SE3, *, looks: bool
    ) -> mujoco.MjsGeom:
        T = T_base_geom @ shape.T_geom_shape
        target = self.cells.body(shape, T, looks=looks) if body is None else body
        name = where
        while name in self._taken:  # the copies of a name are counted: a mesh has up to 5,000 pieces
            self._taken[where] += 1
            name = f"{where}#{self._taken[where]}"
        self._taken[name] = 1
        geom = target.add_geom(name=name, type=shape.type, size=shape.size, pos=T.translation, quat=T.rotation)
        if shape.mesh:
            geom.meshname = shape.mesh
        if shape.terrain:
            geom.hfieldname = shape.terrain
        return geom
