"""The shared arm cell: it moves, waits and places objects as its methods say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.harness.arms import ARM_NODES, ArmCell

from roboyard.geometry import SE3
from roboyard.messages import msg


@pytest.fixture(scope="module")
def cell() -> Iterator[ArmCell]:
    with ArmCell("youbot_arm", (*ARM_NODES, "move_group"), seed=1) as cell:
        yield cell


def test_arm_cell_reads_joints_and_tool_of_the_arm(cell: ArmCell) -> None:
    np.testing.assert_allclose(cell.joints(), cell.robot.hardware.read().position[: cell.chain.dof])
    assert cell.tool_pose().distance(SE3.from_matrix(cell.chain.forward(cell.joints()))) == 0.0
    assert cell.tool_pose(cell.pose("view")).distance(cell.tool_pose(cell.pose("rest"))) > 0.05


def test_arm_cell_moves_to_each_kind_of_goal(cell: ArmCell) -> None:
    assert cell.move(cell.named_goal("view")).succeeded
    np.testing.assert_allclose(cell.joints(), cell.pose("view"), atol=0.01)
    q = cell.pose("view") + np.array([0.1, 0.0, 0.0, 0.0, 0.1])
    assert cell.move(cell.joint_goal(q)).succeeded
    np.testing.assert_allclose(cell.joints(), q, atol=0.01)
    T = cell.tool_pose(cell.pose("view"))
    assert cell.move(cell.pose_goal(T, "arm_link_0")).succeeded
    assert cell.tool_pose().distance(T) < 2e-3


def test_arm_cell_waits_until_a_moving_arm_is_still(cell: ArmCell) -> None:
    q = cell.joints() + np.array([0.3, 0.0, 0.0, 0.0, 0.0])
    goal = cell.start_move(cell.joint_goal(q), max_velocity_scaling_factor=0.5)
    cell.harness.spin_until(lambda: cell.speed() > 0.05)
    assert not goal.done()
    cell.wait_until_still()
    assert cell.speed() < 1e-3


def test_arm_cell_adds_and_removes_objects_of_the_scene(cell: ArmCell) -> None:
    scenes = cell.harness.record("/monitored_planning_scene", msg.moveit_msgs.PlanningScene)
    cell.add_box("box", (0.1, 0.2, 0.3), (0.0, 0.0, 2.0), "arm_link_0")
    cell.harness.spin_until(lambda: scenes and scenes.last.world.collision_objects)
    (box,) = scenes.last.world.collision_objects
    assert box.id == "box"
    np.testing.assert_array_equal(box.primitives[0].dimensions, [0.1, 0.2, 0.3])
    cell.remove_object("box")
    cell.harness.spin_until(lambda: not scenes.last.world.collision_objects)


def test_arm_cell_is_closed_when_its_robot_is_unknown() -> None:
    with pytest.raises(Exception, match="no robot"):
        ArmCell("no_such_arm")
