"""The person guard's node: on a bus with joints, a plan and people that tests make up, and on the iisy."""

from __future__ import annotations

import numpy as np
import pytest

import roboyard as ry
from roboyard.bus import Bus, NodeError
from roboyard.errors import ConfigError
from roboyard.messages import msg, stamp
from roboyard.safety.nodes import PersonGuardNode
from roboyard.scenarios.robot_groups import KnownJoints, find_groups

GROUPS = find_groups("iisy")
JOINTS = GROUPS.chain("arm").joints
HOME = GROUPS.group("arm").pose("home")


def rates() -> object:
    from roboyard.scenarios.catalog import find_robot

    package = find_robot("iisy")
    return KnownJoints.of(package, package.load_model()).rates


class Bench:
    """A bus with a guard, an arm that moves evenly, Anna, and what came out."""

    def __init__(self, bus: Bus, **parameters: object) -> None:
        self.bus = bus
        given = {"joints": JOINTS, "people": ("anna",), **parameters}
        self.node = bus.add(PersonGuardNode(description=GROUPS.model, rates=rates(), **given), "guard")
        self.paces: list[float] = []
        self.states: list[object] = []
        self.lines: list[str] = []
        self.joints = bus.publisher("/joint_states", msg.JointState, "/joints")
        self.controller = bus.publisher("/arm/controller_state", msg.JointTrajectoryControllerState, "/arm")
        self.plan = bus.publisher("/arm/plan", msg.JointTrajectory, "/arm", latched=True)
        self.body = bus.publisher("/truth/anna/body", msg.PersonBody, "/anna")
        self.tracks = bus.publisher("/tracks", msg.TrackedPeople, "/tracker")
        self.handover = bus.publisher("/handover", msg.Bool, "/tree")
        bus.tap(self._see)
        bus.log_sinks.append(lambda record: self.lines.append(record.text))

    def _see(self, topic, message, node, time_ns) -> None:
        if topic.name == "/arm/speed_scaling":
            self.paces.append(message.data)
        if topic.name == "/guard/state":
            self.states.append(message)

    def trunk(self, x: float, **said: object) -> object:
        pose = msg.Pose(msg.Point(x, 0.0, 0.9), msg.Quaternion(0.0, 0.0, 0.0, 1.0))
        values = {
            "parts": ["chest"], "poses": [pose], "radii": np.array([0.15]), "lengths": np.array([1.2]),
            "velocities": [msg.Vector3()], "forces": [msg.Vector3()], "regions": [""], **said,
        }  # fmt: skip
        return msg.PersonBody(header=msg.Header(stamp=stamp(self.bus.now_ns), frame_id="world"), name="anna", **values)

    def run(self, seconds: float, x: float | None = 5.0, *, speed: float = 0.4, joints: bool = True, tracked=False):
        for _ in range(round(seconds / 0.04)):
            if joints:
                moving = np.full(6, speed)
                self.joints.publish(msg.JointState(name=list(JOINTS), position=np.array(HOME), velocity=moving))
                self.controller.publish(msg.JointTrajectoryControllerState(joint_names=list(JOINTS)))
            if x is not None and tracked:
                header = msg.Header(stamp=stamp(self.bus.now_ns), frame_id="world")
                self.tracks.publish(msg.TrackedPeople(header=header, people=[self.trunk(x)], uncertainty=0.1))
            elif x is not None:
                self.body.publish(self.trunk(x))
            self.bus.executor.run_for(0.04)


@pytest.fixture
def bus() -> Bus:
    return Bus()


def test_who_comes_near_stops_the_arm_and_who_leaves_lets_it_go_on(bus: Bus) -> None:
    bench = Bench(bus)
    bench.run(1.0, 8.0)
    assert set(bench.paces) == {1.0}
    bench.run(1.0, 0.8)
    assert bench.paces[-1] == 0.0
    state = bench.states[-1]
    assert (state.mode, state.stopped, state.stops, state.person, state.body_part) == ("ssm", True, 1, "anna", "chest")
    assert state.separation < state.protective
    assert "from anna's chest" in state.reason
    assert any("protective stop" in line for line in bench.lines)
    bench.run(3.0, 8.0)
    assert bench.paces[-1] == 1.0
    assert not bench.states[-1].stopped
    assert bench.states[-1].stops == 1


@pytest.mark.parametrize(
    ("silent", "named"), [({"x": None}, "anna silent"), ({"joints": False}, "joint_states silent")]
)
def test_what_falls_silent_stops_the_arm(bus: Bus, silent: dict[str, object], named: str) -> None:
    bench = Bench(bus)
    bench.run(1.0, 8.0)
    bench.run(1.0, **{"x": 8.0, **silent})
    assert bench.paces[-1] == 0.0
    assert named in bench.states[-1].reason
    assert bench.node.health.level == "error"
    bench.run(3.0, 8.0)
    assert bench.paces[-1] == 1.0


def test_whom_nobody_ever_sees_stops_it_too_but_not_when_it_is_off(bus: Bus) -> None:
    bench = Bench(bus)
    bench.run(1.0, None)
    assert bench.paces[-1] == 0.0
    bus.nodes["/guard"].set_parameter("mode", "off")
    bench.run(1.5, 0.6)
    assert bench.paces[-1] == 1.0
    assert bench.states[-1].mode == "off"
    bus.nodes["/guard"].set_parameter("mode", "ssm")
    bench.run(0.5, 0.6)
    assert bench.paces[-1] == 0.0


def test_a_plan_that_leads_to_somebody_slows_before_the_arm_is_there(bus: Bus) -> None:
    """The joints stand, the plan is fast: who knows the plan is warned."""
    bench = Bench(bus, rules={"person_speed": 0.0})
    bench.run(0.5, 1.2, speed=0.0)
    assert bench.paces[-1] == 1.0
    turn = np.array([0.0, 1.2, 0.0, 0.0, 0.0, 0.0])
    points = [
        msg.JointTrajectoryPoint(
            positions=HOME + k * turn, velocities=turn if k else 0.0 * turn, time_from_start=msg.Duration(sec=k)
        )
        for k in range(2)
    ]
    bench.plan.publish(msg.JointTrajectory(joint_names=list(JOINTS), points=points))
    bench.run(0.5, 1.2, speed=0.0)
    assert bench.paces[-1] < 1.0
    bench.plan.publish(msg.JointTrajectory(joint_names=list(JOINTS)))
    bench.run(2.0, 1.2, speed=0.0)
    assert bench.paces[-1] == 1.0


def test_a_new_plan_is_judged_before_anything_else_happens(bus: Bus) -> None:
    bench = Bench(bus, rules={"person_speed": 0.0})
    bench.run(0.5, 0.8, speed=0.0)
    assert bench.paces[-1] == 1.0
    points = [
        msg.JointTrajectoryPoint(positions=HOME + k * np.array([1.0, 1.2, 0, 0, 0, 0]), time_from_start=msg.Duration(k))
        for k in range(2)
    ]
    now_ns = bus.now_ns
    bench.plan.publish(msg.JointTrajectory(joint_names=list(JOINTS), points=points))
    bus.executor.run_until(now_ns)
    assert bench.paces[-1] < 1.0
    assert bus.now_ns == now_ns


def test_a_hand_over_lets_it_come_near_slowly_and_ends_by_itself(bus: Bus) -> None:
    bench = Bench(bus, rules={"person_speed": 0.0}, handover_limit=2.0)
    bench.run(0.5, 0.55, speed=1.5)
    assert bench.paces[-1] == 0.0
    bench.handover.publish(msg.Bool(data=True))
    bench.run(1.5, 0.55, speed=1.5)
    assert 0.0 < bench.paces[-1] < 1.0
    bench.run(1.5, 0.55, speed=1.5)
    assert bench.paces[-1] == 0.0


def test_late_sensors_mean_a_slower_arm(bus: Bus) -> None:
    soon, late = Bench(bus), Bench(Bus(), latency=0.2)
    for bench in (soon, late):
        bench.run(2.0, 1.4, speed=0.8)
    assert 0.0 < late.paces[-1] < soon.paces[-1] < 1.0


def test_tracked_people_count_as_true_ones_do_with_their_doubt(bus: Bus) -> None:
    bench, tracked = Bench(bus), Bench(Bus(), people=(), tracked_topic="tracks")
    bench.run(2.0, 1.4, speed=0.8)
    tracked.run(2.0, 1.4, speed=0.8, tracked=True)
    assert 0.0 < tracked.paces[-1] < bench.paces[-1]


def test_bodies_that_make_no_sense_are_left_out_and_so_stop_it(bus: Bus) -> None:
    bench = Bench(bus)
    bench.run(0.5, 8.0)
    for _ in range(30):
        bench.body.publish(bench.trunk(8.0, radii=np.array([np.nan])))
        bench.run(0.04, None)
    assert bench.paces[-1] == 0.0
    assert any("left out anna's body" in line and "finite" in line for line in bench.lines)


def test_its_state_is_saved_and_taken_back(bus: Bus) -> None:
    bench = Bench(bus)
    bench.run(0.5, 0.6)
    other = Bench(Bus())
    other.run(0.5, 0.6)
    other.node.load(bench.node.save())
    for one in (bench, other):
        one.run(0.2, 0.6)
    assert other.states[-1].stops == bench.states[-1].stops


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"joints": ()}, "no joints"),
        ({"people": ()}, "nobody to look for"),
        ({"place": (1.0,)}, "3 or 6"),
        ({"mode": "brave"}, "'off', 'zones', 'ssm', 'pfl'"),
        ({"rules": {"person_speed": -1.0}}, "person_speed"),
        ({"config": {"slow_radius": 0.1}}, "stop_radius"),
        ({"tip": "nose"}, "nose"),
    ],
)
def test_what_makes_no_sense_is_refused(bus: Bus, wrong: dict[str, object], told: str) -> None:
    with pytest.raises((ConfigError, NodeError, ry.RoboyardError), match=told):
        Bench(bus, **wrong)


@pytest.mark.parametrize("tracked", [False, True])
def test_somebody_seen_in_the_future_does_not_freeze_the_guard(bus: Bus, tracked: bool) -> None:
    sight = {"people": (), "tracked_topic": "/tracks"} if tracked else {}
    bench = Bench(bus, **sight)
    bench.run(1.0, 8.0, tracked=tracked)
    ahead = msg.Header(stamp=stamp(bus.now_ns + 3600 * 10**9), frame_id="world")
    body = bench.trunk(8.0)
    body.header = ahead
    if tracked:
        bench.tracks.publish(msg.TrackedPeople(header=ahead, people=[body], uncertainty=0.1))
    else:
        bench.body.publish(body)
    bench.run(1.0, 8.0, tracked=tracked)
    assert bench.paces[-1] == 1.0
    assert any("stamped in the future" in line for line in bench.lines)
    bench.run(1.0, 0.8, tracked=tracked)
    assert bench.paces[-1] == 0.0
    assert bench.states[-1].person == "anna"
