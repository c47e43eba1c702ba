"""A person who walks, turns and plays clips: no foot slip, hands at their targets, one goal at a time, equal reruns."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.harness.models import make_world, static_box

from roboyard.geometry import SE3, quaternions, wrap_angle
from roboyard.people import BodyDimensions, Skeleton
from roboyard.people.clip import BALL, FEET, HEEL
from roboyard.people.clip_library import builtin_clip_names, find_clip, load_builtin_clip
from roboyard.people.person import HEADING_TOLERANCE, Person, PersonActivity
from roboyard.people.walking import WALKING_CLEARANCE, PersonGoalError, WalkingMap, WalkingPath
from roboyard.simulation import Simulation
from roboyard.simulation.walking_map import choose_cut_heights, make_walking_map

Array = NDArray[np.float64]
DT = 0.02
NO_SHRINK = (Phase.explicit, Phase.reuse, Phase.generate)
SKELETON = Skeleton.from_dimensions(BodyDimensions.from_height(1.75))


class RecordedSteps:
    """Steps a person and records the positions of feet and parts."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.positions: list[Array] = []
        self.sole_points: list[Array] = []  # (2 feet, heel and ball, xyz)
        self.foot_contacts: list[tuple[int, int]] = []
        person.step(DT)

    def step(self) -> None:
        positions, orientations = self.person.step(DT)
        height = self.person.animation_player.height
        self.positions.append(positions)
        points = [positions[f] + quaternions.rotate(orientations[f], height * np.array([HEEL, BALL])) for f in FEET]
        self.sole_points.append(np.array(points))
        left, right = self.person.animation_player.foot_contacts()
        self.foot_contacts.append((left, right))

    def until_done(self, max_duration: float = 60.0) -> float:
        for k in range(round(max_duration / DT)):
            self.step()
            if self.person.has_ended_goal:
                return k * DT
        raise AssertionError("it never ended")

    def wait(self, seconds: float) -> None:
        for _ in range(round(seconds / DT)):
            self.step()

    def max_foot_slip(self) -> float:
        """Return the largest displacement of a point of a sole during its contact [m]."""
        worst, starts = 0.0, {}
        for points, contacts in zip(self.sole_points, self.foot_contacts, strict=True):
            for foot in range(2):
                for point in range(2):
                    if contacts[foot] != point:
                        starts.pop((foot, point), None)
                        continue
                    start = starts.setdefault((foot, point), points[foot, point])
                    worst = max(worst, float(np.linalg.norm((points[foot, point] - start)[:2])))
        return worst


def make_person(height: float = 1.75, pose: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Person:
    return Person(Skeleton.from_dimensions(BodyDimensions.from_height(height)), pose, find_clip)


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
    steps = RecordedSteps(make_person(height, (0.3, -0.2, 1.0)))
    steps.person.walk("walk", stride * height, (x, y), yaw)
    steps.until_done()
    assert np.allclose(steps.person.pose[:2], (x, y), atol=2e-3) or math.hypot(x - 0.3, y + 0.2) < 0.1
    assert abs(wrap_angle(steps.person.pose[2] - yaw)) <= HEADING_TOLERANCE
    steps.wait(2.0)
    assert steps.max_foot_slip() < 0.02
    assert np.array(steps.sole_points)[..., 2].min() > -0.03
    speeds = np.abs(np.diff(np.array(steps.positions), axis=0)).max() / DT
    assert speeds < 8.0


@pytest.mark.parametrize("clip", ["walk", "carry"])
def test_stride_is_locked_to_distance(clip: str) -> None:
    person = make_person()
    steps = RecordedSteps(person)
    person.walk(clip, 1.2, (4.8, 0.0), None)
    steps.until_done()
    lifts = sum(a[0] >= 0 > b[0] for a, b in zip(steps.foot_contacts, steps.foot_contacts[1:], strict=False))
    assert lifts in (4, 5)  # a round is 1.2 m


def test_person_near_the_goal_only_turns() -> None:
    person = make_person()
    steps = RecordedSteps(person)
    person.walk("walk", 0.0, (0.05, 0.0), 2.0)
    steps.until_done()
    assert person.pose == pytest.approx((0.0, 0.0, 2.0))
    person.walk("walk", 0.0, (0.0, 2.0), None)
    steps.until_done()
    assert person.pose[2] == pytest.approx(math.pi / 2.0)


# -- clips -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [name for name in builtin_clip_names() if name not in ("turn",)])
def test_played_clips_take_their_time_with_feet_at_rest(name: str) -> None:
    person = make_person()
    steps = RecordedSteps(person)
    if load_builtin_clip(name).travel_per_period:
        return
    person.animate(name, 2.0)
    progress = []
    for _ in range(round(0.5 * load_builtin_clip(name).period / DT) + 2):
        steps.step()
        progress.append(person.progress)
        if person.has_ended_goal:
            break
    assert person.has_ended_goal
    assert progress == sorted(progress)
    assert progress[-1] == pytest.approx(1.0)
    steps.wait(1.5)
    assert steps.max_foot_slip() < 0.02
    assert person.activity is PersonActivity.IDLE


def test_clip_fading_is_continuous() -> None:
    person = make_person()
    steps = RecordedSteps(person)
    person.animate("pick_up", 1.0)
    steps.wait(1.7)
    person.cancel()
    steps.wait(1.0)
    assert np.abs(np.diff(np.array(steps.positions), axis=0)).max() / DT < 6.0


@given(st.floats(0.25, 0.75), st.floats(-0.5, 0.3), st.floats(0.15, 1.7), st.sampled_from(["left", "right"]))
@settings(max_examples=25, deadline=None, phases=NO_SHRINK)
def test_hands_reach_points_within_reach_only(x: float, y: float, z: float, hand: str) -> None:
    person = make_person(pose=(1.0, 2.0, 0.7))
    steps = RecordedSteps(person)
    c, s = math.cos(0.7), math.sin(0.7)
    target = np.array([1.0 + c * x - s * y, 2.0 + s * x + c * y, z])
    try:
        person.animate("reach", 1.0, target, hand)
    except PersonGoalError as error:
        assert error.error_code == "unreachable"
        assert math.hypot(x, y) > 0.4 or z > 1.5 or abs(y) > 0.2
        return
    nearest = math.inf
    while person.activity is PersonActivity.ANIMATION:
        positions, orientations = person.step(DT)
        nearest = min(
            nearest,
            float(np.linalg.norm(person.animation_player.grip_position(positions, orientations, hand) - target)),
        )
    assert nearest < 0.02
    steps.wait(0.5)
    assert steps.max_foot_slip() < 0.02


def test_most_points_around_a_person_can_be_reached() -> None:
    person = make_person()
    RecordedSteps(person)
    reached = 0
    grid = [(x, y, z) for x in (0.3, 0.45, 0.6) for y in (-0.4, -0.2, 0.0) for z in (0.2, 0.6, 1.0, 1.4)]
    for point in grid:
        _, position_error = person.animation_player.plan_reach(load_builtin_clip("reach"), np.array(point), "right")
        reached += position_error < 0.02
    assert reached >= len(grid) - 2


# -- goals -------------------------------------------------------------------------------------------------------------
def test_invalid_person_goals_are_refused_with_an_error_code() -> None:
    person = make_person()
    with pytest.raises(PersonGoalError, match="not set up") as caught:
        person.walk("walk", 0.0, (1.0, 0.0), None)
    assert caught.value.error_code == "busy"
    RecordedSteps(person)
    for call, error_code, message in (
        (lambda: person.walk("fly", 0.0, (1.0, 0.0), None), "unknown", "no clip 'fly'"),
        (lambda: person.walk("wave", 0.0, (1.0, 0.0), None), "invalid", "does not travel"),
        (lambda: person.walk("walk", 9.0, (1.0, 0.0), None), "invalid", "per cycle"),
        (lambda: person.walk("walk", 0.0, (math.nan, 0.0), None), "invalid", "finite"),
        (lambda: person.animate("fly", 1.0), "unknown", "no clip"),
        (lambda: person.animate("wave", 0.0), "invalid", "speed"),
        (lambda: person.animate("wave", math.nan), "invalid", "speed"),
        (lambda: person.animate("wave", 1.0, np.zeros(3)), "invalid", "has no reaching hand"),
        (
            lambda: person.animate("reach", 1.0, np.array([5.0, 0.0, 1.0])),
            "unreachable",
            "out of reach of the right hand",
        ),
        (lambda: person.animate("reach", 1.0, np.array([math.inf, 0.0, 1.0])), "invalid", "finite"),
        (lambda: person.animate("reach", 1.0, np.array([0.4, 0.0, 1.0]), "third"), "invalid", "left or right"),
    ):
        with pytest.raises(PersonGoalError, match=message) as caught:
            call()
        assert caught.value.error_code == error_code
        assert person.activity is PersonActivity.IDLE


def test_busy_person_refuses_goals_until_canceled() -> None:
    person = make_person()
    steps = RecordedSteps(person)
    person.walk("walk", 0.0, (3.0, 0.0), None)
    steps.wait(1.0)
    for call in (lambda: person.animate("wave", 1.0), lambda: person.walk("walk", 0.0, (0.0, 0.0), None)):
        with pytest.raises(PersonGoalError, match="busy") as caught:
            call()
        assert caught.value.error_code == "busy"
    person.cancel()
    assert person.activity is PersonActivity.IDLE
    stopped = person.pose
    steps.wait(1.0)
    assert person.pose == stopped
    assert steps.max_foot_slip() < 0.02
    person.animate("wave", 1.0)


def make_map_of_walls(*walls: tuple[tuple[float, float, float], tuple[float, float]]) -> WalkingMap:
    """Return the walking map of a world with boxes: their sizes and positions."""
    boxes = [
        static_box(f"wall{k}", size, SE3(translation=(*position, 0.5 * size[2])))
        for k, (size, position) in enumerate(walls)
    ]
    return make_walking_map(Simulation(make_world(*boxes)).world.model)


def test_paths_into_or_out_of_obstacles_are_refused() -> None:
    walking_map = make_map_of_walls(((0.2, 2.0, 2.0), (2.0, 0.0)))
    assert walking_map.explain_blockage((0.0, 0.0), (1.5, 0.0)) == ""
    assert "(2." in walking_map.explain_blockage((0.0, 0.0), (4.0, 0.0)) or "(1." in walking_map.explain_blockage(
        (0.0, 0.0), (4.0, 0.0)
    )
    assert walking_map.explain_blockage((0.0, 0.0), (2.0, 0.5)) != ""
    assert walking_map.explain_blockage((0.0, 3.0), (4.0, 3.0)) == ""
    person = Person(SKELETON, (0.0, 0.0, 0.0), find_clip, walking_map.plan_path)
    RecordedSteps(person)
    with pytest.raises(PersonGoalError, match="an obstacle is at") as caught:
        person.walk("walk", 0.0, (2.0, 0.5), None)
    assert caught.value.error_code == "unreachable"
    closed_walls = [((0.2, 2.2, 2.0), (x, 0.0)) for x in (-1.0, 1.0)] + [
        ((2.2, 0.2, 2.0), (0.0, y)) for y in (-1.0, 1.0)
    ]
    person = Person(SKELETON, (0.0, 0.0, 0.0), find_clip, make_map_of_walls(*closed_walls).plan_path)
    RecordedSteps(person)
    with pytest.raises(PersonGoalError, match="no path leads around"):
        person.walk("walk", 0.0, (3.0, 0.0), None)


@pytest.mark.parametrize(
    ("low", "high", "is_blocked"), [(0.68, 0.72, True), (1.2, 1.25, True), (0.02, 0.15, False), (1.9, 2.0, False)]
)
def test_thin_and_hanging_obstacles_block_at_body_height(low: float, high: float, is_blocked: bool) -> None:
    """The top of a table is between the usual cut heights."""
    top = static_box("top", (1.0, 1.5, high - low), SE3(translation=(2.0, 0.0, 0.5 * (low + high))))
    assert (
        make_walking_map(Simulation(make_world(top)).world.model).explain_blockage((0.0, 0.0), (4.0, 0.0)) != ""
    ) == is_blocked


@given(st.lists(st.tuples(st.floats(0.0, 2.5), st.floats(1e-4, 1.0)), max_size=8))
def test_cut_heights_meet_all_obstacles_at_body_height(obstacles: list[tuple[float, float]]) -> None:
    spans = np.array([(low, low + thick) for low, thick in obstacles]).reshape(-1, 2)
    heights = choose_cut_heights(spans)
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
    walking_map, target = make_map_of_walls(*walls), (draw(-4.0, 4.0), draw(-4.0, 4.0))
    steps = RecordedSteps(Person(SKELETON, (-5.0, 0.0, 0.0), find_clip, walking_map.plan_path))
    try:
        steps.person.walk("walk", 0.0, target, 1.0)
    except PersonGoalError:
        assert walking_map.explain_blockage((-5.0, 0.0), target) != ""
        return
    poses = [steps.person.pose]
    while not steps.person.has_ended_goal:
        steps.step()
        poses.append(steps.person.pose)
    pose_array = np.array(poses)
    assert pose_array[-1, :2] == pytest.approx(target, abs=2e-3)
    for size, position in walls:
        distances = np.maximum(np.abs(pose_array[:, :2] - position) - 0.5 * np.array(size[:2]), 0.0)
        assert np.hypot(*distances.T).min() > WALKING_CLEARANCE - 0.06, "a cell's diagonal"
    assert np.linalg.norm(np.diff(pose_array[:, :2], axis=0), axis=1).max() < 2.0 * DT
    assert np.abs(wrap_angle(np.diff(pose_array[:, 2]))).max() < 4.0 * DT
    assert steps.max_foot_slip() < 0.02


def test_detours_are_short_and_free_paths_straight() -> None:
    walking_map = make_map_of_walls(((0.2, 2.0, 2.0), (2.0, 0.0)))
    assert walking_map.plan_path((0.0, 3.0), (4.0, 3.0)).points.tolist() == [[0.0, 3.0], [4.0, 3.0]]
    detour = walking_map.plan_path((0.0, 0.0), (4.0, 0.0))
    min_length = 2.0 * math.hypot(1.9 - WALKING_CLEARANCE, 1.0 + WALKING_CLEARANCE)
    assert min_length < detour.length < 1.15 * min_length + 0.4
    assert detour.points[0].tolist() == [0.0, 0.0]
    assert detour.points[-1].tolist() == [4.0, 0.0]


@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3)), min_size=3, max_size=6, unique=True))
def test_walking_speed_is_limited_in_curves(corners: list[tuple[float, float]]) -> None:
    array = np.array(corners)
    if np.linalg.norm(np.diff(array, axis=0), axis=1).min() < 0.3:
        return
    path = WalkingPath.with_rounded_corners(array, 1.6, lambda points: True)
    assert path.position_at(0.0) == pytest.approx(corners[0])
    assert path.position_at(path.length) == pytest.approx(corners[-1])
    distances = np.linspace(0.0, path.length, 400)
    speeds = np.array([path.max_speed_at(s) for s in distances.tolist()])
    accelerations = np.diff(np.minimum(speeds, 4.0) ** 2) / (2.0 * np.diff(distances))
    assert accelerations.min() > -1.7
    restored = WalkingPath(np.array(path.save_state()), 1.6)
    assert [restored.max_speed_at(s) for s in distances.tolist()] == speeds.tolist()


# -- state -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("after", [0.3, 1.1, 2.5, 4.0])
def test_saved_person_continues_bit_for_bit(after: float) -> None:
    def start_person() -> RecordedSteps:
        steps = RecordedSteps(make_person())
        steps.person.walk("walk", 1.0, (1.0, 1.0), 3.0)
        steps.wait(after)
        return steps

    one, other = start_person(), RecordedSteps(make_person(pose=(5.0, 5.0, 0.0)))
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
