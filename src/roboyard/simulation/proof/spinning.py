"""Gyroscopes: what spins gives way sideways."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import Inertial, Joint, Link, Model
from roboyard.geometry import SE3, wrap_angle
from roboyard.geometry.constants import GRAVITY
from roboyard.simulation.engine import Simulation
from roboyard.simulation.proof.bodies import MASS, at, body, push, simulation
from roboyard.simulation.proof.check import Check
from roboyard.simulation.settings import PhysicsSettings

ARM, AXIAL, ACROSS = 0.1, 0.0225, 0.012
"""Of the gyroscope: pivot to centre of mass [m]; moments about its axis, and across through the centre [kg m²]."""


def precession(settings: PhysicsSettings, spin: float, seconds: float = 2.0) -> tuple[float, float]:
    """Rate at which a gyroscope with a level axis precesses [rad/s], and how far its axis sinks meanwhile [rad].

    It hangs on a ball joint at one end of its axis and is let go already precessing, so that it does not nutate.
    """
    sim = simulation(settings)
    inertial = Inertial(MASS, at(x=ARM), (AXIAL, ACROSS, ACROSS, 0.0, 0.0, 0.0))
    link = Link("rotor", SE3.identity(), inertial)
    joint = Joint("pivot", "ball", "world", "rotor", SE3.identity(), SE3.identity())
    sim.add(Model("gyroscope", (link,), (joint,)), "gyroscope")
    sim.data.qvel[:] = spin, 0.0, steady(spin)
    turned = 0.0
    before = 0.0
    while sim.time_ns * 1e-9 < seconds:
        sim.step()
        axis = axis_of(sim)
        now = math.atan2(axis[1], axis[0])
        turned += wrap_angle(now - before)
        before = now
    return turned / (sim.time_ns * 1e-9), -math.asin(float(axis_of(sim)[2]))


def axis_of(sim: Simulation) -> NDArray[np.float64]:
    """Where the rotor's axis points."""
    return sim.truth("gyroscope").T_world_base.rotation_matrix()[:, 0]


def steady(spin: float) -> float:
    """Rate of steady precession with a level axis [rad/s]; exact, since nothing of the rate lies along the axis."""
    return MASS * GRAVITY * ARM / (AXIAL * spin)


def gyroscopes(settings: PhysicsSettings) -> tuple[Check, ...]:
    """Precession under gravity."""
    checks = []
    for spin in (20.0, 60.0, 150.0):
        rate, sunk = precession(settings, spin)
        checks += [
            Check(
                f"precession of a gyroscope spinning at {spin:g} rad/s",
                "m g l/(I ω)",
                steady(spin),
                rate,
                "rad/s",
            ),
            Check(f"how far its axis sinks in 2 s, at {spin:g} rad/s", "0", 0.0, sunk, "rad", math.pi / 2.0),
        ]
    return tuple(checks)


def free_bodies(settings: PhysicsSettings) -> tuple[Check, ...]:
    """A free symmetrical body nutates; whatever turns freely keeps its angular momentum and its energy."""
    along, across, spin, tilt = 0.03, 0.02, 5.0, 1.0
    sim = simulation(settings, gravity=(0.0, 0.0, 0.0))
    sim.add(body(None, (across, across, along)), "body")
    push(sim, angular=(tilt, 0.0, spin))
    turned, before = 0.0, 0.0
    while sim.time_ns < 2_000_000_000:
        sim.step()
        now = math.atan2(sim.data.qvel[4], sim.data.qvel[3])
        turned += wrap_angle(now - before)
        before = now
    rate = (along - across) / across * spin
    tumbling = simulation(settings, gravity=(0.0, 0.0, 0.0))
    moments = np.array([0.02, 0.03, 0.04])
    tumbling.add(body(None, (0.02, 0.03, 0.04)), "body")
    push(tumbling, angular=(1.0, 2.0, 3.0))
    tumbling.step()
    start, energy = _momentum(tumbling, moments), 0.5 * float(moments @ np.square(tumbling.data.qvel[3:6]))
    tumbling.advance_to(10_000_000_000)
    change = float(np.linalg.norm(_momentum(tumbling, moments) - start))
    kinetic = 0.5 * float(moments @ np.square(tumbling.data.qvel[3:6]))
    return (
        Check("nutation of a free symmetrical body", "(I₃ − I₁)/I₁ ω₃", rate, turned / 2.0, "rad/s"),
        Check(
            "change of a tumbling body's angular momentum in 10 s",
            "0",
            0.0,
            change,
            "kg m²/s",
            float(np.linalg.norm(start)),
        ),
        Check("its energy after that", "I ω²/2", energy, kinetic, "J"),
    )


def _momentum(sim: Simulation, moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Angular momentum in the world [kg m²/s]."""
    truth = sim.truth("body")
    return truth.T_world_base.rotation_matrix() @ (moments * truth.angular_velocity)
