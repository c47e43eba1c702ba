"""What makes wheel odometry lie, to try estimators with: wheels that are not what the software takes them for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from roboyard.control.kinematics import DifferentialDrive
from roboyard.errors import ConfigError
from roboyard.geometry import SE2


@dataclass(frozen=True, slots=True)
class OdometryErrors:
    """Errors of a two-sided drive and its encoders.

    The systematic ones are those of J. Borenstein, L. Feng, Measurement and Correction of Systematic Odometry Errors in
    Mobile Robots, 1996: scale, unequal diameters, track.

    Attributes:
        radius: True over nominal wheel radius.
        inequality: True left over true right radius.
        track: True over nominal track.
        resolution: Steps of the encoder in a turn of the wheel; 0: endlessly fine.
        miscounts: Chance that a reading has gained or lost steps.
        miscount_steps: Most steps gained or lost at once.
        slip: Standard deviation of each side's way that the wheels turn in vain, after one metre [m]; grows with the
            root of the way.
        rate: Readings a second at most [Hz]; 0: every one.

    Raises:
        ConfigError: a value is out of range.
    """

    radius: float = 1.0
    inequality: float = 1.0
    track: float = 1.0
    resolution: int = 0
    miscounts: float = 0.0
    miscount_steps: int = 1
    slip: float = 0.0
    rate: float = 0.0

    def __post_init__(self) -> None:
        for name, low, high in (
            ("radius", 0.1, 10.0), ("inequality", 0.1, 10.0), ("track", 0.1, 10.0), ("resolution", 0, 10**9),
            ("miscounts", 0.0, 1.0), ("miscount_steps", 1, 10**6), ("slip", 0.0, 10.0), ("rate", 0.0, 1e6),
        ):  # fmt: skip
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"{name} = {value}", location="OdometryErrors", valid=f"from {low:g} to {high:g}")

    def true_drive(self, nominal: DifferentialDrive) -> DifferentialDrive:
        """The drive as it truly is, of which the software knows ``nominal``."""
        half = math.sqrt(self.inequality)
        return replace(
            nominal,
            left_radius_scale=nominal.left_radius_scale * self.radius * half,
            right_radius_scale=nominal.right_radius_scale * self.radius / half,
            track=nominal.track * self.track,
        )


class FaultyWheels:
    """Encoders of a base that is moved: what they say, with all errors.

    Args:
        nominal: The drive as the software knows it.
        errors: How it differs.
        rng: Slip and miscounts come from it.
    """

    def __init__(self, nominal: DifferentialDrive, errors: OdometryErrors, rng: np.random.Generator) -> None:
        self.errors = errors
        self._drive = errors.true_drive(nominal)
        self._rng = rng
        self._angles = np.zeros(2)
        self._lost = np.zeros(2)
        self._last_ns: int | None = None

    def move(self, way: float, turn: float) -> None:
        """The base truly moves along an arc of length ``way`` [m] over the angle ``turn`` [rad]."""
        rolled = np.array(self._drive.side_speeds(way, turn))
        if self.errors.slip:
            scale = np.array([self._drive.left_radius_scale, self._drive.right_radius_scale])
            radii = self._drive.wheel_radius * scale
            spread = self.errors.slip * np.sqrt(np.abs(rolled) * radii) / radii
            rolled = rolled + spread * self._rng.standard_normal(2)
        self._angles += rolled

    def read(self, time_ns: int) -> tuple[float, float] | None:
        """Left and right angle [rad] as told at a time; None when the last reading is too recent."""
        errors = self.errors
        if errors.rate and self._last_ns is not None and (time_ns - self._last_ns) * errors.rate < 1e9 - 1:
            return None
        self._last_ns = time_ns
        step = math.tau / errors.resolution if errors.resolution else math.tau / 4096
        if errors.miscounts:
            missed = self._rng.random(2) < errors.miscounts
            sizes = self._rng.integers(1, errors.miscount_steps + 1, 2) * self._rng.choice([-1, 1], 2)
            self._lost += np.where(missed, sizes * step, 0.0)
        told = self._angles + self._lost
        if errors.resolution:
            told = np.floor(told / step) * step
        return float(told[0]), float(told[1])

    def save_state(self) -> dict[str, Any]:
        """State as plain data, without the generator."""
        return {"angles": self._angles.tolist(), "lost": self._lost.tolist(), "last_ns": self._last_ns}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._angles, self._lost = np.array(state["angles"]), np.array(state["lost"])
        self._last_ns = state["last_ns"]


def faulty_readings(
    poses: Iterable[tuple[int, SE2]], nominal: DifferentialDrive, errors: OdometryErrors, rng: np.random.Generator
) -> Iterator[tuple[int, float, float]]:
    """Readings (time [ns], left, right [rad]) of a base that truly was at ``poses`` (time [ns], ``T_world_base``).

    From pose to pose it drives the arc that leads there; what an arc cannot do sideways is done unseen.
    """
    wheels = FaultyWheels(nominal, errors, rng)
    before: SE2 | None = None
    for time_ns, pose in poses:
        if before is not None:
            way, _, turn = (before.inverse() @ pose).log().tolist()
            wheels.move(way, turn)
        before = pose
        told = wheels.read(time_ns)
        if told is not None:
            yield (time_ns, *told)
