"""Experiments with Coulomb friction: slopes, stopping, rolling, anisotropic friction, slip, mecanum wheels."""

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
from roboyard.physics.settings import PhysicsSettings
from roboyard.simulation.simulation import Simulation
from roboyard.simulation.validation.bodies import (
    HOLLOW_BALL_INERTIA,
    HOOP_INERTIA,
    MASS,
    RADIUS,
    SOLID_BALL_INERTIA,
    SOLID_CYLINDER_INERTIA,
    make_ball,
    make_box,
    make_cylinder,
    make_floor,
    make_pose,
    make_simulation,
    set_velocity,
    world_linear_velocity,
)
from roboyard.simulation.validation.law_check import Law, LawCheck

_COULOMB = "Coulomb's law of friction"
SLIDING = Law("g (sin α − μ cos α)", _COULOMB)
STICKING = Law("0 for tan α < μ", _COULOMB)
STOPPING_DISTANCE = Law("v²/(2 μ g)", _COULOMB)
ROLLING = Law("g sin α/(1 + I/(m r²))", "Newton-Euler equations with the rolling condition v = ω r")
ROLLING_SPEED = Law("5/7 v₀", "Newton-Euler equations of a solid ball with Coulomb friction")
ROLLING_TIME = Law("0.99 · 2 v₀/(7 μ g)", "Newton-Euler equations of a solid ball with Coulomb friction")
ANISOTROPIC_SLIDING = Law("g (sin α − μ₁ cos α)", "SDFormat, mu, mu2 and fdir1 of a surface")
ANISOTROPIC_STICKING = Law("0 for tan α < μ₂", "SDFormat, mu, mu2 and fdir1 of a surface")
SKATES_DOWNHILL = Law("g sin α cos² 45°", "SDFormat, mu, mu2 and fdir1 of a surface")
SKATES_SIDEWAYS = Law("g sin α cos 45° sin 45°", "SDFormat, mu, mu2 and fdir1 of a surface")
FORCE_DEPENDENT_SLIP = Law("s m g sin α/4", "ODE manual, force-dependent slip (slip1) of a contact")
MECANUM_MOTION = Law(
    "inverse of ω = (v_x ∓ v_y ∓ (a + b) ω_z)/r", "Muir and Neuman, Kinematic modeling for feedback control, ICRA 1987"
)


def measure_slope_acceleration(
    settings: PhysicsSettings, model: Model, slope: float, friction: float, clearance: float
) -> float:
    """Return the mean downhill acceleration of ``model`` on a slope during 1 s, after it has settled [m/s²].

    Args:
        settings: Physics settings.
        model: The body.
        slope: Angle of the slope [rad].
        friction: Friction coefficient of the slope.
        clearance: Height of the body's origin above the slope [m].
    """
    sim = make_simulation(settings, make_floor(friction, slope=slope))
    sim.add(model, "body", make_pose(pitch=slope) @ make_pose(z=clearance))
    sim.advance_to(300_000_000)
    initial_speed = downhill_speed(sim, slope)
    sim.advance_to(1_300_000_000)
    return downhill_speed(sim, slope) - initial_speed


def downhill_speed(sim: Simulation, slope: float) -> float:
    """Return the body's speed down the slope [m/s]."""
    x, _, z = world_linear_velocity(sim)
    return x * math.cos(slope) - z * math.sin(slope)


def sliding_acceleration(slope: float, friction: float) -> float:
    """Return the acceleration of a sliding body by `SLIDING` [m/s²]."""
    return GRAVITY * (math.sin(slope) - friction * math.cos(slope))


def rolling_acceleration(slope: float, friction: float, inertia_factor: float) -> float:
    """Return the acceleration of a round body that rolls, or slips if the friction is too small [m/s²].

    The moment of inertia of the body is ``inertia_factor m r²``.
    """
    if math.tan(slope) <= friction * (1.0 + 1.0 / inertia_factor):
        return GRAVITY * math.sin(slope) / (1.0 + inertia_factor)
    return sliding_acceleration(slope, friction)


def check_slopes(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Check boxes on slopes above and below the friction angle."""
    checks = []
    for mu, degrees in ((0.3, 25.0), (0.6, 40.0), (1.0, 50.0)):
        slope = math.radians(degrees)
        measured = measure_slope_acceleration(settings, make_box(2.0), slope, mu, 0.1)
        checks.append(
            LawCheck(
                f"acceleration of a box on a slope of {degrees:g}°, μ = {mu}",
                SLIDING,
                sliding_acceleration(slope, mu),
                measured,
                "m/s²",
            )
        )
    for mu, friction_fraction in ((0.3, 0.95), (0.6, 0.95)):
        slope = math.atan(friction_fraction * mu)
        sim = make_simulation(settings, make_floor(mu, slope=slope))
        sim.add(make_box(2.0), "body", make_pose(pitch=slope) @ make_pose(z=0.1))
        sim.advance_to(300_000_000)
        initial_pose = sim.ground_truth("body").T_world_base
        sim.advance_to(2_300_000_000)
        distance = sim.ground_truth("body").T_world_base.distance(initial_pose)
        free_distance = 0.5 * GRAVITY * math.sin(slope) * 2.0**2
        quantity = f"distance that a box moves in 2 s on a slope 5 % below the friction angle, μ = {mu}"
        checks.append(LawCheck(quantity, STICKING, 0.0, distance, "m", free_distance, 1e-4))
    return tuple(checks)


def check_stopping_distances(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Check the stopping distance of a sliding box."""
    checks = []
    for mu, speed in ((0.2, 1.0), (0.5, 2.0), (0.9, 3.0)):
        sim = make_simulation(settings, make_floor(mu))
        sim.add(make_box(2.0), "body", make_pose(z=0.1))
        sim.advance_to(300_000_000)
        set_velocity(sim, (speed, 0.0, 0.0))
        start = sim.ground_truth("body").T_world_base.x
        sim.advance_to(300_000_000 + round(1.5e9 * speed / (mu * GRAVITY)))
        distance = sim.ground_truth("body").T_world_base.x - start
        checks.append(
            LawCheck(
                f"stopping distance of a box from {speed:g} m/s, μ = {mu}",
                STOPPING_DISTANCE,
                speed**2 / (2 * mu * GRAVITY),
                distance,
                "m",
            )
        )
    return tuple(checks)


def check_rolling(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Check round bodies that roll down a slope, and one that slips."""
    slope, mu = math.radians(20.0), 0.8
    bodies = (
        ("solid ball", make_ball(SOLID_BALL_INERTIA), SOLID_BALL_INERTIA),
        ("hollow ball", make_ball(HOLLOW_BALL_INERTIA), HOLLOW_BALL_INERTIA),
        ("solid cylinder", make_cylinder(SOLID_CYLINDER_INERTIA), SOLID_CYLINDER_INERTIA),
        ("hoop", make_cylinder(HOOP_INERTIA), HOOP_INERTIA),
    )
    checks = [
        LawCheck(
            f"acceleration of a {name} that rolls down 20°",
            ROLLING,
            rolling_acceleration(slope, mu, inertia_factor),
            measure_slope_acceleration(settings, model, slope, mu, RADIUS),
            "m/s²",
        )
        for name, model, inertia_factor in bodies
    ]
    steep_slope, low_friction = math.radians(40.0), 0.1
    measured = measure_slope_acceleration(settings, make_ball(), steep_slope, low_friction, RADIUS)
    quantity = "acceleration of a solid ball that slips down 40°, μ = 0.1"
    return (
        *checks,
        LawCheck(quantity, SLIDING, sliding_acceleration(steep_slope, low_friction), measured, "m/s²"),
    )


def check_sliding_to_rolling(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Check a ball that starts without spin: it slides until it rolls."""
    speed, mu = 4.0, 0.2
    sim = make_simulation(settings, make_floor(mu))
    sim.add(make_ball(friction=2.0), "body", make_pose(z=RADIUS))
    sim.advance_to(300_000_000)
    set_velocity(sim, (speed, 0.0, 0.0))
    start = sim.time_ns
    rolling_time = math.inf
    while sim.time_ns - start < 2_000_000_000:
        sim.step()
        if (
            math.isinf(rolling_time)
            and world_linear_velocity(sim)[0] - RADIUS * float(sim.world.data.qvel[4]) < 0.01 * speed
        ):
            rolling_time = (sim.time_ns - start) * 1e-9
    expected_time = 2.0 * speed / (7.0 * mu * GRAVITY)
    return (
        LawCheck(
            "speed of a ball that has slid until it rolls",
            ROLLING_SPEED,
            5.0 / 7.0 * speed,
            world_linear_velocity(sim)[0],
            "m/s",
        ),
        # The slip decreases linearly: it is at 1 % when 99 % of the time has passed.
        LawCheck(
            "time until a sliding ball has 1 % of its slip left", ROLLING_TIME, 0.99 * expected_time, rolling_time, "s"
        ),
    )


MECANUM_HALF_LENGTH, MECANUM_HALF_TRACK = 0.2, 0.15
"""Distances of the mecanum cart's wheel centers from its center along x and y [m]."""
MECANUM_WHEELS = {
    "front_left": (1.0, 1.0),
    "front_right": (1.0, -1.0),
    "rear_left": (-1.0, 1.0),
    "rear_right": (-1.0, -1.0),
}
"""Signs of x and y of the wheels; the rollers grip along (1, -1) where the signs are equal, else along (1, 1)."""


def make_anisotropic_plane(friction: float, transverse_friction: float, angle: float, slope: float) -> PlacedModel:
    """Return a plane that falls towards +x by ``slope`` [rad].

    The friction coefficient is ``friction`` along the direction at ``angle`` to the slope [rad], and
    ``transverse_friction`` across it.
    """
    surface = Surface(
        friction=friction, friction2=transverse_friction, friction_direction=(math.cos(angle), math.sin(angle), 0.0)
    )
    link = Link("plane", SE3.identity(), collisions=(Collision("plane", Plane(), SE3.identity(), surface),))
    return PlacedModel("floor", Model("floor", (link,), static=True), make_pose(pitch=slope))


def measure_sliding(
    settings: PhysicsSettings, friction: float, transverse_friction: float, angle: float, slope: float
) -> tuple[float, float, float]:
    """Release a box on a plane with anisotropic friction, and measure 1 s of its motion after it has settled.

    Returns:
        Mean downhill and sideways accelerations [m/s²], and distance that the box moved [m].
    """
    sim = make_simulation(settings, make_anisotropic_plane(friction, transverse_friction, angle, slope))
    sim.add(make_box(2.0), "body", make_pose(pitch=slope) @ make_pose(z=0.1))
    sim.advance_to(300_000_000)
    initial_velocity, start = _velocity_on_slope(sim, slope), sim.ground_truth("body").T_world_base
    sim.advance_to(1_300_000_000)
    downhill, sideways = (np.subtract(_velocity_on_slope(sim, slope), initial_velocity)).tolist()
    return downhill, sideways, sim.ground_truth("body").T_world_base.distance(start)


def _velocity_on_slope(sim: Simulation, slope: float) -> tuple[float, float]:
    x, y, z = world_linear_velocity(sim)
    return x * math.cos(slope) - z * math.sin(slope), y


def check_anisotropic_friction(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Check boxes on slopes whose friction is low along one direction and high across it."""
    slope, checks = math.radians(30.0), []
    for friction, transverse_friction in ((0.3, 1.0), (0.1, 0.7)):
        downhill, _, _ = measure_sliding(settings, friction, transverse_friction, 0.0, slope)
        coefficients = f"μ₁ = {friction}, μ₂ = {transverse_friction}"
        quantity = f"acceleration of a box on 30° along the direction of low friction, {coefficients}"
        checks.append(LawCheck(quantity, ANISOTROPIC_SLIDING, sliding_acceleration(slope, friction), downhill, "m/s²"))
        _, _, distance = measure_sliding(settings, friction, transverse_friction, 0.5 * math.pi, slope)
        quantity = f"distance that a box moves in 1 s on 30° across that direction, {coefficients}"
        free_distance = 0.5 * GRAVITY * math.sin(slope)
        checks.append(LawCheck(quantity, ANISOTROPIC_STICKING, 0.0, distance, "m", free_distance, 1e-3))
    downhill, sideways, _ = measure_sliding(settings, 1.0, 0.0, -math.pi / 4, slope)
    expected = GRAVITY * math.sin(slope) / 2.0
    body = "a box on skates at 45° to a slope of 30°"
    checks.append(LawCheck(f"downhill acceleration of {body}", SKATES_DOWNHILL, expected, downhill, "m/s²"))
    checks.append(LawCheck(f"sideways acceleration of {body}", SKATES_SIDEWAYS, expected, sideways, "m/s²"))
    return tuple(checks)


def check_contact_slip(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Check boxes with force-dependent slip: they drift on slopes on which they would stick without it."""
    checks = []
    for slip_compliance, degrees in ((0.035, 10.0), (0.2, 5.0)):
        slope = math.radians(degrees)
        sim = make_simulation(settings, _make_slip_plane(slip_compliance, slope))
        sim.add(make_box(2.0), "body", make_pose(pitch=slope) @ make_pose(z=0.1))
        sim.advance_to(1_500_000_000)
        speed = _velocity_on_slope(sim, slope)[0]
        expected_speed = (
            slip_compliance * MASS * GRAVITY * math.sin(slope) / 4.0
        )  # each of the four corners carries a quarter of the force
        quantity = f"drift speed of a box on {degrees:g}° with a slip of {slip_compliance:g} m/s per newton"
        checks.append(LawCheck(quantity, FORCE_DEPENDENT_SLIP, expected_speed, speed, "m/s"))
    steep_slope = math.radians(40.0)
    sim = make_simulation(settings, _make_slip_plane(0.01, steep_slope))
    sim.add(make_box(2.0), "body", make_pose(pitch=steep_slope) @ make_pose(z=0.1))
    sim.advance_to(500_000_000)
    initial_speed = _velocity_on_slope(sim, steep_slope)[0]
    sim.advance_to(1_500_000_000)
    acceleration = _velocity_on_slope(sim, steep_slope)[0] - initial_speed
    quantity = "acceleration of a box on a slope of 40° with slip, μ = 0.6"
    return (*checks, LawCheck(quantity, SLIDING, sliding_acceleration(steep_slope, 0.6), acceleration, "m/s²"))


def _make_slip_plane(slip_compliance: float, slope: float) -> PlacedModel:
    surface = Surface(friction=0.6, friction_direction=(1.0, 0.0, 0.0), slip=(slip_compliance, 0.0))
    link = Link("plane", SE3.identity(), collisions=(Collision("plane", Plane(), SE3.identity(), surface),))
    return PlacedModel("floor", Model("floor", (link,), static=True), make_pose(pitch=slope))


def make_mecanum_cart() -> Model:
    """Return a cart on four driven balls whose anisotropic friction models rollers at 45°, as in Gazebo's example."""
    links = [Link("base", SE3.identity(), Inertial(8.0, SE3.identity(), (0.1, 0.1, 0.2, 0.0, 0.0, 0.0)))]
    joints, interfaces = [], []
    moment = 0.4 * 0.5 * RADIUS**2
    for name, (front, left) in MECANUM_WHEELS.items():
        surface = Surface(
            friction=1.0,
            friction2=0.0,
            friction_direction=_roller_direction(front * left),
            friction_direction_frame="base",
        )
        shape = Collision("rollers", Sphere(RADIUS), SE3.identity(), surface)
        T_base_wheel = make_pose(front * MECANUM_HALF_LENGTH, left * MECANUM_HALF_TRACK)
        inertial = Inertial(0.5, SE3.identity(), (moment, moment, moment, 0.0, 0.0, 0.0))
        links.append(Link(name, T_base_wheel, inertial, (shape,)))
        axis = Axis((0.0, 1.0, 0.0), AxisLimits(effort=100.0))
        joints.append(Joint(f"{name}_axle", "continuous", "base", name, T_base_wheel, SE3.identity(), (axis,)))
        interfaces.append(JointInterface(f"{name}_axle", (("velocity", -50.0, 50.0),)))
    return Model("cart", tuple(links), tuple(joints), interfaces=tuple(interfaces))


def _roller_direction(sign: float) -> Vec3:
    return math.sqrt(0.5), -sign * math.sqrt(0.5), 0.0


def drive_mecanum_cart(settings: PhysicsSettings, twist: Vec3) -> Vec3:
    """Return the mean twist (v_x, v_y, ω_z) [m/s, rad/s] of the cart with the wheel speeds that ``twist`` requires."""
    sim = make_simulation(settings, make_floor(1.0))
    sim.add(make_mecanum_cart(), "cart", make_pose(z=RADIUS))
    sim.advance_to(200_000_000)
    forward, sideways, yaw_rate = twist
    speeds = {
        f"{name}_axle": (
            forward - front * left * sideways - left * yaw_rate * (MECANUM_HALF_LENGTH + MECANUM_HALF_TRACK)
        )
        / RADIUS
        for name, (front, left) in MECANUM_WHEELS.items()
    }
    sim.hardware("cart").write(JointCommand("velocity", tuple(speeds), np.array(list(speeds.values()))))
    sim.advance_to(1_200_000_000)
    velocities = []
    for _ in range(round(0.5 / settings.timestep)):
        sim.step()
        truth = sim.ground_truth("cart")
        velocities.append((truth.linear_velocity[0], truth.linear_velocity[1], truth.angular_velocity[2]))
    x, y, rate = np.mean(velocities, axis=0).tolist()
    return x, y, rate


def check_mecanum(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Check the motion of a mecanum cart that only the friction of its wheels moves."""
    checks = []
    for name, axis, twist in (
        ("forward velocity", 0, (0.5, 0.0, 0.0)),
        ("sideways velocity", 1, (0.0, 0.4, 0.0)),
        ("yaw rate", 2, (0.0, 0.0, 0.8)),
    ):
        measured = drive_mecanum_cart(settings, twist)[axis]
        checks.append(
            LawCheck(
                f"{name} of a mecanum cart",
                MECANUM_MOTION,
                twist[axis],
                measured,
                "rad/s" if axis == 2 else "m/s",
            )
        )
    combined_twist = (0.3, -0.2, 0.5)
    combined_velocity = drive_mecanum_cart(settings, combined_twist)
    max_error = max(abs(a - b) for a, b in zip(combined_velocity, combined_twist, strict=True))
    quantity = "largest velocity error of a mecanum cart with a combined twist"
    checks.append(LawCheck(quantity, MECANUM_MOTION, 0.0, max_error, "m/s", scale=0.3))
    return tuple(checks)
