"""Contact limits of power and force limiting: force and pressure by body region, and the speeds that keep them.

The limits are those of the German accident insurers: BG/BGIA, "Recommendations for the design of workplaces with
collaborative robots", U 001/2009e, 2011, free of charge; its table also stands in R. Buxbaum, S. Sen, "Kollaborierende
Roboter in der Pflege" (in: Pflegeroboter, Springer, 2018, open access), table 1.4.  They are limits of what is
tolerable, drawn from literature, and of the same source as the stiffness of the regions
(`roboyard.people.anthropometry`).
Newer measurements of the onset of pain are open as well (R. Behrens et al., Frontiers in Robotics and AI 8:667818,
2022).

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

TRANSIENT_DURATION = 0.5
"""A contact that lasts longer counts as clamping, not as an impact [s]."""
INDENTATION_DEPTH = 0.005
"""Depth of indentation at which the pressure is computed [m]."""


@dataclass(frozen=True, slots=True)
class ContactLimits:
    """Contact limits of a body region.

    Attributes:
        max_clamping_force: Largest quasi-static force [N].
        max_impact_force: Largest force of an impact [N].
        max_pressure: Largest pressure [N/m²].
    """

    max_clamping_force: float
    max_impact_force: float
    max_pressure: float


def _make_limits(clamping: float, impact: float, pressure_per_cm2: float) -> ContactLimits:
    return ContactLimits(clamping, impact, pressure_per_cm2 * 1e4)


CONTACT_LIMITS: Mapping[str, ContactLimits] = {
    "skull": _make_limits(130.0, 175.0, 30.0),
    "face": _make_limits(65.0, 90.0, 20.0),
    # of the throat: a neck is touched from any side
    "neck": _make_limits(35.0, 35.0, 10.0),
    "back": _make_limits(210.0, 250.0, 70.0),
    "chest": _make_limits(140.0, 210.0, 45.0),
    "belly": _make_limits(110.0, 160.0, 35.0),
    "pelvis": _make_limits(180.0, 250.0, 75.0),
    "buttocks": _make_limits(210.0, 250.0, 80.0),
    "upper arm": _make_limits(150.0, 190.0, 50.0),
    "forearm": _make_limits(160.0, 220.0, 50.0),
    "hand": _make_limits(135.0, 180.0, 60.0),
    "thigh": _make_limits(220.0, 250.0, 80.0),
    "shank": _make_limits(140.0, 170.0, 45.0),
    "foot": _make_limits(125.0, 160.0, 45.0),
}
"""Limits by body region, with the names of `roboyard.people.anthropometry`."""


def region_limits(region: str) -> ContactLimits:
    """Return the limits of a region, with or without its side (``left hand``). Raises UnknownNameError."""
    name = region.removeprefix("left ").removeprefix("right ")
    if name not in CONTACT_LIMITS:
        raise UnknownNameError(f"no region {region!r}", valid=", ".join(CONTACT_LIMITS))
    return CONTACT_LIMITS[name]


def contact_area(radius: ArrayLike) -> Array:
    """Return the area of contact of a sphere of a radius [m] at the depth `INDENTATION_DEPTH`: that of a spherical cap
    [m²].
    """
    area: Array = 2.0 * math.pi * np.asarray(radius, dtype=np.float64) * INDENTATION_DEPTH
    return area


def impact_speed(force: ArrayLike, stiffness: ArrayLike, robot_mass: ArrayLike, person_mass: ArrayLike) -> Array:
    """Return the relative speed at which two masses [kg] that collide over a spring [N/m] reach a force [N] [m/s]."""
    reduced_mass = 1.0 / (1.0 / np.asarray(robot_mass) + 1.0 / np.asarray(person_mass))
    speed: Array = np.asarray(force) / np.sqrt(np.asarray(stiffness) * reduced_mass)
    return speed


def max_contact_speeds(parts: Sequence[str], radii: ArrayLike, robot_mass: float, limit_fraction: float = 1.0) -> Array:
    """Return the relative speeds (n, b) at which neither force nor pressure limits are exceeded in a contact [m/s].

    A part counts with the more sensitive of its regions.

    Args:
        parts: (b) names of body parts.
        radii: (n,) radii of the robot's capsules [m].
        robot_mass: Effective mass of the robot: half of the moving mass, and the load (ISO/TS 15066, A.3.4) [kg].
        limit_fraction: Fraction of the limits that is used.

    Raises:
        UnknownNameError: there is no such part.
    """
    area = contact_area(radii)
    speeds = np.empty((len(area), len(parts)))
    for column, part in enumerate(parts):
        name = segment_name(part)
        if name not in BODY_REGIONS:
            raise UnknownNameError(f"no part {part!r} of a body", valid=", ".join(BODY_REGIONS))
        mass = EFFECTIVE_MASSES[name]
        region_speeds = []
        for region in BODY_REGIONS[name]:
            limits = CONTACT_LIMITS[region.name]
            force = limit_fraction * np.minimum(limits.max_impact_force, limits.max_pressure * area)
            region_speeds.append(impact_speed(force, region.stiffness, robot_mass, mass))
        speeds[:, column] = np.min(region_speeds, axis=0)
    return speeds
