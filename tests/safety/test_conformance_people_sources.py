"""Laws of all nodes that publish tracked people, and a source of the user's own in front of the safety monitor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.harness.bus import BusHarness
from tests.safety.test_collaborative_safety_node import GROUPS, JOINTS, SafetyHarness

from roboyard.bus import NodeError
from roboyard.errors import ConfigError
from roboyard.messages import msg
from roboyard.messages.time import to_nanoseconds
from roboyard.safety.collaborative.capsules import UprightCapsules
from roboyard.safety.collaborative.people_tracker import PersonTrack
from roboyard.safety.nodes import DepthPeopleTrackerNode, PeopleTrackerNode
from roboyard.safety.nodes.people_tracker import TrackedPeopleNode, read_robot_pose


class FloorMatNode(TrackedPeopleNode):
    """Publishes a person who stands on a floor mat, at a position in the base frame."""

    def setup(self) -> None:
        """Subscribe to the mat."""
        self.set_up_output()
        self.subscribe("mat", msg.PointStamped, self._on_step)

    def _on_step(self, message: Any) -> None:
        time_ns = to_nanoseconds(message.header.stamp)
        x, y, _ = (self._T_world_base @ np.array([[message.point.x, message.point.y, 0.0]]))[0].tolist()
        track = PersonTrack(1, time_ns * 1e-9, (x, y), (0.0, 0.0), 0.3, time_ns * 1e-9)
        self.publish_people([(UprightCapsules.single((x, y), 1.9, 0.3), track)], time_ns)


KINDS: dict[type[TrackedPeopleNode], dict[str, object]] = {
    PeopleTrackerNode: {},
    DepthPeopleTrackerNode: {"description": GROUPS.model, "joints": JOINTS},
    FloorMatNode: {},
}
each_source = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


@each_source
def test_sources_place_the_sensor_by_the_pose_of_the_robot(kind: type[TrackedPeopleNode]) -> None:
    with BusHarness() as harness:
        node = harness.add(kind(**KINDS[kind], robot_pose=(1.0, 2.0, 0.0, 0.0, 0.0, math.pi / 2.0)), "source")
        assert (node._T_world_base @ np.array([[1.0, 0.0, 0.5]]))[0] == pytest.approx([1.0, 3.0, 0.5])


@each_source
@pytest.mark.parametrize("pose", [(1.0,), (1.0, 2.0), (0.0, 0.0, math.nan), (0.0,) * 7])
def test_sources_reject_what_is_no_pose(kind: type[TrackedPeopleNode], pose: tuple[float, ...]) -> None:
    with BusHarness() as harness, pytest.raises((NodeError, ConfigError), match="robot_pose"):
        harness.add(kind(**KINDS[kind], robot_pose=pose), "source")


@each_source
def test_sources_publish_people_in_the_world_with_their_uncertainty(kind: type[TrackedPeopleNode]) -> None:
    with BusHarness() as harness:
        output = harness.published("/tracked_people")
        node = harness.add(kind(**KINDS[kind], uncertainty=0.2), "source")
        track = PersonTrack(7, 0.0, (1.0, 2.0), (0.5, 0.0), 0.3, 0.0)
        node.publish_people([(UprightCapsules.single((1.0, 2.0), 1.8, 0.3), track)], 5)
        harness.run_for(0.1)
        (message,) = output.messages
        (person,) = message.people
    assert (message.header.frame_id, to_nanoseconds(message.header.stamp), message.uncertainty) == ("world", 5, 0.2)
    assert (person.name, person.velocities[0].x) == ("person 7", 0.5)
    assert (person.poses[0].position.x, person.poses[0].position.y) == (1.0, 2.0)


def test_source_of_the_users_own_stops_the_arm() -> None:
    with SafetyHarness(people=(), tracked_topic="/tracked_people") as arm:
        arm.add(FloorMatNode(), "mat_node")
        for x, expected in ((8.0, 1.0), (0.8, 0.0)):
            for _ in range(25):
                stamp = msg.Header(stamp=ros_time(arm.now_ns))
                arm.publish("/mat", msg.PointStamped(header=stamp, point=msg.Point(x, 0.0, 0.0)))
                arm.move(0.04, None)
            assert arm.speed_scalings[-1] == expected


def ros_time(ns: int) -> Any:
    return msg.Time(sec=ns // 10**9, nanosec=ns % 10**9)


def test_pose_of_three_numbers_has_no_rotation() -> None:
    assert read_robot_pose((1.0, 2.0, 3.0), "/node").xyz == pytest.approx((1.0, 2.0, 3.0))
    assert read_robot_pose((), "/node").xyz == pytest.approx((0.0, 0.0, 0.0))
