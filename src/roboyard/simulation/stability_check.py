"""Stability check: is a robot with locked joints at rest on level ground, does it sink in, or does it fall over?"""

from __future__ import annotations

from dataclasses import dataclass, replace

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.joint_interfaces import command_modes, effort_limit, initial_positions
from roboyard.description.model import Collision, Joint, Link, Model, PlacedModel, Plane, World
from roboyard.geometry import SE3
from roboyard.geometry.polygons import convex_hull
from roboyard.hardware import JointCommand
from roboyard.physics.compiled_world import COLLISION_BITS, JointAddress
from roboyard.physics.settings import PhysicsSettings
from roboyard.simulation.simulation import Simulation

CONTACT_HEIGHT_TOLERANCE = 0.01
"""Shapes within this height above the lowest point support the robot [m]."""
MIN_JOINT_DEVIATION = 0.01
"""Position error from which a joint counts as weak [rad or m]."""
_MIN_LENGTH = 1e-9
"""Points within this distance are equal, and polygons of this width have no area [m]."""
_RIM_POINTS = 24  # points taken of a round edge
_GEOM = mujoco.mjtGeom
Points = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class StabilityReport:
    """Result of a stability check: a model on level ground with its joints at their initial positions.

    Attributes:
        penetration: Largest penetration depth of the ground at the end [m].
        speed: Highest speed of a link's center of mass at the end [m/s].
        angular_speed: Highest angular speed of a link at the end [rad/s].
        tilt: Angle between the model's vertical axis at the start and at the end [rad].
        com_overhang: Horizontal distance of the center of mass from the support polygon at the start [m]; 0: above it.
        tipping_margin: Angle by which the robot can tip before its center of mass leaves the support polygon [rad].
        n_servo_joints: Number of joints that their position servos hold.
        n_locked_joints: Number of joints that the check locked.
        weak_joints: Joints that moved although their servos were at the effort limit.
        ignored_links: Root links of trees without collision shapes, which the check leaves out.
    """

    penetration: float
    speed: float
    angular_speed: float
    tilt: float
    com_overhang: float
    tipping_margin: float
    n_servo_joints: int
    n_locked_joints: int
    ignored_links: tuple[str, ...] = ()
    weak_joints: tuple[str, ...] = ()

    def is_at_rest(
        self, max_penetration: float = 0.005, max_speed: float = 0.1, max_angular_speed: float = 0.5
    ) -> bool:
        """Return whether penetration [m] and speeds [m/s, rad/s] are within these bounds."""
        return (
            self.penetration <= max_penetration and self.speed <= max_speed and self.angular_speed <= max_angular_speed
        )

    def is_balanced(self, min_tipping_margin: float = 0.03) -> bool:
        """Return whether the center of mass is above the support polygon with ``min_tipping_margin`` [rad]."""
        return self.com_overhang == 0.0 and self.tipping_margin >= min_tipping_margin

    def has_fallen(self, max_tilt: float = 0.2) -> bool:
        """Return whether the robot tipped by more than ``max_tilt`` [rad]."""
        return self.tilt > max_tilt


def check_stability(
    model: Model, duration: float = 1.0, settings: PhysicsSettings | None = None, *, use_servos: bool = False
) -> StabilityReport | None:
    """Simulate ``model`` on level ground with its joints at their initial positions.

    Args:
        model: The robot.
        duration: Duration of the simulation [s].
        settings: Physics settings.
        use_servos: Whether the servos hold joints that take positions; all other joints are locked.

    Returns:
        The report; None if the model has no collision shapes.

    Raises:
        DescriptionError: MuJoCo rejects the model.
        RunError: The physics diverged.
    """
    trial_model = _lock_joints(_select_touching_trees(model), use_servos)
    if not trial_model.links or not any(one.surface.collide for link in trial_model.links for one in link.collisions):
        return None
    floor = Link("floor", SE3.identity(), collisions=(Collision("floor", Plane(), SE3.identity()),))
    ground = PlacedModel("ground_plane", Model("ground_plane", (floor,), static=True), SE3.identity())
    trial = Simulation(World("nowhere"), settings=settings)
    trial.add(trial_model, "robot")
    support_points = _support_points(trial)
    trial.close()
    if not len(support_points):
        return None
    sim = Simulation(World("level", (ground,)), settings=settings)
    sim.add(trial_model, "robot", SE3(translation=(0.0, 0.0, -float(support_points[:, 2].min()))))
    hardware = sim.hardware("robot")
    servo_joints = [
        one for one in sim.world.addresses("robot").joints if "position" in hardware.command_modes(one.name)
    ]
    start_positions = np.array([sim.world.data.qpos[one.qpos] for one in servo_joints])
    if servo_joints:
        hardware.write(JointCommand("position", tuple(one.name for one in servo_joints), start_positions))
    body = sim.world.addresses("robot").links[sim.world.addresses("robot").root].body
    (margin, height), initial_vertical = (
        _support_margin(sim, support_points),
        sim.world.data.xmat[body].reshape(3, 3)[2].copy(),
    )
    sim.step(round(duration * 1e9 / sim.timestep_ns))
    speed, angular_speed = _speeds(sim)
    tilt_cosine = float(np.clip(initial_vertical @ sim.world.data.xmat[body].reshape(3, 3)[2], -1.0, 1.0))
    contacts = sim.world.data.contact.dist[: sim.world.data.ncon]
    report = StabilityReport(
        penetration=max(0.0, -float(contacts.min())) if len(contacts) else 0.0,
        speed=speed,
        angular_speed=angular_speed,
        tilt=float(np.arccos(tilt_cosine)),
        com_overhang=max(0.0, -margin),
        tipping_margin=float(np.arctan2(max(margin, 0.0), max(height, 1e-6))),
        n_servo_joints=len(servo_joints),
        n_locked_joints=sum(joint.type != "fixed" for joint in model.joints)
        - sum(j.type != "fixed" for j in trial_model.joints),
        ignored_links=tuple(
            link.name for link in model.links if all(link.name != one.name for one in trial_model.links)
        ),
        weak_joints=tuple(
            one.name
            for one, start in zip(servo_joints, start_positions, strict=True)
            if _is_too_weak(sim, one, float(start))
        ),
    )
    sim.close()
    return report


def _is_too_weak(sim: Simulation, address: JointAddress, start: float) -> bool:
    effort_bound, effort = effort_limit(address.axis), abs(float(sim.world.data.qfrc_actuator[address.dof]))
    return effort >= 0.99 * effort_bound and abs(float(sim.world.data.qpos[address.qpos]) - start) > MIN_JOINT_DEVIATION


def _select_touching_trees(model: Model) -> Model:
    """Return the model without trees of links that have no collision shapes."""
    parent_of = {joint.child: joint.parent for joint in model.joints}

    def find_root(name: str) -> str:
        while name in parent_of and parent_of[name] != "world":
            name = parent_of[name]
        return name

    root_of = {link.name: find_root(link.name) for link in model.links}
    touching = {root_of[link.name] for link in model.links if any(one.surface.collide for one in link.collisions)}
    touching_links = {name for name, root in root_of.items() if root in touching}
    if len(touching_links) == len(root_of):
        return model
    return replace(
        model,
        links=tuple(link for link in model.links if link.name in touching_links),
        joints=tuple(joint for joint in model.joints if joint.child in touching_links),
        loop_joints=tuple(joint for joint in model.loop_joints if {joint.parent, joint.child} <= touching_links),
        sensors=tuple(sensor for sensor in model.sensors if sensor.link in touching_links),
        canonical_link=model.canonical_link if model.canonical_link in touching_links else None,
    )


def _lock_joints(model: Model, use_servos: bool) -> Model:
    """Return the model without sensors, and with fixed joints except those that servos can hold."""
    start_positions = initial_positions(model, ((one.name, one.axes[0].limits) for one in model.joints if one.axes))

    def lock(joint: Joint) -> Joint:
        if joint.type == "fixed" or (use_servos and joint.axes and "position" in command_modes(model, joint.name)):
            return joint
        T_parent_child = joint.T_parent_child
        start = start_positions.get(joint.name, 0.0)
        if start and len(joint.axes) == 1:
            xyz = np.asarray(joint.axes[0].xyz) * start
            twist = np.r_[xyz, np.zeros(3)] if joint.type == "prismatic" else np.r_[np.zeros(3), xyz]
            T_parent_child = T_parent_child @ joint.T_child_joint @ SE3.exp(twist) @ joint.T_child_joint.inverse()
        return replace(joint, type="fixed", axes=(), mimic=None, T_parent_child=T_parent_child)

    joints = tuple(lock(joint) for joint in model.joints)
    fixed_joints = {joint.name for joint in joints if joint.type == "fixed"}
    joints = tuple(replace(one, mimic=None) if one.mimic and one.mimic.joint in fixed_joints else one for one in joints)
    return replace(
        model, joints=joints, sensors=(), interfaces=tuple(i for i in model.interfaces if i.joint not in fixed_joints)
    )


def _support_points(sim: Simulation) -> Points:
    """Return the lowest points (n, 3) of each collision shape of the robot in the world [m]."""
    model, data = sim.world.model, sim.world.data
    bodies = set(sim.world.addresses("robot").bodies)
    points: list[Points] = []
    for geom in range(model.ngeom):
        if int(model.geom_bodyid[geom]) in bodies and model.geom_conaffinity[geom] & COLLISION_BITS:
            local_points = _min_shape_points(model, geom, data.geom_xmat[geom].reshape(3, 3)[2])
            points.append(local_points @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom])
    return np.concatenate(points) if points else np.zeros((0, 3))


def _min_shape_points(model: mujoco.MjModel, geom: int, up: Points) -> Points:
    """Return points of a shape in its frame that include the lowest one; ``up`` is the vertical in that frame."""
    size, kind = model.geom_size[geom], int(model.geom_type[geom])
    if kind == _GEOM.mjGEOM_MESH:
        mesh = int(model.geom_dataid[geom])
        start, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
        return np.asarray(model.mesh_vert[start : start + count], np.float64)
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T.astype(float)
    if kind == _GEOM.mjGEOM_BOX:
        return np.asarray(signs * size)
    if kind == _GEOM.mjGEOM_CYLINDER:
        angle = np.arange(_RIM_POINTS) * (2.0 * np.pi / _RIM_POINTS) + np.arctan2(-up[1], -up[0])
        ring = np.c_[size[0] * np.cos(angle), size[0] * np.sin(angle)]
        return np.concatenate([np.c_[ring, np.full(_RIM_POINTS, z)] for z in (-size[1], size[1])])
    if kind == _GEOM.mjGEOM_CAPSULE:
        return np.asarray(np.array([[0.0, 0.0, -size[1]], [0.0, 0.0, size[1]]]) - size[0] * up)
    if kind == _GEOM.mjGEOM_ELLIPSOID:
        return np.asarray(-(size * size * up / np.linalg.norm(size * up))[None])
    return np.asarray(-size[0] * up[None])


def _support_margin(sim: Simulation, support_points: Points) -> tuple[float, float]:
    """Return the horizontal distance of the center of mass from the border of the support polygon, and its height [m].

    The distance is negative outside the polygon.
    """
    bodies = list(sim.world.addresses("robot").bodies)
    masses = sim.world.model.body_mass[bodies]
    if masses.sum() <= 0.0:
        return 0.0, 0.0
    com = (masses[:, None] * sim.world.data.xipos[bodies]).sum(axis=0) / masses.sum()
    contact_points = support_points[support_points[:, 2] <= support_points[:, 2].min() + CONTACT_HEIGHT_TOLERANCE][
        :, :2
    ]
    corners = convex_hull(contact_points)
    sides = np.roll(corners, -1, axis=0) - corners
    lengths = np.hypot(sides[:, 0], sides[:, 1])
    is_long = lengths > _MIN_LENGTH  # what is shorter has no direction
    corners, sides, lengths = corners[is_long], sides[is_long], lengths[is_long]
    inward = np.c_[-sides[:, 1], sides[:, 0]] / lengths[:, None]
    widths = [float((inward @ corner - (inward * corners).sum(axis=1)).max()) for corner in corners]
    if len(corners) < 3 or max(widths) < _MIN_LENGTH:  # a point or a line
        return -float(_distance_to_segment(com[:2], contact_points)), float(com[2])
    return float((inward @ com[:2] - (inward * corners).sum(axis=1)).min()), float(com[2])


def _distance_to_segment(point: Points, points: Points) -> float:
    start = points[0]
    end = points[int(np.argmax(np.linalg.norm(points - start, axis=1)))]
    along = end - start
    fraction = float(np.clip((point - start) @ along / max(float(along @ along), 1e-12), 0.0, 1.0))
    return float(np.linalg.norm(point - start - fraction * along))


def _speeds(sim: Simulation) -> tuple[float, float]:
    """Return the highest speed of a center of mass [m/s] and the highest angular speed [rad/s]."""
    velocity = np.zeros(6)
    speed = angular_speed = 0.0
    for body in sim.world.addresses("robot").bodies:
        mujoco.mj_objectVelocity(sim.world.model, sim.world.data, mujoco.mjtObj.mjOBJ_BODY, body, velocity, 0)
        speed = max(speed, float(np.linalg.norm(velocity[3:])))
        angular_speed = max(angular_speed, float(np.linalg.norm(velocity[:3])))
    return speed, angular_speed


def describe_stability(model: Model) -> str:
    """Return a sentence about a robot on level ground with its joints held; empty if it has no collision shapes."""
    if model.static or any(joint.parent == "world" for joint in model.joints):
        return "the robot is fixed to the world"
    report = check_stability(model)
    if report is None:
        return ""
    penetration = f"{report.penetration * 1e3:.2g} mm deep"
    if report.has_fallen():
        reason = "it tips" if report.is_balanced() else "its center of mass does not lie above its contacts"
        return f"the robot falls over with its joints held: {reason}"
    if not report.is_at_rest():
        return f"the robot does not come to rest: {report.speed:.2g} m/s after a second, {penetration}"
    return f"the robot rests, {penetration}"
