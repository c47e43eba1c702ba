"""One scan of a planar range finder, as algorithms see it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError
from roboyard.geometry import SE2


@dataclass(frozen=True, slots=True)
class Scan:
    """What one laser saw in one turn.

    Attributes:
        time_ns: Moment of the first beam [ns].
        ranges: (n,) float32 [m]; what is not between ``range_min`` and ``range_max``, infinite or NaN hit nothing.
        angle_min: Direction of the first beam in the laser's frame [rad].
        angle_increment: From beam to beam [rad]; negative for a laser mounted upside down or turning clockwise.
        range_min: Shortest range that counts [m].
        range_max: Longest range that counts [m]; what is not nearer hit nothing.
        time_increment: From beam to beam [s]; 0 where the log does not tell.
        T_base_laser: Where the laser sits.
        odometry: ``T_odom_base`` at ``time_ns``, or None where there is no odometry.
        laser: Name of the laser: its topic or frame.

    Raises:
        InputError: ranges of another shape, or angles and limits that are not finite.
    """

    time_ns: int
    ranges: NDArray[np.float32]
    angle_min: float
    angle_increment: float
    range_min: float
    range_max: float
    time_increment: float = 0.0
    T_base_laser: SE2 = field(default_factory=SE2.identity)
    odometry: SE2 | None = None
    laser: str = "scan"

    def __post_init__(self) -> None:
        if np.ndim(self.ranges) != 1:
            raise InputError(f"a scan with ranges of shape {np.shape(self.ranges)}", location=self.laser, valid="(n,)")
        numbers = (self.angle_min, self.angle_increment, self.range_min, self.time_increment)
        if not all(math.isfinite(number) for number in numbers) or math.isnan(self.range_max):
            raise InputError("a scan with angles or limits that are not finite", location=self.laser, valid="rad and m")

    @property
    def angles(self) -> NDArray[np.float64]:
        """Directions of the beams in the laser's frame (n,) [rad]."""
        return np.asarray(self.angle_min + self.angle_increment * np.arange(len(self.ranges)), dtype=np.float64)

    @property
    def hits(self) -> NDArray[np.bool_]:
        """Which beams hit something (n,)."""
        with np.errstate(invalid="ignore"):
            return np.asarray((self.ranges > self.range_min) & (self.ranges < self.range_max) & (self.ranges > 0.0))

    def points(self) -> NDArray[np.float64]:
        """Where the beams hit (m, 2), in the base's frame [m], as if the base had stood still during the turn."""
        hits = self.hits
        ranges, angles = self.ranges[hits].astype(np.float64), self.angles[hits]
        return self.T_base_laser @ np.column_stack([ranges * np.cos(angles), ranges * np.sin(angles)])
