"""Friction along two directions: surfaces with a grain, and wheels whose rollers are one."""

from __future__ import annotations

import math

import numpy as np

from roboyard.description.model import (
    Axis,
    AxisLimits,
    Collision,
    Inertial,
    Joint,
    JointInterface,
    Link,
    Model,
    PlacedModel,
    Plane,
    Sphere,
    Surface,
)
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Vec3
from roboyard.geometry.constants import GRAVITY
from roboyard.hardware import JointCommand
from roboyard.simulation.engine import Simulation
from roboyard.simulation.proof.bodies import MASS, RADIUS, at, crate, floor, simulation, velocity
from roboyard.simulation.proof.check import Check
from roboyard.simulation.proof.sliding import slip
from roboyard.simulation.settings import PhysicsSettings

HALF_LENGTH, HALF_TRACK = 0.2, 0.15
"""Of the mecanum cart, to its wheels' middles [m]."""
WHEELS = {
    "front_left": (1.0, 1.0),
    "front_right": (1.0, -1.0),
    "rear_left": (-1.0, 1.0),
    "rear_right": (-1.0, -1.0),
}
"""Where they are; where x and y have one sign their rollers grip along (1, -1), else along (1, 1)."""


def grained(friction: float, across: float, angle: float, slope: float) -> PlacedModel:
    """A plane that falls towards +x by ``slope``; its grain runs at ``angle`` to that [rad]."""
    surface = Surface(friction=friction, friction2=across, friction_direction=(math.cos(angle), math.sin(angle), 0.0))
    link = Link("plane", SE3.identity(), collisions=(Collision("plane", Plane(), SE3.identity(), surface),))
    return PlacedModel("floor", Model("floor", (link,), static=True), at(pitch=slope))


def slide(
    settings: PhysicsSettings, friction: float, across: float, angle: float, slope: float
) -> tuple[float, float, float]:
    """A box let go on a plane with a grain: its accelerations down the slope and to the side [m/s²] after it has
    settled, for 1 s, and the way it went [m]."""
    sim = simulation(settings, grained(friction, across, angle, slope))
    sim.add(crate(2.0), "body", at(pitch=slope) @ at(z=0.1))
    sim.advance_to(300_000_000)
    before, start = _on_slope(sim, slope), sim.truth("body").T_world_base
    sim.advance_to(1_300_000_000)
    down, side = (np.subtract(_on_slope(sim, slope), before)).tolist()
    return down, side, sim.truth("body").T_world_base.distance(start)


def _on_slope(sim: Simulation, slope: float) -> tuple[float, float]:
    x, y, z = velocity(sim)
    return x * math.cos(slope) - z * math.sin(slope), y


def grains(settings: PhysicsSettings) -> tuple[Check, ...]:
    """Boxes on planes that are slick along one direction and rough along the other."""
    steep, checks = math.radians(30.0), []
    for along, across in ((0.3, 1.0), (0.1, 0.7)):
        down, _, _ = slide(settings, along, across, 0.0, steep)
        law = f"box sliding down 30° along the grain, μ = {along}, {across} across it"
        checks.append(Check(law, "g (sin α − μ₁ cos α)", slip(steep, along), down, "m/s²"))
        _, _, way = slide(settings, along, across, 0.5 * math.pi, steep)
        law = f"way of a box on 30° across the grain, μ = {along}, {across} across it"
        checks.append(Check(law, "0", 0.0, way, "m", 0.5 * GRAVITY * math.sin(steep), 1e-3))
    down, side, _ = slide(settings, 1.0, 0.0, -math.pi / 4, steep)
    free = GRAVITY * math.sin(steep) / 2.0
    checks.append(Check("box on skates at 45° to a slope of 30°, down", "g sin α cos² 45°", free, down, "m/s²"))
    checks.append(Check("the same, to the side", "g sin α cos 45° sin 45°", free, side, "m/s²"))
    return tuple(checks)


def slips(settings: PhysicsSettings) -> tuple[Check, ...]:
    """Boxes whose friction yields along their way, as with ODE's slip: they drift where it holds."""
    checks = []
    for yielding, degrees in ((0.035, 10.0), (0.2, 5.0)):
        slope = math.radians(degrees)
        sim = simulation(settings, _yielding(yielding, slope))
        sim.add(crate(2.0), "body", at(pitch=slope) @ at(z=0.1))
        sim.advance_to(1_500_000_000)
        speed = _on_slope(sim, slope)[0]
        drift = yielding * MASS * GRAVITY * math.sin(slope) / 4.0  # each of its corners bears a quarter
        law = f"drift of a box on {degrees:g}° whose corners yield by {yielding:g} m/s a newton"
        checks.append(Check(law, "s m g sin α/4", drift, speed, "m/s"))
    steep = math.radians(40.0)
    sim = simulation(settings, _yielding(0.01, steep))
    sim.add(crate(2.0), "body", at(pitch=steep) @ at(z=0.1))
    sim.advance_to(500_000_000)
    before = _on_slope(sim, steep)[0]
    sim.advance_to(1_500_000_000)
    down = _on_slope(sim, steep)[0] - before
    law = "box sliding down 40°, μ = 0.6, whose corners yield"
    return (*checks, Check(law, "g (sin α − μ cos α)", slip(steep, 0.6), down, "m/s²"))


def _yielding(share: float, slope: float) -> PlacedModel:
    surface = Surface(friction=0.6, friction_direction=(1.0, 0.0, 0.0), slip=(share, 0.0))
    link = Link("plane", SE3.identity(), collisions=(Collision("plane", Plane(), SE3.identity(), surface),))
    return PlacedModel("floor", Model("floor", (link,), static=True), at(pitch=slope))


def mecanum_cart() -> Model:
    """A cart on four driven balls whose friction stands for rollers at 45°, as in Gazebo's mecanum example."""
    links = [Link("base", SE3.identity(), Inertial(8.0, SE3.identity(), (0.1, 0.1, 0.2, 0.0, 0.0, 0.0)))]
    joints, interfaces = [], []
    moment = 0.4 * 0.5 * RADIUS**2
    for name, (front, left) in WHEELS.items():
        surface = Surface(
            friction=1.0, friction2=0.0, friction_direction=_grip(front * left), friction_direction_frame="base"
        )
        shape = Collision("rollers", Sphere(RADIUS), SE3.identity(), surface)
        place = at(front * HALF_LENGTH, left * HALF_TRACK)
        inertial = Inertial(0.5, SE3.identity(), (moment, moment, moment, 0.0, 0.0, 0.0))
        links.append(Link(name, place, inertial, (shape,)))
        axis = Axis((0.0, 1.0, 0.0), AxisLimits(effort=100.0))
        joints.append(Joint(f"{name}_axle", "continuous", "base", name, place, SE3.identity(), (axis,)))
        interfaces.append(JointInterface(f"{name}_axle", (("velocity", -50.0, 50.0),)))
    return Model("cart", tuple(links), tuple(joints), interfaces=tuple(interfaces))


def _grip(sign: float) -> Vec3:
    return math.sqrt(0.5), -sign * math.sqrt(0.5), 0.0


def drive(settings: PhysicsSettings, twist: Vec3) -> Vec3:
    """Velocities forwards and to the left [m/s] and rate [rad/s] of the cart whose wheels turn for ``twist``."""
    sim = simulation(settings, floor(1.0))
    sim.add(mecanum_cart(), "cart", at(z=RADIUS))
    sim.advance_to(200_000_000)
    forward, sideways, turn = twist
    speeds = {
        f"{name}_axle": (forward - front * left * sideways - left * turn * (HALF_LENGTH + HALF_TRACK)) / RADIUS
        for name, (front, left) in WHEELS.items()
    }
    sim.hardware("cart").write(JointCommand("velocity", tuple(speeds), np.array(list(speeds.values()))))
    sim.advance_to(1_200_000_000)
    found = []
    for _ in range(round(0.5 / settings.timestep)):
        sim.step()
        truth = sim.truth("cart")
        found.append((truth.linear_velocity[0], truth.linear_velocity[1], truth.angular_velocity[2]))
    x, y, rate = np.mean(found, axis=0).tolist()
    return x, y, rate


def mecanum(settings: PhysicsSettings) -> tuple[Check, ...]:
    """A mecanum cart driven by nothing but the friction of its wheels."""
    form = "inverse of ω = (v_x ∓ v_y ∓ (a + b) ω_z)/r"
    checks = []
    for name, axis, twist in (
        ("driving", 0, (0.5, 0.0, 0.0)),
        ("strafing", 1, (0.0, 0.4, 0.0)),
        ("turning", 2, (0.0, 0.0, 0.8)),
    ):
        found = drive(settings, twist)[axis]
        checks.append(
            Check(f"{name} of a mecanum cart by its wheels", form, twist[axis], found, "rad/s" if axis == 2 else "m/s")
        )
    slanted = (0.3, -0.2, 0.5)
    all_three = drive(settings, slanted)
    worst = max(abs(a - b) for a, b in zip(all_three, slanted, strict=True))
    checks.append(Check("slip of a mecanum cart that does all three at once", "0", 0.0, worst, "m/s", 0.3))
    return tuple(checks)
