"""Experiments of rigid-body mechanics: free fall, pendulums, springs, gyroscopes, free rotation, impacts, and impacts
on people.

The greatest force of an impact on a person is ``v √(k m)``, with the speed ``v``, the stiffness ``k`` of the body
region and the reduced
mass ``m`` of both bodies: the model of ISO/TS 15066.
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
    world_velocity,
)
from roboyard.simulation.validation.law_check import DEFAULT_BOUND, LawCheck, step_bound

PENDULUM_LENGTH = 0.5
"""Of a pendulum's rod, pivot to mass [m]."""
SPRING_STIFFNESS, SPRING_DAMPING = 80.0, 0.8
"""Of the spring [N/m, N s/m]."""


def make_pendulum(mass_moment: float = 0.002, n_links: int = 1) -> Model:
    """Rods that hang one on the other, each with its mass `LENGTH` below its pivot; swings about y."""
    rods, joints = [], []
    for number in range(n_links):
        name, parent = f"rod{number}", f"rod{number - 1}" if number else "world"
        inertial = Inertial(MASS, make_pose(z=-PENDULUM_LENGTH), (mass_moment, mass_moment, mass_moment, 0.0, 0.0, 0.0))
        rods.append(Link(name, make_pose(z=-PENDULUM_LENGTH * number), inertial))
        T_parent_rod = make_pose(z=-PENDULUM_LENGTH) if number else SE3.identity()
        joints.append(_make_joint(f"pivot{number}", "continuous", parent, name, T_parent_rod, (0.0, 1.0, 0.0)))
    return Model("pendulum", tuple(rods), tuple(joints))


def pendulum_period(amplitude: float, moment: float = 0.002) -> float:
    """Period of a pendulum [s] at any ``amplitude`` [rad]: the complete elliptic integral."""
    from scipy.special import ellipk

    inertia = MASS * PENDULUM_LENGTH**2 + moment
    return float(4.0 * math.sqrt(inertia / (MASS * GRAVITY * PENDULUM_LENGTH)) * ellipk(math.sin(amplitude / 2.0) ** 2))


def measure_pendulum_period(settings: PhysicsSettings, amplitude: float, n_periods: int = 5) -> float:
    """Measured period of a pendulum let go at ``amplitude`` [rad]: the mean of ``n_periods``."""
    sim = make_simulation(settings)
    sim.add(make_pendulum(), "pendulum")
    sim.world.data.qpos[0] = amplitude
    sim.step(0)
    return measure_mean_period(sim, n_periods, 60.0)


def measure_mean_period(sim: Simulation, n_periods: int, max_duration: float) -> float:
    """Time between crossings of zero of the first joint, of ``n_periods`` full ones; infinite after ``max_duration``
    [s]."""
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
    """A ball falls and is thrown."""
    sim = make_simulation(settings)
    sim.add(make_ball(), "body", make_pose(z=100.0))
    sim.world.data.qvel[:3] = 3.0, 0.0, 5.0
    sim.advance_to(1_000_000_000)
    t = sim.time_ns * 1e-9
    pose = sim.ground_truth("body").T_world_base
    return (
        LawCheck("speed after 1 s of fall", "v₀ − g t", 5.0 - GRAVITY * t, world_velocity(sim)[2], "m/s"),
        LawCheck("height lost by then", "g t²/2 − v₀ t", 0.5 * GRAVITY * t * t - 5.0 * t, 100.0 - pose.z, "m", 4.905),
        LawCheck("way of a throw meanwhile", "v t", 3.0 * t, pose.x, "m"),
    )


def check_pendulums(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Periods from small swings to nearly upside down."""
    return tuple(
        LawCheck(
            f"period of a pendulum at {degrees}°",
            "4 √(I/(m g l)) K(sin²(θ/2))",
            pendulum_period(angle),
            measure_pendulum_period(settings, angle),
            "s",
        )
        for degrees in (5, 45, 90, 150, 175)
        for angle in (math.radians(degrees),)
    )


def check_spring(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """A mass on a damped spring."""
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
        LawCheck("period of a damped spring", "2π/√(k/m − δ²)", 2.0 * math.pi / angular_frequency, measured, "s"),
        LawCheck("its decay", "δ = c/(2 m)", decay, measured_decay, "1/s", bound=0.02),
    )


def check_pendulum_energy(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """What 10 s of swinging do to the energy; the double pendulum is chaotic, its energy is not."""
    checks = []
    for links, name, bound in ((1, "pendulum", DEFAULT_BOUND), (2, "double pendulum", step_bound(settings, 0.005))):
        sim = make_simulation(settings)
        sim.add(make_pendulum(n_links=links), "pendulum")
        sim.world.data.qpos[:links] = 2.0
        energy_values = record_energy(sim, 10.0)
        energy_range = links * (links + 1) * MASS * GRAVITY * PENDULUM_LENGTH  # from hanging to standing
        max_change = float(energy_values[np.argmax(np.abs(energy_values - energy_values[0]))] - energy_values[0])
        checks.append(LawCheck(f"energy of a {name} over 10 s", "constant", 0.0, max_change, "J", energy_range, bound))
    return tuple(checks)


def record_energy(sim: Simulation, duration: float) -> NDArray[np.float64]:
    """Kinetic and potential energy [J] at every step."""
    import mujoco

    sim.step()  # positions that were set by hand are evaluated by a step
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
"""Of the gyroscope: pivot to centre of mass [m]; moments about its axis, and across through the centre [kg m²]."""


def measure_precession(settings: PhysicsSettings, spin: float, duration: float = 2.0) -> tuple[float, float]:
    """Rate at which a gyroscope with a level axis precesses [rad/s], and how far its axis sinks meanwhile [rad].

    It hangs on a ball joint at one end of its axis and is let go already precessing, so that it does not nutate.
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
    """Where the rotor's axis points."""
    return sim.ground_truth("gyroscope").T_world_base.rotation_matrix()[:, 0]


def steady_precession_rate(spin: float) -> float:
    """Rate of steady precession with a level axis [rad/s]; exact, since nothing of the rate lies along the axis."""
    return MASS * GRAVITY * GYROSCOPE_ARM / (GYROSCOPE_AXIAL_INERTIA * spin)


def check_gyroscopes(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Precession under gravity."""
    checks = []
    for spin in (20.0, 60.0, 150.0):
        rate, sink_angle = measure_precession(settings, spin)
        checks += [
            LawCheck(
                f"precession of a gyroscope spinning at {spin:g} rad/s",
                "m g l/(I ω)",
                steady_precession_rate(spin),
                rate,
                "rad/s",
            ),
            LawCheck(f"how far its axis sinks in 2 s, at {spin:g} rad/s", "0", 0.0, sink_angle, "rad", math.pi / 2.0),
        ]
    return tuple(checks)


def check_free_rotation(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """A free symmetrical body nutates; whatever turns freely keeps its angular momentum and its energy."""
    axial_inertia, transverse_inertia, spin, tilt = 0.03, 0.02, 5.0, 1.0
    sim = make_simulation(settings, gravity=(0.0, 0.0, 0.0))
    sim.add(make_free_body(None, (transverse_inertia, transverse_inertia, axial_inertia)), "body")
    set_velocity(sim, angular=(tilt, 0.0, spin))
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
    set_velocity(tumbling, angular=(1.0, 2.0, 3.0))
    tumbling.step()
    start, energy = (
        _angular_momentum(tumbling, moments),
        0.5 * float(moments @ np.square(tumbling.world.data.qvel[3:6])),
    )
    tumbling.advance_to(10_000_000_000)
    change = float(np.linalg.norm(_angular_momentum(tumbling, moments) - start))
    kinetic = 0.5 * float(moments @ np.square(tumbling.world.data.qvel[3:6]))
    return (
        LawCheck("nutation of a free symmetrical body", "(I₃ − I₁)/I₁ ω₃", rate, rotation_angle / 2.0, "rad/s"),
        LawCheck(
            "change of a tumbling body's angular momentum in 10 s",
            "0",
            0.0,
            change,
            "kg m²/s",
            float(np.linalg.norm(start)),
        ),
        LawCheck("its energy after that", "I ω²/2", energy, kinetic, "J"),
    )


def _angular_momentum(sim: Simulation, moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Angular momentum in the world [kg m²/s]."""
    truth = sim.ground_truth("body")
    return truth.T_world_base.rotation_matrix() @ (moments * truth.angular_velocity)


IMPACT_SPEED = 1.0
"""Of the ball that strikes [m/s]."""
IMPACT_BOUND = 0.01
"""Error at 0.5 ms: an impact takes 10 ms, and begins somewhere within a step."""


def collide_balls(settings: PhysicsSettings, restitution: float, masses: tuple[float, float]) -> tuple[float, float]:
    """Speeds of two balls after a central impact of the first on the resting second, without gravity [m/s]."""
    sim = make_simulation(settings, gravity=(0.0, 0.0, 0.0))
    sim.add(make_ball(restitution=restitution, mass=masses[0]), "first", make_pose(x=-0.3))
    sim.add(make_ball(restitution=restitution, mass=masses[1]), "second")
    set_velocity(sim, (IMPACT_SPEED, 0.0, 0.0), name="first")
    sim.advance_to(500_000_000)
    return world_velocity(sim, "first")[0], world_velocity(sim, "second")[0]


def measure_restitution(settings: PhysicsSettings, restitution: float, speed: float = 3.0) -> float:
    """Speed after an impact on the floor over that before it, without gravity."""
    sim = make_simulation(settings, make_floor(restitution=restitution), gravity=(0.0, 0.0, 0.0))
    sim.add(make_ball(restitution=restitution), "body", make_pose(z=3.0 * RADIUS))
    set_velocity(sim, (0.0, 0.0, -speed))
    sim.advance_to(400_000_000)
    return world_velocity(sim)[2] / speed


def check_impacts(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Two balls, from elastic to inelastic."""
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
                "m₁ v",
                masses[0] * IMPACT_SPEED,
                momentum,
                "kg m/s",
                bound=1e-6,
            ),
            LawCheck(
                f"speed of the ball that was struck, {description}",
                "(1 + e) v m₁/(m₁ + m₂)",
                expected_speed,
                second,
                "m/s",
                bound=step_bound(settings, IMPACT_BOUND),
            ),
        ]
    return tuple(checks)


def check_restitution(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """A ball on the floor."""
    bound = step_bound(settings, IMPACT_BOUND)
    return tuple(
        LawCheck(
            f"restitution of a ball on the floor, e = {e:g}", "e", e, measure_restitution(settings, e), "", 1.0, bound
        )
        for e in (0.0, 0.3, 0.5, 0.8, 1.0)
    )


def check_rebound(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Height of the first rebound under gravity."""
    sim = make_simulation(settings, make_floor(restitution=0.8))
    sim.add(make_ball(restitution=0.8), "body", make_pose(z=1.0 + RADIUS))
    has_rebounded, max_height = False, 0.0
    while sim.time_ns < 1_200_000_000:
        sim.step()
        has_rebounded = has_rebounded or (world_velocity(sim)[2] > 0.0)
        if has_rebounded:
            max_height = max(max_height, sim.ground_truth("body").T_world_base.z - RADIUS)
    return (
        LawCheck(
            "rebound after a fall of 1 m, e = 0.8",
            "e² h",
            0.64,
            max_height,
            "m",
            bound=step_bound(settings, IMPACT_BOUND),
        ),
    )


IMPACT_BALL_RADIUS = 0.02
"""Of the ball [m]: small enough to reach the neck below the chin."""
ARM_SEGMENTS = ("upper_arm", "forearm", "hand")
_GAP = 0.004
_MAX_CONTACT_DURATION = 0.5
"""No first touch is longer [s]."""


@dataclass(frozen=True, slots=True)
class ImpactResult:
    """The largest force of a first touch.

    Attributes:
        region: What was struck.
        measured_force: In the simulation [N].
        expected_force: By the formula [N].
    """

    region: str
    measured_force: float
    expected_force: float

    @property
    def relative_error(self) -> float:
        """Measured against true."""
        return abs(self.measured_force / self.expected_force - 1.0)


def simulate_impact(
    body: PersonModel, part: str, *, front: bool, mass: float, speed: float, timestep: float
) -> ImpactResult:
    """A ball flies against the middle of a part, in a world without gravity.

    Args:
        body: Whose; it stands still.
        part: One of its links.
        front: From ahead, or from behind; an arm is struck from its side, away from the trunk.
        mass: Of the ball [kg].
        speed: Of the ball [m/s].
        timestep: Of the physics [s].

    Raises:
        InputError: the ball never touches the part.
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
        raise InputError(f"the ball does not meet {part!r}")
    stiffness = compliant_part.stiffness_front if front else compliant_part.stiffness_rear
    expected_force = speed * math.sqrt(stiffness / (1.0 / mass + 1.0 / compliant_part.mass))
    return ImpactResult(region_name(part, float(outward[0])), peak_force, expected_force)
