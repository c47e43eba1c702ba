"""What drives: motors on their joints, and four wheels that skid round their own centre."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import (
    Axis,
    AxisLimits,
    Collision,
    Inertial,
    Joint,
    JointDynamics,
    JointInterface,
    Link,
    Model,
    Sphere,
    Surface,
)
from roboyard.geometry import SE3
from roboyard.geometry.constants import GRAVITY
from roboyard.hardware import JointCommand
from roboyard.simulation.engine import Simulation
from roboyard.simulation.proof.bodies import RADIUS, at, floor, simulation
from roboyard.simulation.proof.check import Check
from roboyard.simulation.settings import PhysicsSettings

MOMENT = 0.01
"""Of the motor's load [kg m²]."""
LENGTH, TRACK = 0.3, 0.4
"""Between the wheels of the skid-steered cart [m]."""
BODY_MASS, WHEEL_MASS = 8.0, 0.5


def flywheel(gain: float, effort: float = math.inf, damping: float = 0.0) -> Model:
    """A wheel on a motor whose velocity loop has this gain [N m s/rad] and no integral."""
    link = Link("wheel", SE3.identity(), Inertial(1.0, SE3.identity(), (MOMENT, MOMENT, MOMENT, 0.0, 0.0, 0.0)))
    axis = Axis((0.0, 0.0, 1.0), AxisLimits(effort=effort), JointDynamics(damping=damping))
    joint = Joint("axle", "continuous", "world", "wheel", SE3.identity(), SE3.identity(), (axis,))
    parameters = (("vel_kp", str(gain)), ("vel_ki", "0"))
    interface = JointInterface("axle", (("velocity", -1e3, 1e3), ("effort", -1e3, 1e3)), parameters=parameters)
    return Model("motor", (link,), (joint,), interfaces=(interface,))


def step_response(settings: PhysicsSettings, constant: float, target: float) -> tuple[NDArray[np.float64], ...]:
    """Times [s] and speeds [rad/s] after a step of the set-point; the motor's time constant is ``constant`` [s]."""
    sim = simulation(settings)
    sim.add(flywheel(MOMENT / constant), "motor")
    command(sim, "motor", target)
    times, speeds = [], []
    while sim.time_ns * 1e-9 < 5.0 * constant:
        sim.step()
        times.append(sim.time_ns * 1e-9)
        speeds.append(float(sim.hardware("motor").read().velocity[0]))
    return np.asarray(times), np.asarray(speeds)


def motors(settings: PhysicsSettings) -> tuple[Check, ...]:
    """A first-order lag, a motor at its limit, and one against friction."""
    constant, target = 0.1, 10.0
    times, speeds = step_response(settings, constant, target)
    checks = [
        Check(
            f"speed of a motor {multiple:g} time constants after a step",
            "ω (1 − exp(−t/T))",
            target * -math.expm1(-multiple),
            float(np.interp(multiple * constant, times, speeds)),
            "rad/s",
            target,
        )
        for multiple in (0.5, 1.0, 2.0, 4.0)
    ]
    sim = simulation(settings)
    sim.add(flywheel(10.0, effort=0.2), "motor")
    command(sim, "motor", 1e3)
    sim.advance_to(1_000_000_000)
    speed = float(sim.hardware("motor").read().velocity[0])
    checks.append(Check("speed of a motor at its limit after 1 s", "M t/I", 0.2 / MOMENT, speed, "rad/s"))
    sim = simulation(settings)
    sim.add(flywheel(0.5, damping=0.1), "motor")
    command(sim, "motor", target)
    sim.advance_to(2_000_000_000)
    speed = float(sim.hardware("motor").read().velocity[0])
    held = target * 0.5 / (0.5 + 0.1)
    checks.append(Check("speed against viscous friction", "ω k/(k + c)", held, speed, "rad/s"))
    return tuple(checks)


def cart(friction: float, length: float = LENGTH) -> Model:
    """A square-built cart on four driven wheels that touch the ground at one point each (balls)."""
    surface = Surface(friction=friction)
    base_moments = (0.1, 0.1, 0.2)
    links = [Link("base", SE3.identity(), Inertial(BODY_MASS, SE3.identity(), (*base_moments, 0.0, 0.0, 0.0)))]
    joints, interfaces = [], []
    moment = 0.4 * WHEEL_MASS * RADIUS**2
    for end, x in (("front", length / 2), ("rear", -length / 2)):
        for side, y in (("left", TRACK / 2), ("right", -TRACK / 2)):
            name = f"{end}_{side}"
            inertial = Inertial(WHEEL_MASS, SE3.identity(), (moment, moment, moment, 0.0, 0.0, 0.0))
            links.append(Link(name, at(x, y), inertial, (Collision("tyre", Sphere(RADIUS), SE3.identity(), surface),)))
            axis = Axis((0.0, 1.0, 0.0), AxisLimits(effort=100.0))
            joints.append(Joint(f"{name}_axle", "continuous", "base", name, at(x, y), SE3.identity(), (axis,)))
            interfaces.append(JointInterface(f"{name}_axle", (("velocity", -50.0, 50.0),)))
    return Model("cart", tuple(links), tuple(joints), interfaces=tuple(interfaces))


def turn_on_the_spot(
    settings: PhysicsSettings, wheel_speed: float, friction: float, length: float = LENGTH
) -> tuple[float, float]:
    """Steady rate [rad/s] of a cart whose sides turn against each other, and the torque of one wheel [N m]."""
    sim = simulation(settings, floor(friction))
    sim.add(cart(friction=2.0, length=length), "cart", at(z=RADIUS))
    names = sim.hardware("cart").joint_names
    speeds = np.array([-wheel_speed if "left" in name else wheel_speed for name in names])
    sim.advance_to(200_000_000)
    sim.hardware("cart").write(JointCommand("velocity", names, speeds))
    sim.advance_to(2_000_000_000)
    start, rates, efforts = sim.time_ns, [], []
    while sim.time_ns - start < 1_000_000_000:
        sim.step()
        rates.append(float(sim.truth("cart").angular_velocity[2]))
        efforts.append(float(np.mean(np.abs(sim.hardware("cart").read().effort))))
    return float(np.mean(rates)), float(np.mean(efforts))


def skid_rate(wheel_speed: float, length: float = LENGTH) -> float:
    """Rate at which the friction of four points leaves no moment [rad/s]: ``v b/(a² + b²)``, for any friction.

    Each contact slides; its force opposes its slip.  With wheels at ``(±a, ±b)`` and surface speed ``v``, the slip of
    the right front one is ``(v - ω b, ω a)``, and the moments cancel when ``v b = ω (a² + b²)``.
    """
    a, b = length / 2, TRACK / 2
    return wheel_speed * RADIUS * b / (a * a + b * b)


def skid_torque(friction: float, length: float = LENGTH) -> float:
    """Torque of each wheel at that rate [N m]: ``μ N r a/√(a² + b²)``."""
    load = (BODY_MASS + 4 * WHEEL_MASS) * GRAVITY / 4
    return friction * load * RADIUS * length / math.hypot(length, TRACK)


def skidding(settings: PhysicsSettings) -> tuple[Check, ...]:
    """Turning on the spot by skidding."""
    checks = []
    for mu, speed in ((0.3, 5.0), (0.7, 10.0)):
        rate, torque = turn_on_the_spot(settings, speed, mu)
        about = f"wheels at {speed:g} rad/s, μ = {mu}"
        checks += [
            Check(
                f"rate of a skid-steered cart on the spot, {about}", "v b/(a² + b²)", skid_rate(speed), rate, "rad/s"
            ),
            Check(f"torque of each of its wheels, {about}", "μ N r a/√(a² + b²)", skid_torque(mu), torque, "N m"),
        ]
    return tuple(checks)


def command(sim: Simulation, name: str, speed: float) -> None:
    """Set every joint's speed [rad/s]."""
    hardware = sim.hardware(name)
    joints = hardware.joint_names
    hardware.write(JointCommand("velocity", joints, np.full(len(joints), speed)))
