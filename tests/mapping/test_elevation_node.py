"""The elevation map in a live run: it says what the map says, with the robot, and leaves out what it cannot place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.mapping.seen import looking, seen

from roboyard.bus import Bus
from roboyard.geometry import SE3
from roboyard.mapping.elevation import ElevationConfig, ElevationMap
from roboyard.mapping.nodes import ElevationNode
from roboyard.mapping.nodes.grid_map_messages import CEILING, VARIANCE, heights_from_msg, layer_from_msg
from roboyard.messages import msg, srv
from roboyard.messages.convert import cloud_to_msg, pose_to_msg, tf_message

START = 10**9
CONFIG = ElevationConfig(resolution=0.05, length_in_x=3.0, length_in_y=2.0)


def waves(x: Any, y: Any) -> Any:
    return 0.03 * np.sin(4.0 * x)


def layer(message: Any, name: str) -> Any:
    found = layer_from_msg(message, name)
    assert found is not None
    return found


class Yard:
    """A bus with a node, into which clouds of a robot that goes ahead are played."""

    def __init__(self, bus: Bus, **parameters: Any) -> None:
        self.bus = bus
        self.maps: list[Any] = []
        given = {"elevation": CONFIG, "publish_period": 0.0, **parameters}
        self.node = bus.add(ElevationNode(**given), "elevation")
        bus.subscribe("/elevation_map", msg.GridMap, "/test", lambda message: self.maps.append(message))
        self.tf = bus.publisher("/tf", msg.TFMessage, "/test")
        self.clouds = bus.publisher("/points", msg.PointCloud2, "/test")
        self.poses = bus.publisher("/pose", msg.PoseWithCovarianceStamped, "/test")

    def at(self, k: int) -> tuple[SE3, SE3, np.ndarray]:
        """Where the robot is at a moment, where its camera, and what that sees."""
        T_map_base = SE3.from_xyz_rpy((0.1 * k, 0.0, 0.0), (0.0, 0.0, 0.0))
        T_map_camera = T_map_base @ looking(0.0, 0.0, 0.3)
        return T_map_base, T_map_camera, seen(waves, T_map_camera, (30, 40)).astype(np.float32)

    def play(self, count: int, *, first: int = 0, tf: bool = True, variance: float | None = None) -> None:
        for k in range(first, first + count):
            time_ns = START + round(0.2e9 * k)
            self.bus.executor.run_until(time_ns)
            T_map_base, T_map_camera, points = self.at(k)
            if tf:
                camera = T_map_base.inverse() @ T_map_camera
                self.tf.publish(
                    tf_message([(T_map_base, "map", "base_link"), (camera, "base_link", "camera")], time_ns)
                )
            if variance is not None:
                told = msg.PoseWithCovarianceStamped()
                told.pose = msg.PoseWithCovariance(
                    pose=pose_to_msg(T_map_base),
                    covariance=np.diag([0.0, 0.0, variance * (k + 1), 0.0, 0.0, 0.0]).ravel(),
                )
                self.poses.publish(told)
            cloud = cloud_to_msg(points.reshape(-1, 3), "camera", time_ns)
            cloud.height, cloud.width = points.shape[:2]
            cloud.row_step = cloud.point_step * cloud.width
            self.clouds.publish(cloud)
        self.bus.executor.run_for(0.1)


def test_the_node_says_what_the_map_says() -> None:
    alone = ElevationMap(CONFIG)
    with Bus() as bus:
        yard = Yard(bus)
        yard.play(4)
        for k in range(4):
            T_map_base, T_map_camera, points = yard.at(k)
            alone.grow(T_map_base, np.zeros((6, 6)))
            alone.move(T_map_base.x, T_map_base.y)
            alone.insert(points, T_map_camera)
        assert len(yard.maps) == 4
        found = heights_from_msg(yard.maps[-1])
        assert found.corner == pytest.approx(alone.corner)
        assert found.cell == 0.05
        np.testing.assert_allclose(found.heights, alone.elevation, atol=1e-6)
        np.testing.assert_allclose(layer(yard.maps[-1], VARIANCE), alone.variance, rtol=1e-5)
        np.testing.assert_allclose(layer(yard.maps[-1], CEILING), alone.ceiling, atol=1e-6)
        assert yard.maps[-1].header.frame_id == "map"
        assert np.isfinite(found.heights).any()


@pytest.mark.parametrize("told", [False, True])
def test_heights_get_less_sure_as_the_pose_does(told: bool) -> None:
    with Bus() as bus:
        topic = {"robot_pose_with_covariance_topic": "pose"} if told else {"drift": 0.1}
        sure = Yard(bus)
        sure.play(4)
        known = layer(sure.maps[-1], VARIANCE)
    with Bus() as bus:
        unsure = Yard(bus, **topic)
        unsure.play(4, variance=1e-3 if told else None)
        other = layer(unsure.maps[-1], VARIANCE)
    both = np.isfinite(known) & np.isfinite(other)
    assert both.any()
    assert (other[both] >= known[both]).all()
    assert (other[both] > 2.0 * known[both]).any()


def test_a_cloud_whose_place_nobody_knows_and_one_that_is_none_are_left_out() -> None:
    with Bus() as bus:
        yard = Yard(bus)
        yard.play(1, tf=False)
        bus.executor.run_for(1.0)
        assert not yard.maps
        assert yard.node.health is not None
        assert "left out" in yard.node.health.text
        yard.play(1, first=10)
        assert len(yard.maps) == 1
        broken = cloud_to_msg(np.zeros((2, 3)), "camera", bus.now_ns)
        broken.fields[0].name = "w"
        yard.tf.publish(
            tf_message([(SE3.identity(), "map", "base_link"), (SE3.identity(), "map", "camera")], bus.now_ns)
        )
        yard.clouds.publish(broken)
        bus.executor.run_for(0.2)
        assert "no x, y, z" in yard.node.health.text


def test_it_forgets_when_asked_and_goes_on_as_it_was_saved() -> None:
    with Bus() as bus:
        yard = Yard(bus)
        yard.play(2)
        kept = yard.node.save()
        future = bus.service_client("/elevation/clear_map", srv.std_srvs.Empty, "/test").call(
            srv.std_srvs.Empty.Request()
        )
        bus.executor.run_for(0.1)
        assert future.result is not None
        assert np.isnan(heights_from_msg(yard.maps[-1]).heights).all()
        yard.node.load(kept)
        yard.play(1, first=4)
        once = heights_from_msg(yard.maps[-1]).heights
    with Bus() as bus:
        other = Yard(bus)
        other.play(2)
        other.play(1, first=4)
        np.testing.assert_array_equal(once, heights_from_msg(other.maps[-1]).heights)


def test_a_cloud_from_the_future_is_left_out_and_later_ones_are_used() -> None:
    with Bus() as bus:
        yard = Yard(bus)
        yard.play(1)
        yard.clouds.publish(cloud_to_msg(np.zeros((2, 3)), "camera", bus.now_ns + 3600 * 10**9))
        bus.executor.run_for(0.1)
        assert yard.node.health is not None
        assert "future" in yard.node.health.text
        before = len(yard.maps)
        yard.play(3, first=5)
        bus.executor.run_for(0.5)
        assert len(yard.maps) > before
