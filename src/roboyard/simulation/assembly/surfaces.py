"""Contact properties: Coulomb coefficients of descriptions as the engine's friction, priority and softness."""

from __future__ import annotations

import math
from dataclasses import dataclass

from roboyard.description.model import Surface

MIN_FRICTION = 1e-5
"""The engine's least coefficient."""
MAX_FRICTION = 1.5
"""Rubber on dry concrete reaches about 1; files that say 100 or 100000 mean "hardly ever slips".  The convex solver
lifts a contact that slides, the more the larger its coefficient: a light robot whose wheels spin would hop at 3 and fly
at 100."""


@dataclass(frozen=True, slots=True)
class Contact:
    """What a geom brings into its contacts.

    Attributes:
        friction: Sliding coefficient, torsional and rolling lengths [1, m, m].
        dimensions: 1 frictionless, 3 sliding, 4 torsional too, 6 rolling too.
        priority: The geom with the higher one decides for both.
        solref: The engine's contact softness; None = its default.
    """

    friction: tuple[float, float, float]
    dimensions: int
    priority: int
    solref: tuple[float, float] | None


def contact_of(surface: Surface, contact_time: float) -> Contact:
    """Contact properties of a surface.

    Two surfaces meet with the *smaller* coefficient, as in ODE, Bullet and DART; the engine would take the larger.
    It does give the word to the geom of higher priority, so priority falls as friction grows: the slippery one decides.

    Args:
        surface: As the description says.  Where friction differs along two directions, their geometric mean is used;
            `grain` then sees to the directions, if there are any.
        contact_time: The engine's contact time constant [s]; a stated restitution lowers the damping at this time.
    """
    mu = surface.friction
    if surface.friction2 is not None:
        mu = math.sqrt(max(mu, 0.0) * max(surface.friction2, 0.0))
    mu = min(max(mu, MIN_FRICTION), MAX_FRICTION)
    torsional, rolling = surface.torsional or 0.0, surface.rolling or 0.0
    slick = mu <= MIN_FRICTION and not differs(surface)
    dimensions = 6 if rolling > 0.0 else 4 if torsional > 0.0 else 1 if slick else 3
    priority = -round(1000.0 * math.log2(mu))
    return Contact((mu, torsional, rolling), dimensions, priority, _softness(surface, contact_time))


def differs(surface: Surface) -> bool:
    """Whether friction differs along two directions by more than the engine would see."""
    if surface.friction2 is None:
        return False
    first, second = (min(max(value, MIN_FRICTION), MAX_FRICTION) for value in (surface.friction, surface.friction2))
    return abs(first - second) > 0.05 * max(first, second)


def _softness(surface: Surface, contact_time: float) -> tuple[float, float] | None:
    if surface.restitution <= 0.0:
        return None
    # Negative numbers are the engine's form for stiffness and damping per unit of mass.
    frequency = 1.0 / contact_time
    return -(frequency**2), -2.0 * damping_ratio(surface.restitution) * frequency


def damping_ratio(restitution: float) -> float:
    """The damping ratio at which a spring-damper that only pushes gives back ``restitution`` of the speed (0…1)."""
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _returned(middle) > restitution else (low, middle)
    return 0.5 * (low + high)


def _returned(ratio: float) -> float:
    """T. Schwager, T. Pöschel, Granular Matter 9 (2007): contact ends when the force, not the overlap, is zero."""
    if ratio < 1e-9:
        return 1.0
    if ratio < 1.0 - 1e-6:
        root = math.sqrt(1.0 - ratio * ratio)
        return math.exp(-ratio / root * math.atan2(2.0 * ratio * root, 2.0 * ratio * ratio - 1.0))
    if ratio <= 1.0 + 1e-6:
        return math.exp(-2.0)
    root = math.sqrt(ratio * ratio - 1.0)
    return math.exp(-ratio / root * math.log((ratio + root) / (ratio - root)))
