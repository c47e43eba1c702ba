"""Collisions: momentum, restitution, energy."""

from __future__ import annotations

from roboyard.simulation.proof.bodies import RADIUS, at, ball, floor, push, simulation, velocity
from roboyard.simulation.proof.check import Check, first_order
from roboyard.simulation.settings import PhysicsSettings

SPEED = 1.0
"""Of the ball that strikes [m/s]."""
IMPACT = 0.01
"""Error at 0.5 ms: an impact takes 10 ms, and begins somewhere within a step."""


def strike(settings: PhysicsSettings, restitution: float, masses: tuple[float, float]) -> tuple[float, float]:
    """Speeds of two balls after a central impact of the first on the resting second, without gravity [m/s]."""
    sim = simulation(settings, gravity=(0.0, 0.0, 0.0))
    sim.add(ball(restitution=restitution, mass=masses[0]), "first", at(x=-0.3))
    sim.add(ball(restitution=restitution, mass=masses[1]), "second")
    push(sim, (SPEED, 0.0, 0.0), name="first")
    sim.advance_to(500_000_000)
    return velocity(sim, "first")[0], velocity(sim, "second")[0]


def bounce(settings: PhysicsSettings, restitution: float, speed: float = 3.0) -> float:
    """Speed after an impact on the floor over that before it, without gravity."""
    sim = simulation(settings, floor(restitution=restitution), gravity=(0.0, 0.0, 0.0))
    sim.add(ball(restitution=restitution), "body", at(z=3.0 * RADIUS))
    push(sim, (0.0, 0.0, -speed))
    sim.advance_to(400_000_000)
    return velocity(sim)[2] / speed


def impacts(settings: PhysicsSettings) -> tuple[Check, ...]:
    """Two balls, from elastic to inelastic."""
    checks = []
    for e, masses in ((1.0, (2.0, 2.0)), (1.0, (2.0, 6.0)), (0.5, (2.0, 1.0)), (0.0, (2.0, 1.0))):
        first, second = strike(settings, e, masses)
        momentum = masses[0] * first + masses[1] * second
        about = f"masses {masses[0]:g} and {masses[1]:g} kg, e = {e:g}"
        together = masses[0] / sum(masses) * SPEED
        struck = together * (1.0 + e)
        checks += [
            Check(f"momentum after an impact, {about}", "m₁ v", masses[0] * SPEED, momentum, "kg m/s", bound=1e-6),
            Check(
                f"speed of the ball that was struck, {about}",
                "(1 + e) v m₁/(m₁ + m₂)",
                struck,
                second,
                "m/s",
                bound=first_order(settings, IMPACT),
            ),
        ]
    return tuple(checks)


def bounces(settings: PhysicsSettings) -> tuple[Check, ...]:
    """A ball on the floor."""
    bound = first_order(settings, IMPACT)
    return tuple(
        Check(f"restitution of a ball on the floor, e = {e:g}", "e", e, bounce(settings, e), "", 1.0, bound)
        for e in (0.0, 0.3, 0.5, 0.8, 1.0)
    )


def drop(settings: PhysicsSettings) -> tuple[Check, ...]:
    """Height of the first rebound under gravity."""
    sim = simulation(settings, floor(restitution=0.8))
    sim.add(ball(restitution=0.8), "body", at(z=1.0 + RADIUS))
    down, highest = False, 0.0
    while sim.time_ns < 1_200_000_000:
        sim.step()
        down = down or (velocity(sim)[2] > 0.0)
        if down:
            highest = max(highest, sim.truth("body").T_world_base.z - RADIUS)
    return (
        Check("rebound after a fall of 1 m, e = 0.8", "e² h", 0.64, highest, "m", bound=first_order(settings, IMPACT)),
    )
