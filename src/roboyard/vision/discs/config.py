"""What a disc looks like, and how sure one has to be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from roboyard.errors import InputError

Polarity = Literal["white", "black"]
Mode = Literal["single", "pair"]
POLARITIES: tuple[Polarity, ...] = ("white", "black")
MODES: tuple[Mode, ...] = ("single", "pair")


@dataclass(frozen=True)
class DiscConfig:
    """What is looked for.

    Attributes:
        polarity: ``white`` discs have a dark mark in their middle, ``black`` ones a light mark.
        mode: ``single`` discs, or the middles between a ``pair`` of discs a given distance apart.
        diameter: Of the real disc [m].
        diameter_tolerance: By so much it may differ, where depth tells the real one [m].
        distance: Between the middles of a pair [m].
        distance_tolerance: By so much it may differ [m].
        sensitivity: From 0 (only what is beyond doubt) to 1 (whatever may be a disc).
        mark: Whether a disc must have the mark.
        mark_contrast: Least difference of mark and disc, as a share of the lighter one's grey level.
        radius_min: Of the disc in the picture: the longer half axis of its ellipse [px].
        radius_max: [px].
        tilt_max: Between the disc's normal and the way to the camera [rad].
    """

    polarity: Polarity = "white"
    mode: Mode = "single"
    diameter: float = 0.020
    diameter_tolerance: float = 0.003
    distance: float = 0.052
    distance_tolerance: float = 0.003
    sensitivity: float = 0.7
    mark: bool = True
    mark_contrast: float = 0.08
    radius_min: float = 6.0
    radius_max: float = 18.0
    tilt_max: float = math.radians(50.0)

    def __post_init__(self) -> None:
        _one_of("polarity", self.polarity, POLARITIES)
        _one_of("mode", self.mode, MODES)
        for name in ("diameter", "distance"):
            _between(name, getattr(self, name), 1e-4, 10.0, "m")
        for name in ("diameter_tolerance", "distance_tolerance"):
            _between(name, getattr(self, name), 0.0, 10.0, "m")
        _between("sensitivity", self.sensitivity, 0.0, 1.0, "")
        _between("mark_contrast", self.mark_contrast, 0.0, 1.0, "")
        _between("tilt_max", self.tilt_max, 0.0, math.radians(75.0), "rad")
        _between("radius_min", self.radius_min, 3.0, 500.0, "px")
        _between("radius_max", self.radius_max, self.radius_min, 500.0, "px")


def _one_of(name: str, value: str, names: tuple[str, ...]) -> None:
    if value not in names:
        raise InputError(f"{name} {value!r}", location="DiscConfig", valid=", ".join(names))


def _between(name: str, value: float, low: float, high: float, unit: str) -> None:
    if not low <= value <= high:
        raise InputError(f"{name} {value:g}", location="DiscConfig", valid=f"{low:g} to {high:g} {unit}".strip())
