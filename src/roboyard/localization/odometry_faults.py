"""Systematic and random errors of wheel odometry, for tests of estimators (Borenstein and Feng 1996)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from roboyard.control.wheel_kinematics import DifferentialDrive
from roboyard.errors import ConfigError
from roboyard.geometry import SE2


@dataclass(frozen=True, slots=True)
class OdometryErrorModel:
    """Errors of a drive with a left and a right side, and of its encoders.

    The systematic errors are those of J. Borenstein, L. Feng, Measurement and Correction of Systematic Odometry Errors
    in Mobile Robots, 1996: scale, unequal diameters, track.

    Attributes:
        radius_scale: True over nominal wheel radius.
        diameter_ratio: True left over true right wheel diameter.
        track_scale: True over nominal track.
        encoder_resolution: Steps of the encoder per revolution of the wheel; 0: continuous.
        miscount_probability: Probability that a reading has gained or lost steps.
        max_miscount: Largest number of steps gained or lost at once.
        slip_std: Standard deviation of the distance that each side slips after one meter [m]; grows with the square
            root of the distance.
        max_rate: Largest rate of readings [Hz]; 0: not limited.

    Raises:
        ConfigError: A value is out of range.
    """

    radius_scale: float = 1.0
    diameter_ratio: float = 1.0
    track_scale: float = 1.0
    encoder_resolution: int = 0
    miscount_probability: float = 0.0
    max_miscount: int = 1
    slip_std: float = 0.0
    max_rate: float = 0.0

    def __post_init__(self) -> None:
        for name, low, high in (
            ("radius_scale", 0.1, 10.0), ("diameter_ratio", 0.1, 10.0), ("track_scale", 0.1, 10.0),
            ("encoder_resolution", 0, 10**9), ("miscount_probability", 0.0, 1.0), ("max_miscount", 1, 10**6),
            ("slip_std", 0.0, 10.0), ("max_rate", 0.0, 1e6),
        ):  # fmt: skip
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"{name} = {value}", location="OdometryErrorModel", valid=f"from {low:g} to {high:g}")

    def apply_to_drive(self, nominal: DifferentialDrive) -> DifferentialDrive:
        """Return the true drive that the software takes for ``nominal``."""
        sqrt_ratio = math.sqrt(self.diameter_ratio)
        return replace(
            nominal,
            left_radius_scale=nominal.left_radius_scale * self.radius_scale * sqrt_ratio,
            right_radius_scale=nominal.right_radius_scale * self.radius_scale / sqrt_ratio,
            track=nominal.track * self.track_scale,
        )


class FaultyEncoders:
    """Simulated encoders of a moving base, with all errors of a model.

    Args:
        nominal: The drive as the software knows it.
        errors: How the true drive differs.
        rng: Generator of slip and miscounts.
    """

    def __init__(self, nominal: DifferentialDrive, errors: OdometryErrorModel, rng: np.random.Generator) -> None:
        self.errors = errors
        self._drive = errors.apply_to_drive(nominal)
        self._rng = rng
        self._angles = np.zeros(2)
        self._lost_angles = np.zeros(2)
        self._last_ns: int | None = None

    def advance(self, distance: float, rotation: float) -> None:
        """Move the true base along an arc of a length [m] over a rotation [rad]."""
        wheel_rotations = np.array(self._drive.left_right_speeds(distance, rotation))
        if self.errors.slip_std:
            scale = np.array([self._drive.left_radius_scale, self._drive.right_radius_scale])
            radii = self._drive.wheel_radius * scale
            slip_std = self.errors.slip_std * np.sqrt(np.abs(wheel_rotations) * radii) / radii
            wheel_rotations = wheel_rotations + slip_std * self._rng.standard_normal(2)
        self._angles += wheel_rotations

    def read(self, time_ns: int) -> tuple[float, float] | None:
        """Return the measured angles of the left and the right side [rad]; None before the next reading is due."""
        errors = self.errors
        if errors.max_rate and self._last_ns is not None and (time_ns - self._last_ns) * errors.max_rate < 1e9 - 1:
            return None
        self._last_ns = time_ns
        step = math.tau / errors.encoder_resolution if errors.encoder_resolution else math.tau / 4096
        if errors.miscount_probability:
            is_miscounted = self._rng.random(2) < errors.miscount_probability
            miscounts = self._rng.integers(1, errors.max_miscount + 1, 2) * self._rng.choice([-1, 1], 2)
            self._lost_angles += np.where(is_miscounted, miscounts * step, 0.0)
        measured = self._angles + self._lost_angles
        if errors.encoder_resolution:
            measured = np.floor(measured / step) * step
        return float(measured[0]), float(measured[1])

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data, without the generator."""
        return {"angles": self._angles.tolist(), "lost_angles": self._lost_angles.tolist(), "last_ns": self._last_ns}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``save_state`` returned."""
        self._angles, self._lost_angles = np.array(state["angles"]), np.array(state["lost_angles"])
        self._last_ns = state["last_ns"]


def simulate_faulty_readings(
    poses: Iterable[tuple[int, SE2]], nominal: DifferentialDrive, errors: OdometryErrorModel, rng: np.random.Generator
) -> Iterator[tuple[int, float, float]]:
    """Yield readings (time [ns], left, right [rad]) of a base with the true ``poses`` (time [ns], ``T_world_base``).

    The base moves from pose to pose along an arc.  The encoders do not measure lateral motion.
    """
    encoders = FaultyEncoders(nominal, errors, rng)
    previous: SE2 | None = None
    for time_ns, pose in poses:
        if previous is not None:
            distance, _, rotation = (previous.inverse() @ pose).log().tolist()
            encoders.advance(distance, rotation)
        previous = pose
        reading = encoders.read(time_ns)
        if reading is not None:
            yield (time_ns, *reading)
