"""The collaborative safety node: on a bus with made-up joints, plans and people, and on the iisy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.harness.bus import BusHarness

import roboyard as ry
from roboyard.bringup.joint_groups import RobotJoints, load_joint_groups
from roboyard.bus import NodeError
from roboyard.errors import ConfigError
from roboyard.messages import msg, time_to_msg
from roboyard.safety.nodes import CollaborativeSafetyNode

GROUPS = load_joint_groups("iisy")
JOINTS = GROUPS.chain("arm").joints
HOME = GROUPS.group("arm").pose("home")


def rates() -> object:
    from roboyard.bringup.robot_loader import load_robot

    package = load_robot("iisy")
    return RobotJoints.from_package(package, package.load_model()).acceleration_limits


class SafetyHarness(BusHarness):
    """A bus with a safety monitor, an arm that moves evenly, and Anna."""

    def __init__(self, **parameters: object) -> None:
        super().__init__()
        node_parameters = {"joints": JOINTS, "people": ("anna",), **parameters}
        self.node = self.add(
            CollaborativeSafetyNode(description=GROUPS.model, acceleration_limits=rates(), **node_parameters),
            "collaborative_safety",
        )

    def make_body(self, x: float, **fields: object) -> object:
        """Anna's chest at a distance [m]; ``fields`` replace those of the message."""
        pose = msg.Pose(msg.Point(x, 0.0, 0.9), msg.Quaternion(0.0, 0.0, 0.0, 1.0))
        values = {
            "parts": ["chest"], "poses": [pose], "radii": np.array([0.15]), "lengths": np.array([1.2]),
            "velocities": [msg.Vector3()], "peak_forces": [msg.Vector3()], "contact_regions": [""], **fields,
        }  # fmt: skip
        return msg.PersonBody(
            header=msg.Header(stamp=time_to_msg(self.now_ns), frame_id="world"), name="anna", **values
        )

    def publish_plan(self, *points: object) -> None:
        """Publish the arm's plan."""
        self.publish("/arm/plan", msg.JointTrajectory(joint_names=list(JOINTS), points=list(points)), latched=True)

    def move(self, seconds: float, x: float | None = 5.0, *, speed: float = 0.4, joints: bool = True, tracked=False):
        """Publish joints that move, and Anna at a distance [m], every 40 ms; None leaves her out."""
        for _ in range(round(seconds / 0.04)):
            if joints:
                moving = np.full(6, speed)
                state = msg.JointState(name=list(JOINTS), position=np.array(HOME), velocity=moving)
                self.publish("/joint_states", state)
                self.publish("/arm/controller_state", msg.JointTrajectoryControllerState(joint_names=list(JOINTS)))
            if x is not None and tracked:
                header = msg.Header(stamp=time_to_msg(self.now_ns), frame_id="world")
                people = msg.TrackedPeople(header=header, people=[self.make_body(x)], uncertainty=0.1)
                self.publish("/tracks", people)
            elif x is not None:
                self.publish("/truth/anna/body", self.make_body(x))
            self.run_for(0.04)

    @property
    def speed_scalings(self) -> list[float]:
        """Published speed scalings."""
        return self.published("/arm/speed_scaling").data

    @property
    def states(self) -> list[object]:
        """States that the monitor published."""
        return self.published("/collaborative_safety/state").messages


@pytest.fixture
def monitor() -> Iterator[SafetyHarness]:
    with SafetyHarness() as monitor:
        yield monitor


def test_near_person_stops_the_arm_until_she_leaves(monitor: SafetyHarness) -> None:
    monitor.move(1.0, 8.0)
    assert set(monitor.speed_scalings) == {1.0}
    monitor.move(1.0, 0.8)
    assert monitor.speed_scalings[-1] == 0.0
    state = monitor.states[-1]
    assert (state.mode, state.is_stopped, state.stop_count, state.person, state.body_part) == (
        "ssm",
        True,
        1,
        "anna",
        "chest",
    )
    assert state.min_separation < state.protective_distance
    assert "from anna's chest" in state.reason
    assert any("protective stop" in line for line in monitor.log_lines)
    monitor.move(3.0, 8.0)
    assert monitor.speed_scalings[-1] == 1.0
    assert not monitor.states[-1].is_stopped
    assert monitor.states[-1].stop_count == 1


@pytest.mark.parametrize(
    ("silent", "named"), [({"x": None}, "anna silent"), ({"joints": False}, "joint_states silent")]
)
def test_silent_input_stops_the_arm(monitor: SafetyHarness, silent: dict[str, object], named: str) -> None:
    monitor.move(1.0, 8.0)
    monitor.move(1.0, **{"x": 8.0, **silent})
    assert monitor.speed_scalings[-1] == 0.0
    assert named in monitor.states[-1].reason
    assert monitor.node.health.level == "error"
    monitor.move(3.0, 8.0)
    assert monitor.speed_scalings[-1] == 1.0


def test_never_observed_person_stops_the_arm_unless_off(monitor: SafetyHarness) -> None:
    monitor.move(1.0, None)
    assert monitor.speed_scalings[-1] == 0.0
    monitor.node.set_parameter("mode", "off")
    monitor.move(1.5, 0.6)
    assert monitor.speed_scalings[-1] == 1.0
    assert monitor.states[-1].mode == "off"
    monitor.node.set_parameter("mode", "ssm")
    monitor.move(0.5, 0.6)
    assert monitor.speed_scalings[-1] == 0.0


def test_plan_towards_a_person_slows_the_arm_beforehand() -> None:
    """The joints stand, the plan is fast: who knows the plan is warned."""
    monitor = SafetyHarness(separation={"person_speed": 0.0})
    monitor.move(0.5, 1.2, speed=0.0)
    assert monitor.speed_scalings[-1] == 1.0
    velocity = np.array([0.0, 1.2, 0.0, 0.0, 0.0, 0.0])
    points = [
        msg.JointTrajectoryPoint(
            positions=HOME + k * velocity,
            velocities=velocity if k else 0.0 * velocity,
            time_from_start=msg.Duration(sec=k),
        )
        for k in range(2)
    ]
    monitor.publish_plan(*points)
    monitor.move(0.5, 1.2, speed=0.0)
    assert monitor.speed_scalings[-1] < 1.0
    monitor.publish_plan()
    monitor.move(2.0, 1.2, speed=0.0)
    assert monitor.speed_scalings[-1] == 1.0


def test_new_plan_is_evaluated_at_once() -> None:
    monitor = SafetyHarness(separation={"person_speed": 0.0})
    monitor.move(0.5, 0.8, speed=0.0)
    assert monitor.speed_scalings[-1] == 1.0
    points = [
        msg.JointTrajectoryPoint(positions=HOME + k * np.array([1.0, 1.2, 0, 0, 0, 0]), time_from_start=msg.Duration(k))
        for k in range(2)
    ]
    now_ns = monitor.now_ns
    monitor.publish_plan(*points)
    monitor.deliver()
    assert monitor.speed_scalings[-1] < 1.0
    assert monitor.now_ns == now_ns


def test_handover_allows_slow_approach_for_a_limited_time() -> None:
    monitor = SafetyHarness(separation={"person_speed": 0.0}, handover_limit=2.0)
    monitor.move(0.5, 0.55, speed=1.5)
    assert monitor.speed_scalings[-1] == 0.0
    monitor.publish("/handover", msg.Bool(data=True))
    monitor.move(1.5, 0.55, speed=1.5)
    assert 0.0 < monitor.speed_scalings[-1] < 1.0
    monitor.move(1.5, 0.55, speed=1.5)
    assert monitor.speed_scalings[-1] == 0.0


def test_sensor_latency_slows_the_arm(monitor: SafetyHarness) -> None:
    late = SafetyHarness(latency=0.2)
    for each in (monitor, late):
        each.move(2.0, 1.4, speed=0.8)
    assert 0.0 < late.speed_scalings[-1] < monitor.speed_scalings[-1] < 1.0


def test_tracked_people_count_with_their_uncertainty(monitor: SafetyHarness) -> None:
    tracked = SafetyHarness(people=(), tracked_topic="tracks")
    monitor.move(2.0, 1.4, speed=0.8)
    tracked.move(2.0, 1.4, speed=0.8, tracked=True)
    assert 0.0 < tracked.speed_scalings[-1] < monitor.speed_scalings[-1]


def test_invalid_bodies_are_dropped_and_stop_the_arm(monitor: SafetyHarness) -> None:
    monitor.move(0.5, 8.0)
    for _ in range(30):
        monitor.publish("/truth/anna/body", monitor.make_body(8.0, radii=np.array([np.nan])))
        monitor.move(0.04, None)
    assert monitor.speed_scalings[-1] == 0.0
    assert any("ignored the body of anna" in line and "finite" in line for line in monitor.log_lines)


def test_loaded_guard_node_keeps_its_stops(monitor: SafetyHarness) -> None:
    monitor.move(0.5, 0.6)
    other = SafetyHarness()
    other.move(0.5, 0.6)
    other.node.load_state(monitor.node.save_state())
    for one in (monitor, other):
        one.move(0.2, 0.6)
    assert other.states[-1].stop_count == monitor.states[-1].stop_count


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"joints": ()}, "no joints"),
        ({"people": ()}, "no source of people"),
        ({"robot_pose": (1.0,)}, "3 or 6"),
        ({"mode": "brave"}, "one of: off, zones, ssm, pfl"),
        ({"separation": {"person_speed": -1.0}}, "person_speed"),
        ({"slow_radius": 0.1}, "stop_radius"),
        ({"tip": "nose"}, "nose"),
    ],
)
def test_invalid_guard_parameters_are_refused(wrong: dict[str, object], error: str) -> None:
    with pytest.raises((ConfigError, NodeError, ry.RoboyardError), match=error):
        SafetyHarness(**wrong)


@pytest.mark.parametrize("tracked", [False, True])
def test_person_stamped_in_the_future_does_not_freeze_the_monitor(tracked: bool) -> None:
    sources = {"people": (), "tracked_topic": "/tracks"} if tracked else {}
    with SafetyHarness(**sources) as monitor:
        monitor.move(1.0, 8.0, tracked=tracked)
        header = msg.Header(stamp=time_to_msg(monitor.now_ns + 3600 * 10**9), frame_id="world")
        body = monitor.make_body(8.0)
        body.header = header
        if tracked:
            monitor.publish("/tracks", msg.TrackedPeople(header=header, people=[body], uncertainty=0.1))
        else:
            monitor.publish("/truth/anna/body", body)
        monitor.move(1.0, 8.0, tracked=tracked)
        assert monitor.speed_scalings[-1] == 1.0
        assert any("stamped in the future" in line for line in monitor.log_lines)
        monitor.move(1.0, 0.8, tracked=tracked)
        assert monitor.speed_scalings[-1] == 0.0
        assert monitor.states[-1].person == "anna"
