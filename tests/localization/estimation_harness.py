"""A bus with a node that estimates poses, and what tests publish for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.harness.bus import BusHarness
from tests.localization.simulated_scans import drive, make_room_map

from roboyard.bus import Node
from roboyard.geometry import SE2, SE3
from roboyard.mapping import LaserScan
from roboyard.messages import msg
from roboyard.messages.convert import (
    ScanGeometry,
    grid_to_msg,
    make_header,
    pose_to_msg,
    pose_to_se2,
    scan_to_msg,
)

START = SE2(3.0, 1.5, 0.4)
STEP = 100_000_000


class EstimationHarness(BusHarness):
    """A bus with a node that estimates poses, and what a test publishes for it.

    Args:
        node: The node.
        name: Its name.
    """

    def __init__(self, node: Node, name: str) -> None:
        super().__init__()
        self.node = self.add(node, name)

    @property
    def pose(self) -> SE2:
        """The newest pose that the node published on /amcl_pose."""
        return pose_to_se2(self.last("/amcl_pose").pose.pose)

    def run_until_ns(self, time_ns: int) -> None:
        """Run up to a moment [ns]; deliver what is on its way if that has passed."""
        self.bus.executor.run_until(max(time_ns, self.now_ns))

    def set_laser(self, T_base_laser: SE3) -> None:
        """Mount the laser on the base."""
        self.set_transform(T_base_laser, "base_link", "laser", static=True, time_ns=0)

    def send_map(self, frame: str = "map") -> None:
        """Publish the map of the room."""
        grid = make_room_map()
        message = grid_to_msg(grid.cells, grid.geometry.resolution, grid.geometry.T_map_grid, frame, 0)
        self.publish("/map", message, latched=True)
        self.deliver()

    def send_initial_pose(self, frame: str = "map") -> None:
        """Publish where the robot starts."""
        covariance = np.zeros((6, 6))
        covariance[[0, 1, 5], [0, 1, 5]] = 0.02
        pose = msg.PoseWithCovariance(pose=pose_to_msg(START), covariance=covariance.ravel())
        self.send("/initialpose", msg.PoseWithCovarianceStamped(header=make_header(frame, 0), pose=pose))

    def send_scan(self, scan: LaserScan) -> None:
        """Publish a scan."""
        geometry = ScanGeometry(scan.angle_min, scan.angle_increment, 0.1, 20.0)
        message = scan_to_msg(scan.ranges, geometry, frame="laser", time_ns=scan.time_ns)
        self.send("/scan", message)

    def set_odometry(self, T_odom_base: SE2, time_ns: int) -> None:
        """Put the pose of the base in the odometry's frame into the transforms."""
        self.set_transform(T_odom_base, "odom", "base_link", time_ns=time_ns)

    def drive(self, steps: int = 40, first: int = 0) -> SE2:
        """Drive steps ``first`` to ``steps`` of the circle with scans and odometry; the true pose at the end."""
        self.set_laser(SE2(0.1, 0.0, 0.0).to_se3())
        poses = []
        for pose, scan in list(drive(make_room_map(), START, steps, 0))[first:]:
            self.run_until_ns(scan.time_ns)
            self.send_scan(scan)  # the transform of its moment comes after it
            self.set_odometry(scan.odometry, scan.time_ns)
            poses.append(pose)
        self.run_until_ns(self.now_ns + STEP)
        return poses[-1]


def retimed(scan: LaserScan, time_ns: int, **fields: Any) -> LaserScan:
    """A scan of another moment without a mount."""
    return LaserScan(time_ns, scan.ranges, scan.angle_min, scan.angle_increment, 0.1, 20.0, **fields)
