"""Accelerometer, gyroscope, magnetometer: three axes of one thing."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.description.sensors import Sensor, ThreeAxisSpec
from roboyard.errors import DescriptionError
from roboyard.simulation.sensors.base import Host, SimulatedSensor, frozen
from roboyard.simulation.sensors.imu import motion_of_site
from roboyard.simulation.sensors.noise import Corruption


@dataclass(frozen=True, slots=True)
class VectorReading:
    """One sample.

    Attributes:
        time_ns: When.
        vector: (3,) in the sensor frame [m/s², rad/s or T].
    """

    time_ns: int
    vector: NDArray[np.float64]


class VectorSensor(SimulatedSensor[VectorReading]):
    """A sensor of three axes; a kind says what is true in its frame."""

    def __init__(self, host: Host, robot: str, sensor: Sensor) -> None:
        super().__init__(host, robot, sensor)
        if not isinstance(sensor.spec, ThreeAxisSpec):
            raise DescriptionError(f"sensor {sensor.name} is a {self.kind} without its description", location=robot)
        self.noise = Corruption(sensor.spec.axes, self.rng)

    @abstractmethod
    def true(self) -> NDArray[np.float64]:
        """(3,) without error."""

    def measure(self, time_ns: int, elapsed_ns: int) -> VectorReading:
        """The truth with noise."""
        return VectorReading(time_ns, frozen(self.noisy(self.true(), elapsed_ns)))


class Accelerometer(VectorSensor):
    """Specific force [m/s²]: at rest g upwards, in free fall nothing."""

    kind = "accelerometer"

    def true(self) -> NDArray[np.float64]:
        """Specific force in the sensor frame."""
        self.host.instant.accelerations()
        return motion_of_site(self.host.model._address, self.host.data._address, self.site)[3:]


class Gyroscope(VectorSensor):
    """Angular velocity [rad/s]."""

    kind = "gyroscope"

    def true(self) -> NDArray[np.float64]:
        """Angular velocity in the sensor frame."""
        self.host.instant.accelerations()
        return motion_of_site(self.host.model._address, self.host.data._address, self.site)[:3]


class Magnetometer(VectorSensor):
    """The world's magnetic field [T]."""

    kind = "magnetometer"

    def true(self) -> NDArray[np.float64]:
        """Field in the sensor frame."""
        turn = self.host.data.site_xmat[self.site].reshape(3, 3)
        return np.asarray(turn.T @ np.array(self.host.world.magnetic_field))
