"""Plans: they touch nothing when coal looks, keep limits, are repeatable, and say why there is none."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE3
from roboyard.kinematics.ik import PointingTarget
from roboyard.manipulation import Groups
from roboyard.manipulation.collision import ExactChecker, Obstacle, box_obstacle
from roboyard.manipulation.planning import (
    AimGoal,
    BudgetSpent,
    Cancelled,
    GoalInCollision,
    GoalOutsideLimits,
    GoalUnreachable,
    JointGoal,
    NamedGoal,
    Plan,
    PlanSettings,
    PoseGoal,
    StartInCollision,
    StartOutsideLimits,
    plan,
    planner_named,
    planner_names,
    recheck,
)
from roboyard.manipulation.planning.shortening import shorten
from roboyard.manipulation.planning.trees import nearest
from roboyard.manipulation.scene import PlanningScene


@cache
def groups() -> Groups:
    return load_joint_groups("scitos_arm")


def shelf() -> list[Obstacle]:
    """Four compartments before the arm, boards of 2 cm."""
    T, w, h, d, t = SE3.from_xyz_rpy((0.55, 0.0, 0.1)), 0.4, 0.35, 0.3, 0.02
    wide, high = 2 * w + 3 * t, 2 * h + 3 * t
    boards = [box_obstacle(f"board {k}", (d, wide, t), T @ np.array([d / 2, 0, t / 2 + k * (h + t)])) for k in range(3)]
    sides = [
        box_obstacle(f"side {k}", (d, t, high), T @ np.array([d / 2, (k - 1) * (w + t), high / 2])) for k in range(3)
    ]
    return [*boards, *sides, box_obstacle("back", (t, wide, high), T @ np.array([d + t / 2, 0, high / 2]))]


@cache
def scene() -> PlanningScene:
    floor = box_obstacle("floor", (4.0, 4.0, 0.02), (0.0, 0.0, -0.011))
    return PlanningScene.of(groups(), "arm", tool="fingertips", obstacles=[*shelf(), floor])


def inside(side: int, level: int) -> AimGoal:
    """A place in a compartment, looked at from the arm's axis."""
    place = np.array([0.66, side * 0.2, 0.28 + level * 0.37])
    turn = math.atan2(place[1], place[0])
    return AimGoal(PointingTarget(place, (math.cos(turn), math.sin(turn), -0.1)))


@cache
def across() -> tuple[Plan, np.ndarray]:
    start = plan(scene(), groups().group("arm").pose("folded"), inside(-1, 0)).goal
    return plan(scene(), start, inside(1, 1)), start


def test_plan_leads_between_compartments() -> None:
    found, start = across()
    np.testing.assert_allclose(found.trajectory.start, start, atol=1e-12)
    tool = scene().chain.forward(found.trajectory.goal)
    np.testing.assert_allclose(tool[:3, 3], inside(1, 1).aim.position, atol=1e-5)
    assert len(found.points) > 3
    assert found.path.length <= found.found_length * 1.001


def test_plan_touches_nothing_by_coal_at_every_millimetre() -> None:
    found, _ = across()
    seen = recheck(ExactChecker(scene()), found.trajectory, 0.004)
    assert seen.contacts == ()
    assert seen.step <= 0.004
    assert seen.states > 100


def test_plan_keeps_joint_limits() -> None:
    found, start = across()
    motion = found.trajectory
    at = motion.at(np.arange(0.0, motion.duration, 1e-3))
    assert motion.limits.exceeded(at.velocity, at.acceleration) <= 1.0 + 1e-9
    np.testing.assert_allclose(motion.limits.acceleration, 0.42)
    slow = plan(scene(), start, inside(1, 1), PlanSettings(speed=0.5, acceleration=0.25)).trajectory
    assert slow.duration == pytest.approx(2.0 * motion.duration, rel=0.02)


def test_plan_with_the_same_seed_has_the_same_bits() -> None:
    found, start = across()
    again = plan(scene(), start, inside(1, 1))
    assert again.points.tobytes() == found.points.tobytes()
    assert again.trajectory.times.tobytes() == found.trajectory.times.tobytes()
    other = plan(scene(), start, inside(1, 1), PlanSettings(seed=5))
    assert other.points.tobytes() != found.points.tobytes()


@pytest.mark.parametrize("name", planner_names())
def test_planners_find_a_free_path_repeatably(name: str) -> None:
    start = groups().group("arm").pose("folded")
    asked = PlanSettings(planner=name, budget=3000, shortcuts=20)
    found = plan(scene(), start, NamedGoal("upright"), asked)
    states = found.path.points(0.02)
    assert not any(scene().with_margin(2e-4).contacts(states))
    np.testing.assert_allclose(found.goal, 0.0, atol=1e-9)
    again = plan(scene(), start, NamedGoal("upright"), asked)
    assert again.points.tobytes() == found.points.tobytes()


def test_plan_accepts_goals_in_other_frames() -> None:
    placed = scene().moved(SE3.from_xyz_rpy((2.0, 1.0, 0.3), (0.0, 0.0, 0.5)))
    q = groups().group("arm").pose("ahead")
    tool = SE3.from_matrix(scene().chain.forward(q))
    bare = placed.without(*placed.obstacles)
    start = groups().group("arm").pose("folded")
    for goal in (
        PoseGoal(tool),
        PoseGoal(placed.T_world_base @ tool, "world"),
        PoseGoal(tool, "arm_base"),
        JointGoal(q),
        NamedGoal("ahead"),
    ):
        reached = SE3.from_matrix(bare.chain.forward(plan(bare, start, goal).goal))
        assert reached.almost_equal(tool, 1e-4)


def test_plan_leaves_a_touching_start_by_the_shortest_path() -> None:
    q = groups().group("arm").pose("ahead")
    tip = scene().chain.forward(q)[:3, 3]
    wall = box_obstacle("wall", (0.02, 0.4, 0.4), tip + np.array([0.008, 0.0, 0.0]))
    asked = PlanningScene.of(groups(), "arm", tool="fingertips", obstacles=[wall])
    assert asked.contact(q) is not None
    found = plan(asked, q, NamedGoal("folded"))
    assert 0.0 < found.repaired <= 0.1
    np.testing.assert_allclose(found.trajectory.start, q, atol=1e-12)
    with pytest.raises(StartInCollision, match="touches wall") as caught:
        plan(asked, q, NamedGoal("folded"), PlanSettings(repair=0.0))
    assert caught.value.pair is not None
    assert caught.value.cause == "start_in_collision"
    beyond = scene().chain.upper + 0.05
    bare = asked.without("wall")
    moved = plan(bare, np.where(np.arange(5) == 1, beyond, 0.0), NamedGoal("folded"))
    assert moved.repaired == pytest.approx(0.05)
    with pytest.raises(StartOutsideLimits, match="arm_joint_2"):
        plan(bare, [0.0, 3.0, 0.0, 0.0, 0.0], NamedGoal("folded"))


def test_plan_to_the_start_state_takes_no_time() -> None:
    q = groups().group("arm").pose("folded")
    found = plan(scene(), q, JointGoal(q))
    assert found.trajectory.duration == 0.0
    np.testing.assert_allclose(found.trajectory.at([0.0, 1.0]).position, [q, q])


def test_plan_failures_name_their_cause() -> None:
    start = groups().group("arm").pose("folded")
    with pytest.raises(GoalUnreachable, match="out of reach"):
        plan(scene(), start, PoseGoal(SE3.from_xyz_rpy((3.0, 0.0, 0.5))))
    with pytest.raises(GoalInCollision, match="touches") as caught:
        plan(scene(), start, AimGoal(PointingTarget((0.84, 0.0, 0.4), (1.0, 0.0, 0.0))))
    assert caught.value.pair is not None
    with pytest.raises(GoalOutsideLimits, match="arm_joint_3 at 9"):
        plan(scene(), start, JointGoal([0.0, 0.0, 9.0, 0.0, 0.0]))
    _, inner = across()
    with pytest.raises(BudgetSpent, match="1 states"):
        plan(scene(), inner, inside(1, 1), PlanSettings(budget=1, seed=1))
    with pytest.raises(Cancelled):
        plan(scene(), start, inside(-1, 0), cancelled=lambda: True)


def test_plan_search_can_be_stopped() -> None:
    found, start = across()
    asked = []

    def stop() -> bool:
        asked.append(None)
        return len(asked) > 1

    with pytest.raises(Cancelled):
        plan(scene(), start, inside(1, 1), PlanSettings(planner="ompl:RRTstar"), cancelled=stop)
    assert found.looks > 0


@pytest.mark.parametrize(
    ("act", "kind", "words"),
    [
        (lambda s, q: plan(s, [math.nan] * 5, NamedGoal("upright")), InputError, "finite"),
        (lambda s, q: plan(s, [0.0] * 6, NamedGoal("upright")), InputError, "shape"),
        (lambda s, q: plan(s, q, JointGoal([0.0] * 4)), InputError, "shape"),
        (lambda s, q: plan(s, q, JointGoal([[0.0] * 5])), InputError, "shape"),
        (lambda s, q: plan(s, [q], JointGoal(q)), InputError, "shape"),
        (lambda s, q: plan(s, q, NamedGoal("uprigt")), UnknownNameError, "did you mean 'upright'"),
        (lambda s, q: plan(s, q, PoseGoal(SE3.identity(), "moon")), UnknownNameError, "no link 'moon'"),
        (lambda s, q: plan(s, q, PoseGoal(SE3.identity(), "kinect")), InputError, "moves 'kinect'"),
        (lambda s, q: plan(s, q, AimGoal(PointingTarget((0.0, math.nan, 0.0), (1, 0, 0)))), InputError, "position"),
        (lambda s, q: planner_named("ompl:PRM"), UnknownNameError, "no planner"),
        (lambda s, q: PlanSettings(budget=0), InputError, "budget"),
        (lambda s, q: PlanSettings(repair=-1.0), InputError, "repair"),
        (lambda s, q: plan(s, q, NamedGoal("upright"), PlanSettings(speed=0.0)), InputError, "share of speed"),
        (lambda s, q: plan(s, q, NamedGoal("upright"), PlanSettings(acceleration=1.5)), InputError, "acceleration"),
    ],
)
def test_plan_refuses_bad_requests(act: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        act(scene(), groups().group("arm").pose("folded"))


def test_tree_kernels_find_the_nearest_state_and_shorten() -> None:
    rng = np.random.default_rng(0)
    states, q, weights = rng.normal(size=(50, 4)), rng.normal(size=4), rng.uniform(0.1, 1.0, 4)
    assert nearest(states, 50, q, weights) == int(np.argmin((((states - q) * weights) ** 2).sum(axis=1)))
    empty = scene().without(*scene().obstacles)
    from roboyard.manipulation.collision.bodies import make_work

    path = np.zeros((100, 5))
    path[:3] = [[0.0] * 5, [0.5, 0.3, 0.0, 0.0, 0.0], [1.0] + [0.0] * 4]
    count = shorten(empty.bodies, make_work(empty.bodies), path, 3, np.ones(5), rng, 20, 10)
    assert count == 2
    np.testing.assert_array_equal(path[:2], [[0.0] * 5, [1.0] + [0.0] * 4])
