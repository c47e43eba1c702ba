"""Walking a plan: an ideal robot ends where the plan does, on the planned footholds, whatever height the ground has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.walking.steps.step_problems import level_terrain, problem_on

from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.scenarios import load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions
from roboyard.walking.nodes.steps_messages import (
    plan_message,
    plan_of_message,
)
from roboyard.walking.steps.following import Footing, PlanFollower, Touchdown
from roboyard.walking.steps.ground import Ground
from roboyard.walking.steps.past import settled
from roboyard.walking.steps.plan import StepPlan
from roboyard.walking.steps.planning import plan_steps
from roboyard.walking.steps.problem import Problem

Array = NDArray[np.float64]
Ground_ = Callable[[Array], Array]


def level_problem(robot: str = "akrobat") -> Problem:
    return problem_on(level_terrain(), (0.5, 0.0), robot)


@cache
def level_plan(robot: str = "akrobat") -> StepPlan:
    return plan_steps(level_problem(robot), budget=6_000, seed=3)


AT_ONCE = Footing(pace=0.6, delay=0.0)
"""Of a robot whose joints are never behind their set-points."""


class IdealRobot:
    """A robot whose feet are at once where they shall be, and whose body is where the feet that stand put it."""

    def __init__(self, plan: StepPlan, ground: Ground_) -> None:
        self.body = SE3.from_xyz_rpy(plan.body([0.0])[0], (0.0, 0.0, plan.heading))
        self.ground, self.feet = ground, plan.feet.copy()
        self.follower = PlanFollower(plan, self.body, self.feet, AT_ONCE)
        self.local = (self.feet - np.asarray(self.body.translation)) @ self.body.matrix()[:3, :3]
        self.downs: list[Touchdown] = []

    def step(self, dt: float = 0.02) -> None:
        touching = self.feet[:, 2] <= self.ground(self.feet) + 1e-6
        local, downs = self.follower.advance(dt, self.body, self.local, touching)
        self.downs += downs
        self.body = self.follower.wanted()
        self.feet = local @ self.body.matrix()[:3, :3].T + np.asarray(self.body.translation)
        # the ground holds a foot that would go below it
        self.feet[:, 2] = np.maximum(self.feet[:, 2], self.ground(self.feet))
        self.local = (self.feet - np.asarray(self.body.translation)) @ self.body.matrix()[:3, :3]

    def walk(self, most: float = 60.0) -> None:
        for _ in range(round(most / 0.02)):
            if self.follower.done:
                return
            self.step()


def level(feet: Array) -> Array:
    return np.zeros(len(feet))


@pytest.mark.parametrize("robot", ["akrobat", "lauron"])
def test_ideal_robot_ends_where_the_plan_does(robot: str) -> None:
    plan = level_plan(robot)
    one = IdealRobot(plan, level)
    stood = one.feet.copy()
    for _ in range(3000):
        before = one.follower.down.copy()
        one.step()
        both = before & one.follower.down
        assert np.abs(one.feet - stood)[both].max(initial=0.0) < 1e-9  # feet that stand do not slide
        stood = one.feet.copy()
        if one.follower.done:
            break
    assert one.follower.done
    assert np.hypot(*(np.asarray(one.body.translation)[:2] - (0.5, 0.0))) < 1e-6
    assert len(one.downs) == len(plan.swings)
    assert {down.how for down in one.downs} <= {"planned", "early"}
    assert max(np.hypot(d.found[0] - d.planned[0], d.found[1] - d.planned[1]) for d in one.downs) < 0.012


def test_foot_searches_for_lower_ground_and_reports_none() -> None:
    plan = level_plan()
    swing = plan.swings[len(plan.swings) // 2]

    def hollow(depth: float) -> Ground_:
        return lambda feet: np.where(np.hypot(*(feet[:, :2] - swing.target[:2]).T) < 0.02, -depth, 0.0)

    found = IdealRobot(plan, hollow(0.03))
    found.walk()
    late = [down for down in found.downs if down.how == "late"]
    assert found.follower.done
    assert late
    assert late[0].leg == swing.leg
    assert late[0].found[2] == pytest.approx(-0.03, abs=0.005)
    lost = IdealRobot(plan, hollow(0.2))
    lost.walk()
    assert [down.how for down in lost.downs].count("none") >= 1


class DelayedRobot(IdealRobot):
    """One whose joints, and with them its body, are some moments behind their targets."""

    def __init__(self, plan: StepPlan, footing: Footing, moments: int) -> None:
        super().__init__(plan, level)
        self.follower = PlanFollower(plan, self.body, self.feet, footing)
        self._delayed = [(self.local, self.body)] * moments

    def step(self, dt: float = 0.02) -> None:
        local, downs = self.follower.advance(dt, self.body, self.local, self.feet[:, 2] <= 1e-6)
        self.downs += downs
        self._delayed.append((local.copy(), self.follower.wanted()))
        self.local, self.body = self._delayed.pop(0)
        self.feet = self.local @ self.body.matrix()[:3, :3].T + np.asarray(self.body.translation)
        self.feet[:, 2] = np.maximum(self.feet[:, 2], 0.0)


def test_known_joint_delay_keeps_footholds() -> None:
    def ahead(delay: float) -> float:
        one = DelayedRobot(level_plan(), Footing(pace=0.6, delay=delay), 4)
        one.walk()
        assert one.follower.done
        return float(np.mean([down.found[0] - down.planned[0] for down in one.downs]))

    unaware = ahead(0.0)
    assert unaware > 1e-3
    assert abs(ahead(0.08)) < 0.5 * unaware


def test_follower_joins_a_plan_from_beside_it() -> None:
    plan = level_plan()
    one = IdealRobot(plan, level)
    aside = SE3.from_xyz_rpy(plan.body([0.0])[0] + (0.03, -0.02, 0.01), (0.0, 0.0, 0.0))
    one.follower = PlanFollower(plan, aside, plan.feet, AT_ONCE)
    one.body = aside
    one.step()
    assert one.follower.time == 0.0
    one.walk()
    assert one.follower.done
    assert np.hypot(*(np.asarray(one.body.translation)[:2] - (0.5, 0.0))) < 1e-3


def test_restored_follower_continues_equally() -> None:
    plan = level_plan()
    one, other = IdealRobot(plan, level), IdealRobot(plan, level)
    for _ in range(150):
        one.step()
    other.follower.load_state(one.follower.save_state())
    other.body, other.feet, other.local = one.body, one.feet.copy(), one.local.copy()
    for _ in range(150):
        one.step()
        other.step()
        assert (one.local == other.local).all()
        assert (one.follower.down == other.follower.down).all()


def test_plan_messages_convert_back_to_equal_plans() -> None:
    plan = level_plan()
    message = plan_message(plan, np.array([0.5, 0.0]), 5, "map")
    same = plan_of_message(message, 6)
    assert (same.track == plan.track).all()
    assert (same.feet == plan.feet).all()
    assert same.swings == plan.swings
    with pytest.raises(InputError, match="for 4"):
        plan_of_message(message, 4)
    message.body_times = message.body_times[::-1]
    with pytest.raises(InputError, match="grow"):
        plan_of_message(message, 6)


@pytest.mark.parametrize("share", [0.5, 0.7])
def test_replanned_steps_equal_the_plan_until_then(share: float) -> None:
    problem = level_problem()
    plan = level_plan()
    now = share * plan.duration
    other = plan_steps(replace(problem, past=settled(plan, now)), budget=6_000, seed=4)
    times = np.linspace(0.0, now, 300)
    # its way is laid anew in even pieces: about a bend the body is a little sooner or later
    np.testing.assert_allclose(other.body(times), plan.body(times), atol=1e-3)
    np.testing.assert_allclose(other.feet_at(times)[0], plan.feet_at(times)[0], atol=1e-3)
    assert (other.feet_at(times)[1] == plan.feet_at(times)[1]).all()
    # feet that are in the air come down where they were about to
    air = [one for one in plan.swings if one.lifts <= now < one.lands]
    assert all(any(same.leg == one.leg and same.target == one.target for same in other.swings) for one in air)
    assert np.abs(other.body([other.duration])[0, :2] - (0.5, 0.0)).max() < 0.01


def test_replanned_steps_avoid_vanished_footholds() -> None:
    problem = level_problem()
    plan = level_plan()
    bad = len(plan.swings) // 2
    gone = plan.swings[bad]
    rows, (x, y, _) = problem.ground.rows, gone.target
    heights = rows.heights.copy()
    r, c = problem.ground.cell_at(x, y)
    heights[r - 1 : r + 2, c - 1 : c + 2] = -0.3
    ground = Ground.of(heights, (rows.x, rows.y), problem.rig, cell=rows.cell)
    for now in (gone.lifts - 0.3, 0.5 * (gone.lifts + gone.lands)):  # also while it is in the air
        past = settled(plan, now, frozenset([bad]))
        other = plan_steps(replace(problem, ground=ground, past=past), budget=8_000, seed=5)
        for one in other.swings:
            if one.lands > now:
                cell = ground.cell_at(*one.target[:2])
                assert ground.rows.stand[cell]
                assert one.target[2] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.slow
def test_akrobat_replans_when_footholds_vanish() -> None:
    faults = "faults=[{time: 6 s, type: foothold_collapse}, {time: 10 s, type: foothold_collapse}]"
    done = run_scenario(
        load_scenario("akrobat-free-gait", overrides=[faults]), RunOptions(write_files=False, serve=False)
    )
    assert done.success, done.metrics["criteria"]
    assert done.metrics["robots"]["akrobat"]["metrics"]["footholds_lost"] == 0
    assert done.metrics["robots"]["akrobat"]["metrics"]["step_replans"] >= 2


@pytest.mark.slow
def test_akrobat_walks_over_stepping_stones() -> None:
    done = run_scenario(load_scenario("akrobat-free-gait"), RunOptions(write_files=False, serve=False))
    assert done.success, done.metrics["criteria"]


@pytest.mark.slow
@pytest.mark.parametrize(("terrain", "goal"), [("flat", 0.9), ("ditch", 2.0)], ids=["flat", "ditch"])
def test_akrobat_walks_over_its_camera_map(terrain: str, goal: float) -> None:
    overrides = ["map=camera", f"terrain={terrain}", f"nodes.free_gait.parameters.goal=[{goal}, 0.0]", "duration=70s"]
    done = run_scenario(
        load_scenario("akrobat-free-gait", overrides=overrides), RunOptions(write_files=False, serve=False)
    )
    assert done.success, done.metrics["criteria"]
    assert done.metrics["robots"]["akrobat"]["metrics"]["step_replans"] >= 1  # as the map grew
