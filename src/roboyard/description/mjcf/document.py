"""A compiled document as a `Model` (all its bodies as one robot) or a `World` (each body of the world a model)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from roboyard.description import checks
from roboyard.description.assembly import settle_sensors
from roboyard.description.mjcf.actuators import driven, free_joint, interfaces, read_actuators
from roboyard.description.mjcf.cameras import read_cameras
from roboyard.description.mjcf.compiled import Compiled, compile_document
from roboyard.description.mjcf.contacts import touching
from roboyard.description.mjcf.geoms import shapes
from roboyard.description.mjcf.joints import FREE, chain, closures, mimics
from roboyard.description.mjcf.lights import read_lights
from roboyard.description.mjcf.sensors import Place, parts_of, read_sensors
from roboyard.description.model import (
    Frame,
    Inertial,
    Joint,
    Link,
    Mimic,
    Model,
    Physics,
    Placed,
    World,
)
from roboyard.description.naming import free_name
from roboyard.description.plausibility import sensible
from roboyard.description.reading import Reading
from roboyard.description.renaming import renamed
from roboyard.description.values import fault, number
from roboyard.description.xml import Node
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3

SCENERY = "scenery"
"""Name of the model that holds what a world's own geoms show."""


def read_model_document(reading: Reading, root: Node, name: str | None = None) -> Model:
    """All bodies of the document as one model; geoms and lamps of the world itself are left out.

    Args:
        reading: Takes findings, finds files.
        root: The ``<mujoco>``.
        name: Replaces the model's name.

    Raises:
        DescriptionError: there is no body, or MuJoCo refuses the document; with the place.
    """
    source = compile_document(reading, root)
    if source.model.nbody < 2:
        raise fault("the document has no body", root, "<worldbody><body>…, or load it as a world")
    if source.geoms_of(0) or source.model.nlight:
        reading.note(root, "geoms and lamps of the world itself are left out: load it as a world to have them")
    models = _Models(reading, source)
    models.say_left_out()
    return models.model(name or root.get("model") or "robot", _tops(source))


def read_world_document(reading: Reading, root: Node) -> World:
    """The document as a world: each body that hangs on the world is a model, the world's own geoms are scenery.

    Bodies whose names begin with the same ``name::`` are one model of that name.

    Raises:
        DescriptionError: MuJoCo refuses the document; with the place.
    """
    source = compile_document(reading, root)
    models = _Models(reading, source)
    models.say_left_out()
    placed: list[Placed] = []
    taken: dict[str, int] = {}
    if source.geoms_of(0):
        placed.append(Placed(free_name(SCENERY, taken), models.scenery(), SE3.identity()))
    groups: dict[str, list[int]] = {}
    for body in _tops(source):
        prefix, scope, _ = source.bodies[body].partition("::")
        groups.setdefault(prefix if scope else source.bodies[body], []).append(body)
    for name, tops in groups.items():
        T_world_model = models.start(tops[0]) if len(tops) == 1 else SE3.identity()
        model = models.model(name, tops, T_world_model)
        placed.append(Placed(free_name(name, taken), _unscoped(model, f"{name}::"), T_world_model))
    x, y, z = (0.0, 0.0, 0.0) if _weightless(source.root) else (float(value) for value in source.model.opt.gravity)
    step = next((node.get("timestep") for node in source.root.all("option") if node.get("timestep")), "")
    return World(
        name=root.get("model") or "world",
        models=tuple(placed),
        lights=read_lights(reading, source),
        gravity=(x, y, z),
        physics=Physics(number(step, root, "timestep") if step else None),
    )


def _weightless(root: Node) -> bool:
    flags = [flag.get("gravity") for option in root.all("option") for flag in option.all("flag")]
    return any(one == "disable" for one in flags)


def _tops(source: Compiled) -> list[int]:
    return [body for body in range(1, source.model.nbody) if int(source.model.body_parentid[body]) == 0]


@dataclass(slots=True)
class _Models:
    """Makes models of a compiled document's bodies."""

    reading: Reading
    source: Compiled

    def start(self, top: int) -> SE3:
        """Where a body of the world stands at the start: as drawn, or as the keyframe ``home`` says."""
        m, free = self.source.model, free_joint(self.source, top)
        if free >= 0 and m.nkey:
            address = int(m.jnt_qposadr[free])
            return SE3(m.key_qpos[0][address + 3 : address + 7], m.key_qpos[0][address : address + 3])
        return self.source.pose(top)

    def model(self, name: str, tops: list[int], T_world_model: SE3 | None = None) -> Model:
        """The bodies ``tops`` and all below them as one model. Raises DescriptionError."""
        m, source = self.source.model, self.source
        T_model_world = (T_world_model or SE3.identity()).inverse()
        roots = {int(m.body_rootid[body]) for body in tops}
        bodies = [body for body in range(1, m.nbody) if int(m.body_rootid[body]) in roots]
        members, apart = touching(source, bodies)
        still = not any(source.joints_of(body) for body in bodies)
        drives = read_actuators(self.reading, source) if m.nactuator else {}
        coupled = mimics(self.reading, source)
        links: list[Link] = []
        joints: list[Joint] = []
        poses: dict[str, SE3] = {}
        for body in bodies:
            parent, T_parent = source.bodies[int(m.body_parentid[body])], source.pose(body)
            if body in tops:
                T_parent = T_model_world @ self.start(body)
            T_model_link = poses.get(parent, SE3.identity()) @ T_parent
            called = source.bodies[body]
            poses[called] = T_model_link
            if body not in tops or not (still or free_joint(source, body) >= 0):
                inner, found = chain(self.reading, source, body, parent, T_parent)
                links += [replace(link, T_model_link=T_model_link) for link in inner]
                joints += [driven(one, drives) for one in found]
            links.append(self._link(body, T_model_link, body in members))
        names = [link.name for link in links]
        self._unique(links, joints)
        moving = {joint.name for joint in joints}
        joints = [self._coupled(joint, coupled.get(joint.name), moving) for joint in joints]
        wires = interfaces(source, drives)
        places = self._sites()
        sensors = [*read_sensors(self.reading, source, names), *read_cameras(self.reading, source, names)]
        used = {part.site for part in parts_of(source)}
        loops = [
            replace(one, T_parent_child=T_model_world @ one.T_parent_child) if one.parent == "world" else one
            for one in closures(self.reading, source)
            if one.child in names and one.parent in {*names, "world"}
        ]
        neighbours = {frozenset((joint.parent, joint.child)) for joint in joints}
        pairs = [(source.bodies[one], source.bodies[other]) for one, other in apart]
        joints = [joint for joint, _ in checks.mimics(self.reading, [(joint, source.root) for joint in joints])]
        return Model(
            name=name,
            links=tuple(links),
            joints=tuple(joints),
            sensors=settle_sensors(self.reading, source.root, sensors, joints),
            interfaces=tuple(wire for joint, wire in wires.items() if joint in moving),
            static=still,
            canonical_link=names[0],
            frames=tuple(
                Frame(site, link, T) for site, (link, T) in places.items() if link in names and site not in used
            ),
            closures=tuple(loops),
            excludes=tuple(pair for pair in pairs if frozenset(pair) not in neighbours),
        )

    def say_left_out(self) -> None:
        """What the compiler understood but no record can hold."""
        m, source = self.source.model, self.source
        for index, node in enumerate(source.tendon_nodes):
            if (
                m.tendon_limited[index]
                or m.tendon_stiffness[index]
                or m.tendon_damping[index]
                or (m.tendon_frictionloss[index] or m.tendon_armature[index])
            ):
                name = m.tendon(index).name or f"tendon {index}"
                self.reading.note(
                    node, f"'{name}': limits, stiffness, damping and friction of tendons have no effect here"
                )
        for joint, node in enumerate(source.joint_nodes):
            dof, kind = int(m.jnt_dofadr[joint]), int(m.jnt_type[joint])
            if kind == FREE and (m.dof_damping[dof] or m.dof_frictionloss[dof] or m.dof_armature[dof]):
                self.reading.note(
                    node,
                    f"damping, friction and armature of the free joint '{source.joints[joint]}' have no effect here",
                )

    def scenery(self) -> Model:
        """The world's own geoms: a link for each, so that a floor is known by its name."""
        links = []
        taken: dict[str, int] = {}
        for geom in self.source.geoms_of(0):
            name = free_name(self.source.model.geom(geom).name or "geom", taken)
            collisions, visuals = shapes(self.reading, self.source, [geom], name)
            links.append(Link(name, SE3.identity(), None, collisions, visuals))
        return Model(SCENERY, tuple(links), static=True, canonical_link=links[0].name)

    def _link(self, body: int, T_model_link: SE3, touches: bool) -> Link:
        m, name = self.source.model, self.source.bodies[body]
        node = self.source.body_nodes[body]
        collisions, visuals = shapes(self.reading, self.source, self.source.geoms_of(body), name)
        lift = float(m.body_gravcomp[body])
        if lift not in (0.0, 1.0):
            self.reading.note(node, f"body '{name}' is lifted by {lift:g} of its weight: only 0 and 1 are understood")
        if m.body_mocapid[body] >= 0:
            self.reading.note(node, f"body '{name}' is moved by nobody here: it stands still")
        inertial = self._inertial(body, node, name)
        link = Link(name, T_model_link, inertial, collisions, visuals, lift != 1.0, touches)
        stated = node.child("inertial")
        return sensible(self.reading, stated, link) if stated is not None and int(m.body_weldid[body]) else link

    def _inertial(self, body: int, node: Node, name: str) -> Inertial | None:
        m = self.source.model
        mass = float(m.body_mass[body])
        if mass <= 0.0:
            return None
        T_link_com = SE3(m.body_iquat[body], m.body_ipos[body])
        ixx, iyy, izz = (float(value) for value in m.body_inertia[body])
        if not max(ixx, iyy, izz) > 0.0 and int(m.body_weldid[body]) != body:
            self.reading.note(node, f"body '{name}' is a point of {mass:g} kg, fixed to another: a ball of 1 mm taken")
            ixx = iyy = izz = 0.4 * mass * 1e-6
        try:
            return checks.inertial(self.reading, node, name, mass, T_link_com, (ixx, iyy, izz, 0.0, 0.0, 0.0))
        except DescriptionError as error:
            if int(m.body_weldid[body]):
                raise
            self.reading.note(node, f"{error.what}; of no matter, it never moves")
            return None

    def _coupled(self, joint: Joint, mimic: Mimic | None, joints: set[str]) -> Joint:
        if mimic is None or mimic.joint in joints:
            return replace(joint, mimic=mimic)
        self.reading.note(self.source.root, f"joint '{joint.name}' follows a joint of another model: left out")
        return joint

    def _sites(self) -> dict[str, Place]:
        m = self.source.model
        return {
            m.site(number).name: (
                self.source.bodies[int(m.site_bodyid[number])],
                SE3(m.site_quat[number], m.site_pos[number]),
            )
            for number in range(m.nsite)
            if m.site(number).name
        }

    def _unique(self, links: list[Link], joints: list[Joint]) -> None:
        """Names made for chains and fixed bodies must not meet the file's own."""
        checks.unique("link", ((link.name, self.source.root) for link in links))
        checks.unique("joint", ((joint.name, self.source.root) for joint in joints))


def _unscoped(model: Model, prefix: str) -> Model:
    """The model with ``prefix`` taken off every name that begins with it."""

    def bare(name: str) -> str:
        return name.removeprefix(prefix)

    model = replace(model, sensors=tuple(replace(one, topic=one.name) for one in model.sensors))
    return renamed(model, links=bare, joints=bare, others=bare)
