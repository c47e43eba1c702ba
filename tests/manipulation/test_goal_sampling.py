"""Goals drawn at random: free by coal, in their region; and what is said where there are none."""

from __future__ import annotations

import numpy as np
import pytest

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.errors import InputError
from roboyard.manipulation.collision import ExactChecker
from roboyard.manipulation.collision.obstacles import box_obstacle
from roboyard.manipulation.planning.goal_sampling import draw_goal
from roboyard.manipulation.scene import PlanningScene

REGION = np.array([[0.1, -0.3, 0.05], [0.4, 0.3, 0.5]])


def test_drawn_goals_lie_in_their_region_and_are_clear() -> None:
    scene = PlanningScene.of(load_joint_groups("youbot_arm"))
    checker, rng = ExactChecker(scene), np.random.default_rng(0)
    for _ in range(10):
        drawn = draw_goal(scene, checker, rng, region=REGION, clearance=0.01)
        place = drawn.T_world_tool.xyz
        assert ((place >= REGION[0]) & (place <= REGION[1])).all()
        assert checker.distance(drawn.q)[0] >= 0.01


def test_goal_drawing_in_a_blocked_region_names_the_obstacle() -> None:
    block = box_obstacle("block", (0.6, 1.2, 1.2), (0.4, 0.0, 0.3))
    scene = PlanningScene.of(load_joint_groups("youbot_arm"), obstacles=[block])
    with pytest.raises(InputError, match=r"in the region: in \d+ of \d+ states \S+ is at block"):
        draw_goal(scene, ExactChecker(scene), np.random.default_rng(0), region=REGION)
