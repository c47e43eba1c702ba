"""Stands in for a camera that finds things: their true poses, with an error, where they are in its sight."""

from __future__ import annotations

import numpy as np

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.description.extent import bounding_box
from roboyard.geometry import SE3
from roboyard.messages import msg
from roboyard.scenarios.supply import movable
from roboyard.simulation import Simulation
from roboyard.vision.nodes.detections import detection, detections

FRAME = "world"


class ThingFinderNodeConfig(Config):
    """Configuration of `ThingFinderNode`."""

    things: tuple[str, ...] = parameter((), doc="Names of the things, or beginnings of names.")
    rate: float = parameter(10.0, unit="Hz", low=0.1, high=100.0, doc="Rate of the looks.")
    noise: float = parameter(0.001, unit="m", low=0.0, high=1.0, doc="Standard deviation of each coordinate.")
    turn_noise: float = parameter(
        0.005, unit="rad", low=0.0, high=1.0, doc="Standard deviation of the rotation about each axis."
    )


class ThingFinderNode(Node[ThingFinderNodeConfig]):
    """Tells where things are, as a detector does that sees them.

    out: found (vision_msgs/Detection3DArray in the frame ``world``; ids are the things' names, boxes hold them)

    Each look has an error of its own, drawn by the run's seed.  It looks only while somebody listens.
    """

    simulation: Simulation = resource(Simulation)

    def setup(self) -> None:
        """Begin."""
        self._names = movable(self.simulation, self.config.things, f"{self.full_name}, parameter 'things'")
        self._sizes = {name: bounding_box(self.simulation.models[name].model) for name in self._names}
        self._found = self.publisher("found", msg.vision_msgs.Detection3DArray)
        self.timer(rate=self.config.rate, callback=self._look)

    def _look(self) -> None:
        if not self._found.topic.subscriptions:
            return
        covariance = np.diag([self.config.noise**2] * 3 + [self.config.turn_noise**2] * 3)
        seen = []
        for name in self._names:
            if name in self.simulation.models:
                T = self.simulation.truth(name).T_world_base @ self._error()
                seen.append(detection(FRAME, self.now_ns, T, self._sizes[name], name, 1.0, covariance))
        self._found.publish(detections(FRAME, self.now_ns, seen))

    def _error(self) -> SE3:
        x, y, z = self.random.normal(0.0, self.config.noise, 3).tolist()
        roll, pitch, yaw = self.random.normal(0.0, self.config.turn_noise, 3).tolist()
        return SE3.from_xyz_rpy((x, y, z), (roll, pitch, yaw))
