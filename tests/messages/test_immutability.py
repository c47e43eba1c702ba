"""Frozen messages have read-only arrays of the declared types; fingerprints identify their bytes."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.messages import messages

from roboyard.errors import MessageError
from roboyard.messages import (
    deserialize,
    fingerprint,
    freeze,
    msg,
    serialize,
    type_name,
)


def test_frozen_message_has_read_only_arrays():
    scan, odometry = msg.LaserScan(ranges=np.ones(3, np.float32)), msg.Odometry()
    joints = msg.JointTrajectory(points=[msg.JointTrajectoryPoint(positions=np.zeros(2))])
    for message in (scan, odometry, joints):
        freeze(message)
    for array in (scan.ranges, odometry.pose.covariance, joints.points[0].positions):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5.0
    freeze(msg.Twist())


def test_frozen_message_has_arrays_for_lists():
    scan = msg.LaserScan(ranges=[1, 2, 3], intensities=np.arange(3.0))
    freeze(scan)
    assert scan.ranges.dtype == scan.intensities.dtype == np.float32
    with pytest.raises(MessageError, match=r"LaserScan.ranges.*str"):
        freeze(msg.LaserScan(ranges="abc"))
    with pytest.raises(MessageError, match="Odometry.pose"):
        freeze(msg.Odometry(pose=5))
    with pytest.raises(MessageError, match="is not a message"):
        freeze({"ranges": []})


@given(st.lists(st.floats(-1e30, 1e30), min_size=4, max_size=4), st.lists(st.floats(-1e30, 1e30)))
def test_frozen_message_equals_its_deserialized_bytes(numbers, ranges):
    marker = msg.Marker(color=msg.ColorRGBA(*numbers), colors=[msg.ColorRGBA(*numbers)])
    scan = msg.LaserScan(angle_min=numbers[0], range_max=numbers[1], ranges=ranges)
    for message in (marker, scan):
        freeze(message)
        assert deserialize(serialize(message), type_name(message)) == message
        before = copy.deepcopy(message)
        freeze(message)
        assert message == before
    with pytest.raises(MessageError, match="LaserScan.range_min"):
        freeze(msg.LaserScan(range_min=1e300))


@given(messages("nav_msgs/msg/Odometry"), messages("nav_msgs/msg/Odometry"))
def test_fingerprints_are_equal_where_bytes_are(a, b):
    assert (fingerprint(a) == fingerprint(b)) == (serialize(a) == serialize(b))
    before = fingerprint(a)
    a.header.stamp.nanosec ^= 1
    assert fingerprint(a) != before
