"""Compile a world: descriptions of a world and its models become a MuJoCo model.

The result depends on the descriptions and their order alone.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.inertia import inertia_matrix
from roboyard.description.model import Inertial, Joint, World
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3
from roboyard.physics.compiled_world import (
    SCOPE_SEPARATOR,
    CompiledWorld,
    GeomTables,
    JointAddress,
    LinkAddress,
    ModelAddresses,
    ModelEntry,
    scoped_name,
)
from roboyard.physics.compiler.actuators import add_joint_servos, add_velocity_base
from roboyard.physics.compiler.assets import MaterialStore, MeshStore, add_lights_and_sky, set_clip_planes
from roboyard.physics.compiler.bodies import LinkNode, ScalarJoint, add_couplings, add_joint, order_links
from roboyard.physics.compiler.contact_properties import (
    has_light_contact_bodies,
    make_anisotropy_table,
    use_exact_contact_inertia,
)
from roboyard.physics.compiler.geoms import GeomBuilder, GeomTarget, StaticBodyGrid
from roboyard.physics.compiler.ground import declares_ground, find_ground_geoms
from roboyard.physics.compiler.loop_joints import (
    CONNECT_TYPES,
    COUPLING_TYPES,
    LoopEnd,
    PathJoint,
    close_loop_with_split_body,
    connect_ends,
    couple_by_screw_or_gearbox,
    find_joint_path,
    find_rigid_group,
    find_root_link,
)
from roboyard.physics.mujoco_memory import configure_mujoco_logging
from roboyard.physics.settings import PhysicsSettings


@dataclass(slots=True)
class _ModelDraft:
    """A model while the compiler adds it to the specification."""

    entry: ModelEntry
    index: int
    bodies: dict[str, mujoco.MjsBody] = field(default_factory=dict)
    static_poses: dict[str, SE3] = field(default_factory=dict)
    scalar_joints: dict[str, list[ScalarJoint]] = field(default_factory=dict)
    fixed_links: list[str] = field(default_factory=list)
    sensor_names: list[str] = field(default_factory=list)
    nodes: list[LinkNode] = field(default_factory=list)

    def all_scalar_joints(self) -> list[ScalarJoint]:
        """Return the scalar joints in the order of the tree."""
        return [scalar for scalars in self.scalar_joints.values() for scalar in scalars]


def compile_world(
    world: World, entries: Sequence[ModelEntry], settings: PhysicsSettings, *, with_visuals: bool = False
) -> CompiledWorld:
    """Compile the gravity of ``world`` and the models of ``entries``.

    Args:
        world: The world: gravity and, with visuals, lights and sky.
        entries: Models with their initial poses.
        settings: Settings of the physics engine.
        with_visuals: Whether everything that is only rendered is added; joints and bodies have the same numbers with
            and without.

    Raises:
        DescriptionError: two models have one name, or MuJoCo cannot compile the world.
    """
    configure_mujoco_logging()
    spec = mujoco.MjSpec()
    settings.apply(spec, world.gravity)
    if with_visuals:
        add_lights_and_sky(spec, world)
    compile_warnings: list[str] = []
    geom_builder = GeomBuilder(
        MeshStore(spec),
        MaterialStore(spec, compile_warnings),
        StaticBodyGrid(spec),
        settings.contact_time,
        with_visuals,
        compile_warnings,
    )
    drafts: dict[str, _ModelDraft] = {}
    for index, entry in enumerate(entries):
        if entry.name in drafts:
            raise DescriptionError(f"two models named {entry.name!r}", location=f"world {world.name}")
        drafts[entry.name] = _add_model(spec, geom_builder, entry, index, compile_warnings)
    _add_world_joints(spec, world, drafts, compile_warnings)
    try:
        with warnings.catch_warnings(record=True) as mujoco_warnings:
            warnings.simplefilter("always")
            model = spec.compile()
    except ValueError as error:
        raise DescriptionError(
            f"MuJoCo cannot compile the world: {_one_line_message(error)}", location=f"world {world.name}"
        ) from error
    compile_warnings += [
        f"MuJoCo warning: {str(warning.message).partition(' Check model')[0]}" for warning in mujoco_warnings
    ]
    if has_light_contact_bodies(model):
        use_exact_contact_inertia(model)
    if with_visuals:
        set_clip_planes(model)
    addresses = {name: _find_addresses(model, draft) for name, draft in drafts.items()}
    tables = _make_geom_tables(model, geom_builder, list(addresses.values()))
    return CompiledWorld(spec, model, addresses, tables, tuple(compile_warnings))


def _one_line_message(error: ValueError) -> str:
    """Return MuJoCo's error message on one line: ``message (at 'model::link')``."""
    message, _, context = str(error).strip().partition("\n")
    element = re.search(r"Element name '([^']*)'", context)
    message = message.removeprefix("Error: ").replace("mjMINVAL", "1e-15")
    return f"{message} (at '{element[1]}')" if element else message


def _add_model(
    spec: mujoco.MjSpec, geom_builder: GeomBuilder, entry: ModelEntry, index: int, warnings: list[str]
) -> _ModelDraft:
    draft = _ModelDraft(entry, index)
    draft.nodes = order_links(entry.model, warnings)
    moving_links = _find_moving_links(draft.nodes)
    for node in draft.nodes:
        link = node.link
        if link.name in moving_links:
            body = _add_body(spec, draft, node, warnings)
            target = GeomTarget(index, entry.name, link, body, SE3.identity(), is_static=False)
        else:
            T_parent = entry.T_world_model if node.parent is None else draft.static_poses[node.parent]
            T = draft.static_poses[link.name] = T_parent @ node.T_parent_link
            if moving_links and link.collisions:
                # A separate body: contacts with the model's other links are excluded by bodies.
                fixed_body = spec.worldbody.add_body(
                    name=scoped_name(entry.name, link.name), pos=T.translation, quat=T.rotation
                )
                draft.fixed_links.append(link.name)
                target = GeomTarget(index, entry.name, link, fixed_body, SE3.identity(), is_static=True)
            else:
                target = GeomTarget(index, entry.name, link, None, T, is_static=True)
        geom_builder.add_link_geoms(target)
    fixed_joints = {joint.name for joint in entry.model.joints if not draft.scalar_joints.get(joint.name)}
    for joint in entry.model.joints:
        add_couplings(spec, joint, draft.scalar_joints.get(joint.name, []), entry.name, fixed_joints=fixed_joints)
    _close_loops(spec, draft, warnings)
    _add_sensor_sites(spec, draft)
    _add_contact_excludes(spec, draft)
    add_joint_servos(spec, entry.model, entry.name, draft.all_scalar_joints())
    free_link = next((node.link.name for node in draft.nodes if node.is_free), None)
    if entry.base is not None and free_link is not None:
        add_velocity_base(spec, draft.bodies[free_link], entry.name, entry.base)
    return draft


def _find_body(draft: _ModelDraft, link: str) -> tuple[str, SE3]:
    if link in draft.bodies:
        return scoped_name(draft.entry.name, link), SE3.identity()
    return "world", draft.static_poses.get(link, draft.entry.T_world_model)


def _find_loop_end(draft: _ModelDraft, link: str) -> LoopEnd:
    """Find body, pose and rigid group at one end of a joint that closes a loop."""
    if link not in draft.bodies:
        return None, draft.static_poses.get(link, draft.entry.T_world_model), {}
    group = find_rigid_group(link, draft.nodes)
    members = {name: (draft.bodies[name], T) for name, T in group.items() if name in draft.bodies}
    return draft.bodies[link], SE3.identity(), members


def _axis_direction(joint: Joint, index: int, T_model_child: SE3) -> NDArray[np.float64]:
    R = (T_model_child @ joint.T_child_joint).rotation_matrix()
    return np.asarray(R @ np.asarray(joint.axes[index].xyz, float))


def _make_path_joints(draft: _ModelDraft, path: Sequence[tuple[Joint, float]], T_world_model: SE3) -> list[PathJoint]:
    """Scalar joints along a way through a model that stands at ``T_world_model``."""
    poses = {link.name: link.T_model_link for link in draft.entry.model.links}
    return [
        PathJoint(scalar, sign, _axis_direction(joint, index, T_world_model @ poses[joint.child]))
        for joint, sign in path
        for index, scalar in enumerate(draft.scalar_joints.get(joint.name, ()))
        if index < len(joint.axes)
    ]


def _close_loops(spec: mujoco.MjSpec, draft: _ModelDraft, warnings: list[str]) -> None:
    model, name = draft.entry.model, draft.entry.name
    poses = {link.name: link.T_model_link for link in model.links}
    for joint in model.loop_joints:
        reason = "not coupled"
        if joint.type in COUPLING_TYPES:
            path_joints = _make_path_joints(
                draft, find_joint_path(model.joints, joint.parent, joint.child) or (), SE3.identity()
            )
            axes = [_axis_direction(joint, index, poses[joint.child]) for index in range(len(joint.axes))]
            reason = couple_by_screw_or_gearbox(spec, joint, path_joints, axes)
        elif joint.type in CONNECT_TYPES:
            reason = connect_ends(spec, joint, scoped_name(name, joint.name), partial(_find_body, draft))
        if reason and joint.type != "gearbox":
            ends = {link: _find_loop_end(draft, link) for link in (joint.parent, joint.child)}
            draft.scalar_joints[joint.name] = close_loop_with_split_body(spec, joint, name, ends, warnings)
            add_couplings(spec, joint, draft.scalar_joints[joint.name], name)
        elif reason:
            warnings.append(f"{scoped_name(name, joint.name)}: {reason}")


def _add_world_joints(
    spec: mujoco.MjSpec, world: World, drafts: Mapping[str, _ModelDraft], warnings: list[str]
) -> None:
    """Add joints between models, and between a model and the world, as joints that close loops."""

    def find_link(end: str) -> tuple[_ModelDraft | None, str]:
        model, _, link = end.partition(SCOPE_SEPARATOR)
        return (drafts[model], link) if link else (None, "world")

    def find_body(end: str) -> tuple[str, SE3]:
        draft, link = find_link(end)
        return _find_body(draft, link) if draft else ("world", SE3.identity())

    def find_loop_end(end: str) -> LoopEnd:
        draft, link = find_link(end)
        return _find_loop_end(draft, link) if draft else (None, SE3.identity(), {})

    def make_path_joints(end: str, is_from_root: bool) -> list[PathJoint]:
        """Make the path from a link to the root of its model, or from the root to the link."""
        draft, link = find_link(end)
        if draft is None:
            return []
        joints = draft.entry.model.joints
        root = find_root_link(joints, link)
        path = find_joint_path(joints, root, link) if is_from_root else find_joint_path(joints, link, root)
        return _make_path_joints(draft, path or (), draft.entry.T_world_model)

    for joint in world.joints:
        models = {end.partition(SCOPE_SEPARATOR)[0] for end in (joint.parent, joint.child) if end != "world"}
        if not models <= drafts.keys():
            continue
        reason = "not coupled"
        if joint.type in COUPLING_TYPES:
            T_world_child = SE3.identity()
            draft, link = find_link(joint.child)
            if draft is not None:
                T_world_child = draft.entry.T_world_model @ draft.entry.model.link(link).T_model_link
            axes = [_axis_direction(joint, index, T_world_child) for index in range(len(joint.axes))]
            reason = couple_by_screw_or_gearbox(
                spec, joint, make_path_joints(joint.parent, False) + make_path_joints(joint.child, True), axes
            )
        elif joint.type in CONNECT_TYPES:
            reason = connect_ends(spec, joint, scoped_name("world", joint.name), find_body)
        if reason and joint.type != "gearbox":
            ends = {end: find_loop_end(end) for end in (joint.parent, joint.child)}
            add_couplings(spec, joint, close_loop_with_split_body(spec, joint, "world", ends, warnings), "world")
        elif reason:
            warnings.append(f"world::{joint.name}: {reason}")


def _find_moving_links(nodes: Sequence[LinkNode]) -> set[str]:
    """Find the links that are not fixed to the world."""
    moving: set[str] = set()
    for node in nodes:
        if node.is_free or node.joint is not None or node.parent in moving:
            moving.add(node.link.name)
    return moving


def _add_body(spec: mujoco.MjSpec, draft: _ModelDraft, node: LinkNode, warnings: list[str]) -> mujoco.MjsBody:
    name = scoped_name(draft.entry.name, node.link.name)
    parent = draft.bodies.get(node.parent or "")
    T = node.T_parent_link
    if parent is None:
        T_world_parent = draft.static_poses.get(node.parent or "", draft.entry.T_world_model)
        T = T_world_parent @ T
        parent = spec.worldbody
    body = parent.add_body(name=name, pos=T.translation, quat=T.rotation)
    is_kinematic = draft.entry.compliant_parts is not None
    if is_kinematic:
        body.mocap = True
    elif node.parent not in draft.bodies:
        body.sleep = mujoco.mjtSleepPolicy.mjSLEEP_NEVER
    if node.is_free and not is_kinematic:
        body.add_freejoint(name=scoped_name(draft.entry.name, "free", node.link.name))
    elif node.joint is not None:
        draft.scalar_joints[node.joint.name] = add_joint(body, node.joint, draft.entry.name, warnings)
    if node.inertial is not None and node.inertial.mass > 0.0:
        _set_inertia(body, node.inertial)
    if not node.link.gravity:
        body.gravcomp = 1.0
    draft.bodies[node.link.name] = body
    return body


def _set_inertia(body: mujoco.MjsBody, inertial: Inertial) -> None:
    R_link_com = inertial.T_link_com.rotation_matrix()
    tensor = R_link_com @ inertia_matrix(inertial.inertia) @ R_link_com.T
    values, vectors, quat = np.zeros(3), np.zeros(9), np.zeros(4)
    mujoco.mju_eig3(values, vectors, quat, tensor.ravel())  # largest first
    # Rounding must not violate A + B = C of a flat body, which MuJoCo checks exactly.
    values[0] = min(values[0], (values[1] + values[2]) * (1.0 - 1e-12))
    body.mass, body.ipos, body.iquat, body.inertia = inertial.mass, inertial.T_link_com.translation, quat, values
    body.explicitinertial = True


def _add_sensor_sites(spec: mujoco.MjSpec, draft: _ModelDraft) -> None:
    for sensor in draft.entry.model.sensors:
        T = sensor.T_link_sensor
        body = draft.bodies.get(sensor.link)
        if body is None:
            body, T = spec.worldbody, draft.static_poses[sensor.link] @ T
        body.add_site(name=scoped_name(draft.entry.name, sensor.name), pos=T.translation, quat=T.rotation, group=5)
        draft.sensor_names.append(sensor.name)


def _add_contact_excludes(spec: mujoco.MjSpec, draft: _ModelDraft) -> None:
    """Exclude contacts between links of one model unless both enable them; links joined by a joint never collide."""
    if draft.entry.compliant_parts is not None:  # kinematic bodies do not collide with each other
        return
    links_with_bodies = {*draft.bodies, *draft.fixed_links}
    links = [node.link for node in draft.nodes if node.link.name in links_with_bodies and node.link.collisions]
    excluded_pairs = _adjacent_links((*draft.entry.model.joints, *draft.entry.model.loop_joints))
    excluded_pairs |= set(map(frozenset, draft.entry.model.disabled_collisions))
    for first_link, second_link in combinations(links, 2):
        if (
            first_link.self_collide
            and second_link.self_collide
            and frozenset((first_link.name, second_link.name)) not in excluded_pairs
        ):
            continue
        if first_link.name in draft.fixed_links and second_link.name in draft.fixed_links:
            continue
        first_name, second_name = (
            scoped_name(draft.entry.name, first_link.name),
            scoped_name(draft.entry.name, second_link.name),
        )
        spec.add_exclude(name=f"{first_name}|{second_name}", bodyname1=first_name, bodyname2=second_name)


def _adjacent_links(joints: Sequence[Joint]) -> set[frozenset[str]]:
    return {frozenset((joint.parent, joint.child)) for joint in joints}


def _find_addresses(model: mujoco.MjModel, draft: _ModelDraft) -> ModelAddresses:
    name = draft.entry.name
    links = {link: LinkAddress(0, T) for link, T in draft.static_poses.items()}
    bodies = []
    for link in draft.bodies:
        body = model.body(scoped_name(name, link)).id
        bodies.append(body)
        links[link] = LinkAddress(body, SE3.identity())
    actuators = {model.actuator(i).name: i for i in range(model.nactuator)}
    joints = []
    for scalar in draft.all_scalar_joints():
        joint = model.joint(scalar.mujoco_name).id
        actuator = actuators.get(scalar.mujoco_name, -1)
        ctrl = int(model.actuator_ctrladr[actuator]) if actuator >= 0 else -1
        qpos, dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        joints.append(JointAddress(scalar.name, scalar.axis, scalar.is_prismatic, joint, qpos, dof, actuator, ctrl))
    sites = {sensor: model.site(scoped_name(name, sensor)).id for sensor in draft.sensor_names}
    description = draft.entry.model
    root = description.canonical_link or next(iter(links), "")
    if root not in links:
        root = next(iter(links), "")
    return ModelAddresses(draft.index, draft.entry, links, tuple(joints), sites, tuple(bodies), root)


def _make_geom_tables(
    model: mujoco.MjModel, geom_builder: GeomBuilder, addresses: Sequence[ModelAddresses]
) -> GeomTables:
    model_index = np.full(model.ngeom, -1, np.int32)
    is_off_ground, is_static = np.zeros(model.ngeom, bool), np.zeros(model.ngeom, bool)
    is_declared_ground = np.zeros(model.ngeom, bool)
    link_names, shape_names = [""] * model.ngeom, [""] * model.ngeom
    entries = [item.entry for item in addresses]
    declarations = [declares_ground(entry.model) for entry in entries]
    for owner in geom_builder.owners:
        geom = model.geom(owner.geom_name).id
        entry = entries[owner.model_index]
        model_index[geom] = owner.model_index
        is_off_ground[geom] = owner.link_name in entry.off_ground_links
        is_static[geom], is_declared_ground[geom] = entry.model.static, declarations[owner.model_index]
        link_names[geom], shape_names[geom] = owner.link_name, owner.shape_name
    anisotropic_geoms = (
        (model.geom(owner.geom_name).id, owner.anisotropic_friction, addresses[owner.model_index])
        for owner in geom_builder.owners
        if owner.anisotropic_friction is not None
    )
    return GeomTables(
        model_index,
        find_ground_geoms(model, is_static, is_declared_ground),
        is_off_ground,
        tuple(link_names),
        tuple(shape_names),
        make_anisotropy_table(model, anisotropic_geoms, geom_builder.warnings),
    )
