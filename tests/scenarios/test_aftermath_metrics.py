"""What becomes of things after faults, judged by made-up truths."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from roboyard.geometry import SE3
from roboyard.messages import msg
from roboyard.messages.convert import tf_message
from roboyard.scenarios.metrics.aftermath import Aftermath

EVENTS, THINGS, MARKS, LOG, TRUTH, CONTACTS = (
    "/skills/events", "/truth/things", "/truth/marks", "/rosout", "/truth/arm/odom", "/truth/arm/contacts",
)  # fmt: skip
STANDING, LYING = (0.0, 0.0, 0.0), (0.5 * math.pi, 0.0, 0.0)


class Told:
    """An `Aftermath` that hears a run."""

    def __init__(self) -> None:
        self.aftermath, self.time = Aftermath("", "/truth/arm/odom", "/truth/arm/contacts"), 0.0
        self.takes = self.aftermath.handlers()
        self.poses: dict[str, SE3] = {}
        self._say(MARKS, tf_message([(SE3.from_xyz_rpy((0.2, -0.1, 0.0)), "world", "place")], 0))

    def _say(self, topic: str, message: object) -> None:
        self.takes[topic](message, round(self.time * 1e9))

    def event(self, skill: str, kind: str, **more: object) -> None:
        self._say(EVENTS, msg.SkillEvent(skill=skill, event=kind, number=1, **more))

    def at(self, name: str, x: float, y: float, z: float = 0.0, rpy: tuple[float, float, float] = STANDING) -> None:
        self.poses[name] = SE3.from_xyz_rpy((x, y, z), rpy)
        self._say(THINGS, tf_message([(pose, "world", key) for key, pose in self.poses.items()], 0))

    def fault(self) -> None:
        self._say(LOG, msg.Log(name="/faults", msg="something happened"))

    def touch(self, name: str) -> None:
        state = msg.ContactState(collision1_name="arm::finger::sleeve", collision2_name=f"{name}::body::body")
        self._say(CONTACTS, msg.ContactsState(states=[state]))

    def __getitem__(self, name: str) -> object:
        return self.aftermath.result()[name]


def begun() -> Told:
    told = Told()
    told.at("one", 0.1, 0.2)
    told.event("loop", "begins")
    return told


def test_without_skills_nothing_is_said():
    told = Told()
    told.at("one", 0.1, 0.2)
    assert set(told.aftermath.result().values()) == {None}


@given(st.floats(-0.05, 0.05), st.floats(-0.05, 0.05))
def test_a_thing_is_safe_where_it_was_or_on_a_place_and_astray_elsewhere(dx, dy):
    told = begun()
    told.at("one", 0.3, 0.3, 0.1)
    assert told["things_held"] == 1
    told.at("one", 0.1 + dx, 0.2 + dy)
    off = math.hypot(dx, dy)
    assert abs(off - 0.015) < 1e-6 or told["things_safe"] == (off < 0.015)
    assert told["things_safe"] + told["things_astray"] == 1
    told.at("one", 0.3, 0.3, 0.1)
    told.at("one", 0.2 + dx, -0.1 + dy)
    assert abs(off - 0.01) < 1e-6 or told["things_placed"] == (off < 0.01)


def test_what_others_carry_along_the_floor_is_at_home_there():
    told = begun()
    told.at("one", 0.3, 0.3)
    assert told["things_safe"] == 1


def test_who_has_laid_a_thing_down_is_told_apart():
    told = begun()
    told.time = 5.0
    told.fault()
    told.time = 5.2
    told.at("one", 0.1, 0.2, 0.01, LYING)
    assert (told["things_lying"], told["things_fallen"]) == (1, 0)
    told.at("two", 0.3, 0.3)
    told.time = 9.0
    told.at("two", 0.3, 0.3, 0.01, LYING)
    assert (told["things_lying"], told["things_fallen"]) == (2, 1)


def test_what_is_gripped_lying_and_laid_elsewhere_has_not_fallen_again():
    told = begun()
    told.fault()
    told.at("one", 0.1, 0.2, 0.01, LYING)
    told.time = 5.0
    told.at("one", 0.1, 0.2, 0.1, LYING)
    told.time = 9.0
    told.at("one", 0.3, 0.3, 0.01, LYING)
    assert (told["things_lying"], told["things_fallen"]) == (1, 0)
    told.at("one", 0.3, 0.3)
    told.at("one", 0.3, 0.3)
    told.time = 12.0
    told.at("one", 0.3, 0.3, 0.01, LYING)
    assert told["things_fallen"] == 1


def test_a_place_that_is_wiped_out_still_counts():
    told = begun()
    told.at("one", 0.3, 0.3, 0.1)
    told._say(MARKS, tf_message([], 0))
    told.at("one", 0.2, -0.1)
    assert (told["things_placed"], told["things_astray"]) == (1, 0)


def test_touches_of_what_lies_are_counted_but_not_those_of_the_fault():
    told = begun()
    told.fault()
    told.at("one", 0.1, 0.2, 0.01, LYING)
    for time in (0.5, 3.0, 3.1, 8.0):
        told.time = time
        told.touch("one")
    assert told["lying_touched"] == 2


def test_a_thing_in_a_bay_of_a_robot_that_stands_elsewhere_is_safe():
    told = begun()
    pose = msg.Odometry(child_frame_id="arm/base")
    pose.pose.pose.position.x = 1.0
    told.takes[TRUTH](pose, 0)
    told.event("release", "phase", bay=2, located=True, position=msg.Point(x=-0.1, y=0.0, z=0.1))
    told.at("one", 0.9, 0.0, 0.1)
    assert (told["things_safe"], told["things_held"]) == (1, 0)


def test_silence_counts_while_skills_are_under_way_and_the_end_is_told():
    told = begun()
    told.time = 7.0
    told.event("loop", "phase", phase="picked_up")
    told.fault()
    told.time = 9.0
    told.event("pick", "recovers", of=1, cause="lost")
    told.time = 12.0
    told.event("pick", "ends", of=1, done=True)
    assert (told["quiet_seconds"], told["recover_seconds"], told["at_rest"]) == (7.0, 5.0, False)
    told.event("loop", "ends", cause="no_depth")
    told.time = 100.0
    told.aftermath.finish(round(told.time * 1e9))
    assert (told["quiet_seconds"], told["at_rest"], told["ended_by"]) == (7.0, True, "no_depth")
    assert told["causes"] == "lost, no_depth"


def test_a_loop_that_rests_again_and_again_is_at_rest_unless_something_was_done_between():
    told = begun()
    for at_rest in (False, False, True):
        assert not told["at_rest"]
        told.event("loop", "phase", phase="resting")
        assert told["at_rest"] == at_rest
    assert told["ended_by"] == "rests"
    told.event("loop", "phase", phase="ready")
    told.event("pick", "ends", of=1, done=True)
    told.event("loop", "phase", phase="resting")
    assert not told["at_rest"]


def test_saved_it_goes_on_alike():
    told, other = begun(), Told()
    told.fault()
    told.at("one", 0.1, 0.2, 0.01, LYING)
    other.aftermath.load(told.aftermath.save())
    assert other.aftermath.result() == told.aftermath.result()
