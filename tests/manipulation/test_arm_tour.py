"""An arm on a driving robot: the scene stays where it is, tolerances of goals count, jogs go where they are told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.harness.arms import ARM_NODES, ArmCell

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.errors import InputError, RoboyardError
from roboyard.geometry import SE3
from roboyard.manipulation.collision import box_obstacle
from roboyard.manipulation.evaluation.motion import JointJogMetrics
from roboyard.manipulation.nodes import ArmTourNode
from roboyard.manipulation.planning import GoalUnreachable, PoseGoal
from roboyard.manipulation.planning.goal_sampling import draw_jog
from roboyard.manipulation.planning.goals import goal_states
from roboyard.manipulation.scene import PlanningScene
from roboyard.messages import msg
from roboyard.messages.convert import pose_to_se3
from roboyard.scenarios import Run

KINDS = msg.moveit_msgs


@pytest.fixture(scope="module")
def scene() -> PlanningScene:
    return PlanningScene.of(load_joint_groups("scitos_arm"))


def test_pose_goal_of_five_joints_is_met_within_its_tolerance(scene: PlanningScene) -> None:
    q = scene.group.pose("ahead")
    T = SE3.from_matrix(scene.chain.forward(q))
    off = SE3.from_xyz_rpy(rpy=(0.0, 0.0, 4e-3)) @ SE3(T.rotation)
    asked = SE3(off.rotation, T.translation)
    with pytest.raises(GoalUnreachable):
        goal_states(scene, PoseGoal(asked), q)
    with pytest.raises(GoalUnreachable):
        goal_states(scene, PoseGoal(asked, tolerance=1e-3, turn_tolerance=1e-3), q)
    for found in goal_states(scene, PoseGoal(asked, tolerance=1e-3, turn_tolerance=5e-3), q):
        there = SE3.from_matrix(scene.chain.forward(found))
        assert there.distance(asked) <= 1e-3
        assert there.angle_to(asked) <= 5e-3


def test_drawn_jogs_stay_within_limits_and_clear(scene: PlanningScene) -> None:
    rng = np.random.default_rng(3)
    wall = scene.with_obstacles([box_obstacle("wall", (0.1, 2.0, 2.0), (0.6, 0.0, 1.0))]).with_margin(0.05)
    q = wall.group.pose("folded")
    for _ in range(50):
        jog = draw_jog(wall, q, rng)
        end = q.copy()
        end[jog.joint] += jog.speed * (jog.seconds + 0.5)
        assert wall.chain.is_within_limits(end)
        assert wall.free_line(q, end)
    boxed = scene.with_obstacles([box_obstacle("box", (3.0, 3.0, 3.0), (0.0, 0.0, 1.5))])
    with pytest.raises(InputError, match="no joint can be driven"):
        draw_jog(boxed, q, rng)


class OneJointArm:
    """The truth about an arm of one joint."""

    def joint_names(self) -> tuple[str, ...]:
        return ("a",)


@pytest.mark.parametrize("off", [0.0, 0.02])
def test_jog_metrics_integrate_the_commands(off: float) -> None:
    """A joint that gets to 0.3 rad/s with 0.5 rad/s², commanded for a second, and 20 mrad off at the end."""
    found = JointJogMetrics("/move_velocity", "", OneJointArm())  # type: ignore[arg-type]
    take = found.subscriptions()
    position = speed = 0.0
    for k in range(400):
        time = 0.01 * k
        if 0.5 <= time < 1.5 and k % 5 == 0:
            take["/move_velocity"](msg.IDAndFloat(id=1, value=0.3), round(time * 1e9))
        wanted = 0.3 if 0.5 <= time < 1.45 + 0.5 else 0.0
        before = speed
        speed += min(max(wanted - speed, -0.005), 0.005)
        position += 0.005 * (speed + before)
        shown = position + (off if time > 2.5 else 0.0)
        state = msg.JointState(name=["a"], position=np.array([shown]), velocity=np.array([speed]))
        take["/joint_states"](state, round(time * 1e9))
    result = found.values()
    assert result["jogs"] == 1
    assert result["jog_error_max"] == pytest.approx(off, abs=2e-3)
    assert result["jog_stop_max"] == pytest.approx(0.5 + 0.6, abs=0.05)


@pytest.mark.parametrize(
    ("given", "what"), [({"places": (1.0,)}, "places"), ({"regions": (1.0,) * 6, "places": (1.0,) * 3}, "regions")]
)
def test_arm_tour_refuses_bad_parameters(given: dict[str, Any], what: str) -> None:
    with Run("corridor", record=False) as run:
        robot = run.add_robot("scitos_arm", pose=(24.0, 5.0, 0.0), nodes=["joint_states"])
        with pytest.raises(RoboyardError, match=what):
            robot.add_node(ArmTourNode(groups=robot.groups, world=run.world, **given), "tour")


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
        held = scenes.last.robot_state.attached_collision_objects[0].object
        np.testing.assert_allclose(pose_to_se3(held.pose).translation, (0.0, 0.0, 0.1), atol=2e-3)
        drive(0.8)
        expected = tool() @ SE3(translation=(0.0, 0.0, 0.1))
        attach(KINDS.CollisionObject.REMOVE)
        left = {one.id: one for one in scenes.last.world.collision_objects}["box"]
        assert pose_to_se3(left.pose).distance(expected) < 2e-3
        assert pose_to_se3(left.pose).distance(T_box) > 0.05
