"""Skills on belts, on paper: the hand is where the thing is when it grips, and what cannot be done has its cause."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.errors import ConfigError
from roboyard.manipulation.skills import (
    DONE,
    Ask,
    Body,
    Cause,
    Grip,
    Joints,
    Look,
    Memory,
    Move,
    Named,
    Now,
    Outcome,
    Point,
    Ride,
    Sighting,
    SkillConfig,
    Stack,
    Wait,
    Wish,
    lanes_of,
    make_skill,
    packed,
    unpacked,
)
from roboyard.manipulation.skills.memory import Held
from roboyard.manipulation.skills.moving import duration

GROUPS = load_joint_groups("youbot_arm")
POSES = {name: GROUPS.group().poses[name] for name in ("view_left", "view_right", "rest", "load_check")}
BARE = Body.of(GROUPS)
BODY = Body(BARE.chain, BARE.T_root_base, POSES, ((-0.135, 0.159, -0.03),))
TOP, FLOOR = -0.017, -0.058
CONFIG = SkillConfig(
    views=("view_left", "view_right"), moving=("left", "right"), approach=0.045, reach=(0.11, 0.22), patience=5.0,
    belts=(0.92, 0.165, -0.08, 0.165, 0.09, -0.5, -0.165, 0.5, -0.165, 0.09),
)  # fmt: skip


@dataclass
class Belt:
    """A cell in which time passes: what is on the belts moves on, and the hand is where it was told to be."""

    things: list[Point] = field(default_factory=list)
    carriers: list[Point] = field(default_factory=list)
    speed: float = 0.03
    told: float | None = None
    time_ns: int = 5_000_000_000
    hand: Point | None = None
    joints: tuple[float, ...] = POSES["rest"]
    stops_after: int = 10**9
    rides: list[Ride] = field(default_factory=list)
    off: list[float] = field(default_factory=list)
    asked: int = 0

    def moved(self, point: Point, way: float) -> Point:
        return point[0] + way * self.speed * (self.time_ns * 1e-9), point[1], point[2]

    def answer(self, ask: Ask) -> Outcome:
        self.asked += 1
        if self.asked == self.stops_after:
            self.told = 0.0
        match ask:
            case Look(polarity, _, looks, _):
                self.time_ns += looks * 66_000_000
                way, points = (-1.0, self.things) if polarity == "white" else (1.0, self.carriers)
                seen = [self.moved(one, way) for one in points]
                seen = [one for one in seen if abs(one[0] - 0.024) < 0.3]
                found = tuple(Sighting(one, 0.02, 0.0, (way * self.speed, 0.0), self.time_ns) for one in seen)
                self.time_ns += 50_000_000
                return Outcome(seen=found) if found else Outcome(Cause.VIEW_EMPTY, "nothing")
            case Move(targets):
                self.time_ns += 2_000_000_000
                match targets[0]:
                    case Joints(values):
                        self.joints = values
                    case Named(name):
                        self.joints = POSES[name]
            case Wait(seconds):
                self.time_ns += round(seconds * 1e9)
            case Ride():
                return self._ride(ask)
            case _:
                pass
        return DONE

    def _ride(self, ask: Ride) -> Outcome:
        assert ask.begin_ns >= self.time_ns + 200_000_000, "too late to be planned"
        self.rides.append(ask)
        if self.told is not None and abs(self.told - self.speed) > 0.003:
            return Outcome(Cause.UNSTEADY, "it stopped")
        self.time_ns = ask.grip_ns
        tip = ask.stages[1].tip.position
        if ask.grip.opening < 0.02:
            near = [one for one in self.things if math.dist(self.moved(one, -1.0)[:2], tip[:2]) < 0.003]
            if near:
                self.hand = near[0]
                self.things.remove(near[0])
        else:
            self.off = [math.dist(self.moved(one, 1.0)[:2], tip[:2]) for one in self.carriers]
            self.hand = None
        self.time_ns = ask.stages[-1].time_ns
        return DONE

    def now(self, memory: Memory) -> Now:
        told = self.speed if self.told is None else self.told
        flows = {"left": told, "right": told}
        return Now(CONFIG, memory, BODY, self.joints, self.hand is not None, 0.0, (), self.time_ns, flows)


def run(cell: Belt, name: str, memory: Memory, most: int = 400) -> Outcome:
    stack = Stack()
    said = stack.begin(make_skill(name, Wish(), CONFIG, 1), cell.now(memory))
    for _ in range(most):
        if isinstance(said, Outcome):
            return said
        stack.frames = [unpacked(copy.deepcopy(packed(one))) for one in stack.frames]  # a saved state goes on the same
        came = cell.answer(said)
        said = stack.feed(cell.now(memory), came)
    raise AssertionError("it does not end")


def upstream(x: float, aside: float = 0.0, speed: float = 0.03) -> Point:
    """A thing that is at x when it is seen first."""
    return x + 8.6 * speed, 0.165 + aside, TOP


@settings(max_examples=10, deadline=None)
@given(st.floats(0.008, 0.055), st.floats(0.1, 0.3), st.floats(-0.015, 0.015))
def test_pick_from_a_belt_grips_at_the_predicted_place(speed, x, aside):
    cell, memory = Belt([upstream(x, aside, speed)], speed=speed), Memory("left")
    out = run(cell, "pick", memory)
    if not out.done:  # only what cannot be met in time is let go
        assert out.cause in (Cause.OUT_OF_REACH, Cause.TOO_FAST, Cause.NOT_REACHABLE, Cause.VIEW_EMPTY)
        assert not cell.rides
        return
    assert cell.hand is not None
    (ride,) = cell.rides
    times = [ride.begin_ns, *(one.time_ns for one in ride.stages)]
    assert all(later > sooner for sooner, later in pairwise(times))
    for stage in ride.stages:
        assert BODY.distance(stage.tip.position) <= CONFIG.reach[1] + 1e-9
    low = ride.stages[1:3]
    assert {one.tip.position[2] for one in low} == {TOP - CONFIG.depth}
    assert all(one.velocity == (-speed, 0.0) for one in low)
    assert memory.held is not None
    assert not memory.down


def test_pick_from_a_belt_succeeds_at_usual_speeds():
    for speed in (0.01, 0.02, 0.03, 0.04, 0.05):
        cell = Belt([upstream(0.31, 0.0, speed)], speed=speed)
        assert run(cell, "pick", Memory("left")).done, speed


def test_pick_from_a_belt_takes_the_first_reachable_object():
    cell = Belt([upstream(0.31), upstream(0.02), upstream(0.24)])
    assert run(cell, "pick", Memory("left")).done
    assert cell.hand == upstream(0.24)


def test_place_on_a_belt_meets_the_passing_carrier():
    carrier = (-0.2 - 5.0 * 0.03, -0.165, FLOOR)
    cell, memory = Belt(carriers=[carrier], hand=(0.0, 0.0, 0.0)), Memory("right", held=Held((0.0, 0.2, 0.0), 1))
    out = run(cell, "place", memory)
    assert out.done
    assert cell.off[0] < 1e-6
    assert memory.held is None
    assert out.position is not None
    assert math.dist(out.position[:2], cell.moved(carrier, 1.0)[:2]) < 1e-6


def test_place_on_a_belt_skips_an_occupied_carrier():
    one, other = (-0.15 - 0.15, -0.165, FLOOR), (-0.28 - 0.15, -0.165, FLOOR)
    cell, memory = Belt(carriers=[one, other], hand=(0.0, 0.0, 0.0)), Memory("right", held=Held((0.0, 0.2, 0.0), 1))
    answer = cell.answer

    def with_thing(ask: Ask) -> Outcome:
        came = answer(ask)
        if isinstance(ask, Look) and ask.polarity == "white":
            place = cell.moved(one, 1.0)
            return Outcome(seen=(Sighting((*place[:2], place[2] + 0.045), 0.02, 0.0, (0.03, 0.0), cell.time_ns),))
        return came

    cell.answer = with_thing  # type: ignore[method-assign]
    assert run(cell, "place", memory).done
    assert cell.off[1] < 1e-6


# -- what goes wrong ---------------------------------------------------------------------------------------------------
def test_pick_from_too_fast_a_belt_names_both_speeds():
    out = run(Belt([upstream(0.3, 0.0, 0.2)], speed=0.2), "pick", Memory("left"))
    assert out.cause is Cause.TOO_FAST
    assert "0.200" in out.text
    possible = float(out.text.rsplit(" ", 1)[1])
    assert possible == pytest.approx(0.25 / duration(CONFIG), rel=0.3)


def test_pick_of_an_object_leaving_the_reach_ends_in_time():
    cell = Belt([upstream(0.0)])
    out = run(cell, "pick", Memory("left"))
    assert out.cause in (Cause.OUT_OF_REACH, Cause.VIEW_EMPTY)
    assert not cell.rides
    assert cell.time_ns < 40e9


def test_pick_from_a_belt_without_speed_reports_silence():
    assert run(Belt([upstream(0.2)], told=math.nan), "pick", Memory("left")).cause is Cause.BELT_SILENT


@pytest.mark.parametrize("after", range(2, 14))
def test_belt_stop_at_any_moment_ends_the_pick_with_a_cause(after):
    cell, memory = Belt([upstream(0.25)], stops_after=after), Memory("left")
    out = run(cell, "pick", memory)
    assert out.done or out.cause in (Cause.UNSTEADY, Cause.OUT_OF_REACH, Cause.VIEW_EMPTY)
    assert (memory.held is not None) == (cell.hand is not None) == out.done


def test_belt_lanes_are_kept_free_except_while_riding():
    cell, memory = Belt([upstream(0.25)]), Memory("left")
    lanes: list[tuple[str, int]] = []
    answer = cell.answer

    def watched(ask: Ask) -> Outcome:
        lanes.append((type(ask).__name__, len(lanes_of(CONFIG, memory))))
        return answer(ask)

    cell.answer = watched  # type: ignore[method-assign]
    assert run(cell, "pick", memory).done
    assert [count for name, count in lanes if name == "Ride"] == [0]
    assert [count for name, count in lanes if name == "Grip"] == [1]
    assert lanes_of(CONFIG, memory)[0][5] == TOP


def test_object_on_a_stopped_belt_is_grasped_as_at_rest():
    cell, memory = Belt([(0.1, 0.165, TOP)], speed=0.0), Memory("left")
    stack = Stack()
    said = stack.begin(make_skill("pick", Wish(), CONFIG, 1), cell.now(memory))
    for _ in range(60):
        if isinstance(said, Outcome | Grip):
            break
        said = stack.feed(cell.now(memory), cell.answer(said))
    assert "grasp" in [one.name for one in stack.frames]


@pytest.mark.parametrize("after", range(1, 9))
def test_gripper_does_not_descend_to_a_belt_that_started(after):
    cell, memory = Belt([(0.1, 0.165, TOP)], speed=0.0), Memory("left")
    stack, asked, lows = Stack(), 0, []
    said = stack.begin(make_skill("pick", Wish(), CONFIG, 1), cell.now(memory))
    for _ in range(80):
        if isinstance(said, Outcome):
            break
        if isinstance(said, Move) and said.guarded:
            lows.append((cell.speed, said.field))
        if stack.frames[-1].name == "grasp":
            asked += 1
            cell.speed = 0.03 if asked >= after else 0.0
        said = stack.feed(cell.now(memory), cell.answer(said))
    assert set(lows) <= {(0.0, "left")}, "it went down to where nothing is any more"
    assert lows or after <= 3  # who carries the way down out watches that field's belt


def test_skill_config_refuses_invalid_belts():
    for bad in ((0.0,) * 5, (math.nan, 0.0, 1.0, 0.0, 0.1), (0.0, 0.0, 0.01, 0.0, 0.1), (0.0, 1.0)):
        with pytest.raises(ConfigError, match="belt"):
            replace(CONFIG, moving=("left",), belts=bad)
    with pytest.raises(ConfigError, match="no field 'lefd'"):
        replace(CONFIG, moving=("lefd", "right"))


def test_ride_needs_stages_within_joint_limits():
    high, memory = Belt([(*upstream(0.3)[:2], TOP + 0.1)]), Memory("left")
    assert not run(high, "pick", memory).done
    assert memory.recoveries > 0
    assert not high.rides
