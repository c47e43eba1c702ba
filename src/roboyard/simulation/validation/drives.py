"""Experiments with driven joints: motors, skid steering, and a cart that climbs a wall by friction."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import (
    Axis,
    AxisLimits,
    Box,
    Collision,
    Inertial,
    Joint,
    JointDynamics,
    JointInterface,
    Link,
    Model,
    PlacedModel,
    Sphere,
    Surface,
)
from roboyard.geometry import SE3
from roboyard.geometry.constants import GRAVITY
from roboyard.hardware import JointCommand
from roboyard.physics.settings import PhysicsSettings
from roboyard.simulation.simulation import Simulation
from roboyard.simulation.validation.bodies import RADIUS, make_floor, make_pose, make_simulation
from roboyard.simulation.validation.law_check import Law, LawCheck

MOTOR_STEP_RESPONSE = Law("ω (1 − exp(−t/T))", "first-order lag with T = I/k")
MOTOR_AT_EFFORT_LIMIT = Law("M t/I", "Newton-Euler equation of a flywheel")
MOTOR_WITH_FRICTION = Law("ω k/(k + c)", "balance of the proportional controller's torque and viscous friction")
SKID_RATE = Law("v b/(a² + b²)", "balance of moments of four Coulomb contacts, derived in `skid_rate`")
SKID_TORQUE = Law("μ N r a/√(a² + b²)", "balance of moments of four Coulomb contacts, derived in `skid_rate`")
WALL_CLIMBING = Law("μ r + μ² (r + l) = (1 + μ²) l/2", "statics with Coulomb friction, `min_climbing_friction`")

FLYWHEEL_INERTIA = 0.01
"""Moment of inertia of the motor's load [kg m²]."""
CART_LENGTH, CART_TRACK = 0.3, 0.4
"""Distances between the wheel centers of the skid-steered cart along x and y [m]."""
CART_BODY_MASS, CART_WHEEL_MASS = 8.0, 0.5


def make_flywheel(gain: float, effort: float = math.inf, damping: float = 0.0) -> Model:
    """Return a wheel on a motor whose velocity controller has this gain [N m s/rad] and no integral part."""
    link = Link(
        "wheel",
        SE3.identity(),
        Inertial(1.0, SE3.identity(), (FLYWHEEL_INERTIA, FLYWHEEL_INERTIA, FLYWHEEL_INERTIA, 0.0, 0.0, 0.0)),
    )
    axis = Axis((0.0, 0.0, 1.0), AxisLimits(effort=effort), JointDynamics(damping=damping))
    joint = Joint("axle", "continuous", "world", "wheel", SE3.identity(), SE3.identity(), (axis,))
    parameters = (("vel_kp", str(gain)), ("vel_ki", "0"))
    interface = JointInterface("axle", (("velocity", -1e3, 1e3), ("effort", -1e3, 1e3)), parameters=parameters)
    return Model("motor", (link,), (joint,), interfaces=(interface,))


def record_step_response(
    settings: PhysicsSettings, time_constant: float, target: float
) -> tuple[NDArray[np.float64], ...]:
    """Return times [s] and speeds [rad/s] of a motor with this time constant [s] after a step of its set-point."""
    sim = make_simulation(settings)
    sim.add(make_flywheel(FLYWHEEL_INERTIA / time_constant), "motor")
    command_speed(sim, "motor", target)
    times, speeds = [], []
    while sim.time_ns * 1e-9 < 5.0 * time_constant:
        sim.step()
        times.append(sim.time_ns * 1e-9)
        speeds.append(float(sim.hardware("motor").read().velocity[0]))
    return np.asarray(times), np.asarray(speeds)


def check_motors(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Check the step response of a motor, a motor at its effort limit, and a motor with viscous friction."""
    time_constant, target = 0.1, 10.0
    times, speeds = record_step_response(settings, time_constant, target)
    checks = [
        LawCheck(
            f"speed of a motor {multiple:g} time constants after a step",
            MOTOR_STEP_RESPONSE,
            target * -math.expm1(-multiple),
            float(np.interp(multiple * time_constant, times, speeds)),
            "rad/s",
            target,
        )
        for multiple in (0.5, 1.0, 2.0, 4.0)
    ]
    sim = make_simulation(settings)
    sim.add(make_flywheel(10.0, effort=0.2), "motor")
    command_speed(sim, "motor", 1e3)
    sim.advance_to(1_000_000_000)
    speed = float(sim.hardware("motor").read().velocity[0])
    quantity = "speed of a motor at its effort limit after 1 s"
    checks.append(LawCheck(quantity, MOTOR_AT_EFFORT_LIMIT, 0.2 / FLYWHEEL_INERTIA, speed, "rad/s"))
    sim = make_simulation(settings)
    sim.add(make_flywheel(0.5, damping=0.1), "motor")
    command_speed(sim, "motor", target)
    sim.advance_to(2_000_000_000)
    speed = float(sim.hardware("motor").read().velocity[0])
    expected_speed = target * 0.5 / (0.5 + 0.1)
    checks.append(
        LawCheck("speed of a motor with viscous friction", MOTOR_WITH_FRICTION, expected_speed, speed, "rad/s")
    )
    return tuple(checks)


def make_cart(friction: float, length: float = CART_LENGTH) -> Model:
    """Return a cart on four driven balls, each of which touches the ground at one point."""
    surface = Surface(friction=friction)
    base_moments = (0.1, 0.1, 0.2)
    links = [Link("base", SE3.identity(), Inertial(CART_BODY_MASS, SE3.identity(), (*base_moments, 0.0, 0.0, 0.0)))]
    joints, interfaces = [], []
    moment = 0.4 * CART_WHEEL_MASS * RADIUS**2
    for end, x in (("front", length / 2), ("rear", -length / 2)):
        for side, y in (("left", CART_TRACK / 2), ("right", -CART_TRACK / 2)):
            name = f"{end}_{side}"
            inertial = Inertial(CART_WHEEL_MASS, SE3.identity(), (moment, moment, moment, 0.0, 0.0, 0.0))
            links.append(
                Link(name, make_pose(x, y), inertial, (Collision("tyre", Sphere(RADIUS), SE3.identity(), surface),))
            )
            axis = Axis((0.0, 1.0, 0.0), AxisLimits(effort=100.0))
            joints.append(Joint(f"{name}_axle", "continuous", "base", name, make_pose(x, y), SE3.identity(), (axis,)))
            interfaces.append(JointInterface(f"{name}_axle", (("velocity", -50.0, 50.0),)))
    return Model("cart", tuple(links), tuple(joints), interfaces=tuple(interfaces))


def measure_spot_rotation(
    settings: PhysicsSettings, wheel_speed: float, friction: float, length: float = CART_LENGTH
) -> tuple[float, float]:
    """Return the steady yaw rate [rad/s] of a cart that turns on the spot, and the torque of a wheel [N m]."""
    sim = make_simulation(settings, make_floor(friction))
    sim.add(make_cart(friction=2.0, length=length), "cart", make_pose(z=RADIUS))
    names = sim.hardware("cart").joint_names
    speeds = np.array([-wheel_speed if "left" in name else wheel_speed for name in names])
    sim.advance_to(200_000_000)
    sim.hardware("cart").write(JointCommand("velocity", names, speeds))
    sim.advance_to(2_000_000_000)
    start, rates, efforts = sim.time_ns, [], []
    while sim.time_ns - start < 1_000_000_000:
        sim.step()
        rates.append(float(sim.ground_truth("cart").angular_velocity[2]))
        efforts.append(float(np.mean(np.abs(sim.hardware("cart").read().effort))))
    return float(np.mean(rates)), float(np.mean(efforts))


def skid_rate(wheel_speed: float, length: float = CART_LENGTH) -> float:
    """Return the yaw rate at which the moments of four sliding contacts cancel, by `SKID_RATE`, for any μ [rad/s].

    Each contact slides; its force opposes its slip.  With wheels at ``(±a, ±b)`` and surface speed ``v``, the slip of
    the right front one is ``(v - ω b, ω a)``, and the moments cancel when ``v b = ω (a² + b²)``.
    """
    a, b = length / 2, CART_TRACK / 2
    return wheel_speed * RADIUS * b / (a * a + b * b)


def skid_torque(friction: float, length: float = CART_LENGTH) -> float:
    """Return the torque of each wheel at that rate by `SKID_TORQUE` [N m]."""
    load = (CART_BODY_MASS + 4 * CART_WHEEL_MASS) * GRAVITY / 4
    return friction * load * RADIUS * length / math.hypot(length, CART_TRACK)


def check_skid_steering(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Check a skid-steered cart that turns on the spot."""
    checks = []
    for mu, speed in ((0.3, 5.0), (0.7, 10.0)):
        rate, torque = measure_spot_rotation(settings, speed, mu)
        description = f"wheels at {speed:g} rad/s, μ = {mu}"
        checks += [
            LawCheck(
                f"yaw rate of a skid-steered cart on the spot, {description}",
                SKID_RATE,
                skid_rate(speed),
                rate,
                "rad/s",
            ),
            LawCheck(
                f"torque of each wheel of a skid-steered cart, {description}",
                SKID_TORQUE,
                skid_torque(mu),
                torque,
                "N m",
            ),
        ]
    return tuple(checks)


def command_speed(sim: Simulation, name: str, speed: float) -> None:
    """Command the speed of all joints of a model [rad/s]."""
    hardware = sim.hardware(name)
    joints = hardware.joint_names
    hardware.write(JointCommand("velocity", joints, np.full(len(joints), speed)))


CLIMBING_WHEEL_SPEED = 0.2
"""Speed of the wheels [rad/s]; their acceleration does not lift the cart, and they skid while it stands at the wall."""
N_BISECTIONS = 7


def can_climb_wall(settings: PhysicsSettings, friction: float) -> bool:
    """Return whether a cart lifts its front wheels up a wall within 4 s, with this friction coefficient everywhere."""
    link = Link(
        "wall", SE3.identity(), collisions=(Collision("wall", Box((0.2, 4.0, 2.0)), SE3.identity(), Surface(friction)),)
    )
    wall = PlacedModel(
        "wall", Model("wall", (link,), static=True), make_pose(x=0.5 * CART_LENGTH + RADIUS + 0.1, z=1.0)
    )
    sim = make_simulation(settings, make_floor(friction), wall)
    sim.add(make_cart(friction=2.0), "cart", make_pose(z=RADIUS))
    names = sim.hardware("cart").joint_names
    sim.hardware("cart").write(JointCommand("velocity", names, np.full(len(names), CLIMBING_WHEEL_SPEED)))
    while sim.time_ns < 4_000_000_000:
        sim.step(25)
        if -sim.ground_truth("cart").T_world_base.rotation_matrix()[2, 0] < -0.1:  # the front of the cart points up
            return True
    return False


def min_climbing_friction() -> float:
    """Return the friction coefficient from which the cart climbs, by `WALL_CLIMBING`.

    The front wheels have just left the floor.  The rear wheels push with ``μ N``, and so does the wall, whose friction
    lifts the front wheels with ``μ² N``; the weight is ``N (1 + μ²)``.  The moments about the contacts of the rear
    wheels cancel when ``μ r + μ² (r + l) = (1 + μ²) l/2``.
    """
    quadratic, linear, constant = RADIUS + 0.5 * CART_LENGTH, RADIUS, -0.5 * CART_LENGTH
    return (-linear + math.sqrt(linear * linear - 4.0 * quadratic * constant)) / (2.0 * quadratic)


def check_wall_climbing(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Check the smallest friction coefficient with which a cart climbs a wall, by bisection."""
    low, high = 0.4, 0.8
    for _ in range(N_BISECTIONS):
        midpoint = 0.5 * (low + high)
        low, high = (low, midpoint) if can_climb_wall(settings, midpoint) else (midpoint, high)
    quantity = "smallest friction coefficient with which a four-wheel cart climbs a wall"
    measured = 0.5 * (low + high)
    return (LawCheck(quantity, WALL_CLIMBING, min_climbing_friction(), measured, "", tolerance=0.02),)
