"""The move node: goals in MoveIt's messages, the scene, what comes into the way, bad input, saved states."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.harness.arms import ARM_NODES, ArmCell
from tests.harness.bus import Goal

from roboyard.bus.actions import GoalRejectedError
from roboyard.geometry import SE3
from roboyard.messages import action, msg, srv
from roboyard.messages.convert import pose_to_msg, pose_to_se3

KINDS = msg.moveit_msgs
CODES = KINDS.MoveItErrorCodes
STATUS = "/move_group/status"


@pytest.fixture(scope="module")
def cell() -> Iterator[ArmCell]:
    with ArmCell("youbot_arm", (*ARM_NODES, "move_group"), seed=3) as cell:
        yield cell


def pose_goal(cell: ArmCell, T: SE3, frame: str = "arm_link_0", **more: Any) -> Any:
    return cell.pose_goal(T, frame, **more)


def sweep(cell: ArmCell) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Joints from which the arm turns about its foot, a place past the middle of that, and joints where it ends."""
    out = cell.pose("upright") + np.array([0.0, 0.8, 0.4, 0.0, 0.0])
    rotation = np.array([1.2, 0.0, 0.0, 0.0, 0.0])
    return out - rotation, cell.chain.forward(out + rotation / 4.0)[:3, 3], out + rotation


def start_sweep(cell: ArmCell, **more: Any) -> Goal:
    """Move to where a sweep begins, send the goal at its end, and put a box into its way once the arm has begun."""
    start, position, end = sweep(cell)
    assert cell.move(cell.joint_goal(start)).succeeded
    cell.harness.published(STATUS).clear()
    goal = cell.start_move(cell.joint_goal(end), **more)
    cell.run.run_for(0.45)
    cell.add_box("intruder", (0.08, 0.08, 0.3), position, "arm_link_0")
    return goal


def remove(cell: ArmCell, name: str) -> None:
    cell.remove_object(name)
    cell.run.run_for(0.02)


def test_move_reaches_named_joint_and_pose_goals(cell: ArmCell) -> None:
    assert cell.move(cell.named_goal("view")).succeeded
    np.testing.assert_allclose(cell.joints(), cell.pose("view"), atol=0.01)
    q = cell.pose("pick") + np.array([0.3, 0.0, 0.1, -0.1, 0.2])
    assert cell.move(cell.joint_goal(q)).succeeded
    np.testing.assert_allclose(cell.joints(), q, atol=0.01)
    q2 = q - [0.5, 0.1, 0.0, 0.0, 0.1]
    T = cell.tool_pose(q2)
    assert cell.move(pose_goal(cell, T)).succeeded
    assert cell.tool_pose().distance(T) < 2e-3


def test_move_with_a_free_axis_reaches_the_pose(cell: ArmCell) -> None:
    T = cell.tool_pose(cell.pose("pick"))
    rotated_pose = T @ SE3.from_xyz_rpy(rpy=(0.0, 0.0, 1.0))
    assert cell.move(pose_goal(cell, rotated_pose, turn_tolerances=(0.01, 0.01, math.pi))).succeeded
    assert cell.tool_pose().distance(T) < 2e-3


def test_lin_planner_moves_the_tool_straight(cell: ArmCell) -> None:
    high = cell.pose("pick")
    assert cell.move(cell.joint_goal(high)).succeeded
    T = cell.tool_pose()
    low = T @ SE3.from_xyz_rpy((0.0, 0.0, 0.04))
    goal = cell.move(pose_goal(cell, low), planner_id="LIN")
    assert goal.succeeded, goal.error_message
    points = [point.positions for point in goal.result.planned_trajectory.joint_trajectory.points]
    for q in points:
        off = (T.inverse() @ cell.tool_pose(q)).translation
        assert np.hypot(off[0], off[1]) < 5e-4
    assert cell.tool_pose().distance(low) < 2e-3
    assert "no line" in str(cell.move(cell.named_goal("view"), planner_id="LIN").error)


def test_plan_only_goal_does_not_move_the_arm(cell: ArmCell) -> None:
    before = cell.joints()
    goal = cell.move(cell.named_goal("upright"), options={"plan_only": True})
    assert goal.succeeded
    assert len(goal.result.planned_trajectory.joint_trajectory.points) > 2
    np.testing.assert_allclose(cell.joints(), before, atol=3e-3)  # it came to rest just now


BAD: dict[str, Any] = {
    "no goal": (lambda c: (), {}, "no goal"),
    "nothing in it": (lambda c: (KINDS.Constraints(),), {}, "0 joint, 0 position"),
    "unknown pose": (lambda c: (c.named_goal("homme"),), {}, "no pose 'homme'"),
    "unknown group": (lambda c: (c.named_goal("view"),), {"group_name": "legs"}, "group 'legs'"),
    "unknown planner": (lambda c: (c.named_goal("view"),), {"planner_id": "RRT"}, "no planner 'RRT'"),
    "not a number": (lambda c: (c.joint_goal([0.1, math.nan, 0, 0, 0]),), {}, "is no number"),
    "missing joint": (
        lambda c: (KINDS.Constraints(joint_constraints=c.joint_goal([0.1] * 5).joint_constraints[:3]),),
        {},
        "no position for",
    ),
    "unknown frame": (lambda c: (pose_goal(c, SE3(), "moon"),), {}, "moon"),
    "unknown link": (lambda c: (pose_goal(c, SE3(), link="toe"),), {}, "no tool 'toe'"),
    "infinite scaling": (
        lambda c: (c.named_goal("view"),), {"max_velocity_scaling_factor": math.inf}, "scaling factor",
    ),
    "negative time": (lambda c: (c.named_goal("view"),), {"allowed_planning_time": -1.0}, "allowed_planning_time"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_invalid_goal_is_rejected_without_motion(cell: ArmCell, name: str) -> None:
    constraints, settings, words = BAD[name]
    before = cell.joints()
    goal = cell.move(*constraints(cell), **settings)
    assert isinstance(goal.error, GoalRejectedError)
    assert words in str(goal.error)
    cell.run.run_for(0.2)
    np.testing.assert_allclose(cell.joints(), before, atol=3e-3)  # it came to rest just now


def test_unreachable_goal_fails_with_its_error_code(cell: ArmCell) -> None:
    before = cell.joints()
    unreachable = cell.move(pose_goal(cell, SE3(translation=(3.0, 0.0, 0.2))))
    assert unreachable.result.error_code.val == CODES.NO_IK_SOLUTION
    assert "reach" in unreachable.result.error_code.message
    outside = cell.move(cell.joint_goal([9.0, 0, 0, 0, 0]))
    assert outside.result.error_code.val == CODES.GOAL_STATE_INVALID
    np.testing.assert_allclose(cell.joints(), before, atol=3e-3)  # it came to rest just now


def test_collision_objects_are_added_and_removed_by_message(cell: ArmCell) -> None:
    assert cell.move(cell.named_goal("upright")).succeeded
    tip = cell.chain.forward(cell.pose("pick"))[:3, 3]
    cell.add_box("thing", (0.1, 0.1, 0.1), tip, "arm_link_0")
    cell.run.run_for(0.02)
    assert cell.move(cell.named_goal("pick")).result.error_code.val == CODES.GOAL_IN_COLLISION
    response = cell.harness.call("/get_planning_scene", srv.moveit_msgs.GetPlanningScene)
    assert [one.id for one in response.scene.world.collision_objects] == ["thing"]
    np.testing.assert_allclose(pose_to_se3(response.scene.world.collision_objects[0].pose).translation, tip, atol=1e-9)
    remove(cell, "thing")
    assert cell.move(cell.named_goal("pick")).succeeded


def test_intruding_object_stops_the_arm_which_replans(cell: ArmCell) -> None:
    moving = cell.harness.wait_for(start_sweep(cell))
    assert moving.succeeded
    states = [message.state for message in cell.harness.published(STATUS).messages]
    assert states == ["planning", "executing", "stopping", "waiting", "planning", "executing", "succeeded"]
    remove(cell, "intruder")


def test_intruding_object_fails_the_goal_without_replanning(cell: ArmCell) -> None:
    moving = cell.harness.wait_for(start_sweep(cell, options={"replan": True, "replan_attempts": 0}))
    assert moving.result.error_code.val == CODES.MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE
    assert "intruder" in moving.result.error_code.message
    remove(cell, "intruder")


def test_canceled_goal_stops_the_arm(cell: ArmCell) -> None:
    assert cell.move(cell.named_goal("upright")).succeeded
    moving = cell.start_move(cell.named_goal("pick"))
    cell.run.run_for(0.6)
    moving.cancel()
    cell.harness.wait_for(moving, timeout=5.0)
    assert moving.result.error_code.val == CODES.PREEMPTED
    cell.run.run_for(0.5)
    stopped_joints = cell.joints()
    cell.run.run_for(0.5)
    np.testing.assert_allclose(cell.joints(), stopped_joints, atol=1e-3)
    assert np.abs(stopped_joints - cell.pose("pick")).max() > 0.1


def test_newer_goal_preempts_the_older(cell: ArmCell) -> None:
    assert cell.move(cell.named_goal("upright")).succeeded
    older = cell.start_move(cell.named_goal("pick"))
    cell.run.run_for(0.6)
    newer = cell.move(cell.named_goal("view"))
    assert newer.succeeded
    assert not older.succeeded
    np.testing.assert_allclose(cell.joints(), cell.pose("view"), atol=0.01)


def test_execute_trajectory_follows_a_planned_trajectory(cell: ArmCell) -> None:
    planned = cell.move(cell.named_goal("pick"), options={"plan_only": True}).result.planned_trajectory
    goal = cell.harness.send_goal("/execute_trajectory", action.ExecuteTrajectory, trajectory=planned)
    assert goal.succeeded
    np.testing.assert_allclose(cell.joints(), cell.pose("pick"), atol=0.01)
    second_goal = cell.harness.send_goal("/execute_trajectory", action.ExecuteTrajectory, trajectory=planned)
    assert second_goal.result.error_code.val == CODES.INVALID_MOTION_PLAN  # it begins elsewhere


def test_cartesian_path_ik_and_fk_services_agree(cell: ArmCell) -> None:
    kinds = srv.moveit_msgs
    assert cell.move(cell.joint_goal(sweep(cell)[0] + np.array([0.0, -0.2, 0.7, 0.4, 0.0]))).succeeded
    T = cell.tool_pose()
    up = SE3(T.rotation, T.translation + np.array([0.0, 0.0, 0.03]))
    request = kinds.GetCartesianPath.Request(waypoints=[pose_to_msg(up)], avoid_collisions=True)
    response = cell.harness.call("/compute_cartesian_path", kinds.GetCartesianPath, request)
    assert response.fraction == 1.0
    last = response.solution.joint_trajectory.points[-1].positions
    assert cell.tool_pose(last).distance(up) < 1e-4
    ik_request = kinds.GetPositionIK.Request()
    ik_request.ik_request.pose_stamped.pose, ik_request.ik_request.avoid_collisions = pose_to_msg(T), True
    found = cell.harness.call("/compute_ik", kinds.GetPositionIK, ik_request)
    assert found.error_code.val == CODES.SUCCESS
    assert cell.tool_pose(found.solution.joint_state.position).distance(T) < 1e-6
    fk_request = kinds.GetPositionFK.Request(fk_link_names=[cell.robot.groups.group().tip])
    fk_response = cell.harness.call("/compute_fk", kinds.GetPositionFK, fk_request)
    assert pose_to_se3(fk_response.pose_stamped[0].pose).distance(T) < 1e-3
