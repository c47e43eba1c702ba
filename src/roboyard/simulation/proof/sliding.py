"""Coulomb friction: slopes, stopping, rolling and the border between the two."""

from __future__ import annotations

import math

from roboyard.description.model import Model
from roboyard.geometry.constants import GRAVITY
from roboyard.simulation.engine import Simulation
from roboyard.simulation.proof.bodies import (
    HOLLOW_BALL,
    HOOP,
    RADIUS,
    SOLID_BALL,
    SOLID_CYLINDER,
    at,
    ball,
    crate,
    floor,
    push,
    roller,
    simulation,
    velocity,
)
from roboyard.simulation.proof.check import Check
from roboyard.simulation.settings import PhysicsSettings


def down_the_slope(settings: PhysicsSettings, model: Model, slope: float, friction: float, clearance: float) -> float:
    """Measured acceleration of ``model`` down a ``slope`` [rad] of this friction [m/s²]: after it has settled, for 1 s.

    ``clearance``: of the body's origin above the slope [m].
    """
    sim = simulation(settings, floor(friction, slope=slope))
    sim.add(model, "body", at(pitch=slope) @ at(z=clearance))
    sim.advance_to(300_000_000)
    before = along(sim, slope)
    sim.advance_to(1_300_000_000)
    return along(sim, slope) - before


def along(sim: Simulation, slope: float) -> float:
    """Speed down the slope [m/s]."""
    x, _, z = velocity(sim)
    return x * math.cos(slope) - z * math.sin(slope)


def slip(slope: float, friction: float) -> float:
    """Acceleration of what slides [m/s²]."""
    return GRAVITY * (math.sin(slope) - friction * math.cos(slope))


def rolling(slope: float, friction: float, share: float) -> float:
    """Acceleration of what rolls, or slips since friction is too weak [m/s²]; its inertia is ``share · m r²``."""
    if math.tan(slope) <= friction * (1.0 + 1.0 / share):
        return GRAVITY * math.sin(slope) / (1.0 + share)
    return slip(slope, friction)


def slopes(settings: PhysicsSettings) -> tuple[Check, ...]:
    """A box below and above the angle of friction."""
    checks = []
    for mu, degrees in ((0.3, 25.0), (0.6, 40.0), (1.0, 50.0)):
        slope = math.radians(degrees)
        measured = down_the_slope(settings, crate(2.0), slope, mu, 0.1)
        checks.append(
            Check(f"box sliding down {degrees:g}°, μ = {mu}", "g (sin α − μ cos α)", slip(slope, mu), measured, "m/s²")
        )
    for mu, share in ((0.3, 0.95), (0.6, 0.95)):
        slope = math.atan(share * mu)
        sim = simulation(settings, floor(mu, slope=slope))
        sim.add(crate(2.0), "body", at(pitch=slope) @ at(z=0.1))
        sim.advance_to(300_000_000)
        before = sim.truth("body").T_world_base
        sim.advance_to(2_300_000_000)
        moved = sim.truth("body").T_world_base.distance(before)
        free = 0.5 * GRAVITY * math.sin(slope) * 2.0**2
        law = f"way of a box on a slope 5 % below the angle of friction, μ = {mu}"
        checks.append(Check(law, "0", 0.0, moved, "m", free, 1e-4))
    return tuple(checks)


def stopping(settings: PhysicsSettings) -> tuple[Check, ...]:
    """How far a sliding box gets."""
    checks = []
    for mu, speed in ((0.2, 1.0), (0.5, 2.0), (0.9, 3.0)):
        sim = simulation(settings, floor(mu))
        sim.add(crate(2.0), "body", at(z=0.1))
        sim.advance_to(300_000_000)
        push(sim, (speed, 0.0, 0.0))
        start = sim.truth("body").T_world_base.x
        sim.advance_to(300_000_000 + round(1.5e9 * speed / (mu * GRAVITY)))
        way = sim.truth("body").T_world_base.x - start
        checks.append(
            Check(
                f"stopping distance at {speed:g} m/s, μ = {mu}", "v²/(2 μ g)", speed**2 / (2 * mu * GRAVITY), way, "m"
            )
        )
    return tuple(checks)


def rollers(settings: PhysicsSettings) -> tuple[Check, ...]:
    """Round bodies roll down 20 degrees."""
    slope, mu = math.radians(20.0), 0.8
    bodies = (
        ("solid ball", ball(SOLID_BALL), SOLID_BALL),
        ("hollow ball", ball(HOLLOW_BALL), HOLLOW_BALL),
        ("solid cylinder", roller(SOLID_CYLINDER), SOLID_CYLINDER),
        ("hoop", roller(HOOP), HOOP),
    )
    checks = [
        Check(
            f"{name} rolling down 20°",
            "g sin α/(1 + I/(m r²))",
            rolling(slope, mu, share),
            down_the_slope(settings, model, slope, mu, RADIUS),
            "m/s²",
        )
        for name, model, share in bodies
    ]
    steep, slick = math.radians(40.0), 0.1
    measured = down_the_slope(settings, ball(), steep, slick, RADIUS)
    law = "solid ball that slips while it rolls down 40°, μ = 0.1"
    return (*checks, Check(law, "g (sin α − μ cos α)", slip(steep, slick), measured, "m/s²"))


def bowling(settings: PhysicsSettings) -> tuple[Check, ...]:
    """A ball thrown without spin slides until it rolls."""
    speed, mu = 4.0, 0.2
    sim = simulation(settings, floor(mu))
    sim.add(ball(friction=2.0), "body", at(z=RADIUS))
    sim.advance_to(300_000_000)
    push(sim, (speed, 0.0, 0.0))
    start = sim.time_ns
    rolls = math.inf
    while sim.time_ns - start < 2_000_000_000:
        sim.step()
        if math.isinf(rolls) and velocity(sim)[0] - RADIUS * float(sim.data.qvel[4]) < 0.01 * speed:
            rolls = (sim.time_ns - start) * 1e-9
    expected = 2.0 * speed / (7.0 * mu * GRAVITY)
    return (
        Check("speed at which a bowled ball rolls", "5/7 v₀", 5.0 / 7.0 * speed, velocity(sim)[0], "m/s"),
        # the slip falls evenly; it is at a hundredth when 99 % of the time has passed
        Check("time until it has 1 % of its slip left", "0.99 · 2 v₀/(7 μ g)", 0.99 * expected, rolls, "s"),
    )
