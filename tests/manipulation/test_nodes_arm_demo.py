"""An arm on a driving robot: the scene stays where it is, tolerances of goals count, jogs go where they are told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.harness.arms import ARM_NODES, ArmCell

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.errors import InputError, RoboyardError
from roboyard.geometry import SE3
from roboyard.manipulation import PoseGoal, box_obstacle
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.errors import GoalUnreachableError
from roboyard.manipulation.evaluation.motion import JointJogMetrics
from roboyard.manipulation.nodes import MobileArmDemoNode
from roboyard.manipulation.planning.goal_sampling import sample_jog
from roboyard.manipulation.planning.goals import find_goal_states
from roboyard.messages import msg
from roboyard.messages.convert import pose_to_se3
from roboyard.scenarios import Run

KINDS = msg.moveit_msgs


@pytest.fixture(scope="module")
def scene() -> PlanningScene:
    return PlanningScene.create(load_joint_groups("scitos_arm"))


def test_pose_goal_of_five_joints_is_met_within_its_tolerance(scene: PlanningScene) -> None:
    q = scene.group.pose("ahead")
    T = SE3.from_matrix(scene.chain.forward(q))
    off = SE3.from_xyz_rpy(rpy=(0.0, 0.0, 4e-3)) @ SE3(T.rotation)
    goal_pose = SE3(off.rotation, T.translation)
    with pytest.raises(GoalUnreachableError):
        find_goal_states(scene, PoseGoal(goal_pose), q)
    with pytest.raises(GoalUnreachableError):
        find_goal_states(scene, PoseGoal(goal_pose, tolerance=1e-3, orientation_tolerance=1e-3), q)
    for found in find_goal_states(scene, PoseGoal(goal_pose, tolerance=1e-3, orientation_tolerance=5e-3), q):
        reached_pose = SE3.from_matrix(scene.chain.forward(found))
        assert reached_pose.distance(goal_pose) <= 1e-3
        assert reached_pose.angle_to(goal_pose) <= 5e-3


def test_drawn_jogs_stay_within_limits_and_clear(scene: PlanningScene) -> None:
    rng = np.random.default_rng(3)
    wall = scene.with_obstacles([box_obstacle("wall", (0.1, 2.0, 2.0), (0.6, 0.0, 1.0))]).with_margin(0.05)
    q = wall.group.pose("folded")
    for _ in range(50):
        jog = sample_jog(wall, q, rng)
        end = q.copy()
        end[jog.joint_index] += jog.speed * (jog.duration + 0.5)
        assert wall.chain.is_within_limits(end)
        assert wall.is_line_free(q, end)
    boxed = scene.with_obstacles([box_obstacle("box", (3.0, 3.0, 3.0), (0.0, 0.0, 1.5))])
    with pytest.raises(InputError, match="no joint can be jogged"):
        sample_jog(boxed, q, rng)


class OneJointArm:
    """The truth about an arm of one joint."""

    def joint_names(self) -> tuple[str, ...]:
        return ("a",)


@pytest.mark.parametrize("off", [0.0, 0.02])
def test_jog_metrics_integrate_the_commands(off: float) -> None:
    """A joint that gets to 0.3 rad/s with 0.5 rad/s², commanded for a second, and 20 mrad off at the end."""
    found = JointJogMetrics("/move_velocity", "", OneJointArm())  # type: ignore[arg-type]
    handlers = found.subscriptions()
    position = speed = 0.0
    for k in range(400):
        time = 0.01 * k
        if 0.5 <= time < 1.5 and k % 5 == 0:
            handlers["/move_velocity"](msg.IDAndFloat(id=1, value=0.3), round(time * 1e9))
        commanded_speed = 0.3 if 0.5 <= time < 1.45 + 0.5 else 0.0
        before = speed
        speed += min(max(commanded_speed - speed, -0.005), 0.005)
        position += 0.005 * (speed + before)
        measured_position = position + (off if time > 2.5 else 0.0)
        state = msg.JointState(name=["a"], position=np.array([measured_position]), velocity=np.array([speed]))
        handlers["/joint_states"](state, round(time * 1e9))
    result = found.values()
    assert result["jogs"] == 1
    assert result["jog_error_max"] == pytest.approx(off, abs=2e-3)
    assert result["jog_stop_max"] == pytest.approx(0.5 + 0.6, abs=0.05)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"base_poses": (1.0,)}, "base_poses"), ({"regions": (1.0,) * 6, "base_poses": (1.0,) * 3}, "regions")],
)
def test_mobile_arm_demo_refuses_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    with Run("corridor", record=False) as run:
        robot = run.add_robot("scitos_arm", pose=(24.0, 5.0, 0.0), nodes=["joint_states"])
        with pytest.raises(RoboyardError, match=message):
            robot.add_node(MobileArmDemoNode(groups=robot.groups, world=run.world, **parameters), "tour")


def test_objects_of_the_scene_stay_in_odom_while_the_robot_drives() -> None:
    """In odom: a box is taken along to another place and left there, without a plan in between."""
    nodes = (*ARM_NODES, "drive", "odometry", "arm_trajectory", "move_group")
    with ArmCell("scitos", nodes, seed=1) as cell:
        harness, tip = cell.harness, cell.robot.groups.group().tip
        scenes = harness.published("/monitored_planning_scene")

        def tool() -> SE3:
            return cell.run.bus.transforms.lookup("odom", tip)

        def drive(seconds: float) -> None:
            twist = msg.Twist(linear=msg.Vector3(x=0.2), angular=msg.Vector3(z=0.5))
            for _ in range(round(seconds / 0.1)):
                harness.publish("/cmd_vel_out", twist)
                cell.run.run_for(0.1)
            cell.run.run_for(0.4)

        def attach(operation: int, link: str = "") -> None:
            box = KINDS.CollisionObject(id="box", operation=operation)
            message = KINDS.AttachedCollisionObject(link_name=link, object=box)
            harness.publish("/attached_collision_object", message)
            cell.run.run_for(0.1)

        drive(0.8)
        T_box = tool() @ SE3(translation=(0.0, 0.0, 0.1))
        cell.add_box("box", (0.03, 0.03, 0.03), T_box, "odom")
        attach(KINDS.CollisionObject.ADD, tip)
        attached_object = scenes.last.robot_state.attached_collision_objects[0].object
        np.testing.assert_allclose(pose_to_se3(attached_object.pose).translation, (0.0, 0.0, 0.1), atol=2e-3)
        drive(0.8)
        expected = tool() @ SE3(translation=(0.0, 0.0, 0.1))
        attach(KINDS.CollisionObject.REMOVE)
        left = {one.id: one for one in scenes.last.world.collision_objects}["box"]
        assert pose_to_se3(left.pose).distance(expected) < 2e-3
        assert pose_to_se3(left.pose).distance(T_box) > 0.05
