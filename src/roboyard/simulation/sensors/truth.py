"""Ground truth as a sensor: pose and velocity of its link, without error."""

from __future__ import annotations

from roboyard.simulation.sensors.base import SimulatedSensor
from roboyard.simulation.truth import Truth, link_truth


class TruthSensor(SimulatedSensor[Truth]):
    """True pose and velocity of the sensor's link."""

    kind = "ground_truth"

    def measure(self, time_ns: int, elapsed_ns: int) -> Truth:
        """Read the state."""
        return link_truth(self.host, self.host.placement(self.robot).links[self.sensor.link])
