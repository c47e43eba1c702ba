"""The self filter: a depth camera's cloud without the robot in it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from roboyard.bus import MessageFilter, Node, resource
from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.description import Model
from roboyard.errors import MessageError
from roboyard.manipulation.collision.self_filter import FilterShapes, _mark_near_points
from roboyard.messages import msg, to_nanoseconds
from roboyard.messages.convert import cloud_points, cloud_to_msg

_TRANSFORM_TIMEOUT: Final = 0.3
"""A cloud waits for its transforms until it is older than this [s]."""
_QUEUE_SIZE: Final = 4


class SelfFilterNodeConfig(Config):
    """Configuration of `SelfFilterNode`."""

    cloud_topic: str = parameter("cloud_in", doc="Topic of the clouds.")
    padding: float = parameter(
        0.03, unit="m", low=0.0, high=1.0, runtime=True, doc="Distance from the links within which points are removed."
    )
    decimation: int = parameter(
        1, low=1, high=64, runtime=True, doc="Step between the used rows and columns of an organized cloud."
    )
    max_range: float = parameter(
        10.0, unit="m", low=0.1, high=1000.0, runtime=True, doc="Range beyond which points are ignored."
    )
    max_rate: float = parameter(10.0, unit="Hz", low=0.01, high=100.0, doc="Largest rate of processed clouds.")


class SelfFilterNode(Node[SelfFilterNodeConfig]):
    """Removes the robot's own points from a cloud.

    in: cloud_in (sensor_msgs/PointCloud2; another topic by the parameter cloud_topic), /tf from the cloud's frame to
        the robot's links
    out: cloud_filtered (sensor_msgs/PointCloud2, x, y and z of the points that are left, not organized)

    A point belongs to the robot if it is nearer than ``padding`` to the collision shape of a link, with the transforms
    at the cloud's time.  A grasped object is not part of the robot.
    """

    description: Model = resource(Model)

    state_fields = ("_last_cloud_ns",)

    def setup(self) -> None:
        """Create the input, the message filter and the output."""
        expect_kernels(_mark_near_points)
        self._shapes = FilterShapes.from_model(self.description)
        self._last_cloud_ns = -(10**18)
        self._cloud_publisher = self.publisher("cloud_filtered", msg.PointCloud2)
        self.subscribe(self.config.cloud_topic, msg.PointCloud2, self._on_cloud)
        self._links = tuple(map(self.frame, self._shapes.frame_names))
        self._clouds = MessageFilter(
            self,
            self._filter,
            target_frames=self._links,
            queue_size=_QUEUE_SIZE,
            timeout=_TRANSFORM_TIMEOUT,
            retry_period=0.02,
        )

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return super().save_state() | {"clouds": self._clouds.save_state()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what ``save_state`` returned."""
        super().load_state(saved)
        self._clouds.load_state(saved["clouds"])

    def _on_cloud(self, message: Any) -> None:
        time_ns = to_nanoseconds(message.header.stamp)
        # a little less than a period: stamps jitter
        is_due = time_ns - self._last_cloud_ns >= round(0.9e9 / self.config.max_rate)
        if is_due and self._clouds.add(message, self.config.cloud_topic):
            self._last_cloud_ns = time_ns

    def _filter(self, message: Any, topic: str) -> None:
        time_ns, sensor = to_nanoseconds(message.header.stamp), message.header.frame_id
        poses = [self.transforms.lookup(sensor, link, time_ns) for link in self._links]
        try:
            points = cloud_points(message, stride=self.config.decimation)
        except MessageError as error:
            self.report_health("error", f"a cloud is ignored: {error}")
            return
        points = points[np.einsum("ij,ij->i", points, points) <= self.config.max_range**2]
        is_robot = self._shapes.contains(points, poses, self.config.padding)
        self._cloud_publisher.publish(cloud_to_msg(points[~is_robot], sensor, time_ns))
        self.report_health("ok", f"{int(is_robot.sum())} of {len(points)} points are the robot's own")
