"""The fusion nodes on a bus: what they publish, and how they treat input that they cannot use."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.localization.estimation_harness import START, STEP, EstimationHarness

from roboyard.bus import Bus, NodeError
from roboyard.errors import ConfigError
from roboyard.geometry import SE2, SE3
from roboyard.localization.nodes import EkfNode, UkfNode
from roboyard.messages import msg
from roboyard.messages.convert import (
    make_header,
    odometry_to_msg,
    pose_to_msg,
    pose_to_se2,
)
from roboyard.messages.time import to_nanoseconds


def wheel_parameters(**more: object) -> dict[str, object]:
    config = [False] * 15
    config[6] = config[11] = True
    return {"two_d_mode": True, "odom0": "odom", "odom0_config": config, **more}


def odometry(time_ns: int, speed: float = 0.5, yaw_rate: float = 0.1, covariance: float = 1e-4) -> object:
    return odometry_to_msg(
        SE2.identity(), [speed, 0, 0], [0, 0, yaw_rate], frame="odom", child_frame="base_link", time_ns=time_ns,
        pose_covariance=np.eye(6), twist_covariance=covariance * np.eye(6),
    )  # fmt: skip


@pytest.mark.parametrize("kind", [EkfNode, UkfNode], ids=["ekf", "ukf"])
def test_filter_node_follows_its_sources(kind: type) -> None:
    with EstimationHarness(kind(**wheel_parameters(process_noise_covariance=[1e-6] * 15)), "filter") as harness:
        assert harness.node.health is None
        for k in range(101):
            harness.run_until_ns(k * 20_000_000)
            harness.send("/odom", odometry(k * 20_000_000))
        harness.run_until_ns(2_040_000_000)
        last = harness.last("/odometry/filtered")
        assert (last.header.frame_id, last.child_frame_id) == ("odom", "base_link")
        assert pose_to_se2(last.pose.pose).almost_equal(SE2.exp([1.0, 0.0, 0.2]), 0.01)
        assert harness.last("/odom_combined").pose.pose == last.pose.pose
        assert SE2.from_se3(harness.bus.transforms.lookup("odom", "base_link")).almost_equal(
            pose_to_se2(last.pose.pose)
        )
        assert harness.node.health.level == "ok"
        harness.run_until_ns(6_000_000_000)
        assert "no messages of odom0 (/odom)" in harness.node.health.text


def test_filter_node_reports_invalid_sources() -> None:
    imu = [False] * 15
    imu[11] = True
    with EstimationHarness(EkfNode(**wheel_parameters(), imu0="imu", imu0_config=imu), "ekf") as harness:
        T_base_imu = SE3.from_xyz_rpy((0, 0, 0.1))
        harness.set_transform(T_base_imu, "base_link", "imu_link", static=True, time_ns=0)

        def send_imu(time_ns: int, frame: str, rate: float) -> None:
            rates = msg.Vector3(z=rate)
            harness.send("/imu", msg.Imu(header=make_header(frame, time_ns), angular_velocity=rates))
            harness.run_until_ns(time_ns)

        for k in range(1, 10):
            harness.send("/odom", odometry(k * STEP))
            send_imu(k * STEP, "imu_link", math.nan if k == 3 else 0.1)
        assert "uses default covariances for imu0" in harness.node.health.text  # all zeros
        assert dict(harness.node.health.values)["refused"] == "1"  # what was NaN
        harness.send("/odom", odometry(2 * STEP))
        send_imu(10 * STEP, "nowhere", 0.1)
        assert harness.node.health.level == "error"
        assert "imu0" in harness.node.health.text
        assert np.isfinite(harness.last("/odometry/filtered").pose.covariance).all()


def test_invalid_filter_node_settings_are_refused() -> None:
    for bad, words in (
        ({}, "no source"),
        (wheel_parameters(odom0_config=[True] * 14), "14 entries"),
        (wheel_parameters(world_frame="earth"), "world_frame"),
        (wheel_parameters(process_noise_covariance=[1.0] * 3), "3 numbers"),
    ):
        with Bus() as bus, pytest.raises((ConfigError, NodeError), match=words):
            bus.add(EkfNode(**bad), "ekf")


def test_saved_filter_node_continues_identically() -> None:
    ends, state = [], None
    for is_restored in (False, True):
        with EstimationHarness(EkfNode(**wheel_parameters()), "ekf") as harness:
            if is_restored:
                harness.run_until_ns(10 * STEP)
                harness.node.load_state(state)
            for k in range(11 if is_restored else 1, 21):
                harness.send("/odom", odometry(k * STEP, 0.1 * k))
                harness.run_until_ns(k * STEP)
                if k == 10:
                    state = harness.node.save_state()
            ends.append(harness.last("/odometry/filtered"))
    assert ends[0].pose.pose == ends[1].pose.pose
    assert to_nanoseconds(ends[0].header.stamp) == to_nanoseconds(ends[1].header.stamp)


def test_filter_node_continues_after_a_pose_from_the_future() -> None:
    with EstimationHarness(
        EkfNode(odom0="/odom", odom0_config=[True] * 2 + [False] * 3 + [True] + [False] * 9), "ekf"
    ) as harness:
        initial = msg.PoseWithCovariance(pose=pose_to_msg(START), covariance=(0.01 * np.eye(6)).ravel())
        harness.send("/set_pose", msg.PoseWithCovarianceStamped(header=make_header("odom", 10**13), pose=initial))
        for k in range(20):
            harness.run_until_ns(k * STEP)
            message = msg.Odometry(header=make_header("odom", k * STEP), child_frame_id="base_link")
            message.pose = msg.PoseWithCovariance(
                pose=pose_to_msg(SE2(0.1 * k, 0.0, 0.0)), covariance=initial.covariance
            )
            harness.send("/odom", message)
        harness.run_until_ns(20 * STEP)
        assert pose_to_se2(harness.last("/odometry/filtered").pose.pose).x > 1.5
