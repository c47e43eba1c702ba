"""Points on the robot: its own are known, and no others; goals that are drawn are free."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.manipulation import box_obstacle
from roboyard.manipulation.collision import CoalChecker
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.collision.self_filter import FilterShapes
from roboyard.manipulation.planning.goal_sampling import sample_goal

MARGIN = 0.03


@pytest.mark.parametrize("robot", ["scitos_arm", "iisy", "youbot_arm"])
def test_robot_points_are_those_that_coal_finds_near(robot: str) -> None:
    groups = load_joint_groups(robot)
    chain = groups.chain()
    moving = replace(groups.model, links=tuple(one for one in groups.model.links if chain.link_mounts[one.name][0] > 0))
    shapes = FilterShapes.from_model(moving)  # a scene's links that stand still are not looked at
    rng = np.random.default_rng(5)
    q = chain.sample_positions(rng, 1)[0]
    poses = [SE3.from_matrix(chain.link_poses(q)[name]) for name in shapes.frame_names]
    points = rng.uniform(-0.8, 0.8, (60_000, 3)) + chain.forward(q)[:3, 3] / 2.0
    is_robot_point = shapes.contains(points, poses, MARGIN)
    assert 20 < is_robot_point.sum() < len(points) / 2
    bare = PlanningScene.create(groups, T_world_robot=_base_at_origin(groups))
    self_distance = CoalChecker(bare).signed_distance(q, 0.2)[0]
    for k in np.concatenate([np.flatnonzero(is_robot_point)[:40], np.flatnonzero(~is_robot_point)[:40]]).tolist():
        checker = CoalChecker(bare.with_obstacles([box_obstacle("dot", (2e-4, 2e-4, 2e-4), points[k])]))
        distance = checker.signed_distance(q, 0.2)[0]
        if is_robot_point[k]:
            assert distance <= MARGIN + 1e-3
        elif self_distance > MARGIN:
            assert distance > MARGIN - 1e-3


def _base_at_origin(groups: object) -> SE3:
    bare = PlanningScene.create(groups)  # type: ignore[arg-type]
    return bare.T_world_base.inverse()


def test_self_filter_depends_on_margin_and_poses() -> None:
    shapes = FilterShapes.from_obstacles([box_obstacle("box", (0.2, 0.2, 0.2), (0.0, 0.0, 0.5))])
    points = np.array([[0.0, 0.0, 0.5], [0.11, 0.0, 0.5], [0.3, 0.0, 0.5]])
    assert shapes.contains(points, [SE3.identity()], 0.0).tolist() == [True, False, False]
    assert shapes.contains(points, [SE3.identity()], 0.02).tolist() == [True, True, False]
    assert shapes.contains(points, [SE3(translation=(0.3, 0.0, 0.0))], 0.0).tolist() == [False, False, True]


def test_self_filter_refuses_missing_poses() -> None:
    shapes = FilterShapes.from_obstacles([box_obstacle("box", (0.2, 0.2, 0.2), (0.0, 0.0, 0.5))])
    with pytest.raises(InputError, match="1 poses"):
        shapes.contains(np.zeros((1, 3)), [], 0.1)


def test_sampled_goals_are_free_in_the_region_and_repeatable() -> None:
    groups = load_joint_groups("youbot_arm")
    scene = PlanningScene.create(groups, obstacles=[box_obstacle("wall", (0.02, 1.0, 1.0), (0.35, 0.0, 0.5))])
    checker = CoalChecker(scene)
    region = np.array([[0.0, -0.3, 0.1], [0.3, 0.3, 0.6]])
    sampled_goals = [
        sample_goal(scene, checker, np.random.default_rng(k), region=region, clearance=0.02) for k in range(5)
    ]
    for one in sampled_goals:
        assert checker.signed_distance(one.q, 0.1)[0] >= 0.02
        assert (one.T_world_tool.translation >= region[0]).all()
        assert (one.T_world_tool.translation <= region[1]).all()
        assert (
            SE3.from_matrix(scene.chain.forward(one.q)).distance(scene.T_world_base.inverse() @ one.T_world_tool) < 1e-9
        )
    repeated = sample_goal(scene, checker, np.random.default_rng(0), region=region, clearance=0.02)
    assert np.array_equal(repeated.q, sampled_goals[0].q)


def test_goal_sampling_in_an_unreachable_region_is_refused() -> None:
    scene = PlanningScene.create(load_joint_groups("youbot_arm"))
    with pytest.raises(InputError, match="no free state with the tool in the region"):
        sample_goal(scene, CoalChecker(scene), np.random.default_rng(0), region=np.full((2, 3), 9.0))
