"""Metrics of picking and placing, and the node that supplies an arm with objects."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tests.harness.collectors import CollectorFeed

import roboyard as ry
from roboyard.bus import NodeError
from roboyard.geometry import SE3
from roboyard.manipulation.evaluation.pick_place import PickPlaceMetrics
from roboyard.messages import msg
from roboyard.messages.convert import point_to_msg, pose_to_msg
from roboyard.scenarios.assembly import build_run
from roboyard.scenarios.loading import load_scenario
from roboyard.scenarios.resolve import resolve_scenario

FINGER = "arm::gripper_finger_left::sleeve_left"


class HandlingFeed(CollectorFeed[PickPlaceMetrics]):
    """Events of skills and the truth about things, marks and an arm.

    Args:
        objects: (name, x, y, tilt) where they stand first [m, rad].
        mark: Where a place called "mark" is drawn on the floor [m].
        root: Pose of the arm's root in the world.
    """

    def __init__(
        self,
        *objects: tuple[str, float, float, float],
        mark: tuple[float, float] = (0.0, 0.2),
        root: SE3 = SE3.identity(),
    ) -> None:
        super().__init__(PickPlaceMetrics("", "/truth/arm/odom", "/truth/arm/contacts"))
        self.place(*objects, time=0.0)
        self.send_marks({"mark": (*mark, 0.0)})
        self.send_event(0.0, "loop", 1, "started")
        odometry = msg.Odometry(child_frame_id="arm/base_link")
        odometry.pose.pose = pose_to_msg(root)
        self.send("/truth/arm/odom", odometry)

    def place(self, *objects: tuple[str, float, float, float], time: float) -> None:
        """Put objects somewhere: name, x, y, tilt."""
        self.send_objects({name: SE3.from_xyz_rpy((x, y, 0.0), (tilt, 0.0, 0.0)) for name, x, y, tilt in objects}, time)

    def send_event(
        self,
        time: float,
        skill: str,
        number: int,
        event: str,
        position: tuple[float, float, float] | None = None,
        **fields: object,
    ) -> None:
        """Let a skill publish an event."""
        message = msg.SkillEvent(skill=skill, id=number, event=event, **fields)
        if position is not None:
            message.has_position, message.position = True, point_to_msg(position)
        self.send("/skills/events", message, time)

    def touch(self, time: float, *pairs: tuple[str, str]) -> None:
        """Publish who touches whom."""
        states = [msg.ContactState(collision1_name=first, collision2_name=second) for first, second in pairs]
        self.send("/truth/arm/contacts", msg.ContactsState(states=states), time)


def test_run_without_skills_has_no_handling_metrics() -> None:
    handling = PickPlaceMetrics("", "/truth/arm/odom", "/truth/arm/contacts")
    assert handling.values() == {}
    assert "recoveries" not in handling.values(), "the navigator has some, too"


def test_place_error_is_measured_at_rest_from_the_mark() -> None:
    root = SE3.from_xyz_rpy((1.0, 0.0, 0.0), (0.0, 0.0, math.pi / 2))
    feed = HandlingFeed(("object_1", 0.3, 0.3, 0.0), root=root, mark=(1.0, 0.2))
    feed.send_event(1.0, "place", 2, "started")
    feed.send_event(
        9.0, "place", 2, "finished", position=(0.203, 0.001, 0.0), success=True
    )  # x of the root is the world's y
    feed.place(("object_1", 1.05, 0.2, 0.0), time=9.1)  # still on its way
    feed.place(("object_1", 1.003, 0.204, 0.0), time=9.5)
    feed.finish(30.0)
    found = feed.result()
    assert found["place_error_mean_mm"] == pytest.approx(5.0, abs=1e-6)
    assert (found["place_attempts"], found["places_succeeded"], found["pick_attempts"]) == (1, 1, 0)
    assert found["objects_per_hour"] == pytest.approx(3600.0 / 9.0)
    assert feed.collector.attempts[0].duration == pytest.approx(8.0)
    assert feed.collector.attempts[0].object_name == "object_1"


def test_attempts_are_events_with_their_outcomes_by_the_truth() -> None:
    feed = HandlingFeed(("object_1", 0.3, 0.3, 0.0))
    feed.send_event(1.0, "pick", 2, "started")
    feed.send_event(2.0, "pick", 2, "finished", error_code="view_empty")  # no attempt
    feed.send_event(3.0, "pick", 3, "finished", error_code="lost")
    feed.send_event(4.0, "pick", 4, "started")
    feed.send_event(5.0, "pick", 4, "finished", success=True)  # nothing was lifted
    feed.place(("object_1", 0.004, 0.2, 0.0), time=8.0)
    feed.send_event(9.0, "place", 5, "finished", position=(0.0, 0.2, 0.0), success=True)
    feed.finish(10.0)
    assert [(event.time, event.kind, event.text) for event in feed.collector.events()] == [
        (3.0, "pick", "failed: lost"),
        (5.0, "pick", "failed: no object was lifted"),
        (9.0, "place", "succeeded: object_1, 4.0 mm from its target"),
    ]


@pytest.mark.parametrize(("x", "tilt"), [(0.02, 0.0), (0.0, 1.57)], ids=["elsewhere", "fallen"])
def test_object_off_target_or_fallen_was_not_placed(x: float, tilt: float) -> None:
    feed = HandlingFeed(("object_1", x, 0.2, tilt))
    feed.send_event(9.0, "place", 2, "finished", position=(0.0, 0.2, 0.0), success=True)
    feed.finish(10.0)
    assert feed.result()["places_succeeded"] == 0
    assert feed.collector.events()[0].text.startswith("failed: object_1")


def test_empty_view_is_no_pick_and_failure_is_one() -> None:
    feed = HandlingFeed()
    feed.send_event(1.0, "pick", 2, "finished", error_code="view_empty", view_empty=True)
    feed.send_event(2.0, "pick", 3, "finished", error_code="lost")
    feed.send_event(3.0, "pick", 4, "recovered", error_code="grasp_failed")
    feed.send_event(4.0, "pick", 4, "finished", success=True)
    found = feed.result()
    assert (found["pick_attempts"], found["picks_succeeded"], found["recoveries"]) == (2, 1, 1)


def test_contacts_other_than_fingers_on_objects_are_collisions() -> None:
    feed = HandlingFeed(("object_1", 0.0, 0.0, 0.0))
    grip = (FINGER, "object_1::body::body")
    feed.touch(1.0, grip)
    assert feed.result()["collisions"] == 0
    feed.touch(2.0, grip, ("arm::camera_body::camera", "object_1::body::body"))
    feed.touch(3.0, (FINGER, "ground::link::ground"))
    feed.touch(3.1)
    feed.touch(3.2, (FINGER, "ground::link::ground"))  # it bounced
    assert feed.result()["collisions"] == 2


def test_object_upright_in_a_bay_is_no_collision() -> None:
    feed = HandlingFeed(("object_1", 0.0, 0.0, 0.0))

    def count_collisions(height: float, tilt: float, time: float) -> int:
        feed.send_objects({"object_1": SE3.from_xyz_rpy((0.0, 0.0, height), (tilt, 0.0, 0.0))}, time)
        feed.touch(time, ("arm::base_link::tray", "object_1::body::body"))
        feed.touch(time + 0.5)
        return int(feed["collisions"])

    assert count_collisions(0.1, 0.0, 1.0) == 0
    assert count_collisions(0.0, 0.0, 2.0) == 1, "it was run into"
    assert count_collisions(0.1, 1.5, 3.0) == 2, "it was knocked over in the bay"


def test_handling_is_saved_and_restored() -> None:
    feed, restored = HandlingFeed(("object_1", 0.0, 0.2, 0.0)), HandlingFeed()
    feed.send_event(9.0, "place", 2, "finished", position=(0.0, 0.2, 0.0), success=True)
    restored.collector.load_state(feed.collector.save_state())
    assert restored.finish(10.0) == feed.finish(10.0)
    assert feed["place_error_mean_mm"] == pytest.approx(0.0)


SUPPLIED = """
world: pick_place_station
robots: {arm: {model: youbot_arm, nodes: none}}
objects: {object: {model: disc_cylinder, count: 2, sector: {radius: [0.3, 0.4], angle_range: [0.5, 1.5]}}}
nodes:
  supply:
    type: object_relocation
    parameters:
      objects: [object]
      source_sector: [0.0, 0.0, 0.2, 0.5, -1.5, -0.5]
      target_sector: [0.0, 0.0, 0.3, 0.4, 0.5, 1.5]
      settle_time: 1.0
      robot: arm
duration: 5
"""


def test_supply_puts_placed_objects_back(tmp_path: Path) -> None:
    (tmp_path / "it.yaml").write_text(SUPPLIED)
    positions = []
    for _ in range(2):
        with build_run(resolve_scenario(load_scenario(tmp_path / "it.yaml")), record=False) as run:
            run.run_for(0.5)
            other = run.simulation.ground_truth("object_2").T_world_base.xyz
            run.simulation.world.set_pose("object_1", SE3.from_xyz_rpy((0.2, -0.3, 0.0)))
            run.run_for(0.9)
            assert run.simulation.ground_truth("object_1").T_world_base.y < 0.0, "it has not rested long enough"
            run.run_for(1.0)
            x, y, z = run.simulation.ground_truth("object_1").T_world_base.xyz
            assert y > 0.0
            assert 0.3 - 1e-3 <= math.hypot(x, y) <= 0.4 + 1e-3
            assert abs(z) < 1e-3
            assert math.hypot(x - other[0], y - other[1]) > 0.059
            positions.append((x, y))
    assert positions[0] == positions[1]


def test_supply_without_objects_is_refused(tmp_path: Path) -> None:
    (tmp_path / "it.yaml").write_text(SUPPLIED.replace("objects: [object]", "objects: [nothing]"))
    with pytest.raises(NodeError, match="no movable object"):
        build_run(resolve_scenario(load_scenario(tmp_path / "it.yaml")), record=False)


def test_run_without_objects_publishes_no_truth_of_objects() -> None:
    with ry.Run("empty", record=False) as run:
        assert "/truth/objects" not in run.bus.topics, "nothing lies about"


def test_place_error_on_a_moving_carrier_follows_it() -> None:
    feed = HandlingFeed(("object_1", 0.0, 0.2, 0.0))
    feed.send_event(9.0, "place", 2, "finished", position=(0.001, 0.2, 0.0), success=True)
    for k in range(20):
        x, time = 0.03 * 0.2 * k, 9.0 + 0.2 * k
        feed.place(("object_1", x + 0.002, 0.2, 0.0), time=time)
        feed.send_marks({"mark": (x, 0.2, 0.0), "other": (x + 0.13, 0.2, 0.0)})
    feed.finish(30.0)
    assert feed.result()["place_error_mean_mm"] == pytest.approx(2.0, abs=1e-6)
    assert feed.result()["places_succeeded"] == 1
