"""Somebody who walks, turns and shows clips: feet keep still, hands get there, one goal at a time, runs repeat."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.harness.models import make_world, static_box

from roboyard.geometry import SE3, quaternions, wrap_angle
from roboyard.simulation import Simulation
from roboyard.simulation.people import Physique, Skeleton
from roboyard.simulation.people.clip import BALL, FEET, HEEL
from roboyard.simulation.people.library import clip_names, find_clip, own_clip
from roboyard.simulation.people.movement import RefusedError
from roboyard.simulation.people.person import AIMED, Person, State
from roboyard.simulation.people.route import Route
from roboyard.simulation.people.ways import ROOM, Ways, cut_heights

Array = NDArray[np.float64]
DT = 0.02
NO_SHRINK = (Phase.explicit, Phase.reuse, Phase.generate)
SKELETON = Skeleton.of(Physique.of_height(1.75))


class RecordedSteps:
    """Steps a person, and keeps what its feet and parts did."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.places: list[Array] = []
        self.soles: list[Array] = []  # (2 feet, heel and ball, xyz)
        self.rests: list[tuple[int, int]] = []
        person.step(DT)

    def step(self) -> None:
        places, turns = self.person.step(DT)
        height = self.person.performer.height
        self.places.append(places)
        points = [places[f] + quaternions.rotate(turns[f], height * np.array([HEEL, BALL])) for f in FEET]
        self.soles.append(np.array(points))
        left, right = self.person.performer.resting()
        self.rests.append((left, right))

    def until_done(self, most: float = 60.0) -> float:
        for k in range(round(most / DT)):
            self.step()
            if self.person.ended:
                return k * DT
        raise AssertionError("it never ended")

    def wait(self, seconds: float) -> None:
        for _ in range(round(seconds / DT)):
            self.step()

    def slides(self) -> float:
        """The farthest that a resting point of a sole went while it rested [m]."""
        worst, starts = 0.0, {}
        for points, rests in zip(self.soles, self.rests, strict=True):
            for foot in range(2):
                for what in range(2):
                    if rests[foot] != what:
                        starts.pop((foot, what), None)
                        continue
                    start = starts.setdefault((foot, what), points[foot, what])
                    worst = max(worst, float(np.linalg.norm((points[foot, what] - start)[:2])))
        return worst


def make_person(height: float = 1.75, place: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Person:
    return Person(Skeleton.of(Physique.of_height(height)), place, find_clip)


# -- walking -----------------------------------------------------------------------------------------------------------
@given(
    st.floats(-4.0, 4.0),
    st.floats(-4.0, 4.0),
    st.floats(-3.0, 3.0),
    st.floats(1.2, 2.0),
    st.sampled_from([0.3, 0.55, 0.8]),
)
@settings(max_examples=8, deadline=None, phases=NO_SHRINK)
def test_person_walks_to_the_goal_without_sliding_feet(
    x: float, y: float, yaw: float, height: float, stride: float
) -> None:
    watch = RecordedSteps(make_person(height, (0.3, -0.2, 1.0)))
    watch.person.move("walk", stride * height, (x, y), yaw)
    watch.until_done()
    assert np.allclose(watch.person.place[:2], (x, y), atol=2e-3) or math.hypot(x - 0.3, y + 0.2) < 0.1
    assert abs(wrap_angle(watch.person.place[2] - yaw)) <= AIMED
    watch.wait(2.0)
    assert watch.slides() < 0.02
    assert np.array(watch.soles)[..., 2].min() > -0.03
    speeds = np.abs(np.diff(np.array(watch.places), axis=0)).max() / DT
    assert speeds < 8.0


@pytest.mark.parametrize("clip", ["walk", "carry"])
def test_stride_is_locked_to_distance(clip: str) -> None:
    person = make_person()
    watch = RecordedSteps(person)
    person.move(clip, 1.2, (4.8, 0.0), None)
    watch.until_done()
    lifts = sum(a[0] >= 0 > b[0] for a, b in zip(watch.rests, watch.rests[1:], strict=False))
    assert lifts in (4, 5)  # a round is 1.2 m


def test_person_near_the_goal_only_turns() -> None:
    person = make_person()
    watch = RecordedSteps(person)
    person.move("walk", 0.0, (0.05, 0.0), 2.0)
    watch.until_done()
    assert person.place == pytest.approx((0.0, 0.0, 2.0))
    person.move("walk", 0.0, (0.0, 2.0), None)
    watch.until_done()
    assert person.place[2] == pytest.approx(math.pi / 2.0)


# -- clips -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [name for name in clip_names() if name not in ("turn",)])
def test_played_clips_take_their_time_with_feet_at_rest(name: str) -> None:
    person = make_person()
    watch = RecordedSteps(person)
    if own_clip(name).travel:
        return
    person.animate(name, 2.0)
    progress = []
    for _ in range(round(0.5 * own_clip(name).period / DT) + 2):
        watch.step()
        progress.append(person.progress)
        if person.ended:
            break
    assert person.ended
    assert progress == sorted(progress)
    assert progress[-1] == pytest.approx(1.0)
    watch.wait(1.5)
    assert watch.slides() < 0.02
    assert person.state is State.IDLE


def test_clip_fading_is_continuous() -> None:
    person = make_person()
    watch = RecordedSteps(person)
    person.animate("pick_up", 1.0)
    watch.wait(1.7)
    person.cancel()
    watch.wait(1.0)
    assert np.abs(np.diff(np.array(watch.places), axis=0)).max() / DT < 6.0


@given(st.floats(0.25, 0.75), st.floats(-0.5, 0.3), st.floats(0.15, 1.7), st.sampled_from(["left", "right"]))
@settings(max_examples=25, deadline=None, phases=NO_SHRINK)
def test_hands_reach_points_within_reach_only(x: float, y: float, z: float, hand: str) -> None:
    person = make_person(place=(1.0, 2.0, 0.7))
    watch = RecordedSteps(person)
    c, s = math.cos(0.7), math.sin(0.7)
    target = np.array([1.0 + c * x - s * y, 2.0 + s * x + c * y, z])
    try:
        person.animate("reach", 1.0, target, hand)
    except RefusedError as refused:
        assert refused.cause == "unreachable"
        assert math.hypot(x, y) > 0.4 or z > 1.5 or abs(y) > 0.2
        return
    nearest = math.inf
    while person.state is State.ANIMATION:
        places, turns = person.step(DT)
        nearest = min(nearest, float(np.linalg.norm(person.performer.grip(places, turns, hand) - target)))
    assert nearest < 0.02
    watch.wait(0.5)
    assert watch.slides() < 0.02


def test_most_points_around_a_person_can_be_reached() -> None:
    person = make_person()
    RecordedSteps(person)
    reached = 0
    grid = [(x, y, z) for x in (0.3, 0.45, 0.6) for y in (-0.4, -0.2, 0.0) for z in (0.2, 0.6, 1.0, 1.4)]
    for place in grid:
        _, missed = person.performer.reaches(own_clip("reach"), np.array(place), "right")
        reached += missed < 0.02
    assert reached >= len(grid) - 2


# -- goals -------------------------------------------------------------------------------------------------------------
def test_invalid_person_goals_are_refused_with_a_cause() -> None:
    person = make_person()
    with pytest.raises(RefusedError, match="not set up") as caught:
        person.move("walk", 0.0, (1.0, 0.0), None)
    assert caught.value.cause == "busy"
    RecordedSteps(person)
    for call, cause, says in (
        (lambda: person.move("fly", 0.0, (1.0, 0.0), None), "unknown", "no clip 'fly'"),
        (lambda: person.move("wave", 0.0, (1.0, 0.0), None), "invalid", "goes nowhere"),
        (lambda: person.move("walk", 9.0, (1.0, 0.0), None), "invalid", "a round"),
        (lambda: person.move("walk", 0.0, (math.nan, 0.0), None), "invalid", "finite"),
        (lambda: person.animate("fly", 1.0), "unknown", "no clip"),
        (lambda: person.animate("wave", 0.0), "invalid", "speed"),
        (lambda: person.animate("wave", math.nan), "invalid", "speed"),
        (lambda: person.animate("wave", 1.0, np.zeros(3)), "invalid", "reaches for nothing"),
        (lambda: person.animate("reach", 1.0, np.array([5.0, 0.0, 1.0])), "unreachable", "out of the right hand's"),
        (lambda: person.animate("reach", 1.0, np.array([math.inf, 0.0, 1.0])), "invalid", "finite"),
        (lambda: person.animate("reach", 1.0, np.array([0.4, 0.0, 1.0]), "third"), "invalid", "left or right"),
    ):
        with pytest.raises(RefusedError, match=says) as caught:
            call()
        assert caught.value.cause == cause
        assert person.state is State.IDLE


def test_busy_person_refuses_goals_until_canceled() -> None:
    person = make_person()
    watch = RecordedSteps(person)
    person.move("walk", 0.0, (3.0, 0.0), None)
    watch.wait(1.0)
    for call in (lambda: person.animate("wave", 1.0), lambda: person.move("walk", 0.0, (0.0, 0.0), None)):
        with pytest.raises(RefusedError, match="busy") as caught:
            call()
        assert caught.value.cause == "busy"
    person.cancel()
    assert person.state is State.IDLE
    stopped = person.place
    watch.wait(1.0)
    assert person.place == stopped
    assert watch.slides() < 0.02
    person.animate("wave", 1.0)


def walking_map(*walls: tuple[tuple[float, float, float], tuple[float, float]]) -> Ways:
    """The ways between boxes: sizes and where they stand."""
    boxes = [static_box(f"wall{k}", size, SE3(translation=(*at, 0.5 * size[2]))) for k, (size, at) in enumerate(walls)]
    return Ways(Simulation(make_world(*boxes)))


def test_paths_into_or_out_of_obstacles_are_refused() -> None:
    ways = walking_map(((0.2, 2.0, 2.0), (2.0, 0.0)))
    assert ways.blocked((0.0, 0.0), (1.5, 0.0)) == ""
    assert "(2." in ways.blocked((0.0, 0.0), (4.0, 0.0)) or "(1." in ways.blocked((0.0, 0.0), (4.0, 0.0))
    assert ways.blocked((0.0, 0.0), (2.0, 0.5)) != ""
    assert ways.blocked((0.0, 3.0), (4.0, 3.0)) == ""
    person = Person(SKELETON, (0.0, 0.0, 0.0), find_clip, ways.route)
    RecordedSteps(person)
    with pytest.raises(RefusedError, match="something stands at") as caught:
        person.move("walk", 0.0, (2.0, 0.5), None)
    assert caught.value.cause == "unreachable"
    room = [((0.2, 2.2, 2.0), (x, 0.0)) for x in (-1.0, 1.0)] + [((2.2, 0.2, 2.0), (0.0, y)) for y in (-1.0, 1.0)]
    person = Person(SKELETON, (0.0, 0.0, 0.0), find_clip, walking_map(*room).route)
    RecordedSteps(person)
    with pytest.raises(RefusedError, match="no way leads round"):
        person.move("walk", 0.0, (3.0, 0.0), None)


@pytest.mark.parametrize(
    ("low", "high", "stands"), [(0.68, 0.72, True), (1.2, 1.25, True), (0.02, 0.15, False), (1.9, 2.0, False)]
)
def test_thin_and_hanging_obstacles_block_at_body_height(low: float, high: float, stands: bool) -> None:
    """A table's top lies between the usual cuts."""
    top = static_box("top", (1.0, 1.5, high - low), SE3(translation=(2.0, 0.0, 0.5 * (low + high))))
    assert (Ways(Simulation(make_world(top))).blocked((0.0, 0.0), (4.0, 0.0)) != "") == stands


@given(st.lists(st.tuples(st.floats(0.0, 2.5), st.floats(1e-4, 1.0)), max_size=8))
def test_cut_heights_meet_all_obstacles_at_body_height(given: list[tuple[float, float]]) -> None:
    spans = np.array([(low, low + thick) for low, thick in given]).reshape(-1, 2)
    heights = cut_heights(spans)
    assert len(heights) <= len(spans) + 3
    for low, high in spans.tolist():
        if high > 0.2 and low < 1.7:
            assert any(low < height < high for height in heights)


@given(st.integers(0, 10_000))
@settings(max_examples=12, deadline=None, phases=NO_SHRINK)
def test_person_walks_around_obstacles_with_clearance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    draw = rng.uniform
    walls = [((draw(0.2, 1.5), draw(0.2, 1.5), 2.0), (draw(-3.0, 3.0), draw(-3.0, 3.0))) for _ in range(7)]
    ways, target = walking_map(*walls), (draw(-4.0, 4.0), draw(-4.0, 4.0))
    watch = RecordedSteps(Person(SKELETON, (-5.0, 0.0, 0.0), find_clip, ways.route))
    try:
        watch.person.move("walk", 0.0, target, 1.0)
    except RefusedError:
        assert ways.blocked((-5.0, 0.0), target) != ""
        return
    way = [watch.person.place]
    while not watch.person.ended:
        watch.step()
        way.append(watch.person.place)
    places = np.array(way)
    assert places[-1, :2] == pytest.approx(target, abs=2e-3)
    for size, at in walls:
        off = np.maximum(np.abs(places[:, :2] - at) - 0.5 * np.array(size[:2]), 0.0)
        assert np.hypot(*off.T).min() > ROOM - 0.06, "a cell's diagonal"
    assert np.linalg.norm(np.diff(places[:, :2], axis=0), axis=1).max() < 2.0 * DT
    assert np.abs(wrap_angle(np.diff(places[:, 2]))).max() < 4.0 * DT
    assert watch.slides() < 0.02


def test_detours_are_short_and_free_paths_straight() -> None:
    ways = walking_map(((0.2, 2.0, 2.0), (2.0, 0.0)))
    assert ways.route((0.0, 3.0), (4.0, 3.0)).points.tolist() == [[0.0, 3.0], [4.0, 3.0]]
    around = ways.route((0.0, 0.0), (4.0, 0.0))
    least = 2.0 * math.hypot(1.9 - ROOM, 1.0 + ROOM)
    assert least < around.length < 1.15 * least + 0.4
    assert around.points[0].tolist() == [0.0, 0.0]
    assert around.points[-1].tolist() == [4.0, 0.0]


@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3)), min_size=3, max_size=6, unique=True))
def test_walking_speed_is_limited_in_bends(corners: list[tuple[float, float]]) -> None:
    array = np.array(corners)
    if np.linalg.norm(np.diff(array, axis=0), axis=1).min() < 0.3:
        return
    route = Route.through(array, 1.6, lambda places: True)
    assert route.place(0.0) == pytest.approx(corners[0])
    assert route.place(route.length) == pytest.approx(corners[-1])
    gone = np.linspace(0.0, route.length, 400)
    speeds = np.array([route.fastest(s) for s in gone.tolist()])
    slower = np.diff(np.minimum(speeds, 4.0) ** 2) / (2.0 * np.diff(gone))
    assert slower.min() > -1.7
    again = Route(np.array(route.save_state()), 1.6)
    assert [again.fastest(s) for s in gone.tolist()] == speeds.tolist()


# -- state -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("after", [0.3, 1.1, 2.5, 4.0])
def test_saved_person_continues_bit_for_bit(after: float) -> None:
    def begin() -> RecordedSteps:
        watch = RecordedSteps(make_person())
        watch.person.move("walk", 1.0, (1.0, 1.0), 3.0)
        watch.wait(after)
        return watch

    one, other = begin(), RecordedSteps(make_person(place=(5.0, 5.0, 0.0)))
    other.person.load_state(one.person.save_state())
    for _ in range(200):
        a, b = one.person.step(DT), other.person.step(DT)
        assert a[0].tobytes() == b[0].tobytes()
        assert a[1].tobytes() == b[1].tobytes()


def test_saved_reach_continues_bit_for_bit() -> None:
    one = RecordedSteps(make_person())
    one.person.animate("pick_up", 1.3, np.array([0.5, -0.2, 0.2]))
    one.wait(0.8)
    other = RecordedSteps(make_person())
    other.person.load_state(one.person.save_state())
    for _ in range(200):
        assert one.person.step(DT)[0].tobytes() == other.person.step(DT)[0].tobytes()
