"""The navigator on a bus: goals of every kind, preemption, cancelling, and everything that must be refused."""

import math

import numpy as np
import pytest
from tests.navigation.yards import CELL, OUTLINE, room

from roboyard.bus import Bus, Node, NodeError
from roboyard.geometry import SE2
from roboyard.grids import cast_rays
from roboyard.messages import action, msg, srv
from roboyard.messages.convert import grid_to_msg, odometry_to_msg, path_to_msg, pose_stamped, scan_to_msg
from roboyard.messages.time import duration
from roboyard.navigation.nodes import MissionNode, NavigatorNode

WORLD = room(6.0, 4.0)


class Rover(Node):
    """A kinematic robot with a laser in a room whose map it publishes.   in: cmd_vel   out: scan, odom, map, /tf"""

    fields = ("pose", "v", "w", "track", "scans", "transforms_too")

    def setup(self) -> None:
        self.world = WORLD.copy()
        self.pose, self.v, self.w, self.track = (1.0, 2.0, 0.0), 0.0, 0.0, []
        self.scans = self.transforms_too = True
        self.subscribe("cmd_vel", msg.Twist, self.on_twist)
        self.scan_out = self.publisher("scan", msg.LaserScan)
        self.odom_out = self.publisher("odom", msg.Odometry)
        cells = np.where(WORLD, 100, 0).astype(np.int8)
        cells[30:50, 95:115] = -1
        self.publisher("map", msg.OccupancyGrid, latched=True).publish(
            grid_to_msg(cells, CELL, SE2.identity(), "map", 0)
        )
        self.timer(rate=20.0, callback=self.step, start=True)
        self.timer(rate=10.0, callback=self.look, start=True)

    def on_twist(self, twist) -> None:
        self.v, self.w = twist.linear.x, twist.angular.z

    def step(self) -> None:
        pose = SE2(*self.pose) @ SE2.exp([0.05 * self.v, 0.0, 0.05 * self.w])
        self.pose = (pose.x, pose.y, pose.theta)
        self.track.append((self.now, *self.pose, self.v))
        if self.transforms_too:
            places = [(SE2.identity().to_se3(), "map", "odom"), (pose.to_se3(), "odom", "base_link")]
            self.broadcast_all(places)
        speeds = ([self.v, 0, 0], [0, 0, self.w])
        self.odom_out.publish(odometry_to_msg(pose, *speeds, frame="odom", child="base_link", time_ns=self.now_ns))

    def look(self) -> None:
        if not self.scans:
            return
        angles = np.linspace(-math.pi, math.pi, 180, endpoint=False)
        x, y, theta = self.pose
        rays = np.column_stack([np.full(180, x / CELL), np.full(180, y / CELL), angles + theta])
        ranges = cast_rays(self.world, rays, 8.0 / CELL) * CELL + 1e-3
        self.scan_out.publish(
            scan_to_msg(ranges, angle_min=-math.pi, angle_increment=2 * math.pi / 180, range_min=0.05, range_max=8.0,
                        frame="base_link", time_ns=self.now_ns)
        )  # fmt: skip


class Client(Node):
    """Sends goals of any action."""

    def setup(self) -> None:
        kind = action.NavigateToPose
        self.feedback = []
        self.clients = {"navigate_to_pose": self.action_client("navigate_to_pose", kind, on_restored=lambda goal: None)}
        self.statuses = []
        self.subscribe("navigator/status", msg.NavigationStatus, self.statuses.append)

    def send(self, name: str, kind, **goal):
        if name not in self.clients:
            self.clients[name] = self.action_client(name, kind)
        return self.clients[name].send(kind.Goal(**goal), feedback=self.feedback.append)


def _yard(**parameters):
    bus = Bus(seed=1)
    rover, client = Rover(), Client()
    settings = {"controller": {"use": "window"}, "pace": {"forward": 0.6}} | parameters.pop("settings", {})
    node = NavigatorNode(outline=tuple(map(tuple, OUTLINE)), settings=settings, rate=10.0, **parameters)
    for part, name in ((rover, "rover"), (node, "navigator"), (client, "client")):
        bus.add(part, name)
    bus.executor.run_until(1_000_000_000)
    return bus, rover, node, client


def _run(bus, future, seconds: float) -> None:
    end = bus.now_ns + round(seconds * 1e9)
    while not future.done() and bus.now_ns < end:
        bus.executor.run_until(min(bus.now_ns + 100_000_000, end))


def _pose(x: float, y: float, theta: float = 0.0, frame: str = "map"):
    stamped = pose_stamped(SE2(0.0, y, theta), frame, 0)
    stamped.pose.position.x = x
    return stamped


def test_a_goal_is_reached_and_told_about() -> None:
    bus, rover, _, client = _yard()
    goal = client.send("navigate_to_pose", action.NavigateToPose, pose=_pose(4.0, 1.0, 1.0))
    _run(bus, goal, 40.0)
    assert goal.succeeded
    assert math.dist(rover.pose[:2], (4.0, 1.0)) < 0.12
    left = [item.distance_remaining for item in client.feedback if math.isfinite(item.distance_remaining)]
    assert left[0] > 2.5 > left[-1]
    states = [status.state for status in client.statuses]
    assert states[0] == "begins"
    assert states[-1] == "succeeded"
    bus.close()


def test_a_newer_goal_takes_over_and_a_cancelled_robot_stands() -> None:
    bus, rover, _, client = _yard()
    first = client.send("navigate_to_pose", action.NavigateToPose, pose=_pose(4.0, 1.0))
    bus.executor.run_until(3_000_000_000)
    second = client.send(
        "navigate_through_poses", action.NavigateThroughPoses, poses=[_pose(2.0, 3.0), _pose(4.0, 3.0)]
    )
    bus.executor.run_until(3_100_000_000)
    assert first.done()
    assert not first.succeeded
    assert "newer goal" in first.reason
    assert first.cause == "preempted"
    bus.executor.run_until(5_000_000_000)
    assert rover.v > 0.1
    cancelled_ns = bus.now_ns
    second.cancel()
    bus.executor.run_until(cancelled_ns + 100_000_000)  # one control period
    assert second.done()
    assert second.status.name == "CANCELED"
    assert rover.v == rover.w == 0.0
    bus.close()


@pytest.mark.parametrize(
    ("goal", "cause", "words"),
    [
        (_pose(50.0, 0.0), "goal_outside_map", "outside of the map"),
        (_pose(0.0, 2.0), "goal_occupied", "obstacle"),
        (_pose(5.25, 2.0), "goal_unknown", "nobody has looked"),
        (_pose(3.0, 2.0, 0.0, "moon"), "goal_invalid", "moon"),
        (_pose(math.nan, 2.0), "goal_invalid", "no pose"),
    ],
)
def test_goals_that_cannot_be_are_refused_with_the_cause(goal, cause: str, words: str) -> None:
    bus, rover, _, client = _yard()
    future = client.send("navigate_to_pose", action.NavigateToPose, pose=goal)
    _run(bus, future, 2.0)
    assert future.error is not None
    assert words in str(future.error)
    assert future.cause == cause
    assert client.statuses[-1].state == "rejected"
    assert client.statuses[-1].cause == cause
    assert rover.pose == (1.0, 2.0, 0.0)
    bus.close()


def test_a_goal_in_the_robots_own_frame_is_meant_from_where_it_stands() -> None:
    bus, rover, _, client = _yard()
    goal = client.send("navigate_to_pose", action.NavigateToPose, pose=_pose(1.0, 0.0, 0.0, "base_link"))
    _run(bus, goal, 20.0)
    assert goal.succeeded
    assert math.dist(rover.pose[:2], (2.0, 2.0)) < 0.12
    bus.close()


@pytest.mark.parametrize(("lost", "cause"), [("scans", "sensor_silent"), ("transforms_too", "pose_unknown")])
def test_a_robot_that_hears_nothing_stops_in_time_says_so_and_gives_up(lost: str, cause: str) -> None:
    bus, rover, node, client = _yard(hold_time=2.0)
    goal = client.send("navigate_to_pose", action.NavigateToPose, pose=_pose(5.0, 1.0))
    bus.executor.run_until(3_000_000_000)
    assert rover.v > 0.1
    setattr(rover, lost, False)
    bus.executor.run_until(3_750_000_000)  # sensor_timeout 0.5 s, and a control period
    assert rover.v == rover.w == 0.0
    assert node.health.level == "error"
    _run(bus, goal, 5.0)
    assert goal.done()
    assert not goal.succeeded
    assert client.statuses[-1].cause == cause
    again = client.send("navigate_to_pose", action.NavigateToPose, pose=_pose(3.0, 1.0))
    setattr(rover, lost, True)
    bus.executor.run_until(bus.now_ns + 1_000_000_000)
    if again.done():  # refused while its pose was unknown
        again = client.send("navigate_to_pose", action.NavigateToPose, pose=_pose(3.0, 1.0))
    _run(bus, again, 20.0)
    assert again.succeeded
    bus.close()


def test_a_sensor_that_comes_back_in_time_costs_the_goal_nothing() -> None:
    bus, rover, _, client = _yard()
    goal = client.send("navigate_to_pose", action.NavigateToPose, pose=_pose(4.0, 1.0))
    bus.executor.run_until(3_000_000_000)
    rover.scans = False
    bus.executor.run_until(5_000_000_000)
    rover.scans = True
    _run(bus, goal, 40.0)
    assert goal.succeeded
    bus.close()


def test_simple_motions_and_paths_are_actions_too() -> None:
    bus, rover, _, client = _yard()
    spin = client.send("spin", action.Spin, target_yaw=1.5)
    _run(bus, spin, 20.0)
    assert spin.succeeded
    assert rover.pose[2] == pytest.approx(1.5, abs=0.15)
    back = client.send("backup", action.BackUp, target=msg.Point(x=0.3), speed=0.2)
    _run(bus, back, 20.0)
    assert back.succeeded
    assert rover.pose[1] == pytest.approx(1.7, abs=0.08)
    ahead = client.send("drive_on_heading", action.DriveOnHeading, target=msg.Point(x=5.0), speed=0.3,
                        time_allowance=duration(30_000_000_000))  # fmt: skip
    _run(bus, ahead, 40.0)
    assert not ahead.succeeded
    assert ahead.result.error_code == action.DriveOnHeading.Result.COLLISION_AHEAD
    assert not any(WORLD[tuple(cell)] for cell in _cells(rover))
    wait = client.send("wait", action.Wait, time=duration(500_000_000))
    _run(bus, wait, 2.0)
    assert wait.succeeded
    plan = client.send("compute_path_to_pose", action.ComputePathToPose, goal=_pose(4.0, 1.0))
    _run(bus, plan, 1.0)
    assert plan.succeeded
    follow = client.send("follow_path", action.FollowPath, path=plan.result.path)
    _run(bus, follow, 40.0)
    assert follow.succeeded
    assert math.dist(rover.pose[:2], (4.0, 1.0)) < 0.12
    bus.close()


def _cells(rover) -> np.ndarray:
    border = SE2(*rover.pose) @ OUTLINE
    return np.floor(border[:, ::-1] / CELL).astype(int)


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
def test_motions_that_make_no_sense_are_refused(name: str, kind, goal: dict) -> None:
    bus, _, _, client = _yard()
    future = client.send(name, kind, **goal)
    _run(bus, future, 1.0)
    assert future.error is not None
    bus.close()


def test_a_plan_that_cannot_be_has_its_number() -> None:
    bus, _, _, client = _yard()
    plan = client.send("compute_path_to_pose", action.ComputePathToPose, goal=_pose(50.0, 1.0))
    _run(bus, plan, 1.0)
    assert not plan.succeeded
    assert plan.result.error_code == action.ComputePathToPose.Result.GOAL_OUTSIDE_MAP
    bus.close()


def test_goals_by_topic_missions_and_clearing() -> None:
    bus, rover, node, client = _yard()
    mission = MissionNode(goals=(3.0, 2.0, 0.0, 50.0, 0.0, 0.0, 3.0, 1.0, 0.0), start=1.0)
    bus.add(mission, "mission")
    reached = []
    client.subscribe("mission/reached", msg.UInt32, lambda message: reached.append(message.data))
    bus.executor.run_until(60_000_000_000)
    assert reached == [1, 2]
    rejected = [status for status in client.statuses if status.state == "rejected"]
    assert len(rejected) == 1  # the one outside of the map is asked for once; waiting would not help
    assert math.dist(rover.pose[:2], (3.0, 1.0)) < 0.12
    goals = client.publisher("goal_pose", msg.PoseStamped)
    goals.publish(_pose(2.0, 2.0))
    bus.executor.run_until(80_000_000_000)
    assert math.dist(rover.pose[:2], (2.0, 2.0)) < 0.12
    assert (node._surroundings.near.costmap().cells == 254).any()
    rover.scans = False
    bus.executor.run_until(80_200_000_000)
    client.service_client("clear_costmaps", srv.Empty).call(srv.Empty.Request())
    bus.executor.run_until(80_400_000_000)
    node._surroundings.near.update()
    assert not (node._surroundings.near.costmap().cells == 254).any()
    bus.close()


@pytest.mark.parametrize("name", ["navigate_to_pose", "move_base"])
def test_a_mission_waits_for_a_robot_that_does_not_know_yet_where_it_is(name: str) -> None:
    bus, rover, _, client = _yard()
    rover.transforms_too = False
    bus.add(MissionNode(goals=(3.0, 2.0, 0.0), start=2.0, action_name=name), "mission")
    bus.executor.run_until(5_000_000_000)
    causes = [status.cause for status in client.statuses if status.state == "rejected"]
    assert len(causes) >= 2
    assert set(causes) == {"pose_unknown"}
    assert {status.task for status in client.statuses} == {name}
    rover.transforms_too = True
    bus.executor.run_until(25_000_000_000)
    assert math.dist(rover.pose[:2], (3.0, 2.0)) < 0.12
    bus.close()


def test_a_mission_without_goals_goes_to_places_of_the_map() -> None:
    bus, rover, _, client = _yard()
    bus.add(MissionNode(places=2), "mission")
    goals = []
    client.subscribe("mission/reached", msg.UInt32, lambda _: goals.append(rover.pose[:2]))
    bus.executor.run_until(60_000_000_000)
    assert len(goals) == 2
    assert math.dist(*goals) > 1.4
    bus.close()
    with pytest.raises(NodeError, match="places"):
        _yard()[0].add(MissionNode(), "mission")


def test_without_a_map_goals_and_what_is_told_of_them_are_in_odometrys_frame() -> None:
    bus, rover, _, client = _yard(global_frame="odom", map_topic="")
    poses = [_pose(2.0, 3.0, 0.0, "odom"), _pose(50.0, 0.0, 0.0, "odom")]
    goal = client.send("follow_waypoints", action.FollowWaypoints, poses=poses)
    _run(bus, goal, 60.0)
    assert goal.succeeded
    assert {status.header.frame_id for status in client.statuses} == {"odom"}
    assert [missed.goal.header.frame_id for missed in goal.result.missed_waypoints] == ["odom"]
    assert math.dist(rover.pose[:2], (2.0, 3.0)) < 0.12
    bus.close()


def test_what_is_put_on_the_way_is_driven_round_or_told_about() -> None:
    bus, rover, _, client = _yard()
    goal = client.send("navigate_to_pose", action.NavigateToPose, pose=_pose(4.5, 2.9))
    bus.executor.run_until(2_000_000_000)
    rover.world[45:60, 60:66] = True
    _run(bus, goal, 60.0)
    assert goal.succeeded
    assert client.statuses[-1].replans >= 1
    back = client.send("navigate_to_pose", action.NavigateToPose, pose=_pose(1.0, 2.0, 3.14))
    bus.executor.run_until(bus.now_ns + 1_000_000_000)
    rover.world[:, 40] = True
    _run(bus, back, 200.0)
    assert back.done()
    assert not back.succeeded
    assert client.statuses[-1].cause == "no_path"
    assert client.statuses[-1].recoveries >= 1
    bus.close()


def test_a_saved_bus_goes_on_with_the_same_bits() -> None:
    def begin():
        bus, rover, node, client = _yard(
            settings={"controller": {"use": "mppi", "settings": {"batch": 100, "steps": 16}}}
        )
        return bus, rover, node, client

    bus, rover, _, client = begin()
    client.send("navigate_to_pose", action.NavigateToPose, pose=_pose(4.0, 1.0))
    bus.executor.run_until(3_000_000_000)
    saved = bus.save()
    bus.executor.run_until(5_000_000_000)

    other, again, _, _ = begin()
    other.executor.run_until(3_000_000_000)
    other.load(saved)
    other.executor.run_until(5_000_000_000)
    assert again.track == rover.track
    assert rover.pose[0] > 1.5
    bus.close()
    other.close()


def test_waypoints_are_visited_and_those_that_cannot_be_are_named() -> None:
    bus, rover, _, client = _yard(settings={"recovery": {"rounds": 1, "steps": ("clear_all",)}})
    poses = [_pose(2.0, 3.0), _pose(50.0, 0.0), _pose(3.0, 1.0)]
    goal = client.send("follow_waypoints", action.FollowWaypoints, poses=poses)
    _run(bus, goal, 60.0)
    assert goal.succeeded
    assert [missed.index for missed in goal.result.missed_waypoints] == [1]
    track = np.array([item[1:3] for item in rover.track])
    assert np.hypot(*(track - (2.0, 3.0)).T).min() < 0.12
    assert math.dist(rover.pose[:2], (3.0, 1.0)) < 0.12
    bus.close()


@pytest.mark.parametrize(("limit", "share", "fastest"), [(0.25, False, 0.25), (50.0, True, 0.3), (0.0, False, 0.6)])
def test_speed_limits_are_kept(limit: float, share: bool, fastest: float) -> None:
    bus, rover, _, client = _yard()
    client.publisher("speed_limit", msg.SpeedLimit).publish(msg.SpeedLimit(speed_limit=limit, percentage=share))
    goal = client.send("navigate_to_pose", action.NavigateToPose, pose=_pose(4.5, 3.0))
    _run(bus, goal, 60.0)
    assert goal.succeeded
    assert max(item[4] for item in rover.track) == pytest.approx(fastest, rel=0.12)
    assert max(item[4] for item in rover.track) <= fastest + 1e-6
    bus.close()
