"""The navigator on a bus: goals of every kind, preemption, cancelling, and everything that must be refused."""

import math

import numpy as np
import pytest
from tests.harness.bus import check_snapshot_continues
from tests.navigation.navigator_harness import START, NavigatorHarness, goal_pose

from roboyard.bus import NodeError
from roboyard.control.drive_config import AckermannDriveConfig
from roboyard.errors import ConfigError
from roboyard.messages import action, msg, srv
from roboyard.messages.convert import path_to_msg
from roboyard.messages.time import duration_to_msg
from roboyard.navigation.nodes import GoalSequenceNode


def test_goal_is_reached_with_feedback_and_status() -> None:
    with NavigatorHarness() as harness:
        robot = harness.robot
        goal = harness.navigate(4.0, 1.0, 1.0, timeout=40.0)
        assert goal.succeeded
        assert math.dist(robot.pose.xy, (4.0, 1.0)) < 0.12
        left = [item.distance_remaining for item in goal.feedback if math.isfinite(item.distance_remaining)]
        assert left[0] > 2.5 > left[-1]
        states = [status.state for status in harness.statuses]
        assert states[0] == "started"
        assert states[-1] == "succeeded"


def test_newer_goal_preempts_and_cancel_stops_the_robot() -> None:
    with NavigatorHarness() as harness:
        robot = harness.robot
        first = harness.start_navigation(4.0, 1.0)
        harness.run_until(3.0)
        second = harness.start_goal(
            "/navigate_through_poses", action.NavigateThroughPoses, poses=[goal_pose(2.0, 3.0), goal_pose(4.0, 3.0)]
        )
        harness.run_until(3.1)
        assert first.done()
        assert not first.succeeded
        assert "newer goal" in first.error_message
        assert first.error_code == "preempted"
        harness.run_until(5.0)
        assert robot.twist[0] > 0.1
        second.cancel()
        harness.run_for(0.1)  # one control period
        assert second.done()
        assert second.status.name == "CANCELED"
        assert robot.twist == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("goal", "cause", "words"),
    [
        (goal_pose(50.0, 0.0), "goal_outside_map", "outside of the map"),
        (goal_pose(0.0, 2.0), "goal_occupied", "obstacle"),
        (goal_pose(5.25, 2.0), "goal_unknown", "unknown space"),
        (goal_pose(3.0, 2.0, 0.0, "moon"), "goal_invalid", "moon"),
        (goal_pose(math.nan, 2.0), "goal_invalid", "pose of the goal is invalid"),
    ],
)
def test_impossible_goals_are_refused_with_the_cause(goal, cause: str, words: str) -> None:
    with NavigatorHarness() as harness:
        robot = harness.robot
        future = harness.send_goal("/navigate_to_pose", action.NavigateToPose, pose=goal, timeout=2.0)
        assert future.error is not None
        assert words in str(future.error)
        assert future.error_code == cause
        assert harness.statuses[-1].state == "rejected"
        assert harness.statuses[-1].error_code == cause
        assert robot.pose == START


def test_goal_in_the_base_frame_is_relative_to_the_robot() -> None:
    with NavigatorHarness() as harness:
        robot = harness.robot
        goal = harness.navigate(1.0, 0.0, 0.0, "base_link", timeout=20.0)
        assert goal.succeeded
        assert math.dist(robot.pose.xy, (2.0, 2.0)) < 0.12


@pytest.mark.parametrize(
    ("lost", "cause"), [("publish_scans", "sensor_silent"), ("publish_transforms", "pose_unknown")]
)
def test_robot_without_sensor_data_stops_and_fails_its_goal(lost: str, cause: str) -> None:
    with NavigatorHarness(missing_data_timeout=2.0) as harness:
        robot = harness.robot
        goal = harness.start_navigation(5.0, 1.0)
        harness.run_until(3.0)
        assert robot.twist[0] > 0.1
        setattr(robot, lost, False)
        harness.run_until(3.75)  # sensor_timeout 0.5 s, and a control period
        assert robot.twist == (0.0, 0.0, 0.0)
        assert harness.navigator.health.level == "error"
        harness.wait_for(goal, timeout=5.0)
        assert goal.done()
        assert not goal.succeeded
        assert harness.statuses[-1].error_code == cause
        second_goal = harness.start_navigation(3.0, 1.0)
        setattr(robot, lost, True)
        harness.run_for(1.0)
        if second_goal.done():  # refused while its pose was unknown
            second_goal = harness.start_navigation(3.0, 1.0)
        harness.wait_for(second_goal, timeout=20.0)
        assert second_goal.succeeded


def test_sensor_data_that_return_in_time_keep_the_goal() -> None:
    with NavigatorHarness() as harness:
        robot = harness.robot
        goal = harness.start_navigation(4.0, 1.0)
        harness.run_until(3.0)
        robot.publish_scans = False
        harness.run_until(5.0)
        robot.publish_scans = True
        harness.wait_for(goal, timeout=40.0)
        assert goal.succeeded


def test_motions_and_paths_are_actions() -> None:
    with NavigatorHarness() as harness:
        robot = harness.robot
        spin = harness.send_goal("/spin", action.Spin, target_yaw=1.5, timeout=20.0)
        assert spin.succeeded
        assert robot.pose.theta == pytest.approx(1.5, abs=0.15)
        back = harness.send_goal("/backup", action.BackUp, target=msg.Point(x=0.3), speed=0.2, timeout=20.0)
        assert back.succeeded
        assert robot.pose.y == pytest.approx(1.7, abs=0.08)
        drive = harness.send_goal("/drive_on_heading", action.DriveOnHeading, target=msg.Point(x=5.0), speed=0.3,
                            time_allowance=duration_to_msg(30_000_000_000), timeout=40.0)  # fmt: skip
        assert not drive.succeeded
        assert drive.result.error_code == action.DriveOnHeading.Result.COLLISION_AHEAD
        assert robot.collisions == 0
        wait = harness.send_goal("/wait", action.Wait, time=duration_to_msg(500_000_000), timeout=2.0)
        assert wait.succeeded
        plan = harness.send_goal(
            "/compute_path_to_pose",
            action.ComputePathToPose,
            action.ComputePathToPose.Goal(goal=goal_pose(4.0, 1.0)),
            timeout=1.0,
        )
        assert plan.succeeded
        follow = harness.send_goal("/follow_path", action.FollowPath, path=plan.result.path, timeout=40.0)
        assert follow.succeeded
        assert math.dist(robot.pose.xy, (4.0, 1.0)) < 0.12


@pytest.mark.parametrize(
    ("name", "kind", "goal"),
    [
        ("spin", action.Spin, {"target_yaw": math.nan}),
        ("backup", action.BackUp, {"target": msg.Point(x=0.3), "speed": 0.0}),
        ("backup", action.BackUp, {"target": msg.Point(x=0.3, y=1.0), "speed": 0.2}),
        ("wait", action.Wait, {}),
        ("navigate_through_poses", action.NavigateThroughPoses, {"poses": []}),
        ("follow_path", action.FollowPath, {"path": path_to_msg(np.zeros((0, 3)), "map", 0)}),
    ],
)
def test_invalid_motion_goals_are_refused(name: str, kind, goal: dict) -> None:
    with NavigatorHarness() as harness:
        future = harness.send_goal(f"/{name}", kind, **goal, timeout=1.0)
        assert future.error is not None


def test_failed_plan_has_its_error_code() -> None:
    with NavigatorHarness() as harness:
        plan = harness.send_goal(
            "/compute_path_to_pose",
            action.ComputePathToPose,
            action.ComputePathToPose.Goal(goal=goal_pose(50.0, 1.0)),
            timeout=1.0,
        )
        assert not plan.succeeded
        assert plan.result.error_code == action.ComputePathToPose.Result.GOAL_OUTSIDE_MAP


def test_missions_topic_goals_and_costmap_clearing() -> None:
    with NavigatorHarness() as harness:
        robot = harness.robot
        mission = GoalSequenceNode(goals=(3.0, 2.0, 0.0, 50.0, 0.0, 0.0, 3.0, 1.0, 0.0), start_time=1.0)
        harness.add(mission, "mission")
        reached = harness.published("/mission/reached")
        harness.spin_until(lambda: len(reached) >= 2, timeout=59.0)
        assert reached.data == [1, 2]
        rejected = [status for status in harness.statuses if status.state == "rejected"]
        assert len(rejected) == 1  # the one outside of the map is asked for once; waiting would not help
        assert math.dist(robot.pose.xy, (3.0, 1.0)) < 0.12
        harness.publish("/goal_pose", goal_pose(2.0, 2.0))
        harness.run_for(1.0)
        harness.spin_until(lambda: harness.last("/navigator/status").state == "succeeded", timeout=19.0)
        assert math.dist(robot.pose.xy, (2.0, 2.0)) < 0.12
        assert (harness.navigator._costmaps.local_costmap.snapshot().cells == 254).any()
        robot.publish_scans = False
        harness.run_for(0.2)
        harness.call("/clear_costmaps", srv.Empty)
        harness.run_for(0.2)
        harness.navigator._costmaps.local_costmap.update()
        assert not (harness.navigator._costmaps.local_costmap.snapshot().cells == 254).any()


@pytest.mark.parametrize("name", ["navigate_to_pose", "move_base"])
def test_mission_waits_for_localization(name: str) -> None:
    with NavigatorHarness() as harness:
        robot = harness.robot
        robot.publish_transforms = False
        harness.add(GoalSequenceNode(goals=(3.0, 2.0, 0.0), start_time=2.0, action_name=name), "mission")
        harness.run_until(5.0)
        causes = [status.error_code for status in harness.statuses if status.state == "rejected"]
        assert len(causes) >= 2
        assert set(causes) == {"pose_unknown"}
        assert {status.task for status in harness.statuses} == {name}
        robot.publish_transforms = True
        harness.spin_until(lambda: len(harness.published("/mission/reached")) > 0, timeout=20.0)
        assert math.dist(robot.pose.xy, (3.0, 2.0)) < 0.12


def test_mission_without_goals_visits_random_poses_of_the_map() -> None:
    with NavigatorHarness() as harness:
        robot = harness.robot
        harness.add(GoalSequenceNode(n_random_goals=2), "mission")
        positions = []
        harness.bus.subscribe("/mission/reached", msg.UInt32, "/test", lambda _: positions.append(robot.pose.xy))
        harness.spin_until(lambda: len(positions) >= 2, timeout=59.0)
        harness.run_for(2.0)
        assert len(positions) == 2
        assert math.dist(*positions) > 1.4
    with NavigatorHarness() as harness, pytest.raises(NodeError, match="n_random_goals"):
        harness.add(GoalSequenceNode(), "mission")


def test_navigation_without_map_uses_the_odometry_frame() -> None:
    with NavigatorHarness(global_frame="odom", map_topic="") as harness:
        robot = harness.robot
        poses = [goal_pose(2.0, 3.0, 0.0, "odom"), goal_pose(50.0, 0.0, 0.0, "odom")]
        goal = harness.send_goal("/follow_waypoints", action.FollowWaypoints, poses=poses, timeout=60.0)
        assert goal.succeeded
        assert {status.header.frame_id for status in harness.statuses} == {"odom"}
        assert [missed.goal.header.frame_id for missed in goal.result.missed_waypoints] == ["odom"]
        assert math.dist(robot.pose.xy, (2.0, 3.0)) < 0.12


def test_new_obstacle_is_avoided_or_reported() -> None:
    with NavigatorHarness() as harness:
        robot = harness.robot
        goal = harness.start_navigation(4.5, 2.9)
        harness.run_until(2.0)
        robot.world.fill((3.0, 3.3), (2.25, 3.0))
        harness.wait_for(goal, timeout=60.0)
        assert goal.succeeded
        assert harness.statuses[-1].replans >= 1
        back = harness.start_navigation(1.0, 2.0, 3.14)
        harness.run_for(1.0)
        robot.world.fill((2.0, 2.05), (0.0, 4.0))
        harness.wait_for(back, timeout=200.0)
        assert back.done()
        assert not back.succeeded
        assert harness.statuses[-1].error_code == "no_path"
        assert harness.statuses[-1].recoveries >= 1


def test_saved_navigator_continues_bit_for_bit() -> None:
    def make() -> NavigatorHarness:
        mppi = {"type": "mppi", "settings": {"batch_size": 100, "time_steps": 16}}
        harness = NavigatorHarness(settings={"controller": mppi})
        harness.start_navigation(4.0, 1.0)
        return harness

    check_snapshot_continues(make, [3.0], 5.0, observe=NavigatorHarness.check_moved)


def test_waypoints_are_visited_and_missed_ones_reported() -> None:
    with NavigatorHarness(settings={"recovery": {"max_rounds": 1, "steps": ("clear_all",)}}) as harness:
        robot = harness.robot
        poses = [goal_pose(2.0, 3.0), goal_pose(50.0, 0.0), goal_pose(3.0, 1.0)]
        goal = harness.send_goal("/follow_waypoints", action.FollowWaypoints, poses=poses, timeout=60.0)
        assert goal.succeeded
        assert [missed.index for missed in goal.result.missed_waypoints] == [1]
        track = np.array([item[1:3] for item in robot.track])
        assert np.hypot(*(track - (2.0, 3.0)).T).min() < 0.12
        assert math.dist(robot.pose.xy, (3.0, 1.0)) < 0.12


@pytest.mark.parametrize(
    ("limit", "is_percentage", "max_speed"), [(0.25, False, 0.25), (50.0, True, 0.3), (0.0, False, 0.6)]
)
def test_navigator_keeps_speed_limits(limit: float, is_percentage: bool, max_speed: float) -> None:
    with NavigatorHarness() as harness:
        robot = harness.robot
        harness.publish("/speed_limit", msg.SpeedLimit(speed_limit=limit, percentage=is_percentage))
        goal = harness.navigate(4.5, 3.0, timeout=60.0)
        assert goal.succeeded
        assert max(vx for _, vx, _, _ in robot.commands) == pytest.approx(max_speed, rel=0.12)
        assert max(vx for _, vx, _, _ in robot.commands) <= max_speed + 1e-6


def test_planner_for_cars_takes_the_turning_radius_of_the_drive():
    car = AckermannDriveConfig(
        type="ackermann", left_steering_joints=("e",), right_steering_joints=("f",), wheel_radius=0.1, wheelbase=0.4,
        track=0.3, kingpin_width=0.25, steering_limit=0.6,
    )  # fmt: skip
    with NavigatorHarness(settings={"planner": {"type": "hybrid_a_star"}}, drive_geometry=car) as harness:
        assert harness.navigator._context.planner.turning_radius == car.min_turning_radius > 0.5
    with pytest.raises((ConfigError, NodeError), match="minimum turning radius"):
        NavigatorHarness(settings={"planner": {"type": "state_lattice"}}, drive_geometry=car)
