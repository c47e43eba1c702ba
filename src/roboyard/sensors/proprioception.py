"""Joint encoders, force-torque sensors, contact sensors, and ground truth as a sensor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.description.sensors import ContactSpec, EncoderSpec, ForceTorqueSpec, Sensor
from roboyard.errors import DescriptionError
from roboyard.physics.contacts import ContactPoint
from roboyard.physics.kernels.contacts import contact_points_in_frame
from roboyard.physics.world import GroundTruth
from roboyard.sensors.sensor import NoiseModel, SensorContext, SimulatedSensor, make_read_only


@dataclass(frozen=True, slots=True)
class EncoderReading:
    """Joint states.

    Attributes:
        time_ns: When.
        joints: Names.
        position: (n,) [rad or m], in whole steps if the encoder has a resolution.
        revolution_offset: (n,) full revolutions [rad] that a driver of an absolute encoder has counted and adds to the
            position; zero for others.
        velocity: (n,) [rad/s or m/s].
        effort: (n,) actuator effort [N m or N].
    """

    time_ns: int
    joints: tuple[str, ...]
    position: NDArray[np.float64]
    revolution_offset: NDArray[np.float64]
    velocity: NDArray[np.float64]
    effort: NDArray[np.float64]


class JointEncoder(SimulatedSensor[EncoderReading]):
    """Encoders on some or all scalar joints of a model."""

    kind = "encoder"

    def __init__(self, context: SensorContext, robot: str, sensor: Sensor) -> None:
        super().__init__(context, robot, sensor)
        if not isinstance(sensor.spec, EncoderSpec):
            raise DescriptionError(
                f"sensor {sensor.name} is an encoder without an encoder's description", location=robot
            )
        self._spec = sensor.spec
        addresses = context.world.addresses(robot).joints
        names = {address.name for address in addresses}
        missing = [joint for joint in sensor.spec.joints if joint not in names]
        if missing:
            raise DescriptionError(
                f"encoder {sensor.name} names joints that cannot move: {', '.join(missing)}",
                location=robot,
                valid=f"joints: {', '.join(sorted(names))}",
            )
        self.joints = sensor.spec.joints or tuple(address.name for address in addresses)
        self._miscount_offset, self._last_position = np.zeros(len(self.joints)), np.zeros(len(self.joints))
        self._resolution = 2.0 * math.pi / sensor.spec.resolution if sensor.spec.resolution > 0 else 0.0
        self.noise = NoiseModel([sensor.spec.noise] * len(self.joints), self.rng)

    def bind(self, context: SensorContext) -> None:
        """Find the joints' addresses."""
        self.context = context
        placement = self.context.world.addresses(self.robot)
        self.body = placement.links[self.sensor.link].body if self.sensor.link in placement.links else 0
        addresses = {address.name: address for address in placement.joints}
        self._qpos = np.array([addresses[joint].qpos for joint in self.joints], int)
        self._dof = np.array([addresses[joint].dof for joint in self.joints], int)
        self._is_rotary = np.array([not addresses[joint].is_prismatic for joint in self.joints], bool)

    def measure(self, time_ns: int, elapsed_ns: int) -> EncoderReading:
        """Read all joints."""
        data = self.context.world.data
        self.context.world.ensure_accelerations()
        position = data.qpos[self._qpos]
        if self._spec.miscount_probability > 0.0:
            self._miscount(position)
            position = position + self._miscount_offset
        if self._resolution > 0.0:
            # A count is passed, not approached: the encoder shows the last one passed.
            position = np.where(self._is_rotary, np.floor(position / self._resolution) * self._resolution, position)
        revolution_offset = np.zeros_like(position)
        if self._spec.absolute:
            wrapped = np.where(self._is_rotary, position % (2.0 * math.pi), position)
            position, revolution_offset = wrapped, position - wrapped
        velocity = self.add_noise(data.qvel[self._dof], elapsed_ns)
        effort = data.qfrc_actuator[self._dof]
        return EncoderReading(
            time_ns,
            self.joints,
            make_read_only(position),
            make_read_only(revolution_offset),
            make_read_only(velocity),
            make_read_only(effort),
        )

    @property
    def is_random(self) -> bool:
        """Whether it has noise or miscounts."""
        return super().is_random or self._spec.miscount_probability > 0.0

    def _miscount(self, position: NDArray[np.float64]) -> None:
        """Lose or repeat a count: each count since the last reading with the same probability."""
        resolution = self._resolution or 2.0 * math.pi / 4096
        n_counts = np.abs(np.floor(position / resolution) - np.floor(self._last_position / resolution)).astype(int)
        n_miscounts = self.rng.binomial(n_counts, self._spec.miscount_probability)
        self._miscount_offset = self._miscount_offset + resolution * (
            n_miscounts - 2 * self.rng.binomial(n_miscounts, 0.5)
        )
        self._last_position = position

    def save_noise(self) -> dict[str, Any]:
        """Biases and what was miscounted so far."""
        return {
            **super().save_noise(),
            "miscount_offset": self._miscount_offset.tolist(),
            "last_position": self._last_position.tolist(),
        }

    def load_noise(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save_noise`."""
        super().load_noise(saved)
        self._miscount_offset, self._last_position = (
            np.array(saved["miscount_offset"], float),
            np.array(saved["last_position"], float),
        )


@dataclass(frozen=True, slots=True)
class WrenchReading:
    """One sample.

    Attributes:
        time_ns: When.
        force: (3,) [N].
        torque: (3,) about the joint's origin [N m].
    """

    time_ns: int
    force: NDArray[np.float64]
    torque: NDArray[np.float64]


class ForceTorqueSensor(SimulatedSensor[WrenchReading]):
    """Force-torque sensor in a joint."""

    kind = "force_torque"

    def __init__(self, context: SensorContext, robot: str, sensor: Sensor) -> None:
        super().__init__(context, robot, sensor)
        if not isinstance(sensor.spec, ForceTorqueSpec):
            raise DescriptionError(f"sensor {sensor.name} lacks a force-torque sensor's description", location=robot)
        self.spec = sensor.spec
        self.noise = NoiseModel((*sensor.spec.force, *sensor.spec.torque), self.rng)

    def bind(self, context: SensorContext) -> None:
        """Find the two bodies.

        Raises:
            DescriptionError: the joint does not exist, or the model cannot move.
        """
        super().bind(context)
        placement = self.context.world.addresses(self.robot)
        joints = {joint.name: joint for joint in placement.entry.model.joints}
        joint = joints.get(self.spec.joint)
        if joint is None:
            raise DescriptionError(
                f"force-torque sensor {self.sensor.name} names joint {self.spec.joint!r}, which does not exist",
                location=self.robot,
                valid=", ".join(joints) or "none",
            )
        self._child = placement.links[joint.child].body
        self._parent = placement.links[joint.parent].body if joint.parent in placement.links else 0
        self._joint = joint.T_child_joint

    def measure(self, time_ns: int, elapsed_ns: int) -> WrenchReading:
        """Evaluate the forces of this instant."""
        data, child = self.context.world.data, self._child
        if child == 0:  # part of the scenery: nothing is worked out for it
            zero = make_read_only(np.zeros(3))
            return WrenchReading(time_ns, zero, zero)
        self.context.world.ensure_accelerations()
        child_rotation = data.xmat[child].reshape(3, 3)
        origin = data.xpos[child] + child_rotation @ self._joint.translation
        # MuJoCo keeps what a body gets from its parent, about the center of mass of the whole tree.
        torque, force = data.cfrc_int[child][:3], data.cfrc_int[child][3:]
        torque = torque + np.cross(data.subtree_com[self.context.world.model.body_rootid[child]] - origin, force)
        axes = {
            "child": child_rotation @ self._joint.rotation_matrix(),
            "parent": data.xmat[self._parent].reshape(3, 3),
            "sensor": self.rotation,
        }[self.spec.frame]
        # "child_to_parent" is what the child does to its parent: the opposite.
        sign = -1.0 if self.spec.direction == "child_to_parent" else 1.0
        noisy = self.add_noise(sign * np.concatenate([axes.T @ force, axes.T @ torque]), elapsed_ns)
        return WrenchReading(time_ns, make_read_only(noisy[:3].copy()), make_read_only(noisy[3:].copy()))


@dataclass(frozen=True, slots=True)
class ContactReading:
    """All contact points of this instant, in the sensor's frame."""

    time_ns: int
    contact_points: tuple[ContactPoint, ...]


class ContactSensor(SimulatedSensor[ContactReading]):
    """Contact sensor on the named collision shapes of its link, or on all of them."""

    kind = "contact"

    def __init__(self, context: SensorContext, robot: str, sensor: Sensor) -> None:
        super().__init__(context, robot, sensor)
        expect_kernels(contact_points_in_frame)
        if not isinstance(sensor.spec, ContactSpec):
            raise DescriptionError(f"sensor {sensor.name} is a contact sensor without its description", location=robot)
        self._collision_names = sensor.spec.collisions

    def bind(self, context: SensorContext) -> None:
        """Find the geoms."""
        super().bind(context)
        contacts = self.context.world.contacts
        index = self.context.world.addresses(self.robot).index
        self._is_sensor_geom = np.array(
            [contacts.is_link_geom(geom, index, self.sensor.link, self._collision_names) for geom in contacts.geoms],
            bool,
        )

    def measure(self, time_ns: int, elapsed_ns: int) -> ContactReading:
        """Gather the contacts of this instant."""
        return ContactReading(
            time_ns, self.context.world.find_contacts(self._is_sensor_geom, origin=self.position, axes=self.rotation)
        )


class GroundTruthSensor(SimulatedSensor[GroundTruth]):
    """True pose and velocity of the sensor's link."""

    kind = "ground_truth"

    def measure(self, time_ns: int, elapsed_ns: int) -> GroundTruth:
        """Read the state."""
        return self.context.world.link_ground_truth(self.context.world.addresses(self.robot).links[self.sensor.link])
