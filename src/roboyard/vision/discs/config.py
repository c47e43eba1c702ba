"""What a disc looks like, and how sure one has to be."""

from __future__ import annotations

import math
from typing import Literal

from roboyard.config import Config, parameter
from roboyard.errors import ConfigError

Polarity = Literal["white", "black"]
Mode = Literal["single", "pair"]
POLARITIES: tuple[Polarity, ...] = ("white", "black")
MODES: tuple[Mode, ...] = ("single", "pair")


class DiscConfig(Config):
    """What is looked for."""

    polarity: Polarity = parameter(
        "white",
        choices=POLARITIES,
        doc="Brightness of the discs: white ones have a dark mark in their middle, black ones a light mark.",
    )
    mode: Mode = parameter(
        "single", choices=MODES, doc="Single discs, or the middles between pairs of discs at a given distance."
    )
    diameter: float = parameter(0.020, unit="m", low=1e-4, high=10.0, doc="Diameter of the real disc.")
    diameter_tolerance: float = parameter(
        0.003, unit="m", low=0.0, high=10.0, doc="Largest error of the diameter, where depth shows the real one."
    )
    distance: float = parameter(0.052, unit="m", low=1e-4, high=10.0, doc="Distance between the middles of a pair.")
    distance_tolerance: float = parameter(0.003, unit="m", low=0.0, high=10.0, doc="Largest error of that distance.")
    sensitivity: float = parameter(
        0.7,
        low=0.0,
        high=1.0,
        doc="Sensitivity of the detection, from 0 (only what is beyond doubt) to 1 (whatever may be a disc).",
    )
    mark: bool = parameter(True, doc="Require the mark.")
    mark_contrast: float = parameter(
        0.08,
        low=0.0,
        high=1.0,
        doc="Smallest difference of mark and disc, as a share of the gray level of the lighter one.",
    )
    radius_min: float = parameter(
        6.0, low=3.0, high=500.0, doc="Smallest longer half axis of a disc's ellipse in the picture [px]."
    )
    radius_max: float = parameter(
        18.0, low=3.0, high=500.0, doc="Largest longer half axis of a disc's ellipse in the picture [px]."
    )
    tilt_max: float = parameter(
        math.radians(50.0),
        unit="rad",
        low=0.0,
        high=math.radians(75.0),
        doc="Largest angle between the disc's normal and the ray to the camera.",
    )

    def validate(self) -> None:
        """Check the order of the radii."""
        if self.radius_max < self.radius_min:
            raise ConfigError(f"radius_max = {self.radius_max:g} px", valid=f"radius_min or more, {self.radius_min:g}")
