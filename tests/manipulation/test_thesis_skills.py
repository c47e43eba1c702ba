"""The thesis's skills: on paper they do what its listings do, end whatever comes back, and can be saved anywhere."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.errors import ConfigError, InputError
from roboyard.manipulation.skills import DONE, Ask, Body, Cause, Memory, Outcome, Sighting, SkillConfig, Stack, Wait

from roboyard.manipulation.skills import Skill, Wish, packed, unpacked  # isort: skip
from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.manipulation.thesis import Scale, point_down
from roboyard.manipulation.thesis.asking import Fingers, Glance, Reach, Stand, ThesisNow
from roboyard.manipulation.thesis.choice import THESIS_SKILLS, make_thesis_skill
from roboyard.manipulation.thesis.config import ThesisConfig
from roboyard.manipulation.thesis.inverse import REST
from roboyard.manipulation.thesis.looking import near_median, on_places
from roboyard.manipulation.thesis.loop import Finish
from roboyard.scenarios import load_scenario
from roboyard.scenarios.snapshot_file import decode_snapshot, encode_snapshot

GROUPS = load_joint_groups("youbot_arm")
BODY = Body.of(GROUPS, bays=("bay_1", "bay_2", "bay_3"))
SCALE = Scale.of(BODY.chain)
GROUND = -0.032
CONFIG = SkillConfig()


def trimmed() -> ThesisConfig:
    """The constants that were measured anew on our arm."""
    entry = load_scenario("youbot-pick-place-loop", overrides=("method=thesis-trimmed",)).config.nodes["skills"]
    return ThesisConfig(**_tuples(entry.parameters["thesis"]))


def _tuples(data: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}


@dataclass
class Paper:
    """A cell on paper, in the arm's frame when it looks at a field: things and places, all ahead [m]."""

    thesis: ThesisConfig
    things: list[tuple[float, float]]
    places: list[tuple[float, float]]
    loaded: list[bool] = field(default_factory=lambda: [False] * 3)
    degrees: tuple[float, ...] = REST
    held: str = ""
    fingers: float = 20.0
    asked: list[Ask] = field(default_factory=list)

    def answer(self, ask: Ask) -> Outcome:
        self.asked.append(ask)
        if isinstance(ask, Reach):
            self.degrees = tuple(b if math.isnan(a) else a for a, b in zip(ask.degrees, self.degrees, strict=True))
        elif isinstance(ask, Fingers):
            self._grip(ask.opening)
        elif isinstance(ask, Glance):
            return Outcome(seen=self._seen(ask))
        return DONE

    def _seen(self, ask: Glance) -> tuple[Sighting, ...]:
        first = self.degrees[0]
        if first == self.thesis.load_check and max(self.thesis.load_x) < 300.0:
            rows = zip(self.thesis.load_x, self.thesis.load_y, self.loaded, strict=True)
            return tuple(
                Sighting((1e-3 * x, 1e-3 * y, 0.0)) for x, y, full in rows if full == (ask.polarity == "white")
            )
        at = self.things if ask.mode == "single" else self.places
        self.degrees = (first, *self.degrees[1:])
        return tuple(Sighting((0.0, math.hypot(x, y), 0.045 if ask.mode == "single" else 0.0)) for x, y in at)

    def _grip(self, opening: float) -> None:
        closing, self.fingers = opening < self.fingers, opening
        bay = self.degrees[0] in self.thesis.bay_turns and self.degrees[1] < -20.0
        number = self.thesis.bay_turns.index(self.degrees[0]) if bay else -1
        if closing:
            if bay and self.loaded[number]:
                self.loaded[number], self.held = False, "thing"
            elif not bay and self.things:
                self.things.remove(min(self.things, key=lambda one: math.hypot(*one)))
                self.held = "thing"
        elif self.held:
            self.held = ""
            if bay:
                assert not self.loaded[number], "something stands there already"
                self.loaded[number] = True
            else:
                self.places.remove(min(self.places, key=lambda one: math.hypot(*one)))

    def now(self, memory: Memory) -> ThesisNow:
        joints = tuple(SCALE.joints(self.degrees))
        return ThesisNow(CONFIG, memory, BODY, joints, thesis=self.thesis, ground=GROUND)


def run(
    paper: Paper, skill: Skill, answers: list[Outcome] | None = None, most: int = 5000
) -> tuple[Outcome | None, list[Any], Memory]:
    """How it ends (None: not within ``most`` answers), what was told, what is remembered."""
    memory, stack, spare = Memory("left"), Stack(), list(answers or [])
    said = stack.begin(skill, paper.now(memory))
    for _ in range(most):
        if isinstance(said, Outcome):
            return said, stack.events, memory
        assert isinstance(said, Glance | Reach | Fingers | Stand | Wait)
        came = paper.answer(said)
        said = stack.feed(paper.now(memory), spare.pop(0) if spare else came)
    return None, stack.events, memory


def test_thesis_loop_moves_all_objects() -> None:
    paper = Paper(trimmed(), [(0.05, 0.2), (-0.1, 0.2), (0.0, 0.15), (0.1, 0.1)], [(0.0, 0.2)] * 4)
    outcome, events, memory = run(paper, make_thesis_skill("loop", Wish(objects=4), CONFIG.fields, 3))
    assert outcome is not None
    assert outcome.done
    assert not paper.things
    assert not paper.places
    assert memory.load == [0, 0, 0]
    ended = [one.skill for one in events if one.kind == "finished" and one.outcome.done]
    assert ended.count("pick") == ended.count("stow") == ended.count("place") == 4
    assert paper.degrees == REST
    stowed = [one.outcome.bay for one in events if one.kind == "finished" and one.skill == "stow"]
    assert stowed == [3, 2, 1, 3]  # the last that is empty


def test_thesis_loop_places_an_earlier_load_first() -> None:
    paper = Paper(trimmed(), [(0.0, 0.2)], [(0.0, 0.2)] * 2, loaded=[True, False, True])
    _, events, _ = run(paper, make_thesis_skill("loop", Wish(objects=2), CONFIG.fields, 3))
    assert [one.skill for one in events if one.kind == "started"][:3] == ["loop", "check_load", "unstow"]
    assert paper.loaded == [False, False, False]


def test_thesis_loop_order_depends_on_the_load() -> None:
    for loaded, order in (([True] * 3, "place"), ([True, True, False], "pick")):
        paper = Paper(trimmed(), [], [], loaded=list(loaded))
        memory, stack = Memory("left"), Stack()
        loop = make_thesis_skill("loop", Wish(), CONFIG.fields, 3)
        said = stack.begin(loop, paper.now(memory))
        orders: list[str] = []
        while len(orders) < 2 and not isinstance(said, Outcome):
            said = stack.feed(paper.now(memory), paper.answer(said))
            if any(one.kind == "finished" and one.skill == "put_back" for one in stack.events):
                orders.append(loop.order)  # type: ignore[attr-defined]
            stack.events.clear()
        assert orders == [order] * 2
        assert paper.loaded == loaded


def test_thesis_loop_without_known_bays_ends_at_rest() -> None:
    paper = Paper(trimmed(), [(0.0, 0.2)], [])
    paper.thesis = ThesisConfig(load_x=(900.0,) * 3, load_y=(900.0,) * 3)
    paper.loaded = [False] * 3
    outcome, _, _ = run(paper, make_thesis_skill("loop", Wish(), CONFIG.fields, 3))
    assert outcome is not None
    assert outcome.cause is Cause.VIEW_EMPTY
    assert sum(isinstance(one, Glance) for one in paper.asked) == 12  # six looks for each colour
    assert paper.degrees == REST


@settings(max_examples=60, deadline=None)
@given(data=st.data(), name=st.sampled_from(["align", "check_load", "pick", "place", "stow", "unstow"]))
def test_thesis_skills_end_for_any_outcomes_and_copies_continue(data: Any, name: str) -> None:
    causes = st.sampled_from([Cause.DONE, Cause.DONE, Cause.TIMED_OUT, Cause.CAMERA_SILENT])
    place = st.tuples(st.floats(-0.3, 0.3), st.floats(-0.1, 0.4), st.floats(-0.02, 0.06))
    seen = st.lists(place.map(Sighting), max_size=3).map(tuple)
    memory, stack = Memory("left"), Stack()
    paper = Paper(trimmed(), [], [])
    said = stack.begin(make_thesis_skill(name, Wish(bay=2), CONFIG.fields, 3), paper.now(memory))
    for _ in range(2000):
        if isinstance(said, Outcome):
            return
        other = Stack()
        text, block = encode_snapshot([packed(one) for one in stack.frames])
        other.frames = [unpacked(one) for one in decode_snapshot(text, block)]
        kept = copy.deepcopy(memory)
        came = Outcome(data.draw(causes), seen=data.draw(seen))
        said = stack.feed(paper.now(memory), came)
        assert repr(other.feed(paper.now(kept), came)) == repr(said)  # repr: a NaN is another's equal
        assert kept == memory
    assert name == "align"  # which may hunt, for 450 pictures
    raise AssertionError("it does not end")


def test_thesis_loop_ends_when_the_camera_is_silent() -> None:
    class Dark(Paper):
        def answer(self, ask: Ask) -> Outcome:
            found = super().answer(ask)
            blind = isinstance(ask, Glance) and self.degrees[0] != self.thesis.load_check
            return Outcome(Cause.CAMERA_SILENT, "dark") if blind else found

    outcome, events, _ = run(Dark(trimmed(), [], []), make_thesis_skill("loop", Wish(), CONFIG.fields, 3))
    assert outcome is not None
    assert outcome.cause is Cause.CAMERA_SILENT
    assert sum(one.kind == "recovered" for one in events) == 2


# -- the formulas ------------------------------------------------------------------------------------------------------
POINT = st.tuples(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0), st.floats(-1.0, 1.0))


@given(st.lists(POINT, max_size=7), st.floats(1e-4, 0.5), st.randoms(use_true_random=False))
def test_near_median_ignores_order_and_outliers(found: list[Any], within: float, random: Any) -> None:
    mean = near_median(found, within)
    mixed = list(found)
    random.shuffle(mixed)
    again = near_median(mixed, within)
    assert (mean is None) == (again is None)
    if mean is not None and again is not None:
        np.testing.assert_allclose(mean, again, atol=1e-9)
        middle = len(found) // 2
        for axis in (0, 1):
            assert abs(mean[axis] - sorted(one[axis] for one in found)[middle]) < within
    one = (0.1, 0.2, 0.3)
    np.testing.assert_allclose(near_median([one] * 5, within) or (0, 0, 0), one, rtol=1e-12)


def test_on_places_keeps_objects_on_the_nearest_place() -> None:
    things = [Sighting((0.0, 0.2, 0.045)), Sighting((0.1, 0.2, 0.045)), Sighting((0.004, 0.204, 0.045))]
    places = [Sighting((0.0, 0.2, 0.0)), Sighting((0.1, 0.2, 0.0))]
    assert on_places(things, places, 0.005) == (things[2],)
    assert on_places(things, places[1:], 0.005) == (things[1],)
    assert on_places(things, [], 0.005) == ()


@given(st.floats(-160.0, 160.0), st.floats(-0.2, 0.2), st.floats(0.1, 0.3))
def test_places_in_the_arm_frame_turn_with_the_first_joint(turn: float, aside: float, ahead: float) -> None:
    joints = tuple(SCALE.joints((turn, *point_down(200.0, 30.0, as_programmed=False), 0.0)))
    now = ThesisNow(CONFIG, Memory("left"), BODY, joints, ground=GROUND)
    x, y, z = now.in_root((0.0, ahead, 0.1)) or (0, 0, 0)
    u, v, _ = BODY.tip(joints)
    foot = BODY.T_root_base @ BODY.foot
    np.testing.assert_allclose(math.atan2(y - foot[1], x - foot[0]), math.atan2(v - foot[1], u - foot[0]), atol=1e-9)
    assert z == pytest.approx(GROUND + 0.1)
    # to the right of the arm is where a growing first joint turns it
    place = now.in_root((aside, ahead, 0.0))
    turned = tuple(SCALE.joints((turn + math.degrees(math.atan2(aside, ahead)), 0.0, 0.0, 0.0, 0.0)))
    there = ThesisNow(CONFIG, Memory("left"), BODY, turned, ground=GROUND).in_root((0.0, math.hypot(aside, ahead), 0.0))
    if abs(turn + math.degrees(math.atan2(aside, ahead))) < 169.0:
        np.testing.assert_allclose(place, there, atol=2e-4)  # its scale is not 1 to 1: 338 degrees are 334


def test_trimmed_thesis_constants_fit_the_arm() -> None:
    thesis = trimmed()
    for bay in (1, 2, 3):
        joints = SCALE.joints(thesis.over_bay(bay))
        x, y, z = BODY.tip(joints)
        u, v, floor = BODY.bay(bay)
        assert math.hypot(x - u, y - v) < 0.0025
        assert abs(z - floor - 0.030) < 0.001  # where the grip is of a thing of 45 mm that is held 15 mm below its top
        looks = tuple(SCALE.joints(thesis.view(thesis.load_check)))
        seen = (1e-3 * thesis.load_x[bay - 1], 1e-3 * thesis.load_y[bay - 1], 0.0)
        found = ThesisNow(CONFIG, Memory("left"), BODY, looks, ground=GROUND).in_root(seen)
        assert found is not None
        assert math.dist(found, BODY.bay(bay)) < 0.004
    for out, height in ((170.0, 20.0), (250.0, 40.0)):
        joints = SCALE.joints((0.0, *point_down(out, height, as_programmed=thesis.as_programmed), 0.0))
        x, _, z = BODY.tip(joints)
        assert x - 0.024 == pytest.approx(1e-3 * out, abs=0.002)
        assert z - GROUND == pytest.approx(1e-3 * (height + 10.0), abs=0.001)


def test_thesis_skills_refuse_bad_goals_and_settings() -> None:
    for name, wish in (("jump", Wish()), ("pick", Wish(field="up")), ("stow", Wish(bay=4)), ("unstow", Wish())):
        with pytest.raises(InputError):
            make_thesis_skill(name, wish, CONFIG.fields, 3)
    for name in THESIS_SKILLS:
        make_thesis_skill(name, Wish(bay=1), CONFIG.fields, 3)
    with pytest.raises(ConfigError):
        ThesisConfig(load_x=(1.0,))
    assert isinstance(unpacked(packed(Finish(Outcome(Cause.CANCELLED)))), Finish)
