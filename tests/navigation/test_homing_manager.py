"""Homing: which messages count as heartbeats, what the trail keeps, what is ordered, and how orders end."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.navigation.costmap.reachability import find_substitute_goal_pose
from roboyard.navigation.homing import (
    BreadcrumbTrail,
    CancelGoalCommand,
    CancelGoalsBeforeCommand,
    GoalController,
    GoalControllerConfig,
    GoalKind,
    HomingConfig,
    HomingManager,
    HomingOrder,
    HomingPhase,
    HomingTarget,
    LinkConfig,
    LinkLossAction,
    LinkMonitor,
    LinkState,
    OrderOutcome,
    OrderReport,
    PublishReportCommand,
    SendGoalCommand,
)

S = 1_000_000_000
TENTH = S // 10
points = st.builds(SE2, st.floats(-20, 20), st.floats(-20, 20), st.floats(-3, 3))


# -- the link --------------------------------------------------------------------------------------------------------
def test_link_is_lost_exactly_at_the_timeout_after_a_first_heartbeat() -> None:
    monitor = LinkMonitor()
    assert monitor.update(100 * S) is LinkState.NEVER_CONNECTED
    assert monitor.on_message("operator", 100 * S)
    assert monitor.update(104 * S - 1) is LinkState.CONNECTED
    assert monitor.update(104 * S) is LinkState.LOST
    assert (monitor.losses, monitor.outages) == (1, 1)


def test_stale_repeated_or_future_messages_keep_no_link_alive() -> None:
    monitor = LinkMonitor()
    assert monitor.on_message("pad", 10 * S, 10 * S)
    assert not monitor.on_message("pad", 10 * S, 10 * S), "doubled"
    assert not monitor.on_message("pad", 11 * S, 9 * S), "overtaken"
    assert not monitor.on_message("pad", 12 * S, 12 * S - 1_100_000_000 + 0), "older than max_age"
    assert not monitor.on_message("pad", 12 * S, 20 * S), "from the future"
    assert monitor.on_message("pad", 12 * S, 12 * S), "which spoils nothing"
    assert not monitor.on_message("pad", 13 * S), "its unstamped messages prove nothing"
    assert monitor.on_message("other", 13 * S), "those of a sender that never stamps do"


def test_replayed_stream_keeps_no_link_alive() -> None:
    monitor = LinkMonitor()
    for k in range(50):
        monitor.on_message("pad", k * TENTH, k * TENTH)
    for k in range(50, 200):  # the network repeats what it has
        monitor.on_message("pad", k * TENTH, (k % 50) * TENTH)
        monitor.on_message("pad", k * TENTH, None)
    assert monitor.state is LinkState.LOST


def test_flapping_link_returns_control_and_is_lost_again_sooner() -> None:
    monitor = LinkMonitor(LinkConfig(link_timeout=4.0, settle_time=2.0, relapse_timeout=1.0))
    monitor.on_message("operator", 0)
    monitor.update(4 * S)
    for start in (5, 8, 11):
        monitor.on_message("operator", start * S)
        assert monitor.state is LinkState.RECOVERING
        assert monitor.update(start * S + S) is LinkState.LOST
    for k in range(30):
        monitor.on_message("operator", 20 * S + k * TENTH)
    assert monitor.state is LinkState.CONNECTED
    assert (monitor.losses, monitor.outages) == (4, 1)


heartbeats = st.lists(
    st.tuples(st.integers(0, 3 * S), st.sampled_from(["a", "b"]), st.sampled_from([None, 0, S, 5 * S, -S]))
)


@given(heartbeats, st.lists(st.integers(0, 40 * S), max_size=20))
def test_link_state_is_independent_of_polling(sent, poll_times) -> None:
    rarely_polled, often_polled, now = LinkMonitor(), LinkMonitor(), 0
    poll_times = sorted(poll_times)
    for step, source, age in sent:
        now += step
        while poll_times and poll_times[0] <= now:
            often_polled.update(poll_times.pop(0))
        stamp = None if age is None else now - age
        assert rarely_polled.on_message(source, now, stamp) == often_polled.on_message(source, now, stamp)
        assert rarely_polled.save_state() == often_polled.save_state()


@given(heartbeats)
def test_link_is_connected_iff_a_heartbeat_was_received_within_its_timeout(sent) -> None:
    monitor, now, last = LinkMonitor(), 0, -math.inf
    for step, source, age in sent:
        now += step
        if monitor.on_message(source, now, None if age is None else now - age):
            last = now
        assert (
            monitor.state.is_operator_in_control == (now - last < monitor.config.link_timeout * S)
            or monitor.state is LinkState.LOST
        )
        assert not monitor.state.is_operator_in_control or monitor.deadline_ns > now


@pytest.mark.parametrize(
    "bad", [{"link_timeout": 0.0}, {"settle_time": math.nan}, {"relapse_timeout": 0.0}, {"max_age": -1.0}]
)
def test_invalid_link_times_are_refused(bad) -> None:
    with pytest.raises(ConfigError):
        LinkConfig(**bad)


# -- the trail -------------------------------------------------------------------------------------------------------
def test_trail_stores_a_point_per_spacing() -> None:
    trail = BreadcrumbTrail(HomingConfig(point_spacing=1.0))
    for k in range(501):  # a circle of 0.3 m radius, where a straight distance would never reach the spacing
        angle = k * 0.05
        trail.add_pose(SE2(0.3 * math.cos(angle), 0.3 * math.sin(angle), angle))
    assert len(trail) == pytest.approx(1 + 501 * 0.05 * 0.3 / 1.0, abs=1.0)


def test_trail_ignores_jitter_of_a_standing_robot() -> None:
    trail, random = BreadcrumbTrail(HomingConfig(point_spacing=0.5)), np.random.default_rng(0)
    for _ in range(5000):
        trail.add_pose(SE2(*(0.01 * random.standard_normal(2)), 0.0))
    assert len(trail) == 1


@given(st.lists(points, min_size=1, max_size=120), st.integers(3, 12))
def test_full_trail_keeps_home_newest_point_and_order(poses, capacity) -> None:
    bounded, free = (
        BreadcrumbTrail(HomingConfig(point_spacing=0.5, max_points=capacity)),
        BreadcrumbTrail(HomingConfig(point_spacing=0.5, max_points=10_000)),
    )
    for pose in poses:
        assert bounded.add_pose(pose) == free.add_pose(pose)
        assert len(bounded) <= capacity
        assert bounded.points[0] == free.points[0]
        assert bounded.points[-1] == free.points[-1]
    remaining = iter(free.points)
    assert all(any(point == other for other in remaining) for point in bounded.points), "a subsequence"


def test_full_straight_trail_is_thinned_evenly() -> None:
    trail = BreadcrumbTrail(HomingConfig(point_spacing=1.0, max_points=20))
    for k in range(1001):
        trail.add_pose(SE2(0.1 * k, 0.0, 0.0))
    gaps = np.diff([point.x for point in trail.points])
    assert trail.points[0].x == 0.0
    assert trail.points[-1].x == pytest.approx(100.0)
    assert gaps.max() < 20.0


@given(st.lists(points, max_size=40), points)
def test_trail_transformed_and_back_is_unchanged(poses, T) -> None:
    trail = BreadcrumbTrail(HomingConfig(point_spacing=0.5))
    for pose in poses:
        trail.add_pose(pose)
    before = list(trail.points)
    trail.transform(T)
    trail.transform(T.inverse())
    assert all(a.almost_equal(b, atol=1e-9) for a, b in zip(trail.points, before, strict=True))


# -- orders ----------------------------------------------------------------------------------------------------------
def make_driven_manager(config: HomingConfig | None = None, distance: float = 5.0) -> tuple[HomingManager, int]:
    """A homing manager whose operator drove straight ahead and then sent nothing for 4 s; and the time."""
    tracker = HomingManager(config or HomingConfig())
    for k in range(int(10 * distance) + 1):
        tracker.on_operator_message("operator", k * TENTH)
        tracker.set_pose(SE2(0.1 * k, 0.0, 0.0), k * TENTH)
    now = (k * TENTH) + 4 * S
    tracker.update(now - 1)
    assert tracker.order.target is None
    tracker.update(now)
    return tracker, now


def test_homing_goals_are_newest_first_and_face_home() -> None:
    tracker, now = make_driven_manager()
    targets = []
    while tracker.order.target is not None:
        targets.append(tracker.order.target)
        now += S
        tracker.on_report(OrderReport(tracker.order.number, OrderOutcome.REACHED, 0.0), now)
    assert [round(target.x) for target in targets] == [5, 4, 3, 2, 1, 0]
    assert all(abs(abs(target.theta) - math.pi) < 1e-9 for target in targets[:-1])
    assert targets[-1].theta == 0.0
    assert (tracker.phase, tracker.n_reached, tracker.n_returns) == (HomingPhase.HOME, 6, 1)
    assert tracker.trail.points == [targets[-1]]


def test_intermediate_points_are_passed_and_home_is_reached() -> None:
    tracker, now = make_driven_manager(HomingConfig(pass_radius=0.3))
    for x in np.arange(5.0, 0.2, -0.1):
        now += TENTH
        tracker.set_pose(SE2(float(x), 0.2, math.pi), now)
    assert tracker.order.is_home
    tracker.set_pose(SE2(0.0, 0.0, math.pi), now)
    assert tracker.phase is HomingPhase.RETURNING
    tracker.on_report(OrderReport(tracker.order.number, OrderOutcome.REACHED, 0.0), now)
    assert tracker.phase is HomingPhase.HOME


def test_direct_homing_leads_to_home_pose_or_start() -> None:
    tracker, _ = make_driven_manager(HomingConfig(home_mode="pose", home_pose=(-1.0, 2.0, 0.5)))
    assert (tracker.order.target, tracker.order.is_home) == (SE2(-1.0, 2.0, 0.5), True)
    tracker, _ = make_driven_manager(HomingConfig(home_mode="pose"))
    assert (tracker.order.target, tracker.order.is_home) == (SE2(), True)


def test_homing_follows_the_trail_then_the_home_pose() -> None:
    tracker, now = make_driven_manager(HomingConfig(home_mode="trail-then-pose", home_pose=(-1.0, 0.0, 0.5)))
    targets = []
    while tracker.order.target is not None:
        targets.append((round(tracker.order.target.x), tracker.order.is_home))
        tracker.on_report(OrderReport(tracker.order.number, OrderOutcome.REACHED, 0.0), now)
    assert targets == [(5, False), (4, False), (3, False), (2, False), (1, False), (0, False), (-1, True)]


class EverySecondPoint:
    """A policy of a user's own: it returns to every second stored point only, and never waits for a mission."""

    def waits_for_mission(self, *, is_mission_active: bool) -> bool:
        return False

    def next_target(self, trail: Sequence[SE2], home_pose: SE2 | None) -> HomingTarget | None:
        points = trail[::2]
        return HomingTarget(points[-1], is_home=len(points) == 1) if points else None


def test_homing_follows_a_policy_of_its_own() -> None:
    config = HomingConfig(point_spacing=1.0, on_link_loss=LinkLossAction.FINISH_MISSION)
    tracker = HomingManager(config, policy=EverySecondPoint())
    for tenth in range(51):
        tracker.on_operator_message("operator", tenth * TENTH)
        tracker.set_pose(SE2(0.1 * tenth, 0.0, 0.0), tenth * TENTH)
    tracker.set_mission_active(True, 5 * S)
    now = 10 * S
    tracker.update(now)
    targets = []
    while tracker.order.target is not None:
        targets.append((round(tracker.order.target.x), tracker.order.is_home))
        tracker.on_report(OrderReport(tracker.order.number, OrderOutcome.REACHED, 0.0), now)
    assert targets[0] == (4, False), "not the newest point, 5, and at once despite the mission"
    assert targets[-1] == (0, True)
    assert all(x % 2 == 0 for x, _ in targets)
    assert tracker.phase is HomingPhase.HOME


def test_policy_without_a_target_stops_the_robot_until_the_next_retry() -> None:
    class NoTarget(EverySecondPoint):
        def next_target(self, trail: Sequence[SE2], home_pose: SE2 | None) -> HomingTarget | None:
            return None

    tracker = HomingManager(policy=NoTarget())
    tracker.on_operator_message("operator", 0)
    tracker.set_pose(SE2(), 0)
    tracker.update(5 * S)
    assert (tracker.phase, tracker.order.target) == (HomingPhase.WAITING, None)


def test_homing_finishes_a_mission_first_and_stores_its_trail() -> None:
    config = HomingConfig(on_link_loss="finish-task")
    tracker = HomingManager(config)
    tracker.on_operator_message("operator", 0)
    tracker.set_pose(SE2(), 0)
    tracker.set_mission_active(True, S)
    tracker.update(5 * S)
    assert (tracker.phase, tracker.order.target) == (HomingPhase.FINISHING_MISSION, None)
    for k in range(31):
        tracker.set_pose(SE2(0.1 * k, 0.0, 0.0), 6 * S)
    tracker.set_mission_active(False, 9 * S)
    assert tracker.phase is HomingPhase.RETURNING
    assert tracker.order.target.x == pytest.approx(3.0)
    other, _ = make_driven_manager()
    other.set_mission_active(True, 20 * S)
    assert other.phase is HomingPhase.RETURNING, "without being told so it goes home"


def test_homing_without_trail_or_pose_stops_the_robot() -> None:
    tracker = HomingManager()
    tracker.on_operator_message("operator", 0)
    for second in range(60):
        tracker.update(second * S)
        assert tracker.order.target is None
    assert tracker.phase is HomingPhase.WAITING


def test_unreachable_home_is_retried_and_reported() -> None:
    tracker, now = make_driven_manager(HomingConfig(home_mode="pose", retry_period=10.0))
    tracker.on_report(OrderReport(tracker.order.number, OrderOutcome.NEARBY, 1.5, "no way"), now)
    assert (tracker.phase, tracker.order.target) == (HomingPhase.WAITING, None)
    assert (tracker.missed.distance, tracker.missed.reason) == (1.5, "no way")
    tracker.update(now + 10 * S - 1)
    assert tracker.order.target is None
    tracker.update(now + 10 * S)
    assert tracker.order.target == SE2()
    tracker.on_report(OrderReport(tracker.order.number, OrderOutcome.REACHED, 0.0), now + 11 * S)
    assert (tracker.phase, tracker.missed) == (HomingPhase.HOME, None)


def test_homing_order_is_sent_when_the_map_arrives() -> None:
    tracker, now = make_driven_manager()
    target, number = tracker.order.target, tracker.order.number
    T_map_odom = SE2(3.0, -1.0, 0.7)
    tracker.change_frame(T_map_odom, now + S)
    assert tracker.order.target.almost_equal(T_map_odom @ target)
    assert tracker.order.number > number


class HomingSimulation:
    """A homing manager, a goal controller, and a navigator that executes every goal."""

    def __init__(self, config: HomingConfig, attempts: int, substitutes: list[SE2 | None]) -> None:
        self.tracker = HomingManager(config, LinkConfig(link_timeout=4.0, settle_time=2.0, relapse_timeout=1.0))
        self.substitutes = substitutes
        self.goals = GoalControllerConfig(max_attempts=attempts, retry_delay=0.5)
        self.controller = GoalController(self.goals, self.find_substitute)
        self.now = 0
        self.active_goals: dict[int, SE2] = {}
        self.ordered: list[SE2] = []
        self.reports: list[OrderReport] = []
        self.numbers = [0]

    def find_substitute(self, _: SE2) -> SE2 | None:
        return self.substitutes.pop() if self.substitutes else None

    def propagate_orders(self) -> None:
        """What happens at one instant: the newest order reaches the controller, and so on until nothing follows."""
        while True:
            order = self.tracker.order
            if order.number != self.numbers[-1]:
                assert order.number > self.numbers[-1]
                self.numbers.append(order.number)
                if order.target is not None:
                    self.ordered.append(order.target)
            reports = self.execute(self.controller.set_order(order, self.now))
            if not reports and order is self.tracker.order:
                return

    def execute(self, commands) -> list[OrderReport]:
        new_reports = []
        for command in commands:
            if isinstance(command, SendGoalCommand):
                self.active_goals = {command.token: command.pose}  # the navigator lets the one before it go
            elif isinstance(command, CancelGoalCommand):
                assert command.token in self.active_goals
                self.active_goals.clear()
            elif isinstance(command, PublishReportCommand):
                new_reports.append(command.report)
                self.reports.append(command.report)
                self.tracker.on_report(command.report, self.now)
        return new_reports

    def check(self) -> None:
        is_operator_in_control = self.tracker.link.state.is_operator_in_control
        assert not (is_operator_in_control and self.active_goals), "never a goal while the operator is heard"
        assert not (is_operator_in_control and self.tracker.order.target)
        assert len(self.active_goals) <= 1
        assert (self.controller.token in self.active_goals) == bool(self.active_goals)


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
    home_mode=st.sampled_from(["trail", "pose", "trail-then-pose"]),
    on_link_loss=st.sampled_from(["home", "finish-task"]),
    home_pose=st.just(()) | points.map(lambda pose: (pose.x, pose.y, pose.theta)),
    point_spacing=st.just(0.5),
    max_points=st.integers(3, 8),
    retry_period=st.just(3.0),
)


@settings(max_examples=300)
@given(configs, st.integers(1, 3), st.lists(st.none() | points, max_size=20), events)
def test_operator_always_has_priority_over_homing(config, attempts, substitutes, drawn_events) -> None:
    world, pose = HomingSimulation(config, attempts, substitutes), SE2()
    for event, *arguments in drawn_events:
        if event == "hear":
            source, age = arguments
            if world.tracker.on_operator_message(source, world.now, None if age is None else world.now - age):
                world.propagate_orders()
                assert not world.active_goals, "cancelled in the step in which the operator is heard"
                assert world.controller.token is None
        elif event == "wait":
            world.now += arguments[0]
            world.tracker.set_pose(pose, world.now)
            world.execute(world.controller.set_pose(pose, world.now))
        elif event == "drive":
            pose = SE2(pose.x + arguments[0], pose.y + arguments[1], 0.0)
            world.tracker.set_pose(pose, world.now)
            world.execute(world.controller.set_pose(pose, world.now))
        elif event == "end" and world.active_goals:
            token = next(iter(world.active_goals))
            world.active_goals.clear()
            world.execute(
                world.controller.on_goal_finished(
                    token, world.now, succeeded=arguments[0], reason="so it is", was_attempted=arguments[1]
                )
            )
            assert world.controller.on_goal_finished(token, world.now, succeeded=True) == [], "an end is told once"
        elif event == "mission":
            world.tracker.set_mission_active(arguments[0], world.now)
        elif event == "restart":  # of the controller, which only hears the last order
            world.controller = GoalController(world.goals, world.find_substitute)
            world.active_goals.clear()
        elif event == "look":
            world.execute(world.controller.on_costmap(world.now))
        elif event == "again":
            assert (
                world.controller.set_order(world.tracker.order, world.now) == [] or world.controller.order is not None
            )
        elif event == "saved":
            twin = HomingManager(config, world.tracker.link.config)
            twin.load_state(json.loads(json.dumps(world.tracker.save_state())))
            assert twin.save_state() == world.tracker.save_state()
            other = GoalController(world.goals, world.find_substitute)
            other.load_state(json.loads(json.dumps(world.controller.save_state())), world.controller.order)
            assert other.save_state() == world.controller.save_state()
            world.tracker, world.controller = twin, other
        world.propagate_orders()
        world.check()
        assert len(world.tracker.trail) <= config.max_points


@settings(max_examples=100)
@given(
    st.lists(points, min_size=2, max_size=30),
    st.lists(st.sampled_from(["there", "no", "no no near", "no no far"]), min_size=40, max_size=40),
)
def test_every_stored_point_is_visited_or_reported_as_skipped(poses, results) -> None:
    substitutes: list[SE2 | None] = []
    world = HomingSimulation(HomingConfig(point_spacing=0.5), 2, substitutes)
    for k, pose in enumerate(poses):
        world.now = k * TENTH
        world.tracker.on_operator_message("operator", world.now)
        world.tracker.set_pose(pose, world.now)
    stored = list(world.tracker.trail.points)
    distant_pose = SE2(1000.0, 0.0, 0.0)
    world.now += 4 * S
    world.tracker.update(world.now)
    world.execute(world.controller.set_pose(distant_pose, world.now))
    world.propagate_orders()
    for result in results:
        for _ in range(8):
            if world.tracker.order.target is None or result is None:
                break
            point = world.tracker.order.target
            world.now += S
            world.execute(world.controller.set_pose(distant_pose, world.now))
            token = world.controller.token
            succeeds = result == "there" or world.controller.goal_kind is GoalKind.SUBSTITUTE
            substitutes[:] = [SE2(point.x + (1.0 if "near" in result else 5000.0), point.y, 0.0)]
            world.execute(world.controller.on_goal_finished(token, world.now, succeeded=succeeds))
            if world.tracker.order.target is not point:
                result = None
        world.propagate_orders()
        if world.tracker.phase in (HomingPhase.HOME, HomingPhase.WAITING):
            break
    tracker = world.tracker
    home = int(tracker.phase is HomingPhase.HOME)
    assert tracker.n_reached + len(tracker.skipped) + (1 - home) == len(stored)
    assert (tracker.missed is None) == bool(home)
    assert [(t.x, t.y) for t in world.ordered] == [(p.x, p.y) for p in reversed(stored)]
    assert all(math.isfinite(one.distance) for one in tracker.skipped)


# -- one goal --------------------------------------------------------------------------------------------------------
def test_failed_point_is_retried_then_approached_then_reported() -> None:
    controller = GoalController(
        GoalControllerConfig(max_attempts=2, retry_delay=1.0), lambda target: SE2(target.x - 1.0, target.y, 0.0)
    )
    controller.set_pose(SE2(0.0, 0.0, 0.0), 0)
    order = HomingOrder(7, SE2(5.0, 0.0, 0.0))
    (first,) = controller.set_order(order, 0)
    assert controller.on_goal_finished(first.token, S, succeeded=False, reason="goal_occupied") == []
    assert controller.set_pose(SE2(), 2 * S - 1) == []
    (second,) = controller.set_pose(SE2(), 2 * S)
    assert second.pose == order.target
    (nearest,) = controller.on_goal_finished(second.token, 3 * S, succeeded=False, reason="goal_occupied")
    assert nearest.pose == SE2(4.0, 0.0, 0.0)
    controller.set_pose(SE2(3.9, 0.0, 0.0), 9 * S)
    (report_command,) = controller.on_goal_finished(nearest.token, 9 * S, succeeded=True)
    assert report_command.report == OrderReport(7, OrderOutcome.NEARBY, pytest.approx(1.1), "goal_occupied")


def test_occupied_point_is_not_retried() -> None:
    free_limits = [4.5]  # something stands beyond
    controller = GoalController(
        GoalControllerConfig(), lambda p: p if p.x <= free_limits[-1] else SE2(free_limits[-1], p.y, 0.0)
    )
    controller.set_pose(SE2(), 0)
    controller.set_order(HomingOrder(7, SE2(4.5, 0.0, 0.0)), 0)
    assert controller.on_costmap(S) == [], "a way leads there"
    free_limits.append(4.0)
    (nearest,) = controller.on_costmap(2 * S)
    assert nearest.pose == SE2(4.0, 0.0, 0.0)
    assert controller.on_costmap(3 * S) == []
    controller.set_pose(SE2(3.9, 0.0, 0.0), 9 * S)
    (report_command,) = controller.on_goal_finished(nearest.token, 9 * S, succeeded=True)
    assert (report_command.report.outcome, report_command.report.reason) == (
        OrderOutcome.NEARBY,
        "an obstacle occupies the goal",
    )
    (send,) = controller.set_order(HomingOrder(8, SE2(4.5, 0.0, 0.0)), 10 * S)
    assert controller.on_costmap(11 * S) == [
        CancelGoalCommand(send.token),
        PublishReportCommand(OrderReport(8, OrderOutcome.NEARBY, pytest.approx(0.6), "an obstacle occupies the goal")),
    ]


def test_equivalent_pose_near_a_blocked_point_is_used() -> None:
    free = [4.9]
    controller = GoalController(
        GoalControllerConfig(min_improvement=0.2), lambda p: p if p.x <= free[-1] else SE2(free[-1], p.y, 0.0)
    )
    controller.set_pose(SE2(), 0)
    order = HomingOrder(7, SE2(5.0, 0.0, 0.0))
    controller.set_order(order, 0)
    (substitute,) = controller.on_costmap(S)
    assert substitute.pose == SE2(4.9, 0.0, 0.0)
    restored = GoalController(
        GoalControllerConfig(min_improvement=0.2), lambda p: p if p.x <= free[-1] else SE2(free[-1], p.y, 0.0)
    )
    restored.load_state(controller.save_state(), order)
    for one in (controller, restored):
        assert one.on_costmap(2 * S) == [], "it is on its way there"
    free.append(4.85)
    (second_substitute,) = controller.on_costmap(3 * S)
    assert second_substitute.pose == SE2(4.85, 0.0, 0.0)
    controller.set_pose(SE2(4.8, 0.0, 0.0), 9 * S)
    assert controller.on_goal_finished(substitute.token, 9 * S, succeeded=True) == [], "that one is over"
    (report_command,) = controller.on_goal_finished(second_substitute.token, 9 * S, succeeded=True)
    assert report_command.report == OrderReport(7, OrderOutcome.REACHED, pytest.approx(0.2))


def test_goal_without_motion_fails_after_its_timeout() -> None:
    controller = GoalController(GoalControllerConfig(max_attempts=1, stuck_timeout=30.0))
    controller.set_pose(SE2(), 0)
    (send,) = controller.set_order(HomingOrder(1, SE2(9.0, 0.0, 0.0)), 0)
    assert controller.set_pose(SE2(0.5, 0.0, 0.0), 20 * S) == []
    assert controller.set_pose(SE2(0.6, 0.0, 0.0), 49 * S) == []
    cancel, report_command = controller.set_pose(SE2(0.6, 0.0, 0.0), 50 * S)
    assert (cancel, report_command.report.outcome) == (CancelGoalCommand(send.token), OrderOutcome.SKIPPED)
    assert "30 s" in report_command.report.reason


def test_late_or_repeated_order_has_no_effect() -> None:
    controller = GoalController()
    assert len(controller.set_order(HomingOrder(5, SE2(1.0, 0.0, 0.0)), 0)) == 1
    assert controller.set_order(HomingOrder(5, SE2(1.0, 0.0, 0.0)), 0) == []
    assert controller.set_order(HomingOrder(4), 0) == []
    assert controller.set_order(HomingOrder(6), 0) == [CancelGoalCommand(1)]


def test_restarted_controller_ends_the_previous_goal() -> None:
    assert GoalController().set_order(HomingOrder(9 * S, returning=True), 10 * S) == [CancelGoalsBeforeCommand(9 * S)]
    assert GoalController().set_order(HomingOrder(0), 10 * S) == [], "nobody was on the way: missions are left alone"


def test_point_is_kept_while_no_navigator_serves_goals() -> None:
    controller = GoalController(GoalControllerConfig(max_attempts=1))
    (send,) = controller.set_order(HomingOrder(1, SE2(1.0, 0.0, 0.0)), 0)
    for second in range(1, 100):
        assert controller.on_goal_finished(send.token, second * S, succeeded=False, was_attempted=False) == []
        (send,) = controller.set_pose(SE2(), second * S + S)


@pytest.mark.parametrize(
    "bad", [{"max_attempts": 0}, {"retry_delay": 0.0}, {"stuck_timeout": math.inf}, {"min_improvement": -1.0}]
)
def test_invalid_goal_settings_are_refused(bad) -> None:
    with pytest.raises(ConfigError):
        GoalControllerConfig(**bad)


@pytest.mark.parametrize(
    "bad",
    [
        {"home_mode": "nowhere"},
        {"on_link_loss": "panic"},
        {"point_spacing": 0.0},
        {"max_points": 2},
        {"home_pose": (1.0, 2.0)},
    ],
)
def test_invalid_homing_settings_are_refused(bad) -> None:
    with pytest.raises(ConfigError):
        HomingManager(HomingConfig(**bad))


# -- the nearest place -----------------------------------------------------------------------------------------------
@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.floats(0.1, 0.6))
def test_nearest_free_pose_is_the_nearest_of_all_cells(seed, occupied_fraction) -> None:
    random = np.random.default_rng(seed)
    costs = np.where(random.random((18, 23)) < occupied_fraction, 100, 0).astype(np.int8)
    costs[4, 6] = 0
    frame = GridGeometry(0.1, costs.shape, SE2(-1.0, 2.0, 0.3))
    start = SE2(*frame.cell_centers([4, 6]), 0.0)
    target = SE2(*frame.cell_centers([int(random.integers(18)), int(random.integers(23))]), 0.0)
    substitute = find_substitute_goal_pose(costs, frame, start, target)
    reached, edge = {(4, 6)}, [(4, 6)]  # an independent flood
    while edge:
        r, c = edge.pop()
        for cell in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
            inside = 0 <= cell[0] < 18 and 0 <= cell[1] < 23
            if inside and costs[cell] == 0 and cell not in reached:
                reached.add(cell)
                edge.append(cell)
    nearest = min(math.dist(frame.cell_centers(cell), (target.x, target.y)) for cell in reached)
    assert substitute.distance(target) == pytest.approx(nearest)
    assert (substitute is target) == (tuple(frame.cells_of_points(target.xy)) in reached)
    assert tuple(frame.cells_of_points([substitute.x, substitute.y])) in reached


def test_enclosed_robot_has_no_nearer_free_pose() -> None:
    frame = GridGeometry(0.1, (20, 20), SE2())
    assert find_substitute_goal_pose(np.full((20, 20), -1), frame, SE2(1.0, 1.0, 0.0), SE2(0.0, 0.0, 0.0)) is None
    costs = np.full((20, 20), 100)
    costs[0, 0] = 0
    assert find_substitute_goal_pose(costs, frame, SE2(1.5, 1.5, 0.0), SE2(0.0, 0.0, 0.0)) is None
