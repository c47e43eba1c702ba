"""The nodes of localization and fusion on a bus: what they publish, and how they treat input that they cannot use."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.bus import BusHarness
from tests.localization.simulated_scans import drive, make_room_map

from roboyard.bus import Bus, Node, NodeError
from roboyard.config.ros_parameters import read_ros_parameters
from roboyard.errors import ConfigError
from roboyard.geometry import SE2, SE3
from roboyard.localization.nodes import AmclNode, EkfNode, GroundTruthLocalizationNode, UkfNode
from roboyard.mapping import LaserScan
from roboyard.messages import msg, srv
from roboyard.messages.convert import (
    ScanGeometry,
    grid_to_msg,
    make_header,
    odometry_to_msg,
    pose_to_msg,
    pose_to_se2,
    scan_to_msg,
)
from roboyard.messages.time import to_nanoseconds

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
        assert harness.node.health.text == "this is the truth, no estimate"


# -- fusion ------------------------------------------------------------------------------------------------------------
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


# -- ROS's parameter files ---------------------------------------------------------------------------------------------
def test_ros_parameter_files_are_accepted(tmp_path: Path) -> None:
    two = tmp_path / "nav2.yaml"
    two.write_text(
        "amcl:\n  ros__parameters:\n    alpha1: 0.2\n    max_beams: 30\n    laser_model_type: likelihood_field\n"
        "    set_initial_pose: true\n    initial_pose: {x: 3.0, y: 1.5, z: 0.0, yaw: 0.4}\n    save_pose_rate: 0.5\n"
        "    robot_model_type: nav2_amcl::DifferentialMotionModel\n    laser_importance_factor: 2.0\n"
    )
    node = AmclNode(params_file=str(two), alpha1=0.3)
    assert (
        node.config.filter.alpha1,
        node.config.filter.max_beams,
        node.config.initial_pose_x,
        node.config.initial_pose_yaw,
    ) == (
        0.3,
        30,
        3.0,
        0.4,
    )
    with EstimationHarness(node, "amcl") as harness:
        assert any("laser_importance_factor" in record.msg for record in harness.published("/rosout").messages)
    one = tmp_path / "amcl.yaml"
    one.write_text("odom_model_type: omni-corrected\nodom_alpha5: 0.1\nlaser_z_hit: 0.9\nkld_err: 0.01\nalpha: 3\n")
    old = AmclNode(params_file=str(one))
    assert (
        old.config.filter.robot_model_type,
        old.config.filter.alpha5,
        old.config.filter.z_hit,
        old.config.filter.pf_err,
    ) == (
        "omni-corrected",
        0.1,
        0.9,
        0.01,
    )
    three = tmp_path / "ekf.yaml"
    flags = ", ".join(["true"] * 3 + ["false"] * 12)
    three.write_text(
        f"/**:\n  ros__parameters: {{frequency: 20}}\n/robot/ekf_filter_node:\n  ros__parameters:\n"
        f"    two_d_mode: true\n    odom0: wheel/odom\n    odom0_config: [{flags}]\n    odom0_differential: true\n"
        f"    initial_estimate_covariance: [{', '.join(['1e-9'] * 15)}]\n"
    )
    ekf = EkfNode(params_file=str(three))
    assert ekf.config.filter.initial_estimate_covariance == (1e-9,) * 15  # text in YAML 1.1, numbers in ROS
    assert (ekf.config.frequency, ekf.config.filter.two_d_mode, ekf.parameters()["odom0_differential"]) == (
        20.0,
        True,
        True,
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("other:\n  ros__parameters: {a: 1}\n", "no section for amcl"),
        ("- 1\n", "no mapping"),
        ("a: [\n", "no YAML"),
        ("amcl: {ros__parameters: {alpha1: fast}}\n", "alpha1"),
    ],
    ids=["other_node", "list", "syntax", "wrong_type"],
)
def test_invalid_parameter_files_are_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words):
        AmclNode(params_file=str(path))
    with pytest.raises(ConfigError, match="cannot be read"):
        read_ros_parameters(tmp_path / "none.yaml", ("amcl",))


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
