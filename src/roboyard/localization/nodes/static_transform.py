"""A transform that never changes, as of an arm that is bolted to a table: ROS's static_transform_publisher."""

from __future__ import annotations

import math

from roboyard.bus import Node
from roboyard.config import Config, parameter
from roboyard.errors import ConfigError
from roboyard.geometry import SE3


class StaticTransformNodeConfig(Config):
    """Configuration of `StaticTransformNode`."""

    parent: str = parameter("world", doc="Frame in which the other one is placed.")
    child: str = parameter("base_link", doc="Frame that is placed.")
    pose: tuple[float, ...] = parameter((), doc="Pose x y z roll pitch yaw of the child in the parent [m, rad].")


class StaticTransformNode(Node[StaticTransformNodeConfig]):
    """Tells once where a frame is in another one.

    out: /tf_static
    """

    def setup(self) -> None:
        """Tell it. Raises ConfigError where the pose is none."""
        if len(self.config.pose) != 6 or not all(map(math.isfinite, self.config.pose)):
            where = f"{self.full_name}, parameter 'pose'"
            raise ConfigError(f"{list(self.config.pose)}", location=where, valid="x, y, z, roll, pitch, yaw")
        x, y, z, roll, pitch, yaw = self.config.pose
        T = SE3.from_xyz_rpy((x, y, z), (roll, pitch, yaw))
        self.send_transform(T, self.frame(self.config.parent), self.frame(self.config.child), static=True)
