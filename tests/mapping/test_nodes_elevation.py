"""The elevation map in a live run: it says what the map says, with the robot, and leaves out what it cannot place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.harness.bus import BusHarness
from tests.mapping.depth_camera import camera_pose, render_cloud

from roboyard.geometry import SE3
from roboyard.mapping.elevation import ElevationMap, ElevationMapConfig
from roboyard.mapping.nodes import ElevationNode
from roboyard.messages import msg, srv
from roboyard.messages.convert import cloud_to_msg, pose_to_msg
from roboyard.messages.convert.grid_maps import CEILING, VARIANCE, heights_from_msg, layer_from_msg

START = 10**9
CONFIG = ElevationMapConfig(resolution=0.05, length_in_x=3.0, length_in_y=2.0)


def waves(x: Any, y: Any) -> Any:
    return 0.03 * np.sin(4.0 * x)


def layer(message: Any, name: str) -> Any:
    found = layer_from_msg(message, name)
    assert found is not None
    return found


class ElevationHarness(BusHarness):
    """A bus with an elevation node, into which clouds of a robot that drives forward are played."""

    def __init__(self, **parameters: Any) -> None:
        super().__init__()
        self.node = self.add(ElevationNode(**{"elevation": CONFIG, "publish_period": 0.0, **parameters}), "elevation")
        self.maps = self.record("/elevation_map", msg.GridMap)

    def view(self, k: int) -> tuple[SE3, SE3, np.ndarray]:
        """Poses of base and camera in the map at step k, and the points that the camera sees."""
        T_map_base = SE3.from_xyz_rpy((0.1 * k, 0.0, 0.0), (0.0, 0.0, 0.0))
        T_map_camera = T_map_base @ camera_pose(0.0, 0.0, 0.3)
        return T_map_base, T_map_camera, render_cloud(waves, T_map_camera, (30, 40)).astype(np.float32)

    def play(self, count: int, *, first: int = 0, tf: bool = True, variance: float | None = None) -> None:
        """Publish clouds, each at its time; poses with a growing variance of the height if ``variance``."""
        for k in range(first, first + count):
            time_ns = START + round(0.2e9 * k)
            self.bus.executor.run_until(time_ns)
            T_map_base, T_map_camera, points = self.view(k)
            if tf:
                T_base_camera = T_map_base.inverse() @ T_map_camera
                self.publish_transforms((T_map_base, "map", "base_link"), (T_base_camera, "base_link", "camera"))
            if variance is not None:
                covariance = np.diag([0.0, 0.0, variance * (k + 1), 0.0, 0.0, 0.0]).ravel()
                pose = msg.PoseWithCovariance(pose=pose_to_msg(T_map_base), covariance=covariance)
                self.publish("/pose", msg.PoseWithCovarianceStamped(pose=pose))
            cloud = cloud_to_msg(points.reshape(-1, 3), "camera", time_ns)
            cloud.height, cloud.width = points.shape[:2]
            cloud.row_step = cloud.point_step * cloud.width
            self.publish("/points", cloud)
        self.run_for(0.1)


def test_elevation_node_publishes_the_elevation_map() -> None:
    alone = ElevationMap(CONFIG)
    with ElevationHarness() as harness:
        harness.play(4)
        for k in range(4):
            T_map_base, T_map_camera, points = harness.view(k)
            alone.inflate_variance(T_map_base, np.zeros((6, 6)))
            alone.recenter(T_map_base.x, T_map_base.y)
            alone.insert(points, T_map_camera)
        assert len(harness.maps) == 4
        found = heights_from_msg(harness.maps.last)
        assert found.corner == pytest.approx(alone.min_corner)
        assert found.resolution == 0.05
        np.testing.assert_allclose(found.heights, alone.elevation, atol=1e-6)
        np.testing.assert_allclose(layer(harness.maps.last, VARIANCE), alone.variance, rtol=1e-5)
        np.testing.assert_allclose(layer(harness.maps.last, CEILING), alone.ceiling, atol=1e-6)
        assert harness.maps.last.header.frame_id == "map"
        assert np.isfinite(found.heights).any()


@pytest.mark.parametrize("published", [False, True], ids=["drift", "covariance topic"])
def test_height_variance_grows_with_pose_variance(published: bool) -> None:
    topic = {"robot_pose_with_covariance_topic": "pose"} if published else {"pose_drift": 0.1}
    with ElevationHarness() as certain:
        certain.play(4)
        certain_variance = layer(certain.maps.last, VARIANCE)
    with ElevationHarness(**topic) as uncertain:
        uncertain.play(4, variance=1e-3 if published else None)
        uncertain_variance = layer(uncertain.maps.last, VARIANCE)
    both = np.isfinite(certain_variance) & np.isfinite(uncertain_variance)
    assert both.any()
    assert (uncertain_variance[both] >= certain_variance[both]).all()
    assert (uncertain_variance[both] > 2.0 * certain_variance[both]).any()


def test_clouds_without_pose_or_points_are_dropped() -> None:
    with ElevationHarness() as harness:
        harness.play(1, tf=False)
        harness.run_for(1.0)
        assert not harness.maps
        assert harness.node.health is not None
        assert "left out" in harness.node.health.text
        harness.play(1, first=10)
        assert len(harness.maps) == 1
        broken = cloud_to_msg(np.zeros((2, 3)), "camera", harness.now_ns)
        broken.fields[0].name = "w"
        harness.publish_transforms((SE3.identity(), "map", "base_link"), (SE3.identity(), "map", "camera"))
        harness.publish("/points", broken)
        harness.run_for(0.2)
        assert "no x, y, z" in harness.node.health.text


def test_elevation_node_clears_and_continues_when_loaded() -> None:
    with ElevationHarness() as harness:
        harness.play(2)
        state = harness.node.save_state()
        assert harness.call("/elevation/clear_map", srv.std_srvs.Empty) is not None
        harness.run_for(0.1)
        assert np.isnan(heights_from_msg(harness.maps.last).heights).all()
        harness.node.load_state(state)
        harness.play(1, first=4)
        once = heights_from_msg(harness.maps.last).heights
    with ElevationHarness() as other:
        other.play(2)
        other.play(1, first=4)
        np.testing.assert_array_equal(once, heights_from_msg(other.maps.last).heights)


def test_elevation_node_drops_a_cloud_from_the_future() -> None:
    with ElevationHarness() as harness:
        harness.play(1)
        harness.publish("/points", cloud_to_msg(np.zeros((2, 3)), "camera", harness.now_ns + 3600 * 10**9))
        harness.run_for(0.1)
        assert harness.node.health is not None
        assert "future" in harness.node.health.text
        before = len(harness.maps)
        harness.play(3, first=5)
        harness.run_for(0.5)
        assert len(harness.maps) > before
