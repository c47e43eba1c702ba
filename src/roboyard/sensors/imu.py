"""IMU, accelerometer, gyroscope and magnetometer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.description.sensors import ImuSpec, Sensor, ThreeAxisSpec
from roboyard.errors import DescriptionError
from roboyard.physics.mujoco_memory import mujoco_object_function
from roboyard.sensors.sensor import NoiseModel, SensorContext, SimulatedSensor, make_read_only

_object_velocity = mujoco_object_function("mj_objectVelocity")
_object_acceleration = mujoco_object_function("mj_objectAcceleration")
_SITE = int(mujoco.mjtObj.mjOBJ_SITE)


def _example_site() -> Iterable[tuple[Any, ...]]:
    yield (0, 0, 0)


@kernel(examples=_example_site)
def compute_site_motion(model: int, data: int, site: int) -> NDArray[np.float64]:
    """Angular velocity and specific force of a site in its own frame: (6,) [rad/s, m/s²].

    Args:
        model: Address of MuJoCo's model.
        data: Address of its data, accelerations evaluated.
        site: Its number.
    """
    velocity, acceleration = np.empty(6), np.empty(6)
    _object_velocity(model, data, _SITE, site, velocity.ctypes.data, 1)
    _object_acceleration(model, data, _SITE, site, acceleration.ctypes.data, 1)
    acceleration[:3] = velocity[:3]
    return acceleration


@kernel(examples=_example_site)
def compute_site_velocity(model: int, data: int, site: int) -> NDArray[np.float64]:
    """Linear velocity of a site in the world: (3,) [m/s].

    Args:
        model: Address of MuJoCo's model.
        data: Address of its data, velocities evaluated.
        site: Its number.
    """
    velocity = np.empty(6)
    _object_velocity(model, data, _SITE, site, velocity.ctypes.data, 0)
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


class ImuSensor(SimulatedSensor[ImuReading]):
    """Inertial unit."""

    kind = "imu"

    def __init__(self, context: SensorContext, robot: str, sensor: Sensor) -> None:
        super().__init__(context, robot, sensor)
        expect_kernels(compute_site_motion)
        if not isinstance(sensor.spec, ImuSpec):
            raise DescriptionError(f"sensor {sensor.name} is an imu without an imu's description", location=robot)
        self._orientation = sensor.spec.orientation
        self.noise = NoiseModel((*sensor.spec.angular_velocity, *sensor.spec.linear_acceleration), self.rng)

    def measure(self, time_ns: int, elapsed_ns: int) -> ImuReading:
        """Evaluate the accelerations of this instant and add noise."""
        self.context.world.ensure_accelerations()
        true_motion = compute_site_motion(
            self.context.world.model._address, self.context.world.data._address, self.site
        )
        noisy = make_read_only(self.add_noise(true_motion, elapsed_ns))
        orientation = None
        if self._orientation:
            quaternion = np.empty(4)
            mujoco.mju_mat2Quat(quaternion, self.rotation.ravel())
            orientation = make_read_only(quaternion)
        return ImuReading(time_ns, orientation, noisy[:3], noisy[3:])


@dataclass(frozen=True, slots=True)
class ThreeAxisReading:
    """One sample.

    Attributes:
        time_ns: When.
        vector: (3,) in the sensor frame [m/s², rad/s or T].
    """

    time_ns: int
    vector: NDArray[np.float64]


class ThreeAxisSensor(SimulatedSensor[ThreeAxisReading]):
    """A sensor of three axes; a kind says what is true in its frame."""

    def __init__(self, context: SensorContext, robot: str, sensor: Sensor) -> None:
        super().__init__(context, robot, sensor)
        if not isinstance(sensor.spec, ThreeAxisSpec):
            raise DescriptionError(f"sensor {sensor.name} is a {self.kind} without its description", location=robot)
        self.noise = NoiseModel(sensor.spec.axes, self.rng)

    @abstractmethod
    def true_value(self) -> NDArray[np.float64]:
        """(3,) without error."""

    def measure(self, time_ns: int, elapsed_ns: int) -> ThreeAxisReading:
        """The truth with noise."""
        return ThreeAxisReading(time_ns, make_read_only(self.add_noise(self.true_value(), elapsed_ns)))


class Accelerometer(ThreeAxisSensor):
    """Specific force [m/s²]: at rest g upwards, in free fall nothing."""

    kind = "accelerometer"

    def true_value(self) -> NDArray[np.float64]:
        """Specific force in the sensor frame."""
        self.context.world.ensure_accelerations()
        return compute_site_motion(self.context.world.model._address, self.context.world.data._address, self.site)[3:]


class Gyroscope(ThreeAxisSensor):
    """Angular velocity [rad/s]."""

    kind = "gyroscope"

    def true_value(self) -> NDArray[np.float64]:
        """Angular velocity in the sensor frame."""
        self.context.world.ensure_accelerations()
        return compute_site_motion(self.context.world.model._address, self.context.world.data._address, self.site)[:3]


class Magnetometer(ThreeAxisSensor):
    """The world's magnetic field [T]."""

    kind = "magnetometer"

    def true_value(self) -> NDArray[np.float64]:
        """Field in the sensor frame."""
        return np.asarray(self.rotation.T @ np.array(self.context.environment.magnetic_field))
