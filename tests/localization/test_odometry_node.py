"""The odometry node on a bus."""

from __future__ import annotations

import numpy as np
import pytest

from roboyard.bus import Bus, NodeError
from roboyard.localization.nodes import OdometryNode
from roboyard.localization.nodes.odometry import spatial_covariance
from roboyard.messages import msg, srv
from roboyard.messages.time import stamp

SECOND = 1_000_000_000
WHEELS = {"left_joints": ("fl", "rl"), "right_joints": ("fr", "rr")}


def feed(bus: Bus, publisher: object, time_ns: int, names: list[str], angles: list[float]) -> None:
    publisher.publish(msg.JointState(header=msg.Header(stamp=stamp(time_ns)), name=names, position=np.array(angles)))
    bus.executor.run_until(max(time_ns, bus.now_ns))


@pytest.fixture
def setting():
    with Bus() as bus:
        node = bus.add(
            OdometryNode(wheel_radius=0.1, track=0.4, slip_factor=1.5, **WHEELS), "odometry", frame_prefix="r/"
        )
        got: list[object] = []
        bus.tap(lambda topic, message, source, time_ns: got.append(message) if topic.name == "/odom" else None)
        yield bus, node, bus.publisher("/joint_states", msg.JointState, "/test"), got


def test_odometry_averages_sides_and_uses_frame_parameters(setting) -> None:
    bus, _, joints, got = setting
    names = ["arm", "fl", "fr", "rl", "rr"]
    feed(bus, joints, 0, names, [9.0, 0.0, 0.0, 0.0, 0.0])
    feed(bus, joints, SECOND, names, [7.0, 1.9, 4.1, 2.1, 3.9])
    last = got[-1]
    turn = (4.0 - 2.0) * 0.1 / (1.5 * 0.4)
    assert (last.header.frame_id, last.child_frame_id) == ("r/odom", "r/base_link")
    assert last.header.stamp.sec == 1
    assert last.twist.twist.linear.x == pytest.approx(0.3)
    assert last.twist.twist.angular.z == pytest.approx(turn)
    assert 2 * np.arcsin(last.pose.pose.orientation.z) == pytest.approx(turn)
    pose = bus.transforms.lookup("r/odom", "r/base_link")
    assert (pose.x, pose.y, pose.z) == pytest.approx((last.pose.pose.position.x, last.pose.pose.position.y, 0.0))
    assert pose.yaw == pytest.approx(turn)


def test_other_joints_are_ignored_and_missing_wheels_refused(setting) -> None:
    bus, _, joints, got = setting
    feed(bus, joints, 0, ["arm"], [0.1])
    assert not got
    with pytest.raises(NodeError, match="no joint 'fr'"):
        feed(bus, joints, SECOND, ["fl", "rl"], [0.0, 0.0])


def test_odometry_reset_returns_to_the_origin(setting) -> None:
    bus, _, joints, got = setting
    names = ["fl", "fr", "rl", "rr"]
    for i in range(3):
        feed(bus, joints, i * SECOND, names, [float(i)] * 4)
    assert got[-1].pose.pose.position.x == pytest.approx(0.2)
    reply = bus.service_client("/odometry/reset", srv.Trigger, "/test").call(srv.Trigger.Request())
    feed(bus, joints, 3 * SECOND, names, [3.5] * 4)
    assert reply.result.success
    assert got[-1].pose.pose.position.x == pytest.approx(0.15)


def test_saved_odometry_node_continues_identically() -> None:
    ends = []
    state = None
    for _ in range(2):
        with Bus() as bus:
            node = bus.add(OdometryNode(**WHEELS), "odometry")
            joints = bus.publisher("/joint_states", msg.JointState, "/test")
            names = ["fl", "fr", "rl", "rr"]
            if state is None:
                for i in range(5):
                    feed(bus, joints, i * SECOND, names, [i, i * 1.1, i, i * 1.1])
                state = node.save()
            else:
                node.load(state)
            feed(bus, joints, 5 * SECOND, names, [6.0, 7.0, 6.0, 7.0])
            ends.append(bus.transforms.lookup("odom", "base_link"))
    assert ends[0] == ends[1]


def test_slip_factor_can_be_set_while_running(setting) -> None:
    bus, node, joints, got = setting
    names = ["fl", "fr", "rl", "rr"]
    feed(bus, joints, 0, names, [0.0] * 4)
    node.set_parameter("slip_factor", 3.0)
    feed(bus, joints, SECOND, names, [-1.0, 1.0, -1.0, 1.0])
    assert got[-1].twist.twist.angular.z == pytest.approx(2.0 * 0.1 / (3.0 * 0.4))


def test_spatial_covariance_contains_the_planar_one() -> None:
    planar = np.arange(9.0).reshape(3, 3)
    full = spatial_covariance(planar).reshape(6, 6)
    np.testing.assert_array_equal(full[np.ix_((0, 1, 5), (0, 1, 5))], planar)
    assert np.diag(full)[2:5] == pytest.approx([1e6] * 3)
