"""Goals drawn at random: free by coal, in their region; and what is said where there are none."""

from __future__ import annotations

import numpy as np
import pytest

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.errors import InputError
from roboyard.manipulation.collision import CoalChecker
from roboyard.manipulation.collision.obstacles import box_obstacle
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.planning.goal_sampling import sample_goal

REGION = np.array([[0.1, -0.3, 0.05], [0.4, 0.3, 0.5]])


def test_sampled_goals_lie_in_their_region_and_are_clear() -> None:
    scene = PlanningScene.create(load_joint_groups("youbot_arm"))
    checker, rng = CoalChecker(scene), np.random.default_rng(0)
    for _ in range(10):
        goal = sample_goal(scene, checker, rng, region=REGION, clearance=0.01)
        tool_position = goal.T_world_tool.xyz
        assert ((tool_position >= REGION[0]) & (tool_position <= REGION[1])).all()
        assert checker.signed_distance(goal.q)[0] >= 0.01


def test_goal_sampling_in_a_blocked_region_names_the_obstacle() -> None:
    block = box_obstacle("block", (0.6, 1.2, 1.2), (0.4, 0.0, 0.3))
    scene = PlanningScene.create(load_joint_groups("youbot_arm"), obstacles=[block])
    with pytest.raises(InputError, match=r"in the region: in \d+ of \d+ states \S+ is at block"):
        sample_goal(scene, CoalChecker(scene), np.random.default_rng(0), region=REGION)
