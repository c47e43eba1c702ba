"""How large people are, and what their parts weigh.

Lengths of segments are shares of the stature by R. Drillis and R. Contini ("Body Segment Parameters", New York
University, 1966), masses shares of the body's by W. T. Dempster ("Space Requirements of the Seated Operator", WADC
55-159, 1955), both as D. A. Winter prints them ("Biomechanics and Motor Control of Human Movement", 4th edition, 2009,
figure 4.1 and table 4.1).  Statures are those of the U.S. Army's survey of 2012 (C. C. Gordon et al., NATICK/TR-15/007,
2014).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from roboyard.errors import ConfigError

Sex = Literal["female", "male"]

STATURES: dict[Sex, tuple[float, float]] = {"female": (1.628, 0.064), "male": (1.756, 0.069)}
"""Mean and standard deviation [m]."""
SHORTEST, TALLEST = 0.8, 2.5
"""Of people that are made [m]: a small child, and nobody is taller."""
BODY_MASS_INDEX = 24.0
"""Mass over squared stature, unless the mass is said [kg/m²]."""
LEANEST, HEAVIEST = 12.0, 60.0
"""Bounds of that index."""

ANKLE, KNEE, HIP, SHOULDER = 0.039, 0.285, 0.530, 0.818
"""Heights of the joints, as shares of the stature; so are the lengths that follow."""
HIP_ASIDE, SHOULDER_ASIDE = 0.052, 0.129
UPPER_ARM, FOREARM, HAND = 0.186, 0.146, 0.108
FOOT_LENGTH, HEEL = 0.152, 0.035
HEAD = 0.130

SHARES = {
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
"""Of the body's mass; head and neck, 0.081 together, are parted by their volumes."""
DENSITIES = {
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
"""[kg/m³]"""


@dataclass(frozen=True, slots=True)
class Physique:
    """How large and heavy somebody is.

    Attributes:
        height: Stature [m].
        mass: Of the body [kg].

    Raises:
        ConfigError: nobody is so short, tall, light or heavy.
    """

    height: float
    mass: float

    def __post_init__(self) -> None:
        if not SHORTEST <= self.height <= TALLEST:
            raise ConfigError(f"a person {self.height} m tall", valid=f"from {SHORTEST:g} to {TALLEST:g} m")
        index = self.mass / self.height**2
        if not LEANEST <= index <= HEAVIEST:
            low, high = (bound * self.height**2 for bound in (LEANEST, HEAVIEST))
            raise ConfigError(
                f"a person {self.height:g} m tall with {self.mass} kg", valid=f"from {low:.0f} to {high:.0f} kg"
            )

    @classmethod
    def of_height(cls, height: float, mass: float | None = None) -> Physique:
        """Somebody so tall [m], of usual mass unless it is said [kg]. Raises ConfigError."""
        return cls(height, BODY_MASS_INDEX * height**2 if mass is None else mass)

    @classmethod
    def of_percentile(cls, percentile: float, sex: Sex, mass: float | None = None) -> Physique:
        """Somebody as tall as this part of all people of a sex at most is.

        Args:
            percentile: More than 0 and less than 100.
            sex: Whose.
            mass: Of the body [kg].

        Raises:
            ConfigError: there is no such percentile or sex.
        """
        if not 0.0 < percentile < 100.0:
            raise ConfigError(f"the {percentile}th percentile of statures", valid="more than 0 and less than 100")
        if sex not in STATURES:
            raise ConfigError(f"statures of sex {sex!r}", valid=f"one of: {', '.join(STATURES)}")
        return cls.of_height(NormalDist(*STATURES[sex]).inv_cdf(percentile / 100.0), mass)

    def part_mass(self, segment: str) -> float:
        """Of a segment, as `SHARES` names it [kg]."""
        return SHARES[segment] * self.mass

    def part_volume(self, segment: str) -> float:
        """Of a segment [m³]."""
        return self.part_mass(segment) / DENSITIES[segment]


def capsule_radius(volume: float, length: float) -> float:
    """Radius [m] of a capsule with this volume [m³] whose ends' centres are ``length`` [m] apart."""
    low, high = 0.0, math.cbrt(0.75 * volume / math.pi)
    for _ in range(60):
        middle = 0.5 * (low + high)
        filled = math.pi * middle**2 * length + 4.0 / 3.0 * math.pi * middle**3
        low, high = (middle, high) if filled < volume else (low, middle)
    return 0.5 * (low + high)


def capsule_length(volume: float, radius: float) -> float:
    """How far the ends' centres of a capsule with this volume [m³] and radius [m] are apart [m], at least 0."""
    return max(volume - 4.0 / 3.0 * math.pi * radius**3, 0.0) / (math.pi * radius**2)
