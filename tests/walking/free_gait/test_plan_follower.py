"""Plan follower: an ideal robot ends where the plan does, on the planned footholds, over ground of other heights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.walking.free_gait.step_planning_problems import level_terrain, problem_on

from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.scenarios import load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions
from roboyard.walking.free_gait.foothold_map import FootholdMap
from roboyard.walking.free_gait.plan_follower import PlanFollower, PlanFollowerConfig, Touchdown
from roboyard.walking.free_gait.planning import plan_steps
from roboyard.walking.free_gait.problem import StepPlanningProblem
from roboyard.walking.free_gait.replanning import committed_events
from roboyard.walking.free_gait.step_plan import StepPlan
from roboyard.walking.nodes.free_gait import (
    step_plan_from_msg,
    step_plan_to_msg,
)

Array = NDArray[np.float64]
GroundHeights = Callable[[Array], Array]


def level_problem(robot: str = "akrobat") -> StepPlanningProblem:
    return problem_on(level_terrain(), (0.5, 0.0), robot)


@cache
def level_plan(robot: str = "akrobat") -> StepPlan:
    return plan_steps(level_problem(robot), budget=6_000, seed=3)


NO_DELAY = PlanFollowerConfig(speed_scale=0.6, actuation_delay=0.0)
"""Configuration for a robot whose joints are always at their set-points."""


class IdealRobot:
    """Ideal robot: its feet are at their set-points at once, and its body follows from the stance feet."""

    def __init__(self, plan: StepPlan, ground_heights: GroundHeights) -> None:
        self.body = SE3.from_xyz_rpy(plan.body_positions([0.0])[0], (0.0, 0.0, plan.heading))
        self.ground, self.feet = ground_heights, plan.start_feet.copy()
        self.follower = PlanFollower(plan, self.body, self.feet, NO_DELAY)
        self.local = (self.feet - np.asarray(self.body.translation)) @ self.body.matrix()[:3, :3]
        self.downs: list[Touchdown] = []

    def step(self, dt: float = 0.02) -> None:
        contacts = self.feet[:, 2] <= self.ground(self.feet) + 1e-6
        foot_targets, touchdowns = self.follower.advance(dt, self.body, self.local, contacts)
        self.downs += touchdowns
        self.body = self.follower.desired_body_pose()
        self.feet = foot_targets @ self.body.matrix()[:3, :3].T + np.asarray(self.body.translation)
        # the ground holds a foot that would go below it
        self.feet[:, 2] = np.maximum(self.feet[:, 2], self.ground(self.feet))
        self.local = (self.feet - np.asarray(self.body.translation)) @ self.body.matrix()[:3, :3]

    def walk(self, max_time: float = 60.0) -> None:
        for _ in range(round(max_time / 0.02)):
            if self.follower.is_done:
                return
            self.step()


def level_ground(feet: Array) -> Array:
    return np.zeros(len(feet))


@pytest.mark.parametrize("robot", ["akrobat", "lauron"])
def test_ideal_robot_ends_where_the_plan_does(robot: str) -> None:
    plan = level_plan(robot)
    one = IdealRobot(plan, level_ground)
    previous_feet = one.feet.copy()
    for _ in range(3000):
        previous_stance = one.follower.in_stance.copy()
        one.step()
        stays_in_stance = previous_stance & one.follower.in_stance
        assert np.abs(one.feet - previous_feet)[stays_in_stance].max(initial=0.0) < 1e-9  # feet that stand do not slide
        previous_feet = one.feet.copy()
        if one.follower.is_done:
            break
    assert one.follower.is_done
    assert np.hypot(*(np.asarray(one.body.translation)[:2] - (0.5, 0.0))) < 1e-6
    assert len(one.downs) == len(plan.swings)
    assert {touchdown.kind for touchdown in one.downs} <= {"planned", "early"}
    assert (
        max(
            np.hypot(touchdown.actual[0] - touchdown.planned[0], touchdown.actual[1] - touchdown.planned[1])
            for touchdown in one.downs
        )
        < 0.012
    )


def test_foot_searches_for_lower_ground_and_reports_none() -> None:
    plan = level_plan()
    swing = plan.swings[len(plan.swings) // 2]

    def hollow_ground(depth: float) -> GroundHeights:
        return lambda feet: np.where(np.hypot(*(feet[:, :2] - swing.target[:2]).T) < 0.02, -depth, 0.0)

    found = IdealRobot(plan, hollow_ground(0.03))
    found.walk()
    late_touchdowns = [touchdown for touchdown in found.downs if touchdown.kind == "late"]
    assert found.follower.is_done
    assert late_touchdowns
    assert late_touchdowns[0].leg == swing.leg
    assert late_touchdowns[0].actual[2] == pytest.approx(-0.03, abs=0.005)
    lost = IdealRobot(plan, hollow_ground(0.2))
    lost.walk()
    assert [touchdown.kind for touchdown in lost.downs].count("none") >= 1


class DelayedRobot(IdealRobot):
    """Robot whose joints, and therefore body, are some control steps behind their set-points."""

    def __init__(self, plan: StepPlan, config: PlanFollowerConfig, n_delayed_steps: int) -> None:
        super().__init__(plan, level_ground)
        self.follower = PlanFollower(plan, self.body, self.feet, config)
        self._delayed = [(self.local, self.body)] * n_delayed_steps

    def step(self, dt: float = 0.02) -> None:
        foot_targets, touchdowns = self.follower.advance(dt, self.body, self.local, self.feet[:, 2] <= 1e-6)
        self.downs += touchdowns
        self._delayed.append((foot_targets.copy(), self.follower.desired_body_pose()))
        self.local, self.body = self._delayed.pop(0)
        self.feet = self.local @ self.body.matrix()[:3, :3].T + np.asarray(self.body.translation)
        self.feet[:, 2] = np.maximum(self.feet[:, 2], 0.0)


def test_known_joint_delay_keeps_footholds() -> None:
    def mean_forward_error(delay: float) -> float:
        one = DelayedRobot(level_plan(), PlanFollowerConfig(speed_scale=0.6, actuation_delay=delay), 4)
        one.walk()
        assert one.follower.is_done
        return float(np.mean([down.actual[0] - down.planned[0] for down in one.downs]))

    error_without_compensation = mean_forward_error(0.0)
    assert error_without_compensation > 1e-3
    assert abs(mean_forward_error(0.08)) < 0.5 * error_without_compensation


def test_follower_joins_a_plan_from_an_offset() -> None:
    plan = level_plan()
    one = IdealRobot(plan, level_ground)
    offset_pose = SE3.from_xyz_rpy(plan.body_positions([0.0])[0] + (0.03, -0.02, 0.01), (0.0, 0.0, 0.0))
    one.follower = PlanFollower(plan, offset_pose, plan.start_feet, NO_DELAY)
    one.body = offset_pose
    one.step()
    assert one.follower.time == 0.0
    one.walk()
    assert one.follower.is_done
    assert np.hypot(*(np.asarray(one.body.translation)[:2] - (0.5, 0.0))) < 1e-3


def test_restored_follower_continues_equally() -> None:
    plan = level_plan()
    one, other = IdealRobot(plan, level_ground), IdealRobot(plan, level_ground)
    for _ in range(150):
        one.step()
    other.follower.load_state(one.follower.save_state())
    other.body, other.feet, other.local = one.body, one.feet.copy(), one.local.copy()
    for _ in range(150):
        one.step()
        other.step()
        assert (one.local == other.local).all()
        assert (one.follower.in_stance == other.follower.in_stance).all()


def test_plan_messages_convert_back_to_equal_plans() -> None:
    plan = level_plan()
    message = step_plan_to_msg(plan, np.array([0.5, 0.0]), 5, "map")
    same = step_plan_from_msg(message, 6)
    assert (same.body_track == plan.body_track).all()
    assert (same.start_feet == plan.start_feet).all()
    assert same.swings == plan.swings
    with pytest.raises(InputError, match="for 4"):
        step_plan_from_msg(message, 4)
    message.body_times = message.body_times[::-1]
    with pytest.raises(InputError, match="grow"):
        step_plan_from_msg(message, 6)


@pytest.mark.parametrize("fraction", [0.5, 0.7])
def test_replanned_steps_equal_the_plan_until_then(fraction: float) -> None:
    problem = level_problem()
    plan = level_plan()
    takeover_time = fraction * plan.duration
    other = plan_steps(replace(problem, committed=committed_events(plan, takeover_time)), budget=6_000, seed=4)
    times = np.linspace(0.0, takeover_time, 300)
    # its way is laid anew in even pieces: about a bend the body is a little sooner or later
    np.testing.assert_allclose(other.body_positions(times), plan.body_positions(times), atol=1e-3)
    np.testing.assert_allclose(other.foot_states(times)[0], plan.foot_states(times)[0], atol=1e-3)
    assert (other.foot_states(times)[1] == plan.foot_states(times)[1]).all()
    # feet that are in the air come down where they were about to
    current_swings = [one for one in plan.swings if one.lift_off_time <= takeover_time < one.touch_down_time]
    assert all(
        any(same.leg == one.leg and same.target == one.target for same in other.swings) for one in current_swings
    )
    assert np.abs(other.body_positions([other.duration])[0, :2] - (0.5, 0.0)).max() < 0.01


def test_replanned_steps_avoid_vanished_footholds() -> None:
    problem = level_problem()
    plan = level_plan()
    invalid_swing = len(plan.swings) // 2
    vanished_swing = plan.swings[invalid_swing]
    arrays, (x, y, _) = problem.foothold_map.arrays, vanished_swing.target
    heights = arrays.heights.copy()
    r, c = problem.foothold_map.cell_at(x, y)
    heights[r - 1 : r + 2, c - 1 : c + 2] = -0.3
    foothold_map = FootholdMap.from_heights(
        heights, (arrays.x, arrays.y), problem.robot_model, cell_size=arrays.cell_size
    )
    for now in (
        vanished_swing.lift_off_time - 0.3,
        0.5 * (vanished_swing.lift_off_time + vanished_swing.touch_down_time),
    ):  # also while it is in the air
        committed = committed_events(plan, now, frozenset([invalid_swing]))
        other = plan_steps(replace(problem, foothold_map=foothold_map, committed=committed), budget=8_000, seed=5)
        for one in other.swings:
            if one.touch_down_time > now:
                cell = foothold_map.cell_at(*one.target[:2])
                assert foothold_map.arrays.can_stand[cell]
                assert one.target[2] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.slow
def test_akrobat_replans_when_footholds_vanish() -> None:
    faults = "faults=[{time: 6 s, type: foothold_collapse}, {time: 10 s, type: foothold_collapse}]"
    outcome = run_scenario(
        load_scenario("akrobat-free-gait", overrides=[faults]), RunOptions(write_files=False, serve=False)
    )
    assert outcome.success, outcome.metrics["criteria"]
    assert outcome.metrics["robots"]["akrobat"]["metrics"]["footholds_lost"] == 0
    assert outcome.metrics["robots"]["akrobat"]["metrics"]["step_replans"] >= 2


@pytest.mark.slow
def test_akrobat_walks_over_stepping_stones() -> None:
    outcome = run_scenario(load_scenario("akrobat-free-gait"), RunOptions(write_files=False, serve=False))
    assert outcome.success, outcome.metrics["criteria"]


@pytest.mark.slow
@pytest.mark.parametrize(("terrain", "goal"), [("flat", 0.9), ("ditch", 2.0)], ids=["flat", "ditch"])
def test_akrobat_walks_over_its_camera_map(terrain: str, goal: float) -> None:
    overrides = ["map=camera", f"terrain={terrain}", f"nodes.free_gait.parameters.goal=[{goal}, 0.0]", "duration=70s"]
    outcome = run_scenario(
        load_scenario("akrobat-free-gait", overrides=overrides), RunOptions(write_files=False, serve=False)
    )
    assert outcome.success, outcome.metrics["criteria"]
    assert outcome.metrics["robots"]["akrobat"]["metrics"]["step_replans"] >= 1  # as the map grew
