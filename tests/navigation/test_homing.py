"""Laws of coming home: what counts as a sign of life, what the trail keeps, what is ordered, what becomes of orders."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.navigation.homing import (
    Cancel,
    CancelBefore,
    Goal,
    GoalConfig,
    GoalController,
    HomingConfig,
    LinkConfig,
    LinkState,
    LinkWatch,
    Order,
    Outcome,
    Phase,
    Report,
    Send,
    Tell,
    Tracker,
    Trail,
    nearest_reachable,
)

S = 1_000_000_000
TENTH = S // 10
points = st.builds(SE2, st.floats(-20, 20), st.floats(-20, 20), st.floats(-3, 3))


# -- the link --------------------------------------------------------------------------------------------------------
def test_link_is_lost_exactly_at_the_timeout_after_a_first_sign() -> None:
    watch = LinkWatch()
    assert watch.update(100 * S) is LinkState.NEVER_HEARD
    assert watch.hear("operator", 100 * S)
    assert watch.update(104 * S - 1) is LinkState.CONNECTED
    assert watch.update(104 * S) is LinkState.LOST
    assert (watch.losses, watch.outages) == (1, 1)


def test_stale_repeated_or_future_messages_keep_no_link_alive() -> None:
    watch = LinkWatch()
    assert watch.hear("pad", 10 * S, 10 * S)
    assert not watch.hear("pad", 10 * S, 10 * S), "doubled"
    assert not watch.hear("pad", 11 * S, 9 * S), "overtaken"
    assert not watch.hear("pad", 12 * S, 12 * S - 1_100_000_000 + 0), "older than max_age"
    assert not watch.hear("pad", 12 * S, 20 * S), "from the future"
    assert watch.hear("pad", 12 * S, 12 * S), "which spoils nothing"
    assert not watch.hear("pad", 13 * S), "its unstamped messages prove nothing"
    assert watch.hear("other", 13 * S), "those of a sender that never stamps do"


def test_replayed_stream_keeps_no_link_alive() -> None:
    watch = LinkWatch()
    for k in range(50):
        watch.hear("pad", k * TENTH, k * TENTH)
    for k in range(50, 200):  # the network repeats what it has
        watch.hear("pad", k * TENTH, (k % 50) * TENTH)
        watch.hear("pad", k * TENTH, None)
    assert watch.state is LinkState.LOST


def test_flapping_link_returns_control_and_is_lost_again_sooner() -> None:
    watch = LinkWatch(LinkConfig(timeout=4.0, settle=2.0, relapse=1.0))
    watch.hear("operator", 0)
    watch.update(4 * S)
    for start in (5, 8, 11):
        watch.hear("operator", start * S)
        assert watch.state is LinkState.RECOVERING
        assert watch.update(start * S + S) is LinkState.LOST
    for k in range(30):
        watch.hear("operator", 20 * S + k * TENTH)
    assert watch.state is LinkState.CONNECTED
    assert (watch.losses, watch.outages) == (4, 1)


signs = st.lists(
    st.tuples(st.integers(0, 3 * S), st.sampled_from(["a", "b"]), st.sampled_from([None, 0, S, 5 * S, -S]))
)


@given(signs, st.lists(st.integers(0, 40 * S), max_size=20))
def test_link_state_is_independent_of_polling(sent, looks) -> None:
    seldom, often, now = LinkWatch(), LinkWatch(), 0
    looks = sorted(looks)
    for step, source, age in sent:
        now += step
        while looks and looks[0] <= now:
            often.update(looks.pop(0))
        stamp = None if age is None else now - age
        assert seldom.hear(source, now, stamp) == often.hear(source, now, stamp)
        assert seldom.save_state() == often.save_state()


@given(signs)
def test_link_is_up_iff_a_sign_came_within_its_timeout(sent) -> None:
    watch, now, last = LinkWatch(), 0, -math.inf
    for step, source, age in sent:
        now += step
        if watch.hear(source, now, None if age is None else now - age):
            last = now
        assert watch.state.is_heard == (now - last < watch.config.timeout * S) or watch.state is LinkState.LOST
        assert not watch.state.is_heard or watch.deadline_ns > now


@pytest.mark.parametrize("bad", [{"timeout": 0.0}, {"settle": math.nan}, {"relapse": 0.0}, {"max_age": -1.0}])
def test_invalid_link_times_are_refused(bad) -> None:
    with pytest.raises(ConfigError):
        LinkConfig(**bad)


# -- the trail -------------------------------------------------------------------------------------------------------
def test_trail_stores_a_point_per_spacing() -> None:
    trail = Trail(spacing=1.0)
    for k in range(501):  # a circle of 0.3 m radius, where a straight distance would never reach the spacing
        angle = k * 0.05
        trail.drive(SE2(0.3 * math.cos(angle), 0.3 * math.sin(angle), angle))
    assert len(trail) == pytest.approx(1 + 501 * 0.05 * 0.3 / 1.0, abs=1.0)


def test_trail_ignores_jitter_of_a_standing_robot() -> None:
    trail, random = Trail(spacing=0.5), np.random.default_rng(0)
    for _ in range(5000):
        trail.drive(SE2(*(0.01 * random.standard_normal(2)), 0.0))
    assert len(trail) == 1


@given(st.lists(points, min_size=1, max_size=120), st.integers(3, 12))
def test_full_trail_keeps_home_newest_point_and_order(way, capacity) -> None:
    bounded, free = Trail(spacing=0.5, capacity=capacity), Trail(spacing=0.5, capacity=10_000)
    for pose in way:
        assert bounded.drive(pose) == free.drive(pose)
        assert len(bounded) <= capacity
        assert bounded.points[0] == free.points[0]
        assert bounded.points[-1] == free.points[-1]
    rest = iter(free.points)
    assert all(any(point == other for other in rest) for point in bounded.points), "a subsequence"


def test_full_straight_trail_is_thinned_evenly() -> None:
    trail = Trail(spacing=1.0, capacity=20)
    for k in range(1001):
        trail.drive(SE2(0.1 * k, 0.0, 0.0))
    gaps = np.diff([point.x for point in trail.points])
    assert trail.points[0].x == 0.0
    assert trail.points[-1].x == pytest.approx(100.0)
    assert gaps.max() < 20.0


@given(st.lists(points, max_size=40), points)
def test_trail_transformed_and_back_is_unchanged(way, T) -> None:
    trail = Trail(spacing=0.5)
    for pose in way:
        trail.drive(pose)
    before = list(trail.points)
    trail.move(T)
    trail.move(T.inverse())
    assert all(a.almost_equal(b, atol=1e-9) for a, b in zip(trail.points, before, strict=True))


# -- orders ----------------------------------------------------------------------------------------------------------
def driven(config: HomingConfig | None = None, metres: float = 5.0) -> tuple[Tracker, int]:
    """A tracker whose operator drove straight ahead and was then silent for 4 s; and the time."""
    tracker = Tracker(config or HomingConfig())
    for k in range(int(10 * metres) + 1):
        tracker.hear("operator", k * TENTH)
        tracker.at(SE2(0.1 * k, 0.0, 0.0), k * TENTH)
    now = (k * TENTH) + 4 * S
    tracker.tick(now - 1)
    assert tracker.order.target is None
    tracker.tick(now)
    return tracker, now


def test_homing_goals_are_newest_first_and_face_home() -> None:
    tracker, now = driven()
    seen = []
    while tracker.order.target is not None:
        seen.append(tracker.order.target)
        now += S
        tracker.report(Report(tracker.order.number, Outcome.REACHED, 0.0), now)
    assert [round(target.x) for target in seen] == [5, 4, 3, 2, 1, 0]
    assert all(abs(abs(target.theta) - math.pi) < 1e-9 for target in seen[:-1])
    assert seen[-1].theta == 0.0
    assert (tracker.phase, tracker.reached, tracker.returns) == (Phase.HOME, 6, 1)
    assert tracker.trail.points == [seen[-1]]


def test_intermediate_points_are_passed_and_home_is_reached() -> None:
    tracker, now = driven(HomingConfig(pass_radius=0.3))
    for x in np.arange(5.0, 0.2, -0.1):
        now += TENTH
        tracker.at(SE2(float(x), 0.2, math.pi), now)
    assert tracker.order.last
    tracker.at(SE2(0.0, 0.0, math.pi), now)
    assert tracker.phase is Phase.RETURNING
    tracker.report(Report(tracker.order.number, Outcome.REACHED, 0.0), now)
    assert tracker.phase is Phase.HOME


def test_direct_homing_leads_to_home_pose_or_start() -> None:
    tracker, _ = driven(HomingConfig(home="pose", pose=(-1.0, 2.0, 0.5)))
    assert (tracker.order.target, tracker.order.last) == (SE2(-1.0, 2.0, 0.5), True)
    tracker, _ = driven(HomingConfig(home="pose"))
    assert (tracker.order.target, tracker.order.last) == (SE2(), True)


def test_homing_follows_the_trail_then_the_home_pose() -> None:
    tracker, now = driven(HomingConfig(home="trail-then-pose", pose=(-1.0, 0.0, 0.5)))
    seen = []
    while tracker.order.target is not None:
        seen.append((round(tracker.order.target.x), tracker.order.last))
        tracker.report(Report(tracker.order.number, Outcome.REACHED, 0.0), now)
    assert seen == [(5, False), (4, False), (3, False), (2, False), (1, False), (0, False), (-1, True)]


def test_homing_finishes_a_mission_first_and_stores_its_trail() -> None:
    config = HomingConfig(on_loss="finish-task")
    tracker = Tracker(config)
    tracker.hear("operator", 0)
    tracker.at(SE2(), 0)
    tracker.mission(True, S)
    tracker.tick(5 * S)
    assert (tracker.phase, tracker.order.target) == (Phase.MISSION, None)
    for k in range(31):
        tracker.at(SE2(0.1 * k, 0.0, 0.0), 6 * S)
    tracker.mission(False, 9 * S)
    assert tracker.phase is Phase.RETURNING
    assert tracker.order.target.x == pytest.approx(3.0)
    other, _ = driven()
    other.mission(True, 20 * S)
    assert other.phase is Phase.RETURNING, "without being told so it goes home"


def test_homing_without_trail_or_pose_stands_still() -> None:
    tracker = Tracker()
    tracker.hear("operator", 0)
    for second in range(60):
        tracker.tick(second * S)
        assert tracker.order.target is None
    assert tracker.phase is Phase.WAITING


def test_unreachable_home_is_retried_and_reported() -> None:
    tracker, now = driven(HomingConfig(home="pose", retry=10.0))
    tracker.report(Report(tracker.order.number, Outcome.NEARBY, 1.5, "no way"), now)
    assert (tracker.phase, tracker.order.target) == (Phase.WAITING, None)
    assert (tracker.missed.distance, tracker.missed.reason) == (1.5, "no way")
    tracker.tick(now + 10 * S - 1)
    assert tracker.order.target is None
    tracker.tick(now + 10 * S)
    assert tracker.order.target == SE2()
    tracker.report(Report(tracker.order.number, Outcome.REACHED, 0.0), now + 11 * S)
    assert (tracker.phase, tracker.missed) == (Phase.HOME, None)


def test_homing_order_is_sent_when_the_map_arrives() -> None:
    tracker, now = driven()
    target, number = tracker.order.target, tracker.order.number
    T_map_odom = SE2(3.0, -1.0, 0.7)
    tracker.move_frame(T_map_odom, now + S)
    assert tracker.order.target.almost_equal(T_map_odom @ target)
    assert tracker.order.number > number


class World:
    """A tracker, a controller, and a navigator that does whatever it is told to do."""

    def __init__(self, config: HomingConfig, attempts: int, near: list[SE2 | None]) -> None:
        self.tracker = Tracker(config, LinkConfig(timeout=4.0, settle=2.0, relapse=1.0))
        self.near = near
        self.goals = GoalConfig(attempts=attempts, pause=0.5)
        self.controller = GoalController(self.goals, self.nearest)
        self.now = 0
        self.under_way: dict[int, SE2] = {}
        self.ordered: list[SE2] = []
        self.told: list[Report] = []
        self.numbers = [0]

    def nearest(self, _: SE2) -> SE2 | None:
        return self.near.pop() if self.near else None

    def follow(self) -> None:
        """What happens at one instant: the newest order reaches the controller, and so on until nothing follows."""
        while True:
            order = self.tracker.order
            if order.number != self.numbers[-1]:
                assert order.number > self.numbers[-1]
                self.numbers.append(order.number)
                if order.target is not None:
                    self.ordered.append(order.target)
            reports = self.do(self.controller.take(order, self.now))
            if not reports and order is self.tracker.order:
                return

    def do(self, acts) -> list[Report]:
        reports = []
        for act in acts:
            if isinstance(act, Send):
                self.under_way = {act.token: act.pose}  # the navigator lets the one before it go
            elif isinstance(act, Cancel):
                assert act.token in self.under_way
                self.under_way.clear()
            elif isinstance(act, Tell):
                reports.append(act.report)
                self.told.append(act.report)
                self.tracker.report(act.report, self.now)
        return reports

    def check(self) -> None:
        heard = self.tracker.link.state.is_heard
        assert not (heard and self.under_way), "never a goal while the operator is heard"
        assert not (heard and self.tracker.order.target)
        assert len(self.under_way) <= 1
        assert (self.controller.token in self.under_way) == bool(self.under_way)


events = st.lists(
    st.one_of(
        st.tuples(st.just("hear"), st.sampled_from(["a", "b"]), st.sampled_from([None, 0, 3 * S])),
        st.tuples(st.just("wait"), st.integers(0, 5 * S)),
        st.tuples(st.just("drive"), st.floats(-3, 3), st.floats(-3, 3)),
        st.tuples(st.just("end"), st.booleans(), st.booleans()),
        st.tuples(st.just("mission"), st.booleans()),
        st.just(("restart",)),
        st.just(("again",)),
        st.just(("look",)),
        st.just(("saved",)),
    ),
    max_size=60,
)
configs = st.builds(
    HomingConfig,
    home=st.sampled_from(["trail", "pose", "trail-then-pose"]),
    on_loss=st.sampled_from(["home", "finish-task"]),
    pose=st.just(()) | points.map(lambda pose: (pose.x, pose.y, pose.theta)),
    spacing=st.just(0.5),
    capacity=st.integers(3, 8),
    retry=st.just(3.0),
)


@settings(max_examples=300)
@given(configs, st.integers(1, 3), st.lists(st.none() | points, max_size=20), events)
def test_operator_always_has_priority_over_homing(config, attempts, near, happening) -> None:
    world, pose = World(config, attempts, near), SE2()
    for what, *how in happening:
        if what == "hear":
            source, age = how
            if world.tracker.hear(source, world.now, None if age is None else world.now - age):
                world.follow()
                assert not world.under_way, "cancelled in the step in which the operator is heard"
                assert world.controller.token is None
        elif what == "wait":
            world.now += how[0]
            world.tracker.at(pose, world.now)
            world.do(world.controller.at(pose, world.now))
        elif what == "drive":
            pose = SE2(pose.x + how[0], pose.y + how[1], 0.0)
            world.tracker.at(pose, world.now)
            world.do(world.controller.at(pose, world.now))
        elif what == "end" and world.under_way:
            token = next(iter(world.under_way))
            world.under_way.clear()
            world.do(world.controller.ended(token, world.now, succeeded=how[0], reason="so it is", tried=how[1]))
            assert world.controller.ended(token, world.now, succeeded=True) == [], "an end is told once"
        elif what == "mission":
            world.tracker.mission(how[0], world.now)
        elif what == "restart":  # of the controller, which only hears the last order
            world.controller = GoalController(world.goals, world.nearest)
            world.under_way.clear()
        elif what == "look":
            world.do(world.controller.look(world.now))
        elif what == "again":
            assert world.controller.take(world.tracker.order, world.now) == [] or world.controller.order is not None
        elif what == "saved":
            twin = Tracker(config, world.tracker.link.config)
            twin.load_state(json.loads(json.dumps(world.tracker.save_state())))
            assert twin.save_state() == world.tracker.save_state()
            other = GoalController(world.goals, world.nearest)
            other.load_state(json.loads(json.dumps(world.controller.save_state())), world.controller.order)
            assert other.save_state() == world.controller.save_state()
            world.tracker, world.controller = twin, other
        world.follow()
        world.check()
        assert len(world.tracker.trail) <= config.capacity


@settings(max_examples=100)
@given(
    st.lists(points, min_size=2, max_size=30),
    st.lists(st.sampled_from(["there", "no", "no no near", "no no far"]), min_size=40, max_size=40),
)
def test_every_stored_point_is_visited_or_reported_as_skipped(way, answers) -> None:
    near: list[SE2 | None] = []
    world = World(HomingConfig(spacing=0.5), 2, near)
    for k, pose in enumerate(way):
        world.now = k * TENTH
        world.tracker.hear("operator", world.now)
        world.tracker.at(pose, world.now)
    stored = list(world.tracker.trail.points)
    far = SE2(1000.0, 0.0, 0.0)
    world.now += 4 * S
    world.tracker.tick(world.now)
    world.do(world.controller.at(far, world.now))
    world.follow()
    for answer in answers:
        for _ in range(8):
            if world.tracker.order.target is None or answer is None:
                break
            point = world.tracker.order.target
            world.now += S
            world.do(world.controller.at(far, world.now))
            token = world.controller.token
            there = answer == "there" or world.controller.goal is Goal.NEAREST
            near[:] = [SE2(point.x + (1.0 if "near" in answer else 5000.0), point.y, 0.0)]
            world.do(world.controller.ended(token, world.now, succeeded=there))
            if world.tracker.order.target is not point:
                answer = None
        world.follow()
        if world.tracker.phase in (Phase.HOME, Phase.WAITING):
            break
    tracker = world.tracker
    home = int(tracker.phase is Phase.HOME)
    assert tracker.reached + len(tracker.skipped) + (1 - home) == len(stored)
    assert (tracker.missed is None) == bool(home)
    assert [(t.x, t.y) for t in world.ordered] == [(p.x, p.y) for p in reversed(stored)]
    assert all(math.isfinite(one.distance) for one in tracker.skipped)


# -- one goal --------------------------------------------------------------------------------------------------------
def test_failed_point_is_retried_then_approached_then_reported() -> None:
    controller = GoalController(GoalConfig(attempts=2, pause=1.0), lambda target: SE2(target.x - 1.0, target.y, 0.0))
    controller.at(SE2(0.0, 0.0, 0.0), 0)
    order = Order(7, SE2(5.0, 0.0, 0.0))
    (first,) = controller.take(order, 0)
    assert controller.ended(first.token, S, succeeded=False, reason="goal_occupied") == []
    assert controller.at(SE2(), 2 * S - 1) == []
    (second,) = controller.at(SE2(), 2 * S)
    assert second.pose == order.target
    (nearest,) = controller.ended(second.token, 3 * S, succeeded=False, reason="goal_occupied")
    assert nearest.pose == SE2(4.0, 0.0, 0.0)
    controller.at(SE2(3.9, 0.0, 0.0), 9 * S)
    (told,) = controller.ended(nearest.token, 9 * S, succeeded=True)
    assert told.report == Report(7, Outcome.NEARBY, pytest.approx(1.1), "goal_occupied")


def test_occupied_point_is_not_retried() -> None:
    seen = [4.5]  # something stands beyond
    controller = GoalController(GoalConfig(), lambda p: p if p.x <= seen[-1] else SE2(seen[-1], p.y, 0.0))
    controller.at(SE2(), 0)
    controller.take(Order(7, SE2(4.5, 0.0, 0.0)), 0)
    assert controller.look(S) == [], "a way leads there"
    seen.append(4.0)
    (nearest,) = controller.look(2 * S)
    assert nearest.pose == SE2(4.0, 0.0, 0.0)
    assert controller.look(3 * S) == []
    controller.at(SE2(3.9, 0.0, 0.0), 9 * S)
    (told,) = controller.ended(nearest.token, 9 * S, succeeded=True)
    assert (told.report.outcome, told.report.reason) == (Outcome.NEARBY, "something stands there")
    (send,) = controller.take(Order(8, SE2(4.5, 0.0, 0.0)), 10 * S)
    assert controller.look(11 * S) == [
        Cancel(send.token),
        Tell(Report(8, Outcome.NEARBY, pytest.approx(0.6), "something stands there")),
    ]


def test_equivalent_pose_near_a_blocked_point_is_used() -> None:
    free = [4.9]
    controller = GoalController(GoalConfig(gain=0.2), lambda p: p if p.x <= free[-1] else SE2(free[-1], p.y, 0.0))
    controller.at(SE2(), 0)
    order = Order(7, SE2(5.0, 0.0, 0.0))
    controller.take(order, 0)
    (beside,) = controller.look(S)
    assert beside.pose == SE2(4.9, 0.0, 0.0)
    restored = GoalController(GoalConfig(gain=0.2), lambda p: p if p.x <= free[-1] else SE2(free[-1], p.y, 0.0))
    restored.load_state(controller.save_state(), order)
    for one in (controller, restored):
        assert one.look(2 * S) == [], "it is on its way there"
    free.append(4.85)
    (again,) = controller.look(3 * S)
    assert again.pose == SE2(4.85, 0.0, 0.0)
    controller.at(SE2(4.8, 0.0, 0.0), 9 * S)
    assert controller.ended(beside.token, 9 * S, succeeded=True) == [], "that one is over"
    (told,) = controller.ended(again.token, 9 * S, succeeded=True)
    assert told.report == Report(7, Outcome.REACHED, pytest.approx(0.2))


def test_goal_without_motion_fails_after_its_patience() -> None:
    controller = GoalController(GoalConfig(attempts=1, patience=30.0))
    controller.at(SE2(), 0)
    (send,) = controller.take(Order(1, SE2(9.0, 0.0, 0.0)), 0)
    assert controller.at(SE2(0.5, 0.0, 0.0), 20 * S) == []
    assert controller.at(SE2(0.6, 0.0, 0.0), 49 * S) == []
    cancel, told = controller.at(SE2(0.6, 0.0, 0.0), 50 * S)
    assert (cancel, told.report.outcome) == (Cancel(send.token), Outcome.SKIPPED)
    assert "30 s" in told.report.reason


def test_late_or_repeated_order_has_no_effect() -> None:
    controller = GoalController()
    assert len(controller.take(Order(5, SE2(1.0, 0.0, 0.0)), 0)) == 1
    assert controller.take(Order(5, SE2(1.0, 0.0, 0.0)), 0) == []
    assert controller.take(Order(4), 0) == []
    assert controller.take(Order(6), 0) == [Cancel(1)]


def test_restarted_controller_ends_the_previous_goal() -> None:
    assert GoalController().take(Order(9 * S, returning=True), 10 * S) == [CancelBefore(9 * S)]
    assert GoalController().take(Order(0), 10 * S) == [], "nobody was on the way: missions are left alone"


def test_point_is_kept_while_no_navigator_serves_goals() -> None:
    controller = GoalController(GoalConfig(attempts=1))
    (send,) = controller.take(Order(1, SE2(1.0, 0.0, 0.0)), 0)
    for second in range(1, 100):
        assert controller.ended(send.token, second * S, succeeded=False, tried=False) == []
        (send,) = controller.at(SE2(), second * S + S)


@pytest.mark.parametrize("bad", [{"attempts": 0}, {"pause": 0.0}, {"patience": math.inf}, {"gain": -1.0}])
def test_invalid_goal_settings_are_refused(bad) -> None:
    with pytest.raises(ConfigError):
        GoalConfig(**bad)


@pytest.mark.parametrize(
    "bad", [{"home": "nowhere"}, {"on_loss": "panic"}, {"spacing": 0.0}, {"capacity": 2}, {"pose": (1.0, 2.0)}]
)
def test_invalid_homing_settings_are_refused(bad) -> None:
    with pytest.raises(ConfigError):
        Tracker(HomingConfig(**bad))


# -- the nearest place -----------------------------------------------------------------------------------------------
@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.floats(0.1, 0.6))
def test_nearest_free_pose_is_the_nearest_of_all_cells(seed, share) -> None:
    random = np.random.default_rng(seed)
    costs = np.where(random.random((18, 23)) < share, 100, 0).astype(np.int8)
    costs[4, 6] = 0
    frame = GridGeometry(0.1, costs.shape, SE2(-1.0, 2.0, 0.3))
    start = SE2(*frame.cell_centers([4, 6]), 0.0)
    target = SE2(*frame.cell_centers([int(random.integers(18)), int(random.integers(23))]), 0.0)
    place = nearest_reachable(costs, frame, start, target)
    reached, edge = {(4, 6)}, [(4, 6)]  # an independent flood
    while edge:
        r, c = edge.pop()
        for cell in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
            inside = 0 <= cell[0] < 18 and 0 <= cell[1] < 23
            if inside and costs[cell] == 0 and cell not in reached:
                reached.add(cell)
                edge.append(cell)
    nearest = min(math.dist(frame.cell_centers(cell), (target.x, target.y)) for cell in reached)
    assert place.distance(target) == pytest.approx(nearest)
    assert (place is target) == (tuple(frame.cells_of_points(target.xy)) in reached)
    assert tuple(frame.cells_of_points([place.x, place.y])) in reached


def test_enclosed_robot_has_no_nearer_free_pose() -> None:
    frame = GridGeometry(0.1, (20, 20), SE2())
    assert nearest_reachable(np.full((20, 20), -1), frame, SE2(1.0, 1.0, 0.0), SE2(0.0, 0.0, 0.0)) is None
    costs = np.full((20, 20), 100)
    costs[0, 0] = 0
    assert nearest_reachable(costs, frame, SE2(1.5, 1.5, 0.0), SE2(0.0, 0.0, 0.0)) is None
