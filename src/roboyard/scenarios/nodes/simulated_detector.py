"""A node that detects the objects of a simulation with a set noise, as a detector on a camera does."""

from __future__ import annotations

import numpy as np

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.description.extent import bounding_box
from roboyard.geometry import SE3
from roboyard.messages import msg
from roboyard.messages.convert.detections import make_detection, make_detection_array
from roboyard.scenarios.nodes.actors import movable_objects
from roboyard.scenarios.nodes.ground_truth import FRAME
from roboyard.simulation import Simulation


class SimulatedDetectorNodeConfig(Config):
    """Configuration of `SimulatedDetectorNode`."""

    objects: tuple[str, ...] = parameter((), doc="Names of the objects, or prefixes of names.")
    rate: float = parameter(10.0, unit="Hz", low=0.1, high=100.0, doc="Rate of the detections.")
    position_noise: float = parameter(0.001, unit="m", low=0.0, high=1.0, doc="Standard deviation of each coordinate.")
    rotation_noise: float = parameter(
        0.005, unit="rad", low=0.0, high=1.0, doc="Standard deviation of the rotation about each axis."
    )


class SimulatedDetectorNode(Node[SimulatedDetectorNodeConfig]):
    """Publishes the poses of objects as a detector on a camera does, with a configured noise.

    out: detections (vision_msgs/Detection3DArray in the frame ``world``; ids are the names of the objects, boxes
    contain them)

    Each detection has its own error, drawn by the run's seed.  The node detects only while there is a subscriber.
    """

    simulation: Simulation = resource(Simulation)

    def setup(self) -> None:
        """Advertise the detections."""
        self._object_names = movable_objects(
            self.simulation, self.config.objects, f"{self.full_name}, parameter 'objects'"
        )
        self._sizes = {name: bounding_box(self.simulation.models[name].model) for name in self._object_names}
        self._publisher = self.publisher("detections", msg.vision_msgs.Detection3DArray)
        self.timer(rate=self.config.rate, callback=self._detect)

    def _detect(self) -> None:
        if not self._publisher.topic.subscriptions:
            return
        covariance = np.diag([self.config.position_noise**2] * 3 + [self.config.rotation_noise**2] * 3)
        found = []
        for name in self._object_names:
            if name in self.simulation.models:
                T = self.simulation.ground_truth(name).T_world_base @ self._sample_error()
                found.append(make_detection(FRAME, self.now_ns, T, self._sizes[name], name, 1.0, covariance))
        self._publisher.publish(make_detection_array(FRAME, self.now_ns, found))

    def _sample_error(self) -> SE3:
        x, y, z = self.random.normal(0.0, self.config.position_noise, 3).tolist()
        roll, pitch, yaw = self.random.normal(0.0, self.config.rotation_noise, 3).tolist()
        return SE3.from_xyz_rpy((x, y, z), (roll, pitch, yaw))
