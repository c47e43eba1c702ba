"""The move node: goals in MoveIt's messages, the scene, what comes into the way, bad input, saved states."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from roboyard.bus import Node
from roboyard.bus.actions.client import GoalRejectedError
from roboyard.geometry import SE3
from roboyard.messages import action, msg, srv
from roboyard.messages.convert import header, pose_to_msg, pose_to_se3
from roboyard.scenarios.run import Run

KINDS = msg.moveit_msgs
CODES = KINDS.MoveItErrorCodes


class Client(Node):
    """Asks."""

    def setup(self) -> None:
        self.move = self.action_client("move_action", action.MoveGroup)
        self.execute = self.action_client("execute_trajectory", action.ExecuteTrajectory)
        self.objects = self.publisher("collision_object", KINDS.CollisionObject)
        self.states: list[str] = []
        self.subscribe("move_group/status", msg.ArmStatus, lambda m: self.states.append(m.state))

    def call(self, run: Run, name: str, kind: Any, request: Any) -> Any:
        future = self.service_client(name, kind).call(request)
        run.until(future.done, timeout=5.0)
        return future.result


class Cell:
    """A youBot's arm with the move node, and who asks it."""

    def __init__(self) -> None:
        self.run = Run("empty", seed=3)
        self.robot = self.run.add("youbot_arm", nodes=["joint_states", "robot_state", "arm", "move_group"])
        self.client: Any = self.robot.add_node(Client(), "client")
        self.chain = self.robot.groups.chain()
        self.run.run_for(0.3)

    def joints(self) -> np.ndarray:
        names = self.robot.hardware.joint_names
        return self.robot.hardware.read().position[[names.index(joint) for joint in self.chain.joints]]

    def send(self, *constraints: Any, **settings: Any) -> Any:
        goal = action.MoveGroup.Goal()
        goal.request.goal_constraints = list(constraints)
        options = settings.pop("options", {})
        for key, value in settings.items():
            setattr(goal.request, key, value)
        for key, value in options.items():
            setattr(goal.planning_options, key, value)
        return self.client.move.send(goal)

    def go(self, *constraints: Any, **settings: Any) -> Any:
        goal = self.send(*constraints, **settings)
        self.run.until(goal.done, timeout=30.0)
        return goal

    def named(self, name: str) -> Any:
        return KINDS.Constraints(name=name)

    def pose(self, T: SE3, frame: str = "arm_link_0", link: str = "", **turn: float) -> Any:
        place = KINDS.PositionConstraint(header=header(frame, 0), link_name=link)
        place.constraint_region.primitives = [msg.SolidPrimitive(type=2, dimensions=np.array([1e-3]))]
        place.constraint_region.primitive_poses = [pose_to_msg(T)]
        orientation = KINDS.OrientationConstraint(
            header=header(frame, 0), orientation=pose_to_msg(T).orientation, link_name=link,
            absolute_x_axis_tolerance=turn.get("x", 0.01), absolute_y_axis_tolerance=turn.get("y", 0.01),
            absolute_z_axis_tolerance=turn.get("z", 0.01),
        )  # fmt: skip
        return KINDS.Constraints(position_constraints=[place], orientation_constraints=[orientation])

    def angles(self, q: Any) -> Any:
        joints = [
            KINDS.JointConstraint(joint_name=n, position=float(v)) for n, v in zip(self.chain.joints, q, strict=True)
        ]
        return KINDS.Constraints(joint_constraints=joints)

    def sweep(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Joints from which the arm turns about its foot, a place past the middle of that, and joints where it ends."""
        out = self.robot.groups.group().pose("upright") + np.array([0.0, 0.8, 0.4, 0.0, 0.0])
        turn = np.array([1.2, 0.0, 0.0, 0.0, 0.0])
        return out - turn, self.chain.forward(out + turn / 4.0)[:3, 3], out + turn

    def box(self, name: str, xyz: Any, size: Any = (0.1, 0.1, 0.1), operation: int = 0) -> None:
        message = KINDS.CollisionObject(header=header("arm_link_0", 0), id=name, pose=pose_to_msg(SE3(translation=xyz)))
        message.primitives = [msg.SolidPrimitive(type=1, dimensions=np.array(size))]
        message.operation = operation
        self.client.objects.publish(message)
        self.run.run_for(0.02)


@pytest.fixture(scope="module")
def cell() -> Iterator[Cell]:
    made = Cell()
    yield made
    made.run.close()


def test_it_goes_to_named_poses_joints_and_poses_of_the_tool(cell: Cell) -> None:
    assert cell.go(cell.named("view")).succeeded
    np.testing.assert_allclose(cell.joints(), cell.robot.groups.group().pose("view"), atol=0.01)
    q = cell.robot.groups.group().pose("pick") + np.array([0.3, 0.0, 0.1, -0.1, 0.2])
    assert cell.go(cell.angles(q)).succeeded
    np.testing.assert_allclose(cell.joints(), q, atol=0.01)
    q2 = q - [0.5, 0.1, 0.0, 0.0, 0.1]
    T = SE3.from_matrix(cell.chain.forward(q2))
    assert cell.go(cell.pose(T)).succeeded
    assert SE3.from_matrix(cell.chain.forward(cell.joints())).distance(T) < 2e-3


def test_a_turn_that_is_left_open_and_a_target_beside_the_tool(cell: Cell) -> None:
    T = SE3.from_matrix(cell.chain.forward(cell.robot.groups.group().pose("pick")))
    turned = T @ SE3.from_xyz_rpy(rpy=(0.0, 0.0, 1.0))
    assert cell.go(cell.pose(turned, z=math.pi)).succeeded
    assert SE3.from_matrix(cell.chain.forward(cell.joints())).distance(T) < 2e-3


def test_the_tool_goes_straight_with_lin(cell: Cell) -> None:
    high = cell.robot.groups.group().pose("pick")
    assert cell.go(cell.angles(high)).succeeded
    T = SE3.from_matrix(cell.chain.forward(cell.joints()))
    low = T @ SE3.from_xyz_rpy((0.0, 0.0, 0.04))
    goal = cell.go(cell.pose(low), planner_id="LIN")
    assert goal.succeeded, goal.reason
    points = [point.positions for point in goal.result.planned_trajectory.joint_trajectory.points]
    for q in points:
        off = (T.inverse() @ SE3.from_matrix(cell.chain.forward(q))).translation
        assert np.hypot(off[0], off[1]) < 5e-4
    assert SE3.from_matrix(cell.chain.forward(cell.joints())).distance(low) < 2e-3
    assert "no line" in str(cell.go(cell.named("view"), planner_id="LIN").error)


def test_it_only_plans_when_asked_to(cell: Cell) -> None:
    before = cell.joints()
    goal = cell.go(cell.named("upright"), options={"plan_only": True})
    assert goal.succeeded
    assert len(goal.result.planned_trajectory.joint_trajectory.points) > 2
    np.testing.assert_allclose(cell.joints(), before, atol=3e-3)  # it came to rest just now


BAD: dict[str, Any] = {
    "no goal": (lambda c: (), {}, "no goal"),
    "nothing in it": (lambda c: (KINDS.Constraints(),), {}, "0 joint, 0 position"),
    "unknown pose": (lambda c: (c.named("homme"),), {}, "no pose 'homme'"),
    "unknown group": (lambda c: (c.named("view"),), {"group_name": "legs"}, "group 'legs'"),
    "unknown planner": (lambda c: (c.named("view"),), {"planner_id": "RRT"}, "no planner 'RRT'"),
    "not a number": (lambda c: (c.angles([0.1, math.nan, 0, 0, 0]),), {}, "is no number"),
    "missing joint": (
        lambda c: (KINDS.Constraints(joint_constraints=c.angles([0.1] * 5).joint_constraints[:3]),),
        {},
        "no position for",
    ),
    "unknown frame": (lambda c: (c.pose(SE3(), "moon"),), {}, "moon"),
    "unknown link": (lambda c: (c.pose(SE3(), link="toe"),), {}, "no tool 'toe'"),
    "infinite scaling": (lambda c: (c.named("view"),), {"max_velocity_scaling_factor": math.inf}, "scaling factor"),
    "negative time": (lambda c: (c.named("view"),), {"allowed_planning_time": -1.0}, "allowed_planning_time"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_makes_no_sense_is_refused_and_the_arm_does_not_move(cell: Cell, name: str) -> None:
    constraints, settings, words = BAD[name]
    before = cell.joints()
    goal = cell.go(*constraints(cell), **settings)
    assert isinstance(goal.error, GoalRejectedError)
    assert words in str(goal.error)
    cell.run.run_for(0.2)
    np.testing.assert_allclose(cell.joints(), before, atol=3e-3)  # it came to rest just now


def test_what_cannot_be_reached_is_given_up_with_its_code(cell: Cell) -> None:
    before = cell.joints()
    far = cell.go(cell.pose(SE3(translation=(3.0, 0.0, 0.2))))
    assert far.result.error_code.val == CODES.NO_IK_SOLUTION
    assert "reach" in far.result.error_code.message
    outside = cell.go(cell.angles([9.0, 0, 0, 0, 0]))
    assert outside.result.error_code.val == CODES.GOAL_STATE_INVALID
    np.testing.assert_allclose(cell.joints(), before, atol=3e-3)  # it came to rest just now


def test_objects_come_and_go_by_message(cell: Cell) -> None:
    assert cell.go(cell.named("upright")).succeeded
    tip = cell.chain.forward(cell.robot.groups.group().pose("pick"))[:3, 3]
    cell.box("thing", tip)
    assert cell.go(cell.named("pick")).result.error_code.val == CODES.GOAL_IN_COLLISION
    answer = cell.client.call(
        cell.run, "get_planning_scene", srv.moveit_msgs.GetPlanningScene, srv.moveit_msgs.GetPlanningScene.Request()
    )
    assert [one.id for one in answer.scene.world.collision_objects] == ["thing"]
    np.testing.assert_allclose(pose_to_se3(answer.scene.world.collision_objects[0].pose).translation, tip, atol=1e-9)
    cell.box("thing", (0, 0, 0), operation=KINDS.CollisionObject.REMOVE)
    assert cell.go(cell.named("pick")).succeeded


def test_what_comes_into_the_way_stops_the_arm_and_it_goes_round(cell: Cell) -> None:
    start, middle, goal = cell.sweep()
    assert cell.go(cell.angles(start)).succeeded
    cell.client.states.clear()
    moving = cell.send(cell.angles(goal))
    cell.run.run_for(0.45)
    cell.box("intruder", middle, (0.08, 0.08, 0.3))
    cell.run.until(moving.done, timeout=30.0)
    assert moving.succeeded
    assert cell.client.states == ["plans", "moves", "stops", "waits", "plans", "moves", "succeeded"]
    cell.box("intruder", (0, 0, 0), operation=KINDS.CollisionObject.REMOVE)


def test_without_leave_to_plan_anew_it_gives_up(cell: Cell) -> None:
    start, middle, goal = cell.sweep()
    assert cell.go(cell.angles(start)).succeeded
    moving = cell.send(cell.angles(goal), options={"replan": True, "replan_attempts": 0})
    cell.run.run_for(0.45)
    cell.box("intruder", middle, (0.08, 0.08, 0.3))
    cell.run.until(moving.done, timeout=30.0)
    assert moving.result.error_code.val == CODES.MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE
    assert "intruder" in moving.result.error_code.message
    cell.box("intruder", (0, 0, 0), operation=KINDS.CollisionObject.REMOVE)


def test_cancelling_stops_the_arm(cell: Cell) -> None:
    assert cell.go(cell.named("upright")).succeeded
    moving = cell.send(cell.named("pick"))
    cell.run.run_for(0.6)
    moving.cancel()
    cell.run.until(moving.done, timeout=5.0)
    assert moving.result.error_code.val == CODES.PREEMPTED
    cell.run.run_for(0.5)
    still = cell.joints()
    cell.run.run_for(0.5)
    np.testing.assert_allclose(cell.joints(), still, atol=1e-3)
    assert np.abs(still - cell.robot.groups.group().pose("pick")).max() > 0.1


def test_a_newer_goal_takes_the_place_of_an_older_one(cell: Cell) -> None:
    assert cell.go(cell.named("upright")).succeeded
    older = cell.send(cell.named("pick"))
    cell.run.run_for(0.6)
    newer = cell.go(cell.named("view"))
    assert newer.succeeded
    assert not older.succeeded
    np.testing.assert_allclose(cell.joints(), cell.robot.groups.group().pose("view"), atol=0.01)


def test_a_planned_trajectory_is_executed_as_it_is(cell: Cell) -> None:
    planned = cell.go(cell.named("pick"), options={"plan_only": True}).result.planned_trajectory
    goal = cell.client.execute.send(action.ExecuteTrajectory.Goal(trajectory=planned))
    cell.run.until(goal.done, timeout=20.0)
    assert goal.succeeded
    np.testing.assert_allclose(cell.joints(), cell.robot.groups.group().pose("pick"), atol=0.01)
    again = cell.client.execute.send(action.ExecuteTrajectory.Goal(trajectory=planned))
    cell.run.until(again.done, timeout=20.0)
    assert again.result.error_code.val == CODES.INVALID_MOTION_PLAN  # it begins elsewhere


def test_straight_lines_and_kinematics_are_services(cell: Cell) -> None:
    kinds = srv.moveit_msgs
    assert cell.go(cell.angles(cell.sweep()[0] + np.array([0.0, -0.2, 0.7, 0.4, 0.0]))).succeeded
    T = SE3.from_matrix(cell.chain.forward(cell.joints()))
    up = SE3(T.rotation, T.translation + np.array([0.0, 0.0, 0.03]))
    request = kinds.GetCartesianPath.Request(waypoints=[pose_to_msg(up)], avoid_collisions=True)
    answer = cell.client.call(cell.run, "compute_cartesian_path", kinds.GetCartesianPath, request)
    assert answer.fraction == 1.0
    last = answer.solution.joint_trajectory.points[-1].positions
    assert SE3.from_matrix(cell.chain.forward(last)).distance(up) < 1e-4
    ask = kinds.GetPositionIK.Request()
    ask.ik_request.pose_stamped.pose, ask.ik_request.avoid_collisions = pose_to_msg(T), True
    found = cell.client.call(cell.run, "compute_ik", kinds.GetPositionIK, ask)
    assert found.error_code.val == CODES.SUCCESS
    assert SE3.from_matrix(cell.chain.forward(found.solution.joint_state.position)).distance(T) < 1e-6
    where = kinds.GetPositionFK.Request(fk_link_names=[cell.robot.groups.group().tip])
    there = cell.client.call(cell.run, "compute_fk", kinds.GetPositionFK, where)
    assert pose_to_se3(there.pose_stamped[0].pose).distance(T) < 1e-3
