"""Ground truth under the topics of estimators, on a bus."""

from __future__ import annotations

import math

import pytest
from tests.harness.bus import BusHarness
from tests.localization.estimation_harness import EstimationHarness

from roboyard.geometry import SE2
from roboyard.localization.nodes import GroundTruthLocalizationNode, GroundTruthOdometryNode
from roboyard.messages import msg
from roboyard.messages.convert import (
    make_header,
    odometry_to_msg,
)


def test_ground_truth_localization_uses_amcl_topics_and_is_marked() -> None:
    with EstimationHarness(
        GroundTruthLocalizationNode(truth_topic="/truth", map_x=1.0), "ground_truth_localization"
    ) as harness:
        harness.set_odometry(SE2(5.0, 0.0, 0.3), 0)
        pose = SE2(2.0, 3.0, 0.5)
        harness.send(
            "/truth", odometry_to_msg(pose, [0, 0, 0], [0, 0, 0], frame="world", child_frame="base_link", time_ns=0)
        )
        published = harness.pose
        assert published.almost_equal(SE2(1.0, 3.0, 0.5))
        assert SE2.from_se3(harness.bus.transforms.lookup("map", "odom")).almost_equal(
            published @ SE2(5, 0, 0.3).inverse()
        )
        assert len(harness.last("/particle_cloud").particles) == 1
        assert harness.node.health.text == "ground truth, not an estimate"


def test_ground_truth_odometry_starts_at_the_origin_and_is_marked(harness: BusHarness) -> None:
    node = harness.add(
        GroundTruthOdometryNode(truth_topic="/truth/robot/odom", odom_frame="odom"), "ground_truth_odometry"
    )
    for k, (x, y) in enumerate([(2.0, 1.0), (2.0, 3.0)]):
        harness.run_until(0.1 * k)
        orientation = msg.Quaternion(z=math.sin(math.pi / 4), w=math.cos(math.pi / 4))
        pose = msg.PoseWithCovariance(pose=msg.Pose(position=msg.Point(x=x, y=y), orientation=orientation))
        harness.publish("/truth/robot/odom", msg.Odometry(header=make_header("", harness.now_ns), pose=pose))
    harness.run_for(0.01)
    assert node.health.level == "warn"
    last = harness.last("/odom").pose.pose
    assert (last.position.x, last.position.y) == pytest.approx((2.0, 0.0))
    assert last.orientation.w == pytest.approx(1.0)
