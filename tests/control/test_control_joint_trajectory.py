"""The joint trajectory node on a bus, with ideal joints."""

from __future__ import annotations

import math

import numpy as np
import pytest

from roboyard.bus import Bus, Node, NodeError
from roboyard.control.limits import JointRates
from roboyard.control.nodes import JointTrajectoryNode
from roboyard.description.model import Axis, Joint, Limits, Link, Model
from roboyard.geometry import SE3
from roboyard.hardware.interface import CommandMode, JointCommand, JointReadings
from roboyard.messages import action, msg, srv

NAMES = ("shoulder", "elbow")
ARM = Model(
    "arm",
    tuple(Link(name, SE3.identity()) for name in ("base", "upper", "lower")),
    tuple(
        Joint(
            name, "revolute", parent, child, SE3.identity(), SE3.identity(), (Axis((0, 0, 1), Limits(-2.0, 2.0, 3.0)),)
        )
        for name, parent, child in zip(NAMES, ("base", "upper"), ("upper", "lower"), strict=True)
    ),
)


class Arm:
    """Joints that are where they are told; ``stuck`` ones stay, and of those that ``slip`` sensors say otherwise."""

    joint_names = ("other", *NAMES)

    def __init__(self, bus: Bus) -> None:
        self.bus, self.position = bus, np.array([9.0, 0.1, -0.1])
        self.stuck: set[str] = set()
        self.slip: dict[str, float] = {}
        self.history: list[np.ndarray] = []

    def command_modes(self, joint: str) -> tuple[CommandMode, ...]:
        return ("position",)

    def read(self) -> JointReadings:
        position = self.position + [self.slip.get(name, 0.0) for name in self.joint_names]
        return JointReadings(self.bus.now_ns, position, np.zeros(3), np.zeros(3))

    def write(self, command: JointCommand) -> None:
        for joint, value in zip(command.joints, command.values, strict=True):
            if joint not in self.stuck:
                self.position[self.joint_names.index(joint)] = value
        self.history.append(self.position[1:].copy())


def made(bus: Bus, **parameters: object) -> tuple[Arm, JointTrajectoryNode]:
    arm = Arm(bus)
    node = bus.add(JointTrajectoryNode(hardware=arm, description=ARM, joints=NAMES, **parameters), "jtc")
    return arm, node


def trajectory(
    *rows: tuple[float, list[float]], names: tuple[str, ...] = NAMES, speeds: bool = True, ended: int = 0
) -> object:
    return msg.JointTrajectory(
        header=msg.Header(stamp=msg.Time(sec=ended)),
        joint_names=list(names),
        points=[
            msg.JointTrajectoryPoint(
                positions=np.array(row), velocities=np.zeros(len(row) if speeds else 0),
                time_from_start=msg.builtin_interfaces.Duration(sec=math.floor(t), nanosec=round((t % 1) * 1e9)),
            )
            for t, row in rows
        ],
    )  # fmt: skip


class Client:
    """Sends goals to the action and keeps what becomes of them."""

    def __init__(self, bus: Bus, name: str = "client") -> None:
        self.bus, self.feedback = bus, []
        node = bus.add(Node(), name)
        self.client = node.action_client("/jtc/follow_joint_trajectory", action.FollowJointTrajectory)

    def send(self, path: object, **more: object):
        goal = action.FollowJointTrajectory.Goal(trajectory=path, **more)
        return self.client.send(goal, feedback=self.feedback.append)


def test_it_goes_there_smoothly_and_says_so() -> None:
    with Bus() as bus:
        arm, _ = made(bus)
        client = Client(bus)
        goal = client.send(trajectory((1.0, [1.0, -1.0]), (2.0, [0.5, 0.0])))
        bus.executor.run_for(1.0)
        assert arm.position[1:] == pytest.approx([1.0, -1.0], abs=0.05)
        bus.executor.run_for(1.5)
        assert goal.done()
        assert goal.succeeded
        assert arm.position[1:] == pytest.approx([0.5, 0.0])
        steps = np.diff(np.array(arm.history), axis=0) * 100.0
        assert np.abs(np.diff(steps, axis=0)).max() < 0.15, "no jump of speed: bounded acceleration"
        assert 30 <= len(client.feedback) <= 45
        assert arm.position[0] == 9.0


def test_a_cancel_stops_where_the_joints_are_and_a_newer_goal_takes_over() -> None:
    with Bus() as bus:
        arm, _ = made(bus)
        client = Client(bus)
        first = client.send(trajectory((2.0, [1.0, -1.0])))
        bus.executor.run_for(1.0)
        first.cancel()
        bus.executor.run_for(0.5)
        here = arm.position.copy()
        bus.executor.run_for(1.0)
        assert (arm.position == here).all()
        assert first.done()
        assert not first.succeeded
        second = client.send(trajectory((1.0, [1.0, 1.0])))
        bus.executor.run_for(0.5)
        third = client.send(trajectory((1.0, [-1.0, 0.0])))
        bus.executor.run_for(2.0)
        assert second.done()
        assert not second.succeeded
        assert "newer goal" in second.result.error_string
        assert third.succeeded
        assert arm.position[1:] == pytest.approx([-1.0, 0.0])
        assert np.abs(np.diff(np.array(arm.history), axis=0)).max() < 0.05, "taken over without a jump"


def test_what_is_off_its_path_or_its_goal_is_told_with_its_cause() -> None:
    codes = action.FollowJointTrajectory.Result
    with Bus() as bus:
        arm, _ = made(bus, goal_time=0.2)
        client = Client(bus)
        arm.stuck = {"elbow"}
        tolerance = [msg.control_msgs.JointTolerance(name="elbow", position=0.05)]
        off_path = client.send(trajectory((1.0, [1.0, 1.0])), path_tolerance=tolerance)
        bus.executor.run_for(2.0)
        assert off_path.result.error_code == codes.PATH_TOLERANCE_VIOLATED
        assert "elbow" in off_path.result.error_string
        off_goal = client.send(trajectory((1.0, [0.0, 1.0])))
        bus.executor.run_for(3.0)
        assert off_goal.result.error_code == codes.GOAL_TOLERANCE_VIOLATED


REFUSED = [
    (trajectory((1.0, [0.0]), names=("wrist",)), "joint 'wrist' is not of the group"),
    (trajectory((1.0, [0.0, 0.0]), names=("elbow", "elbow")), "some twice"),
    (trajectory((1.0, [0.5]), names=("elbow",)), "joint 'shoulder' is missing"),
    (trajectory((1.0, [0.5, 0.0, 0.0]), names=(*NAMES, "wrist")), "joint 'wrist' is not of the group"),
    (trajectory(), "without points"),
    (trajectory((3.0, [2.5, 0.0])), "from -2 to 2"),
    (trajectory((0.1, [1.5, 0.0])), "more time"),
    (trajectory((0.0, [1.5, 0.0]), (1.0, [1.5, 0.0])), "shoulder is at 0.1, the trajectory begins at 1.5"),
    (trajectory((1.0, [math.nan, 0.0])), "finite"),
    (trajectory((1.0, [math.inf, 0.0])), "finite"),
    (trajectory((1.0, [0.5, 0.0]), (1.0, [0.6, 0.0])), "later"),
    (trajectory((1.0, [0.5, 0.0]), (0.5, [0.6, 0.0])), "later"),
    (trajectory((-1.0, [0.5, 0.0]), (0.5, [0.6, 0.0])), "later"),
    (trajectory((1.0, [0.5])), "one for each joint"),
    (trajectory((1.0, [0.5, 0.5]), ended=1), "its end is past"),
]


@pytest.mark.parametrize("by", ["action", "topic"])
@pytest.mark.parametrize(("path", "reason"), REFUSED)
def test_bad_trajectories_are_refused_with_a_reason_and_the_joints_stay(path: object, reason: str, by: str) -> None:
    with Bus() as bus:
        arm, _ = made(bus)
        lines = []
        bus.log_sinks.append(lambda record: lines.append(record.text))
        bus.executor.run_for(5.0)
        if by == "action":
            assert not Client(bus).send(path).succeeded
        else:
            bus.publisher("/jtc/joint_trajectory", msg.JointTrajectory, "/t").publish(path)
        bus.executor.run_for(0.5)
        assert any(reason in line for line in lines), lines
        assert (np.array(arm.history) == [0.1, -0.1]).all(), "no set-point ever changed"


def test_it_begins_only_where_the_joints_really_are() -> None:
    with Bus() as bus:
        arm, node = made(bus)
        lines = []
        bus.log_sinks.append(lambda record: lines.append(record.text))
        bus.executor.run_for(0.1)
        arm.stuck, arm.position[1] = {"shoulder"}, 0.6  # something has pushed it, and holds it
        assert not Client(bus).send(trajectory((1.0, [0.5, 0.0]))).succeeded
        bus.executor.run_for(0.1)
        assert any("shoulder is at 0.6, told to be at 0.1" in line for line in lines), lines
        node.set_parameter("start_tolerance", 0.0)
        goal = Client(bus, "again").send(trajectory((1.0, [0.5, 0.0])))
        bus.executor.run_for(0.1)
        assert not goal.done()


def limited(bus: Bus) -> tuple[Arm, JointTrajectoryNode]:
    """Set-points each millisecond, and stated accelerations."""
    return made(bus, rate=1000.0, rates=JointRates(dict.fromkeys(NAMES, 2.0)), start_tolerance=0.0)


def rates_of(arm: Arm) -> tuple[float, float]:
    speeds = np.diff(np.array(arm.history), axis=0) * 1000.0
    return float(np.abs(speeds).max()), float(np.abs(np.diff(speeds, axis=0)).max() * 1000.0)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["cancel", "stop", "pause", "preempt", "off its path", "scaled"])
def test_set_points_keep_speeds_and_accelerations_whatever_comes_between(what: str) -> None:
    codes = action.FollowJointTrajectory.Result
    with Bus() as bus:
        arm, _ = limited(bus)
        client, caller = Client(bus), Node()
        bus.add(caller, "caller")
        tolerance = [msg.control_msgs.JointTolerance(name="elbow", position=0.05)]
        goal = client.send(trajectory((2.0, [1.0, -1.0]), (3.0, [0.4, -0.8])), path_tolerance=tolerance)
        bus.executor.run_for(0.8)
        before = arm.position.copy()
        if what == "cancel":
            goal.cancel()
        elif what == "stop":
            answer = caller.service_client("/jtc/stop", srv.Trigger).call(srv.Trigger.Request())
        elif what == "pause":
            caller.service_client("/jtc/pause", srv.SetBool).call(srv.SetBool.Request(data=True))
        elif what == "preempt":
            second = client.send(trajectory((0.3, [0.5, -0.9]), (2.0, [1.5, 0.5]), speeds=False))
        elif what == "off its path":
            arm.slip = {"elbow": 0.06}
        else:
            bus.publisher("/jtc/speed_scaling", msg.Float64, "/t").publish(msg.Float64(data=0.25))
        bus.executor.run_for(1.5)
        speed, acceleration = rates_of(arm)
        assert speed < 1.5
        assert acceleration <= 2.0 * 1.02
        moved = np.abs(arm.position - before).max()
        if what in ("cancel", "stop", "off its path"):
            assert goal.done()
            assert not goal.succeeded
            assert moved < 0.3
        if what == "cancel":
            assert "cancelled" in goal.result.error_string
        elif what == "stop":
            assert "stopped" in goal.result.error_string
            assert answer.result.success
            assert "/jtc" in answer.result.message
        elif what == "off its path":
            assert goal.result.error_code == codes.PATH_TOLERANCE_VIOLATED
        elif what == "pause":
            stood = arm.position.copy()
            bus.executor.run_for(0.5)
            assert (arm.position == stood).all()
            assert not goal.done()
            caller.service_client("/jtc/pause", srv.SetBool).call(srv.SetBool.Request(data=False))
        bus.executor.run_for(7.0)
        assert rates_of(arm)[1] <= 2.0 * 1.02
        if what in ("pause", "scaled"):
            assert goal.succeeded
            assert arm.position[1:] == pytest.approx([0.4, -0.8], abs=1e-9)
        if what == "preempt":
            assert "newer goal" in goal.result.error_string
            assert second.succeeded
            assert arm.position[1:] == pytest.approx([1.5, 0.5], abs=1e-9)


def test_a_stop_of_joints_at_rest_refuses_nothing() -> None:
    with Bus() as bus:
        arm, _ = made(bus)
        caller = Node()
        bus.add(caller, "caller")
        answer = caller.service_client("/jtc/stop", srv.Trigger).call(srv.Trigger.Request())
        bus.executor.run_for(0.2)
        assert answer.result.success
        assert "nothing moved" in answer.result.message
        assert (np.array(arm.history) == [0.1, -0.1]).all()


def test_speed_scalings_that_make_no_sense_are_refused() -> None:
    with Bus() as bus:
        made(bus)
        scaling = bus.publisher("/jtc/speed_scaling", msg.Float64, "/t")
        for value in (math.nan, -0.1, 1.1):
            scaling.publish(msg.Float64(data=value))
        goal = Client(bus).send(trajectory((1.0, [0.5, 0.0])))
        bus.executor.run_for(1.1)
        assert goal.succeeded


def test_joints_that_something_held_do_not_spring_when_it_lets_go() -> None:
    with Bus() as bus:
        arm, _ = made(bus, path_tolerance=0.05)
        arm.stuck = {"elbow"}
        goal = Client(bus).send(trajectory((1.0, [1.0, 1.0])))
        bus.executor.run_for(3.0)
        assert not goal.succeeded
        stood = arm.position.copy()
        arm.stuck = set()
        bus.executor.run_for(0.5)
        assert arm.position == pytest.approx(stood, abs=1e-9)
        again = Client(bus, "again").send(trajectory((1.0, [0.0, 0.5])))
        bus.executor.run_for(1.2)
        assert again.succeeded


def test_a_topic_moves_some_joints_and_the_state_goes_on() -> None:
    def half_way() -> tuple[Bus, Arm, JointTrajectoryNode]:
        bus = Bus()
        arm, node = made(bus, allow_partial_joints_goal=True)
        bus.publisher("/jtc/joint_trajectory", msg.JointTrajectory, "/t").publish(
            trajectory((1.0, [0.8]), names=("elbow",), speeds=False)
        )
        bus.executor.run_for(0.5)
        return bus, arm, node

    bus, arm, node = half_way()
    state = node.save()
    with bus:
        bus.executor.run_for(1.0)
        assert arm.position[1:] == pytest.approx([0.1, 0.8])
    bus, again, node = half_way()
    node.load(state)
    with bus:
        bus.executor.run_for(1.0)
        assert (again.position == arm.position).all()


@pytest.mark.parametrize("what", ["slowed", "stopping", "paused"])
def test_the_state_goes_on_in_the_middle_of_a_change_of_pace(what: str) -> None:
    def half_way() -> tuple[Bus, Arm, JointTrajectoryNode]:
        bus = Bus()
        arm, node = limited(bus)
        caller = bus.add(Node(), "caller")
        path = bus.publisher("/jtc/joint_trajectory", msg.JointTrajectory, "/t")
        path.publish(trajectory((2.0, [1.0, -1.0]), (3.0, [0.4, -0.8])))
        bus.executor.run_for(1.0)
        if what == "slowed":
            bus.publisher("/jtc/speed_scaling", msg.Float64, "/t").publish(msg.Float64(data=0.5))
        elif what == "stopping":
            caller.service_client("/jtc/stop", srv.Trigger).call(srv.Trigger.Request())
        else:
            caller.service_client("/jtc/pause", srv.SetBool).call(srv.SetBool.Request(data=True))
        bus.executor.run_for(0.1)
        return bus, arm, node

    bus, arm, node = half_way()
    state, position = node.save(), arm.position.copy()
    with bus:
        bus.executor.run_for(3.0)
    with Bus() as other:
        again, node = limited(other)
        other.executor.run_for(1.1)
        again.position[:] = position
        node.load(state)
        other.executor.run_for(3.0)
    assert (again.position == arm.position).all()


def test_wrong_groups_are_refused() -> None:
    with Bus() as bus, pytest.raises(NodeError, match="no joints"):
        bus.add(JointTrajectoryNode(hardware=Arm(bus), description=ARM), "jtc")
    with Bus() as bus, pytest.raises(NodeError, match="velocity"):
        made(bus, mode="velocity")


def test_it_tells_its_plan_and_how_far_on_it_its_commands_are() -> None:
    with Bus() as bus:
        made(bus, state_publish_rate=50.0)
        plans, states = [], []
        listener = bus.add(Node(), "listener")
        listener.subscribe("/jtc/plan", msg.JointTrajectory, plans.append)
        listener.subscribe("/jtc/controller_state", msg.JointTrajectoryControllerState, states.append)
        goal = Client(bus).send(trajectory((1.0, [1.0, -1.0])))
        bus.executor.run_for(0.5)
        assert len(plans) == 1
        assert plans[0].points[0].positions.tolist() == [0.1, -0.1]
        assert plans[0].points[-1].positions.tolist() == [1.0, -1.0]
        moving = [state for state in states if state.reference.time_from_start.nanosec > 0]
        assert len(moving) > 20
        for state in moving:
            place = state.reference.time_from_start.sec + state.reference.time_from_start.nanosec * 1e-9
            share = place / plans[0].points[-1].time_from_start.sec
            wanted = 0.1 + 0.9 * (3.0 * share**2 - 2.0 * share**3)
            assert state.reference.positions[0] == pytest.approx(wanted, abs=1e-6)
        bus.executor.run_for(1.5)
        assert goal.succeeded
        assert len(plans[-1].points) == 0
        assert states[-1].reference.positions.tolist() == [1.0, -1.0]
