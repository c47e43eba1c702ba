"""Laws of planar odometry, and its nodes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.bus import BusHarness, Traffic

from roboyard.bus import Node
from roboyard.control import AckermannDrive, MecanumDrive, PlanarTwist
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.localization import PlanarOdometry, compute_arc_displacement
from roboyard.localization.nodes import AckermannOdometryNode, GroundTruthOdometryNode, MecanumOdometryNode
from roboyard.messages import msg
from roboyard.messages.convert import make_header

LENGTH = st.floats(-2.0, 2.0)


@given(LENGTH, LENGTH, LENGTH)
def test_two_half_displacements_equal_the_whole(x: float, y: float, rotation: float) -> None:
    half, complete = SE2.exp(PlanarTwist(x / 2, y / 2, rotation / 2)), SE2.exp(PlanarTwist(x, y, rotation))
    twice = half @ half
    assert (twice.x, twice.y) == pytest.approx((complete.x, complete.y), abs=1e-9)


@given(LENGTH, LENGTH)
def test_displacement_without_side_motion_is_an_arc(length: float, rotation: float) -> None:
    one, other = SE2.exp(PlanarTwist(length, 0.0, rotation)), compute_arc_displacement(length, rotation)
    assert (one.x, one.y) == pytest.approx((other.x, other.y), abs=1e-9)


def test_planar_covariance_agrees_with_sampling() -> None:
    random = np.random.default_rng(3)
    step, steps = PlanarTwist(0.02, 0.01, 0.01), 100
    odometry = PlanarOdometry()
    odometry.update(0, PlanarTwist())
    for k in range(steps):
        estimate = odometry.update(k + 1, step)
    noise, length = odometry.noise, math.hypot(step.vx, step.vy)
    step_std = np.sqrt(
        [noise.translation_variance_per_meter * length] * 2
        + [noise.rotation_variance_per_meter * length + noise.rotation_variance_per_radian * step.wz]
    )
    x, y, t = np.zeros((3, 4000))
    for _ in range(steps):
        dx, dy, dt = np.array(step)[:, None] + step_std[:, None] * random.standard_normal((3, 4000))
        c, s = np.cos(t + dt / 2), np.sin(t + dt / 2)
        x, y, t = x + c * dx - s * dy, y + s * dx + c * dy, t + dt
    assert estimate is not None
    assert estimate.covariance == pytest.approx(np.cov([x, y, t]), abs=0.1 * np.max(np.cov([x, y, t])))


def run_odometry(node: Node, names: list[str], rows: list[list[float]]) -> Traffic:
    """The odometry that a node publishes for joint states at 50 Hz."""
    with BusHarness((node, "odometry")) as harness:
        for k, row in enumerate(rows):
            time_ns = k * 20_000_000
            harness.bus.executor.run_until(time_ns)
            state = msg.JointState(header=make_header("", time_ns), name=names, position=np.array(row))
            harness.publish("/joint_states", state)
        harness.run_for(0.02)
        return harness.published("/odom")


def test_mecanum_node_integrates_a_circle() -> None:
    drive = MecanumDrive(wheel_radius=0.1, wheelbase=0.5, track=0.4)
    speeds = drive.wheel_speeds(PlanarTwist(0.3, 0.2, 0.5))
    names = ["a", "fl", "fr", "rl", "rr"]
    rows = [[7.0, *(speeds * k * 0.02)] for k in range(101)]
    node = MecanumOdometryNode(joints=("fl", "fr", "rl", "rr"), wheel_radius=0.1, wheelbase=0.5, track=0.4)
    last = run_odometry(node, names, rows).last
    truth = SE2.exp(PlanarTwist(0.6, 0.4, 1.0))
    assert (last.pose.pose.position.x, last.pose.pose.position.y) == pytest.approx((truth.x, truth.y))
    assert last.twist.twist.linear.y == pytest.approx(0.2)


def test_geometry_of_odometry_changes_at_run_time() -> None:
    """The second half of a straight line counts twice when the wheels turn out to be twice as large."""
    node = MecanumOdometryNode(joints=("fl", "fr", "rl", "rr"), wheel_radius=0.1, wheelbase=0.5, track=0.4)
    names = ["fl", "fr", "rl", "rr"]
    with BusHarness((node, "odometry")) as harness:
        for k in range(101):
            time_ns = k * 20_000_000
            harness.bus.executor.run_until(time_ns)
            if k == 51:
                node.set_parameter("wheel_radius", 0.2)
            state = msg.JointState(header=make_header("", time_ns), name=names, position=np.full(4, 0.1 * k))
            harness.publish("/joint_states", state)
        harness.run_for(0.02)
        assert harness.published("/odom").last.pose.pose.position.x == pytest.approx(0.1 * 5.0 + 0.2 * 5.0)


def test_ackermann_node_integrates_a_circle() -> None:
    car = AckermannDrive(wheel_radius=0.1, wheelbase=0.6, track=0.4, kingpin_width=0.3)
    left, right = car.steering(0.7)
    rims = car.wheel_speeds(0.5, 0.7)
    rows = [[left, right, rims.left * k * 0.02, rims.right * k * 0.02] for k in range(101)]
    names = ["sl", "sr", "l", "r"]
    geometry = {"wheel_radius": 0.1, "wheelbase": 0.6, "track": 0.4, "kingpin_width": 0.3}
    joints = {
        "left_joints": ("l",),
        "right_joints": ("r",),
        "left_steering_joints": ("sl",),
        "right_steering_joints": ("sr",),
    }
    last = run_odometry(AckermannOdometryNode(**geometry, **joints), names, rows).last
    truth = compute_arc_displacement(1.0, 0.7)
    assert (last.pose.pose.position.x, last.pose.pose.position.y) == pytest.approx((truth.x, truth.y))


def test_missing_joint_is_named_in_the_error() -> None:
    with pytest.raises(Exception, match="has no joint 'rr'") as caught:
        run_odometry(MecanumOdometryNode(joints=("fl", "fr", "rl", "rr")), ["fl", "fr", "rl"], [[0.0, 0.0, 0.0]])
    assert isinstance(caught.value.__cause__ or caught.value, ConfigError)


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
