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
from roboyard.manipulation import MOTION_PLANNERS, PlanConfig, PoseGoal, SemanticDescription, box_obstacle, plan_motion
from roboyard.manipulation.collision import CoalChecker, Obstacle
from roboyard.manipulation.collision.coal_checker import recheck_motion
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.errors import (
    GoalInCollisionError,
    GoalOutsideLimitsError,
    GoalUnreachableError,
    MotionBudgetExceededError,
    PlanningCancelledError,
    StartInCollisionError,
    StartOutsideLimitsError,
)
from roboyard.manipulation.planning import JointGoal, MotionPlan, NamedGoal, PointingGoal, make_planner
from roboyard.manipulation.planning.path_shortening import shortcut_path
from roboyard.manipulation.planning.rrt_connect import nearest_node


@cache
def groups() -> SemanticDescription:
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
    return PlanningScene.create(groups(), "arm", tool="fingertips", obstacles=[*shelf(), floor])


def compartment_goal(side: int, level: int) -> PointingGoal:
    """A place in a compartment, looked at from the arm's axis."""
    position = np.array([0.66, side * 0.2, 0.28 + level * 0.37])
    azimuth = math.atan2(position[1], position[0])
    return PointingGoal(PointingTarget(position, (math.cos(azimuth), math.sin(azimuth), -0.1)))


@cache
def plan_across() -> tuple[MotionPlan, np.ndarray]:
    start = plan_motion(scene(), groups().group("arm").pose("folded"), compartment_goal(-1, 0)).goal
    return plan_motion(scene(), start, compartment_goal(1, 1)), start


def test_plan_leads_between_compartments() -> None:
    found, start = plan_across()
    np.testing.assert_allclose(found.trajectory.start, start, atol=1e-12)
    tool = scene().chain.forward(found.trajectory.goal)
    np.testing.assert_allclose(tool[:3, 3], compartment_goal(1, 1).target.position, atol=1e-5)
    assert len(found.points) > 3
    assert found.path.length <= found.raw_length * 1.001


def test_coal_confirms_that_a_plan_is_collision_free() -> None:
    found, _ = plan_across()
    recheck_result = recheck_motion(CoalChecker(scene()), found.trajectory, 0.004)
    assert recheck_result.contacts == ()
    assert recheck_result.max_tool_step <= 0.004
    assert recheck_result.n_states > 100


def test_plan_keeps_joint_limits() -> None:
    found, start = plan_across()
    motion = found.trajectory
    samples = motion.sample_at(np.arange(0.0, motion.duration, 1e-3))
    assert motion.limits.utilization(samples.velocity, samples.acceleration) <= 1.0 + 1e-9
    np.testing.assert_allclose(motion.limits.acceleration, 0.42)
    slow = plan_motion(
        scene(), start, compartment_goal(1, 1), PlanConfig(velocity_scaling=0.5, acceleration_scaling=0.25)
    ).trajectory
    assert slow.duration == pytest.approx(2.0 * motion.duration, rel=0.02)


def test_plan_with_the_same_seed_has_the_same_bits() -> None:
    found, start = plan_across()
    repeated = plan_motion(scene(), start, compartment_goal(1, 1))
    assert repeated.points.tobytes() == found.points.tobytes()
    assert repeated.trajectory.times.tobytes() == found.trajectory.times.tobytes()
    other = plan_motion(scene(), start, compartment_goal(1, 1), PlanConfig(seed=5))
    assert other.points.tobytes() != found.points.tobytes()


@pytest.mark.parametrize("name", MOTION_PLANNERS.names())
def test_planners_find_a_free_path_repeatably(name: str) -> None:
    start = groups().group("arm").pose("folded")
    config = PlanConfig(planner=name, max_states=3000, max_shortcuts=20)
    found = plan_motion(scene(), start, NamedGoal("upright"), config)
    states = found.path.sample(0.02)
    assert not any(scene().with_margin(2e-4).find_contacts(states))
    np.testing.assert_allclose(found.goal, 0.0, atol=1e-9)
    repeated = plan_motion(scene(), start, NamedGoal("upright"), config)
    assert repeated.points.tobytes() == found.points.tobytes()


def test_plan_accepts_goals_in_other_frames() -> None:
    placed = scene().with_robot_pose(SE3.from_xyz_rpy((2.0, 1.0, 0.3), (0.0, 0.0, 0.5)))
    q = groups().group("arm").pose("ahead")
    tool = SE3.from_matrix(scene().chain.forward(q))
    bare = placed.without_obstacles(*placed.obstacles)
    start = groups().group("arm").pose("folded")
    for goal in (
        PoseGoal(tool),
        PoseGoal(placed.T_world_base @ tool, "world"),
        PoseGoal(tool, "arm_base"),
        JointGoal(q),
        NamedGoal("ahead"),
    ):
        reached = SE3.from_matrix(bare.chain.forward(plan_motion(bare, start, goal).goal))
        assert reached.almost_equal(tool, 1e-4)


def test_plan_leaves_a_touching_start_by_the_shortest_path() -> None:
    q = groups().group("arm").pose("ahead")
    tip = scene().chain.forward(q)[:3, 3]
    wall = box_obstacle("wall", (0.02, 0.4, 0.4), tip + np.array([0.008, 0.0, 0.0]))
    planning_scene = PlanningScene.create(groups(), "arm", tool="fingertips", obstacles=[wall])
    assert planning_scene.find_contact(q) is not None
    found = plan_motion(planning_scene, q, NamedGoal("folded"))
    assert 0.0 < found.start_repair <= 0.1
    np.testing.assert_allclose(found.trajectory.start, q, atol=1e-12)
    with pytest.raises(StartInCollisionError, match="touches wall") as caught:
        plan_motion(planning_scene, q, NamedGoal("folded"), PlanConfig(max_start_repair=0.0))
    assert caught.value.pair is not None
    assert caught.value.cause == "start_in_collision"
    above_limits = scene().chain.upper + 0.05
    bare = planning_scene.without_obstacles("wall")
    repaired_plan = plan_motion(bare, np.where(np.arange(5) == 1, above_limits, 0.0), NamedGoal("folded"))
    assert repaired_plan.start_repair == pytest.approx(0.05)
    with pytest.raises(StartOutsideLimitsError, match="arm_joint_2"):
        plan_motion(bare, [0.0, 3.0, 0.0, 0.0, 0.0], NamedGoal("folded"))


def test_plan_to_the_start_state_takes_no_time() -> None:
    q = groups().group("arm").pose("folded")
    found = plan_motion(scene(), q, JointGoal(q))
    assert found.trajectory.duration == 0.0
    np.testing.assert_allclose(found.trajectory.sample_at([0.0, 1.0]).position, [q, q])


def test_plan_failures_name_their_cause() -> None:
    start = groups().group("arm").pose("folded")
    with pytest.raises(GoalUnreachableError, match="out of reach"):
        plan_motion(scene(), start, PoseGoal(SE3.from_xyz_rpy((3.0, 0.0, 0.5))))
    with pytest.raises(GoalInCollisionError, match="touches") as caught:
        plan_motion(scene(), start, PointingGoal(PointingTarget((0.84, 0.0, 0.4), (1.0, 0.0, 0.0))))
    assert caught.value.pair is not None
    with pytest.raises(GoalOutsideLimitsError, match="arm_joint_3 at 9"):
        plan_motion(scene(), start, JointGoal([0.0, 0.0, 9.0, 0.0, 0.0]))
    _, inner = plan_across()
    with pytest.raises(MotionBudgetExceededError, match="1 sampled states"):
        plan_motion(scene(), inner, compartment_goal(1, 1), PlanConfig(max_states=1, seed=1))
    with pytest.raises(PlanningCancelledError):
        plan_motion(scene(), start, compartment_goal(-1, 0), should_stop=lambda: True)


def test_plan_search_can_be_stopped() -> None:
    found, start = plan_across()
    polls = []

    def stop() -> bool:
        polls.append(None)
        return len(polls) > 1

    with pytest.raises(PlanningCancelledError):
        plan_motion(scene(), start, compartment_goal(1, 1), PlanConfig(planner="ompl:RRTstar"), should_stop=stop)
    assert found.n_checks > 0


@pytest.mark.parametrize(
    ("act", "kind", "words"),
    [
        (lambda s, q: plan_motion(s, [math.nan] * 5, NamedGoal("upright")), InputError, "finite"),
        (lambda s, q: plan_motion(s, [0.0] * 6, NamedGoal("upright")), InputError, "shape"),
        (lambda s, q: plan_motion(s, q, JointGoal([0.0] * 4)), InputError, "shape"),
        (lambda s, q: plan_motion(s, q, JointGoal([[0.0] * 5])), InputError, "shape"),
        (lambda s, q: plan_motion(s, [q], JointGoal(q)), InputError, "shape"),
        (lambda s, q: plan_motion(s, q, NamedGoal("uprigt")), UnknownNameError, "did you mean 'upright'"),
        (lambda s, q: plan_motion(s, q, PoseGoal(SE3.identity(), "moon")), UnknownNameError, "no link 'moon'"),
        (lambda s, q: plan_motion(s, q, PoseGoal(SE3.identity(), "kinect")), InputError, "moves 'kinect'"),
        (
            lambda s, q: plan_motion(s, q, PointingGoal(PointingTarget((0.0, math.nan, 0.0), (1, 0, 0)))),
            InputError,
            "position",
        ),
        (lambda s, q: make_planner("ompl:PRM"), UnknownNameError, "no planner"),
        (lambda s, q: PlanConfig(max_states=0), InputError, "max_states"),
        (lambda s, q: PlanConfig(max_start_repair=-1.0), InputError, "max_start_repair"),
        (
            lambda s, q: plan_motion(s, q, NamedGoal("upright"), PlanConfig(velocity_scaling=0.0)),
            InputError,
            "velocity scaling",
        ),
        (
            lambda s, q: plan_motion(s, q, NamedGoal("upright"), PlanConfig(acceleration_scaling=1.5)),
            InputError,
            "acceleration",
        ),
    ],
)
def test_plan_refuses_bad_requests(act: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        act(scene(), groups().group("arm").pose("folded"))


def test_tree_kernels_find_the_nearest_state_and_shorten() -> None:
    rng = np.random.default_rng(0)
    states, q, weights = rng.normal(size=(50, 4)), rng.normal(size=4), rng.uniform(0.1, 1.0, 4)
    assert nearest_node(states, 50, q, weights) == int(np.argmin((((states - q) * weights) ** 2).sum(axis=1)))
    empty = scene().without_obstacles(*scene().obstacles)
    from roboyard.manipulation.collision.collision_model import make_workspace

    path = np.zeros((100, 5))
    path[:3] = [[0.0] * 5, [0.5, 0.3, 0.0, 0.0, 0.0], [1.0] + [0.0] * 4]
    count = shortcut_path(
        empty.collision_arrays, make_workspace(empty.collision_arrays), path, 3, np.ones(5), rng, 20, 10
    )
    assert count == 2
    np.testing.assert_array_equal(path[:2], [[0.0] * 5, [1.0] + [0.0] * 4])
