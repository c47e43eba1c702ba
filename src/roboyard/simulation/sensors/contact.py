"""Contact sensor: what touches a link, where, and how hard."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roboyard.compute import expect_kernels
from roboyard.description.sensors import ContactSpec, Sensor
from roboyard.errors import DescriptionError
from roboyard.simulation.contact_loop import touches_at
from roboyard.simulation.sensors.base import Host, SimulatedSensor
from roboyard.simulation.touch import Touch, touches_of


@dataclass(frozen=True, slots=True)
class ContactReading:
    """All touches of this instant, in the sensor's frame."""

    time_ns: int
    touches: tuple[Touch, ...]


class Contact(SimulatedSensor[ContactReading]):
    """Contact sensor on the named collision shapes of its link, or on all of them."""

    kind = "contact"

    def __init__(self, host: Host, robot: str, sensor: Sensor) -> None:
        super().__init__(host, robot, sensor)
        expect_kernels(touches_at)
        if not isinstance(sensor.spec, ContactSpec):
            raise DescriptionError(f"sensor {sensor.name} is a contact sensor without its description", location=robot)
        self._parts = sensor.spec.collisions

    def bind(self) -> None:
        """Find the geoms."""
        super().bind()
        watch = self.host.watch
        index = self.host.placement(self.robot).index
        self._geoms = np.array(
            [watch.is_part(geom, index, self.sensor.link, self._parts) for geom in watch.geoms], bool
        )
        data = self.host.data  # views of which, that see where the sensor is at any moment
        self._origin, self._axes = data.site_xpos[self.site], data.site_xmat[self.site].reshape(3, 3)

    def measure(self, time_ns: int, elapsed_ns: int) -> ContactReading:
        """Gather the contacts of this instant."""
        return ContactReading(time_ns, touches_of(self.host, self._geoms, origin=self._origin, axes=self._axes))
