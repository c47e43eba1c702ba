"""Points on the robot: its own are known, and no others; goals that are drawn are free."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.manipulation.collision import ExactChecker, box_obstacle
from roboyard.manipulation.planning.goal_sampling import draw_goal
from roboyard.manipulation.scene import PlanningScene
from roboyard.manipulation.self_filter import Shapes

MARGIN = 0.03


@pytest.mark.parametrize("robot", ["scitos_arm", "iisy", "youbot_arm"])
def test_own_points_are_those_that_coal_finds_near(robot: str) -> None:
    groups = load_joint_groups(robot)
    chain = groups.chain()
    moving = replace(groups.model, links=tuple(one for one in groups.model.links if chain.link_mounts[one.name][0] > 0))
    shapes = Shapes.of_model(moving)  # a scene's links that stand still are not looked at
    rng = np.random.default_rng(5)
    q = chain.sample_positions(rng, 1)[0]
    poses = [SE3.from_matrix(chain.link_poses(q)[name]) for name in shapes.frames]
    points = rng.uniform(-0.8, 0.8, (60_000, 3)) + chain.forward(q)[:3, 3] / 2.0
    own = shapes.on(points, poses, MARGIN)
    assert 20 < own.sum() < len(points) / 2
    bare = PlanningScene.of(groups, T_world_robot=_base_at_origin(groups))
    itself = ExactChecker(bare).distance(q, 0.2)[0]
    for k in np.concatenate([np.flatnonzero(own)[:40], np.flatnonzero(~own)[:40]]).tolist():
        checker = ExactChecker(bare.with_obstacles([box_obstacle("dot", (2e-4, 2e-4, 2e-4), points[k])]))
        off = checker.distance(q, 0.2)[0]
        if own[k]:
            assert off <= MARGIN + 1e-3
        elif itself > MARGIN:
            assert off > MARGIN - 1e-3


def _base_at_origin(groups: object) -> SE3:
    bare = PlanningScene.of(groups)  # type: ignore[arg-type]
    return bare.T_world_base.inverse()


def test_self_filter_depends_on_margin_and_poses() -> None:
    shapes = Shapes.of_obstacles([box_obstacle("box", (0.2, 0.2, 0.2), (0.0, 0.0, 0.5))])
    points = np.array([[0.0, 0.0, 0.5], [0.11, 0.0, 0.5], [0.3, 0.0, 0.5]])
    assert shapes.on(points, [SE3.identity()], 0.0).tolist() == [True, False, False]
    assert shapes.on(points, [SE3.identity()], 0.02).tolist() == [True, True, False]
    assert shapes.on(points, [SE3(translation=(0.3, 0.0, 0.0))], 0.0).tolist() == [False, False, True]


def test_self_filter_refuses_missing_poses() -> None:
    shapes = Shapes.of_obstacles([box_obstacle("box", (0.2, 0.2, 0.2), (0.0, 0.0, 0.5))])
    with pytest.raises(InputError, match="1 poses"):
        shapes.on(np.zeros((1, 3)), [], 0.1)


def test_drawn_goals_are_free_in_the_region_and_repeatable() -> None:
    groups = load_joint_groups("youbot_arm")
    scene = PlanningScene.of(groups, obstacles=[box_obstacle("wall", (0.02, 1.0, 1.0), (0.35, 0.0, 0.5))])
    checker = ExactChecker(scene)
    region = np.array([[0.0, -0.3, 0.1], [0.3, 0.3, 0.6]])
    drawn = [draw_goal(scene, checker, np.random.default_rng(k), region=region, clearance=0.02) for k in range(5)]
    for one in drawn:
        assert checker.distance(one.q, 0.1)[0] >= 0.02
        assert (one.T_world_tool.translation >= region[0]).all()
        assert (one.T_world_tool.translation <= region[1]).all()
        assert (
            SE3.from_matrix(scene.chain.forward(one.q)).distance(scene.T_world_base.inverse() @ one.T_world_tool) < 1e-9
        )
    again = draw_goal(scene, checker, np.random.default_rng(0), region=region, clearance=0.02)
    assert np.array_equal(again.q, drawn[0].q)


def test_goal_drawing_in_an_unreachable_region_is_refused() -> None:
    scene = PlanningScene.of(load_joint_groups("youbot_arm"))
    with pytest.raises(InputError, match="no free state with the tool in the region"):
        draw_goal(scene, ExactChecker(scene), np.random.default_rng(0), region=np.full((2, 3), 9.0))
