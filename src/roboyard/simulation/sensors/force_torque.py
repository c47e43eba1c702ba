"""Force and torque that a joint carries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.description.sensors import ForceTorqueSpec, Sensor
from roboyard.errors import DescriptionError
from roboyard.simulation.sensors.base import Host, SimulatedSensor, frozen
from roboyard.simulation.sensors.noise import Corruption


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


class ForceTorque(SimulatedSensor[WrenchReading]):
    """Force-torque sensor in a joint."""

    kind = "force_torque"

    def __init__(self, host: Host, robot: str, sensor: Sensor) -> None:
        super().__init__(host, robot, sensor)
        if not isinstance(sensor.spec, ForceTorqueSpec):
            raise DescriptionError(f"sensor {sensor.name} lacks a force-torque sensor's description", location=robot)
        self.spec = sensor.spec
        self.noise = Corruption((*sensor.spec.force, *sensor.spec.torque), self.rng)

    def bind(self) -> None:
        """Find the two bodies.

        Raises:
            DescriptionError: the joint does not exist, or the model cannot move.
        """
        super().bind()
        placement = self.host.placement(self.robot)
        joints = {joint.name: joint for joint in placement.entry.model.joints}
        joint = joints.get(self.spec.joint)
        if joint is None:
            raise DescriptionError(
                f"force-torque sensor {self.sensor.name} stands in joint {self.spec.joint!r}, which does not exist",
                location=self.robot,
                valid=", ".join(joints) or "none",
            )
        self._child = placement.links[joint.child].body
        self._parent = placement.links[joint.parent].body if joint.parent in placement.links else 0
        self._joint = joint.T_child_joint

    def measure(self, time_ns: int, elapsed_ns: int) -> WrenchReading:
        """Evaluate the forces of this instant."""
        data, child = self.host.data, self._child
        if child == 0:  # part of the scenery: nothing is worked out for it
            zero = frozen(np.zeros(3))
            return WrenchReading(time_ns, zero, zero)
        self.host.instant.accelerations()
        turn = data.xmat[child].reshape(3, 3)
        origin = data.xpos[child] + turn @ self._joint.translation
        # The engine keeps what a body gets from its parent, about the centre of mass of the whole tree.
        torque, force = data.cfrc_int[child][:3], data.cfrc_int[child][3:]
        torque = torque + np.cross(data.subtree_com[self.host.model.body_rootid[child]] - origin, force)
        axes = {
            "child": turn @ self._joint.rotation_matrix(),
            "parent": data.xmat[self._parent].reshape(3, 3),
            "sensor": data.site_xmat[self.site].reshape(3, 3),
        }[self.spec.frame]
        # "child_to_parent" is what the child does to its parent: the opposite.
        sign = -1.0 if self.spec.direction == "child_to_parent" else 1.0
        noisy = self.noisy(sign * np.concatenate([axes.T @ force, axes.T @ torque]), elapsed_ns)
        return WrenchReading(time_ns, frozen(noisy[:3].copy()), frozen(noisy[3:].copy()))
