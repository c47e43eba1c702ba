"""The self filter's node: clouds come out without the robot, once its links' transforms are known."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from tests.harness.bus import BusHarness

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.description import Model
from roboyard.geometry import SE3
from roboyard.manipulation.nodes import SelfFilterNode
from roboyard.messages import msg, to_nanoseconds
from roboyard.messages.convert import cloud_points, cloud_to_msg

T_BASE_CAMERA = SE3(translation=(0.0, 0.0, 2.0))
ABOVE = (0.0, 0.0, 1.0)
"""A point in the camera's frame that is no link's: all links lie at the base's origin, below the camera."""


@cache
def arm() -> Model:
    return load_joint_groups("iisy").model


class SelfFilterHarness(BusHarness):
    """A bus with a self filter of an arm all of whose links lie at the origin of their base."""

    def __init__(self) -> None:
        super().__init__()
        self.node = self.add(SelfFilterNode(description=arm(), max_rate=10.0), "self_filter")

    def send_cloud(self, time_ns: int) -> None:
        """Publish a point on the robot and one above it."""
        robot_point = T_BASE_CAMERA.inverse() @ np.array([[0.0, 0.0, 0.0]])
        self.send("/cloud_in", cloud_to_msg(np.vstack([robot_point, [ABOVE]]), "camera", time_ns))

    def send_transforms(self, time_ns: int) -> None:
        """Publish the poses of camera and links of a moment."""
        links = tuple((SE3.identity(), "base", link.name) for link in arm().links)
        self.publish_transforms((T_BASE_CAMERA, "base", "camera"), *links, time_ns=time_ns)

    @property
    def points(self) -> list[Any]:
        """The points of each cloud that came out, by stamp [ns]."""
        clouds = self.published("/cloud_filtered").messages
        return [(to_nanoseconds(cloud.header.stamp), cloud_points(cloud).tolist()) for cloud in clouds]


def test_cloud_comes_out_without_the_robot_when_its_links_are_known() -> None:
    with SelfFilterHarness() as harness:
        harness.send_transforms(0)
        harness.run_until(0.15)
        harness.send_cloud(140_000_000)
        assert harness.points == []
        harness.send_transforms(150_000_000)
        harness.run_until(0.16)
        ((time_ns, points),) = harness.points
        assert time_ns == 140_000_000
        np.testing.assert_allclose(points, [ABOVE], atol=1e-6)


def test_cloud_without_transforms_is_dropped_and_reported() -> None:
    with SelfFilterHarness() as harness:
        harness.run_until(0.1)
        harness.send_cloud(100_000_000)
        harness.run_until(0.5)
        assert harness.points == []
        assert harness.node.health.level == "warn"
        assert "a message of /cloud_in is left out" in harness.node.health.text
        assert harness.log_lines == ["messages of /cloud_in are left out: no transform found"]


def test_self_filter_continues_after_a_cloud_from_the_future() -> None:
    with SelfFilterHarness() as harness:
        harness.send_transforms(0)
        harness.send_cloud(10**13)
        assert "stamped in the future" in harness.node.health.text
        harness.run_until(0.2)
        harness.send_transforms(200_000_000)
        harness.send_cloud(100_000_000)
        assert [time_ns for time_ns, _ in harness.points] == [100_000_000]


def test_saved_self_filter_continues_with_the_cloud_that_waits() -> None:
    with SelfFilterHarness() as harness:
        harness.send_transforms(0)
        harness.run_until(0.15)
        harness.send_cloud(140_000_000)
        with harness.snapshot_roundtrip(SelfFilterHarness) as loaded:
            assert isinstance(loaded, SelfFilterHarness)
            loaded.send_transforms(150_000_000)
            loaded.run_until(0.2)
            assert [time_ns for time_ns, _ in loaded.points] == [140_000_000]
            assert loaded.published("/cloud_filtered").messages[0].header.frame_id == "camera"
            assert isinstance(loaded.published("/cloud_filtered").messages[0], msg.PointCloud2)
