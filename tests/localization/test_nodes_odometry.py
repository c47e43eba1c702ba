"""The odometry node on a bus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.harness.bus import BusHarness

from roboyard.bus import NodeError
from roboyard.localization.nodes import OdometryNode
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
