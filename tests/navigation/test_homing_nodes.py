"""Tracker and goal controller on a bus, with a navigator that drives straight and refuses what it is told to refuse."""

from __future__ import annotations

import math

import pytest

from roboyard.bus import Bus, GoalHandle, Node
from roboyard.geometry import SE2
from roboyard.messages import action, msg
from roboyard.messages.convert import grid_to_msg, pose_to_se2
from roboyard.messages.time import stamp
from roboyard.navigation.nodes import GoalControllerNode, TeleopTrackerNode

Navigate = action.NavigateToPose


class Rover(Node):
    """Obeys twists, and drives straight to goals unless they lie in ``blocked``; tells where it is by odometry.

    in: cmd_vel   out: /tf   action: navigate_to_pose
    """

    fields = ("x", "y", "theta", "v", "w")

    def setup(self) -> None:
        self.x = self.y = self.theta = self.v = self.w = 0.0
        self.blocked: list[tuple[float, float]] = []
        self.goals: list[tuple[float, float, float]] = []
        self.server = self.action_server("navigate_to_pose", Navigate, self.on_goal, on_restored=lambda _: None)
        self.subscribe("cmd_vel", msg.Twist, self.on_twist)
        self.timer(rate=20.0, callback=self.step, start=True)

    def on_twist(self, twist) -> None:
        self.v, self.w = twist.linear.x, twist.angular.z

    def on_goal(self, handle: GoalHandle) -> None:
        goal = pose_to_se2(handle.goal.pose.pose)
        self.goals.append((self.now, goal.x, goal.y))
        if any(math.dist((goal.x, goal.y), point) < 0.5 for point in self.blocked):
            handle.reject("goal_occupied: something stands there")
            return
        handle.accept()
        handle.on_cancel = lambda handle: handle.cancel(Navigate.Result(), "as wanted")

    def step(self) -> None:
        for handle in self.server.active:
            goal = pose_to_se2(handle.goal.pose.pose)
            distance = math.dist((goal.x, goal.y), (self.x, self.y))
            if distance < 0.1:
                handle.succeed(Navigate.Result())
                continue
            self.theta = math.atan2(goal.y - self.y, goal.x - self.x)
            step = min(0.05, distance)
            self.x, self.y = self.x + step * math.cos(self.theta), self.y + step * math.sin(self.theta)
        if not self.server.active:
            self.theta += 0.05 * self.w
            self.x, self.y = (
                self.x + 0.05 * self.v * math.cos(self.theta),
                self.y + 0.05 * self.v * math.sin(self.theta),
            )
        self.broadcast(SE2(self.x, self.y, self.theta).to_se3(), "odom", "base_link")


class Yard:
    """A bus with the rover, the two nodes, an operator's hand, and what was seen."""

    def __init__(self, **tracker) -> None:
        self.bus = Bus()
        self.rover = self.bus.add(Rover(), "navigator")
        self.tracker = self.bus.add(TeleopTrackerNode(**tracker), "teleop_tracker")
        self.controller = self.bus.add(GoalControllerNode(), "goal_controller")
        self.hand = self.bus.publisher("/cmd_vel", msg.Twist, "/operator")
        self.pad = self.bus.publisher("/joy", msg.Joy, "/teleop")
        self.status = []
        self.reports = []
        self.log = []
        self.bus.tap(self.see)
        self.bus.log_sinks.append(lambda record: self.log.append(record.text))

    def see(self, topic, message, _node, _time) -> None:
        if topic.name == "/homing/status":
            self.status.append(message)
        if topic.name == "/homing/report":
            self.reports.append(message)

    def run(self, seconds: float) -> None:
        self.bus.executor.run_for(seconds)

    def drive(self, seconds: float, v: float = 0.0, w: float = 0.0) -> None:
        for _ in range(round(10 * seconds)):
            self.hand.publish(msg.Twist(linear=msg.Vector3(x=v), angular=msg.Vector3(z=w)))
            self.run(0.1)
        self.hand.publish(msg.Twist())
        self.bus.executor.run_until(self.bus.now_ns)

    @property
    def moving(self) -> bool:
        return bool(self.rover.server.active)


@pytest.fixture
def yard():
    made = Yard()
    with made.bus:
        yield made


def test_out_round_the_corner_silence_and_home(yard: Yard) -> None:
    yard.drive(6, v=1.0)
    yard.drive(1.5, w=1.0)
    yard.drive(4, v=1.0)
    yard.run(3.9)
    assert not yard.rover.goals, "not before the time-out"
    yard.run(20)
    assert math.hypot(yard.rover.x, yard.rover.y) < 0.15
    assert yard.status[-1].phase == "home"
    assert (yard.status[-1].blackouts, yard.status[-1].skipped, yard.status[-1].returns) == (1, 0, 1)
    first = yard.rover.goals[0]
    assert first[0] == pytest.approx(11.5 + 4.0, abs=0.11)
    ways = [math.dist(a[1:], b[1:]) for a, b in zip(yard.rover.goals, yard.rover.goals[1:], strict=False)]
    assert all(0.5 < way < 1.3 for way in ways), "a metre of way apart, newest first"
    assert {report.outcome for report in yard.reports} == {"reached"}


def test_the_operator_cancels_in_the_same_instant_and_later_silence_goes_on_from_there(yard: Yard) -> None:
    yard.drive(8, v=1.0)
    yard.run(7)
    assert yard.moving
    yard.hand.publish(msg.Twist())
    yard.bus.executor.run_until(yard.bus.now_ns)
    assert not yard.moving
    assert yard.status[-1].link == "back"
    goals, left = len(yard.rover.goals), yard.status[-1].stored
    yard.drive(3, w=1.0)
    assert len(yard.rover.goals) == goals
    yard.run(1.9)
    yard.drive(0.1)
    yard.run(3.9)
    assert yard.status[-1].link == "up", "heard for more than settle: the whole time-out holds again"
    yard.run(20)
    assert yard.rover.goals[goals][1] == pytest.approx(left - 1, abs=0.5)
    assert yard.status[-1].phase == "home"


def test_a_flapping_link_still_comes_home(yard: Yard) -> None:
    yard.drive(6, v=1.0)
    for _ in range(12):
        yard.run(5)
        yard.hand.publish(msg.Twist())
        yard.bus.executor.run_until(yard.bus.now_ns)
        assert not yard.moving
    yard.run(30)
    assert math.hypot(yard.rover.x, yard.rover.y) < 0.15


def test_an_unreachable_point_is_approached_and_told_and_the_next_is_taken(yard: Yard) -> None:
    yard.drive(6, v=1.0)
    yard.rover.blocked = [(3.0, 0.0)]
    cells = [[0] * 90 for _ in range(40)]
    for row in range(20 - 6, 20 + 6):
        for column in range(40 - 6, 40 + 6):
            cells[row][column] = 100
    import numpy as np

    grid = grid_to_msg(np.array(cells, dtype=np.int8), 0.1, SE2(-1.0, -2.0, 0.0), "odom", 0)
    yard.bus.publisher("/global_costmap/costmap", msg.OccupancyGrid, "/navigator", latched=True).publish(grid)
    yard.run(40)
    near = [report for report in yard.reports if report.outcome != "reached"]
    assert [(report.outcome, "goal_occupied" in report.reason) for report in near] == [("near", True)]
    assert 0.5 < near[0].distance < 0.9
    assert (yard.status[-1].phase, yard.status[-1].skipped) == ("home", 1)
    assert any("was not reached" in line for line in yard.log)


def test_a_controller_started_anew_in_mid_return_goes_on(yard: Yard) -> None:
    yard.drive(8, v=1.0)
    yard.run(7)
    assert yard.moving
    for _ in range(3):
        yard.bus.remove(yard.controller)
        yard.run(0.5)
        yard.controller = yard.bus.add(GoalControllerNode(), "goal_controller")
        yard.run(0.5)
        assert yard.moving
    assert all(report.outcome == "reached" for report in yard.reports)
    yard.run(15)
    assert yard.status[-1].phase == "home"
    assert yard.status[-1].skipped == 0


def test_a_controller_that_was_away_when_the_operator_came_back_ends_the_goal_of_the_one_before(yard: Yard) -> None:
    yard.drive(8, v=1.0)
    yard.run(5)
    yard.bus.remove(yard.controller)
    yard.hand.publish(msg.Twist())
    yard.run(0.2)
    assert yard.moving
    yard.controller = yard.bus.add(GoalControllerNode(), "goal_controller")
    yard.run(0.1)
    assert not yard.moving


def test_without_a_navigator_it_waits_for_one(yard: Yard) -> None:
    yard.drive(3, v=1.0)
    yard.bus.remove(yard.rover)
    yard.run(20)
    assert yard.status[-1].skipped == 0
    assert any("nobody serves" in line for line in yard.log)


def test_the_robots_own_commands_and_old_messages_are_no_operator(yard: Yard) -> None:
    yard.drive(3, v=1.0)
    own = yard.bus.publisher("/cmd_vel", msg.Twist, "/navigator")
    yard.pad.publish(msg.Joy(header=msg.Header(stamp=stamp(yard.bus.now_ns))))
    old = stamp(yard.bus.now_ns)
    for _ in range(60):
        yard.run(0.1)
        own.publish(msg.Twist(linear=msg.Vector3(x=0.0)))
        yard.pad.publish(msg.Joy(header=msg.Header(stamp=old)))
    assert yard.status[-1].link == "lost"
    yard.pad.publish(msg.Joy(header=msg.Header(stamp=stamp(yard.bus.now_ns))))
    yard.run(0.01)
    assert yard.status[-1].link == "back"


def test_a_map_that_comes_later_takes_the_trail_along(yard: Yard) -> None:
    class Map(Node):
        def setup(self) -> None:
            self.timer(rate=10.0, callback=self.tell, start=True)

        def tell(self) -> None:
            self.broadcast(SE2(5.0, 5.0, math.pi / 2).to_se3(), "map", "odom")

    yard.drive(4, v=1.0)
    yard.bus.add(Map(), "amcl")
    trails = []
    yard.bus.tap(lambda topic, message, *_: trails.append(message) if topic.name == "/homing/trail" else None)
    yard.drive(3, v=1.0)
    places = [(pose.pose.position.x, pose.pose.position.y) for pose in trails[-1].poses]
    assert trails[-1].header.frame_id == "map"
    assert places[0] == pytest.approx((5.0, 5.0), abs=0.1)
    assert places[3] == pytest.approx((5.0, 8.0), abs=0.2)


def test_a_mission_goes_on_first() -> None:
    yard = Yard(on_loss="finish-task")
    with yard.bus:
        yard.drive(2, v=1.0)

        class Boss(Node):
            def setup(self) -> None:
                self.navigator = self.action_client("navigate_to_pose", Navigate)

            def go(self, x: float, y: float):
                pose = msg.PoseStamped(header=msg.Header(frame_id="odom"))
                pose.pose.position.x, pose.pose.position.y = x, y
                return self.navigator.send(Navigate.Goal(pose=pose))

        goal = yard.bus.add(Boss(), "boss").go(2.0, 9.0)
        yard.run(6)
        assert yard.status[-1].phase == "mission"
        yard.run(5)
        assert goal.succeeded
        assert yard.status[-1].phase == "returning"
        yard.run(20)
        assert math.hypot(yard.rover.x, yard.rover.y) < 0.15


def test_a_saved_state_goes_on_as_if_nothing_had_been(yard: Yard) -> None:
    yard.drive(6, v=1.0)
    yard.run(6.03)
    saved = yard.bus.save()
    other = Yard()
    with other.bus:
        other.bus.load(saved)
        other.rover.blocked = yard.rover.blocked
        yard.run(15)
        other.run(15)
        assert (other.rover.x, other.rover.y) == (yard.rover.x, yard.rover.y)
        assert other.status[-1] == yard.status[-1]
        assert other.status[-1].phase == "home"


def test_a_home_that_is_no_pose_is_refused() -> None:
    from roboyard.bus import NodeError
    from roboyard.errors import ConfigError

    with Bus() as bus, pytest.raises((ConfigError, NodeError), match="home_pose"):
        bus.add(TeleopTrackerNode(home_pose=(1.0, 2.0)), "teleop_tracker")
