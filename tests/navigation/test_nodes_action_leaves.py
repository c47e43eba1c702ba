"""Leaves of actions: goals given by ports, and Nav2's own trees on a straight-driving robot and on the rover."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.bus import FakeActionServer, Succeed
from tests.harness.missions import MissionHarness, write_tree
from tests.harness.profiles import sample_count

from roboyard.bus import Node
from roboyard.errors import RoboyardError
from roboyard.geometry import SE2
from roboyard.messages import action, msg, srv
from roboyard.messages.convert import grid_to_msg, path_to_array, path_to_msg, pose_stamped_to_msg, pose_to_se2
from roboyard.navigation.nodes.path_leaves import cut_path, nearest_pose_index, path_lengths
from roboyard.scenarios import load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions

NAVIGATE = {
    "navigate_to_pose_w_replanning_and_recovery": "NavigateToPoseWReplanningAndRecovery",
    "navigate_to_pose_w_replanning_goal_patience_and_recovery": "NavigateToPoseWReplanningGoalPatienceAndRecovery",
    "navigate_w_replanning_distance": "NavigateWithReplanningDistance",
    "navigate_w_replanning_only_if_goal_is_updated": "NavigateWReplanningOnlyIfGoalIsUpdated",
    "navigate_w_replanning_speed": "NavigateWithReplanningSpeed",
    "navigate_w_replanning_time": "NavigateWithReplanningTime",
}
FURTHER = {
    "follow_point": "FollowPoint",
    "navigate_through_poses_w_replanning_and_recovery": "NavigateThroughPosesWReplanningAndRecovery",
}
SPEED = 0.5


class StraightRobot(Node):
    """A robot that follows every path exactly, through everything.

    Attributes:
        pose: Where it is.
        visited: Its poses while it moved.
        plans: How many paths were requested.
        failures: How many of the first requests fail.
        cleared: How often the costmaps were cleared.
    """

    def setup(self) -> None:
        self.pose = SE2(0.0, 0.0, 0.0)
        self.plans, self.cleared, self.failures = 0, 0, 0
        self._follow: Any = None
        self._path: list[list[float]] = []
        self.visited: list[SE2] = []
        self.action_server("compute_path_through_poses", action.ComputePathThroughPoses, self._on_plan_through)
        self.action_server("compute_path_to_pose", action.ComputePathToPose, self._on_plan)
        self.action_server("follow_path", action.FollowPath, self._on_follow)
        self.action_server("spin", action.Spin, lambda handle: self._on_recovery(handle, action.Spin))
        self.action_server("wait", action.Wait, lambda handle: self._on_recovery(handle, action.Wait))
        self.service("clear_costmaps", srv.Empty, self._on_clear)
        self._map = self.publisher("global_costmap/costmap", msg.OccupancyGrid, latched=True)
        self.publish_costmap(0)
        self._odom = self.publisher("odom", msg.Odometry)
        self.timer(rate=50.0, callback=self._tick, immediate=True)

    def publish_costmap(self, cost: int) -> None:
        """Publish a costmap with one cost everywhere."""
        cells = np.full((60, 300), cost, np.int8)
        self._map.publish(grid_to_msg(cells, 0.1, SE2(-5.0, -3.0, 0.0), "map", self.now_ns))

    def _on_plan(self, handle: Any) -> None:
        handle.accept()
        self.plans += 1
        if self.plans <= self.failures:
            handle.abort(action.ComputePathToPose.Result(error_code=208, error_msg="no way"), "no way")
            return
        goal = pose_to_se2(handle.goal.goal.pose)
        points = np.linspace([self.pose.x, self.pose.y, 0.0], [goal.x, goal.y, goal.theta], 40)
        handle.succeed(action.ComputePathToPose.Result(path=path_to_msg(points, "map", self.now_ns)))

    def _on_plan_through(self, handle: Any) -> None:
        handle.accept()
        self.plans += 1
        corners = [self.pose, *(pose_to_se2(one.pose) for one in handle.goal.goals)]
        legs = [np.linspace([a.x, a.y, 0.0], [b.x, b.y, 0.0], 40) for a, b in pairwise(corners)]
        path = path_to_msg(np.concatenate(legs), "map", self.now_ns)
        handle.succeed(action.ComputePathThroughPoses.Result(path=path))

    def _on_follow(self, handle: Any) -> None:
        if self._follow is not None:
            self._follow.abort(action.FollowPath.Result(), "a newer one")
        handle.accept()
        handle.on_cancel = self._on_cancel
        self._follow = handle
        path = path_to_array(handle.goal.path)
        self._path = path[nearest_pose_index(path, self.pose) :, :2].tolist()

    def _on_cancel(self, handle: Any) -> None:
        self._follow = None
        handle.set_canceled()

    def _on_recovery(self, handle: Any, kind: Any) -> None:
        handle.accept()
        handle.succeed(kind.Result())

    def _on_clear(self, request: Any) -> Any:
        self.cleared += 1
        return srv.Empty.Response()

    def _tick(self) -> None:
        moving = self._follow is not None
        if moving:
            remaining = 0.02 * SPEED
            while self._path and remaining > 0.0:
                x, y = self._path[0]
                distance = math.hypot(x - self.pose.x, y - self.pose.y)
                fraction = min(remaining / distance, 1.0) if distance > 0.0 else 1.0
                self.pose = SE2(
                    self.pose.x + fraction * (x - self.pose.x), self.pose.y + fraction * (y - self.pose.y), 0.0
                )
                remaining -= distance
                if remaining >= 0.0:
                    del self._path[0]
            self.visited.append(self.pose)
            if not self._path:
                handle, self._follow = self._follow, None
                handle.succeed(action.FollowPath.Result())
        self.send_transform(self.pose.to_se3(), "map", "base_link")
        odometry = msg.Odometry()
        odometry.twist.twist.linear.x = SPEED if moving else 0.0
        self._odom.publish(odometry)


def navigate(data: Path, name: str, *goals: str, port: str = "goal") -> tuple[str, Path]:
    """A tree that drives to goals with one of Nav2's trees, and the file that it includes."""
    tree = (NAVIGATE | FURTHER)[name]
    subtrees = "".join(f'<SubTree ID="{tree}" name="{k}" {port}="{goal}"/>' for k, goal in enumerate(goals))
    return f"<Sequence>{subtrees}</Sequence>", data / "bt/nav2_xml" / f"{name}.xml"


def nav2_mission(folder: Path, data: Path, name: str, goal: str = "10;0;0", port: str = "goal") -> MissionHarness:
    """A mission that drives to a goal with one of Nav2's trees, and the robot that goes straight."""
    body, include = navigate(data, name, goal, port=port)
    return MissionHarness(folder, body, StraightRobot(), include=include)


@pytest.mark.parametrize(
    ("name", "plans"),
    [
        ("navigate_w_replanning_only_if_goal_is_updated", (1, 1)),
        ("navigate_w_replanning_distance", (9, 11)),  # one a metre
        ("navigate_w_replanning_time", (16, 21)),  # one a second, and the driving takes 20 s
        ("navigate_w_replanning_speed", (16, 21)),  # the same at full speed
        ("navigate_to_pose_w_replanning_and_recovery", (9, 14)),  # one a second until the goal is 4 m away
        ("navigate_to_pose_w_replanning_goal_patience_and_recovery", (9, 14)),
    ],
    ids=("goal_updates", "distance", "time", "speed", "recovery", "goal_patience"),
)
def test_nav2_trees_replan_at_their_documented_rate(
    tmp_path: Path, external_data: Path, name: str, plans: tuple[int, int]
) -> None:
    mission = nav2_mission(tmp_path, external_data, name)
    assert mission.run_to_end(25.0) == "SUCCESS"
    assert math.hypot(mission.robot.pose.x - 10.0, mission.robot.pose.y) < 0.01
    assert plans[0] <= mission.robot.plans <= plans[1]
    assert mission.robot.cleared == 0


def test_navigate_through_poses_passes_and_removes_each_goal(tmp_path: Path, external_data: Path) -> None:
    name = "navigate_through_poses_w_replanning_and_recovery"
    mission = nav2_mission(tmp_path, external_data, name, "3;0;0|3;3;0|0;3;0", "goals")
    assert mission.run_to_end(25.0) == "SUCCESS"
    for x, y in ((3.0, 0.0), (3.0, 3.0), (0.0, 3.0)):
        # a goal within 0.7 m counts as passed, and the next plan omits it
        assert min(math.hypot(x - pose.x, y - pose.y) for pose in mission.robot.visited) < 0.71
    assert math.hypot(mission.robot.pose.x, mission.robot.pose.y - 3.0) < 0.01
    nodes = mission.mission._tree.nodes
    goals = next(node.blackboard.get("goals") for node in nodes.values() if node.type_name == "RemovePassedGoals")
    remaining = [(pose.x, pose.y) for pose in goals]
    assert (3.0, 0.0) not in remaining
    assert remaining[-1] == (0.0, 3.0)


def test_follow_point_keeps_its_distance_to_a_moving_point(tmp_path: Path, external_data: Path) -> None:
    mission = nav2_mission(tmp_path, external_data, "follow_point", "4;0;0")
    mission.run_for(8.0)
    assert math.hypot(mission.robot.pose.x - 3.0, mission.robot.pose.y) < 0.3
    mission.publish("/goal_update", pose_stamped_to_msg(SE2(0.0, 4.0, 0.0), "map", mission.now_ns))
    mission.run_for(16.0)
    distance = math.hypot(mission.robot.pose.x, mission.robot.pose.y - 4.0)
    assert 0.7 < distance < 1.3
    assert mission.status[-1] == "RUNNING"


def test_invalid_goal_lists_are_refused(tmp_path: Path, external_data: Path) -> None:
    name = "navigate_through_poses_w_replanning_and_recovery"
    with pytest.raises(RoboyardError, match="x;y;yaw"):
        nav2_mission(tmp_path, external_data, name, "1;2;0|x", "goals").run_for(2.0)


def test_path_blocked_near_the_goal_is_replanned(tmp_path: Path, external_data: Path) -> None:
    counts = []
    for cost in (0, 100):
        mission = nav2_mission(tmp_path, external_data, "navigate_to_pose_w_replanning_and_recovery", "3;0;0")
        mission.run_for(1.5)
        mission.robot.publish_costmap(cost)
        assert mission.run_to_end(10.0) == "SUCCESS"
        counts.append(mission.robot.plans)
    assert counts[0] == 1
    assert counts[1] >= 4


def test_failing_planner_is_retried_after_recovery(tmp_path: Path, external_data: Path) -> None:
    mission = nav2_mission(tmp_path, external_data, "navigate_to_pose_w_replanning_and_recovery", "3;0;0")
    mission.robot.failures = 3
    assert mission.run_to_end(15.0) == "SUCCESS"
    assert mission.robot.plans >= 4
    assert mission.robot.cleared >= 2


def test_paths_are_truncated_at_the_given_indices() -> None:
    poses = np.column_stack([np.linspace(0.0, 4.0, 9), np.zeros(9), np.zeros(9)])
    assert path_lengths(poses)[-1] == pytest.approx(4.0)
    assert [nearest_pose_index(poses, SE2(x, 3.0, 0.0)) for x in (-1.0, 1.1, 9.0)] == [0, 2, 8]
    path = path_to_msg(poses, "map", 0)
    assert path_to_array(cut_path(path, 2, 5)).tolist() == poses[2:5].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAVIGATE)
def test_nav2_trees_drive_the_rovers_navigator(tmp_path: Path, external_data: Path, name: str) -> None:
    patient = name != "navigate_w_replanning_only_if_goal_is_updated"  # fails at the first obstacle on its path
    body, include = navigate(external_data, name, *(("14;0.2;0", "19;4;1.57") if patient else ("6;0.1;0",)))
    file = write_tree(tmp_path, body, include)
    x = 14 - sample_count(14, 0.4) if patient else 0  # of the start: the corridor's end at night, else its middle
    start = (f"robots.rover.pose=[{x}, 0, 0]", f"robots.rover.parameters.amcl.initial_pose_x={x}")
    spec = load_scenario(
        "rover-goals", overrides=(f"mission={file}", "duration=90 s", "stop_when=tree_time > 0", *start)
    )
    outcome = run_scenario(spec, RunOptions(write_files=False, serve=False))
    assert outcome.metrics["tree_done"]
    assert outcome.metrics["contacts"] == 0
    assert outcome.metrics["path_length"] > (20.0 - x if patient else 5.5)


DOCKING = """<Sequence>
  <DockRobot dock_id="home" num_retries="{tries}"/>
  <DockRobot use_dock_id="false" dock_pose="1;2;0.5" navigate_to_staging_pose="false"/>
  <UndockRobot max_undocking_time="9"/>
  <Explore stay_at_end="true" known_area="{known}"/>
</Sequence>"""


def test_docking_and_exploring_leaves_send_the_goals_given_by_their_ports(tmp_path: Path) -> None:
    docking = FakeActionServer("dock_robot", action.DockRobot, Succeed(result=action.DockRobot.Result(num_retries=2)))
    undocking = FakeActionServer("undock_robot", action.UndockRobot, Succeed())
    explorer = FakeActionServer("explore", action.Explore, Succeed())
    nodes = [(docking, "docking"), (undocking, "undocking"), (explorer, "explorer")]
    mission = MissionHarness(tmp_path, DOCKING, nodes=nodes)
    assert mission.run_to_end(3.0) == "SUCCESS"
    by_name, by_pose = docking.goals
    assert (by_name.use_dock_id, by_name.dock_id, by_name.navigate_to_staging_pose) == (True, "home", True)
    assert (by_pose.use_dock_id, by_pose.navigate_to_staging_pose) == (False, False)
    assert by_pose.dock_pose.header.frame_id == "map"
    assert by_pose.dock_pose.pose.orientation.z == pytest.approx(math.sin(0.25))
    assert [goal.max_undocking_time for goal in undocking.goals] == [9.0]
    assert [goal.stay_at_end for goal in explorer.goals] == [True]
    assert mission.entry("tries") == 2
