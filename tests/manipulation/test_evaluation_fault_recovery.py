"""Metrics of the state of objects after faults, from simulated truths."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from tests.harness.collectors import CollectorFeed

from roboyard.geometry import SE3
from roboyard.manipulation.evaluation.pick_place import FaultRecoveryMetrics
from roboyard.messages import msg

EVENTS, LOG, TRUTH, CONTACTS = "/skills/events", "/rosout", "/truth/arm/odom", "/truth/arm/contacts"
STANDING, LYING = (0.0, 0.0, 0.0), (0.5 * math.pi, 0.0, 0.0)


class SkillFeed(CollectorFeed[FaultRecoveryMetrics]):
    """Events of skills, faults, and the truth about things beside an arm."""

    def __init__(self) -> None:
        super().__init__(FaultRecoveryMetrics("", TRUTH, CONTACTS))
        self.poses: dict[str, SE3] = {}
        self.send_marks({"place": (0.2, -0.1, 0.0)})

    def send_event(self, skill: str, kind: str, **fields: object) -> None:
        """Let a skill publish an event."""
        self.send(EVENTS, msg.SkillEvent(skill=skill, event=kind, id=1, **fields))

    def place(self, name: str, x: float, y: float, z: float = 0.0, rpy: tuple[float, float, float] = STANDING) -> None:
        """Put a thing somewhere."""
        self.poses[name] = SE3.from_xyz_rpy((x, y, z), rpy)
        self.send_objects(self.poses)

    def fault(self) -> None:
        """Let a fault happen."""
        self.send(LOG, msg.Log(name="/faults", msg="something happened"))

    def touch(self, name: str) -> None:
        """Let a finger touch a thing."""
        state = msg.ContactState(collision1_name="arm::finger::sleeve", collision2_name=f"{name}::body::body")
        self.send(CONTACTS, msg.ContactsState(states=[state]))


def started_feed() -> SkillFeed:
    """A loop of skills has begun, and one thing stands there."""
    feed = SkillFeed()
    feed.place("one", 0.1, 0.2)
    feed.send_event("loop", "started")
    return feed


def test_aftermath_without_skills_is_not_measured() -> None:
    feed = SkillFeed()
    feed.place("one", 0.1, 0.2)
    assert feed.collector.values() == {}


@given(st.floats(-0.05, 0.05), st.floats(-0.05, 0.05))
def test_objects_are_safe_at_their_start_or_on_a_place(dx: float, dy: float) -> None:
    feed = started_feed()
    feed.place("one", 0.3, 0.3, 0.1)
    assert feed["objects_held"] == 1
    feed.place("one", 0.1 + dx, 0.2 + dy)
    off = math.hypot(dx, dy)
    assert abs(off - 0.015) < 1e-6 or feed["objects_safe"] == (off < 0.015)
    assert feed["objects_safe"] + feed["objects_astray"] == 1
    feed.place("one", 0.3, 0.3, 0.1)
    feed.place("one", 0.2 + dx, -0.1 + dy)
    assert abs(off - 0.01) < 1e-6 or feed["objects_placed"] == (off < 0.01)


def test_object_moved_along_the_floor_is_safe_at_its_new_position() -> None:
    feed = started_feed()
    feed.place("one", 0.3, 0.3)
    assert feed["objects_safe"] == 1


def test_objects_tipped_by_faults_have_not_fallen() -> None:
    feed = started_feed()
    feed.time = 5.0
    feed.fault()
    feed.time = 5.2
    feed.place("one", 0.1, 0.2, 0.01, LYING)
    assert (feed["objects_lying"], feed["objects_fallen"]) == (1, 0)
    feed.place("two", 0.3, 0.3)
    feed.time = 9.0
    feed.place("two", 0.3, 0.3, 0.01, LYING)
    assert (feed["objects_lying"], feed["objects_fallen"]) == (2, 1)


def test_object_gripped_and_released_while_lying_has_not_fallen() -> None:
    feed = started_feed()
    feed.fault()
    feed.place("one", 0.1, 0.2, 0.01, LYING)
    feed.time = 5.0
    feed.place("one", 0.1, 0.2, 0.1, LYING)
    feed.time = 9.0
    feed.place("one", 0.3, 0.3, 0.01, LYING)
    assert (feed["objects_lying"], feed["objects_fallen"]) == (1, 0)
    feed.place("one", 0.3, 0.3)
    feed.place("one", 0.3, 0.3)
    feed.time = 12.0
    feed.place("one", 0.3, 0.3, 0.01, LYING)
    assert feed["objects_fallen"] == 1


def test_erased_place_still_counts() -> None:
    feed = started_feed()
    feed.place("one", 0.3, 0.3, 0.1)
    feed.send_marks({})
    feed.place("one", 0.2, -0.1)
    assert (feed["objects_placed"], feed["objects_astray"]) == (1, 0)


def test_contacts_with_lying_objects_count_except_those_of_the_fault() -> None:
    feed = started_feed()
    feed.fault()
    feed.place("one", 0.1, 0.2, 0.01, LYING)
    for time in (0.5, 3.0, 3.1, 8.0):
        feed.time = time
        feed.touch("one")
    assert feed["fallen_object_contacts"] == 2


def test_object_in_a_bay_of_a_moved_robot_is_safe() -> None:
    feed = started_feed()
    pose = msg.Odometry(child_frame_id="arm/base")
    pose.pose.pose.position.x = 1.0
    feed.send(TRUTH, pose)
    feed.send_event("release", "phase", bay=2, has_position=True, position=msg.Point(x=-0.1, y=0.0, z=0.1))
    feed.place("one", 0.9, 0.0, 0.1)
    assert (feed["objects_safe"], feed["objects_held"]) == (1, 0)


def test_time_without_events_counts_while_skills_run_and_ends_are_named() -> None:
    feed = started_feed()
    feed.time = 7.0
    feed.send_event("loop", "phase", phase="pick")
    feed.fault()
    feed.time = 9.0
    feed.send_event("pick", "recovered", parent_id=1, error_code="lost")
    feed.time = 12.0
    feed.send_event("pick", "finished", parent_id=1, success=True)
    assert (feed["max_skill_silence"], feed["recovery_time"], feed["at_rest"]) == (7.0, 5.0, False)
    feed.send_event("loop", "finished", error_code="no_depth")
    feed.finish(100.0)
    assert (feed["max_skill_silence"], feed["at_rest"], feed["end_cause"]) == (7.0, True, "no_depth")
    assert feed["failure_causes"] == "lost, no_depth"


def test_repeatedly_resting_loop_is_at_rest_unless_it_worked() -> None:
    feed = started_feed()
    for at_rest in (False, False, True):
        assert not feed["at_rest"]
        feed.send_event("loop", "phase", phase="idle")
        assert feed["at_rest"] == at_rest
    assert feed["end_cause"] == "rests"
    feed.send_event("loop", "phase", phase="recover_start")
    feed.send_event("pick", "finished", parent_id=1, success=True)
    feed.send_event("loop", "phase", phase="idle")
    assert not feed["at_rest"]


def test_aftermath_is_saved_and_restored() -> None:
    feed, other = started_feed(), SkillFeed()
    feed.fault()
    feed.place("one", 0.1, 0.2, 0.01, LYING)
    other.collector.load_state(feed.collector.save_state())
    assert other.result() == feed.result()
