"""Inertial unit: specific force and angular velocity in its own frame, and its orientation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.description.sensors import ImuSpec, Sensor
from roboyard.errors import DescriptionError
from roboyard.simulation.native import object_function
from roboyard.simulation.sensors.base import Host, SimulatedSensor, frozen
from roboyard.simulation.sensors.noise import Corruption

_velocity = object_function("mj_objectVelocity")
_acceleration = object_function("mj_objectAcceleration")
_SITE = int(mujoco.mjtObj.mjOBJ_SITE)


def _example() -> Iterable[tuple[Any, ...]]:
    yield (0, 0, 0)


@kernel(examples=_example)
def motion_of_site(model: int, data: int, site: int) -> NDArray[np.float64]:
    """Angular velocity and specific force of a site in its own frame: (6,) [rad/s, m/s²].

    Args:
        model: Address of the engine's model.
        data: Address of its data, accelerations evaluated.
        site: Its number.
    """
    velocity, acceleration = np.empty(6), np.empty(6)
    _velocity(model, data, _SITE, site, velocity.ctypes.data, 1)
    _acceleration(model, data, _SITE, site, acceleration.ctypes.data, 1)
    acceleration[:3] = velocity[:3]
    return acceleration


@kernel(examples=_example)
def velocity_of_site(model: int, data: int, site: int) -> NDArray[np.float64]:
    """Linear velocity of a site in the world: (3,) [m/s].

    Args:
        model: Address of the engine's model.
        data: Address of its data, velocities evaluated.
        site: Its number.
    """
    velocity = np.empty(6)
    _velocity(model, data, _SITE, site, velocity.ctypes.data, 0)
    return velocity[3:]


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
        expect_kernels(motion_of_site)
        if not isinstance(sensor.spec, ImuSpec):
            raise DescriptionError(f"sensor {sensor.name} is an imu without an imu's description", location=robot)
        self._orientation = sensor.spec.orientation
        self.noise = Corruption((*sensor.spec.angular_velocity, *sensor.spec.linear_acceleration), self.rng)

    def bind(self) -> None:
        """Look at its axes, as they are at any moment."""
        super().bind()
        self._axes = self.host.data.site_xmat[self.site]

    def measure(self, time_ns: int, elapsed_ns: int) -> ImuReading:
        """Evaluate the accelerations of this instant and add noise."""
        self.host.instant.accelerations()
        true = motion_of_site(self.host.model._address, self.host.data._address, self.site)
        noisy = frozen(self.noisy(true, elapsed_ns))
        orientation = None
        if self._orientation:
            quaternion = np.empty(4)
            mujoco.mju_mat2Quat(quaternion, self._axes)
            orientation = frozen(quaternion)
        return ImuReading(time_ns, orientation, noisy[:3], noisy[3:])
