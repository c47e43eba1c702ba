"""How hard a robot may touch people: limits of force and pressure by region, and the speed that keeps them.

The limits are those of the German accident insurers: BG/BGIA, "Recommendations for the design of workplaces with
collaborative robots", U 001/2009e, 2011, free of charge; its table also stands in R. Buxbaum, S. Sen, "Kollaborierende
Roboter in der Pflege" (in: Pflegeroboter, Springer, 2018, open access), table 1.4.  They are limits of what is
tolerable, drawn from literature, and of the same source as the stiffness of the regions
(`roboyard.people.anthropometry`).
Newer measurements of when it hurts are open as well (R. Behrens et al., Frontiers in Robotics and AI 8:667818, 2022):
whoever judges by those gives other limits.

An impact is two bodies and a spring (ISO/TS 15066, annex A; S. Haddadin et al.): the largest force is ``v √(k μ)``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import UnknownNameError
from roboyard.geometry.arrays import Array
from roboyard.people.anthropometry import BODY_REGIONS, EFFECTIVE_MASSES
from roboyard.people.skeleton import segment_name

TRANSIENT = 0.5
"""A contact that is older is no impact any more but a clamping [s]."""
DENT = 0.005
"""Depth to which flesh is dented where the pressure is told [m]."""


@dataclass(frozen=True, slots=True)
class ContactLimits:
    """Of a region of the body.

    Attributes:
        clamping: Largest lasting force [N].
        impact: Largest force of an impact [N].
        pressure: Largest force for each area [N/m²].
    """

    clamping: float
    impact: float
    pressure: float


def _limits(clamping: float, impact: float, pressure_per_cm2: float) -> ContactLimits:
    return ContactLimits(clamping, impact, pressure_per_cm2 * 1e4)


LIMITS: Mapping[str, ContactLimits] = {
    "skull": _limits(130.0, 175.0, 30.0),
    "face": _limits(65.0, 90.0, 20.0),
    # of the throat: a neck is touched from any side
    "neck": _limits(35.0, 35.0, 10.0),
    "back": _limits(210.0, 250.0, 70.0),
    "chest": _limits(140.0, 210.0, 45.0),
    "belly": _limits(110.0, 160.0, 35.0),
    "pelvis": _limits(180.0, 250.0, 75.0),
    "buttocks": _limits(210.0, 250.0, 80.0),
    "upper arm": _limits(150.0, 190.0, 50.0),
    "forearm": _limits(160.0, 220.0, 50.0),
    "hand": _limits(135.0, 180.0, 60.0),
    "thigh": _limits(220.0, 250.0, 80.0),
    "shank": _limits(140.0, 170.0, 45.0),
    "foot": _limits(125.0, 160.0, 45.0),
}
"""By region, as `roboyard.people.anthropometry` names them."""


def limits_of(region: str) -> ContactLimits:
    """Of a region, whose side may be said: ``left hand``. Raises UnknownNameError."""
    name = region.removeprefix("left ").removeprefix("right ")
    if name not in LIMITS:
        raise UnknownNameError(f"no region {region!r}", valid=", ".join(LIMITS))
    return LIMITS[name]


def patch(radius: ArrayLike) -> Array:
    """Area of flesh that something of a radius [m] dents by `DENT`: that of a ball's cap [m²]."""
    area: Array = 2.0 * math.pi * np.asarray(radius, dtype=np.float64) * DENT
    return area


def impact_speed(force: ArrayLike, stiffness: ArrayLike, robot_mass: ArrayLike, person_mass: ArrayLike) -> Array:
    """The relative speed at which two masses [kg] that meet over a spring [N/m] press with a force [N] [m/s]."""
    reduced = 1.0 / (1.0 / np.asarray(robot_mass) + 1.0 / np.asarray(person_mass))
    speed: Array = np.asarray(force) / np.sqrt(np.asarray(stiffness) * reduced)
    return speed


def contact_speeds(parts: Sequence[str], radii: ArrayLike, robot_mass: float, share: float = 1.0) -> Array:
    """(n, b) how fast robot and person may meet, so that neither force nor pressure are exceeded [m/s].

    A part counts as its more delicate side.

    Args:
        parts: (b) of bodies, as `people` names them.
        radii: (n,) of the robot's parts [m].
        robot_mass: That an impact meets: half of what moves, and the load (ISO/TS 15066, A.3.4) [kg].
        share: Of the limits that is made use of.

    Raises:
        UnknownNameError: there is no such part.
    """
    area = patch(radii)
    found = np.empty((len(area), len(parts)))
    for column, part in enumerate(parts):
        name = segment_name(part)
        if name not in BODY_REGIONS:
            raise UnknownNameError(f"no part {part!r} of a body", valid=", ".join(BODY_REGIONS))
        mass = EFFECTIVE_MASSES[name]
        sides = []
        for region in BODY_REGIONS[name]:
            limits = LIMITS[region.name]
            force = share * np.minimum(limits.impact, limits.pressure * area)
            sides.append(impact_speed(force, region.stiffness, robot_mass, mass))
        found[:, column] = np.min(sides, axis=0)
    return found
