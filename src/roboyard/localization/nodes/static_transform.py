"""A transform that never changes, as of an arm that is bolted to a table: ROS's static_transform_publisher."""

from __future__ import annotations

import math

from roboyard.bus import Node, param
from roboyard.errors import ConfigError
from roboyard.geometry import SE3


class StaticTransformNode(Node):
    """Tells once where a frame is in another one.

    out: /tf_static
    """

    parent: str = param("world", doc="frame in which the other one is", fixed=True)
    child: str = param("base_link", doc="the other one", fixed=True)
    pose: tuple[float, ...] = param((), doc="x y z roll pitch yaw of the child in the parent [m, rad]", fixed=True)

    def setup(self) -> None:
        """Tell it. Raises ConfigError where the pose is none."""
        if len(self.pose) != 6 or not all(map(math.isfinite, self.pose)):
            where = f"{self.full_name}, parameter 'pose'"
            raise ConfigError(f"{list(self.pose)}", location=where, valid="x, y, z, roll, pitch, yaw")
        x, y, z, roll, pitch, yaw = self.pose
        T = SE3.from_xyz_rpy((x, y, z), (roll, pitch, yaw))
        self.send_transform(T, self.frame(self.parent), self.frame(self.child), static=True)
