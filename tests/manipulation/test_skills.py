"""Skills as laws: they end whatever comes back, let go only where they set down, and do what they are for on paper."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.kinematics.ik import solve_ik
from roboyard.manipulation.skills import (
    DONE,
    Ask,
    Body,
    Cause,
    Finish,
    Go,
    Grip,
    Joints,
    Look,
    Memory,
    Move,
    Named,
    Now,
    Outcome,
    Point,
    Show,
    Sighting,
    Skill,
    SkillConfig,
    Stack,
    Tip,
    Wait,
    Wish,
    make_skill,
    packed,
    unpacked,
)
from roboyard.manipulation.skills.room import finger_room, hand_turns
from roboyard.scenarios.snapshot_file import decode_snapshot, encode_snapshot

GROUPS = load_joint_groups("youbot_arm")
POSES = {name: GROUPS.group().poses[name] for name in ("view", "rest", "upright", "pick")}
GROUND = -0.032
BAYS = tuple((0.024 + 0.223 * math.cos(a), 0.223 * math.sin(a), GROUND) for a in np.radians((165.0, 150.0, 135.0)))
BARE = Body.of(GROUPS)
BODY = Body(BARE.chain, BARE.T_root_base, {**POSES, "load_check": POSES["upright"]}, BAYS)
CONFIG = SkillConfig(bearings=(2.1642, 3.735), patience=6.0)
HEIGHT = CONFIG.thing_height


@dataclass
class Paper:
    """A cell on paper: what stands where, what the hand holds; it does what skills ask for.

    ``faults`` are taken one by one: each replaces an answer.
    """

    things: list[Point]
    places: list[Point] = field(default_factory=list)
    config: SkillConfig = CONFIG
    heavy: list[Point] = field(default_factory=list)
    barred_bays: tuple[int, ...] = ()
    hand: Point | None = None
    joints: tuple[float, ...] = POSES["view"]
    tip: Point = (0.0, 0.0, 0.5)
    at: str = "left"
    seconds: float = 0.0
    asked: list[Ask] = field(default_factory=list)

    def side(self, point: Point) -> str:
        """Field that a place belongs to."""
        return "left" if point[1] > 0.0 else "right"

    def answer(self, ask: Ask) -> Outcome:
        self.asked.append(ask)
        match ask:
            case Look(polarity, mode, _):
                return self._look(polarity, mode)
            case Move():
                return self._move(ask)
            case Grip(opening, _):
                return self._grip(opening)
            case Wait(seconds):
                self.seconds += seconds
            case Go(place):
                self.at = place or self.at
            case Show():
                pass
        return DONE

    def _look(self, polarity: str, mode: str) -> Outcome:
        if mode == "pair":
            seen = [Sighting(one, 0.02, 0.052) for one in self.places if self.side(one) == self.at]
        elif polarity == "white":
            seen = [Sighting(one, 0.02) for one in self.things if self.side(one) == self.at or one[0] < -0.05]
        else:
            empty = [bay for bay in BAYS if all(math.dist(bay[:2], one[:2]) > 0.01 for one in self.things)]
            seen = [Sighting(one, 0.02) for one in empty]
        seen.sort(key=lambda one: math.dist(one.position, (0.0, 0.0, 0.0)))
        return Outcome(seen=tuple(seen)) if seen else Outcome(Cause.VIEW_EMPTY, "nothing")

    def _move(self, ask: Move) -> Outcome:
        for target in ask.targets:
            match target:
                case Named(name):
                    self.joints, self.tip = tuple(BODY.poses[name]), (0.0, 0.0, 0.5)
                case Joints(values):
                    self.joints, self.tip = values, BODY.tip(values)
                case Tip(position, yaw):
                    T = BODY.T_root_base.inverse() @ SE3.from_xyz_rpy(position, (math.pi, 0.0, yaw))
                    found = solve_ik(BODY.chain, T, self.joints)
                    bays = [BAYS[k - 1] for k in self.barred_bays]
                    if not found.is_solved or any(math.dist(position[:2], bay[:2]) < 0.01 for bay in bays):
                        continue
                    if ask.holding and self.hand in self.heavy and position[2] > self.tip[2] + 0.01:
                        return Outcome(Cause.TOO_HEAVY, "too much for it")
                    self.joints, self.tip = tuple(found.best.tolist()), position
            return DONE
        return Outcome(Cause.NOT_REACHABLE, "out of reach")

    def _grip(self, opening: float) -> Outcome:
        x, y, z = self.tip
        if opening > 0.02 and self.hand is not None:
            self.things.append((x, y, z + self.config.depth))
            self.hand = None
        elif opening < 0.02 and self.hand is None:
            top = (x, y, z + self.config.depth)
            near = [one for one in self.things if math.dist(one, top) < 0.003]
            if near:
                self.hand = near[0]
                self.things.remove(near[0])
        return DONE

    def now(self, memory: Memory) -> Now:
        return Now(self.config, memory, BODY, self.joints, self.hand is not None)


def run(paper: Paper, skill: Skill, memory: Memory, most: int = 5000) -> Outcome:
    """Carry a skill out to its end."""
    stack = Stack()
    said = stack.begin(skill, paper.now(memory))
    for _ in range(most):
        if isinstance(said, Outcome):
            return said
        came = paper.answer(said)
        said = stack.feed(paper.now(memory), came)
    raise AssertionError("it does not end")


def top(radius: float, bearing: float) -> Point:
    """A disc on a thing that stands so far from the first joint's axis."""
    x, y = 0.024 + radius * math.cos(bearing), radius * math.sin(bearing)
    return x, y, GROUND + HEIGHT


def skill(name: str, **wish: Any) -> Skill:
    return make_skill(name, Wish(**wish), CONFIG, 3)


# -- what they are for -------------------------------------------------------------------------------------------------
def test_pick_takes_the_nearest_object() -> None:
    paper, memory = Paper([top(0.26, 0.9), top(0.22, 0.6)]), Memory("left")
    assert run(paper, skill("pick"), memory).done
    assert paper.hand == top(0.22, 0.6)
    assert memory.held is not None
    assert memory.held.origin == pytest.approx(top(0.22, 0.6))


def test_picked_object_is_stowed_unstowed_and_placed() -> None:
    place = (*top(0.25, -0.7)[:2], GROUND)
    paper, memory = Paper([top(0.24, 0.7)], [place]), Memory("left")
    for name in ("pick", "stow"):
        assert run(paper, skill(name), memory).done
    assert memory.load == [1, 0, 0]
    assert math.dist(paper.things[0][:2], BAYS[0][:2]) < 1e-6
    assert run(paper, skill("unstow"), memory).done
    assert memory.load == [0, 0, 0]
    paper.at = memory.at = "right"
    assert run(paper, skill("place"), memory).done
    assert math.dist(paper.things[0][:2], place[:2]) < 1e-6
    assert abs(paper.things[0][2] - HEIGHT - GROUND - CONFIG.release_gap) < 1e-6


def test_loop_moves_all_objects_and_ends_at_rest() -> None:
    config = replace(CONFIG, pick_at="left", place_at="right")
    things = [top(0.2 + 0.025 * (k % 3), 0.35 + 0.2 * k) for k in range(6)]
    places = [(*top(0.2 + 0.025 * (k % 3), -0.35 - 0.2 * k)[:2], GROUND) for k in range(6)]
    paper, memory = Paper(things, places, config), Memory("left")
    out = run(paper, make_skill("loop", Wish(objects=6), config, 3), memory)
    assert out.done
    assert memory.recoveries == 0
    for place in places:
        assert min(math.dist(place[:2], one[:2]) for one in paper.things) < 1e-6
    assert paper.joints == tuple(POSES["rest"])
    assert paper.hand is None


def test_loop_with_full_load_and_no_free_place_waits() -> None:
    config = replace(CONFIG, pick_at="left", place_at="right")
    paper, memory = Paper([top(0.2 + 0.02 * k, 0.4 + 0.2 * k) for k in range(4)], [], config), Memory("left")
    stack, goes = Stack(), 0
    said = stack.begin(make_skill("loop", Wish(), config, 3), paper.now(memory))
    for _ in range(700):
        assert not isinstance(said, Outcome)
        goes += isinstance(said, Go)
        came = paper.answer(said)
        said = stack.feed(paper.now(memory), came)
    assert memory.load == [1, 1, 1]
    assert paper.seconds > 20.0 * goes / 10.0  # minutes of waiting, not of driving


# -- on wheels ---------------------------------------------------------------------------------------------------------
@dataclass
class Wheels(Paper):
    """The cell on paper, with a robot that drives: what stands in a field shifts as it moves.

    ``offs`` is how far a drive to each field misses it, ``blocked`` counts drives that fail first.
    """

    at: str = ""
    offs: dict[str, tuple[float, float]] = field(default_factory=dict)
    moved: tuple[float, float] = (0.0, 0.0)
    blocked: int = 0
    goes: list[Go] = field(default_factory=list)

    def answer(self, ask: Ask) -> Outcome:
        if not isinstance(ask, Go):
            return super().answer(ask)
        assert self.hand is None
        self.goes.append(ask)
        if self.blocked:
            self.blocked -= 1
            return Outcome(Cause.NOT_FOLLOWED, "something is in the way")
        x, y = self.offs.get(ask.place, (0.0, 0.0)) if ask.place else (0.0, 0.0)
        self._shift(ask.aside[0] + x, ask.aside[1] + y, ask.place)
        self.at = ask.place or self.at
        return DONE

    def _shift(self, x: float, y: float, place: str) -> None:
        """Put what stands in fields where it is seen from the robot's new pose."""
        u, v = self.moved if not place else (0.0, 0.0)
        here = (u + x, v + y)
        dx, dy = here[0] - self.moved[0], here[1] - self.moved[1]
        self.moved = here
        loaded = [one for one in self.things if any(math.dist(one[:2], bay[:2]) < 0.02 for bay in BAYS)]
        stands = [one for one in self.things if one not in loaded]
        self.things = [*loaded, *((a - dx, b - dy, c) for a, b, c in stands)]
        self.places = [(a - dx, b - dy, c) for a, b, c in self.places]


DRIVING = replace(CONFIG, drives=True, pick_at="left", place_at="right", reach=(0.19, 0.27))


@settings(max_examples=8, deadline=None)
@given(st.floats(-0.15, 0.10), st.floats(-0.04, 0.04), st.integers(0, 3))
def test_loop_corrects_a_misplaced_base_and_delivers(x: float, y: float, blocked: int) -> None:
    things = [top(0.23 + 0.01 * (k % 2), 0.7 + 0.25 * k) for k in range(3)]
    places = [(*top(0.23 + 0.01 * (k % 2), -0.7 - 0.25 * k)[:2], GROUND) for k in range(3)]
    wheels = Wheels(things, places, DRIVING, offs={"left": (x, y), "right": (x, -y)}, blocked=blocked)
    out = run(wheels, make_skill("loop", Wish(objects=3), DRIVING, 3), Memory(""))
    assert out.done
    for place in wheels.places:
        assert min(math.dist(place[:2], one[:2]) for one in wheels.things) < 1e-6
    assert wheels.hand is None
    assert wheels.at == "start_end"


def test_loop_approaches_and_leaves_fields_by_retreat_poses() -> None:
    wheels = Wheels([top(0.24, 0.7)], [(*top(0.24, -0.7)[:2], GROUND)], DRIVING)
    assert run(wheels, make_skill("loop", Wish(objects=1), DRIVING, 3), Memory("")).done
    back = (-DRIVING.retreat, 0.0)
    to = [(Go(name, back), Go(name)) for name in ("left", "right")]
    assert [go for go in wheels.goes if go.place or go.aside == back] == [
        *to[0], Go(aside=back), *to[1], Go(aside=back), Go("start_end")
    ]  # fmt: skip


def test_loop_gives_up_an_unreachable_field_with_its_cause() -> None:
    wheels = Wheels([top(0.24, 0.7)], [], DRIVING, blocked=10**6)
    stack, memory, waits = Stack(), Memory(""), 0
    said = stack.begin(make_skill("loop", Wish(objects=1), DRIVING, 3), wheels.now(memory))
    while waits < 2:
        assert not isinstance(said, Outcome)
        waits += isinstance(said, Wait) and said.seconds == DRIVING.idle
        said = stack.feed(wheels.now(memory), wheels.answer(said))
    assert len(wheels.goes) < 2 * 2 * (DRIVING.tries + 1) ** 2
    causes = {one.outcome.cause for one in stack.events if one.kind == "recovered"}
    assert causes == {Cause.NOT_FOLLOWED}


def test_loop_leaves_an_object_that_driving_brings_no_nearer() -> None:
    class Stuck(Wheels):
        def _shift(self, x: float, y: float, place: str) -> None:
            """Wheels that turn on the spot."""

    stuck = Stuck([top(0.45, 0.7)], [], DRIVING)
    stack, memory = Stack(), Memory("")
    said = stack.begin(make_skill("loop", Wish(objects=1), DRIVING, 3), stuck.now(memory))
    while not (isinstance(said, Wait) and said.seconds == DRIVING.idle):
        assert not isinstance(said, Outcome)
        said = stack.feed(stuck.now(memory), stuck.answer(said))
    assert 0 < sum(not go.place and go.aside != (-DRIVING.retreat, 0.0) for go in stuck.goes) <= 30


# -- when something goes wrong -----------------------------------------------------------------------------------------
def test_pick_in_an_empty_view_reports_it() -> None:
    out = run(Paper([]), skill("pick"), Memory("left"))
    assert out.view_empty
    assert not out.done


def test_pick_looks_again_when_the_object_disappears() -> None:
    paper, memory = Paper([top(0.22, 0.6), top(0.26, 0.9)]), Memory("left")

    class Thief(Paper):
        def _grip(self, opening: float) -> Outcome:
            if opening < 0.02 and len(self.things) == 2:
                self.things.remove(top(0.22, 0.6))
            return super()._grip(opening)

    thief = Thief(paper.things)
    out = run(thief, skill("pick"), memory)
    assert out.done
    assert thief.hand == top(0.26, 0.9)
    assert out.recoveries == 1


def test_pick_puts_too_heavy_objects_down_and_avoids_them() -> None:
    heavy, light = top(0.22, 0.6), top(0.26, 0.9)
    paper, memory = Paper([heavy, light], heavy=[heavy]), Memory("left")
    assert run(paper, skill("pick"), memory).done
    assert paper.hand == light
    assert math.dist(paper.things[0], heavy) < 0.003
    run(paper, skill("stow"), memory)
    assert run(paper, skill("pick"), memory).view_empty  # it does not try again


def test_stow_skips_unreachable_bays_and_fails_without_any() -> None:
    paper, memory = Paper([top(0.22, 0.6)], barred_bays=(1,)), Memory("left")
    run(paper, skill("pick"), memory)
    assert run(paper, skill("stow"), memory).bay == 2
    paper, memory = Paper([top(0.22, 0.6)], barred_bays=(1, 2, 3)), Memory("left")
    run(paper, skill("pick"), memory)
    out = run(paper, skill("stow"), memory)
    assert out.cause in (Cause.NOT_REACHABLE, Cause.BAY_FULL)
    assert paper.hand is not None
    run(paper, Finish(), memory)
    assert math.dist(paper.things[0], top(0.22, 0.6)) < 0.003


def test_loop_without_reachable_bay_puts_back_and_rests() -> None:
    thing = top(0.24, 0.7)
    paper, memory = Paper([thing], barred_bays=(1, 2, 3)), Memory("left")
    stack = Stack()
    said = stack.begin(make_skill("loop", Wish(), CONFIG, 3), paper.now(memory))
    while paper.seconds < 100.0:
        assert not isinstance(said, Outcome)
        came = paper.answer(said)
        said = stack.feed(paper.now(memory), came)
    assert sum(one.skill == "pick" and one.kind == "started" for one in stack.events) == 1
    assert paper.things[0][:2] == pytest.approx(thing[:2], abs=1e-6)
    assert {one.outcome.cause for one in stack.events if one.skill == "loop"} >= {Cause.NOT_REACHABLE}


def test_pick_prefers_an_object_with_room_for_the_fingers() -> None:
    middle = top(0.24, 0.7)
    ring = [
        (middle[0] + 0.021 * math.cos(a), middle[1] + 0.021 * math.sin(a), middle[2])
        for a in np.arange(6) * math.pi / 3
    ]
    assert not hand_turns(middle, 0.7, ring, CONFIG)
    paper = Paper([middle, *ring, top(0.26, 1.2)])
    assert run(paper, skill("pick"), Memory("left")).done
    assert paper.hand == top(0.26, 1.2)


def test_place_skips_a_covered_place() -> None:
    near, far = (*top(0.20, -0.7)[:2], GROUND), (*top(0.26, -0.9)[:2], GROUND)
    paper, memory = Paper([top(0.24, 0.7)], [near, far]), Memory("left")
    run(paper, skill("pick"), memory)
    paper.things.append((*near[:2], GROUND + HEIGHT))
    paper.at = memory.at = "right"
    assert run(paper, skill("place"), memory).done
    assert math.dist(paper.things[-1][:2], far[:2]) < 1e-6


@pytest.mark.parametrize("stops", range(1, 30, 4))
def test_skills_end_when_the_arm_is_canceled(stops: int) -> None:
    """Nothing more is asked for, and what is held stays held."""
    paper, memory, stack = Paper([top(0.22, 0.6)], [(*top(0.25, -0.7)[:2], GROUND)]), Memory("left"), Stack()
    said = stack.begin(skill("loop"), paper.now(memory))
    for _ in range(stops):
        assert not isinstance(said, Outcome)
        came = paper.answer(said)
        said = stack.feed(paper.now(memory), came)
    before = paper.hand
    said = stack.feed(paper.now(memory), Outcome(Cause.CANCELLED, "the arm was stopped"))
    assert isinstance(said, Outcome)
    assert (said.cause, said.text) == (Cause.CANCELLED, "the arm was stopped")
    assert not stack.busy
    assert paper.hand == before


def test_stow_takes_another_bay_after_contact_in_a_full_one() -> None:
    """Somebody puts a thing into the first bay after the load was checked."""

    class Full(Paper):
        def _move(self, ask: Move) -> Outcome:
            target = ask.targets[0]
            if ask.guarded and isinstance(target, Tip) and ask.holding:
                spot = (*target.position[:2], GROUND + HEIGHT)
                if any(math.dist(spot, one) < 0.01 for one in self.things):
                    return Outcome(Cause.BLOCKED, "something is there")
            return super()._move(ask)

    paper, memory = Full([top(0.22, 0.6)]), Memory("left")
    assert run(paper, skill("pick"), memory).done
    assert run(paper, skill("check_load"), memory).done
    paper.things.append((*BAYS[0][:2], GROUND + HEIGHT))
    out = run(paper, skill("stow"), memory)
    assert out.done
    assert out.bay == 2
    assert memory.load == [1, 1, 0]
    assert out.recoveries == 1


# -- the fingers -------------------------------------------------------------------------------------------------------
@dataclass
class Stuck(Paper):
    """The cell on paper, with fingers that do not open from one time on, for so often."""

    first: int = 1
    times: int = 1
    opened: int = 0
    stuck: bool = False

    def answer(self, ask: Ask) -> Outcome:
        low = self.tip[2] < GROUND + HEIGHT
        assert not (self.stuck and low and isinstance(ask, Move)), "it moves with what the fingers do not let go of"
        if isinstance(ask, Grip) and ask.opening > 0.02:
            self.opened += 1
            self.stuck = self.first <= self.opened < self.first + self.times
            if self.stuck:
                self.asked.append(ask)
                return Outcome(Cause.HAND_STUCK, "they stand 20 mm apart")
        return super().answer(ask)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 8), st.integers(1, 3))
def test_arm_waits_until_stuck_fingers_open(first: int, times: int) -> None:
    config = replace(CONFIG, pick_at="left", place_at="right")
    places = [(*top(0.2, -0.7)[:2], GROUND), (*top(0.25, -1.1)[:2], GROUND)]
    paper = Stuck([top(0.24, 0.7), top(0.2, 1.2)], places, config, first=first, times=times)
    memory = Memory("left")
    run(paper, make_skill("loop", Wish(objects=1), config, 3), memory)
    assert any(min(math.dist(place[:2], one[:2]) for one in paper.things) < 1e-6 for place in places)


def test_loop_ends_in_place_when_fingers_never_open() -> None:
    paper, memory = Stuck([top(0.24, 0.7)], [], first=2, times=10**6), Memory("left")
    out = run(paper, make_skill("loop", Wish(), CONFIG, 3), memory)
    assert out.cause is Cause.HAND_STUCK
    assert paper.stuck  # nothing was moved after that


@dataclass
class Slippery(Paper):
    """The cell on paper, where the first lift loses its thing, which hangs between the fingers."""

    lost: int = 1

    def answer(self, ask: Ask) -> Outcome:
        if isinstance(ask, Move) and ask.holding and ask.straight and self.lost:
            self.lost -= 1
            self.asked.append(ask)
            return Outcome(Cause.LOST, "the gripper says: lost")
        return super().answer(ask)


def test_object_lost_while_lifting_is_lowered_before_opening() -> None:
    thing = top(0.24, 0.7)
    paper, memory = Slippery([thing]), Memory("left")
    assert run(paper, skill("pick"), memory).done
    k = next(k for k, ask in enumerate(paper.asked) if isinstance(ask, Move) and ask.holding)
    down, opens = paper.asked[k + 1], next(ask for ask in paper.asked[k + 1 :] if isinstance(ask, Grip))
    assert isinstance(down, Move)
    assert down.guarded
    (target,) = down.targets
    assert isinstance(target, Tip)
    assert target.position == pytest.approx((*thing[:2], thing[2] - CONFIG.depth + CONFIG.release_gap))
    assert opens.opening == CONFIG.opening


@dataclass
class Bent(Paper):
    """The cell on paper, where the hand comes upon something, and then no straight line leads up."""

    blocks: int = 1
    bent: bool = False

    def answer(self, ask: Ask) -> Outcome:
        if isinstance(ask, Move) and ask.guarded and self.blocks:
            self.blocks, self.bent = self.blocks - 1, True
            return Outcome(Cause.BLOCKED, "8 N along the fingers")
        if isinstance(ask, Move) and self.bent:
            if ask.straight:
                self.asked.append(ask)
                return Outcome(Cause.IN_COLLISION, "the tool can follow the line for 0 % of it")
            self.bent = False
            assert BODY.tip(ask.targets[0].values)[2] > GROUND + HEIGHT  # type: ignore[union-attr]
        return super().answer(ask)


@pytest.mark.parametrize("held", [False, True])
def test_blocked_descent_without_straight_retreat_goes_back_by_joints(held: bool) -> None:
    place = (*top(0.25, -0.7)[:2], GROUND)
    paper, memory = Bent([top(0.24, 0.7)], [place], blocks=0 if held else 1), Memory("left")
    assert run(paper, skill("pick"), memory).done
    if held:
        paper.blocks = 1
        assert run(paper, skill("stow"), memory).done
    assert not paper.bent
    assert memory.recoveries == 1


# -- blind -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cause", [Cause.CAMERA_SILENT, Cause.NO_DEPTH])
def test_skills_without_camera_end_with_the_cause_at_rest(cause: Cause) -> None:
    class Blind(Paper):
        def _look(self, polarity: str, mode: str) -> Outcome:
            return Outcome(cause, "dark")

    for name in ("pick", "check_load", "look"):
        assert run(Blind([top(0.22, 0.6)]), skill(name), Memory("left")).cause is cause
    paper = Blind([top(0.22, 0.6)])
    assert run(paper, skill("loop"), Memory("left")).cause is cause
    assert paper.joints == tuple(POSES["rest"])


@pytest.mark.parametrize(
    ("name", "wish", "says"),
    [
        ("pik", {}, "pick"), ("pick", {"field": "middle"}, "left, right"), ("stow", {"bay": 4}, "1 to 3"),
        ("place", {"at": (math.nan, 0.0, 0.0)}, "finite"), ("look", {"polarity": "red"}, "white, black"),
        ("look", {"mode": "triple"}, "single, pair"),
    ],
)  # fmt: skip
def test_skill_goals_out_of_range_are_refused(name: str, wish: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        skill(name, **wish)


# -- whatever comes back -----------------------------------------------------------------------------------------------
class Chaos:
    """Answers at random; the fingers may feel something after they closed."""

    def __init__(self, data: st.DataObject) -> None:
        self.draw, self.feels = data.draw, False
        self.joints = tuple(POSES["view"])

    def answer(self, ask: Ask) -> Outcome:
        if isinstance(ask, Show | Wait):
            return DONE
        good = self.draw(st.integers(0, 3)) > 0
        if isinstance(ask, Look) and good:
            count = self.draw(st.integers(0, 3))
            spots = [
                top(0.12 + 0.07 * self.draw(st.integers(0, 3)), self.draw(st.integers(-8, 8)) / 5) for _ in range(count)
            ]
            found = [*spots, *(bay for bay in BAYS if self.draw(st.booleans()))]
            return Outcome(seen=tuple(Sighting(one) for one in found)) if found else Outcome(Cause.VIEW_EMPTY)
        if isinstance(ask, Grip):
            self.feels = ask.opening < 0.02 and self.draw(st.integers(0, 3)) > 0
        if isinstance(ask, Move) and ask.holding:
            self.feels = self.feels and self.draw(st.integers(0, 9)) > 0
            if not self.feels:
                return Outcome(Cause.LOST, "gone")
        if good:
            return DONE
        return Outcome(self.draw(st.sampled_from([cause for cause in Cause if cause is not Cause.DONE])), "chaos")

    def now(self, memory: Memory) -> Now:
        return Now(CONFIG, memory, BODY, self.joints, self.feels)


ONE_BY_ONE = ("look", "align", "check_load", "pick", "place", "stow", "unstow")


def check_grip(stack: Stack, said: Ask | Outcome, feels: bool) -> None:
    """Fingers open on what they feel only where it is set down."""
    if isinstance(said, Grip) and said.opening > 0.02 and feels:
        user = stack.frames[-1]
        assert (user.name, user.phase) in (("release", "opened"), ("grasp", "reopened"), ("grasp", "opened")) or (
            user.name == "ready"
        ), (user.name, user.phase)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_skills_end_with_a_cause_for_any_outcomes(data: st.DataObject) -> None:
    chaos, memory = Chaos(data), Memory("left")
    for _ in range(3):
        name = data.draw(st.sampled_from(ONE_BY_ONE))
        stack = Stack()
        said = stack.begin(skill(name), chaos.now(memory))
        for _ in range(1500):
            if isinstance(said, Outcome):
                break
            check_grip(stack, said, chaos.feels)
            came = chaos.answer(said)
            said = stack.feed(chaos.now(memory), came)
        assert isinstance(said, Outcome), f"{name} does not end"
        assert not stack.frames
        begun = [event.number for event in stack.events if event.kind == "started"]
        ended = [event.number for event in stack.events if event.kind == "finished"]
        assert sorted(begun) == sorted(ended)


@settings(max_examples=25, deadline=None)
@given(st.data(), st.integers(0, 150))
def test_loop_abandoned_anywhere_finishes(data: st.DataObject, steps: int) -> None:
    chaos, memory, stack = Chaos(data), Memory("left"), Stack()
    said = stack.begin(skill("loop"), chaos.now(memory))
    for _ in range(steps):
        if isinstance(said, Outcome):
            break
        check_grip(stack, said, chaos.feels)
        came = chaos.answer(said)
        said = stack.feed(chaos.now(memory), came)
    if stack.frames:
        assert stack.abandon(Cause.CANCELLED, "enough").cause is Cause.CANCELLED
    said = stack.begin(Finish(Outcome(Cause.CANCELLED)), chaos.now(memory))
    for _ in range(200):
        if isinstance(said, Outcome):
            break
        check_grip(stack, said, chaos.feels)
        came = chaos.answer(said)
        said = stack.feed(chaos.now(memory), came)
    assert isinstance(said, Outcome)
    assert said.cause in (Cause.CANCELLED, Cause.PREEMPTED)  # whoever stops what it does ends that at once


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 120))
def test_loop_restored_from_a_saved_state_continues_equally(steps: int) -> None:
    config = replace(CONFIG, pick_at="left", place_at="right")
    paper = Paper([top(0.22, 0.6), top(0.26, 0.9)], [(*top(0.25, -0.7)[:2], GROUND)], config)
    memory, stack = Memory("left"), Stack()
    said = stack.begin(make_skill("loop", Wish(), config, 3), paper.now(memory))
    for _ in range(steps):
        assert not isinstance(said, Outcome)
        came = paper.answer(said)
        said = stack.feed(paper.now(memory), came)
    other, memory2, paper2 = Stack(), Memory(**decode_snapshot(*encode_snapshot(packed(memory)))), copy.deepcopy(paper)
    other.frames = [unpacked(decode_snapshot(*encode_snapshot(packed(one)))) for one in stack.frames]
    said2 = said
    for _ in range(60):
        assert said == said2
        assert not isinstance(said, Outcome)
        assert not isinstance(said2, Outcome)
        came = paper.answer(said)
        said = stack.feed(paper.now(memory), came)
        came = paper2.answer(said2)
        said2 = other.feed(paper2.now(memory2), came)
    assert paper.things == paper2.things
    assert memory == memory2


# -- geometry ----------------------------------------------------------------------------------------------------------
@given(st.floats(-1.4, 1.4), st.floats(0.1, 0.4), st.floats(0.3, 5.5))
def test_turn_to_a_point_puts_it_in_the_arm_plane(bearing: float, radius: float, q1: float) -> None:
    q = np.array([q1, *POSES["view"][1:]])
    ahead = BODY.azimuth(BODY.tip([q1, *POSES["pick"][1:]]))
    point = top(radius, ahead + bearing)
    turned = q1 + BODY.turn_to(q, point)
    assert abs(BODY.turn_to([turned, *q[1:]], point)) < 1e-9
    assert abs(turned - q1) == pytest.approx(abs(bearing), abs=1e-6)


@given(st.floats(-3.0, 3.0), st.floats(0.02, 0.1), st.floats(-3.0, 3.0))
def test_finger_room_agrees_with_sampled_geometry(yaw: float, distance: float, bearing: float) -> None:
    other = (distance * math.cos(bearing), distance * math.sin(bearing), 0.0)
    room = finger_room((0.0, 0.0, 0.0), yaw, [other], CONFIG)
    c, s = math.cos(yaw), math.sin(yaw)
    thickness, width = CONFIG.finger
    points = [
        (c * x - s * y * side, s * x + c * y * side)
        for x in np.linspace(-width / 2, width / 2, 15)
        for y in np.linspace(CONFIG.opening / 2, CONFIG.opening / 2 + thickness, 13)
        for side in (-1.0, 1.0)
    ]
    sampled = min(math.dist(point, other[:2]) for point in points) - CONFIG.thing_radius
    assert room <= sampled + 1e-9 <= room + 1.2e-3
