"""Metrics of picking and placing, and somebody who keeps an arm supplied."""

from __future__ import annotations

import math

import pytest

import roboyard as ry
from roboyard.bus import NodeError
from roboyard.geometry import SE3
from roboyard.messages import msg
from roboyard.messages.convert import point_to_msg, pose_to_msg, tf_message
from roboyard.scenarios.assemble import assemble
from roboyard.scenarios.metrics.handling import Handling
from roboyard.scenarios.spec import load_spec
from roboyard.simulation.carrying import put

SECOND = 1_000_000_000


def heard(*things: tuple[str, float, float, float], marks=((0.0, 0.2),), root=SE3.identity()) -> Handling:
    """A collector that knows where things and marks are."""
    made = Handling("", "/truth/arm/odom", "/truth/arm/contacts")
    lay(made, *things, at=0)
    made.handlers()["/truth/marks"](tf_message(((SE3.from_xyz_rpy((x, y, 0.0)), "world", "m") for x, y in marks), 0), 0)
    tell(made, 0, "loop", 1, "begins")
    odometry = msg.Odometry()
    odometry.pose.pose = pose_to_msg(root)
    made.handlers()["/truth/arm/odom"](odometry, 0)
    return made


def lay(made: Handling, *things: tuple[str, float, float, float], at: float) -> None:
    rows = ((SE3.from_xyz_rpy((x, y, 0.0), (tilt, 0.0, 0.0)), "world", name) for name, x, y, tilt in things)
    made.handlers()["/truth/things"](tf_message(rows, 0), round(at * SECOND))


def tell(made: Handling, at: float, skill: str, number: int, event: str, position=None, **more) -> None:
    message = msg.SkillEvent(skill=skill, number=number, event=event, **more)
    if position is not None:
        message.located, message.position = True, point_to_msg(position)
    made.handlers()["/skills/events"](message, round(at * SECOND))


def test_nothing_is_claimed_where_nobody_told_of_skills():
    made = Handling("", "/truth/arm/odom", "/truth/arm/contacts")
    assert set(made.result().values()) == {None}
    assert "recoveries" not in made.result(), "the navigator has some, too"


def test_what_was_placed_is_measured_from_the_mark_when_it_has_come_to_rest():
    root = SE3.from_xyz_rpy((1.0, 0.0, 0.0), (0.0, 0.0, math.pi / 2))
    made = heard(("thing_1", 0.3, 0.3, 0.0), root=root, marks=((1.0, 0.2),))
    tell(made, 1.0, "place", 2, "begins")
    tell(made, 9.0, "place", 2, "ends", position=(0.203, 0.001, 0.0), done=True)  # x of the root is the world's y
    lay(made, ("thing_1", 1.05, 0.2, 0.0), at=9.1)  # still on its way
    lay(made, ("thing_1", 1.003, 0.204, 0.0), at=9.5)
    made.finish(30 * SECOND)
    found = made.result()
    assert found["place_error_mean_mm"] == pytest.approx(5.0, abs=1e-6)
    assert (found["places"], found["places_ok"], found["picks"]) == (1, 1, 0)
    assert found["objects_per_hour"] == pytest.approx(3600.0 / 9.0)
    assert made.handled[0].seconds == pytest.approx(8.0)
    assert made.handled[0].thing == "thing_1"


@pytest.mark.parametrize(("x", "tilt"), [(0.02, 0.0), (0.0, 1.57)])
def test_what_lies_elsewhere_or_has_fallen_over_was_not_placed(x, tilt):
    made = heard(("thing_1", x, 0.2, tilt))
    tell(made, 9.0, "place", 2, "ends", position=(0.0, 0.2, 0.0), done=True)
    made.finish(10 * SECOND)
    assert made.result()["places_ok"] == 0


def test_what_found_nothing_is_no_pick_and_what_failed_is():
    made = heard()
    tell(made, 1.0, "pick", 2, "ends", cause="view_empty", view_empty=True)
    tell(made, 2.0, "pick", 3, "ends", cause="lost")
    tell(made, 3.0, "pick", 4, "recovers", cause="not_grasped")
    tell(made, 4.0, "pick", 4, "ends", done=True)
    found = made.result()
    assert (found["picks"], found["picks_ok"], found["recoveries"]) == (2, 1, 1)


def test_fingers_may_touch_things_and_nothing_else_may_be_touched():
    made = heard(("thing_1", 0.0, 0.0, 0.0))

    def touch(at: float, *pairs: tuple[str, str]) -> None:
        states = [msg.ContactState(collision1_name=own, collision2_name=other) for own, other in pairs]
        made.handlers()["/truth/arm/contacts"](msg.ContactsState(states=states), round(at * SECOND))

    grip = ("arm::gripper_finger_left::sleeve_left", "thing_1::body::body")
    touch(1.0, grip)
    assert made.result()["collisions"] == 0
    touch(2.0, grip, ("arm::camera_body::camera", "thing_1::body::body"))
    touch(3.0, ("arm::gripper_finger_left::sleeve_left", "ground::link::ground"))
    touch(3.1)
    touch(3.2, ("arm::gripper_finger_left::sleeve_left", "ground::link::ground"))  # it bounced
    assert made.result()["collisions"] == 2


def test_what_stands_in_a_bay_of_the_robot_touches_it_rightly():
    made = heard(("thing_1", 0.0, 0.0, 0.0))
    odometry = msg.Odometry(child_frame_id="arm/base_link")
    made.handlers()["/truth/arm/odom"](odometry, 0)
    pair = msg.ContactState(collision1_name="arm::base_link::tray", collision2_name="thing_1::body::body")
    touch = msg.ContactsState(states=[pair])

    def at(height: float, tilt: float, time: int) -> int:
        pose = SE3.from_xyz_rpy((0.0, 0.0, height), (tilt, 0.0, 0.0))
        made.handlers()["/truth/things"](tf_message([(pose, "world", "thing_1")], 0), time * SECOND)
        made.handlers()["/truth/arm/contacts"](touch, time * SECOND)
        made.handlers()["/truth/arm/contacts"](msg.ContactsState(), time * SECOND + SECOND // 2)
        return int(made.result()["collisions"])

    assert at(0.1, 0.0, 1) == 0
    assert at(0.0, 0.0, 2) == 1, "it was run into"
    assert at(0.1, 1.5, 3) == 2, "it was knocked over in the bay"


def test_what_it_knows_can_be_saved():
    made, again = heard(("thing_1", 0.0, 0.2, 0.0)), heard()
    tell(made, 9.0, "place", 2, "ends", position=(0.0, 0.2, 0.0), done=True)
    again.load(made.save())
    for one in (made, again):
        one.finish(10 * SECOND)
    assert again.result() == made.result()
    assert made.result()["place_error_mean_mm"] == pytest.approx(0.0)


SUPPLIED = """
world: station
robots: {arm: {model: youbot_arm, nodes: none}}
things: {thing: {model: disc_cylinder, count: 2, sector: {radius: [0.3, 0.4], bearing: [0.5, 1.5]}}}
nodes:
  supply:
    use: supply
    parameters:
      things: [thing]
      source: [0.0, 0.0, 0.2, 0.5, -1.5, -0.5]
      target: [0.0, 0.0, 0.3, 0.4, 0.5, 1.5]
      rest: 1.0
      robot: arm
duration: 5
"""


def test_what_was_placed_is_laid_out_anew(tmp_path):
    (tmp_path / "it.yaml").write_text(SUPPLIED)
    places = []
    for _ in range(2):
        with assemble(load_spec(tmp_path / "it.yaml"), record=False) as run:
            run.run_for(0.5)
            other = run.simulation.truth("thing_2").T_world_base.xyz
            put(run.simulation, "thing_1", SE3.from_xyz_rpy((0.2, -0.3, 0.0)))
            run.run_for(0.9)
            assert run.simulation.truth("thing_1").T_world_base.y < 0.0, "it has not rested long enough"
            run.run_for(1.0)
            x, y, z = run.simulation.truth("thing_1").T_world_base.xyz
            assert y > 0.0
            assert 0.3 - 1e-3 <= math.hypot(x, y) <= 0.4 + 1e-3
            assert abs(z) < 1e-3
            assert math.hypot(x - other[0], y - other[1]) > 0.059
            places.append((x, y))
    assert places[0] == places[1]


def test_a_supply_of_nothing_is_refused(tmp_path):
    (tmp_path / "it.yaml").write_text(SUPPLIED.replace("things: [thing]", "things: [nothing]"))
    with pytest.raises(NodeError, match="nothing that can be moved"):
        assemble(load_spec(tmp_path / "it.yaml"), record=False)


def test_true_places_are_told_when_they_change():
    with ry.Run("empty", record=False) as run:
        assert "/truth/things" not in run.bus.topics, "nothing lies about"


def test_what_is_put_on_a_carrier_is_measured_from_where_that_is_then():
    made = heard(("thing_1", 0.0, 0.2, 0.0))
    tell(made, 9.0, "place", 2, "ends", position=(0.001, 0.2, 0.0), done=True)

    def carried(way: float, at: float) -> None:
        lay(made, ("thing_1", way + 0.002, 0.2, 0.0), at=at)
        marks = ((SE3.from_xyz_rpy((x + way, 0.2, 0.0)), "world", name) for x, name in ((0.0, "m"), (0.13, "n")))
        made.handlers()["/truth/marks"](tf_message(marks, 0), round(at * SECOND))

    for k in range(20):
        carried(0.03 * 0.2 * k, 9.0 + 0.2 * k)
    made.finish(30 * SECOND)
    assert made.result()["place_error_mean_mm"] == pytest.approx(2.0, abs=1e-6)
    assert made.result()["places_ok"] == 1
