"""Experiments of rigid-body mechanics: free fall, pendulums, springs, gyroscopes, free rotation and impacts.

Also impacts on people: the peak force is ``v √(k m)``, with the relative speed ``v``, the stiffness ``k`` of the body
region and the reduced mass ``m`` of both bodies (the energy model of ISO/TS 15066, annex A).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import Axis, Collision, Inertial, Joint, JointDynamics, JointType, Link, Model, World
from roboyard.description.shapes import Sphere
from roboyard.errors import InputError
from roboyard.geometry import SE3, wrap_angle
from roboyard.geometry.constants import GRAVITY
from roboyard.people.body import PersonModel, region_name
from roboyard.people.skeleton import segment_name
from roboyard.physics.settings import PhysicsSettings
from roboyard.simulation.simulation import ModelOptions, Simulation
from roboyard.simulation.validation.bodies import (
    MASS,
    RADIUS,
    make_ball,
    make_floor,
    make_free_body,
    make_pose,
    make_simulation,
    set_velocity,
    world_linear_velocity,
)
from roboyard.simulation.validation.law_check import DEFAULT_TOLERANCE, Law, LawCheck, step_tolerance

_NEWTON = "Newton's second law with constant gravity"
FALL_VELOCITY = Law("v₀ − g t", _NEWTON)
FALL_HEIGHT = Law("g t²/2 − v₀ t", _NEWTON)
UNIFORM_MOTION = Law("v t", "Newton's first law")
PENDULUM_PERIOD = Law("4 √(I/(m g l)) K(sin²(θ/2))", "Landau and Lifshitz, Mechanics, § 11, problem 1")
SPRING_PERIOD = Law("2π/√(k/m − δ²)", "Landau and Lifshitz, Mechanics, § 25")
SPRING_DECAY = Law("δ = c/(2 m)", "Landau and Lifshitz, Mechanics, § 25")
ENERGY_CONSERVATION = Law("E = constant", "conservation of energy")
PRECESSION = Law("m g l/(I ω)", "Goldstein, Poole and Safko, Classical Mechanics, 3rd ed., § 5.7")
STEADY_PRECESSION = Law("θ = constant", "Goldstein, Poole and Safko, Classical Mechanics, 3rd ed., § 5.7")
FREE_PRECESSION = Law("(I₃ − I₁)/I₁ ω₃", "Goldstein, Poole and Safko, Classical Mechanics, 3rd ed., § 5.6")
ANGULAR_MOMENTUM_CONSERVATION = Law("L = constant", "conservation of angular momentum")
ROTATION_ENERGY = Law("Σ Iᵢ ωᵢ²/2 = constant", "conservation of energy")
MOMENTUM_CONSERVATION = Law("m₁ v", "conservation of momentum")
IMPACT_SPEED_RATIO = Law("(1 + e) v m₁/(m₁ + m₂)", "Newton's law of restitution")
RESTITUTION = Law("e = v′/v", "Newton's law of restitution")
REBOUND_HEIGHT = Law("e² h", "Newton's law of restitution and conservation of energy")
PENDULUM_LENGTH = 0.5
"""Distance from a pendulum's pivot to its mass [m]."""
SPRING_STIFFNESS, SPRING_DAMPING = 80.0, 0.8
"""Stiffness and damping of the spring [N/m, N s/m]."""


def make_pendulum(mass_moment: float = 0.002, n_links: int = 1) -> Model:
    """Return a chain of rods that swing about y, each with its mass `PENDULUM_LENGTH` below its pivot."""
    rods, joints = [], []
    for number in range(n_links):
        name, parent = f"rod{number}", f"rod{number - 1}" if number else "world"
        inertial = Inertial(MASS, make_pose(z=-PENDULUM_LENGTH), (mass_moment, mass_moment, mass_moment, 0.0, 0.0, 0.0))
        rods.append(Link(name, make_pose(z=-PENDULUM_LENGTH * number), inertial))
        T_parent_rod = make_pose(z=-PENDULUM_LENGTH) if number else SE3.identity()
        joints.append(_make_joint(f"pivot{number}", "continuous", parent, name, T_parent_rod, (0.0, 1.0, 0.0)))
    return Model("pendulum", tuple(rods), tuple(joints))


def pendulum_period(amplitude: float, moment: float = 0.002) -> float:
    """Return the period of a pendulum with any ``amplitude`` [rad] by `PENDULUM_PERIOD` [s]."""
    from scipy.special import ellipk

    inertia = MASS * PENDULUM_LENGTH**2 + moment
    return float(4.0 * math.sqrt(inertia / (MASS * GRAVITY * PENDULUM_LENGTH)) * ellipk(math.sin(amplitude / 2.0) ** 2))


def measure_pendulum_period(settings: PhysicsSettings, amplitude: float, n_periods: int = 5) -> float:
    """Return the simulated period of a pendulum with this ``amplitude`` [rad], the mean of ``n_periods`` [s]."""
    sim = make_simulation(settings)
    sim.add(make_pendulum(), "pendulum")
    sim.world.data.qpos[0] = amplitude
    sim.step(0)
    return measure_mean_period(sim, n_periods, 60.0)


def measure_mean_period(sim: Simulation, n_periods: int, max_duration: float) -> float:
    """Return the mean of ``n_periods`` periods of the first joint, between its zero crossings [s].

    Infinite if they take longer than ``max_duration`` [s].
    """
    dt = sim.timestep_ns * 1e-9
    crossings: list[float] = []
    previous_position = float(sim.world.data.qpos[0])
    while len(crossings) <= 2 * n_periods and sim.time_ns * 1e-9 < max_duration:
        sim.step()
        position = float(sim.world.data.qpos[0])
        if previous_position * position < 0.0:
            crossings.append(sim.time_ns * 1e-9 - dt * position / (position - previous_position))
        previous_position = position
    return (crossings[-1] - crossings[0]) / n_periods if len(crossings) > 2 * n_periods else math.inf


def check_free_fall(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Check velocity, height and distance of a ball that is thrown upwards and forwards."""
    sim = make_simulation(settings)
    sim.add(make_ball(), "body", make_pose(z=100.0))
    sim.world.data.qvel[:3] = 3.0, 0.0, 5.0
    sim.advance_to(1_000_000_000)
    t = sim.time_ns * 1e-9
    pose = sim.ground_truth("body").T_world_base
    return (
        LawCheck(
            "vertical velocity 1 s after a throw",
            FALL_VELOCITY,
            5.0 - GRAVITY * t,
            world_linear_velocity(sim)[2],
            "m/s",
        ),
        LawCheck(
            "height lost in 1 s of a throw",
            FALL_HEIGHT,
            0.5 * GRAVITY * t * t - 5.0 * t,
            100.0 - pose.z,
            "m",
            scale=4.905,
        ),
        LawCheck("horizontal distance of a throw in 1 s", UNIFORM_MOTION, 3.0 * t, pose.x, "m"),
    )


def check_pendulums(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Check the period of a pendulum from small amplitudes to nearly 180°."""
    return tuple(
        LawCheck(
            f"period of a pendulum with amplitude {degrees}°",
            PENDULUM_PERIOD,
            pendulum_period(angle),
            measure_pendulum_period(settings, angle),
            "s",
        )
        for degrees in (5, 45, 90, 150, 175)
        for angle in (math.radians(degrees),)
    )


def check_spring(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Check period and decay rate of a mass on a damped spring."""
    sim = make_simulation(settings, gravity=(0.0, 0.0, 0.0))
    link = Link("mass", SE3.identity(), Inertial(MASS, SE3.identity(), (0.01, 0.01, 0.01, 0.0, 0.0, 0.0)))
    dynamics = JointDynamics(damping=SPRING_DAMPING, stiffness=SPRING_STIFFNESS)
    joint = _make_joint("slide", "prismatic", "world", "mass", SE3.identity(), (0.0, 0.0, 1.0), dynamics)
    sim.add(Model("spring", (link,), (joint,)), "spring")
    sim.world.data.qpos[0] = 0.3
    heights = []
    for _ in range(round(3.0 / settings.timestep)):
        sim.step()
        heights.append(float(sim.world.data.qpos[0]))
    decay = SPRING_DAMPING / (2.0 * MASS)
    angular_frequency = math.sqrt(SPRING_STIFFNESS / MASS - decay**2)
    positions = np.asarray(heights)
    maxima = [
        i
        for i in range(1, len(positions) - 1)
        if positions[i - 1] < positions[i] >= positions[i + 1] and positions[i] > 0.0
    ]
    measured = (maxima[-1] - maxima[0]) * settings.timestep / (len(maxima) - 1)
    measured_decay = math.log(positions[maxima[0]] / positions[maxima[-1]]) / (
        (maxima[-1] - maxima[0]) * settings.timestep
    )
    return (
        LawCheck(
            "period of a mass on a damped spring", SPRING_PERIOD, 2.0 * math.pi / angular_frequency, measured, "s"
        ),
        LawCheck("decay rate of a mass on a damped spring", SPRING_DECAY, decay, measured_decay, "1/s", tolerance=0.02),
    )


def check_pendulum_energy(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Check that pendulums keep their energy for 10 s; a double pendulum is chaotic, but its energy is constant."""
    checks = []
    for links, name, tolerance in (
        (1, "pendulum", DEFAULT_TOLERANCE),
        (2, "double pendulum", step_tolerance(settings, 0.005)),
    ):
        sim = make_simulation(settings)
        sim.add(make_pendulum(n_links=links), "pendulum")
        sim.world.data.qpos[:links] = 2.0
        energy_values = record_energy(sim, 10.0)
        energy_range = links * (links + 1) * MASS * GRAVITY * PENDULUM_LENGTH  # between hanging and standing upright
        max_change = float(energy_values[np.argmax(np.abs(energy_values - energy_values[0]))] - energy_values[0])
        quantity = f"largest change of energy of a {name} in 10 s"
        checks.append(LawCheck(quantity, ENERGY_CONSERVATION, 0.0, max_change, "J", energy_range, tolerance))
    return tuple(checks)


def record_energy(sim: Simulation, duration: float) -> NDArray[np.float64]:
    """Return the sum of kinetic and potential energy at every step [J]."""
    import mujoco

    sim.step()  # evaluates the positions that the caller has set
    energy_values = []
    while sim.time_ns * 1e-9 < duration:
        mujoco.mj_energyPos(sim.world.model, sim.world.data)
        mujoco.mj_energyVel(sim.world.model, sim.world.data)
        energy_values.append(float(sim.world.data.energy.sum()))
        sim.step()
    return np.asarray(energy_values)


def _make_joint(
    name: str,
    kind: JointType,
    parent: str,
    child: str,
    T_parent_child: SE3,
    axis: tuple[float, float, float],
    dynamics: JointDynamics = JointDynamics(),  # noqa: B008
) -> Joint:
    return Joint(name, kind, parent, child, T_parent_child, SE3.identity(), (Axis(axis, dynamics=dynamics),))


GYROSCOPE_ARM, GYROSCOPE_AXIAL_INERTIA, GYROSCOPE_TRANSVERSE_INERTIA = 0.1, 0.0225, 0.012
"""Distance from pivot to center of mass [m], and moments of inertia about and across the axis [kg m²]."""


def measure_precession(settings: PhysicsSettings, spin: float, duration: float = 2.0) -> tuple[float, float]:
    """Return the precession rate of a gyroscope with a level axis [rad/s], and the angle by which its axis sinks [rad].

    A ball joint holds one end of the axis.  The gyroscope starts with steady precession, so that it does not nutate.
    """
    sim = make_simulation(settings)
    inertial = Inertial(
        MASS,
        make_pose(x=GYROSCOPE_ARM),
        (GYROSCOPE_AXIAL_INERTIA, GYROSCOPE_TRANSVERSE_INERTIA, GYROSCOPE_TRANSVERSE_INERTIA, 0.0, 0.0, 0.0),
    )
    link = Link("rotor", SE3.identity(), inertial)
    joint = Joint("pivot", "ball", "world", "rotor", SE3.identity(), SE3.identity())
    sim.add(Model("gyroscope", (link,), (joint,)), "gyroscope")
    sim.world.data.qvel[:] = spin, 0.0, steady_precession_rate(spin)
    rotation_angle = 0.0
    previous_angle = 0.0
    while sim.time_ns * 1e-9 < duration:
        sim.step()
        axis = rotor_axis(sim)
        angle = math.atan2(axis[1], axis[0])
        rotation_angle += wrap_angle(angle - previous_angle)
        previous_angle = angle
    return rotation_angle / (sim.time_ns * 1e-9), -math.asin(float(rotor_axis(sim)[2]))


def rotor_axis(sim: Simulation) -> NDArray[np.float64]:
    """Return the direction of the rotor's axis in the world."""
    return sim.ground_truth("gyroscope").T_world_base.rotation_matrix()[:, 0]


def steady_precession_rate(spin: float) -> float:
    """Return the rate of steady precession with a level axis by `PRECESSION` [rad/s]; exact."""
    return MASS * GRAVITY * GYROSCOPE_ARM / (GYROSCOPE_AXIAL_INERTIA * spin)


def check_gyroscopes(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Check the precession of a gyroscope under gravity."""
    checks = []
    for spin in (20.0, 60.0, 150.0):
        rate, sink_angle = measure_precession(settings, spin)
        checks += [
            LawCheck(
                f"precession rate of a gyroscope that spins at {spin:g} rad/s",
                PRECESSION,
                steady_precession_rate(spin),
                rate,
                "rad/s",
            ),
            LawCheck(
                f"angle by which the axis of a gyroscope sinks in 2 s, at {spin:g} rad/s",
                STEADY_PRECESSION,
                0.0,
                sink_angle,
                "rad",
                scale=math.pi / 2.0,
            ),
        ]
    return tuple(checks)


def check_free_rotation(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Check the free precession of a symmetric body, and momentum and energy of a tumbling body."""
    axial_inertia, transverse_inertia, spin, tilt = 0.03, 0.02, 5.0, 1.0
    sim = make_simulation(settings, gravity=(0.0, 0.0, 0.0))
    sim.add(make_free_body(None, (transverse_inertia, transverse_inertia, axial_inertia)), "body")
    set_velocity(sim, body_angular=(tilt, 0.0, spin))
    rotation_angle, previous_angle = 0.0, 0.0
    while sim.time_ns < 2_000_000_000:
        sim.step()
        angle = math.atan2(sim.world.data.qvel[4], sim.world.data.qvel[3])
        rotation_angle += wrap_angle(angle - previous_angle)
        previous_angle = angle
    rate = (axial_inertia - transverse_inertia) / transverse_inertia * spin
    tumbling = make_simulation(settings, gravity=(0.0, 0.0, 0.0))
    moments = np.array([0.02, 0.03, 0.04])
    tumbling.add(make_free_body(None, (0.02, 0.03, 0.04)), "body")
    set_velocity(tumbling, body_angular=(1.0, 2.0, 3.0))
    tumbling.step()
    start, energy = (
        _angular_momentum(tumbling, moments),
        0.5 * float(moments @ np.square(tumbling.world.data.qvel[3:6])),
    )
    tumbling.advance_to(10_000_000_000)
    change = float(np.linalg.norm(_angular_momentum(tumbling, moments) - start))
    kinetic = 0.5 * float(moments @ np.square(tumbling.world.data.qvel[3:6]))
    return (
        LawCheck("free precession rate of a symmetric body", FREE_PRECESSION, rate, rotation_angle / 2.0, "rad/s"),
        LawCheck(
            "change of a tumbling body's angular momentum in 10 s",
            ANGULAR_MOMENTUM_CONSERVATION,
            0.0,
            change,
            "kg m²/s",
            float(np.linalg.norm(start)),
        ),
        LawCheck("energy of a tumbling body after 10 s", ROTATION_ENERGY, energy, kinetic, "J"),
    )


def _angular_momentum(sim: Simulation, moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the angular momentum of the body in the world [kg m²/s]."""
    truth = sim.ground_truth("body")
    return truth.T_world_base.rotation_matrix() @ (moments * truth.angular_velocity)


IMPACT_SPEED = 1.0
"""Speed of the striking ball [m/s]."""
IMPACT_TOLERANCE = 0.01
"""Tolerance at steps of 0.5 ms: an impact takes 10 ms, and begins at any time within a step."""


def collide_balls(settings: PhysicsSettings, restitution: float, masses: tuple[float, float]) -> tuple[float, float]:
    """Return the speeds of two balls after a central impact of the first on the second at rest [m/s]."""
    sim = make_simulation(settings, gravity=(0.0, 0.0, 0.0))
    sim.add(make_ball(restitution=restitution, mass=masses[0]), "first", make_pose(x=-0.3))
    sim.add(make_ball(restitution=restitution, mass=masses[1]), "second")
    set_velocity(sim, (IMPACT_SPEED, 0.0, 0.0), name="first")
    sim.advance_to(500_000_000)
    return world_linear_velocity(sim, "first")[0], world_linear_velocity(sim, "second")[0]


def measure_restitution(settings: PhysicsSettings, restitution: float, speed: float = 3.0) -> float:
    """Return the ratio of the speeds after and before an impact on the floor, without gravity."""
    sim = make_simulation(settings, make_floor(restitution=restitution), gravity=(0.0, 0.0, 0.0))
    sim.add(make_ball(restitution=restitution), "body", make_pose(z=3.0 * RADIUS))
    set_velocity(sim, (0.0, 0.0, -speed))
    sim.advance_to(400_000_000)
    return world_linear_velocity(sim)[2] / speed


def check_impacts(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Check momentum and speed after impacts of two balls, from elastic to inelastic."""
    checks = []
    for e, masses in ((1.0, (2.0, 2.0)), (1.0, (2.0, 6.0)), (0.5, (2.0, 1.0)), (0.0, (2.0, 1.0))):
        first, second = collide_balls(settings, e, masses)
        momentum = masses[0] * first + masses[1] * second
        description = f"masses {masses[0]:g} and {masses[1]:g} kg, e = {e:g}"
        com_speed = masses[0] / sum(masses) * IMPACT_SPEED
        expected_speed = com_speed * (1.0 + e)
        checks += [
            LawCheck(
                f"momentum after an impact, {description}",
                MOMENTUM_CONSERVATION,
                masses[0] * IMPACT_SPEED,
                momentum,
                "kg m/s",
                tolerance=1e-6,
            ),
            LawCheck(
                f"speed of the struck ball, {description}",
                IMPACT_SPEED_RATIO,
                expected_speed,
                second,
                "m/s",
                tolerance=step_tolerance(settings, IMPACT_TOLERANCE),
            ),
        ]
    return tuple(checks)


def check_restitution(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Check the coefficient of restitution of a ball that hits the floor."""
    tolerance = step_tolerance(settings, IMPACT_TOLERANCE)
    return tuple(
        LawCheck(
            f"coefficient of restitution of a ball on the floor, e = {e:g}",
            RESTITUTION,
            e,
            measure_restitution(settings, e),
            "",
            1.0,
            tolerance,
        )
        for e in (0.0, 0.3, 0.5, 0.8, 1.0)
    )


def check_rebound(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Check the height of a ball's first rebound under gravity."""
    sim = make_simulation(settings, make_floor(restitution=0.8))
    sim.add(make_ball(restitution=0.8), "body", make_pose(z=1.0 + RADIUS))
    has_rebounded, max_height = False, 0.0
    while sim.time_ns < 1_200_000_000:
        sim.step()
        has_rebounded = has_rebounded or (world_linear_velocity(sim)[2] > 0.0)
        if has_rebounded:
            max_height = max(max_height, sim.ground_truth("body").T_world_base.z - RADIUS)
    return (
        LawCheck(
            "height of the first rebound after a fall of 1 m, e = 0.8",
            REBOUND_HEIGHT,
            0.64,
            max_height,
            "m",
            tolerance=step_tolerance(settings, IMPACT_TOLERANCE),
        ),
    )


IMPACT_BALL_RADIUS = 0.02
"""Radius of the ball [m]; it reaches the neck below the chin."""
ARM_SEGMENTS = ("upper_arm", "forearm", "hand")
_GAP = 0.004
_MAX_CONTACT_DURATION = 0.5
"""Upper bound of the duration of the first contact [s]."""


@dataclass(frozen=True, slots=True)
class ImpactResult:
    """Peak force of the first contact of an impact on a person.

    Attributes:
        region: Body region that the ball hits.
        measured_force: Peak force in the simulation [N].
        expected_force: Peak force by the formula [N].
    """

    region: str
    measured_force: float
    expected_force: float

    @property
    def relative_error(self) -> float:
        """Relative error of the measured force."""
        return abs(self.measured_force / self.expected_force - 1.0)


def simulate_impact(
    body: PersonModel, part: str, *, front: bool, mass: float, speed: float, timestep: float
) -> ImpactResult:
    """Simulate a ball that hits the middle of a body part of a resting person, without gravity.

    Args:
        body: The person's body.
        part: Name of the link that the ball hits.
        front: Whether the ball comes from the front or from behind; it hits an arm from the side, away from the trunk.
        mass: Mass of the ball [kg].
        speed: Speed of the ball [m/s].
        timestep: Physics step [s].

    Raises:
        InputError: The ball does not touch the part.
    """
    capsule, T_part_capsule = body.capsules[part]
    T = body.model.link(part).T_model_link @ T_part_capsule
    outward = np.array([1.0 if front else -1.0, 0.0, 0.0])
    if segment_name(part) in ARM_SEGMENTS:
        outward = np.array([0.0, math.copysign(1.0, T.xyz[1]), 0.0])
    surface_distance = capsule.radius + abs(float(T.rotation_matrix()[:, 2] @ outward)) * 0.5 * capsule.length
    start = np.asarray(T.xyz) + (surface_distance + IMPACT_BALL_RADIUS + _GAP) * outward
    moment_of_inertia = 0.4 * mass * IMPACT_BALL_RADIUS**2
    inertial = Inertial(mass, SE3.identity(), (moment_of_inertia, moment_of_inertia, moment_of_inertia, 0.0, 0.0, 0.0))
    ball = Model(
        "ball",
        (Link("ball", SE3.identity(), inertial, (Collision("ball", Sphere(IMPACT_BALL_RADIUS), SE3.identity()),)),),
    )
    sim = Simulation(World("air", gravity=(0.0, 0.0, 0.0)), timestep=timestep)
    sim.add(body.model, "person", options=ModelOptions(compliant_parts=body.compliant_parts))
    sim.add(ball, "ball", SE3(translation=tuple(start.tolist())))
    sim.world.data.qvel[:3] = -speed * outward
    compliant_part = body.compliant_parts[part]
    peak_force = 0.0
    for _ in range(round(_MAX_CONTACT_DURATION / timestep)):
        sim.step()
        force = float(np.linalg.norm(sim.world.compliant_bodies.forces("person")[part]))
        if peak_force > 0.0 and force == 0.0:
            break
        peak_force = max(peak_force, force)
    if peak_force == 0.0:
        raise InputError(f"the ball does not touch {part!r}", valid="a link on the surface of the body")
    stiffness = compliant_part.stiffness_front if front else compliant_part.stiffness_rear
    expected_force = speed * math.sqrt(stiffness / (1.0 / mass + 1.0 / compliant_part.mass))
    return ImpactResult(region_name(part, float(outward[0])), peak_force, expected_force)
