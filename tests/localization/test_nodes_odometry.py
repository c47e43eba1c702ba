"""Odometry nodes of differential, mecanum and Ackermann drives on a bus."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from tests.harness.bus import BusHarness, Traffic

from roboyard.bus import Node, NodeError
from roboyard.control import AckermannDrive, MecanumDrive, PlanarTwist
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.localization import compute_arc_displacement
from roboyard.localization.nodes import AckermannOdometryNode, MecanumOdometryNode, OdometryNode
from roboyard.messages import msg, srv
from roboyard.messages.convert import make_header
from roboyard.messages.convert.poses import planar_covariance_to_msg

WHEELS = {"left_joints": ("fl", "rl"), "right_joints": ("fr", "rr")}


NAMES = ["fl", "fr", "rl", "rr"]


class OdometryHarness(BusHarness):
    """A bus with an odometry node, and the wheels whose angles a test publishes."""

    def __init__(self, frame_prefix: str = "", **parameters: Any) -> None:
        super().__init__()
        self.node = self.add(OdometryNode(**WHEELS, **parameters), "odometry", frame_prefix=frame_prefix)

    def send_angles(self, seconds: float, angles: list[float], names: list[str] = NAMES) -> None:
        """Publish joint angles of a moment, and run up to it."""
        time_ns = round(seconds * 1e9)
        self.publish(
            "/joint_states", msg.JointState(header=make_header("", time_ns), name=names, position=np.array(angles))
        )
        self.bus.executor.run_until(max(time_ns, self.now_ns))

    @property
    def odometry(self) -> Any:
        """The newest odometry."""
        return self.last("/odom")


@pytest.fixture
def odometry() -> Iterator[OdometryHarness]:
    """An odometry node with a slip factor, whose frames have a prefix."""
    with OdometryHarness("r/", wheel_radius=0.1, track=0.4, slip_factor=1.5) as harness:
        yield harness


def test_odometry_averages_sides_and_uses_frame_parameters(odometry: OdometryHarness) -> None:
    names = ["arm", *NAMES]
    odometry.send_angles(0.0, [9.0, 0.0, 0.0, 0.0, 0.0], names)
    odometry.send_angles(1.0, [7.0, 1.9, 4.1, 2.1, 3.9], names)
    last = odometry.odometry
    yaw_rate = (4.0 - 2.0) * 0.1 / (1.5 * 0.4)
    assert (last.header.frame_id, last.child_frame_id) == ("r/odom", "r/base_link")
    assert last.header.stamp.sec == 1
    assert last.twist.twist.linear.x == pytest.approx(0.3)
    assert last.twist.twist.angular.z == pytest.approx(yaw_rate)
    assert 2 * np.arcsin(last.pose.pose.orientation.z) == pytest.approx(yaw_rate)
    pose = odometry.bus.transforms.lookup("r/odom", "r/base_link")
    assert (pose.x, pose.y, pose.z) == pytest.approx((last.pose.pose.position.x, last.pose.pose.position.y, 0.0))
    assert pose.yaw == pytest.approx(yaw_rate)


def test_other_joints_are_ignored_and_missing_wheels_refused(odometry: OdometryHarness) -> None:
    odometry.send_angles(0.0, [0.1], ["arm"])
    assert not odometry.published("/odom")
    with pytest.raises(NodeError, match="no joint 'fr'"):
        odometry.send_angles(1.0, [0.0, 0.0], ["fl", "rl"])


def test_odometry_reset_returns_to_the_origin(odometry: OdometryHarness) -> None:
    for k in range(3):
        odometry.send_angles(k, [float(k)] * 4)
    assert odometry.odometry.pose.pose.position.x == pytest.approx(0.2)
    reply = odometry.start_call("/odometry/reset", srv.Trigger)
    odometry.send_angles(3.0, [3.5] * 4)
    assert reply.result.success
    assert odometry.odometry.pose.pose.position.x == pytest.approx(0.15)


def test_saved_odometry_node_continues_identically() -> None:
    ends = []
    state = None
    for _ in range(2):
        with OdometryHarness() as harness:
            if state is None:
                for k in range(5):
                    harness.send_angles(k, [k, k * 1.1, k, k * 1.1])
                state = harness.node.save_state()
            else:
                harness.node.load_state(state)
            harness.send_angles(5.0, [6.0, 7.0, 6.0, 7.0])
            ends.append(harness.bus.transforms.lookup("odom", "base_link"))
    assert ends[0] == ends[1]


def test_slip_factor_can_be_set_while_running(odometry: OdometryHarness) -> None:
    odometry.send_angles(0.0, [0.0] * 4)
    odometry.node.set_parameter("slip_factor", 3.0)
    odometry.send_angles(1.0, [-1.0, 1.0, -1.0, 1.0])
    assert odometry.odometry.twist.twist.angular.z == pytest.approx(2.0 * 0.1 / (3.0 * 0.4))


def test_message_covariance_contains_the_planar_one() -> None:
    planar = np.arange(9.0).reshape(3, 3)
    full = planar_covariance_to_msg(planar).reshape(6, 6)
    np.testing.assert_array_equal(full[np.ix_((0, 1, 5), (0, 1, 5))], planar)
    assert np.diag(full)[2:5] == pytest.approx([1e6] * 3)


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


# -- all drives --------------------------------------------------------------------------------------------------------
ODOMETRY_NODES: dict[str, tuple[Callable[[], Node], list[str]]] = {
    "differential": (lambda: OdometryNode(left_joints=("l",), right_joints=("r",)), ["l", "r"]),
    "mecanum": (lambda: MecanumOdometryNode(joints=("fl", "fr", "rl", "rr")), ["fl", "fr", "rl", "rr"]),
    "ackermann": (
        lambda: AckermannOdometryNode(
            left_joints=("l",), right_joints=("r",), left_steering_joints=("sl",), right_steering_joints=("sr",)
        ),
        ["l", "r", "sl", "sr"],
    ),
}


@pytest.fixture(params=ODOMETRY_NODES)
def any_drive(request: pytest.FixtureRequest) -> tuple[Callable[[], Node], list[str]]:
    """How to make an odometry node, and its joints: wheels first, then steering."""
    return ODOMETRY_NODES[request.param]


def send_straight(harness: BusHarness, names: list[str], steps: Sequence[float]) -> None:
    """Publish wheel angles of 0.1 rad for each step of 20 ms, with the steering ahead; NaN: no valid angle."""
    for step in steps:
        time_ns = harness.now_ns + 20_000_000
        harness.bus.executor.run_until(time_ns)
        angles = np.array([0.0 if name.startswith("s") else 0.1 * step for name in names])
        harness.publish("/joint_states", msg.JointState(header=make_header("", time_ns), name=names, position=angles))
    harness.run_for(0.001)


def test_invalid_angles_are_reported_by_every_drive(any_drive: tuple[Callable[[], Node], list[str]]) -> None:
    make, names = any_drive
    with BusHarness((node := make(), "odometry")) as harness:
        send_straight(harness, names, [0, 1, math.nan, 3])
        assert len(harness.published("/odom").messages) == 2
        assert node.health.level == "warn"
        assert dict(node.health.values)["count"] == "1"
        position = harness.last("/odom").pose.pose.position
        assert (position.x, position.y) == pytest.approx((0.03, 0.0))


def test_reset_loses_no_step_of_any_drive(any_drive: tuple[Callable[[], Node], list[str]]) -> None:
    make, names = any_drive
    with BusHarness((make(), "odometry")) as harness:
        send_straight(harness, names, range(6))
        call = harness.start_call("/odometry/reset", srv.Trigger)
        harness.run_for(0.001)
        assert call.result.success
        send_straight(harness, names, [6])
        assert harness.last("/odom").pose.pose.position.x == pytest.approx(0.01)


def test_saved_node_of_every_drive_continues_identically(any_drive: tuple[Callable[[], Node], list[str]]) -> None:
    make, names = any_drive
    messages, state = [], None
    for _ in range(2):
        with BusHarness((node := make(), "odometry")) as harness:
            if state is None:
                send_straight(harness, names, range(5))
                state = node.save_state()
            else:
                harness.run_for(0.101)
                node.load_state(state)
            send_straight(harness, names, range(5, 8))
            messages.append(harness.last("/odom"))
    assert messages[0].pose.pose.position == messages[1].pose.pose.position
    assert (messages[0].pose.covariance == messages[1].pose.covariance).all()
