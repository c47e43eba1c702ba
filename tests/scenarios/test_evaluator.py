"""Metrics against independent computations on whole arrays."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import roboyard as ry
from roboyard.errors import InputError
from roboyard.evaluation.collector import RobotContext
from roboyard.evaluation.contacts import ContactMetrics
from roboyard.evaluation.plugin import robot_metrics
from roboyard.evaluation.topics import RobotTopics
from roboyard.geometry import SE2, SE3
from roboyard.localization.evaluation import OdometryMetrics
from roboyard.messages import msg
from roboyard.messages.convert import pose_to_msg
from roboyard.messages.time import time_to_msg
from roboyard.scenarios import Run
from roboyard.scenarios.evaluator import Evaluator, metric_names
from roboyard.scenarios.result import ScenarioHeader, build_metrics_document
from roboyard.simulation.evaluation import MotionMetrics


def odometry(time_ns: int, pose: SE2, v: float = 0.0) -> object:
    message = msg.Odometry(header=msg.Header(stamp=time_to_msg(time_ns)))
    message.pose.pose = pose_to_msg(pose.to_se3())
    message.twist.twist.linear.x = v
    return message


def contacts(*pairs: tuple[str, str]) -> object:
    return msg.ContactsState(states=[msg.ContactState(collision1_name=a, collision2_name=b) for a, b in pairs])


def circle(t: float, radius: float = 2.0, rate: float = 0.5) -> SE2:
    return SE2(radius * math.sin(rate * t), radius * (1 - math.cos(rate * t)), rate * t)


def test_motion_of_a_known_circle() -> None:
    motion = MotionMetrics("/truth")
    receive = motion.subscriptions()["/truth"]
    for k in range(501):  # 10 s at 50 Hz with 0.5 rad/s on a radius of 2 m
        receive(odometry(k * 20_000_000, circle(k * 0.02), 1.0), k * 20_000_000)
    found = motion.values()
    assert found["path_length"] == pytest.approx(10.0, rel=1e-4)
    assert found["total_rotation"] == pytest.approx(5.0, rel=1e-6)
    assert found["max_speed"] == pytest.approx(1.0)
    assert found["mean_speed"] == pytest.approx(1.0, rel=1e-4)
    assert found["moving_time"] == pytest.approx(10.0)
    assert found["max_tilt"] == pytest.approx(0.0, abs=1e-6)
    end = circle(10.0)
    assert (found["final_x"], found["final_y"], found["final_yaw"]) == pytest.approx((end.x, end.y, end.theta))


def test_noise_at_rest_is_no_path() -> None:
    motion = MotionMetrics("/truth")
    rng = np.random.default_rng(3)
    for k in range(1000):
        motion.subscriptions()["/truth"](
            odometry(k * 20_000_000, SE2(rng.normal(0, 1e-4), 0, 0), 0.001), k * 20_000_000
        )
    assert motion.values()["path_length"] == 0.0


@given(roll=st.floats(-3, 3), pitch=st.floats(-1.5, 1.5), yaw=st.floats(-3, 3))
def test_tilt_is_the_angle_to_the_vertical(roll: float, pitch: float, yaw: float) -> None:
    motion = MotionMetrics("/truth")
    message = msg.Odometry()
    pose = SE3.from_xyz_rpy((0, 0, 0), (roll, pitch, yaw))
    message.pose.pose = pose_to_msg(pose)
    motion.subscriptions()["/truth"](message, 0)
    expected = math.acos(np.clip(pose.rotation_matrix()[2, 2], -1, 1))
    assert motion.values()["max_tilt"] == pytest.approx(expected, abs=1e-6)


@given(
    offset=st.tuples(st.floats(-5, 5), st.floats(-5, 5), st.floats(-3, 3)),
    seed=st.integers(0, 1000),
    truth_first=st.booleans(),
)
def test_odometry_error_agrees_with_numpy(offset: tuple[float, float, float], seed: int, truth_first: bool) -> None:
    """Odometry with noise in a shifted and turned frame; the collector sees it piece by piece, numpy as a whole."""
    rng = np.random.default_rng(seed)
    T_odom_world = SE2(*offset)
    collector = OdometryMetrics("/truth", "/odom")
    receive = collector.subscriptions()
    truths, observed = [], []
    for k in range(60):
        t_ns, truth = k * 20_000_000, circle(k * 0.02)
        noise = SE2(*rng.normal(0, 0.05, 3)) if k else SE2()
        odom = T_odom_world @ truth @ noise
        calls = [("/truth", truth), ("/odom", odom)]
        for topic, pose in calls if truth_first else reversed(calls):
            receive[topic](odometry(t_ns, pose), t_ns)
        truths.append(truth)
        observed.append(T_odom_world.inverse() @ odom)
    distances = np.array([a.distance(b) for a, b in zip(truths, observed, strict=True)])
    found = collector.values()
    assert collector.count == 60
    assert found["odom_rmse"] == pytest.approx(np.sqrt(np.mean(distances**2)), abs=1e-9)
    assert found["odom_max_error"] == pytest.approx(distances.max(), abs=1e-9)
    assert found["odom_final_error"] == pytest.approx(distances[-1], abs=1e-9)


def test_odometry_is_compared_with_interpolated_truth() -> None:
    collector = OdometryMetrics("/truth", "/odom")
    receive = collector.subscriptions()
    for k in range(101):  # truth at 10 Hz, odometry at 7 Hz, both without error
        t = k * 0.1
        receive["/truth"](odometry(round(t * 1e9), SE2(0.5 * t, 0.0, 0.0)), 0)
    for k in range(1, 60):
        t = k / 7.0
        receive["/odom"](odometry(round(t * 1e9), SE2(0.5 * t, 0.0, 0.0)), 0)
    assert collector.values() == {}, "the truth of those moments came before the odometry"
    late = OdometryMetrics("/truth", "/odom")
    events = sorted([(k * 0.1, "/truth") for k in range(101)] + [(k / 7.0, "/odom") for k in range(1, 60)])
    for t, topic in events:
        late.subscriptions()[topic](odometry(round(t * 1e9), SE2(0.5 * t, 0.0, 0.0)), 0)
    assert late.count == 59
    assert late.values()["odom_max_error"] == pytest.approx(0.0, abs=1e-8)


def test_contacts_are_episodes() -> None:
    collector = ContactMetrics("/contacts")
    receive = collector.subscriptions()["/contacts"]
    second = 1_000_000_000
    receive(contacts(("rover::body", "wall::box")), 1 * second)
    receive(contacts(), round(1.5 * second))
    receive(contacts(("rover::body", "wall::box")), round(1.6 * second))  # bounced: the same episode
    receive(contacts(("rover::body", "wall::box"), ("rover::wheel", "crate::box")), 2 * second)
    receive(contacts(), 3 * second)
    receive(contacts(("rover::body", "wall::box")), 9 * second)
    collector.finish(10 * second)
    found = collector.values()
    assert found == {"contacts": 3, "contact_time": pytest.approx(0.5 + 1.4 + 1.0), "first_contact": 1.0}
    assert ContactMetrics("/x").values()["contacts"] == 0


def test_evaluation_names_are_what_criteria_may_use() -> None:
    evaluation = Evaluator()
    evaluation.add_robot(RobotContext("a", RobotTopics.for_robot("a")))
    evaluation.add_robot(RobotContext("b", RobotTopics.for_robot("b", "/b", {"odom": "base/odom"})))
    totals = {"sim_time": 1.0, "wall_time": 1.0, "real_time_factor": 1.0, "messages": 0, "frames_missed": 0}
    assert set(evaluation.flat_metrics(totals)) <= set(metric_names(("a", "b")))
    evaluation.process("/b/base/odom", odometry(0, SE2()), 0)
    evaluation.process("/truth/b/odom", odometry(0, SE2(1, 1, 1)), 0)
    evaluation.process("/unknown", None, 0)
    assert evaluation.messages == 3
    flat = evaluation.flat_metrics(totals)
    assert flat["b.odom_rmse"] == 0.0
    assert flat.keys() & {"odom_rmse", "a.odom_rmse"} == set(), "without odometry they have no value"
    assert set(flat) <= set(metric_names(("a", "b")))


def test_documented_keys_are_those_of_metrics_json() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "metrics.md").read_text("utf-8")
    sections = dict(section.split("\n", 1) for section in page.split("\n## ")[1:])
    documented = {title: _first_column(text) for title, text in sections.items()}
    with Run("empty", record=False) as run:
        run.add_robot("akrobat")
        run.run_for(0.1)
        run.finish()
        document = build_metrics_document(ScenarioHeader(name="run"), run.measure())
    metrics = {metric.name for metric in robot_metrics()}
    assert documented["Metrics of a robot"] == metrics
    assert documented["The run"] == set(document) - metrics
    (robot,) = document["robots"].values()
    assert set(robot) < documented["Robots"]
    assert set(robot["metrics"]) < metrics


def _first_column(section: str) -> set[str]:
    """Return the keys in the first column of a section's table."""
    cells = (line[2:].split(" | ", 1)[0] for line in section.splitlines() if line.startswith("| `"))
    return {key for cell in cells for key in re.findall(r"`(\w+)`", cell)}


def test_state_of_other_collectors_is_refused() -> None:
    evaluation = Evaluator()
    evaluation.add_robot(RobotContext("a", RobotTopics.for_robot("a")))
    state = evaluation.save_state()
    evaluation.load_state(state)
    key = next(iter(state["robots"]["a"]))
    removed = state["robots"]["a"].pop(key)
    with pytest.raises(InputError, match=f"the snapshot has no state of the metric collector {key} of a"):
        evaluation.load_state(state)
    state["robots"]["a"] |= {key: removed, "user.Brakes": {}}
    with pytest.raises(InputError, match=r"the snapshot has the state of the metric collector user.Brakes of a"):
        evaluation.load_state(state)


SQUARE = ((0.2, 0.2), (-0.2, 0.2), (-0.2, -0.2), (0.2, -0.2))


@pytest.mark.slow
@given(x=st.floats(-2, 2), y=st.floats(-2, 2), yaw=st.floats(-3, 3), first_yaw=st.floats(-3, 3))
def test_separation_is_the_least_distance_between_outlines(x: float, y: float, yaw: float, first_yaw: float) -> None:
    """Against borders sampled densely; the last who came hears of those before him, and they of him."""
    evaluation = Evaluator()
    for name in ("one", "two", "three"):
        evaluation.add_robot(RobotContext(name, RobotTopics.for_robot(name), footprint=SQUARE))
    positions = {"one": SE2(0, 0, first_yaw), "two": SE2(x, y, yaw), "three": SE2(9, 9, 0)}
    sides = np.array([*SQUARE, SQUARE[0]])
    t = np.linspace(0.0, 1.0, 201)[:, None]
    border = np.concatenate([(1.0 - t) * a + t * b for a, b in itertools.pairwise(sides)])
    for time_ns in (0, 1):
        for name, pose in positions.items():
            evaluation.process(f"/truth/{name}/odom", odometry(time_ns, pose), time_ns)
    found = evaluation.metrics_by_robot(("min_separation",))
    footprints = [positions[name] @ border for name in ("one", "two")]
    minimum = np.hypot(*(footprints[0][:, None] - footprints[1][None]).transpose(2, 0, 1)).min()
    inside = (np.abs(positions["one"].inverse() @ footprints[1]) < 0.2).all(axis=1).any()
    for name in ("one", "two"):
        if not inside:
            assert found[name]["min_separation"] == pytest.approx(minimum, abs=0.003)
    assert found["three"]["min_separation"] > 5.0
    alone = Evaluator()
    alone.add_robot(RobotContext("one", RobotTopics.for_robot("one"), footprint=SQUARE))
    alone.process("/truth/one/odom", odometry(0, positions["one"]), 0)
    assert alone.metrics_by_robot(("min_separation",))["one"] == {}


@pytest.mark.parametrize("height", [0.3, 1.1])
def test_scan_height_is_that_of_the_lidar(tmp_path, height):
    lidar = (
        '<sensor name="scan" type="ray"><ray><scan><horizontal><samples>9</samples></horizontal></scan></ray></sensor>'
    )
    box = '<geometry><box size="0.4 0.3 0.2"/></geometry>'
    robot = tmp_path / "robot.urdf"
    robot.write_text(
        f'<robot name="box"><link name="base"><inertial><mass value="5"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0"'
        f' ixz="0" iyz="0"/></inertial><collision>{box}</collision></link><link name="laser"/><joint name="mast"'
        f' type="fixed"><parent link="base"/><child link="laser"/><origin xyz="0 0 {height - 0.1}"/></joint>'
        f'<gazebo reference="laser">{lidar}</gazebo></robot>'
    )
    with ry.Run("arena") as run:
        assert run.add_robot(robot, nodes=()).lidar_height == pytest.approx(height, abs=2e-3)
