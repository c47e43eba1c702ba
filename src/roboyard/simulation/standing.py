"""Whether a robot stands: put on level ground with its joints held, does it rest, sink, or fall over?"""

from __future__ import annotations

from dataclasses import dataclass, replace

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.joint_interfaces import command_modes, initial_positions
from roboyard.description.model import Collision, Joint, Link, Model, PlacedModel, Plane, World
from roboyard.geometry import SE3
from roboyard.geometry.polygons import convex_hull
from roboyard.hardware import JointCommand
from roboyard.simulation.assembly import JointPlace
from roboyard.simulation.engine import Simulation
from roboyard.simulation.naming import COLLISION_BITS
from roboyard.simulation.servos import effort_limit
from roboyard.simulation.settings import PhysicsSettings

FEET = 0.01
"""Shapes this close above the lowest point count as what the robot stands on [m]."""
GAVE_WAY = 0.01
"""Error at which a joint counts as not held [rad or m]."""
_EQUAL = 1e-9
"""Points that are nearer to each other are one, and lines that are so narrow have no inside [m]."""
_RIM = 24  # points taken of a round edge
_K = mujoco.mjtGeom
Points = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Standing:
    """What became of a model that was put on level ground, its joints held where they start.

    Attributes:
        depth: Deepest overlap with the ground at the end [m].
        speed: Of the fastest link's centre of mass at the end [m/s].
        spin: Of the fastest turning link at the end [rad/s].
        tilt: Angle between the model's vertical axis at the start and at the end [rad].
        overhang: How far the centre of mass lay outside what touched the ground at the start [m]; 0: above it.
        slack: Angle by which it could tip before its centre of mass leaves what touched the ground [rad].
        held: Joints held by their position servos.
        locked: Joints that were locked.
        weak: Joints that did not stay where they started although their servos gave all they may.
        loose: Root links with nothing to touch the ground with, left out.
    """

    depth: float
    speed: float
    spin: float
    tilt: float
    overhang: float
    slack: float
    held: int
    locked: int
    loose: tuple[str, ...] = ()
    weak: tuple[str, ...] = ()

    def rests(self, depth: float = 0.005, speed: float = 0.1, spin: float = 0.5) -> bool:
        """Whether overlap [m] and speeds [m/s, rad/s] are within these bounds."""
        return self.depth <= depth and self.speed <= speed and self.spin <= spin

    def balances(self, slack: float = 0.03) -> bool:
        """Whether its pose can stand at all: its centre of mass above its feet, with ``slack`` [rad] to spare."""
        return self.overhang == 0.0 and self.slack >= slack

    def fell(self, tilt: float = 0.2) -> bool:
        """Whether it tipped by more than ``tilt`` [rad]."""
        return self.tilt > tilt


def stand(
    model: Model, seconds: float = 1.0, settings: PhysicsSettings | None = None, *, servos: bool = False
) -> Standing | None:
    """Put ``model`` on level ground, hold its joints where the description starts them, and let time pass.

    Args:
        model: The robot.
        seconds: How long [s].
        settings: Of the engine.
        servos: Whether joints that take positions are held by their servos; all others are locked.

    Returns:
        What became of it; None if nothing of it can touch the ground.

    Raises:
        DescriptionError: the engine refuses the model.
        RunError: the physics diverged.
    """
    held = _locked(_grounded(model), servos)
    if not held.links or not any(one.surface.collide for link in held.links for one in link.collisions):
        return None
    floor = Link("floor", SE3.identity(), collisions=(Collision("floor", Plane(), SE3.identity()),))
    place = PlacedModel("ground_plane", Model("ground_plane", (floor,), static=True), SE3.identity())
    trial = Simulation(World("nowhere"), settings=settings)
    trial.add(held, "robot")
    feet = _points(trial)
    trial.close()
    if not len(feet):
        return None
    sim = Simulation(World("level", (place,)), settings=settings)
    sim.add(held, "robot", SE3(translation=(0.0, 0.0, -float(feet[:, 2].min()))))
    hardware = sim.hardware("robot")
    places = [one for one in sim.placement("robot").joints if "position" in hardware.command_modes(one.name)]
    starts = np.array([sim.data.qpos[one.qpos] for one in places])
    if places:
        hardware.write(JointCommand("position", tuple(one.name for one in places), starts))
    body = sim.placement("robot").links[sim.placement("robot").root].body
    (margin, height), upright = _margin(sim, feet), sim.data.xmat[body].reshape(3, 3)[2].copy()
    sim.step(round(seconds * 1e9 / sim.timestep_ns))
    speed, spin = _speeds(sim)
    lean = float(np.clip(upright @ sim.data.xmat[body].reshape(3, 3)[2], -1.0, 1.0))
    contacts = sim.data.contact.dist[: sim.data.ncon]
    found = Standing(
        depth=max(0.0, -float(contacts.min())) if len(contacts) else 0.0,
        speed=speed,
        spin=spin,
        tilt=float(np.arccos(lean)),
        overhang=max(0.0, -margin),
        slack=float(np.arctan2(max(margin, 0.0), max(height, 1e-6))),
        held=len(places),
        locked=sum(joint.type != "fixed" for joint in model.joints) - sum(j.type != "fixed" for j in held.joints),
        loose=tuple(link.name for link in model.links if all(link.name != one.name for one in held.links)),
        weak=tuple(one.name for one, start in zip(places, starts, strict=True) if _gave_way(sim, one, float(start))),
    )
    sim.close()
    return found


def _gave_way(sim: Simulation, place: JointPlace, start: float) -> bool:
    limit, effort = effort_limit(place.axis), abs(float(sim.data.qfrc_actuator[place.dof]))
    return effort >= 0.99 * limit and abs(float(sim.data.qpos[place.qpos]) - start) > GAVE_WAY


def _grounded(model: Model) -> Model:
    """The model without the trees of links that have nothing to touch with."""
    above = {joint.child: joint.parent for joint in model.joints}

    def top(name: str) -> str:
        while name in above and above[name] != "world":
            name = above[name]
        return name

    tops = {link.name: top(link.name) for link in model.links}
    touching = {tops[link.name] for link in model.links if any(one.surface.collide for one in link.collisions)}
    kept = {name for name, root in tops.items() if root in touching}
    if len(kept) == len(tops):
        return model
    return replace(
        model,
        links=tuple(link for link in model.links if link.name in kept),
        joints=tuple(joint for joint in model.joints if joint.child in kept),
        loop_joints=tuple(joint for joint in model.loop_joints if {joint.parent, joint.child} <= kept),
        sensors=tuple(sensor for sensor in model.sensors if sensor.link in kept),
        canonical_link=model.canonical_link if model.canonical_link in kept else None,
    )


def _locked(model: Model, servos: bool) -> Model:
    """The model with its joints fixed where they start, but for those that servos can hold; without sensors."""
    starts = initial_positions(model, ((one.name, one.axes[0].limits) for one in model.joints if one.axes))

    def lock(joint: Joint) -> Joint:
        if joint.type == "fixed" or (servos and joint.axes and "position" in command_modes(model, joint.name)):
            return joint
        moved = joint.T_parent_child
        start = starts.get(joint.name, 0.0)
        if start and len(joint.axes) == 1:
            xyz = np.asarray(joint.axes[0].xyz) * start
            twist = np.r_[xyz, np.zeros(3)] if joint.type == "prismatic" else np.r_[np.zeros(3), xyz]
            moved = moved @ joint.T_child_joint @ SE3.exp(twist) @ joint.T_child_joint.inverse()
        return replace(joint, type="fixed", axes=(), mimic=None, T_parent_child=moved)

    joints = tuple(lock(joint) for joint in model.joints)
    gone = {joint.name for joint in joints if joint.type == "fixed"}
    joints = tuple(replace(one, mimic=None) if one.mimic and one.mimic.joint in gone else one for one in joints)
    return replace(
        model, joints=joints, sensors=(), interfaces=tuple(i for i in model.interfaces if i.joint not in gone)
    )


def _points(sim: Simulation) -> Points:
    """(n, 3) the lowest points of each touching shape of the robot, in the world [m]."""
    model, data = sim.model, sim.data
    bodies = set(sim.placement("robot").bodies)
    found: list[Points] = []
    for geom in range(model.ngeom):
        if int(model.geom_bodyid[geom]) in bodies and model.geom_conaffinity[geom] & COLLISION_BITS:
            local = _corners(model, geom, data.geom_xmat[geom].reshape(3, 3)[2])
            found.append(local @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom])
    return np.concatenate(found) if found else np.zeros((0, 3))


def _corners(model: mujoco.MjModel, geom: int, up: Points) -> Points:
    """Points of a shape, in its own frame, among them the lowest; ``up`` is the world's vertical in that frame."""
    size, kind = model.geom_size[geom], int(model.geom_type[geom])
    if kind == _K.mjGEOM_MESH:
        mesh = int(model.geom_dataid[geom])
        start, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
        return np.asarray(model.mesh_vert[start : start + count], np.float64)
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T.astype(float)
    if kind == _K.mjGEOM_BOX:
        return np.asarray(signs * size)
    if kind == _K.mjGEOM_CYLINDER:
        angle = np.arange(_RIM) * (2.0 * np.pi / _RIM) + np.arctan2(-up[1], -up[0])
        ring = np.c_[size[0] * np.cos(angle), size[0] * np.sin(angle)]
        return np.concatenate([np.c_[ring, np.full(_RIM, z)] for z in (-size[1], size[1])])
    if kind == _K.mjGEOM_CAPSULE:
        return np.asarray(np.array([[0.0, 0.0, -size[1]], [0.0, 0.0, size[1]]]) - size[0] * up)
    if kind == _K.mjGEOM_ELLIPSOID:
        return np.asarray(-(size * size * up / np.linalg.norm(size * up))[None])
    return np.asarray(-size[0] * up[None])


def _margin(sim: Simulation, feet: Points) -> tuple[float, float]:
    """How far inside the hull of what touches the ground the centre of mass lies, seen from above, and its height [m].

    Negative outside.
    """
    bodies = list(sim.placement("robot").bodies)
    masses = sim.model.body_mass[bodies]
    if masses.sum() <= 0.0:
        return 0.0, 0.0
    centre = (masses[:, None] * sim.data.xipos[bodies]).sum(axis=0) / masses.sum()
    standing = feet[feet[:, 2] <= feet[:, 2].min() + FEET][:, :2]
    corners = convex_hull(standing)
    sides = np.roll(corners, -1, axis=0) - corners
    lengths = np.hypot(sides[:, 0], sides[:, 1])
    far = lengths > _EQUAL  # what is shorter has no direction
    corners, sides, lengths = corners[far], sides[far], lengths[far]
    inward = np.c_[-sides[:, 1], sides[:, 0]] / lengths[:, None]
    widths = [float((inward @ corner - (inward * corners).sum(axis=1)).max()) for corner in corners]
    if len(corners) < 3 or max(widths) < _EQUAL:  # a point or a line
        return -float(_to_segment(centre[:2], standing)), float(centre[2])
    return float((inward @ centre[:2] - (inward * corners).sum(axis=1)).min()), float(centre[2])


def _to_segment(point: Points, points: Points) -> float:
    start = points[0]
    end = points[int(np.argmax(np.linalg.norm(points - start, axis=1)))]
    along = end - start
    share = float(np.clip((point - start) @ along / max(float(along @ along), 1e-12), 0.0, 1.0))
    return float(np.linalg.norm(point - start - share * along))


def _speeds(sim: Simulation) -> tuple[float, float]:
    """Largest speed of a centre of mass [m/s] and largest turning rate [rad/s]."""
    velocity = np.zeros(6)
    speed = spin = 0.0
    for body in sim.placement("robot").bodies:
        mujoco.mj_objectVelocity(sim.model, sim.data, mujoco.mjtObj.mjOBJ_BODY, body, velocity, 0)
        speed = max(speed, float(np.linalg.norm(velocity[3:])))
        spin = max(spin, float(np.linalg.norm(velocity[:3])))
    return speed, spin


def describe_standing(model: Model) -> str:
    """Return a sentence about a robot on level ground with its joints held; empty if it has no contact with it."""
    if model.static or any(joint.parent == "world" for joint in model.joints):
        return "the robot is fixed to the world"
    standing = stand(model)
    if standing is None:
        return ""
    depth = f"{standing.depth * 1e3:.2g} mm deep"
    if standing.fell():
        reason = "it tips" if standing.balances() else "its center of mass does not lie above its contacts"
        return f"the robot falls over with its joints held: {reason}"
    if not standing.rests():
        return f"the robot does not come to rest: {standing.speed:.2g} m/s after a second, {depth}"
    return f"the robot rests, {depth}"
