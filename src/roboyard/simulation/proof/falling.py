"""Free fall and what swings: pendulum, spring, energy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import Axis, Inertial, Joint, JointDynamics, JointType, Link, Model
from roboyard.geometry import SE3
from roboyard.geometry.constants import GRAVITY
from roboyard.simulation.engine import Simulation
from roboyard.simulation.proof.bodies import MASS, at, ball, simulation, velocity
from roboyard.simulation.proof.check import BOUND, Check, first_order
from roboyard.simulation.settings import PhysicsSettings

LENGTH = 0.5
"""Of a pendulum's rod, pivot to mass [m]."""
STIFFNESS, DAMPING = 80.0, 0.8
"""Of the spring [N/m, N s/m]."""


def pendulum(mass_moment: float = 0.002, links: int = 1) -> Model:
    """Rods that hang one on the other, each with its mass `LENGTH` below its pivot; swings about y."""
    made, joints = [], []
    for number in range(links):
        name, parent = f"rod{number}", f"rod{number - 1}" if number else "world"
        below = Inertial(MASS, at(z=-LENGTH), (mass_moment, mass_moment, mass_moment, 0.0, 0.0, 0.0))
        made.append(Link(name, at(z=-LENGTH * number), below))
        T_parent_rod = at(z=-LENGTH) if number else SE3.identity()
        joints.append(_joint(f"pivot{number}", "continuous", parent, name, T_parent_rod, (0.0, 1.0, 0.0)))
    return Model("pendulum", tuple(made), tuple(joints))


def period(amplitude: float, moment: float = 0.002) -> float:
    """Period of a pendulum [s] at any ``amplitude`` [rad]: the complete elliptic integral."""
    from scipy.special import ellipk

    total = MASS * LENGTH**2 + moment
    return float(4.0 * math.sqrt(total / (MASS * GRAVITY * LENGTH)) * ellipk(math.sin(amplitude / 2.0) ** 2))


def swing(settings: PhysicsSettings, amplitude: float, swings: int = 5) -> float:
    """Measured period of a pendulum let go at ``amplitude`` [rad]: the mean of ``swings``."""
    sim = simulation(settings)
    sim.add(pendulum(), "pendulum")
    sim.data.qpos[0] = amplitude
    sim.step(0)
    return mean_period(sim, swings, 60.0)


def mean_period(sim: Simulation, swings: int, longest: float) -> float:
    """Time between crossings of zero of the first joint, of ``swings`` full ones; infinite after ``longest`` [s]."""
    dt = sim.timestep_ns * 1e-9
    crossings: list[float] = []
    before = float(sim.data.qpos[0])
    while len(crossings) <= 2 * swings and sim.time_ns * 1e-9 < longest:
        sim.step()
        now = float(sim.data.qpos[0])
        if before * now < 0.0:
            crossings.append(sim.time_ns * 1e-9 - dt * now / (now - before))
        before = now
    return (crossings[-1] - crossings[0]) / swings if len(crossings) > 2 * swings else math.inf


def free_fall(settings: PhysicsSettings) -> tuple[Check, ...]:
    """A ball falls and is thrown."""
    sim = simulation(settings)
    sim.add(ball(), "body", at(z=100.0))
    sim.data.qvel[:3] = 3.0, 0.0, 5.0
    sim.advance_to(1_000_000_000)
    t = sim.time_ns * 1e-9
    pose = sim.truth("body").T_world_base
    return (
        Check("speed after 1 s of fall", "v₀ − g t", 5.0 - GRAVITY * t, velocity(sim)[2], "m/s"),
        Check("height lost by then", "g t²/2 − v₀ t", 0.5 * GRAVITY * t * t - 5.0 * t, 100.0 - pose.z, "m", 4.905),
        Check("way of a throw meanwhile", "v t", 3.0 * t, pose.x, "m"),
    )


def pendulums(settings: PhysicsSettings) -> tuple[Check, ...]:
    """Periods from small swings to nearly upside down."""
    return tuple(
        Check(
            f"period of a pendulum at {degrees}°",
            "4 √(I/(m g l)) K(sin²(θ/2))",
            period(angle),
            swing(settings, angle),
            "s",
        )
        for degrees in (5, 45, 90, 150, 175)
        for angle in (math.radians(degrees),)
    )


def spring(settings: PhysicsSettings) -> tuple[Check, ...]:
    """A mass on a damped spring."""
    sim = simulation(settings, gravity=(0.0, 0.0, 0.0))
    link = Link("mass", SE3.identity(), Inertial(MASS, SE3.identity(), (0.01, 0.01, 0.01, 0.0, 0.0, 0.0)))
    dynamics = JointDynamics(damping=DAMPING, stiffness=STIFFNESS)
    joint = _joint("slide", "prismatic", "world", "mass", SE3.identity(), (0.0, 0.0, 1.0), dynamics)
    sim.add(Model("spring", (link,), (joint,)), "spring")
    sim.data.qpos[0] = 0.3
    heights = []
    for _ in range(round(3.0 / settings.timestep)):
        sim.step()
        heights.append(float(sim.data.qpos[0]))
    decay = DAMPING / (2.0 * MASS)
    circular = math.sqrt(STIFFNESS / MASS - decay**2)
    found = np.asarray(heights)
    tops = [i for i in range(1, len(found) - 1) if found[i - 1] < found[i] >= found[i + 1] and found[i] > 0.0]
    measured = (tops[-1] - tops[0]) * settings.timestep / (len(tops) - 1)
    fade = math.log(found[tops[0]] / found[tops[-1]]) / ((tops[-1] - tops[0]) * settings.timestep)
    return (
        Check("period of a damped spring", "2π/√(k/m − δ²)", 2.0 * math.pi / circular, measured, "s"),
        Check("its decay", "δ = c/(2 m)", decay, fade, "1/s", bound=0.02),
    )


def energy(settings: PhysicsSettings) -> tuple[Check, ...]:
    """What 10 s of swinging do to the energy; the double pendulum is chaotic, its energy is not."""
    checks = []
    for links, name, bound in ((1, "pendulum", BOUND), (2, "double pendulum", first_order(settings, 0.005))):
        sim = simulation(settings)
        sim.add(pendulum(links=links), "pendulum")
        sim.data.qpos[:links] = 2.0
        course = energies(sim, 10.0)
        span = links * (links + 1) * MASS * GRAVITY * LENGTH  # from hanging to standing
        worst = float(course[np.argmax(np.abs(course - course[0]))] - course[0])
        checks.append(Check(f"energy of a {name} over 10 s", "constant", 0.0, worst, "J", span, bound))
    return tuple(checks)


def energies(sim: Simulation, seconds: float) -> NDArray[np.float64]:
    """Kinetic and potential energy [J] at every step."""
    import mujoco

    sim.step()  # positions that were set by hand are evaluated by a step
    course = []
    while sim.time_ns * 1e-9 < seconds:
        mujoco.mj_energyPos(sim.model, sim.data)
        mujoco.mj_energyVel(sim.model, sim.data)
        course.append(float(sim.data.energy.sum()))
        sim.step()
    return np.asarray(course)


def _joint(
    name: str,
    kind: JointType,
    parent: str,
    child: str,
    T_parent_child: SE3,
    axis: tuple[float, float, float],
    dynamics: JointDynamics = JointDynamics(),  # noqa: B008
) -> Joint:
    return Joint(name, kind, parent, child, T_parent_child, SE3.identity(), (Axis(axis, dynamics=dynamics),))
