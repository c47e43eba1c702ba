"""Inertial unit: specific force and angular velocity in its own frame, and its orientation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.sensors import ImuSpec, Sensor
from roboyard.errors import DescriptionError
from roboyard.simulation.sensors.base import Host, SimulatedSensor, frozen
from roboyard.simulation.sensors.noise import Corruption


@dataclass(frozen=True, slots=True)
class ImuReading:
    """One sample.

    Attributes:
        time_ns: When.
        orientation: (4,) quaternion wxyz of the sensor frame in the world; None if the unit gives none.
        angular_velocity: (3,) in the sensor frame [rad/s].
        linear_acceleration: (3,) specific force in the sensor frame [m/s²]: what an accelerometer feels, +g upwards at
            rest.
    """

    time_ns: int
    orientation: NDArray[np.float64] | None
    angular_velocity: NDArray[np.float64]
    linear_acceleration: NDArray[np.float64]


class Imu(SimulatedSensor[ImuReading]):
    """Inertial unit."""

    kind = "imu"

    def __init__(self, host: Host, robot: str, sensor: Sensor) -> None:
        super().__init__(host, robot, sensor)
        if not isinstance(sensor.spec, ImuSpec):
            raise DescriptionError(f"sensor {sensor.name} is an imu without an imu's description", where=robot)
        self._orientation = sensor.spec.orientation
        self._noise = Corruption((*sensor.spec.angular_velocity, *sensor.spec.linear_acceleration), self.rng)
        self._velocity, self._acceleration = np.zeros(6), np.zeros(6)

    def measure(self, time_ns: int, elapsed_ns: int) -> ImuReading:
        """Evaluate the accelerations of this instant and add noise."""
        model, data, site = self.host.model, self.host.data, int(mujoco.mjtObj.mjOBJ_SITE)
        self.host.instant.accelerations()
        mujoco.mj_objectVelocity(model, data, site, self.site, self._velocity, 1)
        mujoco.mj_objectAcceleration(model, data, site, self.site, self._acceleration, 1)
        true = np.concatenate([self._velocity[:3], self._acceleration[3:]])
        noisy = self._noise.apply(true, elapsed_ns)
        orientation = None
        if self._orientation:
            quaternion = np.zeros(4)
            mujoco.mju_mat2Quat(quaternion, data.site_xmat[self.site])
            orientation = frozen(quaternion)
        return ImuReading(time_ns, orientation, frozen(noisy[:3].copy()), frozen(noisy[3:].copy()))

    def noise_state(self) -> dict[str, Any]:
        """Biases."""
        return self._noise.save()

    def restore_noise(self, saved: dict[str, Any]) -> None:
        """Counterpart of `noise_state`."""
        self._noise.load(saved)
