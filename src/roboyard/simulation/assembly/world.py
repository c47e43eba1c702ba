"""A world and its models, compiled: a pure function of the descriptions and their order."""

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

from roboyard.description.model import Inertial, Joint, World
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3
from roboyard.simulation.assembly.cells import Cells
from roboyard.simulation.assembly.closures import (
    COUPLED,
    HELD,
    Step,
    couple_steps,
    hold_ends,
    path_between,
    root_of,
)
from roboyard.simulation.assembly.exactness import has_light_feet, reckon_exactly
from roboyard.simulation.assembly.geoms import GeomMaker
from roboyard.simulation.assembly.grain import grain_table
from roboyard.simulation.assembly.halves import End, close_by_halves, rigid_group
from roboyard.simulation.assembly.joints import Scalar, add_couplings, add_joint
from roboyard.simulation.assembly.meshes import MeshStore
from roboyard.simulation.assembly.records import (
    Assembled,
    Entry,
    GeomTables,
    JointPlace,
    LinkPlace,
    Placement,
)
from roboyard.simulation.assembly.scenery import MaterialStore, add_scenery, set_view
from roboyard.simulation.assembly.tree import Branch, plan
from roboyard.simulation.base import add_base
from roboyard.simulation.layout import quiet_engine
from roboyard.simulation.naming import SEPARATOR, scoped
from roboyard.simulation.servos import add_servos
from roboyard.simulation.settings import PhysicsSettings


@dataclass(slots=True)
class _Draft:
    """A model on its way into the specification."""

    entry: Entry
    index: int
    bodies: dict[str, mujoco.MjsBody] = field(default_factory=dict)
    still: dict[str, SE3] = field(default_factory=dict)
    scalars: dict[str, list[Scalar]] = field(default_factory=dict)
    fixed: list[str] = field(default_factory=list)
    sites: list[str] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)

    def all_scalars(self) -> list[Scalar]:
        """Scalar joints in the order of the tree."""
        return [scalar for scalars in self.scalars.values() for scalar in scalars]


def assemble(world: World, entries: Sequence[Entry], settings: PhysicsSettings, *, looks: bool = False) -> Assembled:
    """Compile ``world``'s gravity with the models of ``entries``.

    Args:
        world: Gravity and, for looks, lamps and sky.
        entries: Models and where they start.
        settings: Of the engine.
        looks: Also make everything that is only drawn; joints and bodies are numbered alike with and without.

    Raises:
        DescriptionError: two models share a name, or the engine refuses the result.
    """
    quiet_engine()
    spec = mujoco.MjSpec()
    settings.apply(spec, world.gravity)
    if looks:
        add_scenery(spec, world)
    notes: list[str] = []
    maker = GeomMaker(MeshStore(spec), MaterialStore(spec, notes), Cells(spec), settings.contact_time, looks, notes)
    drafts: dict[str, _Draft] = {}
    for index, entry in enumerate(entries):
        if entry.name in drafts:
            raise DescriptionError(f"two models named {entry.name!r}", location=f"world {world.name}")
        drafts[entry.name] = _draft(spec, maker, entry, index, notes)
    _join_models(spec, world, drafts, notes)
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model = spec.compile()
    except ValueError as error:
        raise DescriptionError(
            f"the physics engine refuses the world: {_plain(error)}", location=f"world {world.name}"
        ) from error
    notes += [f"the physics engine warns: {str(one.message).partition(' Check model')[0]}" for one in said]
    if has_light_feet(model):
        reckon_exactly(model)
    if looks:
        set_view(model)
    placements = {name: _place(model, draft) for name, draft in drafts.items()}
    tables = _tables(model, maker, list(placements.values()))
    return Assembled(spec, model, placements, tables, tuple(notes))


def _plain(error: ValueError) -> str:
    """The engine's message on one line: ``what (at 'model::link')``."""
    what, _, rest = str(error).strip().partition("\n")
    found = re.search(r"Element name '([^']*)'", rest)
    what = what.removeprefix("Error: ").replace("mjMINVAL", "1e-15")
    return f"{what} (at '{found[1]}')" if found else what


def _draft(spec: mujoco.MjSpec, maker: GeomMaker, entry: Entry, index: int, notes: list[str]) -> _Draft:
    draft = _Draft(entry, index)
    draft.branches = plan(entry.model, notes)
    moving = _moving(draft.branches)
    for branch in draft.branches:
        link = branch.link
        if link.name in moving:
            body = _body(spec, draft, branch, notes)
            maker.add(index, entry.name, link, body, SE3.identity(), still=False)
        else:
            T_parent = entry.T_world_model if branch.parent is None else draft.still[branch.parent]
            T = draft.still[link.name] = T_parent @ branch.T_parent_link
            if moving and link.collisions:
                # A body of its own: only so the model's other links can be kept from touching it.
                fixed = spec.worldbody.add_body(name=scoped(entry.name, link.name), pos=T.translation, quat=T.rotation)
                draft.fixed.append(link.name)
                maker.add(index, entry.name, link, fixed, SE3.identity(), still=True)
            else:
                maker.add(index, entry.name, link, None, T, still=True)
    still = {joint.name for joint in entry.model.joints if not draft.scalars.get(joint.name)}
    for joint in entry.model.joints:
        add_couplings(spec, joint, draft.scalars.get(joint.name, []), entry.name, still=still)
    _close_loops(spec, draft, notes)
    _sites(spec, draft)
    _excludes(spec, draft)
    add_servos(spec, entry.model, entry.name, draft.all_scalars())
    flying = next((branch.link.name for branch in draft.branches if branch.free), None)
    if entry.base is not None and flying is not None:
        add_base(spec, draft.bodies[flying], entry.name, entry.base)
    return draft


def _body_of(draft: _Draft, link: str) -> tuple[str, SE3]:
    if link in draft.bodies:
        return scoped(draft.entry.name, link), SE3.identity()
    return "world", draft.still.get(link, draft.entry.T_world_model)


def _end(draft: _Draft, link: str) -> End:
    """What a joint that closes a loop finds at one end."""
    if link not in draft.bodies:
        return None, draft.still.get(link, draft.entry.T_world_model), {}
    group = rigid_group(link, draft.branches)
    members = {name: (draft.bodies[name], T) for name, T in group.items() if name in draft.bodies}
    return draft.bodies[link], SE3.identity(), members


def _axis(joint: Joint, index: int, T_model_child: SE3) -> NDArray[np.float64]:
    R = (T_model_child @ joint.T_child_joint).rotation_matrix()
    return np.asarray(R @ np.asarray(joint.axes[index].xyz, float))


def _steps(draft: _Draft, path: Sequence[tuple[Joint, float]], T: SE3) -> list[Step]:
    """Scalar joints along a way through a model that stands at ``T``."""
    poses = {link.name: link.T_model_link for link in draft.entry.model.links}
    return [
        Step(scalar, sign, _axis(one, index, T @ poses[one.child]))
        for one, sign in path
        for index, scalar in enumerate(draft.scalars.get(one.name, ()))
        if index < len(one.axes)
    ]


def _close_loops(spec: mujoco.MjSpec, draft: _Draft, notes: list[str]) -> None:
    model, name = draft.entry.model, draft.entry.name
    poses = {link.name: link.T_model_link for link in model.links}
    for joint in model.loop_joints:
        why = "not coupled"
        if joint.type in COUPLED:
            steps = _steps(draft, path_between(model.joints, joint.parent, joint.child) or (), SE3.identity())
            axes = [_axis(joint, index, poses[joint.child]) for index in range(len(joint.axes))]
            why = couple_steps(spec, joint, steps, axes)
        elif joint.type in HELD:
            why = hold_ends(spec, joint, scoped(name, joint.name), partial(_body_of, draft))
        if why and joint.type != "gearbox":
            ends = {link: _end(draft, link) for link in (joint.parent, joint.child)}
            draft.scalars[joint.name] = close_by_halves(spec, joint, name, ends, notes)
            add_couplings(spec, joint, draft.scalars[joint.name], name)
        elif why:
            notes.append(f"{scoped(name, joint.name)}: {why}")


def _join_models(spec: mujoco.MjSpec, world: World, drafts: Mapping[str, _Draft], notes: list[str]) -> None:
    """Joints between models, and between a model and the world: all as if they closed loops."""

    def parts(end: str) -> tuple[_Draft | None, str]:
        model, _, link = end.partition(SEPARATOR)
        return (drafts[model], link) if link else (None, "world")

    def body(end: str) -> tuple[str, SE3]:
        draft, link = parts(end)
        return _body_of(draft, link) if draft else ("world", SE3.identity())

    def end_at(end: str) -> End:
        draft, link = parts(end)
        return _end(draft, link) if draft else (None, SE3.identity(), {})

    def way(end: str, down: bool) -> list[Step]:
        """From a link up to the root of its model, or down."""
        draft, link = parts(end)
        if draft is None:
            return []
        joints = draft.entry.model.joints
        root = root_of(joints, link)
        path = path_between(joints, root, link) if down else path_between(joints, link, root)
        return _steps(draft, path or (), draft.entry.T_world_model)

    for joint in world.joints:
        models = {end.partition(SEPARATOR)[0] for end in (joint.parent, joint.child) if end != "world"}
        if not models <= drafts.keys():
            continue
        why = "not coupled"
        if joint.type in COUPLED:
            T_world_child = SE3.identity()
            draft, link = parts(joint.child)
            if draft is not None:
                T_world_child = draft.entry.T_world_model @ draft.entry.model.link(link).T_model_link
            axes = [_axis(joint, index, T_world_child) for index in range(len(joint.axes))]
            why = couple_steps(spec, joint, way(joint.parent, False) + way(joint.child, True), axes)
        elif joint.type in HELD:
            why = hold_ends(spec, joint, scoped("world", joint.name), body)
        if why and joint.type != "gearbox":
            ends = {end: end_at(end) for end in (joint.parent, joint.child)}
            add_couplings(spec, joint, close_by_halves(spec, joint, "world", ends, notes), "world")
        elif why:
            notes.append(f"world::{joint.name}: {why}")


def _moving(branches: Sequence[Branch]) -> set[str]:
    """Links that are not fast to the world."""
    moving: set[str] = set()
    for branch in branches:
        if branch.free or branch.joint is not None or branch.parent in moving:
            moving.add(branch.link.name)
    return moving


def _body(spec: mujoco.MjSpec, draft: _Draft, branch: Branch, notes: list[str]) -> mujoco.MjsBody:
    name = scoped(draft.entry.name, branch.link.name)
    parent = draft.bodies.get(branch.parent or "")
    T = branch.T_parent_link
    if parent is None:
        base = draft.still.get(branch.parent or "", draft.entry.T_world_model)
        T = base @ T
        parent = spec.worldbody
    body = parent.add_body(name=name, pos=T.translation, quat=T.rotation)
    led = draft.entry.flesh is not None
    if led:
        body.mocap = True
    elif branch.parent not in draft.bodies:
        body.sleep = mujoco.mjtSleepPolicy.mjSLEEP_NEVER
    if branch.free and not led:
        body.add_freejoint(name=scoped(draft.entry.name, "free", branch.link.name))
    elif branch.joint is not None:
        draft.scalars[branch.joint.name] = add_joint(body, branch.joint, draft.entry.name, notes)
    if branch.inertial is not None and branch.inertial.mass > 0.0:
        _set_inertia(body, branch.inertial)
    if not branch.link.gravity:
        body.gravcomp = 1.0
    draft.bodies[branch.link.name] = body
    return body


def _set_inertia(body: mujoco.MjsBody, inertial: Inertial) -> None:
    ixx, iyy, izz, ixy, ixz, iyz = inertial.inertia
    about = inertial.T_link_com.rotation_matrix()
    tensor = about @ np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]]) @ about.T
    values, vectors, quat = np.zeros(3), np.zeros(9), np.zeros(4)
    mujoco.mju_eig3(values, vectors, quat, tensor.ravel())  # largest first
    # Rounding must not break a flat body's A + B = C, which the engine checks exactly.
    values[0] = min(values[0], (values[1] + values[2]) * (1.0 - 1e-12))
    body.mass, body.ipos, body.iquat, body.inertia = inertial.mass, inertial.T_link_com.translation, quat, values
    body.explicitinertial = True


def _sites(spec: mujoco.MjSpec, draft: _Draft) -> None:
    for sensor in draft.entry.model.sensors:
        T = sensor.T_link_sensor
        body = draft.bodies.get(sensor.link)
        if body is None:
            body, T = spec.worldbody, draft.still[sensor.link] @ T
        body.add_site(name=scoped(draft.entry.name, sensor.name), pos=T.translation, quat=T.rotation, group=5)
        draft.sites.append(sensor.name)


def _excludes(spec: mujoco.MjSpec, draft: _Draft) -> None:
    """Links of one model do not touch each other unless both ask for it; neighbours at a joint never do."""
    if draft.entry.flesh is not None:  # what is led touches only what is not
        return
    solid = {*draft.bodies, *draft.fixed}
    links = [branch.link for branch in draft.branches if branch.link.name in solid and branch.link.collisions]
    joints = _neighbours((*draft.entry.model.joints, *draft.entry.model.loop_joints))
    joints |= set(map(frozenset, draft.entry.model.disabled_collisions))
    for one, other in combinations(links, 2):
        if one.self_collide and other.self_collide and frozenset((one.name, other.name)) not in joints:
            continue
        if one.name in draft.fixed and other.name in draft.fixed:
            continue
        first, second = scoped(draft.entry.name, one.name), scoped(draft.entry.name, other.name)
        spec.add_exclude(name=f"{first}|{second}", bodyname1=first, bodyname2=second)


def _neighbours(joints: Sequence[Joint]) -> set[frozenset[str]]:
    return {frozenset((joint.parent, joint.child)) for joint in joints}


def _place(model: mujoco.MjModel, draft: _Draft) -> Placement:
    name = draft.entry.name
    links = {link: LinkPlace(0, T) for link, T in draft.still.items()}
    bodies = []
    for link in draft.bodies:
        body = model.body(scoped(name, link)).id
        bodies.append(body)
        links[link] = LinkPlace(body, SE3.identity())
    actuators = {model.actuator(i).name: i for i in range(model.nactuator)}
    joints = []
    for scalar in draft.all_scalars():
        joint = model.joint(scalar.element).id
        actuator = actuators.get(scalar.element, -1)
        ctrl = int(model.actuator_ctrladr[actuator]) if actuator >= 0 else -1
        qpos, dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        joints.append(JointPlace(scalar.name, scalar.axis, scalar.prismatic, joint, qpos, dof, actuator, ctrl))
    sites = {sensor: model.site(scoped(name, sensor)).id for sensor in draft.sites}
    description = draft.entry.model
    root = description.canonical_link or next(iter(links), "")
    if root not in links:
        root = next(iter(links), "")
    return Placement(draft.index, draft.entry, links, tuple(joints), sites, tuple(bodies), root)


def _tables(model: mujoco.MjModel, maker: GeomMaker, placements: Sequence[Placement]) -> GeomTables:
    owner = np.full(model.ngeom, -1, np.int32)
    ground, aloft = np.zeros(model.ngeom, bool), np.zeros(model.ngeom, bool)
    links, parts = [""] * model.ngeom, [""] * model.ngeom
    for mark in maker.marks:
        geom = model.geom(mark.name).id
        owner[geom], ground[geom] = mark.model, mark.ground
        aloft[geom] = mark.model >= 0 and mark.link in placements[mark.model].entry.aloft
        links[geom], parts[geom] = mark.link, mark.part
    grains = ((model.geom(m.name).id, m.grain, placements[m.model]) for m in maker.marks if m.grain is not None)
    return GeomTables(owner, ground, aloft, tuple(links), tuple(parts), grain_table(model, grains, maker.notes))
