"""A table top that no laser sees: a depth camera's organised clouds close the way, and open it when it is gone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial import cKDTree
from tests.navigation.navigator_harness import SensorHarness, SensorRobot, costmap_config

from roboyard.geometry import SE2, SE3
from roboyard.mapping.nodes import OctreeNode
from roboyard.messages import msg
from roboyard.messages.convert import cloud_to_msg
from roboyard.navigation.nodes.observation_sources import observation_from_cloud

WIDTH, HEIGHT = 160, 120
MOUNT = SE3.from_rotation_matrix(
    # a metre up, looking ahead and 20° down; x right, y down, z forward in the picture
    np.array([[0.0, -np.sin(0.35), np.cos(0.35)], [-1.0, 0.0, 0.0], [0.0, -np.cos(0.35), -np.sin(0.35)]]),
    np.array([0.1, 0.0, 1.0]),
)
LOW, HIGH = np.array([2.5, 1.5, 0.70]), np.array([3.0, 2.5, 0.73])
"""Corners of the plate; its legs stand where no beam comes."""
LASER = {"type": "obstacles", "sources": [{"topic": "scan"}]}
TABLE: dict[str, Any] = {
    "type": "voxels",
    "sources": [{"topic": "depth/points", "data_type": "cloud", "timeout": 1.0}],
    "observation_filter": {"min_height": 0.05, "max_height": 1.2, "obstacle_max_range": 4.0},
    "voxels": {"resolution_z": 0.1, "z_voxels": 12},
}


U, V = np.meshgrid((np.arange(WIDTH) + 0.5) / WIDTH - 0.5, (np.arange(HEIGHT) + 0.5) / HEIGHT - 0.5)
RAYS = np.stack([1.15 * U, 0.86 * V, np.ones_like(U)], axis=-1)
"""(HEIGHT, WIDTH, 3) directions of the pixels in the optical frame."""


def render_points(pose: SE2, *, table: bool) -> np.ndarray:
    """(HEIGHT, WIDTH, 3) points in the optical frame of what a camera on the robot sees of plate, floor and wall."""
    T = pose.to_se3() @ MOUNT
    origin, directions = T.translation, (RAYS.reshape(-1, 3) @ T.rotation_matrix().T).reshape(RAYS.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        depth = np.where(directions[..., 2] < 0, -origin[2] / directions[..., 2], np.inf)
        first_face, second_face = (LOW - origin) / directions, (HIGH - origin) / directions
        enter, leave = (
            np.minimum(first_face, second_face).max(axis=-1),
            np.maximum(first_face, second_face).min(axis=-1),
        )
        wall = (5.95 - origin[0]) / directions[..., 0]
    depth = np.where(wall > 0, np.minimum(depth, wall), depth)
    if table:
        depth = np.where((enter > 0) & (enter <= leave), np.minimum(depth, enter), depth)
    depth[(depth > 6.0) | (depth < 0.3)] = np.nan
    return RAYS * depth[..., None]


def organized_cloud(points: np.ndarray, time_ns: int) -> Any:
    message = cloud_to_msg(points.reshape(-1, 3), "camera", time_ns)
    message.height, message.width = points.shape[:2]
    message.row_step = message.point_step * message.width
    return message


class TableRobot(SensorRobot):
    """A robot whose camera shows what `picture` sees.   out: depth/points"""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.publish_clouds = True, False

    def setup(self) -> None:
        super().setup()
        self.send_transform(MOUNT, "base_link", "camera", static=True)
        self.timer(rate=10.0, callback=self._publish_cloud)

    def _publish_cloud(self) -> None:
        if self._cloud.topic.subscriptions:
            self._cloud.publish(organized_cloud(render_points(self.pose, table=self.table), self.now_ns))


@pytest.mark.parametrize("use", ["voxels", "obstacles", "laser_only"])
def test_table_top_visible_to_the_camera_only_is_avoided(use: str) -> None:
    table = {
        "voxels": {"table": TABLE},
        "obstacles": {"table": {k: v for k, v in TABLE.items() if k != "voxels"} | {"type": "obstacles"}},
        "laser_only": {},
    }[use]
    with SensorHarness(costmap_config("obstacles", *table, obstacles=LASER, **table), TableRobot()) as harness:
        harness.run_until(1.0)
        assert harness.navigate(4.5, 2.0, timeout=60.0).succeeded
        assert harness.drove_over_the_bar() == (use == "laser_only")


def test_table_top_is_marked_and_cleared_after_removal() -> None:
    def lethal() -> np.ndarray:
        costs = harness.navigator._costmaps.get_global_costmap()
        points = costs.geometry.cell_centers(np.argwhere(costs.cells == 254))
        return points[(np.abs(points - (3.0, 2.0)) < (2.7, 1.7)).all(axis=1)]

    costmap = costmap_config("obstacles", "table", obstacles=LASER, table=TABLE)
    with SensorHarness(costmap, TableRobot()) as harness:
        harness.run_until(1.5)
        table_points = lethal()
        assert len(table_points) > 100  # most of the plate's 200 cells
        assert (table_points >= LOW[:2] - 0.06).all()
        assert (table_points <= HIGH[:2] + 0.06).all()
        harness.robot.table = False
        harness.run_until(3.0)
        assert len(lethal()) == 0


@pytest.mark.slow
def test_octree_projection_serves_as_the_map() -> None:
    costmap = costmap_config("obstacles", obstacles=LASER)
    settings = {"planner": {"type": "fast_marching", "settings": {"traversal": {"allow_unknown": True}}}}
    octree = OctreeNode(
        cloud_topic="depth/points", resolution=0.05, publish_period=0.5, occupancy_min_z=0.3, occupancy_max_z=1.2
    )
    with SensorHarness(costmap, TableRobot(), map_topic="projected_map", settings=settings) as harness:
        harness.add(octree, "octree")
        harness.run_until(3.0)
        costs = harness.navigator._costmaps.get_global_costmap()
        points = costs.geometry.cell_centers(np.argwhere(costs.cells == 254))
        plate = points[(np.abs(points - (2.75, 2.0)) < (0.5, 0.8)).all(axis=1)]
        assert len(plate) > 100
        assert harness.navigate(4.5, 2.0, timeout=60.0).succeeded
        assert not harness.drove_over_the_bar()


def test_downsampled_cloud_marks_within_a_cell_of_all_points() -> None:
    points = render_points(SE2(1.0, 2.0, 0.1), table=True)
    T = SE2(1.0, 2.0, 0.1).to_se3() @ MOUNT
    full = observation_from_cloud("camera", organized_cloud(points, 0), T)
    downsampled = observation_from_cloud("camera", organized_cloud(points, 0), T, voxel_size=0.05)
    assert len(full.points) == np.isfinite(points[..., 0]).sum()
    assert len(downsampled.points) < 0.6 * len(full.points)
    for one, other in ((full.points, downsampled.points), (downsampled.points, full.points)):
        assert cKDTree(other).query(one)[0].max() < 0.05 * np.sqrt(3.0)
    assert downsampled.hits.all()
    assert isinstance(organized_cloud(points, 0), msg.PointCloud2)
