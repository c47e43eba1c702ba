"""Scenes that follow a grasp: what is gripped may be touched by the gripper, and is kept out of everything else."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.description.model import Box, Cylinder
from roboyard.errors import UnknownNameError
from roboyard.geometry import SE3
from roboyard.manipulation import PlanConfig, box_obstacle, plan_motion
from roboyard.manipulation.collision import CoalChecker, Obstacle
from roboyard.manipulation.collision.coal_checker import recheck_motion
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.planning import JointGoal

FINGERS = ("finger_left", "finger_right")


def level_arm(*obstacles: Obstacle) -> tuple[PlanningScene, np.ndarray, SE3]:
    """The Schunk arm with its tool level ahead, its fingers open, and where they grip."""
    groups = load_joint_groups("scitos_arm")
    finger_positions = {"finger_left_joint": 0.034}
    scene = PlanningScene.create(
        groups, "arm", tool="fingertips", obstacles=obstacles, fixed_positions=finger_positions
    )
    q = np.array(groups.group("arm").pose("ahead"))
    return scene, q, scene.T_world_base @ SE3.from_matrix(scene.chain.forward(q))


@pytest.mark.parametrize("seed", range(4))
def test_plan_keeps_an_attached_bar_clear_of_posts(seed: int) -> None:
    bare, q, tool = level_arm()
    bar = Obstacle("bar", Cylinder(0.015, 0.7), SE3(translation=tool.xyz))  # upright
    posts = [
        box_obstacle(f"post {k}", (0.06, 0.06, 0.3), (tool.x * math.cos(a), tool.x * math.sin(a), tool.z - 0.35))
        for k, a in enumerate((-0.95, 0.95))
    ]
    holding = bare.with_obstacles([bar, *posts]).attach_obstacle("bar", q)
    goal = q.copy()
    goal[0] += 1.9  # between the posts now, beyond one then, which an empty hand passes above
    settings = PlanConfig(seed=seed)
    found = plan_motion(holding, q, JointGoal(goal), settings)
    assert not recheck_motion(CoalChecker(holding), found.trajectory, 0.004).contacts
    empty = plan_motion(holding.without_attached("bar"), q, JointGoal(goal), settings)
    assert recheck_motion(CoalChecker(holding), empty.trajectory, 0.004).contacts, "the bar makes the difference"


def test_grasp_target_may_be_touched_until_the_gripper_retreats() -> None:
    bare, q, tool = level_arm()
    target_object = Obstacle("thing", Box((0.03, 0.068, 0.03)), tool)
    table = box_obstacle("table", (0.02, 0.02, 0.02), (tool.x, tool.y, tool.z - 0.0255))
    scene = bare.with_obstacles([target_object])
    assert set(scene.find_contact(q) or ()) & set(FINGERS)
    approach_scene = scene.allow_gripper_contact("thing")
    assert approach_scene.is_free(q)
    grasp_scene = approach_scene.attach_obstacle("thing", q)
    assert grasp_scene.is_free(q)
    assert grasp_scene.with_obstacles([table]).find_contact(q) == ("thing", "table")
    assert grasp_scene.with_obstacles([table]).with_allowed(("thing", "table")).is_free(q)
    release_scene = grasp_scene.detach_to_world("thing", q)
    assert release_scene.is_free(q), "the fingers still close round it"
    assert release_scene.obstacles["thing"].T_world.almost_equal(tool, 1e-9)  # type: ignore[union-attr]
    retreat_scene = release_scene.disallow_gripper_contact("thing")
    assert set(retreat_scene.find_contact(q) or ()) & set(FINGERS)
    assert retreat_scene.allowed == frozenset()


def test_dropped_object_is_in_no_scene() -> None:
    bare, q, tool = level_arm()
    grasp_scene = bare.with_obstacles([Obstacle("thing", Box((0.03, 0.06, 0.03)), tool)]).attach_obstacle("thing", q)
    empty_scene = grasp_scene.without_attached("thing")
    assert not empty_scene.attached
    assert not empty_scene.obstacles
    with pytest.raises(UnknownNameError):
        empty_scene.without_attached("thing")


def test_grasp_of_an_unknown_object_or_gripper_is_refused() -> None:
    bare, _, tool = level_arm()
    scene = bare.with_obstacles([Obstacle("thing", Box((0.03, 0.06, 0.03)), tool)])
    for act in (scene.allow_gripper_contact, scene.disallow_gripper_contact):
        with pytest.raises(UnknownNameError, match="thing"):
            act("thyng")
    with pytest.raises(UnknownNameError, match="no gripper"):
        replace(scene, group=replace(scene.group, gripper=None)).allow_gripper_contact("thing")
