"""The node amcl on a bus: what it publishes, and how it treats input that it cannot use."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.localization.estimation_harness import START, STEP, EstimationHarness, retimed
from tests.localization.simulated_scans import drive, make_room_map

from roboyard.geometry import SE2, SE3
from roboyard.localization.nodes import AmclNode
from roboyard.messages import srv
from roboyard.messages.convert import (
    grid_to_msg,
)


def test_amcl_node_publishes_the_pose_on_all_its_topics() -> None:
    with EstimationHarness(AmclNode(), "amcl") as harness:
        assert "waiting for a map" in harness.node.health.text
        harness.send_map()
        assert "initialpose" in harness.node.health.text
        harness.send_initial_pose()
        truth = harness.drive()
        last = harness.last("/amcl_pose")
        assert last.header.frame_id == "map"
        assert harness.pose.distance(truth) < 0.1
        assert last.pose.covariance[0] > 0.0
        found = SE2.from_se3(harness.bus.transforms.lookup("map", "base_link"))
        assert found.distance(truth) < 0.1
        cloud = harness.last("/particle_cloud")
        assert len(cloud.particles) == 200
        assert sum(p.weight for p in cloud.particles) == pytest.approx(1.0)
        assert harness.node.health.level == "ok"


def test_amcl_node_localizes_globally_on_request() -> None:
    with EstimationHarness(AmclNode(), "amcl") as harness:
        harness.send_map()
        harness.call("/reinitialize_global_localization", srv.Empty)
        truth = harness.drive()
        assert harness.pose.distance(truth) < 0.1
        count = len(harness.published("/amcl_pose"))
        harness.call("/request_nomotion_update", srv.Empty)
        *_, (_, scan) = drive(make_room_map(), START, 40, 0)
        later = retimed(scan, harness.now_ns, odometry=scan.odometry)
        harness.set_odometry(scan.odometry, later.time_ns)
        harness.send_scan(later)
        harness.run_until_ns(later.time_ns + STEP)
        assert len(harness.published("/amcl_pose")) == count + 1


def test_amcl_node_accepts_an_upside_down_laser() -> None:
    with EstimationHarness(AmclNode(), "amcl") as harness:
        harness.send_map()
        harness.send_initial_pose()
        harness.set_laser(SE3.from_xyz_rpy((0.1, 0, 0), (math.pi, 0, 0)))
        scans = list(drive(make_room_map(), START, 15, 0))
        for _, scan in scans:
            harness.run_until_ns(scan.time_ns)
            harness.set_odometry(scan.odometry, scan.time_ns)
            harness.send_scan(replace(scan, ranges=scan.ranges[::-1].copy()))
        assert harness.pose.distance(scans[-1][0]) < 0.1


def test_amcl_node_refuses_unusable_input_with_the_reason() -> None:
    with EstimationHarness(AmclNode(transform_timeout=0.2), "amcl") as harness:
        harness.send_map("elsewhere")
        assert (harness.node.health.level, harness.node.health.text) == ("error", "the map is of another frame")
        empty = grid_to_msg(np.zeros((3, 3), np.int8), 0.1, SE2.identity(), "map", 0)
        harness.publish("/map", empty, latched=True)
        harness.deliver()
        assert "cannot be used" in harness.node.health.text
        harness.send_map()
        harness.send_initial_pose(frame="odom")
        assert "initialpose" in harness.node.health.text  # the node still waits
        harness.send_initial_pose()
        (_, scan), *_ = drive(make_room_map(), START, 1, 0)
        harness.send_scan(scan)
        harness.run_until_ns(10 * STEP)
        assert "without a transform" in harness.node.health.text
        harness.set_odometry(SE2.identity(), 10 * STEP)
        for tilt, words in ((0.5, "cannot be used"), (0.0, "not later")):
            harness.set_laser(SE3.from_xyz_rpy((0, 0, 0), (tilt, 0, 0)))
            harness.send_scan(retimed(scan, 10 * STEP))
            assert words in harness.node.health.text
        assert not harness.published("/amcl_pose")


def test_saved_amcl_node_continues_identically() -> None:
    ends, state = [], None
    for is_restored in (False, True):
        with EstimationHarness(AmclNode(), "amcl") as harness:
            harness.send_map()
            harness.send_initial_pose()
            if is_restored:
                harness.run_until_ns(20 * STEP)
                harness.node.load_state(state)
                harness.drive(40, first=20)
            else:
                harness.drive(20)
                state = harness.node.save_state()
                harness.drive(40, first=20)
            ends.append(harness.last("/amcl_pose").pose)
    assert ends[0].pose == ends[1].pose
    assert (ends[0].covariance == ends[1].covariance).all()


def test_amcl_node_continues_after_a_scan_from_the_future() -> None:
    with EstimationHarness(AmclNode(), "amcl") as harness:
        harness.send_map()
        harness.send_initial_pose()
        (_, scan), *_ = drive(make_room_map(), START, 1, 0)
        harness.set_laser(SE2(0.1, 0.0, 0.0).to_se3())
        harness.send_scan(retimed(scan, 10**13))
        assert "future" in harness.node.health.text
        truth = harness.drive()
        assert harness.pose.distance(truth) < 0.1
