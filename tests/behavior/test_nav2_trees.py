"""Nav2's own trees, as its files have them: on a robot that goes straight, and on our navigator."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roboyard.behavior.nodes import TreeMissionNode
from roboyard.behavior.nodes.nav2_paths import cut, lengths, nearest
from roboyard.bus import Bus, Node
from roboyard.errors import RoboyardError
from roboyard.geometry import SE2
from roboyard.messages import action, msg, srv
from roboyard.messages.convert import grid_to_msg, path_to_array, path_to_msg, pose_stamped, pose_to_se2
from roboyard.scenarios import load_spec, run_scenario

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


class Straight(Node):
    """Goes straight along whatever path it is given, through everything; its planner may fail at first."""

    def setup(self) -> None:
        self.here = SE2(0.0, 0.0, 0.0)
        self.plans, self.cleared = 0, 0
        self.fails = 0
        self._follow: Any = None
        self._way: list[list[float]] = []
        self.passed: list[SE2] = []
        self.action_server("compute_path_through_poses", action.ComputePathThroughPoses, self._on_plan_through)
        self.action_server("compute_path_to_pose", action.ComputePathToPose, self._on_plan)
        self.action_server("follow_path", action.FollowPath, self._on_follow)
        self.action_server("spin", action.Spin, lambda handle: self._on_recovery(handle, action.Spin))
        self.action_server("wait", action.Wait, lambda handle: self._on_recovery(handle, action.Wait))
        self.service("clear_costmaps", srv.Empty, self._on_clear)
        self._map = self.publisher("global_costmap/costmap", msg.OccupancyGrid, latched=True)
        self.block(0)
        self._odom = self.publisher("odom", msg.Odometry)
        self.timer(rate=50.0, callback=self._tick, start=True)

    def block(self, cost: int) -> None:
        """Have the costmap say this all over."""
        cells = np.full((60, 300), cost, np.int8)
        self._map.publish(grid_to_msg(cells, 0.1, SE2(-5.0, -3.0, 0.0), "map", self.now_ns))

    def _on_plan(self, handle: Any) -> None:
        handle.accept()
        self.plans += 1
        if self.plans <= self.fails:
            handle.abort(action.ComputePathToPose.Result(error_code=208, error_msg="no way"), "no way")
            return
        goal = pose_to_se2(handle.goal.goal.pose)
        points = np.linspace([self.here.x, self.here.y, 0.0], [goal.x, goal.y, goal.theta], 40)
        handle.succeed(action.ComputePathToPose.Result(path=path_to_msg(points, "map", self.now_ns)))

    def _on_plan_through(self, handle: Any) -> None:
        handle.accept()
        self.plans += 1
        corners = [self.here, *(pose_to_se2(one.pose) for one in handle.goal.goals)]
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
        self._way = path[nearest(path, self.here) :, :2].tolist()

    def _on_cancel(self, handle: Any) -> None:
        self._follow = None
        handle.cancel()

    def _on_recovery(self, handle: Any, kind: Any) -> None:
        handle.accept()
        handle.succeed(kind.Result())

    def _on_clear(self, request: Any) -> Any:
        self.cleared += 1
        return srv.Empty.Response()

    def _tick(self) -> None:
        moving = self._follow is not None
        if moving:
            left = 0.02 * SPEED
            while self._way and left > 0.0:
                x, y = self._way[0]
                away = math.hypot(x - self.here.x, y - self.here.y)
                share = min(left / away, 1.0) if away > 0.0 else 1.0
                self.here = SE2(self.here.x + share * (x - self.here.x), self.here.y + share * (y - self.here.y), 0.0)
                left -= away
                if left >= 0.0:
                    del self._way[0]
            self.passed.append(self.here)
            if not self._way:
                handle, self._follow = self._follow, None
                handle.succeed(action.FollowPath.Result())
        self.broadcast(self.here.to_se3(), "map", "base_link")
        odometry = msg.Odometry()
        odometry.twist.twist.linear.x = SPEED if moving else 0.0
        self._odom.publish(odometry)


class World:
    def __init__(self, folder: Path, data: Path, name: str, goal: str = "10;0;0", port: str = "goal") -> None:
        self.bus = Bus(seed=1)
        self.robot = Straight()
        self.bus.add(self.robot, "robot")
        self.mission = TreeMissionNode(file=str(wrapped(folder, data, name, goal, port=port)), start=0.0)
        self.bus.add(self.mission, "mission")
        self.status: list[str] = []
        self.bus.subscribe("/mission/status", msg.String, "test", lambda m: self.status.append(m.data))

    def run(self, seconds: float) -> None:
        self.bus.executor.run_for(seconds)


def wrapped(folder: Path, data: Path, name: str, *goals: str, port: str = "goal") -> Path:
    """A file of one's own that includes one of Nav2's and drives to goals."""
    tree = (NAVIGATE | FURTHER)[name]
    trees = "".join(f'<SubTree ID="{tree}" name="{k}" {port}="{goal}"/>' for k, goal in enumerate(goals))
    file = folder / "tree.xml"
    file.write_text(
        f'<root BTCPP_format="4" main_tree_to_execute="Main"><include path="{data / "bt/nav2_xml" / name}.xml"/>'
        f'<BehaviorTree ID="Main"><Sequence>{trees}</Sequence></BehaviorTree></root>'
    )
    return file


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
)
def test_nav2_trees_replan_at_their_documented_rate(
    tmp_path: Path, external_data: Path, name: str, plans: tuple[int, int]
) -> None:
    world = World(tmp_path, external_data, name)
    world.run(25.0)
    assert world.status[-1] == "SUCCESS"
    assert math.hypot(world.robot.here.x - 10.0, world.robot.here.y) < 0.01
    assert plans[0] <= world.robot.plans <= plans[1]
    assert world.robot.cleared == 0


def test_navigate_through_poses_passes_and_removes_each_goal(tmp_path: Path, external_data: Path) -> None:
    name = "navigate_through_poses_w_replanning_and_recovery"
    world = World(tmp_path, external_data, name, "3;0;0|3;3;0|0;3;0", "goals")
    world.run(25.0)
    assert world.status[-1] == "SUCCESS"
    for x, y in ((3.0, 0.0), (3.0, 3.0), (0.0, 3.0)):
        # near by 0.7 m it counts as passed, and the next plan leaves it out
        assert min(math.hypot(x - at.x, y - at.y) for at in world.robot.passed) < 0.71
    assert math.hypot(world.robot.here.x, world.robot.here.y - 3.0) < 0.01
    left = world.mission._tree.nodes
    goals = next(node.blackboard.get("goals") for node in left.values() if node.type_name == "RemovePassedGoals")
    left_over = [(pose.x, pose.y) for pose in goals]
    assert (3.0, 0.0) not in left_over
    assert left_over[-1] == (0.0, 3.0)


def test_follow_point_keeps_its_distance_to_a_moving_point(tmp_path: Path, external_data: Path) -> None:
    world = World(tmp_path, external_data, "follow_point", "4;0;0")
    world.run(8.0)
    assert math.hypot(world.robot.here.x - 3.0, world.robot.here.y) < 0.3
    told = world.bus.publisher("/goal_update", msg.PoseStamped, "test")
    told.publish(pose_stamped(SE2(0.0, 4.0, 0.0), "map", world.bus.now_ns))
    world.run(16.0)
    away = math.hypot(world.robot.here.x, world.robot.here.y - 4.0)
    assert 0.7 < away < 1.3
    assert world.status[-1] == "RUNNING"


def test_invalid_goal_lists_are_refused(tmp_path: Path, external_data: Path) -> None:
    with pytest.raises(RoboyardError, match="x;y;yaw"):
        World(tmp_path, external_data, "navigate_through_poses_w_replanning_and_recovery", "1;2;0|x", "goals").run(2.0)


def test_path_blocked_near_the_goal_is_replanned(tmp_path: Path, external_data: Path) -> None:
    counts = []
    for cost in (0, 100):
        world = World(tmp_path, external_data, "navigate_to_pose_w_replanning_and_recovery", "3;0;0")
        world.run(1.5)
        world.robot.block(cost)
        world.run(10.0)
        assert world.status[-1] == "SUCCESS"
        counts.append(world.robot.plans)
    assert counts[0] == 1
    assert counts[1] >= 4


def test_failing_planner_is_retried_after_recovery(tmp_path: Path, external_data: Path) -> None:
    world = World(tmp_path, external_data, "navigate_to_pose_w_replanning_and_recovery", "3;0;0")
    world.robot.fails = 3
    world.run(15.0)
    assert world.status[-1] == "SUCCESS"
    assert world.robot.plans >= 4
    assert world.robot.cleared >= 2


def test_paths_are_truncated_at_the_given_indices() -> None:
    poses = np.column_stack([np.linspace(0.0, 4.0, 9), np.zeros(9), np.zeros(9)])
    assert lengths(poses)[-1] == pytest.approx(4.0)
    assert [nearest(poses, SE2(x, 3.0, 0.0)) for x in (-1.0, 1.1, 9.0)] == [0, 2, 8]
    path = path_to_msg(poses, "map", 0)
    assert path_to_array(cut(path, 2, 5)).tolist() == poses[2:5].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAVIGATE)
def test_nav2_trees_drive_the_rovers_navigator(tmp_path: Path, external_data: Path, name: str) -> None:
    patient = name != "navigate_w_replanning_only_if_goal_is_updated"  # ends at the first thing on its path
    file = wrapped(tmp_path, external_data, name, *(("14;0.2;0", "19;4;1.57") if patient else ("6;0.1;0",)))
    spec = load_spec("rover-goal", overrides=(f"mission={file}", "duration=90 s", "until=tree_seconds > 0"))
    outcome = run_scenario(spec, keep=False, serve=False)
    assert outcome.metrics["tree_done"]
    assert outcome.metrics["contacts"] == 0
    assert outcome.metrics["path_length"] > (20.0 if patient else 5.5)
