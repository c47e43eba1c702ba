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
from roboyard.manipulation.collision import ExactChecker, Obstacle, box_obstacle
from roboyard.manipulation.planning import JointGoal, PlanSettings, plan, recheck
from roboyard.manipulation.scene import PlanningScene

FINGERS = ("finger_left", "finger_right")


def ahead(*obstacles: Obstacle) -> tuple[PlanningScene, np.ndarray, SE3]:
    """The Schunk arm with its tool level ahead, its fingers open, and where they grip."""
    groups = load_joint_groups("scitos_arm")
    held = {"finger_left_joint": 0.034}
    scene = PlanningScene.of(groups, "arm", tool="fingertips", obstacles=obstacles, held=held)
    q = np.array(groups.group("arm").pose("ahead"))
    return scene, q, scene.T_world_base @ SE3.from_matrix(scene.chain.forward(q))


@pytest.mark.parametrize("seed", range(4))
def test_plan_keeps_a_held_bar_clear_of_posts(seed: int) -> None:
    bare, q, tool = ahead()
    bar = Obstacle("bar", Cylinder(0.015, 0.7), SE3(translation=tool.xyz))  # upright
    posts = [
        box_obstacle(f"post {k}", (0.06, 0.06, 0.3), (tool.x * math.cos(a), tool.x * math.sin(a), tool.z - 0.35))
        for k, a in enumerate((-0.95, 0.95))
    ]
    holding = bare.with_obstacles([bar, *posts]).grasp("bar", q)
    goal = q.copy()
    goal[0] += 1.9  # between the posts now, beyond one then, which an empty hand passes above
    settings = PlanSettings(seed=seed)
    found = plan(holding, q, JointGoal(goal), settings)
    assert not recheck(ExactChecker(holding), found.trajectory, 0.004).contacts
    empty = plan(holding.drop("bar"), q, JointGoal(goal), settings)
    assert recheck(ExactChecker(holding), empty.trajectory, 0.004).contacts, "the bar makes the difference"


def test_grasp_target_may_be_touched_until_the_gripper_retreats() -> None:
    bare, q, tool = ahead()
    thing = Obstacle("thing", Box((0.03, 0.068, 0.03)), tool)
    table = box_obstacle("table", (0.02, 0.02, 0.02), (tool.x, tool.y, tool.z - 0.0255))
    scene = bare.with_obstacles([thing])
    assert set(scene.contact(q) or ()) & set(FINGERS)
    near = scene.touchable("thing")
    assert near.free(q)
    held = near.grasp("thing", q)
    assert held.free(q)
    assert held.with_obstacles([table]).contact(q) == ("thing", "table")
    assert held.with_obstacles([table]).allowing(("thing", "table")).free(q)
    put = held.release("thing", q)
    assert put.free(q), "the fingers still close round it"
    assert put.obstacles["thing"].T_world.almost_equal(tool, 1e-9)  # type: ignore[union-attr]
    gone = put.untouchable("thing")
    assert set(gone.contact(q) or ()) & set(FINGERS)
    assert gone.allowed == frozenset()


def test_dropped_object_is_in_no_scene() -> None:
    bare, q, tool = ahead()
    held = bare.with_obstacles([Obstacle("thing", Box((0.03, 0.06, 0.03)), tool)]).grasp("thing", q)
    lost = held.drop("thing")
    assert not lost.attached
    assert not lost.obstacles
    with pytest.raises(UnknownNameError):
        lost.drop("thing")


def test_grasp_of_an_unknown_object_or_gripper_is_refused() -> None:
    bare, _, tool = ahead()
    scene = bare.with_obstacles([Obstacle("thing", Box((0.03, 0.06, 0.03)), tool)])
    for act in (scene.touchable, scene.untouchable):
        with pytest.raises(UnknownNameError, match="thing"):
            act("thyng")
    with pytest.raises(UnknownNameError, match="no gripper"):
        replace(scene, group=replace(scene.group, gripper=None)).touchable("thing")
