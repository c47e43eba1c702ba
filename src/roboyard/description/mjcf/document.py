"""Reads a compiled MJCF document as one `Model` or as a `World`: bodies, shapes, which links can collide, lights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from roboyard.description import validation
from roboyard.description.inertia import check_inertia_plausibility, check_inertial
from roboyard.description.mjcf.compile import CompiledMjcf, compile_document
from roboyard.description.mjcf.joints import (
    FREE,
    apply_actuation,
    find_free_joint,
    make_joint_chain,
    make_joint_interfaces,
    read_actuators,
    read_loop_joints,
    read_mimics,
)
from roboyard.description.mjcf.sensors import LinkPose, compiled_sensors, read_cameras, read_sensors
from roboyard.description.model import (
    Box,
    Capsule,
    Collision,
    Cylinder,
    Ellipsoid,
    Frame,
    Geometry,
    Heightmap,
    Inertial,
    InlineArray,
    Joint,
    Light,
    Link,
    Material,
    Mesh,
    Mimic,
    Model,
    PhysicsRequest,
    PlacedModel,
    Plane,
    Rgba,
    Sphere,
    Surface,
    Visual,
    World,
)
from roboyard.description.names import make_unique_name, rename_parts, resolve_sensor_names
from roboyard.description.reader_context import ReaderContext
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import error_at, parse_number
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3

_LIGHT_TYPES: tuple[Literal["directional", "point", "spot"], ...] = ("spot", "directional", "point")  # mjtLightType


def read_lights(context: ReaderContext, compiled: CompiledMjcf) -> tuple[Light, ...]:
    """Read the lights of the world itself."""
    m = compiled.model
    lights: list[Light] = []
    used_names: dict[str, int] = {}
    for number in range(m.nlight):
        name = make_unique_name(m.light(number).name or "light", used_names)
        kind = int(m.light_type[number])
        if int(m.light_bodyid[number]) != 0 or kind >= len(_LIGHT_TYPES) or not m.light_active[number]:
            context.warn(
                compiled.root, f"the light '{name}' is ignored: it moves, is switched off, or has an unknown type"
            )
            continue
        dx, dy, dz = (float(value) for value in m.light_dir[number])
        r, g, b = (float(value) for value in m.light_diffuse[number])
        sr, sg, sb = (float(value) for value in m.light_specular[number])
        lights.append(
            Light(
                name,
                _LIGHT_TYPES[kind],
                SE3(translation=m.light_pos[number]),
                (dx, dy, dz),
                (r, g, b, 1.0),
                (sr, sg, sb, 1.0),
                bool(m.light_castshadow[number]),
            )
        )
    return tuple(lights)


WORLD_GEOMS_MODEL = "scenery"
"""Name of the model with the world's own geoms."""


def read_model_document(context: ReaderContext, root: XmlNode, name: str | None = None) -> Model:
    """Read all bodies of the document as one model, without geoms and lights of the world itself.

    Args:
        context: Receives warnings, finds files.
        root: The ``<mujoco>``.
        name: Name that replaces the model's name.

    Raises:
        DescriptionError: There is no body, or MuJoCo rejects the document; with the location.
    """
    compiled = compile_document(context, root)
    if compiled.model.nbody < 2:
        raise error_at("the document has no body", root, "<worldbody><body>…, or load it as a world")
    if compiled.geoms_of(0) or compiled.model.nlight:
        context.warn(root, "geoms and lights of the world itself are ignored: load it as a world to include them")
    reader = _ModelReader(context, compiled)
    reader.warn_left_out()
    return reader.read_model(name or root.get("model") or "robot", _world_children(compiled))


def read_world_document(context: ReaderContext, root: XmlNode) -> World:
    """Read the document as a world: each child body of the world is a model; the world's own geoms are one more.

    Bodies whose names begin with the same ``name::`` form one model of that name.

    Raises:
        DescriptionError: MuJoCo rejects the document; with the location.
    """
    compiled = compile_document(context, root)
    reader = _ModelReader(context, compiled)
    reader.warn_left_out()
    placed: list[PlacedModel] = []
    used_names: dict[str, int] = {}
    if compiled.geoms_of(0):
        placed.append(
            PlacedModel(make_unique_name(WORLD_GEOMS_MODEL, used_names), reader.read_world_geoms(), SE3.identity())
        )
    groups: dict[str, list[int]] = {}
    for body in _world_children(compiled):
        prefix, scope, _ = compiled.bodies[body].partition("::")
        groups.setdefault(prefix if scope else compiled.bodies[body], []).append(body)
    for name, root_bodies in groups.items():
        T_world_model = reader.initial_pose(root_bodies[0]) if len(root_bodies) == 1 else SE3.identity()
        model = reader.read_model(name, root_bodies, T_world_model)
        placed.append(PlacedModel(make_unique_name(name, used_names), _remove_scope(model, f"{name}::"), T_world_model))
    x, y, z = (
        (0.0, 0.0, 0.0) if _has_no_gravity(compiled.root) else (float(value) for value in compiled.model.opt.gravity)
    )
    step = next(
        (node.get("timestep") for node in compiled.root.children_with_tag("option") if node.get("timestep")), ""
    )
    return World(
        name=root.get("model") or "world",
        models=tuple(placed),
        lights=read_lights(context, compiled),
        gravity=(x, y, z),
        physics=PhysicsRequest(parse_number(step, root, "timestep") if step else None),
    )


def _has_no_gravity(root: XmlNode) -> bool:
    flags = [
        flag.get("gravity") for option in root.children_with_tag("option") for flag in option.children_with_tag("flag")
    ]
    return any(one == "disable" for one in flags)


def _world_children(compiled: CompiledMjcf) -> list[int]:
    return [body for body in range(1, compiled.model.nbody) if int(compiled.model.body_parentid[body]) == 0]


@dataclass(slots=True)
class _ModelReader:
    """Makes models of a compiled document's bodies."""

    context: ReaderContext
    compiled: CompiledMjcf

    def initial_pose(self, body: int) -> SE3:
        """Return the initial pose of a body of the world: as drawn, or from the keyframe ``home``."""
        m, free = self.compiled.model, find_free_joint(self.compiled, body)
        if free >= 0 and m.nkey:
            address = int(m.jnt_qposadr[free])
            return SE3(m.key_qpos[0][address + 3 : address + 7], m.key_qpos[0][address : address + 3])
        return self.compiled.pose(body)

    def read_model(self, name: str, root_bodies: list[int], T_world_model: SE3 | None = None) -> Model:
        """Read `root_bodies` and all bodies below as one model. Raises DescriptionError."""
        m, compiled = self.compiled.model, self.compiled
        T_model_world = (T_world_model or SE3.identity()).inverse()
        roots = {int(m.body_rootid[body]) for body in root_bodies}
        bodies = [body for body in range(1, m.nbody) if int(m.body_rootid[body]) in roots]
        collidable, disabled_pairs = find_collision_pairs(compiled, bodies)
        is_static = not any(compiled.joints_of(body) for body in bodies)
        actuations = read_actuators(self.context, compiled) if m.nactuator else {}
        mimic_by_joint = read_mimics(self.context, compiled)
        links: list[Link] = []
        joints: list[Joint] = []
        poses: dict[str, SE3] = {}
        for body in bodies:
            parent, T_parent = compiled.bodies[int(m.body_parentid[body])], compiled.pose(body)
            if body in root_bodies:
                T_parent = T_model_world @ self.initial_pose(body)
            T_model_link = poses.get(parent, SE3.identity()) @ T_parent
            link_name = compiled.bodies[body]
            poses[link_name] = T_model_link
            if body not in root_bodies or not (is_static or find_free_joint(compiled, body) >= 0):
                chain_links, chain_joints = make_joint_chain(self.context, compiled, body, parent, T_parent)
                links += [replace(link, T_model_link=T_model_link) for link in chain_links]
                joints += [apply_actuation(one, actuations) for one in chain_joints]
            links.append(self._make_link(body, T_model_link, body in collidable))
        names = [link.name for link in links]
        self._require_unique_names(links, joints)
        joint_names = {joint.name for joint in joints}
        joints = [self._couple_joint(joint, mimic_by_joint.get(joint.name), joint_names) for joint in joints]
        joint_interfaces = make_joint_interfaces(compiled, actuations)
        sites = self._sites()
        sensors = [*read_sensors(self.context, compiled, names), *read_cameras(self.context, compiled, names)]
        sensor_sites = {part.site for part in compiled_sensors(compiled)}
        loop_joints = [
            replace(one, T_parent_child=T_model_world @ one.T_parent_child) if one.parent == "world" else one
            for one in read_loop_joints(self.context, compiled)
            if one.child in names and one.parent in {*names, "world"}
        ]
        neighbors = {frozenset((joint.parent, joint.child)) for joint in joints}
        pairs = [(compiled.bodies[one], compiled.bodies[other]) for one, other in disabled_pairs]
        joints = [
            joint for joint, _ in validation.check_mimics(self.context, [(joint, compiled.root) for joint in joints])
        ]
        return Model(
            name=name,
            links=tuple(links),
            joints=tuple(joints),
            sensors=resolve_sensor_names(self.context, compiled.root, sensors, joints),
            interfaces=tuple(interface for joint, interface in joint_interfaces.items() if joint in joint_names),
            static=is_static,
            canonical_link=names[0],
            frames=tuple(
                Frame(site, link, T) for site, (link, T) in sites.items() if link in names and site not in sensor_sites
            ),
            loop_joints=tuple(loop_joints),
            disabled_collisions=tuple(pair for pair in pairs if frozenset(pair) not in neighbors),
        )

    def warn_left_out(self) -> None:
        """Warn about features that the compiler supports but no record can represent."""
        m, compiled = self.compiled.model, self.compiled
        for index, node in enumerate(compiled.tendon_nodes):
            if (
                m.tendon_limited[index]
                or m.tendon_stiffness[index]
                or m.tendon_damping[index]
                or (m.tendon_frictionloss[index] or m.tendon_armature[index])
            ):
                name = m.tendon(index).name or f"tendon {index}"
                self.context.warn(
                    node, f"'{name}': limits, stiffness, damping and friction of tendons have no effect here"
                )
        for joint, node in enumerate(compiled.joint_nodes):
            dof, kind = int(m.jnt_dofadr[joint]), int(m.jnt_type[joint])
            if kind == FREE and (m.dof_damping[dof] or m.dof_frictionloss[dof] or m.dof_armature[dof]):
                self.context.warn(
                    node,
                    f"damping, friction and armature of the free joint '{compiled.joints[joint]}' have no effect here",
                )

    def read_world_geoms(self) -> Model:
        """Return the world's own geoms as a model: a link for each, so that a floor has a name."""
        links = []
        used_names: dict[str, int] = {}
        for geom in self.compiled.geoms_of(0):
            name = make_unique_name(self.compiled.model.geom(geom).name or "geom", used_names)
            collisions, visuals = read_shapes(self.context, self.compiled, [geom], name)
            links.append(Link(name, SE3.identity(), None, collisions, visuals))
        return Model(WORLD_GEOMS_MODEL, tuple(links), static=True, canonical_link=links[0].name)

    def _make_link(self, body: int, T_model_link: SE3, self_collide: bool) -> Link:
        m, name = self.compiled.model, self.compiled.bodies[body]
        node = self.compiled.body_nodes[body]
        collisions, visuals = read_shapes(self.context, self.compiled, self.compiled.geoms_of(body), name)
        gravity_compensation = float(m.body_gravcomp[body])
        if gravity_compensation not in (0.0, 1.0):
            self.context.warn(
                node, f"body '{name}' compensates {gravity_compensation:g} of its weight: only 0 and 1 are supported"
            )
        if m.body_mocapid[body] >= 0:
            self.context.warn(node, f"mocap body '{name}' is not moved here: it does not move")
        inertial = self._make_inertial(body, node, name)
        link = Link(name, T_model_link, inertial, collisions, visuals, gravity_compensation != 1.0, self_collide)
        inertial_node = node.child("inertial")
        return (
            check_inertia_plausibility(self.context, inertial_node, link)
            if inertial_node is not None and int(m.body_weldid[body])
            else link
        )

    def _make_inertial(self, body: int, node: XmlNode, name: str) -> Inertial | None:
        m = self.compiled.model
        mass = float(m.body_mass[body])
        if mass <= 0.0:
            return None
        T_link_com = SE3(m.body_iquat[body], m.body_ipos[body])
        ixx, iyy, izz = (float(value) for value in m.body_inertia[body])
        if not max(ixx, iyy, izz) > 0.0 and int(m.body_weldid[body]) != body:
            self.context.warn(
                node, f"body '{name}' is a point mass of {mass:g} kg, fixed to another body: a ball of 1 mm is used"
            )
            ixx = iyy = izz = 0.4 * mass * 1e-6
        try:
            return check_inertial(self.context, node, name, mass, T_link_com, (ixx, iyy, izz, 0.0, 0.0, 0.0))
        except DescriptionError as error:
            if int(m.body_weldid[body]):
                raise
            self.context.warn(node, f"{error.message}; ignored, because it never moves")
            return None

    def _couple_joint(self, joint: Joint, mimic: Mimic | None, joints: set[str]) -> Joint:
        if mimic is None or mimic.joint in joints:
            return replace(joint, mimic=mimic)
        self.context.warn(self.compiled.root, f"joint '{joint.name}' mimics a joint of another model: ignored")
        return joint

    def _sites(self) -> dict[str, LinkPose]:
        m = self.compiled.model
        return {
            m.site(number).name: (
                self.compiled.bodies[int(m.site_bodyid[number])],
                SE3(m.site_quat[number], m.site_pos[number]),
            )
            for number in range(m.nsite)
            if m.site(number).name
        }

    def _require_unique_names(self, links: list[Link], joints: list[Joint]) -> None:
        """Check that generated names of chains and fixed bodies differ from the names of the file."""
        validation.require_unique_names("link", ((link.name, self.compiled.root) for link in links))
        validation.require_unique_names("joint", ((joint.name, self.compiled.root) for joint in joints))


def _remove_scope(model: Model, prefix: str) -> Model:
    """Return the model with `prefix` removed from all names that begin with it."""

    def remove_prefix(name: str) -> str:
        return name.removeprefix(prefix)

    model = replace(model, sensors=tuple(replace(one, topic=one.name) for one in model.sensors))
    return rename_parts(model, links=remove_prefix, joints=remove_prefix, others=remove_prefix)


_PLANE, _TERRAIN, _SPHERE, _CAPSULE, _ELLIPSOID, _CYLINDER, _BOX, _MESH = range(8)  # mjtGeom
_VISIBLE_GROUPS = 3
"""Number of visible groups: viewers draw groups 0, 1 and 2 by default."""
_DEFAULT_RGBA: Rgba = (0.5, 0.5, 0.5, 1.0)
_INFINITE_PLANE_SIZE = 100.0  # [m]


def read_shapes(
    context: ReaderContext, compiled: CompiledMjcf, numbers: Sequence[int], owner: str
) -> tuple[tuple[Collision, ...], tuple[Visual, ...]]:
    """Read collision and visual shapes of the geoms `numbers` on the link `owner`.

    A geom whose ``contype`` and ``conaffinity`` are both zero has no contacts; one of group 3 or more is not drawn.
    """
    m = compiled.model
    collisions: list[Collision] = []
    visuals: list[Visual] = []
    used_names: dict[str, int] = {}
    for number in numbers:
        name = make_unique_name(m.geom(number).name or f"{owner}_geom", used_names)
        shape_and_pose = _read_geometry(context, compiled, number, name)
        if shape_and_pose is None:
            continue
        geometry, T_link_geom = shape_and_pose
        if m.geom_contype[number] or m.geom_conaffinity[number]:
            collisions.append(Collision(name, geometry, T_link_geom, _read_surface(compiled, number)))
        if int(m.geom_group[number]) < _VISIBLE_GROUPS:
            material = _read_material(compiled, number)
            if material.rgba[3] > 0.0:
                visuals.append(Visual(name, geometry, T_link_geom, material))
    return tuple(collisions), tuple(visuals)


def _read_geometry(
    context: ReaderContext, compiled: CompiledMjcf, number: int, name: str
) -> tuple[Geometry, SE3] | None:
    m = compiled.model
    T = SE3(m.geom_quat[number], m.geom_pos[number])
    x, y, z = (float(value) for value in m.geom_size[number])
    match int(m.geom_type[number]):
        case k if k == _PLANE:
            return Plane(size=(2.0 * x or _INFINITE_PLANE_SIZE, 2.0 * y or _INFINITE_PLANE_SIZE)), T
        case k if k == _TERRAIN:
            return _read_terrain(compiled, number, T)
        case k if k == _SPHERE:
            return Sphere(x), T
        case k if k == _CAPSULE:
            return Capsule(x, 2.0 * y), T
        case k if k == _CYLINDER:
            return Cylinder(x, 2.0 * y), T
        case k if k == _ELLIPSOID:
            return Ellipsoid((x, y, z)), T
        case k if k == _BOX:
            return Box((2.0 * x, 2.0 * y, 2.0 * z)), T
        case k if k == _MESH:
            return _read_mesh(compiled, number, T)
    context.warn(compiled.geom_nodes[number], f"geom '{name}' has an unsupported shape: ignored")
    return None


def _read_terrain(compiled: CompiledMjcf, number: int, T: SE3) -> tuple[Geometry, SE3] | None:
    m = compiled.model
    field = int(m.geom_dataid[number])
    terrain_source = compiled.assets.terrains[m.hfield(field).name]
    x, y, z, _ = (float(value) for value in m.hfield_size[field])
    if not terrain_source.uri:
        start, rows, columns = int(m.hfield_adr[field]), int(m.hfield_nrow[field]), int(m.hfield_ncol[field])
        heights = np.asarray(m.hfield_data[start : start + rows * columns], np.float32)
        return Heightmap("", None, (2.0 * x, 2.0 * y, z), inline=InlineArray(heights.tobytes(), b"", columns)), T
    if terrain_source.file is None:
        return None  # a warning was given when the file was searched
    return Heightmap(terrain_source.uri, terrain_source.file, (2.0 * x, 2.0 * y, z)), T


def _read_mesh(compiled: CompiledMjcf, number: int, T: SE3) -> tuple[Geometry, SE3]:
    """Return the triangles of the file: MuJoCo has moved them to their center of mass and principal axes."""
    m = compiled.model
    index = int(m.geom_dataid[number])
    mesh = m.mesh(index).name
    mesh_source = compiled.assets.meshes.get(mesh)
    spec = compiled.spec.mesh(mesh)
    sx, sy, sz = (float(value) for value in spec.scale)
    T_link_asset = T @ SE3(m.mesh_quat[index], m.mesh_pos[index]).inverse()
    is_rotated = not SE3(spec.refquat).almost_equal(SE3.identity(), 1e-12)
    uses_compiled_mesh = (
        mesh_source is None
        or not mesh_source.uri
        or (mesh_source.file is not None and mesh_source.file.suffix.lower() == ".msh")
    )
    if mesh_source is None or uses_compiled_mesh or (is_rotated and not sx == sy == sz):
        uri = mesh_source.uri if mesh_source is not None else ""
        return Mesh(uri, None, convex=True, inline=_read_inline_mesh(compiled, index, T)), SE3.identity()
    if mesh_source.file is None:
        return Mesh(mesh_source.uri, None), T_link_asset
    px, py, pz = (float(value) for value in spec.refpos)
    T_asset_file = SE3(spec.refquat).inverse() @ SE3(translation=(-sx * px, -sy * py, -sz * pz))
    return Mesh(mesh_source.uri, mesh_source.file, (sx, sy, sz), convex=True), T_link_asset @ T_asset_file


def _read_inline_mesh(compiled: CompiledMjcf, mesh: int, T_link_geom: SE3) -> InlineArray:
    """Return vertices and faces from the compiler in the link's frame; the compiler chooses the geom's own frame."""
    m = compiled.model
    first, count = int(m.mesh_vertadr[mesh]), int(m.mesh_vertnum[mesh])
    start, faces = int(m.mesh_faceadr[mesh]), int(m.mesh_facenum[mesh])
    rotated = np.asarray(m.mesh_vert[first : first + count], float) @ T_link_geom.rotation_matrix().T
    vertices = np.ascontiguousarray(rotated + T_link_geom.translation, np.float32)
    return InlineArray(vertices.tobytes(), np.ascontiguousarray(m.mesh_face[start : start + faces], np.int32).tobytes())


def _read_surface(compiled: CompiledMjcf, number: int) -> Surface:
    m = compiled.model
    sliding, torsional, rolling = (float(value) for value in m.geom_friction[number])
    dimensions = int(m.geom_condim[number])
    return Surface(
        friction=sliding if dimensions > 1 else 0.0,
        torsional=torsional if dimensions >= 4 else None,
        rolling=rolling if dimensions >= 6 else None,
    )


def _read_material(compiled: CompiledMjcf, number: int) -> Material:
    m = compiled.model
    index = int(m.geom_matid[number])
    r, g, b, a = (float(value) for value in m.geom_rgba[number])
    if index < 0:
        return Material(rgba=_clip_rgba((r, g, b, a)))
    name = m.material(index).name
    if (r, g, b, a) == _DEFAULT_RGBA:
        r, g, b, a = (float(value) for value in m.mat_rgba[index])
    texture = compiled.assets.textures.get(name)
    image_file = texture.image_file if texture else None
    if texture:
        r, g, b = r * texture.mean_color[0], g * texture.mean_color[1], b * texture.mean_color[2]
    emission = min(max(float(m.mat_emission[index]), 0.0), 1.0)
    r, g, b, a = _clip_rgba((r, g, b, a))
    return Material(name, (r, g, b, a), image_file, (emission * r, emission * g, emission * b))


def _clip_rgba(rgba: Rgba) -> Rgba:
    r, g, b, a = (round(min(max(value, 0.0), 1.0), 7) for value in rgba)  # the engine uses single precision
    return r, g, b, a


MAX_COLLIDABLE_BODIES = 1500
"""Maximum number of bodies of one model whose pairs are checked; with more, self-collision is disabled."""
ContactBits = frozenset[tuple[int, int]]


def find_collision_pairs(compiled: CompiledMjcf, bodies: list[int]) -> tuple[set[int], list[tuple[int, int]]]:
    """Return bodies that can collide with another one of `bodies`, and the pairs among those that cannot."""
    bits = {body: _contact_bits(compiled, body) for body in bodies}
    collidable = [body for body in bodies if bits[body]]
    if not 2 <= len(collidable) <= MAX_COLLIDABLE_BODIES:
        return set(), []
    distinct_bits = list(dict.fromkeys(bits[body] for body in collidable))
    can_collide = np.array([[_can_collide(one, other) for other in distinct_bits] for one in distinct_bits])
    bits_index = np.array([distinct_bits.index(bits[body]) for body in collidable])
    allowed = can_collide[bits_index[:, None], bits_index[None, :]] & ~_neighbors(compiled, np.array(collidable))
    row_of = {body: index for index, body in enumerate(collidable)}
    for one, other in _excluded_pairs(compiled):
        if one in row_of and other in row_of:
            allowed[row_of[one], row_of[other]] = allowed[row_of[other], row_of[one]] = False
    is_member = allowed.any(axis=1)
    disabled = np.triu(~allowed, 1) & is_member[:, None] & is_member[None, :]
    members = {body for body, touches in zip(collidable, is_member, strict=True) if touches}
    return members, [(collidable[one], collidable[other]) for one, other in np.argwhere(disabled)]


def _contact_bits(compiled: CompiledMjcf, body: int) -> ContactBits:
    m = compiled.model
    return frozenset(
        (int(m.geom_contype[geom]), int(m.geom_conaffinity[geom]))
        for geom in compiled.geoms_of(body)
        if m.geom_contype[geom] or m.geom_conaffinity[geom]
    )


def _can_collide(one: ContactBits, other: ContactBits) -> bool:
    return any(a & d or c & b for a, b in one for c, d in other)


def _neighbors(compiled: CompiledMjcf, bodies: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return the pairs (n, n) of bodies that are fixed together, or whose fixed groups are parent and child: they do
    not collide.
    """
    m = compiled.model
    group = np.asarray(m.body_weldid)[bodies]
    above = np.asarray(m.body_weldid)[np.asarray(m.body_parentid)[group]]
    below = (above[:, None] == group[None, :]) & (group[None, :] != 0)
    return np.asarray((group[:, None] == group[None, :]) | below | below.T)


def _excluded_pairs(compiled: CompiledMjcf) -> list[tuple[int, int]]:
    signatures = (int(value) for value in compiled.model.exclude_signature)
    return [(signature >> 16, signature & 0xFFFF) for signature in signatures]
