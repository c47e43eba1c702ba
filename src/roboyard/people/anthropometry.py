"""Dimensions and masses of people, and the stiffness and effective mass of their body regions.

Lengths of segments are fractions of the stature by R. Drillis and R. Contini ("Body Segment Parameters", New York
University, 1966), masses are fractions of the body mass by W. T. Dempster ("Space Requirements of the Seated Operator",
WADC 55-159, 1955), both as D. A. Winter prints them ("Biomechanics and Motor Control of Human Movement", 4th edition,
2009, figure 4.1 and table 4.1).  Statures are those of the U.S. Army's survey of 2012 (C. C. Gordon et al.,
NATICK/TR-15/007, 2014).

The stiffness of body regions follows the recommendations of the German accident insurers' institute (BG/BGIA,
"Recommendations for the design of workplaces with collaborative robots", U 001/2009e, 2011: compression constants).
The effective masses are those of models of impacts on people (head 4.4 kg, trunk 40 kg, arm 3 kg, forearm 2 kg, hand
0.6 kg; a standing leg carries the body).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from roboyard.errors import ConfigError

Sex = Literal["female", "male"]

STATURES: dict[Sex, tuple[float, float]] = {"female": (1.628, 0.064), "male": (1.756, 0.069)}
"""Mean and standard deviation of the stature [m]."""
MIN_STATURE, MAX_STATURE = 0.8, 2.5
"""Bounds of the stature [m]."""
BODY_MASS_INDEX = 24.0
"""Default mass over squared stature [kg/m²]."""
MIN_BODY_MASS_INDEX, MAX_BODY_MASS_INDEX = 12.0, 60.0
"""Bounds of the body mass over the squared stature [kg/m²]."""

ANKLE_HEIGHT, KNEE_HEIGHT, HIP_HEIGHT, SHOULDER_HEIGHT = 0.039, 0.285, 0.530, 0.818
"""Heights of the joints, as fractions of the stature; so are the following lengths."""
HALF_HIP_WIDTH, HALF_SHOULDER_WIDTH = 0.052, 0.129
UPPER_ARM_LENGTH, FOREARM_LENGTH, HAND_LENGTH = 0.186, 0.146, 0.108
FOOT_LENGTH, HEEL_LENGTH = 0.152, 0.035
HEAD_HEIGHT = 0.130

MASS_FRACTIONS = {
    "pelvis": 0.142,
    "abdomen": 0.139,
    "chest": 0.216,
    "neck": 0.015,
    "head": 0.066,
    "upper_arm": 0.028,
    "forearm": 0.016,
    "hand": 0.006,
    "thigh": 0.100,
    "shank": 0.0465,
    "foot": 0.0145,
}
"""Mass of each segment, as a fraction of the body mass; head and neck, 0.081 together, by their volumes."""
SEGMENT_DENSITIES = {
    "pelvis": 1010.0,
    "abdomen": 1010.0,
    "chest": 920.0,
    "neck": 1110.0,
    "head": 1110.0,
    "upper_arm": 1070.0,
    "forearm": 1130.0,
    "hand": 1160.0,
    "thigh": 1050.0,
    "shank": 1090.0,
    "foot": 1100.0,
}
"""Density of each segment [kg/m³]."""


@dataclass(frozen=True, slots=True)
class BodyDimensions:
    """Stature and mass of a person.

    Attributes:
        height: Stature [m].
        mass: Body mass [kg].

    Raises:
        ConfigError: The stature or the mass is out of bounds.
    """

    height: float
    mass: float

    def __post_init__(self) -> None:
        if not MIN_STATURE <= self.height <= MAX_STATURE:
            raise ConfigError(f"a person {self.height} m tall", valid=f"from {MIN_STATURE:g} to {MAX_STATURE:g} m")
        body_mass_index = self.mass / self.height**2
        if not MIN_BODY_MASS_INDEX <= body_mass_index <= MAX_BODY_MASS_INDEX:
            low, high = (bound * self.height**2 for bound in (MIN_BODY_MASS_INDEX, MAX_BODY_MASS_INDEX))
            raise ConfigError(
                f"a person {self.height:g} m tall with {self.mass} kg", valid=f"from {low:.0f} to {high:.0f} kg"
            )

    @classmethod
    def from_height(cls, height: float, mass: float | None = None) -> BodyDimensions:
        """Return a person of this stature [m]; default mass [kg]: by `BODY_MASS_INDEX`. Raises ConfigError."""
        return cls(height, BODY_MASS_INDEX * height**2 if mass is None else mass)

    @classmethod
    def from_percentile(cls, percentile: float, sex: Sex, mass: float | None = None) -> BodyDimensions:
        """Return a person whose stature is this percentile of a sex.

        Args:
            percentile: Percentage of people of this sex who are shorter, between 0 and 100.
            sex: Sex of the person.
            mass: Body mass [kg]; None: by `BODY_MASS_INDEX`.

        Raises:
            ConfigError: The percentile or the sex does not exist.
        """
        if not 0.0 < percentile < 100.0:
            raise ConfigError(f"the {percentile}th percentile of statures", valid="more than 0 and less than 100")
        if sex not in STATURES:
            raise ConfigError(f"statures of sex {sex!r}", valid=f"one of: {', '.join(STATURES)}")
        return cls.from_height(NormalDist(*STATURES[sex]).inv_cdf(percentile / 100.0), mass)

    def segment_mass(self, segment: str) -> float:
        """Return the mass of a segment of `MASS_FRACTIONS` [kg]."""
        return MASS_FRACTIONS[segment] * self.mass

    def segment_volume(self, segment: str) -> float:
        """Return the volume of a segment [m³]."""
        return self.segment_mass(segment) / SEGMENT_DENSITIES[segment]


def compute_capsule_radius(volume: float, cylinder_length: float) -> float:
    """Return the radius [m] of a capsule with this volume [m³] and cylinder length [m]."""
    low, high = 0.0, math.cbrt(0.75 * volume / math.pi)
    for _ in range(60):
        radius = 0.5 * (low + high)
        capsule_volume = math.pi * radius**2 * cylinder_length + 4.0 / 3.0 * math.pi * radius**3
        low, high = (radius, high) if capsule_volume < volume else (low, radius)
    return 0.5 * (low + high)


def compute_capsule_length(volume: float, radius: float) -> float:
    """Return the cylinder length [m], at least 0, of a capsule with this volume [m³] and radius [m]."""
    return max(volume - 4.0 / 3.0 * math.pi * radius**3, 0.0) / (math.pi * radius**2)


REFERENCE_BODY_MASS = 75.0
"""Body mass to which the effective masses refer [kg]."""


@dataclass(frozen=True, slots=True)
class BodyRegion:
    """A region of the body.

    Attributes:
        name: Name of the region.
        stiffness: Stiffness of a contact [N/m].
    """

    name: str
    stiffness: float


SKULL, FACE = BodyRegion("skull", 150e3), BodyRegion("face", 75e3)
NECK = BodyRegion("neck", 50e3)
BACK, CHEST, BELLY = BodyRegion("back", 35e3), BodyRegion("chest", 25e3), BodyRegion("belly", 10e3)
PELVIS, BUTTOCKS = BodyRegion("pelvis", 25e3), BodyRegion("buttocks", 15e3)
UPPER_ARM, FOREARM, HAND = BodyRegion("upper arm", 30e3), BodyRegion("forearm", 40e3), BodyRegion("hand", 75e3)
THIGH, SHANK, FOOT = BodyRegion("thigh", 50e3), BodyRegion("shank", 60e3), BodyRegion("foot", 75e3)

BODY_REGIONS: dict[str, tuple[BodyRegion, BodyRegion]] = {
    "pelvis": (PELVIS, BUTTOCKS),
    "abdomen": (BELLY, BACK),
    "chest": (CHEST, BACK),
    "neck": (NECK, NECK),
    "head": (FACE, SKULL),
    "upper_arm": (UPPER_ARM, UPPER_ARM),
    "forearm": (FOREARM, FOREARM),
    "hand": (HAND, HAND),
    "thigh": (THIGH, THIGH),
    "shank": (SHANK, SHANK),
    "foot": (FOOT, FOOT),
}
"""Regions of each segment: touched from the front, and from elsewhere."""

EFFECTIVE_MASSES = {
    "pelvis": 40.0,
    "abdomen": 40.0,
    "chest": 40.0,
    "neck": 1.2,
    "head": 4.4,
    "upper_arm": 3.0,
    "forearm": 2.0,
    "hand": 0.6,
    "thigh": 75.0,
    "shank": 75.0,
    "foot": 75.0,
}
"""Effective mass of each segment in an impact [kg], for a person of 75 kg."""
