"""Bodies and worlds of the validation experiments, simple enough for closed forms."""

from __future__ import annotations

from roboyard.description.model import (
    Box,
    Collision,
    Cylinder,
    Geometry,
    Inertial,
    Link,
    Model,
    PlacedModel,
    Plane,
    Sphere,
    Surface,
    World,
)
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Vec3
from roboyard.geometry.constants import GRAVITY_VECTOR
from roboyard.physics.settings import PhysicsSettings
from roboyard.simulation.simulation import Simulation

RADIUS, MASS = 0.1, 2.0
"""Radius and mass of all balls and cylinders [m, kg]."""
SOLID_BALL_INERTIA, HOLLOW_BALL_INERTIA, SOLID_CYLINDER_INERTIA, HOOP_INERTIA = 2 / 5, 2 / 3, 1 / 2, 1.0
"""Moments of inertia about the rolling axis, divided by ``m r²``."""


def make_pose(x: float = 0.0, y: float = 0.0, z: float = 0.0, roll: float = 0.0, pitch: float = 0.0) -> SE3:
    """Return a pose from a position [m] and roll and pitch [rad]."""
    return SE3.from_xyz_rpy((x, y, z), (roll, pitch, 0.0))


def make_simulation(
    settings: PhysicsSettings, *placed_models: PlacedModel, gravity: Vec3 = GRAVITY_VECTOR
) -> Simulation:
    """Return a simulation of a world with these models and gravity; its time step is that of the settings."""
    return Simulation(
        World("laboratory", placed_models, gravity=gravity), timestep=settings.timestep, settings=settings
    )


def make_free_body(
    geometry: Geometry | None,
    inertia: Vec3,
    mass: float = MASS,
    friction: float = 1.0,
    restitution: float = 0.0,
    T_body_geom: SE3 = SE3.identity(),
) -> Model:
    """Return a free body of one link with its center of mass at the origin and these principal moments [kg m²]."""
    surface = Surface(friction=friction, restitution=restitution)
    shapes = () if geometry is None else (Collision("shape", geometry, T_body_geom, surface),)
    inertial = Inertial(mass, SE3.identity(), (*inertia, 0.0, 0.0, 0.0))
    return Model("body", (Link("body", SE3.identity(), inertial, shapes),))


def make_ball(
    inertia_factor: float = SOLID_BALL_INERTIA, friction: float = 1.0, restitution: float = 0.0, mass: float = MASS
) -> Model:
    """Return a ball with the moment of inertia ``inertia_factor m r²``."""
    moment = inertia_factor * mass * RADIUS**2
    return make_free_body(Sphere(RADIUS), (moment, moment, moment), mass, friction, restitution)


def make_cylinder(inertia_factor: float, friction: float = 1.0) -> Model:
    """Return a cylinder along y, 0.2 m long, with the moment of inertia ``inertia_factor m r²`` about its axis."""
    length = 0.2
    transverse_inertia = MASS * (0.5 * inertia_factor * RADIUS**2 + length**2 / 12)
    inertia = (transverse_inertia, inertia_factor * MASS * RADIUS**2, transverse_inertia)
    return make_free_body(
        Cylinder(RADIUS, length), inertia, friction=friction, T_body_geom=make_pose(roll=1.5707963267948966)
    )


def make_box(friction: float = 1.0, size: Vec3 = (0.4, 0.4, 0.2)) -> Model:
    """Return a solid box."""
    x, y, z = size
    inertia = (MASS * (y * y + z * z) / 12, MASS * (x * x + z * z) / 12, MASS * (x * x + y * y) / 12)
    return make_free_body(Box(size), inertia, friction=friction)


def make_floor(friction: float = 1.0, restitution: float = 0.0, slope: float = 0.0) -> PlacedModel:
    """Return an infinite plane that falls towards +x by ``slope`` [rad]."""
    surface = Surface(friction=friction, restitution=restitution)
    link = Link("plane", SE3.identity(), collisions=(Collision("plane", Plane(), SE3.identity(), surface),))
    return PlacedModel("floor", Model("floor", (link,), static=True), make_pose(pitch=slope))


def world_linear_velocity(sim: Simulation, name: str = "body") -> tuple[float, float, float]:
    """Return the velocity of a free body in the world [m/s]."""
    truth = sim.ground_truth(name)
    x, y, z = truth.T_world_base.rotation_matrix() @ truth.linear_velocity
    return float(x), float(y), float(z)


def set_velocity(
    sim: Simulation, world_linear: Vec3 = (0.0, 0.0, 0.0), body_angular: Vec3 = (0.0, 0.0, 0.0), name: str = "body"
) -> None:
    """Set the velocity of a free body in the world [m/s], and its angular velocity in its own frame [rad/s]."""
    dof_address = sim.world.model.body_dofadr[sim.world.addresses(name).bodies[0]]
    sim.world.data.qvel[dof_address : dof_address + 6] = [*world_linear, *body_angular]
