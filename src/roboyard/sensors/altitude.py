"""Altimeter and barometer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from roboyard.description.sensors import AltimeterSpec, BarometerSpec, Sensor
from roboyard.errors import DescriptionError
from roboyard.geometry.constants import (
    GAS_CONSTANT,
    MOLAR_MASS_OF_AIR,
    SEA_LEVEL_PRESSURE,
    SEA_LEVEL_TEMPERATURE,
    STANDARD_GRAVITY,
    TEMPERATURE_LAPSE_RATE,
)
from roboyard.sensors.imu import compute_site_velocity
from roboyard.sensors.sensor import NoiseModel, SensorContext, SimulatedSensor

# International Standard Atmosphere up to 11 km (ISO 2533).
_EXPONENT = STANDARD_GRAVITY * MOLAR_MASS_OF_AIR / (GAS_CONSTANT * TEMPERATURE_LAPSE_RATE)


@dataclass(frozen=True, slots=True)
class AltimeterReading:
    """Height over the place where it was switched on [m], climbing speed [m/s], height of that place [m]."""

    time_ns: int
    height: float
    vertical_velocity: float
    reference: float


class Altimeter(SimulatedSensor[AltimeterReading]):
    """Height over where it was when it was switched on."""

    kind = "altimeter"

    def __init__(self, context: SensorContext, robot: str, sensor: Sensor) -> None:
        super().__init__(context, robot, sensor)
        if not isinstance(sensor.spec, AltimeterSpec):
            raise DescriptionError(f"sensor {sensor.name} is an altimeter without its description", location=robot)
        self.noise = NoiseModel((sensor.spec.position, sensor.spec.velocity), self.rng)
        self._reference: float | None = None

    def bind(self, context: SensorContext) -> None:
        """Find the site; the first time also the height it starts from."""
        super().bind(context)
        if self._reference is None:
            self._reference = float(self.position[2])

    def measure(self, time_ns: int, elapsed_ns: int) -> AltimeterReading:
        """Read height and speed."""
        reference = self._reference or 0.0
        height = float(self.position[2]) - reference
        vertical_velocity = float(
            compute_site_velocity(self.context.world.model._address, self.context.world.data._address, self.site)[2]
        )
        noisy = self.add_noise(np.array([height, vertical_velocity]), elapsed_ns)
        return AltimeterReading(time_ns, float(noisy[0]), float(noisy[1]), reference)

    def save_noise(self) -> dict[str, Any]:
        """Biases, and the height it started from."""
        return {**super().save_noise(), "reference": self._reference}

    def load_noise(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save_noise`."""
        super().load_noise(saved)
        self._reference = saved["reference"]


@dataclass(frozen=True, slots=True)
class PressureReading:
    """Air pressure [Pa] and the variance of its noise [Pa²]."""

    time_ns: int
    pressure: float
    variance: float


def air_pressure(altitude: float) -> float:
    """Pressure [Pa] of the standard atmosphere at an altitude [m] below 11 km."""
    return SEA_LEVEL_PRESSURE * float(
        math.pow(max(1.0 - TEMPERATURE_LAPSE_RATE * altitude / SEA_LEVEL_TEMPERATURE, 0.0), _EXPONENT)
    )


class Barometer(SimulatedSensor[PressureReading]):
    """Air pressure."""

    kind = "air_pressure"

    def __init__(self, context: SensorContext, robot: str, sensor: Sensor) -> None:
        super().__init__(context, robot, sensor)
        if not isinstance(sensor.spec, BarometerSpec):
            raise DescriptionError(f"sensor {sensor.name} is a barometer without its description", location=robot)
        self._spec = sensor.spec
        self.noise = NoiseModel((sensor.spec.noise,), self.rng)

    def measure(self, time_ns: int, elapsed_ns: int) -> PressureReading:
        """Read the pressure."""
        altitude = self._spec.reference_altitude + float(self.position[2])
        noisy = self.add_noise(np.array([air_pressure(altitude)]), elapsed_ns)
        return PressureReading(time_ns, float(noisy[0]), self._spec.noise.stddev**2)
