"""The nodes of localisation and fusion on a bus: what they say, and what they do with what they cannot use."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from tests.localization.rooms import drive, room

from roboyard.bus import Bus, NodeError
from roboyard.errors import ConfigError
from roboyard.geometry import SE2, SE3
from roboyard.localization.nodes import AmclNode, EkfNode, TruthLocalizationNode, UkfNode
from roboyard.localization.ros_parameters import ros_parameters
from roboyard.messages import msg, srv
from roboyard.messages.convert import grid_to_msg, header, odometry_to_msg, pose_to_msg, pose_to_se2, scan_to_msg
from roboyard.messages.time import nanoseconds

START = SE2(3.0, 1.5, 0.4)
STEP = 100_000_000


class World:
    """A bus with one node and hands on all its topics."""

    def __init__(self, node: object, name: str) -> None:
        self.bus = Bus()
        self.got: dict[str, list[object]] = {}
        self.bus.tap(lambda topic, message, source, time_ns: self.got.setdefault(topic.name, []).append(message))
        self.node = self.bus.add(node, name)
        self.publishers: dict[str, object] = {}

    def __enter__(self) -> World:
        return self

    def __exit__(self, *args: object) -> None:
        self.bus.close()

    def say(self, topic: str, message: object) -> None:
        if topic not in self.publishers:
            self.publishers[topic] = self.bus.publisher(topic, type(message), "/test", latched=topic == "/map")
        self.publishers[topic].publish(message)
        self.until(self.bus.now_ns)

    def until(self, time_ns: int) -> None:
        self.bus.executor.run_until(max(time_ns, self.bus.now_ns))

    def frame(self, pose: SE2, parent: str, child: str, time_ns: int, static: bool = False) -> None:
        self.bus.transforms.insert(pose.to_se3(), parent, child, time_ns, static)

    def map(self, frame: str = "map") -> None:
        grid = room()
        self.say("/map", grid_to_msg(grid.cells, grid.frame.resolution, grid.frame.T_map_grid, frame, 0))

    def initial(self, pose: SE2 = START, frame: str = "map") -> None:
        covariance = np.zeros((6, 6))
        covariance[[0, 1, 5], [0, 1, 5]] = 0.02
        said = msg.PoseWithCovariance(pose=pose_to_msg(pose), covariance=covariance.ravel())
        self.say("/initialpose", msg.PoseWithCovarianceStamped(header=header(frame, 0), pose=said))

    def scan(self, scan, frame: str = "laser") -> None:
        self.say(
            "/scan",
            scan_to_msg(scan.ranges, angle_min=scan.angle_min, angle_increment=scan.angle_increment, range_min=0.1,
                        range_max=20.0, frame=frame, time_ns=scan.time_ns),
        )  # fmt: skip

    def drive(self, steps: int = 40, first: int = 0, mount: SE3 | None = None) -> SE2:
        self.bus.transforms.insert((mount or SE2(0.1, 0.0, 0.0).to_se3()), "base_link", "laser", 0, True)
        poses = []
        for pose, scan in list(drive(room(), START, steps, 0))[first:]:
            self.until(scan.time_ns)
            self.scan(scan)  # the transform of its moment comes after it
            self.frame(scan.odometry, "odom", "base_link", scan.time_ns)
            poses.append(pose)
        self.until(self.bus.now_ns + STEP)
        return poses[-1]


def test_amcl_node_publishes_the_pose_on_all_its_topics() -> None:
    with World(AmclNode(), "amcl") as world:
        assert "waits for a map" in world.node.health.text
        world.map()
        assert "initialpose" in world.node.health.text
        world.initial()
        truth = world.drive()
        last = world.got["/amcl_pose"][-1]
        assert last.header.frame_id == "map"
        assert pose_to_se2(last.pose.pose).distance(truth) < 0.1
        assert last.pose.covariance[0] > 0.0
        found = SE2.from_se3(world.bus.transforms.lookup("map", "base_link"))
        assert found.distance(truth) < 0.1
        cloud = world.got["/particle_cloud"][-1]
        assert len(cloud.particles) == 200
        assert sum(p.weight for p in cloud.particles) == pytest.approx(1.0)
        assert world.node.health.level == "ok"


def test_amcl_node_localizes_globally_on_request() -> None:
    with World(AmclNode(), "amcl") as world:
        world.map()
        world.bus.service_client("/reinitialize_global_localization", srv.Empty, "/test").call(srv.Empty.Request())
        truth = world.drive()
        assert pose_to_se2(world.got["/amcl_pose"][-1].pose.pose).distance(truth) < 0.1
        count = len(world.got["/amcl_pose"])
        world.bus.service_client("/request_nomotion_update", srv.Empty, "/test").call(srv.Empty.Request())
        *_, (_, scan) = drive(room(), START, 40, 0)
        later = scan.__class__(
            world.bus.now_ns, scan.ranges, scan.angle_min, scan.angle_increment, 0.1, 20.0, odometry=scan.odometry
        )
        world.frame(scan.odometry, "odom", "base_link", later.time_ns)
        world.scan(later)
        world.until(later.time_ns + STEP)
        assert len(world.got["/amcl_pose"]) == count + 1


def test_amcl_node_accepts_an_upside_down_laser() -> None:
    with World(AmclNode(), "amcl") as world:
        world.map()
        world.initial()
        world.bus.transforms.insert(SE3.from_xyz_rpy((0.1, 0, 0), (math.pi, 0, 0)), "base_link", "laser", 0, True)
        scans = list(drive(room(), START, 15, 0))
        for _, scan in scans:
            world.until(scan.time_ns)
            world.frame(scan.odometry, "odom", "base_link", scan.time_ns)
            turned = scan.__class__(
                scan.time_ns, scan.ranges[::-1].copy(), scan.angle_min, scan.angle_increment, 0.1, 20.0
            )
            world.scan(turned)
        assert pose_to_se2(world.got["/amcl_pose"][-1].pose.pose).distance(scans[-1][0]) < 0.1


def test_amcl_node_refuses_unusable_input_with_the_reason() -> None:
    with World(AmclNode(wait_for_transform=0.2), "amcl") as world:
        world.map("elsewhere")
        assert (world.node.health.level, world.node.health.text) == ("error", "the map is of another frame")
        empty = grid_to_msg(np.zeros((3, 3), np.int8), 0.1, SE2.identity(), "map", 0)
        world.say("/map", empty)
        assert "cannot be used" in world.node.health.text
        world.map()
        world.initial(frame="odom")
        assert "initialpose" in world.node.health.text  # still waits
        world.initial()
        (_, scan), *_ = drive(room(), START, 1, 0)
        world.scan(scan)
        world.until(10 * STEP)
        assert "without a transform" in world.node.health.text
        world.frame(SE2.identity(), "odom", "base_link", 10 * STEP)
        for tilt, words in ((0.5, "cannot be used"), (0.0, "not later")):
            world.bus.transforms.insert(SE3.from_xyz_rpy((0, 0, 0), (tilt, 0, 0)), "base_link", "laser", 0, True)
            late = scan.__class__(10 * STEP, scan.ranges, scan.angle_min, scan.angle_increment, 0.1, 20.0)
            world.scan(late)
            assert words in world.node.health.text
        assert "/amcl_pose" not in world.got


def test_saved_amcl_node_continues_identically() -> None:
    ends, state = [], None
    for again in (False, True):
        with World(AmclNode(), "amcl") as world:
            world.map()
            world.initial()
            if again:
                world.until(20 * STEP)
                world.node.load(state)
                world.drive(40, first=20)
            else:
                world.drive(20)
                state = world.node.save()
                world.drive(40, first=20)
            ends.append(world.got["/amcl_pose"][-1].pose)
    assert ends[0].pose == ends[1].pose
    assert (ends[0].covariance == ends[1].covariance).all()


def test_truth_localization_uses_amcl_topics_and_is_marked() -> None:
    with World(TruthLocalizationNode(truth_topic="/truth", map_x=1.0), "truth_localization") as world:
        world.frame(SE2(5.0, 0.0, 0.3), "odom", "base_link", 0)
        pose = SE2(2.0, 3.0, 0.5)
        world.say("/truth", odometry_to_msg(pose, [0, 0, 0], [0, 0, 0], frame="world", child="base_link", time_ns=0))
        shown = pose_to_se2(world.got["/amcl_pose"][0].pose.pose)
        assert shown.almost_equal(SE2(1.0, 3.0, 0.5))
        assert SE2.from_se3(world.bus.transforms.lookup("map", "odom")).almost_equal(shown @ SE2(5, 0, 0.3).inverse())
        assert len(world.got["/particle_cloud"][0].particles) == 1
        assert world.node.health.text == "this is the truth, no estimate"


# -- fusion ------------------------------------------------------------------------------------------------------------
def wheels(**more: object) -> dict[str, object]:
    config = [False] * 15
    config[6] = config[11] = True
    return {"two_d_mode": True, "odom0": "odom", "odom0_config": config, **more}


def odometry(time_ns: int, speed: float = 0.5, turn: float = 0.1, covariance: float = 1e-4) -> object:
    return odometry_to_msg(
        SE2.identity(), [speed, 0, 0], [0, 0, turn], frame="odom", child="base_link", time_ns=time_ns,
        pose_covariance=np.eye(6), twist_covariance=covariance * np.eye(6),
    )  # fmt: skip


@pytest.mark.parametrize("kind", [EkfNode, UkfNode])
def test_filter_node_follows_its_sources(kind: type) -> None:
    with World(kind(**wheels(process_noise_covariance=[1e-6] * 15)), "filter") as world:
        assert world.node.health is None
        for k in range(101):
            world.until(k * 20_000_000)
            world.say("/odom", odometry(k * 20_000_000))
        world.until(2_040_000_000)
        last = world.got["/odometry/filtered"][-1]
        assert (last.header.frame_id, last.child_frame_id) == ("odom", "base_link")
        assert pose_to_se2(last.pose.pose).almost_equal(SE2.exp([1.0, 0.0, 0.2]), 0.01)
        assert world.got["/odom_combined"][-1].pose.pose == last.pose.pose
        assert SE2.from_se3(world.bus.transforms.lookup("odom", "base_link")).almost_equal(pose_to_se2(last.pose.pose))
        assert world.node.health.level == "ok"
        world.until(6_000_000_000)
        assert "hears nothing of odom0 (/odom)" in world.node.health.text


def test_filter_node_reports_invalid_sources() -> None:
    imu = [False] * 15
    imu[11] = True
    with World(EkfNode(**wheels(), imu0="imu", imu0_config=imu), "ekf") as world:
        world.bus.transforms.insert(SE3.from_xyz_rpy((0, 0, 0.1)), "base_link", "imu_link", 0, True)

        def say(time_ns: int, frame: str, rate: float) -> None:
            rates = msg.Vector3(z=rate)
            world.say("/imu", msg.Imu(header=header(frame, time_ns), angular_velocity=rates))
            world.until(time_ns)

        for k in range(1, 10):
            world.say("/odom", odometry(k * STEP))
            say(k * STEP, "imu_link", math.nan if k == 3 else 0.1)
        assert "assumes covariances that imu0 does not tell" in world.node.health.text  # all zeros
        assert dict(world.node.health.values)["refused"] == "1"  # what was NaN
        world.say("/odom", odometry(2 * STEP))
        say(10 * STEP, "nowhere", 0.1)
        assert world.node.health.level == "error"
        assert "imu0" in world.node.health.text
        assert np.isfinite(world.got["/odometry/filtered"][-1].pose.covariance).all()


def test_invalid_filter_node_settings_are_refused() -> None:
    for bad, words in (
        ({}, "no source"),
        (wheels(odom0_config=[True] * 14), "14 entries"),
        (wheels(world_frame="earth"), "world_frame"),
        (wheels(process_noise_covariance=[1.0] * 3), "3 numbers"),
    ):
        with Bus() as bus, pytest.raises((ConfigError, NodeError), match=words):
            bus.add(EkfNode(**bad), "ekf")


def test_saved_filter_node_continues_identically() -> None:
    ends, state = [], None
    for again in (False, True):
        with World(EkfNode(**wheels()), "ekf") as world:
            if again:
                world.until(10 * STEP)
                world.node.load(state)
            for k in range(11 if again else 1, 21):
                world.say("/odom", odometry(k * STEP, 0.1 * k))
                world.until(k * STEP)
                if k == 10:
                    state = world.node.save()
            ends.append(world.got["/odometry/filtered"][-1])
    assert ends[0].pose.pose == ends[1].pose.pose
    assert nanoseconds(ends[0].header.stamp) == nanoseconds(ends[1].header.stamp)


# -- ROS's parameter files ---------------------------------------------------------------------------------------------
def test_ros_parameter_files_are_accepted(tmp_path: Path) -> None:
    two = tmp_path / "nav2.yaml"
    two.write_text(
        "amcl:\n  ros__parameters:\n    alpha1: 0.2\n    max_beams: 30\n    laser_model_type: likelihood_field\n"
        "    set_initial_pose: true\n    initial_pose: {x: 3.0, y: 1.5, z: 0.0, yaw: 0.4}\n    save_pose_rate: 0.5\n"
        "    robot_model_type: nav2_amcl::DifferentialMotionModel\n    laser_importance_factor: 2.0\n"
    )
    node = AmclNode(params_file=str(two), alpha1=0.3)
    assert (node.alpha1, node.max_beams, node.initial_pose_x, node.initial_pose_yaw) == (0.3, 30, 3.0, 0.4)
    with World(node, "amcl") as world:
        assert any("laser_importance_factor" in record.msg for record in world.got.get("/rosout", []))
    one = tmp_path / "amcl.yaml"
    one.write_text("odom_model_type: omni-corrected\nodom_alpha5: 0.1\nlaser_z_hit: 0.9\nkld_err: 0.01\nalpha: 3\n")
    old = AmclNode(params_file=str(one))
    assert (old.robot_model_type, old.alpha5, old.z_hit, old.pf_err) == ("omni-corrected", 0.1, 0.9, 0.01)
    three = tmp_path / "ekf.yaml"
    flags = ", ".join(["true"] * 3 + ["false"] * 12)
    three.write_text(
        f"/**:\n  ros__parameters: {{frequency: 20}}\n/robot/ekf_filter_node:\n  ros__parameters:\n"
        f"    two_d_mode: true\n    odom0: wheel/odom\n    odom0_config: [{flags}]\n    odom0_differential: true\n"
        f"    initial_estimate_covariance: [{', '.join(['1e-9'] * 15)}]\n"
    )
    ekf = EkfNode(params_file=str(three))
    assert ekf.initial_estimate_covariance == (1e-9,) * 15  # text to YAML 1.1, numbers to ROS
    assert (ekf.frequency, ekf.two_d_mode, ekf.parameters()["odom0_differential"]) == (20.0, True, True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("other:\n  ros__parameters: {a: 1}\n", "nothing for amcl"),
        ("- 1\n", "no mapping"),
        ("a: [\n", "no YAML"),
        ("amcl: {ros__parameters: {alpha1: fast}}\n", "alpha1"),
    ],
)
def test_invalid_parameter_files_are_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words):
        AmclNode(params_file=str(path))
    with pytest.raises(ConfigError, match="cannot be read"):
        ros_parameters(tmp_path / "none.yaml", ("amcl",))


def test_amcl_node_continues_after_a_scan_from_the_future() -> None:
    with World(AmclNode(), "amcl") as world:
        world.map()
        world.initial()
        (_, scan), *_ = drive(room(), START, 1, 0)
        world.bus.transforms.insert(SE2(0.1, 0.0, 0.0).to_se3(), "base_link", "laser", 0, True)
        world.scan(scan.__class__(10**13, scan.ranges, scan.angle_min, scan.angle_increment, 0.1, 20.0))
        assert "future" in world.node.health.text
        truth = world.drive()
        assert pose_to_se2(world.got["/amcl_pose"][-1].pose.pose).distance(truth) < 0.1


def test_filter_node_continues_after_a_pose_from_the_future() -> None:
    with World(EkfNode(odom0="/odom", odom0_config=[True] * 2 + [False] * 3 + [True] + [False] * 9), "ekf") as world:
        said = msg.PoseWithCovariance(pose=pose_to_msg(START), covariance=(0.01 * np.eye(6)).ravel())
        told = msg.PoseWithCovarianceStamped(header=header("odom", 10**13), pose=said)
        world.say("/set_pose", told)
        for k in range(20):
            world.until(k * STEP)
            message = msg.Odometry(header=header("odom", k * STEP), child_frame_id="base_link")
            message.pose = msg.PoseWithCovariance(pose=pose_to_msg(SE2(0.1 * k, 0.0, 0.0)), covariance=said.covariance)
            world.say("/odom", message)
        world.until(20 * STEP)
        assert pose_to_se2(world.got["/odometry/filtered"][-1].pose.pose).x > 1.5
