"""Metrics of homing from truth, tracker, arbiter and navigator."""

from __future__ import annotations

import pytest
from tests.harness.collectors import CollectorFeed

from roboyard.messages import msg
from roboyard.navigation.evaluation.homing import HomingMetrics


class HomingFeed(CollectorFeed[HomingMetrics]):
    """The truth about a rover, its tracker, navigator and arbiter."""

    def __init__(self) -> None:
        super().__init__(HomingMetrics("/truth/rover/odom", "/rover"))

    def set_position(self, second: float, x: float, y: float = 0.0) -> None:
        """The rover is truly there."""
        odometry = msg.Odometry()
        odometry.pose.pose.position.x, odometry.pose.pose.position.y = x, y
        self.send("/truth/rover/odom", odometry, second)

    def send_status(self, second: float, link: str, phase: str, **fields: int) -> None:
        """The tracker publishes its status."""
        self.send("/rover/homing/status", msg.HomingStatus(link=link, phase=phase, stored=3, **fields), second)

    def send_goals(self, second: float, *codes: int) -> None:
        """The navigator publishes the status of its goals."""
        goals = [msg.GoalStatus(status=code) for code in codes]
        self.send("/rover/navigate_to_pose/_action/status", msg.GoalStatusArray(status_list=goals), second)

    def send_owner(self, second: float, name: str) -> None:
        """The arbiter publishes who drives."""
        self.send("/rover/arbiter/owner", msg.String(data=name), second)


@pytest.fixture
def feed() -> HomingFeed:
    """A rover that drove out, lost its link and returns."""
    feed = HomingFeed()
    feed.set_position(0, 1.0)
    feed.send_status(0, "connected", "driven")
    feed.set_position(10, 9.0)
    feed.send_status(14, "lost", "returning", outages=1)
    feed.send_goals(14, 2)
    return feed


def test_return_to_the_start_is_measured(feed: HomingFeed) -> None:
    assert feed.result()["returned"] is False
    feed.set_position(30, 1.1)
    feed.send_status(30, "lost", "home", outages=1, skipped=2)
    found = feed.result()
    assert (found["link_losses"], found["returned"], found["waypoints_skipped"]) == (1, True, 2)
    assert found["home_error"] == pytest.approx(0.1)
    assert found["homing_time"] == pytest.approx(16.0)
    feed.send_status(40, "recovering", "driven", outages=1, skipped=2)
    feed.set_position(50, 7.0)
    assert feed.result() == found, "what is driven afterwards changes nothing"


def test_return_of_the_tracker_is_measured_by_the_truth(feed: HomingFeed) -> None:
    feed.set_position(30, 1.5)
    feed.send_status(30, "lost", "home", outages=1)
    assert feed.result()["returned"] is False
    assert feed.result()["home_error"] == pytest.approx(0.5)


def test_cancel_latency_is_from_operator_message_to_goal_end(feed: HomingFeed) -> None:
    feed.send_owner(15, "/rover/navigator")
    assert feed.result()["cancel_latency"] is None
    feed.send_owner(20, "/rover/operator")
    feed.send_goals(20.05, 3)
    feed.send_goals(20.15, 5)
    assert feed.result()["cancel_latency"] == pytest.approx(0.15)
    feed.send_goals(25, 5, 2)
    feed.send("/rover/teleop/heartbeat", msg.Header(), 30)
    feed.finish(34)
    assert feed.result()["cancel_latency"] == pytest.approx(4.0), "an operator who is not obeyed waits to the end"


def test_robot_without_tracker_has_no_homing_metrics() -> None:
    assert HomingMetrics("/truth/rover/odom").values() == {}


def send_order(feed: HomingFeed, x: float, *, frame: str = "map", is_home: bool = True) -> None:
    """The tracker orders the robot to a point on the x axis."""
    order = msg.HomingOrder(id=1, is_active=True, is_home=is_home)
    order.pose.header.frame_id = f"rover/{frame}"
    order.pose.pose.position.x = x
    feed.send("/rover/homing/order", order)


def send_trail(feed: HomingFeed, *xs: float) -> None:
    """The tracker publishes the points that it stored, on the x axis."""
    path = msg.Path(poses=[msg.PoseStamped() for _ in xs])
    for pose, x in zip(path.poses, xs, strict=True):
        pose.pose.position.x = x
    feed.send("/rover/homing/trail", path)


@pytest.mark.parametrize(("frame", "target"), [("map", 5.0), ("odom", 4.0)])
def test_home_pose_is_the_home_of_the_metrics(feed: HomingFeed, frame: str, target: float) -> None:
    """Odometry starts where the robot stood, at x = 1 m."""
    send_trail(feed, 1.02, 5.0, 8.0)
    send_order(feed, target, frame=frame)
    feed.set_position(30, 5.1)
    feed.send_status(30, "lost", "home", outages=1)
    assert feed.result()["home_error"] == pytest.approx(0.1)
    assert feed.result()["returned"] is True


def test_home_of_a_trail_is_where_its_first_point_was_stored(feed: HomingFeed) -> None:
    send_trail(feed, 1.02, 5.0, 8.0)
    send_order(feed, 5.0, is_home=False)
    send_order(feed, 1.02)
    feed.set_position(30, 1.1)
    feed.send_status(30, "lost", "home", outages=1)
    assert feed.result()["home_error"] == pytest.approx(0.1), "by the truth, not by the robot's own estimate"


def test_losses_of_the_link_and_the_return_are_events(feed: HomingFeed) -> None:
    feed.send_status(20, "recovering", "returning", outages=1)
    feed.send_status(22, "lost", "returning", outages=1)
    for second in (30, 31):
        feed.send_status(second, "lost", "home", outages=1)
    feed.send_status(40, "recovering", "driven", outages=1)
    feed.send_status(41, "connected", "driven", outages=1)
    assert [(round(event.time, 6), event.kind) for event in feed.collector.events()] == [
        (14.0, "link_lost"), (20.0, "link_restored"), (22.0, "link_lost"), (30.0, "home_reached"),
        (40.0, "link_restored"),
    ]  # fmt: skip
    assert "16.0 s" in feed.collector.events()[3].text
